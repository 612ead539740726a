"""A continuous camera trajectory: cam_from_world at any time."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rssc.errors import InputError
from rssc.kernels import spline
from rssc.model.arrays import ArrayEquality, FloatArray, float_array
from rssc.runtime.threads import even_chunks, run_chunks

_LEAST_CHUNK = 4096
"""Poses that are worth a thread of their own: half a millisecond."""


@dataclass(frozen=True, eq=False)
class Trajectory(ArrayEquality):
    """A cumulative cubic B-spline on SE(3) over cam_from_world, with uniform knots."""

    control_poses: FloatArray
    """(n, 3, 4) control poses [R | t]; the spline does not pass through them."""
    start: float
    """First valid time, in frame intervals."""
    knot_spacing: float
    """Time between knots, in frame intervals."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "control_poses", float_array("control_poses", self.control_poses, (-1, 3, 4)))
        if len(self.control_poses) < 4:
            raise InputError(f"a cubic spline needs at least 4 control poses; got {len(self.control_poses)}.")
        if not self.knot_spacing > 0:
            raise InputError(f"knot spacing is {self.knot_spacing}; expected a positive number of frames.")

    @property
    def end(self) -> float:
        """Last valid time."""
        return self.start + (len(self.control_poses) - 3) * self.knot_spacing

    def between(self, begin: float, end: float) -> "Trajectory":
        """The same curve with only the control poses that the times from begin to end depend on."""
        count = len(self.control_poses) - 3
        first = int(np.clip(np.floor((begin - self.start) / self.knot_spacing + 1e-9), 0, count - 1))
        last = int(np.clip(np.ceil((end - self.start) / self.knot_spacing - 1e-9), first + 1, count))
        start = self.start + first * self.knot_spacing
        return Trajectory(self.control_poses[first : last + 3], start, self.knot_spacing)

    def cam_from_world(self, times: ArrayLike) -> FloatArray:
        """(n, 3, 4) poses at (n,) times; beyond the valid interval, the end polynomials go on."""
        given, moments = self._spline, np.atleast_1d(np.array(times, dtype=np.float64))
        poses = np.empty((len(moments), 3, 4))

        def task(_: int, begin: int, end: int) -> None:
            poses[begin:end] = spline.poses_at(*given, moments[begin:end])

        run_chunks(task, even_chunks(len(moments), _LEAST_CHUNK))
        return poses

    def velocities(self, times: ArrayLike) -> FloatArray:
        """(n, 6) velocities [rotation, translation] per frame interval in the camera frame: dT/dt = [v] T."""
        return spline.velocities_at(*self._spline, np.atleast_1d(np.array(times, dtype=np.float64)))

    @property
    def _spline(self) -> tuple[FloatArray, float, float]:
        # A copy, because numba compiles anew for arrays that may not be written to.
        return np.array(self.control_poses), self.start, self.knot_spacing
