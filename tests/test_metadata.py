"""What a video file says about its camera: read, never obeyed blindly, never a cause of failure, never personal."""

import json
import subprocess
from dataclasses import asdict, replace
from importlib.util import find_spec
from types import SimpleNamespace

import av
import numpy as np
import pytest

from rssc.footage import telemetry
from rssc.footage.footage import read_footage
from rssc.footage.metadata import at_capture_rate, from_tags, from_telemetry
from rssc.footage.telemetry import TELEMETRY, Telemetry, read_telemetry
from rssc.footage.telemetry_script import summary
from rssc.footage.video import Video
from rssc.model.metadata import Metadata
from rssc.pipeline.metadata import (
    file_findings,
)
from tests.test_video import panning_images, write_images, write_video

needs_package = pytest.mark.skipif(find_spec(telemetry.PACKAGE) is None, reason="telemetry-parser is not installed")


@pytest.fixture(autouse=True)
def _read_again():
    telemetry._read.cache_clear()
    yield
    telemetry._read.cache_clear()


def write_tagged(path, rate=30, count=12, **tags):
    """A tiny clip whose container has tags; `__` stands for a full stop in their names."""
    plain = write_video(path.with_name("plain.mp4"), panning_images(count), list(range(count)), rate)
    options = {"movflags": "use_metadata_tags"} if path.suffix in (".mp4", ".mov") else {}
    with av.open(str(plain)) as source, av.open(str(path), "w", options=options) as copy:
        stream = copy.add_stream_from_template(source.streams.video[0])
        for name, text in tags.items():
            copy.metadata[name.replace("__", ".")] = text
        for packet in source.demux(source.streams.video[0]):
            if packet.dts is not None:
                packet.stream = stream
                copy.mux(packet)
    return path


@pytest.mark.parametrize("suffix", [".mp4", ".mov", ".mkv"])
def test_slow_motion_gets_the_times_of_the_capture_unless_a_rate_is_given(tmp_path, suffix):
    path = write_tagged(tmp_path / f"slow{suffix}", com__android__capture__fps="120.000000")
    slow = read_footage(path)
    assert slow.frame_interval_s == pytest.approx(1 / 120, rel=1e-3)
    (note,) = slow.notes
    assert "the file says it was captured at 120 frames per second and plays at " in note
    assert note.endswith(": times are divided by 4.")
    assert slow.metadata.capture_rate == 120
    given = read_footage(path, fps=240)
    assert given.frame_interval_s == pytest.approx(1 / 240, rel=1e-9)
    assert not any("captured at" in note for note in given.notes)
    # The file's own times stay those at which it plays, for videos that are made of it.
    assert np.diff(Video(path, None).times_s).mean() == pytest.approx(1 / 30, rel=1e-3)


@pytest.mark.parametrize(
    ("captured", "played", "interval", "said"),
    [
        (119.88, 29.97, 1 / 119.88, "divided by 4."),
        (120.0, 30 / 1.001, 1.001 / 120, "divided by 4."),  # the file's clock counts, its rate is nominal
        (59.94, 23.976, 1 / 59.94, "divided by 2.5."),
        (240.0, 30.0, 1 / 240, "divided by 8."),
        (2.0, 30.0, 0.5, "multiplied by 15."),
        (30.0, 24.0, 1 / 24, ""),  # poor light
        (30.0, 15.0, 1 / 15, "times stay as they are"),
        (30.0, 30.0, 1 / 30, ""),
        (None, 30.0, 1 / 30, ""),
    ],
)
def test_capture_rates_that_are_slow_motion_time_lapse_or_neither(captured, played, interval, said):
    times, found = at_capture_rate(np.arange(20) / played, Metadata(capture_rate=captured))
    np.testing.assert_allclose(np.diff(times), interval, rtol=2e-4)
    assert said in " ".join(one.words for one in found) and bool(said) == bool(found)


def test_tags_of_phones():
    found = from_tags(
        {
            "com.apple.quicktime.make": "Apple",
            "com.apple.quicktime.model": "iPhone 13 Pro",
            "com.apple.quicktime.camera.framereadouttimeinmicroseconds": "5250",
            "com.apple.quicktime.camera.focal_length.35mm_equivalent": "26",
            "com.apple.photos.capturemode": "Time-lapse",
            "com.apple.quicktime.location.iso6709": "+37.3349-122.0090/",
            "com.apple.quicktime.creationdate": "2023-01-01",
        }
    )
    assert found == Metadata("Apple", "iPhone 13 Pro", "26 mm (35 mm equivalent)", None, True, pytest.approx(0.00525))
    assert from_tags({"handler_name": "\x0bGoPro AVC  "}).camera == "GoPro"
    assert from_tags({"com.android.manufacturer": "Google", "com.android.model": "Pixel 7"}).camera == "Google Pixel 7"
    assert from_tags({"make": "samsung", "model": "Samsung SM-1"}).camera == "Samsung SM-1"


