"""Any folder with ground truth: a truth.json, as simulations write it, beside a video or images.

FOLDER/truth.json         `image`, `lens` and `shutter` as in a calibration.json, and, where they are needed:
                            "undistorted_from": "camchain.yaml:cam1", a file beside truth.json
                            "frames": [100, 150]
                            "target": "aprilgrid:6x6:0.088:0.3"
                            "dataset": "WHU-RSVI", "in_paper": "WHU-1"
FOLDER/clip.mp4           any one video; or images, here or in FOLDER/images
FOLDER/trajectory.tum     where it is known: poses of the camera, times counted from the first frame
"""

from pathlib import Path

from pydantic import field_validator

from rssc.datasets.sequence import Sequence, TrueTrajectory
from rssc.errors import InputError
from rssc.footage.image_folder import IMAGE_SUFFIXES
from rssc.footage.video import VIDEO_SUFFIXES
from rssc.io.camera_file import TruthFile, read_document
from rssc.io.tum import TRAJECTORY_NAME

TRUTH_NAME = "truth.json"


class SequenceFile(TruthFile):
    """truth.json of a recording: the camera, and what else is known of it."""

    undistorted_from: str | None = None
    frames: tuple[int, int] | None = None
    target: str | None = None
    dataset: str | None = None
    in_paper: str | None = None

    @field_validator("frames", mode="before")
    @classmethod
    def _range(cls, frames: object) -> object:
        match frames:
            case [int(first), int(last)] if 0 <= first < last:
                return frames
            case _:
                raise ValueError(f"{frames!r}, expected two numbers, the first frame and one past the last")


def find_sequences(root: Path) -> tuple[Sequence, ...]:
    """The folder itself, or the folders in it; none where there is no truth."""
    folders = [root] if (root / TRUTH_NAME).exists() else sorted(path.parent for path in root.glob(f"*/{TRUTH_NAME}"))
    return tuple(_sequence(folder, root) for folder in folders)


def _sequence(folder: Path, root: Path) -> Sequence:
    path = folder / TRUTH_NAME
    document = read_document(path, SequenceFile, "a truth with image, lens and shutter")
    source = _source(folder)
    trajectory = folder / TRAJECTORY_NAME
    return Sequence(
        folder.name if folder.name else str(folder),
        document.dataset or root.name,
        source,
        document.camera,
        fps=1 / document.shutter.frame_interval_s if source.is_dir() else None,
        undistorted_from=None if document.undistorted_from is None else str(folder / document.undistorted_from),
        trajectory=TrueTrajectory(trajectory) if trajectory.exists() else None,
        frames=document.frames,
        target=document.target,
        in_paper=document.in_paper,
    )


def _source(folder: Path) -> Path:
    """The one video, or the folder that has the images."""
    videos = [path for path in sorted(folder.iterdir()) if path.suffix.lower() in VIDEO_SUFFIXES]
    if len(videos) == 1:
        return videos[0]
    if not videos:
        for images in (folder / "images", folder):
            if images.is_dir() and any(path.suffix.lower() in IMAGE_SUFFIXES for path in images.iterdir()):
                return images
    raise InputError(
        f"{folder} has {len(videos)} videos and no images; expected one video, or images, beside {TRUTH_NAME}."
    )
