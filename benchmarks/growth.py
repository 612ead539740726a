"""Time per frame of calibrating longer and longer pieces of one rendered clip, up to 1,000 frames."""

import argparse
import json
import tempfile
import time
from pathlib import Path

from rssc.pipeline.calibrate import calibrate
from rssc.simulation.clip import ClipOptions, render_clip
from rssc.simulation.clip_files import write_clip

_SIZES = (125, 350, 1000)


def seconds_per_frame(folder: Path, whole: bool) -> dict[int, float]:
    """Of each size, printed by stage; all frames in one solve where `whole`, as `rssc calibrate` does otherwise."""
    calibrate(folder, fps=30.0, frames=(0, 40))  # warm
    images = sorted(folder.glob("*.png"))
    result = {}
    for size in _SIZES:
        piece = folder / f"first{size}{'_whole' if whole else ''}"
        piece.mkdir()
        for image in images[:size]:
            (piece / image.name).symlink_to(image)
        began = time.perf_counter()
        calibration = calibrate(piece, fps=30.0, frames=(0, size) if whole else None)
        result[size] = (time.perf_counter() - began) / size
        stages = calibration.statistics.seconds
        assert isinstance(stages, dict)
        shown = ", ".join(f"{name} {1e3 * value / size:.0f}" for name, value in stages.items())
        print(f"{size:5d} frames: {1e3 * result[size]:6.0f} ms per frame ({shown})", flush=True)
    return result


def main(argv: list[str]) -> None:
    argparse.ArgumentParser(prog="python -m benchmarks growth", description=__doc__).parse_args(argv)
    ratios = {}
    with tempfile.TemporaryDirectory() as folder:
        write_clip(
            render_clip(ClipOptions(480, 360, max(_SIZES), motion="hand_held", seed=5)), Path(folder), video=False
        )
        for name, whole in (("stretches", False), ("whole", True)):
            print(
                "all frames in one solve (--frames 0:N)"
                if whole
                else "as rssc calibrate does: stretches of long footage"
            )
            found = seconds_per_frame(Path(folder), whole)
            ratios[name] = found[max(_SIZES)] / found[min(_SIZES)]
            print(f"from {min(_SIZES)} to {max(_SIZES)} frames the time per frame grows {ratios[name]:.2f}x\n")
    print(json.dumps({"growth_ratio": ratios["stretches"], "growth_ratio_whole": ratios["whole"]}))
