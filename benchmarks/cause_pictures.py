"""The pictures of docs/causes.md, one for each cause, and that of docs/recording.md.

Motions, lenses and frames are those of the simulation; times, residuals and estimates are sketches.
"""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rssc.footage.video import Video
from rssc.model.finding import CAUSES
from rssc.simulation.clip import Clip, ClipOptions, render_clip, typical_lens
from rssc.simulation.clip_files import write_video
from rssc.simulation.faults import make_faults
from rssc.simulation.faults.fast_rotation import fast_rotation
from rssc.simulation.faults.picture import add_bars, add_overlay, interlace

Axis = Any
"""Of matplotlib, whose types are partly unknown."""
Draw = Callable[[Axis, Clip], None]
_FRAMES = 24
_READOUT = 0.6
_BLUE, _RED, _GREY = "#1f6fb4", "#c8452f", "#9aa0a6"
_TIMES = np.linspace(0, _FRAMES - 1, 20 * _FRAMES)
_EVEN = np.arange(10.0)
_SLOWING = 0.9 * np.cumsum(np.r_[0, 0.5 + 0.12 * _EVEN[1:]])


def _tilt(clip: Clip) -> Any:
    """Degrees at `_TIMES`, from the first."""
    turned = np.degrees(np.unwrap(np.arctan2(*clip.motion.cam_from_world(_TIMES)[:, 1, [2, 1]].T)))
    return turned - turned[0]


def _stabilised(axis: Axis, clip: Clip) -> None:
    turned, fast = _tilt(clip), np.degrees(fast_rotation(clip.motion, _TIMES)[:, 0])
    axis.plot(_TIMES, turned, color=_GREY, lw=1, label="the hand")
    for frame in range(_FRAMES - 1):
        rows = (frame <= _TIMES) & (frame + _READOUT >= _TIMES)
        back = fast[np.searchsorted(_TIMES, frame + _READOUT / 2)]
        axis.plot(_TIMES[rows], (turned + back)[rows], color=_RED, lw=2, label=None if frame else "the video")
    _label(axis, "frames", "tilt in degrees")


def _steadied(axis: Axis, clip: Clip) -> None:
    fast = np.degrees(fast_rotation(clip.motion, _TIMES)[:, 0])
    axis.plot(_TIMES, fast, color=_GREY, lw=1, label="in a hand")
    axis.plot(_TIMES, 0.03 * fast, color=_RED, label="on a gimbal")
    _label(axis, "frames", "fast tilt in degrees")


def _shifting_lens(axis: Axis, clip: Clip) -> None:
    lens = make_faults("optical_stabilisation", 2.0, clip.motion, clip.camera, _FRAMES, 1).lens
    assert lens is not None
    axis.plot(_TIMES, lens.offsets(_TIMES)[:, 1], color=_BLUE)
    _label(axis, "frames", "principal point in px")


def _focal_length(fault: str, amount: float) -> Draw:
    def draw(axis: Axis, clip: Clip) -> None:
        lens = make_faults(fault, amount, clip.motion, clip.camera, _FRAMES, 1).lens
        assert lens is not None
        axis.plot(_TIMES, 100 * (lens.scales(_TIMES) - 1), color=_BLUE)
        _label(axis, "frames", "focal length in %")

    return draw


def _vibration(axis: Axis, clip: Clip) -> None:
    few = _TIMES[_TIMES < 8]
    shaken = 0.05 * np.sin(2 * np.pi * 0.93 * few)
    axis.plot(few, shaken, color=_GREY, lw=1, label="the camera")
    for frame in range(8):
        rows = (few >= frame) & (few <= frame + 0.25)
        axis.plot(few[rows], shaken[rows], color=_RED, lw=2, label=None if frame else "what rows see")
    _label(axis, "frames", "tilt in degrees")


def _misfit(axis: Axis, clip: Clip) -> None:
    rng = np.random.default_rng(3)
    axis.plot(*rng.normal(0, 2.0, (2, 150)), ".", color=_RED, ms=3, label="no camera explains them")
    axis.plot(*rng.normal(0, 0.15, (2, 150)), ".", color=_BLUE, ms=3, label="one does")
    axis.set_aspect("equal")
    _label(axis, "residual in px", "residual in px")


def _stamps(taken: Any, said: Any) -> Draw:
    """When frames were taken, above, and when the file says they were, below."""

    def draw(axis: Axis, clip: Clip) -> None:
        for one, other in zip(taken, said, strict=True):
            axis.plot([one, other], [1, 0], color=_GREY, lw=0.7)
        axis.plot(taken, np.ones(len(taken)), "o", color=_BLUE, ms=4)
        axis.plot(said, np.zeros(len(said)), "o", color=_RED, ms=4)
        axis.set_yticks([0, 1], ["stored", "taken"], fontsize=8)
        axis.set_ylim(-0.4, 1.4)
        _label(axis, "frame intervals of the file", "")

    return draw


def _estimates(values: Any, bars: Any, names: list[str]) -> Draw:
    """Readouts with their error bars."""

    def draw(axis: Axis, clip: Clip) -> None:
        axis.errorbar(values, range(len(names)), xerr=bars, fmt="o", color=_BLUE, capsize=3, ms=4)
        axis.set_yticks(range(len(names)), names, fontsize=8)
        axis.set_ylim(-0.6, len(names) - 0.4)
        axis.set_xlim(0.3, 0.9)
        _label(axis, "readout ratio", "")

    return draw


