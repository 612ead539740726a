"""Rolling-shutter images by ray casting: every row (or column) with the camera's pose at its own time.

A pixel integrates over its own area at the time of its row, as a sensor does. Texture is averaged over the pixel's
footprint on the surface (mip-mapped, in several taps, more of them along it where the surface is seen at a grazing
angle); pixels on the outline of a face are sampled again on a 3 x 3 grid.
"""

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rssc.kernels.jit import kernel
from rssc.model.arrays import FloatArray
from rssc.model.camera import Camera
from rssc.model.lens import Lens
from rssc.runtime.threads import run_chunks, thread_count
from rssc.simulation.texture import level_of, sample
from rssc.simulation.world import (
    BRIGHT,
    COS,
    DARK,
    PLACE,
    SIN,
    TEXELS,
    World,
    local_origins,
    nearest,
    normal_and_shade,
)

_TAPS = 2
_MAX_TAPS = 12
_SUBPIXELS = 3
_BACKGROUND = 0.4
_LENS_BLUR = 1.3
"""Width of the footprint in pixels: a lens is a little softer than its pixels, so that images hardly alias."""


class Renderer:
    """Renders a world through a lens; what depends on neither time nor pose is computed once."""

    def __init__(
        self, camera: Camera, world: World, texture_strength: float = 1.0, colour: bool = False, rays: int = 1
    ):
        """Prepares a view.

        Args:
            camera: Lens, shutter and image size.
            world: What there is to see.
            texture_strength: Contrast of the texture.
            colour: RGB images instead of grey ones.
            rays: Along each side of a pixel, for what is printed sharply: texture is interpolated between blocks of
                a part of the footprint's size, which moves edges by a few hundredths of a pixel.
        """
        self.camera = camera
        self.world = world
        self.texture_strength = texture_strength
        self._channels = 3 if colour else 1
        # Several rays divide the footprint already.
        self._taps = _TAPS if rays == 1 else 1
        self._looks = world.looks.copy()
        if not colour:
            for at in (DARK, BRIGHT):
                self._looks[..., at] = world.looks[..., at : at + 3] @ (0.299, 0.587, 0.114)
        offsets = ((np.arange(rays) + 0.5) / rays - 0.5) * (_LENS_BLUR if rays > 1 else 0.0)
        self._views = [
            _pixel_rays(camera.lens, camera.width, camera.height, (du, dv), rays) for du in offsets for dv in offsets
        ]

    def render(self, cam_from_world: FloatArray) -> NDArray[np.float32]:
        """(height, width, channels) float32 image from 0 to 1, not clipped.

        Args:
            cam_from_world: (k, 3, 4) poses, one for each row, or for each column where the shutter reads columns.
        """
        camera, world = self.camera, self.world
        by_column = camera.shutter.axis == "columns"
        rotations = np.ascontiguousarray(cam_from_world[:, :, :3].transpose(0, 2, 1))
        centres = -np.einsum("nij,nj->ni", rotations, cam_from_world[:, :, 3])
        origins = local_origins(world.solids, centres)
        total = np.zeros((camera.height, camera.width, self._channels), np.float32)
        image = np.empty_like(total)
        faces = np.empty((camera.height, camera.width), np.int32)
        look = (world.solids, self._looks, world.texture.texels, self._taps, self.texture_strength)
        count = 4 * thread_count()
        bounds = np.unique(np.linspace(0, camera.height, count + 1).astype(int))
        chunks = [(int(a), int(b)) for a, b in pairwise(bounds)]
        for rays, spread in self._views:
            view = (rays, spread, rotations, origins, by_column)
            run_chunks(lambda _, begin, end, view=view: _render_rows(begin, end, *view, *look, image, faces), chunks)
            run_chunks(
                lambda _, begin, end, view=view: _smooth_outlines(begin, end, *view, *look, faces, image), chunks
            )
            total += image
        return total / np.float32(len(self._views))


def _pixel_rays(
    lens: Lens, width: int, height: int, offset: tuple[float, float], count: int
) -> tuple[FloatArray, FloatArray]:
    """(height, width, 3) unit rays of all pixels and (height, width) the angle that each of them spans, in rad."""
    u, v = np.meshgrid(np.arange(width) + offset[0], np.arange(height) + offset[1])
    rays = lens.unproject(np.stack((u.ravel(), v.ravel()), axis=1)).reshape(height, width, 3)
    across = np.linalg.norm(np.gradient(rays, axis=1), axis=2)
    down = np.linalg.norm(np.gradient(rays, axis=0), axis=2)
    return rays, np.sqrt(across * down) / count


@kernel
def _face_texture(solids, looks, texels, taps_across, solid, face, hits, direction, normal, reach):
    """Texture around a hit, averaged over the pixel's footprint.

    Args:
        hits: Point on the solid, in its axes; direction: of the ray; normal: of the surface, all as (x, y, z).
        reach: Width of the pixel at the hit, in metres.
        taps_across: Into how many parts the width of the footprint is divided.
    """
    density = solids[solid, TEXELS]
    axis = face // 2
    cosine = max(abs(direction[0] * normal[0] + direction[1] * normal[1] + direction[2] * normal[2]), 0.02)
    along = direction[0] * normal[0] + direction[1] * normal[1] + direction[2] * normal[2]
    tx, ty, tz = direction[0] - along * normal[0], direction[1] - along * normal[1], direction[2] - along * normal[2]
    if axis == 0:
        u, v, tu, tv = hits[2], hits[1], tz, ty
    elif axis == 1:
        u, v, tu, tv = hits[0], hits[2], tx, tz
    else:
        u, v, tu, tv = hits[0], hits[1], tx, ty
    u = u * density + looks[solid, face, PLACE]
    v = v * density + looks[solid, face, PLACE + 1]
    # A footprint as long as the surface is oblique, in taps of a part of its width: blocks of texels as wide as the
    # footprint would move printed edges by up to a tenth of a pixel.
    width = reach * density
    length = width / cosine
    slant = math.sqrt(tu * tu + tv * tv)
    du, dv = (tu / slant, tv / slant) if slant > 1e-9 else (1.0, 0.0)
    taps = min(int(taps_across / cosine + 0.5), _MAX_TAPS)
    level = level_of(max(width / taps_across, length / taps))
    total = 0.0
    for i in range(taps):
        along = ((i + 0.5) / taps - 0.5) * length
        for j in range(taps_across):
            across = ((j + 0.5) / taps_across - 0.5) * width
            total += sample(texels, u + along * du - across * dv, v + along * dv + across * du, level)
    return total / (taps * taps_across)


