"""VINS-Mono and Ctrl-VIO: YAML of OpenCV (cv::FileStorage) with a camera of camodocal's.

Ctrl-VIO (https://github.com/APRIL-ZJU/Ctrl-VIO, config/ and src/estimator/odometry_manager.cpp) takes the line delay in
another file than the lens, and refines it within bounds: three standard deviations to each side.
"""

from rssc.outputs.exporters.exporter import CENTRE_ZERO, DOWNWARDS, Export, Exporter, Files, comment

_BOUND_SIGMAS = 3.0


def _map(name: str, values: dict[str, float]) -> str:
    return f"{name}:\n" + "".join(f"   {key}: {value!r}\n" for key, value in values.items())


def _camera(export: Export) -> str:
    """camodocal's camera: a pinhole with four coefficients, or Kannala and Brandt's fisheye."""
    lens = export.camera.lens
    k1, k2, third, fourth = export.distortion
    if export.is_fisheye:
        coefficients = {"k2": k1, "k3": k2, "k4": third, "k5": fourth}
        projection = coefficients | {"mu": lens.fx, "mv": lens.fy, "u0": lens.cx, "v0": lens.cy}
        model, parameters = "KANNALA_BRANDT", _map("projection_parameters", projection)
    else:
        model = "PINHOLE"
        parameters = _map("distortion_parameters", {"k1": k1, "k2": k2, "p1": third, "p2": fourth})
        parameters += _map("projection_parameters", {"fx": lens.fx, "fy": lens.fy, "cx": lens.cx, "cy": lens.cy})
    return (
        f"model_type: {model}\ncamera_name: camera\n"
        f"image_width: {export.camera.width}\nimage_height: {export.camera.height}\n{parameters}"
    )


def _vins(export: Export) -> Files:
    text = (
        "%YAML:1.0\n---\n"
        + comment(export.statement)
        + "# The camera's part of a VINS-Mono configuration; topics, extrinsics and IMU noise are yours to add.\n"
        + _camera(export)
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


def _ctrl_vio(export: Export) -> Files:
    lens, said = export.camera.lens, comment(export.statement)
    delay = export.readout_time_s / export.line_count
    spread = _BOUND_SIGMAS * export.trust.sigma("readout_ratio") * export.frame_interval_s / export.line_count
    camera = (
        "%YAML:1.0\n---\n"
        + said
        + "# Feature tracking is as in Ctrl-VIO's own example; the topic is yours to change.\n"
        + "image_topic: /cam0/image_raw\n"
        + _camera(export)
        + f"focal_length: {round((lens.fx + lens.fy) / 2)}\n"
        + "max_cnt: 150\nmin_dist: 25\nfreq: 10\nF_threshold: 1.0\nshow_track: 1\nequalize: 1\nfisheye: 0\n"
        + "flow_back: 1\nfb_threshold: 0.5\nreject_wf: 0\nkeyframe_parallax: 10.0\n"
    )
    odometry = (
        said
        + "# The line delay's part of Ctrl-VIO's configuration: put it in place of its ld_ and fix_ld. It is refined\n"
        + f"# within {_BOUND_SIGMAS:g} standard deviations; extrinsics, IMU and paths are yours to add.\n"
        + "cam_yaml: /ctrl_vio_camera.yaml\n"
        + f"ld_init: {delay!r}\n"
        + f"fix_ld: {'false' if spread else 'true'}\n"
        + f"ld_lower: {max(0.0, delay - spread)!r}\n"
        + f"ld_upper: {delay + spread!r}\n"
    )
    return {"ctrl_vio_camera.yaml": camera.encode(), "ctrl_vio_line_delay.yaml": odometry.encode()}


CTRL_VIO = Exporter(
    units="pixels; ld_init, ld_lower and ld_upper in seconds per row",
    span="one row: row v is read ld_init * v after the time stamp",
    reference_row="first row (row 0)",
    pixel_centre=CENTRE_ZERO,
    files=_ctrl_vio,
    directions=DOWNWARDS,
)
