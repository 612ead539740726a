"""What the process of a job does: `python -m rssc.app.work KIND RUN NEW`, or `compare FIRST NEW SECOND`.

RUN is the folder of a run, NEW the one to write into. Progress and errors are JSON objects, a line each, on stdout.
"""

import json
import os
import sys
import time
import traceback
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from rssc.app.processes import end_with_parent
from rssc.app.run import Run
from rssc.app.runs import DOCUMENT_NAME, TEMPORARY_NAME
from rssc.errors import InputError, RsscError, error_words

_THUMBNAILS, _THUMBNAIL_HEIGHT, _JPEG_QUALITY = 6, 180, 80
_LEAST_SECONDS = 0.1
"""Between two reports of one stage."""


class _Teller:
    """Tells the server of progress."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._last: tuple[str, float] = ("", 0.0)

    def __call__(self, stage: str, share: float) -> None:
        now = time.monotonic()
        if stage == self._last[0] and share < 1 and now - self._last[1] < _LEAST_SECONDS:
            return
        self._last = (stage, now)
        self.tell({"stage": stage, "share": share})

    def tell(self, message: dict[str, Any]) -> None:
        self._out.write(json.dumps(message) + "\n")
        self._out.flush()


def main(words: list[str]) -> int:
    """Does a job; returns the exit code of the command line."""
    end_with_parent()
    # Libraries that print, print into the log.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    teller = _Teller(out)
    kind, folder, new = words[0], Path(words[1]), Path(words[2])
    try:
        if kind == "compare":
            document = _compare(folder, Path(words[3]))
        else:
            run = Run.model_validate_json((folder / "run.json").read_bytes())
            document = _JOBS[kind](run, folder, new, teller)
        (new / DOCUMENT_NAME).write_text(json.dumps(document))
    except Exception as error:
        traceback.print_exc()
        message, code = error_words(error) or (f"{type(error).__name__}: {error}; this is a fault of rssc.", 1)
        teller.tell({"error": _as_users_know_it(message, folder, new)})
        return code
    return 0


def _as_users_know_it(message: str, folder: Path, new: Path) -> str:
    """Users know their file by its name, not where and as what it is kept."""
    for place in (folder / "source", folder / "calibrate", new):
        message = message.replace(f"{place}{os.sep}", "")
    try:
        run = Run.model_validate_json((folder / "run.json").read_bytes())
    except (OSError, ValueError):
        return message
    return message.replace(run.file, run.name)


def _check(run: Run, folder: Path, new: Path, progress: _Teller) -> dict[str, Any]:
    from rssc.api import check
    from rssc.outputs.terminal import CHECK_WORDS, check_facts

    options, source = run.options.chosen(), folder / "source" / run.file
    found = check(source, fps=options.fps, frames=options.frames, progress=progress)
    return {
        "status": found.status,
        "verdict": CHECK_WORDS[found.status],
        "reasons": found.reasons,
        "notes": found.notes,
        "facts": check_facts(found),
        "frames": [] if found.frames is None else _write_thumbnails(source, found.frames, new),
    }


def _write_thumbnails(source: Path, frames: tuple[int, int], folder: Path) -> list[int]:
    """Writes a few of the frames, as NUMBER.jpg; returns their numbers."""
    import cv2
    import numpy as np

    from rssc.footage.footage import read_frames

    wanted = np.unique(np.linspace(frames[0], frames[1] - 1, _THUMBNAILS).round().astype(np.int64))
    for number, image in read_frames(source, wanted):
        height, width = image.shape[:2]
        size = (max(1, round(width * _THUMBNAIL_HEIGHT / height)), _THUMBNAIL_HEIGHT)
        small = cv2.resize(image[..., ::-1], size, interpolation=cv2.INTER_AREA)
        _, jpeg = cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY])
        (folder / f"{number}.jpg").write_bytes(jpeg.tobytes())
    return wanted.tolist()


def _calibrate(run: Run, folder: Path, new: Path, progress: _Teller) -> dict[str, Any]:
    from rssc.api import calibrate
    from rssc.model.finding import CAUSES
    from rssc.outputs.report.summary import VERDICTS, quantities
    from rssc.outputs.result_folder import write_results

    calibration = calibrate(folder / "source" / run.file, run.options.chosen(), progress=progress)
    progress("reporting", 0.0)
    write_results(calibration, new)
    progress("reporting", 1.0)
    known = bool(calibration.stretches)
    camera = calibration.camera
    return {
        "status": calibration.status,
        "verdict": VERDICTS[calibration.status],
        "reasons": calibration.reasons,
        "remedies": list(dict.fromkeys(filter(None, (CAUSES[cause].remedy for cause in calibration.causes)))),
        "notes": calibration.notes,
        # Of footage that tells nothing there is a camera in the file, but none that was estimated.
        "quantities": [asdict(row) for row in quantities(calibration)] if known else [],
        "facts": f"{camera.lens.model} lens, {camera.width} x {camera.height}, read {camera.shutter.direction}".replace(
            "_", " "
        ),
        "frames": calibration.statistics.frames,
        "rms_px": calibration.statistics.rms_px,
        "exports": _write_exports(new, progress) if known else [],
    }


def _write_exports(new: Path, progress: _Teller) -> list[dict[str, str]]:
    """Writes every format as a zip; what a format cannot hold is said instead, or that it is too much for a page."""
    from rssc.api import export
    from rssc.model.calibration import Calibration
    from rssc.names import FORMAT_WORDS
    from rssc.outputs.exporters import EXPORTERS

    folder = new / "exports"
    folder.mkdir()
    calibration = Calibration.load(new / "calibration.json")
    exports: list[dict[str, str]] = []
    for i, (name, words) in enumerate(FORMAT_WORDS.items()):
        progress("exporting", i / len(FORMAT_WORDS))
        refused = ""
        if EXPORTERS[name].has_frame_images:
            refused = (
                f"{name} is an image for every frame: rssc export calibration.json --to {name} -o FOLDER writes them."
            )
            exports.append({"format": name, "words": words, "refused": refused})
            continue
        try:
            files = export(calibration, name, new / TEMPORARY_NAME / name)
            with zipfile.ZipFile(folder / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
                for file in files:
                    archive.write(file, file.relative_to(new / TEMPORARY_NAME / name))
        except RsscError as error:
            refused = str(error)
        exports.append({"format": name, "words": words, "refused": refused})
    progress("exporting", 1.0)
    return exports


def _rectify(run: Run, folder: Path, new: Path, progress: _Teller) -> dict[str, Any]:
    from rssc.api import rectify

    source, output = folder / "source" / run.file, new / "rectified.mp4"
    if not (folder / "calibrate" / "calibration.json").exists():
        raise InputError(f"{run.name} is not calibrated; calibrate it first.")
    done = rectify(source, folder / "calibrate" / "calibration.json", output, progress=progress)
    return {"file": output.name, "bytes": output.stat().st_size, "frames": done.ranges, "of": done.source_count}


def _compare(first: Path, second: Path) -> dict[str, Any]:
    from rssc.api import evaluate

    name = "calibration.json"
    found = evaluate(first / "calibrate" / name, second / "calibrate" / name)
    # Both files have the same name.
    return {**found.document(), "notes": [note.replace(name, "the other one") for note in found.notes]}


_JOBS = {"check": _check, "calibrate": _calibrate, "rectify": _rectify}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
