"""Writes report.html: one self-contained file that needs no network."""

import json
import shlex
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from rssc.errors import InputError
from rssc.footage.footage import read_frames
from rssc.footage.video import VIDEO_SUFFIXES
from rssc.io.files import write_text
from rssc.io.reference_file import Reference
from rssc.model.calibration import Calibration
from rssc.model.covariance import UNKNOWN_SIGMA
from rssc.model.lens import LENS_MODELS
from rssc.model.projection import ProjectionDifference
from rssc.model.scene import Scene
from rssc.outputs.evaluate import compare
from rssc.outputs.exporters import EXPORTERS
from rssc.outputs.projection_table import difference_rows
from rssc.outputs.rectify import rectify_frame
from rssc.outputs.report import figures
from rssc.outputs.report.constants import REPORT
from rssc.outputs.report.pictures import (
    FrameReader,
    TrackPicture,
    busiest_frame,
    data_uri,
    fastest_frame,
    marker_width,
    track_picture,
)
from rssc.outputs.report.plots import Figure
from rssc.outputs.report.projection_figures import difference_map, projection_map
from rssc.outputs.report.residuals import Residuals, residuals_of
from rssc.outputs.report.scene_view import motion_view, scene_view
from rssc.outputs.report.summary import (
    PART_WORDS,
    VERDICTS,
    field_of_view,
    half_width,
    motion_sentence,
    number,
    quantities,
    unknown_lens_parameters,
)
from rssc.solver.problem import with_trajectory


@dataclass(frozen=True)
class BeforeAfter:
    """A frame as filmed and as a global shutter would have seen it."""

    name: str
    before: str
    after: str
    motion_px: float
    """How far the image moves during the readout."""


def write_report(
    calibration: Calibration,
    path: Path | str,
    images: FrameReader = read_frames,
    reference: Reference | None = None,
) -> None:
    """Writes the report of a calibration; the file appears only when it is complete.

    Args:
        calibration: With its stretches; without them the report has the numbers and no pictures.
        path: Usually `report.html`.
        images: Reads frames of a source. Where the source is missing, the report says so and has no pictures.
        reference: A known camera or another calibration, whose projection is compared.
    """
    write_text(Path(path), render_report(calibration, images, reference))


def render_report(
    calibration: Calibration, images: FrameReader = read_frames, reference: Reference | None = None
) -> str:
    """The report as a page."""
    evaluation = None if reference is None else compare(calibration, reference)
    difference = None if evaluation is None else evaluation.projection
    name = "" if reference is None else reference.name
    scenes = [with_trajectory(stretch.scene, calibration.knot_spacing) for stretch in calibration.stretches]
    residuals = residuals_of(scenes) if scenes else None
    tracks, before_after, notes = None, None, list(calibration.notes)
    if residuals is not None and len(residuals):
        try:
            tracks, before_after = _pictures(calibration, scenes[0], residuals, images)
        except (InputError, OSError) as error:
            notes.append(f"no frames are shown here: {error}")
    groups = {
        "fit": _fit_figures(calibration, residuals),
        "certainty": _certainty_figures(calibration, compared=difference is not None)
        if calibration.statistics.frames
        else [],
        "compared": _compared_figures(calibration, difference, name) if difference is not None else [],
        "motion": [scene_view(scenes[0]), motion_view(scenes[0], calibration.frame_interval_s)] if scenes else [],
        "solve": _solve_figures(calibration),
    }
    seconds = calibration.statistics.seconds
    plots = {figure.name: json.loads(str(figure.plot.to_json())) for group in groups.values() for figure in group}
    return _template().render(
        calibration=calibration,
        camera=calibration.camera,
        statistics=calibration.statistics,
        stretches=calibration.stretches,
        quantities=quantities(calibration),
        verdict=VERDICTS[calibration.status],
        lens_words=LENS_MODELS[calibration.camera.lens.model].words,
        view=field_of_view(calibration.camera),
        uncertainty=calibration.uncertainty,
        motion="" if calibration.uncertainty.motion is None else motion_sentence(calibration.uncertainty.motion),
        notes=notes,
        tracks=tracks,
        dot=marker_width(calibration.camera),
        trail_frames=REPORT.trail_frames,
        before_after=before_after,
        groups=groups,
        evaluation=evaluation,
        reference_name=name,
        places=() if difference is None else difference_rows(difference),
        number=number,
        name=_name(calibration),
        rectify=_rectify_command(calibration),
        exporters=EXPORTERS,
        half_width=half_width,
        part_words=PART_WORDS,
        total=sum(seconds.values()),
        longest=max(seconds.values(), default=0.0) or 1.0,
        plots=_script_json(plots),
        plotly=Markup(get_plotlyjs()),
        css=_resource("style.css"),
        script=_resource("report.js"),
    )