@pytest.mark.parametrize("text", ["", "abc", "nan", "-30", "inf", "1e300", "120 fps", "\x1b[31m", "9" * 5000])
def test_tags_that_make_no_sense_are_left_alone(tmp_path, text):
    names = ("com.android.capture.fps", "com.apple.quicktime.camera.framereadouttimeinmicroseconds")
    found = from_tags({**dict.fromkeys(names, text), "make": text, "model": text, "handler_name": text})
    assert found.capture_rate is None and found.readout_time_s is None
    assert found.words.isprintable() and len(found.words) < 200


def test_folders_of_images_say_nothing(tmp_path):
    names = [f"{i}.png" for i in range(10)]
    assert read_footage(write_images(tmp_path / "images", names), fps=30).metadata == Metadata()


def said_by(camera, model, *samples):
    """What would be found in a file whose telemetry has these samples."""
    fields = json.loads(json.dumps({"camera": camera, "model": model, **summary(list(samples))}))
    return from_telemetry(telemetry._ADAPTER.validate_python(fields), Metadata())


def tag(name):
    return f"0x{int.from_bytes(name.encode(), 'big'):x}"


def test_gopro():
    settings = {
        tag(name): value
        for name, value in {
            "EISE": "Y", "EISA": "HS Boost", "VFOV": "L", "ZFOV": 0.0, "SROT": 8.3, "CASN": "C33", "CMOD": 12,
            "MTYP": 0,
        }.items()
    }  # fmt: skip
    first = {"Default": settings}
    second = {
        "Exposure": {"Data": [1 / 240, 1 / 241], "Unit": "s"},
        "Gyroscope": {"Data": [{"x": 1, "y": 2, "z": 3}]},
        "GPS": {"Data": [[331267700, -1173273436]]},
    }
    found = said_by("GoPro", "HERO9 Black", first, second)
    assert found.words == (
        "GoPro HERO9 Black, linear field of view, readout 8.30 ms, exposure 1/241 to 1/240 s, "
        "electronic stabilisation on (HS Boost), gyro data"
    )
    off = said_by("GoPro", "HERO9 Black", {"Default": {**settings, tag("EISE"): "N", tag("EISA"): "N/A"}})
    assert off.stabilisation == "off" and off.stabilisation_setting == ""
    lapse = said_by("GoPro", "HERO9 Black", {"Default": {**settings, tag("CMOD"): 13, tag("MTYP"): 1}})
    assert lapse.time_lapse and not found.time_lapse


def test_sony():
    frames = [
        {
            "Default": {"FrameRate": 119.88, "StabilizationEnabled": True, "CaptureTimestamp": 1},
            "Exposure": {"ShutterSpeed": [1, 250]},
            "Lens": {"LensZoomNative": millimetres},
            "Imager": {"FrameReadoutTime": 8.2},
        }
        for millimetres in (24.0, 30.0)
    ]
    found = said_by("Sony", "ILCE-7SM3", *frames)
    assert found.capture_rate == 119.88 and found.readout_time_s == pytest.approx(0.0082)
    assert found.words.startswith("Sony ILCE-7SM3, 24 to 30 mm, captured at 119.88 frames per second")
    assert found.stabilisation == "on" and found.exposure_range_s == (0.004, 0.004)


def test_dji_and_insta360():
    clip = {
        "clip_meta_header": {"product_name": "DJI Avata", "product_sn": "SECRET"},
        "sensor_readout_time": {"readout_time": 9_300_000},
        "eis_status": {"status": 0},
        "sensor_fps": {"sensor_frame_rate": 59.97},
    }
    avata = said_by("DJI", "Avata", {"Default": {"Metadata": clip}, "Quaternion": {"Data": [{"t": 0.0}]}})
    assert avata == Metadata(
        "DJI", "Avata", "", 59.97, readout_time_s=pytest.approx(0.0093), stabilisation="off", gyro=True
    )
    extra = {
        "rolling_shutter_time": 15.9,
        "is_flowstate_online": True,
        "fov_type": "FovTypeLinear",
        "serial_number": "S",
    }
    insta = said_by(
        "Insta360", "Insta360 GO 2", {"Default": {"Metadata": extra}, "Exposure": {"Data": [{"t": 0.0, "v": 0.01}]}}
    )
    assert insta.words == (
        "Insta360 GO 2, linear field of view, readout 15.90 ms, exposure 1/100 s, electronic stabilisation on"
    )


def test_nothing_personal_leaves_the_parser():
    secret = {"serial_number": "SECRET", "creation_time": 1700000000, "gps": [1, 2], "product_sn": "SECRET"}
    sample = {
        "Default": {"Metadata": secret, tag("CASN"): "SECRET", tag("MUID"): [1], "CaptureTimestamp": 1700000000},
        "GPS": {"Data": [{"lat": 48.137}], "Name": "SECRET"},
    }
    kept = json.dumps(summary([sample]))
    assert not any(text in kept for text in ("SECRET", "1700000000", "48.137"))


