"""A calibration as text, as HTML for notebooks, and its figures one by one."""

import json
import re
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

import plotly.graph_objects as go

from rssc.errors import InputError
from rssc.model.calibration import Calibration
from rssc.outputs.report.groups import figure_groups
from rssc.outputs.report.plots import Figure
from rssc.outputs.report.residuals import residuals_of
from rssc.outputs.report.summary import RECORD, notes_of, quantities, verdict_words
from rssc.solver.problem import with_trajectory

_WIDTH = 720
"""Of a figure on its own, in pixels: that of the report's column."""
_TITLE_HEIGHT = 32


def calibration_text(calibration: Calibration) -> str:
    """A few lines: the camera, every parameter with its 95 % interval, the verdict."""
    rows = [
        f"{row.label:20s} {row.value:>12s} {row.unit:12s} {row.interval}".rstrip() for row in quantities(calibration)
    ]
    reasons = [f"  - {reason}" for reason in calibration.reasons]
    heading = [] if calibration.placeholder else [_heading(calibration)]
    return "\n".join([*heading, *rows, _verdict(calibration), *reasons])


def calibration_html(calibration: Calibration) -> str:
    """A table of the parameters with their 95 % intervals, and the verdict, in the colours of the page around it."""
    rows = "".join(
        f'<tr><td style="text-align:left">{escape(row.label)}</td><td>{escape(f"{row.value} {row.unit}".rstrip())}</td>'
        f"<td>{escape(row.interval)}</td></tr>"
        for row in quantities(calibration)
    )
    lists = "".join(
        f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"
        for lines in (calibration.reasons, notes_of(calibration))
        if lines
    )
    verdict = f"<p>{escape(_verdict(calibration))}</p>{lists}"
    if calibration.placeholder:
        return f"<div>{verdict}<p>{RECORD}</p></div>"
    return (
        f"<div><p><b>{escape(_heading(calibration))}</b></p><table><thead><tr><th></th><th>estimate</th>"
        f"<th>95 % interval</th></tr></thead><tbody>{rows}</tbody></table>{verdict}</div>"
    )


def plot_names(calibration: Calibration) -> tuple[str, ...]:
    """Names of the figures that the report of a calibration has."""
    return tuple(_figures(calibration))


def calibration_plot(calibration: Calibration, name: str) -> go.Figure:
    """A figure of the report on its own: light colours, a title, a fixed size.

    Raises:
        InputError: There is no such figure.
    """
    known = _figures(calibration)
    if name not in known:
        among = f"expected one of {', '.join(known)}" if known else "this calibration has none"
        raise InputError(f"there is no plot {name!r}; {among}.")
    return _alone(known[name])


def _heading(calibration: Calibration) -> str:
    camera = calibration.camera
    return f"{camera.lens.model} lens, {camera.width} x {camera.height}, read {camera.shutter.direction}".replace(
        "_", " "
    )


def _verdict(calibration: Calibration) -> str:
    return f"{calibration.status}: {verdict_words(calibration)}"


def _figures(calibration: Calibration) -> dict[str, Figure]:
    scenes = [with_trajectory(stretch.scene, calibration.knot_spacing) for stretch in calibration.stretches]
    groups = figure_groups(calibration, scenes, residuals_of(scenes) if scenes else None)
    return {figure.name: figure for group in groups.values() for figure in group}


def _alone(figure: Figure) -> go.Figure:
    # Colours are the page's CSS variables, whose values report.js puts in.
    values = {name: json.dumps(value)[1:-1] for name, value in _variables().items()}
    text = re.sub(r"var\((--[\w-]+)\)", lambda found: values[found[1]], str(figure.plot.to_json()))
    plot: dict[str, Any] = json.loads(text)
    layout: dict[str, Any] = plot["layout"]
    margin = {**layout["margin"], "t": layout["margin"]["t"] + _TITLE_HEIGHT}
    height = layout["height"] + _TITLE_HEIGHT
    if "meta" in layout:
        height = round((_WIDTH - margin["l"] - margin["r"]) * layout["meta"]["aspect"] + margin["t"] + margin["b"])
    layout |= {
        "title": {"text": figure.title, "x": 0, "xref": "paper", "y": 1, "yref": "container", "yanchor": "top",
                  "pad": {"t": 10}},
        "margin": margin, "width": _WIDTH, "height": height,
        "paper_bgcolor": _variables()["--paper"],
    }  # fmt: skip
    return go.Figure(plot)


@cache
def _variables() -> dict[str, str]:
    """Values of the page's CSS variables on light paper."""
    style = files("rssc.outputs.report").joinpath("style.css").read_text()
    return dict(re.findall(r"(--[\w-]+): ([^;]+);", style[: style.index("}")]))
