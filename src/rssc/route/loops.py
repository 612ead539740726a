"""Places that are seen again: pairs of keyframes far apart in the clip that show the same landmarks.

Keyframes that may show the same place are found by the sum of what their features have beyond the nearest of a small
vocabulary (VLAD: Jegou et al., Aggregating local descriptors into a compact image representation, 2010), with the
vocabulary of the clip itself. Whether they do, geometry decides: the landmarks of the earlier one must place the later
one, by its features. How far those are that are landmarks of both, once by this pose and once by the later keyframe's
own, gives the scale between the two; where these are too few, as at the end of a clip, it stays unknown.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.cluster.vq import kmeans2

from rssc.model.arrays import FloatArray
from rssc.model.camera import Camera
from rssc.model.poses import transform_points
from rssc.model.similarity import Similarity
from rssc.model.trajectory import Trajectory
from rssc.route.landmarks import Keyframe
from rssc.route.views import ideal_lens
from rssc.runtime.constants import Constants
from rssc.runtime.progress import Report, unreported
from rssc.start.colmap_mapping import absolute_pose
from rssc.tracking.features import match


@dataclass(frozen=True)
class LoopConstants(Constants):
    """Loops, chosen by hand."""

    words: int = 48
    """Of the vocabulary."""
    samples: int = 20000
    """Features that it is made from at most."""
    candidates: int = 3
    """Earlier keyframes that a keyframe is compared with, the most alike ..."""
    apart: int = 120
    """... of those that are more frames away: no track lasts as long."""
    max_error: float = 0.006
    """Largest error of a landmark that agrees, as a share of the longer image side."""
    min_agreeing: int = 20
    """Landmarks of the earlier keyframe that must agree with the pose ..."""
    share: float = 0.4
    """... and their share among all that match."""
    min_scale: int = 8
    """Of them, those that tell the scale."""


LOOPS = LoopConstants()


@dataclass(frozen=True, eq=False)
class Loop:
    """A place that is seen again."""

    first: int
    """Earlier keyframe."""
    second: int
    """Later keyframe."""
    first_from_second: Similarity
    """Between the axes of the two cameras in the middle of the readout, each in the unit of its own surroundings."""
    count: int
    """Landmarks that agree."""
    scale_known: bool
    """Whether its scale is; otherwise it is 1."""


def find_loops(
    camera: Camera,
    keyframes: Sequence[Keyframe],
    trajectories: Sequence[Trajectory],
    frame_times: FloatArray,
    report: Report = unreported,
) -> list[Loop]:
    """All places that are found to be seen again.

    Args:
        camera: Of the clip.
        keyframes: In order, of all parts.
        trajectories: Of the part of each keyframe.
        frame_times: (f,) of the clip.
        report: Called with the share of the keyframes that are done.
    """
    if len(keyframes) < 2:
        return []
    signatures = _signatures(keyframes)
    frames = np.array([one.frame for one in keyframes])
    # Between parts, neighbours count as well: what ended one may be over soon.
    parts = np.cumsum([0, *(before is not after for before, after in pairwise(trajectories))])
    loops: list[Loop] = []
    for k in range(len(keyframes)):
        report(k / len(keyframes))
        earlier = np.flatnonzero((frames <= frames[k] - LOOPS.apart) | ((parts != parts[k]) & (frames < frames[k])))
        alike = signatures[earlier] @ signatures[k]
        for i in earlier[np.argsort(-alike, kind="stable")[: LOOPS.candidates]].tolist():
            loop = _verified(camera, keyframes, trajectories, frame_times, i, k)
            # Without its scale, a part cannot be brought into the world of another.
            if loop is not None and (loop.scale_known or parts[i] == parts[k]):
                loops.append(loop)
    return loops


def middle_pose(camera: Camera, trajectory: Trajectory, time: float) -> FloatArray:
    """(3, 4) pose in the middle of the readout of a frame."""
    return trajectory.cam_from_world([time + camera.shutter.readout_ratio / 2])[0]


def _verified(
    camera: Camera,
    keyframes: Sequence[Keyframe],
    trajectories: Sequence[Trajectory],
    frame_times: FloatArray,
    i: int,
    k: int,
) -> Loop | None:
    """The loop between two keyframes, where there is one."""
    first, second = keyframes[i], keyframes[k]
    pairs = match(first.descriptors, second.descriptors)
    pairs = pairs[first.known[pairs[:, 0]]]
    if len(pairs) < LOOPS.min_agreeing:
        return None
    lens = ideal_lens(camera.lens)
    times = frame_times[[first.frame, second.frame]]
    first_pose, second_pose = (
        middle_pose(camera, trajectories[n], float(time)) for n, time in zip((i, k), times, strict=True)
    )
    # To the middle of the readout by the turn since; how the place changes by then is far below a pixel.
    pixels = second.pixels[pairs[:, 1]]
    row_times = times[1] + camera.shutter.readout_ratio * camera.row_fraction(pixels)
    turned = second_pose[:, :3] @ trajectories[k].cam_from_world(row_times)[:, :, :3].transpose(0, 2, 1)
    middle = lens.project(np.einsum("nij,nj->ni", turned, camera.lens.unproject(pixels)))
    seen = np.isfinite(middle[:, 0])
    pairs, middle, points = pairs[seen], middle[seen], first.points[pairs[seen, 0]]
    max_error = LOOPS.max_error * max(camera.width, camera.height)
    found = absolute_pose(points, middle, lens, camera.width, camera.height, max_error)
    if found is None or found[1] < max(LOOPS.min_agreeing, LOOPS.share * len(pairs)):
        return None
    pose = found[0]
    near = transform_points(np.broadcast_to(pose, (len(points), 3, 4)), points)
    agrees = np.linalg.norm(lens.project(near) - middle, axis=1) < max_error
    own = transform_points(
        np.broadcast_to(second_pose, (len(points), 3, 4)), second.points[pairs[:, 1]]
    )[:, 2]  # fmt: skip
    agrees &= near[:, 2] > 0
    both = agrees & (own > 0)  # not a number where the later keyframe has no landmark
    scale_known = int(np.count_nonzero(both)) >= LOOPS.min_scale
    scale = float(np.exp(np.median(np.log(own[both] / near[both, 2])))) if scale_known else 1.0
    # x_first = R_first x_world + t_first, and x_world from the pose of the second in the world of the first.
    rotation = first_pose[:, :3] @ pose[:, :3].T
    link = Similarity(1 / scale, rotation, first_pose[:, 3] - rotation @ pose[:, 3])
    return Loop(i, k, link, int(np.count_nonzero(agrees)), scale_known)


def _signatures(keyframes: Sequence[Keyframe]) -> FloatArray:
    """(k, words * 128) of norm 1."""
    step = -(-sum(len(one.descriptors) for one in keyframes) // LOOPS.samples)
    sample = np.concatenate([one.descriptors[::step] for one in keyframes]).astype(np.float32)
    words = np.asarray(kmeans2(sample, LOOPS.words, minit="++", seed=0)[0], np.float32)
    signatures = np.zeros((len(keyframes), *words.shape), np.float32)
    for k, one in enumerate(keyframes):
        if not len(one.descriptors):
            continue
        descriptors = one.descriptors.astype(np.float32)
        nearest = (descriptors @ words.T - 0.5 * (words**2).sum(axis=1)).argmax(axis=1)
        np.add.at(signatures[k], nearest, descriptors - words[nearest])
        norms = np.linalg.norm(signatures[k], axis=1, keepdims=True)
        signatures[k] /= np.maximum(norms, 1e-9)
    flat = signatures.reshape(len(keyframes), -1)
    return flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-9)
