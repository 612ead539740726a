"""How much one picture is turned against another, from the pictures alone: corners, optical flow, a rotation."""

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from rssc.model.lens import Lens

_LEAST_CORNERS = 30
_MARGIN_PX = 31
_STEPS = 4
_FAR_PX = 1.0
_RETURN_PX = 0.2

Grey = NDArray[np.uint8]


def residual_degrees(image: Grey, truth: Grey, seen: NDArray[np.bool_], lens: Lens) -> float:
    """The angle of the rotation that best takes a picture to the true one; not a number where they share too little.

    Args:
        image: (height, width) grey.
        truth: (height, width) grey, what it should show.
        seen: (height, width) where the picture shows anything.
        lens: Of both.
    """
    inside = cv2.erode(seen.astype(np.uint8), np.ones((_MARGIN_PX, _MARGIN_PX), np.uint8), borderValue=0)
    corners = cv2.goodFeaturesToTrack(truth, 400, 0.02, 7, mask=inside)
    start = np.asarray(corners, np.float32)  # without dimensions where there are none
    if start.size < 2 * _LEAST_CORNERS:
        return float("nan")
    there = _followed(truth, image, start)
    back = _followed(image, truth, there)
    same = np.linalg.norm(back - start, axis=2).ravel() < _RETURN_PX
    if same.sum() < _LEAST_CORNERS:
        return float("nan")
    before, after = (lens.unproject(points.reshape(-1, 2)[same]) for points in (start, there))
    weights = np.ones(len(before))
    turn = Rotation.identity()
    for _ in range(_STEPS):
        turn, _ = Rotation.align_vectors(after, before, weights)
        off = np.linalg.norm(turn.apply(before) - after, axis=1) * lens.fx
        weights = 1 / (1 + (off / min(_FAR_PX, 3 * float(np.median(off)) + 1e-9)) ** 2)
    return float(np.degrees(turn.magnitude()))


def _followed(first: Grey, second: Grey, points: NDArray[np.float32]) -> NDArray[np.float32]:
    """(n, 1, 2) places in the second picture of points in the first; not numbers where they are lost."""
    there, found, _ = cv2.calcOpticalFlowPyrLK(first, second, points, points.copy(), winSize=(21, 21), maxLevel=2)
    lost = np.asarray(found).ravel() == 0
    out = np.asarray(there, np.float32).reshape(-1, 1, 2).copy()
    out[lost] = np.nan
    return out
