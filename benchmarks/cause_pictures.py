"""The pictures of docs/causes.md, drawn from the simulation of faults: the camera, its clock, its frames."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from rssc.simulation.clip import Clip, ClipOptions, render_clip, typical_lens
from rssc.simulation.faults import make_faults
from rssc.simulation.faults.fast_rotation import fast_rotation
from rssc.simulation.faults.picture import add_bars, add_overlay, interlace

Axes = Any
"""Of matplotlib, whose types are partly unknown."""
CAMERA_NAME, TIME_NAME, PICTURE_NAME = "causes_camera.png", "causes_time.png", "causes_picture.png"
_FRAMES = 24
_READOUT = 0.6
_BLUE, _RED, _GREY = "#1f6fb4", "#c8452f", "#9aa0a6"
_DPI = 110


def draw_camera(axes: list[Axes], clip: Clip) -> None:
    """Rotation of a stabilised camera, a principal point, a focal length, and vibration."""
    times = np.linspace(0, _FRAMES - 1, 20 * _FRAMES)
    turned = np.degrees(np.unwrap(np.arctan2(*clip.motion.cam_from_world(times)[:, 1, [2, 1]].T)))
    fast = np.degrees(fast_rotation(clip.motion, times)[:, 0])
    a, b, c, d = axes
    a.plot(times, turned - turned[0], color=_GREY, lw=1, label="the hand")
    for frame in range(_FRAMES - 1):
        rows = (times >= frame) & (times <= frame + _READOUT)
        back = fast[np.searchsorted(times, frame + _READOUT / 2)]
        a.plot(
            times[rows], (turned - turned[0] + back)[rows], color=_RED, lw=2, label="the video" if not frame else None
        )
    _label(a, "a  electronic stabilisation", "frames", "tilt in degrees")
    stabilised = make_faults("optical_stabilisation", 2.0, clip.motion, clip.camera, _FRAMES, 1).lens
    breathing = make_faults("focus_breathing", 0.01, clip.motion, clip.camera, _FRAMES, 1).lens
    assert stabilised is not None and breathing is not None
    b.plot(times, stabilised.offsets(times)[:, 1], color=_BLUE)
    _label(b, "b  optical stabilisation", "frames", "principal point in px")
    c.plot(times, 100 * (breathing.scales(times) - 1), color=_BLUE)
    _label(c, "c  focus breathing", "frames", "focal length in %")
    few = times[times < 8]
    shaken = 0.05 * np.sin(2 * np.pi * 0.93 * few)
    d.plot(few, shaken, color=_GREY, lw=1, label="the camera")
    for frame in range(8):
        rows = (few >= frame) & (few <= frame + 0.25)
        d.plot(few[rows], shaken[rows], color=_RED, lw=2, label="what rows see" if not frame else None)
    _label(d, "d  vibration", "frames", "tilt in degrees")


def draw_times(axes: list[Axes], clip: Clip) -> None:
    """When frames were taken, above, and when the file says they were, below."""
    even = np.arange(10.0)
    jitter = even + 0.12 * np.random.default_rng(2).standard_normal(10)
    dropped = np.delete(np.arange(11.0), 5)
    shown = np.floor(0.8 * even)
    _times(axes[0], "e  stamps that jitter", even, jitter)
    _times(axes[1], "f  a missing frame", dropped, even)
    _times(axes[2], "g  24 pictures stored as 30", shown * 1.25, even)
    _times(axes[3], "h  slow motion", even / 4, even)


def draw_pictures(axes: list[Axes], clip: Clip) -> None:
    """Frames with bars, words, interlaced rows, and a cut."""
    frames = np.stack([clip.frame(i) for i in (4, 5)])
    other = render_clip(_options(seed=12)).frame(4)
    half = np.hstack([frames[0][:, : frames.shape[2] // 2], other[:, frames.shape[2] // 2 :]])
    pictures = {
        "i  black bars": add_bars(frames, rows=(28, 28))[0],
        "j  words in the picture": add_overlay(frames)[0],
        "k  interlaced rows": interlace(frames)[0][60:150, 90:210],
        "l  a cut": half,
    }
    for axis, (title, picture) in zip(axes, pictures.items(), strict=True):
        axis.imshow(picture, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        axis.set_title(title, fontsize=9, loc="left")
        axis.set_axis_off()


def _times(axis: Axes, title: str, taken: Any, said: Any) -> None:
    for one, other in zip(taken, said, strict=True):
        axis.plot([one, other], [1, 0], color=_GREY, lw=0.7)
    axis.plot(taken, np.ones(len(taken)), "o", color=_BLUE, ms=4)
    axis.plot(said, np.zeros(len(said)), "o", color=_RED, ms=4)
    axis.set_yticks([0, 1], ["stored", "taken"], fontsize=8)
    axis.set_ylim(-0.4, 1.4)
    axis.set_title(title, fontsize=9, loc="left")
    axis.tick_params(labelsize=7)


def _label(axis: Axes, title: str, across: str, up: str) -> None:
    axis.set_title(title, fontsize=9, loc="left")
    axis.set_xlabel(across, fontsize=8)
    axis.set_ylabel(up, fontsize=8)
    axis.tick_params(labelsize=7)
    if axis.get_legend_handles_labels()[0]:
        axis.legend(fontsize=7, frameon=False)


def _options(seed: int) -> ClipOptions:
    lens = typical_lens("radial", 320, 240)
    return ClipOptions(320, 240, _FRAMES, lens=lens, readout_ratio=_READOUT, motion="hand_held", seed=seed)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks cause_pictures", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/pictures"))
    options = parser.parse_args(argv)
    import matplotlib

    matplotlib.use("agg")
    from matplotlib.figure import Figure

    clip = render_clip(_options(seed=3))
    options.output.mkdir(parents=True, exist_ok=True)
    drawings = {CAMERA_NAME: (draw_camera, 5.0), TIME_NAME: (draw_times, 3.2), PICTURE_NAME: (draw_pictures, 5.4)}
    for name, (draw, height) in drawings.items():
        figure: Any = Figure(figsize=(8, height), layout="constrained")
        draw(list(figure.subplots(2, 2).ravel()), clip)
        path = options.output / name
        figure.savefig(path, dpi=_DPI)
        print(f"{path}: {path.stat().st_size / 1e3:.0f} kB")
    return 0
