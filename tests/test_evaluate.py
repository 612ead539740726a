"""Evaluation against the truth: Umeyama's alignment as a property, evo as the oracle of the trajectory error."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from rssc.datasets.trajectory_error import match_times, trajectory_error
from rssc.errors import InputError
from rssc.io.camera_file import camera_document
from rssc.io.tum import read_euroc, read_tum, tum_text
from rssc.model import Camera, Lens, Shutter
from rssc.model.calibration import Statistics
from rssc.model.poses import camera_centres
from rssc.model.similarity import fit_similarity
from rssc.outputs.evaluate import evaluate
from rssc.outputs.exporters import write_export
from rssc.simulation.motion import room_motion
from tests.builders import make_calibration, make_camera, make_covariance, parameter_names

CAMERA = make_camera("radial", readout_ratio=0.62)
NAMES = parameter_names(CAMERA)
IDENTITY = (1.0, np.eye(3), np.zeros(3))


@pytest.fixture
def files(tmp_path):
    """A calibration whose values are each a tenth off, with its truth."""
    lens = CAMERA.lens.with_parameters(CAMERA.lens.parameters[:6] + 0.1)
    camera = CAMERA.with_lens(lens).with_readout_ratio(0.72)
    covariance = np.diag(np.linspace(0.1, 0.5, len(NAMES)) ** 2)
    make_calibration(camera, covariance=covariance).save(tmp_path / "calibration.json")
    (tmp_path / "truth.json").write_text(json.dumps(camera_document(CAMERA, 1 / 30)))
    return tmp_path


def write_trajectory(path, times_s, motion, similarity=IDENTITY, noise=0.0):
    scale, rotation, translation = similarity
    poses = motion.cam_from_world(30 * times_s)
    centres = camera_centres(poses) @ rotation.T * scale + translation
    centres += noise * np.random.default_rng(1).standard_normal(centres.shape)
    poses[:, :, :3] = poses[:, :, :3] @ rotation.T
    poses[:, :, 3] = -np.einsum("nij,nj->ni", poses[:, :, :3], centres)
    path.write_text(tum_text(times_s, poses))


def test_errors_are_absolute_and_in_sigmas(files):
    evaluation = evaluate(files / "calibration.json", files / "truth.json")
    by_name = {p.name: p for p in evaluation.parameters}
    assert set(by_name) == {*NAMES, "readout_time_s"}
    for name, sigma in zip(NAMES, np.linspace(0.1, 0.5, len(NAMES)), strict=True):
        assert by_name[name].error == pytest.approx(0.1)
        assert by_name[name].sigmas == pytest.approx(0.1 / sigma)
    assert by_name["readout_time_s"].error == pytest.approx(0.1 / 30)
    assert by_name["readout_time_s"].sigmas == pytest.approx(by_name["readout_ratio"].sigmas)
    assert evaluation.trajectory is None
    assert evaluation.notes == ()


def test_other_lens_model_compares_the_camera_matrix_only(files):
    other = Camera(640, 480, Lens("opencv", 511.0, 508.0, 324.0, 236.0), Shutter(0.62))
    (files / "truth.json").write_text(json.dumps(camera_document(other, 1 / 30)))
    evaluation = evaluate(files / "calibration.json", files / "truth.json")
    assert [p.name for p in evaluation.parameters] == ["fx", "fy", "cx", "cy", "readout_ratio", "readout_time_s"]
    assert "opencv" in evaluation.notes[0] and "go by the projection" in evaluation.notes[0]


def test_other_lens_families_share_no_parameter(files):
    other = Camera(640, 480, Lens("fisheye", 511.0, 508.0, 324.0, 236.0), Shutter(0.62))
    (files / "truth.json").write_text(json.dumps(camera_document(other, 1 / 30)))
    evaluation = evaluate(files / "calibration.json", files / "truth.json")
    assert [p.name for p in evaluation.parameters] == ["readout_ratio", "readout_time_s"]
    assert "only projection and readout are compared" in evaluation.notes[0]
    places = evaluation.document()["projection"]["places"]
    assert places["lower right"]["difference_px"] > 5 * places["centre"]["difference_px"]


def test_projection_is_in_pixels_beside_its_prediction(tmp_path):
    longer = CAMERA.with_lens(CAMERA.lens.with_parameters(CAMERA.lens.parameters + np.array([2.0, 2.0, 0, 0, 0, 0])))
    covariance = make_covariance(CAMERA, 1e-9, fx=1.0, fy=1.0).matrix
    make_calibration(longer, covariance=covariance).save(tmp_path / "calibration.json")
    (tmp_path / "truth.json").write_text(json.dumps(camera_document(CAMERA, 1 / 30)))
    evaluation = evaluate(tmp_path / "calibration.json", tmp_path / "truth.json")
    place = evaluation.document()["projection"]["places"]["lower right"]
    # 2 px of 502, at 400 px from the centre; what a shift and a turn explain is taken off.
    assert place["difference_px"] == pytest.approx(2 / CAMERA.lens.fx * 400, rel=0.25)
    # fx and fy err independently, by half of that.
    assert place["ratio"] == pytest.approx(2.0, rel=0.1)
    assert evaluation.same_camera is None


def test_two_calibrations_count_both_uncertainties(tmp_path):
    (tmp_path / "a").mkdir()
    other = CAMERA.with_lens(CAMERA.lens.with_parameters(CAMERA.lens.parameters + np.eye(6)[0]))
    covariance = make_covariance(CAMERA, 1e-4, fx=1.0, fy=1.0, readout_ratio=1e-3).matrix
    make_calibration(CAMERA, covariance=covariance).save(tmp_path / "calibration.json")
    make_calibration(other, covariance=covariance).save(tmp_path / "a/calibration.json")
    evaluation = evaluate(tmp_path / "calibration.json", tmp_path / "a/calibration.json")
    by_name = {p.name: p for p in evaluation.parameters}
    assert by_name["fx"].sigmas == pytest.approx(1 / np.sqrt(2))
    assert evaluation.same_camera > 0.2
    shifted = other.with_readout_ratio(0.62 + 6e-3)
    make_calibration(shifted, covariance=covariance).save(tmp_path / "a/calibration.json")
    assert evaluate(tmp_path / "calibration.json", tmp_path / "a/calibration.json").same_camera < 1e-3


def test_readouts_of_other_frame_rates_compare_as_times(tmp_path):
    make_calibration(CAMERA, frame_interval_s=1 / 30).save(tmp_path / "calibration.json")
    (tmp_path / "truth.json").write_text(json.dumps(camera_document(CAMERA.with_readout_ratio(0.31), 1 / 15)))
    evaluation = evaluate(tmp_path / "calibration.json", tmp_path / "truth.json")
    by_name = {p.name: p for p in evaluation.parameters}
    assert "readout_ratio" not in by_name
    assert by_name["readout_time_s"].error == pytest.approx(0, abs=1e-12)


def test_opposite_readouts_differ_by_their_sum(tmp_path):
    make_calibration(CAMERA.with_readout_ratio(-0.01)).save(tmp_path / "calibration.json")
    (tmp_path / "truth.json").write_text(json.dumps(camera_document(CAMERA.with_readout_ratio(0.02), 1 / 30)))
    by_name = {p.name: p for p in evaluate(tmp_path / "calibration.json", tmp_path / "truth.json").parameters}
    assert by_name["readout_time_s"].error == pytest.approx(0.03 / 30)


def test_exposures_compare_as_times(tmp_path):
    found = make_calibration(CAMERA.with_exposure_ratio(0.35), exposure_sigma=0.025)
    found.save(tmp_path / "calibration.json")
    document = camera_document(CAMERA.with_exposure_ratio(0.3), 1 / 30)
    (tmp_path / "truth.json").write_text(json.dumps(document))
    by_name = {p.name: p for p in evaluate(tmp_path / "calibration.json", tmp_path / "truth.json").parameters}
    assert by_name["exposure_time_s"].error == pytest.approx(0.05 / 30)
    assert by_name["exposure_time_s"].sigmas == pytest.approx(2.0)


@pytest.mark.parametrize("format_name", ["kalibr", "opencv"])
def test_files_of_other_tools_serve_as_truth(tmp_path, format_name):
    lens = make_camera("opencv").lens
    found = make_calibration(CAMERA.with_lens(lens), statistics=Statistics(frames=10))
    found.save(tmp_path / "calibration.json")
    (path,) = write_export(found, format_name, tmp_path / "other")
    evaluation = evaluate(tmp_path / "calibration.json", path)
    assert evaluation.projection.largest < 1e-6
    names = {p.name for p in evaluation.parameters}
    if format_name == "kalibr":
        assert {"k1", "readout_time_s"} <= names
        assert evaluate(tmp_path / "calibration.json", Path(f"{path}:cam0")).projection.largest < 1e-6
        assert all(p.error < 1e-9 for p in evaluation.parameters)
    else:
        assert "readout_time_s" not in names and "has no readout" in evaluation.notes[0]


def test_a_lens_that_is_not_known_is_not_compared(tmp_path):
    make_calibration(CAMERA, covariance=np.eye(7) * 1e18, status="weak").save(tmp_path / "calibration.json")
    (tmp_path / "truth.json").write_text(json.dumps(camera_document(CAMERA, 1 / 30)))
    evaluation = evaluate(tmp_path / "calibration.json", tmp_path / "truth.json")
    assert evaluation.projection is None and "did not determine the lens" in evaluation.notes[-1]


def test_other_axis_and_direction_are_said(files):
    columns = Camera(640, 480, CAMERA.lens, Shutter(0.62, "columns"))
    (files / "truth.json").write_text(json.dumps(camera_document(columns, 1 / 30)))
    evaluation = evaluate(files / "calibration.json", files / "truth.json")
    assert "columns" in evaluation.notes[0]
    assert "readout_ratio" not in {p.name for p in evaluation.parameters}
    backwards = CAMERA.with_readout_ratio(-0.62)
    (files / "truth.json").write_text(json.dumps(camera_document(backwards, 1 / 30)))
    evaluation = evaluate(files / "calibration.json", files / "truth.json")
    assert "opposite" in evaluation.notes[0]


def test_a_calibration_serves_as_truth_of_itself(files):
    evaluation = evaluate(files / "calibration.json", files / "calibration.json")
    assert all(p.error == 0 for p in evaluation.parameters)
    assert evaluation.projection.largest < 1e-6 and evaluation.same_camera == 1


@settings(max_examples=50, deadline=None)
@given(
    st.integers(0, 2**31), st.floats(0.01, 100), st.tuples(*3 * [st.floats(-3, 3)]), st.tuples(*3 * [st.floats(-9, 9)])
)
def test_align_finds_the_similarity(seed, scale, turn, shift):
    points = np.random.default_rng(seed).standard_normal((12, 3))
    rotation = Rotation.from_rotvec(turn).as_matrix()
    found = fit_similarity(points, scale * points @ rotation.T + shift)
    assert found.scale == pytest.approx(scale, rel=1e-9)
    np.testing.assert_allclose(found.rotation, rotation, atol=1e-9)
    np.testing.assert_allclose(found.translation, shift, atol=1e-8 * max(scale, 1))


def test_align_is_never_a_reflection(rng):
    points = rng.standard_normal((30, 3)) * (3, 2, 0.01)
    found = fit_similarity(points, points * (1, 1, -1))
    assert np.linalg.det(found.rotation) == pytest.approx(1)


def test_times_match_as_by_exhaustive_search(rng):
    for lengths in ((40, 90), (90, 40), (5, 1), (1, 5)):
        times, others = (np.sort(rng.uniform(0, 3, n)) for n in lengths)
        rows, columns = match_times(times, others, 0.02)
        from_first = len(times) < len(others)
        short, long = (times, others) if from_first else (others, times)
        distance = np.abs(short[:, None] - long)
        good = np.flatnonzero(distance.min(axis=1) <= 0.02)
        expected = (good, distance.argmin(axis=1)[good]) if from_first else (distance.argmin(axis=1)[good], good)
        np.testing.assert_array_equal(rows, expected[0])
        np.testing.assert_array_equal(columns, expected[1])


@pytest.mark.parametrize("true_rate", [30.0, 200.0, 17.0])
def test_trajectory_error_agrees_with_evo(files, true_rate):
    metrics = pytest.importorskip("evo.core.metrics", reason="evo, the oracle of trajectory errors, is not installed")
    from evo.core import sync
    from evo.tools import file_interface

    motion = room_motion("hand_held", np.random.default_rng(2))
    rotation = Rotation.from_rotvec((0.3, -1.2, 0.7)).as_matrix()
    write_trajectory(files / "trajectory.tum", np.arange(60) / 30, motion, (0.37, rotation, (5.0, -2.0, 1.0)), 0.003)
    # Time stamps that do not fall on the frames, and beyond both ends.
    write_trajectory(files / "true.tum", np.arange(-0.5, 2.5, 1 / true_rate) + 0.0021, motion)

    found = evaluate(files / "calibration.json", files / "truth.json", files / "true.tum").trajectory
    assert found is not None
    truth, estimated = sync.associate_trajectories(
        file_interface.read_tum_trajectory_file(str(files / "true.tum")),
        file_interface.read_tum_trajectory_file(str(files / "trajectory.tum")),
        max_diff=0.01,
    )
    estimated.align(truth, correct_scale=True)
    ape = metrics.APE(metrics.PoseRelation.translation_part)
    ape.process_data((truth, estimated))
    expected = ape.get_all_statistics()
    assert len(found.errors) == truth.num_poses
    for name in ("rmse", "mean", "median", "min", "max"):
        assert found.statistics()[name] == pytest.approx(expected[name], abs=1e-9), name
    assert 0.001 < found.rmse < 0.05


def test_identical_up_to_similarity_is_no_error(tmp_path):
    motion = room_motion("drone", np.random.default_rng(2))
    times = np.arange(40) / 30
    rotation = Rotation.from_rotvec((0.3, -1.2, 0.7)).as_matrix()
    write_trajectory(tmp_path / "a.tum", times, motion, (0.5, rotation, (1.0, 2.0, 3.0)))
    write_trajectory(tmp_path / "b.tum", times, motion)
    error = trajectory_error(read_tum(tmp_path / "a.tum"), read_tum(tmp_path / "b.tum"))
    assert error.rmse < 1e-8
    assert error.true_from_estimated.scale == pytest.approx(2, abs=1e-6)


def test_poses_come_back_from_tum_and_euroc_files(tmp_path):
    motion = room_motion("hand_held", np.random.default_rng(4))
    times_s = 1e5 + np.arange(50) / 30
    poses = motion.cam_from_world(np.arange(50.0))
    (tmp_path / "a.tum").write_text("# a comment\n\n" + tum_text(times_s, poses))
    tum = read_tum(tmp_path / "a.tum")
    np.testing.assert_allclose(tum.times_s, times_s, atol=1e-9)
    np.testing.assert_allclose(tum.positions_xyz, camera_centres(poses), atol=1e-9)
    rotations = Rotation.from_quat(tum.orientations_quat_xyzw).as_matrix()
    np.testing.assert_allclose(rotations, poses[:, :, :3].transpose(0, 2, 1), atol=1e-8)
    assert (tum.orientations_quat_xyzw[:, 3] >= 0).all()
    table = np.column_stack([tum.positions_xyz, np.roll(tum.orientations_quat_xyzw, 1, axis=1), np.ones((50, 9))])
    lines = [f"{round(1e9 * t)}," + ",".join(map(str, row)) for t, row in zip(times_s, table.tolist(), strict=True)]
    (tmp_path / "data.csv").write_text("#timestamp, p_RS_R_x [m], ...\n" + "\n".join(lines))
    euroc = read_euroc(tmp_path / "data.csv")
    np.testing.assert_allclose(euroc.times_s, times_s, atol=1e-6)
    np.testing.assert_array_equal(euroc.positions_xyz, tum.positions_xyz)
    np.testing.assert_array_equal(euroc.orientations_quat_xyzw, tum.orientations_quat_xyzw)


@pytest.mark.parametrize("pose", ["0 0 0 0 0 0 0", "nan 0 0 0 0 0 1", "0 0 inf 0 0 0 1"])
def test_poses_that_are_none_are_refused(tmp_path, pose):
    (tmp_path / "a.tum").write_text(f"0 0 0 0 0 0 0 1\n1 {pose}\n")
    with pytest.raises(InputError, match="line 2 has a non-finite pose or a zero quaternion"):
        read_tum(tmp_path / "a.tum")
    (tmp_path / "a.csv").write_text(f"0,0,0,0,1,0,0,0\n1,{pose.replace(' ', ',')}\n")
    with pytest.raises(InputError, match="line 2 has a non-finite pose or a zero quaternion"):
        read_euroc(tmp_path / "a.csv")


def test_bad_files_raise_one_clear_line(files):
    calibration, truth = files / "calibration.json", files / "truth.json"
    with pytest.raises(InputError, match="cannot read"):
        evaluate(calibration, files / "absent.json")
    (files / "bad.json").write_text('{"image": {}}')
    with pytest.raises(InputError, match=r"is not a truth.*image\.width"):
        evaluate(calibration, files / "bad.json")
    small = Camera(320, 240, CAMERA.lens, CAMERA.shutter)
    (files / "small.json").write_text(json.dumps(camera_document(small, 1 / 30)))
    with pytest.raises(InputError, match="320 x 240"):
        evaluate(calibration, files / "small.json")
    with pytest.raises(InputError, match=r"trajectory\.tum does not exist"):
        evaluate(calibration, truth, truth)
    (files / "trajectory.tum").write_text("# t x y z\n0 1 2 3\n")
    with pytest.raises(InputError, match="line 2"):
        evaluate(calibration, truth, files / "trajectory.tum")
    still = "".join(f"{t} 1 2 3 0 0 0 1\n" for t in range(5))
    (files / "trajectory.tum").write_text(still)
    with pytest.raises(InputError, match="lie on a line or in one place"):
        evaluate(calibration, truth, files / "trajectory.tum")
    (files / "late.tum").write_text(still.replace(" 1 2 3", ".5 1 2 3"))
    with pytest.raises(InputError, match="0 of 5 poses"):
        evaluate(calibration, truth, files / "late.tum")


def test_the_command_prints_a_table_and_ends_with_json(files):
    write_trajectory(files / "trajectory.tum", np.arange(20) / 30, room_motion("drone", np.random.default_rng(0)))
    command = [sys.executable, "-m", "rssc", "evaluate", str(files / "calibration.json"), "--truth",
               str(files / "truth.json"), "--trajectory", str(files / "trajectory.tum")]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.strip().splitlines()[-1])
    alone = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    assert result == json.loads(alone.stdout)
    assert result["parameters"]["fx"]["error"] == pytest.approx(0.1)
    assert result["trajectory"]["rmse"] < 1e-8
    assert "in formal sigmas" in done.stdout
    assert result["projection"]["places"]["centre"]["difference_px"] > 0
    assert "upper left" in done.stdout and "difference [px]" in done.stdout
