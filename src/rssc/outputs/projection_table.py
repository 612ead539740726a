"""The difference between two cameras as a few rows: at places of the image, and over all of it."""

from dataclasses import dataclass

import numpy as np

from rssc.model.arrays import FloatArray
from rssc.model.projection import PLACES, ProjectionDifference, at_place


@dataclass(frozen=True)
class PlaceDifference:
    """One row. None stands for what a lens does not see, and for predictions without a covariance."""

    where: str
    difference: float | None
    """Length in pixels."""
    sigma: float | None
    """Predicted standard deviation (both coordinates together) in pixels."""

    @property
    def ratio(self) -> float | None:
        """Difference over prediction."""
        return self.difference / self.sigma if self.difference is not None and self.sigma else None


def difference_rows(difference: ProjectionDifference) -> tuple[PlaceDifference, ...]:
    """Median, root mean square and largest over the image, then its centre and corners."""
    sigmas = None if difference.predicted is None else difference.predicted.sigmas
    whole = {"median": np.nanmedian, "rms": _rms, "largest": np.nanmax}
    rows = [
        PlaceDifference(where, float(of(difference.lengths)), None if sigmas is None else float(of(sigmas)))
        for where, of in whole.items()
    ]
    rows += [
        PlaceDifference(
            where,
            _seen(at_place(difference.lengths, where)),
            None if sigmas is None else _seen(at_place(sigmas, where)),
        )
        for where in PLACES
    ]
    return tuple(rows)


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.nanmean(values**2)))


def _seen(value: float) -> float | None:
    return value if np.isfinite(value) else None
