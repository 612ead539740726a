"""OpenICC's camera calibration (https://github.com/urbste/OpenImuCameraCalibrator, src/io/read_camera_calibration.cc).

It is what OpenICC calibrates IMUs with, and what universal_manipulation_interface reads for its GoPros
(umi/common/cv_util.py, parse_fisheye_intrinsics; of a fisheye only, and with fy = fx). The lens models are Theia's:
FISHEYE has OpenCV's four coefficients, PINHOLE_RADIAL_TANGENTIAL its k1 k2 p1 p2 k3.
"""

from rssc.outputs.exporters.exporter import CENTRE_ZERO, Export, Exporter, Files, json_bytes

_FISHEYE = {f"radial_distortion_{i}": f"k{i}" for i in (1, 2, 3, 4)}
_PINHOLE = {
    "radial_distortion_1": "k1",
    "radial_distortion_2": "k2",
    "radial_distortion_3": "k3",
    "tangential_distortion_1": "p1",
    "tangential_distortion_2": "p2",
}


def _openicc(export: Export) -> Files:
    camera, lens = export.camera, export.camera.lens
    names = _FISHEYE if export.is_fisheye else _PINHOLE
    document: dict[str, object] = {
        "rssc": dict(export.statement),
        "final_reproj_error": export.trust.rms_px,
        "fps": export.rate,
        "image_height": camera.height,
        "image_width": camera.width,
        "intrinsic_type": "FISHEYE" if export.is_fisheye else "PINHOLE_RADIAL_TANGENTIAL",
        "intrinsics": {
            "aspect_ratio": lens.fy / lens.fx,
            "focal_length": lens.fx,
            "principal_pt_x": lens.cx,
            "principal_pt_y": lens.cy,
            **dict(zip(names, export.coefficients(tuple(names.values())), strict=True)),
            "skew": 0.0,
        },
        "nr_calib_images": export.trust.frames,
        # Spelt as OpenICC spells it.
        "stabelized": False,
    }
    return {"openicc_camera.json": json_bytes(document)}


OPENICC = Exporter(
    units="pixels; frames per second",
    span="H line delays: from the first row to one past the last; in the key rssc only",
    reference_row="none: the file has no row times; OpenICC begins its own line delay at a whole frame interval",
    pixel_centre=CENTRE_ZERO,
    files=_openicc,
    has_row_times=False,
)
