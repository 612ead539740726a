"""TUM-RSVI, the TUM rolling-shutter visual-inertial dataset, in the EuRoC layout in which it is downloaded.

    ROOT/*/camchain*.yaml                   Kalibr's calibration; cam1 has the rolling shutter, cam0 the global one
    ROOT/*/dataset-seqN/mav0/cam1/data.csv  `time in ns, file` of every image
    ROOT/*/dataset-seqN/mav0/cam1/data/     images with their lens distortion, 1280 x 1024 at 20 Hz, named by time
    ROOT/*/dataset-seqN/mav0/mocap0/        data.csv, `time in ns, position, quaternion wxyz` of the IMU

The folders `*` may be missing, and ROOT may be one sequence with the camchain in it. The dataset's line delay, which no
file of it holds, is here.
"""

import re
from pathlib import Path

import numpy as np

from rssc.datasets.sequence import Sequence, TrueTrajectory
from rssc.errors import InputError
from rssc.io.lens_files import read_kalibr_camera, read_lens
from rssc.model.arrays import IntArray
from rssc.model.camera import Camera, Shutter
from rssc.model.poses import camera_centres

LINE_DELAY_S = 29.4737e-6
WINDOW = 50
"""Frames per sequence, as in the paper, which does not state their range."""
_CAMERA = "cam1"
_DEPTHS = ("", "*/", "*/*/")


def find_sequences(root: Path) -> tuple[Sequence, ...]:
    """All sequences below a folder; none where it has another layout."""
    tables = sorted(_glob(root, f"mav0/{_CAMERA}/data.csv"), key=_number)
    if not tables:
        return ()
    camchains = _glob(root, "camchain*.yaml")
    if len(camchains) != 1:
        raise InputError(f"{root} has {len(camchains)} camchain*.yaml; expected one, the dataset's Kalibr calibration.")
    return tuple(_sequence(table.parents[2], camchains[0]) for table in tables)


def _glob(root: Path, pattern: str) -> list[Path]:
    # Not `**`, which would walk through thousands of images.
    return [path for depth in _DEPTHS for path in root.glob(depth + pattern)]


def _number(table: Path) -> tuple[int, str]:
    digits = re.findall(r"\d+", table.parents[2].name)
    return (int(digits[-1]) if digits else 0, str(table))


def _sequence(folder: Path, camchain: Path) -> Sequence:
    camera = folder / "mav0" / _CAMERA
    stamps_ns, files = _read_table(camera / "data.csv")
    if not (camera / "data" / files[0]).exists():
        raise InputError(f"{camera / 'data' / files[0]} does not exist, but {camera / 'data.csv'} names it.")
    lens, size = read_lens(f"{camchain}:{_CAMERA}")
    if size is None:
        raise InputError(f"{_CAMERA} of {camchain} has no resolution; expected the dataset's own calibration.")
    interval_s = 1e-9 * float(np.median(np.diff(stamps_ns)))
    poses = folder / "mav0" / "mocap0" / "data.csv"
    number = re.search(r"seq(\d+)", folder.name)
    return Sequence(
        folder.name,
        "TUM-RSVI",
        camera / "data",
        Camera(*size, lens, Shutter(LINE_DELAY_S * size[1] / interval_s)),
        trajectory=TrueTrajectory(poses, 1e-9 * int(stamps_ns[0]), camera_in_body=_camera_in_imu(camchain))
        if poses.exists()
        else None,
        window=WINDOW,
        in_paper=f"TUM-{number[1]}" if number else None,
    )


def _read_table(path: Path) -> tuple[IntArray, list[str]]:
    """(n,) time stamps in ns and the file names of a data.csv."""
    rows = [line.split(",") for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]
    try:
        stamps = np.array([int(row[0]) for row in rows], dtype=np.int64)
        files = [row[1].strip() for row in rows]
    except (ValueError, IndexError):
        raise InputError(f"{path} is no table of images; expected lines of `time in ns, file`.") from None
    if len(stamps) < 2 or np.any(np.diff(stamps) <= 0):
        raise InputError(f"{path} has {len(stamps)} images; expected several, with increasing times.")
    # The footage reader takes times from the names, so these must agree with the table.
    if any(Path(file).stem != str(stamp) for file, stamp in zip(files, stamps, strict=True)):
        raise InputError(
            f"{path} names images that are not named by their time stamps; expected 1548685846939326526.png."
        )
    return stamps, files


def _camera_in_imu(camchain: Path) -> tuple[float, float, float]:
    """Camera centre in the coordinates of the IMU, whose poses the dataset has."""
    _, camera = read_kalibr_camera(camchain, _CAMERA)
    cam_from_imu = np.array(np.eye(4) if camera.T_cam_imu is None else camera.T_cam_imu, dtype=float)
    if cam_from_imu.shape != (4, 4):
        raise InputError(f"T_cam_imu of {_CAMERA} in {camchain} is {cam_from_imu.shape}; expected 4 x 4 numbers.")
    x, y, z = camera_centres(cam_from_imu[None, :3])[0].tolist()
    return x, y, z
