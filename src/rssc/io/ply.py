"""PLY point clouds."""

import numpy as np

from rssc.model.arrays import FloatArray


def ply_bytes(points: FloatArray) -> bytes:
    """Binary PLY of (n, 3) points."""
    header = (
        "ply\nformat binary_little_endian 1.0\n"
        f"element vertex {len(points)}\nproperty float x\nproperty float y\nproperty float z\nend_header\n"
    )
    return header.encode() + np.ascontiguousarray(points, dtype="<f4").tobytes()
