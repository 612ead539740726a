"""Whether to believe a calibration: ok, weak or degenerate, with reasons and advice on what to record."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rssc.inference.infer import Inference
from rssc.model.calibration import FrameShare, Status
from rssc.model.camera import Camera
from rssc.model.covariance import SIGMAS_95, Covariance
from rssc.model.finding import Finding
from rssc.pipeline.agreement import find_contradictions, find_disagreements, find_readout_frames, name_frames
from rssc.pipeline.causes import find_impossible_readout, find_slight, find_steadied, find_suspected, find_wrong_models
from rssc.pipeline.metadata import different_cameras, file_findings
from rssc.pipeline.motion_summary import MotionSummary, summarise_motion
from rssc.pipeline.several import Combined
from rssc.pipeline.stretch import StretchResult
from rssc.runtime.constants import Constants


@dataclass(frozen=True)
class VerdictConstants(Constants):
    """Limits between ok, weak and degenerate, and limits of the advice (see `MotionSummary`)."""

    readout_weak: float = 0.01
    """Sigma of the readout ratio above which a result is weak: 2 % of the frame interval at 95 %, as for the focal
    length."""
    readout_lost: float = 0.2
    """Sigma above which the readout is not known at all: the 95 % interval covers most readouts that cameras have."""
    focal_weak: float = 0.01
    """Relative sigma of the focal length above which a result is weak: 2 % at 95 %."""
    focal_lost: float = 0.1
    """Relative sigma above which the focal length is not known at all: a guess from the kind of camera is as good."""
    centre_weak: float = 0.02
    """Sigma of the principal point, over the image's width, above which a result is weak: 4 % at 95 %."""
    max_readout_ratio: float = 1.1
    """Largest plausible readout ratio: a sensor is read once per frame; the margin is for the error. Chosen by hand."""
    min_registered: float = 0.8
    """Share of the frames that the start must locate. Chosen by hand."""
    reach: int = 3
    """Frames before and after a frame that tracks must last to hold the clip together there. Chosen by hand."""
    least_spanning: int = 5
    """Tracks that do; with fewer, nothing relates the scale of both parts. Chosen by hand."""
    min_observations_per_frame: int = 60
    """Fewest observations per frame; below it texture is lacking. Chosen by hand."""
    little_motion: float = 0.002
    """Image motion per frame, over the width, below which the camera hardly moved: 1.3 px of 640. Chosen by hand."""
    little_across: float = 0.0005
    """The same across the readout lines only. Chosen by hand."""
    little_parallax_deg: float = 1.0
    """Parallax below which the advice is to walk. Chosen by hand."""
    no_parallax_deg: float = 0.5
    """Parallax below which a result is weak even with small error bars. Chosen by hand."""
    flat: float = 0.02
    """Depth spread below which a scene counts as one plane: 6 cm in three metres. Chosen by hand."""
    forward: float = 0.9
    """Share of the path along the line of sight above which motion counts as forward only. Chosen by hand."""
    steady: float = 0.95
    """Steadiness above which a turn counts as one at constant speed. Chosen by hand."""
    coherent: float = 5.0
    """Shared errors over noise above which a note says that errors are correlated. Chosen by hand."""
    same_evidence: float = 10.0
    """Difference of evidence between rows and columns below which the direction is a guess: odds of 150 to 1."""
    confused: float = 0.4
    """Share of the largest component above which a parameter belongs to the weak direction. Chosen by hand."""


VERDICT = VerdictConstants()


@dataclass(frozen=True)
class Verdict:
    """Status with its reasons, and what else a user should know."""

    status: Status
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    weak_direction: str
    readout_frames: tuple[FrameShare, ...] = ()
    """Of each stretch, the frame that tells most of the readout, and others that tell more than a fifth."""
    causes: tuple[str, ...] = ()
    """Names of what makes the result doubtful, or was found and put right; the strongest first."""


