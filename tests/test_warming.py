"""Kernels that are compiled ahead are those that a calibration needs, and compiled once."""

import os
import signal
import subprocess
import sys
import time

import pytest

from rssc.kernels import compiled_code
from rssc.pipeline import warming
from rssc.simulation.clip import ClipOptions, render_clip
from rssc.simulation.clip_files import write_clip
from tests.test_ending import is_running

LOADED = """
import sys
from numba.core.dispatcher import Dispatcher
def loaded():
    for name, module in sorted(sys.modules.items()):
        if name.startswith("rssc.kernels"):
            for kernel in vars(module).values():
                if isinstance(kernel, Dispatcher) and kernel.__module__ == name:
                    yield from (f"{name}.{kernel.__name__} {signature}" for signature in kernel.signatures)
"""
"""What a process has loaded; parts come with the kernels that call them, where these were compiled before."""

PARTS = """
from rssc.pipeline.parts_to_compile import run_part
from rssc.pipeline.warming import PARTS
for part in PARTS:
    run_part(part)
print("\\n".join(loaded()))
"""

CALIBRATION = """
from rssc.pipeline.calibrate import calibrate
calibrate(sys.argv[1], fps=30.0)
print("\\n".join(loaded()))
"""

ONE_KERNEL = """
import numpy as np
from rssc.kernels import lie
lie.retract(np.tile(np.eye(3, 4), (2, 1, 1)), np.zeros((2, 6)))
print(len(lie.retract.stats.cache_misses))
"""

BESIDE = """
import time
from rssc.kernels import compiled_code
from rssc.pipeline import warming
from rssc.runtime.progress import silent
warming.compile_ahead(silent)
print(*[process.pid for process in warming._running], flush=True)
time.sleep(60)
"""


def run(program, *words, **environment):
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, words)], stdout=subprocess.PIPE, text=True,
        env={**os.environ, **environment},
    )  # fmt: skip


def test_a_calibration_needs_nothing_that_was_not_compiled_ahead(tmp_path):
    """Not by compiling all of it, which takes long, but by comparing what is loaded."""
    clip = render_clip(ClipOptions(480, 360, 24, readout_ratio=0.7, motion="shaky", seed=3))
    write_clip(clip, tmp_path, video=False)
    # One after the other: what the first compiles, where it has to, the second finds.
    ahead = set(run(LOADED + PARTS).communicate()[0].splitlines())
    needed = set(run(LOADED + CALIBRATION, tmp_path).communicate()[0].splitlines())
    assert len(needed) > 15
    assert needed <= ahead


def test_two_processes_compile_a_kernel_once(tmp_path):
    processes = [run(ONE_KERNEL, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2)]
    assert sorted(int(process.communicate()[0]) for process in processes) == [0, 1]


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of Unix")
def test_processes_that_compile_end_with_the_one_they_are_for(tmp_path):
    parent = run(BESIDE, NUMBA_CACHE_DIR=str(tmp_path), RSSC_THREADS="2")
    processes = [int(word) for word in parent.stdout.readline().split()]
    assert len(processes) == len(warming.PARTS)
    parent.send_signal(signal.SIGKILL)
    parent.communicate(timeout=30)
    deadline = time.monotonic() + 30
    while any(map(is_running, processes)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_running, processes))


def test_what_is_compiled_is_not_compiled_again(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled_code, "cache_folder", lambda: tmp_path)
    monkeypatch.setenv("RSSC_THREADS", "2")
    for part in warming.PARTS:
        compiled_code.mark(part).touch()
    said = []
    warming.compile_ahead(lambda stage, share: said.append(stage))("reading", 0.0)
    assert not warming._running and said == ["reading"]
