"""Brings the parts of a clip into one world, and closes its loops.

Keyframes are the nodes of a graph (`pose_graph`): neighbours are tied to each other by the trajectory, and those that
show the same place by the landmarks that they share (`loops`). Where the graph moves its nodes, the trajectory goes
along: a pose between two keyframes keeps its place beside each of them, and passes from one to the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation, Slerp

from rssc.model.arrays import FloatArray, IntArray
from rssc.model.camera import Camera
from rssc.model.poses import camera_centres
from rssc.model.trajectory import Trajectory
from rssc.route.landmarks import Keyframe
from rssc.route.loops import Loop, middle_pose
from rssc.route.pose_graph import Edges, Nodes, solve_graph
from rssc.route.sections import SECTIONS
from rssc.runtime.constants import Constants
from rssc.solver.spline_fit import fit_trajectory


@dataclass(frozen=True)
class ClosingConstants(Constants):
    """How well keyframes are tied to each other; only ratios count. Chosen by hand: loops as they miss the truth of a
    rendered clip, and neighbours a few times worse than there, where the camera is known exactly."""

    chain_rad: float = 3e-4
    """Of the turn from a keyframe to the next."""
    chain_place: float = 3e-4
    """Of the way to it, as a share of the usual distance of landmarks ..."""
    chain_way: float = 0.003
    """... and of the way itself."""
    chain_scale: float = 1e-3
    """Of the scale, from one to the next."""
    loop_rad: float = 2e-3
    """Of the turn between two keyframes that show the same place."""
    loop_place: float = 4e-3
    """Of the way, as a share of the usual distance of landmarks."""
    loop_scale: float = 5e-3
    """Of the scale ..."""
    unknown_scale: float = 10.0
    """... and where it is unknown."""
    wrong: float = 0.1
    """Loops to which the graph leaves less weight than this are wrong ones."""


CLOSING = ClosingConstants()


@dataclass(frozen=True, eq=False)
class Closed:
    """The trajectories of all parts, with loops closed."""

    trajectories: tuple[Trajectory, ...]
    worlds: IntArray
    """(p,) number of the world of each part: parts that no place joins are in worlds of their own."""
    loops: int
    """Places seen again that agree with the others."""
    gap_before: float
    """Median over them of how far the second camera misses its place beside the first: as a share of the path between
    them; NaN where there are none within a part."""
    gap_after: float
    """The same afterwards."""


def close_loops(
    camera: Camera,
    trajectories: Sequence[Trajectory],
    keyframes: Sequence[Sequence[Keyframe]],
    loops: Sequence[Loop],
    frame_times: FloatArray,
) -> Closed:
    """Joins parts by the places that they share, and closes loops.

    Args:
        camera: Of the clip.
        trajectories: Of the parts.
        keyframes: Of each part.
        loops: Between them, numbered over all parts.
        frame_times: (f,) of the clip.
    """
    parts = np.repeat(np.arange(len(trajectories)), [len(one) for one in keyframes])
    everything = [keyframe for one in keyframes for keyframe in one]
    if not loops:
        return Closed(tuple(trajectories), np.arange(len(trajectories)), 0, np.nan, np.nan)
    times = np.array([float(frame_times[one.frame]) for one in everything])
    ways = [way for way, one in zip(trajectories, keyframes, strict=True) for _ in one]
    poses = np.array([middle_pose(camera, way, time) for way, time in zip(ways, times.tolist(), strict=True)])
    start = Nodes(poses[:, :, :3].transpose(0, 2, 1), camera_centres(poses), np.ones(len(poses)))
    depth = float(np.median([
        np.median(np.linalg.norm(one.points[one.known] - centre, axis=1))
        for one, centre in zip(everything, start.places, strict=True) if one.known.any()
    ]))  # fmt: skip
    joined, worlds = _joined(start, parts, loops, len(trajectories))
    chain = _chain_edges(start, joined, parts, depth)
    seen_again = _loop_edges(loops, depth)
    edges = _together(chain, seen_again)
    solved, weights = solve_graph(joined, edges)
    right = weights[len(chain.first) :] >= CLOSING.wrong
    moved = tuple(
        _moved(camera, trajectory, times[mine], start.at(mine), solved.at(mine)) if len(mine) else trajectory
        for part, trajectory in enumerate(trajectories)
        for mine in [np.flatnonzero(parts == part)]
    )
    gaps = [_gaps(nodes, seen_again, right, parts) for nodes in (start, solved)]
    return Closed(moved, worlds, int(right.sum()), *gaps)


def _joined(start: Nodes, parts: IntArray, loops: Sequence[Loop], count: int) -> tuple[Nodes, IntArray]:
    """Nodes with every part brought to the world of an earlier one by the best place that they share."""
    worlds = np.arange(count)
    nodes = start
    for loop in sorted(loops, key=lambda one: -one.count):
        first, second = int(worlds[parts[loop.first]]), int(worlds[parts[loop.second]])
        if first == second:
            continue
        # Where the second keyframe is, by the first; all of its world goes along.
        link = loop.first_from_second
        base, old = nodes.at(np.array([loop.first])), nodes.at(np.array([loop.second]))
        rotation = base.rotations[0] @ link.rotation
        place = base.places[0] + base.scales[0] * base.rotations[0] @ link.translation
        scale = base.scales[0] * link.scale / old.scales[0]
        turn = rotation @ old.rotations[0].T
        mine = worlds[parts] == second
        rotations, places, scales = nodes.rotations.copy(), nodes.places.copy(), nodes.scales.copy()
        rotations[mine] = turn @ rotations[mine]
        places[mine] = place + scale * (places[mine] - old.places[0]) @ turn.T
        scales[mine] *= scale
        nodes = Nodes(rotations, places, scales)
        worlds[worlds == second] = first
    return nodes, worlds


def _chain_edges(start: Nodes, joined: Nodes, parts: IntArray, depth: float) -> Edges:
    """Every keyframe of a part with the next."""
    first = np.flatnonzero(np.diff(parts) == 0)
    second = first + 1
    measured = start.at(second).relative_to(start.at(first))
    way = np.linalg.norm(measured.places, axis=1)
    scales = joined.scales[first]
    place = scales * (CLOSING.chain_place * depth + CLOSING.chain_way * way)
    sigmas = np.empty((len(first), 7))
    sigmas[:, :3], sigmas[:, 3:6], sigmas[:, 6] = CLOSING.chain_rad, place[:, None], CLOSING.chain_scale
    return Edges(first, second, measured, sigmas, np.zeros(len(first)))


def _loop_edges(loops: Sequence[Loop], depth: float) -> Edges:
    links = [loop.first_from_second for loop in loops]
    measured = Nodes(
        np.array([link.rotation for link in links]), np.array([link.translation for link in links]),
        np.array([link.scale for link in links]),
    )  # fmt: skip
    sigmas = np.tile([CLOSING.loop_rad] * 3 + [CLOSING.loop_place * depth] * 3 + [CLOSING.loop_scale], (len(loops), 1))
    sigmas[[not loop.scale_known for loop in loops], 6] = CLOSING.unknown_scale
    first, second = (np.array([getattr(loop, end) for loop in loops]) for end in ("first", "second"))
    return Edges(first, second, measured, sigmas, np.ones(len(loops)))


def _together(one: Edges, other: Edges) -> Edges:
    measured = Nodes(*(np.concatenate(pair) for pair in zip(
        (one.measured.rotations, one.measured.places, one.measured.scales),
        (other.measured.rotations, other.measured.places, other.measured.scales), strict=True,
    )))  # fmt: skip
    return Edges(
        np.concatenate([one.first, other.first]), np.concatenate([one.second, other.second]), measured,
        np.concatenate([one.sigmas, other.sigmas]), np.concatenate([one.doubtful, other.doubtful]),
    )  # fmt: skip


def _gaps(nodes: Nodes, edges: Edges, right: NDArray[np.bool_], parts: IntArray) -> float:
    """Median miss of the loops within a part, as a share of the path between their ends."""
    inside = right & (parts[edges.first] == parts[edges.second])
    if not inside.any():
        return np.nan
    steps = np.linalg.norm(np.diff(nodes.places, axis=0), axis=1)
    way = np.concatenate([[0.0], np.cumsum(steps)])
    first, second = edges.first[inside], edges.second[inside]
    error = nodes.at(second).relative_to(nodes.at(first)).places - edges.measured.places[inside]
    misses = np.linalg.norm(error, axis=1) * nodes.scales[first]
    return float(np.median(misses / np.maximum(way[second] - way[first], 1e-12)))


def _moved(camera: Camera, trajectory: Trajectory, times: FloatArray, start: Nodes, solved: Nodes) -> Trajectory:
    """A trajectory that goes along with its keyframes at (k,) times."""
    at = np.arange(trajectory.start, trajectory.end + 1e-9, 1 / SECTIONS.samples)
    poses = trajectory.cam_from_world(at)
    centres = camera_centres(poses)
    known = times + camera.shutter.readout_ratio / 2
    turns = Rotation.from_matrix(solved.rotations @ start.rotations.transpose(0, 2, 1))
    if len(times) == 1:
        before = after = np.zeros(len(at), np.int64)
        share, turn = np.zeros(len(at)), Rotation.concatenate([turns] * len(at))
    else:
        inside = np.clip(at, known[0], known[-1])
        before = np.clip(np.searchsorted(known, inside, side="right") - 1, 0, len(known) - 2)
        after = before + 1
        share = (inside - known[before]) / (known[after] - known[before])
        turn = Slerp(known, turns)(inside)
    moved = np.zeros_like(centres)
    for node, weight in ((before, 1 - share), (after, share)):
        local = np.einsum("nji,nj->ni", start.rotations[node], centres - start.places[node])
        there = np.einsum("nij,nj->ni", solved.rotations[node], local)
        moved += weight[:, None] * (solved.places[node] + solved.scales[node, None] * there)
    rotations = poses[:, :, :3] @ turn.as_matrix().transpose(0, 2, 1)
    translations = -np.einsum("nij,nj->ni", rotations, moved)
    new = np.concatenate([rotations, translations[:, :, None]], axis=2)
    return fit_trajectory(at, new, trajectory.start, trajectory.end, trajectory.knot_spacing)
