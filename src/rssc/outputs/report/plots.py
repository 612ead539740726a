"""What the plots of the report share: colours, axes and empty plots.

Colours are CSS variables of the page: report.js puts their values in, so that plots follow light, dark and print.
"""

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from rssc.model.arrays import FloatArray
from rssc.model.camera import Camera

INK, MUTED, PAPER, GRID = "var(--ink)", "var(--muted)", "var(--paper)", "var(--rule)"
ACCENT, WARM, GREEN = "var(--accent)", "var(--warm)", "var(--green)"


@dataclass(frozen=True)
class Figure:
    """A plot as the page shows it."""

    name: str
    title: str
    plot: go.Figure
    caption: str
    """What is drawn, and what a good and a bad one look like."""
    alt: str
    """What a reader who cannot see the plot should know."""


def empty_plot(height: int, **layout: object) -> go.Figure:
    """Axes in the style of the page; `layout` adds to or replaces entries of Plotly's layout."""
    return go.Figure(
        layout={
            "height": height, "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"color": INK, "size": 13, "family": "var(--sans)"},
            "margin": {"l": 64, "r": 8, "t": 24, "b": 48},
            "xaxis": axis(), "yaxis": axis(), "dragmode": False, "hoverlabel": {"bgcolor": PAPER},
            "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "bgcolor": "rgba(0,0,0,0)"},
            **layout,
        }
    )  # fmt: skip


def image_plot(camera: Camera) -> go.Figure:
    """Axes of the image, its first row on top."""
    aspect = camera.height / camera.width
    plot = empty_plot(480, margin={"l": 44, "r": 8, "t": 30, "b": 28}, meta={"aspect": aspect})
    plot.update_xaxes(range=[0, camera.width - 1], constrain="domain", showgrid=False, mirror=True, showline=True)
    plot.update_yaxes(range=[camera.height - 1, 0], scaleanchor="x", constrain="domain", showgrid=False, mirror=True,
                      showline=True)  # fmt: skip
    return plot


def axis() -> dict[str, object]:
    """One axis in the style of the page."""
    return {
        "gridcolor": GRID, "zeroline": False, "zerolinecolor": MUTED, "linecolor": GRID, "tickcolor": GRID,
        "fixedrange": True, "title": {"standoff": 8, "font": {"size": 13}}, "automargin": True,
    }  # fmt: skip


def add_trace(plot: go.Figure, kind: str, **fields: object) -> None:
    """Adds a trace of one of Plotly's kinds (scatter, contour, heatmap, scatter3d)."""
    plot.add_trace({"type": kind, **fields})


def add_segments(plot: go.Figure, starts: FloatArray, vectors: FloatArray, colour: str, width: int, name: str) -> None:
    """Adds line segments from (n, 2) starts along (n, 2) vectors; the gap between two is a NaN."""
    ends = np.stack([starts, starts + vectors, np.full_like(starts, np.nan)], axis=1).reshape(-1, 2)
    add_trace(plot, "scatter", x=compact(ends[:, 0]), y=compact(ends[:, 1]), mode="lines", hoverinfo="skip", name=name,
              line={"color": colour, "width": width})  # fmt: skip


def compact(values: FloatArray) -> NDArray[np.float32]:
    """Single precision is enough for a screen and half the size."""
    return np.asarray(values, dtype=np.float32)


def round_step(value: float) -> float:
    """1, 2 or 5 times a power of ten, at least the value."""
    power = 10.0 ** np.floor(np.log10(max(value, 1e-9)))
    return float(power * next(n for n in (1, 2, 5, 10) if n * power >= value))
