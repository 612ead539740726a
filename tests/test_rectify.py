"""Rectification: against global-shutter renderings, exact geometry, and files that keep what they should."""

import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
import pytest

from rssc.errors import InputError
from rssc.model import Camera, Lens
from rssc.outputs.rectify import Rectifier, RectifyOptions, expand, rectify_frame
from rssc.outputs.rectify_footage import rectify_footage, stretches_of
from rssc.simulation.clip import ClipOptions, render_clip, typical_lens
from rssc.simulation.rectification import rectification_quality
from rssc.simulation.truth import true_calibration, true_scene

WIDTH, HEIGHT, FRAMES = 320, 240, 12


def make_clip(motion="shaky", lens="opencv", ratio=0.7, axis="rows", **options):
    return render_clip(
        ClipOptions(WIDTH, HEIGHT, FRAMES, lens=typical_lens(lens, WIDTH, HEIGHT), readout_ratio=ratio, axis=axis,
                    motion=motion, seed=1, image_noise=0.0, **options)
    )  # fmt: skip


@pytest.fixture(scope="module")
def clip():
    return make_clip(colour=True)


@pytest.fixture(scope="module")
def scene(clip):
    return true_scene(clip, spacing=12)


@pytest.mark.parametrize(
    ("lens", "ratio", "axis", "row"),
    [
        ("opencv", 0.7, "rows", "middle"),
        ("fisheye", -0.6, "rows", "first"),
        ("pinhole", 0.5, "columns", "last"),
        ("radial", -0.6, "columns", "middle"),
    ],
)
def test_frames_become_what_a_global_shutter_sees(lens, ratio, axis, row):
    clip = make_clip(lens=lens, ratio=ratio, axis=axis)
    quality = rectification_quality(clip, Rectifier(true_scene(clip, spacing=12), RectifyOptions(row=row)), step=5)
    assert quality.gain_db > 8
    assert quality.edge_px < 0.5 < quality.edge_before_px
    assert quality.bend_px < 0.5


@pytest.mark.parametrize("kind", ["as filmed", "undistorted before", "undistort"])
def test_a_plane_of_known_depth_is_exact(kind):
    """Where the scene really is smooth, every node of the grid gets the pixel that shows what it sees."""
    clip = make_clip(world="plane")
    scene, sensor = true_scene(clip, spacing=12), clip.camera.lens
    pinhole = Lens("pinhole", sensor.fx, sensor.fy, sensor.cx, sensor.cy)
    if kind == "undistorted before":
        camera = Camera(WIDTH, HEIGHT, pinhole, clip.camera.shutter, sensor)
        pixels = pinhole.project(sensor.unproject(scene.tracks.pixels))
        scene = replace(scene, camera=camera, tracks=replace(scene.tracks, pixels=pixels))
    rectifier, frame = Rectifier(scene, RectifyOptions(undistort=kind == "undistort")), 5
    nodes = np.stack(np.meshgrid(np.arange(2, 38) * 8.0, np.arange(2, 28) * 8.0), axis=2).reshape(-1, 2)
    time = frame + clip.camera.shutter.readout_ratio * rectifier.reference_fraction
    pose = clip.motion.cam_from_world([time])[0]
    centre = -pose[:, :3].T @ pose[:, 3]
    rays = rectifier.lens.unproject(nodes) @ pose[:, :3]
    points = centre + rays * clip.world.cast(np.repeat(centre[None], len(rays), axis=0), rays)[:, None]
    expected, visible = clip.observe(points, frame)
    if kind == "undistorted before":
        expected = pinhole.project(sensor.unproject(expected))
    found = rectifier.source_grid(frame)[2:28, 2:38].reshape(-1, 2)
    assert visible.mean() > 0.8
    np.testing.assert_allclose(found[visible], expected[visible], atol=0.02)


