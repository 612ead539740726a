"""Fills the folder of `--frames-cache` with drawn clips that a GPU renders in seconds, not in minutes of CPU time.

    python -m benchmarks frames list coverage --clips 64 > draws
    python -m benchmarks.gpu draws rendered             where there is a GPU, see `benchmarks.gpu`
    python -m benchmarks frames fill draws rendered cache

The clips are those of the CPU but for rounding: what is rendered has whole grey levels before the same noise is added here. What lies in the folder already stays.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks import coverage, exposure, near_global
from benchmarks.drawn_clips import frames_folder, frames_of
from benchmarks.draws import SEEDS, Draw, clip_of
from benchmarks.gpu.grey_video import read_grey
from benchmarks.pool import map_in_processes
from rssc.errors import InputError
from rssc.model.arrays import FloatArray
from rssc.simulation.clip import Clip

CASES: dict[str, Callable[[int], list[Draw]]] = {
    "coverage": lambda count: coverage.drawn_cases(count, SEEDS["coverage"]),
    "troubles": lambda count: [
        drawn for kind in (*coverage.HOPELESS, *coverage.DOUBTFUL) for drawn in coverage.trouble_cases(kind, count)
    ],
    "exposure": exposure.cases,
    "near_global": near_global.cases,
}
"""The clips of a benchmark by what its option `--clips` (or `--troubles`) says."""


@dataclass(frozen=True)
class RenderedClip(Clip):
    """A clip whose frames are there, but for their noise."""

    rendered: NDArray[np.uint8] = field(kw_only=True, repr=False)
    """(n, height, width)"""

    def _exposure_samples(self, frame: int) -> int:
        return 1

    def _render(self, times: FloatArray) -> NDArray[np.float32]:
        # With one sample the first line's time is the number of the frame.
        return self.rendered[int(times[0]), ..., None] / np.float32(255)


def fill(case: tuple[Draw, Path], cache_folder: Path) -> Path:
    """The folder of a clip in the cache, filled with what was rendered of it."""
    drawn, video = case
    folder = frames_folder(drawn, cache_folder)
    if folder.exists():
        return folder
    rendered, clip = read_grey(video), clip_of(drawn)
    expected = (drawn.frames, drawn.height, drawn.width)
    if rendered.shape != expected:
        raise InputError(f"{video} holds frames of shape {rendered.shape}; expected {expected}.")
    ready = RenderedClip(clip.options, clip.camera, clip.motion, clip.world, clip.renderer, rendered=rendered)
    return frames_of(drawn, ready, cache_folder)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks frames", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("list", help="prints the draws of a benchmark, one to a line")
    listing.add_argument("benchmark", choices=CASES)
    listing.add_argument("--clips", type=int, required=True, help="as for the benchmark")
    filling = commands.add_parser("fill", help="makes clips of what was rendered")
    filling.add_argument("draws", type=Path)
    filling.add_argument("rendered", type=Path)
    filling.add_argument("cache", type=Path)
    filling.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(argv)
    if options.command == "list":
        for drawn in CASES[options.benchmark](options.clips):
            print(json.dumps(asdict(drawn)))
        return 0
    draws = [Draw(**json.loads(line)) for line in options.draws.read_text().splitlines()]
    videos = [options.rendered / f"{number:04d}.mkv" for number in range(len(draws))]
    cases = [(drawn, video) for drawn, video in zip(draws, videos, strict=True) if video.exists()]
    for folder in map_in_processes(partial(fill, cache_folder=options.cache), cases, options.jobs):
        print(folder, flush=True)
    print(f"{len(cases)} of {len(draws)} clips")
    return 0
