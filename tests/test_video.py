"""Footage: time stamps, notes and errors that help."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import cv2
import numpy as np
import pytest

import rssc
from rssc.errors import InputError
from rssc.footage.constants import FOOTAGE
from rssc.footage.footage import choose_stretches, open_source, read_footage
from rssc.footage.frame_times import usual_interval
from rssc.footage.source import KeptFrames
from rssc.footage.stretches import _best_stretches
from rssc.footage.video import _grey

SIZE = (160, 120)


def texture(seed: int = 0, size: tuple[int, int] = (400, 200)) -> np.ndarray:
    noise = np.random.default_rng(seed).standard_normal((size[1], size[0])).astype(np.float32)
    return cv2.normalize(cv2.GaussianBlur(noise, (0, 0), 2.0), None, 20, 230, cv2.NORM_MINMAX).astype(np.uint8)


def panning_images(count: int, step: float = 3.0) -> list[np.ndarray]:
    scene = texture()
    return [cv2.getRectSubPix(scene, SIZE, (90 + step * i % 200, 90.0)) for i in range(count)]


def write_video(path: Path, images: list[np.ndarray], stamps: list[int], rate: int = 30, rotation: int = 0) -> Path:
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=rate, options={"g": "10", "crf": "10"})
        stream.width, stream.height, stream.pix_fmt = SIZE[0], SIZE[1], "yuv420p"
        if rotation:
            stream.set_display_rotation(rotation)
        for image, stamp in zip(images, stamps, strict=True):
            frame = av.VideoFrame.from_ndarray(cv2.cvtColor(image, cv2.COLOR_GRAY2RGB), format="rgb24")
            frame.pts, frame.time_base = stamp, Fraction(1, rate)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def write_images(folder: Path, names: list[str], images: list[np.ndarray] | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    for name, image in zip(names, images or panning_images(len(names)), strict=True):
        cv2.imwrite(str(folder / name), image)
    return folder


@pytest.mark.parametrize("suffix", [".mp4", ".mkv"])
def test_times_are_the_videos_own_even_where_the_container_rounds_them(tmp_path, suffix):
    stamps = [i for i in range(24) if i not in (9, 10)]
    footage = read_footage(write_video(tmp_path / f"a{suffix}", panning_images(len(stamps)), stamps))
    assert footage.images.shape == (22, SIZE[1], SIZE[0])
    np.testing.assert_allclose(footage.frame_times, np.array(stamps), atol=2e-3)
    assert footage.frame_interval_s == pytest.approx(1 / 30, rel=1e-3)
    assert any("2 missing frames" in note for note in footage.notes)


def test_repeated_frames_are_removed_and_leave_their_time(tmp_path):
    images = panning_images(20)
    images[7] = images[6]
    footage = read_footage(write_video(tmp_path / "a.mp4", images, list(range(20))))
    assert 7 not in footage.frame_numbers
    assert footage.frame_times[7] == pytest.approx(8.0)
    assert any("1 repeated" in note for note in footage.notes)


def test_bits_per_pixel_are_those_of_videos_whose_frames_need_others(tmp_path):
    images = panning_images(30)
    path = write_video(tmp_path / "clip.mp4", images, list(range(30)))
    told = read_footage(path).bits_per_pixel
    # The container adds a little.
    of_file = 8 * path.stat().st_size / (30 * SIZE[0] * SIZE[1])
    assert 0.8 * of_file < told < of_file
    for i, image in enumerate(images):
        cv2.imwrite(str(tmp_path / f"{i:03d}.png"), image)
    path.unlink()
    assert read_footage(tmp_path, fps=30).bits_per_pixel is None


def test_rotation_is_not_applied_and_said_so(tmp_path):
    footage = read_footage(write_video(tmp_path / "a.mp4", panning_images(10), list(range(10)), rotation=90))
    assert footage.images.shape[1:] == (SIZE[1], SIZE[0])
    assert any("rotation metadata of 90 degrees was not applied" in note for note in footage.notes)


def test_exif_orientation_is_not_applied_and_said_so(tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    # An APP1 segment with the single tag Orientation = 6, a quarter turn.
    tiff = b"II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00\x06\x00\x00\x00\x00\x00\x00\x00"
    segment = b"\xff\xe1" + (len(tiff) + 8).to_bytes(2, "big") + b"Exif\x00\x00" + tiff
    for i, image in enumerate(panning_images(10)):
        data = cv2.imencode(".jpg", image)[1].tobytes()
        (folder / f"{i}.jpg").write_bytes(data[:2] + segment + data[2:])
    footage = read_footage(folder, fps=30)
    assert footage.images.shape[1:] == (SIZE[1], SIZE[0])
    assert any("EXIF orientation" in note for note in footage.notes)


def test_frames_select_a_range_that_decodes_alike(tmp_path):
    path = write_video(tmp_path / "a.mp4", panning_images(40), list(range(40)))
    whole, part = read_footage(path), read_footage(path, frames=(13, 33))
    np.testing.assert_array_equal(part.frame_numbers, np.arange(13, 33))
    np.testing.assert_array_equal(part.images, whole.images[13:33])
    np.testing.assert_allclose(part.times_s, whole.times_s[13:33])


def test_frames_that_were_looked_at_are_not_decoded_again(tmp_path, monkeypatch):
    source = open_source(write_video(tmp_path / "a.mp4", panning_images(30), list(range(30))), None)
    with monkeypatch.context() as patch:
        patch.setattr("rssc.footage.source.FOOTAGE", replace(FOOTAGE, kept_bytes=12.5 * SIZE[0] * SIZE[1]))
        kept = KeptFrames(source)
        first = dict(kept.read(np.arange(5, 25)))
    wanted = np.arange(10, 28)
    again, plain = dict(kept.read(wanted)), dict(source.read(wanted))
    assert list(again) == list(plain) == wanted.tolist()
    assert [i for i in wanted.tolist() if i in first and again[i] is first[i]] == list(range(10, 17))
    assert all(np.array_equal(again[i], plain[i]) for i in plain)
    assert list(dict(kept.read(wanted))) == wanted.tolist()


@pytest.mark.parametrize("name", ["yuv420p", "yuvj420p", "yuv444p", "nv12", "gray", "yuv420p10le", "rgb24", "yuyv422"])
@pytest.mark.parametrize("colour_range", [0, 1, 2])
def test_grey_values_are_those_of_ffmpeg(name, colour_range):
    frame = av.VideoFrame(162, 70, name)
    frame.color_range = colour_range
    for plane in frame.planes:
        values = np.frombuffer(plane, np.uint16 if "10le" in name else np.uint8)
        values[:] = np.random.default_rng(0).integers(0, 1024 if "10le" in name else 256, len(values))
    np.testing.assert_array_equal(_grey(frame), frame.to_ndarray(format="gray"))


def test_frame_rate_overrides_time_stamps_but_keeps_gaps(tmp_path):
    stamps = [i for i in range(20) if i != 8]
    footage = read_footage(write_video(tmp_path / "a.mp4", panning_images(19), stamps), fps=120)
    np.testing.assert_allclose(footage.times_s, np.array(stamps) / 120)


def test_long_videos_are_cut_to_the_stretch_that_moves(tmp_path, monkeypatch):
    near, far = texture(1), texture(2)
    images = []
    for i in range(120):
        shift = 2.0 * max(0, min(i, 100) - 70)
        image = cv2.getRectSubPix(far, SIZE, (90 + shift, 90.0))
        image[60:] = cv2.getRectSubPix(near, SIZE, (90 + 3 * shift, 90.0))[60:]
        noise = np.random.default_rng(i).integers(-3, 4, image.shape)
        images.append(np.clip(image.astype(int) + noise, 0, 255).astype(np.uint8))
    monkeypatch.setattr("rssc.footage.footage.FOOTAGE", replace(FOOTAGE, max_frames=60))
    ranges, notes = choose_stretches(write_video(tmp_path / "a.mp4", images, list(range(120))), length=30)
    (begin, end), *others = ranges
    assert end - begin == 30 and not others
    chosen = np.arange(begin, end)
    assert np.mean((chosen >= 70) & (chosen <= 100)) > 0.6
    assert "of the 120 frames" in notes[0]


def test_several_stretches_do_not_overlap():
    starts, ratings = np.arange(0, 400, 20), np.ones(20)
    ratings[:3] = 0.1
    found = _best_stretches(starts, ratings, 400, 80, 3)
    assert len(found) == 3
    assert all(end - begin == 80 and begin >= 40 and end <= 400 for begin, end in found)
    assert all(a[1] <= b[0] for a, b in pairwise(found))


@pytest.mark.parametrize(
    ("names", "interval"),
    [
        ([f"{1403636579763555584 + 50_000_000 * i}.png" for i in range(10)], 0.05),
        ([f"{1305031102.175 + 0.033 * i:.6f}.png" for i in range(10)], 0.033),
        ([f"cam_{1700000000123 + 40 * i}.png" for i in range(10)], 0.04),
    ],
)
def test_names_of_images_are_time_stamps(tmp_path, names, interval):
    footage = read_footage(write_images(tmp_path / "images", names))
    assert footage.frame_interval_s == pytest.approx(interval, rel=1e-3)
    assert footage.names == tuple(names)


def test_counted_images_need_a_frame_rate_and_sort_naturally(tmp_path):
    folder = write_images(tmp_path / "images", [f"frame{i}.png" for i in (*range(5, 12), 13, 14)])
    with pytest.raises(InputError, match=r"frame rate.*\(fps\)"):
        read_footage(folder)
    footage = read_footage(folder, fps=10)
    assert footage.names[0] == "frame5.png" and footage.names[-1] == "frame14.png"
    np.testing.assert_allclose(footage.times_s, [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 0.9])


def test_frames_of_a_still_camera_are_not_taken_for_repetitions(tmp_path):
    folder = write_images(tmp_path / "images", [f"{i}.png" for i in range(12)], panning_images(12, step=0.0))
    assert len(read_footage(folder, fps=30)) == 12


def test_bad_sources_raise_clear_errors(tmp_path):
    images = panning_images(12)
    video = write_video(tmp_path / "a.mp4", images, list(range(12)))
    (tmp_path / "cut.mp4").write_bytes(video.read_bytes()[: video.stat().st_size // 2])
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "empty").mkdir()
    cv2.imwrite(str(tmp_path / "photo.jpg"), images[0])
    one = write_images(tmp_path / "one", ["a.png"])
    mixed = write_images(tmp_path / "mixed", [f"{i}.png" for i in range(9)], [*images[:8], images[8][:50, :50].copy()])
    for source, options, words in (
        (tmp_path / "missing.mp4", {}, "does not exist"),
        (tmp_path / "photo.jpg", {}, "still photo"),
        (tmp_path / "notes.txt", {}, "unknown extension '.txt'"),
        (tmp_path / "cut.mp4", {}, "damaged or incomplete"),
        (tmp_path / "empty", {}, "no images"),
        (one, {}, f"1 frame; expected at least {FOOTAGE.min_frames}"),
        (mixed, {"fps": 30}, "50x50"),
        (video, {"frames": (2, 5)}, "3 frames"),
        (video, {"fps": 0.0}, "fps is 0"),
    ):
        with pytest.raises(InputError, match=words):
            read_footage(source, **options)


def test_a_stream_without_a_container_needs_a_rate(tmp_path):
    path = write_video(tmp_path / "a.h264", panning_images(12), list(range(12)))
    with pytest.raises(InputError, match=r"frame rate.*\(fps\)"):
        read_footage(path)
    np.testing.assert_allclose(read_footage(path, fps=50).times_s, np.arange(12) / 50)


def test_rounded_stamps_keep_the_interval_and_long_gaps(tmp_path):
    stamps = [*range(20), *range(80, 100)]
    footage = read_footage(write_video(tmp_path / "a.mkv", panning_images(40), stamps, rate=60))
    assert footage.frame_interval_s == pytest.approx(1 / 60, rel=1e-3)
    np.testing.assert_allclose(footage.frame_times, stamps, atol=0.03)


@pytest.mark.parametrize(("short", "long"), [(0.010, 0.040), (0.033, 0.100), (1 / 30, 0.100)])
@pytest.mark.parametrize("count", [12, 13])
@pytest.mark.parametrize("short_first", [True, False])
def test_alternating_intervals_have_the_shorter_one_as_the_usual(tmp_path, short, long, short_first, count):
    intervals = np.tile([short, long] if short_first else [long, short], 7)[:count]
    times = np.concatenate([[0.0], np.cumsum(intervals)])
    assert usual_interval(times) == pytest.approx(short)
    names = [f"{1700000000 + time:.6f}.png" for time in times]
    footage = read_footage(write_images(tmp_path / "images", names))
    assert footage.frame_interval_s == pytest.approx(short, rel=1e-3)
    np.testing.assert_allclose(footage.frame_times, times / short, rtol=1e-3)
    assert any("missing frames" in note for note in footage.notes)


def test_times_begin_with_the_first_frame(tmp_path):
    footage = read_footage(write_video(tmp_path / "a.mkv", panning_images(12), list(range(30, 42))))
    assert footage.times_s[0] == 0


def test_names_that_mislead(tmp_path):
    decimals = [str(round(t, 6)) for t in np.arange(12) / 30 + 0.1]
    folder = write_images(tmp_path / "decimals", [f"{name}.png" for name in decimals])
    (folder / "._0.1.png").write_bytes(b"no picture")
    assert [Path(name).stem for name in read_footage(folder).names] == decimals
    counters = write_images(tmp_path / "counters", [f"{10 * i:012d}.png" for i in range(1, 13)])
    with pytest.raises(InputError, match=r"frame rate.*\(fps\)"):
        read_footage(counters)


def test_a_long_folder_of_mixed_sizes_is_one_clear_line(tmp_path):
    images = [image if i % 3 else image[:80] for i, image in enumerate(panning_images(130))]
    folder = write_images(tmp_path / "mixed", [f"{i:04d}.png" for i in range(130)], images)
    ranges, _ = choose_stretches(folder, fps=30)
    with pytest.raises(InputError, match="one camera and one size"):
        read_footage(folder, fps=30, frames=ranges[0])


def test_the_folder_that_one_is_in_has_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(write_images(tmp_path / "few", ["0.png", "1.png"]))
    with pytest.raises(InputError, match="few has 2 frames"):
        rssc.check(".", fps=30)


def test_a_source_of_which_little_is_left_is_damaged(tmp_path):
    folder = write_images(tmp_path / "images", [f"{i}.png" for i in range(12)])
    for i in range(7):
        (folder / f"{i}.png").write_bytes(b"damaged")
    with pytest.raises(InputError, match=r"of the 12 frames of images only 5 can be used.*damaged"):
        read_footage(folder, fps=30)


def test_footage_without_images_is_the_same_otherwise(tmp_path):
    footage = read_footage(write_images(tmp_path / "images", [f"{i}.png" for i in range(9)]), fps=30)
    light = footage.without_images()
    assert (len(light), light.width, light.height) == (9, footage.width, footage.height)
    assert light.images.size == 0 and light.times_s is footage.times_s


def test_a_time_of_day_in_the_name_is_no_protocol(tmp_path, monkeypatch):
    write_video(tmp_path / "a.mp4", panning_images(12), list(range(12))).rename(tmp_path / "12:30:05.mp4")
    monkeypatch.chdir(tmp_path)
    assert len(read_footage("12:30:05.mp4")) == 12
