"""Gyroflow: a lens profile, and the camera's rotation as the log of a gyroscope (.gcsv).

Gyroflow's time is that of the video, 0 at its first frame, and a frame's time stamp is that of its row H / 2. A log
always begins at 0: the reader shifts the first sample there. Between two samples Gyroflow turns the camera by the rate
of the later one, so that is what a sample holds here: the turn since the sample before over the time between them.
The log then leads to our rotations exactly, at any rate, and does not drift.

Rates are about the camera's axes x right, y down, z forward. What the letters of an orientation pick from them,
g = (-wy, -wx, -wz) for "yxz", Gyroflow takes as (-g2, g1, g3) about x right, y up, z backward.
"""

import csv
import io
import json
import math

import numpy as np
from scipy.spatial.transform import Rotation

from rssc.model.arrays import FloatArray, IntArray
from rssc.model.stretch import Stretch
from rssc.outputs.exporters.exporter import CENTRE_ZERO, Export, Exporter, Files, json_bytes, trajectory_of

_DIRECTIONS = {
    "top_to_bottom": "TopToBottom",
    "bottom_to_top": "BottomToTop",
    "left_to_right": "LeftToRight",
    "right_to_left": "RightToLeft",
}
_SIZES = (
    (8000, "8k"), (6000, "6k"), (5000, "5k"), (4001, "C4k"), (3840, "4k"), (2700, "2.7k"), (2500, "2.5k"), (2000, "2k"),
    (1920, "1080p"), (1280, "720p"), (640, "480p"), (0, ""),
)  # fmt: skip
"""Least width, and what profiles of that width are called."""
_RATIOS = ((1, 1), (3, 2), (2, 3), (4, 3), (3, 4), (8, 7), (7, 8), (16, 9), (9, 16))
_NEAR_RATIO = 0.05
_FORBIDDEN = {ord(letter): "_" for letter in ":|*"} | {ord(letter): None for letter in '<">/\\'}
"""Letters that names of profiles do not have, and what stands for them."""
_RATE_HZ = 500
"""Of the log: Gyroflow interpolates between samples, and a hand or a drone hardly changes its rate within 2 ms."""


def _profile(export: Export) -> Files:
    camera, calibration = export.camera, export.calibration
    size = {"w": camera.width, "h": camera.height}
    brand, model, lens, setting = _camera_words(export)
    name = _profile_name(export)
    profile: dict[str, object] = {
        "name": name or f"rssc {camera.width}x{camera.height}",
        "note": "",
        "calibrated_by": "rssc",
        "camera_brand": brand,
        "camera_model": model,
        "lens_model": lens,
        "camera_setting": setting,
        "calib_dimension": size,
        "orig_dimension": size,
        "output_dimension": size,
        "frame_readout_time": 1e3 * export.readout_time_s,
        "frame_readout_direction": _DIRECTIONS[camera.shutter.direction],
        "global_shutter": export.readout_time_s == 0,
        "input_horizontal_stretch": 1.0,
        "input_vertical_stretch": 1.0,
        "num_images": calibration.statistics.frames,
        "fps": 1 / export.frame_interval_s,
        "official": False,
        # Without this Gyroflow puts the principal point into the middle of the image.
        "asymmetrical": True,
        "distortion_model": "opencv_fisheye" if export.is_fisheye else "opencv_standard",
        # The name is historical: Gyroflow keeps the parameters of every distortion model here.
        "fisheye_params": {
            "RMS_error": calibration.statistics.rms_px,
            "camera_matrix": export.matrix.tolist(),
            "distortion_coeffs": list(export.distortion),
        },
        "identifier": "",
        # Gyroflow refuses a profile whose version is empty.
        "calibrator_version": f"rssc {calibration.provenance.version}".strip(),
        "date": calibration.provenance.date[:10],
        "compatible_settings": [],
        "rssc": dict(export.statement),
    }
    # The name in the database is for those who submit it; who names no camera looks for a profile under one name.
    return {f"{name if export.options.camera_words and name else 'gyroflow_lens_profile'}.json": json_bytes(profile)}


def _camera_words(export: Export) -> tuple[str, str, str, str]:
    """Brand, model, lens and setting: as they were given, else as the files say."""
    options, known = export.options, export.calibration.metadata
    model = options.model or known.model
    brand = options.brand or known.make
    if not options.model and brand and model.lower().startswith(brand.lower() + " "):
        model = model[len(brand) + 1 :]
    return brand, model, options.lens or known.lens, options.setting


def _profile_name(export: Export) -> str:
    """Name of the profile in Gyroflow's database; empty where the camera has none."""
    brand, model, lens, setting = _camera_words(export)
    if not (brand and model):
        return ""
    width, height = export.camera.width, export.camera.height
    size = next(word for least, word in _SIZES if width >= least)
    if (width, height) == (1920, 1440):
        size = "1440p"
    words = (brand, model, lens, setting, size, _ratio_words(width, height), f"{width}x{height}")
    return f"{'_'.join(words)}-{1 / export.frame_interval_s:.2f}fps".translate(_FORBIDDEN)


