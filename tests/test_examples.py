"""The examples run, and say what they promise."""

import ast
import json
import runpy
import sys
from pathlib import Path
from types import ModuleType

import av
import cv2
import pytest

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


class ZMQInteractiveShell:
    """By this name the kernel of a notebook is known."""


@pytest.fixture
def notebook_shows(monkeypatch):
    """What a notebook would show: it stands in for IPython, which tests need not install."""
    shown = []

    class Handle:
        def update(self, value):
            shown[-1] = value

    def display(value, **_):
        shown.append(value)
        return Handle()

    package, module = ModuleType("IPython"), ModuleType("IPython.display")
    package.get_ipython = ZMQInteractiveShell
    module.display, module.HTML, module.Image = display, str, bytes
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    return shown


def run_cell(source, names):
    """Runs a cell; returns the value of its last line, as a notebook shows it."""
    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "cell", "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)


def test_notebook(notebook_shows, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    document = json.loads((_EXAMPLES / "calibrate.ipynb").read_text())
    names: dict[str, object] = {}
    values = [run_cell("".join(cell["source"]), names) for cell in document["cells"] if cell["cell_type"] == "code"]
    calibration = names["calibration"]
    assert calibration.status == "ok"
    assert calibration in values and values[-1] is True
    assert all(one.sigmas < 4 for one in names["evaluation"].parameters)
    assert (tmp_path / "report.html").exists() and (tmp_path / "rectified.mp4").exists()
    assert "0 to 35" in capsys.readouterr().out
    # Rendering, checking, calibrating, rectifying and exporting showed their stages.
    assert len(notebook_shows) == 5
    assert all(f">{stage}<" in notebook_shows[2] for stage in ("tracking", "estimating", "solving"))
