"""The golden problem of the shared data: one fixed bundle adjustment, and the optimum of each method on it.

The optimum is the one that the authors' own published code reaches. `adjust_golden` solves the same problem under the
conventions that the shared data state: 0.5 on the rectified residuals of dp (0.25 on their squares), the reference at
the start of a frame but for dpq, where it is half a frame interval later.
"""

import json
from dataclasses import dataclass

import numpy as np

from rssc.datasets.shared import require_data
from rssc.model.camera import Camera, Shutter
from rssc.model.lens import Lens
from rssc.model.scene import Neighbours, Scene
from rssc.model.tracks import Tracks
from rssc.solver.bundle import Adjustment, adjust
from rssc.solver.methods import METHODS

PARAMETERS = ("fx", "fy", "cx", "cy", "readout_ratio")
STARTS = (None, 0.2, 0.9)
"""Readout ratios to start from; None for the one that is stored with the problem."""
_FRAMES, _POINTS = 50, 500
_LAST_FRAME_CE, _LAST_FRAME_DP = 48, 47
_NODES = {"q": ("prev", "here", "next"), "h": ("prev2", "prev", "here", "next")}


@dataclass(frozen=True)
class Deviation:
    """How far an adjustment ended from the authors' optimum, relative to it."""

    parameters: float
    """The largest over the five parameters."""
    sum_of_squares: float


def load_optimum(method: str) -> dict[str, float]:
    """Values of `PARAMETERS` and `sum_of_squares` at the optimum of a method."""
    optima: dict[str, dict[str, float]] = json.loads(require_data("golden", "expected.json").read_text())
    return optima[method]


def load_scene(method: str, readout_ratio: float | None = None) -> Scene:
    """The problem as a method sees it: positions in neighbouring frames come with the data."""
    with np.load(require_data("golden", "problem.npz")) as data:
        width, height = (int(size) for size in data["image_size"])
        fx, fy, cx, cy = (float(value) for value in data["intrinsics_init"])
        start = float(data["readout_ratio_init"]) if readout_ratio is None else readout_ratio
        neighbours = None
        if method != "te":
            kind = method[-1]
            keep = data[f"{kind}_frame"] <= (_LAST_FRAME_CE if method.startswith("ce") else _LAST_FRAME_DP)
            frames = data[f"{kind}_frame"][keep]
            neighbours = Neighbours(
                frames,
                data[f"{kind}_point"][keep],
                frames[:, None] + np.array(METHODS[method].node_offsets),
                np.stack([data[f"{kind}_{node}"][keep] for node in _NODES[kind]], axis=1),
            )
        return Scene(
            Camera(width, height, Lens("pinhole", fx, fy, cx, cy), Shutter(start)),
            Tracks(_FRAMES, _POINTS, data["te_frame"], data["te_point"], data["te_uv"]),
            data["points_init"],
            data["cam_from_world_init"],
            neighbours=neighbours,
        )


def adjust_golden(method: str, readout_ratio: float | None = None) -> Adjustment:
    """Adjusts the problem, from another readout ratio where one is given."""
    return adjust(
        load_scene(method, readout_ratio),
        method,
        importance=0.25,
        reference=0.5 if method == "dpq" else "first_row",
        max_iterations=200,
        cost_tolerance=1e-10,
    )


def parameters_of(camera: Camera) -> dict[str, float]:
    """Values of `PARAMETERS`."""
    lens = camera.lens
    return dict(zip(PARAMETERS, (lens.fx, lens.fy, lens.cx, lens.cy, camera.shutter.readout_ratio), strict=True))


def deviation(method: str, adjustment: Adjustment) -> Deviation:
    """Compares an adjustment of the problem with the optimum of its method."""
    optimum, found = load_optimum(method), parameters_of(adjustment.scene.camera)
    return Deviation(
        max(abs(found[name] / optimum[name] - 1) for name in PARAMETERS),
        abs(adjustment.summary.cost / optimum["sum_of_squares"] - 1),
    )
