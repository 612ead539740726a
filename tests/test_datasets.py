"""Loaders on tiny made-up folders, and the real study's table on made-up results."""

import json
import math
import os
import subprocess
import sys
from dataclasses import replace

import cv2
import numpy as np
import pytest
import yaml
from scipy.spatial.transform import Rotation

from rssc.datasets import find_sequences, shared, tum_rsvi
from rssc.datasets.sequence import Sequence, TrueTrajectory
from rssc.errors import InputError, NotCalibratableError
from rssc.experiments import real
from rssc.experiments.real import REAL_METHODS, run_real
from rssc.experiments.real_results import FIGURES, RealRow, empty_row, open_rows, paper_figures, save_rows
from rssc.experiments.real_table import OPENING, document, median_tables, rivals_ahead, sequence_tables
from rssc.experiments.tables import markdown
from rssc.io.camera_file import camera_document
from rssc.model.camera import Camera, Shutter
from rssc.model.lens import Lens

WIDTH, HEIGHT = 64, 48
START_NS = 1548685846939326526
INTERVAL_NS = 50_000_000
LENS = Lens("fisheye", 40.0, 41.0, 31.0, 23.0, (0.01, 0.02, -0.01, 0.005))
# Looks down with its x axis along the IMU's y, as the dataset's camera about does.
CAM_FROM_IMU = np.array([[0.0, -1.0, 0.0, 0.05], [-1.0, 0.0, 0.0, 0.01], [0.0, 0.0, -1.0, -0.04], [0.0, 0.0, 0.0, 1.0]])


def write_images(folder, names):
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    for name in names:
        cv2.imwrite(str(folder / name), rng.integers(0, 255, (HEIGHT, WIDTH), dtype=np.uint8))


def imu_poses(times_s):
    """A turning IMU on a curve: positions (n, 3) and rotations."""
    positions = np.column_stack((np.sin(times_s), np.cos(2 * times_s), 0.3 * times_s))
    return positions, Rotation.from_rotvec(np.outer(times_s, (0.2, -0.5, 0.4)))


@pytest.fixture
def tum_root(tmp_path):
    """Two sequences in the layout of the download."""
    camera = {"camera_model": "pinhole", "distortion_model": "equidistant", "resolution": [WIDTH, HEIGHT],
              "distortion_coeffs": list(LENS.distortion), "intrinsics": [LENS.fx, LENS.fy, LENS.cx, LENS.cy],
              "T_cam_imu": CAM_FROM_IMU.tolist()}  # fmt: skip
    (tmp_path / "calibration").mkdir()
    (tmp_path / "calibration/camchain-imu1.yaml").write_text(
        yaml.safe_dump({"cam0": {**camera, "intrinsics": [9.0, 9.0, 9.0, 9.0]}, "cam1": camera})
    )
    stamps = START_NS + INTERVAL_NS * np.arange(10)
    for number in (2, 10):
        folder = tmp_path / f"euroc/dataset-seq{number}/mav0"
        for name in ("cam0", "cam1"):
            write_images(folder / name / "data", [f"{stamp}.png" for stamp in stamps])
            lines = [f"{stamp},{stamp}.png" for stamp in stamps]
            (folder / name / "data.csv").write_text("\n".join(["#timestamp [ns],filename", *lines]) + "\n")
        times_s = np.arange(-0.1, 0.6, 1 / 120)
        positions, rotations = imu_poses(times_s)
        quaternions = np.roll(rotations.as_quat(), 1, axis=1)
        lines = [
            f"{START_NS + round(1e9 * t)}," + ",".join(f"{v:.12f}" for v in (*p, *q))
            for t, p, q in zip(times_s, positions, quaternions, strict=True)
        ]
        (folder / "mocap0").mkdir()
        header = "#timestamp [ns], p_RS_R_x [m], p_RS_R_y [m], p_RS_R_z [m], q_RS_w [], q_RS_x [], q_RS_y [], q_RS_z []"
        (folder / "mocap0/data.csv").write_text("\n".join([header, *lines]) + "\n")
    return tmp_path


def test_tum_rsvi_as_it_is_downloaded(tum_root):
    found = find_sequences(str(tum_root)).sequences
    assert [sequence.name for sequence in found] == ["dataset-seq2", "dataset-seq10"]
    assert [sequence.in_paper for sequence in found] == ["TUM-2", "TUM-10"]
    first = found[0]
    assert first.truth.lens == LENS
    assert first.truth.shutter.readout_ratio == pytest.approx(tum_rsvi.LINE_DELAY_S * HEIGHT * 20)
    assert first.source.name == "data" and first.source.parent.name == "cam1"
    assert first.undistorted_from is None and first.window == 50
    assert ("TUM-10", "te") in paper_figures()


