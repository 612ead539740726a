"""The files of a catalog: tables, page, and those of each camera and mode.

catalog.html                     the table, to sort and search
catalog.csv, catalog.json        the same for programs
clips.csv                        every clip, and what became of it
opendronemap_entries.txt         a line for each camera that names itself, for OpenDroneMap's list
cameras/NAME/                    calibration.json, gyroflow_lens_profile.json, opendronemap.txt and its cameras.json
clips/FINGERPRINT/               what is kept of each clip, for the next run
"""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from rssc.errors import InputError
from rssc.fleet.entry import EXPORTED, Catalog, Entry, Line
from rssc.fleet.options import CatalogOptions
from rssc.fleet.page import catalog_page
from rssc.io.calibration_file import calibration_document, calibration_files
from rssc.io.files import check_folder, refuse_to_replace, staged_folder
from rssc.io.reading import as_utf8, in_utf8
from rssc.model.calibration import Calibration
from rssc.model.covariance import SIGMAS_95, UNKNOWN_SIGMA
from rssc.outputs.exporters import export_files
from rssc.outputs.result_folder import CALIBRATION_NAME
from rssc.pipeline.provenance import version

FORMAT = "rssc-catalog"
JSON_NAME, CSV_NAME, PAGE_NAME, CLIPS_CSV_NAME = "catalog.json", "catalog.csv", "catalog.html", "clips.csv"
ENTRIES_NAME = "opendronemap_entries.txt"
CAMERAS_NAME = "cameras"
_EXPORT_NAMES = ("gyroflow_lens_profile.json", "opendronemap.txt", "cameras.json")
_INTRINSICS = ("fx", "fy", "cx", "cy")
_DIGITS = 7
"""Of numbers in tables: more than any error bar leaves."""
Cell = str | float | None


def check_place(output: Path) -> None:
    """Refuses a folder that cannot be written to, or has files of somebody else's where those of a catalog go."""
    check_folder(output)
    if not _is_catalog(output):
        for name in (JSON_NAME, CSV_NAME, PAGE_NAME, CLIPS_CSV_NAME, ENTRIES_NAME, CAMERAS_NAME):
            if (output / name).exists() and not (name == CAMERAS_NAME and (output / "clips").is_dir()):
                raise refuse_to_replace(output / name, "rssc catalog")


def write_entry(output: Path, entry: Entry) -> Entry:
    """Writes the files of a camera; returns the entry with what was refused."""
    found = entry.calibration
    if found is None or found.status == "degenerate":
        return entry
    files = calibration_files(found, CALIBRATION_NAME)
    refused: dict[str, str] = {}
    for name in EXPORTED:
        try:
            files |= export_files(found, name)
        except InputError as error:
            refused[name] = str(error)
    with staged_folder(output / CAMERAS_NAME / entry.name) as staging:
        for name, data in files.items():
            (staging / name).write_bytes(data)
    return replace(entry, refused=refused)


def write_catalog(output: Path, catalog: Catalog, options: CatalogOptions) -> None:
    """Writes the tables and the page; cameras of an earlier catalog that are not in this one lose their files."""
    document = catalog_document(catalog, options)
    page = catalog_page(catalog, CAMERAS_NAME)
    before = _earlier_names(output)
    with staged_folder(output) as staging:
        (staging / PAGE_NAME).write_text(as_utf8(page), encoding="utf-8")
        (staging / CSV_NAME).write_text(_csv(map(camera_cells, catalog.entries)), encoding="utf-8")
        (staging / CLIPS_CSV_NAME).write_text(_csv(map(clip_cells, catalog.lines)), encoding="utf-8")
        (staging / ENTRIES_NAME).write_text(opendronemap_entries(catalog), encoding="utf-8")
        (staging / JSON_NAME).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    written = {entry.name for entry in catalog.entries if entry.calibration and entry.status != "degenerate"}
    for name in before - written:
        _remove_entry(output / CAMERAS_NAME / name)


def _remove_entry(folder: Path) -> None:
    """Removes what was written of a camera; a file of somebody else's stays, and its folder with it."""
    for name in (CALIBRATION_NAME, *_EXPORT_NAMES):
        (folder / name).unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()


def catalog_document(catalog: Catalog, options: CatalogOptions) -> dict[str, object]:
    """The contents of catalog.json."""
    document: dict[str, object] = {
        "format": FORMAT,
        "version": 1,
        "rssc": version(),
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "options": {"lens": options.lens, "check": options.check},
        "cameras": [_camera_document(entry) for entry in catalog.entries],
        "clips": [clip_cells(line) for line in catalog.lines],
    }
    return in_utf8(document)


def _camera_document(entry: Entry) -> dict[str, object]:
    found, cells = entry.calibration, camera_cells(entry)
    calibration = {} if found is None else {"calibration": calibration_document(replace(found, stretches=()))}
    return {
        **{name: cells[name] for name in ("camera", "mode", "verdict", "clips", "used", "folder")},
        "named_by": entry.mode.named_by,
        "settings": entry.mode.settings,
        "size": list(entry.mode.size),
        "rate": entry.mode.rate,
        "reasons": list(entry.reasons),
        "refused": dict(entry.refused),
        "readout_ms": cells["readout_ms"],
        "readout_ms_95": cells["readout_ms_95"],
        **calibration,
    }


