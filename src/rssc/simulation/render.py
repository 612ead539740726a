"""Rolling-shutter images by ray casting: every row (or column) with the camera's pose at its own time.

The rays are cast and shaded by `rssc.kernels.image.ray_casting`.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rssc.kernels.image.ray_casting import BRIGHT, DARK, Surfaces, View, render_rows, smooth_outlines
from rssc.model.arrays import FloatArray
from rssc.model.camera import Camera
from rssc.model.poses import camera_centres
from rssc.runtime.constants import Constants
from rssc.runtime.threads import run_chunks, thread_count
from rssc.simulation.optics import Optics
from rssc.simulation.world import LUMA, World


@dataclass(frozen=True)
class RenderConstants(Constants):
    """How finely images are sampled."""

    lens_blur_px: float = 1.3
    """Width of what a pixel averages over. Chosen by hand: a lens is a little softer than its pixels, so that images
    hardly alias."""
    taps: int = 2
    """Into how many parts that width is divided. More move printed edges less and cost time in proportion."""


RENDER = RenderConstants()


class Renderer:
    """Renders a world through a lens; what depends on neither time nor pose is computed once."""

    def __init__(
        self,
        camera: Camera,
        world: World,
        texture_strength: float = 1.0,
        colour: bool = False,
        rays: int = 1,
        optics: Optics | None = None,
    ):
        """Prepares a view.

        Args:
            camera: Lens, shutter and image size.
            world: What there is to see.
            texture_strength: Contrast of the texture.
            colour: RGB images instead of grey ones.
            rays: Rays along each side of a pixel. More than one for sharp print: texture is interpolated between
                blocks of a part of the footprint's size, which moves edges by a few hundredths of a pixel.
            optics: A lens instead of the camera's.
        """
        self.camera = camera
        self.world = world
        self.texture_strength = texture_strength
        self._channels = 3 if colour else 1
        # Several rays divide the footprint already.
        self._taps = RENDER.taps if rays == 1 else 1
        self._looks = world.looks.copy()
        if not colour:
            for at in (DARK, BRIGHT):
                self._looks[..., at] = world.looks[..., at : at + 3] @ LUMA
        offsets = ((np.arange(rays) + 0.5) / rays - 0.5) * (RENDER.lens_blur_px if rays > 1 else 0.0)
        self._views = [
            _pixel_rays(optics or camera.lens, camera.width, camera.height, (du, dv), rays)
            for du in offsets
            for dv in offsets
        ]

    def render(self, cam_from_world: FloatArray, seconds: FloatArray) -> NDArray[np.float32]:
        """(height, width, channels) float32 image from 0 to 1, not clipped.

        Args:
            cam_from_world: (k, 3, 4) poses, one for each row, or for each column where the shutter reads columns.
            seconds: (k,) when each of them is exposed; the world's movers are there where they are then.
        """
        camera, world = self.camera, self.world
        by_column = camera.shutter.axis == "columns"
        rotations = np.ascontiguousarray(cam_from_world[:, :, :3].transpose(0, 2, 1))
        origins = world.local_origins(camera_centres(cam_from_world), seconds)
        surfaces = Surfaces(world.solids, self._looks, world.texture.texels, self._taps, self.texture_strength)
        total = np.zeros((camera.height, camera.width, self._channels), np.float32)
        image = np.empty_like(total)
        faces = np.empty((camera.height, camera.width), np.int32)
        bounds = np.unique(np.linspace(0, camera.height, 4 * thread_count() + 1).astype(int))
        chunks = [(int(a), int(b)) for a, b in pairwise(bounds)]
        for rays, widths in self._views:
            view = View(rays, widths, rotations, origins, by_column)

            def draw(_: int, begin: int, end: int, view: View = view) -> None:
                render_rows(begin, end, view, surfaces, image, faces)

            def smooth(_: int, begin: int, end: int, view: View = view) -> None:
                smooth_outlines(begin, end, view, surfaces, image, faces)

            # Two passes: the second needs the faces that the neighbouring rows show.
            run_chunks(draw, chunks)
            run_chunks(smooth, chunks)
            total += image
        return total / np.float32(len(self._views))


def _pixel_rays(
    lens: Optics, width: int, height: int, offset: tuple[float, float], count: int
) -> tuple[FloatArray, FloatArray]:
    """(height, width, 3) unit rays of all pixels and (height, width) the angle that each averages over, in rad."""
    u, v = np.meshgrid(np.arange(width) + offset[0], np.arange(height) + offset[1])
    rays = lens.unproject(np.stack((u.ravel(), v.ravel()), axis=1)).reshape(height, width, 3)
    across = np.linalg.norm(np.gradient(rays, axis=1), axis=2)
    down = np.linalg.norm(np.gradient(rays, axis=0), axis=2)
    return rays, RENDER.lens_blur_px * (np.sqrt(across * down) / count)
