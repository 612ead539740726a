"""Maps of the projection: how far a point may be off over the image, and how far two cameras differ."""

import numpy as np
import plotly.graph_objects as go

from rssc.model.arrays import FloatArray
from rssc.model.calibration import Calibration
from rssc.model.camera import Camera
from rssc.model.projection import ProjectionDifference, at_place, projection_uncertainty
from rssc.outputs.report.constants import REPORT
from rssc.outputs.report.plots import (
    ACCENT,
    INK,
    PAPER,
    WARM,
    Figure,
    add_segments,
    add_trace,
    compact,
    image_plot,
    round_step,
)


def projection_map(calibration: Calibration, difference: ProjectionDifference | None = None) -> Figure:
    """How far a point may be off, over the image; in the same colours as a difference that is shown beside it."""
    camera = calibration.camera
    predicted = projection_uncertainty(camera, calibration.estimated)
    radii = predicted.radii_95
    centre, worst = at_place(radii, "centre"), float(np.nanmax(radii))
    plot = _image_contours(camera, predicted.columns, predicted.rows, radii, _darkest(radii, difference))
    return Figure(
        "projection", "How far a point at each place of the image may be off, 95 %", plot,
        "In pixels: with a probability of 95 % this camera puts the image of a far point no further than this from "
        "where it is, going by the covariance of the lens. What a rotation of the camera compensates is left out, "
        "because the poses absorb it. Good: far below a pixel up to the corners. Bad: corners many times worse than "
        "the centre, where there were no tracks.",
        f"Map of how far a point may be off with 95 % probability: {centre:.2g} pixels in the centre, {worst:.2g} at "
        f"worst.",
    )  # fmt: skip


def difference_map(camera: Camera, difference: ProjectionDifference, name: str) -> Figure:
    """Difference between this camera and another over the image."""
    lengths = difference.lengths
    plot = _image_contours(camera, difference.columns, difference.rows, lengths, _darkest(lengths, difference))
    step = REPORT.arrow_step
    nodes = np.stack(np.meshgrid(difference.columns[::step], difference.rows[::step]), axis=-1).reshape(-1, 2)
    vectors = difference.vectors[::step, ::step].reshape(-1, 2)
    seen = np.isfinite(vectors).all(axis=1)
    magnification = float(f"{camera.width / 12 / max(difference.largest, 1e-9):.1g}")
    add_segments(plot, nodes[seen], vectors[seen] * magnification, WARM, 2, "difference")
    plot.update_layout(showlegend=False)
    unseen = ""
    if difference.unseen:
        unseen = f" {difference.unseen} of {lengths.size} places are seen by only one of the lenses and left white."
    return Figure(
        "difference", f"Difference from {name}", plot,
        f"How far apart, in pixels, this camera and {name} put the image of a far point, after the rotation that "
        f"brings them closest; the lines show where {name} puts it, magnified {magnification:g} times. Colours are "
        f"those of the map above.{unseen} Good: about as large as the map above allows, or less. Bad: several times "
        "that; one of the two is then wrong by more than it says, or they are two cameras.",
        f"Map of the difference from {name}: median {difference.median:.2g}, root mean square {difference.rms:.2g}, at "
        f"most {difference.largest:.2g} pixels.{unseen}",
    )  # fmt: skip


def _darkest(values: FloatArray, difference: ProjectionDifference | None) -> float:
    """The value of the darkest colour: one for all maps that stand beside each other."""
    if difference is None or difference.predicted is None:
        return 1.3 * float(np.nanmax(values))
    return 1.3 * max(difference.largest, float(np.nanmax(difference.predicted.radii_95)))


def _image_contours(
    camera: Camera, columns: FloatArray, rows: FloatArray, values: FloatArray, darkest: float
) -> go.Figure:
    """Contours of (rows, columns) values over the image."""
    most = float(np.nanmax(values))
    step = round_step(most / 5)
    plot = image_plot(camera)
    add_trace(plot, "contour", x=columns, y=rows, z=compact(values), zmin=0, zmax=darkest, showscale=False,
              contours={"start": step, "end": most, "size": step, "showlabels": True, "coloring": "heatmap",
                        "labelfont": {"size": 12, "color": INK}},
              line={"color": INK, "width": 0.7}, colorscale=[(0, PAPER), (1, ACCENT)],
              hovertemplate="(%{x:.0f}, %{y:.0f}): %{z:.3g} px<extra></extra>")  # fmt: skip
    return plot
