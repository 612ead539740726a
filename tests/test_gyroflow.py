"""The log of a gyroscope and the lens profile, as Gyroflow takes them."""

import json
from dataclasses import replace

import cv2
import numpy as np
import pytest

from benchmarks.residual_rotation import residual_degrees
from rssc.errors import InputError
from rssc.model import Lens
from rssc.model.metadata import Metadata
from rssc.outputs.exporters import ExportOptions, export_files, write_export
from rssc.simulation.clip import ClipOptions, render_clip, typical_lens
from rssc.simulation.motion import Waves
from rssc.simulation.render import Renderer
from rssc.simulation.truth import true_calibration

pytest.importorskip("telemetry_parser", reason="reads the log; it has no wheels for this Python")
from benchmarks.gyroflow_reader import Log, Stabiliser

WIDTH, HEIGHT, FRAMES, FPS = 320, 240, 8, 25.0


def make_clip(ratio=0.7, axis="rows", lens="opencv"):
    """A camera that shakes in one place: a log has no word of where the camera is."""
    clip = render_clip(
        ClipOptions(WIDTH, HEIGHT, FRAMES, FPS, lens=typical_lens(lens, WIDTH, HEIGHT), readout_ratio=ratio, axis=axis,
                    motion="shaky", seed=3, image_noise=0.0)
    )  # fmt: skip
    still = Waves.constant(clip.motion.position.offset)
    return replace(clip, motion=replace(clip.motion, position=still, target=None))


def calibration_of(clip, source="shot 1.mp4"):
    calibration = true_calibration(clip, tuple(f"frame_{i:06d}" for i in range(len(clip))))
    return replace(calibration, stretches=(replace(calibration.stretches[0], source=source),))


@pytest.fixture(scope="module")
def clip():
    return make_clip()


@pytest.fixture(scope="module")
def calibration(clip):
    return calibration_of(clip)


def written(calibration, folder, **options):
    (log,) = write_export(calibration, "gcsv", folder, ExportOptions(**options))
    return log


def rotations(clip, times):
    """(n, 3, 3) world from camera, relative to row H / 2 of the first frame."""
    turns = clip.motion.cam_from_world(times)[:, :, :3].transpose(0, 2, 1)
    first = clip.motion.cam_from_world([clip.camera.shutter.readout_ratio / 2])[0, :, :3]
    return first @ turns


def degrees_between(a, b):
    traces = np.einsum("nij,nij->n", a, b)
    return np.degrees(np.arccos(np.clip((traces - 1) / 2, -1, 1)))


@pytest.mark.parametrize(("ratio", "axis"), [(0.7, "rows"), (-0.6, "rows"), (0.5, "columns"), (-0.6, "columns")])
def test_a_log_turns_as_the_camera_did(tmp_path, ratio, axis):
    clip = make_clip(ratio, axis)
    log = Log(written(calibration_of(clip), tmp_path))
    # The log begins at row H / 2 of the first frame.
    times = np.linspace(max(ratio, 0) / 2 + 0.01, FRAMES - 1.01, 60)
    found = log.world_from_camera((times - ratio / 2) / FPS)
    base = log.world_from_camera(np.zeros(1))[0]
    assert degrees_between(base.T @ found, rotations(clip, times)).max() < 0.005
    assert degrees_between(base[None], found).max() > 2


def test_readers_find_what_they_look_for(tmp_path, calibration):
    path = written(calibration, tmp_path)
    assert path.name == "shot 1.gcsv"
    text = path.read_bytes()
    assert text.startswith(b"GYROFLOW IMU LOG\nversion,1.3\n")
    # Readers look for these among the first 500 bytes.
    assert all(key in text[:500] for key in (b"\nid,", b"\nvendor,", b"\nframe_readout_time,", b"_direction,"))
    log = Log(path)
    assert (log.parser.camera, log.parser.model) == ("rssc", "rssc")
    assert log.header["videofilename"] == "shot 1.mp4"
    assert log.header["frame_readout_direction"] == "0"
    assert float(log.header["frame_readout_time"]) == pytest.approx(1e3 * 0.7 / FPS)
    assert log.header["reference_row"].startswith("row H / 2")


def test_names_of_videos_are_quoted(tmp_path, calibration):
    odd = 'C:\\clips\\Ä "b", c\n.mp4'
    stretch = replace(calibration.stretches[0], source=odd)
    ((name, content),) = export_files(replace(calibration, stretches=(stretch,)), "gcsv").items()
    path = tmp_path / "log.gcsv"
    path.write_bytes(content)
    assert "\\" not in name
    assert Log(path).header["videofilename"] == 'Ä "b", c .mp4'


