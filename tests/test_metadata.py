"""What a video file says about its camera: read, never obeyed blindly, never a cause of failure, never personal."""

import io
import json
import subprocess
from dataclasses import asdict, replace
from importlib.util import find_spec
from types import SimpleNamespace

import av
import numpy as np
import pytest
from rich.console import Console

import rssc
from rssc.footage import telemetry
from rssc.footage.footage import Footage, read_footage
from rssc.footage.metadata import at_capture_rate, from_tags, from_telemetry
from rssc.footage.telemetry import TELEMETRY, Telemetry, read_telemetry
from rssc.footage.telemetry_script import summary
from rssc.footage.video import Video
from rssc.inference.infer import Inference
from rssc.inference.uncertainty import Uncertainty
from rssc.model.calibration import Calibration
from rssc.model.metadata import Metadata
from rssc.outputs.report.report import render_report
from rssc.outputs.terminal import print_calibration, print_check
from rssc.pipeline import check as check_module
from rssc.pipeline import stretch as stretch_module
from rssc.pipeline.check import Check
from rssc.pipeline.metadata import (
    common_metadata,
    compare_with_file,
    different_cameras,
    metadata_reasons,
    stated_exposure,
)
from rssc.pipeline.options import CalibrateOptions
from rssc.pipeline.result import common_exposure, degenerate_result, make_result
from rssc.pipeline.several import Combined
from rssc.pipeline.stretch import StretchResult, refine_stretch
from rssc.pipeline.verdict import judge
from rssc.runtime.progress import Stages
from rssc.simulation.scenes import simulate_scene
from rssc.tracking.exposure import ExposureEstimate
from tests.builders import make_calibration, make_camera, make_stretch
from tests.test_video import SIZE, panning_images, write_images, write_video

STABILISED = Metadata(
    make="GoPro", model="GoPro Max", lens="wide field of view", readout_time_s=0.0206, exposure_range_s=(1e-3, 1.2e-3),
    stabilisation="electronic", stabilisation_setting="HS HLevel", gyro=True,
)  # fmt: skip
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
    times, notes = at_capture_rate(np.arange(20) / played, Metadata(capture_rate=captured))
    np.testing.assert_allclose(np.diff(times), interval, rtol=2e-4)
    assert said in " ".join(notes) and bool(said) == bool(notes)


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
    assert "electronic stabilisation was on (HS HLevel)" in metadata_reasons(found)[0]
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


def test_reasons():
    assert metadata_reasons(Metadata()) == []
    assert metadata_reasons(replace(STABILISED, stabilisation="off")) == []
    (reason,) = metadata_reasons(STABILISED)
    assert reason.startswith("the file says that electronic stabilisation was on (HS HLevel)")
    assert "time lapse" in metadata_reasons(Metadata(time_lapse=True))[0]
    assert metadata_reasons(Metadata(time_lapse=True, capture_rate=2.0)) == []
    assert different_cameras([STABILISED, Metadata(), STABILISED]) == []
    assert "GoPro Max and Google Pixel 7" in different_cameras([STABILISED, Metadata("Google", "Pixel 7")])[0]


def test_what_several_files_say_together():
    calm = replace(STABILISED, stabilisation="off", stabilisation_setting="", exposure_range_s=(2e-3, 3e-3))
    common = common_metadata([calm, STABILISED])
    assert common == replace(STABILISED, exposure_range_s=(1e-3, 3e-3))
    assert common_metadata([calm]) == calm
    assert common_metadata([calm, Metadata()]) == Metadata()


def test_a_stabilised_file_makes_an_ok_result_weak_and_is_the_first_reason():
    scene = simulate_scene(4, frame_count=20, point_count=150, pixel_noise=0.05).scene
    adjustment = rssc.adjust(scene, knot_spacing=1.0)
    uncertainty = Uncertainty(adjustment.covariance, {"noise": {"readout_ratio": 1.0}})
    verdicts = []
    for metadata in (Metadata(), STABILISED):
        one = StretchResult(
            Inference(adjustment, uncertainty, (), 0.0), make_stretch(adjustment.scene), 1 / 30, np.ones(20, bool), (),
            {}, ExposureEstimate(0.03, 0.0), metadata=metadata,
        )  # fmt: skip
        combined = Combined(adjustment.scene.camera, adjustment.covariance, 1 / 30, (one,), (one.stretch,))
        verdicts.append(judge(combined))
    plain, stabilised = verdicts
    assert stabilised.status == "weak" and "stabilisation was on" in stabilised.reasons[0]
    assert "stabilisation" not in " ".join(plain.reasons)
    result = make_result(combined, stabilised, CalibrateOptions(), {})
    assert result.metadata == STABILISED
    assert any(note.startswith("readout time: the file says 20.6") for note in result.notes)


