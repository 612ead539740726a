"""The pictures of the README and the tour, from rendered clips: parts of the demo's report, a frame before, after."""

import argparse
import sys
import tempfile
from pathlib import Path

import cv2
import numpy as np

from tests.browser import MISSING, chromium, open_browser

REPORT_NAME, BEFORE_AFTER_NAME = "report.jpg", "before_after.jpg"
REPORT_PARTS = {"report_fit.jpg": "fit", "report_certainty.jpg": "certainty", "report_motion.jpg": "motion"}
"""The first figure of these sections of the report, for the tour."""
_REPORT_VIEW = (820, 1130)
_JPEG_QUALITY = 85
_DRAWING_MS = 1500
"""Until figures that are drawn when they come into view are there."""
_GAP_PX = 8


def report_pictures(report: Path) -> dict[str, np.ndarray]:
    """(height, width, 3) BGR screenshots by name: the top of a report, and some of its figures."""
    width, height = _REPORT_VIEW
    with open_browser() as browser:
        page = browser.new_context(viewport={"width": width, "height": height}, offline=True).new_page()
        page.goto(report.resolve().as_uri())
        shots = {REPORT_NAME: page.screenshot()}
        for name, section in REPORT_PARTS.items():
            figure = page.locator(f"section[aria-labelledby={section}] figure").first
            figure.scroll_into_view_if_needed()
            page.wait_for_timeout(_DRAWING_MS)
            shots[name] = figure.screenshot()
    return {
        name: np.asarray(cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR)) for name, png in shots.items()
    }


def before_after_picture(folder: Path) -> np.ndarray:
    """(height, width, 3) BGR: the fastest frame of a shaky clip as rendered, and rectified by its own calibration."""
    from rssc.model import Lens
    from rssc.outputs.rectify import rectify_frame
    from rssc.outputs.report.pictures import fastest_frame
    from rssc.outputs.report.residuals import residuals_of
    from rssc.pipeline.calibrate import calibrate
    from rssc.simulation.clip import ClipOptions, render_clip
    from rssc.simulation.clip_files import VIDEO_NAME, write_clip

    lens = Lens("radial", 512.0, 509.0, 324.0, 236.0, (-0.12, 0.03))
    clip = render_clip(ClipOptions(640, 480, 40, lens=lens, readout_ratio=0.95, motion="shaky", seed=9, colour=True))
    write_clip(clip, folder, video=True)
    calibration = calibrate(folder / VIDEO_NAME)
    scene = calibration.stretches[0].scene
    number, motion = fastest_frame(residuals_of([scene]), scene.tracks.frame_count)
    print(f"frame {number}: the image moves {motion:.0f} px per frame interval")
    frame = clip.frame(number)
    gap = np.full((frame.shape[0], _GAP_PX, 3), 255, np.uint8)
    return np.hstack([frame, gap, rectify_frame(frame, scene, number)])[..., ::-1]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks pictures", description=__doc__)
    parser.add_argument("--demo", type=Path, help="folder of an `rssc demo`; made anew where not given")
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/pictures"))
    options = parser.parse_args(argv)
    if chromium() is None:
        print(MISSING, file=sys.stderr)
        return 2
    options.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        demo = options.demo
        if demo is None:
            from rssc.cli.demo import Demo
            from rssc.cli.terminal import Terminal

            demo = Path(folder) / "demo"
            Demo(demo).run(Terminal())
        pictures = {
            **report_pictures(demo / "report.html"),
            BEFORE_AFTER_NAME: before_after_picture(Path(folder) / "clip"),
        }
    for name, picture in pictures.items():
        path = options.output / name
        cv2.imwrite(str(path), np.ascontiguousarray(picture), [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY])
        print(f"{path}: {picture.shape[1]} x {picture.shape[0]}, {path.stat().st_size / 1e3:.0f} kB")
    return 0
