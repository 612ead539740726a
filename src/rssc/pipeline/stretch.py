"""One stretch of footage, from its frames to an estimate that stands by itself.

track -> reconstruct (global shutter) -> estimate (rolling shutter) -> refine the tracks -> estimate again
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rssc.errors import InputError, NotCalibratableError
from rssc.inference.estimate import Estimate, estimate, start_scene
from rssc.model.arrays import FloatArray
from rssc.model.camera import Camera, Shutter
from rssc.model.lens import LENS_MODELS, Family, Lens
from rssc.model.scene import Scene
from rssc.model.stretch import Stretch
from rssc.model.tracks import Tracks
from rssc.model.trajectory import Trajectory
from rssc.runtime.progress import Stages
from rssc.solver.methods import METHODS
from rssc.solver.problem import readout_interval
from rssc.solver.spline_fit import fit_trajectory
from rssc.start.start import Axis
from rssc.tracking.prediction import predict_observations, surface_slopes

_TRACK_FRAMES = 100
"""Longer tracks are cut: they would couple all poses with one another, and the cost would grow with the third power."""


@dataclass(frozen=True)
class CalibrateOptions:
    """How to calibrate a clip."""

    fps: float | None = None
    """Frames per second, for a folder of images without time stamps in their names."""
    frames: tuple[int | None, int | None] | None = None
    """First frame and one past the last; informative stretches of a long video where not given."""
    lens: Literal["auto", "pinhole", "radial", "opencv", "fisheye"] = "auto"
    """Lens model; chosen by evidence where auto."""
    method: Literal["auto", "te", "ceq", "ceh", "dpq", "dph"] = "auto"
    """Our best estimator, or a method of the paper as it is."""
    undistorted_from: str | None = None
    """FILE[:CAM], a Kalibr camchain or OpenCV YAML: what the images were undistorted with."""
    init: Path | None = None
    """Folder of a COLMAP model to start from."""

    def __post_init__(self) -> None:
        if self.frames is not None and (isinstance(self.frames, str) or len(self.frames) != 2):
            raise InputError(f"frames are {self.frames!r}; expected a pair (first, one past the last).")
        if self.lens != "auto" and self.lens not in LENS_MODELS:
            raise InputError(f"lens is {self.lens!r}; expected auto or one of {', '.join(LENS_MODELS)}.")
        if self.method != "auto" and self.method not in METHODS:
            raise InputError(f"method is {self.method!r}; expected auto or one of {', '.join(METHODS)}.")


@dataclass(frozen=True)
class Solution:
    """What one stretch says by itself."""

    estimate: Estimate
    stretch: Stretch
    frame_interval_s: float
    registered: np.ndarray
    """(f,) frames that could be placed."""
    notes: tuple[str, ...]
    seconds: dict[str, float]


@dataclass(frozen=True)
class RefinedStretch:
    """A stretch with refined tracks and a first estimate: what the last solve of every method starts from."""

    scene: Scene
    first: Estimate
    footage: Any
    source: Path
    registered: np.ndarray
    """(f,) frames that could be placed."""
    notes: tuple[str, ...]
    fixed: tuple[str, ...] = ()
    """What is not estimated: "translations" where the camera only turned."""


def solve_stretch(footage: Any, source: Path, options: CalibrateOptions, stage: Stages) -> Solution:
    """Calibrates the camera from one stretch of footage.

    Raises:
        NotCalibratableError: The footage cannot tell.
    """
    return solve_refined(refine_stretch(footage, source, options, stage), options.method, stage)


def refine_stretch(footage: Any, source: Path, options: CalibrateOptions, stage: Stages) -> RefinedStretch:
    """Everything before the last solve, which is the same for all methods.

    Raises:
        NotCalibratableError: The footage cannot tell.
    """
    from rssc.io.lens_files import read_sensor_lens
    from rssc.tracking.track import track

    sensor = read_sensor_lens(options.undistorted_from, footage.width, footage.height)
    with stage("tracking") as report:
        tracks = track(footage.images, report=report).cut(_TRACK_FRAMES)
        tracks = tracks.select_points(tracks.lengths >= 3)
    failure = None
    for start, scene, fixed in starts(tracks, footage, sensor, options, stage):
        try:
            with _blaming_footage(), stage("estimating") as report:
                first = estimate(
                    scene, lens=options.lens, knot_spacings=(1.0,), fixed=fixed, report=lambda _, share: report(share)
                )
            with _blaming_footage(), stage("refining"):
                refined = _refined(footage.images, first.adjustment.scene)
        except NotCalibratableError as error:
            failure = failure or error
            continue
        return RefinedStretch(refined, first, footage, source, start.registered, (*footage.notes, *start.notes), fixed)
    raise failure or NotCalibratableError("nothing explains how the tracks move.")


def starts(
    tracks: Tracks, footage: Any, sensor: Lens | None, options: CalibrateOptions, stage: Stages
) -> Iterator[tuple[Any, Scene, tuple[str, ...]]]:
    """Starts, their scenes and what to hold fixed: a moving camera and one that only turns, the likelier one first.

    Raises:
        NotCalibratableError: There is none.
    """
    from rssc.start.reconstruction import RECONSTRUCTION, read_colmap_model, reconstruct
    from rssc.start.turning import start_from_rotation

    times = footage.frame_times

    def scene_of(start: Any) -> Scene:
        camera = Camera(footage.width, footage.height, start.lens, Shutter(start.readout_ratio, start.axis), sensor)
        trajectory = start_trajectory(times, start.cam_from_world, start.readout_ratio)
        return start_scene(camera, tracks, times, trajectory)

    if options.init is not None:
        with stage("reconstructing"):
            start = read_colmap_model(options.init, footage.names, times)
        yield start, scene_of(start), ()
        return
    size, family = (footage.width, footage.height), _family(options.lens)
    fractions = _fractions(tracks, footage, sensor)
    moving = failure = None
    try:
        with stage("reconstructing") as report:
            moving = reconstruct(
                tracks, *size, lens=family, fractions=fractions, frame_times=times, report=report
            )  # fmt: skip
    except NotCalibratableError as error:
        failure = error
    # Without parallax a moving camera explains a turning one, too, by a path that follows the noise.
    clear = moving is not None and moving.parallax_deg >= RECONSTRUCTION.min_parallax_deg
    if clear:
        yield moving, scene_of(moving), ()
    try:
        with stage("reconstructing"):
            turning = start_from_rotation(tracks, *size, lens=family, fractions=fractions["rows"], frame_times=times)
    except NotCalibratableError:
        if failure is not None:
            raise failure from None
    else:
        yield turning, scene_of(turning), ("translations",)
    if moving is not None and not clear:
        yield moving, scene_of(moving), ()


def solve_refined(refined: RefinedStretch, method: str, stage: Stages) -> Solution:
    """The last solve: our best estimator, or a method of the paper.

    Raises:
        NotCalibratableError: The footage cannot tell.
    """
    first, footage = refined.first, refined.footage
    with _blaming_footage(), stage("solving") as report:
        final = estimate(
            refined.scene, method=method, rough=False, tried_lenses=first.lenses, fixed=refined.fixed,
            report=lambda _, share: report(share),
        )  # fmt: skip
    source = str(refined.source)
    stretch = Stretch(final.adjustment.scene, footage.times_s, footage.frame_numbers, footage.names, source)
    return Solution(
        replace(final, lenses=first.lenses, shutters=first.shutters),
        stretch, footage.frame_interval_s, refined.registered, refined.notes, dict(stage.seconds),
    )  # fmt: skip


@contextmanager
def _blaming_footage() -> Iterator[None]:
    """The scene is ours, so that what is wrong with it is the footage's fault: points at no distance or behind."""
    try:
        yield
    except InputError as error:
        raise NotCalibratableError(
            "no distance fits the tracks: the camera turned but hardly changed its place, or things moved; walk "
            "sideways past a scene that stands still."
        ) from error


