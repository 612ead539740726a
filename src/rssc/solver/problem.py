"""From a scene and a method to the arrays that the kernels take."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rssc.errors import InputError
from rssc.kernels import lenses as lens_kernels
from rssc.kernels import spline as spline_kernels
from rssc.kernels.bundle.residuals import HERMITE, QUADRATIC, RectifiedTable, SplineTable, State
from rssc.model.arrays import FloatArray, IntArray
from rssc.model.scene import Neighbours, Scene
from rssc.model.tracks import Tracks
from rssc.model.trajectory import Trajectory
from rssc.runtime.threads import balanced_chunks, thread_count
from rssc.solver.constants import SOLVER
from rssc.solver.layout import Layouts
from rssc.solver.methods import METHODS, Method
from rssc.solver.options import AdjustOptions
from rssc.solver.residuals import compute_residuals, predict_rows
from rssc.solver.spline_fit import fit_trajectory


@dataclass(frozen=True)
class Problem:
    """Residual tables, the start, and which parameters are estimated."""

    start: State
    spline: SplineTable
    rectified: RectifiedTable
    parameter_names: tuple[str, ...]
    """(g,) names of the global parameters: those of the lens, readout_ratio last."""
    free_globals: NDArray[np.bool_]
    """(g,) mask of the estimated ones."""
    free_poses: bool
    free_translations: bool
    free_points: bool
    prior_matrix: FloatArray
    """(k, g) whitened rows, with `prior_values` (k,) on the right."""
    prior_values: FloatArray
    layouts: Layouts

    def residuals(self, state: State) -> tuple[FloatArray, FloatArray]:
        """(m, 2) spline residuals and (k, 2) rectified residuals in pixels."""
        return compute_residuals(state, self.spline, self.rectified, self.layouts)

    @cached_property
    def residuals_per_point(self) -> IntArray:
        """(p,) rows of both tables."""
        return np.diff(self.spline.offsets) + np.diff(self.rectified.offsets)

    @cached_property
    def point_chunks(self) -> list[tuple[int, int]]:
        """Ranges of points, for threads that substitute back."""
        return balanced_chunks(np.concatenate([[0], np.cumsum(self.residuals_per_point)]), thread_count())

    @property
    def estimated_names(self) -> tuple[str, ...]:
        """Names of the estimated global parameters."""
        return tuple(name for name, free in zip(self.parameter_names, self.free_globals, strict=True) if free)

    @cached_property
    def free_reduced(self) -> NDArray[np.bool_]:
        """(6 n + g,) mask of what is estimated of poses and globals."""
        pose = np.repeat([self.free_poses, self.free_poses and self.free_translations], 3)
        return np.concatenate([np.tile(pose, len(self.start.poses)), self.free_globals])

    @property
    def residual_count(self) -> int:
        return 2 * (len(self.spline.weights) + len(self.rectified.weights)) + len(self.prior_values)

    @property
    def estimated_count(self) -> int:
        """Estimated parameters, less those of the gauge: seven, or three where the camera only turns."""
        poses = (6 if self.free_translations else 3) * len(self.start.poses) if self.free_poses else 0
        points = (3 if self.free_translations else 2) * len(self.start.points) if self.free_points else 0
        gauge = (7 if self.free_translations else 3) if self.free_poses and self.free_points else 0
        return int(self.free_globals.sum()) + poses + points - gauge

    @property
    def least_damping(self) -> float:
        """Of the points: their distance is not observed by a camera that only turns."""
        return 0.0 if self.free_translations else SOLVER.turning_damping


def with_spline(state: State, poses: FloatArray) -> State:
    """The same state with other poses, and with the increments that belong to them."""
    if state.spacing > 0:
        w, transports = spline_kernels.increments(poses)
        return state._replace(poses=poses, increments=w, transports=transports)
    return state._replace(poses=poses)


def with_parameters(state: State, parameters: FloatArray) -> State:
    """The same state with other globals, and with the limit of the lens that belongs to them."""
    limit = lens_kernels.field_limit(state.lens_model, parameters)
    return state._replace(parameters=parameters, lens_limit=limit)


def build_problem(scene: Scene, options: AdjustOptions) -> Problem:
    """Checks the scene against the method and lays out its residuals."""
    method = METHODS[options.method]
    _check(scene, method, options)
    lens = scene.camera.lens
    model, lens_parameters, limit = lens.kernel_arguments
    parameters = np.append(lens_parameters, scene.camera.shutter.readout_ratio)
    names = (*lens.parameter_names, "readout_ratio")
    if method.free_poses:
        poses, start, spacing = np.array(scene.cam_from_world), 0.0, 0.0
    else:
        trajectory = start_trajectory(scene, options.knot_spacing)
        poses, start, spacing = np.array(trajectory.control_poses), trajectory.start, trajectory.knot_spacing
    empty = State(
        model, limit, parameters, poses, np.zeros((len(poses), 6)), np.zeros((len(poses), 6, 3)),
        float(start), float(spacing), np.array(scene.points),
    )  # fmt: skip
    prior_matrix = np.zeros((len(options.priors), len(names)))
    for row, prior in zip(prior_matrix, options.priors, strict=True):
        for name, coefficient in prior.coefficients.items():
            if name not in names:
                raise InputError(f"prior on {name!r}; a {lens.model} lens has {', '.join(names)}.")
            row[names.index(name)] = options.prior_weight * coefficient / prior.sigma
    state = with_spline(empty, poses)
    spline, rectified = _spline_table(scene, method), _rectified_table(scene, method, options)
    layouts = Layouts(spline, rectified, _seen(scene.tracks))
    if options.rows == "predicted":
        spline = predict_rows(state, spline, rectified, layouts, scene.camera)
        layouts = layouts.retimed(spline)
    return Problem(
        start=state,
        spline=spline,
        rectified=rectified,
        layouts=layouts,
        parameter_names=names,
        free_globals=np.array([name not in options.fixed for name in names]),
        free_poses="poses" not in options.fixed,
        free_translations="translations" not in options.fixed,
        free_points="points" not in options.fixed,
        prior_matrix=prior_matrix,
        prior_values=np.array([options.prior_weight * prior.value / prior.sigma for prior in options.priors]),
    )


def readout_interval(frame_times: FloatArray, readout_ratio: float) -> tuple[float, float]:
    """First and last time at which a row of any frame may be read."""
    # A negative readout runs back into the interval before the frame.
    start = float(frame_times[0]) - (1.0 if readout_ratio < 0 else 0.0)
    return start, start + float(frame_times[-1] - frame_times[0]) + 1.0


def start_trajectory(scene: Scene, knot_spacing: float) -> Trajectory:
    """A spline over the whole readout of all frames, through the scene's trajectory or poses."""
    start, end = readout_interval(scene.frame_times, scene.camera.shutter.readout_ratio)
    given = scene.trajectory
    if given is None:
        return fit_trajectory(scene.frame_times, scene.cam_from_world, start, end, knot_spacing)
    if given.knot_spacing == knot_spacing and given.start <= start and given.end >= end - 1e-9:
        return given
    # Four samples a knot of the finer spline pin the new one down to the old one's shape.
    step = min(given.knot_spacing, knot_spacing) / 4
    times = np.arange(max(start, given.start), min(end, given.end) + 1e-9, step)
    return fit_trajectory(times, given.cam_from_world(times), start, end, knot_spacing)


