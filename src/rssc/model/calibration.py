"""The result: a camera, how well it is known, and whether to believe it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from rssc.errors import InputError
from rssc.model.arrays import ArrayEquality, FloatArray
from rssc.model.camera import Camera
from rssc.model.covariance import Covariance
from rssc.model.metadata import Metadata
from rssc.model.provenance import Provenance
from rssc.model.stretch import Stretch

if TYPE_CHECKING:
    import plotly.graph_objects as go

Status = Literal["ok", "weak", "degenerate"]
PLACEHOLDER_NOTE = "nothing could be estimated: the lens is a placeholder, not this camera's."
"""Of a calibration whose camera only stands for one."""


@dataclass(frozen=True)
class Statistics:
    """What a calibration was made from."""

    frames: int = 0
    points: int = 0
    observations: int = 0
    rms_px: float = 0.0
    """Root mean square length of the residuals, in pixels."""
    iterations: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    """Time of each stage."""
    cost_by_iteration: tuple[float, ...] = ()
    """Of the first stretch's last adjustment."""


@dataclass(frozen=True)
class PartialEstimate:
    """Estimate from some frames alone: a window of the clip, or one of several stretches."""

    source: str
    frames: tuple[int, int]
    """First and last frame number in the source."""
    readout_ratio: float
    sigma: float
    """Of the readout ratio."""
    fx: float
    fy: float
    cx: float
    cy: float


@dataclass(frozen=True)
class MotionSmoothness:
    """How smooth the motion was found to be: standard deviations from knot to knot, in the camera's own frame."""

    knot_spacing: float
    """Time between knots of the trajectory, in frames."""
    order: int
    """What they are of: 2, the acceleration; 3, its change (jerk); 4 and 5, the changes of that."""
    rotation: float
    """In rad."""
    translation: float
    """In units of the scene; zero where the camera was taken to turn only."""


@dataclass(frozen=True)
class TriedLens:
    """A lens model that was tried."""

    model: str
    evidence: float
    """-2 log of its probability, less that of the best."""
    readout_ratio: float


@dataclass(frozen=True)
class TriedShutter:
    """A direction of readout that was tried: "rows", "columns" or "global"."""

    shutter: str
    evidence: float
    """Bayesian information criterion less that of the best."""


@dataclass(frozen=True)
class FrameShare:
    """A frame that tells much of the readout."""

    source: str
    frame: int
    """Its number in the source."""
    share: float
    """Of all that is known about the readout."""


@dataclass(frozen=True)
class ErrorBudget:
    """What the error bars are made of."""

    parts: Mapping[str, Mapping[str, float]] = field(default_factory=dict[str, Mapping[str, float]])
    """Standard deviation of each parameter by each part."""
    windows: tuple[PartialEstimate, ...] = ()
    consistency: float = 1.0
    """Probability that stretches, or windows and the whole, differ at least this much by chance."""
    lenses: tuple[TriedLens, ...] = ()
    shutters: tuple[TriedShutter, ...] = ()
    weak_direction: str = ""
    """The parameters that are confused with each other most."""
    readout_frames: tuple[FrameShare, ...] = ()
    """Of each stretch, the frame that tells most of the readout, and others that tell more than a fifth."""
    motion: MotionSmoothness | None = None
    """Of the first stretch; None for methods whose spline is as smooth as its knots alone make it."""


