"""The rendered worlds: a room with boxes and balls at several depths, or a single plane. Units are metres.

A world is a table of solids and one of how their faces look; `rssc.kernels.image.ray_casting` names the columns. The
axes are those of `motion.py`: x right, y down, z forward.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rssc.errors import InputError
from rssc.kernels.image.ray_casting import AMBIENT, BALL, BOX, COS, DIRECT, KIND, LIGHT, ROOM, SIN, cast, local_origins
from rssc.kernels.image.texture import TILE
from rssc.model.arrays import FloatArray
from rssc.simulation.motion import Waves
from rssc.simulation.texture import Texture, random_texture

WORLD_KINDS = ("room", "plane")
LUMA = (0.299, 0.587, 0.114)
"""Brightness of red, green and blue (ITU-R BT.601)."""


@dataclass(frozen=True)
class RoomPlan:
    """What stands in the room, in metres. Chosen by hand: every part of the view has several depths."""

    low: tuple[float, float, float] = (-4.2, -1.5, -4.2)
    """Left, top and near corner of the room."""
    high: tuple[float, float, float] = (4.2, 1.35, 4.6)
    """Right, bottom and far corner of the room."""
    columns: tuple[float, ...] = (-2.9, -1.6, -0.5, 0.6, 1.7, 3.0)
    """x of the grid of objects in front of the camera, one object to a cell."""
    rows: tuple[float, ...] = (-0.2, 1.5, 3.1)
    """z of that grid."""
    empty_share: float = 0.2
    """Share of its cells that stay empty."""
    scatter: float = 0.35
    """Objects stand up to so far from the middle of their cell."""
    aside: tuple[tuple[float, float], ...] = (
        (-3.6, -1.6), (3.6, -1.8), (-2.6, -3.9), (2.4, -3.9), (-3.7, -3.5), (3.8, -3.6),
    )  # fmt: skip
    """(x, z) of objects behind the camera and at its sides, for wide lenses and pans."""
    shares: tuple[float, float, float, float] = (0.45, 0.15, 0.2, 0.2)
    """How often an object is a box on the floor, a pillar, a box under the ceiling, a ball."""
    half_size: tuple[float, float] = (0.18, 0.38)
    """Least and largest half width of a box, radius of a ball."""
    half_size_aside: float = 0.3
    """Largest half width of the objects aside, which are nearer."""
    pillar_width: float = 0.6
    """Of a pillar, as a share of a box's."""
    floor_half_height: tuple[float, float] = (0.25, 0.75)
    """Of a box on the floor."""
    ceiling_half_height: tuple[float, float] = (0.15, 0.4)
    """Of a box under the ceiling."""
    highest_ball: float = -0.6
    """Least y of a ball's centre."""
    wall_texels: float = 260.0
    """Texels per metre of the walls: at most distances finer than the pixels of an image of 640 x 480."""
    object_texels: float = 500.0
    """Texels per metre of the objects, which are nearer."""


@dataclass(frozen=True)
class Palette:
    """Colours of the faces. Chosen by hand: muted, and alike in brightness so that all faces have contrast."""

    dark: float = 0.13
    """Brightness of the texture's zeros."""
    bright: float = 0.9
    """Brightness of the texture's ones."""
    brightness: tuple[float, float] = (0.85, 1.1)
    """Faces differ by a factor of this range."""
    saturation: tuple[float, float] = (0.02, 0.16)
    """Range of the solids' saturation."""
    hue_spread: float = 0.15
    """Standard deviation of the hue between the faces of a solid, in rad."""


ROOM_PLAN, PALETTE = RoomPlan(), Palette()


@dataclass(frozen=True)
class Mover:
    """A solid that moves without turning."""

    solid: int
    """Its row in the world's table, which has its place at rest."""
    path: Waves
    """How far from there it is, (3,) in metres over the seconds of the clip."""


@dataclass(frozen=True)
class World:
    """Solids, and for each of their six faces (negative and positive x, y, z) how it looks."""

    solids: FloatArray
    """(s, 11)"""
    looks: FloatArray
    """(s, 6, 9)"""
    texture: Texture
    movers: tuple[Mover, ...] = ()

    def cast(self, origins: FloatArray, directions: FloatArray) -> FloatArray:
        """(n,) distances to the first surface at rest along (n, 3) unit rays; infinite where there is none."""
        fixed = np.delete(self.solids, [mover.solid for mover in self.movers], axis=0)
        return cast(fixed, np.ascontiguousarray(origins), np.ascontiguousarray(directions))

    def cast_movers(self, origins: FloatArray, directions: FloatArray, seconds: FloatArray) -> FloatArray:
        """(n,) distances to the first mover, each ray at its own time; infinite where there is none."""
        nearest = np.full(len(origins), np.inf)
        for mover in self.movers:
            solid = self.solids[[mover.solid]]
            moved = np.ascontiguousarray(origins - mover.path.at(seconds))
            nearest = np.minimum(nearest, cast(solid, moved, np.ascontiguousarray(directions)))
        return nearest

    def local_origins(self, centres: FloatArray, seconds: FloatArray) -> FloatArray:
        """(k, s, 3) camera centres (k, 3), each at its own time, in the axes of every solid."""
        out = local_origins(self.solids, centres)
        for mover in self.movers:
            solid = self.solids[[mover.solid]]
            # To a solid that moves without turning, the camera moves the other way.
            out[:, [mover.solid]] = local_origins(solid, np.ascontiguousarray(centres - mover.path.at(seconds)))
        return out