def test_a_log_begins_with_the_video_and_rests_where_nothing_is_known(tmp_path, clip, calibration):
    """A stretch from frame 10 on, and one behind a gap: the turn within each is right, and none between them."""
    first = calibration.stretches[0]
    later = [
        replace(first, frame_numbers=first.frame_numbers + start, times_s=first.times_s + start / FPS)
        for start in (10, 30)
    ]
    log = Log(written(replace(calibration, stretches=tuple(reversed(later))), tmp_path))
    for start in (10, 30):
        times = np.linspace(0.01, FRAMES - 1.01, 20)
        found = log.world_from_camera((start + times - 0.35) / FPS)
        expected = rotations(clip, times)
        assert degrees_between(found[0].T @ found, expected[0].T @ expected).max() < 0.005
    rest = log.world_from_camera(np.array([0.0, 9.0, 19.0, 29.0]) / FPS)
    assert degrees_between(rest[:1], rest[1:2]).max() < 1e-6
    assert degrees_between(rest[2:3], rest[3:]).max() < 1e-6


@pytest.mark.parametrize("lens", ["opencv", "fisheye"])
def test_gyroflow_takes_the_rotation_out_of_rendered_frames(tmp_path, lens):
    clip = make_clip(lens=lens)
    calibration = calibration_of(clip)
    (profile,) = write_export(calibration, "gyroflow", tmp_path)
    stabiliser = Stabiliser.load(written(calibration, tmp_path), profile)
    fx, fy, cx, cy = stabiliser.matrix[[0, 1, 0, 1], [0, 1, 2, 2]]
    pinhole = Lens("pinhole", fx, fy, cx, cy)
    truth = Renderer(replace(clip.camera, lens=pinhole), clip.world, 1.0, False)
    middle = clip.camera.shutter.readout_ratio / 2
    turn = clip.motion.cam_from_world([middle])[0, :, :3]
    for frame in (3, 6):
        centre = clip.motion.cam_from_world([frame + middle])[0]
        pose = np.column_stack([turn, turn @ centre[:, :3].T @ centre[:, 3]])
        ideal = truth.render(np.repeat(pose[None], HEIGHT, axis=0), np.zeros(HEIGHT))[..., 0]
        image = stabiliser.stabilise(clip.frame(frame), frame)
        seen = stabiliser.stabilise(np.full((HEIGHT, WIDTH), 255, np.uint8), frame) > 250
        ideal = np.clip(255 * ideal, 0, 255).astype(np.uint8)
        cv2.imwrite(str(tmp_path / f"{frame}.png"), np.hstack([image, ideal]))
        assert residual_degrees(image, ideal, seen, pinhole) < 0.05


def test_a_profile_has_the_name_of_its_camera(calibration):
    known = Metadata(make="GoPro", model="GoPro HERO9 Black", lens="Wide")
    named = replace(calibration, metadata=known)
    large = replace(named, camera=replace(named.camera, width=1920, height=1440), frame_interval_s=1 / 59.94)
    for given, options, name in (
        (named, {"setting": "HS"}, "GoPro_HERO9 Black_Wide_HS__4by3_320x240-25.00fps"),
        (named, {"model": "HERO9", "setting": "NO:EIS"}, "GoPro_HERO9_Wide_NO_EIS__4by3_320x240-25.00fps"),
        (large, {"lens": 'A/"b"'}, "GoPro_HERO9 Black_Ab__1440p_4by3_1920x1440-59.94fps"),
        (calibration, {"brand": "Sony", "model": "RX0"}, "Sony_RX0____4by3_320x240-25.00fps"),
    ):
        ((file, content),) = export_files(given, "gyroflow", ExportOptions(**options)).items()
        profile = json.loads(content)
        assert (file, profile["name"]) == (f"{name}.json", name)
        assert profile["camera_brand"] in ("GoPro", "Sony") and profile["orig_dimension"] == profile["calib_dimension"]
    log = export_files(named, "gcsv")["shot 1.gcsv"].decode()
    assert "lensprofile,GoPro_HERO9 Black_Wide___4by3_320x240-25.00fps\n" in log
    for given in (named, calibration):
        assert list(export_files(given, "gyroflow")) == ["gyroflow_lens_profile.json"]


def test_other_formats_have_no_place_for_the_name_of_a_camera(calibration):
    with pytest.raises(InputError, match=r"kalibr has no place for 'Sony' .* only gyroflow, gcsv have"):
        export_files(calibration, "kalibr", ExportOptions(brand="Sony"))
