"""Calibration targets: their description, their corners, and the calibration from them, against rendered truth."""

import subprocess
import sys

import cv2
import numpy as np
import pytest

import rssc.pipeline.target as flow
from rssc.errors import InputError
from rssc.io.target_file import read_target
from rssc.kernels.image.saddle import fit_saddles
from rssc.model.calibration import Calibration
from rssc.model.target import AprilGrid, Charuco, Checkerboard
from rssc.model.tracks import Tracks
from rssc.outputs.result_folder import write_results
from rssc.pipeline.options import TargetOptions
from rssc.simulation.board import points_in_world
from rssc.simulation.clip import ClipOptions, render_clip, typical_lens
from rssc.tracking.board_corners import detect_target

GRID = "aprilgrid:4x4:0.1:0.3"
YAML = {
    "aprilgrid": ("tagCols: 6\ntagRows: 5\ntagSize: 0.088\ntagSpacing: 0.3", AprilGrid(6, 5, 0.088, 0.3)),
    "checkerboard": (
        "targetCols: 7\ntargetRows: 6\nrowSpacingMeters: 0.05\ncolSpacingMeters: 0.06",
        Checkerboard(7, 6, 0.06, 0.05),
    ),
    "charuco": (
        "targetCols: 7\ntargetRows: 5\nsquareSize: 0.04\nmarkerSize: 0.03\ndictionary: DICT_5X5_50",
        Charuco(7, 5, 0.04, 0.03, "DICT_5X5_50"),
    ),
}


@pytest.mark.parametrize("kind", YAML)
def test_targets_from_files(tmp_path, kind):
    text, expected = YAML[kind]
    path = tmp_path / "target.yaml"
    path.write_text(f"target_type: '{kind}' # as Kalibr has it\n{text}\n")
    assert read_target(str(path)) == expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("aprilgrid:6x5:0.088:0.3", AprilGrid(6, 5, 0.088, 0.3)),
        ("checkerboard:7x6:0.03", Checkerboard(7, 6, 0.03, 0.03)),
        ("checkerboard:7x6:0.03:0.04", Checkerboard(7, 6, 0.03, 0.04)),
        ("charuco:7x5:0.04:0.03:DICT_5X5_50", Charuco(7, 5, 0.04, 0.03, "DICT_5X5_50")),
    ],
)
def test_targets_from_words(word, expected):
    assert read_target(word) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nowhere.yaml", "no file"),
        ("aprilgrid:6x:0.1:0.3", "not complete"),
        ("aprilgrid:6x6:0.1", "not complete"),
        ("aprilgrid:6x6:0:0.3", "tag_size"),
        ("checkerboard:2x9:0.1", "2 x 9"),
        ("charuco:7x5:0.03:0.04", "do not fit"),
    ],
)
def test_bad_words_are_named(text, message):
    with pytest.raises(InputError, match=message):
        read_target(text)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("target_type: circlegrid", "circlegrid"),
        ("target_type: aprilgrid\ntagCols: 6\ntagRows: 6\ntagSize: big", "tagSize"),
        ("target_type: aprilgrid\ntagCols: 6.5\ntagRows: 6", "whole"),
        ("target_type: [", "not YAML"),
        ("just words", "target_type"),
    ],
)
def test_bad_files_are_named(tmp_path, content, message):
    path = tmp_path / "target.yaml"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        read_target(str(path))


def test_aprilgrid_has_kalibrs_corners():
    grid = AprilGrid(3, 2, 1.0, 0.25)
    corners = grid.points[grid.tag_corners(4)]  # second row, second column
    assert corners == pytest.approx(np.array([(1.25, 1.25, 0), (2.25, 1.25, 0), (2.25, 2.25, 0), (1.25, 2.25, 0)]))


@pytest.mark.parametrize("angle", [90, 60, 40])
def test_saddles_are_found_to_a_hundredth_of_a_pixel(rng, angle):
    samples, size = 8, 17
    u, v = np.meshgrid(*2 * [(np.arange(size * samples) + 0.5) / samples - 0.5])
    errors = []
    for _ in range(20):
        true = 8 + rng.uniform(-0.5, 0.5, 2)
        first = rng.uniform(0, np.pi)
        sides = [np.cos(t) * (v - true[1]) - np.sin(t) * (u - true[0]) > 0 for t in (first, first + np.radians(angle))]
        fine = cv2.GaussianBlur(np.where(sides[0] == sides[1], 210.0, 30.0), (0, 0), 0.5 * samples)
        image = fine.reshape(size, samples, size, samples).mean(axis=(1, 3)) + rng.normal(0, 1.5, (size, size))
        corner, misfit = np.empty((1, 2)), np.empty(1)
        start = true + rng.normal(0, 0.3, 2)
        fit_saddles(image.astype(np.uint8), start[None], np.array([5]), 0, 1, corner, misfit)
        errors.append(corner[0] - true)
    assert np.sqrt(np.mean(np.square(errors))) < 0.015


