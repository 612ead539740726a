"""What a user may choose of a catalog, as `rssc.pipeline.options` has it: the text under a field is its help."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rssc.errors import InputError
from rssc.names import LENS_NAMES, LensName

_LEAST_GB = 0.5
"""An interpreter with all libraries loaded has 0.3."""


@dataclass(frozen=True)
class CatalogOptions:
    """How to make a catalog of cameras."""

    table: Path | None = None
    """CSV with a column path, and camera or mode or both: it wins over what files say, and may name clips elsewhere."""
    lens: Literal["auto"] | LensName = "auto"
    """Lens model of all clips; auto chooses by evidence, one for each camera and mode."""
    check: bool = True
    """Looking at forty frames of each clip first, and calibrating only those that may do."""
    memory: float | None = None
    """Gigabytes that a worker may use; an equal share of the machine's where not given, on a cluster no bound."""
    scheduler: str | None = None
    """Address of a Dask scheduler whose workers do the work instead, for instance tcp://10.0.0.1:8786."""

    def __post_init__(self) -> None:
        if self.lens != "auto" and self.lens not in LENS_NAMES:
            raise InputError(f"lens is {self.lens!r}; expected auto or one of {', '.join(LENS_NAMES)}.")
        if self.memory is not None and not self.memory >= _LEAST_GB:
            raise InputError(f"memory is {self.memory:g} GB; expected at least {_LEAST_GB:g}, better 2 and more.")