def test_the_source_map_is_continuous_with_its_grid(scene):
    rectifier = Rectifier(scene)
    grid, full = rectifier.source_grid(3), rectifier.source_map(3)
    assert full.shape == (HEIGHT, WIDTH, 2)
    np.testing.assert_allclose(full[::8, ::8], grid[:30, :40], atol=1e-3)
    # Planes with half the pixels show the same places, in their own units.
    half = expand(grid, WIDTH // 2, HEIGHT // 2, (2, 2))
    mean = full.reshape(HEIGHT // 2, 2, WIDTH // 2, 2, 2).mean(axis=(1, 3))
    np.testing.assert_allclose(2 * half + 0.5, mean, atol=0.02)


def test_without_readout_or_depth_nothing_moves(clip, scene):
    still = replace(scene, camera=scene.camera.with_readout_ratio(0.0))
    image = clip.frame(4)
    np.testing.assert_array_equal(rectify_frame(image, still, 4), image)


def test_depth_fades_to_infinity_where_no_point_is(scene):
    """Only points at the left: far from them the field tends to zero, beside them it is theirs."""
    rectifier = Rectifier(scene)
    left = scene.tracks.pixels[:, 0] < 60
    few = Rectifier(replace(scene, tracks=scene.tracks.select(left)))
    pose = scene.cam_from_world[0]
    whole, part = rectifier._depth.at(0, pose), few._depth.at(0, pose)
    np.testing.assert_allclose(part[5:-5, 2:6], whole[5:-5, 2:6], rtol=0.15)
    assert part[:, -1].mean() < 0.6 * part[:, 5].mean()
    assert (part >= 0).all()


def test_wrong_points_hardly_count(scene):
    rng = np.random.default_rng(0)
    wrong = rng.uniform(size=len(scene.points)) < 0.1
    moved = np.where(wrong[:, None], scene.points + rng.normal(0, 1.0, scene.points.shape), scene.points)
    clean, spoilt = Rectifier(scene), Rectifier(replace(scene, points=moved))
    difference = np.abs(clean.source_map(6) - spoilt.source_map(6))
    assert np.percentile(difference, 95) < 0.1


def test_options_and_sizes_are_checked(clip, scene):
    with pytest.raises(InputError, match="row is 'top'"):
        RectifyOptions(row="top")
    with pytest.raises(InputError, match="border is 'white'"):
        RectifyOptions(border="white")
    with pytest.raises(InputError, match="320 x 240"):
        rectify_frame(clip.frame(0)[:100], scene, 0)


STAMPS = [0, 30, 61, 90, 125, 150, 180, 213, 240, 270, 301, 330]
"""Of a variable frame rate, in 900ths of a second."""
COVERED = slice(2, 10)


@pytest.fixture(scope="module")
def calibration(clip):
    """Covers a part of the frames."""
    whole = true_calibration(clip, tuple(f"frame_{i:06d}" for i in range(FRAMES)))
    stretch = whole.stretches[0]
    kept = (stretch.scene.tracks.frames >= COVERED.start) & (stretch.scene.tracks.frames < COVERED.stop)
    tracks = stretch.scene.tracks.select(kept)
    tracks = replace(tracks, frame_count=8, frames=tracks.frames - COVERED.start)
    scene = replace(
        stretch.scene, tracks=tracks, frame_times=stretch.scene.frame_times[COVERED],
        cam_from_world=stretch.scene.cam_from_world[COVERED],
    )  # fmt: skip
    part = replace(
        stretch, scene=scene, times_s=stretch.times_s[COVERED], frame_numbers=stretch.frame_numbers[COVERED],
        names=stretch.names[COVERED],
    )  # fmt: skip
    return replace(whole, stretches=(part,))


@pytest.fixture(scope="module")
def video(clip, tmp_path_factory):
    """With sound, rotation metadata and a variable frame rate."""
    path = tmp_path_factory.mktemp("video") / "clip.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=30, options={"crf": "4", "g": "5"})
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.codec_context.time_base = Fraction(1, 900)
        stream.set_display_rotation(90)
        sound = container.add_stream("aac", rate=48000)
        for image, stamp in zip(clip, STAMPS, strict=True):
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts, frame.time_base = stamp, Fraction(1, 900)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
        wave = (8000 * np.sin(np.arange(48000 // 2) * 0.05)).astype(np.int16)[None]
        samples = av.AudioFrame.from_ndarray(wave, format="s16", layout="mono")
        samples.sample_rate, samples.pts = 48000, 0
        container.mux(sound.encode(samples))
        container.mux(sound.encode())
    return path


def decoded(path):
    with av.open(str(path)) as container:
        return [(float(frame.time), frame) for frame in container.decode(video=0)]


@pytest.mark.parametrize("suffix", [".mp4", ".mov", ".mkv"])
def test_videos_keep_times_sound_rotation_and_colour(clip, calibration, video, tmp_path, suffix):
    shares = []
    output = tmp_path / f"rectified{suffix}"
    done = rectify_footage(
        video, calibration, output, RectifyOptions(border="black"), progress=lambda _, share: shares.append(share)
    )
    assert (done.ranges, done.source_count, shares[-1]) == ("2 to 9", FRAMES, 1.0)
    assert [file.name for file in tmp_path.iterdir()] == [output.name]
    before, after = decoded(video)[COVERED], decoded(output)
    times = np.array([time for time, _ in after])
    np.testing.assert_allclose(times, np.array(STAMPS[COVERED]) / 900 - STAMPS[2] / 900, atol=6e-4)
    assert {frame.rotation for _, frame in after} == {before[0][1].rotation} != {0}
    assert after[0][1].format.name == "yuv420p"
    for i in (0, 7):
        for form, noise in (("gray", 4.0), ("rgb24", 5.0)):
            expected = rectify_frame(before[i][1].to_ndarray(format=form), calibration.stretches[0].scene, i)
            error = after[i][1].to_ndarray(format=form).astype(float)[16:-16, 16:-16] - expected[16:-16, 16:-16]
            assert np.sqrt(np.mean(error**2)) < noise
            assert np.abs(error.mean(axis=(0, 1))).max() < 0.5
    with av.open(str(output)) as container:
        sound = container.streams.audio[0]
        assert sound.codec_context.name == "aac"
        stamps = [float(p.pts * p.time_base) for p in container.demux(sound) if p.pts is not None and p.size]
    assert 0 <= stamps[0] < 0.03
    assert STAMPS[9] / 900 - STAMPS[2] / 900 < stamps[-1] + 0.03 < 0.32


def test_folders_become_folders_of_the_same_names(clip, calibration, tmp_path):
    source, output = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    for i, image in enumerate(clip):
        cv2.imwrite(str(source / f"frame_{i:06d}.png"), image[..., ::-1].astype(np.uint16) * 257)
    stretch = calibration.stretches[0]
    named = replace(stretch, names=tuple(f"{name}.png" for name in stretch.names))
    rectify_footage(source, replace(calibration, stretches=(named,)), output)
    assert sorted(file.name for file in output.iterdir()) == list(named.names)
    found = cv2.imread(str(output / "frame_000004.png"), cv2.IMREAD_UNCHANGED)
    assert found.dtype == np.uint16
    deep = clip.frame(4).astype(np.uint16) * 257
    np.testing.assert_array_equal(found[..., ::-1], rectify_frame(deep, stretch.scene, 2))


def test_methods_without_a_trajectory_can_be_rectified(clip, scene):
    poses_only = replace(scene, trajectory=None)
    error = np.abs(Rectifier(poses_only).source_map(6) - Rectifier(scene).source_map(6))
    assert np.median(error) < 0.2


def test_wrong_sources_get_one_clear_line(clip, calibration, video, tmp_path):
    (tmp_path / "images").mkdir()
    later = replace(calibration.stretches[0], frame_numbers=calibration.stretches[0].frame_numbers + 100)
    wide = replace(calibration, camera=replace(calibration.camera, width=640))
    for source, given, output, words in (
        (tmp_path / "missing.mp4", calibration, "a.mp4", "does not exist"),
        (tmp_path / "images", calibration, "out", "lacks 8 of the 8 images"),
        (video, replace(calibration, stretches=()), "a.mp4", "stretches.npz"),
        (video, replace(calibration, stretches=(later,)), "a.mp4", "12 frames; the calibration covers frames 102 to"),
        (video, wide, "a.mp4", "320 x 240 pixels; the calibration is for 640 x 240"),
        (video, calibration, "a", "expected one that ends in .mp4"),
    ):
        with pytest.raises(InputError, match=words):
            rectify_footage(source, given, tmp_path / output)
    with pytest.raises(InputError, match="source itself"):
        rectify_footage(video, calibration, video)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["images"]


def test_of_several_sources_each_has_its_own_trajectory(clip, calibration, tmp_path):
    first = calibration.stretches[0]
    other = replace(first, scene=replace(first.scene, points=first.scene.points * 1.1), source="b")
    both = replace(calibration, stretches=(replace(first, source="a"), other))
    assert stretches_of(Path("b"), both) == [other]
    assert stretches_of(tmp_path / "b", both) == [other]
    with pytest.raises(InputError, match="give one of a, b"):
        stretches_of(Path("c"), both)


def test_the_command_says_what_it_did(calibration, video, tmp_path):
    calibration.save(tmp_path / "calibration.json")
    line = [sys.executable, "-m", "rssc", "rectify", str(video), str(tmp_path / "calibration.json")]
    output = ["-o", str(tmp_path / "a.mp4"), "--undistort"]
    done = subprocess.run([*line, *output], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "frames 2 to 9 of 0 to 11" in done.stdout
    assert "pinhole" in done.stdout
    done = subprocess.run([*line, "-o", str(tmp_path / "a.avi")], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("rssc: ") and len(done.stderr.strip().splitlines()) == 1
