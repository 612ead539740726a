"""A stretch as a global shutter would have filmed it through a pinhole: what COLMAP's model of rectified frames holds.

A keypoint is where the point is seen from the pose of the reference row, plus the residual that its observation has
under the rolling-shutter model: rectification moves pixels by what the model says, so errors of measurement remain.
"""

from dataclasses import replace

import numpy as np

from rssc.model.camera import Camera, Shutter
from rssc.model.poses import transform_points
from rssc.model.stretch import Stretch
from rssc.outputs.crop import Window
from rssc.outputs.rectify import Rectifier
from rssc.solver.problem import with_trajectory


def rectified_stretch(stretch: Stretch, rectifier: Rectifier, window: Window, frame_interval_s: float) -> Stretch:
    """The stretch of rectified frames.

    Args:
        stretch: As it was filmed; or a part of it.
        rectifier: Of the whole stretch, with the lens of the rectified frames.
        window: Which part of the rectified frames is kept.
        frame_interval_s: From frame to frame.
    """
    stretch = replace(stretch, scene=with_trajectory(stretch.scene)).over_whole_image(frame_interval_s)
    scene, tracks = stretch.scene, stretch.scene.tracks
    assert scene.trajectory is not None
    delay = scene.camera.shutter.readout_ratio * rectifier.reference_fraction
    times = scene.frame_times + delay
    poses = scene.trajectory.cam_from_world(times)
    seen = scene.points[tracks.points]
    predicted = scene.camera.lens.project(transform_points(scene.row_poses(tracks.pixels, tracks.frames), seen))
    there = rectifier.lens.project(transform_points(poses[tracks.frames], seen))
    pixels = there + tracks.pixels - predicted - (window.left, window.top)
    # Some lie beyond what is kept, and a point that has hardly any left is no point of the model.
    size = np.array([window.width, window.height])
    kept = np.all(np.isfinite(pixels) & (pixels >= -0.5) & (pixels <= size - 0.5), axis=1)
    often = np.bincount(tracks.points[kept], minlength=tracks.point_count) >= 2
    kept &= often[tracks.points]
    pixels[~np.isfinite(pixels)] = 0.0
    lens = rectifier.lens
    lens = replace(lens, cx=lens.cx - window.left, cy=lens.cy - window.top)
    return replace(
        stretch,
        scene=replace(
            scene, camera=Camera(window.width, window.height, lens, Shutter(0.0)), frame_times=times,
            cam_from_world=poses, tracks=replace(tracks, pixels=pixels).select(kept),
        ),
        times_s=stretch.times_s + delay * frame_interval_s,
    )  # fmt: skip
