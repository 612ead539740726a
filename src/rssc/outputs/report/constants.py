"""Tuned numbers of the report: how much is drawn, and from when on there is enough to draw."""

from dataclasses import dataclass

from rssc.runtime.constants import Constants


@dataclass(frozen=True)
class ReportConstants(Constants):
    """Chosen by hand, for a page that is readable and stays within a few megabytes."""

    most_vectors: int = 1500
    """Single residual vectors in the map; more only blacken it."""
    most_dots: int = 3000
    """Single residuals in the plot against the row."""
    most_points: int = 4000
    """Points of the 3D view; more make turning it slow."""
    row_bins: int = 24
    """Bands of rows whose mean residual is drawn: enough to show a bend, with hundreds of observations in each."""
    least_in_row_bin: int = 8
    """Observations that a band needs for its mean to be drawn."""
    cells: int = 12
    """Cells along the width of the image whose mean residual is drawn; lens errors are smoother than that."""
    least_in_cell: int = 20
    """Observations that a cell needs: its mean is then good to a fifth of a residual."""
    least_residuals: int = 20
    """Observations below which no residuals are drawn at all."""
    outlier_sigmas: float = 4.0
    """Residuals longer than that are marked as outliers; one in 3,000 of Gaussian ones is."""
    least_motion_px: float = 0.05
    """Image motion per frame interval below which a residual has no direction of motion."""
    arrow_step: int = 4
    """Every fourth node of the projection grid has an arrow in the map of a difference; more hide the contours."""
    path_samples_per_frame: int = 4
    """Samples of the trajectory per frame; its knots are at least half a frame apart."""
    cameras: int = 8
    """Cameras drawn along the path in the 3D view."""
    near_share: float = 0.98
    """Share of the points that the 3D view shows; the few farthest would shrink the rest to a dot."""
    widest_image_px: int = 960
    """Wider frames are made smaller; the page shows them 690 px wide."""
    jpeg_quality: int = 82
    """Of the frames in the page: size against visible blocks."""
    trail_frames: int = 10
    """Frames over which the trail of a tracked point is drawn."""


REPORT = ReportConstants()
