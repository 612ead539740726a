"""Time per frame of calibrating longer and longer pieces of one rendered clip, up to 1,000 frames."""

import argparse
import tempfile
import time
from pathlib import Path

from benchmarks.limits import Figures, Limit, check
from rssc.pipeline.calibrate import calibrate
from rssc.simulation.clip import ClipOptions, render_clip
from rssc.simulation.clip_files import write_clip

LIMITS = (Limit("growth_ratio", most=1.0), Limit("growth_ratio_whole", most=1.0))
"""Eight times the frames must not take longer per frame."""
_SIZES = (125, 350, 1000)


def seconds_per_frame(folder: Path, whole: bool) -> dict[int, float]:
    """Of each number of frames, printed by stage.

    Args:
        folder: Images of the whole clip.
        whole: Solve all frames at once, instead of stretches of them as `rssc calibrate` does.
    """
    calibrate(folder, fps=30.0, frames=(0, 40))  # compiles the kernels
    images = sorted(folder.glob("*.png"))
    result: dict[int, float] = {}
    for size in _SIZES:
        piece = folder / f"first{size}{'_whole' if whole else ''}"
        piece.mkdir()
        for image in images[:size]:
            (piece / image.name).symlink_to(image)
        began = time.perf_counter()
        calibration = calibrate(piece, fps=30.0, frames=(0, size) if whole else None)
        result[size] = (time.perf_counter() - began) / size
        stages = calibration.statistics.seconds
        shown = ", ".join(f"{name} {1e3 * value / size:.0f}" for name, value in stages.items())
        print(f"{size:5d} frames: {1e3 * result[size]:6.0f} ms per frame ({shown})", flush=True)
    return result


def measure(argv: list[str]) -> Figures:
    argparse.ArgumentParser(prog="python -m benchmarks growth", description=__doc__).parse_args(argv)
    ratios: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        write_clip(
            render_clip(ClipOptions(480, 360, max(_SIZES), motion="hand_held", seed=5)), Path(folder), video=False
        )
        for name, whole in (("stretches", False), ("whole", True)):
            print("all frames in one solve (--frames 0:N)" if whole else "stretches of long footage (the default)")
            found = seconds_per_frame(Path(folder), whole)
            ratios[name] = found[max(_SIZES)] / found[min(_SIZES)]
            print(f"from {min(_SIZES)} to {max(_SIZES)} frames the time per frame grows {ratios[name]:.2f}x\n")
    return {"growth_ratio": ratios["stretches"], "growth_ratio_whole": ratios["whole"]}


def main(argv: list[str]) -> int:
    return check(measure(argv), LIMITS)
