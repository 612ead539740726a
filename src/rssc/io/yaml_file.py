"""YAML files of other tools, OpenCV's among them: its own reader crashes on some that are damaged."""

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from rssc.errors import InputError
from rssc.io.reading import read_text


class _Loader(yaml.SafeLoader):
    """Without aliases: calibration files need none, and a few lines of them stand for more than memory holds."""

    def compose_node(self, parent: yaml.Node | None, index: Hashable) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*) are not read")
        return super().compose_node(parent, index)  # pyright: ignore[reportArgumentType]


def _matrix(loader: _Loader, node: yaml.MappingNode) -> dict[Hashable, Any]:
    """rows, cols and data of a matrix of OpenCV's."""
    return loader.construct_mapping(node, deep=True)


_Loader.add_constructor("tag:yaml.org,2002:opencv-matrix", _matrix)


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
        return yaml.load(text, _Loader)
    except RecursionError as error:
        raise InputError(f"{path} is nested too deeply; expected a calibration file.") from error
    # Numbers and dates that are none end as any of the last ones.
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, OverflowError) as error:
        raise InputError(f"{path} is not YAML: {(str(error).splitlines() or ['damaged'])[0]}.") from error
