"""Any folder with a truth: truth.json as `rssc simulate` writes it, beside a video or images.

FOLDER/truth.json         `image`, `lens` and `shutter` as in a calibration.json, and, where they are needed:
                            "undistorted_from": "camchain.yaml:cam1", a file beside truth.json
                            "frames": [100, 150]
                            "target": "aprilgrid:6x6:0.088:0.3"
                            "dataset": "WHU-RSVI", "in_paper": "WHU-1"
FOLDER/clip.mp4           any one video; or images, here or in FOLDER/images
FOLDER/trajectory.tum     where it is known: poses of the camera, times counted from the first frame
"""

from pathlib import Path

from rssc.datasets.sequence import Sequence, TrueTrajectory
from rssc.errors import InputError
from rssc.footage.image_folder import IMAGE_SUFFIXES
from rssc.footage.video import VIDEO_SUFFIXES
from rssc.io.camera_file import TruthFile, read_document

TRUTH_NAME = "truth.json"
TRAJECTORY_NAME = "trajectory.tum"
_WORDS = {"undistorted_from": str, "target": str, "dataset": str, "in_paper": str, "frames": list}


def find_sequences(root: Path) -> tuple[Sequence, ...]:
    """The folder itself, or the folders in it; none where there is no truth."""
    folders = [root] if (root / TRUTH_NAME).exists() else sorted(path.parent for path in root.glob(f"*/{TRUTH_NAME}"))
    return tuple(_sequence(folder, root) for folder in folders)


def _sequence(folder: Path, root: Path) -> Sequence:
    path = folder / TRUTH_NAME
    document = read_document(path, TruthFile, "a truth with image, lens and shutter")
    known = _optional(path, document.model_extra or {})
    source = _source(folder)
    trajectory = folder / TRAJECTORY_NAME
    return Sequence(
        folder.name if folder.name else str(folder),
        known.get("dataset", root.name),
        source,
        document.camera,
        fps=1 / document.shutter.frame_interval_s if source.is_dir() else None,
        undistorted_from=str(folder / known["undistorted_from"]) if "undistorted_from" in known else None,
        trajectory=TrueTrajectory(trajectory) if trajectory.exists() else None,
        frames=_frames(path, known["frames"]) if "frames" in known else None,
        target=known.get("target"),
        in_paper=known.get("in_paper"),
    )


def _optional(path: Path, words: dict) -> dict:
    for name, kind in _WORDS.items():
        if name in words and not isinstance(words[name], kind):
            raise InputError(
                f"{path} has {name}: {words[name]!r}; expected {'two numbers' if kind is list else 'text'}."
            )
    return {name: words[name] for name in _WORDS if name in words}


def _frames(path: Path, frames: list) -> tuple[int, int]:
    if len(frames) != 2 or not all(isinstance(n, int) for n in frames) or not 0 <= frames[0] < frames[1]:
        raise InputError(f"{path} has frames: {frames}; expected the first frame and one past the last.")
    return frames[0], frames[1]


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
