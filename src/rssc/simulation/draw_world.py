"""Worlds whose every number is drawn: rooms, corridors and the outdoors, around the path that a camera takes.

Sizes are in metres, axes those of `motion.py`. Nothing stands in the camera's way.
"""

from dataclasses import dataclass, replace

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from rssc.errors import InputError
from rssc.kernels.image.ray_casting import BALL, BOX, BRIGHT, DARK, ROOM
from rssc.kernels.image.texture import TILE
from rssc.model.arrays import FloatArray
from rssc.simulation.motion import Waves
from rssc.simulation.texture import RECIPE, Texture, TextureRecipe, band, mip_mapped, texture_values
from rssc.simulation.world import Mover, World, make_solid, random_looks

Range = tuple[float, float]
WORLDS = ("room", "corridor", "outdoors")
SCALES = {"room": 1.0, "corridor": 1.0, "outdoors": 2.0, "plane": 1.0}
"""How much farther away than in a room things are, for `draw_motion`."""


@dataclass(frozen=True)
class WorldRanges:
    """Least and largest values. Chosen by hand: sizes of homes, offices and streets."""

    room_beside: Range = (1.5, 4.5)
    """From the path to the walls of a room."""
    room_ahead: Range = (2.5, 7.0)
    room_behind: Range = (0.6, 4.0)
    corridor_beside: Range = (0.8, 1.8)
    corridor_ahead: Range = (8.0, 25.0)
    above: Range = (0.7, 1.8)
    """From the path to the ceiling."""
    below: Range = (0.7, 1.7)
    """From the path to the floor."""
    flight: Range = (1.2, 8.0)
    """From the path to the ground outdoors; the logarithm is drawn."""
    objects: Range = (8, 40)
    """How many stand around."""
    half_size: Range = (0.08, 0.55)
    """Of an object in a room; the logarithm is drawn."""
    far: Range = (2.5, 45.0)
    """Distance of things outdoors; the logarithm is drawn."""
    far_size: Range = (0.05, 0.35)
    """Half the size of things outdoors, as a share of their distance."""
    gap: float = 0.35
    """Nothing is nearer to the path."""
    texels: Range = (300.0, 1300.0)
    """Texels per rad, as seen from the path; about two to the pixel."""
    contrast: Range = (0.5, 1.0)
    """Of a whole world's texture, and again of each face."""
    plain_share: Range = (0.0, 0.3)
    """Share of the faces that have almost no texture."""
    plain_contrast: float = 0.04
    mover_size: Range = (0.05, 0.14)
    """Half the size of a mover, as a share of its distance."""
    mover_distance: Range = (1.5, 4.0)
    """From the camera, times the world's scale."""
    tries: int = 40


RANGES = WorldRanges()


def draw_world(rng: np.random.Generator, kind: str, path: FloatArray, contrast: float | None = None) -> World:
    """A world of a kind.

    Args:
        rng: Source of all numbers.
        kind: One of `WORLDS`, or "plane".
        path: (n, 3) camera centres.
        contrast: Of the texture; drawn where not given.
    """
    low, high = path.min(axis=0), path.max(axis=0)
    if kind == "plane":
        distance = high[2] + rng.uniform(1.5, 4.0)
        solids = [make_solid(BOX, (0, 0, distance + 0.1), (40, 40, 0.1), 0.0, rng.uniform(*RANGES.texels) / distance)]
    elif kind == "outdoors":
        solids = _outdoors(rng, path, low, high)
    elif kind in WORLDS:
        solids = _indoors(rng, kind, path, low, high)
    else:
        raise InputError(f"world is {kind!r}; expected one of {', '.join((*WORLDS, 'plane'))}.")
    looks = random_looks(rng, solids)
    strength = rng.uniform(*RANGES.contrast, looks.shape[:2])
    strength[rng.uniform(size=strength.shape) < rng.uniform(*RANGES.plain_share)] = RANGES.plain_contrast
    strength *= rng.uniform(*RANGES.contrast) if contrast is None else contrast
    dark, bright = looks[..., DARK : DARK + 3].copy(), looks[..., BRIGHT : BRIGHT + 3].copy()
    middle, half = 0.5 * (dark + bright), 0.5 * strength[..., None] * (bright - dark)
    looks[..., DARK : DARK + 3], looks[..., BRIGHT : BRIGHT + 3] = middle - half, middle + half
    return World(np.array(solids), looks, _draw_texture(rng))