def with_trajectory(scene: Scene, knot_spacing: float = 1.0) -> Scene:
    """The scene itself, or where the method estimated no trajectory (ce), with a smooth path through its poses."""
    if scene.trajectory is not None:
        return scene
    return replace(scene, trajectory=start_trajectory(scene, knot_spacing))


def _check(scene: Scene, method: Method, options: AdjustOptions) -> None:
    known = {*scene.camera.lens.parameter_names, "readout_ratio", "poses", "points", "translations"}
    unknown = [name for name in options.fixed if name not in known]
    if unknown:
        raise InputError(f"cannot fix {unknown[0]!r}; expected one of {', '.join(sorted(known))}.")
    needed = max(4, len(method.node_offsets))
    if scene.tracks.frame_count < needed:
        raise InputError(f"{options.method} needs at least {needed} frames; the scene has {scene.tracks.frame_count}.")
    if "points" not in options.fixed:
        lonely = np.flatnonzero(scene.tracks.lengths < 2)
        if len(lonely):
            raise InputError(
                f"point {lonely[0]} is seen {scene.tracks.lengths[lonely[0]]} time(s), and {len(lonely) - 1} more like "
                f"it; expected at least 2. Drop such points with tracks.select_points(tracks.lengths >= 2)."
            )


def _seen(tracks: Tracks) -> IntArray:
    """(p, 2) first and last frame in which each point is seen."""
    first, last = np.full(tracks.point_count, tracks.frame_count), np.full(tracks.point_count, -1)
    np.minimum.at(first, tracks.points, tracks.frames)
    np.maximum.at(last, tracks.points, tracks.frames)
    return np.column_stack([first, last])


