"""Threads, BLAS, processes and progress."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import cv2
import numpy as np
import pytest
from threadpoolctl import threadpool_info

from rssc.errors import InputError, NotCalibratableError
from rssc.runtime.blas import with_serial_blas
from rssc.runtime.pool import WorkerDiedError, report_task, run_tasks, share_cores
from rssc.runtime.progress import Stages
from rssc.runtime.threads import balanced_chunks, run_ahead, run_chunks, thread_count, use_threads


@pytest.mark.parametrize("chunk_count", [1, 2, 7, 100])
def test_chunks_cover_all_items_once(rng, chunk_count):
    offsets = np.concatenate([[0], np.cumsum(rng.integers(0, 50, 40))])
    chunks = balanced_chunks(offsets, chunk_count)
    assert len(chunks) <= chunk_count
    np.testing.assert_array_equal(np.concatenate([np.arange(a, b) for a, b in chunks]), np.arange(40))


@pytest.mark.parametrize("chunk_count", [0, 1, 2, 50])
def test_every_chunk_runs_once(chunk_count):
    calls = np.zeros(chunk_count, int)

    def task(index: int, begin: int, end: int) -> None:
        calls[index] += end - begin
        run_chunks(lambda *_: None, [(0, 1), (1, 2)])  # a task may have chunks of its own

    run_chunks(task, [(i, i + 1) for i in range(chunk_count)])
    assert (calls == 1).all()


@pytest.mark.parametrize("threads", [1, 3])
def test_what_runs_ahead_keeps_its_order_and_its_distance(monkeypatch, threads):
    monkeypatch.setenv("RSSC_THREADS", str(threads))
    begun = []

    def work(item):
        begun.append(item)
        time.sleep(0.002 * (item % 3))  # so that they would overtake each other
        return item**2

    found = run_ahead(work, range(12))
    for item in range(12):
        assert next(found) == item**2
        assert len(begun) <= item + 1 + threads
    assert next(found, None) is None


def test_an_error_of_what_runs_ahead_comes_at_its_place(monkeypatch):
    monkeypatch.setenv("RSSC_THREADS", "2")
    found = run_ahead(lambda item: 1 / (2 - item), range(5))
    assert [next(found), next(found)] == [0.5, 1.0]
    with pytest.raises(ZeroDivisionError):
        next(found)


def test_errors_reach_the_caller():
    def task(index: int, begin: int, end: int) -> None:
        if index == 3:
            raise ArithmeticError("chunk 3")

    with pytest.raises(ArithmeticError, match="chunk 3"):
        run_chunks(task, [(i, i + 1) for i in range(8)])


def test_a_number_of_threads_that_is_none_is_one_clear_line(monkeypatch, tmp_path):
    monkeypatch.setenv("RSSC_THREADS", "two")
    with pytest.raises(InputError, match="RSSC_THREADS is 'two'; expected a whole number"):
        thread_count()
    line = [sys.executable, "-m", "rssc", "simulate", "-o", str(tmp_path), "--images"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.strip() == "rssc: RSSC_THREADS is 'two'; expected a whole number of threads."


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_blas_gets_its_threads_back_when_the_last_thread_leaves():
    before = blas_threads()
    if before == {1}:
        pytest.skip("BLAS has one thread anyway")
    entered, leave = threading.Event(), threading.Event()

    @with_serial_blas
    def hold() -> None:
        entered.set()
        leave.wait(10)

    @with_serial_blas
    def enter_and_let_go() -> set[int]:
        # The first to enter leaves first, while this one is still inside.
        leave.set()
        first.join()
        return blas_threads()

    first = threading.Thread(target=hold)
    first.start()
    entered.wait(10)
    assert enter_and_let_go() == {1}
    assert blas_threads() == before


@pytest.mark.parametrize(
    ("tasks", "cores", "expected"),
    [(2, 16, (2, 8)), (3, 16, (3, 5)), (1, 16, (1, 16)), (4, 2, (2, 1)), (20, 16, (16, 1)), (5, 1, (1, 1))],
)
def test_processes_share_the_cores(tasks, cores, expected):
    assert share_cores(tasks, cores) == expected


def threads_of_libraries(_: int) -> tuple[int, set[int], int]:
    np.linalg.inv(np.eye(2))
    return thread_count(), {pool["num_threads"] for pool in threadpool_info()}, cv2.getNumThreads()


def test_processes_have_the_threads_that_they_are_given():
    outcomes = dict(run_tasks(threads_of_libraries, [0, 1], workers=2, threads=1))
    assert [outcomes[i].result() for i in (0, 1)] == [(1, {1}, 1)] * 2


def half_and_wait(seconds: float) -> None:
    report_task(0.5)
    time.sleep(seconds)


def test_progress_moves_within_tasks():
    shares: list[float] = []
    for _ in run_tasks(half_and_wait, [1.5, 1.5], workers=2, report=shares.append):
        pass
    assert shares == sorted(shares) and shares[-1] == 1
    assert 0.5 in shares
    report_task(0.5)  # outside of a pool nobody listens


def test_threads_are_limited_for_a_while(monkeypatch):
    monkeypatch.setenv("RSSC_THREADS", "3")
    opencv = cv2.getNumThreads()
    with use_threads(1):
        assert thread_count() == cv2.getNumThreads() == 1
        assert share_cores(4) == (1, 1)
    with use_threads(None):
        assert thread_count() == 3 and cv2.getNumThreads() == opencv
    with pytest.raises(InputError, match="jobs are 0"), use_threads(0):
        pass


def end_somehow(how: str) -> str:
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "crashed":
        os.kill(os.getpid(), signal.SIGBUS)
    if how == "left":
        os._exit(7)
    if how == "refused":
        raise NotCalibratableError("too dark")
    return how


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("killed", r"killed by signal 9 \(SIGKILL\), most likely because memory ran out"),
        ("crashed", r"killed by signal 7 \(SIGBUS\)$"),
        ("left", "ended with exit code 7"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_a_process_that_dies_is_reported_as_what_it_was(how, words):
    with pytest.raises(WorkerDiedError, match=words):
        for _ in run_tasks(end_somehow, ["fine", how], workers=2):
            pass


def test_what_a_task_raises_is_raised_by_its_outcome():
    outcomes = dict(run_tasks(end_somehow, ["fine", "refused"], workers=1))
    assert outcomes[0].result() == "fine"
    with pytest.raises(NotCalibratableError, match="too dark"):
        outcomes[1].result()


ORPHANS = """
import os, time
from rssc.runtime.pool import run_tasks
def work(_):
    print(os.getpid(), flush=True)
    time.sleep(60)
list(run_tasks(work, [0], 1))
"""


def is_running(process: int) -> bool:
    status = Path(f"/proc/{process}/stat")
    return status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] != "Z"


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks at /proc")
def test_processes_end_with_their_parent():
    parent = subprocess.Popen([sys.executable, "-c", ORPHANS], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    for _ in range(100):
        if not is_running(child):
            break
        time.sleep(0.1)
    else:
        os.kill(child, signal.SIGKILL)
        pytest.fail("the process goes on")


def test_a_stage_that_raises_keeps_its_time():
    stage = Stages()
    with pytest.raises(InputError), stage("reading"):
        time.sleep(0.01)
        raise InputError("no such file")
    assert stage.seconds["reading"] >= 0.01
