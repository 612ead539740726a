"""Calibrates drawn clips and compares them with the truth; rendered frames and outcomes can be kept in files."""

import ast
import hashlib
import json
import shutil
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

import rssc.simulation
from benchmarks.clips import stabilised_frames
from benchmarks.draws import Content, Draw, clip_of, content_of
from benchmarks.pool import run_kept
from benchmarks.projection import BEYOND, CENTRE, CORNERS, grid, projection_errors
from rssc.datasets.golden import PARAMETERS, parameters_of
from rssc.errors import InputError, RsscError
from rssc.kernels.image import ray_casting, texture
from rssc.model.calibration import Calibration
from rssc.model.covariance import SIGMAS_95
from rssc.model.lens import LENS_MODELS
from rssc.pipeline.calibrate import calibrate
from rssc.simulation.clip import Clip
from rssc.simulation.clip_files import VIDEO_NAME, write_images, write_video

DRAWN_MODELS = ("pinhole", "radial", "opencv", "full_opencv", "fisheye", "thin_prism_fisheye")
"""Those that are drawn alike often; others only hold lenses that these do not hold."""
READOUT = "readout_ratio"
EXPOSURE = "exposure_ratio"
_CONTENT_NAME = "content.json"
_FEW_BITS = 0.09
"""Bits per pixel of a video that is compressed strongly: phones and action cameras write 0.2 and more."""


@dataclass(frozen=True)
class DrawnOutcome:
    """Result of the pipeline on a drawn clip."""

    case: Draw
    content: Content
    status: str
    """Of the calibration; "refused" where it raised."""
    lens: str = ""
    axis: str = ""
    truth: dict[str, float] = field(default_factory=dict[str, float])
    """Values of what has a truth: of a lens that no model holds the readout alone."""
    estimates: dict[str, float] = field(default_factory=dict[str, float])
    sigmas: dict[str, float] = field(default_factory=dict[str, float])
    exposure: float | None = None
    """Estimated exposure as a fraction of the frame interval; None where it is not estimated."""
    exposure_sigma: float | None = None
    lens_parameters: tuple[float, ...] = ()
    """Of the calibrated lens, in the order of its model."""
    lens_covariance: tuple[tuple[float, ...], ...] = ()
    """Theirs; zero where one was not estimated. With the rays, projections can be compared in other ways later."""
    rays: tuple[tuple[float, ...], ...] = ()
    """Of the true lens at the pixels of `projection.grid`."""
    errors_px: tuple[float, ...] = ()
    """Lengths of the projection errors there."""
    sigmas_px: tuple[float, ...] = ()
    """What the covariance says of them."""
    corners: tuple[float, ...] = ()
    """The errors at the corners in sigmas, see `projection.length_in_sigmas`."""
    centre: float = float("nan")
    """The same in the middle."""
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    rms_px: float = float("nan")
    seconds: float = float("nan")
    """Of the calibration."""
    bits_per_pixel: float | None = None
    """Of the clip's video."""

    @property
    def doubts(self) -> tuple[str, ...]:
        """What there is too little, or too much, of, as in `Content`; and bits, which only a compressed clip has."""
        few = self.bits_per_pixel is not None and self.bits_per_pixel < _FEW_BITS
        return (*self.content.doubts, *["compression"] * few)

    @property
    def good(self) -> bool:
        return not self.doubts

    @property
    def same_axis(self) -> bool:
        return self.axis == self.case.axis

    def error(self, name: str) -> float:
        """Estimate minus truth; NaN where there is no truth, or no estimate.

        A readout along the wrong axis is as wrong as the larger of both readouts; a global shutter has no axis.
        """
        estimate, true = self.estimates.get(name, np.nan), self.truth.get(name, np.nan)
        if name == READOUT and not self.same_axis:
            return max(estimate, -true, key=abs)
        return estimate - true

    def z(self, name: str) -> float:
        """Error over its standard deviation."""
        sigma = self.sigmas.get(name, np.nan)
        return float(np.clip(self.error(name) / max(sigma, 1e-300), -BEYOND, BEYOND)) if np.isfinite(sigma) else np.nan

    def inside(self, name: str) -> bool:
        """Whether the truth lies in the reported 95 % interval."""
        return abs(self.z(name)) <= SIGMAS_95

    def half_width(self, name: str) -> float:
        """Of the 95 % interval."""
        return SIGMAS_95 * self.sigmas.get(name, np.nan)

    @property
    def largest_z(self) -> float:
        """Over all that has a truth, the corners included."""
        values = [abs(self.z(name)) for name in PARAMETERS] + list(self.corners)
        return max((value for value in values if np.isfinite(value)), default=0.0)


