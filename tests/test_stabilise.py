"""Stabilisation: paths that turn smoothly, views that miss nothing, and videos that players open."""

import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

import av
import cv2
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from benchmarks.residual_rotation import residual_degrees
from rssc.errors import InputError
from rssc.outputs import video_codec
from rssc.outputs.options import RectifyOptions
from rssc.outputs.rectify import Rectifier
from rssc.outputs.rectify_footage import rectify_footage
from rssc.outputs.smooth_rotations import smooth_rotations
from rssc.outputs.stabilise import stabilised, zoomed
from rssc.simulation.clip import ClipOptions, render_clip, typical_lens
from rssc.simulation.render import Renderer
from rssc.simulation.truth import true_calibration

WIDTH, HEIGHT, FRAMES = 320, 240, 40


@pytest.fixture(scope="module")
def clip():
    return render_clip(
        ClipOptions(WIDTH, HEIGHT, FRAMES, lens=typical_lens("opencv", WIDTH, HEIGHT), readout_ratio=0.6,
                    motion="shaky", seed=1, image_noise=0.0)
    )  # fmt: skip


@pytest.fixture(scope="module")
def calibration(clip):
    return true_calibration(clip, tuple(f"frame_{i:06d}" for i in range(FRAMES)))


@pytest.fixture(scope="module")
def scene(calibration):
    return calibration.stretches[0].scene


def smooth(scene, **options):
    chosen = RectifyOptions(**options)
    return stabilised([Rectifier(scene, chosen)], scene.camera, 1 / 30, chosen)


def shake(rotations):
    path = Rotation.from_matrix(rotations)
    return np.sqrt((np.diff((path[1:] * path[:-1].inv()).as_rotvec(), axis=0) ** 2).sum(axis=1).mean())


def missing(rectifier):
    """Pixels of all frames that show nothing."""
    maps = np.array([rectifier.source_map(i) for i in range(FRAMES)])
    return int(np.any((maps < -0.5) | (maps > np.array((WIDTH, HEIGHT)) - 0.5), axis=3).sum())


def test_about_one_axis_it_is_a_weighted_line_through_the_angles():
    rng = np.random.default_rng(0)
    axis = np.array([0.6, -0.48, 0.64])
    times = np.cumsum(rng.uniform(0.02, 0.05, 60))
    angles = np.cumsum(rng.normal(0, 0.05, 60)) + 3 * times  # turns right round
    sigmas = rng.choice((0.0, 0.05, 0.2), 60)
    found = smooth_rotations(Rotation.from_rotvec(angles[:, None] * axis).as_matrix(), times, sigmas, np.arange(60))
    for i in range(60):
        near = np.abs(times - times[i]) <= max(3 * sigmas[i], 1e-9)
        weights = np.exp(-0.25 * ((times[near] - times[i]) / max(sigmas[i], 1e-9)) ** 2)
        expected = np.polyfit(times[near] - times[i], angles[near], 1, w=weights)[1] if near.sum() > 1 else angles[i]
        off = Rotation.from_matrix(found[i]) * Rotation.from_rotvec(expected * axis).inv()
        assert off.magnitude() < 1e-6


def test_a_steady_pan_stays_as_it_is_and_a_wide_one_does_not_wrap():
    times = np.arange(80) / 30
    pan = Rotation.from_rotvec(times[:, None] * np.array([[0.3, 2.0, -0.1]])).as_matrix()
    found = smooth_rotations(pan, times, np.full(80, 1.0), np.arange(80))
    np.testing.assert_allclose(found, pan, atol=1e-9)


@pytest.mark.parametrize("undistort", [False, True])
def test_the_zoom_is_the_least_that_misses_nothing(scene, undistort):
    found = smooth(scene, stabilise=0.2, undistort=undistort)
    rectifier, view = found.rectifiers[0], found.views[0]
    rotations = rectifier.reference_rotations
    assert shake(view.turns @ rotations) < 0.15 * shake(rotations)
    assert 1.1 < found.zoom < 1.8 and missing(rectifier) == 0
    less = replace(view, lens=zoomed(Rectifier(scene, rectifier.options).lens, scene.camera, found.zoom - 0.02))
    assert missing(rectifier.with_view(less)) > 0


