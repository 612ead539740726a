"""The package's functions: one for each command, with the same options.

Options are a dataclass, or its fields by name: `calibrate(clip, CalibrateOptions(lens="fisheye"))` is
`calibrate(clip, lens="fisheye")`. A calibration is given as such, or as the path of its calibration.json. Progress is
shown in a notebook, and elsewhere with `progress=True`.

Every function imports what it runs: to load all of it takes longer than some of them do.
"""

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rssc.errors import InputError
from rssc.fleet.options import CatalogOptions
from rssc.model.calibration import Calibration
from rssc.outputs.options import (
    DatasetOptions,
    EvaluateOptions,
    ExportOptions,
    RectifyOptions,
    ReportOptions,
    SimulateOptions,
)
from rssc.outputs.progress import wanted_progress
from rssc.pipeline.options import CalibrateOptions, SourceOptions, TrackOptions
from rssc.runtime.progress import Progress, Stages
from rssc.runtime.threads import use_threads

if TYPE_CHECKING:
    from rssc.fleet.entry import Catalog
    from rssc.outputs.dataset import Dataset
    from rssc.outputs.evaluate import Evaluation
    from rssc.outputs.rectify_footage import RectifiedFootage
    from rssc.pipeline.check import Check

Name = Path | str
"""Of a file or a folder."""
Options = TypeVar("Options")


def calibrate(
    source: Name | Sequence[Name],
    options: CalibrateOptions | None = None,
    *,
    target: str | None = None,
    jobs: int | None = None,
    progress: Progress | bool | None = None,
    **changes: Any,
) -> Calibration:
    """Calibrates the camera that took a video.

    Args:
        source: A video file, or a folder of images; or several of them, all from the same camera in the same mode.
        options: How.
        target: A board that the video shows, for a calibration in metres: a YAML file as Kalibr has it, or a word such
            as aprilgrid:6x6:0.088:0.3.
        jobs: How many cores to use; all where not given.
        progress: Called with the name of the stage and the share of it that is done; True to show it, False for none.
        **changes: Fields of `CalibrateOptions`.

    Raises:
        InputError: The input is missing, unreadable or inconsistent. Footage that does not determine the camera is no
            error: the calibration is then "degenerate", with reasons.
    """
    from rssc.pipeline.calibrate import calibrate_sources

    chosen = _chosen(CalibrateOptions, options, changes)
    sources = [_existing(one) for one in ([source] if isinstance(source, Path | str) else source)]
    if target is not None:
        _check_target(sources, chosen)
    with use_threads(jobs), wanted_progress(progress) as report:
        if target is not None:
            from rssc.pipeline.target import calibrate_target

            return calibrate_target(sources[0], target, chosen, report)
        return calibrate_sources(sources, chosen, report)


def _check_target(sources: Sequence[Path], options: CalibrateOptions) -> None:
    if options.init is not None or options.method not in ("auto", "te"):
        raise InputError("a calibration with a target starts by itself and adjusts with te; leave out init and method.")
    if len(sources) != 1:
        raise InputError(f"a calibration with a target takes one source; there are {len(sources)}.")


def track(
    source: Name,
    calibration: Calibration | Name,
    options: TrackOptions | None = None,
    *,
    work: Name | None = None,
    jobs: int | None = None,
    progress: Progress | bool | None = None,
    **changes: Any,
) -> Calibration:
    """Places every frame of a clip, with a camera that is calibrated.

    Args:
        source: A video file or a folder of images.
        calibration: Of the camera that took it, from this clip or another one in the same mode.
        options: How.
        work: Folder in which the state of the run is kept; another run with the same input goes on there.
        jobs: How many cores to use; all where not given.
        progress: As for `calibrate`.
        **changes: Fields of `TrackOptions`.

    Returns:
        The calibration with stretches that cover the whole clip: one where all of it hangs together.
    """
    from rssc.pipeline.track import track_clip

    chosen, found = _chosen(TrackOptions, options, changes), _loaded(calibration)
    folder = None if work is None else Path(work)
    with use_threads(jobs), wanted_progress(progress) as report:
        return track_clip(_existing(source), found, chosen, folder, report)


def check(
    source: Name,
    options: SourceOptions | None = None,
    *,
    jobs: int | None = None,
    progress: Progress | bool | None = None,
    **changes: Any,
) -> "Check":
    """Estimates within seconds whether a clip can be calibrated, and what to record instead.

    Args:
        source: A video file or a folder of images.
        options: How to read it; the most informative frames where none are given.
        jobs: How many cores to use; all where not given.
        progress: As for `calibrate`.
        **changes: Fields of `SourceOptions`.
    """
    from rssc.pipeline.check import check as check_source

    with use_threads(jobs), wanted_progress(progress) as report:
        return check_source(_existing(source), _chosen(SourceOptions, options, changes), report)


