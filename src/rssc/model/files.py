"""What every file of ours shares: complete or absent, the camera block of JSON files, the TUM trajectory."""

import os
from pathlib import Path

import numpy as np

from rssc.errors import InputError
from rssc.kernels import lie
from rssc.model.arrays import FloatArray
from rssc.model.camera import Camera, Lens


def make_folder(folder: Path | str) -> Path:
    """Makes an output folder, before any work is done for it."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {folder}: {error.strerror}; choose another with -o.") from error
    if not os.access(folder, os.W_OK):
        raise InputError(f"cannot write to {folder}: permission denied; choose another with -o.")
    return folder


def partial_name(path: Path) -> Path:
    """Where a file is written before it is renamed."""
    return path.with_name(path.name + ".part")


def write_bytes(path: Path, data: bytes) -> None:
    """Writes a file that appears under its name only when it is complete."""
    partial = partial_name(path)
    partial.write_bytes(data)
    partial.replace(path)


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode())


def camera_document(camera: Camera, frame_interval_s: float) -> dict[str, dict]:
    """`image`, `lens` and `shutter` of calibration.json and truth.json."""
    shutter = camera.shutter
    readout_time_s = abs(shutter.readout_ratio) * frame_interval_s
    lines = camera.height if shutter.axis == "rows" else camera.width
    return {
        "image": {"width": camera.width, "height": camera.height},
        "lens": lens_document(camera.lens),
        "shutter": {
            "readout_ratio": shutter.readout_ratio,
            "readout_time_s": readout_time_s,
            "line_delay_s": readout_time_s / lines,
            "frame_interval_s": frame_interval_s,
            "direction": shutter.direction,
        },
    }


def lens_document(lens: Lens) -> dict:
    """A lens in calibration.json and truth.json."""
    return {
        "model": lens.model,
        **{name: getattr(lens, name) for name in ("fx", "fy", "cx", "cy")},
        "distortion": list(lens.distortion),
    }


def tum_text(times_s: FloatArray, cam_from_world: FloatArray) -> str:
    """TUM trajectory, `t tx ty tz qx qy qz qw` of world_from_cam for each (n, 3, 4) pose."""
    lines = []
    for time, pose in zip(times_s, cam_from_world, strict=True):
        world_from_cam = lie.inverse(np.ascontiguousarray(pose))
        w, x, y, z = lie.quaternion_from_rotation(np.ascontiguousarray(world_from_cam[:, :3]))
        lines.append(" ".join(f"{number:.9f}" for number in (time, *world_from_cam[:, 3], x, y, z, w)))
    return "\n".join(lines) + "\n"
