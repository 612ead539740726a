"""Runs as plain files: a folder for each, with the video, run.json, and a folder for each job that was done.

    runs/ID/run.json            name, options, and the last job with its state: all runs together are the queue
    runs/ID/source/NAME         the video
    runs/ID/check/              document.json and the frames that were looked at
    runs/ID/calibrate/          document.json, calibration.json, report.html, .., exports/
    runs/ID/rectify/            document.json and the video
    runs/ID/new/                what the running job writes; it gets the job's name when the job is done
    incoming/ID/                a video that is still coming in, or a run that is being deleted

A folder appears under its name by one rename, so that what is there is complete, whenever the server is killed.
"""

import json
import re
import secrets
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rssc.app.run import KINDS, Job, Kind, Options, Run
from rssc.io.files import make_folder, write_text

DOCUMENT_NAME = "document.json"
"""What a job has to say, for the page."""
NEW_NAME, TEMPORARY_NAME = "new", "tmp"
COMPARISON_PREFIX = "compare-"
_RUN_NAME = "run.json"
_OUR_NAMES = rf"[0-9a-f]{{12}}(\.gone)?|{COMPARISON_PREFIX}\w+"
"""In the folder of what is coming in."""
_LONGEST_STEM, _LONGEST_ENDING = 50, 10
"""Characters of a file's name, of up to four bytes each; file systems take 255."""


