"""Gyroflow's lens profile."""

from rssc.outputs.exporters.exporter import CENTRE_ZERO, Export, Exporter, Files, json_bytes

_GYROFLOW_DIRECTIONS = {
    "top_to_bottom": "TopToBottom",
    "bottom_to_top": "BottomToTop",
    "left_to_right": "LeftToRight",
    "right_to_left": "RightToLeft",
}


def _gyroflow(export: Export) -> Files:
    camera, said = export.camera, export.metadata
    size = {"w": camera.width, "h": camera.height}
    profile: dict[str, object] = {
        "name": " ".join(filter(None, [said.camera, said.lens, f"rssc {camera.width}x{camera.height}"])),
        "note": "",
        "calibrated_by": "rssc",
        "camera_brand": said.make,
        "camera_model": said.model,
        "lens_model": said.lens,
        "camera_setting": "",
        "calib_dimension": size,
        "orig_dimension": size,
        "frame_readout_time": 1e3 * export.readout_time_s,
        "frame_readout_direction": _GYROFLOW_DIRECTIONS[camera.shutter.direction],
        "global_shutter": export.readout_time_s == 0,
        "input_horizontal_stretch": 1.0,
        "input_vertical_stretch": 1.0,
        "fps": 1 / export.frame_interval_s,
        # Without this Gyroflow puts the principal point into the middle of the image.
        "asymmetrical": True,
        "distortion_model": "opencv_fisheye" if export.is_fisheye else "opencv_standard",
        # The name is historical: Gyroflow keeps the parameters of every distortion model here.
        "fisheye_params": {
            "RMS_error": 0.0,
            "camera_matrix": export.matrix.tolist(),
            "distortion_coeffs": list(export.distortion),
        },
        "identifier": "",
        # Gyroflow refuses a profile whose version is empty.
        "calibrator_version": "rssc",
        "date": "",
        "rssc": dict(export.statement),
    }
    return {"gyroflow_lens_profile.json": json_bytes(profile)}


GYROFLOW = Exporter(
    units="pixels; frame_readout_time in milliseconds per frame, positive, with frame_readout_direction",
    span="H line delays: row v is read frame_readout_time * (v / H - 0.5) after the time stamp",
    reference_row="row H / 2: Gyroflow takes time stamps for those of the middle of the frame",
    pixel_centre=CENTRE_ZERO,
    files=_gyroflow,
)
