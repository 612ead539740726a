"""The whole flow on one page: from a video to a calibration.

read -> track -> reconstruct (global shutter) -> estimate (rolling shutter) -> refine the tracks -> estimate again
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rssc.adjust.estimate import Estimate, estimate, start_scene
from rssc.adjust.fit import fit_trajectory
from rssc.adjust.methods import METHODS
from rssc.adjust.prediction import predict_observations, surface_slopes
from rssc.adjust.problem import readout_interval
from rssc.errors import InputError, NotCalibratableError
from rssc.model.calibration import Calibration
from rssc.model.camera import LENS_MODELS, Camera, Lens, Shutter
from rssc.model.scene import Scene
from rssc.model.stretch import Stretch
from rssc.model.tracks import Tracks
from rssc.model.trajectory import Trajectory
from rssc.verdict import judge

Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class CalibrateOptions:
    """How to calibrate a clip."""

    fps: float | None = None
    """Frames per second, for a folder of images without time stamps in their names."""
    frames: tuple[int | None, int | None] | None = None
    """First frame and one past the last; an informative stretch of a long video where not given."""
    lens: Literal["auto", "pinhole", "radial", "opencv", "fisheye"] = "auto"
    """Lens model; chosen by evidence where auto."""
    method: Literal["auto", "te", "ceq", "ceh", "dpq", "dph"] = "auto"
    """Our best estimator, or a method of the paper as it is."""
    undistorted_from: str | None = None
    """FILE[:CAM], a Kalibr camchain or OpenCV YAML: what the images were undistorted with."""
    init: Path | None = None
    """Folder of a COLMAP model to start from."""

    def __post_init__(self) -> None:
        if self.frames is not None and (isinstance(self.frames, str) or len(self.frames) != 2):
            raise InputError(f"frames are {self.frames!r}; expected a pair (first, one past the last).")
        if self.lens != "auto" and self.lens not in LENS_MODELS:
            raise InputError(f"lens is {self.lens!r}; expected auto or one of {', '.join(LENS_MODELS)}.")
        if self.method != "auto" and self.method not in METHODS:
            raise InputError(f"method is {self.method!r}; expected auto or one of {', '.join(METHODS)}.")


@dataclass
class Stages:
    """Reports progress and keeps the time of each stage."""

    progress: Progress
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, name: str) -> Iterator[Callable[[float], None]]:
        began = time.perf_counter()
        self.progress(name, 0.0)
        yield lambda share: self.progress(name, share)
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began
        self.progress(name, 1.0)


def calibrate(source: Path | str, *, progress: Progress = lambda stage, share: None, **options: Any) -> Calibration:
    """Calibrates the camera that took a video.

    Args:
        source: A video file, or a folder of images.
        progress: Called with the name of the stage and the share of it that is done.
        **options: Fields of `CalibrateOptions`.
    """
    from rssc.frontend.lens_files import read_lens
    from rssc.frontend.reconstruction import read_colmap_model, reconstruct
    from rssc.frontend.tracking import track
    from rssc.frontend.video import read_footage

    settings = CalibrateOptions(**options)
    stage = Stages(progress)
    sensor, sensor_size = read_lens(settings.undistorted_from) if settings.undistorted_from else (None, None)
    with stage("reading") as report:
        footage = read_footage(
            Path(source), fps=settings.fps, frames=settings.frames, progress=lambda done, all_: report(done / all_)
        )
    _check_size(settings, sensor_size, footage)
    with stage("tracking") as report:
        tracks = track(footage.images, progress=lambda done, all_: report(done / all_))
    with stage("reconstructing") as report:
        if settings.init is not None:
            start = read_colmap_model(settings.init, footage.names, footage.frame_times)
        else:
            start = reconstruct(
                tracks, footage.width, footage.height, lens=_family(settings.lens),
                row_fractions=_row_fractions(tracks, footage, sensor), frame_times=footage.frame_times,
                progress=lambda _, share: report(share),
            )  # fmt: skip
    with stage("estimating") as report:
        camera = Camera(footage.width, footage.height, start.lens, Shutter(start.readout_ratio), sensor)
        scene = start_scene(camera, tracks, footage.frame_times, _trajectory(start, footage.frame_times))
        first = estimate(scene, lens=settings.lens, knot_spacings=(1.0,), report=lambda _, share: report(share))
    with stage("refining"):
        scene = _refined(footage.images, first.adjustment.scene)
    with stage("solving") as report:
        final = estimate(scene, method=settings.method, rough=False, report=lambda _, share: report(share))
    return _calibration(source, replace(final, lenses=first.lenses), footage, start, settings, stage.seconds)


def _family(lens: str) -> str | None:
    return {"auto": None, "fisheye": "fisheye"}.get(lens, "perspective")


def _trajectory(start: Any, frame_times: np.ndarray) -> Trajectory:
    """A spline through the poses of the start, which are those of the middle row."""
    begin, end = readout_interval(frame_times, start.readout_ratio)
    return fit_trajectory(frame_times + start.readout_ratio / 2, start.cam_from_world, begin, end, 1.0)


def _refined(images: np.ndarray, scene: Scene) -> Scene:
    """Every track registered again to its reference patch, with position and warp from the first solution.

    Twice: the warps found by the first time tell how surfaces are turned, which bends patches.
    """
    from rssc.frontend.refinement import reference_observations, refine

    references = reference_observations(scene.tracks)
    pixels, warps, bends = predict_observations(scene, references)
    found = refine(images, scene.tracks, pixels, warps, bends)
    slopes = surface_slopes(scene, references, warps, found.rows, found.warps)
    tracks = refine(images, scene.tracks, *predict_observations(scene, references, slopes)).tracks
    keep = tracks.lengths >= 3
    if not keep.any():
        raise NotCalibratableError("no track could be found again after the first solve; film with less blur.")
    return replace(scene, tracks=tracks.select_points(keep), points=scene.points[keep])


def _row_fractions(tracks: Tracks, footage: Any, sensor: Lens | None) -> np.ndarray | None:
    """(m,) row fractions on the sensor, where the images were undistorted."""
    if sensor is None:
        return None
    return Camera(footage.width, footage.height, sensor, Shutter(0.0), sensor).row_fraction(tracks.pixels)


def _check_size(settings: CalibrateOptions, size: tuple[int, int] | None, footage: Any) -> None:
    if size is not None and size != (footage.width, footage.height):
        raise InputError(
            f"{settings.undistorted_from} is for images of {size[0]} x {size[1]} pixels; these have {footage.width} x "
            f"{footage.height}. Give the calibration of this image size."
        )


def _lens_notes(settings: CalibrateOptions) -> tuple[str, ...]:
    if settings.undistorted_from is None:
        return ()
    return ("the lens is that of the undistorted images; the readout is that of the sensor's rows.",)


def _finite(covariance: np.ndarray) -> np.ndarray:
    """JSON has no infinity: an unknown variance becomes a huge one, its covariances zero."""
    known = np.isfinite(np.diag(covariance))
    return np.where(np.outer(known, known), np.nan_to_num(covariance), np.diag(np.where(known, 0.0, 1e18)))


def _calibration(
    source: Path | str,
    final: Estimate,
    footage: Any,
    start: Any,
    settings: CalibrateOptions,
    seconds: dict[str, float],
) -> Calibration:
    adjustment = final.adjustment
    scene = adjustment.scene
    status, reasons = judge(final, start.registered)
    return Calibration(
        camera=scene.camera,
        frame_interval_s=footage.frame_interval_s,
        parameters=final.covariance.parameters,
        # JSON has no infinity; a variance this large says the same.
        covariance=_finite(final.covariance.matrix),
        status=status,
        reasons=reasons,
        method=settings.method if settings.method != "auto" else "te",
        knot_spacing=float(adjustment.options.knot_spacing),
        statistics={
            "frames": len(footage),
            "points": scene.tracks.point_count,
            "observations": len(scene.tracks),
            "rms_px": adjustment.rms,
            "iterations": len(adjustment.summary.iterations),
            "cost_by_iteration": [iteration.cost for iteration in adjustment.summary.iterations],
            "seconds": {name: round(value, 3) for name, value in seconds.items()},
        },
        notes=(*footage.notes, *start.notes, *_lens_notes(settings)),
        stretches=(Stretch(scene, footage.times_s, footage.frame_numbers, footage.names, str(source)),),
    )
