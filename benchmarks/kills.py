"""Kills runs at random moments, and looks at what they leave.

`calibrate` with one clip and with two, and `rectify`, run into a folder that has an earlier answer and a file of the
user's own. Each is ended by SIGTERM, SIGINT or SIGKILL, sent to it alone: at a random moment, or, every fourth time,
while it writes. Afterwards the folder must hold the whole earlier answer or the whole new one and the user's file, no
process may be left after two seconds, and no temporary folder: of a run that was killed (SIGKILL), after the next run
has begun. Times are from the signal to the end of the last process.

The server of `rssc app` is killed, too, while a visitor uploads a clip, and has it checked, calibrated and rectified;
what the killed server left is looked at by the next one. An earlier run must be as it was, no run may have failed, and
each must have its whole video and whole results.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import av
from av.error import FFmpegError

from benchmarks import killed_app
from benchmarks.limits import Figures, Limit, check
from benchmarks.processes import MARK, processes_of
from rssc.errors import InputError
from rssc.io.files import finish_moves
from rssc.model.calibration import Calibration
from rssc.runtime.temporary import sweep
from rssc.simulation.clip import ClipOptions, render_clip
from rssc.simulation.clip_files import VIDEO_NAME, write_clip

_NONE = ("half_results", "lost_files", "orphans", "temporary_folders", "wrong_exit_codes")
LIMITS = (Limit("kills", least=20), Limit("slowest_end_s", most=2.0), *(Limit(name, most=0) for name in _NONE))
_SIGNALS = (signal.SIGTERM, signal.SIGKILL, signal.SIGINT)
_FRAMES = 24
_LONGEST_WAIT_S = 10.0
_MINE = "notes.txt"


@dataclass(frozen=True)
class Place:
    """Where everything happens."""

    root: Path

    @property
    def clips(self) -> list[Path]:
        return [self.root / f"clip{seed}" / VIDEO_NAME for seed in (3, 4)]

    @property
    def temporary(self) -> Path:
        return self.root / "tmp"

    def out(self, name: str) -> Path:
        return self.root / name.replace(" ", "_")

    def words(self, name: str) -> list[str]:
        """The command line of a job."""
        clips = [str(path) for path in self.clips]
        if name == APP:
            return ["app", "--folder", str(self.out(name)), "--no-browser", "--json"]
        if name == "rectify":
            calibration = self.out("calibrate one clip") / "calibration.json"
            return ["rectify", clips[0], str(calibration), "-o", str(self.out(name) / "rectified.mp4")]
        return ["calibrate", *clips[: 1 if name == "calibrate one clip" else 2], "-o", str(self.out(name))]

    def start(self, name: str, mark: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "TMPDIR": str(self.temporary), "RSSC_CACHE": str(self.root / "cache"), MARK: mark}
        return subprocess.Popen(
            [sys.executable, "-m", "rssc", *self.words(name)], env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if name == APP else subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    def is_whole(self, name: str) -> bool:
        """Whether the folder of a job holds the user's file and whole answers, which our own commands accept."""
        out = self.out(name)
        return killed_app.is_whole(out, self.clips[0]) if name == APP else is_whole(out, name)

    def is_writing(self, name: str) -> bool:
        """Whether a job writes its answer."""
        out = self.out(name)
        return killed_app.is_writing(out) if name == APP else any(out.glob(".rssc-*"))

    def finish(self, name: str) -> None:
        """Does what the next run of a job begins with."""
        for one in (self.temporary, self.out(name)):
            sweep(one)
        if name == APP:
            killed_app.runs_in(self.out(name))
        else:
            finish_moves(self.out(name))


APP = "app"
JOBS = ("calibrate one clip", "calibrate two clips", "rectify", APP)


def is_whole(folder: Path, job: str) -> bool:
    """Whether a folder holds one whole answer, which our own commands accept."""
    if job == "rectify":
        try:
            with av.open(str(folder / "rectified.mp4")) as video:
                return sum(1 for _ in video.decode(video=0)) == _FRAMES
        except (FFmpegError, OSError):
            return False
    try:
        stretches = Calibration.load(folder / "calibration.json").stretches
    except InputError:
        return False
    stated: dict[str, str] = json.loads((folder / "calibration.json").read_text())["files"]
    return len(stretches) > 0 and all(
        sha256((folder / name).read_bytes()).hexdigest() == value for name, value in stated.items()
    )


def leftovers(places: Sequence[Path], process: int) -> list[Path]:
    """Temporary folders and files of a process."""
    patterns = ("rssc-*", ".rssc-*", "*.part", "loky-*", "pymp-*")
    found = [path for place in places for pattern in patterns for path in place.glob(pattern)]
    return found + list(Path("/dev/shm").glob(f"*loky-{process}-*"))


