"""A random texture, rich in corners at every scale, as a mip-mapped tile.

The tile is a patchwork of rectangles plus octaves of band-limited noise, each pressed through a soft step: spots with
crisp edges, small ones upon large ones, everywhere alike and nowhere repeated within the tile. Level k of the
pyramid averages blocks of 2^k x 2^k texels; looked up with the footprint of a pixel it does not alias.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy.fft

from rssc.kernels.image.texture import LEVELS, TILE

_OCTAVES = (4, 8, 16, 32, 64)
"""Wavelengths of the noise in texels."""
_PATCHES = ((800, 40), (400, 60), (200, 200), (100, 400), (50, 800), (24, 1000))
"""Largest side in texels and number of the rectangles."""


@dataclass(frozen=True)
class Texture:
    """A periodic square of values from 0 to 1 with mean one half, and its coarser levels."""

    texels: np.ndarray
    """(sum of the levels' sizes,) uint8: the levels one after the other, each row by row."""


@cache
def random_texture(seed: int = 0) -> Texture:
    """The texture of a seed. One serves all worlds: their faces begin anywhere in the tile."""
    rng = np.random.default_rng(seed)
    shape = (TILE, TILE)
    frequency = np.hypot(scipy.fft.fftfreq(TILE)[:, None], scipy.fft.rfftfreq(TILE)[None, :])
    frequency[0, 0] = 1.0 / TILE
    octave = np.log2(frequency).astype(np.float32)
    total = _patches(rng)
    spectrum = scipy.fft.rfft2(rng.standard_normal(shape, dtype=np.float32), workers=2)
    for wavelength in _OCTAVES:
        band = np.exp(-0.5 * ((octave + np.log2(wavelength)) / 0.4) ** 2)
        noise = np.asarray(scipy.fft.irfft2(spectrum * band, shape, workers=2))
        # The steeper the step, the crisper the edge: about two texels wide at every wavelength.
        total += 0.5 * np.tanh(max(1.0, wavelength / 12) / noise.std() * noise)
    return mip_mapped((0.5 + 0.5 * np.tanh(0.5 * (total - total.mean()))).astype(np.float32))


def mip_mapped(level: np.ndarray) -> Texture:
    """The texture of a (TILE, TILE) square of values from 0 to 1."""
    levels = [level]
    for _ in range(LEVELS - 1):
        level = 0.25 * (level[::2, ::2] + level[1::2, ::2] + level[::2, 1::2] + level[1::2, 1::2])
        levels.append(level)
    texels = np.concatenate([one.ravel() for one in levels])
    return Texture(np.round(texels * 255).astype(np.uint8))


def _patches(rng: np.random.Generator) -> np.ndarray:
    """Rectangles of all sizes and brightnesses, small ones on top: the corners of a man-made world."""
    out = np.zeros((TILE, TILE), np.float32)
    for side, count in _PATCHES:
        sizes = rng.integers(side // 2, side, (count, 2))
        corners = rng.integers(0, TILE, (count, 2))
        for (y, x), (height, width), value in zip(corners, sizes, rng.uniform(-2, 2, count), strict=True):
            out[y : y + height, x : x + width] = value
    return out
