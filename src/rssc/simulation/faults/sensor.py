"""What is wrong with a clip, and the clip of the sensor behind it."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rssc.model.arrays import FloatArray
from rssc.simulation.clip import Clip
from rssc.simulation.faults.capture import Capture
from rssc.simulation.faults.electronic import ElectronicStabilisation
from rssc.simulation.faults.lens_motion import LensMotion
from rssc.simulation.optics import Optics
from rssc.simulation.render import Renderer


@dataclass(frozen=True)
class Faults:
    """What is wrong with a clip."""

    capture: Capture
    lens: LensMotion | None = None
    stabiliser: ElectronicStabilisation | None = None
    """Frames are then taken evenly."""


class MovingRenderer(Renderer):
    """Renders a world through a lens that moves while lines are read: every line has its own rays."""

    def with_lens_moved(
        self, optics: Optics, lens: LensMotion, times: FloatArray, cam_from_world: FloatArray, seconds: FloatArray
    ) -> NDArray[np.float32]:
        """An image as `render` makes it, with the lens where it is at the (k,) times of the lines."""
        height, width = self.camera.height, self.camera.width
        by_column = self.camera.shutter.axis == "columns"
        of_pixels = np.tile(times, height) if by_column else np.repeat(times, width)
        u, v = np.meshgrid(np.arange(width), np.arange(height))
        pixels = lens.at_rest(np.stack((u.ravel(), v.ravel()), axis=1).astype(float), of_pixels)
        rays = optics.unproject(pixels).reshape(height, width, 3)
        still, ((_, widths),) = self._views, self._views
        scales = lens.scales(times).reshape((1, -1) if by_column else (-1, 1))
        self._views = [(rays, widths / scales)]
        try:
            return self.render(cam_from_world, seconds)
        finally:
            self._views = still


@dataclass(frozen=True)
class Sensor(Clip):
    """A clip whose frames are taken a little earlier or later, through a lens that may move."""

    lens_motion: LensMotion | None = None
    delay: float = 0.0
    """Of all frames, in frame intervals."""

    def _render(self, times: FloatArray) -> NDArray[np.float32]:
        times = times + self.delay
        if self.lens_motion is None or not isinstance(self.renderer, MovingRenderer):
            return super()._render(times)
        poses, seconds = self.motion.cam_from_world(times), times / self.options.frames_per_second
        return self.renderer.with_lens_moved(self.optics, self.lens_motion, times, poses, seconds)


def sensor_of(clip: Clip, lens_motion: LensMotion | None, margin: int) -> Sensor:
    """The clip with so many more pixels at every side, each read when the image's own rhythm says.

    A margin needs a lens of the registry.
    """
    options, camera, lens = clip.options, clip.camera, clip.camera.lens
    grown = camera.line_count + 2 * margin
    options = replace(
        options,
        width=options.width + 2 * margin,
        height=options.height + 2 * margin,
        lens=replace(lens, cx=lens.cx + margin, cy=lens.cy + margin),
        readout_ratio=options.readout_ratio * grown / camera.line_count,
    )
    camera = options.camera()
    renderer = MovingRenderer(camera, clip.world, options.texture, options.colour, 1, options.optics)
    moved = None if lens_motion is None else lens_motion.padded(margin)
    early = clip.camera.shutter.readout_ratio * margin / clip.camera.line_count
    return Sensor(options, camera, clip.motion, clip.world, renderer, moved, -early)
