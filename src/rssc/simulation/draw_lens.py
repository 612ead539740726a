"""Lenses whose every number is drawn: all models of the registry, and ones that no model holds.

A lens is drawn by what it does to the image: how wide it sees, how much it bends a line at the corner, how far off its
middle is. What does not see the whole image, or squeezes a part of it, is drawn again.
"""

from dataclasses import dataclass

import numpy as np

from rssc.errors import InputError
from rssc.model.arrays import FloatArray
from rssc.model.lens import LENS_MODELS, Lens
from rssc.simulation.optics import Optics, Profile, UnmodelledLens

Range = tuple[float, float]


@dataclass(frozen=True)
class LensRanges:
    """Least and largest values, uniform but for the decentred ones, which are normal. Chosen by hand, from what
    calibrations of phones, webcams and action cameras publish."""

    perspective_deg: Range = (45.0, 95.0)
    """Horizontal field of view of perspective lenses, before distortion."""
    fisheye_deg: Range = (75.0, 130.0)
    arctangent_deg: Range = (70.0, 115.0)
    bend: Range = (-0.28, 0.08)
    """Change of the radius at the corner by distortion, as a share of it; barrel is negative."""
    aspect: Range = (0.98, 1.02)
    """fy over fx."""
    centre_share: float = 0.02
    """Standard deviation of the principal point from the middle, as a share of the image's size."""
    tangential_px: Range = (0.0, 2.5)
    """Length of tangential and of thin-prism distortion at the corner, in pixels of an image 640 wide."""
    tilt_deg: float = 1.0
    """Largest tilt of a sensor."""
    margin_px: float = 12.0
    """The lens sees as far beyond the image."""
    least_scale: float = 0.3
    """Pixels per angle anywhere, as a share of the largest; less is no usual lens."""
    tries: int = 200


RANGES = LensRanges()
UNMODELLED: tuple[Profile, ...] = ("arctangent", "division", "rational")


def draw_lens(rng: np.random.Generator, model: str, width: int, height: int) -> Lens:
    """A lens of a model of the registry."""
    for _ in range(RANGES.tries):
        lens = _fisheye(rng, model, width, height) if LENS_MODELS[model].family == "fisheye" else _perspective(
            rng, model, width, height
        )  # fmt: skip
        if sees_whole_image(lens, width, height):
            return lens
    raise RuntimeError(f"no {model} lens sees an image of {width} x {height} pixels; the ranges are wrong.")


def draw_unmodelled(rng: np.random.Generator, name: str, width: int, height: int) -> UnmodelledLens:
    """A lens of a profile that no model holds exactly, decentred, and half of them on a tilted sensor."""
    profiles: dict[str, Profile] = {known: known for known in UNMODELLED}
    profile = profiles.get(name)
    if profile is None:
        raise InputError(f"lens profile is {name!r}; expected one of {', '.join(UNMODELLED)}.")
    limits = RANGES.arctangent_deg if profile == "arctangent" else RANGES.perspective_deg
    for _ in range(RANGES.tries):
        bend = rng.uniform(RANGES.bend[0], -0.05)
        fx, fy, cx, cy, corner = _matrix(rng, limits, width, height)
        if profile == "arctangent":
            w = rng.uniform(0.6, 1.0)
            # At this focal length the side of the image is where the field of view says.
            side = 0.5 * width / fx
            fx, fy = (float(f * side / (np.arctan(w * side) / w)) for f in (fx, fy))
            radial = (w,)
        elif profile == "division":
            # |d| = (1 + bend) r at the corner.
            radial = (bend / ((1 + bend) ** 2 * corner**2),)
        else:
            radial = _rational(rng, bend, corner)
        lens = UnmodelledLens(
            profile, fx, fy, cx, cy, radial, _decentred(rng, fx, corner, width), _prism(rng, fx, corner, width),
            (0.0, 0.0) if rng.uniform() < 0.5 else _pair(np.radians(rng.uniform(-1, 1, 2) * RANGES.tilt_deg)),
        )  # fmt: skip
        if sees_whole_image(lens, width, height):
            return lens
    raise RuntimeError(f"no {profile} lens sees an image of {width} x {height} pixels; the ranges are wrong.")


def sees_whole_image(lens: Optics, width: int, height: int) -> bool:
    """Whether every pixel, and some beyond the border, has a ray, and none is squeezed."""
    margin = RANGES.margin_px
    u, v = np.meshgrid(np.linspace(-margin, width - 1 + margin, 25), np.linspace(-margin, height - 1 + margin, 19))
    rays = lens.unproject(np.stack((u.ravel(), v.ravel()), axis=1)).reshape(*u.shape, 3)
    if not np.isfinite(rays).all():
        return False
    angles = [np.linalg.norm(np.diff(rays, axis=axis), axis=2) for axis in (0, 1)]
    return all(float(angle.min() / angle.max()) > RANGES.least_scale**2 for angle in angles)


