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
from rssc.model.calibration import Calibration, ErrorBudget, MotionSmoothness, Statistics
from rssc.model.stretch import Stretch
from rssc.simulation.scenes import simulate_scene
from tests.builders import make_calibration, make_camera


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


def stretch_of(seed):
    simulated = simulate_scene(frame_count=8, point_count=30, seed=seed).scene
    sensor = Lens("fisheye", 300, 301, 200, 150, (0.01, 0.0, 0.0, 0.0))
    camera = replace(simulated.camera, undistorted_from=sensor)
    trajectory = Trajectory(np.tile(np.eye(3, 4), (12, 1, 1)), -1.0, 0.66)
    scene = replace(simulated, camera=camera, trajectory=trajectory)
    return Stretch(scene, np.arange(8) / 30, np.arange(10, 18), tuple("abcdefgh"), f"clip{seed}.mp4")


def assert_same(stretch, again):
    scene = stretch.scene
    assert again.scene.camera == scene.camera
    assert (again.names, again.source) == (stretch.names, stretch.source)
    assert again.scene.trajectory.knot_spacing == scene.trajectory.knot_spacing
    np.testing.assert_array_equal(again.scene.trajectory.control_poses, scene.trajectory.control_poses)
    np.testing.assert_array_equal(again.scene.cam_from_world, scene.cam_from_world)
    np.testing.assert_array_equal(again.scene.points, scene.points)
    np.testing.assert_array_equal(again.scene.tracks.pixels, scene.tracks.pixels)
    np.testing.assert_array_equal(again.times_s, stretch.times_s)
    np.testing.assert_array_equal(again.frame_numbers, stretch.frame_numbers)


def test_stretches_come_back_as_they_were(tmp_path):
    stretches = [stretch_of(2), stretch_of(3)]
    (tmp_path / "stretches.npz").write_bytes(stretches_bytes(stretches))
    for stretch, again in zip(stretches, read_stretches(tmp_path / "stretches.npz"), strict=True):
        assert_same(stretch, again)
    (tmp_path / "stretches.npz").write_bytes(b"PK\x03\x04 broken")
    with pytest.raises(InputError, match="calibrate again"):
        read_stretches(tmp_path / "stretches.npz")