def add_movers(rng: np.random.Generator, world: World, count: int, seconds: float, path: FloatArray) -> World:
    """The world with balls and boxes that cross the view from side to side during the clip.

    Args:
        rng: Source of all numbers.
        world: At rest.
        count: Of movers.
        seconds: The clip's length.
        path: (n, 3) camera centres.
    """
    solids = list(world.solids)
    movers: list[Mover] = []
    for _ in range(count):
        distance = rng.uniform(*RANGES.mover_distance)
        size = distance * rng.uniform(*RANGES.mover_size)
        ahead = float(path[:, 2].max()) + distance
        half = rng.uniform(0.6, 1.4, 3) * size
        kind = BALL if rng.uniform() < 0.5 else BOX
        side = rng.choice((-1.0, 1.0))
        begin, end = side * rng.uniform(0.2, 1.2) * distance, -side * rng.uniform(0.2, 1.2) * distance
        middle = path.mean(axis=0)
        centre = (middle[0] + begin, middle[1] + rng.uniform(-0.25, 0.25) * distance, ahead)
        rate = ((end - begin) / seconds, 0.0, rng.normal(0, 0.1) * distance / seconds)
        waves = Waves.constant((0.0, 0.0, 0.0), rate=rate).add(rng, (0.05, 0.15, 0.05), (0.4, 1.5))
        movers.append(Mover(len(solids), waves))
        solids.append(
            make_solid(kind, centre, (half[0],) * 3 if kind == BALL else half, rng.uniform(-3, 3), 700 / distance)
        )
    added = random_looks(rng, solids[len(world.solids) :]) if count else world.looks[:0]
    return replace(world, solids=np.array(solids), looks=np.concatenate((world.looks, added)), movers=tuple(movers))


def _indoors(
    rng: np.random.Generator, kind: str, path: FloatArray, low: FloatArray, high: FloatArray
) -> list[FloatArray]:
    beside = RANGES.room_beside if kind == "room" else RANGES.corridor_beside
    ahead = RANGES.room_ahead if kind == "room" else RANGES.corridor_ahead
    near = low - (rng.uniform(*beside), rng.uniform(*RANGES.above), rng.uniform(*RANGES.room_behind))
    far = np.add(high, (rng.uniform(*beside), rng.uniform(*RANGES.below), rng.uniform(*ahead)))
    typical = float(np.mean(ahead)) if kind == "room" else 4.0
    solids = [make_solid(ROOM, 0.5 * (near + far), 0.5 * (far - near), 0.0, rng.uniform(*RANGES.texels) / typical)]
    shares = rng.dirichlet((2.0, 1.0, 1.0, 1.0))
    for _ in range(int(rng.uniform(*RANGES.objects))):
        for _ in range(RANGES.tries):
            place = rng.uniform(near, far)
            if kind == "corridor":
                # Along the walls, where things stand in corridors.
                place[0] = (near[0], far[0])[rng.integers(2)] + rng.normal(0, 0.2)
            half = RANGES.half_size[0] * (RANGES.half_size[1] / RANGES.half_size[0]) ** rng.uniform(size=3)
            choice = rng.choice(4, p=shares)
            if choice == 1:
                half[1], place[1] = 0.5 * (far[1] - near[1]), 0.5 * (far[1] + near[1])
            elif choice in (0, 2):
                half[1] *= rng.uniform(1.0, 2.0)
                place[1] = far[1] - half[1] if choice == 0 else near[1] + half[1]
            if _is_clear(place, half, path):
                distance = float(np.linalg.norm(path - place, axis=1).min())
                solids.append(_solid(rng, BALL if choice == 3 else BOX, place, half, max(distance, 1.0)))
                break
    return solids


