"""Python has what the command line has: functions with options, and a calibration that shows itself."""

import ast
import pkgutil
from dataclasses import fields, replace
from pathlib import Path

import cv2
import numpy as np
import pytest

import rssc
from rssc.api import evaluate, export, report
from rssc.io.camera_file import camera_document
from rssc.io.files import write_text
from rssc.io.tum import tum_text
from rssc.model.calibration import (
    ErrorBudget,
    FrameShare,
    MotionSmoothness,
    PartialEstimate,
    Statistics,
    TriedLens,
    TriedShutter,
)
from rssc.model.lens import LENS_MODELS
from rssc.model.metadata import Metadata
from rssc.outputs.evaluate import Evaluation
from rssc.outputs.exporters.exporter import json_bytes
from rssc.outputs.options import EvaluateOptions, ExportOptions
from rssc.solver.spline_fit import fit_trajectory
from tests.builders import make_calibration, make_camera, make_scene, make_stretch

FRAMES = 12


def calibration_of(model: str = "radial", **changes) -> rssc.Calibration:
    camera = make_camera(model)
    times = np.arange(-1.0, FRAMES + 2)
    poses = np.tile(np.eye(3, 4), (len(times), 1, 1))
    poses[:, 0, 3], poses[:, 1, 3] = 0.05 * times, 0.1 * np.sin(times)
    trajectory = fit_trajectory(times, poses, -1.0, FRAMES + 1.0, 1.0)
    scene = make_scene(camera, trajectory, FRAMES)
    keep = scene.tracks.lengths >= 2
    tracks = scene.tracks.select_points(keep)
    noise = np.random.default_rng(0).normal(0, 0.1, tracks.pixels.shape)
    scene = replace(scene, tracks=replace(tracks, pixels=tracks.pixels + noise), points=scene.points[keep])
    return make_calibration(camera, [make_stretch(scene)], **changes)


@pytest.fixture(scope="module")
def calibration():
    return calibration_of()


def test_every_name_is_there():
    assert set(rssc.__all__) <= set(dir(rssc))
    assert all(getattr(rssc, name) is not None for name in rssc.__all__)
    assert rssc.errors.InputError is rssc.InputError
    with pytest.raises(AttributeError, match="no attribute 'calibrat'"):
        _ = rssc.calibrat


def test_names_hide_no_module():
    """`rssc.calibrate` is the function, whatever was imported before."""
    modules = {module.name for module in pkgutil.iter_modules(rssc.__path__)}
    assert modules and not modules & set(rssc.__all__) - {"errors"}


def test_names_are_typed_as_they_are_loaded():
    """Type checkers read the imports, Python the table."""
    tree = ast.parse(Path(rssc.__file__).read_text())
    typed = {alias.name: node.module for block in tree.body if isinstance(block, ast.If)
             for node in block.body for alias in node.names}  # fmt: skip
    loaded = {name: home for home, names in rssc._HOMES.items() for name in names}
    assert typed == loaded
    assert sorted(loaded) == sorted(rssc.__all__)


def test_options_are_a_value_or_names(calibration, tmp_path):
    named = export(calibration, "colmap-text", tmp_path / "a", row="first")
    valued = export(calibration, "colmap-text", tmp_path / "b", ExportOptions(row="first"))
    mixed = export(calibration, "colmap-text", tmp_path / "c", ExportOptions(row="last"), row="first")
    contents = [[path.read_bytes() for path in sorted(paths)] for paths in (named, valued, mixed)]
    assert contents[0] == contents[1] == contents[2]
    with pytest.raises(rssc.InputError, match="no option 'rows'; expected one of stretch, row"):
        export(calibration, "colmap", tmp_path, rows="first")
    with pytest.raises(rssc.InputError, match="row is 'top'; expected one of first, middle, last"):
        export(calibration, "colmap", tmp_path, row="top")


