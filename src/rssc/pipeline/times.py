"""Frame times by evidence: what the tracks prefer to the times of the source becomes those of the footage."""

from dataclasses import replace

from rssc.footage.footage import Footage
from rssc.inference.frame_timing import TIMING, Timing, choose_times
from rssc.inference.infer import Inference
from rssc.inference.robust import restart, robust_adjust
from rssc.model.finding import Finding
from rssc.model.tracks import Tracks
from rssc.pipeline.options import CalibrateOptions
from rssc.solver.options import AdjustOptions
from rssc.solver.problem import with_trajectory


def with_times_by_evidence(
    footage: Footage, first: Inference, tracks: Tracks, options: CalibrateOptions, jitter: bool = True
) -> tuple[Footage, Inference]:
    """Footage and inference with the frame times that explain the tracks best; a rate that the user gave stays.

    Without `jitter`, frames are taken to be as even as their times.
    """
    interval = footage.frame_interval_s
    bases = {} if options.fps is not None else {one.name: one.times_s / interval for one in footage.candidates}
    adjustment = first.adjustment
    common = AdjustOptions(fixed=adjustment.options.fixed, motion_prior=adjustment.options.motion_prior)
    timing = choose_times(adjustment, tracks, bases, common, jitter)
    found = _findings(footage, timing)
    if not found:
        return footage, first
    times_s = footage.times_s[0] + interval * timing.adjustment.scene.frame_times
    # What explains best what is unusual about the times comes first.
    notes = (*footage.notes, *(one.words for one in found))
    footage = replace(footage, times_s=times_s, notes=notes, findings=(*found, *footage.findings))
    # Times are counted in the interval that they have now.
    scaled = interval / footage.frame_interval_s
    scene = timing.adjustment.scene
    scene = replace(
        scene, frame_times=footage.frame_times, trajectory=None,
        camera=scene.camera.with_readout_ratio(scaled * scene.camera.shutter.readout_ratio),
    )  # fmt: skip
    return footage, replace(first, adjustment=robust_adjust(restart(with_trajectory(scene), tracks), common=common))


def _findings(footage: Footage, timing: Timing) -> list[Finding]:
    """What is said of times that the source does not state."""
    found = [] if timing.evidence == 0 else [_of_base(footage, timing)]
    if timing.jitter is not None:
        off = float(timing.jitter.std())
        words = (
            f"frames were taken unevenly, by about {off:.2g} of the frame interval "
            f"({1e3 * off * footage.frame_interval_s:.2g} ms): that explains how the camera moved (evidence "
            f"{timing.jitter_evidence:.0f})."
        )
        found.append(Finding("capture_jitter", words, timing.jitter_evidence / TIMING.jitter_margin))
    return found


def _of_base(footage: Footage, timing: Timing) -> Finding:
    words = ""
    for one in footage.candidates:
        if one.name == timing.name:
            words = f"frames were taken {one.words}"
    if timing.missing:
        names = ", ".join(str(int(footage.frame_numbers[frame])) for frame in timing.missing)
        count = len(timing.missing)
        gaps = f"{count} frame{'s are' if count > 1 else ' is'} missing, before frame {names} of the source"
        words = f"{words}, and {gaps}" if words else gaps
    cause = "dropped_frames" if timing.missing else "frame_times"
    words = f"{words}: that explains the footage better than the times of the source (evidence {timing.evidence:.0f})."
    return Finding(cause, words, timing.evidence / TIMING.margin)
