"""The five methods of the paper: compositions of two residuals and two interpolants, not five solvers."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Method:
    """Which residuals a method minimises."""

    spline_residuals: bool
    """Reprojection through the spline at each row's own time (te, dp)."""
    interpolant: Literal["quadratic", "hermite"] | None
    """How observations are brought to the reference time (ce, dp); none for te."""
    free_poses: bool
    """Whether the rectified residual has one free pose per frame (ce) or takes it from the spline (dp)."""

    @property
    def node_offsets(self) -> tuple[int, ...]:
        """Frames, relative to the rectified one, that interpolation needs when the reference time precedes the row."""
        return {None: (), "quadratic": (-1, 0, 1), "hermite": (-2, -1, 0, 1)}[self.interpolant]


METHODS: dict[str, Method] = {
    "te": Method(spline_residuals=True, interpolant=None, free_poses=False),
    "ceq": Method(spline_residuals=False, interpolant="quadratic", free_poses=True),
    "ceh": Method(spline_residuals=False, interpolant="hermite", free_poses=True),
    "dpq": Method(spline_residuals=True, interpolant="quadratic", free_poses=False),
    "dph": Method(spline_residuals=True, interpolant="hermite", free_poses=False),
}
