"""The start: against simulated truth, against COLMAP's own projection, and where it has to give up."""

import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from rssc.errors import InputError, NotCalibratableError
from rssc.model import Camera, Lens, Shutter, Tracks
from rssc.model.poses import camera_centres
from rssc.simulation.scenes import simulate_scene
from rssc.start import mapping
from rssc.start.colmap import lens_from_colmap
from rssc.start.colmap_mapping import map_globally, map_incrementally
from rssc.start.keyframes import FrameViews, Pair, choose_keyframes, wide_pairs
from rssc.start.lens_search import LensGuess, centred_lens, rank_lenses
from rssc.start.reconstruction import check_motion, read_colmap_model, reconstruct
from rssc.start.rough_readout import rectified, rough_readout_ratio

FRAMES = 30
CAMERAS = {
    "pinhole": Camera(1280, 1024, Lens("pinhole", 742.0, 738.0, 631.0, 517.0), Shutter(0)),
    "opencv": Camera(1280, 720, Lens("opencv", 800.0, 800.0, 645.0, 365.0, (-0.25, 0.08, 0.001, 0.0)), Shutter(0)),
    "fisheye": Camera(1920, 1080, Lens("fisheye", 868.0, 880.0, 970.0, 535.0, (0.05, 0.0, 0.0, 0.0)), Shutter(0)),
    "portrait": Camera(720, 1280, Lens("pinhole", 1100.0, 1100.0, 362.0, 633.0), Shutter(0)),
}


def simulate(camera_name, readout_ratio, seed=0, **options):
    options = {"frame_count": FRAMES, "point_count": 300, **options}
    return simulate_scene(seed, camera=CAMERAS[camera_name], readout_ratio=readout_ratio, **options)


def centres(poses):
    return camera_centres(poses)


def aligned_error(estimate, truth):
    """Root mean square distance of camera centres after the best similarity, over the size of the path."""
    a, b = centres(estimate), centres(truth)
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    u, s, vt = np.linalg.svd(b.T @ a)
    signs = np.array([1, 1, np.linalg.det(u @ vt)])
    rotation, scale = u @ np.diag(signs) @ vt, (s * signs).sum() / (a**2).sum()
    return np.sqrt(((b - scale * a @ rotation.T) ** 2).sum() / (b**2).sum())


@pytest.mark.parametrize(
    ("camera_name", "readout_ratio"),
    [("pinhole", 0.5), ("pinhole", 0.93), ("opencv", 0.6), ("fisheye", 0.93), ("fisheye", -0.6), ("portrait", 0.0)],
)
def test_finds_lens_poses_and_readout(camera_name, readout_ratio):
    simulated = simulate(camera_name, readout_ratio)
    camera = CAMERAS[camera_name]
    start = reconstruct(simulated.scene.tracks, camera.width, camera.height)
    assert start.lens.fx == pytest.approx(np.sqrt(camera.lens.fx * camera.lens.fy), rel=0.03)
    assert start.readout_ratio == pytest.approx(readout_ratio, abs=0.12)
    assert start.registered.all() and start.notes == ()
    middle = simulated.motion.cam_from_world(np.arange(FRAMES) + start.readout_ratio / 2)
    assert aligned_error(start.cam_from_world, middle) < 0.02
    # The whole field agrees, whatever family was chosen to say it.
    pixels = np.random.default_rng(0).uniform(0.1, 0.9, (50, 2)) * (camera.width, camera.height)
    angles = np.arccos(np.clip(np.sum(start.lens.unproject(pixels) * camera.lens.unproject(pixels), axis=1), -1, 1))
    assert np.median(angles) < np.radians(1.5)


def test_survives_outliers_and_short_tracks():
    simulated = simulate("pinhole", 0.7, point_count=1500, track_length=10, outlier_fraction=0.1)
    start = reconstruct(simulated.scene.tracks, 1280, 1024, lens="perspective")
    assert start.lens.fx == pytest.approx(740, rel=0.04)
    assert start.readout_ratio == pytest.approx(0.7, abs=0.15)
    assert start.registered.all()


def test_is_deterministic_and_silent(capfd):
    tracks = simulate("pinhole", 0.5, frame_count=15).scene.tracks
    first, second = (reconstruct(tracks, 1280, 1024) for _ in range(2))
    assert np.array_equal(first.cam_from_world, second.cam_from_world)
    assert first.lens == second.lens and first.readout_ratio == second.readout_ratio
    assert capfd.readouterr() == ("", "")