def test_true_camera_centres_of_tum_rsvi(tum_root):
    trajectory = find_sequences(str(tum_root)).sequences[0].trajectory
    times_s = np.array([0.0, 0.05, 0.1234])
    positions, rotations = imu_poses(times_s)
    centre = np.linalg.inv(CAM_FROM_IMU)[:3, 3]
    expected = positions + rotations.apply(centre)
    assert trajectory.centres_at(times_s) == pytest.approx(expected, abs=1e-4)
    assert np.isnan(trajectory.centres_at(np.array([-1.0, 5.0]))).all()


def test_one_sequence_of_tum_rsvi_with_its_camchain(tum_root):
    sequence = tum_root / "euroc/dataset-seq2"
    with pytest.raises(InputError, match="0 camchain"):
        find_sequences(str(sequence))
    (tum_root / "calibration/camchain-imu1.yaml").rename(sequence / "camchain.yaml")
    assert [one.name for one in find_sequences(str(sequence)).sequences] == ["dataset-seq2"]


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "has 0 images"), ("a,b\n", "no table of images"), ("7\n8\n", "no table of images"),
     ("1,1.png\n1,1.png\n", "increasing"), ("1,frame1.png\n2,frame2.png\n", "not named by their time stamps"),
     ("1,1.png\n2,2.png\n", "does not exist")],
)  # fmt: skip
def test_tables_of_images_that_are_none(tum_root, text, words):
    (tum_root / "euroc/dataset-seq2/mav0/cam1/data.csv").write_text(text)
    with pytest.raises(InputError, match=words):
        find_sequences(str(tum_root))


@pytest.mark.parametrize("text", ["", "1 2 3\n4 5 6\n", "0 0 0 0 0 0 0 0\n1 0 0 0 0 0 0 0\n", "a b\n", None])
def test_trajectories_that_are_none(tmp_path, text):
    path = tmp_path / "trajectory.tum"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=r"trajectory\.tum"):
        TrueTrajectory(path).centres_at(np.zeros(1))


def test_no_centre_is_made_up_in_a_gap(tmp_path):
    path = tmp_path / "trajectory.tum"
    path.write_text("# t x y z q\n" + "".join(f"{t} {t} 0 0 0 0 0 1\n" for t in (0.0, 0.05, 1.0, 1.05)))
    found = TrueTrajectory(path).centres_at(np.array([0.02, 0.5, 1.0]))
    assert found[[0, 2], 0] == pytest.approx([0.02, 1.0])
    assert np.isnan(found[1]).all()


def write_truth(folder, **words):
    camera = Camera(WIDTH, HEIGHT, LENS, Shutter(0.5))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "truth.json").write_text(json.dumps({**camera_document(camera, 0.05), **words}))


def test_any_folder_with_a_truth(tmp_path):
    write_truth(tmp_path / "set/a")
    write_images(tmp_path / "set/a", ["0.png", "1.png"])
    write_truth(
        tmp_path / "set/b", undistorted_from="chain.yaml:cam1", frames=[3, 9], target="checkerboard:7x6:0.03",
        dataset="WHU-RSVI", in_paper="WHU-1",
    )  # fmt: skip
    write_images(tmp_path / "set/b/images", ["0.png"])
    (tmp_path / "set/b/trajectory.tum").write_text("0 0 0 0 0 0 0 1\n")
    a, b = find_sequences(str(tmp_path / "set")).sequences
    assert (a.name, a.dataset, a.source, a.fps) == ("a", "set", tmp_path / "set/a", 20.0)
    assert a.truth == Camera(WIDTH, HEIGHT, LENS, Shutter(0.5))
    assert a.trajectory is None and a.frames is None and a.target is None
    assert b.source == tmp_path / "set/b/images"
    assert b.undistorted_from == f"{tmp_path / 'set/b'}/chain.yaml:cam1"
    assert (b.dataset, b.in_paper, b.frames, b.target) == ("WHU-RSVI", "WHU-1", (3, 9), "checkerboard:7x6:0.03")
    assert b.trajectory is not None


def test_a_video_beside_a_truth_has_its_own_times(tmp_path):
    write_truth(tmp_path)
    (tmp_path / "clip.mp4").touch()
    (only,) = find_sequences(str(tmp_path)).sequences
    assert only.source == tmp_path / "clip.mp4" and only.fps is None
    (tmp_path / "other.mp4").touch()
    with pytest.raises(InputError, match="2 videos"):
        find_sequences(str(tmp_path))


@pytest.mark.parametrize(
    ("words", "expected"),
    [({"frames": [5]}, "one past the last"), ({"frames": [9, 3]}, "one past the last"),
     ({"frames": "3:9"}, "two numbers"), ({"target": 7}, "target: Input should be a valid string"),
     ({"lens": {}}, "lens.model")],
)  # fmt: skip
def test_truths_that_are_none(tmp_path, words, expected):
    write_truth(tmp_path, **words)
    write_images(tmp_path, ["0.png"])
    with pytest.raises(InputError, match=expected):
        find_sequences(str(tmp_path))