@kernel
def _shade_ray(rx, ry, rz, spread, rotations, origins, k, solids, looks, texels, taps, strength):
    """What a ray (in camera coordinates, from the k-th pose) meets: solid, face, brightness and texture."""
    if math.isnan(rx):
        return -2, 0, 0.0, 0.0
    dx = rotations[k, 0, 0] * rx + rotations[k, 0, 1] * ry + rotations[k, 0, 2] * rz
    dy = rotations[k, 1, 0] * rx + rotations[k, 1, 1] * ry + rotations[k, 1, 2] * rz
    dz = rotations[k, 2, 0] * rx + rotations[k, 2, 1] * ry + rotations[k, 2, 2] * rz
    distance, solid, face, hit_x, hit_y, hit_z = nearest(solids, origins, k, dx, dy, dz)
    if solid < 0:
        return -1, 0, 0.0, 0.0
    nx, ny, nz, shade = normal_and_shade(solids, looks, solid, face, hit_x, hit_y, hit_z)
    cosine, sine = solids[solid, COS], solids[solid, SIN]
    value = _face_texture(
        solids, looks, texels, taps, solid, face, (hit_x, hit_y, hit_z),
        (cosine * dx - sine * dz, dy, sine * dx + cosine * dz), (nx, ny, nz), _LENS_BLUR * spread * distance,
    )  # fmt: skip
    return solid, face, shade, 0.5 + strength * (value - 0.5)


@kernel
def _add_colour(looks, solid, face, shade, value, weight, image, row, column):
    """Adds what `_shade_ray` met to a pixel. Outside the lens's field of view it stays black."""
    for c in range(image.shape[2]):
        if solid >= 0:
            dark, bright = looks[solid, face, DARK + c], looks[solid, face, BRIGHT + c]
            image[row, column, c] += weight * shade * (dark + (bright - dark) * value)
        elif solid == -1:
            image[row, column, c] += weight * _BACKGROUND


@kernel
def _render_rows(
    begin, end, rays, spread, rotations, origins, by_column, solids, looks, texels, taps, strength, image, faces
):  # fmt: skip
    """One ray through the centre of every pixel of some rows."""
    for row in range(begin, end):
        for column in range(rays.shape[1]):
            k = column if by_column else row
            solid, face, shade, value = _shade_ray(
                rays[row, column, 0], rays[row, column, 1], rays[row, column, 2], spread[row, column], rotations,
                origins, k, solids, looks, texels, taps, strength,
            )  # fmt: skip
            faces[row, column] = 6 * solid + face
            for c in range(image.shape[2]):
                image[row, column, c] = 0.0
            _add_colour(looks, solid, face, shade, value, 1.0, image, row, column)


@kernel
def _smooth_outlines(
    begin, end, rays, spread, rotations, origins, by_column, solids, looks, texels, taps, strength, faces, image
):  # fmt: skip
    """Several rays through every pixel whose neighbours show another face."""
    height, width = faces.shape
    weight = 1.0 / (_SUBPIXELS * _SUBPIXELS)
    for row in range(begin, end):
        up, down = max(row - 1, 0), min(row + 1, height - 1)
        for column in range(width):
            left, right = max(column - 1, 0), min(column + 1, width - 1)
            here = faces[row, column]
            if (
                faces[up, column] == here
                and faces[down, column] == here
                and faces[row, left] == here
                and faces[row, right] == here
            ):
                continue
            k = column if by_column else row
            for c in range(image.shape[2]):
                image[row, column, c] = 0.0
            for i in range(_SUBPIXELS * _SUBPIXELS):
                # Rays within a pixel: linear from its neighbours.
                a = ((i % _SUBPIXELS + 0.5) / _SUBPIXELS - 0.5) / (right - left)
                b = ((i // _SUBPIXELS + 0.5) / _SUBPIXELS - 0.5) / (down - up)
                x = rays[row, column, 0] + a * (rays[row, right, 0] - rays[row, left, 0])
                y = rays[row, column, 1] + a * (rays[row, right, 1] - rays[row, left, 1])
                z = rays[row, column, 2] + a * (rays[row, right, 2] - rays[row, left, 2])
                x += b * (rays[down, column, 0] - rays[up, column, 0])
                y += b * (rays[down, column, 1] - rays[up, column, 1])
                z += b * (rays[down, column, 2] - rays[up, column, 2])
                norm = 1.0 / math.sqrt(x * x + y * y + z * z)
                solid, face, shade, value = _shade_ray(
                    x * norm, y * norm, z * norm, 0.5 * spread[row, column], rotations, origins, k, solids, looks,
                    texels, taps, strength,
                )  # fmt: skip
                _add_colour(looks, solid, face, shade, value, weight, image, row, column)
