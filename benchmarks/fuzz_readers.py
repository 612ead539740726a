"""Every reader of files, with a small valid file to begin from: what `fuzz` damages."""

import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import av
import cv2
import numpy as np

from rssc.footage.footage import read_footage
from rssc.io.calibration_file import read_calibration
from rssc.io.camera_file import camera_document
from rssc.io.lens_files import read_lens, read_line_delay
from rssc.io.reference_file import read_reference
from rssc.io.stretches_file import read_stretches, stretches_bytes
from rssc.io.target_file import read_target
from rssc.io.tum import read_euroc, read_tum, tum_text
from rssc.model import Camera, Lens, Shutter
from rssc.model.arrays import Image
from rssc.model.calibration import Calibration, Statistics
from rssc.model.stretch import Stretch
from rssc.outputs.exporters import export_files
from rssc.simulation.scenes import simulate_scene
from rssc.solver.problem import with_trajectory
from rssc.start.reconstruction import read_colmap_model

_FRAMES = 12
_SIZE = (64, 48)
_TARGET = "target_type: aprilgrid\ntagCols: 6\ntagRows: 6\ntagSize: 0.088\ntagSpacing: 0.3\n"


@dataclass(frozen=True)
class Reader:
    """A reader and a file that it reads."""

    make: Callable[[Path], None]
    """Writes valid files into a folder."""
    files: tuple[str, ...]
    """Those that are damaged, one at a time."""
    read: Callable[[Path], object]
    """Reads the folder."""
    members: bool = False
    """Whether what is damaged is the contents of a zip archive, whose checksums stay right."""


@cache
def example_calibration() -> Calibration:
    """A small one with everything in it."""
    scene = with_trajectory(simulate_scene(1, frame_count=_FRAMES, point_count=40).truth)
    camera = scene.camera
    names = (*camera.lens.parameter_names, "readout_ratio")
    frames = tuple(f"frame_{i:06d}" for i in range(_FRAMES))
    stretch = Stretch(scene, np.arange(_FRAMES) / 30, np.arange(_FRAMES), frames, "clip.mp4")
    return Calibration(
        camera=camera, frame_interval_s=1 / 30, parameters=names, covariance=np.eye(len(names)),
        status="ok", reasons=("one",), method="te", knot_spacing=1.0,
        statistics=Statistics(_FRAMES, 40, len(scene.tracks), 0.1, 5, {"solving": 1.0}), stretches=(stretch,),
    )  # fmt: skip


