"""What an adjusted camera and its motion tell about why the model may be wrong, the most specific first."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rssc.inference.departures import Departure
from rssc.inference.infer import Inference
from rssc.model.finding import Finding
from rssc.pipeline.motion_summary import MotionSummary
from rssc.runtime.constants import Constants
from rssc.solver.noise import noise_level


@dataclass(frozen=True)
class CauseConstants(Constants):
    """Limits from which on a cause is named."""

    stepping: float = -0.6
    """Correlation of `inference.motion.alternation` with two knots per frame below which frames may be warped one by
    one. On simulated tracks (seeds 44 and 45) stabilisers that turn frames by a tenth of the fast rotation or more have
    -0.61 to -0.97, jitter of the frame times -0.55."""
    stepping_px: float = 0.5
    """Its amount from which on they are. On the same tracks stabilisers of a third and more have 0.7 to 16 px; a
    rendered clip of a rigid camera, whose compression moves the picture from frame to frame, 0.28."""
    followed: float = 0.1
    """Correlation with finer knots above which they follow the motion, so that the camera vibrates and frames are what
    the sensor read. Simulated vibration of 10 to 24 Hz at 30 frames per second has 0.2 to 0.9, stabilisers -0.6 to
    0."""
    vibrating: float = -0.3
    """The same below which finer knots do not follow it either. Jitter of the frame times of 0.05 and more has -0.3 to
    -0.5."""
    resolved: float = 0.005
    """Sigma of the readout ratio up to which vibration is named: above it the readout is hardly known anyway."""
    poor_fit: float = 6.0
    """Residuals over the tracks' uncertainty, above which no rolling-shutter camera explains them. Chosen by hand."""
    steadied: float = 0.5
    """Fast rotation over fast translation, as they move the image, below which no hand holds the camera. Real hand-held
    clips have 4 to 11, drawn motions 0.7 (a drone) to 20, a stabilised action camera 0.35."""
    steadied_rad: float = 5e-4
    """Fast rotation from frame to frame below which that is said: a third of a pixel at 640. Chosen by hand; real
    hand-held clips have 7e-3 and more."""
    longest_readout_s: float = 0.05
    """Longest readout that video has: 20 frames per second, which webcams film at, leave 50 ms."""
    strong_compression: float = 0.09
    """Bits per pixel below which a video is compressed strongly: x264 at a CRF of 23 and more for clips of 640 x 480.
    Phones and action cameras write 0.2 and more. On the seeds 10000 to 10039 of `python -m benchmarks coverage --fit`
    all clips below it were doubted, with errors of up to 7 sigma, and all above it were ok."""
    compressed_px: float = 0.1
    """Noise of the tracks from which on that shows. There it was 0.13 and more; rendered frames have 0.005 to 0.06."""
    compressed_departure: float = 2.0
    """Amount of a departure, over the noise of the tracks, up to which compression may be all of it. There it was 0.3
    to 1.6."""
    said_change: float = 1e-4
    """Change of the focal length, as a share of it, below which it is put right without a word: a rendered clip of a
    rigid camera had less than half of it."""


CAUSE_LIMITS = CauseConstants()


def find_wrong_models(inference: Inference, board: bool = False, bits_per_pixel: float | None = None) -> list[Finding]:
    """Why the model is not that of the camera.

    Args:
        inference: What was found.
        board: Whether a calibration target was filmed, not a scene.
        bits_per_pixel: Of a compressed video, see `FrameSource`.
    """
    compressed = _find_compression(inference, bits_per_pixel)
    departures = [one for one in inference.departures if not (compressed and _may_be_compression(inference, one))]
    moves = _of_departures(departures) or _warped_frames(inference) or _unfollowed_motion(inference)
    return [*compressed, *moves, *([] if board else _misfit(inference))]


def find_suspected(inference: Inference) -> list[Finding]:
    """What may have widened the error bars: not certain enough to be held against footage that has narrow ones."""
    return _of_departures(inference.suspected)


def find_slight(inference: Inference) -> list[Finding]:
    """What is certain, but too small to be held against footage: only said."""
    found = [
        _of_departure(one, 1.0)
        for one in inference.slight
        if one.cause == "focus_breathing" and one.amount >= CAUSE_LIMITS.said_change
    ]
    return [replace(one, words=f"{one.words}: too little to do harm, and put right.") for one in found]


def find_steadied(motions: Sequence[MotionSummary]) -> list[Finding]:
    """Whether in most stretches the camera turns less than any hand lets it while it is carried.

    That is why a readout is uncertain then.
    """
    steady = [
        one
        for one in motions
        if one.fast_turn < min(CAUSE_LIMITS.steadied_rad, CAUSE_LIMITS.steadied * one.fast_travel)
    ]
    # A turn that is meant looks like a hand's.
    if 2 * len(steady) <= len(motions):
        return []
    turn, travel = (1e3 * max(getattr(one, name) for one in steady) for name in ("fast_turn", "fast_travel"))
    words = (
        f"the camera is carried and hardly turns (the picture jolts by {turn:.2f} mrad from rotation, {travel:.2f} "
        "from movement), so that it was stabilised, and frames are not what the sensor read, or on a gimbal"
    )
    return [Finding("steadied", words, CAUSE_LIMITS.steadied * travel / max(turn, 1e-300))]


