"""The trajectory and the points in 3D, and the camera's velocity over time."""

import numpy as np
import plotly.graph_objects as go

from rssc.model.arrays import FloatArray
from rssc.model.poses import camera_centres
from rssc.model.scene import Scene
from rssc.outputs.report.constants import REPORT
from rssc.outputs.report.figures import velocities
from rssc.outputs.report.plots import ACCENT, INK, MUTED, WARM, Figure, add_trace


def scene_view(scene: Scene) -> Figure:
    """Points, trajectory and a few cameras in 3D; the scene must have a trajectory."""
    assert scene.trajectory is not None
    first, last = float(scene.frame_times[0]), float(scene.frame_times[-1])
    count = REPORT.path_samples_per_frame * (len(scene.frame_times) - 1) + 1
    path = camera_centres(scene.trajectory.cam_from_world(np.linspace(first, last, count)))
    poses = scene.cam_from_world[np.unique(np.linspace(0, len(scene.frame_times) - 1, REPORT.cameras).astype(int))]
    points = _near(scene.points, path.mean(axis=0))
    size = 0.04 * float(np.ptp(np.concatenate([points, path]), axis=0).max())
    # Rotated so that the first camera looks into the screen, upright.
    upright = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]]) @ scene.cam_from_world[0, :, :3]
    plot = go.Figure()
    for xyz, style in (
        (points, {"mode": "markers", "marker": {"size": 1.8, "color": MUTED, "opacity": 0.8}, "name": "points"}),
        (path, {"mode": "lines", "line": {"color": WARM, "width": 5}, "name": "trajectory"}),
        (_frusta(scene, poses, size), {"mode": "lines", "line": {"color": ACCENT, "width": 2}, "name": "cameras"}),
    ):
        x, y, z = np.asarray(xyz @ upright.T, np.float32).T
        add_trace(plot, "scatter3d", x=x, y=y, z=z, hoverinfo="skip", **style)
    hidden = {"visible": False}
    plot.update_layout(
        height=480, meta={"aspect": 0.68}, margin={"l": 0, "r": 0, "t": 30, "b": 0}, paper_bgcolor="rgba(0,0,0,0)",
        font={"color": INK, "size": 13, "family": "var(--sans)"}, uirevision="keep",
        legend={"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "itemsizing": "constant"},
        scene={
            "xaxis": hidden, "yaxis": hidden, "zaxis": hidden, "aspectmode": "data", "dragmode": "turntable",
            "camera": {"eye": {"x": 0.3, "y": -1.2, "z": 0.5}, "projection": {"type": "perspective"}},
        },
    )  # fmt: skip
    return Figure(
        "space", "Trajectory and points", plot,
        "Drag to rotate, scroll to zoom; with the keyboard, arrow keys rotate and + and \N{MINUS SIGN} zoom. Good: a "
        "smooth trajectory among points that form the place you filmed. Bad: a trajectory with jumps, or points "
        "smeared along lines from the camera.",
        f"Three-dimensional view of {scene.tracks.point_count:,} points and the camera's trajectory over "
        f"{len(scene.frame_times)} frames. Arrow keys rotate it, plus and minus zoom.",
    )  # fmt: skip


def motion_view(scene: Scene, frame_interval_s: float) -> Figure:
    """Turning rates and speed over time; the scene must have a trajectory."""
    assert scene.trajectory is not None
    first, last = float(scene.frame_times[0]), float(scene.frame_times[-1])
    times = np.linspace(first, last, REPORT.path_samples_per_frame * (len(scene.frame_times) - 1) + 1)
    # Velocities are those of cam_from_world; the camera itself moves the opposite way.
    rates = -scene.trajectory.velocities(times) / frame_interval_s
    speed = np.linalg.norm(rates[:, 3:], axis=1) / median_depth(scene)
    return velocities((times - first) * frame_interval_s, np.degrees(rates[:, :3]), speed)


def median_depth(scene: Scene) -> float:
    """Median distance of the observed points from their cameras, in scene units."""
    centres = camera_centres(scene.cam_from_world)[scene.tracks.frames]
    return float(np.median(np.linalg.norm(scene.points[scene.tracks.points] - centres, axis=1)))


def _near(points: FloatArray, centre: FloatArray) -> FloatArray:
    distance = np.linalg.norm(points - np.median(points, axis=0), axis=1)
    limit = max(np.quantile(distance, REPORT.near_share), np.linalg.norm(centre - np.median(points, axis=0)))
    points = points[distance <= limit]
    return points[:: -(-len(points) // REPORT.most_points)]


def _frusta(scene: Scene, poses: FloatArray, size: float) -> FloatArray:
    """(k, 3) lines of small camera pyramids, NaN between them."""
    camera = scene.camera
    corners = np.array([[0, 0], [camera.width - 1, 0], [camera.width - 1, camera.height - 1], [0, camera.height - 1]])
    rays = camera.lens.unproject(corners.astype(float))
    # A corner may lie outside the field of the lens; a pyramid of 45 degrees stands in.
    rays = np.where(np.isfinite(rays), rays, np.array([[-1, -1, 1], [1, -1, 1], [1, 1, 1], [-1, 1, 1]]) / np.sqrt(3))
    corners_cam = size * rays
    tip, gap = np.zeros(3), np.full(3, np.nan)
    a, b, c, d = corners_cam
    lines = np.array([tip, a, b, tip, c, d, tip, gap, b, c, gap, d, a, gap])
    return np.einsum("nji,nkj->nki", poses[:, :, :3], lines - poses[:, None, :, 3]).reshape(-1, 3)