def test_a_saved_calibration_carries_its_stretches(calibration, tmp_path):
    stretches = (stretch_of(2), stretch_of(3))
    replace(calibration, stretches=stretches).save(tmp_path / "calibration.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["calibration.json", "stretches.npz"]
    jsonschema.validate(json.loads((tmp_path / "calibration.json").read_text()), schema())
    for stretch, again in zip(stretches, Calibration.load(tmp_path / "calibration.json").stretches, strict=True):
        assert_same(stretch, again)


def test_calibrations_in_one_folder_keep_their_own_stretches(calibration, tmp_path):
    for seed, name in ((2, "calibration"), (3, "wide"), (4, "tele")):
        replace(calibration, stretches=(stretch_of(seed),)).save(tmp_path / f"{name}.json")
    for seed, name in ((2, "calibration"), (3, "wide"), (4, "tele")):
        (again,) = Calibration.load(tmp_path / f"{name}.json").stretches
        assert again.source == f"clip{seed}.mp4"


def test_stretches_of_another_calibration_are_not_adopted(calibration, tmp_path):
    for seed, name in ((2, "a"), (3, "b")):
        (tmp_path / name).mkdir()
        replace(calibration, stretches=(stretch_of(seed),)).save(tmp_path / name / "calibration.json")
    (tmp_path / "b/stretches.npz").replace(tmp_path / "a/stretches.npz")
    found = Calibration.load(tmp_path / "a/calibration.json")
    assert found.stretches == () and found.camera == calibration.camera
    with pytest.raises(InputError, match=r"stretches\.npz .* is not beside calibration\.json"):
        found.require_stretches()


def test_stretches_that_were_changed_are_not_adopted(calibration, tmp_path):
    replace(calibration, stretches=(stretch_of(2),)).save(tmp_path / "calibration.json")
    path = tmp_path / "stretches.npz"
    content = path.read_bytes()
    for changed in (stretches_bytes([stretch_of(3)]), content[:-1], content + b"\0", b""):
        path.write_bytes(changed)
        assert Calibration.load(tmp_path / "calibration.json").stretches == ()
    path.write_bytes(content)
    assert len(Calibration.load(tmp_path / "calibration.json").stretches) == 1
    path.unlink()
    assert Calibration.load(tmp_path / "calibration.json").stretches == ()


def test_stretches_beside_a_calibration_without_any_are_not_adopted(calibration, tmp_path):
    (tmp_path / "stretches.npz").write_bytes(stretches_bytes([stretch_of(2)]))
    calibration.save(tmp_path / "calibration.json")
    assert Calibration.load(tmp_path / "calibration.json").stretches == ()


def test_only_files_beside_a_calibration_are_its_stretches(calibration, tmp_path):
    (tmp_path / "a").mkdir()
    replace(calibration, stretches=(stretch_of(2),)).save(tmp_path / "calibration.json")
    (tmp_path / "stretches.npz").replace(tmp_path / "a/stretches.npz")
    document = json.loads((tmp_path / "calibration.json").read_text())
    for name in ("a/stretches.npz", str(tmp_path / "a/stretches.npz")):
        document["stretches"]["file"] = name
        (tmp_path / "calibration.json").write_text(json.dumps(document))
        assert Calibration.load(tmp_path / "calibration.json").stretches == ()


def test_exposure_comes_back_and_may_be_absent(calibration, tmp_path):
    path = tmp_path / "c.json"
    calibration.save(path)
    document = json.loads(path.read_text())
    assert not [key for block in ("shutter", "sigma") for key in document[block] if "exposure" in key]
    assert Calibration.load(path).exposure_time_s is None
    with pytest.raises(InputError, match="the exposure is unknown"):
        calibration.sigma("exposure_ratio")
    exposed = replace(calibration, camera=calibration.camera.with_exposure_ratio(0.36), exposure_sigma=0.02)
    exposed.save(path)
    document = json.loads(path.read_text())
    jsonschema.validate(document, schema())
    assert document["shutter"]["exposure_time_s"] == pytest.approx(0.012)
    again = Calibration.load(path)
    assert again.camera == exposed.camera and again.sigma("exposure_ratio") == 0.02
    assert again.exposure_time_s == pytest.approx(0.012)
    # Told by metadata: known, and not estimated.
    assert replace(exposed, exposure_sigma=0.0).sigma("exposure_ratio") == 0.0


@pytest.mark.parametrize("ratio", [-0.1, 1.6, np.nan, np.inf])
def test_exposures_that_no_sensor_has_are_refused(calibration, ratio):
    with pytest.raises(InputError, match=r"exposure ratio is .*; expected a share .* from 0 to 1\.5"):
        calibration.camera.with_exposure_ratio(ratio)


def test_the_motion_comes_back_and_may_be_absent(calibration, tmp_path):
    path = tmp_path / "c.json"
    calibration.save(path)
    assert "motion" not in json.loads(path.read_text())["uncertainty"]
    assert Calibration.load(path).uncertainty.motion is None
    motion = MotionSmoothness(0.5, 3, 0.002, 0.001)
    replace(calibration, uncertainty=ErrorBudget(motion=motion)).save(path)
    jsonschema.validate(json.loads(path.read_text()), schema())
    assert Calibration.load(path).uncertainty.motion == motion


def test_knot_spacings_of_earlier_versions_are_ignored(calibration, tmp_path):
    path = tmp_path / "c.json"
    budget = ErrorBudget(parts={"noise": {"fx": 0.1}}, weak_direction="fx against fy")
    replace(calibration, uncertainty=budget).save(path)
    document = json.loads(path.read_text())
    tried = {"spacing": 0.66, "readout_ratio": 0.5, "sigma": None, "evidence": 0.0, "chosen": True}
    document["uncertainty"]["knot_spacings"] = [tried]
    document["uncertainty"]["parts"]["knots"] = {"fx": 0.2}
    path.write_text(json.dumps(document))
    found = Calibration.load(path).uncertainty
    assert found == replace(budget, parts={**budget.parts, "knots": {"fx": 0.2}})


def test_sigma_of_a_parameter_that_is_none_is_an_error(calibration):
    assert calibration.sigma("readout_ratio") == np.sqrt(calibration.covariance[-1, -1])
    fixed = replace(calibration, parameters=calibration.parameters[:-1], covariance=calibration.covariance[:-1, :-1])
    assert fixed.sigma("readout_ratio") == 0.0
    for typo in ("typo", "p1", "", "readout"):
        with pytest.raises(InputError, match=f"no parameter {typo!r}; expected one of fx, fy, .*, readout_ratio"):
            calibration.sigma(typo)
