"""Views of a camera that turns smoothly, zoomed in until nothing is missing at their borders.

The camera stays where it was; how it turns is smoothed (`smooth_rotations.py`), and each rectified frame is seen from
the smooth rotation. What a frame did not see then comes into view at the border. One zoom, the same for all frames,
cuts it off: either as much as the smoothing takes, or a given one, under which smoothing gives way. Its width then
shrinks around each frame that misses something, and less so further away, until all are covered: near such a frame the
camera follows the hand more closely, and nothing jumps.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rssc.errors import InputError
from rssc.model.arrays import FloatArray, IntArray
from rssc.model.camera import Camera
from rssc.model.lens import Lens
from rssc.outputs.options import RectifyOptions
from rssc.outputs.rectify import RECTIFY, Rectifier, View
from rssc.outputs.smooth_rotations import smooth_rotations
from rssc.runtime.constants import Constants
from rssc.runtime.progress import Report, unreported
from rssc.runtime.threads import run_chunks


@dataclass(frozen=True)
class StabiliseConstants(Constants):
    """Chosen by hand; how the smoothing gives way, by the shake that is left on rendered clips."""

    largest_zoom: float = 5.0
    """More than this, and there is hardly a picture left."""
    zoom_tolerance: float = 1e-3
    """Of the zoom that a frame takes; half a pixel of a wide picture's border."""
    yielding: float = 0.9
    """By how much the width of the smoothing shrinks at a time."""
    slope: float = 0.1
    """Seconds of width per second of distance: how fast smoothing recovers from a frame that missed something."""
    least_sigma_frames: float = 0.3
    """Below this a width means no smoothing: the neighbours of a frame have hardly any weight."""


STABILISE = StabiliseConstants()


@dataclass(frozen=True)
class Stabilised:
    """Rectifiers whose views turn smoothly."""

    rectifiers: tuple[Rectifier, ...]
    zoom: float
    """How far all of them are zoomed in."""
    views: tuple[View, ...]
    """Of each of them."""
    sigmas: tuple[FloatArray, ...]
    """(f,) width of the Gaussian at each frame of each rectifier, in seconds."""


class _Path:
    """How the camera of one rectifier turns, and how smoothly it is to turn."""

    def __init__(self, rectifier: Rectifier, camera: Camera, interval_s: float, sigma: float) -> None:
        self.rectifier, self._camera = rectifier, camera
        self._rotations = rectifier.reference_rotations
        self._times = interval_s * rectifier.reference_times
        self.sigmas = np.full(len(self._times), sigma)
        self.turns: FloatArray = np.repeat(np.eye(3)[None], len(self._times), axis=0)
        """(f, 3, 3) from the camera to the view."""
        self._border = _border(camera)

    @property
    def frames(self) -> IntArray:
        return np.arange(len(self._times), dtype=np.int64)

    def smooth(self, frames: IntArray) -> None:
        smooth = smooth_rotations(self._rotations, self._times, self.sigmas, frames)
        self.turns[frames] = smooth @ self._rotations[frames].transpose(0, 2, 1)

    def give_way(self, frames: IntArray) -> IntArray:
        """Smooths less around some frames; returns all whose smoothing changed."""
        sigmas = self.sigmas.copy()
        sigmas[frames] *= STABILISE.yielding
        steps = STABILISE.slope * np.diff(self._times)
        for i in range(1, len(sigmas)):
            sigmas[i] = min(sigmas[i], sigmas[i - 1] + steps[i - 1])
        for i in range(len(sigmas) - 2, -1, -1):
            sigmas[i] = min(sigmas[i], sigmas[i + 1] + steps[i])
        sigmas[sigmas < STABILISE.least_sigma_frames * np.median(np.diff(self._times))] = 0.0
        changed = np.flatnonzero(sigmas < self.sigmas)
        self.sigmas = sigmas
        self.smooth(changed)
        return changed

    def covered(self, frame: int, zoom: float, turn: FloatArray | None = None) -> bool:
        """Whether the frame shows all of the view's border."""
        camera = self._camera
        rays = zoomed(self.rectifier.lens, camera, zoom).unproject(self._border)
        source = self.rectifier.source_pixels(rays @ (self.turns[frame] if turn is None else turn), frame)
        area = camera.active
        low = np.array((0, 0) if area is None else (area.left, area.top))
        size = (camera.width, camera.height) if area is None else (area.width, area.height)
        return bool(np.all((source >= low) & (source <= low + np.array(size) - 1)))

    def zoom_of(self, frame: int, least: float, turn: FloatArray | None = None) -> float:
        """The zoom from which on a frame is covered, if it is more than `least`; infinite where none is enough."""
        if self.covered(frame, least, turn):
            return least
        low, high = least, STABILISE.largest_zoom
        if not self.covered(frame, high, turn):
            return np.inf
        while high - low > STABILISE.zoom_tolerance:
            middle = (low + high) / 2
            low, high = (low, middle) if self.covered(frame, middle, turn) else (middle, high)
        return high


