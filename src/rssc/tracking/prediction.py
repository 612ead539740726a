"""Where an adjusted scene predicts its observations, and how the patch around each is warped.

The patch around a point is modelled as a small plane. A pixel beside the track's reference observation is cast onto
that plane with the pose of its own row, and projected into the other frame with the pose of the row where it lands;
differences give the warp and its bend, rolling shutter and lens included.

The plane faces the reference camera, unless its slope is known: how the logarithm of the inverse distance changes from
pixel to pixel. A slope s changes the warp A of another frame by e s', where e is how far the point moves there when
the logarithm of its inverse distance changes by one. So registered warps determine the slope, and the slope determines
the bend, which registration cannot find by itself. This matters because floors and walls bend alike all over the image:
with planes that face the camera, many tracks drift together by hundredths of a pixel, and the readout with them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rssc.errors import InputError
from rssc.kernels.rolling_shutter import rolling_pixels
from rssc.model.arrays import FloatArray, IntArray
from rssc.model.poses import camera_centres, rotate_to_world
from rssc.model.scene import Scene
from rssc.runtime.constants import Constants
from rssc.runtime.threads import even_chunks, run_chunks


@dataclass(frozen=True)
class PredictionConstants(Constants):
    """Tuned numbers of the prediction, all chosen by hand."""

    offset_px: float = 6.0
    """Distance from the reference pixel at which differences are taken: about half a patch, where warp and bend
    matter."""
    row_iterations: int = 3
    """Projections until the row of a point and its time agree; each adds about two digits at usual speeds."""
    row_poses: int = 512
    """Poses of a frame that are looked up, linearly in between: off by millionths of a pixel for a hand-held camera."""
    distance_step: float = 0.01
    """Relative step in distance of the numerical derivative: small against depth, large against rounding."""
    usual_slope: float = 1.5
    """Tangent of the angle that surfaces are usually turned away from the camera: the prior of a slope."""
    warp_noise: float = 0.15
    """Standard deviation of a registered warp, per pixel of the standard deviation of its position."""


PREDICTION = PredictionConstants()
_LEAST_CHUNK = 4096
"""Points that are worth a thread of their own: half a millisecond."""


def predict_observations(
    scene: Scene, references: IntArray, slopes: FloatArray | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Predicted pixels of all observations of a scene, and how the patch around each is warped and bent.

    Args:
        scene: Adjusted, with a trajectory.
        references: (p,) the observation of each point whose patch is the reference.
        slopes: (p, 2) of the surface around each point, per pixel of the reference; 0 where not given.

    Returns:
        (m, 2) pixels, NaN where there is none; (m, 2, 2) derivatives by the reference pixel; (m, 2, 3) coefficients of
        x^2, x y and y^2, with (x, y) the offset from the reference pixel.
    """
    pixels, moved = _patches(scene, references, slopes)
    h = PREDICTION.offset_px
    right, left, below, above = moved(h, 0), moved(-h, 0), moved(0, h), moved(0, -h)
    warps = np.stack([right - left, below - above], axis=2) / (2 * h)
    square_x, square_y = (right + left) / (2 * h * h), (below + above) / (2 * h * h)
    mixed = (moved(h, h) + moved(-h, -h)) / (2 * h * h) - square_x - square_y
    bends = np.stack([square_x, mixed, square_y], axis=2)
    bad = ~np.isfinite(np.concatenate([pixels, warps.reshape(-1, 4), bends.reshape(-1, 6)], axis=1)).all(axis=1)
    pixels[bad], warps[bad], bends[bad] = np.nan, np.eye(2), 0.0
    return pixels, warps, bends


def predict_streaks(scene: Scene, exposure: float) -> FloatArray:
    """(m, 4) how points move in the image while the rows that show them are exposed.

    The motion is s (du, dv) + s^2 (cu, cv) for s from -1/2 to 1/2. A blurred patch appears at the mean of it,
    (cu, cv) / 12 from its middle. A point that moves along with the rows is seen by later ones and leaves a longer
    streak: the row and its time are solved for at both ends of the exposure.

    Args:
        scene: Adjusted, with a trajectory.
        exposure: Exposure time as a fraction of the frame interval; the middle of it is the row's own time.

    Returns:
        du, dv, cu, cv in pixels; zeros where an end is not seen.
    """
    tracks = scene.tracks
    if exposure == 0:
        return np.zeros((len(tracks), 4))
    points = scene.points[tracks.points]
    first, middle, last = (
        _Projection(scene, delay)(points, tracks.frames, tracks.pixels)
        for delay in (-0.5 * exposure, 0.0, 0.5 * exposure)
    )
    streaks = np.concatenate([last - first, 2.0 * (first + last - 2.0 * middle)], axis=1)
    return np.where(np.isfinite(streaks).all(axis=1, keepdims=True), streaks, 0.0)


