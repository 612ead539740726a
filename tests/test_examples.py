"""The examples run, and say what they promise."""

import runpy
from pathlib import Path

import av
import cv2

from rssc.simulation.clip import ClipOptions, render_clip
from rssc.simulation.clip_files import write_clip

_EXAMPLES = Path(__file__).parent.parent / "examples"


def copy_rotated(source, path):
    """The same video with the rotation metadata of a phone that was held upright."""
    with av.open(str(source)) as old, av.open(str(path), "w") as new:
        stream = new.add_stream_from_template(old.streams.video[0])
        stream.set_display_rotation(90)
        for packet in old.demux(old.streams.video[0]):
            if packet.dts is not None:
                packet.stream = stream
                new.mux(packet)


def test_own_tracks(capsys):
    runpy.run_path(str(_EXAMPLES / "own_tracks.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["truth", "te", "ceq", "ceh", "dpq", "dph"]
    truth, found, sigma = float(lines[0].split()[-1]), float(lines[1].split()[-3]), float(lines[1].split()[-1])
    assert abs(found - truth) < 4 * sigma


def test_calibrate_video(capsys, tmp_path, monkeypatch):
    write_clip(render_clip(ClipOptions(480, 360, 30, motion="shaky", readout_ratio=0.7, seed=2)), tmp_path, video=True)
    monkeypatch.chdir(tmp_path)
    video = tmp_path / "rotated.mp4"
    copy_rotated(next(tmp_path.glob("*.mp4")), video)
    runpy.run_path(str(_EXAMPLES / "calibrate_video.py"))["main"](str(video))
    ratio = float(capsys.readouterr().out.split(" ms, ")[1].split()[0])
    assert abs(ratio - 0.7) < 0.003
    assert (tmp_path / "calibration.json").exists()
    assert cv2.imread(str(tmp_path / "undistorted.png")).shape[:2] == (360, 480)