@dataclass(frozen=True, eq=False)
class Calibration(ArrayEquality):
    """A calibrated camera with its uncertainty and a verdict."""

    camera: Camera
    frame_interval_s: float
    parameters: tuple[str, ...]
    """Names of the estimated parameters, in the order of the covariance."""
    covariance: FloatArray
    """(k, k)"""
    status: Status
    reasons: tuple[str, ...]
    method: str
    knot_spacing: float
    statistics: Statistics
    notes: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    """Names of what makes the result doubtful, or was found and put right, the strongest first: "vibration", .."""
    uncertainty: ErrorBudget = field(default_factory=ErrorBudget, repr=False)
    stretches: tuple[Stretch, ...] = field(default=(), repr=False)
    """Trajectory, points and tracks behind the result; kept in an npz file beside calibration.json."""
    exposure_sigma: float = 0.0
    """Standard deviation of the exposure ratio; zero where it was not estimated (unknown, or told by metadata)."""
    metadata: Metadata = field(default_factory=Metadata)
    """What the files say about the camera: all of them alike."""
    provenance: Provenance = field(default_factory=Provenance, repr=False)
    """What made it, when, how and from what."""
    wrong_stretches: str = field(default="", repr=False)
    """Name of a file beside calibration.json that bears the name of its stretches, and is not the one it was saved
    with; it was not read."""

    def __post_init__(self) -> None:
        if not self.exposure_sigma >= 0:
            raise InputError(f"exposure sigma is {self.exposure_sigma}; expected 0 or a positive number.")

    def sigma(self, name: str) -> float:
        """Standard deviation of a parameter; zero where it was not estimated.

        Args:
            name: A parameter of the lens, `readout_ratio`, or `exposure_ratio` where the exposure is known.
        """
        known = (*self.camera.lens.parameter_names, "readout_ratio")
        if name == "exposure_ratio" and self.camera.shutter.exposure_ratio is not None:
            return self.exposure_sigma
        if name not in known:
            unknown = "the exposure is unknown" if name == "exposure_ratio" else f"there is no parameter {name!r}"
            raise InputError(f"{unknown}; expected one of {', '.join(known)}.")
        if name not in self.parameters:
            return 0.0
        i = self.parameters.index(name)
        return float(np.sqrt(self.covariance[i, i]))

    @property
    def placeholder(self) -> bool:
        """Whether nothing could be estimated: the camera then only stands for one."""
        return self.status == "degenerate" and not self.statistics.frames

    def require_stretches(self) -> tuple[Stretch, ...]:
        """The stretches.

        Raises:
            InputError: There are none.
        """
        if self.stretches:
            return self.stretches
        self.refuse_wrong_stretches()
        if self.status == "degenerate":
            raise InputError(
                "the footage could not be calibrated, so there is no trajectory; calibration.json says why."
            )
        raise InputError(
            "the calibration has no trajectory: the stretches.npz that belongs to it is not beside calibration.json "
            "(results of version 0.1 do not say which file belongs to them). Put it back, or calibrate again."
        )

    def refuse_wrong_stretches(self) -> None:
        """Refuses to go on with a calibration beside which there are stretches of another one.

        Raises:
            InputError: There are.
        """
        if self.wrong_stretches:
            raise InputError(
                f"the {self.wrong_stretches} that belongs to this calibration is not beside calibration.json: the one "
                "there is of another calibration, or was changed. Put the right one there, or calibrate again."
            )

    @property
    def readout_time_s(self) -> float:
        """Time from the first row to one past the last, in seconds."""
        return abs(self.camera.shutter.readout_ratio) * self.frame_interval_s

    @property
    def exposure_time_s(self) -> float | None:
        """How long a row is exposed, in seconds; None where it is unknown."""
        ratio = self.camera.shutter.exposure_ratio
        return None if ratio is None else ratio * self.frame_interval_s

    @property
    def estimated(self) -> Covariance:
        """The covariance with the names of its parameters."""
        return Covariance(self.parameters, self.covariance)

    @property
    def camera_matrix(self) -> FloatArray:
        """(3, 3) camera matrix K; the centre of the top-left pixel is (0, 0), as in OpenCV."""
        return self.camera.lens.matrix

    @property
    def distortion_coefficients(self) -> FloatArray:
        """Distortion as OpenCV takes it: k1 k2 p1 p2 (.. k6) for `cv2.undistort`, k1 k2 k3 k4 for `cv2.fisheye`.

        Which of the two it is for, `camera.lens.family` says: "perspective" or "fisheye".

        Raises:
            InputError: OpenCV has no such lens.
        """
        return self.camera.lens.opencv_distortion

    def plot(self, name: str = "residual-map") -> "go.Figure":
        """A figure of the report on its own, for a notebook or a page of yours.

        Args:
            name: One of `plots`.
        """
        from rssc.outputs.presentation import calibration_plot

        return calibration_plot(self, name)

    @property
    def plots(self) -> tuple[str, ...]:
        """Names of the figures that `plot` draws; most of them need the stretches."""
        from rssc.outputs.presentation import plot_names

        return plot_names(self)

    def __str__(self) -> str:
        from rssc.outputs.presentation import calibration_text

        return calibration_text(self)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from rssc.outputs.presentation import calibration_html

        return calibration_html(self)

    def save(self, path: Path | str) -> None:
        """Writes calibration.json and beside it the stretches; each file appears only when it is complete."""
        from rssc.io.calibration_file import write_calibration

        write_calibration(self, Path(path))

    @staticmethod
    def load(path: Path | str) -> "Calibration":
        """Reads a calibration.json, and the stretches that were saved with it where they are still beside it."""
        from rssc.io.calibration_file import read_calibration

        return read_calibration(Path(path))