def _ratio_words(width: int, height: int) -> str:
    across, down = min(_RATIOS, key=lambda ratio: abs(ratio[0] / ratio[1] - width / height))
    if abs(across / down - width / height) >= _NEAR_RATIO:
        common = math.gcd(width, height)
        across, down = width // common, height // common
        if max(across, down) >= 20:
            return f"{width / height:.2f}by1"
    return f"{across}by{down}"


GYROFLOW = Exporter(
    units="pixels; frame_readout_time in milliseconds per frame, positive, with frame_readout_direction",
    span="H line delays: row v is read frame_readout_time * (v / H - 0.5) after the time stamp",
    reference_row="row H / 2: Gyroflow takes time stamps for those of the middle of the frame",
    pixel_centre=CENTRE_ZERO,
    files=_profile,
    has_camera_words=True,
)


def _log(export: Export) -> Files:
    source = export.frames.source
    rows = [
        ("version", "1.3"),
        ("id", "rssc"),
        ("orientation", "yxz"),
        # Never the camera's own: Gyroflow reads logs of some makers in ways of their own.
        ("vendor", "rssc"),
        ("frame_readout_time", repr(1e3 * export.readout_time_s)),
        ("frame_readout_direction", list(_DIRECTIONS).index(export.camera.shutter.direction)),
        # Nothing is left to synchronise.
        ("has_accurate_timestamps", "true"),
        ("tscale", repr(1 / _RATE_HZ)),
        ("gscale", "1.0"),
        *((key, json.dumps(said) if isinstance(said, dict | list) else said) for key, said in export.statement.items()),
    ]
    # Readers look at the first 500 bytes to see what a file is: letters that are not ASCII come behind.
    if name := _profile_name(export):
        rows.append(("lensprofile", name))
    rows.append(("videofilename", " ".join(source.replace("\\", "/").rpartition("/")[2].split())))
    text = io.StringIO()
    text.write("GYROFLOW IMU LOG\n")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows(rows)
    writer.writerow(("t", "gx", "gy", "gz"))
    rates = _rates(export)
    text.writelines(f"{i},{x:.7f},{y:.7f},{z:.7f}\n" for i, (x, y, z) in enumerate(rates.tolist()))
    stem = source.replace("\\", "/").rpartition("/")[2].rpartition(".")
    return {f"{stem[0] or stem[2] or 'gyro'}.gcsv": text.getvalue().encode()}


def _rates(export: Export) -> FloatArray:
    """(n, 3) rates in rad/s at the times 0, 1 / _RATE_HZ, ..; zero where no stretch of the source has a trajectory."""
    interval_s, delay = export.frame_interval_s, export.row_delay(export.line_count / 2)
    source = export.frames.source
    stretches = [one.over_whole_image(interval_s) for one in export.calibration.stretches if one.source == source]
    stretches.sort(key=lambda one: one.times_s[0])
    # The stamp of frame 0, where that is not the first frame of a stretch: from the rate.
    begin_s = stretches[0].times_s[0] - stretches[0].frame_numbers[0] * interval_s
    rates = np.zeros((1, 3))
    for stretch in stretches:
        rates = _with_stretch(rates, stretch, begin_s, interval_s, delay)
    return rates


def _with_stretch(rates: FloatArray, stretch: Stretch, begin_s: float, interval_s: float, delay: float) -> FloatArray:
    """The rates with those of a stretch where they are still unknown, that is behind their end."""
    trajectory = trajectory_of(stretch)
    # A time of Gyroflow is that of row H / 2 of the frame with this time stamp.
    offset = stretch.scene.frame_times[0] + delay + (begin_s - stretch.times_s[0]) / interval_s
    per_sample = 1 / (_RATE_HZ * interval_s)
    last = math.floor((trajectory.end - offset) / per_sample)
    numbers: IntArray = np.arange(len(rates) - 1, last + 1, dtype=np.int64)
    if len(numbers) < 2:
        return rates
    # Held at its ends, so that nothing turns before the stretch begins.
    times = np.clip(offset + per_sample * numbers, trajectory.start, trajectory.end)
    turns = Rotation.from_matrix(trajectory.cam_from_world(times)[:, :, :3])
    # R_i R_(i+1)^T is the turn in the camera's axes, because R is cam_from_world.
    return np.concatenate([rates, (turns[:-1] * turns[1:].inv()).as_rotvec() * _RATE_HZ])


GCSV = Exporter(
    units="rad/s about x right, y down, z forward (orientation yxz); t in samples; readout in milliseconds per frame",
    span="H line delays: row v is read frame_readout_time * (v / H - 0.5) after the time stamp",
    reference_row="row H / 2: the log's time 0 is that of this row of the video's first frame",
    pixel_centre=CENTRE_ZERO,
    files=_log,
    has_poses=True,
    has_all_stretches=True,
    has_camera_words=True,
)