def judge(combined: Combined) -> Verdict:
    """Verdict on the common camera of the stretches."""
    camera, covariance, results = combined.camera, combined.covariance, combined.results
    motions = [summarise_motion(one.stretch.scene) for one in results]
    contradictions = find_contradictions(combined)
    parts = contradictions or find_disagreements(combined)
    uncertain_readout = covariance.sigma("readout_ratio") > VERDICT.readout_weak
    steadied = find_steadied(motions) if uncertain_readout else []
    # What else is found in steadied frames is a sign of that.
    wrong = _unique([*_of_source(results), *steadied, *_wrong_models(combined)])
    if not (wrong or parts) and any(uncertain_parameters(camera, covariance)):
        wrong = _unique([finding for one in results for finding in find_suspected(one.inference)])
    # Faster motion does not help where the model is wrong.
    blameless = not (wrong or parts)
    lost, weak = uncertain_parameters(camera, covariance, slow=blameless)
    weak += list(dict.fromkeys(reason for one in results for reason in _suspicions(one.inference, one.registered)))
    frames = find_readout_frames(results)
    doubted, named = name_frames(frames)
    weak += doubted
    if blameless:
        weak += advice(motions) if lost or weak else treacherous_motion(motions)
    status: Status = "degenerate" if lost or contradictions else "weak" if weak or not blameless else "ok"
    slight = _unique([finding for one in results for finding in find_slight(one.inference)])
    of_windows = tuple(dict.fromkeys(note for one in results for note in one.inference.uncertainty.notes))
    notes = (
        *_shutter_notes(results, camera, covariance), *_misfit_notes(results), *named, *of_windows,
        *(one.words for one in slight),
    )  # fmt: skip
    uncertain = [Finding("uncertain", reason) for reason in (*lost, *weak)]
    harmless = [one for result in results for one in result.findings if not one.doubted]
    causes = dict.fromkeys(one.cause for one in (*wrong, *parts, *uncertain, *slight, *harmless))
    # What cannot be told at all comes before what is only doubtful.
    said = (*wrong, *parts) if not lost or contradictions else (*wrong, *uncertain[: len(lost)], *parts)
    reasons = tuple(dict.fromkeys(one.reason for one in (*said, *uncertain)))
    return Verdict(status, reasons, notes, weak_direction(camera, covariance), frames, tuple(causes))


def _of_source(results: Sequence[StretchResult]) -> list[Finding]:
    """Why to doubt a result by what the files and their pictures say."""
    files = [one.metadata for one in results]
    said = [finding for one in files for finding in file_findings(one)] + different_cameras(files)
    return said + [finding for one in results for finding in one.findings if finding.doubted]


def _wrong_models(combined: Combined) -> list[Finding]:
    """Why the model is not that of the camera, the strongest first."""
    found = [
        finding
        for one in combined.results
        for finding in find_wrong_models(one.inference, bits_per_pixel=one.bits_per_pixel)
    ]
    sigma = combined.covariance.sigma("readout_ratio")
    ratio, interval_s = combined.camera.shutter.readout_ratio, combined.frame_interval_s
    found += find_impossible_readout(ratio * interval_s, sigma * interval_s)
    # Compression may be the cause of the others.
    return sorted(found, key=lambda one: (one.cause != "compression", -one.strength))


def _unique(findings: Sequence[Finding]) -> list[Finding]:
    """The first of each cause."""
    return list({one.cause: one for one in reversed(findings)}.values())[::-1]


def judge_inference(
    inference: Inference, registered: NDArray[np.bool_], board: bool = False
) -> tuple[Status, tuple[str, ...]]:
    """Status and reasons of one inference by itself.

    Args:
        inference: What was found.
        registered: (n,) which frames could be located.
        board: Whether a calibration target was filmed, not a scene.
    """
    camera = inference.adjustment.scene.camera
    wrong = find_wrong_models(inference, board)
    lost, weak = uncertain_parameters(camera, inference.covariance, board, slow=board or not wrong)
    weak = [*(one.reason for one in wrong), *weak, *_suspicions(inference, registered, board)]
    return ("degenerate" if lost else "weak" if weak else "ok"), (*lost, *weak)


