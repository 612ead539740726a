"""calibration.json: round trip, published schema, and errors for files that are none."""

import json
from dataclasses import replace
from importlib.resources import files

import jsonschema
import numpy as np
import pytest

from rssc.errors import InputError
from rssc.io.calibration_file import CalibrationFile
from rssc.io.stretches_file import read_stretches, stretches_bytes
from rssc.model import Lens, Trajectory
from rssc.model.calibration import Calibration, Statistics
from rssc.simulation.scenes import simulate_scene
from tests.builders import make_calibration, make_camera, make_stretch


@pytest.fixture
def calibration(rng):
    root = rng.normal(size=(9, 9))
    return make_calibration(
        make_camera("fisheye", readout_ratio=-0.6), covariance=root @ root.T, status="weak", reasons=("too slow",),
        knot_spacing=0.66, statistics=Statistics(60, 10, 100, 0.1, 5, {"tracking": 1.0}),
    )  # fmt: skip


def schema():
    return json.loads(files("rssc.io").joinpath("calibration.schema.json").read_text())


def test_round_trip(calibration, tmp_path):
    path = tmp_path / "calibration.json"
    calibration.save(path)
    again = Calibration.load(path)
    assert again.camera == calibration.camera
    np.testing.assert_array_equal(again.covariance, calibration.covariance)
    assert again.sigma("k3") == calibration.sigma("k3")
    assert [p.name for p in tmp_path.iterdir()] == ["calibration.json"]


def test_the_lens_that_images_were_undistorted_with_is_remembered(calibration, tmp_path):
    sensor = Lens("opencv", 510.0, 511.0, 321.0, 241.0, (0.1, 0.0, 0.0, 0.0))
    undistorted = replace(calibration, camera=replace(calibration.camera, undistorted_from=sensor))
    undistorted.save(tmp_path / "c.json")
    document = json.loads((tmp_path / "c.json").read_text())
    jsonschema.validate(document, schema())
    assert Calibration.load(tmp_path / "c.json").camera.undistorted_from == sensor
    calibration.save(tmp_path / "c.json")
    assert "undistorted_from" not in json.loads((tmp_path / "c.json").read_text())


def test_file_validates_against_the_published_schema(calibration, tmp_path):
    calibration.save(tmp_path / "c.json")
    document = json.loads((tmp_path / "c.json").read_text())
    jsonschema.validate(document, schema())
    assert document["shutter"]["direction"] == "bottom_to_top"
    assert document["shutter"]["line_delay_s"] == pytest.approx(0.6 / 30 / 480)
    assert len(document["sigma"]["distortion"]) == 4


def test_published_schema_is_up_to_date():
    published = schema()
    published.pop("$schema")
    assert published == CalibrationFile.model_json_schema()


@pytest.mark.parametrize(
    ("content", "message"), [("{", "not JSON"), ("{}", "not a calibration"), ('{"format": "x"}', "format")]
)
def test_other_files_are_refused(tmp_path, content, message):
    path = tmp_path / "c.json"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        Calibration.load(path)
    with pytest.raises(InputError, match="cannot read"):
        Calibration.load(tmp_path / "missing.json")


def test_stretches_come_back_as_they_were(tmp_path):
    simulated = simulate_scene(frame_count=8, point_count=30, seed=2).scene
    sensor = Lens("fisheye", 300, 301, 200, 150, (0.01, 0.0, 0.0, 0.0))
    camera = replace(simulated.camera, undistorted_from=sensor)
    trajectory = Trajectory(np.tile(np.eye(3, 4), (12, 1, 1)), -1.0, 0.66)
    scene = replace(simulated, camera=camera, trajectory=trajectory)
    stretch = make_stretch(scene, first_frame=10)
    (tmp_path / "stretches.npz").write_bytes(stretches_bytes([stretch, stretch]))
    both = read_stretches(tmp_path / "stretches.npz")
    assert len(both) == 2
    for again in both:
        assert again.scene.camera == camera
        assert (again.names, again.source) == (stretch.names, stretch.source)
        assert again.scene.trajectory.knot_spacing == 0.66
        np.testing.assert_array_equal(again.scene.points, scene.points)
        np.testing.assert_array_equal(again.scene.tracks.pixels, scene.tracks.pixels)
        np.testing.assert_array_equal(again.frame_numbers, stretch.frame_numbers)
    (tmp_path / "stretches.npz").write_bytes(b"PK\x03\x04 broken")
    with pytest.raises(InputError, match="calibrate again"):
        read_stretches(tmp_path / "stretches.npz")
