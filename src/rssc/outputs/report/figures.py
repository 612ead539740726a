"""The plots of the report, each with a caption that says what a good and a bad one look like."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from rssc.model.arrays import FloatArray
from rssc.model.calibration import Calibration, PartialEstimate
from rssc.model.camera import Camera
from rssc.model.covariance import SIGMAS_95
from rssc.outputs.report.constants import REPORT
from rssc.outputs.report.plots import (
    ACCENT,
    GREEN,
    INK,
    MUTED,
    PAPER,
    WARM,
    Figure,
    add_segments,
    add_trace,
    axis,
    compact,
    empty_plot,
    image_plot,
)
from rssc.outputs.report.residuals import Residuals
from rssc.outputs.report.summary import half_width, line_name, number

_MINUS = "\N{MINUS SIGN}"


def residual_map(residuals: Residuals, camera: Camera) -> Figure:
    """Residual vectors over the image, single ones and means of cells."""
    sigma = max(residuals.sigma, 1e-9)
    kept = np.flatnonzero(~residuals.outliers)
    magnification = float(f"{camera.width / 40 / (2 * sigma):.1g}")
    shown = kept[:: -(-len(kept) // REPORT.most_vectors) or 1]
    centres, means = _cell_means(residuals.pixels[kept], residuals.errors[kept], camera)
    plot = image_plot(camera)
    add_segments(plot, residuals.pixels[shown], residuals.errors[shown] * magnification, MUTED, 1, "single")
    add_segments(plot, centres, means * magnification, WARM, 3, "mean of a cell")
    typical = float(np.median(np.linalg.norm(means, axis=1))) if len(means) else 0.0
    return Figure(
        "residual-map", "Residuals over the image", plot,
        f"Residuals (projection minus measurement), magnified {magnification:g} times: thin for {len(shown):,} single "
        "observations, bold for the means of cells. Good: thin lines in all directions and bold ones too short to see. "
        "Bad: bold lines that swirl or point outwards; the lens model is then not flexible enough.",
        f"Residual vectors over the image. Standard deviation of a coordinate {sigma:.3f} pixels, median length of the "
        f"cell means {typical:.3f} pixels.",
    )  # fmt: skip


def residual_rows(residuals: Residuals, calibration: Calibration) -> Figure:
    """Residuals along the image motion against the row."""
    camera = calibration.camera
    lines, line = camera.line_count, line_name(camera)
    along = residuals.along_motion
    kept = np.flatnonzero(np.isfinite(along) & ~residuals.outliers)
    rows = residuals.row_fractions * lines
    shown = kept[:: -(-len(kept) // REPORT.most_dots) or 1]
    edges, bins = np.linspace(0, lines, REPORT.row_bins + 1), REPORT.row_bins
    places = np.clip(np.digitize(rows[kept], edges) - 1, 0, bins - 1)
    counts = np.bincount(places, minlength=bins)
    means = np.bincount(places, along[kept], bins) / np.maximum(counts, 1)
    spread = np.sqrt(np.bincount(places, (along[kept] - means[places]) ** 2, bins) / np.maximum(counts, 1))
    full = counts >= REPORT.least_in_row_bin
    middle, means, errors = ((edges[:-1] + edges[1:]) / 2)[full], means[full], (2 * spread / np.sqrt(counts + 1))[full]
    plot = empty_plot(340)
    add_trace(plot, "scatter", x=compact(rows[shown]), y=compact(along[shown]), mode="markers", hoverinfo="skip",
              marker={"size": 2.5, "color": MUTED, "opacity": 0.35}, showlegend=False)  # fmt: skip
    add_trace(plot, "scatter", x=middle, y=means, mode="lines+markers", line={"color": WARM, "width": 2},
              marker={"size": 5}, error_y={"array": errors, "width": 0, "thickness": 1.5}, showlegend=False,
              hovertemplate=f"{line}s around %{{x:.0f}}: %{{y:.4f}} px<extra></extra>")  # fmt: skip
    plot.update_xaxes(title_text=f"{line} of the image", range=[0, lines])
    limit = max(4 * residuals.sigma, 1e-6)
    plot.update_yaxes(title_text="along the image motion [px]", range=[-limit, limit], zeroline=True)
    forward = np.copysign(1.0, camera.shutter.readout_ratio)
    slope_us = 1e6 * calibration.frame_interval_s * forward * residuals.readout_slope()
    fit = ""
    if np.isfinite(slope_us):
        fit = f"A straight-line fit would change the readout time by {_signed(slope_us, 1)} µs. "
    low, high = (float(means.min()), float(means.max())) if len(means) else (0.0, 0.0)
    return Figure(
        "residual-rows", f"Residuals against the {line}", plot,
        f"Measurement minus projection along the image motion, against the {line}; bold is the mean of a band. {fit}"
        "Good: the bold line is flat at zero. Bad: it slopes (the readout time is wrong) or bends "
        f"({line}s are not read at a constant rate).",
        f"Mean residual along the image motion in bands of {line}s, from {_signed(low)} to {_signed(high)} pixels. "
        f"{fit}",
    )  # fmt: skip


def residual_histogram(residuals: Residuals) -> Figure:
    """Distribution of the residuals of both coordinates."""
    sigma = max(residuals.sigma, 1e-9)
    limit = 5 * sigma
    edges = np.linspace(-limit, limit, 61)
    middle, width = (edges[:-1] + edges[1:]) / 2, edges[1] - edges[0]
    plot = empty_plot(300)
    for i, (name, colour) in enumerate((("u (horizontal)", ACCENT), ("v (vertical)", WARM))):
        counts = np.histogram(residuals.errors[:, i], edges)[0]
        add_trace(plot, "scatter", x=middle, y=counts, mode="lines", line={"shape": "hvh", "color": colour}, name=name)
    normal = len(residuals) * width / (sigma * np.sqrt(2 * np.pi)) * np.exp(-0.5 * (middle / sigma) ** 2)
    add_trace(plot, "scatter", x=middle, y=normal, mode="lines", line={"color": MUTED, "dash": "dot"},
              name="normal distribution of the same width")  # fmt: skip
    plot.update_xaxes(title_text="residual [px]", range=[-limit, limit])
    plot.update_yaxes(title_text="observations", rangemode="tozero")
    largest: FloatArray = np.abs(residuals.errors).max(axis=1)
    beyond = float(np.mean(largest > limit)) if len(residuals) else 0.0
    return Figure(
        "residual-histogram", "Distribution of the residuals", plot,
        f"Standard deviation {sigma:.3f} px per coordinate (by the median); {100 * beyond:.1f} % of the observations "
        "lie outside the plot and have little weight. Good: both curves narrow and centred at zero. Bad: wide, off "
        "centre, or with shoulders.",
        f"Histogram of residuals with a standard deviation of {sigma:.3f} pixels; {100 * beyond:.1f} % lie beyond "
        f"plus or minus {limit:.2f} pixels.",
    )  # fmt: skip


def window_readouts(windows: Sequence[PartialEstimate], calibration: Calibration) -> Figure:
    """The readout ratio from parts of the footage."""
    sources = {window.source for window in windows}
    labels: list[str] = []
    for window in windows:
        first, last = window.frames
        name = f"{window.source}<br>" if len(sources) > 1 else ""
        labels.append(f"{name}{first}\N{EN DASH}{last}")
    return Figure(
        "windows", "Readout ratio from parts of the footage", _ratio_plot(labels, windows, calibration),
        "The readout ratio estimated from each part alone, with 95 % intervals; the band is the result with its own. "
        "Good: the intervals overlap the band. Bad: parts that contradict one another.",
        _ratio_words([label.replace("<br>", " ") for label in labels], windows),
    )  # fmt: skip


def correlations(calibration: Calibration) -> Figure:
    """Correlation matrix of the estimated parameters."""
    sigma = np.sqrt(np.maximum(np.diag(calibration.covariance), 1e-300))
    matrix = np.clip(calibration.covariance / np.outer(sigma, sigma), -1, 1)
    names = [name.replace("readout_ratio", "readout") for name in calibration.parameters]
    off = np.abs(matrix - np.eye(len(names)))
    i, j = np.unravel_index(np.argmax(off), off.shape)
    with_readout = off[calibration.parameters.index("readout_ratio")].max() if "readout" in names else 0.0
    plot = empty_plot(420, margin={"l": 64, "r": 8, "t": 34, "b": 8}, meta={"aspect": 0.8})
    add_trace(plot, "heatmap", z=compact(matrix), x=names, y=names, zmin=-2, zmax=2, showscale=False, xgap=1, ygap=1,
              colorscale=[(0, ACCENT), (0.5, PAPER), (1, WARM)], texttemplate="%{z:.2f}", textfont={"color": INK},
              hovertemplate="%{y} and %{x}: %{z:.3f}<extra></extra>")  # fmt: skip
    plot.update_xaxes(side="top", showgrid=False, ticks="")
    plot.update_yaxes(autorange="reversed", showgrid=False, ticks="")
    return Figure(
        "correlation", "Correlation of the parameters", plot,
        f"0: independent; 1 or {_MINUS}1: one parameter can replace the other. Good: the row of the readout is pale "
        "(coefficients of one lens are always correlated). Bad: the readout is correlated with a focal length, because "
        "the motion was too uniform.",
        f"Correlation matrix of {', '.join(names)}. The strongest is {matrix[i, j]:+.2f} between {names[i]} and "
        f"{names[j]}; the strongest with the readout is {with_readout:.2f}.",
    )  # fmt: skip


def convergence(costs: Sequence[float]) -> Figure:
    """Cost above the last one, by iteration."""
    values = np.asarray(costs, dtype=float)
    excess = 100 * (values[:-1] - values[-1]) / max(values[-1], 1e-300)
    plot = empty_plot(260)
    add_trace(plot, "scatter", x=np.arange(len(excess)) + 1, y=np.maximum(excess, 1e-12), mode="lines+markers",
              showlegend=False, line={"color": ACCENT},
              hovertemplate="after %{x}: %{y:.2g} %<extra></extra>")  # fmt: skip
    plot.update_xaxes(title_text="iteration", dtick=max(1, len(excess) // 10))
    plot.update_yaxes(title_text="cost above the last [%]", type="log", exponentformat="power", dtick=1)
    return Figure(
        "convergence", "Convergence", plot,
        "Cost of the last adjustment above its final value, by iteration. Good: a steep fall to a minimum. Bad: a "
        "long flat line; some combination of parameters is then poorly determined.",
        f"The cost fell over {len(values)} iterations, by {excess[0] if len(excess) else 0:.2g} % in total.",
    )  # fmt: skip


def velocities(times_s: FloatArray, turning: FloatArray, speed: FloatArray) -> Figure:
    """(n, 3) turning rate about the camera's axes in degrees a second, and (n,) speed in scene depths a second."""
    plot = empty_plot(420, margin={"l": 64, "r": 8, "t": 34, "b": 48})
    for i, (name, colour) in enumerate(
        (("tilt (about x)", ACCENT), ("pan (about y)", WARM), ("roll (about z)", GREEN))
    ):
        add_trace(plot, "scatter", x=compact(times_s), y=compact(turning[:, i]), mode="lines", name=name,
                  line={"color": colour, "width": 1.8}, yaxis="y2")  # fmt: skip
    add_trace(plot, "scatter", x=compact(times_s), y=compact(speed), mode="lines", showlegend=False,
              line={"color": INK}, hovertemplate="%{y:.2f} depths/s<extra></extra>")  # fmt: skip
    plot.update_layout(yaxis2={**axis(), "domain": [0.46, 1], "anchor": "x"})
    plot.update_layout(yaxis={"domain": [0, 0.36], "rangemode": "tozero"}, yaxis_title_text="speed [depths/s]",
                       yaxis2_title_text="turning rate [°/s]", xaxis_title_text="time [s]")  # fmt: skip
    fastest = float(np.abs(turning).max())
    return Figure(
        "velocity", "Camera velocity", plot,
        "Turning rate and speed over time, the speed in median scene depths per second because the scale is unknown. "
        "Good: quick turns about all axes while moving. Bad: flat lines (the readout is not observable) or jagged ones "
        "(the trajectory follows noise).",
        f"Turning rate up to {fastest:.0f} degrees a second, speed up to {speed.max():.2f} scene depths a second.",
    )  # fmt: skip


