"""Tracks and starts of earlier runs: another method or lens, or a run after an interruption, continues from there.

They are found by their contents: tracks by the frames that they were tracked in, a start by its tracks and times.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from rssc.footage.footage import Footage
from rssc.io.cache import Arrays, kept, open_cache
from rssc.model.arrays import FloatArray
from rssc.model.lens import Lens
from rssc.model.tracks import Tracks
from rssc.start.start import Axis, Start


def kept_tracks(make: Callable[[], Tracks], footage: Footage, keep: bool) -> Tracks:
    """What `make` tracks in the frames of the footage, or what an earlier run tracked in them.

    Args:
        make: Tracks them.
        footage: The frames.
        keep: Whether to look for it, and to keep it.
    """
    inputs = (footage.images, footage.overlay)
    return kept("tracks", inputs, make, _packed_tracks, _unpacked_tracks, open_cache() if keep else None)


def kept_start(
    make: Callable[[], Start],
    tracks: Tracks,
    size: tuple[int, int],
    family: str | None,
    fractions: Mapping[Axis, FloatArray],
    frame_times: FloatArray,
    keep: bool,
) -> Start:
    """What `make` reconstructs from the other arguments, or what an earlier run reconstructed from them.

    Args:
        make: Reconstructs it.
        tracks: As in `reconstruct`, as are the following.
        size: Width and height.
        family: Of the lens.
        fractions: Of the readout.
        frame_times: In frame intervals.
        keep: Whether to look for it, and to keep it.
    """
    inputs = (
        tracks.frame_count, tracks.point_count, tracks.frames, tracks.points, tracks.pixels, tracks.sigmas, *size,
        family, fractions["rows"], fractions["columns"], frame_times,
    )  # fmt: skip
    return kept("start", inputs, make, _packed_start, _unpacked_start, open_cache() if keep else None)


def _packed_tracks(tracks: Tracks) -> Arrays:
    return {
        "counts": np.array([tracks.frame_count, tracks.point_count]),
        "frames": tracks.frames,
        "points": tracks.points,
        "pixels": tracks.pixels,
        "sigmas": tracks.sigmas,
    }


def _unpacked_tracks(arrays: Arrays) -> Tracks:
    frame_count, point_count = (int(count) for count in arrays["counts"])
    frames, points, pixels, sigmas = (arrays[name] for name in ("frames", "points", "pixels", "sigmas"))
    return Tracks(
        frame_count, point_count, frames.astype(np.int64), points.astype(np.int64), pixels.astype(np.float64),
        sigmas.astype(np.float64),
    )  # fmt: skip


def _packed_start(start: Start) -> Arrays:
    fields = asdict(start)
    poses, registered = fields.pop("cam_from_world"), fields.pop("registered")
    # Python's JSON keeps NaN, and floats exactly.
    return {"cam_from_world": poses, "registered": registered, "rest": np.array(json.dumps(fields))}


def _unpacked_start(arrays: Arrays) -> Start:
    fields: dict[str, Any] = json.loads(str(arrays["rest"]))
    fields |= {
        "lens": Lens(**fields["lens"]),
        "notes": tuple(fields["notes"]),
        "cam_from_world": arrays["cam_from_world"].astype(np.float64),
        "registered": arrays["registered"].astype(np.bool_),
    }
    return Start(**fields)