def test_folders_without_sequences(tmp_path):
    with pytest.raises(InputError, match="no sequences"):
        find_sequences(str(tmp_path))
    with pytest.raises(InputError, match="is no folder"):
        find_sequences(str(tmp_path / "nowhere"))
    write_truth(tmp_path)
    with pytest.raises(InputError, match="no images"):
        find_sequences(str(tmp_path))


def test_shared_clips_are_left_out_with_a_reason_where_absent(tmp_path, monkeypatch):
    monkeypatch.setenv("RSSC_DATA", str(tmp_path / "nowhere"))
    found = find_sequences(shared.NAME)
    assert not found.sequences and "RSSC_DATA" in found.skipped[0]
    write_images(tmp_path / "gopro_hero3/images", ["0.png"])
    monkeypatch.setenv("RSSC_DATA", str(tmp_path))
    found = find_sequences(shared.NAME)
    assert [sequence.name for sequence in found.sequences] == ["GoPro Hero3+"]
    assert "clip A" in found.skipped[0] and "camchain" in found.skipped[0]


def test_shared_clips_where_present(shared_data):
    clip_a, gopro, kinect = find_sequences(shared.NAME).sequences
    assert clip_a.truth.shutter.readout_ratio == 0.6036 and clip_a.target is not None
    assert gopro.undistorted_from is None
    assert all(sequence.source.is_dir() for sequence in (clip_a, gopro, kinect))
    assert kinect.trajectory is not None and kinect.fps is not None
    assert np.isfinite(kinect.trajectory.centres_at(np.arange(160) / kinect.fps)).all()


def test_real_clips_have_the_doubts_of_their_truth(shared_data):
    clips = {sequence.name: sequence for sequence in shared.find_real_clips().sequences}
    assert len(clips) == 5 and all(sequence.source.is_dir() for sequence in clips.values())
    kinect, host = clips["Kinect"], clips["Kinect, host times"]
    assert kinect.fps == pytest.approx(29.996, abs=1e-3) and host.fps is None
    assert kinect.doubts["readout_ratio"] == pytest.approx(0.0117, abs=1e-4)
    assert clips["GoPro Hero3+"].truth == clips["GoPro Hero3+ 500"].truth


def made_up_row(sequence, method, readout_error, ate=math.nan, **changes):
    errors = (1.0, 2.0, 3.0, 4.0, readout_error)
    row = RealRow(sequence, "TUM-RSVI", "TUM-1", method, "0:50", "pinhole", (700.0,) * 5, errors, ate, "ok", "", 1.5)
    return replace(row, **changes)


def test_rows_survive_their_file(tmp_path):
    rows = [made_up_row("a", "te", 0.01, 0.005), empty_row("a", "set", "", "target", "0:50", "no board, alas")]
    path = tmp_path / "real.csv"
    save_rows(path, rows)
    back = open_rows(path)
    assert back[0] == rows[0]
    assert back[1].key == rows[1].key and back[1].reason == "no board, alas" and math.isnan(back[1].ate)
    path.write_text(path.read_text() + "a,set,TUM-1,te,torn")
    assert len(open_rows(path)) == 2
    path.write_text("something,else\n")
    with pytest.raises(InputError, match="not a table of this study"):
        open_rows(path)


def test_the_paper_figures_give_the_medians_of_the_paper():
    figures = paper_figures()
    for dataset, count in (("TUM", 10), ("WHU", 2)):
        for method in ("colmap", "te", "ceq", "ceh", "dpq", "dph"):
            for name in ("fx", "readout_ratio"):
                values = [figures[f"{dataset}-{i + 1}", method][name] for i in range(count)]
                printed = figures[dataset, method][name]
                assert math.isnan(printed) or np.median(values) == pytest.approx(printed, abs=0.0102), (dataset, method)
    assert math.isnan(figures["TUM-1", "colmap"]["readout_ratio"])
    assert figures["TUM-seq1", "target"]["readout_ratio"] == 0.0882


def test_the_table_has_our_figures_beside_the_papers():
    rows = [made_up_row("seq1", "te", 0.02, 0.006), made_up_row("seq1", "auto", 0.001, 0.004),
            empty_row("seq1", "TUM-RSVI", "TUM-1", "target", "0:50", "no board")]  # fmt: skip
    text = markdown(OPENING, sequence_tables(rows))
    assert "| te | **1.00** (1.83) |" in text
    assert "| **0.0010** | **0.0040** |" in text and "0.0200 (0.1051)" in text
    assert "| target-based | - | - | - | - | - | - |" in text and "- target-based: no board" in text
    assert "DroidCalib | - (26.49)" in text


