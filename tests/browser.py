"""The Chromium that tests and pictures of reports are shown in."""

import os
import shutil

FLAGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
"""A 3D view needs WebGL, which a machine without a GPU has in software only."""


def chromium() -> str | None:
    """Path of an installed Chromium, or None; RSSC_CHROMIUM names one that is elsewhere."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return os.environ.get("RSSC_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


def until(page, condition):
    """Waits; playwright's own wait_for_function evaluates strings in the page, which the page's policy forbids."""
    for _ in range(300):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"never true: {condition}")
