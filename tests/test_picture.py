"""Faults of the picture: bars, cuts, overlays, repeats and interlacing are found before the work starts, on clean clips
none."""

from dataclasses import replace
from fractions import Fraction
from functools import cache

import av
import cv2
import numpy as np
import pytest
from rich.console import Console

import rssc.pipeline.check as quick
from rssc.errors import InputError
from rssc.footage.cadence import (
    Cadence,
    cadence_times,
    candidate_times,
    find_cadence,
    find_frozen,
    find_repeats,
    frame_differences,
)
from rssc.footage.cuts import find_cuts
from rssc.footage.footage import read_footage, survey_footage
from rssc.footage.picture import PICTURE, find_active_area, find_overlay, interlaced_share
from rssc.footage.survey import distinct_clips, of_one_camera
from rssc.model.camera import ActiveArea
from rssc.outputs.terminal import print_check
from rssc.pipeline.options import CalibrateOptions
from rssc.pipeline.several import choose
from rssc.simulation.clip import ClipOptions, render_clip, typical_lens
from rssc.simulation.clip_files import write_video
from rssc.simulation.faults.picture import (
    add_bars,
    add_overlay,
    compress,
    freeze,
    interlace,
    stored_pictures,
)
from rssc.tracking.track import track

WIDTH, HEIGHT = 240, 180


@cache
def rendered(motion="hand_held", seed=0, count=36, rate=30.0, lens="pinhole"):
    options = ClipOptions(
        WIDTH, HEIGHT, count, rate, typical_lens(lens, WIDTH, HEIGHT), motion=motion, seed=seed
    )  # fmt: skip
    return render_clip(options).frames


@pytest.fixture(scope="module")
def frames():
    return rendered()


@pytest.fixture(scope="module")
def others():
    return rendered("shaky", seed=1)


def pairs(frames):
    first = np.linspace(0, len(frames) - 2, 16).astype(int)
    return frames[np.column_stack([first, first + 1]).ravel()]


def causes(survey):
    return [finding.cause for finding in survey.findings]


def accusations(frames):
    differences = frame_differences(frames)
    return {
        "bars": find_active_area(pairs(frames)) is not None,
        "overlay": find_overlay(pairs(frames)) is not None,
        "interlacing": interlaced_share(pairs(frames)) >= PICTURE.interlaced_share,
        "cut": bool(find_cuts(frames)),
        "repeats": bool(find_repeats(differences).any()),
        "cadence": find_cadence(differences) is not None,
    }


@pytest.mark.parametrize("crf", [None, 33])
@pytest.mark.parametrize("motion", ["hand_held", "shaky", "drone", "pan", "rotation", "static"])
def test_clean_clips_are_not_accused(motion, crf):
    clean = rendered(motion, seed=5)
    clean = clean if crf is None else compress(clean, crf)
    assert not any(accusations(clean).values()), accusations(clean)


def test_a_round_fisheye_image_dark_corners_and_a_night_sky_are_not_bars(frames, rng):
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    radius = np.hypot(x - WIDTH / 2, y - HEIGHT / 2)
    circle = np.where(radius < HEIGHT / 2 - 6, frames, 0).astype(np.uint8)
    vignette = (frames * np.clip(1.6 - radius / (0.4 * WIDTH), 0, 1)).astype(np.uint8)
    sky = frames.copy()
    # Dark down to a horizon that tilts and moves with the camera.
    for i, image in enumerate(sky):
        image[y < 50 + 0.05 * x + 4 * np.sin(i)] = 8
    noise = rng.normal(0, 2, sky.shape)
    for clip in (circle, vignette, np.clip(sky + noise, 0, 255).astype(np.uint8)):
        assert find_active_area(pairs(clip)) is None


@pytest.mark.parametrize("crf", [None, 30])
@pytest.mark.parametrize(
    ("rows", "columns", "level"),
    [((23, 23), (0, 0), 0), ((0, 0), (30, 30), 0), ((20, 24), (12, 8), 16), ((22, 22), (0, 0), 30)],
)
def test_bars_are_found_to_the_row(frames, rows, columns, level, crf):
    barred = add_bars(frames, rows, columns, level)
    if crf is not None:
        barred = compress(barred, crf)
    assert find_active_area(pairs(barred)) == ActiveArea(columns[0], rows[0], WIDTH, HEIGHT)


