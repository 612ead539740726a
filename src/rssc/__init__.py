"""Rolling-shutter camera self-calibration.

What the package offers is loaded when it is first used, so that `import rssc` and `rssc --help` take no time.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rssc.api import calibrate, catalog, check, dataset, evaluate, export, rectify, report, simulate, track
    from rssc.errors import InputError, NotCalibratableError, RsscError
    from rssc.fleet.entry import Catalog
    from rssc.fleet.options import CatalogOptions
    from rssc.model import Camera, Lens, Scene, Shutter, Tracks, Trajectory
    from rssc.model.calibration import Calibration
    from rssc.outputs.dataset import Dataset
    from rssc.outputs.evaluate import Evaluation
    from rssc.outputs.options import (
        DatasetOptions,
        EvaluateOptions,
        ExportOptions,
        RectifyOptions,
        ReportOptions,
        SimulateOptions,
    )
    from rssc.outputs.rectify_footage import RectifiedFootage
    from rssc.outputs.result_folder import write_results
    from rssc.pipeline.check import Check
    from rssc.pipeline.options import CalibrateOptions, SourceOptions, TrackOptions
    from rssc.solver.bundle import adjust

__all__ = [
    "CalibrateOptions", "Calibration", "Camera", "Catalog", "CatalogOptions", "Check", "Dataset", "DatasetOptions",
    "EvaluateOptions", "Evaluation", "ExportOptions", "InputError", "Lens", "NotCalibratableError",
    "RectifiedFootage", "RectifyOptions", "ReportOptions", "RsscError", "Scene", "Shutter", "SimulateOptions",
    "SourceOptions", "TrackOptions", "Tracks", "Trajectory", "adjust", "calibrate", "catalog", "check", "dataset",
    "evaluate", "export", "rectify", "report", "simulate", "track", "write_results",
]  # fmt: skip
__version__ = "0.1.0"

_HOMES = {
    "rssc.api": (
        "calibrate",
        "catalog",
        "check",
        "dataset",
        "evaluate",
        "export",
        "rectify",
        "report",
        "simulate",
        "track",
    ),
    "rssc.errors": ("InputError", "NotCalibratableError", "RsscError"),
    "rssc.fleet.entry": ("Catalog",),
    "rssc.fleet.options": ("CatalogOptions",),
    "rssc.model": ("Camera", "Lens", "Scene", "Shutter", "Tracks", "Trajectory"),
    "rssc.model.calibration": ("Calibration",),
    "rssc.outputs.dataset": ("Dataset",),
    "rssc.outputs.evaluate": ("Evaluation",),
    "rssc.outputs.options": (
        "DatasetOptions",
        "EvaluateOptions",
        "ExportOptions",
        "RectifyOptions",
        "ReportOptions",
        "SimulateOptions",
    ),
    "rssc.outputs.rectify_footage": ("RectifiedFootage",),
    "rssc.outputs.result_folder": ("write_results",),
    "rssc.pipeline.check": ("Check",),
    "rssc.pipeline.options": ("CalibrateOptions", "SourceOptions", "TrackOptions"),
    "rssc.solver.bundle": ("adjust",),
}


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(home), name)
            globals()[name] = value
            return value
    try:
        if not name.startswith("_"):
            return import_module(f"rssc.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"rssc.{name}":
            raise
    raise AttributeError(f"module 'rssc' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