def test_a_crop_in_percent_holds_and_smoothing_gives_way_to_it(scene):
    auto, found = smooth(scene, stabilise=0.2), smooth(scene, stabilise=0.2, crop="15%")
    assert found.zoom == pytest.approx(1 / 0.85) and found.zoom < auto.zoom
    assert missing(found.rectifiers[0]) == 0
    assert 0 < found.sigmas[0].min() < found.sigmas[0].max() <= 0.2
    rotations = found.rectifiers[0].reference_rotations
    assert shake(auto.views[0].turns @ rotations) < shake(found.views[0].turns @ rotations) < 0.5 * shake(rotations)
    # Where there is room, nothing gives way.
    roomy = smooth(scene, stabilise=0.2, crop=str(100 * (1 - 1 / auto.zoom) + 0.5))
    np.testing.assert_array_equal(roomy.sigmas[0], 0.2)
    with pytest.raises(InputError, match="taking out the rolling shutter alone cuts off"):
        smooth(scene, stabilise=0.2, crop="1")
    assert smooth(scene, stabilise=0.2, crop="none").zoom == 1


def test_pictures_show_what_a_camera_sees_that_turns_smoothly(clip, scene):
    found = smooth(scene, stabilise=0.2)
    rectifier, turns = found.rectifiers[0], found.views[0].turns
    renderer = Renderer(replace(clip.camera, lens=rectifier.lens), clip.world, 1.0, False)
    for frame in (5, 20):
        pose = clip.motion.cam_from_world([rectifier.reference_times[frame]])
        turned = turns[frame] @ pose
        truth = renderer.render(np.repeat(turned, HEIGHT, axis=0), np.zeros(HEIGHT))[..., 0]
        truth = np.clip(255 * truth + 0.5, 0, 255).astype(np.uint8)
        image = rectifier.rectify(clip.frame(frame), frame)
        assert np.degrees(Rotation.from_matrix(turns[frame]).magnitude()) > 0.5
        assert residual_degrees(image, truth, np.ones_like(image, bool), rectifier.lens) < 0.05


def test_options_are_checked():
    for words, options in (
        ("stabilise is -1", {"stabilise": -1.0}),
        ("crop is 'much'; expected auto, none, or a percentage", {"stabilise": 1.0, "crop": "much"}),
        ("crop is '95'", {"stabilise": 1.0, "crop": "95"}),
        ("crop is '10', but nothing is stabilised", {"crop": "10"}),
        ("uncovered is 'cut'; expected one of omit, keep", {"uncovered": "cut"}),
    ):
        with pytest.raises(InputError, match=words):
            RectifyOptions(**options)


def part_of(calibration, first, last):
    """The calibration with these frames alone."""
    stretch = calibration.stretches[0]
    scene = stretch.scene.window(first, last)
    cut = slice(first, last)
    part = replace(
        stretch, scene=scene, times_s=stretch.times_s[cut], frame_numbers=stretch.frame_numbers[cut],
        names=stretch.names[cut],
    )  # fmt: skip
    return replace(calibration, stretches=(part,))


def write_video(clip, path, count, pixel_format="yuv420p", encoder="libx264", **options):
    with av.open(str(path), "w") as container:
        stream = container.add_stream(encoder, rate=30, options={"crf": "4", "preset": "ultrafast", **options})
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, pixel_format
        if encoder == "libx265":
            context = stream.codec_context
            context.color_primaries, context.color_trc, context.colorspace, context.color_range = 9, 16, 9, 1
        for i in range(count):
            frame = av.VideoFrame.from_ndarray(clip.frame(i), format="gray").reformat(format=pixel_format)
            frame.pts, frame.time_base = i, Fraction(1, 30)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


@pytest.fixture(scope="module")
def video(clip, tmp_path_factory):
    path = tmp_path_factory.mktemp("video") / "clip.mp4"
    write_video(clip, path, 12)
    return path


def decoded(path):
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="gray").astype(float) for frame in container.decode(video=0)]


