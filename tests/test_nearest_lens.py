"""A format without the lens gets the closest one, and everybody who exports is told."""

import json

import pytest

from rssc.cli import run
from rssc.errors import InputError
from rssc.outputs.exporters import export_files, nearest_lens
from tests.builders import make_calibration, make_camera

TOLD = "closest fisheye lens stands for it"


@pytest.fixture
def calibration():
    return make_calibration(make_camera("fisheye624", 640, 480))


def test_a_lens_that_is_far_from_all_that_a_format_holds_is_refused(calibration, monkeypatch):
    with pytest.warns(UserWarning, match=TOLD):
        (text,) = export_files(calibration, "kalibr").values()
    assert b"closest fisheye lens" in text  # whoever only has the file is told, too
    monkeypatch.setattr(nearest_lens, "_WORST_RMS_PX", 0.0)
    with pytest.raises(InputError, match="calibrate with the lens fisheye"):
        export_files(calibration, "kalibr")


def test_the_command_says_so_in_words_and_in_json(calibration, tmp_path, capsys):
    calibration.save(tmp_path / "calibration.json")
    words = ["export", str(tmp_path / "calibration.json"), "--to", "kalibr", "-o", str(tmp_path / "out")]
    assert run(words) == 0
    assert TOLD in " ".join(capsys.readouterr().out.split())
    assert run([*words, "--json"]) == 0
    (doubt,) = json.loads(capsys.readouterr().out)["doubts"]
    assert TOLD in doubt
