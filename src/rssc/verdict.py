"""Whether to believe a calibration: ok, weak or degenerate, with reasons in plain words."""

import numpy as np

from rssc.adjust.estimate import Estimate
from rssc.model.calibration import Status

_READOUT_WEAK = 0.03
_READOUT_LOST = 0.3
_FOCAL_WEAK = 0.01
_FOCAL_LOST = 0.2
_MAX_KNOT_SHIFT = 0.02
_MIN_OBSERVATIONS_PER_FRAME = 60


def judge(estimate: Estimate, registered: np.ndarray, board: bool = False) -> tuple[Status, tuple[str, ...]]:
    """Verdict and reasons.

    Args:
        estimate: What was found.
        registered: (n,) which frames could be placed.
        board: Whether a calibration target was filmed, not a scene.
    """
    advice = "show the board from more sides" if board else "walk around a scene that has depth"
    adjustment = estimate.adjustment
    camera, covariance, tracks = adjustment.scene.camera, estimate.covariance, adjustment.scene.tracks
    readout = covariance.sigma("readout_ratio")
    focal = max(covariance.sigma("fx") / camera.lens.fx, covariance.sigma("fy") / camera.lens.fy)
    lost, weak = [], []
    if not np.isfinite(readout) or readout > _READOUT_LOST:
        lost.append(
            "the readout time cannot be told from this clip: move the camera faster, with turns in all directions"
        )
    elif readout > _READOUT_WEAK:
        weak.append(f"the readout ratio is only known to +-{readout:.2f}: record faster motion")
    if not np.isfinite(focal) or focal > _FOCAL_LOST:
        lost.append(f"the focal length cannot be told from this clip: {advice}")
    elif focal > _FOCAL_WEAK:
        weak.append(f"the focal length is only known to +-{100 * focal:.1f} %: {advice}")
    if abs(camera.shutter.readout_ratio) > 1.1:
        weak.append(f"the readout ratio {camera.shutter.readout_ratio:.2f} is more than a frame, which no camera does")
    shifts = [
        abs(knot.adjustment.scene.camera.shutter.readout_ratio - camera.shutter.readout_ratio)
        for knot in estimate.knots[1:]  # the first is the answer itself
        if knot.adjustment.options.knot_spacing <= 0.8
    ]
    if shifts and max(shifts) > max(_MAX_KNOT_SHIFT, 3 * readout):
        weak.append(f"the readout ratio moves by {max(shifts):.3f} with the smoothness assumed of the motion")
    if not adjustment.summary.converged:
        weak.append(f"the solver stopped early: {adjustment.summary.reason}")
    if registered.mean() < 0.8:
        weak.append(f"only {int(registered.sum())} of {len(registered)} frames could be placed")
    if not board and len(tracks) / tracks.frame_count < _MIN_OBSERVATIONS_PER_FRAME:
        weak.append(f"only {len(tracks) / tracks.frame_count:.0f} points a frame could be followed: film more texture")
    if lost:
        return "degenerate", (*lost, *weak)
    return ("weak" if weak else "ok"), tuple(weak)