def test_frames_without_a_trajectory_are_left_out_or_kept_as_they_are(calibration, video, tmp_path):
    part = part_of(calibration, 3, 10)
    done = rectify_footage(video, part, tmp_path / "a.mp4", RectifyOptions(stabilise=0.1, uncovered="keep"))
    assert (done.ranges, done.uncovered, done.source_count) == ("3 to 9", "0 to 2, 10 to 11", 12)
    before, after = decoded(video), decoded(tmp_path / "a.mp4")
    assert len(after) == 12
    differ = [float(np.abs(one - other).mean()) for one, other in zip(before, after, strict=True)]
    assert max(differ[:3] + differ[10:]) < 2 and min(differ[3:10]) > 5
    rectify_footage(video, part, tmp_path / "b.mp4", RectifyOptions(stabilise=0.1))
    assert len(decoded(tmp_path / "b.mp4")) == 7


def test_folders_keep_their_other_images(clip, calibration, tmp_path):
    source = tmp_path / "in"
    source.mkdir()
    for i in range(8):
        cv2.imwrite(str(source / f"frame_{i:06d}.png"), clip.frame(i))
    part = part_of(calibration, 2, 6)
    stretch = part.stretches[0]
    part = replace(part, stretches=(replace(stretch, names=tuple(f"{name}.png" for name in stretch.names)),))
    rectify_footage(source, part, tmp_path / "out", RectifyOptions(uncovered="keep"))
    images = [cv2.imread(str(tmp_path / "out" / f"frame_{i:06d}.png"), cv2.IMREAD_UNCHANGED) for i in range(8)]
    assert [np.array_equal(images[i], clip.frame(i)) for i in range(8)] == [True] * 2 + [False] * 4 + [True] * 2


HDR10 = "log-level=none:master-display=G(13250,34500)B(7500,3000)R(34000,16000)WP(15635,16450)L(10000000,50)"


@pytest.mark.skipif(not video_codec.has_encoder("libx265"), reason="this PyAV has no HEVC encoder")
def test_hdr_is_kept_as_players_open_it(clip, calibration, tmp_path):
    source, output = tmp_path / "hdr.mp4", tmp_path / "out.mp4"
    write_video(clip, source, 5, "yuv422p10le", "libx265", **{"x265-params": f"{HDR10}:max-cll=1000,400"})
    done = rectify_footage(source, part_of(calibration, 0, 5), output)
    assert done.notes == ("colours are written at half the size (4:2:0), because players open nothing else",)
    with av.open(str(output)) as container:
        context = container.streams.video[0].codec_context
        assert (context.name, context.profile, context.codec_tag) == ("hevc", "Main 10", "hvc1")
        assert (context.color_primaries, context.color_trc, context.colorspace, context.color_range) == (9, 16, 9, 1)
        frame = next(container.decode(video=0))
    said = {data.type.name: bytes(data) for data in frame.side_data}
    with av.open(str(source)) as container:
        known = {data.type.name: bytes(data) for data in next(container.decode(video=0)).side_data}
    for name in ("MASTERING_DISPLAY_METADATA", "CONTENT_LIGHT_LEVEL"):
        assert said[name] == known[name]
    expected = Rectifier(calibration.stretches[0].scene).rectify(clip.frame(0), 0)
    off = frame.to_ndarray(format="gray")[16:-16, 16:-16].astype(float) - expected[16:-16, 16:-16]
    assert np.sqrt(np.mean(off**2)) < 6


def test_without_an_encoder_for_hdr_it_says_so(monkeypatch):
    monkeypatch.setattr(video_codec, "has_encoder", lambda name: name != "libx265")
    found = video_codec.encoding_of(av.VideoFrame(64, 48, "yuv420p10le"), "mp4")
    assert (found.encoder, found.pixel_format) == ("libx264", "yuv420p10le")
    assert "most players do not open" in found.notes[0]
    found = video_codec.encoding_of(av.VideoFrame(64, 48, "yuv420p"), "mp4")
    assert (found.encoder, found.notes) == ("libx264", ())


def test_the_command_says_how_far_it_zoomed_in(calibration, video, tmp_path):
    part_of(calibration, 3, 10).save(tmp_path / "calibration.json")
    line = [sys.executable, "-m", "rssc", "rectify", str(video), str(tmp_path / "calibration.json")]
    line += ["-o", str(tmp_path / "a.mp4"), "--stabilise", "0.1", "--crop", "12"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "zoomed in 1.136 times: a crop of 12.0 percent" in done.stdout
    assert "and left out: frames 0 to 2, 10 to 11" in done.stdout
