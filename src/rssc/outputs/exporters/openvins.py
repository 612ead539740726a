"""OpenVINS: the camera's chain (https://docs.openvins.com/gs-calibration.html; print_and_load_state in
ov_msckf/src/core/VioManagerOptions.h), Kalibr's keys in YAML of OpenCV.

OpenVINS takes a frame for that of a global shutter at its time stamp plus `timeshift_cam_imu`, which Kalibr counts from
the camera's clock to the IMU's. Of stamps of the first row, the middle row is the best such moment.
"""

from rssc.outputs.exporters.exporter import CENTRE_ZERO, Export, Exporter, Files, comment


def _openvins(export: Export) -> Files:
    camera, lens = export.camera, export.camera.lens
    model = export.tool_model(export.lens_model.kalibr)
    middle_s = export.row_delay((export.line_count - 1) / 2) * export.frame_interval_s
    text = (
        "%YAML:1.0\n---\n"
        + comment(export.statement)
        + "# T_imu_cam, which OpenVINS asks for, is yours to add. timeshift_cam_imu is right for stamps of row 0 and\n"
        + "# clocks that agree: row 0 to the middle row. OpenVINS refines it with calib_cam_timeoffset.\n"
        + "cam0:\n"
        + "  camera_model: pinhole\n"
        + f"  distortion_coeffs: {list(export.coefficients(model.coefficients))!r}\n"
        + f"  distortion_model: {model.name}\n"
        + f"  intrinsics: {[lens.fx, lens.fy, lens.cx, lens.cy]!r}\n"
        + f"  resolution: [{camera.width}, {camera.height}]\n"
        + "  rostopic: /cam0/image_raw\n"
        + f"  timeshift_cam_imu: {middle_s!r}\n"
    )
    return {"kalibr_imucam_chain.yaml": text.encode()}


OPENVINS = Exporter(
    units="pixels; timeshift_cam_imu in seconds",
    span="H line delays: from the first row to one past the last; in the comment only",
    reference_row="middle row, (H - 1) / 2 counted from 0: timeshift_cam_imu goes there from a stamp of row 0",
    pixel_centre=CENTRE_ZERO,
    files=_openvins,
    has_row_times=False,
)
