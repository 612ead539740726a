"""Writes report.html: one self-contained file that needs no network."""

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from rssc.errors import InputError
from rssc.footage.fingerprint import names_of
from rssc.footage.footage import read_frames
from rssc.footage.video import VIDEO_SUFFIXES
from rssc.io.files import refuse_to_replace, write_text
from rssc.io.reference_file import Reference
from rssc.model.arrays import Image, IntArray
from rssc.model.calibration import Calibration
from rssc.model.lens import LENS_MODELS
from rssc.model.provenance import SourceRecord
from rssc.model.scene import Scene
from rssc.names import FORMAT_WORDS
from rssc.outputs.evaluate import compare
from rssc.outputs.projection_table import difference_rows
from rssc.outputs.rectify import rectify_frame
from rssc.outputs.report.constants import REPORT
from rssc.outputs.report.groups import figure_groups
from rssc.outputs.report.pictures import (
    FrameReader,
    TrackPicture,
    busiest_frame,
    data_uri,
    fastest_frame,
    marker_width,
    track_picture,
)
from rssc.outputs.report.residuals import Residuals, residuals_of
from rssc.outputs.report.summary import (
    PART_WORDS,
    RECORD,
    field_of_view,
    half_width,
    motion_sentence,
    notes_of,
    number,
    quantities,
    verdict_words,
)
from rssc.solver.problem import with_trajectory

_MARK = b'<meta name="generator" content="rssc">'
_HEAD_BYTES = 4096


@dataclass(frozen=True)
class BeforeAfter:
    """A frame as filmed and as a global shutter would have seen it."""

    name: str
    before: str
    after: str
    motion_px: float
    """How far the image moves during the readout."""


def is_report(path: Path) -> bool:
    """Whether a file is a report of ours."""
    try:
        with path.open("rb") as file:
            return _MARK in file.read(_HEAD_BYTES)
    except OSError:
        return False


def write_report(
    calibration: Calibration,
    path: Path | str,
    images: FrameReader | None = None,
    reference: Reference | None = None,
) -> None:
    """Writes the report of a calibration; the file appears only when it is complete.

    Args:
        calibration: With its stretches; without them the report has the numbers and no pictures.
        path: Usually `report.html`.
        images: Reads frames of a source; where not given, those of the file that was calibrated. Where that is missing
            or was changed, the report says so and has no pictures.
        reference: A known camera or another calibration, whose projection is compared.

    Raises:
        InputError: A file of this name is there that is no report.
    """
    path = Path(path)
    if path.is_file() and not is_report(path):
        raise refuse_to_replace(path, "rssc report")
    write_text(path, render_report(calibration, images, reference))


def render_report(
    calibration: Calibration, images: FrameReader | None = None, reference: Reference | None = None
) -> str:
    """The report as a page; see `write_report`."""
    images = images or partial(_calibrated_frames, calibration.provenance.sources)
    evaluation = None if reference is None else compare(calibration, reference)
    difference = None if evaluation is None else evaluation.projection
    name = "" if reference is None else reference.name
    scenes = [with_trajectory(stretch.scene, calibration.knot_spacing) for stretch in calibration.stretches]
    residuals = residuals_of(scenes) if scenes else None
    tracks, before_after, notes = None, None, notes_of(calibration)
    if residuals is not None and len(residuals):
        try:
            tracks, before_after = _pictures(calibration, scenes[0], residuals, images)
        except (InputError, OSError) as error:
            notes.append(f"no frames are shown here: {error}")
    groups = figure_groups(calibration, scenes, residuals, difference, name)
    seconds = calibration.statistics.seconds
    plots = {figure.name: json.loads(str(figure.plot.to_json())) for group in groups.values() for figure in group}
    return _template().render(
        calibration=calibration,
        camera=calibration.camera,
        statistics=calibration.statistics,
        stretches=calibration.stretches,
        quantities=quantities(calibration),
        verdict=verdict_words(calibration),
        record=RECORD,
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
        formats=FORMAT_WORDS,
        half_width=half_width,
        part_words=PART_WORDS,
        total=sum(seconds.values()),
        longest=max(seconds.values(), default=0.0) or 1.0,
        plots=_script_json(plots),
        plotly=Markup(get_plotlyjs()),
        css=_resource("style.css"),
        script=_resource("report.js"),
    )


def _calibrated_frames(records: Sequence[SourceRecord], source: str, numbers: IntArray) -> Iterator[tuple[int, Image]]:
    if records and Path(source).exists():
        names_of(Path(source), records)
    yield from read_frames(source, numbers)


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
