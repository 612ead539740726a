"""Residuals of a problem, and the rows that a state predicts."""

import numpy as np

from rssc.kernels.bundle.cost import residuals_of
from rssc.kernels.bundle.residuals import RectifiedTable, SplineTable, State
from rssc.model.arrays import FloatArray
from rssc.model.camera import Camera
from rssc.runtime.threads import run_chunks
from rssc.solver.constants import SOLVER
from rssc.solver.layout import Layouts


def compute_residuals(
    state: State, spline: SplineTable, rectified: RectifiedTable, layouts: Layouts
) -> tuple[FloatArray, FloatArray]:
    """(m, 2) spline residuals and (k, 2) rectified residuals in pixels; NaN where the lens does not see the point."""
    found = np.empty((len(spline.weights), 2)), np.empty((len(rectified.weights), 2))
    layout = layouts.of(state)

    def task(_: int, begin: int, end: int) -> None:
        residuals_of(state, spline, rectified, layout.order, begin, end, *found)

    run_chunks(task, layout.chunks)
    return found


def predict_rows(
    state: State, spline: SplineTable, rectified: RectifiedTable, layouts: Layouts, camera: Camera
) -> SplineTable:
    """The table with observations timed by the row where the state projects their point; measured where that is far.

    A point is read when its image meets the row that is being read: v = project(T(i + gamma v / H) X). Iterated from
    the measured row, the error falls each time by the speed of the image over that of the readout.
    """
    measured = spline
    for _ in range(SOLVER.row_rounds):
        residuals, _ = compute_residuals(state, spline, rectified, layouts)
        near = np.linalg.norm(residuals, axis=1) < SOLVER.max_row_shift
        pixels = np.where(near[:, None], measured.pixels + np.where(near[:, None], residuals, 0.0), measured.pixels)
        fractions = camera.row_fraction(pixels)
        usable = near & np.isfinite(fractions)
        spline = measured._replace(fractions=np.where(usable, fractions, measured.fractions))
        layouts = layouts.retimed(spline)
    return spline