def stabilised(
    rectifiers: Sequence[Rectifier],
    camera: Camera,
    interval_s: float,
    options: RectifyOptions,
    report: Report = unreported,
) -> Stabilised:
    """The same frames seen by a camera that turns smoothly.

    Args:
        rectifiers: One for each stretch of a source; each has a world of its own and is smoothed by itself.
        camera: Of all of them.
        interval_s: Between frames.
        options: How smoothly, and the crop.
        report: Called with the share that is done.

    Raises:
        InputError: The crop is too small even without smoothing, or the smoothing would leave hardly any picture.
    """
    paths = [_Path(rectifier, camera, interval_s, options.stabilise) for rectifier in rectifiers]
    for path in paths:
        path.smooth(path.frames)
    zoom = 1.0
    if options.crop_share is None:
        zoom = _zoom_of_all(paths, report)
    elif options.crop_share > 0:
        zoom = 1 / (1 - options.crop_share)
        _fit(paths, zoom, options, report)
    views = [View(zoomed(path.rectifier.lens, camera, zoom), path.turns) for path in paths]
    turned = (path.rectifier.with_view(view) for path, view in zip(paths, views, strict=True))
    return Stabilised(tuple(turned), zoom, tuple(views), tuple(path.sigmas for path in paths))


def zoomed(lens: Lens, camera: Camera, zoom: float) -> Lens:
    """The lens with which the middle of the picture fills all of it."""
    x, y = (camera.width - 1) / 2, (camera.height - 1) / 2
    return replace(lens, fx=zoom * lens.fx, fy=zoom * lens.fy, cx=x + zoom * (lens.cx - x), cy=y + zoom * (lens.cy - y))


def _zoom_of_all(paths: Sequence[_Path], report: Report) -> float:
    zoom, done, count = 1.0, 0, sum(len(path.frames) for path in paths)
    for path in paths:
        for frame in path.frames.tolist():
            zoom = path.zoom_of(frame, zoom)
            if np.isinf(zoom):
                raise InputError(
                    "smoothed this much, the camera would look where some frames saw nothing, and no zoom up to "
                    f"{STABILISE.largest_zoom:g} helps; give a crop in percent, under which smoothing gives way, or "
                    "smooth less."
                )
            done += 1
            report(done / count)
    return zoom


def _fit(paths: Sequence[_Path], zoom: float, options: RectifyOptions, report: Report) -> None:
    """Lets the smoothing give way until all frames are covered."""
    still = np.eye(3)
    needed = 1.0
    for path in paths:
        for frame in path.frames.tolist():
            needed = max(needed, path.zoom_of(frame, min(needed, STABILISE.largest_zoom), still))
    if needed > zoom:
        raise InputError(
            f"crop is {options.crop!r}, but taking out the rolling shutter alone cuts off "
            f"{np.ceil(1000 * (1 - 1 / needed)) / 10:g} percent; give more than that, or auto."
        )
    for number, path in enumerate(paths):
        begun = 0
        checked = path.frames
        while len(checked):
            missing = _uncovered(path, checked, zoom)
            begun = begun or len(missing)
            report((number + 1 - (len(missing) / begun if begun else 0.0)) / len(paths))
            checked = path.give_way(missing) if len(missing) else missing


def _uncovered(path: _Path, frames: IntArray, zoom: float) -> IntArray:
    covered = np.zeros(len(frames), bool)

    def check(_: int, begin: int, end: int) -> None:
        for i in range(begin, end):
            covered[i] = path.covered(int(frames[i]), zoom)

    run_chunks(check, [(i, min(i + 16, len(frames))) for i in range(0, len(frames), 16)])
    return frames[~covered]


def _border(camera: Camera) -> FloatArray:
    """(n, 2) pixels around the picture."""
    x, y = (np.unique(np.append(np.arange(0, n, RECTIFY.spacing_px), n - 1)) for n in (camera.width, camera.height))
    sides = [np.stack(np.broadcast_arrays(x, end), axis=1) for end in (0, camera.height - 1)]
    sides += [np.stack(np.broadcast_arrays(end, y), axis=1) for end in (0, camera.width - 1)]
    return np.concatenate(sides).astype(np.float64)