def package(monkeypatch, tmp_path, body):
    """A package that is found instead of telemetry-parser."""
    folder = tmp_path / "packages" / telemetry.PACKAGE
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(body)
    spec = SimpleNamespace(origin=str(folder / "__init__.py"))
    monkeypatch.setattr(telemetry, "find_spec", lambda name: spec)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("import os; os._exit(7)", "damaged"),
        ("import sys; print('noise'); sys.stderr.write('noise'); raise ImportError('no')", "damaged"),
        ("class Parser:\n    def __init__(self, path): raise OSError('Unsupported file format')", ""),
        ("class Parser:\n    camera, model = 'GoPro', None\n    def __init__(self, path): pass\n"
         "    def telemetry(self):\n        import time; time.sleep(60)", "more than 1 s"),
        ("class Parser:\n    camera, model = 'GoPro', None\n    def __init__(self, path): pass\n"
         "    def telemetry(self): return [0] * (1 << 40)", "damaged"),
    ],
)  # fmt: skip
def test_a_parser_that_fails_is_a_remark(monkeypatch, tmp_path, capfd, body, problem):
    package(monkeypatch, tmp_path, body)
    monkeypatch.setattr(telemetry, "TELEMETRY", replace(TELEMETRY, seconds=1.0))
    found, said = read_telemetry(write_video(tmp_path / "a.mp4", panning_images(10), list(range(10))))
    assert problem in said and bool(problem) == bool(said)
    # What was known before it failed is kept.
    assert found.camera == ("GoPro" if "GoPro" in body else "")
    assert capfd.readouterr() == ("", "")


def test_without_the_package_only_files_that_would_say_more_have_a_note(monkeypatch, tmp_path):
    monkeypatch.setattr(telemetry, "find_spec", lambda name: None)
    plain = read_footage(write_video(tmp_path / "a.mp4", panning_images(10), list(range(10))))
    assert plain.metadata == Metadata() and not plain.notes
    gopro = read_footage(write_tagged(tmp_path / "b.mp4", make="GoPro"))
    assert gopro.metadata.camera == "GoPro"
    assert any("telemetry-parser is not installed" in note for note in gopro.notes)


def test_a_missing_interpreter_or_file_is_a_remark(monkeypatch, tmp_path):
    assert read_telemetry(tmp_path / "absent.mp4")[0] == Telemetry()
    path = write_video(tmp_path / "a.mp4", panning_images(10), list(range(10)))
    package(monkeypatch, tmp_path, "")
    monkeypatch.setattr(telemetry.sys, "executable", "/nowhere/python")
    found, problem = read_telemetry(path)
    assert found == Telemetry() and "could not be run" in problem
    telemetry._read.cache_clear()
    monkeypatch.setattr(telemetry.sys, "executable", "/usr/bin/blender")
    assert "no Python interpreter" in read_telemetry(path)[1]


@needs_package
@pytest.mark.parametrize("content", [b"", b"\x00" * 100, bytes(range(256)) * 400, b'manufacturer="Sony" modelName="A"'])
def test_garbage_is_no_problem(tmp_path, capfd, content):
    path = tmp_path / "a.mp4"
    path.write_bytes(content)
    assert read_telemetry(path)[0].numbers == {}
    assert capfd.readouterr() == ("", "")


@needs_package
def test_a_real_gopro_and_a_damaged_copy_of_it(shared_data, tmp_path, capfd, monkeypatch):
    path = shared_data / "gopro_max" / "clip.mp4"
    found, notes = Video(path, None).read_metadata()
    assert found.camera == "GoPro Max" and found.gyro and not notes
    assert (found.stabilisation, found.stabilisation_setting) == ("electronic", "HS HLevel")
    assert found.readout_time_s == pytest.approx(0.0206, abs=1e-5)
    assert found.exposure_range_s is not None and found.exposure_range_s[1] < 2e-3
    kept = json.dumps(asdict(found))
    assert not any(text in kept for text in ("C33", "33.12", "117.3", "2019"))
    assert "electronic stabilisation was on (HS HLevel)" in file_findings(found)[0].words
    # The length of the settings is wrong, on which the parser panics.
    data = bytearray(path.read_bytes())
    at = data.find(b"GPMFDEVC")
    data[at - 4 : at] = b"\x7f\xff\xff\xff"
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(data)
    found, notes = Video(broken, None).read_metadata()
    assert found == Metadata(make="GoPro") and "were not read: they are damaged" in notes[0]
    assert capfd.readouterr() == ("", "")


def test_the_file_is_parsed_once(monkeypatch, tmp_path):
    calls = []
    run = subprocess.run
    package(monkeypatch, tmp_path, "class Parser:\n    camera = model = 'X'\n    def __init__(self, path): pass\n"
            "    def telemetry(self): return []")  # fmt: skip
    monkeypatch.setattr(telemetry.subprocess, "run", lambda *a, **k: calls.append(a) or run(*a, **k))
    path = write_video(tmp_path / "a.mp4", panning_images(10), list(range(10)))
    assert [read_footage(path).metadata.make for _ in range(3)] == ["X"] * 3
    assert len(calls) == 1
