"""How far to trust what is exported: verdict, error bars and covariance, in the units of the exported camera.

They stand in every export: in a comment, in a key that the tool's reader ignores, or in a file beside it
(`rssc_trust.json`) where the format has room for neither.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rssc.model.calibration import Calibration, Status
from rssc.model.camera import Camera
from rssc.model.covariance import Covariance

TRUST_NAME = "rssc_trust.json"
"""The file beside an export whose format has no room for it."""


@dataclass(frozen=True)
class Trust:
    """What a calibration says of itself."""

    status: Status
    reasons: tuple[str, ...]
    covariance: Covariance
    """Of the parameters that were estimated; infinite variances as in calibration.json."""
    exposure_ratio_sigma: float
    """Zero where the exposure is unknown, or told by metadata."""
    frames: int
    """That the camera was estimated from."""
    rms_px: float

    def sigma(self, name: str) -> float:
        """Standard deviation of a parameter; zero where it was fixed."""
        return self.covariance.sigma(name)

    def document(self, frame_interval_s: float, line_count: int) -> Mapping[str, object]:
        """What files say of it: one standard deviation of every parameter and of the times, and the covariance."""
        names, readout = self.covariance.parameters, self.sigma("readout_ratio") * frame_interval_s
        sigma = {name: self.sigma(name) for name in names}
        sigma |= {"readout_time_s": readout, "line_delay_s": readout / line_count}
        if self.exposure_ratio_sigma:
            sigma["exposure_time_s"] = self.exposure_ratio_sigma * frame_interval_s
        return {
            "calibration_status": self.status,
            "reasons": list(self.reasons),
            "sigma": sigma,
            "covariance": {"parameters": list(names), "matrix": self.covariance.matrix.tolist()},
        }


def trust_of(calibration: Calibration, camera: Camera) -> Trust:
    """The trust in a camera that was made from a calibration's.

    Args:
        calibration: The result.
        camera: What is exported: the same with all rows of the image, also those of black bars.
    """
    # The same line delay over more lines: a ratio that grows by their number, and its error with it.
    names, matrix = calibration.parameters, calibration.covariance
    growth = camera.line_count / calibration.camera.line_count
    scale = np.array([growth if name == "readout_ratio" else 1.0 for name in names])
    return Trust(
        calibration.status,
        calibration.reasons,
        Covariance(names, matrix * np.outer(scale, scale)).finite(),
        calibration.exposure_sigma,
        calibration.statistics.frames,
        calibration.statistics.rms_px,
    )
