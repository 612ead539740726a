"""Rendering of drawn clips elsewhere, with the program for a GPU compiled for the CPU."""

import json
import shutil
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from benchmarks.__main__ import main as run_benchmark
from benchmarks.drawn_clips import frames_of, read_content
from benchmarks.draws import clip_of, draw
from benchmarks.frames import fill
from benchmarks.gpu.grey_video import read_grey, video_path, write_grey
from benchmarks.gpu.renderer import CompiledRenderer, InterpolatedOptics, compiled
from rssc.errors import InputError
from rssc.model.lens import LENS_MODELS
from rssc.simulation.draw_lens import UNMODELLED, draw_lens, draw_unmodelled

SMALL = {"width": 96, "height": 64, "frames": 3, "fps": 30.0, "crf": None}
needs_compiler = pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler")

WITHOUT_NUMBA_AND_OPENCV = """
import importlib.util, runpy, sys
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name in ("numba", "cv2") else find_spec(name, *rest)
sys.argv[0] = "benchmarks.gpu"
runpy.run_module("benchmarks.gpu", run_name="__main__")
assert not {"numba", "cv2.cv2"} & set(sys.modules)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("library"), gpu=False)


@needs_compiler
@pytest.mark.parametrize(("seed", "fixed"), [(0, {"axis": "columns", "movers": 2}), (2, {"world": "outdoors"})])
def test_the_compiled_renderer_renders_what_the_kernels_do(library, monkeypatch, seed, fixed):
    monkeypatch.setattr(CompiledRenderer, "library", library)
    clip = clip_of(draw(seed, **SMALL, **fixed))
    compiled_renderer = CompiledRenderer(clip.camera, clip.world, 0.7, optics=clip.optics)
    usual = type(clip.renderer)(clip.camera, clip.world, 0.7, optics=clip.optics)
    times = 1 + 0.8 * np.linspace(0, 1, clip.camera.line_count)
    poses, seconds = clip.motion.cam_from_world(times), times / 30
    expected = usual.render(poses, seconds)
    assert expected.std() > 0.05
    np.testing.assert_allclose(compiled_renderer.render(poses, seconds), expected, atol=1e-4)


@needs_compiler
def test_clips_rendered_elsewhere_are_those_of_the_cpu(tmp_path, monkeypatch):
    drawn = draw(1, **SMALL, noise=2.0, exposure=0.3)
    (tmp_path / "draws").write_text(json.dumps(asdict(drawn)) + "\n")
    command = [sys.executable, "-c", WITHOUT_NUMBA_AND_OPENCV, tmp_path / "draws", tmp_path / "rendered", "--cpu"]
    subprocess.run([*map(str, command), "--jobs", "1"], check=True, cwd=Path(__file__).parents[2])
    video = video_path(tmp_path / "rendered", 0)
    clip = clip_of(drawn)
    np.testing.assert_array_equal(
        read_grey(video), replace(clip, options=replace(clip.options, image_noise=0.0)).frames
    )
    filled = Path(fill((drawn, video), tmp_path / "filled"))
    usual = frames_of(drawn, clip, tmp_path / "usual")
    assert filled.name == usual.name and read_content(filled) == read_content(usual)
    names = sorted(path.name for path in usual.glob("*.png"))
    assert len(names) == 3 and names == sorted(path.name for path in filled.glob("*.png"))
    for name in names:
        ours, theirs = (cv2.imread(str(folder / name), -1).astype(int) for folder in (filled, usual))
        assert np.abs(ours - theirs).max() <= 1
    assert fill((drawn, video), tmp_path / "filled").endswith("was there")
    options = ["compare", str(tmp_path / "draws"), str(tmp_path / "rendered"), "--jobs", "1"]
    monkeypatch.setattr(sys, "argv", ["benchmarks", "frames", *options])
    assert run_benchmark() == 0


def test_another_clip_is_refused(tmp_path):
    video = video_path(tmp_path, 0)
    write_grey(np.zeros((2, 64, 96), np.uint8), video)
    with pytest.raises(InputError, match=r"shape \(2, 64, 96\); expected \(3, 64, 96\)"):
        fill((draw(1, **SMALL), video), tmp_path / "cache")


@pytest.mark.parametrize("lens", [*LENS_MODELS, *UNMODELLED])
def test_interpolated_rays_are_those_of_the_lens(lens):
    optics = (draw_lens if lens in LENS_MODELS else draw_unmodelled)(np.random.default_rng(5), lens, 640, 480)
    pixels = np.random.default_rng(6).uniform((0, 0), (639, 479), (200, 2))
    rays = InterpolatedOptics(optics, 640, 480).unproject(pixels)
    np.testing.assert_allclose(rays, optics.unproject(pixels), atol=1e-7)
