"""catalog.html: the table of cameras and that of clips, to sort and search; one file, no network."""

from dataclasses import dataclass
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from rssc.fleet.entry import EXPORTED, Catalog, Entry, Line
from rssc.model.calibration import Calibration
from rssc.model.covariance import SIGMAS_95, UNKNOWN_SIGMA
from rssc.model.lens import LENS_MODELS
from rssc.outputs.report.summary import number

_OUTCOMES = {
    "not_calibratable": "tells too little",
    "unreadable": "cannot be read",
    "crashed": "crashed",
    "died": "its worker died",
}
_UNKNOWN = "unknown"


@dataclass(frozen=True)
class Value:
    """A number with its 95 % interval, and what it is sorted by."""

    shown: str = "\N{EN DASH}"
    half: str = ""
    order: float | str = ""


@dataclass(frozen=True)
class _Row:
    """A camera in a mode, as the page shows it."""

    entry: Entry
    readout: Value
    ratio: Value
    focal: Value
    lens: str
    values: tuple[tuple[str, Value], ...]
    """All of the lens, by name."""
    links: tuple[tuple[str, str], ...]
    """Files by what they are."""


def catalog_page(catalog: Catalog, cameras: str) -> str:
    """The page.

    Args:
        catalog: What to show.
        cameras: Folder beside the page in which the files of the cameras lie.
    """
    environment = Environment(
        loader=PackageLoader("rssc.fleet", "pages"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    return environment.get_template("catalog.html").render(
        rows=[_row(entry, cameras) for entry in catalog.entries],
        lines=catalog.lines,
        outcome=outcome_words,
        used=sum(line.used for line in catalog.lines),
        css=_resource("catalog.css"),
        script=_resource("catalog.js"),
    )


def outcome_words(line: Line) -> str:
    """What became of a clip, in a few words."""
    record = line.record
    if line.used:
        return "used"
    if record.outcome == "calibrated":
        return "left out" if record.estimated else _OUTCOMES["not_calibratable"]
    return _OUTCOMES[record.outcome]


def _row(entry: Entry, cameras: str) -> _Row:
    found = entry.calibration
    if found is None or entry.status == "degenerate":
        return _Row(entry, Value(), Value(), Value(), "", (), ())
    lens, interval_ms = found.camera.lens, 1e3 * found.frame_interval_s
    ratio, sigma = found.camera.shutter.readout_ratio, found.sigma("readout_ratio")
    names = {"calibration": "calibration.json", "gyroflow": "gyroflow_lens_profile.json",
             "opendronemap": "opendronemap.txt"}  # fmt: skip
    there = ["calibration", *(name for name in EXPORTED if name not in entry.refused)]
    return _Row(
        entry=entry,
        readout=_value(1e3 * found.readout_time_s, sigma * interval_ms),
        ratio=_value(ratio, sigma),
        focal=_of(found, "fx"),
        lens=LENS_MODELS[lens.model].words,
        values=tuple((name, _of(found, name)) for name in lens.parameter_names),
        links=tuple((name, f"{cameras}/{entry.name}/{names[name]}") for name in there),
    )


def _of(found: Calibration, name: str) -> Value:
    lens = found.camera.lens
    known = dict(zip(lens.parameter_names, lens.parameters.tolist(), strict=True))
    return _value(known[name], found.sigma(name))


def _value(value: float, sigma: float) -> Value:
    if sigma >= UNKNOWN_SIGMA:
        return Value(_UNKNOWN)
    half = SIGMAS_95 * sigma
    return Value(number(value, half), number(half, half), value)


def _resource(name: str) -> Markup:
    return Markup(files("rssc.fleet").joinpath("pages", name).read_text())
