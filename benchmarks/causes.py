"""Whether cameras that are not rigid and clocks that are not even are found out, and called by their name.

Drawn clips that determine a camera are calibrated without a fault, and with each fault of `rssc.simulation.faults` at
strengths from harmless to gross: many from simulated tracks (`faulty_tracks`), fewer from rendered frames. A fault
*moves* a parameter where the answer differs from that of the same clip without it by more than 2 of its own sigmas, or
where there is no answer; the verdict must then name the right cause first. Untagged slow motion whose readout a sensor
may have cannot be told by any means, tagged slow motion not from frames that the camera left out in poor light, and
where the clip without the fault is compressed strongly, little can; such clips are shown, and left out of the figures.
"""

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.coverage import MAX_Z
from benchmarks.drawn_clips import READOUT, add_options
from benchmarks.draws import Draw
from benchmarks.faulty_draws import (
    CLEAN,
    FITTED,
    REPORTED,
    FaultyDraw,
    FaultyOutcome,
    base_draws,
    faulty_cases,
    run_faulty_draws,
)
from benchmarks.intervals import HEADING, line_of
from benchmarks.limits import Figures, Limit, check
from rssc.datasets.golden import PARAMETERS
from rssc.model.lens import LENS_MODELS

MOVED = 2.0
"""In sigmas."""
OPTICAL_PX, OPTICAL_BAR = 3.0, 0.02
"""Optical stabilisation up to this must leave the focal length known, to within this share at 95 %."""
LIMITS = (
    Limit("ok_beyond_4_sigma", most=0),
    Limit("right_cause_first", least=0.9),
    Limit("clean_accused", most=0.03),
    Limit("optical_focal_known", least=0.9, optional=True),
)


@dataclass(frozen=True)
class Trial:
    """A fault, how strong, and what it may be called."""

    strengths: tuple[float, ...]
    right: frozenset[str]
    """Names of causes."""


def _trial(strengths: Sequence[float], *right: str) -> Trial:
    return Trial(tuple(strengths), frozenset(right))


