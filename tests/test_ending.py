"""Processes that are told to end do so at once, with all that they started, and leave no temporary folder."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from rssc.errors import InputError
from rssc.footage import telemetry
from rssc.runtime import temporary
from rssc.runtime.temporary import sweep, temporary_folder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are those of Unix")

LONG = """
import os, sys, time
from pathlib import Path
from rssc.runtime.ending import ToldToEnd, end_at_once, ending_on_signals
from rssc.runtime.temporary import temporary_folder
from rssc.runtime.pool import run_tasks
def work(_):
    with temporary_folder() as folder:
        os.write(1, f"{os.getpid()}\\n".encode())  # in one piece
        time.sleep(60)
def in_compiled_code():
    import ctypes
    print(os.getpid(), flush=True)
    ctypes.CDLL(None).sleep(60)  # as a kernel that does not come back
    ctypes.CDLL(None).sleep(60)
try:
    with ending_on_signals(), temporary_folder() as folder:
        if sys.argv[1] == "pool":
            list(run_tasks(work, [0, 1], 2))
        else:
            in_compiled_code()
except ToldToEnd as told:
    end_at_once(told.exit_code)
"""


def is_running(process):
    status = Path(f"/proc/{process}/stat")
    if not Path("/proc").exists():
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return False
        return True
    return status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] != "Z"


@pytest.mark.parametrize("how", ["pool", "compiled"])
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_ends_everything(tmp_path, sent, how):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    # As from a terminal: a test may itself run in the background, where Ctrl-C is ignored.
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGINT, signal.SIGHUP)}
    try:
        parent = subprocess.Popen(
            [sys.executable, "-c", LONG, how], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment,
        )  # fmt: skip
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    processes = [int(parent.stdout.readline()) for _ in range(2 if how == "pool" else 1)]
    assert any(tmp_path.glob("rssc-*"))
    parent.send_signal(sent)
    _, said = parent.communicate(timeout=30)
    assert parent.returncode == (-sent if sent == signal.SIGKILL else 128 + sent)
    assert "Traceback" not in said
    deadline = time.monotonic() + 10
    while any(map(is_running, processes)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_running, processes))
    if sent != signal.SIGKILL and how == "compiled":
        assert not any(tmp_path.glob("rssc-*"))
    sweep(tmp_path)
    assert not any(tmp_path.glob("rssc-*"))


def test_libraries_take_no_signals(tmp_path):
    code = (
        "import os, signal, sys\n"
        "from rssc.runtime.ending import ToldToEnd, ending_on_signals\n"
        "from rssc.start.colmap import quiet_pycolmap\n"
        "try:\n"
        "    with ending_on_signals():\n"
        "        quiet_pycolmap()\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "except ToldToEnd as told:\n"
        "    sys.exit(told.exit_code)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (143, "")


def test_temporary_folders_of_dead_processes_go_and_others_stay(tmp_path, monkeypatch):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    dead, mine = tmp_path / f"rssc-{ended.pid}-abc", tmp_path / "rssc-notes"
    for folder in (dead, mine, tmp_path / f"rssc-{os.getpid()}-abc", tmp_path / f".rssc-{ended.pid}-x_1"):
        folder.mkdir()
        (folder / "file").write_text("x")
    locked = tmp_path / f"rssc-{ended.pid}-locked"
    locked.mkdir()
    descriptor = temporary._locked(locked)  # by a process that cannot be seen from here
    with temporary_folder(tmp_path) as folder:
        assert folder.is_dir() and folder.name.startswith(f".rssc-{os.getpid()}-")
        assert not dead.exists() and mine.is_dir() and locked.is_dir()
    os.close(descriptor)
    sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([mine.name, f"rssc-{os.getpid()}-abc"])
    sweep(tmp_path / "nowhere")


def test_a_full_temporary_folder_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(InputError, match=f"no space is left in {tmp_path} for temporary files"), temporary_folder():
        raise OSError(28, "No space left on device")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="set TMPDIR"), temporary_folder():
        pass
    assert not any(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_the_parser_of_telemetry_ends_with_its_parent(tmp_path):
    script = Path(telemetry.__file__).with_name("telemetry_script.py")
    package = tmp_path / "telemetry_parser"
    package.mkdir()
    (package / "__init__.py").write_text("import time\ntime.sleep(60)\n")
    start = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, {str(script)!r}, {str(tmp_path)!r}, 'clip.mp4', '4294967296'])\n"
        "print(child.pid, flush=True)\nchild.wait()"
    )
    parent = subprocess.Popen([sys.executable, "-c", start], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    time.sleep(1.0)
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 10
    while is_running(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(child)