def test_a_subtitle_within_a_bar_is_still_a_bar(frames):
    barred = add_overlay(add_bars(frames, (30, 30)), "a subtitle", (0.3, 0.97))
    assert find_active_area(pairs(barred)) == ActiveArea(0, 30, WIDTH, HEIGHT)


@pytest.mark.parametrize(("opacity", "crf"), [(1.0, None), (1.0, 30), (0.6, None), (0.6, 23)])
def test_overlays_are_masked_and_nothing_is_tracked_there(others, opacity, crf):
    shown = add_overlay(others, opacity=opacity)
    words = (add_overlay(others[:1]) != others[:1])[0]
    found = compress(shown, crf) if crf else shown
    mask = find_overlay(pairs(found))
    assert mask is not None
    assert np.mean(mask[words]) > 0.95 and mask.mean() < 0.1
    pixels = np.rint(track(found[:8], hidden=mask).pixels).astype(int)
    assert not mask[pixels[:, 1], pixels[:, 0]].any()


def test_an_overlay_on_a_camera_that_stands_still_is_not_told():
    assert find_overlay(pairs(add_overlay(rendered("static")))) is None


@pytest.mark.parametrize("upper_first", [True, False])
def test_interlacing_is_found(upper_first):
    fields = rendered(count=48, rate=60.0)
    assert interlaced_share(pairs(interlace(fields, upper_first))) > 0.8


def test_cuts_are_found_and_flashes_are_none(frames, others):
    joined = np.concatenate([frames[:20], others[:16]])
    assert find_cuts(joined) == [20]
    assert find_cuts(compress(joined, 33)) == [20]
    flash = frames.copy()
    flash[12] = np.clip(2 * flash[12].astype(int) + 60, 0, 255)
    assert find_cuts(flash) == []


@pytest.mark.parametrize("crf", [None, 28])
@pytest.mark.parametrize(("pictures", "stored"), [(4, 5), (5, 6), (2, 5), (1, 2), (2, 3)])
def test_cadences_are_found(others, pictures, stored, crf):
    shown = stored_pictures(len(others), pictures, stored, phase=2)
    clip = others[shown] if crf is None else compress(others[shown], crf)
    differences = frame_differences(clip)
    cadence = find_cadence(differences)
    assert cadence is not None and (cadence.pictures, cadence.frames) == (pictures, stored)
    repeats = find_repeats(differences)
    np.testing.assert_array_equal(repeats[1:], np.diff(shown) == 0)
    times = cadence_times(np.arange(len(clip)) / 30, repeats, cadence)
    np.testing.assert_allclose(times, np.arange(len(others)) * stored / pictures / 30)


def test_a_drop_within_a_cadence_keeps_its_time():
    cadence = Cadence(4, 5, 0)
    repeats = np.diff(cadence.shown(21), prepend=-1) == 0
    repeats[7] = True  # dropped, and the picture before it repeated instead
    times = cadence_times(np.arange(21) / 30, repeats, cadence)
    assert sorted(set(np.round(np.diff(times) * 24, 6))) == [1, 2]


def test_candidate_times_name_what_is_in_question(rng):
    stamps = np.arange(20) / 30 + rng.normal(0, 1e-3, 20)
    repeats = np.zeros(20, bool)
    repeats[7] = True
    found = {one.name: one.times_s for one in candidate_times(stamps, repeats)}
    assert list(found) == ["stamps", "constant", "even"]
    assert all(len(times) == 19 and times[0] == 0 for times in found.values())
    assert np.ptp(np.diff(found["even"])) < 1e-9
    assert np.diff(found["constant"])[6] == pytest.approx(2 / 30, rel=0.01)
    assert "cadence" in [one.name for one in candidate_times(stamps, repeats, Cadence(4, 5, 0))]


