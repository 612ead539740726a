"""The plots of the report, each with a caption that says what a good and a bad one look like.

Colours are CSS variables of the page: report.js puts their values in, so that plots follow light, dark and print.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from rssc.model.arrays import FloatArray
from rssc.model.calibration import Calibration, PartialEstimate, TriedKnots
from rssc.model.camera import Camera
from rssc.model.covariance import SIGMAS_95
from rssc.outputs.report.projection_uncertainty import projection_uncertainty, uncertainty_grid
from rssc.outputs.report.residuals import Residuals
from rssc.outputs.report.summary import half_width, number

INK, MUTED, PAPER, GRID = "var(--ink)", "var(--muted)", "var(--paper)", "var(--rule)"
ACCENT, WARM, GREEN, FAINT = "var(--accent)", "var(--warm)", "var(--green)", "var(--faint)"
_MOST_VECTORS = 1500
_MOST_DOTS = 3000
_ROW_BINS = 24
_CELLS = 12


@dataclass(frozen=True)
class Figure:
    """A plot as the page shows it."""

    name: str
    title: str
    plot: go.Figure
    caption: str
    alt: str
    """What a reader who cannot see the plot should know."""


def residual_map(residuals: Residuals, camera: Camera) -> Figure:
    """Residual vectors over the image, single ones and means of cells."""
    sigma = max(residuals.sigma, 1e-9)
    kept = np.flatnonzero(~residuals.outliers)
    magnification = float(f"{camera.width / 40 / (2 * sigma):.1g}")
    shown = kept if len(kept) <= _MOST_VECTORS else kept[:: -(-len(kept) // _MOST_VECTORS)]
    centres, means = _cell_means(residuals.pixels[kept], residuals.errors[kept], camera)
    plot = _image_plot(camera)
    plot.add_trace(_arrows(residuals.pixels[shown], residuals.errors[shown] * magnification, MUTED, 1, "single"))
    plot.add_trace(_arrows(centres, means * magnification, WARM, 3, "mean around here"))
    typical = float(np.median(np.linalg.norm(means, axis=1))) if len(means) else 0.0
    return Figure(
        "residual-map", "Residuals over the image", plot,
        f"Where the camera puts a point minus where it was seen, {magnification:g} times enlarged: thin for "
        f"{len(shown):,} single observations, bold for the mean around a place. Good: thin lines in all directions "
        "and bold ones too short to see; bad: bold lines that swirl or point outwards, which a better lens model "
        "would explain.",
        f"Residual vectors over the image; a coordinate is off by {sigma:.3f} pixels, the mean around a place by "
        f"{typical:.3f} pixels.",
    )  # fmt: skip


def residual_rows(residuals: Residuals, calibration: Calibration) -> Figure:
    """Residuals along the image motion against the row."""
    camera = calibration.camera
    lines = camera.line_count
    along = residuals.along_motion
    kept = np.flatnonzero(np.isfinite(along) & ~residuals.outliers)
    rows = residuals.row_fractions * lines
    shown = kept if len(kept) <= _MOST_DOTS else kept[:: -(-len(kept) // _MOST_DOTS)]
    edges = np.linspace(0, lines, _ROW_BINS + 1)
    bins = np.clip(np.digitize(rows[kept], edges) - 1, 0, _ROW_BINS - 1)
    counts = np.bincount(bins, minlength=_ROW_BINS)
    means = np.bincount(bins, along[kept], _ROW_BINS) / np.maximum(counts, 1)
    spread = np.sqrt(np.bincount(bins, (along[kept] - means[bins]) ** 2, _ROW_BINS) / np.maximum(counts, 1))
    full = counts >= 8
    middle, means, errors = ((edges[:-1] + edges[1:]) / 2)[full], means[full], (2 * spread / np.sqrt(counts + 1))[full]
    plot = go.Figure(layout=_layout(height=340))
    plot.add_trace(
        go.Scatter(x=_compact(rows[shown]), y=_compact(along[shown]), mode="markers", hoverinfo="skip",
                     marker={"size": 2.5, "color": MUTED, "opacity": 0.35}, showlegend=False)
    )  # fmt: skip
    plot.add_trace(
        go.Scatter(x=middle, y=means, mode="lines+markers", line={"color": WARM, "width": 2}, marker={"size": 5},
                   error_y={"array": errors, "width": 0, "thickness": 1.5}, showlegend=False,
                   hovertemplate="rows around %{x:.0f}: %{y:.4f} px<extra></extra>")
    )  # fmt: skip
    line = "row" if camera.shutter.axis == "rows" else "column"
    plot.update_xaxes(title_text=f"{line} of the image", range=[0, lines])
    limit = max(4 * residuals.sigma, 1e-6)
    plot.update_yaxes(title_text="along the image motion [px]", range=[-limit, limit], zeroline=True)
    forward = np.copysign(1.0, camera.shutter.readout_ratio)
    slope_us = 1e6 * calibration.frame_interval_s * forward * residuals.readout_slope()
    would = f"A line through all would change the readout by {slope_us:+.1f} µs. " if np.isfinite(slope_us) else ""
    would = would.replace("-", "\N{MINUS SIGN}")
    return Figure(
        "residual-rows", "Residuals against the row", plot,
        f"How far points were ahead of their prediction along the image motion, by row; bold is the mean. {would}"
        "Good: the bold line is flat at zero; bad: it slopes, which means a wrong readout time, or it bends, which "
        "means rows that are not read at a steady pace.",
        "Mean residual along the image motion for bands of rows, from "
        f"{_signed(means.min() if len(means) else 0)} to {_signed(means.max() if len(means) else 0)} pixels. {would}",
    )  # fmt: skip


def residual_histogram(residuals: Residuals) -> Figure:
    """Distribution of the residuals of both coordinates."""
    sigma = max(residuals.sigma, 1e-9)
    limit = 5 * sigma
    edges = np.linspace(-limit, limit, 61)
    middle, width = (edges[:-1] + edges[1:]) / 2, edges[1] - edges[0]
    plot = go.Figure(layout=_layout(height=300))
    for i, (name, colour) in enumerate((("u (across)", ACCENT), ("v (down)", WARM))):
        counts = np.histogram(residuals.errors[:, i], edges)[0]
        plot.add_trace(go.Scatter(x=middle, y=counts, mode="lines", line={"shape": "hvh", "color": colour}, name=name))
    bell = 2 * len(residuals) / 2 * width / (sigma * np.sqrt(2 * np.pi)) * np.exp(-0.5 * (middle / sigma) ** 2)
    plot.add_trace(
        go.Scatter(x=middle, y=bell, mode="lines", line={"color": MUTED, "dash": "dot"}, name="bell of the same width")
    )
    plot.update_xaxes(title_text="residual [px]", range=[-limit, limit])
    plot.update_yaxes(title_text="observations", rangemode="tozero")
    beyond = float(np.mean(np.abs(residuals.errors).max(axis=1) > limit)) if len(residuals) else 0.0
    return Figure(
        "residual-histogram", "How large the residuals are", plot,
        f"Typically {sigma:.3f} px for each coordinate; {100 * beyond:.1f} % of the observations lie beyond the plot "
        "and hardly count. Good: both curves narrow and centred at zero; bad: wide, off the centre, or with shoulders.",
        f"Histogram of residuals with a standard deviation of {sigma:.3f} pixels; {100 * beyond:.1f} % lie beyond "
        f"plus or minus {limit:.2f} pixels.",
    )  # fmt: skip


def window_readouts(windows: Sequence[PartialEstimate], calibration: Calibration) -> Figure:
    """The readout ratio from parts of the footage."""
    sources = {window.source for window in windows}
    labels = []
    for window in windows:
        first, last = window.frames
        name = f"{window.source}<br>" if len(sources) > 1 else ""
        labels.append(f"{name}{first}\N{EN DASH}{last}")
    return Figure(
        "windows", "Readout from parts of the clip", _ratio_plot(labels, windows, calibration, "frames"),
        "The readout ratio estimated from the frames of each window alone; the band is the answer with its 95 % "
        "interval. Good: the bars cross the band; bad: windows that contradict one another.",
        _ratio_words("window of frames", [label.replace("<br>", " ") for label in labels], windows),
    )  # fmt: skip


def knot_readouts(knots: Sequence[TriedKnots], calibration: Calibration) -> Figure:
    """The readout ratio for splines of different smoothness."""
    knots = sorted(knots, key=lambda knot: -knot.spacing)
    labels = [f"{knot.spacing:g}{' (chosen)' if knot.chosen else ''}" for knot in knots]
    plot = _ratio_plot(labels, knots, calibration, "frames between the knots of the trajectory")
    return Figure(
        "knots", "Readout for smoother and rougher motion", plot,
        "The readout ratio when the motion may change faster (fewer frames between knots) or slower. Good: the finer "
        "ones agree; bad: the answer slides with the choice, so it comes from the assumed smoothness.",
        _ratio_words("knot spacing", labels, knots),
    )  # fmt: skip


def projection_map(calibration: Calibration) -> Figure:
    """Standard deviation of a pixel's place over the image."""
    camera = calibration.camera
    sigmas = projection_uncertainty(calibration)
    columns, rows = uncertainty_grid(camera)
    centre, worst = float(sigmas[len(rows) // 2, len(columns) // 2]), float(np.nanmax(sigmas))
    step = _round_step(worst / 5)
    plot = _image_plot(camera)
    plot.add_trace(
        go.Contour(x=columns, y=rows, z=_compact(sigmas), zmin=0, zmax=1.3 * worst, showscale=False,
                   contours={"start": step, "end": worst, "size": step, "showlabels": True, "coloring": "heatmap",
                             "labelfont": {"size": 12, "color": INK}},
                   line={"color": INK, "width": 0.7}, colorscale=[[0, PAPER], [1, ACCENT]],
                   hovertemplate="(%{x:.0f}, %{y:.0f}): %{z:.3g} px<extra></extra>")
    )  # fmt: skip
    return Figure(
        "projection", "How well each place in the image is known", plot,
        "Standard deviation in pixels of where a far point appears, from the covariance of the lens. The part that a "
        "turn of the camera would make up for is taken out, because poses absorb it. Good: far below a pixel out to "
        "the corners; bad: corners many times worse than the middle, where no tracks were.",
        f"Map of the projection's standard deviation: {centre:.2g} pixels in the middle, {worst:.2g} at worst.",
    )  # fmt: skip


def correlations(calibration: Calibration) -> Figure:
    """Correlation matrix of the estimated parameters."""
    sigma = np.sqrt(np.maximum(np.diag(calibration.covariance), 1e-300))
    matrix = np.clip(calibration.covariance / np.outer(sigma, sigma), -1, 1)
    names = [name.replace("readout_ratio", "readout") for name in calibration.parameters]
    off = np.abs(matrix - np.eye(len(names)))
    i, j = np.unravel_index(np.argmax(off), off.shape)
    with_readout = off[calibration.parameters.index("readout_ratio")].max() if "readout" in names else 0.0
    plot = go.Figure(layout=_layout(height=420, margin={"l": 64, "r": 8, "t": 34, "b": 8}, meta={"aspect": 0.8}))
    plot.add_trace(
        go.Heatmap(z=_compact(matrix), x=names, y=names, zmin=-2, zmax=2, showscale=False, xgap=1, ygap=1,
                   colorscale=[[0, ACCENT], [0.5, PAPER], [1, WARM]], texttemplate="%{z:.2f}", textfont={"color": INK},
                   hovertemplate="%{y} and %{x}: %{z:.3f}<extra></extra>")
    )  # fmt: skip
    plot.update_xaxes(side="top", showgrid=False, ticks="")
    plot.update_yaxes(autorange="reversed", showgrid=False, ticks="")
    return Figure(
        "correlation", "What could be mistaken for what", plot,
        "Correlation of the estimates: 0 is told apart, 1 or \N{MINUS SIGN}1 is one for the other. Good: the readout's "
        "row is pale (coefficients of one lens always lean on each other); bad: the readout goes with a focal length, "
        "because the motion was too plain.",
        f"Correlation matrix of {', '.join(names)}. The strongest is {matrix[i, j]:+.2f} between {names[i]} and "
        f"{names[j]}; the strongest with the readout is {with_readout:.2f}.",
    )  # fmt: skip


def convergence(costs: Sequence[float]) -> Figure:
    """Cost above the last one, by iteration."""
    values = np.asarray(costs, dtype=float)
    excess = 100 * (values[:-1] - values[-1]) / max(values[-1], 1e-300)
    plot = go.Figure(layout=_layout(height=260))
    plot.add_trace(
        go.Scatter(x=np.arange(len(excess)) + 1, y=np.maximum(excess, 1e-12), mode="lines+markers", showlegend=False,
                   line={"color": ACCENT}, hovertemplate="after %{x}: %{y:.2g} %<extra></extra>")
    )  # fmt: skip
    plot.update_xaxes(title_text="iteration", dtick=max(1, len(excess) // 10))
    plot.update_yaxes(title_text="cost above the last [%]", type="log", exponentformat="power", dtick=1)
    return Figure(
        "convergence", "Convergence", plot,
        "How far the cost of the last solve still was above where it ended. Good: it falls steeply and stops by "
        "itself; bad: a long flat line, which means that some direction is hardly known.",
        f"The cost fell over {len(values)} iterations, by {excess[0] if len(excess) else 0:.2g} % in all.",
    )  # fmt: skip


def velocities(times_s: FloatArray, turning: FloatArray, speed: FloatArray) -> Figure:
    """(n, 3) turning rate about the camera's axes in degrees a second, and (n,) speed in scene depths a second."""
    plot = go.Figure(layout=_layout(height=420, margin={"l": 64, "r": 8, "t": 34, "b": 48}))
    for i, (name, colour) in enumerate(
        (("tilt (about x)", ACCENT), ("pan (about y)", WARM), ("roll (about z)", GREEN))
    ):
        plot.add_trace(go.Scatter(x=_compact(times_s), y=_compact(turning[:, i]), mode="lines", name=name,
                                  line={"color": colour, "width": 1.8}, yaxis="y2"))  # fmt: skip
    plot.add_trace(
        go.Scatter(x=_compact(times_s), y=_compact(speed), mode="lines", showlegend=False, line={"color": INK},
                   hovertemplate="%{y:.2f} depths/s<extra></extra>")
    )  # fmt: skip
    plot.update_layout(yaxis2={**_axis(), "domain": [0.46, 1], "anchor": "x"})
    plot.update_layout(yaxis={"domain": [0, 0.36], "rangemode": "tozero"}, yaxis_title_text="speed [depths/s]",
                       yaxis2_title_text="turning [°/s]", xaxis_title_text="time [s]")  # fmt: skip
    fastest = float(np.abs(turning).max())
    return Figure(
        "velocity", "How fast the camera moved", plot,
        "Turning and speed over time, the speed in median distances of the scene because its scale is unknown. Good: "
        "brisk turns about all axes while walking; bad: flat lines (the readout cannot be seen) or jagged ones (the "
        "trajectory follows noise).",
        f"Turning rate up to {fastest:.0f} degrees a second, speed up to {speed.max():.2f} scene depths a second.",
    )  # fmt: skip


_Estimates = Sequence[PartialEstimate] | Sequence[TriedKnots]


def _ratio_plot(labels: Sequence[str], rows: _Estimates, calibration: Calibration, title: str) -> go.Figure:
    answer, half = calibration.camera.shutter.readout_ratio, SIGMAS_95 * calibration.sigma("readout_ratio")
    plot = go.Figure(layout=_layout(height=300))
    plot.add_trace(
        go.Scatter(x=list(labels), y=[row.readout_ratio for row in rows], mode="markers", showlegend=False,
                   marker={"size": 8, "color": WARM}, hovertemplate="%{y:.4f}<extra></extra>",
                   error_y={"array": [SIGMAS_95 * row.sigma for row in rows], "width": 0})
    )  # fmt: skip
    plot.add_hrect(y0=answer - half, y1=answer + half, fillcolor=ACCENT, opacity=0.18, line_width=0, layer="below")
    plot.add_hline(y=answer, line={"color": ACCENT, "width": 1})
    plot.update_xaxes(title_text=title, type="category")
    # Room above and below, so that the band is seen to end.
    halves = np.array([SIGMAS_95 * row.sigma for row in rows] + [half])
    values = np.array([row.readout_ratio for row in rows] + [answer])
    low, high = (values - halves).min(), (values + halves).max()
    room = 0.15 * max(high - low, 1e-6)
    plot.update_yaxes(title_text="readout ratio", range=[low - room, high + room])
    return plot


def _ratio_words(what: str, labels: Sequence[str], rows: _Estimates) -> str:
    words = [
        f"{label}: {number(row.readout_ratio, row.sigma)} plus or minus {half_width(row.sigma)}"
        for label, row in zip(labels, rows, strict=True)
    ]
    return f"Readout ratio by {what}. " + "; ".join(words) + "."


def _cell_means(pixels: FloatArray, errors: FloatArray, camera: Camera) -> tuple[FloatArray, FloatArray]:
    """(k, 2) centres of square cells that have enough observations, and (k, 2) their mean errors."""
    size = camera.width / _CELLS
    columns = np.clip((pixels[:, 0] / size).astype(int), 0, _CELLS - 1)
    row_count = max(1, round(camera.height / size))
    rows = np.clip((pixels[:, 1] / camera.height * row_count).astype(int), 0, row_count - 1)
    cells = rows * _CELLS + columns
    counts = np.bincount(cells, minlength=row_count * _CELLS)
    sums = np.stack([np.bincount(cells, errors[:, i], row_count * _CELLS) for i in range(2)], axis=1)
    full = np.flatnonzero(counts >= 20)
    centres = np.stack([full % _CELLS + 0.5, full // _CELLS + 0.5], axis=1) * (size, camera.height / row_count)
    return np.asarray(centres, np.float64), sums[full] / counts[full, None]


def _arrows(starts: FloatArray, vectors: FloatArray, colour: str, width: float, name: str) -> go.Scatter:
    """Line segments; the gap between two is a NaN."""
    ends = np.stack([starts, starts + vectors, np.full_like(starts, np.nan)], axis=1).reshape(-1, 2)
    return go.Scatter(x=_compact(ends[:, 0]), y=_compact(ends[:, 1]), mode="lines", hoverinfo="skip", name=name,
                      line={"color": colour, "width": width})  # fmt: skip


def _image_plot(camera: Camera) -> go.Figure:
    """Axes of the image, its first row on top."""
    aspect = camera.height / camera.width
    plot = go.Figure(layout=_layout(height=480, margin={"l": 44, "r": 8, "t": 30, "b": 28}, meta={"aspect": aspect}))
    plot.update_xaxes(range=[0, camera.width - 1], constrain="domain", showgrid=False, mirror=True, showline=True)
    plot.update_yaxes(range=[camera.height - 1, 0], scaleanchor="x", constrain="domain", showgrid=False, mirror=True,
                      showline=True)  # fmt: skip
    return plot


def _axis() -> dict:
    return {
        "gridcolor": GRID, "zeroline": False, "zerolinecolor": MUTED, "linecolor": GRID, "tickcolor": GRID,
        "fixedrange": True, "title": {"standoff": 8, "font": {"size": 13}}, "automargin": True,
    }  # fmt: skip


def _layout(**changes: object) -> dict:
    return {
        "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": INK, "size": 13, "family": "var(--sans)"},
        "margin": {"l": 64, "r": 8, "t": 24, "b": 48},
        "xaxis": _axis(), "yaxis": _axis(), "dragmode": False, "hoverlabel": {"bgcolor": PAPER},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "bgcolor": "rgba(0,0,0,0)"},
        **changes,
    }  # fmt: skip


def _compact(values: FloatArray) -> np.ndarray:
    """Single precision is plenty for a screen and half the size."""
    return np.asarray(values, dtype=np.float32)


def _round_step(value: float) -> float:
    """1, 2 or 5 times a power of ten, at least the value."""
    power = 10.0 ** np.floor(np.log10(max(value, 1e-9)))
    return float(power * next(n for n in (1, 2, 5, 10) if n * power >= value))


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "\N{MINUS SIGN}")