_SHARES = (0.003, 0.01, 0.03, 0.1, 0.3, 0.6, 0.8, 1.0)
_ELECTRONIC = _trial(_SHARES, "electronic_stabilisation", "steadied", "misfit")
_JITTER = (0.0005, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
TRIALS: dict[str, Trial] = {
    "optical_stabilisation": _trial((0.03, 0.1, 0.3, 0.6, 1.2, 2.0, 3.0, 4.0), "optical_stabilisation"),
    "focus_breathing": _trial((0.0002, 0.0005, 0.001, 0.002, 0.003, 0.006, 0.01, 0.03), "focus_breathing", "zoom"),
    "zoom": _trial((0.0005, 0.002, 0.005, 0.01, 0.03, 0.1, 0.3, 0.6), "focus_breathing", "zoom"),
    # A picture that is shifted against its lens looks the same whichever of both moves.
    "electronic_shift": _trial(_SHARES, *_ELECTRONIC.right, "optical_stabilisation"),
    "electronic_rotation": _ELECTRONIC,
    "electronic_rows": _ELECTRONIC,
    # The words of vibration name uneven frames, too: both bend the motion between frames, and neither is in the file.
    "capture_jitter": _trial(_JITTER, "capture_jitter", "frame_times", "vibration"),
    "stamp_jitter": _trial(_JITTER, "frame_times"),
    "dropped_frames": _trial((1, 1, 1, 2, 2, 3, 4, 6), "dropped_frames", "frame_times"),
    "dropped_and_repeated": _trial((1, 2, 3, 5, 8, 12, 20, 30), "dropped_frames", "frame_times"),
    "slow_motion": _trial((1.25, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 16.0), "slow_motion"),
    "tagged_slow_motion": _trial((1.25, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 16.0), "capture_rate"),
}
"""Strengths are chosen by hand, before any calibration: the least moves tracks by less than their noise."""


def moves(one: FaultyOutcome, twin: FaultyOutcome | None) -> bool:
    """Whether the fault moved a parameter: away from the twin's answer, or from the truth where it has none."""
    outcome = one.outcome
    if not outcome.estimates or not outcome.same_axis:
        return True
    before = dict(outcome.truth)
    if twin is not None and twin.outcome.estimates:
        before = dict(twin.outcome.estimates)
        if LENS_MODELS[twin.outcome.lens].family != LENS_MODELS[outcome.lens].family:
            before = {READOUT: before[READOUT]}
    return any(
        abs(outcome.estimates[name] - before[name]) > MOVED * outcome.sigmas[name]
        for name in PARAMETERS
        if name in before
    )


def is_asked(one: FaultyOutcome, twins: Mapping[tuple[Draw, bool], FaultyOutcome]) -> bool:
    """Whether the fault can be told at all."""
    twin = twins.get(_pair(one))
    return one.case.tellable and (twin is None or twin.outcome.good)


def is_right(one: FaultyOutcome) -> bool:
    """Whether the first cause that is named is one that the fault may be called."""
    return bool(one.causes) and one.causes[0] in TRIALS[one.case.fault].right


def is_accused(one: FaultyOutcome) -> bool:
    """Whether anything is held against a clip."""
    return one.outcome.status != "ok" or bool(one.causes)


def focal_is_known(one: FaultyOutcome) -> bool:
    """Whether both focal lengths are inside bars that say something."""
    outcome = one.outcome
    names = [name for name in ("fx", "fy") if name in outcome.truth]
    if not outcome.estimates or not names:
        return False
    return all(outcome.inside(name) and outcome.half_width(name) < OPTICAL_BAR * outcome.truth[name] for name in names)


def _pair(one: FaultyOutcome) -> tuple[Draw, bool]:
    """What a clip has in common with its twin."""
    return one.case.drawn, one.case.rendered


def figures_of(outcomes: Sequence[FaultyOutcome]) -> Figures:
    """What all outcomes come to."""
    twins = {_pair(one): one for one in outcomes if one.case.fault == CLEAN}
    clean = [one for one in twins.values() if one.outcome.good]
    faulty = [one for one in outcomes if one.case.fault != CLEAN and is_asked(one, twins)]
    moved = [one for one in faulty if moves(one, twins.get(_pair(one)))]
    beyond = [one for one in (*clean, *faulty) if is_beyond(one)]
    optical = [one for one in faulty if one.case.fault == "optical_stabilisation" and one.case.strength <= OPTICAL_PX]
    by_fault = {fault: [is_right(one) for one in moved if one.case.fault == fault] for fault in TRIALS}
    figures: dict[str, object] = {
        "clips": len(outcomes),
        "rendered": sum(one.case.rendered for one in outcomes),
        "left_out": len(outcomes) - len(clean) - len(faulty),
        "moved": len(moved),
        "ok_beyond_4_sigma": len(beyond),
        "right_cause_first": _share([is_right(one) for one in moved]),
        "right_cause_first_by_fault": {fault: _share(right) for fault, right in by_fault.items() if right},
        "clean_accused": _share([is_accused(one) for one in clean]),
    }
    if optical:
        figures["optical_focal_known"] = _share([focal_is_known(one) for one in optical])
    return figures  # pyright: ignore[reportReturnType] a mapping of such values


def is_beyond(one: FaultyOutcome) -> bool:
    """Whether a clip is called ok with an error of more than 4 sigma."""
    return one.outcome.status == "ok" and one.outcome.largest_z > MAX_Z


def _share(values: Sequence[bool]) -> float:
    return float(np.mean(values)) if values else float("nan")


def confusion(outcomes: Sequence[FaultyOutcome]) -> str:
    """A table of fault by verdict: its status, and the cause that it names first."""
    counts: dict[str, Counter[str]] = {}
    for one in outcomes:
        verdict = ": ".join((one.outcome.status, *one.causes[:1]))
        counts.setdefault(one.case.fault, Counter())[verdict] += 1
    verdicts = sorted({verdict for counter in counts.values() for verdict in counter}, key=_verdict_order)
    letters = {verdict: chr(ord("A") + i) if i < 26 else str(i) for i, verdict in enumerate(verdicts)}
    lines = [f"{letter}  {verdict}" for verdict, letter in letters.items()]
    lines += ["", f"{'':22s}" + "".join(f"{letter:>4s}" for letter in letters.values())]
    lines += [f"{fault:22s}" + _row(counts[fault], verdicts) for fault in (CLEAN, *TRIALS) if fault in counts]
    return "\n".join(lines)


def _row(counter: Mapping[str, int], verdicts: Sequence[str]) -> str:
    return "".join(f"{counter[verdict] or '.':>4}" for verdict in verdicts)


def _verdict_order(verdict: str) -> tuple[int, str]:
    return ("ok", "weak", "degenerate", "refused").index(verdict.partition(":")[0]), verdict


def cases(options: argparse.Namespace) -> list[FaultyDraw]:
    """Of what the command line asks for."""
    faults: list[str] = options.faults or list(TRIALS)
    every = {fault: trial.strengths for fault, trial in TRIALS.items()}
    # Clips are those of all faults, whichever are asked for.
    bases = base_draws(max(options.clean, options.rendered_clean), FITTED if options.fit else REPORTED, every)
    wanted = faulty_cases(bases, every, options.clips, options.clean, rendered=False)
    wanted += faulty_cases(bases, every, options.rendered_clips, options.rendered_clean, rendered=True)
    return [case for case in wanted if case.fault in (CLEAN, *faults)]


def measure(argv: list[str]) -> Figures:
    parser = argparse.ArgumentParser(prog="python -m benchmarks causes", description=__doc__)
    parser.add_argument("--clips", type=int, default=8, help="clips of each fault from tracks")
    parser.add_argument("--clean", type=int, default=40, help="clips without a fault; faults are put on the same ones")
    parser.add_argument("--rendered-clips", type=int, default=2, help="clips of each fault that are rendered")
    parser.add_argument("--rendered-clean", type=int, default=10, help="the same without a fault")
    parser.add_argument("--faults", nargs="*", choices=list(TRIALS), help="only these")
    parser.add_argument("--fit", action="store_true", help="the seeds on which limits are fitted; no report")
    add_options(parser)
    options = parser.parse_args(argv)
    if options.fit:
        print("seeds for fitting: figures of this run are none of the benchmark's")
    print("errors in standard deviations; the ratio and sigma are the error of the readout and its bar, true intervals")
    print(f"{'fault':22s} {'':7s} {'':6s} {HEADING}")
    outcomes: list[FaultyOutcome] = []
    twins: dict[tuple[Draw, bool], FaultyOutcome] = {}
    for one in run_faulty_draws(cases(options), options.jobs, options.keep, options.frames_cache):
        outcomes.append(one)
        if one.case.fault == CLEAN:
            twins[_pair(one)] = one
        kind = "" if one.case.rendered else "tracks"
        print(
            f"{one.case.fault:22s} {one.case.strength:7.4g} {kind:6s} {line_of(one.outcome)}{_remark(one, twins)}",
            flush=True,
        )
    print("\nclips by verdict: status, and the cause that is named first\n")
    print(confusion(outcomes))
    return figures_of(outcomes)


def _remark(one: FaultyOutcome, twins: Mapping[tuple[Draw, bool], FaultyOutcome]) -> str:
    """What there is to say about a clip beside its numbers."""
    if not is_asked(one, twins):
        return "  (cannot be told)"
    found = ["OK BEYOND 4 SIGMA"] * is_beyond(one)
    if one.case.fault == CLEAN:
        found += ["ACCUSED"] * is_accused(one)
    elif moves(one, twins.get(_pair(one))):
        found.append("moved" if is_right(one) else f"moved, CALLED {one.causes[0] if one.causes else 'NOTHING'}")
    return "".join(f"  {remark}" for remark in found)


def main(argv: list[str]) -> int:
    return check(measure(argv), LIMITS)
