"""YAML of robotics tools: Kalibr's camera chain and ROS's camera_info."""

import numpy as np
import yaml

from rssc.model.arrays import FloatArray
from rssc.outputs.exporters.exporter import CENTRE_ZERO, DOWNWARDS, Export, Exporter, Files, comment


def _yaml(export: Export, document: dict[str, object]) -> bytes:
    return (comment(export.statement) + yaml.safe_dump(document, default_flow_style=None, sort_keys=False)).encode()


def _kalibr(export: Export) -> Files:
    camera, lens = export.camera, export.camera.lens
    document: dict[str, object] = {
        "cam0": {
            "camera_model": "pinhole",
            "intrinsics": [lens.fx, lens.fy, lens.cx, lens.cy],
            # A pinhole lens too: Kalibr's reader fails on the model `none`, and zero coefficients mean the same.
            "distortion_model": "equidistant" if export.is_fisheye else "radtan",
            "distortion_coeffs": list(export.distortion),
            "resolution": [camera.width, camera.height],
            "rostopic": "/cam0/image_raw",
            "line_delay": export.readout_time_s / export.line_count,
        }
    }
    return {"camchain.yaml": _yaml(export, document)}


KALIBR = Exporter(
    description="camchain, radtan or equidistant; line_delay in s per row",
    units="pixels; line_delay in seconds per row",
    span="one row: row v is read line_delay * v after the time stamp",
    reference_row="first row (row 0)",
    pixel_centre=CENTRE_ZERO,
    files=_kalibr,
    directions=DOWNWARDS,
)


def _ros_matrix(values: FloatArray) -> dict[str, object]:
    rows, columns = values.shape
    return {"rows": rows, "cols": columns, "data": [float(value) for value in values.ravel()]}


def _ros(export: Export) -> Files:
    # plumb_bob is k1 k2 p1 p2 k3.
    coefficients = export.distortion if export.is_fisheye else (*export.distortion, 0.0)
    document: dict[str, object] = {
        "image_width": export.camera.width,
        "image_height": export.camera.height,
        "camera_name": "camera",
        "camera_matrix": _ros_matrix(export.matrix),
        "distortion_model": "equidistant" if export.is_fisheye else "plumb_bob",
        "distortion_coefficients": _ros_matrix(np.array([coefficients])),
        "rectification_matrix": _ros_matrix(np.eye(3)),
        "projection_matrix": _ros_matrix(np.hstack([export.matrix, np.zeros((3, 1))])),
    }
    return {"camera_info.yaml": _yaml(export, document)}


ROS = Exporter(
    description="camera_info YAML, plumb_bob or equidistant; the shutter in a comment, ROS has no field for it",
    units="pixels",
    span="H line delays: from the first row to one past the last; in the comment only",
    reference_row="none: camera_info has no row times",
    pixel_centre=CENTRE_ZERO,
    files=_ros,
    has_row_times=False,
)
