"""Fills the folder of `--frames-cache` with drawn clips that a GPU renders in seconds, not in minutes of CPU time.

    python -m benchmarks frames list coverage --clips 64 > draws
    python -m benchmarks.gpu draws rendered             where there is a GPU, see `benchmarks.gpu`
    python -m benchmarks frames fill draws rendered cache

Before the noise a GPU renders what the CPU does, as `compare` shows; it is rounded to whole grey levels, and the
same noise is added here. What lies in the folder already stays.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks import coverage, exposure, near_global
from benchmarks.drawn_clips import frames_folder, frames_of
from benchmarks.draws import SEEDS, Draw, clip_of
from benchmarks.gpu.grey_video import read_grey, video_path
from benchmarks.limits import Limit, check
from benchmarks.pool import map_in_processes
from rssc.errors import InputError
from rssc.model.arrays import FloatArray
from rssc.simulation.clip import Clip

SAME = (Limit("share_differing", most=1e-4), Limit("rms_with_noise", most=0.6))
"""Before the noise a pixel differs where rounding takes it across half a grey level, or a ray across a face's edge;
with it, in grey levels, because it was rounded once more."""
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
        return self.rendered[int(times[0]), ..., None].astype(np.float32) / np.float32(255)


def rendered_clip(drawn: Draw, video: Path) -> RenderedClip:
    """The clip of what was rendered."""
    rendered, clip = read_grey(video), clip_of(drawn)
    expected = (drawn.frames, drawn.height, drawn.width)
    if rendered.shape != expected:
        raise InputError(f"{video} holds frames of shape {rendered.shape}; expected {expected}.")
    return RenderedClip(clip.options, clip.camera, clip.motion, clip.world, clip.renderer, rendered=rendered)


def fill(case: tuple[Draw, Path], cache_folder: Path) -> str:
    """Puts what was rendered of a clip into the cache; a line about it."""
    drawn, video = case
    folder = frames_folder(drawn, cache_folder)
    if folder.exists():
        return f"{folder} was there"
    return str(frames_of(drawn, rendered_clip(drawn, video), cache_folder))


def compare(case: tuple[Draw, Path]) -> tuple[Draw, float, float, float]:
    """How far the middle frame of what was rendered is from the CPU's.

    Returns:
        The clip, the share of the pixels that differ before the noise, the largest difference there in grey levels, and
        the root mean square of that of the frames with noise.
    """
    drawn, video = case
    clip = rendered_clip(drawn, video)
    middle = drawn.frames // 2
    usual = Clip(clip.options, clip.camera, clip.motion, clip.world, clip.renderer)
    without_noise = replace(usual, options=replace(clip.options, image_noise=0.0)).frame(middle)
    before: FloatArray = np.abs(clip.rendered[middle].astype(float) - without_noise)
    after = clip.frame(middle).astype(float) - usual.frame(middle)
    return drawn, float(np.mean(before > 0)), float(before.max()), float(np.sqrt(np.mean(after**2)))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks frames", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("list", help="prints the draws of a benchmark, one to a line")
    listing.add_argument("benchmark", choices=CASES)
    listing.add_argument("--clips", type=int, required=True, help="as for the benchmark")
    filling = commands.add_parser("fill", help="makes clips of what was rendered")
    comparing = commands.add_parser("compare", help="counts how far it is from what the CPU renders")
    for command in (filling, comparing):
        command.add_argument("draws", type=Path)
        command.add_argument("rendered", type=Path)
        command.add_argument("--jobs", type=int, default=2)
    filling.add_argument("cache", type=Path)
    comparing.add_argument("--every", type=int, default=1, help="of so many clips only one")
    options = parser.parse_args(argv)
    if options.command == "list":
        for drawn in CASES[options.benchmark](options.clips):
            print(json.dumps(asdict(drawn)))
        return 0
    draws = [Draw(**json.loads(line)) for line in options.draws.read_text().splitlines()]
    cases = [(drawn, video_path(options.rendered, number)) for number, drawn in enumerate(draws)]
    cases = [(drawn, video) for drawn, video in cases if video.exists()]
    if options.command == "fill":
        for line in map_in_processes(partial(fill, cache_folder=options.cache), cases, options.jobs):
            print(line, flush=True)
        print(f"{len(cases)} of {len(draws)} clips")
        return 0
    found = list(map_in_processes(compare, cases[:: options.every], options.jobs))
    print("share of the pixels that differ and largest difference before the noise, root mean square with it")
    for drawn, share, largest, rms in found:
        print(f"{share:7.1e} {largest:3.0f} {rms:5.2f}  {drawn}")
    figures = {
        "clips": len(found),
        "share_differing": float(np.mean([share for _, share, _, _ in found])),
        "largest_difference": max(largest for _, _, largest, _ in found),
        "rms_with_noise": float(np.sqrt(np.mean([rms**2 for _, _, _, rms in found]))),
        "rms_of_noise": float(np.sqrt(np.mean([drawn.noise**2 for drawn, _, _, _ in found]))),
    }
    return check(figures, SAME)
