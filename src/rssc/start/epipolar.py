"""How well a lens explains pairs of frames, before anything is reconstructed."""

from collections.abc import Sequence

import numpy as np

from rssc.model import Lens
from rssc.model.arrays import FloatArray
from rssc.runtime.threads import balanced_chunks, run_chunks, thread_count
from rssc.start.colmap import HALF_PIXEL, camera_of, quiet_pycolmap, ransac_options
from rssc.start.keyframes import Pair


def epipolar_cost(pairs: Sequence[Pair], lens: Lens, width: int, height: int, max_error: float) -> float:
    """Root mean square epipolar error, in pixels, of pairs of frames under a lens and one rigid motion per pair.

    Every pair gets its own essential matrix E. The cost of a match with rays a, b is its first-order distance to the
    epipolar constraint in pixels (Sampson), and at most `max_error`:

        (b^T E a)^2 / (|A^T E^T b|^2 + |B^T E a|^2)        A, B: derivatives of the rays in their pixels

    Args:
        pairs: Matches of pairs of frames.
        lens: The lens to rate.
        width: Of the images in pixels.
        height: Of the images in pixels.
        max_error: Largest error of a match in pixels; also the limit of the RANSAC that finds E.
    """
    colmap = quiet_pycolmap()
    camera = camera_of(lens, width, height)
    options = ransac_options(max_error)
    costs = np.zeros(len(pairs))

    def solve(_: int, begin: int, end: int) -> None:
        for i in range(begin, end):
            pair = pairs[i]
            costs[i] = max_error**2
            a, d_a = _rays(lens, pair.first_pixels)
            b, d_b = _rays(lens, pair.second_pixels)
            if not (np.isfinite(d_a).all() and np.isfinite(d_b).all()):
                continue
            found = colmap.estimate_essential_matrix(
                pair.first_pixels + HALF_PIXEL, pair.second_pixels + HALF_PIXEL, camera, camera, options
            )
            if found is None:
                continue
            e_a, e_b = a @ found["E"].T, b @ found["E"]
            slope = np.einsum("nij,nj->ni", d_a, e_b), np.einsum("nij,nj->ni", d_b, e_a)
            distance = np.sum(b * e_a, axis=1) ** 2 / np.maximum(np.sum(np.square(slope), axis=(0, 2)), 1e-20)
            costs[i] = np.minimum(distance, max_error**2).mean()

    run_chunks(solve, balanced_chunks(np.arange(len(pairs) + 1), thread_count()))
    return float(np.sqrt(costs.mean()))


def _rays(lens: Lens, pixels: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(n, 3) unit rays of (n, 2) pixels and their (n, 2, 3) derivatives; NaN where the lens has no inverse."""
    steps = np.array([[0.5, 0.0], [0.0, 0.5]])
    derivatives = [lens.unproject(pixels + step) - lens.unproject(pixels - step) for step in steps]
    return lens.unproject(pixels), np.stack(derivatives, axis=1)