@pytest.mark.parametrize("seed", range(5))
def test_errors_of_stamps_that_look_like_gaps_do_not_change_the_rate(seed):
    stamps = (np.arange(60) + 0.2 * np.random.default_rng(seed).normal(size=60)) / 24
    found = {one.name: one.times_s for one in candidate_times(np.sort(stamps), np.zeros(60, bool))}
    constant = np.diff(found["constant"])
    assert "even" in found or np.ptp(constant) < 1e-9
    assert np.diff(found.get("even", found["constant"])).mean() * 24 == pytest.approx(1, abs=0.01)


def test_24_pictures_stored_as_30_are_taken_as_24(tmp_path, others):
    write_video(others[stored_pictures(len(others), 4, 5)], tmp_path / "a.mp4", 30.0, crf=20)
    footage = read_footage(tmp_path / "a.mp4")
    assert footage.frame_interval_s == pytest.approx(1 / 24, rel=1e-3)
    np.testing.assert_allclose(footage.frame_times, np.arange(len(others)), atol=1e-3)
    assert any("24 pictures a second are stored as 30" in note for note in footage.notes)
    assert [finding.cause for finding in footage.findings] == ["cadence"]
    assert [one.name for one in footage.candidates] == ["stamps", "constant", "even", "cadence"]
    np.testing.assert_allclose(footage.candidates[-1].times_s, footage.times_s - footage.times_s[0])


def test_frozen_pictures_split_a_clip(tmp_path, others):
    long = np.concatenate([others, others[::-1]])
    assert find_frozen(find_repeats(frame_differences(freeze(long, 30, 8)))) == [(31, 39)]
    write_video(freeze(long, 30, 8), tmp_path / "a.mp4", 30.0)
    survey = survey_footage(tmp_path / "a.mp4", [(0, len(long))])
    assert survey.pieces == ((0, 31), (39, len(long)))
    assert causes(survey) == ["frozen"]


def test_a_short_clip_with_a_cut_becomes_two_stretches(tmp_path, frames, others):
    write_video(np.concatenate([frames[:24], others, frames[:10]]), tmp_path / "a.mp4", 30.0)
    chosen, _ = choose([tmp_path / "a.mp4"], CalibrateOptions())
    assert [one.frames for one in chosen] == [(0, 24), (24, 60)]
    notes = chosen[1].read(CalibrateOptions()).notes
    assert any("the scene changes at frames 24 and 60" in note for note in notes)
    assert any("frames 60:70 between them are fewer than 20 and were left out" in note for note in notes)


def test_frames_are_cropped_to_the_picture(tmp_path, others):
    write_video(add_bars(add_overlay(others), (30, 30)), tmp_path / "a.mp4", 30.0)
    (chosen,), _ = choose([tmp_path / "a.mp4"], CalibrateOptions())
    footage = chosen.read(CalibrateOptions())
    assert footage.images.shape[1:] == (HEIGHT, WIDTH)
    assert footage.cropped is not None
    assert (footage.cropped.width, footage.cropped.height) == (WIDTH, HEIGHT + 60)
    assert footage.overlay is not None and footage.overlay.shape == (HEIGHT, WIDTH)
    assert [finding.cause for finding in footage.findings] == ["bars", "overlay"]
    whole = read_footage(tmp_path / "a.mp4")
    assert whole.images.shape[1:] == (HEIGHT + 60, WIDTH) and whole.cropped is None


def test_the_same_clip_twice_is_left_out(tmp_path, frames, others):
    for name, clip, crf in (("a", frames, 12), ("b", frames, 30), ("c", others, 12), ("d", frames[6:], 12)):
        write_video(clip, tmp_path / f"{name}.mp4", 30.0, crf)
    chosen, notes = choose([tmp_path / f"{name}.mp4" for name in "abcd"], CalibrateOptions())
    assert [one.source.stem for one in chosen] == ["a", "c"]
    assert [note for note in notes if "b.mp4 shows the same pictures as" in note and "a.mp4" in note]
    assert len([note for note in notes if "same pictures" in note]) == 2