def test_reports_its_progress():
    tracks = simulate("pinhole", 0.5, frame_count=12).scene.tracks
    shares = []
    reconstruct(tracks, 1280, 1024, lens="perspective", report=shares.append)
    assert shares == sorted(shares) and shares[0] == 0 and shares[-1] == 1


def test_explains_frames_that_it_cannot_locate():
    simulated = simulate("pinhole", 0.5)
    tracks = simulated.scene.tracks
    start = reconstruct(tracks.select((tracks.frames < 12) | (tracks.frames > 14)), 1280, 1024)
    assert np.flatnonzero(~start.registered).tolist() == [12, 13, 14]
    assert "12-14" in start.notes[0]
    assert aligned_error(start.cam_from_world, simulated.motion.cam_from_world(np.arange(FRAMES) + 0.25)) < 0.1
    rotations = start.cam_from_world[:, :, :3]
    assert np.allclose(rotations @ rotations.transpose(0, 2, 1), np.eye(3), atol=1e-9)


def test_gives_up_without_motion():
    rng = np.random.default_rng(0)
    points = rng.uniform((0, 0), (1280, 720), (200, 2))
    pixels = np.tile(points, (10, 1)) + rng.normal(0, 0.3, (2000, 2))
    tracks = Tracks(10, 200, np.repeat(np.arange(10), 200), np.tile(np.arange(200), 10), pixels)
    with pytest.raises(NotCalibratableError, match="stands still"):
        reconstruct(tracks, 1280, 720)


def test_gives_up_on_noise():
    rng = np.random.default_rng(0)
    pixels = rng.uniform((0, 0), (1280, 720), (1000, 2))
    tracks = Tracks(10, 100, np.repeat(np.arange(10), 100), np.tile(np.arange(100), 10), pixels)
    with pytest.raises(NotCalibratableError, match="no camera motion explains"):
        reconstruct(tracks, 1280, 720, lens="perspective")


def test_gives_up_on_few_tracks():
    tracks = simulate("pinhole", 0.5, point_count=15).scene.tracks
    with pytest.raises(NotCalibratableError, match="link no two frames"):
        reconstruct(tracks, 1280, 1024)


def test_rejects_an_unknown_lens():
    tracks = simulate("pinhole", 0.5, point_count=20).scene.tracks
    with pytest.raises(InputError, match="'plenoptic'"):
        reconstruct(tracks, 1280, 1024, lens="plenoptic")


def test_notes_missing_parallax():
    simulated = simulate("pinhole", 0.5)
    tracks, lens = simulated.truth.tracks, CAMERAS["pinhole"].lens
    # The same turns without the translation: every point lies at infinity.
    rotations = simulated.truth.cam_from_world[tracks.frames, :, :3]
    directions = simulated.truth.points[tracks.points] - centres(simulated.truth.cam_from_world)[0]
    local = np.einsum("nij,nj->ni", rotations, directions)
    pixels = lens.project(local)
    seen = np.isfinite(pixels).all(axis=1) & (np.abs(pixels - (640, 512)) < (640, 512)).all(axis=1)
    turned = Tracks(FRAMES, tracks.point_count, tracks.frames[seen], tracks.points[seen], pixels[seen])
    start = reconstruct(turned, 1280, 1024, lens="perspective")
    assert start.parallax_deg < 1
    assert any("parallax" in note for note in start.notes)


def test_incremental_mapping_agrees_with_global():
    tracks = simulate("pinhole", 0.0).scene.tracks
    keyframes = choose_keyframes(FrameViews(tracks), 1280, 1024, max_error=5.0)
    lens = centred_lens("radial", 800.0, 0.0, 1280, 1024)
    models = [map_globally(keyframes, lens), map_incrementally(keyframes, lens)]
    assert all(m is not None and len(m.poses) == len(keyframes.frames) for m in models)
    poses = [np.array([m.poses[int(f)] for f in keyframes.frames]) for m in models]
    assert aligned_error(*poses) < 0.05
    assert models[0].lens.fx == pytest.approx(models[1].lens.fx, rel=0.03)


