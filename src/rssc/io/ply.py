"""PLY point clouds."""

import numpy as np

from rssc.model.arrays import FloatArray, Image


def ply_bytes(points: FloatArray, colours: Image | None = None) -> bytes:
    """Binary PLY of (n, 3) points in single precision, with their (n, 3) RGB colours where they are given."""
    fields = [(axis, "<f4") for axis in "xyz"]
    if colours is not None:
        fields += [(channel, "u1") for channel in ("red", "green", "blue")]
    vertices = np.zeros(len(points), dtype=fields)
    for i, axis in enumerate("xyz"):
        vertices[axis] = points[:, i]
    if colours is not None:
        for i, channel in enumerate(("red", "green", "blue")):
            vertices[channel] = colours[:, i]
    properties = "".join(f"property {'float' if kind == '<f4' else 'uchar'} {name}\n" for name, kind in fields)
    header = f"ply\nformat binary_little_endian 1.0\nelement vertex {len(points)}\n{properties}end_header\n"
    return header.encode() + vertices.tobytes()
