"""Casts rays into a world of boxes and balls, and shades what they hit.

A world is two tables: `solids` (s, 11), where each solid is and how large, and `looks` (s, 6, 9), how each of its six
faces (negative and positive x, y, z) looks; their columns are named below. A box may be turned about the vertical. The
room is a box that is seen from inside. A ball wears its texture like a cube.

A pixel integrates over its own area at the time of its row, as a sensor does. Texture is averaged over the pixel's
footprint on the surface (mip-mapped, in several taps, more of them along it where the surface is seen at a grazing
angle); pixels on the outline of a face are sampled again on a 3 x 3 grid.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rssc.kernels.image.texture import level_of, sample
from rssc.kernels.jit import kernel, part

BOX, BALL, ROOM = 0, 1, 2
# Columns of `solids`: kind, centre (3), half size (3; the radius of a ball), cosine and sine of the turn, radius of the
# enclosing sphere, texels per metre.
KIND, CENTRE, HALF, COS, SIN, REACH, TEXELS = 0, 1, 4, 7, 8, 9, 10
# Columns of `looks`: brightness under the light, place in the texture's tile in texels (2), colour of the texture's
# zeros (3) and of its ones (3).
SHADE, PLACE, DARK, BRIGHT = 0, 1, 3, 6

# The light shines from above, left and behind the camera; chosen by hand so that neighbouring faces of a box differ.
LIGHT = (-0.35, -0.85, -0.4)
AMBIENT, DIRECT = 0.72, 0.28

_NO_SOLID, _NO_RAY = -1, -2
_BACKGROUND = 0.4
_NEAREST = 1e-9
_HUGE = 1e200
# Taps along the footprint at the most, and the least cosine to the surface: at grazing angles the texture is averaged
# over coarser blocks instead, because taps cost time.
_MAX_TAPS = 12
_MIN_COSINE = 0.02
_SUBPIXELS = 3


class View(NamedTuple):
    """Rays of an image and the poses they start from."""

    rays: NDArray[np.float64]
    """(height, width, 3) unit rays in camera coordinates; NaN outside the lens's field of view."""
    widths: NDArray[np.float64]
    """(height, width) angle that each ray averages over, in rad."""
    rotations: NDArray[np.float64]
    """(k, 3, 3) world_from_cam of each line of the shutter."""
    origins: NDArray[np.float64]
    """(k, s, 3) camera centres of each line, see `local_origins`."""
    by_column: bool
    """Whether the lines are columns."""


class Surfaces(NamedTuple):
    """The solids and how they look."""

    solids: NDArray[np.float64]
    """(s, 11)"""
    looks: NDArray[np.float64]
    """(s, 6, 9)"""
    texels: NDArray[np.uint8]
    """(n,) the texture, see `rssc.kernels.image.texture`."""
    taps: int
    """Into how many parts the width of a footprint is divided."""
    strength: float
    """Contrast of the texture, 1 for all of it."""


