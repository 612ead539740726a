"""Grey frames in one file, without loss or with as little as H.264 can: its luma holds them as they are."""

from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

_NO_COLOUR = 128


def write_grey(frames: NDArray[np.uint8], path: Path, quantiser: int = 0) -> None:
    """Writes (n, height, width) frames, height and width even; the file appears when it is complete.

    Args:
        frames: Grey.
        path: A Matroska file.
        quantiser: Of H.264, 0 for no loss.
    """
    partial = path.with_suffix(".part")
    with av.open(str(partial), "w", format="matroska") as container:
        options = {"qp": str(quantiser), "preset": "veryfast" if quantiser else "medium", "threads": "1"}
        stream = container.add_stream("libx264", Fraction(30), options)  # pyright: ignore[reportUnknownMemberType]
        _, height, width = frames.shape
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