def catalog(
    sources: Name | Sequence[Name],
    output: Name,
    options: CatalogOptions | None = None,
    *,
    jobs: int | None = None,
    progress: Progress | bool | None = None,
    **changes: Any,
) -> "Catalog":
    """Calibrates folders of clips, and writes a table of their cameras.

    Args:
        sources: Folders, searched for videos with all that is in them, or single videos; or one of them.
        output: Folder of the catalog. What an earlier run left there is not done again.
        options: Table of cameras and modes, lens, memory of a worker, a Dask scheduler.
        jobs: How many local workers, of one core each; as many as there are cores, and memory for, where not given.
        progress: As for `calibrate`.
        **changes: Fields of `CatalogOptions`.
    """
    from rssc.fleet.catalog import make_catalog

    chosen = _chosen(CatalogOptions, options, changes)
    places = [Path(sources)] if isinstance(sources, Path | str) else [Path(one) for one in sources]
    if jobs is not None and jobs < 1:
        raise InputError(f"jobs are {jobs}; expected at least 1.")
    with wanted_progress(progress) as report:
        return make_catalog(places, Path(output), chosen, jobs, report)


def rectify(
    source: Name,
    calibration: Calibration | Name,
    output: Name,
    options: RectifyOptions | None = None,
    *,
    jobs: int | None = None,
    progress: Progress | bool | None = None,
    **changes: Any,
) -> "RectifiedFootage":
    """Writes the frames that a calibration covers as a global shutter would have taken them.

    Args:
        source: The video or the folder of images that was calibrated.
        calibration: With its stretches.
        output: A new video (.mp4, .mov, .mkv) for a video, a folder for a folder.
        options: Reference row, lens and border of the images.
        jobs: How many cores to use; all where not given.
        progress: As for `calibrate`.
        **changes: Fields of `RectifyOptions`.
    """
    from rssc.outputs.rectify_footage import rectify_footage

    chosen, found = _chosen(RectifyOptions, options, changes), _loaded(calibration)
    with use_threads(jobs), wanted_progress(progress) as report:
        return rectify_footage(source, found, output, chosen, progress=report)


def export(
    calibration: Calibration | Name,
    to: str,
    output: Name,
    options: ExportOptions | None = None,
    *,
    progress: Progress | bool | None = None,
    **changes: Any,
) -> list[Path]:
    """Writes a calibration in the format of another tool.

    Args:
        calibration: With its stretches where the format has poses.
        to: The format, one of `rssc.names.FORMAT_WORDS`.
        output: Folder for the files, or a name for the file of a format that has one (with its ending).
        options: Choices that some formats offer.
        progress: As for `calibrate`.
        **changes: Fields of `ExportOptions`.

    Returns:
        The files.
    """
    from rssc.outputs.exporters import write_export

    found = _loaded(calibration)
    found.refuse_wrong_stretches()
    chosen = _chosen(ExportOptions, options, changes)
    with wanted_progress(progress) as report:
        return write_export(found, to, Path(output), chosen, report)


def dataset(
    source: Name,
    calibration: Calibration | Name,
    kind: str,
    output: Name,
    options: DatasetOptions | None = None,
    *,
    jobs: int | None = None,
    progress: Progress | bool | None = None,
    **changes: Any,
) -> "Dataset":
    """Writes frames, poses and coloured points as a dataset that another tool trains on.

    Args:
        source: The video or the folder of images that was calibrated.
        calibration: With its stretches.
        kind: What it is for, one of `rssc.names.DATASET_WORDS`.
        output: A new folder.
        options: Which frames, and how they are written.
        jobs: How many cores to use; all where not given.
        progress: As for `calibrate`.
        **changes: Fields of `DatasetOptions`.
    """
    from rssc.outputs.dataset import write_dataset

    chosen, found = _chosen(DatasetOptions, options, changes), _loaded(calibration)
    with use_threads(jobs), wanted_progress(progress) as report:
        return write_dataset(source, found, kind, output, chosen, progress=report)