def _pictures(make: Callable[[Clip], list[Any]]) -> Draw:
    def draw(axis: Axis, clip: Clip) -> None:
        shown = make(clip)
        gap = np.full((shown[0].shape[0], 6), 255, np.uint8)
        row = np.hstack([part for picture in shown for part in (picture, gap)][:-1])
        axis.imshow(row, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        axis.set_axis_off()

    return draw


def _frames(clip: Clip, *numbers: int) -> Any:
    return np.stack([clip.frame(i) for i in numbers])


def _compressed(clip: Clip) -> list[Any]:
    """A part of a frame as it was, and as a strongly compressed video shows it."""
    number = 7
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clip.mp4"
        write_video(_frames(clip, *range(number + 1)), path, 30.0, crf=38)
        _, shown = next(Video(path, None).read(np.array([number])))
    return [picture[60:150, 90:210] for picture in (clip.frame(number), shown)]


def _other(seed: int = 12) -> Any:
    return render_clip(clip_options(seed)).frame(4)


def _readout_lines(axis: Axis, clip: Clip) -> None:
    """How far each row of a frame is from where a global shutter would have put it."""
    rows = np.arange(240)
    for motion, colour in (("static", _GREY), ("pan", _BLUE), ("hand_held", "#3a9e5f"), ("shaky", _RED)):
        options = clip_options(3, motion)
        moving = render_clip(options)
        times = 6 + _READOUT * rows / 240
        ahead = moving.motion.cam_from_world(times)[:, :3, :3] @ moving.motion.cam_from_world(times[:1])[0, :3, :3].T
        pixels = moving.camera.lens.fx * ahead[:, 0, 2] / ahead[:, 2, 2]
        axis.plot(pixels, rows, color=colour, label=motion.replace("_", "-"))
    axis.invert_yaxis()
    _label(axis, "px to the side of where the first row saw it", "row")


DRAWINGS: dict[str, Draw] = {
    "electronic_stabilisation": _stabilised,
    "steadied": _steadied,
    "optical_stabilisation": _shifting_lens,
    "focus_breathing": _focal_length("focus_breathing", 0.01),
    "zoom": _focal_length("zoom", 0.3),
    "vibration": _vibration,
    "compression": _pictures(_compressed),
    "misfit": _misfit,
    "frame_times": _stamps(_EVEN, _EVEN + 0.12 * np.random.default_rng(2).standard_normal(10)),
    "capture_jitter": _stamps(_EVEN + 0.1 * np.random.default_rng(4).standard_normal(10), _EVEN),
    "dropped_frames": _stamps(np.delete(np.arange(11.0), 5), _EVEN),
    "missing_frames": _stamps(np.delete(np.arange(11.0), 5), np.delete(np.arange(11.0), 5)),
    "misplaced": _stamps(np.array([0, 1, 2, 7, 4, 5, 6, 3, 8, 9.0]), _EVEN),
    "variable_rate": _stamps(_SLOWING, _SLOWING),
    "cadence": _stamps(np.floor(0.8 * _EVEN) * 1.25, _EVEN),
    "repeats": _stamps(np.array([0, 1, 2, 3, 3, 5, 6, 6, 8, 9.0]), _EVEN),
    "slow_motion": _stamps(_EVEN / 4, _EVEN),
    "capture_rate": _stamps(_EVEN / 4, _EVEN / 4),
    "time_lapse": _stamps(_EVEN * 4, _EVEN),
    "bars": _pictures(lambda clip: [add_bars(_frames(clip, 4), rows=(28, 28))[0]]),
    "overlay": _pictures(lambda clip: [add_overlay(_frames(clip, 4, 5))[0]]),
    "interlacing": _pictures(lambda clip: [interlace(_frames(clip, 4, 5))[0][60:150, 90:210]]),
    "cut": _pictures(lambda clip: [clip.frame(4), _other()]),
    "short_piece": _pictures(lambda clip: [clip.frame(4), _other(), _other(14)]),
    "frozen": _pictures(lambda clip: 3 * [clip.frame(4)]),
    "same_clip": _pictures(lambda clip: 2 * [np.hstack([clip.frame(4)[:, :160], clip.frame(20)[:, :160]])]),
    "other_camera": _estimates([0.45, 0.75], [0.01, 0.01], ["b.mp4", "a.mp4"]),
    "contradiction": _estimates([0.40, 0.82, 0.55], [0.01, 0.01, 0.01], ["third", "second", "first stretch"]),
    "disagreement": _estimates([0.56, 0.61, 0.66], [0.012, 0.012, 0.012], ["third", "second", "first window"]),
    "uncertain": _estimates([0.6], [0.22], ["the whole clip"]),
}  # fmt: skip


def _label(axis: Axis, across: str, up: str) -> None:
    axis.set_xlabel(across, fontsize=8)
    axis.set_ylabel(up, fontsize=8)
    axis.tick_params(labelsize=7)
    if axis.get_legend_handles_labels()[0]:
        axis.legend(fontsize=7, frameon=False)


def clip_options(seed: int, motion: str = "hand_held") -> ClipOptions:
    lens = typical_lens("radial", 320, 240)
    return ClipOptions(320, 240, _FRAMES, lens=lens, readout_ratio=_READOUT, motion=motion, seed=seed)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks cause_pictures", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/pictures"))
    options = parser.parse_args(argv)
    import matplotlib

    matplotlib.use("agg")
    from matplotlib.figure import Figure

    assert set(CAUSES) <= set(DRAWINGS), "every cause has its picture"
    clip = render_clip(clip_options(3))
    folder = options.output / "causes"
    folder.mkdir(parents=True, exist_ok=True)
    drawings = {folder / f"{name}.png": DRAWINGS[name] for name in CAUSES}
    for path, draw in {**drawings, options.output / "recording.png": _readout_lines}.items():
        figure: Any = Figure(figsize=(4.6, 2.2), layout="constrained")
        draw(figure.subplots(), clip)
        figure.savefig(path, dpi=100)
        print(f"{path}: {path.stat().st_size / 1e3:.0f} kB")
    return 0