def test_a_refused_clip_has_the_reason_of_the_file_first():
    footage = Footage(
        np.zeros((9, 4, 4), np.uint8), np.arange(9) / 30, np.arange(9), tuple("abcdefghi"), metadata=STABILISED
    )
    refused = degenerate_result(footage, "the camera hardly moved")
    assert "stabilisation was on" in refused.reasons[0] and refused.reasons[1] == "the camera hardly moved"
    assert refused.metadata == STABILISED


def test_a_check_has_the_reason_of_the_file_first_and_asks_for_no_faster_motion(monkeypatch):
    images, numbers = np.zeros((9, 4, 4), np.uint8), np.arange(9)
    footage = Footage(images, numbers / 30, numbers, tuple("abcdefghi"), ("a note",), metadata=STABILISED)
    asked = []
    monkeypatch.setattr(check_module, "choose_stretches", lambda *_, **__: ([(0, 9)], ()))
    monkeypatch.setattr(check_module, "survey_footage", lambda *_, **__: SimpleNamespace(pieces=[(0, 9)]))
    monkeypatch.setattr(check_module, "read_footage", lambda *_, **__: footage)
    monkeypatch.setattr(
        check_module, "_check_footage", lambda footage, stage, slow: asked.append(slow) or Check("ok", ("other",))
    )
    found = check_module.check("clip.mp4")
    assert found.status == "weak" and "stabilisation was on" in found.reasons[0] and found.reasons[1] == "other"
    assert (found.notes, found.metadata, asked) == (("a note",), STABILISED, [False])


def calibrated(metadata, readout_ms=15.8, sigma_ms=0.06, exposure_ms=None, exposure_sigma_ms=0.0):
    interval_ms = 1e3 / 30
    camera = make_camera(readout_ratio=readout_ms / interval_ms)
    if exposure_ms is not None:
        camera = camera.with_exposure_ratio(exposure_ms / interval_ms)
    found = make_calibration(camera, metadata=metadata, exposure_sigma=exposure_sigma_ms / interval_ms)
    covariance = found.covariance.copy()
    covariance[-1, -1] = (sigma_ms / interval_ms) ** 2
    return replace(found, covariance=covariance)


def test_file_and_footage_are_compared():
    near, far = Metadata(readout_time_s=0.0159), Metadata(readout_time_s=0.0163)
    (note,) = compare_with_file(calibrated(near))
    assert note == "readout time: the file says 15.90 ms, the footage 15.80 +- 0.12 ms."
    (note,) = compare_with_file(calibrated(far))
    assert note.endswith("they disagree by 8 standard deviations; the result is that of the footage.")
    exposed = Metadata(exposure_range_s=(1 / 250, 1 / 200))
    (note,) = compare_with_file(calibrated(exposed, exposure_ms=4.4, exposure_sigma_ms=0.6))
    assert note == "exposure time: the file says 4.0 to 5.0 ms, the footage 4.4 +- 1.2 ms."
    (note,) = compare_with_file(calibrated(exposed, exposure_ms=8.0, exposure_sigma_ms=0.6))
    assert "disagree by 5" in note
    (note,) = compare_with_file(calibrated(exposed, exposure_ms=4.5))
    assert note == "the exposure time of 1/250 to 1/200 s is what the file says; the footage does not tell it."
    assert compare_with_file(calibrated(exposed)) == ()
    (note,) = compare_with_file(calibrated(Metadata(exposure_range_s=(0.05, 0.05))))
    assert "longer than the 33.33 ms" in note


