"""The whole flow on a small rendered clip, and the command line's words on bad input."""

import json
import subprocess
import sys
from dataclasses import replace

import cv2
import numpy as np
import pytest

import rssc
import rssc.pipeline.check as quick
from rssc.cli.options import parse_frames
from rssc.errors import InputError, NotCalibratableError
from rssc.footage.footage import read_footage
from rssc.model.calibration import Calibration
from rssc.outputs.exporters import export_files
from rssc.outputs.result_folder import write_results
from rssc.pipeline.check import check
from rssc.pipeline.options import SourceOptions
from rssc.pipeline.result import degenerate_result
from rssc.simulation.clip import ClipOptions, render_clip, typical_lens
from rssc.simulation.clip_files import write_clip


@pytest.fixture(scope="module")
def clip():
    lens = replace(typical_lens("opencv", 480, 360), distortion=(-0.3, 0.1, 0.002, -0.0015))
    return render_clip(ClipOptions(480, 360, 30, lens=lens, readout_ratio=0.7, motion="shaky", seed=3))


@pytest.fixture(scope="module")
def folder(clip, tmp_path_factory):
    folder = tmp_path_factory.mktemp("clip")
    write_clip(clip, folder, video=False)
    return folder


@pytest.fixture(scope="module")
def calibration(folder):
    return rssc.calibrate(folder, fps=30.0)


def test_finds_the_truth(clip, calibration):
    lens, true = calibration.camera.lens, clip.camera.lens
    assert calibration.status == "ok", calibration.reasons
    assert calibration.camera.shutter.readout_ratio == pytest.approx(0.7, abs=0.005)
    assert (lens.fx, lens.fy) == pytest.approx((true.fx, true.fy), rel=0.003)
    assert (lens.cx, lens.cy) == pytest.approx((true.cx, true.cy), abs=1.5)
    assert calibration.sigma("readout_ratio") < 0.01


def test_finds_the_distortion(clip, calibration):
    lens, true = calibration.camera.lens, clip.camera.lens
    assert lens.model == "opencv"
    for name, value, expected, limit in zip(
        lens.coefficient_names, lens.distortion, true.distortion, (5e-4, 1e-3, 1e-4, 1e-4), strict=True
    ):
        assert value == pytest.approx(expected, abs=limit), name
        assert abs(value - expected) < 4 * calibration.sigma(name), name


