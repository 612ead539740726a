"""Which lenses may have taken a clip, from pairs of frames alone.

Every pair of frames with a wide baseline gets an essential matrix of its own, under a grid of lenses. The epipolar cost
has a sharp minimum at the right family and focal length, even though the rolling shutter is ignored.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rssc.errors import InputError
from rssc.model.arrays import FloatArray
from rssc.model.lens import LENS_MODELS, Family, Lens
from rssc.runtime.constants import Constants
from rssc.start.epipolar import epipolar_cost
from rssc.start.keyframes import Pair

MODEL_OF: dict[Family, str] = {"perspective": "radial", "fisheye": "fisheye"}


@dataclass(frozen=True)
class LensSearchConstants(Constants):
    """Tuned numbers of the search, chosen by hand."""

    focals: tuple[float, ...] = (0.3, 0.42, 0.6, 0.85, 1.2, 1.7)
    """Focal lengths to try, in longer image sides: from a wide fisheye to a mild telephoto lens, each 1.4 times the one
    before, which is fine enough for the cost to have one minimum."""
    perspective_distortions: tuple[float, ...] = (0.0, -0.2)
    """First distortion coefficients of a perspective lens to try."""
    fisheye_distortions: tuple[float, ...] = (0.0,)
    """The same of a fisheye. An ideal one is a perspective lens with k1 = -1/3, to third order."""
    usual_focal: float = 0.8
    """Focal length of most cameras, in longer image sides."""
    preference: float = 0.02
    """Share that is added to the cost for every factor of two from the usual focal length: decides only where the
    camera does not turn, so that its focal length is unobservable."""


LENS_SEARCH = LensSearchConstants()


@dataclass(frozen=True)
class LensGuess:
    """A lens, with square pixels and its axis in the middle of the image."""

    lens: Lens
    cost: float
    """Epipolar cost in pixels."""


def families_of(lens: Family | None) -> tuple[Family, ...]:
    """The families to try for what a user asks for."""
    if lens is None:
        return tuple(MODEL_OF)
    if lens not in MODEL_OF:
        raise InputError(f"lens is {lens!r}; expected one of {', '.join(MODEL_OF)}, or none to try both.")
    return (lens,)


def first_distortions(family: Family) -> tuple[float, ...]:
    """First distortion coefficients of a family to try."""
    return LENS_SEARCH.fisheye_distortions if family == "fisheye" else LENS_SEARCH.perspective_distortions


def centred_lens(model: str, focal: float, distortion: float, width: int, height: int) -> Lens:
    """A radial or fisheye lens with one distortion coefficient."""
    rest = (0.0,) * (len(LENS_MODELS[model].coefficients) - 1)
    return Lens(model, focal, focal, (width - 1) / 2, (height - 1) / 2, (distortion, *rest))


def rank_lenses(
    pairs: Sequence[Pair],
    width: int,
    height: int,
    families: Sequence[Family],
    focal_hints: Sequence[float],
    max_error: float,
) -> list[LensGuess]:
    """The local minima of the epipolar cost over the grid of lenses, best first.

    Args:
        pairs: Wide pairs of frames.
        width: Of the images in pixels.
        height: Of the images in pixels.
        families: Which to try.
        focal_hints: Focal lengths in pixels to try besides those of the grid.
        max_error: Largest error of a match in pixels.
    """
    side = max(width, height)
    focals = np.unique([*(f * side for f in LENS_SEARCH.focals), *focal_hints])
    penalties = 1 + LENS_SEARCH.preference * np.abs(np.log2(focals / (LENS_SEARCH.usual_focal * side)))
    minima: list[LensGuess] = []
    for family in families:
        for distortion in first_distortions(family):
            lenses = [centred_lens(MODEL_OF[family], f, distortion, width, height) for f in focals]
            costs = penalties * [epipolar_cost(pairs, lens, width, height, max_error) for lens in lenses]
            for i, cost in enumerate(costs):
                if cost <= costs[max(i - 1, 0) : i + 2].min():
                    focal = _vertex(np.log(focals), costs, i)
                    lens = centred_lens(MODEL_OF[family], focal, distortion, width, height)
                    minima.append(LensGuess(lens, float(cost)))
    return sorted(minima, key=lambda guess: guess.cost)


def _vertex(log_focals: FloatArray, costs: FloatArray, i: int) -> float:
    """Focal length at the vertex of the parabola through a minimum and its two neighbours."""
    if not 0 < i < len(costs) - 1:
        return float(np.exp(log_focals[i]))
    near = slice(i - 1, i + 2)
    curvature, slope, _ = np.polyfit(log_focals[near], costs[near], 2)
    vertex = -slope / (2 * curvature) if curvature > 0 else log_focals[i]
    return float(np.exp(np.clip(vertex, log_focals[i - 1], log_focals[i + 1])))
