"""Image flow: where tracks of one frame are about to be found in the next, and which of them move like no other."""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from rssc.model.arrays import FloatArray, Image
from rssc.runtime.constants import Constants


@dataclass(frozen=True)
class FlowConstants(Constants):
    """Tuned numbers of the flow, all chosen by hand: it only has to give a start within a pixel or two."""

    halving_size_px: int = 800
    """Flow of images with a longer side than this is computed at half size: faster, and it reaches twice as far."""
    window_px: int = 15
    """Side of the window of Lucas-Kanade."""
    levels: int = 4
    """Levels of the pyramid above the image; each doubles how far flow reaches."""
    iterations: int = 15
    """At most so many iterations per level."""
    epsilon_px: float = 0.03
    """Iterations stop at steps shorter than this."""
    guides: int = 5
    """Neighbours whose median motion starts a track that flow has lost; more of them lie further away."""
    agreement_px: float = 0.7
    """Two neighbours agree if they move alike to within this, plus a share of their distance ..."""
    agreement_per_px: float = 0.04
    """... which allows for what the warp of a patch does not explain of its surroundings."""


FLOW = FlowConstants()


def flow_scale(image: Image) -> int:
    """By which factor images of this size are shrunk for the flow: 1 or 2."""
    return 2 if max(image.shape) > FLOW.halving_size_px else 1


def shrunk(image: Image, scale: int) -> Image:
    """The image at the scale of the flow."""
    return np.asarray(cv2.pyrDown(image), np.uint8) if scale == 2 else image


def predict_by_flow(first: Image, second: Image, pixels: FloatArray, scale: int, max_error: float) -> FloatArray:
    """(n, 2) pixels in the second image; NaN where neither a pixel nor its neighbours lead there and back.

    Args:
        first: (height, width) grey values at the scale of the flow.
        second: The next image, at the same scale.
        pixels: (n, 2) pixels of the first image at full size.
        scale: From `flow_scale`.
        max_error: How far forward and backward flow may differ, in pixels of the full size.
    """
    # Pixel centres at integers: pyrDown keeps the top-left pixel, so positions are divided by the scale.
    here = (pixels / scale).astype(np.float32)
    there, found = _lucas_kanade(first, second, here)
    back, found_back = _lucas_kanade(second, first, there)
    error = np.linalg.norm(back - here, axis=1) * scale
    good = found & found_back & (error <= max_error)
    start: FloatArray = there.astype(np.float64) * scale
    lost = np.flatnonzero(~good)
    start[lost] = np.nan
    if np.count_nonzero(good) >= FLOW.guides and len(lost):
        # Weak corners get lost in a fast pan; search for them where their neighbours went.
        _, guides = KDTree(pixels[good]).query(pixels[lost], k=FLOW.guides)
        start[lost] = pixels[lost] + np.median((start[good] - pixels[good])[guides], axis=1)
    return start


def moves_like_neighbours(before: FloatArray, now: FloatArray, neighbours: int, supporters: int) -> NDArray[np.bool_]:
    """(n,) which tracks move from frame to frame like some of their neighbours.

    The warp of a patch predicts how its surroundings move: a neighbour at the offset d should be at G d, with G the
    warp between the two frames. Warps of weak patches are uncertain, so plain translation counts as well.
    Surfaces at other depths move differently, so a few neighbours that agree suffice.

    Args:
        before: (n, 6) pixels and warps in the previous frame.
        now: (n, 6) pixels and warps in this frame.
        neighbours: Number of neighbours that a track is compared with.
        supporters: Number of them that have to agree.
    """
    if len(before) <= neighbours:
        return np.ones(len(before), dtype=bool)
    distances, indices = map(np.asarray, KDTree(before[:, :2]).query(before[:, :2], k=neighbours + 1))
    growth = now[:, 2:].reshape(-1, 2, 2) @ np.linalg.inv(before[:, 2:].reshape(-1, 2, 2))
    offsets = before[indices[:, 1:], :2] - before[:, None, :2]
    actual = now[indices[:, 1:], :2] - now[:, None, :2]
    warped = np.linalg.norm(actual - np.einsum("nij,nkj->nki", growth, offsets), axis=2)
    moved = np.linalg.norm(actual - offsets, axis=2)
    agree = np.minimum(warped, moved) <= FLOW.agreement_px + FLOW.agreement_per_px * distances[:, 1:]
    return np.count_nonzero(agree, axis=1) >= supporters


def _lucas_kanade(
    first: Image, second: Image, pixels: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """(n, 2) pixels of the second image that show what (n, 2) pixels of the first do, and (n,) which were found."""
    there, found, _ = cv2.calcOpticalFlowPyrLK(
        first,
        second,
        pixels,
        pixels.copy(),
        winSize=(FLOW.window_px, FLOW.window_px),
        maxLevel=FLOW.levels,
        criteria=(cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, FLOW.iterations, FLOW.epsilon_px),
    )
    return np.asarray(there, np.float32), np.asarray(found).ravel() > 0