def test_two_clips_of_one_scene_are_not_the_same(tmp_path):
    surveys = []
    for seed in (1, 2):
        # The same room, another motion.
        clip = rendered("shaky", seed)
        write_video(clip, tmp_path / f"{seed}.mp4", 30.0)
        surveys.append(survey_footage(tmp_path / f"{seed}.mp4", [(0, len(clip))]))
    assert len(distinct_clips(surveys)[0]) == 2


def test_other_cameras_are_refused_before_the_work(tmp_path, frames, others):
    write_video(frames, tmp_path / "a.mp4", 30.0)
    write_video(others[:, 20:160], tmp_path / "small.mp4", 30.0)
    write_video(others, tmp_path / "slow.mp4", 25.0)
    with pytest.raises(InputError, match=r"frames of 240 x 140 and 240 x 180 pixels; expected one camera"):
        choose([tmp_path / "a.mp4", tmp_path / "small.mp4"], CalibrateOptions())
    with pytest.raises(InputError, match=r"30\.00 and 25\.00 frames per second; expected one camera"):
        choose([tmp_path / "a.mp4", tmp_path / "slow.mp4"], CalibrateOptions())
    surveys = [survey_footage(tmp_path / "a.mp4", [(0, 36)])] * 2
    near = [replace(one, active=ActiveArea(0, 20 + i, 240, 140 - i)) for i, one in enumerate(surveys)]
    assert {one.active for one in of_one_camera(near)} == {ActiveArea(0, 21, 240, 139)}


def test_real_clips_are_not_accused(shared_data):
    clips = {
        "gopro_hero3/images": 29.97, "gopro_hero3/images_500": 29.97, "phone_gyro/images": 30.0,
        "tum_rsvi/clip_a/images": None, "kinect_fr1_desk/rgb": None, "gopro_max/clip.mp4": None,
    }  # fmt: skip
    for folder, rate in clips.items():
        if (shared_data / folder).exists():
            survey = survey_footage(shared_data / folder, [(0, 40)], fps=rate)
            assert not survey.findings and survey.active is None and survey.overlay is None, folder


def test_a_marked_video_says_one_line_on_interlacing(tmp_path):
    fields = rendered(count=48, rate=60.0)
    with av.open(str(tmp_path / "a.mp4"), "w") as container:
        options = {"crf": "15", "x264-params": "tff=1:interlaced=1"}
        stream = container.add_stream("libx264", rate=30, options=options)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT - 4, "yuv420p"
        for i, image in enumerate(interlace(fields)):
            frame = av.VideoFrame.from_ndarray(cv2.cvtColor(image[:-4], cv2.COLOR_GRAY2RGB), format="rgb24")
            frame.pts, frame.time_base = i, Fraction(1, 30)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    (chosen,), _ = choose([tmp_path / "a.mp4"], CalibrateOptions())
    footage = chosen.read(CalibrateOptions())
    # A reason to doubt the result, and no note beside it.
    assert [one.reason for one in footage.findings] == [
        "the video is interlaced: odd and even rows show different moments, which no readout time describes: record in "
        "a progressive mode (p, not i)"
    ]
    assert not any("interlaced" in note for note in footage.notes)


def test_a_quick_check_says_what_a_calibration_says(tmp_path, others, monkeypatch):
    monkeypatch.setattr(quick, "_check_footage", lambda footage, stage, slow: quick.Check("ok", ()))
    barred = add_bars(others[stored_pictures(len(others), 4, 5)], (30, 30))
    write_video(np.concatenate([barred, barred[:8, ::-1]]), tmp_path / "a.mp4", 30.0)
    found = quick.check(tmp_path / "a.mp4")
    assert [finding.cause for finding in found.findings] == ["bars", "cut", "short_piece", "cadence"]
    (chosen,), _ = choose([tmp_path / "a.mp4"], CalibrateOptions())
    said = chosen.read(CalibrateOptions()).notes
    assert found.notes[:3] == said[:3]
    assert found.notes[3].startswith("24 pictures a second are stored as 30") and said[3][:38] == found.notes[3][:38]
    console = Console(record=True, width=300)
    print_check(console, found)
    assert all(f"note: {note}" in console.export_text(clear=False) for note in found.notes)
