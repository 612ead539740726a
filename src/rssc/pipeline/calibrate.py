"""The whole flow on one page: from videos of one camera to its calibration.

The steps:

    choose       stretches of the sources: a short clip as a whole, the most informative parts of a long one; what is
                 wrong with their pictures (bars, cuts, overlays, ...) is found before the work starts
    calibrate    each stretch by itself (`stretch`): track, start, infer, refine the tracks, infer again
    combine      one lens model and one camera for all stretches (`several`)
    judge        ok, weak or degenerate, and why (`verdict`)
    result       a `Calibration` (`result`)
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rssc.errors import InputError, NotCalibratableError
from rssc.io.lens_files import read_sensor_lens
from rssc.model.calibration import Calibration
from rssc.pipeline.bars import in_whole_image
from rssc.pipeline.options import CalibrateOptions
from rssc.pipeline.provenance import records_of, with_provenance
from rssc.pipeline.result import degenerate_result, make_result
from rssc.pipeline.several import Combined, calibrate_stretches, choose, combine_stretches
from rssc.pipeline.starts import check_init
from rssc.pipeline.stretch import StretchResult, calibrate_stretch
from rssc.pipeline.undistorted import in_images
from rssc.pipeline.verdict import judge
from rssc.pipeline.warming import compile_ahead
from rssc.runtime.progress import Progress, Stages, silent


def calibrate(source: Path | str | Sequence[Path | str], *, progress: Progress = silent, **options: Any) -> Calibration:
    """Calibrates the camera that took a video.

    Args:
        source: A video file, or a folder of images; or several of them, all from the same camera in the same mode.
        progress: Called with the name of the stage and the share of it that is done.
        **options: Fields of `CalibrateOptions`.
    """
    sources = [source] if isinstance(source, Path | str) else source
    return calibrate_sources([Path(one) for one in sources], CalibrateOptions(**options), progress)


def calibrate_sources(sources: Sequence[Path], options: CalibrateOptions, progress: Progress = silent) -> Calibration:
    """`calibrate` with its options as one value."""
    return calibrate_in_parts(sources, options, progress)[0]


def calibrate_in_parts(
    sources: Sequence[Path], options: CalibrateOptions, progress: Progress = silent
) -> tuple[Calibration, tuple[StretchResult, ...]]:
    """The calibration, and the stretches with the lens model that they share; none where nothing was estimated."""
    if not sources:
        raise InputError("there is no source; give a video file or a folder of images.")
    stage = Stages(compile_ahead(progress))
    with stage("reading") as report:
        check_init(options, sources)
        chosen, notes = choose(sources, options, report)
        records = records_of(sources)
        footage = chosen[0].read(options, report) if len(chosen) == 1 else None
    try:
        if footage is not None:
            results = [calibrate_stretch(footage, chosen[0].source, options, stage)]
        else:
            results, left_out = calibrate_stretches(chosen, options, stage)
            notes += left_out
        combined = combine_stretches(results, options, stage)
        found = _concluded(combined, options, stage, notes)
        parts = combined.results
    except NotCalibratableError as error:
        footage = footage or chosen[0].read(options)
        found, parts = degenerate_result(footage, error, options.method), ()
    return with_provenance(found, records, options), parts


def conclude(
    results: Sequence[StretchResult], options: CalibrateOptions, stage: Stages, notes: tuple[str, ...] = ()
) -> Calibration:
    """The calibration that the stretches of one camera give together."""
    return _concluded(combine_stretches(results, options, stage), options, stage, notes)


def _concluded(combined: Combined, options: CalibrateOptions, stage: Stages, notes: tuple[str, ...]) -> Calibration:
    made = make_result(combined, judge(combined), options, stage.seconds, notes)
    found = in_whole_image(made, combined.results[0].cropped)
    given = read_sensor_lens(options.undistorted_from, found.camera.width, found.camera.height)
    return found if given is None or found.camera.undistorted_from is not None else in_images(found, given)