def test_saddles_at_the_border_or_in_plain_areas_are_not_found():
    image = np.full((40, 40), 128, np.uint8)
    corners, misfits = np.empty((3, 2)), np.empty(3)
    starts = np.array([(2.0, 20.0), (20.0, 20.0), (np.nan, 1.0)])
    fit_saddles(image, starts, np.full(3, 4), 0, 3, corners, misfits)
    assert np.isnan(corners).all()


def board_clip(word, model="opencv", frames=60, size=(480, 360), readout=0.55, **options):
    lens = typical_lens(model, *size)
    return render_clip(ClipOptions(*size, frames, lens=lens, readout_ratio=readout, world="board",
                                   target=read_target(word), **options))  # fmt: skip


@pytest.mark.parametrize(
    ("word", "model"),
    [(GRID, "fisheye"), ("checkerboard:7x6:0.05", "opencv"), ("charuco:7x5:0.06:0.045", "opencv")],
)
def test_corners_lie_where_the_truth_has_them(word, model):
    clip = board_clip(word, model)
    numbers = (0, 15)
    tracks = detect_target(np.stack([clip.frame(i) for i in numbers]), clip.options.target)
    seen = 0
    for k, number in enumerate(numbers):
        pixels, visible = clip.observe(points_in_world(clip.options.target), number)
        here = tracks.frames == k
        errors = tracks.pixels[here] - pixels[tracks.points[here]]
        assert np.median(np.linalg.norm(errors, axis=1)) < 0.03
        assert np.abs(errors).max() < 0.5
        seen += visible.sum()
    assert len(tracks) > 0.9 * seen


def test_an_image_without_a_board_gives_nothing(rng):
    images = rng.integers(0, 255, (1, 120, 160)).astype(np.uint8)
    for word in (GRID, "checkerboard:7x6:0.05", "charuco:7x5:0.06:0.045"):
        assert detect_target(images, read_target(word)) is None


def true_tracks(clip, rng, noise=0.02, gap=()):
    """Where the truth shows the corners, without any in some frames."""
    rows = []
    for frame in set(range(len(clip))) - set(gap):
        pixels, visible = clip.observe(points_in_world(clip.options.target), frame)
        rows += [(frame, point, *pixels[point]) for point in np.flatnonzero(visible)]
    table = np.array(rows)
    pixels = table[:, 2:] + rng.normal(0, noise, (len(table), 2))
    return Tracks(len(clip), len(clip.options.target.points), table[:, 0], table[:, 1], pixels)


@pytest.fixture(scope="module")
def noise_folder(tmp_path_factory):
    """Frames that only have the right size: where the corners are is said by the tests."""
    folder = tmp_path_factory.mktemp("noise")
    rng = np.random.default_rng(0)
    for i in range(36):
        cv2.imwrite(str(folder / f"{i:03d}.png"), rng.integers(0, 255, (360, 480)).astype(np.uint8))
    return folder


def calibrate_tracks(monkeypatch, folder, tracks, target, **options):
    monkeypatch.setattr(flow, "detect_target", lambda *_: tracks)
    return flow.calibrate_target(folder, target, TargetOptions(fps=30, **options))


@pytest.mark.parametrize(
    ("model", "readout", "gap"), [("opencv", 0.55, range(12, 18)), ("fisheye", -0.6, ()), ("pinhole", 0.9, (0, 1, 7))]
)
def test_true_corners_give_the_true_camera(monkeypatch, noise_folder, rng, model, readout, gap):
    clip = board_clip(GRID, model, 36, readout=readout)
    result = calibrate_tracks(monkeypatch, noise_folder, true_tracks(clip, rng, gap=gap), GRID, lens=model)
    found, truth = result.camera, clip.camera
    assert result.status != "degenerate", result.reasons
    assert found.shutter.readout_ratio == pytest.approx(readout, rel=0.01)
    assert (found.lens.fx, found.lens.fy) == pytest.approx((truth.lens.fx, truth.lens.fy), rel=1e-3)
    # In metres: how far the camera moved between two frames.
    frames = result.stretches[0].frame_numbers
    true = clip.motion.cam_from_world(np.array((frames[0], frames[-1]), dtype=float))
    ours = result.stretches[0].scene.cam_from_world[[0, -1]]
    lengths = [np.linalg.norm(np.diff([-p[:, :3].T @ p[:, 3] for p in poses], axis=0)) for poses in (true, ours)]
    assert lengths[1] == pytest.approx(lengths[0], rel=0.01)


