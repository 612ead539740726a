"""The figures of a calibration, in the groups in which the report shows them."""

from collections.abc import Sequence

from rssc.model.calibration import Calibration
from rssc.model.covariance import UNKNOWN_SIGMA
from rssc.model.projection import ProjectionDifference
from rssc.model.scene import Scene
from rssc.outputs.report import figures
from rssc.outputs.report.constants import REPORT
from rssc.outputs.report.plots import Figure
from rssc.outputs.report.projection_figures import difference_map, projection_map
from rssc.outputs.report.residuals import Residuals
from rssc.outputs.report.scene_view import motion_view, scene_view
from rssc.outputs.report.summary import unknown_lens_parameters


def figure_groups(
    calibration: Calibration,
    scenes: Sequence[Scene],
    residuals: Residuals | None,
    difference: ProjectionDifference | None = None,
    name: str = "",
) -> dict[str, list[Figure]]:
    """All figures that there is something to draw in.

    Args:
        calibration: What they are of.
        scenes: Of its stretches, with trajectories.
        residuals: Of these scenes; None where there are none.
        difference: From another camera.
        name: Of that camera.
    """
    return {
        "fit": _fit(calibration, residuals),
        "certainty": _certainty(calibration, compared=difference is not None) if calibration.statistics.frames else [],
        "compared": []
        if difference is None
        else [projection_map(calibration, difference), difference_map(calibration.camera, difference, name)],
        "motion": [scene_view(scenes[0]), motion_view(scenes[0], calibration.frame_interval_s)] if scenes else [],
        "solve": _solve(calibration),
    }


def _fit(calibration: Calibration, residuals: Residuals | None) -> list[Figure]:
    if residuals is None or len(residuals) < REPORT.least_residuals:
        return []
    return [
        figures.residual_map(residuals, calibration.camera),
        figures.residual_rows(residuals, calibration),
        figures.residual_histogram(residuals),
    ]


def _certainty(calibration: Calibration, *, compared: bool) -> list[Figure]:
    made: list[Figure] = []
    windows = [one for one in calibration.uncertainty.windows if 0 < one.sigma < UNKNOWN_SIGMA]
    if windows:
        made.append(figures.window_readouts(windows, calibration))
    if calibration.parameters and not unknown_lens_parameters(calibration) and not compared:
        made.append(projection_map(calibration))
    if calibration.parameters:
        made.append(figures.correlations(calibration))
    return made


def _solve(calibration: Calibration) -> list[Figure]:
    costs = calibration.statistics.cost_by_iteration
    return [figures.convergence(costs)] if len(costs) > 2 else []
