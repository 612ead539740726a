"""`rssc track`: a rendered clip as a whole, interrupted and resumed, and what it writes."""

import json
from dataclasses import replace

import cv2
import numpy as np
import pycolmap
import pytest

from rssc.cli import run
from rssc.datasets.trajectory_error import aligned_error
from rssc.errors import InputError
from rssc.footage.footage import open_source
from rssc.io.tum import read_tum
from rssc.model.calibration import Calibration
from rssc.model.poses import camera_centres
from rssc.outputs.result_folder import WORK_NAME
from rssc.pipeline.following import FOLLOWING, follow_clip
from rssc.pipeline.options import TrackOptions
from rssc.pipeline.track import track_clip
from rssc.route.views import ideal_lens
from rssc.simulation.clip import ClipOptions, render_clip, typical_lens
from rssc.simulation.clip_files import VIDEO_NAME, write_clip
from rssc.simulation.truth import true_calibration
from rssc.tracking.bridging import bridges
from rssc.tracking.features import find_features, match
from rssc.tracking.observations import Observations, tracks_of
from rssc.tracking.options import TrackingOptions
from rssc.tracking.track import Tracker

FRAMES = 70
OPTIONS = TrackOptions(tracks=150)


class InterruptedError(Exception):
    """Stands for a process that is killed."""


@pytest.fixture(scope="module")
def clip():
    return render_clip(
        ClipOptions(240, 180, FRAMES, lens=typical_lens("radial", 240, 180), readout_ratio=0.6, seed=5, colour=True)
    )


@pytest.fixture(scope="module")
def video(clip, tmp_path_factory):
    folder = tmp_path_factory.mktemp("clip")
    write_clip(clip, folder, video=True)
    return folder / VIDEO_NAME


@pytest.fixture(scope="module")
def calibration(clip):
    """The true camera, without any footage."""
    names = tuple(f"frame_{i:06d}" for i in range(FRAMES))
    return replace(true_calibration(clip, names), stretches=())


@pytest.fixture(scope="module")
def output(video, calibration, tmp_path_factory):
    """What the command writes."""
    folder = tmp_path_factory.mktemp("out")
    calibration.save(folder / "camera.json")
    words = ["track", str(video), str(folder / "camera.json"), "-o", str(folder / "out"), "--tracks", "150", "-q"]
    assert run(words) == 0
    return folder / "out"


def test_every_frame_is_placed(output, clip):
    found = Calibration.load(output / "calibration.json")
    (stretch,) = found.stretches
    assert np.array_equal(stretch.frame_numbers, np.arange(FRAMES))
    true = clip.motion.cam_from_world(np.arange(FRAMES))
    error = aligned_error(camera_centres(stretch.scene.cam_from_world), camera_centres(true))
    assert error.rmse < 0.005 * error.true_length
    assert found.camera == clip.camera
    assert found.statistics.rms_px < 0.2
    assert len(read_tum(output / "trajectory.tum")) == FRAMES
    assert any("70 of 70 frames are placed" in note for note in found.notes)
    assert not (output / WORK_NAME).exists()
    # Rows between the frames, too.
    times = np.arange(0.0, FRAMES - 1, 0.37)
    between = camera_centres(stretch.scene.trajectory.cam_from_world(times))
    assert aligned_error(between, camera_centres(clip.motion.cam_from_world(times))).rmse < 0.005 * error.true_length


def test_points_have_the_colours_of_the_clip(output, clip):
    stretch = Calibration.load(output / "calibration.json").stretches[0]
    tracks = stretch.scene.tracks
    image = clip.frame(32)
    here = np.flatnonzero(tracks.frames == 32)
    u, v = np.rint(tracks.pixels[here]).astype(int).T
    difference = image[v, u].astype(float) - stretch.colours[tracks.points[here]]
    assert np.median(np.abs(difference)) < 15
    header = (output / "points.ply").read_bytes().split(b"end_header")[0]
    assert b"property uchar red" in header
    assert f"element vertex {len(stretch.scene.points)}".encode() in header


def test_what_follows_takes_the_whole_clip(output, video, tmp_path):
    calibration = str(output / "calibration.json")
    words = (
        ["rectify", str(video), calibration, "-o", str(tmp_path / "whole.mp4")],
        ["export", calibration, "--to", "colmap", "-o", str(tmp_path / "colmap")],
        ["dataset", str(video), calibration, "--for", "colmap", "-o", str(tmp_path / "dataset")],
    )
    for one in words:
        assert run([*one, "-q"]) == 0
    assert len(open_source(tmp_path / "whole.mp4", None).names) == FRAMES
    assert pycolmap.Reconstruction(str(tmp_path / "colmap")).num_reg_images() == FRAMES
    assert len(list((tmp_path / "dataset" / "images").iterdir())) == FRAMES


