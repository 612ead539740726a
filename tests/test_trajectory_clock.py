"""The trajectory error of the real study uses one clock: a simulated camera in the layout of the shared Kinect clip."""

import re
from dataclasses import replace
from types import SimpleNamespace

import cv2
import numpy as np
import pytest

import rssc
from rssc.datasets import shared
from rssc.experiments import real
from rssc.experiments.real import run_real
from rssc.io.tum import tum_text
from rssc.simulation.scenes import simulate_scene
from rssc.solver.methods import METHODS
from tests.builders import make_calibration, make_stretch

FRAMES = 24
INTERVAL_S = 33.338e-3
START_S = 1305031454.79
"""Time of the first row of the first frame on the clock of the truth."""


@pytest.fixture(scope="module")
def simulated():
    return simulate_scene(
        5, frame_count=FRAMES, point_count=80, readout_ratio=0.781, pixel_noise=0.05, frames_per_second=1 / INTERVAL_S
    )


@pytest.fixture
def kinect(tmp_path, monkeypatch, simulated):
    """Names as the host's clock gives them, in steps of 4 ms; a truth every 10 ms."""
    folder = tmp_path / "kinect_fr1_desk"
    (folder / "rgb").mkdir(parents=True)
    rng = np.random.default_rng(0)
    for i in range(FRAMES):
        stamp = START_S + 0.004 * np.round(i * INTERVAL_S / 0.004)
        picture = np.zeros((480, 640), np.uint8)
        picture[:48] = rng.integers(0, 255, (48, 640))
        cv2.imwrite(str(folder / f"rgb/{stamp:.6f}.png"), picture)
    frame_times = np.arange(-2, FRAMES + 2, 0.01 / INTERVAL_S)
    poses = simulated.motion.cam_from_world(frame_times)
    (folder / "groundtruth.tum").write_text(tum_text(START_S + INTERVAL_S * frame_times, poses))
    monkeypatch.setenv("RSSC_DATA", str(tmp_path))
    (only,) = shared.find_sequences().sequences
    return only


def later(recording, delay_s):
    """The same recording where the truth's clock is thought to be off."""
    trajectory = recording.trajectory
    return replace(recording, trajectory=replace(trajectory, first_frame_s=trajectory.first_frame_s + delay_s))


def test_times_of_the_frames_are_on_the_clock_of_the_truth(kinect, simulated):
    """To half a millisecond, although each name is up to 2 ms off."""
    assert kinect.trajectory.first_frame_s == pytest.approx(START_S, abs=5e-4)
    assert kinect.fps == pytest.approx(1 / INTERVAL_S) and kinect.window == 80


@pytest.mark.parametrize("method", [*METHODS])
def test_every_method_gives_the_poses_of_first_rows(kinect, simulated, method, tmp_path, monkeypatch):
    """Whatever a method's reference, an offset of the clock to either side raises the error."""
    adjustment = rssc.adjust(simulated.scene, method)
    found = adjustment.scene
    result = SimpleNamespace(inference=SimpleNamespace(adjustment=adjustment))
    calibration = make_calibration(found.camera, [make_stretch(found, interval_s=INTERVAL_S)])
    monkeypatch.setattr(real, "refine_stretch", lambda *_: found)
    monkeypatch.setattr(real, "infer_refined", lambda *_: result)
    monkeypatch.setattr(real, "conclude", lambda *_: calibration)
    delays_s = (-13e-3, -4e-3, 0.0, 4e-3, 13e-3)
    rows = [run_real(tmp_path / f"{d}.csv", [later(kinect, d)], [method])[0] for d in delays_s]
    errors = [row.ate for row in rows]
    assert np.argmin(errors) == 2
    assert errors[0] > 5 * errors[2] < errors[4]
    placed = {"ceq": "places 22 of 24 frames; ", "ceh": "places 21 of 24 frames; "}.get(method, "")
    assert rows[2].reason.startswith(f"{placed}ATE 0.00")
    # The remark has the offset, to the half millisecond to which the names give the clock.
    for row, delay_s in ((rows[0], -13e-3), (rows[4], 13e-3)):
        text = re.fullmatch(r".*if all frames were ([\d.]+) ms (later|earlier)", row.reason)
        assert float(text[1]) == pytest.approx(13, abs=0.7) and (text[2] == "later") == (delay_s < 0)


def test_a_global_shutter_pose_is_that_of_the_middle_row(kinect, simulated, tmp_path, monkeypatch):
    moments = {"first": 0.0, "middle": 0.781 / 2}
    errors = {}
    for row, moment in moments.items():
        poses = simulated.motion.cam_from_world(np.arange(FRAMES) + moment)

        def found(folder, names, poses=poses, **options):
            assert options["camera_model"] == "OPENCV"  # not the truth's FULL_OPENCV, which runs away
            return real.ColmapResult(kinect.truth.lens, dict(zip(names, poses, strict=True)))

        monkeypatch.setattr(real, "run_colmap", found)
        errors[row] = run_real(tmp_path / f"{row}.csv", [kinect], ["colmap"])[0].ate
    assert errors["middle"] < 0.2 * errors["first"]