def _outdoors(rng: np.random.Generator, path: FloatArray, low: FloatArray, high: FloatArray) -> list[FloatArray]:
    height = RANGES.flight[0] * (RANGES.flight[1] / RANGES.flight[0]) ** rng.uniform()
    ground = float(high[1]) + height
    texels = rng.uniform(*RANGES.texels) / (3 * height)
    solids = [make_solid(BOX, (0, ground + 0.5, 0), (150, 0.5, 150), 0.0, texels)]
    middle = 0.5 * (low + high)
    for _ in range(2 * int(rng.uniform(*RANGES.objects))):
        for _ in range(RANGES.tries):
            distance = RANGES.far[0] * (RANGES.far[1] / RANGES.far[0]) ** rng.uniform()
            bearing = rng.normal(0, 0.8)
            half = distance * rng.uniform(*RANGES.far_size, 3) * (1, rng.uniform(0.5, 2.5), 1)
            place = middle + distance * np.array((np.sin(bearing), 0.0, np.cos(bearing)))
            kind = BALL if rng.uniform() < 0.25 else BOX
            # Balls are the crowns of trees.
            place[1] = ground - (half[0] * rng.uniform(0.8, 2.5) if kind == BALL else half[1])
            if _is_clear(place, half, path):
                solids.append(_solid(rng, kind, place, half, distance))
                break
    return solids


def _solid(rng: np.random.Generator, kind: int, place: FloatArray, half: FloatArray, distance: float) -> FloatArray:
    texels = rng.uniform(*RANGES.texels) / distance
    return make_solid(kind, place, (half[0],) * 3 if kind == BALL else half, rng.uniform(-np.pi, np.pi), texels)


def _is_clear(place: FloatArray, half: FloatArray, path: FloatArray) -> bool:
    """Whether a solid is out of the camera's way; pillars and towers are judged by their plan."""
    away = np.abs(path - place)
    beside = np.hypot(away[:, 0], away[:, 2]) - np.hypot(half[0], half[2])
    above = away[:, 1] - max(half[1], half[0])
    return bool(np.all(np.maximum(beside, above) > RANGES.gap))


def _draw_texture(rng: np.random.Generator) -> Texture:
    """Two textures of drawn statistics, side by side in patches of a few hundred texels."""
    one, two = (texture_values(rng, _draw_recipe(rng)) for _ in range(2))
    white: NDArray[np.complex64] = scipy.fft.rfft2(rng.standard_normal((TILE, TILE), dtype=np.float32), workers=2)
    mask = band(white, rng.uniform(150, 600), 0.4)
    share = 0.5 + 0.5 * np.tanh(6 * (mask / mask.std() - rng.normal(0, 0.5)))
    return mip_mapped((one + share * (two - one)).astype(np.float32))


def _draw_recipe(rng: np.random.Generator) -> TextureRecipe:
    """Coarse or fine, crisp or soft, of rectangles or of spots."""
    size, number = 2 ** rng.uniform(-1.2, 1.2), 2 ** rng.uniform(-2, 0.7)
    patches = tuple((max(8, int(size * side)), max(4, int(number * count))) for side, count in RECIPE.patches)
    scale = 2 ** rng.uniform(-0.6, 1.2)
    kept = [wavelength * scale for wavelength in RECIPE.wavelengths if rng.uniform() < 0.8]
    return TextureRecipe(
        patches=patches,
        patch_range=rng.uniform(0.6, 2.4),
        wavelengths=tuple(kept) or (16.0 * scale,),
        bandwidth=rng.uniform(0.25, 0.6),
        noise_share=rng.uniform(0.2, 0.9),
        crisp_wavelength=rng.uniform(8.0, 30.0),
    )