def test_medians_count_failures_as_infinitely_off():
    rows = [made_up_row(f"seq{i}", "auto", error) for i, error in enumerate((0.01, 0.04, 0.02))]
    rows.append(empty_row("seq3", "TUM-RSVI", "", "auto", "0:50", "turned only"))
    (table,) = median_tables(rows)
    assert "over 4 sequences" in table.title and "Table 3" in table.title
    auto = next(cells for label, *cells in table.rows if label.text == "auto")
    assert auto[FIGURES.index("readout_ratio")].text == "0.0300"
    assert auto[FIGURES.index("ate")].text == "-"


def test_who_is_ahead_of_auto():
    rows = [made_up_row("a", "auto", 0.01), made_up_row("a", "te", 0.02), made_up_row("a", "ceq", math.nan),
            made_up_row("b", "auto", 0.01), made_up_row("b", "te", 0.005)]  # fmt: skip
    assert rivals_ahead(rows) == {"a": [], "b": ["te"]}
    assert json.loads(json.dumps(document(rows)))["ahead_of_auto_in_readout"] == {"a": [], "b": ["te"]}


@pytest.fixture
def recording(tmp_path):
    write_truth(tmp_path / "one")
    write_images(tmp_path / "one", [f"{i:03d}.png" for i in range(10)])
    (only,) = find_sequences(str(tmp_path / "one")).sequences
    return only


def test_rows_that_cannot_be_filled_say_why_and_are_kept(tmp_path, recording, monkeypatch):
    """Noise has no tracks; the shared work is tried once, and nothing again in a second run."""
    calls = []

    def fail(*arguments, **options):
        calls.append(arguments)
        raise NotCalibratableError("nothing to be seen.")

    monkeypatch.setattr(real, "refine_stretch", fail)
    monkeypatch.setattr(real, "run_colmap", fail)
    path = tmp_path / "real.csv"
    rows = run_real(path, [recording])
    assert [row.method for row in rows] == list(REAL_METHODS)
    assert {row.status for row in rows} == {"none"}
    assert rows[-1].method == "target" and "no board" in rows[-1].reason
    assert len(calls) == 2
    assert [row.key for row in run_real(path, [recording])] == [row.key for row in rows]
    assert len(calls) == 2


def test_figures_of_a_method_against_the_truth(tmp_path, recording, monkeypatch):
    """COLMAP's answer, made up: a similarity of the true trajectory at middle rows, and one frame not placed."""
    times_s = 0.0125 * np.arange(40)
    positions, rotations = imu_poses(times_s)
    lines = [" ".join(map(str, (t, *p, *q))) for t, p, q in zip(times_s, positions, rotations.as_quat(), strict=True)]
    (tmp_path / "one/trajectory.tum").write_text("\n".join(lines))
    (recording,) = find_sequences(str(tmp_path / "one")).sequences

    def found(folder, names, **options):
        cam_from_world = {}
        for i, name in enumerate(names[1:], 1):
            middle = 4 * i + 1  # frames every 50 ms, read in 25 ms
            rotation = rotations[middle].as_matrix().T
            cam_from_world[name] = np.column_stack((rotation, -rotation @ (3 * positions[middle] + 7)))
        assert options["camera_model"] == "OPENCV_FISHEYE"
        return real.ColmapResult(replace(LENS, fx=LENS.fx + 2.5), cam_from_world)

    monkeypatch.setattr(real, "run_colmap", found)
    (row,) = run_real(tmp_path / "real.csv", [recording], ["colmap"])
    assert row.errors[:4] == pytest.approx((2.5, 0, 0, 0)) and math.isnan(row.errors[4])
    assert row.ate == pytest.approx(0, abs=1e-9)
    assert row.reason == "places 9 of 10 frames"


def test_the_truth_must_be_of_the_images(recording, tmp_path):
    wrong = replace(recording, truth=replace(recording.truth, width=65))
    with pytest.raises(InputError, match="64 x 48 pixels, its truth 65 x 48"):
        run_real(tmp_path / "real.csv", [wrong])
    with pytest.raises(InputError, match="two sequences are called one"):
        run_real(tmp_path / "real.csv", [recording, recording])


def test_the_command_says_what_is_missing(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "rssc", "experiment", "real", "shared", "-o", tmp_path / "out"],
        capture_output=True, text=True, check=False, env=os.environ | {"RSSC_DATA": str(tmp_path / "nowhere")},
    )  # fmt: skip
    assert done.returncode == 2
    assert "RSSC_DATA" in done.stderr and "Traceback" not in done.stderr


def test_sequences_are_values(recording):
    assert isinstance(recording, Sequence) and replace(recording) == recording
