"""The whole flow of a catalog on one page: from folders of clips to a table of cameras.

find        the clips in the folders and the table (`sources`)
measure     each clip by itself, side by side: checked, calibrated and kept (`work`); a later run looks them up
group       by camera and mode (`grouping`)
combine     the clips of each group: one lens model, outliers named, one camera (`combination`)
write       tables, page, and files for other tools (`files`)
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from rssc.errors import error_words
from rssc.fleet.combination import Conclusion, common_model, conclude, usable
from rssc.fleet.entry import Catalog, Entry, Line, folder_names
from rssc.fleet.files import check_place, write_catalog, write_entry
from rssc.fleet.grouping import Group, Mode, camera_of_clip, group, repeated
from rssc.fleet.options import CatalogOptions
from rssc.fleet.record import ClipRecord, clip_name
from rssc.fleet.sources import Clip, find_clips
from rssc.fleet.work import AgainTask, ClipTask, infer_again, measure_clip
from rssc.io.files import make_folder
from rssc.model.metadata import Metadata
from rssc.model.provenance import Provenance, SourceRecord
from rssc.pipeline.metadata import common_metadata
from rssc.pipeline.provenance import version
from rssc.runtime.cluster import run_on_cluster
from rssc.runtime.memory import machine_bytes
from rssc.runtime.pool import WorkerDiedError
from rssc.runtime.progress import Progress, Report, Stages, silent
from rssc.runtime.slots import Outcome, run_apart
from rssc.runtime.threads import thread_count

CLIPS_NAME = "clips"
"""Folder of what is kept of each clip."""
_MEMORY_SHARE = 0.8
"""Of the machine's memory that all workers may have together; the rest is the system's."""

_USUAL_BYTES = 2e9
"""Enough for one worker on any clip of usual size: no more local workers start than have so much each."""

Task = TypeVar("Task")
Result = TypeVar("Result")


def make_catalog(
    sources: Sequence[Path], output: Path, options: CatalogOptions, jobs: int | None = None, progress: Progress = silent
) -> Catalog:
    """Calibrates all clips and writes the catalog of their cameras.

    Args:
        sources: Folders of clips, or clips.
        output: Folder of the catalog; what an earlier run left there is not done again.
        options: How.
        jobs: How many local workers; as many as there are cores, and memory for, where not given.
        progress: Called with the name of the stage and the share of it that is done.
    """
    check_place(output)
    clips = find_clips(sources, options.table)
    fleet = _Fleet(options, make_folder(output / CLIPS_NAME).absolute(), jobs)
    stage = Stages(progress)
    with stage("calibrating") as report:
        records = fleet.measure(clips, report)
    copies = repeated(records)
    first = [i for i in range(len(clips)) if i not in copies]
    groups = group([clips[i] for i in first], [records[i] for i in first])
    with stage("combining") as report:
        conclusions = fleet.conclude(groups, report)
    with stage("writing") as report:
        entries: list[Entry] = []
        names = folder_names(one.mode for one in groups)
        for one, name, conclusion in zip(groups, names, conclusions, strict=True):
            entry = Entry(one.mode, name, conclusion, _lines_of(one, conclusion), {})
            entries.append(write_entry(output, entry))
            report(len(entries) / (len(groups) + 1))
        found = Catalog(tuple(entries), _all_lines(clips, records, copies, entries))
        write_catalog(output, found, options)
    return found


class _Fleet:
    """Workers, and where they keep what they find."""

    def __init__(self, options: CatalogOptions, folder: Path, jobs: int | None) -> None:
        self._options, self._folder = options, folder
        self._jobs, share = _local_workers(jobs, options.memory)
        asked = None if options.memory is None else int(1e9 * options.memory)
        self._memory_bytes = asked if asked or options.scheduler is not None else share

    def measure(self, clips: Sequence[Clip], report: Report) -> list[ClipRecord]:
        """What became of each clip."""
        options = self._options
        tasks = [
            ClipTask(one.path.absolute(), self._folder, options.lens, options.check, self._memory_bytes)
            for one in clips
        ]
        records = [ClipRecord(clip_name(one.path), "crashed") for one in clips]
        for outcome in self._run(measure_clip, tasks, report):
            found = outcome.result or _failed(records[outcome.index], outcome.error)
            records[outcome.index] = replace(found, name=clip_name(clips[outcome.index].path))
        return records

    def conclude(self, groups: Sequence[Group], report: Report) -> list[Conclusion]:
        """What the clips of each group tell together."""
        tasks: list[AgainTask] = []
        for one in groups:
            chosen = usable(one.records)
            if not chosen:
                continue
            common = common_model(chosen)
            tasks += [
                AgainTask(
                    record, self._folder, self._options.lens, common.model, common.axis, common.ratio,
                    self._memory_bytes,
                )
                for record in chosen
                if any((part.model, part.axis) != (common.model, common.axis) for part in record.estimates)
            ]  # fmt: skip
        again: dict[str, ClipRecord] = {}
        failed: dict[str, str] = {}
        for outcome in self._run(infer_again, tasks, report):
            key = tasks[outcome.index].record.fingerprint
            if isinstance(outcome.result, ClipRecord):
                again[key] = outcome.result
            else:
                failed[key] = outcome.result or _error_words(outcome.error)
        return [self._concluded(one, again, failed) for one in groups]

    def _concluded(self, of: Group, again: Mapping[str, ClipRecord], failed: Mapping[str, str]) -> Conclusion:
        records = [again.get(one.fingerprint, one) for one in of.records]
        ours = {one.fingerprint: failed[one.fingerprint] for one in records if one.fingerprint in failed}
        found = conclude(records, ours, _metadata(of.mode, records))
        if found.calibration is None:
            return found
        sources = tuple(SourceRecord(one.name, one.fingerprint) for one in records if one.fingerprint in found.used)
        date = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        made = Provenance(version(), date, {"lens": self._options.lens}, sources)
        return replace(found, calibration=replace(found.calibration, provenance=made))

    def _run(
        self, function: Callable[[Task], Result], tasks: Sequence[Task], report: Report
    ) -> Iterator[Outcome[Result]]:
        if not tasks:
            return iter(())
        if self._options.scheduler is not None:
            return run_on_cluster(function, tasks, self._options.scheduler, report, self._folder)
        return run_apart(function, tasks, self._jobs, report)


def _local_workers(jobs: int | None, memory_gb: float | None) -> tuple[int, int | None]:
    """How many local workers there are, and the memory that each may have; None where the machine's is not known."""
    machine = machine_bytes()
    if machine is None:
        return jobs or thread_count(), None
    room = _MEMORY_SHARE * machine
    needed = _USUAL_BYTES if memory_gb is None else 1e9 * memory_gb
    count = jobs or max(1, min(thread_count(), int(room / needed)))
    return count, int(max(room / count, _USUAL_BYTES))


