"""The rendered worlds: a room with boxes and balls at several depths, or a single plane. Units are metres.

A world is a list of solids and the texture and colours of their faces. The axes are those of `motion.py`: x right,
y down, z forward. A box may be turned about the vertical; the room is a box that is seen from inside.
"""

import math
from dataclasses import dataclass

import numpy as np

from rssc.errors import InputError
from rssc.kernels.jit import kernel
from rssc.model.arrays import FloatArray
from rssc.simulation.texture import TILE, Texture, random_texture

BOX, BALL, ROOM = 0, 1, 2
# Columns of `World.solids`: kind, centre, half size (radius of a ball), cosine and sine of the turn, radius of the
# enclosing sphere, texels per metre.
_KIND, _CENTRE, _HALF, COS, SIN, _REACH, TEXELS = 0, 1, 4, 7, 8, 9, 10
# Columns of `World.looks`.
SHADE, PLACE, DARK, BRIGHT = 0, 1, 3, 6
_HUGE = 1e200
_LIGHT = (-0.35, -0.85, -0.4)
_AMBIENT, _DIRECT = 0.72, 0.28

ROOM_LOW, ROOM_HIGH = (-4.2, -1.5, -4.2), (4.2, 1.35, 4.6)
WORLD_KINDS = ("room", "plane")


@dataclass(frozen=True)
class World:
    """Solids, and for each of their six faces (negative and positive x, y, z) how it looks."""

    solids: FloatArray
    """(s, 11)"""
    looks: FloatArray
    """(s, 6, 9) brightness under the light, place in the texture's tile (in texels), RGB of the texture's zeros and
    of its ones."""
    texture: Texture

    def cast(self, origins: FloatArray, directions: FloatArray) -> FloatArray:
        """(n,) distances to the first surface along (n, 3) unit rays; infinite where there is none."""
        return _cast(self.solids, np.ascontiguousarray(origins), np.ascontiguousarray(directions))


def build_world(kind: str, seed: int) -> World:
    """The world of a kind and a seed."""
    if kind not in WORLD_KINDS:
        raise InputError(f"world is {kind!r}; expected one of {', '.join(WORLD_KINDS)}.")
    rng = np.random.default_rng([seed, 1])
    solids = _room(rng) if kind == "room" else [make_solid(BOX, (0, 0, 2.6), (12, 12, 0.1), 0.0, 300.0)]
    count = len(solids)
    shades = np.array([[_shade(solid, face) for face in range(6)] for solid in solids])
    places = rng.uniform(0, TILE, (count, 6, 2))
    looks = np.concatenate((shades[..., None], places, *_colours(rng, count)), axis=2)
    return World(np.array(solids), looks, random_texture())


def _room(rng: np.random.Generator) -> list[FloatArray]:
    low, high = np.array(ROOM_LOW), np.array(ROOM_HIGH)
    solids = [make_solid(ROOM, 0.5 * (low + high), 0.5 * (high - low), 0.0, 260.0)]
    floor = high[1]
    # One object per cell of a grid in front of the camera, so that every part of the view has several depths.
    for x in (-2.9, -1.6, -0.5, 0.6, 1.7, 3.0):
        for z in (-0.2, 1.5, 3.1):
            if rng.uniform() < 0.2:
                continue
            centre = np.array((x, 0.0, z)) + rng.uniform(-0.35, 0.35, 3) * (1, 0, 1)
            solids.append(_object(rng, centre, floor, low[1]))
    # A few behind it and at its sides, for wide lenses and pans.
    for x, z in ((-3.6, -1.6), (3.6, -1.8), (-2.6, -3.9), (2.4, -3.9), (-3.7, -3.5), (3.8, -3.6)):
        solids.append(_object(rng, np.array((x, 0.0, z)), floor, low[1], largest=0.3))
    return solids


def _object(
    rng: np.random.Generator, centre: FloatArray, floor: float, ceiling: float, largest: float = 0.38
) -> FloatArray:
    """A box or pillar that stands on the floor, a box on the ceiling or a ball at some height."""
    size = rng.uniform(0.18, largest, 3)
    turn = rng.uniform(-np.pi, np.pi)
    choice = rng.choice(4, p=(0.45, 0.15, 0.2, 0.2))
    if choice == 3:
        y = rng.uniform(-0.6, floor - size[0])
        return make_solid(BALL, (centre[0], y, centre[2]), np.full(3, size[0]), 0.0, 500.0)
    half_height = (rng.uniform(0.25, 0.75), 0.5 * (floor - ceiling), rng.uniform(0.15, 0.4))[choice]
    if choice == 1:
        size *= 0.6
    y = ceiling + half_height if choice == 2 else floor - half_height
    return make_solid(BOX, (centre[0], y, centre[2]), (size[0], half_height, size[2]), turn, 500.0)


def make_solid(kind: int, centre, half, turn: float, texels_per_metre: float) -> FloatArray:
    """A row of `World.solids`."""
    reach = half[0] if kind == BALL else np.linalg.norm(half)
    return np.array((kind, *centre, *half, math.cos(turn), math.sin(turn), reach, texels_per_metre))


