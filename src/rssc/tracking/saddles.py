"""Corners of a printed board: saddles of the image, placed by a fit of two crossing edges."""

from dataclasses import dataclass

import cv2
import numpy as np

from rssc.kernels.image.saddle import fit_saddles
from rssc.model.arrays import FloatArray, Image
from rssc.runtime.constants import Constants


@dataclass(frozen=True)
class SaddleConstants(Constants):
    """Tuned numbers of the fit, all chosen by hand."""

    min_window_px: int = 2
    """Least half size of the window of a fit: a smaller one does not fix eight parameters."""
    max_window_px: int = 7
    """Largest half size: beyond it the edges of a distorted board are no longer straight."""
    first_iterations: int = 20
    """Of OpenCV's `cornerSubPix`, which starts the fit."""
    first_epsilon_px: float = 0.03
    """Where `cornerSubPix` stops."""
    max_misfit: float = 0.25
    """Root mean square residual of a fit over the contrast, above which there is no saddle."""


SADDLES = SaddleConstants()


def place_on_saddles(image: Image, corners: FloatArray, windows: FloatArray) -> FloatArray:
    """Corners moved to the saddles of the image; NaN for those too close to its border, or where there is none.

    Args:
        image: (height, width) grey values.
        corners: (n, 2) pixels to start from.
        windows: (n,) distance from a corner in which nothing else is printed, in pixels.
    """
    halves = np.clip(windows, SADDLES.min_window_px, SADDLES.max_window_px).astype(np.int64)
    half = int(halves.min())
    start = np.array(corners, np.float32, order="C").reshape(-1, 1, 2)
    kind = cv2.TERM_CRITERIA_COUNT + cv2.TERM_CRITERIA_EPS
    stop = (kind, SADDLES.first_iterations, SADDLES.first_epsilon_px)
    start = cv2.cornerSubPix(image, start, (half, half), (-1, -1), stop)[:, 0].astype(np.float64)
    out, misfits = np.empty_like(start), np.empty(len(start))
    fit_saddles(image, start, halves, 0, len(start), out, misfits)
    out[~(misfits < SADDLES.max_misfit)] = np.nan
    return out
