"""One camera from its clips: a common lens model, outliers named, estimates combined, a verdict.

Clips that are ok count; where none is, those that are weak. An outlier is a clip that contradicts most of the others:
by more than chance allows although bars are widened by an effect between clips as large as real cameras show, and by
more than a result that is ok may be uncertain. Smaller differences widen the error bars (`inference.combine`). Where no
majority agrees, nobody can say which clips are right.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import ndtri

from rssc.fleet.estimate import READOUT, Estimate, camera_of
from rssc.fleet.record import ClipRecord
from rssc.inference.combine import COMBINE, COMPARED, Combination, combine
from rssc.model.arrays import FloatArray
from rssc.model.calibration import Calibration, ErrorBudget, Statistics, Status
from rssc.model.camera import Camera
from rssc.model.covariance import SIGMAS_95, Covariance
from rssc.model.metadata import Metadata
from rssc.pipeline.agreement import AGREEMENT
from rssc.pipeline.verdict import VERDICT, uncertain_parameters, weak_direction
from rssc.runtime.constants import Constants


@dataclass(frozen=True)
class FleetConstants(Constants):
    """Combination of clips."""

    largest_say: float = 100.0
    """Evidence of one clip against a lens model or a readout axis at the most: a clip of another camera, whose evidence
    may be thousands, must not decide for the others. Chosen by hand: odds of 10^21 to 1."""


FLEET = FleetConstants()


@dataclass(frozen=True)
class Common:
    """What all clips of a camera are to have."""

    model: str
    axis: str
    ratio: float
    """A readout ratio to start from."""


@dataclass(frozen=True)
class Conclusion:
    """What the clips of a camera in a mode tell together."""

    calibration: Calibration | None
    """Without stretches; None where no clip tells anything."""
    status: Status
    reasons: tuple[str, ...]
    used: frozenset[str] = frozenset()
    """Fingerprints of the clips that it was made from."""
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])
    """Why other clips that were calibrated were not used, by fingerprint."""


def usable(records: Iterable[ClipRecord]) -> list[ClipRecord]:
    """The clips that are ok; where there are none, the weak ones."""
    known = [one for one in records if one.estimated]
    return [one for one in known if one.status == "ok"] or known


def common_model(records: Sequence[ClipRecord]) -> Common:
    """The lens model and the readout axis that clips prefer together."""
    estimates = [one for record in records for one in record.estimates]
    model = _preferred([(one.model, one.lenses) for one in estimates])
    axis = _preferred([(one.axis, one.shutters) for one in estimates])
    ratios = [one.camera.shutter.readout_ratio for one in estimates if one.axis == axis]
    return Common(model, axis, float(np.median(ratios)))


def _preferred(tried: Sequence[tuple[str, Mapping[str, float]]]) -> str:
    """The name, among those that some clip chose, with the least evidence against it."""
    against = {
        name: sum(
            0.0 if name == chosen else min(evidence.get(name, np.inf), FLEET.largest_say) for chosen, evidence in tried
        )
        for name in sorted({chosen for chosen, _ in tried})
    }
    return min(against, key=lambda name: against[name])


def conclude(records: Sequence[ClipRecord], failed: Mapping[str, str], metadata: Metadata) -> Conclusion:
    """What clips tell together.

    Args:
        records: All clips of a camera in a mode, those in use with estimates of its common lens model and axis.
        failed: Why clips could not be brought to these, by fingerprint.
        metadata: What to say of the camera.
    """
    chosen = [one for one in usable(records) if one.fingerprint not in failed]
    left_out = dict(failed)
    left_out |= {
        one.fingerprint: "weak by itself, and other clips are ok"
        for one in records
        if one.estimated and one.status == "weak" and one not in chosen and one.fingerprint not in failed
    }
    if not chosen:
        return Conclusion(None, "degenerate", _reasons_of(records) or tuple(failed.values()), left_out=left_out)
    interval_s = float(np.median([one.estimates[0].frame_interval_s for one in chosen]))
    parts = [[estimate.in_interval(interval_s) for estimate in one.estimates] for one in chosen]
    names = _most_frequent([estimates[0].parameters for estimates in parts])
    agreeing = _largest_agreement(parts, names)
    majority = 2 * len(agreeing) > len(chosen)
    if majority:
        outlying = [i for i in range(len(chosen)) if i not in agreeing]
        left_out |= {chosen[i].fingerprint: _words_of_outlier(parts, agreeing, i) for i in outlying}
        chosen, parts = [chosen[i] for i in agreeing], [parts[i] for i in agreeing]
    estimates = [estimate for one in parts for estimate in one]
    found = combined(estimates)
    camera = _camera(estimates[0], found)
    status, reasons = _verdict(chosen, parts, camera, found, majority)
    calibration = _calibration(chosen, estimates, found, camera, interval_s, metadata, status, reasons)
    return Conclusion(calibration, status, reasons, frozenset(one.fingerprint for one in chosen), left_out)


def combined(estimates: Sequence[Estimate]) -> Combination:
    """The combination of estimates of the same parameters, counted in the same interval."""
    return combine(
        [np.array(one.values) for one in estimates],
        [one.own_covariance for one in estimates],
        [one.common_covariance for one in estimates],
    )


def _camera(like: Estimate, found: Combination) -> Camera:
    return camera_of(like, dict(zip(found.covariance.parameters, found.values.tolist(), strict=True)))


def _most_frequent(items: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    return max(sorted(set(items)), key=items.count)


def _largest_agreement(parts: Sequence[Sequence[Estimate]], names: tuple[str, ...]) -> list[int]:
    """Indices of the clip that agrees with the most others, and of these."""
    same = np.array([all(one.parameters == names for one in estimates) for estimates in parts])
    known = [combined(estimates) for estimates, fits in zip(parts, same, strict=True) if fits]
    values = np.array([one.values for one in known])
    sigmas = np.array([np.sqrt(np.diag(one.covariance.matrix)) for one in known])
    limits = _tolerances(_camera(parts[int(np.flatnonzero(same)[0])][0], known[0]))
    agree = np.ones((len(known), len(known)), np.bool_)
    pairs = max(len(known) * (len(known) - 1) // 2, 1)
    sigmas_allowed = -float(ndtri(AGREEMENT.unlikely / (2 * pairs * len(COMPARED))))
    for name, tolerance in limits.items():
        if name not in names:
            continue
        column = names.index(name)
        apart: FloatArray = np.abs(values[:, None, column] - values[None, :, column])
        bars: FloatArray = np.hypot(sigmas[:, None, column], sigmas[None, :, column])
        agree &= (apart <= tolerance) | (apart <= sigmas_allowed * COMBINE.plausible * bars)
    # The one with the least distance wins a tie: the first one would depend on the order of names.
    centre = max(
        range(len(known)), key=lambda i: (int(agree[i].sum()), -float(np.abs(values[i] - values.mean(0)).sum()))
    )
    return np.flatnonzero(same)[agree[centre]].tolist()


def _tolerances(camera: Camera) -> dict[str, float]:
    """By parameter, what a result that is ok may be uncertain by."""
    return {
        "fx": SIGMAS_95 * VERDICT.focal_weak * camera.lens.fx,
        "fy": SIGMAS_95 * VERDICT.focal_weak * camera.lens.fy,
        "cx": SIGMAS_95 * VERDICT.centre_weak * camera.width,
        "cy": SIGMAS_95 * VERDICT.centre_weak * camera.width,
        READOUT: SIGMAS_95 * VERDICT.readout_weak,
    }


def _words_of_outlier(parts: Sequence[Sequence[Estimate]], agreeing: Sequence[int], outlier: int) -> str:
    """How a clip differs from the others."""
    ours = _camera(parts[outlier][0], combined(parts[outlier]))
    if parts[outlier][0].parameters != parts[agreeing[0]][0].parameters:
        return "it estimates other parameters than the other clips"
    theirs = _camera(parts[agreeing[0]][0], combined([one for i in agreeing for one in parts[i]]))
    tolerances = _tolerances(theirs)

    def value(camera: Camera, name: str) -> float:
        return camera.shutter.readout_ratio if name == READOUT else float(getattr(camera.lens, name))

    worst = max(tolerances, key=lambda name: abs(value(ours, name) - value(theirs, name)) / tolerances[name])
    digits = 3 if worst == READOUT else 1
    return (
        f"an outlier: {worst.replace('_', ' ')} {value(ours, worst):.{digits}f}, where the others have "
        f"{value(theirs, worst):.{digits}f}; is it of another camera or mode, stabilised or zoomed?"
    )


def _verdict(
    chosen: Sequence[ClipRecord],
    parts: Sequence[Sequence[Estimate]],
    camera: Camera,
    found: Combination,
    majority: bool,
) -> tuple[Status, tuple[str, ...]]:
    doubted = chosen[0].status != "ok"
    lost, weak = uncertain_parameters(camera, found.covariance, slow=not doubted)
    if doubted:
        weak = [*_reasons_of(chosen), *weak]
    consistency, name = found.agreement()
    spread = ""
    if name and len(parts) > 1:
        column = found.covariance.parameters.index(name)
        values = [one.values[column] for estimates in parts for one in estimates]
        digits = 3 if name == READOUT else 1
        spread = f"{name.replace('_', ' ')} {min(values):.{digits}f} to {max(values):.{digits}f}"
    if not majority:
        lost.insert(
            0, f"clips contradict each other, and no majority agrees ({spread}): are all of one camera in one mode?"
        )
    elif spread and consistency < AGREEMENT.unlikely:
        weak.append(f"clips disagree by more than their error bars ({spread})")
    status: Status = "degenerate" if lost else "weak" if weak else "ok"
    return status, tuple(dict.fromkeys((*lost, *weak)))


def _reasons_of(records: Iterable[ClipRecord]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(reason for one in records for reason in one.reasons))


def _calibration(
    chosen: Sequence[ClipRecord], estimates: Sequence[Estimate], found: Combination, camera: Camera, interval_s: float,
    metadata: Metadata, status: Status, reasons: tuple[str, ...],
) -> Calibration:  # fmt: skip
    names = found.covariance.parameters
    sigmas = {"own": found.own, "stretches": found.between, "common": found.common}
    covariance: Covariance = replace(found.covariance, parameters=names).finite()
    return Calibration(
        camera=camera,
        frame_interval_s=interval_s,
        parameters=names,
        covariance=covariance.matrix,
        status=status,
        reasons=reasons,
        method="te",
        knot_spacing=chosen[0].knot_spacing,
        statistics=Statistics(
            frames=sum(one.frames for one in chosen),
            points=sum(one.points for one in chosen),
            observations=sum(one.observations for one in chosen),
        ),
        notes=(f"combined from {len(chosen)} clips with {len(estimates)} stretches.",),
        causes=tuple(dict.fromkeys(cause for one in chosen for cause in one.causes)) if status != "ok" else (),
        uncertainty=ErrorBudget(
            parts={part: dict(zip(names, values.tolist(), strict=True)) for part, values in sigmas.items()},
            consistency=found.agreement()[0],
            weak_direction=weak_direction(camera, covariance),
        ),
        metadata=metadata,
    )