def run_draw(drawn: Draw, frames_cache: Path | None = None) -> DrawnOutcome:
    """Renders a clip, or takes its frames from the cache, calibrates it with nothing but them and compares."""
    clip = clip_of(drawn)
    with tempfile.TemporaryDirectory() as scratch:
        folder = frames_of(drawn, clip, Path(scratch) if frames_cache is None else frames_cache)
        content = read_content(folder)
        bits = None if drawn.crf is None else bits_per_pixel(drawn, folder / VIDEO_NAME)
        began = time.perf_counter()
        try:
            found = calibrate(folder, fps=drawn.fps) if drawn.crf is None else calibrate(folder / VIDEO_NAME)
        except RsscError as error:
            return DrawnOutcome(drawn, content, "refused", reasons=(str(error),), bits_per_pixel=bits)
        return replace(compare(drawn, clip, content, found, time.perf_counter() - began), bits_per_pixel=bits)


def bits_per_pixel(drawn: Draw, video: Path) -> float:
    """Of the video of a clip."""
    return 8 * video.stat().st_size / (drawn.frames * drawn.width * drawn.height)


def compare(drawn: Draw, clip: Clip, content: Content, found: Calibration, seconds: float) -> DrawnOutcome:
    """The outcome of a calibration."""
    truth, lens = parameters_of(clip.camera), found.camera.lens
    if not drawn.exact or LENS_MODELS[drawn.lens].family != lens.family:
        # Parameters of different families do not mean the same; their projections are compared.
        truth = {READOUT: truth[READOUT]}
    pixels = grid(drawn.width, drawn.height)
    rays = clip.optics.unproject(pixels)
    known = found.status != "degenerate"
    off = projection_errors(pixels, rays, found)
    exposure, exposure_sigma = exposure_of(found)
    return DrawnOutcome(
        case=drawn,
        content=content,
        status=found.status,
        lens=lens.model,
        axis=found.camera.shutter.axis,
        truth=truth,
        estimates=parameters_of(found.camera) if known else {},
        sigmas={name: found.sigma(name) for name in PARAMETERS} if known else {},
        lens_parameters=tuple(lens.parameters.tolist()) if known else (),
        lens_covariance=_lens_covariance(found) if known else (),
        exposure=exposure,
        exposure_sigma=exposure_sigma,
        rays=tuple(tuple(round(float(x), 9) for x in ray) for ray in rays),
        errors_px=tuple(float(f"{x:.5g}") for x in off.lengths()) if known else (),
        sigmas_px=tuple(float(f"{x:.5g}") for x in off.sigmas()) if known else (),
        corners=tuple(round(off.z(i), 4) for i in CORNERS) if known else (),
        centre=round(off.z(CENTRE), 4) if known else float("nan"),
        reasons=found.reasons,
        notes=found.notes,
        rms_px=found.statistics.rms_px,
        seconds=round(seconds, 2),
    )


def _lens_covariance(found: Calibration) -> tuple[tuple[float, ...], ...]:
    names = found.camera.lens.parameter_names
    index = {name: found.parameters.index(name) for name in names if name in found.parameters}
    return tuple(
        tuple(float(found.covariance[index[a], index[b]]) if a in index and b in index else 0.0 for b in names)
        for a in names
    )


def exposure_of(found: Calibration) -> tuple[float | None, float | None]:
    """Estimated exposure and its standard deviation, where the calibration has them."""
    value = getattr(found, EXPOSURE, getattr(found.camera.shutter, EXPOSURE, None))
    if value is None:
        return None, None
    try:
        return float(value), found.sigma(EXPOSURE)
    except InputError:
        return float(value), None


