"""What the terminal shows is the text itself: names with brackets and colons are neither markup nor pictures."""

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from rssc.experiments.tables import Cell, Table, print_tables
from rssc.model import Camera, Lens, Shutter
from rssc.model.calibration import Calibration, Statistics
from rssc.outputs.evaluate import Evaluation, print_evaluation
from rssc.outputs.progress import ProgressConstants, show_progress
from rssc.outputs.terminal import print_calibration, print_check
from rssc.pipeline.check import Check

AWKWARD = ("clip[final].mp4 is dark", "[/b] has no end", "[red]clip[/red].mp4", "a:car:b.mp4", "back\\slash\\")


def shown(show) -> str:
    file = io.StringIO()
    show(Console(file=file, width=200))
    return file.getvalue()


@pytest.fixture
def calibration():
    lens = Lens("pinhole", 500.0, 501.0, 320.0, 240.0)
    names = (*lens.parameter_names, "readout_ratio")
    return Calibration(
        Camera(640, 480, lens, Shutter(0.5)), 1 / 30, names, np.eye(5), "weak", (), "te", 1.0,
        Statistics(60, 10, 100, 0.1, 5),
    )  # fmt: skip


@pytest.mark.parametrize("text", AWKWARD)
def test_reasons_and_notes_are_shown_as_they_are(calibration, text):
    said = shown(lambda console: print_calibration(console, replace(calibration, reasons=(text,), notes=(text,))))
    assert f"  - {text}\n" in said and f"note: {text}\n" in said
    assert f"  - {text}\n" in shown(lambda console: print_check(console, Check("weak", (text,))))
    assert f"note: {text}\n" in shown(lambda console: print_evaluation(console, Evaluation((), None, (text,))))


@pytest.mark.parametrize("text", AWKWARD)
def test_stages_and_tables_are_shown_as_they_are(text, monkeypatch):
    def work(console):
        with show_progress(console) as progress:
            progress(text, 1.0)

    file = io.StringIO()
    work(Console(file=file, width=200, force_terminal=True))
    assert text in file.getvalue()
    monkeypatch.setattr("rssc.outputs.progress.PROGRESS", ProgressConstants(line_seconds=0.0))
    assert shown(work) == f"{text}: done, 0 s\n"
    table = Table(text, ("method", text), ((Cell(text), Cell(text, "red", paper=text)),), (text,))
    said = shown(lambda console: print_tables(console, [table]))
    assert said.count(text) == 6


def test_exposure_is_shown_or_said_to_be_unknown(calibration):
    assert "exposure unknown: no motion blur" in shown(lambda console: print_calibration(console, calibration))
    exposed = replace(calibration, camera=calibration.camera.with_exposure_ratio(0.363), exposure_sigma=0.0184)
    said = shown(lambda console: print_calibration(console, exposed))
    assert "exposure 12.1 ms, 10.9 to 13.3\n" in said and "exposure time [ms]" in said
    barely = replace(calibration, camera=calibration.camera.with_exposure_ratio(0.01), exposure_sigma=0.02)
    assert "exposure 0.3 ms, 0.0 to 1.6\n" in shown(lambda console: print_calibration(console, barely))


def test_a_truth_of_another_family_compares_the_shutter_only(calibration):
    truth = Camera(640, 480, Lens("fisheye", 505.0, 501.0, 320.0, 240.0), Shutter(0.52))
    said = shown(lambda console: print_calibration(console, calibration, truth))
    assert "505.00" not in said and "0.52000" in said


def test_a_truth_with_another_lens_compares_the_camera_matrix(calibration):
    truth = Camera(640, 480, Lens("opencv", 505.0, 501.0, 320.0, 240.0, (0.1, 0.0, 0.0, 0.0)), Shutter(0.5))
    for found, true in ((calibration.camera, truth), (truth, calibration.camera)):
        names = (*found.lens.parameter_names, "readout_ratio")
        other = replace(calibration, camera=found, parameters=names, covariance=np.eye(len(names)))
        said = shown(lambda console, other=other, true=true: print_calibration(console, other, true))
        rows = {line.split()[1]: line.split() for line in said.splitlines() if line.startswith("│")}
        assert f"{true.lens.fx:.2f}" in rows["fx"]
        assert all(rows[name][-2] == rows[name][-4] == "-" for name in found.lens.coefficient_names)
