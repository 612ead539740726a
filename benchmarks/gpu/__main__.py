"""`python -m benchmarks.gpu DRAWS FOLDER` renders the clips of a file of `python -m benchmarks frames list`.

Each becomes a video without noise, by its line in the file: `python -m benchmarks frames fill` makes clips of them.
"""

from benchmarks.gpu.stand_ins import stand_in

stand_in()

import argparse  # noqa: E402
import json  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from concurrent.futures import Future, ProcessPoolExecutor  # noqa: E402
from dataclasses import replace  # noqa: E402
from pathlib import Path  # noqa: E402
from unittest.mock import patch  # noqa: E402

import rssc.simulation.clip  # noqa: E402
from benchmarks.draws import Draw, clip_of  # noqa: E402
from benchmarks.gpu.grey_video import write_grey  # noqa: E402
from benchmarks.gpu.renderer import CompiledRenderer, compiled  # noqa: E402


def render_draw(drawn: Draw, library: Path, path: Path, quantiser: int) -> float:
    """Renders a clip; returns the seconds it took."""
    began = time.perf_counter()
    CompiledRenderer.library = library
    with patch.object(rssc.simulation.clip, "Renderer", CompiledRenderer):
        clip = clip_of(drawn)
    without_noise = replace(clip, options=replace(clip.options, image_noise=0.0))
    write_grey(without_noise.frames, path, 0 if drawn.crf is None else quantiser)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("draws", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=16)
    parser.add_argument("--cpu", action="store_true", help="without a GPU, slowly")
    parser.add_argument("--quantiser", type=int, default=0, help="for clips that are compressed anyway; 0 for no loss")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    draws = [Draw(**json.loads(line)) for line in options.draws.read_text().splitlines()]
    with tempfile.TemporaryDirectory() as scratch, ProcessPoolExecutor(options.jobs) as pool:
        library = compiled(Path(scratch), gpu=not options.cpu)
        tasks: list[Future[float]] = []
        for number, drawn in enumerate(draws):
            path = options.folder / f"{number:04d}.mkv"
            tasks.append(pool.submit(render_draw, drawn, library, path, options.quantiser))
        for drawn, task in zip(draws, tasks, strict=True):
            print(f"{task.result():6.1f} s  {drawn}", flush=True)


if __name__ == "__main__":
    main()
