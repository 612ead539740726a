"""Results of long steps, kept on disk under a fingerprint of all that they depend on, for the next run.

A cache never makes a run fail: what cannot be read or is damaged is made again, what cannot be written is not kept.
"""

import hashlib
import os
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rssc.errors import InputError
from rssc.io.files import npz_bytes
from rssc.runtime.constants import Constants

CACHE_VARIABLE = "RSSC_CACHE"
"""Environment variable that names the folder; empty for no cache."""
_PREFIX = "rssc-"
_LIBRARIES = ("numpy", "scipy", "opencv-python-headless", "opencv-python", "pycolmap")
_PACKAGE = Path(__file__).parent.parent

Arrays = Mapping[str, NDArray[np.generic]]
Value = TypeVar("Value")
Input = NDArray[np.generic] | str | float | None
"""What a step depends on."""


@dataclass(frozen=True)
class CacheConstants(Constants):
    """Size and age of what is kept."""

    limit_bytes: int = 500_000_000
    """Of all entries together; the ones that were not used for longest go first. Chosen by hand: a clip takes 1 to 10
    MB."""
    stale_seconds: float = 3600.0
    """Age above which an unfinished entry is one of a run that was killed. Chosen by hand: writing takes seconds."""


CACHE = CacheConstants()


@dataclass(frozen=True)
class Cache:
    """Entries in a folder, of which only files of ours are touched."""

    folder: Path
    limit_bytes: int | None = None
    """Of all entries together; `CACHE.limit_bytes` where not given."""

    def entries(self) -> list[Path]:
        """Files of complete entries, the one that was not used for longest first."""
        found: list[tuple[float, Path]] = []
        for path in self._files("npz"):
            with suppress(OSError):
                found.append((path.stat().st_mtime, path))
        return [path for _, path in sorted(found)]

    @property
    def size(self) -> int:
        """Bytes of all complete entries."""
        return sum(map(_size, self.entries()))

    def read(self, name: str) -> Arrays | None:
        """An entry; None where there is none, or none that can be read."""
        path = self._path(name)
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays: dict[str, NDArray[np.generic]] = dict(file)
            os.utime(path)
        except FileNotFoundError:
            return None
        # The last one is zipfile's, for a damaged header that names a compression which it does not have.
        except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error, NotImplementedError):
            self.remove(name)
            return None
        return arrays

    def write(self, name: str, arrays: Arrays) -> None:
        """Keeps an entry, which appears when it is complete, and makes room for it."""
        partial = self.folder / f"{_PREFIX}{name}.{os.getpid()}.part"
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                partial.write_bytes(npz_bytes(arrays))
                partial.replace(self._path(name))
            finally:
                partial.unlink(missing_ok=True)
            self._make_room()

    def remove(self, name: str) -> None:
        """Removes an entry."""
        with suppress(OSError):
            self._path(name).unlink(missing_ok=True)

    def clear(self) -> int:
        """Removes all entries; returns how many."""
        entries = self.entries()
        for path in (*entries, *self._files("part")):
            path.unlink(missing_ok=True)
        return len(entries)

    def _make_room(self) -> None:
        for path in self._files("part"):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > CACHE.stale_seconds:
                    path.unlink(missing_ok=True)
        entries = self.entries()
        excess = sum(map(_size, entries)) - (self.limit_bytes or CACHE.limit_bytes)
        for path in entries:
            if excess <= 0:
                return
            excess -= _size(path)
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def _files(self, ending: str) -> list[Path]:
        with suppress(OSError):
            return sorted(self.folder.glob(f"{_PREFIX}*.{ending}"))
        return []

    def _path(self, name: str) -> Path:
        return self.folder / f"{_PREFIX}{name}.npz"


def open_cache() -> Cache | None:
    """The user's cache; None where there is to be none, or no place for it."""
    given = os.environ.get(CACHE_VARIABLE)
    if given is not None:
        return Cache(Path(given)) if given else None
    if place := os.environ.get("XDG_CACHE_HOME"):
        return Cache(Path(place) / "rssc")
    with suppress(RuntimeError):  # there is no home
        return Cache(Path.home() / ".cache" / "rssc")
    return None


def kept(
    kind: str,
    inputs: Iterable[Input],
    make: Callable[[], Value],
    pack: Callable[[Value], Arrays],
    unpack: Callable[[Arrays], Value],
    store: Cache | None,
) -> Value:
    """The result of a step: that of an earlier run with the same inputs, or made now and kept.

    Args:
        kind: Of the step, in one word.
        inputs: All that the result depends on besides our code.
        make: Makes the result.
        pack: The result as arrays.
        unpack: The result from these arrays; raises where they are not what `pack` made.
        store: Where results are kept; None to make it in any case.
    """
    if store is None:
        return make()
    name = f"{kind}-{_fingerprint(inputs)}"
    arrays = store.read(name)
    if arrays is not None:
        try:
            return unpack(arrays)
        except (KeyError, ValueError, TypeError, InputError):
            store.remove(name)
    value = make()
    store.write(name, pack(value))
    return value


def _fingerprint(inputs: Iterable[Input]) -> str:
    digest = hashlib.blake2b(_code(), digest_size=20)
    for one in inputs:
        if isinstance(one, np.ndarray):
            digest.update(f"{one.dtype.str}{one.shape}".encode())
            digest.update(np.ascontiguousarray(one).view(np.uint8).data)
        else:
            digest.update(f"{one!r};".encode())
    return digest.hexdigest()


@cache
def _code() -> bytes:
    """Fingerprint of our code and of the libraries that decide what it computes."""
    digest = hashlib.blake2b()
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(path.relative_to(_PACKAGE).as_posix().encode() + path.read_bytes())
    for library in _LIBRARIES:
        with suppress(PackageNotFoundError):
            digest.update(f"{library} {version(library)};".encode())
    return digest.digest()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