class Runs:
    """All runs of a folder.

    Every change of a run gets a number, so that a page asks for what is new since the last number that it knows.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = make_folder(folder / "runs")
        self.incoming = folder / "incoming"
        self.version = 0
        self._runs: dict[str, Run] = {}
        self._versions: dict[str, int] = {}
        self._documents: dict[tuple[str, Kind], dict[str, Any]] = {}
        self._read()

    def all(self) -> list[Run]:
        """All runs, the oldest first."""
        return sorted(self._runs.values(), key=lambda run: (run.created, run.id))

    def get(self, name: str) -> Run:
        """The run of this id.

        Raises:
            KeyError: There is none.
        """
        return self._runs[name]

    def path(self, run: Run, *parts: str) -> Path:
        """Of a file or folder of a run."""
        return self.folder.joinpath(run.id, *parts)

    def source(self, run: Run) -> Path:
        """Path of the video."""
        return self.path(run, "source", run.file)

    def document(self, run: Run, kind: Kind) -> dict[str, Any] | None:
        """What a job of this kind said; None where none was done."""
        return self._documents.get((run.id, kind))

    def changes(self, since: int) -> dict[str, Any]:
        """What a page that knows everything up to a number must be told."""
        runs = self.all()
        return {
            "version": self.version,
            "ids": [run.id for run in runs],
            "runs": [
                {**run.model_dump(exclude={"file"}), **{kind: self.document(run, kind) for kind in KINDS}}
                for run in runs
                if self._versions[run.id] > since
            ],
        }

    def save(self, run: Run) -> None:
        """Writes run.json, for the next start."""
        write_text(self.path(run, _RUN_NAME), run.model_dump_json(indent=1))
        self.touch(run)

    def touch(self, run: Run) -> None:
        """Tells pages of a change that needs not be kept."""
        self.version += 1
        self._versions[run.id] = self.version

    def begin_upload(self, name: str) -> tuple[Run, Path]:
        """A run that is not there yet, and where its video goes; `end_upload` or `drop_upload` comes next."""
        run = Run(id=secrets.token_hex(6), name=name, file=file_name(name), bytes=0)
        folder = self.incoming / run.id / "source"
        folder.mkdir(parents=True)
        return run, folder / run.file

    def end_upload(self, run: Run) -> None:
        """Makes the run appear; its video is complete."""
        run.bytes = (self.incoming / run.id / "source" / run.file).stat().st_size
        write_text(self.incoming / run.id / _RUN_NAME, run.model_dump_json(indent=1))
        (self.incoming / run.id).rename(self.folder / run.id)
        self._runs[run.id] = run
        self.touch(run)

    def drop_upload(self, run: Run) -> None:
        """Removes what came in of a video that did not come whole."""
        shutil.rmtree(self.incoming / run.id, ignore_errors=True)

    def again(self, run: Run, options: Options) -> Run:
        """Another run of the same video, with other options; the video is on disk once where that is possible."""
        other, path = self.begin_upload(run.name)
        try:
            try:
                path.hardlink_to(self.source(run))
            except OSError:
                shutil.copyfile(self.source(run), path)
            if options.same_frames(run.options) and self.document(run, "check") is not None:
                shutil.copytree(self.path(run, "check"), self.incoming / other.id / "check")
        except OSError:
            self.drop_upload(other)
            raise
        other.options = options
        self.end_upload(other)
        self._read_documents(other)
        return other

    def delete(self, run: Run) -> None:
        """Removes a run and all of its files."""
        # Renamed first: a run that is half removed when the server is killed must not come back.
        self.incoming.mkdir(exist_ok=True)
        gone = self.incoming / f"{run.id}.gone"
        self.path(run).rename(gone)
        del self._runs[run.id], self._versions[run.id]
        for kind in KINDS:
            self._documents.pop((run.id, kind), None)
        self.version += 1
        shutil.rmtree(gone, ignore_errors=True)

    def new_folder(self, run: Run) -> Path:
        """An empty folder for a job to write into."""
        self.drop_new(run)
        folder = self.path(run, NEW_NAME)
        folder.mkdir()
        return folder

    def drop_new(self, run: Run) -> None:
        """Removes what a job wrote that was not finished."""
        shutil.rmtree(self.path(run, NEW_NAME), ignore_errors=True)

    def accept_new(self, run: Run, kind: Kind) -> None:
        """What a job wrote becomes the run's."""
        shutil.rmtree(self.path(run, NEW_NAME, TEMPORARY_NAME), ignore_errors=True)
        place = self.path(run, kind)
        if place.exists():
            shutil.rmtree(place)
        self.path(run, NEW_NAME).rename(place)
        self._read_documents(run)

    def _read(self) -> None:
        """Reads what an earlier server left; jobs that it did not finish wait again."""
        for path in self.incoming.glob("*"):
            # What somebody else put there is left alone.
            if re.fullmatch(_OUR_NAMES, path.name):
                shutil.rmtree(path, ignore_errors=True)
        for path in sorted(self.folder.glob(f"*/{_RUN_NAME}")):
            with suppress(OSError, ValidationError):
                run = Run.model_validate_json(path.read_bytes())
                # A folder that somebody put there, or renamed, is left alone.
                if run.id != path.parent.name or run.file != Path(run.file).name or not self.source(run).is_file():
                    continue
                self._runs[run.id] = run
                self.drop_new(run)
                if run.job is not None and run.job.state == "running":
                    run.job = Job(kind=run.job.kind, queued=run.job.queued)
                self._read_documents(run)
                self.touch(run)

    def _read_documents(self, run: Run) -> None:
        for kind in KINDS:
            with suppress(OSError, ValueError):
                self._documents[run.id, kind] = json.loads(self.path(run, kind, DOCUMENT_NAME).read_bytes())


def file_name(name: str) -> str:
    """A name on disk like the one that the user has: letters, digits and a few signs of its last part."""
    last = re.split(r"[/\\]", name)[-1]
    plain = re.sub(r"[^\w .()+,=@~-]", "_", last).strip(" .")
    stem, ending = Path(plain).stem, Path(plain).suffix
    stem = stem[:_LONGEST_STEM].lstrip("-") or "video"
    # Windows has no files of these names, whatever their ending.
    stem = f"_{stem}" if re.fullmatch(r"(?i)con|prn|aux|nul|com\d|lpt\d", stem) else stem
    return stem + ending[:_LONGEST_ENDING]
