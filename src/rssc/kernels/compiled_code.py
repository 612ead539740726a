"""Where compiled code is kept.

numba recompiles a function when its own file changes, but not when a file changes that it calls into, and it fails on
what it kept of another version of ours. So compiled code lies in a folder named after the contents of all kernels: in
`NUMBA_CACHE_DIR` where that is set, beside the kernels where that can be written, else in the user's or a temporary
folder.
"""

import atexit
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import llvmlite.binding as llvm
import numba

_PREFIX = "rssc-kernels-"
_HERE = Path(__file__).parent
_SHARED = "_RSSC_KERNELS"
"""Variable by which a process tells those that it starts of its temporary folder."""
_KEPT_SECONDS = 30 * 86400.0


@cache
def cache_folder() -> Path:
    """The folder of the compiled code of these kernels."""
    name = _PREFIX + _fingerprint()
    for parent in _places():
        try:
            (parent / name).mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(parent / name, os.W_OK):
            _remove_others(parent, name)
            return parent / name
    # Named as `rssc.runtime.temporary` names folders, which removes those of processes that were killed.
    folder = Path(tempfile.mkdtemp(prefix=f"rssc-{os.getpid()}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ[_SHARED] = str(folder)
    print(
        f"rssc: kernels are compiled into {folder} for this run only, because no other place can be written to; set "
        "NUMBA_CACHE_DIR to a folder that stays, and later runs start at once.",
        file=sys.stderr,
    )
    return folder


def mark(part: str) -> Path:
    """A file that is there once a part of the kernels is compiled, by this Python and numba for this processor."""
    machine = f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
    made = hashlib.sha256(f"{sys.version} {numba.__version__} {machine}".encode()).hexdigest()[:16]
    return cache_folder() / f"{part}-{made}.compiled"


def _fingerprint() -> str:
    """Of the contents of all kernels."""
    digest = hashlib.sha256()
    for path in sorted(_HERE.rglob("*.py")):
        digest.update(path.relative_to(_HERE).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _places() -> Iterator[Path]:
    """Where compiled code may be kept, the best place first."""
    if given := os.environ.get(_SHARED) or os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(given)
        return
    yield _HERE / "__pycache__"
    with suppress(RuntimeError):  # there is no home
        yield Path.home() / ".cache" / "rssc"


def _remove_others(parent: Path, name: str) -> None:
    """Removes compiled code of other versions of the kernels that nobody has added to for long."""
    for folder in parent.glob(f"{_PREFIX}*"):
        if folder.name != name and time.time() - folder.stat().st_mtime > _KEPT_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)
