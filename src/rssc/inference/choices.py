"""Choices by evidence: readout axis of the shutter, lens model."""

from dataclasses import dataclass, replace

import numpy as np

from rssc.errors import NotCalibratableError
from rssc.inference.evidence import Candidate, rank
from rssc.inference.lens_conversion import convert_lens
from rssc.inference.robust import robust_options
from rssc.model.camera import Shutter
from rssc.model.lens import LENS_MODELS, Lens
from rssc.model.scene import Scene
from rssc.runtime.constants import Constants
from rssc.solver.bundle import Adjustment, adjust_with
from rssc.solver.options import AdjustOptions
from rssc.solver.triangulate import sees


@dataclass(frozen=True)
class ChoiceConstants(Constants):
    """Choice of shutter and lens."""

    shutter_frames: int = 120
    """Most frames that shutters are compared on. Chosen by hand: more frames only cost time."""
    shutter_iterations: int = 20
    """Iterations with each shutter; wrong ones need not converge. Chosen by hand: a bound on time."""
    shutter_tolerance: float = 1e-4
    """Relative decrease of the cost at which this adjustment stops. Chosen by hand: time against accuracy."""
    min_seen: float = 0.98
    """Share of the observations that a lens model must be able to project; the rest may be outliers. Chosen by hand."""
    lens_iterations: int = 30
    """Iterations with each lens model. Chosen by hand: a bound on time."""
    lens_tolerance: float = 1e-5
    """Relative decrease of the cost at which this adjustment stops. Chosen by hand; nested models differ by little."""
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


def try_lenses(current: Adjustment, lens: str, common: AdjustOptions) -> tuple[Candidate, ...]:
    """Adjustments with the given lens model, or with "auto" every usable one, ranked by evidence."""
    camera = current.scene.camera
    searched = tuple(model.name for model in LENS_MODELS.values() if model.searched)
    models = searched if lens == "auto" else (lens,)
    lenses = {model: convert_lens(camera.lens, model, camera.width, camera.height) for model in models}
    scene, seeing = _seen_by_all(current.scene, lenses)
    if not seeing:
        raise NotCalibratableError("this lens model cannot project what the clip shows; choose fisheye or auto.")
    tried: list[tuple[str, Adjustment]] = []
    for model in seeing:
        start = replace(scene, camera=scene.camera.with_lens(lenses[model]))
        options = replace(
            robust_options(start.camera, common), loss_scale=current.loss_scale,
            max_iterations=CHOICES.lens_iterations, cost_tolerance=CHOICES.lens_tolerance,
        )  # fmt: skip
        tried.append((model, adjust_with(start, options)))
    return rank(tried)


def _seen_by_all(scene: Scene, lenses: dict[str, Lens]) -> tuple[Scene, list[str]]:
    """The scene with the points that all usable models can project, and those models.

    A pinhole cannot project the wide angles of a fisheye and is then not usable; a few outliers beyond its field of
    view do not rule it out.
    """
    visible = {
        model: sees(replace(scene, camera=scene.camera.with_lens(lens)), scene.points, scene.tracks)
        for model, lens in lenses.items()
    }
    seeing = [model for model, seen in visible.items() if seen.mean() >= CHOICES.min_seen]
    unseen = ~np.all([visible[model] for model in seeing], axis=0)
    keep = np.bincount(scene.tracks.points[unseen], minlength=scene.tracks.point_count) == 0
    return replace(scene, tracks=scene.tracks.select_points(keep), points=scene.points[keep]), seeing
