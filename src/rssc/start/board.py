"""A start from a calibration board: lens and poses as if the shutter were global.

For every focal length of a grid, as a perspective lens and as a fisheye, both without distortion, the board is placed
in some frames (planar PnP on rays); the lens with the least reprojection error is taken. It need not be accurate:
distortion, aspect ratio and principal point are estimated by the adjustment.
"""

from dataclasses import dataclass

import cv2
import numpy as np

from rssc.errors import NotCalibratableError
from rssc.model.arrays import FloatArray
from rssc.model.lens import LENS_MODELS, Lens
from rssc.model.tracks import Tracks
from rssc.runtime.constants import Constants
from rssc.start.lens_search import MODEL_OF, families_of
from rssc.start.start import Start, interpolate_poses


@dataclass(frozen=True)
class BoardStartConstants(Constants):
    """Tuned numbers of the start from a board, chosen by hand."""

    min_corners: int = 8
    """A frame shows the board if it has at least so many corners; a pose needs four."""
    min_frames: int = 8
    """Frames that must show the board, as many as footage must have."""
    tried_frames: int = 12
    """Frames that the lenses are compared on; more cost time in proportion."""
    min_focal: float = 0.25
    """Shortest focal length to try, in image widths ..."""
    max_focal: float = 3.0
    """... the longest ..."""
    focal_count: int = 26
    """... and how many in between, each a tenth longer than the one before."""
    max_error: float = 0.03
    """Share of the image's larger side: with larger errors the corners are not of this board, whatever the lens."""
    min_ray: float = 0.1
    """Least forward component of a unit ray that planar PnP can use."""
    outlier: float = 5.0
    """Frames with an error of more than this factor times the median are not registered."""


BOARD_START = BoardStartConstants()


def start_from_target(tracks: Tracks, points: FloatArray, width: int, height: int, lens: str = "auto") -> Start:
    """Lens and poses from (n, 3) points of a plane; the world is the board.

    Frames that do not show the board well are not registered.

    Args:
        tracks: Where the corners are seen.
        points: The corners on the board.
        width: Of the image.
        height: Of the image.
        lens: The lens model that the adjustment will estimate, or "auto".

    Raises:
        NotCalibratableError: Too few frames show the board, or it does not fit the corners.
    """
    counts = np.bincount(tracks.frames, minlength=tracks.frame_count)
    seen = np.flatnonzero(counts >= BOARD_START.min_corners)
    if len(seen) < BOARD_START.min_frames:
        raise NotCalibratableError(
            f"the board is seen in {len(seen)} of {tracks.frame_count} frames; {BOARD_START.min_frames} are needed. "
            "Keep most of it in the image, large and sharp, and move the camera in front of it."
        )
    few = seen[np.linspace(0, len(seen) - 1, min(BOARD_START.tried_frames, len(seen))).astype(int)]
    models = [MODEL_OF[family] for family in families_of(None if lens == "auto" else LENS_MODELS[lens].family)]
    focals = np.geomspace(BOARD_START.min_focal, BOARD_START.max_focal, BOARD_START.focal_count) * width
    lenses = [Lens(model, f, f, (width - 1) / 2, (height - 1) / 2) for model in models for f in focals]
    errors = [np.median([_place_board(one, tracks, points, int(frame))[1] for frame in few]) for one in lenses]
    best = lenses[int(np.argmin(errors))]
    if min(errors) > BOARD_START.max_error * max(width, height):
        raise NotCalibratableError(
            f"the corners are {min(errors):.0f} pixels from where this target would have them, whatever the lens; "
            "check its rows, columns and spacing, and that the image is not mirrored."
        )
    placed = {int(frame): _place_board(best, tracks, points, int(frame)) for frame in seen}
    limit = BOARD_START.outlier * np.median([error for _, error in placed.values()])
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
    ahead = rays[:, 2] > BOARD_START.min_ray
    failed: tuple[FloatArray, float] = (np.eye(3, 4), np.inf)
    if ahead.sum() < BOARD_START.min_corners:
        return failed
    plane = np.ascontiguousarray(rays[ahead, :2] / rays[ahead, 2:])
    found, rotations, shifts, _ = cv2.solvePnPGeneric(board[ahead], plane, np.eye(3), None, flags=cv2.SOLVEPNP_IPPE)
    best = failed
    for rotation, shift in zip(rotations, shifts, strict=True) if found else ():
        pose = np.column_stack((cv2.Rodrigues(rotation)[0], shift)).astype(np.float64)
        projected = lens.project(board @ pose[:, :3].T + pose[:, 3])
        error = float(np.sqrt(((projected - pixels) ** 2).sum(axis=1).mean()))
        if error < best[1]:  # false for NaN, where a corner is behind the camera
            best = pose, error
    return best
