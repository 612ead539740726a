"""Writes a dataset: chooses frames, hands them to the tool's writer, and says in `rssc_dataset.json` what it did.

A dataset has frames of one world: of one stretch, or of all parts of a clip that were joined.
`rssc.names.DATASET_WORDS` has the kinds: rectified frames for tools that know nothing of rolling shutters, and frames
as they were filmed for those that do.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rssc.errors import InputError
from rssc.footage.footage import require_source
from rssc.io.files import naming, new_folder, refuse_full_folder
from rssc.model.arrays import IntArray
from rssc.model.calibration import Calibration
from rssc.model.camera import Camera
from rssc.model.provenance import source_name
from rssc.names import DATASET_WORDS
from rssc.outputs.crop import Window, common_window
from rssc.outputs.dataset.ncore import NCORE, NcoreWriter, require_ncore
from rssc.outputs.dataset.pictures import Change, Pictures
from rssc.outputs.dataset.rectified import rectified_stretch
from rssc.outputs.dataset.selection import Selection, choose_frames, part_of
from rssc.outputs.exporters import EXPORTERS, export_of
from rssc.outputs.exporters.colmap import model_files
from rssc.outputs.exporters.exporter import CENTRE_ZERO, Export, Exporter, Files, json_bytes
from rssc.outputs.exporters.nearest_lens import with_held_lens
from rssc.outputs.options import DatasetOptions, ExportOptions, RectifyOptions
from rssc.outputs.rectify import Rectifier
from rssc.runtime.progress import Progress, Report, Stages, silent

DATASET_NAME = "rssc_dataset.json"
IMAGES_NAME, MODEL_NAME = "images", Path("sparse") / "0"


@dataclass(frozen=True)
class Dataset:
    """What was written."""

    kind: str
    stretch: int
    """Which stretch of the calibration it shows, counted from 0; those of one world count as one."""
    stretch_count: int
    """How many there are."""
    frame_numbers: IntArray
    """(n,) index in the source of each frame."""
    point_count: int
    camera: Camera
    """Of the images as they were written."""


@dataclass(frozen=True)
class _Job:
    """What all kinds are given."""

    kind: str
    source: Path
    calibration: Calibration
    selection: Selection
    options: DatasetOptions
    folder: Path
    """Where to write, not yet under its name."""
    names: tuple[str, ...]
    """Files of the images."""
    stages: Stages

    @property
    def picked(self) -> tuple[Calibration, IntArray]:
        """The calibration with the chosen frames as its only stretch, and which of the points are in it."""
        part, points = part_of(self.selection.whole, self.selection.frames, self.names)
        return replace(self.calibration, stretches=(part,)), points

    def pictures(self, change: Change | None = None) -> Pictures:
        camera = self.calibration.camera
        return Pictures(self.source, self.selection, camera, self.options.images, change)

    def write_images(self, pictures: Pictures, report: Report) -> None:
        """Writes the images into their folder."""
        (self.folder / IMAGES_NAME).mkdir()
        for position, data in pictures.encoded(report):
            _write(self.folder / IMAGES_NAME / self.names[position], data)


_Written = tuple[Camera, int, Mapping[str, object]]
"""The camera of the images, the number of points, and what is to be said of this kind."""


def write_dataset(
    source: Path | str,
    calibration: Calibration,
    kind: str,
    output: Path | str,
    options: DatasetOptions | None = None,
    *,
    progress: Progress = silent,
) -> Dataset:
    """Writes the frames of one world of a calibration as a dataset that a tool trains on.

    Args:
        source: The video or the folder of images that was calibrated.
        calibration: With its stretches.
        kind: One of `DATASET_WORDS`.
        output: A new folder.
        options: Which frames, and how.
        progress: Called with the name of the stage and the share of it that is done.

    Raises:
        InputError: The source is not the one that was calibrated, the kind cannot hold it, or the folder is not new.
    """
    source, output, options = Path(source), Path(output), options or DatasetOptions()
    writer = _WRITERS.get(kind)
    if writer is None:
        raise InputError(f"the kind of dataset is {kind!r}; expected one of {', '.join(DATASET_WORDS)}.")
    require_source(source)
    refuse_full_folder(output)
    if kind == "ncore":
        require_ncore()
    stages = Stages(progress)
    with stages("choosing frames") as report:
        selection = choose_frames(source, calibration, options, report)
    chosen: list[int] = selection.frames.tolist()
    names = tuple(f"{Path(selection.whole.names[frame]).stem}.{options.images}" for frame in chosen)
    with new_folder(output) as folder:
        job = _Job(kind, source, calibration, selection, options, folder, names, stages)
        camera, point_count, more = writer(job)
        done = Dataset(kind, selection.number, selection.count, selection.numbers, point_count, camera)
        _write(folder / DATASET_NAME, json_bytes(_statement(job, done, more)))
    return done


def _rectified(job: _Job) -> _Written:
    whole, frames, options = job.selection.whole, job.selection.frames.tolist(), job.options
    rectifier = Rectifier(whole.scene, RectifyOptions(row=options.row, undistort=True, border=options.border))
    camera = job.calibration.camera
    window = Window(0, 0, camera.width, camera.height)
    if options.border == "crop":
        with job.stages("finding what all frames saw") as report:
            maps = (rectifier.source_map(frame) for frame in frames)
            window = common_window(_reported(maps, len(frames), report))
    pictures = job.pictures(lambda image, frame: window.of(rectifier.rectify(image, frame)))
    with job.stages("rectifying frames") as report:
        job.write_images(pictures, report)
    picked, points = job.picked
    interval = picked.frame_interval_s
    stretch = rectified_stretch(picked.stretches[0], rectifier, window, interval)
    shown = replace(picked, camera=stretch.scene.camera, stretches=(stretch,))
    export = _export(job, shown, EXPORTERS["colmap"])
    _write_all(job.folder / MODEL_NAME, model_files(replace(export, colours=pictures.colours[points])))
    more = {"row": options.row, "rectified": True, "window": window._asdict(), "poses": f"of the {options.row} row"}
    return stretch.scene.camera, int(np.count_nonzero(stretch.scene.tracks.lengths)), more


def _as_filmed(job: _Job) -> _Written:
    picked, points = job.picked
    formats = [EXPORTERS[name] for name in ("nerfstudio", "gsplat")]
    exports = [_export(job, picked, exporter) for exporter in formats]
    pictures = job.pictures()
    with job.stages("writing frames") as report:
        job.write_images(pictures, report)
    for exporter, export in zip(formats, exports, strict=True):
        _write_all(job.folder, with_held_lens(replace(export, colours=pictures.colours[points]), exporter.files))
    more = {"rectified": False, "poses": [exporter.reference_row for exporter in formats]}
    return picked.camera, len(points), more


def _ncore(job: _Job) -> _Written:
    picked, points = job.picked
    export = _export(job, picked, NCORE)
    writer = with_held_lens(
        export, lambda held: NcoreWriter(held, job.folder, job.source.stem, job.options.images)
    )  # fmt: skip
    pictures = job.pictures()
    with job.stages("writing frames") as report:
        for position, data in pictures.encoded(report):
            with naming(job.folder / job.names[position]):
                writer.add(position, data)
    with naming(job.folder / DATASET_NAME):
        writer.finish(pictures.colours[points])
    return writer.camera, len(points), {"rectified": False, "poses": NCORE.reference_row}


def _export(job: _Job, calibration: Calibration, exporter: Exporter) -> Export:
    """What the writer of a format is given; what the format cannot hold is refused before any work is done."""
    export = export_of(calibration, exporter, job.kind, ExportOptions())
    return replace(export, statement={**export.statement, "written_by": f"rssc dataset --for {job.kind}"})


_WRITERS: dict[str, Callable[[_Job], _Written]] = {"colmap": _rectified, "nerfstudio": _as_filmed, "ncore": _ncore}


def _reported(maps: Iterator[NDArray[np.float32]], count: int, report: Report) -> Iterator[NDArray[np.float32]]:
    for i, found in enumerate(maps):
        yield found
        report((i + 1) / count)


def _write(path: Path, data: bytes) -> None:
    with naming(path):
        path.write_bytes(data)


def _write_all(folder: Path, files: Files) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        _write(folder / name, data)


def _statement(job: _Job, done: Dataset, more: Mapping[str, object]) -> dict[str, object]:
    """What the dataset was made of, for people and for later."""
    calibration, shutter = job.calibration, job.calibration.camera.shutter
    return {
        "format": "rssc-dataset",
        "version": 1,
        "kind": done.kind,
        "source": source_name(job.source),
        "stretch": done.stretch,
        "frame_numbers": dict(zip(job.names, done.frame_numbers.tolist(), strict=True)),
        "image": {"width": done.camera.width, "height": done.camera.height},
        "lens": asdict(done.camera.lens) | {"pixel_centre": CENTRE_ZERO},
        **more,
        "filmed_with": {
            "readout_time_s": calibration.readout_time_s,
            "readout_ratio": shutter.readout_ratio,
            "direction": shutter.direction,
            "frame_interval_s": calibration.frame_interval_s,
        },
        "calibration_status": calibration.status,
        "reasons": list(calibration.reasons),
    }
