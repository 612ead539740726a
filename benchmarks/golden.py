"""The five methods on one fixed problem, against the optimum that the authors' own code reaches on it."""

import json

import numpy as np

import rssc
from benchmarks.data import require_data
from rssc.model import Camera, Lens, Neighbours, Scene, Shutter, Tracks
from rssc.solver import METHODS, Adjustment

PARAMETERS = ("fx", "fy", "cx", "cy", "readout_ratio")
_NODES = {"q": ("prev", "here", "next"), "h": ("prev2", "prev", "here", "next")}


def load_expected() -> dict[str, dict[str, float]]:
    """Optimum of each method."""
    return json.loads(require_data("golden", "expected.json").read_text())


def load_scene(method: str, readout_ratio: float | None = None) -> Scene:
    """The problem as a method sees it: positions in neighbouring frames come with the data."""
    with np.load(require_data("golden", "problem.npz")) as data:
        width, height = (int(size) for size in data["image_size"])
        start = float(data["readout_ratio_init"]) if readout_ratio is None else readout_ratio
        neighbours = None
        if method != "te":
            kind = method[-1]
            keep = data[f"{kind}_frame"] <= (48 if method.startswith("ce") else 47)
            frames = data[f"{kind}_frame"][keep]
            neighbours = Neighbours(
                frames,
                data[f"{kind}_point"][keep],
                frames[:, None] + np.array(METHODS[method].node_offsets),
                np.stack([data[f"{kind}_{node}"][keep] for node in _NODES[kind]], axis=1),
            )
        return Scene(
            Camera(width, height, Lens("pinhole", *data["intrinsics_init"]), Shutter(start)),
            Tracks(50, 500, data["te_frame"], data["te_point"], data["te_uv"]),
            data["points_init"],
            data["cam_from_world_init"],
            neighbours=neighbours,
        )


def solve(method: str, readout_ratio: float | None = None) -> Adjustment:
    """Adjusts the problem under the conventions of `expected.json` (0.5 on the residual, so 0.25 on its square)."""
    return rssc.adjust(
        load_scene(method, readout_ratio),
        method,
        importance=0.25,
        reference=0.5 if method == "dpq" else "first_row",
        max_iterations=200,
        cost_tolerance=1e-10,
    )


def estimates(adjustment: Adjustment) -> dict[str, float]:
    camera = adjustment.scene.camera
    lens = camera.lens
    return dict(zip(PARAMETERS, (lens.fx, lens.fy, lens.cx, lens.cy, camera.shutter.readout_ratio), strict=True))


def deviations(method: str, adjustment: Adjustment) -> dict[str, float]:
    """Largest relative deviation of the parameters, and that of the sum of squares."""
    expected, found = load_expected()[method], estimates(adjustment)
    return {
        "parameters": max(abs(found[name] / expected[name] - 1) for name in PARAMETERS),
        "sum_of_squares": abs(adjustment.summary.cost / expected["sum_of_squares"] - 1),
    }


def main(argv: list[str]) -> None:
    del argv
    print("Deviation from the authors' optimum, from three starts of the readout ratio\n")
    print(f"{'method':7s} {'start':>6s} {'iterations':>11s} {'parameters':>11s} {'sum of squares':>15s}  reason")
    result = {}
    for method in METHODS:
        worst = {"parameters": 0.0, "sum_of_squares": 0.0}
        for start in (None, 0.2, 0.9):
            adjustment = solve(method, start)
            deviation = deviations(method, adjustment)
            worst = {key: max(worst[key], deviation[key]) for key in worst}
            shown = "stored" if start is None else f"{start}"
            print(
                f"{method:7s} {shown:>6s} {len(adjustment.summary.iterations):11d} {deviation['parameters']:11.1e} "
                f"{deviation['sum_of_squares']:15.1e}  {adjustment.summary.reason}"
            )
        result[method] = worst
    print(json.dumps(result))
