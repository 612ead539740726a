"""YAML files of other tools, OpenCV's among them: its own reader crashes on some that are damaged."""

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from rssc.errors import InputError
from rssc.io.reading import read_text

_MOST_NODES = 1_000_000
"""Values that a file may stand for: with a few lines of aliases it may stand for more than memory holds."""


class _Loader(yaml.SafeLoader):
    """With matrices of OpenCV's."""


def _matrix(loader: _Loader, node: yaml.MappingNode) -> dict[Hashable, Any]:
    """rows, cols and data of a matrix of OpenCV's."""
    return loader.construct_mapping(node, deep=True)


_Loader.add_constructor("tag:yaml.org,2002:opencv-matrix", _matrix)


def _count(node: yaml.Node, known: dict[int, int]) -> int:
    """Values that a node stands for, its aliases written out."""
    if id(node) in known:
        return known[id(node)]
    known[id(node)] = _MOST_NODES  # until it is known: an alias within itself stands for no end of them
    parts: list[yaml.Node] = []
    if isinstance(node, yaml.SequenceNode):
        parts = node.value
    elif isinstance(node, yaml.MappingNode):
        parts = [part for pair in node.value for part in pair]
    known[id(node)] = 1 + sum(_count(part, known) for part in parts)
    return known[id(node)]


def read_yaml(path: Path) -> Any:
    """The contents of a YAML file.

    Raises:
        InputError: It cannot be read, or is no YAML.
    """
    text = read_text(path, "YAML")
    if text.startswith("%YAML:"):
        # OpenCV's own way to write the version, which YAML does not allow.
        text = text.partition("\n")[2]
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        if _count(node, {}) > _MOST_NODES:
            raise yaml.YAMLError("its aliases stand for too much")
        return loader.construct_document(node)  # pyright: ignore[reportUnknownMemberType]
    except RecursionError as error:
        raise InputError(f"{path} is nested too deeply; expected a calibration file.") from error
    # Numbers and dates that are none end as any of the last ones.
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, OverflowError) as error:
        raise InputError(f"{path} is not YAML: {(str(error).splitlines() or ['damaged'])[0]}.") from error
