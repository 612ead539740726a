"""Damages the files of one reader for a while: `python -m benchmarks.fuzz_reader NAME SEED SECONDS FOLDER CASES`.

It is a process of its own, because a library in C may end it, or never return. The last line is a JSON object with the
number of cases, of those that were read nevertheless, and the first that raised anything but an error of ours.
"""

import json
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from benchmarks.fuzz_readers import READERS, Reader, archive_members, archive_of
from rssc.errors import RsscError

Change = tuple[str, float, bytes]
"""What is done to bytes, where (as a share of them), and what with."""

CASES_AT_ONCE = 200
_MEMORY_BYTES = 6 << 30
"""Address space of the process: damaged sizes are refused here, and not by the machine."""
_TOKENS = (
    b"null", b"NaN", b"-1", b"1e300", b"1e999", b"0", b"99999999999999999999", b"[", b"{", b'"', b"[]", b"{}", b"true",
    b"-Infinity", b"\xff", b"\x00", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\n", b": ", b"- ", b"*a", b"&a", b"!!",
    b"%", b"2026-13-45", b"0x", b"'", b"\xed\xa0\x80", b" " * 50, b"[" * 2000, b"1" * 5000,
)  # fmt: skip

_change = st.tuples(
    st.sampled_from(("replace", "insert", "delete", "copy", "cut", "flip")),
    st.one_of(st.floats(0, 1, exclude_max=True), st.floats(0, 0.02)),
    st.one_of(st.sampled_from(_TOKENS), st.binary(min_size=1, max_size=8)),
)
changes = st.lists(_change, min_size=1, max_size=4)


def changed(data: bytes, done: list[Change]) -> bytes:
    """Bytes with some changes."""
    for kind, share, word in done:
        at = int(share * len(data))
        if kind == "replace":
            data = data[:at] + word + data[at + len(word) :]
        elif kind == "insert":
            data = data[:at] + word + data[at:]
        elif kind == "delete":
            data = data[:at] + data[at + len(word) :]
        elif kind == "copy":
            data = data[:at] + data[max(0, at - 64) : at] + data[at:]
        elif kind == "cut":
            data = data[:at]
        elif data:
            data = data[:at] + bytes([data[at] ^ (word[0] or 1)]) + data[at + 1 :]
    return data


class Cases:
    """Damages files of a reader and reads them."""

    def __init__(self, reader: Reader, folder: Path) -> None:
        self._reader, self._folder = reader, folder
        reader.make(folder)
        self._valid = {name: (folder / name).read_bytes() for name in reader.files}
        reader.read(folder)
        self.count = self.accepted = 0

    def run(self, name: str, member: int, done: list[Change]) -> None:
        """One case; raises what the reader raises, unless it is an error of ours."""
        data = self._valid[name]
        if self._reader.members:
            members = archive_members(data)
            key = sorted(members)[member % len(members)]
            data = archive_of({**members, key: changed(members[key], done)})
        else:
            data = changed(data, done)
        path = self._folder / name
        path.write_bytes(data)
        self.count += 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                self._reader.read(self._folder)
            self.accepted += 1
        except RsscError:
            pass
        path.write_bytes(self._valid[name])


def property_of(cases: Cases, names: tuple[str, ...]) -> Callable[[], None]:
    """The property that hypothesis tries to break."""

    @given(st.sampled_from(names), st.integers(0, 20), changes)
    def only_errors_of_ours(name: str, member: int, done: list[Change]) -> None:
        cases.run(name, member, done)

    return only_errors_of_ours


def fuzz(
    name: str, first_seed: int, seconds: float, folder: Path, cases_at_once: int = CASES_AT_ONCE
) -> dict[str, Any]:
    """Runs cases for a while; returns their number and the first failure, as small as it can be made."""
    cases = Cases(READERS[name], folder)
    common = settings(
        max_examples=cases_at_once, deadline=None, database=None, suppress_health_check=tuple(HealthCheck),  # pyright: ignore[reportArgumentType]

        phases=(Phase.generate, Phase.shrink), print_blob=False,
    )  # fmt: skip
    end, failure = time.monotonic() + seconds, ""
    number = first_seed
    while time.monotonic() < end and not failure:
        try:
            seed(number)(common(property_of(cases, READERS[name].files)))()
        except Exception:
            failure = traceback.format_exc(limit=-4)
        number += 1
    return {"cases": cases.count, "accepted": cases.accepted, "failure": failure}


def main(words: list[str]) -> None:
    name, first_seed, seconds, folder, cases_at_once = words
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    print(json.dumps(fuzz(name, int(first_seed), float(seconds), Path(folder), int(cases_at_once))))


if __name__ == "__main__":
    main(sys.argv[1:])
