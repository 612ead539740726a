"""Temporary folders that do not outlive their process.

A folder bears the number of its process, which also locks it. Where a process was killed before it could remove its
folder, the next one that makes a folder in the same place removes it: its process has gone, and so has the lock, which
tells of processes that cannot be seen from here (in another container, or on another machine).
"""

import errno
import os
import re
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from rssc.errors import InputError
from rssc.runtime.ending import add_last_act

try:
    import fcntl
except ImportError:  # Windows: nothing is swept there
    fcntl = None

HIDDEN = ".rssc-"
"""How the name of a temporary folder within a user's folder begins."""
_PREFIX = "rssc-"
_places: set[Path] = set()
"""Where this process has made folders."""
_NAME = re.compile(r"\.?rssc-(\d+)-\w+")
FULL = (errno.ENOSPC, errno.EDQUOT)
"""Error numbers of a full disk."""


@contextmanager
def temporary_folder(parent: Path | None = None) -> Generator[Path]:
    """A folder that is removed in the end.

    Args:
        parent: Where it is made, hidden; the system's place for temporary files where not given.

    Raises:
        InputError: There is no room for temporary files.
    """
    try:
        place = Path(tempfile.gettempdir()) if parent is None else parent
        sweep(place)
        _places.add(place.absolute())
        folder = Path(tempfile.mkdtemp(prefix=f"{HIDDEN if parent else _PREFIX}{os.getpid()}-", dir=place))
    except OSError as error:
        if parent is not None:
            raise
        raise InputError(f"there is no room for temporary files ({error}); set TMPDIR to a folder with room.") from None
    lock = _locked(folder)
    try:
        yield folder
    except OSError as error:
        if parent is not None or error.errno not in FULL:
            raise
        raise InputError(f"no space is left in {place} for temporary files; make room, or set TMPDIR.") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _remove_own() -> None:
    """Removes all folders of this process, however far it came with each of them."""
    for place in _places:
        for folder in (*place.glob(f"{_PREFIX}{os.getpid()}-*"), *place.glob(f"{HIDDEN}{os.getpid()}-*")):
            shutil.rmtree(folder, ignore_errors=True)


add_last_act(_remove_own)


def sweep(place: Path) -> None:
    """Removes temporary folders of ours whose processes have gone."""
    if fcntl is None:
        return
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            found = _NAME.fullmatch(entry.name)
            if found and entry.is_dir(follow_symlinks=False) and not _is_running(int(found[1])):
                _remove_unlocked(Path(entry.path))


def _remove_unlocked(folder: Path) -> None:
    lock = _locked(folder)
    if lock is not None:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _locked(folder: Path) -> int | None:
    """The descriptor that holds the lock of a folder; None where another process has it, or there are no locks."""
    if fcntl is None:
        return None
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return None
        return descriptor
    return None


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # somebody else's
        return True
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return True
    return state != "Z"  # ended, though nobody has asked how
