"""The global-shutter start: poses and a focal length from tracks, as if every frame were taken at one instant.

Rolling shutter makes it wrong by several percent, and it only has to be a start: all tracks are triangulated again
under the rolling-shutter model afterwards, so only the poses and the lens leave this module. Four steps:

    1. lens     Pairs of frames with a wide baseline are explained by an essential matrix each, under a grid of lenses
                (perspective and fisheye, a range of focal lengths). The epipolar cost has a sharp minimum.
    2. map      Keyframes and a thinned set of tracks go to COLMAP's global mapping, the runners-up and incremental
                mapping being the fallback. Distortion stays as it is: freed too early, it runs away.
    3. adjust   One distortion coefficient is freed and kept only if it explains a good part of what is left over;
                a rolling shutter always offers a little to explain.
    4. fill     The other frames are located against the mapped points; gaps are interpolated and said so.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation, Slerp

from rssc.errors import InputError, NotCalibratableError
from rssc.frontend import colmap
from rssc.frontend.colmap import ColmapModel, MappingProblem, Pair
from rssc.frontend.keyframes import (
    PAIR_MATCHES,
    FrameViews,
    choose_keyframes,
    choose_tracks,
    link_keyframes,
    wide_pairs,
)
from rssc.frontend.readout import rectified, rough_readout_ratio
from rssc.model import Lens, Tracks
from rssc.model.arrays import FloatArray

Progress = Callable[[str, float], None]
"""Told the step and how much of the whole is done, 0 to 1."""

MAX_ERROR = 0.004
"""An observation belongs to the start if it is within this share of the longer image side (5 px of 1280)."""
MIN_MOTION = 0.005
"""Least median displacement between the widest pairs, as a share of the longer image side."""
FOCAL_GRID = (0.3, 0.42, 0.6, 0.85, 1.2, 1.7)
"""Focal lengths to try, in longer image sides."""
DISTORTION_GRID = {"perspective": (0.0, -0.2), "fisheye": (0.0,)}
"""First distortion coefficients to try. An ideal fisheye is a perspective lens with k1 = -1/3, to third order."""
DISTORTION_GAIN = 0.9
"""Distortion is freed if that lowers the cost below this share; rolling shutter alone lowers it by some percent."""
FAMILY_GAIN = 0.95
"""The other family of lenses is taken if it lowers the cost below this share."""
FAMILY_DOUBT = 1.5
"""The other family is tried again in the adjustment if its epipolar cost is within this factor of the best."""
MAX_CANDIDATES = 3
READOUT_STEP = 0.2
MAX_READOUT = 1.2


@dataclass(frozen=True)
class Start:
    """Where the rolling-shutter calibration starts from."""

    lens: Lens
    cam_from_world: FloatArray
    """(f, 3, 4) pose of every frame; interpolated where it is not registered."""
    registered: np.ndarray
    """(f,) whether the pose was measured."""
    notes: tuple[str, ...]
    """What a user should know, in plain sentences."""
    mean_error: float
    """Mean reprojection error of the inlier observations in pixels, under a global shutter; NaN where unknown."""
    inlier_count: int
    """Observations in keyframes that agree with the start."""
    point_count: int
    """Points that the start was made from."""
    method: str
    """'global', 'incremental' or 'given'."""
    readout_ratio: float = 0.0
    """A rough one. The poses are those in the middle of the readout, at frame + readout_ratio / 2."""


@dataclass(frozen=True)
class _Fit:
    """A candidate and how well it explains all the chosen observations, not only those that it kept."""

    model: ColmapModel
    cost: float
    """Mean of the reprojection errors, each at most the largest that is allowed; unexplained ones count as that."""
    inlier_fraction: float
    mean_error: float
    inlier_count: int
    method: str

    @property
    def order(self) -> tuple[int, float]:
        return -len(self.model.poses), self.cost


def reconstruct(
    tracks: Tracks,
    width: int,
    height: int,
    *,
    lens: str | None = None,
    focal_hints: tuple[float, ...] = (),
    row_fractions: FloatArray | None = None,
    progress: Progress | None = None,
) -> Start:
    """Poses of all frames and a lens from feature tracks.

    Args:
        tracks: Tracks over consecutive frames of a video.
        width: Of the images in pixels.
        height: Of the images in pixels.
        lens: 'perspective' or 'fisheye' to try only one family; both where not given.
        focal_hints: Focal lengths in pixels to try besides the usual ones.
        row_fractions: (m,) how far into the readout each observation was read, 0 to 1; rows of the image where not
            given.
        progress: Called with the step's name and the share of the work done.

    Raises:
        NotCalibratableError: Nothing can be reconstructed, for instance because the camera did not move.
    """
    families = _families(lens)
    report = progress or (lambda step, share: None)
    report("comparing lenses", 0.0)
    views = FrameViews(tracks)
    side = max(width, height)
    max_error = MAX_ERROR * side
    pairs = wide_pairs(views, side)
    _check_motion(pairs, tracks, side)
    hints = tuple(float(f) for f in focal_hints)
    candidates = _rank_lenses(pairs, width, height, families, hints, max_error)

    report("estimating the readout", 0.15)
    rho = tracks.pixels[:, 1] / height if row_fractions is None else np.asarray(row_fractions, dtype=float)

    def views_at(ratio: float) -> FrameViews:
        return FrameViews(tracks, rectified(tracks, rho, ratio))

    def epipolar_cost(ratio: float) -> float:
        moved = views_at(ratio)
        moved_pairs = [moved.pair(p.first, p.second).thinned(PAIR_MATCHES) for p in pairs]
        return colmap.epipolar_cost(moved_pairs, candidates[0].lens, width, height, max_error)

    readout_ratio = rough_readout_ratio(epipolar_cost)

    report("mapping keyframes", 0.2)
    views = views_at(readout_ratio)
    keyframes = choose_keyframes(views, side)
    observations = choose_tracks(views, keyframes, width, height)
    links = link_keyframes(keyframes, observations)
    problem = MappingProblem(width, height, keyframes, observations, links, max_error)
    fit = _map(problem, candidates)

    report("adjusting", 0.6)
    fit = _choose_lens(problem, fit, candidates)
    readout_ratio, fit = _refine_readout(problem, fit, views_at, readout_ratio)
    views = views_at(readout_ratio)
    problem = _with_pixels(problem, views)
    fit = _choose_lens(problem, fit, candidates)

    report("locating frames", 0.8)
    poses = dict(fit.model.poses)
    for frame in range(tracks.frame_count):
        if frame not in poses:
            found = _locate(views, frame, fit.model, problem)
            if found is not None:
                poses[frame] = found
    notes: list[str] = []
    cam_from_world, registered = _fill_gaps(poses, tracks.frame_count, notes)
    if fit.inlier_fraction < 0.6:
        notes.append(
            f"The global-shutter start explains only {fit.inlier_fraction:.0%} of the observations within "
            f"{max_error:.0f} px; expect a weak start."
        )
    report("locating frames", 1.0)
    return Start(
        lens=_tidy(fit.model.lens),
        cam_from_world=cam_from_world,
        registered=registered,
        notes=tuple(notes),
        mean_error=fit.mean_error,
        inlier_count=fit.inlier_count,
        point_count=len(fit.model.points),
        method=fit.method,
        readout_ratio=readout_ratio,
    )


def read_colmap_model(path: str | Path, frame_names: Sequence[str]) -> Start:
    """A start from an existing COLMAP model, whose images are matched by name.

    Args:
        path: Folder with cameras, images and points3D, as .bin or .txt.
        frame_names: File name of each frame; folders and, where names are still unique, suffixes do not matter.
    """
    path = Path(path)
    lens, by_name, _ = colmap.read_model(path)
    stems = {Path(name).stem: pose for name, pose in by_name.items()}
    if len(stems) != len(by_name):
        raise InputError(f"the COLMAP model in {path} has several images of the same name; expected one clip.")
    poses = {i: stems[Path(name).stem] for i, name in enumerate(frame_names) if Path(name).stem in stems}
    if len(poses) < 2:
        example = next(iter(by_name), "none")
        raise InputError(
            f"the COLMAP model in {path} has {len(poses)} of the {len(frame_names)} frames; expected image names such "
            f"as {frame_names[0]!r}, but it has {example!r}. Run COLMAP on the same frames."
        )
    notes: list[str] = []
    cam_from_world, registered = _fill_gaps(poses, len(frame_names), notes)
    return Start(lens, cam_from_world, registered, tuple(notes), float("nan"), 0, 0, "given")


def _families(lens: str | None) -> tuple[str, ...]:
    if lens is None:
        return tuple(DISTORTION_GRID)
    if lens not in DISTORTION_GRID:
        raise InputError(f"lens is {lens!r}; expected one of {', '.join(DISTORTION_GRID)}, or none to try both.")
    return (lens,)


def _check_motion(pairs: Sequence[Pair], tracks: Tracks, side: int) -> None:
    if not pairs:
        raise NotCalibratableError(
            f"{tracks.point_count} tracks over {tracks.frame_count} frames link no two frames well enough; "
            "use footage with more texture, less blur or slower motion."
        )
    motion = float(np.median([_displacement(p) for p in pairs]))
    if motion < MIN_MOTION * side:
        raise NotCalibratableError(
            f"the image moves by only {motion:.1f} px over the clip; move the camera sideways and turn it while recording."
        )


def _displacement(pair: Pair) -> float:
    return float(np.median(np.linalg.norm(pair.second_pixels - pair.first_pixels, axis=1)))


# 1. Lens


def _lens(family: str, focal: float, distortion: float, width: int, height: int) -> Lens:
    coefficients = (distortion, 0.0, 0.0, 0.0) if family == "fisheye" else (distortion, 0.0)
    return Lens(_MODEL_OF[family], focal, focal, (width - 1) / 2, (height - 1) / 2, coefficients)


_MODEL_OF = {"perspective": "radial", "fisheye": "fisheye"}
_FAMILY_OF = {"radial": "perspective", "fisheye": "fisheye"}


@dataclass(frozen=True)
class _Candidate:
    lens: Lens
    cost: float
    """Epipolar cost in pixels."""


def _rank_lenses(
    pairs: Sequence[Pair],
    width: int,
    height: int,
    families: Sequence[str],
    hints: tuple[float, ...],
    max_error: float,
) -> list[_Candidate]:
    """The local minima of the epipolar cost over the grid of lenses, best first."""
    focals = sorted({f * max(width, height) for f in FOCAL_GRID} | set(hints))
    minima = []
    for family in families:
        for distortion in DISTORTION_GRID[family]:
            lenses = [_lens(family, focal, distortion, width, height) for focal in focals]
            costs = [colmap.epipolar_cost(pairs, lens, width, height, max_error) for lens in lenses]
            for i, cost in enumerate(costs):
                if cost <= min(costs[max(i - 1, 0) : i + 2]):
                    focal = _parabola_minimum(np.log(focals), costs, i)
                    minima.append(_Candidate(_lens(family, focal, distortion, width, height), cost))
    return sorted(minima, key=lambda c: c.cost)


def _parabola_minimum(log_focals: FloatArray, costs: Sequence[float], i: int) -> float:
    """Focal length at the vertex of the parabola through a minimum and its two neighbours."""
    if not 0 < i < len(costs) - 1:
        return float(np.exp(log_focals[i]))
    curvature, slope, _ = np.polyfit(log_focals[i - 1 : i + 2], costs[i - 1 : i + 2], 2)
    vertex = -slope / (2 * curvature) if curvature > 0 else log_focals[i]
    return float(np.exp(np.clip(vertex, log_focals[i - 1], log_focals[i + 1])))


# 2. Map


def _map(problem: MappingProblem, candidates: Sequence[_Candidate]) -> _Fit:
    """The first candidate that explains the keyframes, or the best of those tried."""
    best: _Fit | None = None
    attempts = [(candidates[0], "global"), (candidates[0], "incremental")]
    attempts += [(c, "global") for c in candidates[1:MAX_CANDIDATES]]
    for candidate, method in attempts:
        mapper = colmap.map_globally if method == "global" else colmap.map_incrementally
        model = mapper(problem, candidate.lens)
        if model is None or len(model.poses) < 2 or not model.points or not _sane(model.lens, problem):
            continue
        fit = _judge(problem, model, method)
        if best is None or fit.order < best.order:
            best = fit
        if len(best.model.poses) >= 0.9 * len(problem.keyframes) and best.inlier_fraction > 0.7:
            break
    if best is None or len(best.model.poses) < 3:
        raise NotCalibratableError(
            f"no camera motion explains the tracks of {len(problem.keyframes)} keyframes; "
            "use footage of a static scene in which the camera moves sideways, not only turns."
        )
    return best


def _sane(lens: Lens, problem: MappingProblem) -> bool:
    side = max(problem.width, problem.height)
    return 0.15 * side < lens.fx < 10 * side and abs(lens.distortion[0]) < 1.0


def _judge(problem: MappingProblem, model: ColmapModel, method: str) -> _Fit:
    """Scores a model on all chosen observations."""
    errors = []
    for frame, (points, pixels) in problem.observations.items():
        error = np.full(len(points), np.inf)
        known = np.array([int(p) in model.points for p in points], dtype=bool)
        if frame in model.poses and known.any():
            pose = model.poses[frame]
            xyz = np.array([model.points[int(p)] for p in points[known]])
            projected = model.lens.project(xyz @ pose[:, :3].T + pose[:, 3])
            error[known] = np.linalg.norm(projected - pixels[known], axis=1)
        errors.append(np.nan_to_num(error, nan=np.inf))
    error = np.concatenate(errors)
    inlier = error < problem.max_error
    return _Fit(
        model=model,
        cost=float(np.minimum(error, problem.max_error).mean()),
        inlier_fraction=float(inlier.mean()),
        mean_error=float(error[inlier].mean()) if inlier.any() else float("nan"),
        inlier_count=int(inlier.sum()),
        method=method,
    )


# 3. Adjust


def _adjusted(problem: MappingProblem, fit: _Fit, lens: Lens, *, refine_distortion: bool) -> _Fit | None:
    """The fit after bundle adjustment; None where the lens ran away."""
    model = colmap.adjust_bundle(problem, fit.model, lens, refine_distortion=refine_distortion)
    return _judge(problem, model, fit.method) if _sane(model.lens, problem) else None


def _choose_lens(problem: MappingProblem, fit: _Fit, candidates: Sequence[_Candidate]) -> _Fit:
    """Adjusts all, with the distortion and the family of lenses that the observations speak for."""
    lens = fit.model.lens
    best = _adjusted(problem, fit, lens, refine_distortion=False) or fit
    freed = _adjusted(problem, fit, lens, refine_distortion=True)
    if freed is not None and freed.cost < DISTORTION_GAIN * best.cost:
        best = freed
    other = next((c for c in candidates if c.lens.model != lens.model), None)
    if other is not None and other.cost < FAMILY_DOUBT * candidates[0].cost:
        shift = 1 / 3 if other.lens.model == "fisheye" else -1 / 3
        start = _lens(_FAMILY_OF[other.lens.model], lens.fx, lens.distortion[0] + shift, problem.width, problem.height)
        switched = _adjusted(problem, fit, start, refine_distortion=True)
        if switched is not None and switched.cost < FAMILY_GAIN * best.cost:
            best = switched
    return best if best.order <= fit.order else fit


def _refine_readout(
    problem: MappingProblem, fit: _Fit, views_at: Callable[[float], FrameViews], readout_ratio: float
) -> tuple[float, _Fit]:
    """The readout ratio at which the adjusted reconstruction fits best, and that reconstruction.

    Walks downhill from the given ratio in steps of `READOUT_STEP` until the cost rises again.
    """
    fits = {}

    def cost(step: int) -> float:
        ratio = readout_ratio + step * READOUT_STEP
        if abs(ratio) > MAX_READOUT:
            return np.inf
        if step not in fits:
            moved = _with_pixels(problem, views_at(ratio))
            start = fits[min(fits, key=lambda s: abs(s - step))] if fits else fit
            fits[step] = _adjusted(moved, start, start.model.lens, refine_distortion=False) or start
        return fits[step].cost

    best = 0
    direction = 1 if cost(1) < cost(-1) else -1
    while cost(best + direction) < cost(best):
        best += direction
    sides = np.array([cost(best - 1), cost(best), cost(best + 1)])
    shift = 0.0
    if np.isfinite(sides).all():
        bend = sides[0] - 2 * sides[1] + sides[2]
        shift = 0.5 * (sides[0] - sides[2]) / bend if bend > 0 else 0.0
    return readout_ratio + (best + shift) * READOUT_STEP, fits[best]


def _with_pixels(problem: MappingProblem, views: FrameViews) -> MappingProblem:
    """The same observations at the pixels of other views."""
    observations = {}
    for frame, (points, _) in problem.observations.items():
        seen, pixels = views.of(frame)
        observations[frame] = (points, pixels[np.searchsorted(seen, points)])
    return replace(problem, observations=observations)


def _tidy(lens: Lens) -> Lens:
    """A radial lens without distortion is a pinhole."""
    if lens.model == "radial" and not any(lens.distortion):
        return replace(lens, model="pinhole", distortion=())
    return lens


# 4. Fill


def _locate(views: FrameViews, frame: int, model: ColmapModel, problem: MappingProblem) -> FloatArray | None:
    """(3, 4) pose of a frame from the mapped points that it sees."""
    points, pixels = views.of(frame)
    known = np.array([int(p) in model.points for p in points], dtype=bool)
    if not known.any():
        return None
    xyz = np.array([model.points[int(p)] for p in points[known]])
    found = colmap.absolute_pose(
        xyz, pixels[known], model.lens, problem.width, problem.height, problem.max_error
    )  # fmt: skip
    if found is None or found[1] < 0.5 * known.sum():
        return None
    return found[0]


def _fill_gaps(poses: dict[int, FloatArray], frame_count: int, notes: list[str]) -> tuple[FloatArray, np.ndarray]:
    """(f, 3, 4) poses and (f,) which are measured; rotations and centres are interpolated, and held at the ends."""
    frames = np.array(sorted(poses))
    known = np.array([poses[int(f)] for f in frames])
    registered = np.zeros(frame_count, dtype=bool)
    registered[frames] = True
    times = np.clip(np.arange(frame_count), frames[0], frames[-1])
    rotations = Slerp(frames, Rotation.from_matrix(known[:, :, :3]))(times).as_matrix()
    centres = -np.einsum("nji,nj->ni", known[:, :, :3], known[:, :, 3])
    centres = np.stack([np.interp(times, frames, centres[:, k]) for k in range(3)], axis=1)
    out = np.concatenate((rotations, -np.einsum("nij,nj->ni", rotations, centres)[:, :, None]), axis=2)
    out[frames] = known
    missing = np.flatnonzero(~registered)
    if len(missing):
        notes.append(
            f"{len(missing)} of {frame_count} frames could not be located ({_ranges(missing)}): too few of their "
            "tracks agree with the rest. Their poses are interpolated."
        )
    return out, registered


def _ranges(numbers: np.ndarray) -> str:
    """'3-5, 9' of 3, 4, 5, 9."""
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    return ", ".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs)