def kill(place: Place, job: str, number: int, seconds: float, draw: random.Random) -> tuple[str, Counter[str], float]:
    """Runs a job, ends it, and returns what was done, what was wrong, and how long it took to end."""
    sent = _SIGNALS[number % len(_SIGNALS)]
    writing, moment = (number // len(JOBS)) % 4 == 3, draw.uniform(0, 1) * seconds
    out, mark = place.out(job), f"{os.getpid()}-{number}"
    earlier = killed_app.runs_in(out) if job == APP else set[str]()
    process = place.start(job, mark)
    visitor = killed_app.Visitor(process, place.clips[0]) if job == APP else None
    began = time.monotonic()
    while process.poll() is None and not (visitor and visitor.done):
        if place.is_writing(job) if writing else time.monotonic() - began >= moment:
            break
        time.sleep(0.002)
    if writing:
        time.sleep(draw.uniform(0, 0.03))
    after = time.monotonic() - began
    told = process.poll() is None
    process.send_signal(sent)
    signalled = time.monotonic()
    process.wait()
    while processes_of(mark) and time.monotonic() - signalled < _LONGEST_WAIT_S:
        time.sleep(0.02)
    took = time.monotonic() - signalled
    wrong: Counter[str] = Counter()
    for one in processes_of(mark):
        wrong["orphans"] += 1
        os.kill(one, signal.SIGKILL)
    # While Python starts, the signal itself ends it, which a shell shows as the same code; one that had all but ended
    # may say so.
    wrong["wrong_exit_codes"] += told and process.returncode not in (-sent, 128 + sent, 0)
    if sent == signal.SIGKILL:
        place.finish(job)
        time.sleep(0.1)  # what tracks loky's semaphores removes them when it finds itself alone
    left = leftovers([place.temporary, out], process.pid) + (killed_app.leftovers(out) if job == APP else [])
    wrong["temporary_folders"] += len(left)
    wrong["lost_files"] += not (out / _MINE).exists() or (out / _MINE).read_text() != job
    if job == APP:
        wrong["lost_files"] += not earlier <= killed_app.runs_in(out)
    wrong["half_results"] += not place.is_whole(job)
    if job == APP:
        killed_app.forget_all_but(out, earlier)
    when = "while it writes" if writing else f"after {after:5.1f} s"
    what = f"{when:15s} {sent.name:8s} exit {process.returncode:4d}{'' if told else ' (had ended)'}"
    what += "".join(f" {path.name}" for path in sorted(left))
    return what, wrong, took if told else 0.0


def measure(argv: list[str]) -> Figures:
    parser = argparse.ArgumentParser(prog="python -m benchmarks kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=24, help="how many runs are killed, over all jobs")
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    options = parser.parse_args(argv)
    # A program that a shell runs in the background ignores Ctrl-C, and hands that on.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    draw, total, slowest, seconds = random.Random(options.seed), Counter[str](), 0.0, dict[str, float]()
    with tempfile.TemporaryDirectory() as name:
        place = Place(Path(name))
        place.temporary.mkdir()
        for path, seed in zip(place.clips, (3, 4), strict=True):
            write_clip(render_clip(ClipOptions(320, 240, _FRAMES, seed=seed)), path.parent, video=True)
        for job in JOBS:
            place.out(job).mkdir()
            (place.out(job) / _MINE).write_text(job)
            for _ in range(2):  # the first one also compiles
                earlier = killed_app.runs_in(place.out(job)) if job == APP else set[str]()
                began = time.monotonic()
                process = place.start(job, "")
                if job == APP:
                    killed_app.Visitor(process, place.clips[0]).join()
                    seconds[job] = time.monotonic() - began
                    process.send_signal(signal.SIGINT)
                if process.wait() != 0 or not place.is_whole(job):
                    raise InputError(f"{job} does not run: rssc {' '.join(place.words(job))}")
                if job == APP:
                    killed_app.forget_all_but(place.out(job), earlier or killed_app.runs_in(place.out(job)))
                else:
                    seconds[job] = time.monotonic() - began
            print(f"{job}: {seconds[job]:.1f} s where it is not killed", flush=True)
        number = killed = 0
        while killed < options.kills:
            # Every signal meets every job.
            job = JOBS[(number + number // len(JOBS)) % len(JOBS)]
            what, wrong, took = kill(place, job, number, seconds[job], draw)
            total += wrong
            number += 1
            killed += took > 0  # one that had ended before its moment is none
            slowest = max(slowest, took)
            found = ", ".join(f"{count} {name}" for name, count in wrong.items() if count) or "fine"
            print(f"{number:3d} {job:20s} {what}  all ended after {took:4.2f} s: {found}", flush=True)
    return {"kills": killed, "slowest_end_s": round(slowest, 3), **{name: total[name] for name in _NONE}}


def main(argv: list[str]) -> int:
    return check(measure(argv), LIMITS)