def _ratio_plot(labels: Sequence[str], rows: Sequence[PartialEstimate], calibration: Calibration) -> go.Figure:
    result, half = calibration.camera.shutter.readout_ratio, SIGMAS_95 * calibration.sigma("readout_ratio")
    plot = empty_plot(300)
    add_trace(plot, "scatter", x=list(labels), y=[row.readout_ratio for row in rows], mode="markers", showlegend=False,
              marker={"size": 8, "color": WARM}, hovertemplate="%{y:.4f}<extra></extra>",
              error_y={"array": [SIGMAS_95 * row.sigma for row in rows], "width": 0})  # fmt: skip
    plot.add_hrect(y0=result - half, y1=result + half, fillcolor=ACCENT, opacity=0.18, line_width=0, layer="below")
    plot.add_hline(y=result, line={"color": ACCENT, "width": 1})
    plot.update_xaxes(title_text="frames", type="category")
    # Room above and below, so that the ends of the band are visible.
    halves = np.array([SIGMAS_95 * row.sigma for row in rows] + [half])
    values = np.array([row.readout_ratio for row in rows] + [result])
    low, high = (values - halves).min(), (values + halves).max()
    room = 0.15 * max(high - low, 1e-6)
    plot.update_yaxes(title_text="readout ratio", range=[low - room, high + room])
    return plot


