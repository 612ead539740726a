"""What a stretch tells of its camera, without its tracks: all that a combination with other clips needs.

Rows are those of the whole image, also where it has black bars, whose edges differ from clip to clip.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from rssc.inference.infer import Inference
from rssc.inference.uncertainty import parameter_values
from rssc.model.arrays import FloatArray
from rssc.model.camera import Camera, Shutter
from rssc.model.covariance import UNKNOWN_VARIANCE, Covariance
from rssc.model.lens import Lens

READOUT = "readout_ratio"
Rows = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Estimate:
    """Camera and error bars from one stretch."""

    model: str
    """Of the lens."""
    axis: str
    """Of the shutter."""
    size: tuple[int, int]
    """Width and height of the images."""
    parameters: tuple[str, ...]
    values: tuple[float, ...]
    own: Rows
    """(k, k) covariance of what is independent between stretches."""
    common: Rows
    """(k, k) covariance of what all stretches of a camera have in common."""
    frame_interval_s: float
    lenses: Mapping[str, float]
    """Evidence of each lens model that was tried, less that of the best."""
    shutters: Mapping[str, float]
    fixed: tuple[str, ...] = ()
    """What was not estimated: "translations" where the camera only turned."""

    @property
    def own_covariance(self) -> Covariance:
        return _covariance(self.parameters, self.own)

    @property
    def common_covariance(self) -> Covariance:
        return Covariance(self.parameters, np.array(self.common))

    @property
    def camera(self) -> Camera:
        known = dict(zip(self.parameters, self.values, strict=True))
        return camera_of(self, known)

    def in_interval(self, interval_s: float) -> "Estimate":
        """The same with the readout counted in another frame interval: what clips share is its time."""
        factor = self.frame_interval_s / interval_s
        return replace(_scaled(self, factor), frame_interval_s=interval_s)


def camera_of(like: Estimate, known: Mapping[str, float]) -> Camera:
    """The camera with these values, of the model and size of an estimate."""
    lens = Lens(like.model, 1.0, 1.0, 0.0, 0.0)
    lens = lens.with_parameters([known.get(name, 0.0) for name in lens.parameter_names])
    return Camera(*like.size, lens, Shutter(known[READOUT], "columns" if like.axis == "columns" else "rows"))


def estimate_of(inference: Inference, camera: Camera, frame_interval_s: float) -> Estimate:
    """What an inference tells.

    Args:
        inference: Of a stretch.
        camera: Its camera in the whole image.
        frame_interval_s: Of the stretch.
    """
    names, uncertainty = inference.covariance.parameters, inference.uncertainty
    common = np.zeros((len(names), len(names))) if uncertainty.common is None else uncertainty.common.matrix
    found = Estimate(
        model=camera.lens.model,
        axis=camera.shutter.axis,
        size=(camera.width, camera.height),
        parameters=names,
        values=tuple(parameter_values(camera, names).tolist()),
        own=_rows(uncertainty.own.finite().matrix),
        common=_rows(common),
        frame_interval_s=frame_interval_s,
        lenses={one.name: float(one.evidence) for one in inference.lenses},
        shutters={one.name: float(one.evidence) for one in inference.shutters},
        fixed=tuple(inference.adjustment.options.fixed),
    )
    whole, _ = camera.over_whole_image()
    return _scaled(found, whole.line_count / camera.line_count)


def _scaled(estimate: Estimate, factor: float) -> Estimate:
    """The same with its readout ratio multiplied."""
    if factor == 1:
        return estimate
    scale = np.array([factor if name == READOUT else 1.0 for name in estimate.parameters])
    return replace(
        estimate,
        values=tuple((scale * estimate.values).tolist()),
        own=_rows(np.array(estimate.own) * np.outer(scale, scale)),
        common=_rows(np.array(estimate.common) * np.outer(scale, scale)),
    )


def _covariance(names: tuple[str, ...], rows: Rows) -> Covariance:
    """With infinite variances where `Covariance.finite` wrote large numbers."""
    matrix = np.array(rows)
    unknown = np.diag(matrix) > 0.1 * UNKNOWN_VARIANCE
    matrix[np.diag_indices_from(matrix)] = np.where(unknown, np.inf, np.diag(matrix))
    return Covariance(names, matrix)


def _rows(matrix: FloatArray) -> Rows:
    return tuple(tuple(row) for row in matrix.tolist())