def frames_of(drawn: Draw, clip: Clip, cache_folder: Path) -> Path:
    """The folder with the frames of a clip, PNG files or a video, and `Content`; rendered where it is not there yet."""

    def fill(folder: Path) -> None:
        middle: list[NDArray[np.uint8]] = []

        def frames() -> Iterator[NDArray[np.uint8]]:
            for index, frame in enumerate(stabilised_frames(clip) if drawn.stabilised else clip):
                if index == len(clip) // 2:
                    middle.append(frame)
                yield frame

        if drawn.crf is not None:
            write_video(frames(), folder / VIDEO_NAME, drawn.fps, drawn.crf, drawn.preset)
        else:
            write_images(frames(), folder)
        (folder / _CONTENT_NAME).write_text(json.dumps(asdict(content_of(clip, middle[0]))) + "\n")

    return filled_once(frames_folder(drawn, cache_folder), fill)


def frames_folder(drawn: Draw, cache_folder: Path) -> Path:
    """Where `frames_of` keeps the frames of a clip."""
    return cache_folder / f"{drawn.seed:05d}-{frames_key(drawn)}"


def read_content(folder: Path) -> Content:
    """Of the clip in a folder of `frames_of`."""
    return Content(**json.loads((folder / _CONTENT_NAME).read_text()))


def filled_once(folder: Path, fill: Callable[[Path], None]) -> Path:
    """A folder, filled where it is not there yet; it appears when it is complete."""
    if folder.exists():
        return folder
    partial_folder = Path(tempfile.mkdtemp(prefix=folder.name, suffix=".part", dir=_made(folder.parent)))
    fill(partial_folder)
    try:
        partial_folder.rename(folder)
    except OSError:  # another process was faster
        shutil.rmtree(partial_folder)
    return folder


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def frames_key(drawn: Draw) -> str:
    """Of a clip's frames: another one where the draw, or the code that makes frames from it, is another."""
    text = json.dumps(asdict(drawn), sort_keys=True) + _renderer_version()
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def _renderer_version() -> str:
    """Digest of the code of the simulation; comments do not count."""
    files = sorted(Path(rssc.simulation.__file__).parent.glob("*.py"))
    files += [Path(module.__file__ or "") for module in (ray_casting, texture)] + [Path(__file__).with_name("draws.py")]
    code = "".join(ast.dump(ast.parse(file.read_text())) for file in files)
    return hashlib.sha256((code + cv2.__version__).encode()).hexdigest()


def add_options(parser: ArgumentParser) -> None:
    """What `run_draws` takes from the command line."""
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="file to keep outcomes in; those found there are not run again")
    parser.add_argument("--frames-cache", type=Path, help="folder to keep rendered frames in, for runs of other code")


def run_draws(draws: Sequence[Draw], jobs: int, kept: Path | None, frames_cache: Path | None) -> Iterator[DrawnOutcome]:
    """Outcomes in the order of the draws; those found in the file `kept` are not run again."""
    task = partial(run_draw, frames_cache=frames_cache)
    return run_kept(task, draws, jobs, kept, _read_line, lambda outcome: json.dumps(asdict(outcome)))


def _read_line(line: str) -> tuple[Draw, DrawnOutcome]:
    outcome = read_outcome(line)
    return outcome.case, outcome


def read_outcome(line: str) -> DrawnOutcome:
    """An outcome as `run_draws` keeps it."""
    fields: dict[str, Any] = json.loads(line)
    fields["case"], fields["content"] = Draw(**fields["case"]), Content(**fields["content"])
    for name in ("rays", "lens_covariance"):
        fields[name] = tuple(tuple(row) for row in fields[name])
    for name in ("lens_parameters", "errors_px", "sigmas_px", "corners", "reasons", "notes"):
        fields[name] = tuple(fields[name])
    return DrawnOutcome(**fields)


def good_draws(seeds: Sequence[int], count: int, of_seed: Callable[[int], Draw]) -> list[Draw]:
    """The first draws that are good by what was drawn, whatever becomes of them; the blur is not asked.

    Args:
        seeds: To go through.
        count: How many are wanted.
        of_seed: Draws a clip.
    """
    found: list[Draw] = []
    for seed in seeds:
        drawn = of_seed(seed)
        if set(content_of(clip_of(drawn)).doubts) <= {"blur"}:
            found.append(drawn)
            if len(found) == count:
                return found
    raise InputError(f"only {len(found)} of {len(seeds)} seeds give good clips; {count} are wanted.")