def _name(calibration: Calibration) -> str:
    """Names of the sources without their folders."""
    names = dict.fromkeys(Path(stretch.source).name for stretch in calibration.stretches)
    return ", ".join(names) or "Camera"


def _rectify_command(calibration: Calibration) -> str:
    source = calibration.stretches[0].source if calibration.stretches else "VIDEO"
    output = "rectified.mp4" if Path(source).suffix.lower() in VIDEO_SUFFIXES else "rectified"
    return f"rssc rectify {shlex.quote(source)} calibration.json -o {output}"


def _pictures(
    calibration: Calibration, scene: Scene, residuals: Residuals, images: FrameReader
) -> tuple[TrackPicture, BeforeAfter]:
    stretch = calibration.stretches[0]
    busy, (fast, motion) = busiest_frame(scene), fastest_frame(residuals, scene.tracks.frame_count)
    wanted = np.unique(stretch.frame_numbers[[busy, fast]])
    frames = dict(images(stretch.source, wanted))
    missing = [number for number in wanted if number not in frames]
    if missing:
        raise InputError(f"frame {missing[0]} of {stretch.source} cannot be read.")
    tracks = track_picture(frames[stretch.frame_numbers[busy]], scene, busy, stretch.names[busy], residuals)
    before = frames[stretch.frame_numbers[fast]]
    after = rectify_frame(before, scene, fast)
    readout = abs(calibration.camera.shutter.readout_ratio)
    return tracks, BeforeAfter(stretch.names[fast], data_uri(before), data_uri(after), motion * readout)


def _fit_figures(calibration: Calibration, residuals: Residuals | None) -> list[Figure]:
    if residuals is None or len(residuals) < REPORT.least_residuals:
        return []
    return [
        figures.residual_map(residuals, calibration.camera),
        figures.residual_rows(residuals, calibration),
        figures.residual_histogram(residuals),
    ]


def _certainty_figures(calibration: Calibration, *, compared: bool) -> list[Figure]:
    made: list[Figure] = []
    windows = [one for one in calibration.uncertainty.windows if 0 < one.sigma < UNKNOWN_SIGMA]
    if windows:
        made.append(figures.window_readouts(windows, calibration))
    if calibration.parameters and not unknown_lens_parameters(calibration) and not compared:
        made.append(projection_map(calibration))
    if calibration.parameters:
        made.append(figures.correlations(calibration))
    return made


def _compared_figures(calibration: Calibration, difference: ProjectionDifference, name: str) -> list[Figure]:
    return [
        projection_map(calibration, difference),
        difference_map(calibration.camera, difference, name),
    ]


def _solve_figures(calibration: Calibration) -> list[Figure]:
    costs = calibration.statistics.cost_by_iteration
    return [figures.convergence(costs)] if len(costs) > 2 else []


def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("rssc.outputs.report", "."), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    return environment.get_template("template.html")


def _resource(name: str) -> Markup:
    return Markup(files("rssc.outputs.report").joinpath(name).read_text())


def _script_json(value: object) -> Markup:
    """JSON that may stand inside a script element."""
    return Markup(json.dumps(value, separators=(",", ":")).replace("<", "\\u003c"))
