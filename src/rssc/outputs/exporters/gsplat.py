"""gsplat: arrays for `gsplat.rasterization(.., rolling_shutter=, viewmats=, viewmats_rs=)`.

gsplat sees row v of a top-to-bottom sensor at t = v / (H - 1) between `viewmats` (t = 0) and `viewmats_rs` (t = 1),
and correspondingly in the other directions, so these are the poses of the row that is read first and of the one that is
read last. Between them it interpolates: spherically in rotation, linearly in the translation of world to camera. Its
kernels take single precision and nothing else, so that is what is written.
"""

import json

import numpy as np
from numpy.typing import NDArray

from rssc.io.files import npz_bytes
from rssc.outputs.exporters.exporter import CENTRE_HALF, HALF_PIXEL, Export, Exporter, Files, homogeneous

_SHUTTER_TYPES = {"top_to_bottom": 0, "left_to_right": 1, "bottom_to_top": 2, "right_to_left": 3}
_GLOBAL_SHUTTER = 4


def _gsplat(export: Export) -> Files:
    camera, count = export.camera, len(export.frames.names)
    first, last = homogeneous(export.row_poses(0)), homogeneous(export.row_poses(export.line_count - 1))
    if camera.shutter.readout_ratio < 0:
        first, last = last, first
    matrix = export.matrix
    matrix[:2, 2] += HALF_PIXEL
    # Of a perspective lens k1 k2 k3 over k4 k5 k6, as in OpenCV's rational model.
    names = ("k1", "k2", "k3", "k4") if export.is_fisheye else ("k1", "k2", "k3", "k4", "k5", "k6", "p1", "p2")
    coefficients = np.array(export.coefficients(names), np.float32)
    arrays: dict[str, NDArray[np.generic]] = {
        "viewmats": first.astype(np.float32),
        "Ks": np.tile(matrix.astype(np.float32), (count, 1, 1)),
        "radial_coeffs": np.tile(coefficients[:6], (count, 1)),
        "width": np.array(camera.width),
        "height": np.array(camera.height),
        "camera_model": np.array("fisheye" if export.is_fisheye else "pinhole"),
        "rolling_shutter": np.array(_SHUTTER_TYPES[camera.shutter.direction]),
        "names": np.array(export.image_names),
        "points": export.frames.scene.points.astype(np.float32),
        "colours": export.point_colours,
        "statement": np.array(json.dumps(dict(export.statement), indent=1)),
    }
    if not export.is_fisheye:
        arrays["tangential_coeffs"] = np.tile(coefficients[6:], (count, 1))
    if export.readout_time_s == 0:
        # gsplat refuses a second pose for a global shutter.
        arrays["rolling_shutter"] = np.array(_GLOBAL_SHUTTER)
    else:
        arrays["viewmats_rs"] = last.astype(np.float32)
    return {"gsplat.npz": npz_bytes(arrays, str(export.statement["written_by"]))}


GSPLAT = Exporter(
    units="pixels; scene units; world-to-camera matrices with OpenCV's axes",
    span="H - 1 line delays: from the row that is read first (viewmats) to the one that is read last (viewmats_rs)",
    reference_row="the row that is read first for viewmats, the row that is read last for viewmats_rs",
    pixel_centre=CENTRE_HALF,
    files=_gsplat,
    has_poses=True,
)
