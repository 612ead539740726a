"""The server of `rssc app` as `kills` has it: somebody uploads a clip and calibrates it while the server is killed."""

import json
import subprocess
import threading
import time
import urllib.request
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from rssc.app.runs import Runs
from rssc.model.calibration import Calibration

_POLL_SECONDS = 0.05
_STEPS = ("check", "calibrate", "rectify")
"""Jobs that the visitor has done, one after the other; the first begins with the upload."""


class Visitor:
    """Does what a page does, until all is done or the server is gone."""

    def __init__(self, server: subprocess.Popen[str], clip: Path) -> None:
        self._server, self._clip = server, clip
        self._thread = threading.Thread(target=self._visit, daemon=True)
        self._thread.start()

    @property
    def done(self) -> bool:
        """Whether nothing more is asked of the server."""
        return not self._thread.is_alive()

    def join(self) -> None:
        """Waits until nothing more is asked of the server."""
        self._thread.join()

    def _visit(self) -> None:
        with suppress(OSError, ValueError, KeyError, StopIteration):
            assert self._server.stdout is not None
            address = str(json.loads(self._server.stdout.readline())["address"])
            run = str(_ask(f"{address}runs?name=clip.mp4", self._clip.read_bytes())["id"])
            for step in _STEPS:
                if step != "check":
                    _ask(f"{address}runs/{run}/{step}", b"{}")
                while self._server.poll() is None:
                    runs: list[dict[str, Any]] = _ask(f"{address}state")["runs"]
                    job = next(one["job"] for one in runs if one["id"] == run)
                    if job["kind"] == step and job["state"] not in ("queued", "running"):
                        break
                    time.sleep(_POLL_SECONDS)


def _ask(address: str, data: bytes | None = None) -> dict[str, Any]:
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"} if data == b"{}" else {})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


def is_writing(folder: Path) -> bool:
    """Whether a job writes its result, or has just written it."""
    return any(folder.glob("runs/*/new/*.*"))


def is_whole(folder: Path, clip: Path) -> bool:
    """Whether every run has its whole video and every result is complete, and nothing failed."""
    for run in Runs(folder).all():
        path = folder / "runs" / run.id
        if sha256((path / "source" / run.file).read_bytes()).digest() != sha256(clip.read_bytes()).digest():
            return False
        if run.job is not None and run.job.state in ("failed", "cancelled"):
            return False
        for kind in _STEPS:
            finished = run.job is not None and (run.job.kind, run.job.state) == (kind, "done")
            if (finished or (path / kind).exists()) and not (path / kind / "document.json").exists():
                return False
        result = path / "calibrate" / "calibration.json"
        if result.parent.exists() and not Calibration.load(result).stretches:
            return False
    return True


def leftovers(folder: Path) -> list[Path]:
    """What came in by half, and what jobs wrote that did not end."""
    return [*folder.glob("incoming/*"), *folder.glob("runs/*/new")]


def forget_all_but(folder: Path, kept: set[str]) -> None:
    """Removes other runs, which the next server would go on with."""
    runs = Runs(folder)
    for run in runs.all():
        if run.id not in kept:
            runs.delete(run)


def runs_in(folder: Path) -> set[str]:
    """The ids of all runs."""
    return {run.id for run in Runs(folder).all()}
