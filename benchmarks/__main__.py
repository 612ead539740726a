"""`python -m benchmarks NAME [options]`."""

import importlib
import sys

NAMES = {
    "golden": "the five methods against the optimum of the authors' code",
    "honesty": "errors of te against its covariance over simulated scenes",
    "solver": "time per iteration, memory and growth with the number of frames",
    "tracks": "errors of the tracks against the truth of rendered clips",
    "real": "the two real clips against their laboratory values",
    "coverage": "whether error bars hold, and whether clips that cannot tell are said to",
    "rendered": "accuracy of the whole pipeline on rendered clips",
    "rectify": "rectified frames against global-shutter renderings, and their speed",
    "pictures": "makes the two pictures of the README under docs/pictures (needs Chromium)",
    "target": "target-based calibration on rendered boards",
    "pipeline": "time of the whole pipeline against COLMAP on clip A",
}


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1] not in NAMES:
        print("usage: python -m benchmarks NAME [options]\n")
        print("\n".join(f"  {name:10s} {text}" for name, text in NAMES.items()))
        return 2
    return importlib.import_module(f"benchmarks.{sys.argv[1]}").main(sys.argv[2:]) or 0


if __name__ == "__main__":
    sys.exit(main())
