"""Places the frames of a clip one after the other, with a camera that is known.

    begin     some frames are reconstructed together, with the lens held
    extend    the next frame is placed by the points that it sees, of which those count that are seen under an angle;
              every few frames, what tracks have seen by then is triangulated again
    adjust    now and then, the last frames are adjusted under the rolling-shutter model, in the world of those among
              them that were adjusted before: what frames have drifted since is forgotten

Where a frame cannot be placed, nor those that follow it, the clip goes on in another world, a new part: after a cut,
or behind a hand before the lens. Poses are those of the middle of the readout, and good enough to start from.
"""

from dataclasses import dataclass

import numpy as np

from rssc.errors import InputError, NotCalibratableError
from rssc.inference.motion import loose_prior
from rssc.inference.robust import restart, robust_adjust
from rssc.kernels.triangulation import triangulate_points
from rssc.model.arrays import FloatArray, IntArray
from rssc.model.camera import Camera
from rssc.model.poses import camera_centres, rotate_to_world
from rssc.model.scene import Scene
from rssc.model.similarity import fit_poses
from rssc.model.tracks import Tracks
from rssc.route.views import ClipTracks, ideal_lens, ideal_pixels
from rssc.runtime.constants import Constants
from rssc.runtime.progress import Report, unreported
from rssc.solver.options import AdjustOptions
from rssc.solver.problem import readout_interval
from rssc.solver.spline_fit import fit_trajectory
from rssc.start.colmap_mapping import absolute_pose, map_globally, map_incrementally
from rssc.start.keyframes import FrameViews, choose_keyframes
from rssc.start.mapping import Fit, judge, parallax


@dataclass(frozen=True)
class PlacingConstants(Constants):
    """Placing, chosen by hand."""

    begin_frames: tuple[int, ...] = (60, 30)
    """Frames that a part begins with, reconstructed together; fewer where there is a cut among the first ..."""
    begin_step: int = 20
    """... and how much later it is tried again where that fails."""
    begin_inliers: float = 0.6
    """Share of the observations that the beginning must explain ..."""
    begin_parallax_deg: float = 1.0
    """... and the angle under which half of its points must be seen."""
    max_error: float = 0.006
    """Largest reprojection error of a point that agrees, as a share of the longer image side."""
    fast: float = 2.0
    """Factor on it where too few agree: in a fast pan, pixels are off by what the speed changes within a frame."""
    sure_deg: float = 1.0
    """Angle of the lines of sight to a point from which on its distance is known well: less, and noise brings points
    nearer, and the scale drifts ..."""
    sure_points: int = 60
    """... and how many such points a frame must see to be placed by them alone."""
    min_agreeing: float = 0.5
    """Share of the known points in a frame that must agree with its pose."""
    block: int = 5
    """Frames that are placed before tracks are triangulated again."""
    scale_spread: float = 0.01
    """How far apart frames must be that were adjusted before, for them to give the scale of those adjusted now: root
    mean square, as a share of the distance of the points."""
    reach: int = 60
    """Frames back from which tracks are triangulated, and that are adjusted together."""
    adjust_every: int = 30
    """Frames that are placed before the last ones are adjusted."""
    lost: int = 10
    """Frames in a row that cannot be placed before a part ends."""


PLACING = PlacingConstants()


@dataclass(frozen=True, eq=False)
class Placement:
    """Where the frames are."""

    cam_from_world: FloatArray
    """(f, 3, 4) in the middle of the readout; NaN where a frame could not be placed."""
    parts: IntArray
    """(f,) which world; -1 where a frame could not be placed."""


def held_camera(camera: Camera) -> tuple[str, ...]:
    """Names of all parameters of the camera, which an adjustment is to hold."""
    return (*camera.lens.parameter_names, "readout_ratio")