def _matrix(
    rng: np.random.Generator, field_deg: Range, width: int, height: int
) -> tuple[float, float, float, float, float]:
    """fx, fy, cx, cy of a pinhole of a field of view, and the radius of the image's corner on the plane."""
    fx = 0.5 * width / np.tan(np.radians(rng.uniform(*field_deg)) / 2)
    fy = fx * rng.uniform(*RANGES.aspect)
    cx, cy = rng.normal(0.5, RANGES.centre_share, 2) * (width, height) - 0.5
    return float(fx), float(fy), float(cx), float(cy), float(0.5 * np.hypot(width / fx, height / fy))


def _perspective(rng: np.random.Generator, model: str, width: int, height: int) -> Lens:
    fx, fy, cx, cy, corner = _matrix(rng, RANGES.perspective_deg, width, height)
    bend = rng.uniform(*RANGES.bend)
    # k1 and k2 share the bend at the corner; a part of k1 that k2 takes back is usual.
    share = rng.uniform(0.8, 1.5)
    p1, p2 = _decentred(rng, fx, corner, width)
    known = {"p1": p1, "p2": p2}
    if model == "full_opencv":
        known |= {f"k{i + 1}": k for i, k in enumerate(_rational(rng, bend, corner))}
    else:
        known |= {"k1": share * bend / corner**2, "k2": (1 - share) * bend / corner**4}
    return Lens(model, fx, fy, cx, cy, tuple(known[name] for name in LENS_MODELS[model].coefficients))


def _fisheye(rng: np.random.Generator, model: str, width: int, height: int) -> Lens:
    half = np.radians(rng.uniform(*RANGES.fisheye_deg)) / 2
    _, _, cx, cy, _ = _matrix(rng, RANGES.perspective_deg, width, height)
    fx = float(0.5 * width / half)
    corner = half * float(np.hypot(1.0, height / width))
    # Each coefficient moves the corner by a few percent at the most, higher ones less.
    moves = rng.uniform(-1, 1, 4) * (0.1, 0.06, 0.03, 0.01)
    known = {f"k{i + 1}": float(move / corner ** (2 * (i + 1))) for i, move in enumerate(moves)}
    known["p1"], known["p2"] = _decentred(rng, fx, corner, width)
    known["sx1"], known["sx2"], known["sy1"], known["sy2"] = _prism(rng, fx, corner, width)
    distortion = tuple(known.get(name, 0.0) for name in LENS_MODELS[model].coefficients)
    return Lens(model, fx, float(fx * rng.uniform(*RANGES.aspect)), cx, cy, distortion)


def _rational(rng: np.random.Generator, bend: float, corner: float) -> tuple[float, ...]:
    """k1 to k6 that bend the corner so much: a numerator and a denominator that mostly cancel, as calibrations find."""
    above = rng.uniform((0.1, -0.05, -0.02), (0.5, 0.1, 0.02))
    below = above * rng.uniform(0.7, 1.3, 3)
    # The first coefficient of the denominator makes the corner's factor 1 + bend.
    below[0] = (1 + above.sum()) / (1 + bend) - 1 - below[1:].sum()
    powers = corner ** np.array((2, 4, 6))
    return tuple(float(k) for k in (*(above / powers), *(below / powers)))


def _decentred(rng: np.random.Generator, fx: float, corner: float, width: int) -> tuple[float, float]:
    """Tangential coefficients that move the corner by a drawn number of pixels."""
    length = rng.uniform(*RANGES.tangential_px) * width / 640 / fx / (3 * corner**2)
    return _pair(length * _direction(rng))


def _prism(rng: np.random.Generator, fx: float, corner: float, width: int) -> tuple[float, float, float, float]:
    """Thin-prism coefficients s1 to s4 that move the corner by a drawn number of pixels."""
    length = rng.uniform(*RANGES.tangential_px) * width / 640 / fx / corner**2
    first, share = length * _direction(rng), rng.uniform(-0.3, 0.3) / corner**2
    return float(first[0]), float(share * first[0]), float(first[1]), float(share * first[1])


def _direction(rng: np.random.Generator) -> FloatArray:
    angle = rng.uniform(-np.pi, np.pi)
    return np.array((np.cos(angle), np.sin(angle)))


def _pair(values: FloatArray) -> tuple[float, float]:
    return float(values[0]), float(values[1])
