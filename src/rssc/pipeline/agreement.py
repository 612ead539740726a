"""Whether parts of the footage agree: stretches, windows and the whole, and whether single frames decide alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rssc.inference.uncertainty import parameter_values
from rssc.model.calibration import FrameShare
from rssc.model.camera import Camera
from rssc.model.finding import Finding
from rssc.pipeline.several import Combined
from rssc.pipeline.stretch import StretchResult
from rssc.runtime.constants import Constants


@dataclass(frozen=True)
class AgreementConstants(Constants):
    """Limits above which parts of the footage disagree."""

    unlikely: float = 1e-3
    """Probability below which a disagreement is reported: one false alarm in a thousand."""
    focal_contradicts: float = 0.05
    """Scatter of the focal lengths of stretches beyond their bars, over their size, from which on they have no mean:
    half of what makes a focal length lost. Chosen by hand; four stretches of a Kinect scatter by 0.8 %."""
    readout_contradicts: float = 0.1
    """The same of the readout ratios: half of what makes a readout lost."""
    focal_matters: float = 0.005
    """How far windows are apart, over the focal length, from which on it makes a result weak where they disagree: half
    of the sigma that does. Less is in the error bars, and no reason to film again."""
    readout_matters: float = 0.005
    """The same of readout ratios."""
    centre_matters: float = 0.01
    """The same of principal points, over the image's width."""
    frame_named: float = 0.2
    """Share of a frame in what is known about the readout above which it is named. Chosen by hand: no frame of clips
    with readouts of 0.44 to 0.78 had more than 0.08."""
    frames_doubted: float = 0.5
    """Share of the named frames together above which the result is weak: the others could not contradict them."""


AGREEMENT = AgreementConstants()


def find_contradictions(combined: Combined) -> list[Finding]:
    """Findings for degenerate: stretches that are not of one camera, or not of one that the model describes.

    Two conditions, both for the same parameter. Significance: the estimates differ more than chance allows (one in a
    thousand, corrected for three parameters) even if all bars are widened by an effect between stretches as large as
    real cameras show (`COMBINE.plausible`). Size: the scatter beyond the bars is so large that no mean of them is an
    estimate of anything (5 % of the focal length, a tenth of a frame interval of readout). Differences that are
    significant but small are combined with wider bars, and reported as weak; large but insignificant ones are noise.
    """
    found = combined.combination
    if found is None:
        return []
    names, lens = combined.covariance.parameters, combined.camera.lens
    limits = {
        "fx": AGREEMENT.focal_contradicts * lens.fx, "fy": AGREEMENT.focal_contradicts * lens.fy,
        "readout_ratio": AGREEMENT.readout_contradicts,
    }  # fmt: skip
    reasons: list[str] = []
    for i, name in enumerate(names):
        unlikely = found.contradiction[i] * len(limits) < AGREEMENT.unlikely
        if name in limits and unlikely and found.scatter[i] > limits[name]:
            cameras = [one.inference.adjustment.scene.camera for one in combined.results]
            reasons.append(f"stretches contradict each other: {_word(name)} {_listed(name, cameras)}")
    return [Finding("contradiction", "; ".join(reasons))] if reasons else []


def find_disagreements(combined: Combined) -> list[Finding]:
    """Findings for weak: stretches that differ beyond their bars, or windows from each other or from the whole."""
    if combined.combination is not None:
        consistency, name = combined.combination.agreement()
        if consistency >= AGREEMENT.unlikely:
            return []
        values = _listed(name, [one.inference.adjustment.scene.camera for one in combined.results])
        return [Finding("disagreement", f"stretches disagree by more than their error bars ({_word(name)} {values})")]
    inference = combined.results[0].inference
    uncertainty = inference.uncertainty
    if uncertainty.consistency >= AGREEMENT.unlikely:
        return []
    name, camera = uncertainty.disagreement, inference.adjustment.scene.camera
    windows = [window.adjustment.scene.camera for window in uncertainty.windows]
    matters = {
        "fx": AGREEMENT.focal_matters * camera.lens.fx, "fy": AGREEMENT.focal_matters * camera.lens.fy,
        "cx": AGREEMENT.centre_matters * camera.width, "cy": AGREEMENT.centre_matters * camera.width,
        "readout_ratio": AGREEMENT.readout_matters,
    }  # fmt: skip
    values = [parameter_values(one, (name,))[0] for one in (*windows, camera)]
    if np.ptp(values) < matters.get(name, 0.0):
        return []
    parts, whole = _listed(name, windows), _listed(name, [camera])
    words = f"windows of the clip disagree by more than their error bars ({_word(name)} {parts}, {whole} for the whole)"
    return [Finding("disagreement", words)]


def find_readout_frames(results: Sequence[StretchResult]) -> tuple[FrameShare, ...]:
    """Of each stretch the frame that tells most of the readout, and others above the limit; shares in all stretches."""
    informations = np.array([one.inference.covariance.sigma("readout_ratio") for one in results])
    informations = 1.0 / np.maximum(informations, 1e-150) ** 2
    found: list[FrameShare] = []
    for one, information in zip(results, informations, strict=True):
        if information == 0 or not one.inference.uncertainty.frame_shares:
            continue
        shares = np.array(one.inference.uncertainty.frame_shares) * float(information / informations.sum())
        for i in np.flatnonzero((shares > AGREEMENT.frame_named) | (shares == shares.max())).tolist():
            number = int(one.stretch.frame_numbers[i])
            found.append(FrameShare(Path(one.stretch.source).name, number, float(shares[i])))
    return tuple(found)


def name_frames(frames: Sequence[FrameShare]) -> tuple[list[str], list[str]]:
    """Names frames that supply much of what is known about the readout: reasons where it is most of it, else notes."""
    named = [one for one in frames if one.share > AGREEMENT.frame_named]
    if not named:
        return [], []
    several = len({one.source for one in frames}) > 1
    numbers = [f"{one.frame} of {one.source}" if several else str(one.frame) for one in named]
    which = f"frame{'s' * (len(named) > 1)} {_joined(numbers)}"
    shares = _joined([f"{100 * one.share:.0f} %" for one in named])
    words = f"{which} alone {'supply' if len(named) > 1 else 'supplies'} {shares} of what is known about the readout"
    if sum(one.share for one in named) > AGREEMENT.frames_doubted:
        return [f"{words}: the rest of the clip could not contradict it; record a longer clip"], []
    return [], [f"{words}."]


def _word(name: str) -> str:
    return name.replace("_", " ")


def _listed(name: str, cameras: Sequence[Camera]) -> str:
    digits = 3 if name == "readout_ratio" else 0
    values = [f"{parameter_values(camera, (name,))[0]:.{digits}f}" for camera in cameras]
    return _joined(values)


def _joined(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
