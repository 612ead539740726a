"""A calibration target is named by a YAML file (Kalibr's format, and the same idea for charuco) or by a word such as
`aprilgrid:6x6:0.088:0.3`, `checkerboard:7x6:0.03` or `charuco:7x5:0.04:0.03:DICT_4X4_50`.
"""

from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import cast

from rssc.errors import InputError
from rssc.io.yaml_file import read_yaml
from rssc.model.target import AprilGrid, Charuco, Checkerboard, Target

EXAMPLES = "aprilgrid:6x6:0.088:0.3, checkerboard:7x6:0.03 or charuco:7x5:0.04:0.03:DICT_4X4_50"

_LARGEST = 1e9
"""Number of a board: counts, or lengths in metres."""


def read_target(text: str) -> Target:
    """The target named by a YAML file or by a word."""
    path = Path(text)
    if path.exists():
        return _from_yaml(path)
    kind, colon, rest = text.partition(":")
    if kind not in ("aprilgrid", "checkerboard", "charuco") or not colon:
        raise InputError(f"target is {text!r}, which is no file; expected a YAML file or a word such as {EXAMPLES}.")
    try:
        return _from_word(kind, rest)
    except (ValueError, TypeError, IndexError):
        raise InputError(f"target {text!r} is not complete; expected a word such as {EXAMPLES}.") from None


def _from_word(kind: str, rest: str) -> Target:
    counts, *values = rest.split(":")
    columns, rows = (int(n) for n in counts.lower().split("x"))
    if kind == "charuco":
        return Charuco(columns, rows, float(values[0]), float(values[1]), *values[2:])
    if kind == "checkerboard":
        return Checkerboard(columns, rows, float(values[0]), float(values[-1]))
    tag_size, spacing = (float(value) for value in values)
    return AprilGrid(columns, rows, tag_size, spacing)


class _Document:
    """A YAML document that describes a target."""

    def __init__(self, path: Path, fields: Mapping[str, object]) -> None:
        self.path, self.fields = path, fields
        self.kind = fields.get("target_type")

    def number(self, name: str) -> float:
        value = self.fields.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"{self.path} has {name}: {value}; expected a number, because target_type is {self.kind}.")
        if abs(value) > _LARGEST:
            raise InputError(f"{self.path} has a {name} beyond {_LARGEST:g}, which no board has.")
        return float(value)

    def count(self, name: str) -> int:
        value = self.number(name)
        if not isfinite(value) or value != int(value):
            raise InputError(f"{self.path} has {name}: {value}; expected a whole number.")
        return int(value)


def _from_yaml(path: Path) -> Target:
    document = _Document(path, _string_keys(read_yaml(path)))
    number, count = document.number, document.count
    if document.kind == "aprilgrid":
        return AprilGrid(count("tagCols"), count("tagRows"), number("tagSize"), number("tagSpacing"))
    if document.kind == "checkerboard":
        spacings = number("colSpacingMeters"), number("rowSpacingMeters")
        return Checkerboard(count("targetCols"), count("targetRows"), *spacings)
    if document.kind == "charuco":
        dictionary = str(document.fields.get("dictionary", Charuco.dictionary))
        sizes = number("squareSize"), number("markerSize")
        return Charuco(count("targetCols"), count("targetRows"), *sizes, dictionary)
    raise InputError(f"{path} has target_type: {document.kind}; expected aprilgrid, checkerboard or charuco.")


def _string_keys(content: object) -> dict[str, object]:
    """The fields of a YAML mapping; none where it is something else."""
    if not isinstance(content, dict):
        return {}
    return {str(name): value for name, value in cast(dict[object, object], content).items()}
