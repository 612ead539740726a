"""The picture of docs/app.md: `rssc app` in a browser, with a rendered clip that was checked, and then calibrated."""

import argparse
import sys
import tempfile
from pathlib import Path

import cv2
import numpy as np

from tests.browser import MISSING, App, chromium, open_browser

NAME = "app.png"
_VIEW = (920, 760)
_GAP_PX = 8
_SHADES, _PALE = 16, 225
"""Steps between shades of a colour that are kept, but for the pale ones of the page: a smaller file."""
_MOST_MS = 600_000.0
"""That a job may take."""


def app_picture(folder: Path) -> np.ndarray:
    """(height, width, 3) BGR: the page after the check, and after the calibration beside it."""
    import rssc

    clip = rssc.simulate(folder / "clip", lens="radial", readout_ratio=0.62, seed=1).rename(folder / "kitchen.mp4")
    server = App(folder / "app")
    try:
        with open_browser() as browser:
            page = browser.new_context(viewport={"width": _VIEW[0], "height": _VIEW[1]}).new_page()
            page.goto(server.address)
            page.set_input_files("#file", clip)
            page.wait_for_selector("#frames img", timeout=_MOST_MS)
            page.wait_for_timeout(1000)
            pictures = [page.screenshot()]
            page.click("#start")
            page.wait_for_selector(".quantities", timeout=_MOST_MS)
            page.wait_for_timeout(1000)
            pictures.append(page.screenshot())
    finally:
        server.stop()
    before, after = (cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR) for png in pictures)
    gap = np.full((_VIEW[1], _GAP_PX, 3), 128, np.uint8)
    both = np.hstack([np.asarray(before), gap, np.asarray(after)])
    return np.where(both.max(axis=2, keepdims=True) < _PALE, both // _SHADES * _SHADES + _SHADES // 2, both)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks app_picture", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/pictures"))
    options = parser.parse_args(argv)
    if chromium() is None:
        print(MISSING, file=sys.stderr)
        return 2
    options.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        picture = app_picture(Path(folder))
    path = options.output / NAME
    cv2.imwrite(str(path), np.ascontiguousarray(picture), [cv2.IMWRITE_PNG_COMPRESSION, 9])
    print(f"{path}: {picture.shape[1]} x {picture.shape[0]}, {path.stat().st_size / 1e3:.0f} kB")
    return 0
