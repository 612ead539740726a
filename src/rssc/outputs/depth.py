"""Inverse distance of what a frame shows at every pixel: a smooth field through the points of a stretch.

The field rho is the inverse distance at the nodes of a coarse grid over the image. It minimises

    sum_i w_i (rho(x_i) - rho_i)^2 + S sum_(neighbours j, k) (rho_j - rho_k)^2 + S / L^2 sum_j rho_j^2

over the points i around the frame, rho(x_i) interpolated bilinearly. The last term lets the field fade to zero, that
is to infinity, where no point is within about L nodes: there only rotation is corrected. The weights w_i measure how
well a point's inverse distance is known, from its parallax and its residuals, so that wrong tracks have little weight.
Near points weigh more: a smooth field is wrong on both sides of an occluding edge, and that edge, which viewers notice,
moves with the foreground. The normal matrix is banded, with the height of the grid as its bandwidth.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solveh_banded

from rssc.model.arrays import FloatArray
from rssc.model.lens import Lens
from rssc.model.poses import camera_centres, transform_points
from rssc.model.scene import Scene
from rssc.runtime.blas import with_serial_blas
from rssc.runtime.constants import Constants


@dataclass(frozen=True)
class DepthConstants(Constants):
    """Chosen by hand on rendered clips, by the gain and the edges that `python -m benchmarks rectify` measures."""

    nodes: int = 60
    """Of the grid along the longer side of the image: detail against time, which grows with the fourth power."""
    smoothness: float = 0.2
    """S: smooth where points are few against close to every point."""
    fade_nodes: float = 30.0
    """L: nodes, half an image, over which the field fades to zero beyond the points."""
    window_frames: int = 4
    """A point has weight from so many frames before it is first seen to so many after it is last seen, decreasing."""
    least_noise_px: float = 0.1
    """Residuals are taken to be at least this large: a few small ones may be luck."""
    least_nearness: float = 0.5
    """Least weight of a far point: outlines belong to the foreground, but the background counts as well."""
    most_nearness: float = 4.0
    """Largest weight of a near point."""
    batch: int = 200_000
    """Observations whose poses are looked at together, for memory."""
    known_share: float = 0.05
    """A point has half its weight where its inverse distance has this standard deviation, as a share of the median."""


DEPTH = DepthConstants()


class DepthField:
    """Inverse distances over the images of a stretch, as seen through a lens from any pose."""

    def __init__(self, scene: Scene, lens: Lens) -> None:
        tracks, camera = scene.tracks, scene.camera
        self._scene, self.lens = scene, lens
        self.spacing = max(camera.width, camera.height) / DEPTH.nodes
        """Pixels from node to node; the first is at pixel (0, 0)."""
        self._shape = tuple(int(np.ceil(n / self.spacing)) + 1 for n in (camera.width, camera.height))
        self._first = np.full(len(scene.points), tracks.frame_count)
        self._last = np.full(len(scene.points), -tracks.frame_count)
        np.minimum.at(self._first, tracks.points, tracks.frames)
        np.maximum.at(self._last, tracks.points, tracks.frames)
        self._certainty = _certainty(scene)
        self._smoothness = _smoothness_band(*self._shape)

    @with_serial_blas
    def at(self, frame: int, cam_from_world: FloatArray) -> FloatArray:
        """(rows, columns) inverse distances at the nodes.

        Args:
            frame: Index of the frame in the scene.
            cam_from_world: (3, 4) the pose from which the distances count.
        """
        columns, rows = self._shape
        away = np.maximum(0, np.maximum(self._first - frame, frame - self._last))
        weights = self._certainty * np.maximum(0.0, 1 - away / DEPTH.window_frames)
        near = np.flatnonzero(weights)
        local = self._scene.points[near] @ cam_from_world[:, :3].T + cam_from_world[:, 3]
        at = self.lens.project(local) / self.spacing
        seen = np.all((at >= 0) & (at < (columns - 1, rows - 1)), axis=1)
        at, inverse = at[seen], 1 / np.linalg.norm(local[seen], axis=1)
        nearness = inverse / np.median(inverse) if seen.any() else inverse
        weights = weights[near[seen]] * np.clip(nearness**2, DEPTH.least_nearness, DEPTH.most_nearness)
        corner = at.astype(np.int64)
        (a, b), node = (at - corner).T, corner[:, 0] * rows + corner[:, 1]
        # The four nodes around a point, in the order of their numbers: down the columns first.
        nodes = node[:, None] + np.array([0, 1, rows, rows + 1])
        shares = np.stack([(1 - a) * (1 - b), (1 - a) * b, a * (1 - b), a * b], axis=1)
        count = columns * rows
        i, j = np.tril_indices(4)
        places = (nodes[:, i] - nodes[:, j]) * count + nodes[:, j]
        values = weights[:, None] * shares[:, i] * shares[:, j]
        band = self._smoothness + np.bincount(places.ravel(), values.ravel(), (rows + 2) * count).reshape(-1, count)
        right = np.bincount(nodes.ravel(), ((weights * inverse)[:, None] * shares).ravel(), count)
        return solveh_banded(band, right, lower=True, check_finite=False).reshape(columns, rows).T


def _smoothness_band(columns: int, rows: int) -> FloatArray:
    """(rows + 2, columns * rows) lower band of the smoothness terms; node (x, y) has the number x * rows + y."""
    band = np.zeros((rows + 2, columns, rows))
    smoothness = DEPTH.smoothness
    band[0] = smoothness / DEPTH.fade_nodes**2
    band[0, :, 1:] += smoothness
    band[0, :, :-1] += smoothness
    band[0, 1:] += smoothness
    band[0, :-1] += smoothness
    band[1, :, :-1] -= smoothness
    band[rows, :-1] -= smoothness
    return band.reshape(rows + 2, -1)


def _certainty(scene: Scene) -> FloatArray:
    """(p,) weight of each point from 0 to 1.

    The image of a point moves by rho times the camera's displacement across its ray, so n residuals of size e (in rad)
    leave a variance of rho of e^2 over the sum of the squared displacements.
    """
    tracks, points = scene.tracks, scene.points
    centres, errors = np.empty((len(tracks), 3)), np.empty(len(tracks))
    for begin in range(0, len(tracks), DEPTH.batch):
        part = slice(begin, begin + DEPTH.batch)
        poses = scene.row_poses(tracks.pixels[part], tracks.frames[part])
        centres[part] = camera_centres(poses)
        local = transform_points(poses, points[tracks.points[part]])
        errors[part] = np.linalg.norm(scene.camera.lens.project(local) - tracks.pixels[part], axis=1)

    def mean(values: FloatArray) -> FloatArray:
        return np.bincount(tracks.points, values, len(points)) / np.maximum(1, tracks.lengths)

    middle = np.stack([mean(column) for column in centres.T], axis=1)
    distances = np.linalg.norm(points - middle, axis=1)
    rays = (points - middle) / distances[:, None]
    steps = centres - middle[tracks.points]
    across = (steps**2).sum(axis=1) - (steps * rays[tracks.points]).sum(axis=1) ** 2
    noise = np.maximum(DEPTH.least_noise_px, mean(errors)) / scene.camera.lens.fx
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = noise**2 / (mean(across) * tracks.lengths)
        return np.nan_to_num(1 / (1 + variance / (DEPTH.known_share * np.nanmedian(1 / distances)) ** 2))