def _family(lens: str) -> Family | None:
    return None if lens == "auto" else LENS_MODELS[lens].family


def _fractions(tracks: Tracks, footage: Any, sensor: Lens | None) -> dict[Axis, FloatArray]:
    """(m,) row and column fractions on the sensor, also where the images were undistorted."""
    lens = sensor or Lens("pinhole", 1.0, 1.0, 0.0, 0.0)
    return {
        axis: Camera(footage.width, footage.height, lens, Shutter(0.0, axis), sensor).row_fraction(tracks.pixels)
        for axis in ("rows", "columns")
    }


def start_trajectory(frame_times: FloatArray, cam_from_world: FloatArray, readout_ratio: float) -> Trajectory:
    """A spline through the poses of the start, which are those of the middle row."""
    begin, end = readout_interval(frame_times, readout_ratio)
    return fit_trajectory(frame_times + readout_ratio / 2, cam_from_world, begin, end, 1.0)


def _refined(images: np.ndarray, scene: Scene) -> Scene:
    """Every track registered again to its reference patch, with position and warp from the first solution.

    Twice: the warps found by the first time tell how surfaces are turned, which bends patches.
    """
    from rssc.tracking.refinement import reference_observations, refine

    references = reference_observations(scene.tracks)
    pixels, warps, bends = predict_observations(scene, references)
    found = refine(images, scene.tracks, pixels, warps, bends)
    slopes = surface_slopes(scene, references, warps, found.rows, found.warps)
    tracks = refine(images, scene.tracks, *predict_observations(scene, references, slopes)).tracks
    keep = tracks.lengths >= 3
    if not keep.any():
        raise NotCalibratableError("no track could be found again after the first solve; film with less blur.")
    return replace(scene, tracks=tracks.select_points(keep), points=scene.points[keep])
