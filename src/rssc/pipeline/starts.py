"""Start of the rolling-shutter model: from a moving camera, one that only turns, or a COLMAP model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rssc.errors import NotCalibratableError
from rssc.footage.footage import Footage, open_source
from rssc.model.arrays import FloatArray
from rssc.model.camera import Camera, Shutter
from rssc.model.lens import LENS_MODELS, Family, Lens
from rssc.model.scene import Scene
from rssc.model.tracks import Tracks
from rssc.pipeline.bars import start_in_picture
from rssc.pipeline.kept import kept_start
from rssc.pipeline.options import CalibrateOptions
from rssc.runtime.progress import Stages
from rssc.solver.problem import readout_interval
from rssc.solver.spline_fit import fit_trajectory
from rssc.start.reconstruction import RECONSTRUCTION, read_colmap_model, reconstruct
from rssc.start.start import Axis, Start
from rssc.start.turning import start_from_rotation


@dataclass(frozen=True)
class StartScene:
    """A start as a scene whose points are not known yet."""

    start: Start
    scene: Scene
    fixed: tuple[str, ...] = ()
    """What is not estimated: "translations" where the camera only turned."""


def check_init(options: CalibrateOptions, sources: Sequence[Path]) -> None:
    """Checks, before any work, that a given COLMAP model is one, with frames of every source and of their size.

    Raises:
        InputError: It is not.
    """
    if options.init is None:
        return
    for source in sources:
        listed = open_source(source, options.fps)
        _, image = next(listed.read(np.arange(len(listed.names))), (0, None))
        size = None if image is None else (image.shape[1], image.shape[0])
        read_colmap_model(options.init, listed.names, size=size)


def find_starts(
    tracks: Tracks, footage: Footage, sensor: Lens | None, options: CalibrateOptions, stage: Stages
) -> Iterator[StartScene]:
    """Starts of a moving camera and of one that only turns, the likelier one first.

    Raises:
        NotCalibratableError: There is none.
    """
    times = footage.frame_times

    def placed(start: Start, fixed: tuple[str, ...] = ()) -> StartScene:
        return StartScene(start, _scene(start, tracks, footage, sensor), fixed)

    if options.init is not None:
        with stage("reconstructing"):
            given = read_colmap_model(options.init, footage.names, times)
        yield placed(start_in_picture(given, footage.cropped))
        return
    size, family = (footage.width, footage.height), _family(options.lens)
    fractions = _fractions(tracks, footage, sensor)
    moving = failure = None
    try:
        with stage("reconstructing") as report:
            moving = kept_start(
                lambda: reconstruct(
                    tracks, *size, lens=family, fractions=fractions, frame_times=times, report=report
                ),
                tracks, size, family, fractions, times, options.cache,
            )  # fmt: skip
    except NotCalibratableError as error:
        failure = error
    # Without parallax, the model of a moving camera also fits a turning one, with a path that fits the noise.
    clear = moving is not None and moving.parallax_deg >= RECONSTRUCTION.min_parallax_deg
    if moving is not None and clear:
        yield placed(moving)
    try:
        with stage("reconstructing"):
            turning = start_from_rotation(tracks, *size, lens=family, fractions=fractions["rows"], frame_times=times)
    except NotCalibratableError:
        if failure is not None:
            raise failure from None
    else:
        yield placed(turning, ("translations",))
    if moving is not None and not clear:
        yield placed(moving)


def on_sensor(tracks: Tracks, sensor: Lens | None) -> Tracks:
    """The tracks without observations that no row of the sensor has read.

    An undistorted image may reach beyond the field of the sensor's lens, where it shows nothing real.
    """
    if sensor is None:
        return tracks
    seen = sensor.project(sensor.without_distortion().unproject(tracks.pixels))
    return tracks.select(np.isfinite(seen).all(axis=1))


def _scene(start: Start, tracks: Tracks, footage: Footage, sensor: Lens | None) -> Scene:
    """A scene whose spline passes through the poses of the start, which belong to the middle row."""
    times, ratio = footage.frame_times, start.readout_ratio
    camera = Camera(footage.width, footage.height, start.lens, Shutter(ratio, start.axis), sensor)
    trajectory = fit_trajectory(times + ratio / 2, start.cam_from_world, *readout_interval(times, ratio), 1.0)
    unknown = np.zeros((tracks.point_count, 3))
    return Scene(camera, tracks, unknown, trajectory.cam_from_world(times), times, trajectory)


def _family(lens: str) -> Family | None:
    return None if lens == "auto" else LENS_MODELS[lens].family


def _fractions(tracks: Tracks, footage: Footage, sensor: Lens | None) -> dict[Axis, FloatArray]:
    """(m,) row and column fractions on the sensor, also where the images were undistorted."""
    lens = sensor or Lens("pinhole", 1.0, 1.0, 0.0, 0.0)
    return {
        axis: Camera(footage.width, footage.height, lens, Shutter(0.0, axis), sensor).row_fraction(tracks.pixels)
        for axis in ("rows", "columns")
    }
