"""Frames of the footage in the page: one with its tracks, and one before and after rectification."""

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from rssc.model.arrays import FloatArray, IntArray
from rssc.model.camera import Camera
from rssc.model.scene import Scene
from rssc.outputs.report.constants import REPORT
from rssc.outputs.report.residuals import Residuals

FrameReader = Callable[[str, IntArray], Iterator[tuple[int, NDArray[np.uint8]]]]
"""Yields (number, RGB image) for the wanted frame numbers of a source."""


@dataclass(frozen=True)
class TrackPicture:
    """A frame with the trails of its tracked points, as SVG paths in pixels of the frame."""

    name: str
    image: str
    """Data URI."""
    trails: str
    good: str
    """Dots at the inliers."""
    bad: str
    """Dots at the outliers."""
    count: int
    bad_count: int


def data_uri(image: NDArray[np.uint8]) -> str:
    """An RGB or grey image as JPEG, made smaller where it is wider than the page."""
    height, width = image.shape[:2]
    widest = REPORT.widest_image_px
    if width > widest:
        size = (widest, round(height * widest / width))
        image = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)
    bgr = image[..., ::-1] if image.ndim == 3 else image
    _, jpeg = cv2.imencode(".jpg", np.ascontiguousarray(bgr), [cv2.IMWRITE_JPEG_QUALITY, REPORT.jpeg_quality])
    return "data:image/jpeg;base64," + base64.b64encode(jpeg.tobytes()).decode()


def busiest_frame(scene: Scene) -> int:
    """The frame with most observations, among those that have a trail behind them."""
    counts = np.bincount(scene.tracks.frames, minlength=scene.tracks.frame_count)
    begin = min(REPORT.trail_frames, scene.tracks.frame_count - 1)
    return begin + int(np.argmax(counts[begin:]))


def fastest_frame(residuals: Residuals, frame_count: int) -> tuple[int, float]:
    """The frame of the first stretch whose image moves fastest, and its median motion in pixels per frame interval."""
    first = residuals.stretches == 0
    frames, speed = residuals.frames[first], np.linalg.norm(residuals.motions[first], axis=1)
    enough = np.bincount(frames, minlength=frame_count)
    medians = np.array(
        [np.median(speed[frames == f]) if enough[f] > enough.max() / 2 else 0.0 for f in range(frame_count)]
    )
    return int(np.argmax(medians)), float(medians.max())


def track_picture(image: NDArray[np.uint8], scene: Scene, frame: int, name: str, residuals: Residuals) -> TrackPicture:
    """The tracks of the last frames up to `frame`, a frame of the first stretch."""
    tracks = scene.tracks
    here = tracks.frames == frame
    present = np.zeros(tracks.point_count, dtype=bool)
    present[tracks.points[here]] = True
    recent = present[tracks.points] & (tracks.frames <= frame) & (tracks.frames > frame - REPORT.trail_frames)
    pixels, owners = tracks.pixels[recent], tracks.points[recent]
    starts = np.concatenate([[True], np.diff(owners) != 0]) if len(owners) else np.zeros(0, bool)
    trails = "".join(f"{'M' if s else 'L'}{u:.1f} {v:.1f}" for s, (u, v) in zip(starts, pixels, strict=True))
    shown = (residuals.stretches == 0) & (residuals.frames == frame)
    bad = residuals.outliers[shown]
    at = residuals.pixels[shown]
    return TrackPicture(
        name, data_uri(image), trails, _dots(at[~bad]), _dots(at[bad]), int(np.sum(shown)), int(np.sum(bad))
    )


def _dots(pixels: FloatArray) -> str:
    # A line of no length with round ends is a dot, and a path of many is far shorter than as many circles.
    return "".join(f"M{u:.1f} {v:.1f}h0" for u, v in pixels)


def marker_width(camera: Camera) -> float:
    """Width of a dot in pixels of the frame, the same on the page for any size of frame."""
    return camera.width / 150