def uncertain_parameters(
    camera: Camera, covariance: Covariance, board: bool = False, slow: bool = True
) -> tuple[list[str], list[str]]:
    """Reasons from the error bars: for degenerate, and for weak.

    Args:
        camera: The estimate.
        covariance: Its uncertainty.
        board: Whether a calibration target was filmed, not a scene.
        slow: Whether slow motion may be the cause; not where the model does not fit the footage.
    """
    remedy = "show the board from more sides" if board else "walk around a scene that has depth"
    readout = covariance.sigma("readout_ratio")
    focal = max(covariance.sigma("fx") / camera.lens.fx, covariance.sigma("fy") / camera.lens.fy)
    centre = max(covariance.sigma("cx"), covariance.sigma("cy")) / camera.width
    lost: list[str] = []
    weak: list[str] = []
    if not readout < VERDICT.readout_lost:
        faster = ": move faster, with turns in all directions" if slow else ""
        lost.append(f"the readout time cannot be estimated from this clip{faster}")
    elif readout > VERDICT.readout_weak:
        faster = ": record faster motion" if slow else ""
        weak.append(f"the readout ratio is only known to +-{SIGMAS_95 * readout:.3f}{faster}")
    if not focal < VERDICT.focal_lost:
        lost.append(f"the focal length cannot be estimated from this clip: {remedy}")
    elif focal > VERDICT.focal_weak:
        weak.append(f"the focal length is only known to +-{100 * SIGMAS_95 * focal:.1f} %: {remedy}")
    if not centre < 1.0:
        weak.append(f"the principal point cannot be estimated from this clip: {remedy}")
    elif centre > VERDICT.centre_weak:
        weak.append(f"the principal point is only known to +-{SIGMAS_95 * centre * camera.width:.0f} px: {remedy}")
    return lost, weak


def _suspicions(inference: Inference, registered: NDArray[np.bool_], board: bool = False) -> list[str]:
    """Reasons to doubt an inference regardless of its error bars."""
    adjustment = inference.adjustment
    tracks, ratio = adjustment.scene.tracks, adjustment.scene.camera.shutter.readout_ratio
    found: list[str] = []
    if abs(ratio) > VERDICT.max_readout_ratio:
        found.append(f"the readout ratio {ratio:.2f} exceeds a frame interval: check the frame rate")
    if not adjustment.summary.converged:
        found.append(
            f"the adjustment did not converge ({adjustment.summary.reason}), so that the result may be off: choose "
            "other frames, without blur and with things that stand still"
        )
    if registered.mean() < VERDICT.min_registered:
        found.append(f"only {int(registered.sum())} of {len(registered)} frames could be located")
    if board:
        return found
    spanning = tracks.spanning(VERDICT.reach)[VERDICT.reach : tracks.frame_count - VERDICT.reach]
    if len(spanning) and spanning.min() < VERDICT.least_spanning:
        lost = int(np.argmin(spanning)) + VERDICT.reach
        found.append(
            f"only {int(spanning.min())} tracks last from {VERDICT.reach} frames before the {lost}th frame to as many "
            "after it, so that the parts before and after are not held together: leave out what is blurred there"
        )
    per_frame = len(tracks) / tracks.frame_count
    if per_frame < VERDICT.min_observations_per_frame:
        found.append(f"only {per_frame:.0f} points per frame could be tracked: film more texture")
    return found


def treacherous_motion(motions: Sequence[MotionSummary]) -> list[str]:
    """Advice for motion under which error bars may be small although nothing in the clip would reveal an error."""
    if all(
        motion.image_motion < VERDICT.little_motion or motion.parallax_deg < VERDICT.no_parallax_deg
        for motion in motions
    ):
        return advice(motions)
    if all(motion.steadiness > VERDICT.steady or motion.depth_spread < VERDICT.flat for motion in motions):
        return advice(motions)
    return []