def _shade(solid: FloatArray, face: int) -> float:
    normal = np.zeros(3)
    normal[face // 2] = (-1.0, 1.0)[face % 2] * (-1.0 if solid[_KIND] == ROOM else 1.0)
    c, s = solid[COS], solid[SIN]
    world = np.array((c * normal[0] + s * normal[2], normal[1], -s * normal[0] + c * normal[2]))
    return _AMBIENT + _DIRECT * float(world @ _LIGHT)


def _colours(rng: np.random.Generator, count: int) -> tuple[FloatArray, FloatArray]:
    """Dark and bright colours of all faces: muted hues, alike in brightness so that all faces have contrast."""
    hue = rng.uniform(0, 2 * np.pi, (count, 1)) + rng.normal(0, 0.15, (count, 6))
    tint = 1 + rng.uniform(0.02, 0.16, (count, 1, 1)) * np.cos(hue[..., None] - np.array((0, 2.1, 4.2)))
    tint /= (tint @ (0.299, 0.587, 0.114))[..., None]
    brightness = rng.uniform(0.85, 1.1, (count, 6, 1))
    return 0.13 * brightness * tint[..., ::-1], 0.9 * brightness * tint


@kernel
def local_origins(solids, centres):
    """(n, s, 3) camera centres (n, 3) in the axes of every solid."""
    out = np.empty((len(centres), len(solids), 3))
    for k in range(len(centres)):
        for i in range(len(solids)):
            x = centres[k, 0] - solids[i, _CENTRE]
            y = centres[k, 1] - solids[i, _CENTRE + 1]
            z = centres[k, 2] - solids[i, _CENTRE + 2]
            out[k, i, 0] = solids[i, COS] * x - solids[i, SIN] * z
            out[k, i, 1] = y
            out[k, i, 2] = solids[i, SIN] * x + solids[i, COS] * z
    return out


@kernel
def nearest(solids, origins, k, dx, dy, dz):
    """First hit of a unit ray from the k-th of `local_origins`.

    Returns:
        Distance, solid (-1 for none), face and the point in the solid's axes. There are no array views in here:
        counting their references from several threads would cost more than the intersections.
    """
    best, solid, face = math.inf, -1, 0
    hit_x, hit_y, hit_z = 0.0, 0.0, 0.0
    for i in range(len(solids)):
        ox, oy, oz = origins[k, i, 0], origins[k, i, 1], origins[k, i, 2]
        cosine, sine = solids[i, COS], solids[i, SIN]
        x, z = cosine * dx - sine * dz, sine * dx + cosine * dz
        along = ox * x + oy * dy + oz * z
        kind = solids[i, _KIND]
        # Discriminant of the enclosing sphere: most solids are missed and cost no more than this.
        gap = along * along - (ox * ox + oy * oy + oz * oz - solids[i, _REACH] * solids[i, _REACH])
        if gap < 0.0 or (along > 0.0 and kind != ROOM):
            continue
        if kind == BALL:
            distance = -along - math.sqrt(gap)
            if 1e-9 < distance < best:
                best, solid = distance, i
                hit_x, hit_y, hit_z = ox + best * x, oy + best * dy, oz + best * z
                # A ball wears its texture like a cube: projected along the largest axis.
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
            solids[i, _HALF] * abs(inverse_x),
            solids[i, _HALF + 1] * abs(inverse_y),
            solids[i, _HALF + 2] * abs(inverse_z),
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
        if 1e-9 < distance < best:
            best, solid = distance, i
            forward = x if axis == 0 else (dy if axis == 1 else z)
            # A ray forward along an axis leaves the room by its positive face and enters a box by the negative one.
            face = 2 * axis + (1 if (forward > 0.0) == (kind == ROOM) else 0)
            hit_x, hit_y, hit_z = ox + best * x, oy + best * dy, oz + best * z
    return best, solid, face, hit_x, hit_y, hit_z


@kernel
def normal_and_shade(solids, looks, solid, face, hit_x, hit_y, hit_z):
    """Outward normal in the solid's axes and brightness at a hit."""
    if solids[solid, _KIND] == BALL:
        scale = 1.0 / solids[solid, _HALF]
        x, y, z = hit_x * scale, hit_y * scale, hit_z * scale
        return x, y, z, _AMBIENT + _DIRECT * (x * _LIGHT[0] + y * _LIGHT[1] + z * _LIGHT[2])
    sign = 1.0 if face % 2 == 1 else -1.0
    axis = face // 2
    return (
        sign if axis == 0 else 0.0,
        sign if axis == 1 else 0.0,
        sign if axis == 2 else 0.0,
        looks[solid, face, SHADE],
    )


@kernel
def _cast(solids, origins, directions):
    out = np.empty(len(directions))
    local = local_origins(solids, origins)
    for i in range(len(directions)):
        out[i] = nearest(solids, local, i, directions[i, 0], directions[i, 1], directions[i, 2])[0]
    return out
