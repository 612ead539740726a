"""Predicted pixels, warps and bends against the exact motion of neighbouring pixels on a rendered plane."""

import numpy as np

from rssc.model import Scene, Tracks
from rssc.model.poses import camera_centres, rotate_to_world
from rssc.simulation.clip import ClipOptions, render_clip, typical_lens
from rssc.simulation.projection import rolling_shutter_project
from rssc.solver.spline_fit import fit_trajectory
from rssc.tracking.prediction import predict_observations, predict_streaks, surface_slopes


def make_scene():
    """Points of a room, seen in two frames of a fast clip."""
    lens = typical_lens("opencv", 640, 480)
    clip = render_clip(ClipOptions(lens=lens, motion="shaky", readout_ratio=0.7, seed=2, frame_count=12))
    times = np.arange(0, 12.01, 0.25)
    trajectory = fit_trajectory(times, clip.motion.cam_from_world(times), 0.0, 12.0, 0.5)
    u, v = np.meshgrid(np.linspace(150, 490, 5), np.linspace(120, 360, 4))
    reference = np.column_stack([u.ravel(), v.ravel()])
    points = clip.world_points(0, reference)
    pixels, visible = clip.observe(points, 6)
    points, pixels, reference = points[visible], pixels[visible], reference[visible]
    count = len(points)
    tracks = Tracks(
        12, count, np.repeat([[0, 6]], count, axis=0).ravel(), np.repeat(np.arange(count), 2),
        np.stack([reference, pixels], axis=1).reshape(-1, 2), np.full(2 * count, 0.02),
    )  # fmt: skip
    frame_times = np.arange(12.0)
    scene = Scene(clip.camera, tracks, points, trajectory.cam_from_world(frame_times), frame_times, trajectory)
    return clip, scene, reference


def test_prediction_follows_patches_to_second_order():
    clip, scene, reference = make_scene()
    tracks, points, count = scene.tracks, scene.points, len(reference)
    found, warps, bends = predict_observations(scene, tracks.offsets[:-1])
    np.testing.assert_allclose(found, tracks.pixels, atol=0.02)
    # In its own frame a patch is neither warped nor bent.
    own = tracks.frames == 0
    np.testing.assert_allclose(warps[own], np.tile(np.eye(2), (count, 1, 1)), atol=1e-5)
    np.testing.assert_allclose(bends[own], 0.0, atol=1e-6)
    # In the other frame, the prediction for a patch's corner is that of a plane which faces the reference camera.
    x, y = 8.0, -5.0
    beside = reference + np.array([x, y])
    corner = found + warps @ [x, y] + bends @ [x * x, x * y, y * y]
    rays = clip.camera.lens.unproject(beside)
    poses = clip.motion.cam_from_world(0.7 * clip.camera.row_fraction(beside))
    centres = camera_centres(poses)
    rays = rotate_to_world(poses, rays)
    middle = clip.motion.cam_from_world(0.7 * clip.camera.row_fraction(reference))
    normals = rotate_to_world(middle, clip.camera.lens.unproject(reference))
    distance = ((points - centres) * normals).sum(axis=1) / (rays * normals).sum(axis=1)
    expected, _ = clip.observe(centres + distance[:, None] * rays, 6)
    np.testing.assert_allclose(corner[~own], expected, atol=0.03)


def test_warps_determine_how_surfaces_are_turned():
    clip, scene, reference = make_scene()
    tracks, references = scene.tracks, scene.tracks.offsets[:-1]
    other = np.flatnonzero(tracks.frames == 6)

    def beside(x, y):
        """Where the pixel beside the reference is seen in the other frame, on the true surface."""
        return clip.observe(clip.world_points(0, reference + np.array([x, y])), 6)[0]

    warps = np.stack([beside(3, 0) - beside(-3, 0), beside(0, 3) - beside(0, -3)], axis=2) / 6
    _, facing, facing_bends = predict_observations(scene, references)
    smooth = np.abs(warps - facing[other]).max(axis=(1, 2)) < 0.3  # the others lie on an edge
    slopes = surface_slopes(scene, references, facing, other, warps)
    _, turned, bends = predict_observations(scene, references, slopes)
    error = np.abs(turned[other] - warps).max(axis=(1, 2))[smooth]
    assert np.median(error) < 0.2 * np.median(np.abs(facing[other] - warps).max(axis=(1, 2))[smooth])
    curve = (beside(6, 0) + beside(-6, 0) - 2 * beside(0, 0)) / 72
    left, facing_left = bends[other, :, 0] - curve, facing_bends[other, :, 0] - curve
    assert np.median(np.abs(left[smooth])) < 0.7 * np.median(np.abs(facing_left[smooth]))


def test_streaks_are_how_points_move_while_their_rows_are_exposed():
    clip, scene, _ = make_scene()
    tracks, exposure = scene.tracks, 0.6
    streaks = predict_streaks(scene, exposure)
    moments = exposure * (np.arange(-7, 8) / 15)
    where = np.stack([
        rolling_shutter_project(clip.camera, clip.motion, scene.points[tracks.points], tracks.frames + moment)[0]
        for moment in moments
    ])  # fmt: skip
    inner = tracks.frames > 0  # the first one is exposed before the trajectory begins
    assert np.median(np.linalg.norm(streaks[inner, :2], axis=1)) > 4
    length = (where[-1] - where[0]) * 15 / 14
    np.testing.assert_allclose(streaks[inner, :2], length[inner], atol=0.1)
    # Acceleration moves the mean of what is seen away from the middle.
    offsets = (where.mean(axis=0) - where[7])[inner]
    assert np.abs(offsets).max() > 0.05
    np.testing.assert_allclose(streaks[inner, 2:] / 12, offsets, atol=0.015)
    # The row's own motion matters: without it the streak is shorter or longer by its share of the rows read.
    frozen = rolling_shutter_project(
        clip.camera.with_readout_ratio(0.0), clip.motion, scene.points[tracks.points],
        tracks.frames + 0.7 * clip.camera.row_fraction(where[7]) + moments[-1],
    )[0]  # fmt: skip
    assert np.abs(where[-1] - frozen)[inner].max() > 0.05
    np.testing.assert_array_equal(predict_streaks(scene, 0.0), 0.0)