def report(
    calibration: Calibration | Name, output: Name | None = None, options: ReportOptions | None = None, **changes: Any
) -> Path:
    """Writes the report of a calibration.

    Args:
        calibration: With its stretches; without them the report has the numbers and no pictures.
        output: The file; report.html, beside the calibration.json that was given, where there is none.
        options: Footage that was moved, and a camera to compare with.
        **changes: Fields of `ReportOptions`.

    Returns:
        The file.
    """
    from rssc.footage.fingerprint import names_of
    from rssc.footage.footage import read_frames
    from rssc.io.reference_file import read_reference
    from rssc.outputs.report import write_report
    from rssc.outputs.result_folder import REPORT_NAME

    chosen, found = _chosen(ReportOptions, options, changes), _loaded(calibration)
    if output is None:
        output = REPORT_NAME if isinstance(calibration, Calibration) else Path(calibration).with_name(REPORT_NAME)
    found.refuse_wrong_stretches()
    if chosen.source is not None and found.provenance.sources:
        names_of(_existing(chosen.source), found.provenance.sources)
    moved = chosen.source
    write_report(
        found, output,
        images=None if moved is None else lambda _, numbers: read_frames(moved, numbers),
        reference=None if chosen.compare is None else read_reference(Path(chosen.compare), found),
    )  # fmt: skip
    return Path(output)


def evaluate(
    calibration: Calibration | Name, truth: Calibration | Name, options: EvaluateOptions | None = None, **changes: Any
) -> "Evaluation":
    """Compares a calibration with a known camera, or with another calibration.

    Args:
        calibration: A trajectory is that of its first stretch.
        truth: A truth.json, a Kalibr camchain (FILE or FILE:CAM) or an OpenCV YAML; or another calibration.
        options: A true trajectory.
        **changes: Fields of `EvaluateOptions`.
    """
    from rssc.outputs.evaluate import evaluate as compare_with_truth

    chosen = _chosen(EvaluateOptions, options, changes)
    found = calibration if isinstance(calibration, Calibration) else Path(calibration)
    trajectory = None if chosen.trajectory is None else Path(chosen.trajectory)
    other = truth if isinstance(truth, Calibration) else Path(truth)
    return compare_with_truth(found, other, trajectory, chosen.max_difference)


def simulate(
    output: Name, options: SimulateOptions | None = None, *, progress: Progress | bool | None = None, **changes: Any
) -> Path:
    """Renders a clip of a textured room, with truth.json and trajectory.tum beside it.

    Args:
        output: Folder for the clip.
        options: The clip and its camera.
        progress: As for `calibrate`.
        **changes: Fields of `SimulateOptions`.

    Returns:
        The video, or the folder where the frames are images.
    """
    from rssc.footage.image_folder import IMAGE_SUFFIXES
    from rssc.io.files import check_folder
    from rssc.simulation.clip import ClipOptions, render_clip, typical_lens
    from rssc.simulation.clip_files import VIDEO_NAME, write_clip

    chosen = _chosen(SimulateOptions, options, changes)
    folder = check_folder(output)
    if chosen.images and folder.is_dir() and any(file.suffix.lower() in IMAGE_SUFFIXES for file in folder.iterdir()):
        raise InputError(f"{folder} already has images, which would mix with those of this clip; choose another one.")
    clip = render_clip(
        ClipOptions(
            chosen.width, chosen.height, chosen.frames, chosen.fps,
            typical_lens(chosen.lens, chosen.width, chosen.height), readout_ratio=chosen.readout_ratio,
            motion=chosen.motion, seed=chosen.seed, image_noise=chosen.noise, exposure=chosen.exposure, colour=True,
        )
    )  # fmt: skip
    with wanted_progress(progress) as report, Stages(report)("rendering") as share:
        write_clip(clip, folder, video=not chosen.images, report=share)
    return folder if chosen.images else folder / VIDEO_NAME


def _existing(source: Name) -> Path:
    from rssc.footage.footage import require_source

    if not str(source):
        raise InputError("the name of a source is empty; expected that of a video file or of a folder of images.")
    path = Path(source)
    require_source(path)
    # The folder that one is in has no name where it is called ".".
    return path if path.name else path.resolve()


def _loaded(calibration: Calibration | Name) -> Calibration:
    return calibration if isinstance(calibration, Calibration) else Calibration.load(calibration)


def _chosen(kind: type[Options], options: Options | None, changes: dict[str, Any]) -> Options:
    """The options with some of their fields changed."""
    known = [field.name for field in fields(kind)]  # pyright: ignore[reportArgumentType] (all options are dataclasses)
    unknown = [name for name in changes if name not in known]
    if unknown:
        raise InputError(f"there is no option {unknown[0]!r}; expected one of {', '.join(known)}.")
    return replace(kind() if options is None else options, **changes)  # pyright: ignore[reportArgumentType, reportUnknownVariableType]