_ALONG = {
    "rows": "the image moved almost only along the rows: tilt up and down as well",
    "columns": "the image moved almost only along the columns, which are read one after the other: pan as well",
}


def advice(motions: Sequence[MotionSummary]) -> list[str]:
    """Why a clip constrains the camera little and what to record instead, from the best of its stretches."""

    def best(name: str) -> float:
        return max(getattr(motion, name) for motion in motions)

    found: list[str] = []
    if best("image_motion") < VERDICT.little_motion:
        found.append("the camera hardly moved: walk around a textured scene while tilting up and down")
    elif best("across_motion") < VERDICT.little_across:
        found.append(_ALONG[motions[0].axis])
    if best("parallax_deg") < VERDICT.little_parallax_deg:
        found.append("the camera turned but hardly changed its place: walk sideways past things at several distances")
    elif best("depth_spread") < VERDICT.flat:
        found.append("all points lie in one plane: film a scene with things at several distances")
    elif min(motion.forward for motion in motions) > VERDICT.forward:
        found.append("the camera moved only forward or backward: walk sideways, too")
    if min(motion.steadiness for motion in motions) > VERDICT.steady:
        found.append("the camera turned at constant speed: change speed and direction")
    return found


def _shutter_notes(results: Sequence[StretchResult], camera: Camera, covariance: Covariance) -> tuple[str, ...]:
    ratio, sigma = camera.shutter.readout_ratio, covariance.sigma("readout_ratio")
    if not sigma < VERDICT.readout_lost:
        return ()
    if abs(ratio) < SIGMAS_95 * sigma:
        return (f"this may be a global shutter: the readout ratio is 0 within its error bar ({ratio:+.4f}).",)
    tried = [{s.name: s.evidence for s in one.inference.shutters} for one in results]
    gaps = [t["rows"] - t["columns"] for t in tried if "rows" in t and "columns" in t]
    if gaps and abs(sum(gaps)) < VERDICT.same_evidence:
        return ("rows and columns explain the footage equally well: the direction of readout is a guess.",)
    return ()


def _misfit_notes(results: Sequence[StretchResult]) -> tuple[str, ...]:
    parts = [one.inference.uncertainty.parts for one in results]
    ratios = [
        part["shared"]["readout_ratio"] / max(part["noise"]["readout_ratio"], 1e-300)
        for part in parts
        if "shared" in part
    ]
    if not ratios or max(ratios) < VERDICT.coherent:
        return ()
    return (
        f"error bars are {max(ratios):.0f} times wider than independent noise would make them, because errors within a "
        "moment are correlated: vibration, stabilised footage, or a scene that moves.",
    )


def weak_direction(camera: Camera, covariance: Covariance) -> str:
    """The parameters that are least well separated, in comparable units (a permille, a pixel)."""
    lens = camera.lens
    scales = {"fx": 1e-3 * lens.fx, "fy": 1e-3 * lens.fy, "cx": 1.0, "cy": 1.0, "readout_ratio": 1e-3}
    names = [name for name in scales if name in covariance.parameters]
    if not names:
        return ""
    index = [covariance.parameters.index(name) for name in names]
    scale = np.array([scales[name] for name in names])
    matrix = covariance.matrix[np.ix_(index, index)] / np.outer(scale, scale)
    if not np.isfinite(matrix).all():
        return " and ".join(
            name for name, i in zip(names, index, strict=True) if not np.isfinite(covariance.matrix[i, i])
        )
    _, vectors = np.linalg.eigh(matrix)
    strongest = vectors[:, -1]
    order: list[int] = np.argsort(-np.abs(strongest)).tolist()
    together = [names[i] for i in order if abs(strongest[i]) > VERDICT.confused * abs(strongest[order[0]])]
    return " against ".join(together[:2])