def place_frames(camera: Camera, clip: ClipTracks, frame_times: FloatArray, report: Report = unreported) -> Placement:
    """Places all frames that can be placed.

    Args:
        camera: Held.
        clip: Tracks of the whole clip.
        frame_times: (f,) in frame intervals.
        report: Called with the share of the frames that are done.
    """
    placer = _Placer(camera, clip, frame_times)
    count, frame, part = len(frame_times), 0, 0
    while frame < count:
        begun = None
        for length in PLACING.begin_frames:
            begun = begun or placer.begin(frame, length, part)
        if begun is None:
            frame += PLACING.begin_step
            continue
        placer.extend(begun[0], -1, part)
        frame = placer.extend(begun[1], 1, part, report)
        part += 1
    report(1.0)
    return Placement(placer.poses, placer.parts)


class _Placer:
    """Poses and points so far."""

    def __init__(self, camera: Camera, clip: ClipTracks, frame_times: FloatArray) -> None:
        self._camera, self._clip, self._times = camera, clip, frame_times
        self._lens = ideal_lens(camera.lens)
        tracks = clip.tracks
        self._pixels = ideal_pixels(camera, tracks, frame_times)
        self._views = FrameViews(tracks, self._pixels)
        self._rays = self._lens.unproject(self._pixels)
        self._max_error = PLACING.max_error * max(camera.width, camera.height)
        self.points = np.full((tracks.point_count, 3), np.nan)
        self._cosines = np.ones(tracks.point_count)
        self.poses = np.full((len(frame_times), 3, 4), np.nan)
        self.parts = np.full(len(frame_times), -1)
        self._adjusted = np.zeros(len(frame_times), bool)

    def begin(self, first: int, length: int, part: int) -> tuple[int, int] | None:
        """Reconstructs some frames; the first and the last of them, or None where that fails."""
        frames = np.arange(first, min(first + length, len(self._times)))
        frames = frames[self.parts[frames] < 0]
        if len(frames) < PLACING.begin_step:
            return None
        found = self._clip.window(frames, 3)
        if found is None:
            return None
        tracks, numbers, rows = found
        views = FrameViews(tracks, np.nan_to_num(self._pixels[rows], nan=-1e6))
        keyframes = choose_keyframes(views, self._camera.width, self._camera.height, self._max_error)
        fit: Fit | None = None
        for mapper, method in ((map_globally, "global"), (map_incrementally, "incremental")):
            model = mapper(keyframes, self._lens, hold_lens=True)
            if model is None or len(model.poses) < max(3, 0.8 * len(keyframes.frames)):
                continue
            fit = judge(keyframes, model, "global" if method == "global" else "incremental")
            if fit.inlier_fraction >= PLACING.begin_inliers:
                break
            fit = None
        if fit is None or parallax(keyframes, fit.model) < PLACING.begin_parallax_deg:
            return None
        self.points[numbers] = fit.model.points
        for frame, pose in fit.model.poses.items():
            self.poses[frames[frame]], self.parts[frames[frame]] = pose, part
        known = [int(frames[frame]) for frame in fit.model.poses]
        for frame in range(min(known), max(known)):
            if self.parts[frame] < 0:
                self._locate(frame, part)
        self._adjust(np.flatnonzero(self.parts == part), part)
        return min(known), max(known)

    def extend(self, begin: int, step: int, part: int, report: Report = unreported) -> int:
        """Places frames before (step -1) or after (1) one, until too many in a row cannot be; returns the next one."""
        frame, failed, placed = begin + step, 0, 0
        while 0 <= frame < len(self._times) and self.parts[frame] < 0 and failed < PLACING.lost:
            if self._locate(frame, part):
                failed, placed = 0, placed + 1
                if placed % PLACING.adjust_every == 0:
                    self._adjust(self._recent(frame, step, part), part)
                elif placed % PLACING.block == 0:
                    self._triangulate(self._recent(frame, step, part))
            else:
                failed += 1
                if failed == 1:
                    self._adjust(self._recent(frame, step, part), part)
                    failed -= self._locate(frame, part)
            frame += step
            report(frame / len(self._times))
        self._adjust(self._recent(frame, step, part), part)
        return frame - step * failed if failed >= PLACING.lost else frame

    def _recent(self, frame: int, step: int, part: int) -> IntArray:
        """Placed frames of a part near one."""
        low, high = (frame - PLACING.reach, frame + 1) if step > 0 else (frame, frame + PLACING.reach + 1)
        frames = np.arange(max(0, low), min(high, len(self._times)))
        return frames[self.parts[frames] == part]

    def _locate(self, frame: int, part: int) -> bool:
        """Places a frame by the points that it sees; whether that succeeded."""
        points, pixels = self._views.of(frame)
        known = np.isfinite(self.points[points, 0]) & np.isfinite(pixels[:, 0])
        sure = known & (self._cosines[points] < np.cos(np.radians(PLACING.sure_deg)))
        if sure.sum() >= PLACING.sure_points:
            known = sure
        size = self._camera.width, self._camera.height
        for error in (self._max_error, PLACING.fast * self._max_error):
            found = absolute_pose(self.points[points[known]], pixels[known], self._lens, *size, error)
            if found is not None and found[1] >= PLACING.min_agreeing * known.sum():
                self.poses[frame], self.parts[frame] = found[0], part
                return True
        return False

    def _triangulate(self, frames: IntArray) -> None:
        """Points of the tracks that some placed frames see, as a global shutter in the middle of the readout would."""
        found = self._clip.window(frames, 2) if len(frames) else None
        if found is None:
            return
        tracks, numbers, rows = found
        poses = self.poses[frames[tracks.frames]]
        centres, rays = camera_centres(poses), self._rays[rows]
        seen = np.isfinite(rays[:, 0])
        rays = rotate_to_world(poses, np.where(seen[:, None], rays, [0.0, 0.0, 1.0]))
        points, errors = np.empty((len(numbers), 3)), np.empty(len(numbers))
        pixel, far = 1 / self._lens.fx, 100 * float(np.linalg.norm(np.ptp(centres, axis=0))) or 1.0
        triangulate_points(
            tracks.offsets, centres, rays, np.full(len(rays), pixel), far, 0, len(numbers), points, errors
        )
        first, last = rays[tracks.offsets[:-1]], rays[tracks.offsets[1:] - 1]
        self._cosines[numbers] = (first * last).sum(axis=1)
        errors[tracks.points[~seen]] = np.inf
        points[errors > self._max_error] = np.nan
        self.points[numbers] = points

    def _adjust(self, frames: IntArray, part: int) -> None:
        """Adjusts some placed frames under the rolling-shutter model; leaves them as they are where that fails."""
        found = self._clip.window(frames, 3) if len(frames) >= PLACING.block else None
        if found is not None:
            times, half = self._times[frames], self._camera.shutter.readout_ratio / 2
            scene = held_scene(self._camera, found[0], times, self.poses[frames])
            try:
                common = AdjustOptions(fixed=held_camera(self._camera), motion_prior=loose_prior(scene))
                scene = robust_adjust(restart(scene, scene.tracks), common=common).scene
                assert scene.trajectory is not None
                poses, before = scene.trajectory.cam_from_world(times + half), self._adjusted[frames]
                if before.any():
                    distance = np.median(np.linalg.norm(scene.points - camera_centres(poses).mean(axis=0), axis=1))
                    world = fit_poses(poses[before], self.poses[frames[before]], PLACING.scale_spread * distance)
                    poses = world.apply_to_poses(poses)
                self.poses[frames], self._adjusted[frames] = poses, True
            except (InputError, NotCalibratableError):
                pass
        self._triangulate(frames)


def held_scene(camera: Camera, tracks: Tracks, times: FloatArray, middle_poses: FloatArray) -> Scene:
    """A scene with a spline of one knot a frame through the poses of the middle of the readout; points are unknown."""
    ratio = camera.shutter.readout_ratio
    start, end = readout_interval(times, ratio)
    trajectory = fit_trajectory(times + ratio / 2, middle_poses, start, end, 1.0)
    unknown = np.zeros((tracks.point_count, 3))
    return Scene(camera, tracks, unknown, trajectory.cam_from_world(times), times, trajectory)
