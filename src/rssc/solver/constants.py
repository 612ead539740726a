"""Tuned numbers of the solver."""

from dataclasses import dataclass

from rssc.runtime.constants import Constants


@dataclass(frozen=True)
class SolverConstants(Constants):
    """Numbers that trade robustness or speed; none of them moves the optimum."""

    max_damping: float = 1e12
    """Levenberg-Marquardt gives up here: a step is then below the rounding of the parameters."""
    min_damping: float = 1e-15
    """Damping falls no lower, so that it can rise again within a few rejected steps."""
    undamped: float = 1e-7
    """Damping up to which a step of the lens is as long as the data want it: directions that are known a thousand times
    worse than single parameters are not shortened much."""
    turning_damping: float = 1e-8
    """Of points whose distance is not observed, because the camera only turns: just above the rounding of V."""
    scale_rounds: int = 8
    """How often the scale of a robust loss may be estimated again from the residuals it left. Chosen by hand."""
    scale_iterations: int = 3
    """Iterations before the scale is estimated again, until it has settled. Chosen by hand: points that were
    triangulated have then found their places but for few."""
    settled_scale: float = 0.03
    """The scale of a robust loss has settled when it changes by less than this share. Chosen by hand."""
    row_rounds: int = 2
    """How often a predicted row is followed to the pose at its own time: errors of a pixel fall below 0.01 for images
    that move at a tenth of the readout's speed."""
    max_row_shift: float = 3.0
    """Pixels that a row may be predicted away from where it was measured; beyond it the observation is an outlier, or
    the prediction. Chosen by hand."""
    strength_controls: int = 160
    """Control poses from which the smoothness of the motion is estimated, at most. Chosen by hand: a bound on time; the
    strength of the prior is then known to a few percent."""
    strength_rounds: int = 15
    """Bound on the rounds of that estimate. Chosen by hand."""
    settled_strength: float = 0.05
    """Share by which the strength may still change when it counts as settled: far less than its own uncertainty."""
    least_determined: float = 0.02
    """Share of the prior's differences that count as determined by the data at least, so that the strength stays
    finite. Chosen by hand."""
    datum_stiffness: float = 1e4
    """Of the spring that holds the scale, over a typical pose's information: a motion prior would rather have a smaller
    world."""
    dense_rows: int = 2400
    """Up to so many rows a band that is nearly full is solved as a dense matrix. Chosen by hand, for memory."""
    band_limit_bytes: float = 3e8
    """Above this size of the band, copies of all threads together, sparse blocks are considered. Chosen by hand."""
    wide_band: float = 4.0
    """Sparse blocks pay where the widest point is so many times wider than the 95th percentile. Chosen by hand."""
    linearisation_work: int = 110
    """Linearising one residual counts as eliminating so many pairs of poses, to share out work. Chosen by hand."""
    fewest_block_points: int = 32
    """Points of a block that is evaluated together: enough to fill batches. Chosen by hand ..."""
    most_block_points: int = 128
    """... and few enough for what their residuals gather to stay in the cache."""
    thread_residuals: int = 4000
    """So many residuals are worth another thread; fewer are evaluated sooner than it wakes up. Chosen by hand."""
    held_translation: float = 1e9
    """Stiffness that holds translations of a camera that only turns, over a typical pose's information."""
    jitter: float = 1e-12
    """Share of the typical diagonal added to S, so that poses that nothing observes leave it regular."""
    loose_end: float = 1e-8
    """Controls that carry less than this share of what is typical are damped as if they carried it. Chosen by hand."""
    datum_strength: float = 0.1
    """Poses that carry at least this share of what is typical may fix the scale; no estimate depends on it."""
    max_link_frames: float = 1.5
    """Frame intervals between observations that are interpolated for the rectified residuals; beyond it is a gap."""
    fit_smoothness: float = 1e-4
    """Weight of the change of velocity where a spline has more controls than poses: far below that of a pose."""
    fit_iterations: int = 10
    """Bound on the Gauss-Newton steps of a spline fit. Chosen by hand."""
    far_point: float = 100.0
    """Points without parallax are put at so many times the extent of the trajectory. Chosen by hand."""
    huber_bend: float = 1.345
    """Where Huber's loss bends, in standard deviations: 95 % efficiency for Gaussian noise (Huber 1981)."""
    least_freedom: float = 2.0
    """Fewest degrees of freedom of the Student distribution fitted to residuals; fewer would have no variance."""
    most_freedom: float = 100.0
    """Most degrees of freedom; more cannot be distinguished from a Gaussian."""
    freedom_samples: int = 20_000
    """Residuals that the Student distribution is fitted to, evenly taken from all. Chosen by hand, for speed."""


SOLVER = SolverConstants()
