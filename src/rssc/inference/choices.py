"""Choice by evidence: the readout axis of the shutter, on rough tracks and, near a global shutter, on refined ones."""

from dataclasses import dataclass, replace

from rssc.inference.evidence import Candidate, rank
from rssc.inference.robust import robust_options
from rssc.model.camera import Shutter
from rssc.runtime.constants import Constants
from rssc.solver.bundle import Adjustment, adjust_with
from rssc.solver.options import AdjustOptions
from rssc.solver.triangulate import sees


@dataclass(frozen=True)
class ChoiceConstants(Constants):
    """Choice of the shutter, and methods of the paper."""

    shutter_frames: int = 120
    """Most frames that shutters are compared on. Chosen by hand: more frames only cost time."""
    shutter_iterations: int = 20
    """Iterations with each shutter; wrong ones need not converge. Chosen by hand: a bound on time."""
    shutter_tolerance: float = 1e-4
    """Relative decrease of the cost at which this adjustment stops. Chosen by hand: time against accuracy."""
    near_global: float = 0.2
    """Readout ratio below which the axis is looked at again on refined tracks. Chosen by hand: rough tracks tell the
    axis of longer readouts beyond doubt, and took a readout of 0.019 along the rows for none along the columns."""
    method_iterations: int = 200
    """Iterations of a method of the paper, which has the paper's stopping rules. Chosen by hand: a bound on time."""


CHOICES = ChoiceConstants()


def try_shutters(current: Adjustment, common: AdjustOptions) -> tuple[Candidate, ...]:
    """Adjustments with the assumed readout axis, the other axis, and a global shutter, ranked by evidence."""
    scene, assumed = current.scene, current.scene.camera.shutter
    other = "columns" if assumed.axis == "rows" else "rows"
    candidates: list[tuple[str, Shutter, tuple[str, ...]]] = [
        (other, Shutter(0.0, other), ()), ("global", Shutter(0.0), ("readout_ratio",)),
    ]  # fmt: skip
    tried: list[tuple[str, Adjustment]] = [(assumed.axis, current)]
    if scene.tracks.frame_count > CHOICES.shutter_frames:
        first = (scene.tracks.frame_count - CHOICES.shutter_frames) // 2
        scene = scene.window(first, first + CHOICES.shutter_frames)
        candidates, tried = [(assumed.axis, assumed, ()), *candidates], []
    for name, shutter, held in candidates:
        start = replace(scene, camera=replace(scene.camera, shutter=shutter))
        if not sees(start, start.points, start.tracks).all():
            continue
        options = replace(
            robust_options(start.camera, common), fixed=(*common.fixed, *held), loss_scale=current.loss_scale,
            max_iterations=CHOICES.shutter_iterations, cost_tolerance=CHOICES.shutter_tolerance,
        )  # fmt: skip
        tried.append((name, adjust_with(start, options)))
    return rank(tried)


def try_axes(current: Adjustment) -> tuple[Candidate, ...]:
    """The adjustment with lines read along either axis, ranked by evidence; none where the axis is beyond doubt."""
    scene, shutter = current.scene, current.scene.camera.shutter
    if abs(shutter.readout_ratio) >= CHOICES.near_global or "readout_ratio" in current.options.fixed:
        return ()
    other = "columns" if shutter.axis == "rows" else "rows"
    options = replace(current.options, loss_scale=current.loss_scale, covariance=True)
    tried: list[tuple[str, Adjustment]] = []
    for one in (shutter, replace(shutter, readout_ratio=0.0, axis=other)):
        start = replace(scene, camera=replace(scene.camera, shutter=one))
        if sees(start, start.points, start.tracks).all():
            tried.append((one.axis, adjust_with(start, options)))
    return rank(tried)
