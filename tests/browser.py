"""The Chromium that tests and pictures of pages are shown in, and the server of `rssc app` that it is sent to."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FLAGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
"""A 3D view needs WebGL, which a machine without a GPU has in software only."""
MISSING = "no Chromium is installed; apt-get install chromium, or set RSSC_CHROMIUM"
_END_SECONDS = 20


def chromium() -> str | None:
    """Path of an installed Chromium, or None; RSSC_CHROMIUM names one that is elsewhere."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return os.environ.get("RSSC_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


@contextmanager
def open_browser() -> "Generator[Browser]":
    """A Chromium without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield browser
        browser.close()


class App:
    """`rssc app` as users start it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.start()

    def start(self) -> None:
        words = [sys.executable, "-m", "rssc", "app", "--folder", str(self.folder), "--no-browser", "--json"]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={**os.environ, "RSSC_CACHE": ""})
        assert self.process.stdout is not None
        self.address = str(json.loads(self.process.stdout.readline())["address"])

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(_END_SECONDS) == 0
        assert self.process.stdout is not None
        self.process.stdout.close()


def until(page: "Page", condition: str) -> None:
    """Waits; playwright's own wait_for_function evaluates strings in the page, which the page's policy forbids."""
    for _ in range(300):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"never true: {condition}")