def test_a_wrong_spacing_is_noticed_and_does_no_harm(monkeypatch, noise_folder, rng):
    clip = board_clip(GRID, "pinhole", 36)
    result = calibrate_tracks(
        monkeypatch, noise_folder, true_tracks(clip, rng), "aprilgrid:4x4:0.1:0.4", lens="pinhole"
    )
    assert result.status == "weak"
    assert any("tagSpacing were 0.3" in reason for reason in result.reasons)
    assert result.camera.lens.fx == pytest.approx(clip.camera.lens.fx, rel=5e-3)
    assert result.camera.shutter.readout_ratio == pytest.approx(0.55, rel=0.02)


def test_another_board_is_refused(monkeypatch, noise_folder, rng):
    tracks = true_tracks(board_clip(GRID, "pinhole", 36), rng)
    # Tag ids from the top instead of from the bottom.
    row, column = np.divmod(tracks.points, 8)
    swapped = ((3 - row // 2) * 2 + row % 2) * 8 + column
    wrong = Tracks(tracks.frame_count, tracks.point_count, tracks.frames, swapped, tracks.pixels)
    found = calibrate_tracks(monkeypatch, noise_folder, wrong, GRID)
    assert found.status == "degenerate" and "rows, columns and spacing" in found.reasons[0]


def test_a_board_in_few_frames_is_refused(monkeypatch, noise_folder, rng):
    clip = board_clip(GRID, "pinhole", 36)
    found = calibrate_tracks(monkeypatch, noise_folder, true_tracks(clip, rng, gap=range(4, 36)), GRID)
    assert found.status == "degenerate" and "seen in 4 of" in found.reasons[0]


def test_the_whole_flow_on_a_rendered_clip(tmp_path):
    clip = board_clip(GRID, "radial", 18, size=(400, 300), seed=1)
    for i, frame in enumerate(clip):
        cv2.imwrite(str(tmp_path / f"{i:03d}.png"), frame)
    result = flow.calibrate_target(tmp_path, GRID, TargetOptions(fps=30, lens="radial"))
    assert result.status != "degenerate", result.reasons
    assert result.camera.shutter.readout_ratio == pytest.approx(0.55, rel=0.02)
    assert result.camera.lens.fx == pytest.approx(clip.camera.lens.fx, rel=2e-3)
    assert any("metres" in note for note in result.notes)
    write_results(result, tmp_path)
    again = Calibration.load(tmp_path / "calibration.json")
    assert again.stretches[0].scene.points == pytest.approx(result.stretches[0].scene.points)


@pytest.mark.parametrize(
    ("target", "code", "words"),
    [(GRID, 3, "no frame shows"), ("aprilgrid:4x4", 2, "not complete"), ("nowhere.yaml", 2, "nowhere.yaml")],
)
def test_the_command_says_what_is_wrong(noise_folder, tmp_path, target, code, words):
    done = subprocess.run(
        [sys.executable, "-m", "rssc", "calibrate", noise_folder, "-o", tmp_path, "--fps", "30", "--target", target,
         "--frames", "0:8"], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert done.stderr.splitlines()[-1].startswith("rssc: ")  # lines of progress before it, on a slow machine
    assert words in done.stderr


def test_the_grid_in_clip_a_is_found_and_fits(shared_data):
    names = sorted((shared_data / "tum_rsvi/clip_a/images").iterdir())
    images = np.stack([cv2.imread(str(names[i]), cv2.IMREAD_GRAYSCALE) for i in (0, 21, 45)])
    target = read_target("aprilgrid:6x6:0.088:0.3")
    tracks = detect_target(images, target)
    for frame in range(len(images)):
        here = tracks.frames == frame
        board, pixels = target.points[tracks.points[here]], tracks.pixels[here]
        assert len(board) > 100
        # The images are undistorted: a plane is a homography, up to what the rolling shutter shears.
        homography, _ = cv2.findHomography(board[:, :2], pixels)
        projected = cv2.perspectiveTransform(board[:, None, :2], homography)[:, 0]
        assert np.median(np.linalg.norm(projected - pixels, axis=1)) < 0.5