def find_impossible_readout(readout_s: float, sigma_s: float) -> list[Finding]:
    """Whether a readout is longer than that of any camera that films."""
    least = abs(readout_s) - 2 * sigma_s
    if not least > CAUSE_LIMITS.longest_readout_s:
        return []
    words = (
        f"a readout of {1e3 * abs(readout_s):.0f} ms is longer than that of any camera that films, so that the file "
        "plays slower than it was recorded, as slow motion does"
    )
    return [Finding("slow_motion", words, least / CAUSE_LIMITS.longest_readout_s)]


def _find_compression(inference: Inference, bits_per_pixel: float | None) -> list[Finding]:
    """Whether compression shows in the tracks: blocks are copied from other frames, and move like these."""
    noise = _noise_px(inference)
    if (
        bits_per_pixel is None
        or bits_per_pixel >= CAUSE_LIMITS.strong_compression
        or noise < CAUSE_LIMITS.compressed_px
    ):
        return []
    words = (
        f"the video is compressed to {bits_per_pixel:.2f} bits per pixel, so that parts of its frames are copies of "
        f"other frames: points are off by about {noise:.1f} px, many alike"
    )
    return [Finding("compression", words, CAUSE_LIMITS.strong_compression / bits_per_pixel)]


def _may_be_compression(inference: Inference, departure: Departure) -> bool:
    """Whether strong compression may be all that a departure of a camera from the model is."""
    small = departure.amount < CAUSE_LIMITS.compressed_departure * _noise_px(inference)
    return small and departure.cause in ("electronic_stabilisation", "optical_stabilisation")


def _noise_px(inference: Inference) -> float:
    return float(noise_level(np.linalg.norm(inference.adjustment.residuals, axis=1)))


def _in_pixels(amount: float) -> str:
    return f"{amount:.2g} px" if amount < 1 else f"{amount:.1f} px"


def _of_departures(departures: Sequence[Departure]) -> list[Finding]:
    """In their order: each as strong as the strongest after it, which may only be so certain beside it."""
    strengths = [float(-np.log10(max(one.probability, 1e-300))) for one in departures]
    return [_of_departure(one, max(strengths[i:])) for i, one in enumerate(departures)]


def _of_departure(departure: Departure, strength: float) -> Finding:
    words = {
        "optical_stabilisation": (
            f"the principal point moves with the camera by about {_in_pixels(departure.amount)}, as with optical "
            "stabilisation, or where frames are shifted, which also changes the focal length found"
        ),
        "electronic_stabilisation": (
            f"frames move within their readout by about {_in_pixels(departure.amount)} unlike they move from one to "
            "the next, as with electronic stabilisation"
        ),
        "focus_breathing": (
            f"the focal length changes by about {100 * departure.amount:.2f} % within the clip, as with autofocus or a "
            "zoom"
        ),
        "zoom": f"the focal length changes by about {100 * departure.amount:.0f} % within the clip, as with a zoom",
    }
    return Finding(departure.cause, words[departure.cause], strength)


def _warped_frames(inference: Inference) -> list[Finding]:
    """Frames that go to and fro, which finer knots do not follow as a motion."""
    correlation, amount_px = inference.alternation
    followed = inference.resolved.correlation > CAUSE_LIMITS.followed
    if correlation > CAUSE_LIMITS.stepping or amount_px < CAUSE_LIMITS.stepping_px or followed:
        return []
    words = (
        f"frames are warped one by one, by about {amount_px:.1f} px beside their neighbours, as with electronic "
        "stabilisation"
    )
    return [Finding("electronic_stabilisation", words, amount_px / CAUSE_LIMITS.stepping_px)]


def _unfollowed_motion(inference: Inference) -> list[Finding]:
    """Motion that is fast, so that finer knots were tried, and that these do not follow either."""
    correlation, tried = inference.resolved.correlation, inference.resolved != inference.alternation
    told = inference.covariance.sigma("readout_ratio") <= CAUSE_LIMITS.resolved
    if not tried or correlation > CAUSE_LIMITS.vibrating or not told:
        return []
    words = (
        "the camera vibrates faster than its frames resolve, or they were taken unevenly, and the readout may be "
        "wrong by more than its error bar"
    )
    return [Finding("vibration", words, correlation / CAUSE_LIMITS.vibrating)]


def _misfit(inference: Inference) -> list[Finding]:
    """Residuals that no rolling-shutter camera explains."""
    adjustment = inference.adjustment
    residuals, tracks = adjustment.residuals, adjustment.scene.tracks
    # The rectified residuals of ce do not correspond to observations.
    sigmas = tracks.sigmas if len(residuals) == len(tracks) else np.median(tracks.sigmas)
    misfit = noise_level(np.linalg.norm(residuals, axis=1) / sigmas)
    if misfit <= CAUSE_LIMITS.poor_fit:
        return []
    words = f"residuals are {misfit:.0f} times the uncertainty of the tracks: stabilised footage, or a scene that moves"
    return [Finding("misfit", words, misfit / CAUSE_LIMITS.poor_fit)]