@pytest.mark.parametrize(("camera_name", "model"), [("pinhole", "radial"), ("fisheye", "fisheye")])
def test_pairs_of_frames_determine_the_lens(camera_name, model):
    camera = CAMERAS[camera_name]
    tracks = simulate(camera_name, 0.5).scene.tracks
    pairs = wide_pairs(FrameViews(tracks), camera.width)
    best = rank_lenses(pairs, camera.width, camera.height, ("perspective", "fisheye"), (), max_error=5.0)[0]
    assert best.lens.model == model
    assert best.lens.fx == pytest.approx(camera.lens.fx, rel=0.15)


def test_keyframes_are_few_and_spread():
    tracks = simulate("pinhole", 0.5, frame_count=60).scene.tracks
    keyframes = choose_keyframes(FrameViews(tracks), 1280, 1024, max_error=5.0)
    assert keyframes.frames[0] == 0 and keyframes.frames[-1] == 59
    assert np.all(np.diff(keyframes.frames) > 0) and len(keyframes.frames) <= 31
    for frame, (points, pixels) in keyframes.observations.items():
        mine = tracks.frames == frame
        at = np.flatnonzero(mine)[np.searchsorted(tracks.points[mine], points)]
        assert np.array_equal(tracks.points[at], points) and np.array_equal(tracks.pixels[at], pixels)


def test_rectified_tracks_are_those_of_the_middle_row():
    rng = np.random.default_rng(0)
    height, ratio = 720, 0.8
    at_zero, speed = rng.uniform(100, 600, (40, 2)), rng.uniform(-9, 9, (40, 2))
    points, frames = np.repeat(np.arange(40), 6), np.tile(np.arange(6), 40)
    # Row v is read at i + ratio * v / height, which is linear in the time t of the observation.
    v0, dv = at_zero[points, 1], speed[points, 1]
    times = (frames + ratio * v0 / height) / (1 - ratio * dv / height)
    tracks = Tracks(6, 40, frames, points, at_zero[points] + times[:, None] * speed[points])
    middle = at_zero[points] + (frames + ratio / 2)[:, None] * speed[points]
    assert np.allclose(rectified(tracks, tracks.pixels[:, 1] / height, ratio, np.arange(6.0)), middle, atol=1e-9)
    assert np.array_equal(rectified(tracks, tracks.pixels[:, 1] / height, 0.0, np.arange(6.0)), tracks.pixels)

    spoilt = tracks.pixels.copy()
    spoilt[3::6] += 200.0
    kept = frames != 3
    moved = rectified(replace(tracks, pixels=spoilt), tracks.pixels[:, 1] / height, ratio, np.arange(6.0))
    assert np.median(np.linalg.norm(moved - middle, axis=1)[kept]) < 1.0


@pytest.mark.parametrize("truth", [-0.9, -0.33, 0.1, 0.6, 0.97])
def test_rough_readout_ratio_finds_the_minimum(truth):
    assert rough_readout_ratio(lambda r: np.sqrt(0.1 + (r - truth) ** 2)) == pytest.approx(truth, abs=0.05)


def test_rough_readout_ratio_needs_evidence():
    assert rough_readout_ratio(lambda r: 1 - 0.02 * r) == 0


COLMAP_CAMERAS = {
    "SIMPLE_PINHOLE": [800, 640.5, 360.5],
    "PINHOLE": [800, 810, 640.5, 360.5],
    "SIMPLE_RADIAL": [800, 640.5, 360.5, -0.1],
    "RADIAL": [800, 640.5, 360.5, -0.1, 0.02],
    "OPENCV": [800, 810, 640.5, 360.5, -0.1, 0.02, 0.001, -0.002],
    "SIMPLE_RADIAL_FISHEYE": [600, 640.5, 360.5, 0.03],
    "RADIAL_FISHEYE": [600, 640.5, 360.5, 0.03, -0.01],
    "OPENCV_FISHEYE": [600, 610, 640.5, 360.5, 0.03, -0.01, 0.002, -0.001],
}


