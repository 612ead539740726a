"""The clips of the shared data: `$RSSC_DATA`, or `../shared/data` beside the folder one is in.

The studies use three; `find_real_clips` gives all whose camera is known. Their values come with the data. Clip A is
undistorted, so that its lens is a pinhole and its rows have to be mapped back to the sensor. The GoPro's laboratory
lens is an arctangent of the radius; its focal lengths are comparable to those of a fisheye at the image's centre. The
Kinect's values come from a hand-held board and from another unit, and are in doubt themselves.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from rssc.datasets.sequence import Found, Sequence, TrueTrajectory
from rssc.errors import InputError
from rssc.model.camera import Camera, Shutter
from rssc.model.lens import Lens

NAME = "shared"
_CLIP_A = ("tum_rsvi", "clip_a", "images")
_CAMCHAIN = ("tum_rsvi", "camchain.yaml")
_GOPRO = ("gopro_hero3", "images")
_GOPRO_500 = ("gopro_hero3", "images_500")
_KINECT = ("kinect_fr1_desk", "rgb")
_KINECT_POSES = ("kinect_fr1_desk", "groundtruth.tum")
_KINECT_INTERVAL_S = 33.338e-3
"""At which the camera ran; the names of the files are the host's times, quantised to 4 ms."""
_KINECT_CLOCK_DOUBT_S = 0.05
"""The host stamps a frame when it has it: after its readout of 26 ms and about a frame of transfer at most; whether
that was corrected for when the truth was recorded, the data does not say."""
_KINECT_WINDOW = 80
"""Frames of the study, the most informative half of 160: every method solves them within minutes."""
_BOARD = "aprilgrid:6x6:0.088:0.3"


def data_folder() -> Path | None:
    """The folder of the shared data, or None where it is absent."""
    folder = Path(os.environ.get("RSSC_DATA") or Path.cwd().parent / "shared" / "data")
    return folder if folder.is_dir() else None


def require_data(*parts: str) -> Path:
    """A path inside the shared data.

    Raises:
        InputError: It is not here; says how to provide it.
    """
    folder = data_folder()
    path = folder.joinpath(*parts) if folder else None
    if path is None or not path.exists():
        raise InputError(f"{'/'.join(parts)} of the shared data is not here; set RSSC_DATA to the folder that has it.")
    return path


def find_sequences() -> Found:
    """The three clips of the studies, or what is missing of them."""
    return _present(
        lambda folder: (
            (_clip_a(folder), (_CLIP_A, _CAMCHAIN)),
            (_gopro(folder), (_GOPRO,)),
            (_kinect(folder, "Kinect", 1 / _KINECT_INTERVAL_S), (_KINECT, _KINECT_POSES)),
        )
    )


def find_real_clips() -> Found:
    """All clips whose camera is known, or what is missing of them; the GoPro's two folders are of one camera."""
    return _present(
        lambda folder: (
            (_clip_a(folder), (_CLIP_A, _CAMCHAIN)),
            (_gopro(folder), (_GOPRO,)),
            (replace(_gopro(folder), name="GoPro Hero3+ 500", source=folder.joinpath(*_GOPRO_500)), (_GOPRO_500,)),
            (_kinect(folder, "Kinect", 1 / _KINECT_INTERVAL_S), (_KINECT,)),
            (_kinect(folder, "Kinect, host times", None), (_KINECT,)),
        )
    )


def _present(wanted: Callable[[Path], tuple[tuple[Sequence, tuple[tuple[str, ...], ...]], ...]]) -> Found:
    """The sequences whose files are here."""
    folder = data_folder()
    if folder is None:
        return Found((), ("the shared clips are not here; set RSSC_DATA to the folder that has them.",))
    sequences: list[Sequence] = []
    skipped: list[str] = []
    for sequence, parts in wanted(folder):
        missing = ["/".join(part) for part in parts if not folder.joinpath(*part).exists()]
        if missing:
            skipped.append(f"{sequence.name} is left out: {' and '.join(missing)} is not in {folder}.")
        else:
            sequences.append(sequence)
    return Found(tuple(sequences), tuple(skipped))


def _clip_a(folder: Path) -> Sequence:
    return Sequence(
        "clip A",
        "TUM-RSVI",
        folder.joinpath(*_CLIP_A),
        Camera(1280, 1024, Lens("pinhole", 739.165, 739.144, 625.826, 517.337), Shutter(0.6036)),
        fps=20.0,
        undistorted_from=f"{folder.joinpath(*_CAMCHAIN)}:cam1",
        target=_BOARD,
    )


def _gopro(folder: Path) -> Sequence:
    return Sequence(
        "GoPro Hero3+",
        "GoPro",
        folder.joinpath(*_GOPRO),
        Camera(1920, 1080, Lens("fisheye", 868.10, 881.58, 987.87, 529.78), Shutter(0.949)),
        # The laboratory states none. Two of its calibrations of this model and mode differ by 0.8 % in fy over fx and
        # by 4 px in cy; its measurements of other cameras' readout scatter by 0.07 to 0.36 ms.
        doubts={"fy": 0.005 * 881.58, "cy": 2.0, "readout_ratio": 0.003},
        fps=29.97,
    )


def _kinect(folder: Path, name: str, fps: float | None) -> Sequence:
    lens = Lens("full_opencv", 517.3, 516.5, 318.6, 255.3, (0.2624, -0.9531, -0.0054, 0.0026, 1.1633, 0.0, 0.0, 0.0))
    return Sequence(
        name,
        "TUM RGB-D",
        folder.joinpath(*_KINECT),
        Camera(640, 480, lens, Shutter(0.781)),
        # 1 % and 4 px of a board in the hand before a rolling shutter; the readout was measured on another unit.
        doubts={"fx": 5.2, "fy": 5.2, "cx": 4.0, "cy": 4.0, "readout_ratio": 0.015 * 0.781},
        fps=fps,
        trajectory=_kinect_trajectory(folder),
        window=_KINECT_WINDOW,
    )


def _kinect_trajectory(folder: Path) -> TrueTrajectory | None:
    names_s = np.array(sorted(float(path.stem) for path in folder.joinpath(*_KINECT).glob("*.png")))
    path = folder.joinpath(*_KINECT_POSES)
    if not len(names_s) or not path.exists():
        return None
    # Frames are timed at the camera's constant rate; of the host's clock only its offset is left. Every name gives it
    # to within 4 ms. The medians of quarters of the clip differ by 0.6 ms, which is 0.3 mm at the usual 0.5 m/s.
    offsets_s = names_s - _KINECT_INTERVAL_S * np.arange(len(names_s))
    return TrueTrajectory(path, float(np.median(offsets_s)), _KINECT_CLOCK_DOUBT_S)
