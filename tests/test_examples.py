"""The examples run, and say what they promise."""

import runpy
from pathlib import Path

from rssc.simulation.clip import ClipOptions, render_clip
from rssc.simulation.clip_files import write_clip

_EXAMPLES = Path(__file__).parent.parent / "examples"


def test_own_tracks(capsys):
    runpy.run_path(str(_EXAMPLES / "own_tracks.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["truth", "te", "ceq", "ceh", "dpq", "dph"]
    truth, found, sigma = float(lines[0].split()[-1]), float(lines[1].split()[-3]), float(lines[1].split()[-1])
    assert abs(found - truth) < 4 * sigma


def test_calibrate_video(capsys, tmp_path, monkeypatch):
    write_clip(render_clip(ClipOptions(480, 360, 30, motion="shaky", readout_ratio=0.7, seed=2)), tmp_path, video=True)
    monkeypatch.chdir(tmp_path)
    video = next(tmp_path.glob("*.mp4"))
    runpy.run_path(str(_EXAMPLES / "calibrate_video.py"))["main"](str(video))
    ratio = float(capsys.readouterr().out.split(" ms, ")[1].split()[0])
    assert abs(ratio - 0.7) < 0.003
    assert (tmp_path / "calibration.json").exists() and (tmp_path / "undistorted.png").exists()