def build_world(kind: str, seed: int) -> World:
    """The world of a kind and a seed."""
    if kind not in WORLD_KINDS:
        raise InputError(f"world is {kind!r}; expected one of {', '.join(WORLD_KINDS)}.")
    rng = np.random.default_rng([seed, 1])
    solids = _room(rng) if kind == "room" else [make_solid(BOX, (0, 0, 2.6), (12, 12, 0.1), 0.0, 300.0)]
    return World(np.array(solids), random_looks(rng, solids), random_texture())


def random_looks(rng: np.random.Generator, solids: Sequence[FloatArray]) -> FloatArray:
    """(s, 6, 9) looks of solids: shaded by the light, with random places in the texture and random colours."""
    shades = np.array([[_shade(solid, face) for face in range(6)] for solid in solids])
    places = rng.uniform(0, TILE, (len(solids), 6, 2))
    return np.concatenate((shades[..., None], places, *_colours(rng, len(solids))), axis=2)


def make_solid(
    kind: int, centre: Sequence[float] | FloatArray, half: Sequence[float] | FloatArray, turn: float, texels: float
) -> FloatArray:
    """A row of `World.solids`.

    Args:
        kind: BOX, BALL or ROOM.
        centre: (3,) in the world.
        half: (3,) half sizes; of a ball the radius, three times over.
        turn: About the vertical, in rad.
        texels: Per metre.
    """
    reach = half[0] if kind == BALL else np.linalg.norm(half)
    return np.array((kind, *centre, *half, math.cos(turn), math.sin(turn), reach, texels))


def _room(rng: np.random.Generator) -> list[FloatArray]:
    plan = ROOM_PLAN
    low, high = np.array(plan.low), np.array(plan.high)
    solids = [make_solid(ROOM, 0.5 * (low + high), 0.5 * (high - low), 0.0, plan.wall_texels)]
    for x in plan.columns:
        for z in plan.rows:
            if rng.uniform() < plan.empty_share:
                continue
            shift_x, _, shift_z = rng.uniform(-plan.scatter, plan.scatter, 3)
            solids.append(_object(rng, x + shift_x, z + shift_z, plan.half_size[1]))
    solids.extend(_object(rng, x, z, plan.half_size_aside) for x, z in plan.aside)
    return solids


def _object(rng: np.random.Generator, x: float, z: float, largest: float) -> FloatArray:
    """A box or pillar that stands on the floor, a box under the ceiling or a ball at some height."""
    plan = ROOM_PLAN
    ceiling, floor = plan.low[1], plan.high[1]
    size = rng.uniform(plan.half_size[0], largest, 3)
    turn = rng.uniform(-np.pi, np.pi)
    choice = rng.choice(4, p=plan.shares)
    if choice == 3:
        radius = float(size[0])
        y = rng.uniform(plan.highest_ball, floor - radius)
        return make_solid(BALL, (x, y, z), (radius,) * 3, 0.0, plan.object_texels)
    # Both are drawn for all of them.
    standing, hanging = rng.uniform(*plan.floor_half_height), rng.uniform(*plan.ceiling_half_height)
    half_height = (standing, 0.5 * (floor - ceiling), hanging)[choice]
    if choice == 1:
        size *= plan.pillar_width
    y = ceiling + half_height if choice == 2 else floor - half_height
    return make_solid(BOX, (x, y, z), (size[0], half_height, size[2]), turn, plan.object_texels)


def _shade(solid: FloatArray, face: int) -> float:
    """Brightness of a face under the light."""
    normal = np.zeros(3)
    normal[face // 2] = (-1.0, 1.0)[face % 2] * (-1.0 if solid[KIND] == ROOM else 1.0)
    c, s = solid[COS], solid[SIN]
    world = np.array((c * normal[0] + s * normal[2], normal[1], -s * normal[0] + c * normal[2]))
    return AMBIENT + DIRECT * float(world @ LIGHT)


def _colours(rng: np.random.Generator, count: int) -> tuple[FloatArray, FloatArray]:
    """(count, 6, 3) dark and bright colours of all faces."""
    hue = rng.uniform(0, 2 * np.pi, (count, 1)) + rng.normal(0, PALETTE.hue_spread, (count, 6))
    tint = 1 + rng.uniform(*PALETTE.saturation, (count, 1, 1)) * np.cos(hue[..., None] - np.array((0, 2.1, 4.2)))
    tint /= (tint @ LUMA)[..., None]
    brightness = rng.uniform(*PALETTE.brightness, (count, 6, 1))
    return PALETTE.dark * brightness * tint[..., ::-1], PALETTE.bright * brightness * tint
