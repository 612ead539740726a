"""ST maps: float images that say, for every pixel of a result, where in the source it is; Nuke's STMap reads them.

Red and green are the place as a share of the source's width and height, from its lower left corner, so that a pixel
(x, y) of ours, with y downwards, is

    s = (x + 1/2) / W,    t = 1 - (y + 1/2) / H.

Of places that the source does not show, both are -1. The files are OpenEXR, 32 bits a channel, with what is stated of
them in the attribute "rssc" of their headers.
"""

import json
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rssc.errors import InputError
from rssc.model.arrays import FloatArray
from rssc.outputs.exporters.exporter import Export, Exporter, Files, MadeFiles
from rssc.outputs.options import RectifyOptions
from rssc.outputs.rectify import Rectifier
from rssc.runtime.temporary import temporary_folder

_NOWHERE = -1.0
_CENTRE = "pixel centres are at (x + 0.5) / W and 1 - (y + 0.5) / H, from the lower left corner, as in Nuke"


def _openexr() -> Any:
    """The package, which has no types."""
    try:
        return import_module("OpenEXR")
    except ImportError as error:
        raise InputError("ST maps need the package OpenEXR: pip install 'rssc[film]'.") from error


def _exr_bytes(pixels: NDArray[np.floating], export: Export) -> bytes:
    """An ST map of (h, w, 2) pixels of the source; NaN where it does not show the place."""
    openexr = _openexr()
    width, height = export.camera.width, export.camera.height
    places = np.stack([(pixels[..., 0] + 0.5) / width, 1 - (pixels[..., 1] + 0.5) / height], axis=-1)
    places = np.nan_to_num(places, nan=_NOWHERE).astype(np.float32)
    header: dict[str, object] = {
        "compression": openexr.ZIP_COMPRESSION,
        "type": openexr.scanlineimage,
        "rssc": json.dumps(dict(export.statement)),
    }
    channels = {name: np.ascontiguousarray(places[..., i]) for i, name in enumerate("RG")}
    with temporary_folder() as folder:
        path = folder / "map.exr"
        openexr.File(header, channels).write(str(path))
        return path.read_bytes()


def _lens_map(export: Export, source_of: Callable[[FloatArray], FloatArray]) -> bytes:
    """The map of a function from (n, 2) pixels of the result to those of the source."""
    return _exr_bytes(source_of(export.camera.pixels).reshape(export.camera.height, export.camera.width, 2), export)


def _lens_maps(export: Export) -> Files:
    lens = export.camera.lens
    pinhole = lens.without_distortion()
    # The undistorted picture is a pinhole's of the same size and camera matrix, as with `rssc rectify --undistort`.
    maps: dict[str, Callable[[FloatArray], FloatArray]] = {
        "undistort.exr": lambda pixels: lens.project(pinhole.unproject(pixels)),
        "redistort.exr": lambda pixels: pinhole.project(lens.unproject(pixels)),
    }
    return MadeFiles({name: partial(_lens_map, export, source_of) for name, source_of in maps.items()})


STMAP = Exporter(
    units="shares of width and height; undistort.exr goes from the frame to the pinhole's of the same size, focal "
    "lengths and centre, redistort.exr back",
    span="H line delays: from the first row to one past the last; stated only",
    reference_row="none: the maps are of the lens alone",
    pixel_centre=_CENTRE,
    files=_lens_maps,
    has_row_times=False,
)


def _frame_maps(export: Export) -> Files:
    rectifier = Rectifier(export.frames.scene, RectifyOptions(row=export.row))

    def make(frame: int) -> bytes:
        return _exr_bytes(rectifier.source_map(frame), export)

    numbers = enumerate(export.frames.frame_numbers.tolist())
    return MadeFiles({f"stmap_{number:06d}.exr": partial(make, frame) for frame, number in numbers})


STMAP_FRAMES = Exporter(
    units="shares of width and height; the number in a file's name is that of the frame in the source",
    span="H line delays: from the first row to one past the last",
    reference_row="what a global shutter sees when one row is read, by default the middle one, (H - 1) / 2 counted "
    "from 0; lens distortion stays",
    pixel_centre=_CENTRE,
    files=_frame_maps,
    has_poses=True,
    has_row_times=False,
    has_row_choice=True,
    has_frame_images=True,
)