def test_writes_complete_files(calibration, tmp_path):
    write_results(calibration, tmp_path)
    assert Calibration.load(tmp_path / "calibration.json") == calibration
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "calibration.json", "points.ply", "report.html", "stretches.npz", "trajectory.tum",
    ]  # fmt: skip
    assert json.loads((tmp_path / "calibration.json").read_text())["status"] == "ok"
    rows = np.loadtxt(tmp_path / "trajectory.tum")
    assert rows.shape == (30, 8)
    np.testing.assert_allclose(np.linalg.norm(rows[:, 4:], axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(np.diff(rows[:, 0]), 1 / 30, atol=1e-6)


def test_degenerate_results_leave_nothing_of_an_earlier_one(calibration, folder, tmp_path):
    write_results(calibration, tmp_path)
    assert (tmp_path / "stretches.npz").exists()
    footage = read_footage(folder, fps=30.0)
    write_results(degenerate_result(footage, NotCalibratableError("the camera hardly moved")), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["calibration.json", "report.html"]
    assert "hardly moved" in (tmp_path / "report.html").read_text()
    nothing = Calibration.load(tmp_path / "calibration.json")
    with pytest.raises(InputError, match="could not be calibrated"):
        nothing.require_stretches()
    with pytest.raises(InputError, match="no camera to export"):
        export_files(nothing, "kalibr")


def test_several_clips_of_one_camera_become_one(clip, folder, tmp_path):
    other = render_clip(replace(clip.options, seed=5))
    write_clip(other, tmp_path, video=False)
    both = rssc.calibrate([folder, tmp_path], fps=30.0)
    assert both.camera.shutter.readout_ratio == pytest.approx(0.7, abs=0.003)
    assert len(both.stretches) == 2
    # Less than that of the worse one; two stretches tell little of what differs between stretches.
    assert both.sigma("readout_ratio") < max(window.sigma for window in both.uncertainty.windows)
    assert [window.source for window in both.uncertainty.windows] == [folder.name, tmp_path.name]
    for stretch in both.stretches:
        assert stretch.scene.camera == both.camera


def test_a_quick_look_agrees(clip, folder):
    found = check(folder, SourceOptions(fps=30.0))
    assert found.status == "ok", found.reasons
    assert found.camera.shutter.readout_ratio == pytest.approx(clip.camera.shutter.readout_ratio, abs=0.05)


def test_a_quick_look_at_what_fits_no_distance_says_so(folder, monkeypatch):
    """We built the scene, so what is wrong with it is no bad input."""

    def refuse(scene, tracks):
        raise InputError("point 3 lies behind a camera that sees it")

    monkeypatch.setattr(quick, "restart", refuse)
    found = check(folder, SourceOptions(fps=30.0, frames=(0, 12)))
    assert found.status == "degenerate"
    assert "walk sideways" in found.reasons[0]


def test_methods_of_the_paper_run_as_they_are(folder):
    calibration = rssc.calibrate(folder, fps=30.0, method="dpq", lens="opencv")
    assert calibration.method == "dpq"
    assert calibration.camera.shutter.readout_ratio == pytest.approx(0.7, abs=0.02)


def test_a_camera_that_only_turns_is_calibrated_by_its_turning(clip, tmp_path):
    lens = typical_lens("opencv", 480, 360)
    turning = render_clip(replace(clip.options, lens=lens, motion="rotation", seed=4))
    write_clip(turning, tmp_path / "clip", video=False)
    found = rssc.calibrate(tmp_path / "clip", fps=30.0)
    write_results(found, tmp_path)
    assert found.status == "weak"
    assert any("only turned" in note for note in found.notes)
    assert found.camera.lens.fx == pytest.approx(clip.camera.lens.fx, rel=1e-3)
    assert found.camera.shutter.readout_ratio == pytest.approx(0.7, abs=0.003)
    path = found.stretches[0].scene.cam_from_world[:, :, 3]
    assert not path.any()
    quick = check(tmp_path / "clip", SourceOptions(fps=30.0))
    assert quick.status == "weak" and any("hardly changed its place" in reason for reason in quick.reasons)


def test_dropped_frames_leave_gaps_that_do_no_harm(folder, tmp_path):
    kept = [path for i, path in enumerate(sorted(folder.glob("*.png"))) if i not in (8, 17, 18)]
    for path in kept:
        nanoseconds = 1_700_000_000_000_000_000 + round(int(path.stem[5:]) * 1e9 / 30)
        (tmp_path / f"{nanoseconds}.png").write_bytes(path.read_bytes())
    calibration = rssc.calibrate(tmp_path, lens="opencv")
    assert calibration.camera.shutter.readout_ratio == pytest.approx(0.7, abs=0.01)
    assert calibration.frame_interval_s == pytest.approx(1 / 30, rel=1e-6)
    assert any("gap" in note for note in calibration.notes)


def command(*arguments):
    line = [sys.executable, "-m", "rssc", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def bad_inputs(tmp_path_factory):
    root = tmp_path_factory.mktemp("bad")
    noise = np.random.default_rng(0).integers(0, 255, (60, 80), dtype=np.uint8)
    (root / "empty").mkdir()
    (root / "mixed").mkdir()
    (root / "plain").mkdir()
    (root / "fog").mkdir()
    for i in range(12):
        fog = np.random.default_rng(i).normal(128, 1.0, (240, 320)).astype(np.uint8)
        cv2.imwrite(str(root / "fog" / f"{i:03d}.png"), fog)
        cv2.imwrite(str(root / "mixed" / f"{i:03d}.png"), noise[: 60 - i % 2])
        cv2.imwrite(str(root / "plain" / f"{i:03d}.png"), np.full((240, 320), 128, np.uint8))
    cv2.imwrite(str(root / "photo.jpg"), noise)
    (root / "corrupt.mp4").write_bytes(b"\x00" * 5000)
    return root


@pytest.mark.parametrize(
    ("source", "options", "code", "words"),
    [
        ("missing.mp4", (), 2, "does not exist"),
        ("photo.jpg", (), 2, "photo"),
        ("corrupt.mp4", (), 2, "corrupt.mp4"),
        ("empty", ("--fps", "30"), 2, "image"),
        ("mixed", ("--fps", "30"), 2, "size"),
        ("plain", (), 2, "(fps)"),
        ("plain", ("--fps", "30"), 3, "texture"),
        ("fog", ("--fps", "30"), 3, "texture"),
        ("plain", ("--fps", "30", "--frames", "5"), 2, "A:B"),
        ("plain", ("--fps", "30", "--undistorted-from", "nowhere.yaml"), 2, "nowhere.yaml"),
    ],
)
def test_bad_input_is_one_clear_line(bad_inputs, tmp_path, source, options, code, words):
    # Quiet: on a slow machine progress has lines of its own on stderr.
    done = command("calibrate", bad_inputs / source, "-o", tmp_path / "out", "-q", *options)
    assert done.returncode == code, done.stderr
    assert not done.stdout
    lines = [line for line in done.stderr.strip().splitlines() if line]
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("rssc: ")
    assert words in lines[0]
    written = {path.name for path in (tmp_path / "out").glob("*")}
    if code == 2:
        assert not written
    else:
        assert written == {"calibration.json", "report.html"}
        assert json.loads((tmp_path / "out" / "calibration.json").read_text())["status"] == "degenerate"


def test_a_script_without_a_main_guard_calibrates_several_clips(bad_inputs, tmp_path):
    """Neither clip can be calibrated, which the processes must report; they must not run the script again."""
    script = tmp_path / "script.py"
    script.write_text(
        "import rssc\n"
        "print('begins')\n"
        f"result = rssc.calibrate({[str(bad_inputs / name) for name in ('fog', 'plain')]!r}, fps=30.0)\n"
        "print(result.status, result.reasons)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("begins") == 1
    assert "degenerate" in done.stdout and "of fog: " in done.stdout and "of plain: " in done.stdout


def test_help_teaches():
    done = command("calibrate", "--help")
    assert done.returncode == 0
    for word in ("--fps", "--lens", "--method", "--frames", "--undistorted-from", "--init", "walk around"):
        assert word in done.stdout


def test_frame_ranges():
    assert parse_frames("3:9") == (3, 9)
    assert parse_frames(":9") == (None, 9)
    with pytest.raises(InputError, match="A:B"):
        parse_frames("x:1")


def test_options_are_checked(folder):
    with pytest.raises(InputError, match="lens is 'wide'"):
        rssc.calibrate(folder, lens="wide")
