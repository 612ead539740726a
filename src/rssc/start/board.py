"""Lens and poses from a target as if the shutter were global: where the rolling-shutter solve starts.

For every focal length of a grid, as a perspective lens and as a fisheye, both without distortion, the board is placed
in some frames (planar PnP on rays); the one with the least reprojection error wins. It need not be good: distortion,
aspect ratio and principal point are for the solve.
"""

import cv2
import numpy as np

from rssc.errors import NotCalibratableError
from rssc.model.arrays import FloatArray
from rssc.model.lens import Lens
from rssc.model.tracks import Tracks
from rssc.start.start import Start, interpolate_poses

MIN_CORNERS = 8
_MIN_FRAMES = 8
_TRIED_FRAMES = 12
_FOCALS = np.geomspace(0.25, 3.0, 26)
"""In image widths."""
_MAX_ERROR = 0.03
"""Of the image's larger side: beyond it the corners do not belong to this board, whatever the lens."""


def start_from_target(tracks: Tracks, points: FloatArray, width: int, height: int, lens: str = "auto") -> Start:
    """Lens and poses from (n, 3) points of a plane; the world is the board.

    Frames that do not show the board well are not registered.

    Args:
        tracks: Where the corners are seen.
        points: The corners on the board.
        width: Of the image.
        height: Of the image.
        lens: The lens model that is wanted in the end, or "auto".
    """
    counts = np.bincount(tracks.frames, minlength=tracks.frame_count)
    seen = np.flatnonzero(counts >= MIN_CORNERS)
    if len(seen) < _MIN_FRAMES:
        raise NotCalibratableError(
            f"the board is seen in {len(seen)} of {tracks.frame_count} frames; {_MIN_FRAMES} are needed. Keep most of "
            f"it in the image, large and sharp, and move the camera in front of it."
        )
    few = seen[np.linspace(0, len(seen) - 1, min(_TRIED_FRAMES, len(seen))).astype(int)]
    models = {"auto": ("radial", "fisheye"), "fisheye": ("fisheye",)}.get(lens, ("radial",))
    lenses = [Lens(model, f, f, (width - 1) / 2, (height - 1) / 2) for model in models for f in _FOCALS * width]
    errors = [np.median([_place_board(one, tracks, points, int(frame))[1] for frame in few]) for one in lenses]
    best = lenses[int(np.argmin(errors))]
    if min(errors) > _MAX_ERROR * max(width, height):
        raise NotCalibratableError(
            f"the corners are {min(errors):.0f} pixels from where this target would have them, whatever the lens; "
            f"check its rows, columns and spacing, and that the image is not mirrored."
        )
    placed = {int(frame): _place_board(best, tracks, points, int(frame)) for frame in seen}
    limit = 5 * np.median([error for _, error in placed.values()])
    poses = {frame: pose for frame, (pose, error) in placed.items() if error < limit}
    if len(poses) < 2:
        raise NotCalibratableError(
            f"the board could be placed in {len(poses)} of {tracks.frame_count} frames; keep most of it in the image, "
            "large and sharp."
        )
    cam_from_world, registered, _ = interpolate_poses(poses, np.arange(tracks.frame_count, dtype=np.float64))
    cam_from_world[list(poses)] = list(poses.values())  # without the rounding of the interpolation
    return Start(best, cam_from_world, registered, (), "board")


def _place_board(lens: Lens, tracks: Tracks, points: FloatArray, frame: int) -> tuple[FloatArray, float]:
    """(3, 4) pose of a frame and the root mean square error of its corners in pixels."""
    rows = tracks.frames == frame
    pixels, board = tracks.pixels[rows], points[tracks.points[rows]]
    rays = lens.unproject(pixels)
    ahead = rays[:, 2] > 0.1
    failed: tuple[FloatArray, float] = (np.eye(3, 4), np.inf)
    if ahead.sum() < MIN_CORNERS:
        return failed
    plane = np.ascontiguousarray(rays[ahead, :2] / rays[ahead, 2:])
    found, rotations, shifts, _ = cv2.solvePnPGeneric(board[ahead], plane, np.eye(3), None, flags=cv2.SOLVEPNP_IPPE)
    best = failed
    for rotation, shift in zip(rotations, shifts, strict=True) if found else ():
        pose = np.column_stack((cv2.Rodrigues(rotation)[0], shift)).astype(np.float64)
        projected = lens.project(board @ pose[:, :3].T + pose[:, 3])
        error = float(np.sqrt(((projected - pixels) ** 2).sum(axis=1).mean()))
        if error < best[1]:  # not where a corner is behind the camera
            best = pose, error
    return best
