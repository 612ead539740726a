"""The processes of a run, with all that it starts: which are there, and the memory that they have together (Linux)."""

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

MARK = "RSSC_BENCHMARK_RUN"
"""Environment variable by which the processes of a run are known."""


def processes_of(mark: str) -> list[int]:
    """Processes that were started with a mark and have not ended."""
    wanted = f"{MARK}={mark}".encode()
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            if state != "Z" and wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


def memory_of(processes: Sequence[int]) -> int:
    """Bytes of memory that processes have together; what they share counts once."""
    total = 0
    for process in processes:
        with suppress(OSError):
            told = re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{process}/smaps_rollup").read_text(), re.MULTILINE)
            total += 1024 * int(told[1]) if told else 0
    return total
