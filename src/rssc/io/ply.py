"""PLY point clouds."""

import numpy as np

from rssc.model.arrays import FloatArray, Image


def ply_bytes(points: FloatArray, grey: int | None = None, colours: Image | None = None) -> bytes:
    """Binary PLY of (n, 3) points in single precision, with one grey value or (n, 3) colours where they are given."""
    fields = [(axis, "<f4") for axis in "xyz"]
    channels = ("red", "green", "blue") if grey is not None or colours is not None else ()
    fields += [(channel, "u1") for channel in channels]
    vertices = np.full(len(points), grey or 0, dtype=fields)
    if colours is not None:
        for i, channel in enumerate(channels):
            vertices[channel] = colours[:, i]
    for i, axis in enumerate("xyz"):
        vertices[axis] = points[:, i]
    properties = "".join(f"property {'float' if kind == '<f4' else 'uchar'} {name}\n" for name, kind in fields)
    header = f"ply\nformat binary_little_endian 1.0\nelement vertex {len(points)}\n{properties}end_header\n"
    return header.encode() + vertices.tobytes()
