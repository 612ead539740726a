"""The two real clips of the shared data against their laboratory values, with the limits they have to keep."""

import json
from dataclasses import dataclass

from rssc.datasets.shared import require_data
from rssc.pipeline.calibrate import calibrate


@dataclass(frozen=True)
class Truth:
    """Laboratory values, and how far off an estimate may be (in the parameter's own unit; none where not asked)."""

    values: dict[str, float]
    limits: dict[str, float]


CLIP_A = Truth(
    {"readout_ratio": 0.6036, "fx": 739.165, "fy": 739.144, "cx": 625.826, "cy": 517.337}, {"readout_ratio": 0.006}
)
GOPRO = Truth(
    {"readout_ratio": 0.949, "fx": 868.10, "fy": 881.58, "cx": 987.87, "cy": 529.78},
    {"readout_ratio": 0.01, "fx": 0.004 * 868.10, "fy": 0.01 * 881.58, "cx": 5.0, "cy": 5.0},
)


def main(argv: list[str]) -> int:
    del argv
    camchain = require_data("tum_rsvi", "camchain.yaml")
    runs = {
        "clip_a": (CLIP_A, require_data("tum_rsvi", "clip_a", "images"),
                   {"fps": 20.0, "undistorted_from": f"{camchain}:cam1"}),
        "gopro": (GOPRO, require_data("gopro_hero3", "images"), {"fps": 29.97}),
    }  # fmt: skip
    figures: dict[str, float] = {}
    fine = True
    for name, (truth, source, options) in runs.items():
        calibration = calibrate(source, **options)
        lens = calibration.camera.lens
        print(f"\n{name}: {lens.model} lens, {calibration.status} {'; '.join(calibration.reasons)}")
        print(f"{'parameter':14s} {'estimate':>10s} {'sigma':>9s} {'truth':>10s} {'off by':>10s} {'limit':>9s}")
        for parameter, true in truth.values.items():
            ratio = calibration.camera.shutter.readout_ratio
            value = ratio if parameter == "readout_ratio" else float(getattr(lens, parameter))
            limit = truth.limits.get(parameter)
            fine &= limit is None or abs(value - true) <= limit
            shown = "-" if limit is None else f"{limit:.4f}"
            print(
                f"{parameter:14s} {value:10.4f} {calibration.sigma(parameter):9.4f} {true:10.4f} {value - true:+10.4f} "
                f"{shown:>9s}"
            )
            figures[f"{name}_{parameter}_error"] = value - true
    print(json.dumps({**figures, "within_limits": fine}))
    return 0 if fine else 1
