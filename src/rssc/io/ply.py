"""PLY point clouds."""

import numpy as np

from rssc.model.arrays import FloatArray


def ply_bytes(points: FloatArray, grey: int | None = None) -> bytes:
    """Binary PLY of (n, 3) points in single precision, with one grey value as their colour where it is given."""
    fields = [(axis, "<f4") for axis in "xyz"]
    if grey is not None:
        fields += [(channel, "u1") for channel in ("red", "green", "blue")]
    vertices = np.full(len(points), grey or 0, dtype=fields)
    for i, axis in enumerate("xyz"):
        vertices[axis] = points[:, i]
    properties = "".join(f"property {'float' if kind == '<f4' else 'uchar'} {name}\n" for name, kind in fields)
    header = f"ply\nformat binary_little_endian 1.0\nelement vertex {len(points)}\n{properties}end_header\n"
    return header.encode() + vertices.tobytes()
