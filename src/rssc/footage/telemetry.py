"""The data that cameras write into their files beside the picture, through the package telemetry-parser.

The parser runs as a process of its own, for a few seconds at most (see `telemetry_script` for why). Whatever goes wrong
with it is a remark; a calibration does not depend on it.
"""

import subprocess
import sys
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from rssc.runtime.constants import Constants

PACKAGE = "telemetry_parser"


@dataclass(frozen=True)
class TelemetryConstants(Constants):
    """Bounds on reading a camera's own data, chosen by hand."""

    seconds: float = 10.0
    """Longest time for a file. Ten seconds of a GoPro take 0.05 s, so the longest file that it writes takes 5 s."""
    memory_bytes: int = 4 << 30
    """Largest address space of the parser, which reads a recording as a whole."""


TELEMETRY = TelemetryConstants()


@dataclass(frozen=True)
class Telemetry:
    """What is wanted of a camera's own data; names as in `telemetry_script`."""

    camera: str = ""
    """Kind of the camera, for instance GoPro; empty where the file has no such data."""
    model: str = ""
    numbers: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    """Least and largest value of each tag."""
    words: dict[str, str] = field(default_factory=dict[str, str])
    exposures_s: tuple[float, float] | None = None
    """Shortest and longest exposure time."""
    gyro: bool = False

    def number(self, name: str) -> float | None:
        """A number that does not change in the file; None where it is absent or changes."""
        least, largest = self.numbers.get(name, (0.0, 1.0))
        return least if least == largest else None


_ADAPTER = TypeAdapter(Telemetry)


def read_telemetry(path: Path) -> tuple[Telemetry, str]:
    """The camera's own data in a file, and why they were not read where they were not; never raises."""
    try:
        state = path.stat()
        return _read(path.absolute(), state.st_size, state.st_mtime_ns)
    except (OSError, ValueError, ImportError) as error:
        return Telemetry(), f"the parser could not be run ({error})"


@lru_cache(maxsize=64)
def _read(path: Path, size: int, changed_ns: int) -> tuple[Telemetry, str]:
    """As `read_telemetry`; the stretches of a long file are read one by one, its metadata only once."""
    del size, changed_ns  # only to read again what has changed
    package = find_spec(PACKAGE)
    if package is None or package.origin is None:
        return Telemetry(), "the package telemetry-parser is not installed"
    # Programs that embed Python may be their own executable, and must not be started again.
    if not Path(sys.executable or "").name.lower().startswith(("python", "pypy")):
        return Telemetry(), "there is no Python interpreter to run the parser"
    script = Path(__file__).with_name("telemetry_script.py")
    folder = Path(package.origin).parent.parent
    command = [sys.executable, "-I", "-S", str(script), str(folder), str(path), str(TELEMETRY.memory_bytes)]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            timeout=TELEMETRY.seconds, check=False,
        )  # fmt: skip
        said, problem = done.stdout, "they are damaged" if done.returncode else ""
    except subprocess.TimeoutExpired as error:
        said, problem = error.stdout or b"", f"it took more than {TELEMETRY.seconds:g} s"
    return _last_complete(said), problem


def _last_complete(said: bytes) -> Telemetry:
    for line in reversed(said.splitlines()):
        try:
            return _ADAPTER.validate_json(line)
        except ValidationError:
            continue
    return Telemetry()
