"""The way of a known camera through a whole clip, on simulated tracks: placed, adjusted in sections, joined, closed."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rssc.datasets.trajectory_error import aligned_error
from rssc.model.poses import camera_centres, transform_points
from rssc.model.similarity import Similarity, fit_poses, fit_similarity
from rssc.model.tracks import Tracks
from rssc.model.trajectory import Trajectory
from rssc.route.landmarks import Keyframe
from rssc.route.loops import find_loops
from rssc.route.placing import place_frames
from rssc.route.pose_graph import Edges, Nodes, solve_graph
from rssc.route.sections import SECTIONS, adjust_section, join_sections, section_frames
from rssc.route.views import ClipTracks
from rssc.simulation import simulate_scene
from rssc.simulation.projection import inside_image, rolling_shutter_project
from tests.builders import make_camera


@pytest.fixture(scope="module")
def corridor():
    """The true scene of a camera that goes along a corridor, with noisy tracks."""
    found = simulate_scene(4, frame_count=130, point_count=1040, pixel_noise=0.05, world="corridor", track_length=25)
    return replace(found.truth, tracks=found.scene.tracks)


def random_similarity(rng):
    return Similarity(rng.uniform(0.5, 2), Rotation.random(random_state=rng).as_matrix(), rng.normal(size=3))


def test_similarities_compose_and_invert():
    rng = np.random.default_rng(0)
    first, second, points = random_similarity(rng), random_similarity(rng), rng.normal(size=(5, 3))
    np.testing.assert_allclose(second.after(first).apply(points), second.apply(first.apply(points)), atol=1e-12)
    np.testing.assert_allclose(first.inverse.apply(first.apply(points)), points, atol=1e-12)


def test_poses_are_brought_to_others_also_along_a_line():
    rng = np.random.default_rng(3)
    world = random_similarity(rng)
    rotations = Rotation.random(7, random_state=rng).as_matrix()
    for way in ([0.3, -0.2, 0.5], [0.0, 0.0, 0.0]):
        poses = np.concatenate([rotations, -rotations @ np.outer(np.arange(7), way)[:, :, None]], axis=2)
        found = fit_poses(poses, world.apply_to_poses(poses), 0.1)
        np.testing.assert_allclose(found.rotation, world.rotation, atol=1e-12)
        assert found.scale == pytest.approx(world.scale if any(way) else 1.0)
        np.testing.assert_allclose(found.translation, world.translation, atol=1e-9)


def test_windows_are_what_a_search_of_the_whole_table_gives():
    rng = np.random.default_rng(1)
    keep = rng.uniform(size=(40, 30)) < 0.4
    points, frames = np.nonzero(keep)
    clip = ClipTracks(Tracks(30, 40, frames, points, rng.uniform(size=(len(frames), 2))), 12)
    table = clip.tracks
    wanted = np.array([7, 8, 10, 11, 12])
    tracks, numbers, rows = clip.window(wanted, 2)
    inside = np.isin(table.frames, wanted)
    often = np.flatnonzero(np.bincount(table.points[inside], minlength=table.point_count) >= 2)
    np.testing.assert_array_equal(numbers, often)
    np.testing.assert_array_equal(rows, np.flatnonzero(inside & np.isin(table.points, often)))
    np.testing.assert_array_equal(wanted[tracks.frames], table.frames[rows])
    np.testing.assert_array_equal(numbers[tracks.points], table.points[rows])


def test_a_graph_spreads_the_drift_of_a_loop_and_leaves_out_a_wrong_one():
    rng = np.random.default_rng(2)
    count = 60
    angles = 2 * np.pi * np.arange(count) / (count - 1)
    rotations = Rotation.from_rotvec(np.outer(angles, [0.0, 1.0, 0.0])).as_matrix()
    truth = Nodes(
        rotations, np.column_stack([np.sin(angles), 0.1 * np.sin(3 * angles), np.cos(angles)]), np.ones(count)
    )
    first = np.arange(count - 1)
    steps = truth.at(first + 1).relative_to(truth.at(first))
    turns = Rotation.from_rotvec(rng.normal((0, 2e-3, 1e-3), 5e-4, (count - 1, 3))).as_matrix()
    measured = Nodes(turns @ steps.rotations, steps.places + rng.normal(0, 5e-4, (count - 1, 3)), steps.scales * 1.003)
    drifted = [(truth.rotations[0], truth.places[0], 1.0)]
    for rotation, place, scale in zip(measured.rotations, measured.places, measured.scales, strict=True):
        r, p, s = drifted[-1]
        drifted.append((r @ rotation, p + s * r @ place, s * scale))
    start = Nodes(*(np.array(column) for column in zip(*drifted, strict=True)))
    ends = np.array([[0, count - 1], [1, count - 2], [3, 30]])
    loops = truth.at(ends[:, 1]).relative_to(truth.at(ends[:, 0]))
    loops.places[2] += 0.7  # a place that only looks like another
    edges = Edges(
        np.append(first, ends[:, 0]), np.append(first + 1, ends[:, 1]),
        Nodes(*(np.concatenate([getattr(measured, n), getattr(loops, n)]) for n in ("rotations", "places", "scales"))),
        np.tile([2e-3] * 6 + [3e-3], (count + 2, 1)),
        np.append(np.zeros(count - 1), np.ones(3)),
    )  # fmt: skip
    solved, weights = solve_graph(start, edges)

    def error(nodes):
        return aligned_error(nodes.places, truth.places).rmse

    assert error(start) > 0.05
    assert error(solved) < 0.2 * error(start)
    assert weights[-1] < 0.05
    assert weights[-2] > 0.5


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_place_that_is_seen_again_is_placed_by_its_landmarks(share):
    """The later keyframe, which has drifted in turn, way and scale, has landmarks of its own for a share of them."""
    rng = np.random.default_rng(5)
    camera = make_camera("radial", 320, 240)
    still = Trajectory(np.tile(np.eye(3, 4), (4, 1, 1)), 0.0, 200.0)
    true = np.column_stack([Rotation.from_rotvec([0.02, -0.1, 0.03]).as_matrix(), [0.2, -0.1, 0.15]])
    points = rng.uniform((-1.5, -1.0, 3.0), (1.5, 1.0, 6.0), (60, 3))
    local = transform_points(np.broadcast_to(true, (60, 3, 4)), points)
    descriptors = rng.normal(size=(60, 128))
    descriptors = (descriptors / np.linalg.norm(descriptors, axis=1, keepdims=True)).astype(np.float16)
    known = np.where((np.arange(60) < share * 60)[:, None], 1.3 * local, np.nan)
    noisy = camera.lens.project(local) + rng.normal(0, 0.2, (60, 2))
    keyframes = [
        Keyframe(0, camera.lens.project(points), points, descriptors),
        Keyframe(130, noisy, known, descriptors),
    ]
    (loop,) = find_loops(camera, keyframes, [still, still], np.arange(131.0))
    assert (loop.first, loop.second, loop.scale_known) == (0, 1, share > 0)
    link = loop.first_from_second
    assert np.degrees(Rotation.from_matrix(link.rotation @ true[:, :3]).magnitude()) < 0.2
    np.testing.assert_allclose(link.translation, -true[:, :3].T @ true[:, 3], atol=0.02)
    assert link.scale == pytest.approx(1 / 1.3 if share else 1.0, abs=0.01)
    # Between parts, a loop is worth nothing without its scale.
    other = replace(still, start=0.0, control_poses=still.control_poses.copy())
    assert len(find_loops(camera, keyframes, [still, other], np.arange(131.0))) == (share > 0)


def test_frames_are_placed_and_sections_joined(corridor):
    truth = corridor
    clip, times = ClipTracks(truth.tracks, 60), truth.frame_times
    placement = place_frames(truth.camera, clip, times)
    assert (placement.parts == 0).all()
    centres = camera_centres(truth.cam_from_world)
    assert aligned_error(camera_centres(placement.cam_from_world), centres).rmse < 0.002 * path_of(centres)
    pieces = [np.arange(0, 80), np.arange(40, 130)]
    sections = [
        adjust_section(truth.camera, clip, times, placement.cam_from_world, frames) for frames in pieces
    ]  # fmt: skip
    joined = join_sections(sections, times, truth.camera.shutter.readout_ratio)
    error = aligned_error(camera_centres(joined.cam_from_world(times)), centres)
    assert error.rmse < 2e-4 * error.true_length


def test_placing_keeps_the_scale_where_the_camera_turns_more_than_it_moves():
    """Points that are placed too near because of noise would shrink the world from frame to frame."""
    count, point_count, turn, step = 100, 1000, 0.006, 0.01
    rng = np.random.default_rng(0)
    camera = make_camera("radial", 320, 240)
    at = np.arange(-2, count + 3)
    rotations = Rotation.from_rotvec(np.outer(-turn * at, [0, 1, 0])).as_matrix()
    centres = np.column_stack([step * at, 0.02 * np.sin(at / 9), 0.02 * np.cos(at / 7)])
    truth = Trajectory(np.concatenate([rotations, -rotations @ centres[:, :, None]], axis=2), -1.0, 1.0)
    angle, distance = rng.uniform(-0.9, 0.9 + turn * count, point_count), rng.uniform(2, 4, point_count)
    points = np.column_stack([np.sin(angle), rng.uniform(-0.4, 0.4, point_count), np.cos(angle)]) * distance[:, None]
    frames, numbers = (one.ravel() for one in np.meshgrid(range(count), range(point_count), indexing="ij"))
    pixels, local = rolling_shutter_project(camera, truth, points[numbers], frames.astype(float))
    seen = inside_image(camera, pixels, local)
    pixels = pixels[seen] + rng.normal(0, 0.6, (int(seen.sum()), 2))
    tracks = Tracks(count, point_count, frames[seen], numbers[seen], pixels)
    tracks = tracks.select_points(tracks.lengths >= 5)
    placement = place_frames(camera, ClipTracks(tracks, 60), np.arange(float(count)))
    assert (placement.parts == 0).all()
    placed, true = (
        camera_centres(one)
        for one in (placement.cam_from_world, truth.cam_from_world(np.arange(count) + camera.shutter.readout_ratio / 2))
    )
    scales = [fit_similarity(placed[a : a + 25], true[a : a + 25]).scale for a in range(0, count, 25)]
    assert max(scales) < 1.03 * min(scales)


def test_a_clip_that_is_cut_is_placed_in_two_parts(corridor):
    tracks = corridor.tracks
    _, numbers = np.unique(tracks.points + tracks.point_count * (tracks.frames >= 70), return_inverse=True)
    cut = Tracks(tracks.frame_count, int(numbers.max()) + 1, tracks.frames, numbers, tracks.pixels, tracks.sigmas)
    cut = cut.select_points(cut.lengths >= 3)
    placement = place_frames(corridor.camera, ClipTracks(cut, 60), corridor.frame_times)
    assert (placement.parts[:70] == 0).all()
    assert (placement.parts[70:] == 1).all()


def test_every_frame_is_in_a_section_and_neighbours_overlap():
    for count in (10, 150, 279, 300, 1000):
        sections = section_frames(np.arange(count))
        assert np.array_equal(np.unique(np.concatenate(sections)), np.arange(count))
        for before, after in pairwise(sections):
            assert len(np.intersect1d(before, after)) == SECTIONS.overlap
        assert len(sections[-1]) < 2 * SECTIONS.frames + SECTIONS.overlap


def path_of(centres):
    return np.linalg.norm(np.diff(centres, axis=0), axis=1).sum()