def _spline_table(scene: Scene, method: Method) -> SplineTable:
    tracks = scene.tracks
    if not method.spline_residuals:
        return SplineTable(
            np.zeros(tracks.point_count + 1, np.int64), np.zeros(0), np.zeros(0), np.zeros((0, 2)), np.zeros(0)
        )
    return SplineTable(
        tracks.offsets,
        scene.frame_times[tracks.frames],
        _fractions(scene, tracks.pixels),
        np.array(tracks.pixels),
        1.0 / tracks.sigmas,
    )


def _rectified_table(scene: Scene, method: Method, options: AdjustOptions) -> RectifiedTable:
    point_count = scene.tracks.point_count
    if method.interpolant is None:
        return RectifiedTable(
            np.zeros(point_count + 1, np.int64), np.zeros(0, np.int64), np.zeros(0), 0.0, QUADRATIC, np.zeros((0, 3)),
            np.zeros((0, 3)), np.zeros((0, 3, 2)), np.zeros(0), 1.0,
        )  # fmt: skip
    if scene.neighbours is not None:
        neighbours, sigmas = scene.neighbours, np.ones(len(scene.neighbours))
    else:
        neighbours, sigmas = link_neighbours(scene, method, options)
    if len(neighbours) and neighbours.node_pixels.shape[1] != len(method.node_offsets):
        raise InputError(
            f"{options.method} needs {len(method.node_offsets)} positions of every neighbour; "
            f"got {neighbours.node_pixels.shape[1]}."
        )
    if len(neighbours) == 0:
        raise InputError(
            f"{options.method} needs points that are seen in {len(method.node_offsets)} consecutive frames; "
            f"there are none."
        )
    order = np.argsort(neighbours.points, kind="stable")
    frames, points = neighbours.frames[order], neighbours.points[order]
    pixels = np.ascontiguousarray(neighbours.node_pixels[order])
    return RectifiedTable(
        offsets=np.searchsorted(points, np.arange(point_count + 1)).astype(np.int64),
        poses=frames.astype(np.int64) if method.free_poses else np.full(len(order), -1, np.int64),
        reference_times=scene.frame_times[frames] + options.reference_base,
        reference_share=options.reference_share,
        interpolant=QUADRATIC if method.interpolant == "quadratic" else HERMITE,
        frame_times=np.ascontiguousarray(scene.frame_times[neighbours.node_frames[order]]),
        fractions=_fractions(scene, pixels.reshape(-1, 2)).reshape(pixels.shape[:2]),
        pixels=pixels,
        weights=1.0 / sigmas[order],
        importance=1.0 if method.free_poses else options.importance,
    )


def link_neighbours(scene: Scene, method: Method, options: AdjustOptions) -> tuple[Neighbours, FloatArray]:
    """Rectified observations from tracks whose neighbouring frames are linked, with their standard deviations.

    Hermite interpolation needs the reference time between its two middle nodes: the pair (i - 1, i) where it precedes
    the reading of the row, (i, i + 1) where it follows.
    """
    tracks = scene.tracks
    offsets = np.array(method.node_offsets)
    index = np.arange(len(tracks))[:, None] + offsets
    if method.interpolant == "hermite":
        gamma = scene.camera.shutter.readout_ratio
        read = gamma * _fractions(scene, tracks.pixels)
        follows = options.reference_base + options.reference_share * gamma > read
        index = index + follows[:, None]
    # Linked: consecutive in time, too; across a gap the interpolation would be a guess.
    linked = (np.diff(tracks.points) == 0) & (np.diff(tracks.frames) == 1)
    linked &= np.diff(scene.frame_times[tracks.frames]) < SOLVER.max_link_frames
    inside = np.flatnonzero((index[:, 0] >= 0) & (index[:, -1] < len(tracks)))
    rows = inside[linked[index[inside, :-1]].all(axis=1)]
    index = index[rows]
    return (
        Neighbours(tracks.frames[rows], tracks.points[rows], tracks.frames[index], tracks.pixels[index]),
        tracks.sigmas[rows],
    )


def _fractions(scene: Scene, pixels: FloatArray) -> FloatArray:
    fractions = scene.camera.row_fraction(pixels)
    bad = np.flatnonzero(~np.isfinite(fractions))
    if len(bad):
        raise InputError(
            f"pixel {pixels[bad[0]].tolist()} has no place on the sensor; check the lens that the images were "
            f"undistorted from, or drop that observation."
        )
    return fractions
