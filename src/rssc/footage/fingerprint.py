"""Fingerprints of sources by their contents: a copy has the same, whatever its name; a re-encoded one has not."""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from rssc.errors import InputError
from rssc.footage.image_folder import ImageFolder
from rssc.model.provenance import SourceRecord

_BLOCK_BYTES = 1 << 20
"""Of each place that is looked at: videos may be too large to be read as a whole."""


def source_fingerprint(source: Path) -> str:
    """SHA-256 of sizes, and of what is at the beginning, in the middle and at the end.

    Of a folder, the names and sizes of all images count, and the contents of the first, the middle and the last.
    """
    digest = sha256()
    try:
        if source.is_dir():
            files = ImageFolder(source, 1.0).files
            for file in files:
                digest.update(f"{file.name}/{file.stat().st_size};".encode("utf-8", "surrogateescape"))
            chosen = sorted({0, len(files) // 2, len(files) - 1})
            for i in chosen:
                digest.update(_sample(files[i]))
        else:
            digest.update(_sample(source))
    except OSError as error:
        raise InputError(f"cannot read {source}: {error.strerror or error}.") from error
    return digest.hexdigest()


def _sample(path: Path) -> bytes:
    """The size of a file and what is at its beginning, in its middle and at its end; all of a small one."""
    size = path.stat().st_size
    begins = (0, (size - _BLOCK_BYTES) // 2, size - _BLOCK_BYTES)
    with path.open("rb") as file:
        if size <= len(begins) * _BLOCK_BYTES:
            return f"{size};".encode() + file.read()
        blocks: list[bytes] = []
        for begin in begins:
            file.seek(begin)
            blocks.append(file.read(_BLOCK_BYTES))
    return f"{size};".encode() + b"".join(blocks)


def names_of(source: Path, records: Sequence[SourceRecord]) -> set[str]:
    """The names under which a source was calibrated, found by its contents.

    Raises:
        InputError: It was not; another one was.
    """
    fingerprint = source_fingerprint(source)
    names = {record.name for record in records if record.fingerprint == fingerprint}
    if not names:
        calibrated = ", ".join(record.name for record in records)
        raise InputError(f"{source} is not what was calibrated ({calibrated}): its contents differ.")
    return names
