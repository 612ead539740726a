"""The start of the calibration: poses, a lens and a rough readout ratio from tracks, by global-shutter methods.

It need not be accurate: all tracks are triangulated again under the rolling-shutter model afterwards, so no point and
no outlier decision leaves this module. The steps:

    1. lens      pairs of frames determine the family of lenses and the focal length (`lens_search`)
    2. readout   pairs of frames determine the readout ratio roughly (`rough_readout`); all tracks are moved to the
                 middle of the readout, and the next steps treat them as seen by a global shutter
    3. map       COLMAP reconstructs keyframes (`keyframes`, `mapping`)
    4. adjust    lens and readout ratio are refined by the reconstruction (`mapping`)
    5. fill      the other frames are located against the mapped points; gaps are interpolated, and the notes say so
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import numpy as np

from rssc.errors import InputError, NotCalibratableError
from rssc.model import Lens, Tracks
from rssc.model.arrays import FloatArray, float_array
from rssc.model.lens import Family
from rssc.runtime.constants import Constants
from rssc.runtime.progress import Report, unreported
from rssc.runtime.threads import run_ahead
from rssc.start.colmap import ColmapModel, read_model
from rssc.start.colmap_mapping import absolute_pose
from rssc.start.epipolar import epipolar_cost
from rssc.start.keyframes import (
    KEYFRAMES,
    FrameViews,
    Keyframes,
    Pair,
    choose_keyframes,
    displacement,
    wide_pairs,
)
from rssc.start.lens_search import LensGuess, families_of, rank_lenses
from rssc.start.mapping import MAPPING, Fit, best_of, choose_lens, map_keyframes, parallax, refine_readout
from rssc.start.rough_readout import rectified, rough_readout
from rssc.start.start import Axis, Start, interpolate_poses


@dataclass(frozen=True)
class ReconstructionConstants(Constants):
    """Tuned numbers of the reconstruction, chosen by hand."""

    max_error: float = 0.004
    """Largest reprojection error of an inlier, as a share of the longer image side (5 px of 1280): covers what the
    rolling shutter leaves after its rough correction."""
    min_motion: float = 0.005
    """Least median displacement between the widest pairs, as a share of the longer image side."""
    min_parallax_deg: float = 1.0
    """Half of the points should be seen under at least this angle; below, a moving and a turning camera are hard to
    distinguish."""
    few_inliers: float = 0.6
    """A smaller share of inliers is worth a note."""
    min_agreeing: float = 0.5
    """Share of the mapped points in a frame that must agree with its pose."""


RECONSTRUCTION = ReconstructionConstants()
_STILL_PX = 1.0
"""A point that moves by less is one of a camera that stands still, and not one that was lost by blur."""


def reconstruct(
    tracks: Tracks,
    width: int,
    height: int,
    *,
    lens: Family | None = None,
    focal_hints: tuple[float, ...] = (),
    fractions: Mapping[Axis, FloatArray] | None = None,
    frame_times: FloatArray | None = None,
    report: Report = unreported,
) -> Start:
    """Poses of all frames, a lens and a rough readout ratio from feature tracks.

    Args:
        tracks: Tracks over consecutive frames of a video.
        width: Of the images in pixels.
        height: Of the images in pixels.
        lens: 'perspective' or 'fisheye' to try only one family; both where not given.
        focal_hints: Focal lengths in pixels to try besides the usual ones.
        fractions: "rows" and "columns", (m,) each: how far into the readout of the sensor's rows or columns each
            observation was read, 0 to 1; those of the image where not given.
        frame_times: (f,) time of each frame in frame intervals; 0, 1, 2, .. where not given.
        report: Called with the share of the work that is done.

    Raises:
        NotCalibratableError: Nothing can be reconstructed, for instance because the camera did not move.
    """
    families = families_of(lens)
    if fractions is None:
        fractions = {"rows": tracks.pixels[:, 1] / height, "columns": tracks.pixels[:, 0] / width}
    checked: dict[Axis, FloatArray] = {
        axis: float_array(f"fractions of {axis}", values, (len(tracks),)) for axis, values in fractions.items()
    }
    times = np.arange(tracks.frame_count, dtype=np.float64) if frame_times is None else frame_times
    side = max(width, height)
    max_error = RECONSTRUCTION.max_error * side

    def views_along(axis: Axis, ratio: float) -> FrameViews:
        return FrameViews(tracks, rectified(tracks, checked[axis], ratio, times))

    report(0.0)
    pairs = wide_pairs(FrameViews(tracks, tracks.pixels), side)
    check_motion(pairs, tracks, side)
    guesses = rank_lenses(pairs, width, height, families, focal_hints, max_error)

    report(0.2)

    @cache
    def cost(axis: Axis, ratio: float) -> float:
        views = views_along(axis, ratio)
        moved = [views.pair(p.first, p.second).thinned(KEYFRAMES.pair_matches) for p in pairs]
        return epipolar_cost(moved, guesses[0].lens, width, height, max_error)

    costs: dict[Axis, Callable[[float], float]] = {axis: partial(cost, axis) for axis in checked}
    axis, readout_ratio = rough_readout(costs)
    views_at = partial(views_along, axis)

    report(0.3)
    keyframes = choose_keyframes(views_at(readout_ratio), width, height, max_error)
    mapped = map_keyframes(keyframes, guesses)

    report(0.65)
    found = [_refined(keyframes, fit, guesses, views_at, readout_ratio) for fit in mapped]
    fit = best_of([fit for _, _, fit in found], guesses)
    readout_ratio, keyframes, _ = next(one for one in found if one[2] is fit)
    views = views_at(readout_ratio)

    report(0.95)
    poses = dict(fit.model.poses)
    others = [frame for frame in range(tracks.frame_count) if frame not in poses]
    located = run_ahead(partial(_locate, views, model=fit.model, keyframes=keyframes), others)
    poses |= {frame: pose for frame, pose in zip(others, located, strict=True) if pose is not None}
    cam_from_world, registered, notes = interpolate_poses(poses, times)
    if fit.inlier_fraction < RECONSTRUCTION.few_inliers:
        notes += (f"The start explains only {fit.inlier_fraction:.0%} of the tracks within {max_error:.0f} px.",)
    angle = parallax(keyframes, fit.model)
    if angle < RECONSTRUCTION.min_parallax_deg:
        notes += (
            f"There is hardly any parallax: half of the points are seen under less than {angle:.1f} degrees. "
            "Let the camera move sideways, not only turn.",
        )
    report(1.0)
    return Start(
        lens=_tidy(fit.model.lens),
        cam_from_world=cam_from_world,
        registered=registered,
        notes=notes,
        method=fit.method,
        readout_ratio=readout_ratio,
        axis=axis,
        mean_error=fit.mean_error,
        inlier_count=fit.inlier_count,
        point_count=int(np.isfinite(fit.model.points[:, 0]).sum()),
        parallax_deg=angle,
    )


def _refined(
    keyframes: Keyframes,
    fit: Fit,
    guesses: Sequence[LensGuess],
    views_at: Callable[[float], FrameViews],
    readout_ratio: float,
) -> tuple[float, Keyframes, Fit]:
    """Readout ratio, keyframes in the middle of that readout, and the fit with the lens that they support."""
    fit = choose_lens(keyframes, fit, guesses, MAPPING.rough_gain)
    readout_ratio, fit = refine_readout(keyframes, fit, views_at, readout_ratio)
    keyframes = keyframes.moved(views_at(readout_ratio))
    return readout_ratio, keyframes, choose_lens(keyframes, fit, guesses, MAPPING.fine_gain)


def read_colmap_model(
    path: str | Path,
    frame_names: Sequence[str],
    frame_times: FloatArray | None = None,
    size: tuple[int, int] | None = None,
) -> Start:
    """A start from an existing COLMAP model, whose images are matched by name.

    Args:
        path: Folder with cameras, images and points3D, as .bin or .txt.
        frame_names: File name of each frame; folders and suffixes do not matter.
        frame_times: (f,) time of each frame in frame intervals; 0, 1, 2, .. where not given.
        size: Width and height of the frames, where they are to be compared with those of the model.
    """
    path = Path(path)
    lens, by_name, notes, given = read_model(path)
    if size is not None and size != given:
        raise InputError(
            f"the COLMAP model in {path} is of images of {given[0]} x {given[1]} pixels; these have {size[0]} x "
            f"{size[1]}. Run COLMAP on these frames."
        )
    stems = {Path(name).stem: pose for name, pose in by_name.items()}
    if len(stems) != len(by_name):
        raise InputError(f"the COLMAP model in {path} has several images of one name; expected those of one clip.")
    poses = {i: stems[Path(name).stem] for i, name in enumerate(frame_names) if Path(name).stem in stems}
    if len(poses) < 2:
        raise InputError(
            f"the COLMAP model in {path} has {len(poses)} of the {len(frame_names)} frames; its images have names like "
            f"{next(iter(by_name), 'none')!r}, the frames like {frame_names[0]!r}. Run COLMAP on these frames."
        )
    times = np.arange(len(frame_names), dtype=np.float64) if frame_times is None else frame_times
    cam_from_world, registered, gaps = interpolate_poses(poses, times)
    return Start(lens, cam_from_world, registered, notes + gaps, "given")


def check_motion(pairs: Sequence[Pair], tracks: Tracks, side: int) -> None:
    """Checks that frames are linked and that the image moves.

    Args:
        pairs: Wide pairs of frames.
        tracks: The tracks that they come from.
        side: Longer image side in pixels.

    Raises:
        NotCalibratableError: No frames are linked, or the image hardly moves.
    """
    if not pairs:
        raise NotCalibratableError(
            f"{tracks.point_count} tracks over {tracks.frame_count} frames link no two frames well enough; "
            "use footage with more texture, less blur or slower motion."
        )
    motion = float(np.median([displacement(p) for p in pairs]))
    if motion < _STILL_PX:
        raise NotCalibratableError(
            "the camera stands still: walk sideways past things at several distances, and turn the camera up, down and "
            "sideways."
        )
    if motion < RECONSTRUCTION.min_motion * side:
        raise NotCalibratableError(
            f"a point moves by only {motion:.1f} px between the frames that it can be followed through; let the camera "
            "move sideways and turn, and where it moves fast film in more light: what is blurred is lost."
        )


def _tidy(lens: Lens) -> Lens:
    """A radial lens without distortion is a pinhole."""
    if lens.model == "radial" and not any(lens.distortion):
        return replace(lens, model="pinhole", distortion=())
    return lens


def _locate(views: FrameViews, frame: int, model: ColmapModel, keyframes: Keyframes) -> FloatArray | None:
    """(3, 4) pose of a frame from the mapped points that it sees; None where too few of them agree."""
    points, pixels = views.of(frame)
    known = np.isfinite(model.points[points, 0])
    found = absolute_pose(
        model.points[points[known]], pixels[known], model.lens, keyframes.width, keyframes.height, keyframes.max_error
    )
    if found is None or found[1] < RECONSTRUCTION.min_agreeing * known.sum():
        return None
    return found[0]