def write_model(folder, camera_model, parameters, names, binary=False):
    """Writes a COLMAP model with one camera and returns its (n, 3, 4) poses."""
    pycolmap = pytest.importorskip("pycolmap")
    rng = np.random.default_rng(0)
    reconstruction = pycolmap.Reconstruction()
    camera = pycolmap.Camera(camera_id=3, model=camera_model, width=1280, height=720, params=parameters)
    reconstruction.add_camera_with_trivial_rig(camera)
    poses = []
    for i, name in enumerate(names):
        pose = pycolmap.Rigid3d(pycolmap.Rotation3d(0.1 * i * np.array([0.0, 1.0, 0.0])), rng.normal(size=3))
        image = pycolmap.Image(name=name, camera_id=3, image_id=i + 1)
        reconstruction.add_image_with_trivial_frame(image, pose)
        poses.append(pose.matrix())
    folder.mkdir(exist_ok=True)
    (reconstruction.write_binary if binary else reconstruction.write_text)(str(folder))
    return np.array(poses)


@pytest.mark.parametrize("model", COLMAP_CAMERAS)
def test_lens_projects_as_colmap_does(model):
    pycolmap = pytest.importorskip("pycolmap")
    camera = pycolmap.Camera(model=model, width=1280, height=720, params=COLMAP_CAMERAS[model])
    points = np.random.default_rng(0).uniform((-0.7, -0.4, 0.9), (0.7, 0.4, 2.0), (50, 3))
    lens = lens_from_colmap(model, COLMAP_CAMERAS[model])
    assert np.allclose(lens.project(points), camera.img_from_cam(points) - 0.5, atol=1e-6)


@pytest.mark.parametrize("binary", [False, True])
def test_reads_a_colmap_model(tmp_path, binary):
    names = [f"images/{i:04d}.jpg" for i in range(5)]
    poses = write_model(tmp_path, "OPENCV", COLMAP_CAMERAS["OPENCV"], [names[i] for i in (0, 1, 3, 4)], binary)
    start = read_colmap_model(tmp_path, [f"{i:04d}.png" for i in range(5)])
    assert start.lens == Lens("opencv", 800, 810, 640, 360, (-0.1, 0.02, 0.001, -0.002))
    assert np.allclose(start.cam_from_world[[0, 1, 3, 4]], poses)
    assert start.registered.tolist() == [True, True, False, True, True]
    assert np.allclose(centres(start.cam_from_world)[2], (centres(poses)[1] + centres(poses)[2]) / 2)
    assert "1 of 5 frames" in start.notes[0]


def test_makes_one_lens_of_a_camera_per_image(tmp_path):
    pycolmap = pytest.importorskip("pycolmap")
    reconstruction = pycolmap.Reconstruction()
    for i, focal in enumerate((790.0, 800.0, 820.0)):
        camera = pycolmap.Camera(
            camera_id=i + 1, model="SIMPLE_PINHOLE", width=1280, height=720, params=[focal, 640, 360]
        )
        reconstruction.add_camera_with_trivial_rig(camera)
        image = pycolmap.Image(name=f"{i}.png", camera_id=i + 1, image_id=i + 1)
        reconstruction.add_image_with_trivial_frame(image, pycolmap.Rigid3d())
    reconstruction.write_text(str(tmp_path))
    start = read_colmap_model(tmp_path, ["0.png", "1.png", "2.png"])
    assert start.lens == Lens("pinhole", 800, 800, 639.5, 359.5)
    assert "790 to 820 px" in start.notes[0]


def test_rejects_models_that_do_not_fit(tmp_path):
    with pytest.raises(InputError, match="no COLMAP model"):
        read_colmap_model(tmp_path / "nowhere", ["a.png"])
    write_model(tmp_path / "fov", "FOV", [800, 810, 640.5, 360.5, 0.9], ["a.png", "b.png"])
    with pytest.raises(InputError, match="FOV"):
        read_colmap_model(tmp_path / "fov", ["a.png", "b.png"])
    write_model(tmp_path / "other", "PINHOLE", COLMAP_CAMERAS["PINHOLE"], ["a.png", "b.png"])
    with pytest.raises(InputError, match="0 of the 2 frames"):
        read_colmap_model(tmp_path / "other", ["c.png", "d.png"])
    (tmp_path / "other" / "images.txt").write_text("this is not a model\n")
    with pytest.raises(InputError, match="cannot be read"):
        read_colmap_model(tmp_path / "other", ["a.png", "b.png"])


