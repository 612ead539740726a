"""OpenCV's own YAML (cv::FileStorage)."""

import numpy as np

from rssc.model.arrays import FloatArray
from rssc.outputs.exporters.exporter import CENTRE_ZERO, Export, Exporter, Files, comment


def _matrix(name: str, values: FloatArray) -> str:
    values = np.atleast_2d(values)
    data = ", ".join(repr(float(value)) for value in values.ravel())
    rows, columns = values.shape
    return f"{name}: !!opencv-matrix\n   rows: {rows}\n   cols: {columns}\n   dt: d\n   data: [ {data} ]\n"


def _opencv(export: Export) -> Files:
    camera, model = export.camera, export.tool_model(export.lens_model.opencv)
    text = (
        "%YAML:1.0\n---\n"
        + comment(export.statement)
        + f"image_width: {camera.width}\nimage_height: {camera.height}\n"
        # cv::fisheye and the standard functions read the same keys; only the name distinguishes k3 from p1.
        + f'distortion_model: "{"fisheye" if model.name == "fisheye" else "opencv"}"\n'
        + _matrix("camera_matrix", export.matrix)
        + _matrix("distortion_coefficients", np.array(export.coefficients(model.coefficients)))
        + f"readout_time_s: {export.readout_time_s!r}\n"
        + f"line_delay_s: {export.readout_time_s / export.line_count!r}\n"
        + f"frame_interval_s: {export.frame_interval_s!r}\n"
        + ("" if export.exposure_time_s is None else f"exposure_time_s: {export.exposure_time_s!r}\n")
        + f'readout_direction: "{camera.shutter.direction}"\n'
    )
    return {"camera.yaml": text.encode()}


OPENCV = Exporter(
    units="pixels; seconds",
    span="H line delays: from the first row to one past the last",
    reference_row="none: the file has no time stamps",
    pixel_centre=CENTRE_ZERO,
    files=_opencv,
    has_row_times=False,
)