@kernel
def local_origins(solids: NDArray[np.float64], centres: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, s, 3) camera centres (n, 3) in the axes of every solid."""
    out = np.empty((len(centres), len(solids), 3))
    for k in range(len(centres)):
        for i in range(len(solids)):
            x = centres[k, 0] - solids[i, CENTRE]
            y = centres[k, 1] - solids[i, CENTRE + 1]
            z = centres[k, 2] - solids[i, CENTRE + 2]
            out[k, i, 0] = solids[i, COS] * x - solids[i, SIN] * z
            out[k, i, 1] = y
            out[k, i, 2] = solids[i, SIN] * x + solids[i, COS] * z
    return out


@part
def _nearest(solids, origins, k, dx, dy, dz):
    """First hit of a unit ray from the k-th of `local_origins`.

    Returns:
        Distance, solid (_NO_SOLID for none), face and the point in the solid's axes. There are no array views in here:
        counting their references from several threads would cost more than the intersections.
    """
    best, solid, face = math.inf, _NO_SOLID, 0
    hit_x, hit_y, hit_z = 0.0, 0.0, 0.0
    for i in range(len(solids)):
        ox, oy, oz = origins[k, i, 0], origins[k, i, 1], origins[k, i, 2]
        cosine, sine = solids[i, COS], solids[i, SIN]
        x, z = cosine * dx - sine * dz, sine * dx + cosine * dz
        along = ox * x + oy * dy + oz * z
        kind = solids[i, KIND]
        # Discriminant of the enclosing sphere: most solids are missed and cost no more than this.
        gap = along * along - (ox * ox + oy * oy + oz * oz - solids[i, REACH] * solids[i, REACH])
        if gap < 0.0 or (along > 0.0 and kind != ROOM):
            continue
        if kind == BALL:
            distance = -along - math.sqrt(gap)
            if _NEAREST < distance < best:
                best, solid = distance, i
                hit_x, hit_y, hit_z = ox + best * x, oy + best * dy, oz + best * z
                # The texture is projected along the largest axis.
                a, b, c = abs(hit_x), abs(hit_y), abs(hit_z)
                if a >= b and a >= c:
                    face = 1 if hit_x > 0.0 else 0
                elif b >= c:
                    face = 3 if hit_y > 0.0 else 2
                else:
                    face = 5 if hit_z > 0.0 else 4
            continue
        # Slabs: the ray is inside the box from the last entry to the first exit.
        inverse_x = 1.0 / x if x != 0.0 else _HUGE
        inverse_y = 1.0 / dy if dy != 0.0 else _HUGE
        inverse_z = 1.0 / z if z != 0.0 else _HUGE
        reach_x, reach_y, reach_z = (
            solids[i, HALF] * abs(inverse_x),
            solids[i, HALF + 1] * abs(inverse_y),
            solids[i, HALF + 2] * abs(inverse_z),
        )
        middle_x, middle_y, middle_z = -ox * inverse_x, -oy * inverse_y, -oz * inverse_z
        if kind == ROOM:
            distance = min(middle_x + reach_x, middle_y + reach_y, middle_z + reach_z)
            axis = 0 if distance == middle_x + reach_x else (1 if distance == middle_y + reach_y else 2)
        else:
            distance = max(middle_x - reach_x, middle_y - reach_y, middle_z - reach_z)
            if distance > min(middle_x + reach_x, middle_y + reach_y, middle_z + reach_z):
                continue
            axis = 0 if distance == middle_x - reach_x else (1 if distance == middle_y - reach_y else 2)
        if _NEAREST < distance < best:
            best, solid = distance, i
            forward = x if axis == 0 else (dy if axis == 1 else z)
            # A ray forward along an axis leaves the room by its positive face and enters a box by the negative one.
            face = 2 * axis + (1 if (forward > 0.0) == (kind == ROOM) else 0)
            hit_x, hit_y, hit_z = ox + best * x, oy + best * dy, oz + best * z
    return best, solid, face, hit_x, hit_y, hit_z


@kernel
def cast(
    solids: NDArray[np.float64], origins: NDArray[np.float64], directions: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(n,) distances from (n, 3) origins to the first surface along (n, 3) unit rays; infinite where there is none."""
    out = np.empty(len(directions))
    local = local_origins(solids, origins)
    for i in range(len(directions)):
        out[i] = _nearest(solids, local, i, directions[i, 0], directions[i, 1], directions[i, 2])[0]
    return out


@part
def _normal_and_shade(solids, looks, solid, face, hit_x, hit_y, hit_z):
    """Outward normal in the solid's axes and brightness at a hit."""
    if solids[solid, KIND] == BALL:
        scale = 1.0 / solids[solid, HALF]
        x, y, z = hit_x * scale, hit_y * scale, hit_z * scale
        return x, y, z, AMBIENT + DIRECT * (x * LIGHT[0] + y * LIGHT[1] + z * LIGHT[2])
    sign = 1.0 if face % 2 == 1 else -1.0
    axis = face // 2
    return (
        sign if axis == 0 else 0.0,
        sign if axis == 1 else 0.0,
        sign if axis == 2 else 0.0,
        looks[solid, face, SHADE],
    )


