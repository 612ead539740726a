"""The time of every pixel: an image of seconds, for whoever models the shutter himself."""

import json

import numpy as np

from rssc.io.files import npz_bytes
from rssc.outputs.exporters.exporter import CENTRE_ZERO, Export, Exporter, Files


def _row_times(export: Export) -> Files:
    camera = export.camera
    # Pixels of images that were undistorted are looked up on the sensor.
    fractions = camera.row_fraction(camera.pixels).reshape(camera.height, camera.width)
    exposure = {} if export.exposure_time_s is None else {"exposure_time_s": np.array(export.exposure_time_s)}
    arrays = {
        "row_times_s": camera.shutter.readout_ratio * fractions * export.frame_interval_s,
        **exposure,
        "statement": np.array(json.dumps(dict(export.statement), indent=1)),
    }
    return {"row_times.npz": npz_bytes(arrays, str(export.statement["written_by"]))}


ROW_TIMES = Exporter(
    units="seconds, (height, width)",
    span="H line delays: row v of the sensor is read readout_time_s * v / H after row 0, before it where it reads "
    "backwards; exposed half of the exposure before and after",
    reference_row="row 0 of the sensor: its time is 0, the frame's time stamp",
    pixel_centre=CENTRE_ZERO,
    files=_row_times,
    has_row_times=False,
)
