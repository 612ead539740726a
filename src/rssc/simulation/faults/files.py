"""Writes a faulty clip as the file that a user would have: with its stamps and tags."""

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rssc.errors import InputError
from rssc.io.files import partial_name, write_bytes
from rssc.model.arrays import FloatArray
from rssc.simulation.clip_files import ALMOST_LOSSLESS_CRF

_TIME_BASE = Fraction(1, 90000)


def write_stamped_images(frames: Iterable[NDArray[np.uint8]], folder: Path, stamps_s: FloatArray) -> None:
    """Writes grey or RGB frames as PNG files whose names are their (n,) stamps in seconds, as recorders do."""
    import cv2

    for frame, stamp in zip(frames, stamps_s - min(stamps_s[0], 0.0), strict=True):
        path = folder / f"{stamp:.6f}.png"
        fine, data = cv2.imencode(".png", frame[..., ::-1] if frame.ndim == 3 else frame)
        if not fine:
            raise InputError(f"cannot encode {path.name} as PNG.")
        write_bytes(path, data.tobytes())


def write_stamped_video(
    frames: Iterable[NDArray[np.uint8]], path: Path, stamps_s: FloatArray, tags: dict[str, str],
    crf: int = ALMOST_LOSSLESS_CRF, preset: str = "veryfast",
) -> None:  # fmt: skip
    """Writes grey or RGB frames as an H.264 video (yuv420p) in mp4.

    Args:
        frames: All of one size, at least two.
        path: Appears when it is complete.
        stamps_s: (n,) time of each frame in seconds, increasing.
        tags: Of the container.
        crf: Constant rate factor of libx264.
        preset: Of libx264.
    """
    import av

    ticks = [round(float(stamp) / _TIME_BASE) for stamp in stamps_s - stamps_s[0]]
    rate = Fraction(1 / float(np.median(np.diff(stamps_s)))).limit_denominator(1001)
    partial = partial_name(path)
    with av.open(str(partial), "w", format="mp4", options={"movflags": "use_metadata_tags"}) as container:
        container.metadata.update(tags)
        stream = None
        for image, tick in zip(frames, ticks, strict=True):
            if stream is None:
                options = {"crf": str(crf), "preset": preset}
                stream = container.add_stream("libx264", rate, options)  # pyright: ignore[reportUnknownMemberType] untyped kwargs
                stream.height, stream.width, stream.pix_fmt = *image.shape[:2], "yuv420p"
                stream.codec_context.time_base = _TIME_BASE
            frame = av.VideoFrame.from_ndarray(image, format="rgb24" if image.ndim == 3 else "gray")
            frame.pts, frame.time_base = tick, _TIME_BASE
            container.mux(stream.encode(frame))  # pyright: ignore[reportUnknownMemberType] av's Packet has no parameter
        if stream is not None:
            container.mux(stream.encode(None))  # pyright: ignore[reportUnknownMemberType]
    partial.replace(path)