def _write(name: str, data: bytes | str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        (folder / name).write_bytes(data.encode() if isinstance(data, str) else data)

    return make


def _exported(format_name: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        for name, data in export_files(example_calibration(), format_name).items():
            (folder / name).write_bytes(data)

    return make


def _save(folder: Path) -> None:
    example_calibration().save(folder / "calibration.json")


def _truth(folder: Path) -> None:
    camera = Camera(640, 480, Lens("opencv", 500, 500, 320, 240, (0.1, 0.0, 0.0, 0.0)), Shutter(0.5))
    (folder / "truth.json").write_text(json.dumps(camera_document(camera, 1 / 30)))


def _trajectory(folder: Path) -> None:
    stretch = example_calibration().stretches[0]
    (folder / "a.tum").write_text(tum_text(stretch.times_s, stretch.scene.cam_from_world))


def _pictures() -> list[Image]:
    random = np.random.default_rng(1)
    texture = cv2.GaussianBlur(random.integers(0, 255, (120, 160), dtype=np.uint8), (5, 5), 1.0)
    return [np.array(texture[i : i + _SIZE[1], 2 * i : 2 * i + _SIZE[0]], np.uint8) for i in range(_FRAMES)]


def _video(name: str, codec: str, pixel_format: str = "yuv420p") -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        with av.open(str(folder / name), "w") as container:
            stream = container.add_stream(codec, rate=30)  # pyright: ignore[reportUnknownMemberType]
            stream.width, stream.height, stream.pix_fmt = *_SIZE, pixel_format  # pyright: ignore[reportAttributeAccessIssue]
            frames = [av.VideoFrame.from_ndarray(one, "gray").reformat(format=pixel_format) for one in _pictures()]
            for frame in (*frames, None):
                container.mux(stream.encode(frame))  # pyright: ignore

    return make


def _images(ending: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        for i, picture in enumerate(_pictures()):
            (folder / f"{i:03d}{ending}").write_bytes(cv2.imencode(ending, picture)[1].tobytes())

    return make


def _lens(name: str) -> Callable[[Path], object]:
    return lambda folder: (read_lens(str(folder / name)), read_line_delay(str(folder / name)))


def _stretches_alone(folder: Path) -> None:
    (folder / "stretches.npz").write_bytes(stretches_bytes(example_calibration().stretches))


READERS: dict[str, Reader] = {
    "calibration.json": Reader(_save, ("calibration.json",), lambda at: str(read_calibration(at / "calibration.json"))),
    "stretches.npz": Reader(_stretches_alone, ("stretches.npz",), lambda at: read_stretches(at / "stretches.npz")),
    "arrays of stretches.npz": Reader(
        _stretches_alone, ("stretches.npz",), lambda at: read_stretches(at / "stretches.npz"), members=True
    ),
    "truth.json": Reader(
        _truth, ("truth.json",), lambda at: read_reference(at / "truth.json", example_calibration())
    ),
    "Kalibr camchain": Reader(_exported("kalibr"), ("camchain.yaml",), _lens("camchain.yaml")),
    "OpenCV YAML": Reader(_exported("opencv"), ("camera.yaml",), _lens("camera.yaml")),
    "target YAML": Reader(
        _write("target.yaml", _TARGET), ("target.yaml",), lambda at: read_target(str(at / "target.yaml"))
    ),
    "TUM trajectory": Reader(_trajectory, ("a.tum",), lambda at: read_tum(at / "a.tum")),
    "EuRoC table": Reader(_trajectory, ("a.tum",), lambda at: read_euroc(at / "a.tum")),
    "COLMAP model": Reader(
        _exported("colmap"), ("cameras.bin", "images.bin", "points3D.bin", "frames.bin", "rigs.bin"),
        lambda at: read_colmap_model(at, [f"frame_{i:06d}.png" for i in range(_FRAMES)]),
    ),
    "COLMAP model as text": Reader(
        _exported("colmap-text"), ("cameras.txt", "images.txt", "points3D.txt", "frames.txt", "rigs.txt"),
        lambda at: read_colmap_model(at, [f"frame_{i:06d}.png" for i in range(_FRAMES)]),
    ),
    "MP4 video": Reader(_video("a.mp4", "libx264"), ("a.mp4",), lambda at: read_footage(at / "a.mp4")),
    "Matroska video": Reader(_video("a.mkv", "libx264"), ("a.mkv",), lambda at: read_footage(at / "a.mkv")),
    "AVI video": Reader(_video("a.avi", "mjpeg", "yuvj420p"), ("a.avi",), lambda at: read_footage(at / "a.avi")),
    "GIF animation": Reader(_video("a.gif", "gif", "rgb8"), ("a.gif",), lambda at: read_footage(at / "a.gif")),
    "PNG images": Reader(_images(".png"), ("000.png", "004.png"), lambda at: read_footage(at, fps=30)),
    "JPEG images": Reader(_images(".jpg"), ("000.jpg", "004.jpg"), lambda at: read_footage(at, fps=30)),
    "TIFF images": Reader(_images(".tif"), ("000.tif", "004.tif"), lambda at: read_footage(at, fps=30)),
    "WebP images": Reader(_images(".webp"), ("000.webp", "004.webp"), lambda at: read_footage(at, fps=30)),
}  # fmt: skip
"""By name."""


def archive_members(data: bytes) -> dict[str, bytes]:
    """Contents of a zip archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archive_of(members: dict[str, bytes]) -> bytes:
    """A zip archive with these contents."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()
