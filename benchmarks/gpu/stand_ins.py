"""Stands in for numba and OpenCV, which a machine with a GPU need not have.

Kernels are then plain Python, fast enough for what is asked of them beside the rendering; of OpenCV nothing is used.
"""

import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any


def stand_in() -> None:
    """Must be called before anything else of ours is imported."""
    if find_spec("numba") is None:
        jit: Any = ModuleType("rssc.kernels.jit")
        jit.kernel = jit.part = jit.inlined = _left_as_it_is
        sys.modules["rssc.kernels.jit"] = jit
    if find_spec("cv2") is None:
        sys.modules["cv2"] = ModuleType("cv2")


def _left_as_it_is(function: Any) -> Any:
    return function