def test_a_constant_exposure_is_stated():
    found = stated_exposure(Metadata(exposure_range_s=(1 / 101, 1 / 99)), 1 / 30)
    assert found.ratio == pytest.approx(0.3, rel=1e-3) and found.sigma == 0
    assert stated_exposure(Metadata(exposure_range_s=(1 / 200, 1 / 100)), 1 / 30) is None
    assert stated_exposure(Metadata(exposure_range_s=(1 / 15, 1 / 15)), 1 / 30) is None
    assert stated_exposure(Metadata(), 1 / 30) is None


def test_what_a_file_states_gives_way_to_what_stretches_show():
    shown, stated = ExposureEstimate(0.4, 0.1), ExposureEstimate(0.3, 0.0)
    results = [SimpleNamespace(exposure=one) for one in (stated, shown, None)]
    assert common_exposure(results).ratio == pytest.approx(0.4)
    assert common_exposure(results[::2]) == stated


@pytest.mark.parametrize(
    ("seen", "exposure", "assumed"),
    [(None, 0.3, 0.3), ((0.1, 0.1), 0.3, 0.3), ((0.7, 0.05), 0.7, 0.7)],
)
def test_the_stated_exposure_is_used_where_the_footage_does_not_tell(monkeypatch, tmp_path, seen, exposure, assumed):
    used = []
    scene = simulate_scene(4, frame_count=10, point_count=60).scene
    start = SimpleNamespace(notes=(), registered=np.ones(10, bool))
    inference = SimpleNamespace(adjustment=SimpleNamespace(scene=scene))
    monkeypatch.setattr(stretch_module, "track", lambda images, **_: scene.tracks)
    monkeypatch.setattr(stretch_module, "find_starts", lambda *_: [SimpleNamespace(scene=scene, fixed=(), start=start)])
    monkeypatch.setattr(stretch_module, "infer", lambda *_, **__: inference)
    monkeypatch.setattr(stretch_module, "_timed", lambda footage, first, *_: (footage, first))
    monkeypatch.setattr(
        stretch_module, "estimate_exposure", lambda *_: None if seen is None else ExposureEstimate(*seen)
    )
    monkeypatch.setattr(stretch_module, "_refined", lambda images, scene, ratio: used.append(ratio) or scene)
    images = np.zeros((10, *SIZE[::-1]), np.uint8)
    metadata = Metadata(exposure_range_s=(0.01, 0.01))
    footage = Footage(images, np.arange(10) / 30, np.arange(10), tuple("abcdefghij"), metadata=metadata)
    source = tmp_path / "clip.mp4"
    source.touch()
    refined = refine_stretch(footage, source, CalibrateOptions(), Stages())
    assert refined.exposure.ratio == pytest.approx(exposure)
    assert used == [pytest.approx(assumed)]


def test_metadata_in_calibration_json(tmp_path):
    path = tmp_path / "calibration.json"
    calibrated(STABILISED).save(path)
    assert Calibration.load(path).metadata == STABILISED
    document = json.loads(path.read_text())
    assert document["metadata"]["exposure_range_s"] == [1e-3, 1.2e-3] and "capture_rate" not in document["metadata"]
    # Files of before, and files of later versions with more to say.
    document["metadata"]["sensor"] = "IMX"
    path.write_text(json.dumps(document))
    assert Calibration.load(path).metadata == STABILISED
    del document["metadata"]
    path.write_text(json.dumps(document))
    assert Calibration.load(path).metadata == Metadata()
    calibrated(Metadata()).save(path)
    assert "metadata" not in json.loads(path.read_text())


def test_the_line_is_shown():
    def shown(show, value):
        file = io.StringIO()
        show(Console(file=file, width=300), value)
        return file.getvalue()

    line = "the file says: GoPro Max, wide field of view, readout 20.60 ms, exposure 1/1000 to 1/833 s, electronic"
    found = calibrated(STABILISED, exposure_ms=1.1)
    assert line in shown(print_calibration, found)
    assert "exposure 1.1 ms, as the file says; not estimated" in shown(print_calibration, found)
    assert line in shown(print_check, Check("ok", (), metadata=STABILISED))
    assert "note: slow" in shown(print_check, Check("ok", (), notes=("slow",)))
    assert "the file says" not in shown(print_calibration, calibrated(Metadata()))
    assert line.replace("the file", "The file") in render_report(found)
    assert "The file says" not in render_report(calibrated(Metadata()))
    assert "&lt;b&gt;" in render_report(calibrated(Metadata(make="<b>")))