def _ratio_words(labels: Sequence[str], rows: Sequence[PartialEstimate]) -> str:
    words = [
        f"{label}: {number(row.readout_ratio, row.sigma)} plus or minus {half_width(row.sigma)}"
        for label, row in zip(labels, rows, strict=True)
    ]
    return f"Readout ratio by part. {'; '.join(words)}."


def _cell_means(pixels: FloatArray, errors: FloatArray, camera: Camera) -> tuple[FloatArray, FloatArray]:
    """(k, 2) centres of square cells that have enough observations, and (k, 2) their mean errors."""
    cells = REPORT.cells
    size = camera.width / cells
    columns = np.clip((pixels[:, 0] / size).astype(int), 0, cells - 1)
    row_count = max(1, round(camera.height / size))
    rows = np.clip((pixels[:, 1] / camera.height * row_count).astype(int), 0, row_count - 1)
    places = rows * cells + columns
    counts = np.bincount(places, minlength=row_count * cells)
    sums = np.stack([np.bincount(places, errors[:, i], row_count * cells) for i in range(2)], axis=1)
    full = np.flatnonzero(counts >= REPORT.least_in_cell)
    centres = np.stack([full % cells + 0.5, full // cells + 0.5], axis=1) * (size, camera.height / row_count)
    return np.asarray(centres, np.float64), sums[full] / counts[full, None]


def _signed(value: float, digits: int = 3) -> str:
    return f"{value:+.{digits}f}".replace("-", _MINUS)
