"""YAML of robotics tools: Kalibr's camera chain and ROS's camera_info."""

import numpy as np
import yaml

from rssc.model.arrays import FloatArray
from rssc.outputs.exporters.exporter import CENTRE_ZERO, DOWNWARDS, Export, Exporter, Files, comment


def _yaml(export: Export, document: dict[str, object]) -> bytes:
    return (comment(export.statement) + yaml.safe_dump(document, default_flow_style=None, sort_keys=False)).encode()


def _kalibr(export: Export) -> Files:
    camera, lens = export.camera, export.camera.lens
    model = export.tool_model(export.lens_model.kalibr)
    document: dict[str, object] = {
        "cam0": {
            "camera_model": "pinhole",
            "intrinsics": [lens.fx, lens.fy, lens.cx, lens.cy],
            "distortion_model": model.name,
            "distortion_coeffs": list(export.coefficients(model.coefficients)),
            "resolution": [camera.width, camera.height],
            "rostopic": "/cam0/image_raw",
            "line_delay": export.readout_time_s / export.line_count,
        }
    }
    return {"camchain.yaml": _yaml(export, document)}


KALIBR = Exporter(
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


def _ros_model(export: Export) -> tuple[str, tuple[str, ...]]:
    """ROS's name of the lens model, and our names of its coefficients."""
    if export.is_fisheye:
        return "equidistant", ("k1", "k2", "k3", "k4")
    plumb_bob = ("k1", "k2", "p1", "p2", "k3")
    if set(export.camera.lens.coefficient_names) <= set(plumb_bob):
        return "plumb_bob", plumb_bob
    return "rational_polynomial", (*plumb_bob, "k4", "k5", "k6")


def _ros(export: Export) -> Files:
    name, names = _ros_model(export)
    document: dict[str, object] = {
        "image_width": export.camera.width,
        "image_height": export.camera.height,
        "camera_name": "camera",
        "camera_matrix": _ros_matrix(export.matrix),
        "distortion_model": name,
        "distortion_coefficients": _ros_matrix(np.array([export.coefficients(names)])),
        "rectification_matrix": _ros_matrix(np.eye(3)),
        "projection_matrix": _ros_matrix(np.hstack([export.matrix, np.zeros((3, 1))])),
    }
    return {"camera_info.yaml": _yaml(export, document)}


ROS = Exporter(
    units="pixels",
    span="H line delays: from the first row to one past the last; in the comment only",
    reference_row="none: camera_info has no row times",
    pixel_centre=CENTRE_ZERO,
    files=_ros,
    has_row_times=False,
)
