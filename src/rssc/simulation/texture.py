"""A random texture, rich in corners at every scale.

The tile is a patchwork of rectangles plus octaves of band-limited noise, each pressed through a soft step: spots with
crisp edges, small ones upon large ones, everywhere alike and nowhere repeated within the tile. Looked up with the
footprint of a pixel (`rssc.kernels.image.texture`) it does not alias.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from rssc.kernels.image.texture import LEVELS, TILE


@dataclass(frozen=True)
class TextureRecipe:
    """What a texture is made of. Chosen by hand: corners to track at every distance."""

    patches: tuple[tuple[int, int], ...] = ((800, 40), (400, 60), (200, 200), (100, 400), (50, 800), (24, 1000))
    """Largest side in texels and number of the rectangles, small ones on top."""
    patch_range: float = 2.0
    """Values of rectangles are uniform from minus to plus this."""
    wavelengths: tuple[float, ...] = (4, 8, 16, 32, 64)
    """Of the noise, in texels."""
    bandwidth: float = 0.4
    """Standard deviation of each band, in octaves."""
    noise_share: float = 0.5
    """Amplitude of each band after its soft step."""
    crisp_wavelength: float = 12.0
    """The soft step is steeper in proportion above this wavelength: edges are about two texels wide in every band."""


RECIPE = TextureRecipe()
_SHAPE = (TILE, TILE)


@dataclass(frozen=True)
class Texture:
    """A periodic square of values from 0 to 1 with mean one half, and its coarser levels."""

    texels: NDArray[np.uint8]
    """(sum of the levels' sizes,) the levels one after the other, each row by row."""


@cache
def random_texture(seed: int = 0) -> Texture:
    """The texture of a seed. One serves all worlds: their faces begin anywhere in the tile."""
    return mip_mapped(texture_values(np.random.default_rng(seed), RECIPE))


def texture_values(rng: np.random.Generator, recipe: TextureRecipe) -> NDArray[np.float32]:
    """(TILE, TILE) values from 0 to 1."""
    total = _patches(rng, recipe)
    spectrum: NDArray[np.complex64] = scipy.fft.rfft2(rng.standard_normal(_SHAPE, dtype=np.float32), workers=2)
    for wavelength in recipe.wavelengths:
        noise = band(spectrum, wavelength, recipe.bandwidth)
        steepness = max(1.0, wavelength / recipe.crisp_wavelength)
        total += recipe.noise_share * np.tanh(steepness / noise.std() * noise)
    return (0.5 + 0.5 * np.tanh(0.5 * (total - total.mean()))).astype(np.float32)


def band(spectrum: NDArray[np.complex64], wavelength: float, bandwidth: float) -> NDArray[np.float32]:
    """(TILE, TILE) one band of noise, from the spectrum of white noise.

    Args:
        spectrum: (TILE, TILE / 2 + 1), by scipy.fft.rfft2.
        wavelength: In texels.
        bandwidth: Standard deviation in octaves.
    """
    weights: NDArray[np.float32] = np.exp(-0.5 * ((_octaves() + np.log2(wavelength)) / bandwidth) ** 2)
    return np.asarray(scipy.fft.irfft2(spectrum * weights, _SHAPE, workers=2), dtype=np.float32)


@cache
def _octaves() -> NDArray[np.float32]:
    """Binary logarithm of the frequencies of a spectrum, in cycles per texel."""
    frequency = np.hypot(scipy.fft.fftfreq(TILE)[:, None], scipy.fft.rfftfreq(TILE)[None, :])
    frequency[0, 0] = 1.0 / TILE
    return np.log2(frequency).astype(np.float32)


def mip_mapped(level: NDArray[np.float32]) -> Texture:
    """The texture of a (TILE, TILE) square of values from 0 to 1."""
    levels = [level]
    for _ in range(LEVELS - 1):
        level = 0.25 * (level[::2, ::2] + level[1::2, ::2] + level[::2, 1::2] + level[1::2, 1::2])
        levels.append(level)
    texels = np.concatenate([one.ravel() for one in levels])
    return Texture(np.round(texels * 255).astype(np.uint8))


def _patches(rng: np.random.Generator, recipe: TextureRecipe) -> NDArray[np.float32]:
    """Rectangles of all sizes and brightnesses: the corners of a man-made world."""
    out = np.zeros((TILE, TILE), np.float32)
    for side, count in recipe.patches:
        sizes = rng.integers(side // 2, side, (count, 2))
        corners = rng.integers(0, TILE, (count, 2))
        values = rng.uniform(-recipe.patch_range, recipe.patch_range, count)
        for (y, x), (height, width), value in zip(corners, sizes, values, strict=True):
            out[y : y + height, x : x + width] = value
    return out
