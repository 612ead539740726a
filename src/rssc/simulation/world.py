"""The rendered worlds: a room with boxes and balls at several depths, or a single plane. Units are metres.

A world is a list of solids and the texture and colours of their faces. The axes are those of `motion.py`: x right,
y down, z forward. A box may be turned about the vertical; the room is a box that is seen from inside.
"""

import math
from dataclasses import dataclass

import numpy as np

from rssc.errors import InputError
from rssc.kernels.image.ray_casting import AMBIENT, BALL, BOX, COS, DIRECT, KIND, LIGHT, ROOM, SIN, cast
from rssc.kernels.image.texture import TILE
from rssc.model.arrays import FloatArray
from rssc.simulation.texture import Texture, random_texture

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
        return cast(self.solids, np.ascontiguousarray(origins), np.ascontiguousarray(directions))


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
    normal[face // 2] = (-1.0, 1.0)[face % 2] * (-1.0 if solid[KIND] == ROOM else 1.0)
    c, s = solid[COS], solid[SIN]
    world = np.array((c * normal[0] + s * normal[2], normal[1], -s * normal[0] + c * normal[2]))
    return AMBIENT + DIRECT * float(world @ LIGHT)


def _colours(rng: np.random.Generator, count: int) -> tuple[FloatArray, FloatArray]:
    """Dark and bright colours of all faces: muted hues, alike in brightness so that all faces have contrast."""
    hue = rng.uniform(0, 2 * np.pi, (count, 1)) + rng.normal(0, 0.15, (count, 6))
    tint = 1 + rng.uniform(0.02, 0.16, (count, 1, 1)) * np.cos(hue[..., None] - np.array((0, 2.1, 4.2)))
    tint /= (tint @ (0.299, 0.587, 0.114))[..., None]
    brightness = rng.uniform(0.85, 1.1, (count, 6, 1))
    return 0.13 * brightness * tint[..., ::-1], 0.9 * brightness * tint
