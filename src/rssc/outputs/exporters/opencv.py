"""OpenCV's own YAML (cv::FileStorage), and VINS-Mono's configuration, which is written in it."""

import numpy as np

from rssc.model.arrays import FloatArray
from rssc.outputs.exporters.exporter import CENTRE_ZERO, DOWNWARDS, Export, Exporter, Files, comment


def _matrix(name: str, values: FloatArray) -> str:
    values = np.atleast_2d(values)
    data = ", ".join(repr(float(value)) for value in values.ravel())
    rows, columns = values.shape
    return f"{name}: !!opencv-matrix\n   rows: {rows}\n   cols: {columns}\n   dt: d\n   data: [ {data} ]\n"


def _map(name: str, values: dict[str, float]) -> str:
    return f"{name}:\n" + "".join(f"   {key}: {value!r}\n" for key, value in values.items())


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


def _vins(export: Export) -> Files:
    lens = export.camera.lens
    k1, k2, third, fourth = export.distortion
    if export.is_fisheye:
        coefficients = {"k2": k1, "k3": k2, "k4": third, "k5": fourth}
        projection = coefficients | {"mu": lens.fx, "mv": lens.fy, "u0": lens.cx, "v0": lens.cy}
        model = "model_type: KANNALA_BRANDT\n"
        parameters = _map("projection_parameters", projection)
    else:
        model = "model_type: PINHOLE\n"
        parameters = _map("distortion_parameters", {"k1": k1, "k2": k2, "p1": third, "p2": fourth})
        parameters += _map("projection_parameters", {"fx": lens.fx, "fy": lens.fy, "cx": lens.cx, "cy": lens.cy})
    text = (
        "%YAML:1.0\n---\n"
        + comment(export.statement)
        + "# The camera's part of a VINS-Mono configuration; topics, extrinsics and IMU noise are yours to add.\n"
        + model
        + "camera_name: camera\n"
        + f"image_width: {export.camera.width}\nimage_height: {export.camera.height}\n"
        + parameters
        + f"rolling_shutter: {int(export.readout_time_s > 0)}\n"
        + f"rolling_shutter_tr: {export.readout_time_s!r}\n"
    )
    return {"vins_camera.yaml": text.encode()}


VINS = Exporter(
    units="pixels; rolling_shutter_tr in seconds per frame",
    span="H line delays: row v is read rolling_shutter_tr * (v - H / 2) / H after the time stamp",
    reference_row="row H / 2: VINS-Mono takes time stamps for those of the middle row",
    pixel_centre=CENTRE_ZERO,
    files=_vins,
    directions=DOWNWARDS,
)