def surface_slopes(
    scene: Scene, references: IntArray, facing_warps: FloatArray, rows: IntArray, warps: FloatArray
) -> FloatArray:
    """(p, 2) slopes of the surface around each point that explain how patches were warped.

    Args:
        scene: Adjusted, with a trajectory.
        references: (p,) as in `predict_observations`.
        facing_warps: (m, 2, 2) predicted warps for planes that face the camera.
        rows: (k,) observations whose warp was registered.
        warps: (k, 2, 2) registered.
    """
    tracks, project = scene.tracks, _Projection(scene)
    _, centres, _ = _reference_rays(scene, project, references)
    nearer = scene.points - PREDICTION.distance_step * (scene.points - centres)
    points, frames = tracks.points[rows], tracks.frames[rows]
    pixels = project(scene.points[points], frames, tracks.pixels[rows])
    shifts = (project(nearer[points], frames, pixels) - pixels) / -np.log1p(-PREDICTION.distance_step)
    precision = 1.0 / (PREDICTION.warp_noise * tracks.sigmas[rows]) ** 2
    known = np.isfinite(shifts).all(axis=1) & np.isfinite(warps).all(axis=(1, 2))
    shifts, precision = np.where(known[:, None], shifts, 0.0), np.where(known, precision, 0.0)
    pulls = np.einsum("ki,kij->kj", shifts, np.nan_to_num(warps) - facing_warps[rows]) * precision[:, None]
    count = len(references)
    total = np.stack([np.bincount(points, pulls[:, j], count) for j in range(2)], axis=1)
    weight = np.bincount(points, precision * (shifts**2).sum(axis=1), count)
    prior = (np.sqrt(scene.camera.lens.fx * scene.camera.lens.fy) / PREDICTION.usual_slope) ** 2
    return total / (weight + prior)[:, None]


def _patches(
    scene: Scene, references: IntArray, slopes: FloatArray | None
) -> tuple[FloatArray, Callable[[float, float], FloatArray]]:
    """(m, 2) predicted pixels, and a function: how far from them the pixel (x, y) beside the reference lands."""
    tracks, frames, project = scene.tracks, scene.tracks.frames[references], _Projection(scene)
    pixels = project(scene.points[tracks.points], tracks.frames, tracks.pixels)
    at, _, normals = _reference_rays(scene, project, references)
    if slopes is not None:
        normals = normals + _tilt(scene, at, frames, slopes)

    def moved(x: float, y: float) -> FloatArray:
        centres, rays = _rays(scene, at + np.array([x, y]), frames)
        distance = ((scene.points - centres) * normals).sum(axis=1) / (rays * normals).sum(axis=1)
        beside = centres + distance[:, None] * rays
        return project(beside[tracks.points], tracks.frames, pixels) - pixels

    return pixels, moved


def _tilt(scene: Scene, at: FloatArray, frames: IntArray, slopes: FloatArray) -> FloatArray:
    """(p, 3) what a slope adds to the normal of a plane that faces the camera."""
    columns = [
        _rays(scene, at + np.array(step), frames)[1] - _rays(scene, at - np.array(step), frames)[1]
        for step in ((0.5, 0.0), (0.0, 0.5))
    ]
    tangents = np.stack(columns, axis=2)
    metric: FloatArray = np.einsum("pki,pkj->pij", tangents, tangents)
    sane = np.isfinite(metric).all(axis=(1, 2)) & (np.abs(np.linalg.det(np.nan_to_num(metric))) > 0)
    metric[~sane], tangents[~sane] = np.eye(2), 0.0
    coordinates = np.linalg.solve(metric, slopes[:, :, None])[:, :, 0]
    return np.einsum("pki,pi->pk", tangents, coordinates)


def _reference_rays(
    scene: Scene, project: "_Projection", references: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(p, 2) predicted pixels of the reference observations, (p, 3) their camera centres and (p, 3) their rays."""
    frames = scene.tracks.frames[references]
    at = project(scene.points, frames, scene.tracks.pixels[references])
    return at, *_rays(scene, at, frames)


class _Projection:
    """Rolling-shutter projection of a scene, which takes its poses from a table of those of its rows."""

    def __init__(self, scene: Scene, delay: float = 0.0) -> None:
        """With `delay`, every row is read so much later, in frame intervals."""
        if scene.trajectory is None:
            raise InputError("this scene has no trajectory; adjust it with te or dp first.")
        camera = scene.camera
        delays = delay + camera.shutter.readout_ratio * np.linspace(0.0, 1.0, PREDICTION.row_poses)
        times = scene.frame_times[:, None] + delays
        self._table = scene.trajectory.cam_from_world(times.ravel()).reshape(*times.shape, 3, 4)
        self._camera = (
            camera.lens.kernel_arguments, camera.sensor_arguments, float(camera.first_line), float(camera.line_count),
            camera.shutter.axis == "columns",
        )  # fmt: skip

    def __call__(self, points: FloatArray, frames: IntArray, near: FloatArray) -> FloatArray:
        """(n, 2) pixels of (n, 3) points in (n,) frames; `near` are pixels to take the first row times from."""
        out = np.empty((len(points), 2))
        # Copies, because numba compiles anew for arrays that may not be written to.
        given = np.array(points), np.array(frames), np.array(near)

        def task(_: int, begin: int, end: int) -> None:
            rolling_pixels(*given, self._table, *self._camera, PREDICTION.row_iterations, begin, end, out)

        run_chunks(task, even_chunks(len(points), _LEAST_CHUNK))
        return out


def _rays(scene: Scene, pixels: FloatArray, frames: IntArray) -> tuple[FloatArray, FloatArray]:
    """(n, 3) camera centres and (n, 3) unit rays in the world."""
    poses = scene.row_poses(np.nan_to_num(pixels), frames)
    centres = camera_centres(poses)
    return centres, rotate_to_world(poses, scene.camera.lens.unproject(pixels))