def _failed(record: ClipRecord, error: Exception | None) -> ClipRecord:
    """A clip without an answer: of which the program crashed, or the process died, twice."""
    died = isinstance(error, WorkerDiedError)
    return replace(record, outcome="died" if died else "crashed", reasons=(_error_words(error),))


def _error_words(error: Exception | None) -> str:
    if error is None:
        return "it was not done."
    if isinstance(error, WorkerDiedError):
        return f"{error}, twice."
    if isinstance(error, MemoryError):
        return "it needs more memory than a worker may have; allow more, or start fewer workers."
    told = error_words(error)
    return told[0] if told else f"{type(error).__name__}: {error}; this is a fault of rssc."


def _metadata(mode: Mode, records: Sequence[ClipRecord]) -> Metadata:
    """What the files say alike, under the name that the catalog has for the camera."""
    common = common_metadata([one.metadata for one in records])
    return common if mode.named_by == "file" else replace(common, make="", model=mode.camera)


def _lines_of(of: Group, conclusion: Conclusion) -> tuple[Line, ...]:
    return tuple(
        Line(one.name, of.mode.camera, of.mode.words, one, used, "" if used else _why(one, conclusion))
        for one in of.records
        for used in [one.fingerprint in conclusion.used]
    )


def _why(record: ClipRecord, conclusion: Conclusion) -> str:
    return conclusion.left_out.get(record.fingerprint, "") or "; ".join(record.reasons) or record.outcome


def _all_lines(
    clips: Sequence[Clip], records: Sequence[ClipRecord], copies: Mapping[int, int], entries: Iterable[Entry]
) -> tuple[Line, ...]:
    """Every clip, in the order in which they were found."""
    known = {line.path: line for entry in entries for line in entry.lines}
    lines: list[Line] = []
    for i, (clip, record) in enumerate(zip(clips, records, strict=True)):
        if i in copies:
            twin = known.get(records[copies[i]].name)
            words = f"a copy of {records[copies[i]].name}"
            mode = "" if twin is None else twin.mode
            lines.append(Line(record.name, camera_of_clip(clip, record.metadata)[0], mode, record, False, words))
        elif record.name in known:
            lines.append(known[record.name])
        else:
            camera = camera_of_clip(clip, record.metadata)[0] if clip.camera or record.metadata.camera else ""
            why = "; ".join(record.reasons) or record.outcome
            lines.append(Line(record.name, camera, "", record, False, why))
    return tuple(lines)
