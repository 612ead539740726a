"""What is done with what a file says: reasons, notes, exposure, calibration.json and the lines that are shown."""

import io
import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

import rssc
from rssc.errors import NotCalibratableError
from rssc.footage.footage import Footage
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
    file_findings,
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
from tests.test_video import SIZE

STABILISED = Metadata(
    make="GoPro", model="GoPro Max", lens="wide field of view", readout_time_s=0.0206, exposure_range_s=(1e-3, 1.2e-3),
    stabilisation="electronic", stabilisation_setting="HS HLevel", gyro=True,
)  # fmt: skip


def test_reasons():
    assert file_findings(Metadata()) == []
    assert file_findings(replace(STABILISED, stabilisation="off")) == []
    (finding,) = file_findings(STABILISED)
    assert finding.cause == "electronic_stabilisation" and finding.reason.startswith(
        "the file says that electronic stabilisation was on (HS HLevel)"
    )
    assert "time lapse" in file_findings(Metadata(time_lapse=True))[0].words
    assert file_findings(Metadata(time_lapse=True, capture_rate=2.0)) == []
    assert different_cameras([STABILISED, Metadata(), STABILISED]) == []
    assert "GoPro Max and Google Pixel 7" in different_cameras([STABILISED, Metadata("Google", "Pixel 7")])[0].reason


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
    refused = degenerate_result(footage, NotCalibratableError("the camera hardly moved"))
    assert "stabilisation was on" in refused.reasons[0] and refused.reasons[1] == "the camera hardly moved"
    assert refused.metadata == STABILISED and refused.causes == ("electronic_stabilisation", "uncertain")


def test_a_check_has_the_reason_of_the_file_first_and_asks_for_no_faster_motion(monkeypatch):
    images, numbers = np.zeros((9, 4, 4), np.uint8), np.arange(9)
    footage = Footage(images, numbers / 30, numbers, tuple("abcdefghi"), ("a note",), metadata=STABILISED)
    asked = []
    monkeypatch.setattr(check_module, "open_source", lambda *_: None)
    monkeypatch.setattr(check_module, "KeptFrames", lambda listed: listed)
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
    monkeypatch.setattr(stretch_module, "with_times_by_evidence", lambda footage, first, *_: (footage, first))
    monkeypatch.setattr(
        stretch_module, "estimate_exposure", lambda *_: None if seen is None else ExposureEstimate(*seen)
    )
    monkeypatch.setattr(stretch_module, "is_smeared", lambda *_: False)
    monkeypatch.setattr(stretch_module, "refined_scene", lambda images, scene, ratio, *_: used.append(ratio) or scene)
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
