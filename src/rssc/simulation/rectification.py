"""Rectified frames of a rendered clip against what a global shutter would have taken.

Edges are the upright edges of the world's boxes: where the rolling shutter sees them, carried to the rectified image by
the inverse of the warp, less the true lens. Their distance from where a global shutter sees them is the skew that
remains.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rssc.model.arrays import FloatArray
from rssc.model.lens import Lens
from rssc.simulation.clip import Clip
from rssc.simulation.world import BOX

_EDGE_POINTS = 60
_MIN_EDGE_POINTS = 15
_INVERSE_STEPS = 10

Image = NDArray[np.integer | np.floating]


class FrameRectifier(Protocol):
    """What is judged: `rssc.outputs.rectify.Rectifier`."""

    @property
    def reference_fraction(self) -> float:
        """The row whose time a rectified frame shows: 0 first, 1 one past the last."""
        ...

    def source_map(self, frame: int, /) -> NDArray[np.float32]:
        """(height, width, 2) pixel of the frame that each rectified pixel shows."""
        ...

    def rectify(self, image: Image, frame: int, /) -> Image:
        """A frame as a global shutter would have taken it."""
        ...


@dataclass(frozen=True)
class Quality:
    """How rectified frames compare with the truth."""

    before_db: float
    """Peak signal-to-noise ratio of the frames as they were filmed, median over frames."""
    after_db: float
    """The same of the rectified frames."""
    edge_before_px: float
    """Distance of edges from their true lines, 95th percentile over edges and frames."""
    edge_px: float
    """The same in the rectified frames."""
    worst_edge_px: float
    bend_px: float
    """Largest distance of a rectified edge from the straight line through it."""

    @property
    def gain_db(self) -> float:
        return self.after_db - self.before_db


def rectification_quality(clip: Clip, rectifier: FrameRectifier, step: int) -> Quality:
    """Compares every `step`-th frame of a clip."""
    before: list[float] = []
    after: list[float] = []
    edges_before: list[tuple[float, float]] = []
    edges: list[tuple[float, float]] = []
    fraction = rectifier.reference_fraction
    for frame in range(0, len(clip), step):
        truth, image = clip.render_global_shutter(frame, fraction), clip.frame(frame)
        source = np.asarray(rectifier.source_map(frame), dtype=np.float64)
        valid = np.all((source >= 0) & (source <= (clip.camera.width - 1, clip.camera.height - 1)), axis=2)
        before.append(_psnr(image, truth, valid))
        after.append(_psnr(rectifier.rectify(image, frame), truth, valid))
        edges_before += edge_errors(clip, frame, fraction, None)
        edges += edge_errors(clip, frame, fraction, source)
    off, bent = np.transpose(edges)
    return Quality(
        before_db=float(np.median(before)),
        after_db=float(np.median(after)),
        edge_before_px=float(np.percentile(edges_before, 95, axis=0)[0]),
        edge_px=float(np.percentile(off, 95)),
        worst_edge_px=float(off.max()),
        bend_px=float(bent.max()),
    )


def edge_errors(
    clip: Clip, frame: int, row_fraction: float, source_map: FloatArray | None
) -> list[tuple[float, float]]:
    """Largest distance of each visible upright edge from its true line and from the straight line through it, in px.

    Args:
        clip: The clip.
        frame: Index of the frame.
        row_fraction: The row whose pose has the true lines.
        source_map: Of the rectified frame; None measures the frame as it was filmed.
    """
    lens, camera = clip.camera.lens, clip.camera
    pinhole = Lens("pinhole", lens.fx, lens.fy, lens.cx, lens.cy)
    pose = clip.motion.cam_from_world([frame + camera.shutter.readout_ratio * row_fraction])[0]
    errors: list[tuple[float, float]] = []
    for points in _upright_edges(clip):
        pixels, visible = clip.observe(points, frame)
        if source_map is not None:
            pixels[visible] = _rectified_pixels(pixels[visible], source_map)
        visible &= np.all((pixels >= 0) & (pixels <= (camera.width - 1, camera.height - 1)), axis=1)
        if visible.sum() < _MIN_EDGE_POINTS:
            continue
        true = pinhole.project(points[visible] @ pose[:, :3].T + pose[:, 3])
        found = pinhole.project(lens.unproject(pixels[visible]))
        errors.append((_off_line(found, true), _off_line(found, found)))
    return errors


def _psnr(image: Image, truth: Image, valid: NDArray[np.bool_]) -> float:
    error = image[valid].astype(float) - truth[valid]
    return float(10 * np.log10(255**2 / np.mean(error**2)))


def _upright_edges(clip: Clip) -> list[FloatArray]:
    """(n, 3) points along every upright edge of the boxes; these are slightly outside, where rays can see them."""
    edges: list[FloatArray] = []
    for kind, x, y, z, half_x, half_y, half_z, c, s, *_ in clip.world.solids:
        if kind != BOX:
            continue
        heights = y + half_y * np.linspace(-0.98, 0.98, _EDGE_POINTS)
        for side, front in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
            across, along = side * half_x * (1 + 1e-6), front * half_z * (1 + 1e-6)
            place = x + c * across + s * along, z - s * across + c * along
            edges.append(np.stack([np.full(_EDGE_POINTS, place[0]), heights, np.full(_EDGE_POINTS, place[1])], axis=1))
    return edges


def _off_line(pixels: FloatArray, line: FloatArray) -> float:
    """Largest distance of (n, 2) pixels from the straight line through others."""
    middle = line.mean(axis=0)
    normal = np.linalg.svd(line - middle, full_matrices=False)[2][1]
    return float(np.abs((pixels - middle) @ normal).max())


def _rectified_pixels(pixels: FloatArray, source_map: FloatArray) -> FloatArray:
    """(n, 2) pixels of the rectified image that show (n, 2) pixels of the frame: the map's inverse."""
    out = pixels.copy()
    height, width = source_map.shape[:2]
    for _ in range(_INVERSE_STEPS):
        at = np.clip(out, 0, (width - 1.001, height - 1.001))
        i, j = at.astype(int).T
        a, b = (at - at.astype(int)).T[:, :, None]
        here = (1 - b) * ((1 - a) * source_map[j, i] + a * source_map[j, i + 1]) + b * (
            (1 - a) * source_map[j + 1, i] + a * source_map[j + 1, i + 1]
        )
        out = at + pixels - here
    return out