@part
def _face_texture(surfaces, solid, face, hit, direction, normal, width):
    """Texture around a hit, averaged over the pixel's footprint.

    Args:
        surfaces: The world.
        solid: The solid that is hit.
        face: The face of it.
        hit: Point on the solid, in its axes as the next two, all of them (x, y, z).
        direction: Of the ray.
        normal: Of the surface.
        width: Of the pixel at the hit, in metres.
    """
    looks, taps_across = surfaces.looks, surfaces.taps
    density = surfaces.solids[solid, TEXELS]
    axis = face // 2
    along = direction[0] * normal[0] + direction[1] * normal[1] + direction[2] * normal[2]
    cosine = max(abs(along), _MIN_COSINE)
    tx, ty, tz = direction[0] - along * normal[0], direction[1] - along * normal[1], direction[2] - along * normal[2]
    if axis == 0:
        u, v, tu, tv = hit[2], hit[1], tz, ty
    elif axis == 1:
        u, v, tu, tv = hit[0], hit[2], tx, tz
    else:
        u, v, tu, tv = hit[0], hit[1], tx, ty
    u = u * density + looks[solid, face, PLACE]
    v = v * density + looks[solid, face, PLACE + 1]
    # A footprint as long as the surface is oblique, in taps of a part of its width: blocks of texels as wide as the
    # footprint would move printed edges by up to a tenth of a pixel.
    width = width * density
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
            total += sample(surfaces.texels, u + along * du - across * dv, v + along * dv + across * du, level)
    return total / (taps * taps_across)


@part
def _shade_ray(rx, ry, rz, width, view, k, surfaces):
    """What a ray (in camera coordinates, from the k-th pose) meets: solid, face, brightness and texture."""
    if math.isnan(rx):
        return _NO_RAY, 0, 0.0, 0.0
    rotations, solids = view.rotations, surfaces.solids
    dx = rotations[k, 0, 0] * rx + rotations[k, 0, 1] * ry + rotations[k, 0, 2] * rz
    dy = rotations[k, 1, 0] * rx + rotations[k, 1, 1] * ry + rotations[k, 1, 2] * rz
    dz = rotations[k, 2, 0] * rx + rotations[k, 2, 1] * ry + rotations[k, 2, 2] * rz
    distance, solid, face, hit_x, hit_y, hit_z = _nearest(solids, view.origins, k, dx, dy, dz)
    if solid == _NO_SOLID:
        return _NO_SOLID, 0, 0.0, 0.0
    nx, ny, nz, shade = _normal_and_shade(solids, surfaces.looks, solid, face, hit_x, hit_y, hit_z)
    cosine, sine = solids[solid, COS], solids[solid, SIN]
    value = _face_texture(
        surfaces, solid, face, (hit_x, hit_y, hit_z), (cosine * dx - sine * dz, dy, sine * dx + cosine * dz),
        (nx, ny, nz), width * distance,
    )  # fmt: skip
    return solid, face, shade, 0.5 + surfaces.strength * (value - 0.5)


@part
def _add_colour(looks, solid, face, shade, value, weight, image, row, column):
    """Adds what `_shade_ray` met to a pixel. Outside the lens's field of view it stays black."""
    for c in range(image.shape[2]):
        if solid >= 0:
            dark, bright = looks[solid, face, DARK + c], looks[solid, face, BRIGHT + c]
            image[row, column, c] += weight * shade * (dark + (bright - dark) * value)
        elif solid == _NO_SOLID:
            image[row, column, c] += weight * _BACKGROUND


@kernel
def render_rows(
    begin: int, end: int, view: View, surfaces: Surfaces, image: NDArray[np.float32], faces: NDArray[np.int32]
) -> None:
    """Renders the rows begin..end with one ray through the centre of every pixel.

    Args:
        begin: First row.
        end: One past the last row.
        view: Rays and poses.
        surfaces: The world.
        image: (height, width, channels) written.
        faces: (height, width) written: a number for the face that each pixel shows.
    """
    rays = view.rays
    for row in range(begin, end):
        for column in range(rays.shape[1]):
            k = column if view.by_column else row
            solid, face, shade, value = _shade_ray(
                rays[row, column, 0], rays[row, column, 1], rays[row, column, 2], view.widths[row, column], view, k,
                surfaces,
            )  # fmt: skip
            faces[row, column] = 6 * solid + face
            for c in range(image.shape[2]):
                image[row, column, c] = 0.0
            _add_colour(surfaces.looks, solid, face, shade, value, 1.0, image, row, column)


@kernel
def smooth_outlines(
    begin: int, end: int, view: View, surfaces: Surfaces, image: NDArray[np.float32], faces: NDArray[np.int32]
) -> None:
    """Renders again, with several rays each, those pixels of the rows begin..end whose neighbours show another face.

    The arguments are those of `render_rows`, which must have been called for all rows.
    """
    rays = view.rays
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
            k = column if view.by_column else row
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
                    x * norm, y * norm, z * norm, 0.5 * view.widths[row, column], view, k, surfaces
                )
                _add_colour(surfaces.looks, solid, face, shade, value, weight, image, row, column)