def camera_cells(entry: Entry) -> dict[str, Cell]:
    """A row of catalog.csv."""
    mode, found = entry.mode, entry.calibration
    cells: dict[str, Cell] = {
        "camera": mode.camera,
        "mode": mode.words,
        "width": mode.size[0],
        "height": mode.size[1],
        "rate": round(mode.rate, 3),
        "verdict": entry.status,
        "clips": len(entry.lines),
        "used": entry.used,
        **_numbers(None if entry.status == "degenerate" else found),
        "reasons": "; ".join(entry.reasons),
        "left_out": "; ".join(f"{Path(line.path).name}: {line.why}" for line in entry.lines if not line.used),
        "folder": "" if found is None or entry.status == "degenerate" else f"{CAMERAS_NAME}/{entry.name}",
    }
    return cells


def _numbers(found: Calibration | None) -> dict[str, Cell]:
    """Readout and lens with the half widths of their 95 % intervals; nothing where they are not known."""
    names = ("readout_ms", "readout_ms_95", "readout_ratio", "readout_ratio_95", "direction", "lens")
    cells: dict[str, Cell] = dict.fromkeys(
        (*names, *(f"{name}{end}" for name in _INTRINSICS for end in ("", "_95")), "distortion", "distortion_95")
    )
    if found is None:
        return cells
    camera, lens, interval_ms = found.camera, found.camera.lens, 1e3 * found.frame_interval_s
    ratio_95 = half_width(found, "readout_ratio")
    cells |= {
        "readout_ms": _rounded(1e3 * found.readout_time_s),
        "readout_ms_95": None if ratio_95 is None else _rounded(ratio_95 * interval_ms),
        "readout_ratio": _rounded(camera.shutter.readout_ratio),
        "readout_ratio_95": ratio_95,
        "direction": camera.shutter.direction,
        "lens": lens.model,
        "distortion": " ".join(
            f"{name}={value:.{_DIGITS}g}" for name, value in zip(lens.coefficient_names, lens.distortion, strict=True)
        ),
        "distortion_95": " ".join(f"{name}={half_width(found, name)}" for name in lens.coefficient_names),
    }
    for name in _INTRINSICS:
        cells |= {name: _rounded(float(getattr(lens, name))), f"{name}_95": half_width(found, name)}
    return cells


def half_width(found: Calibration, name: str) -> float | None:
    """Of the 95 % interval of a parameter; None where it is not known at all."""
    sigma = found.sigma(name)
    return None if sigma >= UNKNOWN_SIGMA else _rounded(SIGMAS_95 * sigma, 3)


def _rounded(value: float, digits: int = _DIGITS) -> float:
    return float(f"{value:.{digits}g}")


def clip_cells(line: Line) -> dict[str, Cell]:
    """A row of clips.csv."""
    record = line.record
    return {
        "path": line.path,
        "camera": line.camera,
        "mode": line.mode,
        "outcome": record.outcome,
        "verdict": record.status if record.estimates else "",
        "used": "yes" if line.used else "no",
        "why_not": line.why,
        "reasons": "; ".join(record.reasons),
        "causes": " ".join(record.causes),
        "seconds": record.seconds,
        "cpu_seconds": record.cpu_seconds,
        "memory_mb": round(record.memory_bytes / 1e6),
        "folder": f"clips/{record.folder}" if record.folder else "",
    }


def opendronemap_entries(catalog: Catalog) -> str:
    """Lines for the list RS_DATABASE in OpenDroneMap's opendm/rollingshutter.py, which names cameras as EXIF does."""
    lines = [
        "# for RS_DATABASE in OpenDroneMap's opendm/rollingshutter.py: make and model, readout time in ms",
        "# measured in videos of the mode that follows the sign; photos may be read at another speed",
    ]
    for entry in catalog.entries:
        found = entry.calibration
        if found is None or entry.status != "ok" or entry.mode.named_by != "file" or "opendronemap" in entry.refused:
            continue
        key = f"{found.metadata.make} {found.metadata.model}".strip().lower().replace("\\", "").replace("'", "")
        half = SIGMAS_95 * found.sigma("readout_ratio") * found.frame_interval_s
        lines.append(f"'{key}': {1e3 * found.readout_time_s:.2f}, # {entry.mode.words}; +- {1e3 * half:.2f} ms (95 %)")
    return as_utf8("\n".join(lines) + "\n")


def _csv(rows: Iterable[Mapping[str, Cell]]) -> str:
    table = list(rows)
    buffer = io.StringIO()
    names: Sequence[str] = list(table[0]) if table else []
    writer = csv.DictWriter(buffer, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    return as_utf8(buffer.getvalue())


def _is_catalog(output: Path) -> bool:
    with suppress(OSError, ValueError, AttributeError):
        return json.loads((output / JSON_NAME).read_text(encoding="utf-8")).get("format") == FORMAT
    return False


def _earlier_names(output: Path) -> set[str]:
    """Folders of cameras of an earlier catalog here."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        cameras = json.loads((output / JSON_NAME).read_text(encoding="utf-8"))["cameras"]
        places = [Path(str(one["folder"])) for one in cameras]
        return {place.name for place in places if place.parent == Path(CAMERAS_NAME)}
    return set()
