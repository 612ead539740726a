"""Grey frames in one file without loss: the luma of H.264 holds them as they are."""

from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

_NO_COLOUR = 128


def video_path(folder: Path, number: int) -> Path:
    """Where the clip of a line of a file of draws is."""
    return folder / f"{number:04d}.mkv"


def write_grey(frames: NDArray[np.uint8], path: Path) -> None:
    """Writes (n, height, width) frames, height and width even, to a Matroska file, which appears when complete."""
    partial = path.with_suffix(".part")
    _, height, width = frames.shape
    with av.open(str(partial), "w", format="matroska") as container:
        stream = container.add_stream("libx264", Fraction(30), {"qp": "0", "threads": "1"})  # pyright: ignore[reportUnknownMemberType]
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        colour = np.full((height // 2, width), _NO_COLOUR, np.uint8)
        for frame in frames:
            planes = av.VideoFrame.from_ndarray(np.vstack((frame, colour)), format="yuv420p")
            container.mux(stream.encode(planes))  # pyright: ignore[reportUnknownMemberType]
        container.mux(stream.encode(None))  # pyright: ignore[reportUnknownMemberType]
    partial.replace(path)


def read_grey(path: Path) -> NDArray[np.uint8]:
    """(n, height, width) the frames of `write_grey`."""
    with av.open(str(path)) as container:
        return np.stack([frame.to_ndarray()[: frame.height] for frame in container.decode(video=0)]).astype(np.uint8)