def test_features_bridge_what_corners_do_not_survive(clip, tmp_path):
    smeared = range(10, 14)
    for i in range(24):
        image = clip.frame(i)[..., 1]
        cv2.imwrite(str(tmp_path / f"{i:06d}.png"), cv2.blur(image, (1, 41)) if i in smeared else image)
    source, options = open_source(tmp_path, 30.0), TrackingOptions(target=150)
    followed = follow_clip(source, (240, 180), options, None, "key", None)
    lens, ideal = clip.camera.lens, ideal_lens(clip.camera.lens)

    def read(frames):
        return (image for _, image in source.read(frames))

    def flat(pixels):
        return ideal.project(lens.unproject(pixels))

    found = bridges(followed.table, followed.numbers, read, options, None, flat)
    assert found.numbers.min() > max(one.numbers.max() for one in followed.table)
    errors = []
    for number in np.unique(found.numbers):
        mine = np.flatnonzero(found.numbers == number)
        frames = found.frames[mine]
        assert (np.diff(frames) > 0).all()
        if frames[0] < 10 and frames[-1] > 13:
            point = clip.world_points(int(frames[0]), found.pixels[mine[:1]])
            seen, visible = clip.observe(point, int(frames[-1]))
            errors += np.linalg.norm(seen - found.pixels[mine[-1:]], axis=1)[visible].tolist()
    assert len(errors) > 20
    assert np.mean(np.array(errors) < 2) > 0.8
    # Where corners go on, there is nothing to bridge.
    frames, numbers = np.repeat(np.arange(24), 100), np.tile(np.arange(100), 24)
    kept = Observations(frames, numbers, np.zeros((2400, 2)), np.full(2400, 0.1))
    assert not len(bridges((kept,), followed.numbers, read, options, None, flat).frames)


def test_worlds_that_nothing_joins_are_told(clip, calibration, tmp_path, capsys):
    (tmp_path / "frames").mkdir()
    for i in range(FRAMES):
        image = clip.frame(i)[..., 1]
        # A cut to a scene that is nowhere in the first half: its mirror image.
        cv2.imwrite(str(tmp_path / f"frames/{i:06d}.png"), image if i < 35 else image[:, ::-1])
    calibration.save(tmp_path / "camera.json")
    words = [str(tmp_path / "frames"), str(tmp_path / "camera.json"), "-o", str(tmp_path / "out"), "--tracks", "150"]
    assert run(["track", *words, "--fps", "30"]) == 0
    assert "in 2 worlds" in " ".join(capsys.readouterr().out.split())
    found = Calibration.load(tmp_path / "out" / "calibration.json")
    assert [one.world for one in found.stretches] == [0, 1]
    (note,) = (one for one in found.notes if "worlds" in one)
    assert f"have only the {len(found.stretches[0].names)} frames of the first" in note
    assert len(read_tum(tmp_path / "out" / "trajectory.tum")) == len(found.stretches[0].names)


def test_a_run_that_is_interrupted_goes_on_as_if_it_had_not_been(output, video, calibration, tmp_path, monkeypatch):
    whole = Calibration.load(output / "calibration.json").stretches[0]
    monkeypatch.setattr("rssc.pipeline.following.FOLLOWING", replace(FOLLOWING, portion=25))

    def run_until(end, least):
        shares = []

        def progress(stage, share):
            if stage == "tracking":
                shares.append(share)
            if stage == end and share >= least:
                raise InterruptedError

        with pytest.raises(InterruptedError):
            track_clip(video, calibration, OPTIONS, tmp_path, progress)
        return shares[1:]  # the first says that the stage begins

    assert min(run_until("tracking", 0.8)) < 0.1
    assert min(run_until("placing", 1.0)) > 0.7
    assert min(run_until("adjusting", 1.0)) == 1.0
    resumed = track_clip(video, calibration, OPTIONS, tmp_path).stretches[0]
    assert replace(resumed, source="") == replace(whole, source="")


def test_a_tracker_goes_on_from_its_state(clip):
    images = [clip.frame(i)[..., 1].copy() for i in range(8)]
    options = TrackingOptions(target=100)

    def followed(until):
        tracker = Tracker(images[0], options, None)
        for frame, image in enumerate(images[:until]):
            tracker.advance(frame, image)
        return tracker

    whole = tracks_of([followed(8).take()], 8, 3)
    first = followed(4)
    second = Tracker(images[4], options, None)
    second.resume(first.state())
    for frame in range(4, 8):
        second.advance(frame, images[frame])
    assert tracks_of([first.take(), second.take()], 8, 3) == whole


def test_features_are_found_again(clip):
    first, second = (find_features(clip.frame(i)[..., 1].copy()) for i in (10, 14))
    pairs = match(first.descriptors, second.descriptors)
    points = clip.world_points(10, first.pixels[pairs[:, 0]])
    seen, visible = clip.observe(points, 14)
    errors = np.linalg.norm(seen - second.pixels[pairs[:, 1]], axis=1)[visible]
    assert len(errors) > 30
    assert np.mean(errors < 2) > 0.8


def test_wrong_input_is_refused(video, calibration, clip, tmp_path, capsys):
    camera = replace(clip.camera, width=320, height=240)
    with pytest.raises(InputError, match="240x180 pixels; the camera was calibrated at 320x240"):
        track_clip(video, replace(calibration, camera=camera), OPTIONS)
    with pytest.raises(InputError, match="tracks are 3"):
        TrackOptions(tracks=3)
    calibration.save(tmp_path / "camera.json")
    assert run(["track", "no.mp4", str(tmp_path / "camera.json"), "-o", str(tmp_path / "out"), "--json"]) == 2
    assert "no.mp4 does not exist" in json.loads(capsys.readouterr().out)["error"]
    assert not (tmp_path / "out").exists()
