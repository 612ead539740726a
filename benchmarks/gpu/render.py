"""Renders the clips of a file of `python -m benchmarks frames list`, each into a video without noise.

`python -m benchmarks frames fill` makes clips of them.
"""

import argparse
import json
import tempfile
import time
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import rssc.simulation.clip
from benchmarks.draws import Draw, clip_of
from benchmarks.gpu.grey_video import video_path, write_grey
from benchmarks.gpu.renderer import CompiledRenderer, compiled


def render_draw(drawn: Draw, library: Path, path: Path) -> float:
    """Renders a clip; returns the seconds it took."""
    began = time.perf_counter()
    CompiledRenderer.library = library
    # The usual renderer takes long to be made where kernels are plain Python.
    with patch.object(rssc.simulation.clip, "Renderer", CompiledRenderer):
        clip = clip_of(drawn)
    write_grey(replace(clip, options=replace(clip.options, image_noise=0.0)).frames, path)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("draws", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=16)
    parser.add_argument("--cpu", action="store_true", help="without a GPU, slowly")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    draws = [Draw(**json.loads(line)) for line in options.draws.read_text().splitlines()]
    tasks: list[Future[float]] = []
    with tempfile.TemporaryDirectory() as scratch, ProcessPoolExecutor(options.jobs) as pool:
        library = compiled(Path(scratch), gpu=not options.cpu)
        for number, drawn in enumerate(draws):
            tasks.append(pool.submit(render_draw, drawn, library, video_path(options.folder, number)))
        for drawn, task in zip(draws, tasks, strict=True):
            print(f"{task.result():6.1f} s  {drawn}", flush=True)