def test_pycolmap_is_imported_late():
    modules = "rssc.footage.footage, rssc.start.start, rssc.start.reconstruction, rssc.start.colmap_mapping"
    code = f"import sys; import {modules}; sys.exit('pycolmap' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_camera_that_hardly_moves_is_told_what_to_do():
    tracks = simulate("pinhole", 0.5, frame_count=3, point_count=20).scene.tracks
    pixels = np.random.default_rng(1).uniform(100, 900, (20, 2))
    pair = Pair(0, 1, np.arange(20), pixels, pixels + np.array((1.5, 0.0)))
    words = r"a point moves by only 1\.5 px between the frames .*; let the camera move sideways"
    with pytest.raises(NotCalibratableError, match=words):
        check_motion([pair], tracks, 1280)
    with pytest.raises(NotCalibratableError, match="the camera stands still: walk sideways"):
        check_motion([replace(pair, second_pixels=pixels + np.array((0.1, 0.0)))], tracks, 1280)
    check_motion([replace(pair, second_pixels=pixels + np.array((150.0, 0.0)))], tracks, 1280)
    with pytest.raises(NotCalibratableError, match="link no two frames well enough; use footage with more texture"):
        check_motion([], tracks, 1280)


def test_a_focal_length_that_ran_away_is_not_taken(monkeypatch):
    """Flattened as in a bas-relief, a short clip is explained without perspective, too."""
    tracks = simulate("pinhole", 0.0).scene.tracks
    width, height = CAMERAS["pinhole"].width, CAMERAS["pinhole"].height
    keyframes = choose_keyframes(FrameViews(tracks, tracks.pixels), width, height, 5.0)
    guesses = [LensGuess(centred_lens("radial", focal, 0.0, width, height), 1.0) for focal in (700.0, 750.0)]
    asked = []

    def flattened(keyframes, lens):
        asked.append(lens.fx)
        found = map_globally(keyframes, lens)
        return found if len(asked) > 1 else replace(found, lens=replace(found.lens, fx=3600.0, fy=3600.0))

    monkeypatch.setattr(mapping, "map_globally", flattened)
    assert mapping.map_keyframes(keyframes, guesses)[0].model.lens.fx == pytest.approx(740.0, rel=0.05)
    assert asked == [700.0, 750.0]
    # A guess at the end of the grid may be of any longer lens.
    asked.clear()
    ends = [replace(guess, lens=centred_lens("radial", 1.7 * width, 0.0, width, height)) for guess in guesses]
    monkeypatch.setattr(mapping, "judge", lambda _, model, method: SimpleNamespace(
        model=model, order=(0, 0), inlier_fraction=1.0))  # fmt: skip
    assert mapping.map_keyframes(keyframes, ends)[0].model.lens.fx == 3600.0


@pytest.mark.parametrize(("cost", "followed"), [(2.6, ["fisheye", "radial"]), (4.0, ["radial"])])
def test_lenses_that_pairs_of_frames_explain_as_well_are_all_followed(monkeypatch, cost, followed):
    """A wide lens was once taken for a perspective one of half its focal length, which explained enough."""
    keyframes = SimpleNamespace(frames=range(10), width=1920, height=1080)
    guesses = [
        LensGuess(centred_lens(model, focal, 0.0, 1920, 1080), cost)
        for model, focal, cost in (("radial", 576.0, 2.5), ("fisheye", 1140.0, cost))
    ]
    monkeypatch.setattr(mapping, "map_globally", lambda _, lens: SimpleNamespace(lens=lens, poses=range(10)))
    monkeypatch.setattr(mapping, "map_incrementally", None)
    share = {"radial": 0.75, "fisheye": 0.9}
    monkeypatch.setattr(mapping, "judge", lambda _, model, method: SimpleNamespace(
        model=model, order=-share[model.lens.model], inlier_fraction=share[model.lens.model]))  # fmt: skip
    assert [fit.model.lens.model for fit in mapping.map_keyframes(keyframes, guesses)] == followed


def test_a_focal_length_that_pairs_of_frames_speak_against_is_taken_only_where_there_is_no_other():
    def fit(focal, cost):
        return SimpleNamespace(
            model=SimpleNamespace(lens=centred_lens("radial", focal, 0.0, 640, 480)), order=(-46, cost)
        )

    guesses = [LensGuess(centred_lens("radial", focal, 0.0, 640, 480), 1.07) for focal in (724.0, 848.0)]
    far, near, worse = fit(1776.0, 1.60), fit(516.0, 1.66), fit(510.0, 1.90)
    assert mapping.best_of([far, near, worse], guesses) is near
    assert mapping.best_of([far], guesses) is far