def test_a_calibration_is_given_as_such_or_as_its_file(calibration, tmp_path):
    path = tmp_path / "calibration.json"
    calibration.save(path)
    truth, trajectory = tmp_path / "truth.json", tmp_path / "true.tum"
    truth.write_bytes(json_bytes(camera_document(calibration.camera, calibration.frame_interval_s)))
    stretch = calibration.stretches[0]
    for name in (trajectory, tmp_path / "trajectory.tum"):
        write_text(name, tum_text(stretch.times_s, stretch.scene.cam_from_world))
    options = EvaluateOptions(trajectory=trajectory)
    from_memory, from_file = evaluate(calibration, truth, options), evaluate(str(path), str(truth), options)
    assert isinstance(from_memory, Evaluation)
    assert from_memory.document()["parameters"] == from_file.document()["parameters"]
    assert from_memory.trajectory.statistics()["rmse"] < 1e-6
    same = evaluate(calibration, calibration)
    assert same.same_camera == 1 and same.document() == evaluate(path, path).document()
    assert report(path) == tmp_path / "report.html"
    assert report(calibration, tmp_path / "again.html").read_text() == (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("model", LENS_MODELS)
def test_what_is_saved_and_loaded_is_equal(model, tmp_path):
    part = PartialEstimate("clip.mp4", (0, 5), 0.5, 0.01, 500.0, 501.0, 320.0, 240.0)
    budget = ErrorBudget(
        parts={"noise": {"fx": 0.1, "readout_ratio": np.inf}}, windows=(part,), consistency=0.3,
        lenses=(TriedLens(model, 0.0, 0.5),), shutters=(TriedShutter("rows", 0.0),), weak_direction="fx and fy",
        readout_frames=(FrameShare("clip.mp4", 3, 0.4),), motion=MotionSmoothness(0.5, 4, 0.01, 0.02),
    )  # fmt: skip
    saved = calibration_of(
        model, status="weak", reasons=("too dark",), notes=("a note",), causes=("vibration",), uncertainty=budget,
        metadata=Metadata(make="A", gyro=True, exposure_range_s=(0.01, 0.02)), exposure_sigma=0.01,
        statistics=Statistics(FRAMES, 60, 600, 0.1, 5, {"tracking": 1.25}, (3.0, 2.0, 1.0)),
    )  # fmt: skip
    saved = replace(saved, camera=saved.camera.with_exposure_ratio(0.25))
    saved.save(tmp_path / "calibration.json")
    loaded = rssc.Calibration.load(tmp_path / "calibration.json")
    for field in fields(saved):
        assert loaded == replace(loaded, **{field.name: getattr(saved, field.name)}), field.name
    assert loaded == saved
    assert loaded != replace(saved, notes=())


@pytest.mark.parametrize("model", LENS_MODELS)
def test_arrays_are_those_of_opencv(model):
    calibration = calibration_of(model)
    lens = calibration.camera.lens
    if LENS_MODELS[model].opencv is None:
        with pytest.raises(rssc.InputError, match=f"OpenCV has no {model} lens"):
            _ = calibration.distortion_coefficients
        return
    points = np.random.default_rng(0).uniform((-1, -1, 3), (1, 1, 5), (20, 3))
    project = cv2.fisheye.projectPoints if lens.family == "fisheye" else cv2.projectPoints
    arguments = (np.zeros(3), np.zeros(3), calibration.camera_matrix, calibration.distortion_coefficients)
    pixels = project(points[:, None], *arguments)[0].reshape(-1, 2)
    np.testing.assert_allclose(pixels, lens.project(points), atol=1e-9)


def test_a_calibration_shows_itself(calibration):
    awkward = replace(calibration, status="weak", reasons=("<b>dark</b>",), notes=("a & b",))
    html = awkward._repr_html_()
    assert "&lt;b&gt;dark" in html and "a &amp; b" in html and "95 % interval" in html
    assert "Readout time" in html and "Distortion k2" in html
    text = str(awkward)
    assert "  - <b>dark</b>" in text and "Focal length fx" in text and max(map(len, text.splitlines())) <= 80
    with pytest.raises(rssc.InputError, match="there is no parameter 'typo'"):
        calibration.sigma("typo")


def test_figures_of_the_report_stand_alone(calibration):
    assert {"residual-map", "correlation", "space", "velocity"} <= set(calibration.plots)
    for name in calibration.plots:
        figure = calibration.plot(name)
        assert figure.layout.title.text and figure.layout.width and figure.layout.height
        assert "var(--" not in figure.to_json(), name
    assert calibration.plot().layout.title.text == "Residuals over the image"
    with pytest.raises(rssc.InputError, match="no plot 'typo'; expected one of residual-map"):
        calibration.plot("typo")
    assert "residual-map" not in replace(calibration, stretches=()).plots


def test_a_source_that_is_missing_or_mixed_up_is_refused(tmp_path):
    with pytest.raises(rssc.InputError, match="does not exist"):
        rssc.calibrate(tmp_path / "none.mp4")
    with pytest.raises(rssc.InputError, match="takes one source; there are 2"):
        rssc.calibrate([tmp_path, tmp_path], target="checkerboard:7x6:0.03")
    with pytest.raises(rssc.InputError, match="leave out init and method"):
        rssc.calibrate(tmp_path, target="checkerboard:7x6:0.03", method="dpq")
    with pytest.raises(rssc.InputError, match="no option 'lense'"):
        rssc.calibrate(tmp_path, lense="pinhole")
    with pytest.raises(rssc.InputError, match="jobs are 0"):
        rssc.check(tmp_path, jobs=0)


def test_images_of_another_clip_are_not_mixed_in(tmp_path):
    options = rssc.SimulateOptions(width=64, height=48, frames=2, images=True)
    assert rssc.simulate(tmp_path, options) == tmp_path
    assert len(list(tmp_path.glob("*.png"))) == 2
    with pytest.raises(rssc.InputError, match="already has images"):
        rssc.simulate(tmp_path, options, frames=1)
