"""Rendered clips for the benchmarks: what to film, the whole pipeline on it, and how far off it is.

Outcomes can be kept in a file, so that several benchmarks share them and an interrupted run goes on.
"""

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d
from scipy.spatial.transform import Rotation

from benchmarks.pool import run_kept
from rssc.datasets.golden import PARAMETERS, parameters_of
from rssc.errors import RsscError
from rssc.model.arrays import FloatArray
from rssc.model.calibration import Calibration
from rssc.model.covariance import SIGMAS_95
from rssc.pipeline.calibrate import calibrate
from rssc.simulation.clip import Clip, ClipOptions, render_clip, typical_lens
from rssc.simulation.clip_files import VIDEO_NAME, write_clip

MAX_READOUT_ERROR = 0.003
"""Of the readout ratio itself, or `MIN_READOUT_LIMIT` where that is more: what a good clip must reach."""
MIN_READOUT_LIMIT = 0.002
MAX_FOCAL_PERCENT = 0.1
MAX_CENTRE_PX = 1.0
_SMOOTHING_FRAMES = 8.0
_CROP = 1.12


@dataclass(frozen=True)
class Case:
    """One clip."""

    lens: str = "pinhole"
    readout: float = 0.55
    motion: str = "hand_held"
    seed: int = 0
    width: int = 640
    height: int = 480
    frames: int = 60
    axis: Literal["rows", "columns"] = "rows"
    world: str = "room"
    texture: float = 1.0
    stabilised: bool = False
    compressed: bool = False
    """An H.264 video instead of PNG frames."""

    def __str__(self) -> str:
        extra = [self.axis] * (self.axis != "rows") + [self.world] * (self.world != "room")
        extra += ["no texture"] * (self.texture < 0.5) + ["stabilised"] * self.stabilised
        extra += ["H.264"] * self.compressed
        return f"{self.lens:8s} {self.readout:5.2f} {self.motion:9s} {self.seed:4d} {' '.join(extra):10s}"

    def options(self) -> ClipOptions:
        return ClipOptions(
            self.width, self.height, self.frames, lens=typical_lens(self.lens, self.width, self.height),
            readout_ratio=self.readout, axis=self.axis, motion=self.motion, world=self.world, texture=self.texture,
            seed=self.seed,
        )  # fmt: skip

    def render(self) -> Clip:
        return render_clip(self.options())


@dataclass(frozen=True)
class Outcome:
    """Result of the pipeline on a clip."""

    case: Case
    status: str
    lens: str = ""
    direction: str = ""
    errors: dict[str, float] = field(default_factory=dict[str, float])
    """Estimate minus truth."""
    sigmas: dict[str, float] = field(default_factory=dict[str, float])
    truth: dict[str, float] = field(default_factory=dict[str, float])
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def percent(self, name: str) -> float:
        """Error in percent of the truth."""
        return 100 * self.errors.get(name, np.nan) / self.truth.get(name, np.nan)

    def in_sigmas(self, name: str) -> float:
        """Error over its standard deviation."""
        return self.errors.get(name, np.nan) / max(self.sigmas.get(name, np.nan), 1e-300)

    @property
    def accurate(self) -> bool:
        """Within the limits that good clips must reach: 0.3 % readout, 0.1 % focal length, 1 px."""
        readout_limit = max(MAX_READOUT_ERROR * abs(self.case.readout), MIN_READOUT_LIMIT)
        return (
            abs(self.errors.get("readout_ratio", np.nan)) <= readout_limit
            and max(abs(self.percent("fx")), abs(self.percent("fy"))) <= MAX_FOCAL_PERCENT
            and max(abs(self.errors["cx"]), abs(self.errors["cy"])) <= MAX_CENTRE_PX
        )

    def inside(self, name: str) -> bool:
        """Whether the truth lies in the reported 95 % interval."""
        return abs(self.in_sigmas(name)) <= SIGMAS_95


def run_case(case: Case) -> Outcome:
    """Renders one clip, calibrates it with nothing but its frames and compares."""
    clip = case.render()
    try:
        found = calibrate_clip(clip, compressed=case.compressed, stabilised=case.stabilised)
    except RsscError as error:
        return Outcome(case, "refused", reasons=(str(error),))
    truth, values = parameters_of(clip.camera), parameters_of(found.camera)
    return Outcome(
        case, found.status, found.camera.lens.model, found.camera.shutter.direction,
        {name: values[name] - truth[name] for name in PARAMETERS}, {name: found.sigma(name) for name in PARAMETERS},
        truth, found.reasons, found.notes,
    )  # fmt: skip


def calibrate_clip(clip: Clip, *, compressed: bool = False, stabilised: bool = False) -> Calibration:
    """Calibrates a clip from its frames: PNG files, or a compressed video with its own frame rate."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if compressed:
            write_clip(clip, folder, video=True)
            return calibrate(folder / VIDEO_NAME)
        for i, image in enumerate(stabilised_frames(clip) if stabilised else clip):
            cv2.imwrite(str(folder / f"{i:04d}.png"), image)
        return calibrate(folder, fps=clip.options.frames_per_second)


def stabilised_frames(clip: Clip) -> Iterator[NDArray[np.uint8]]:
    """The frames as a phone's stabiliser would show them: turned back to a smooth path, and cropped."""
    lens, size = clip.camera.lens, (clip.camera.width, clip.camera.height)
    intrinsics = np.array([[lens.fx, 0, lens.cx], [0, lens.fy, lens.cy], [0, 0, 1]])
    times = np.arange(len(clip)) + 0.5 * clip.camera.shutter.readout_ratio
    turns = Rotation.from_matrix(clip.motion.cam_from_world(times)[:, :, :3])
    smooth = Rotation.from_quat(gaussian_filter1d(_continuous(turns.as_quat()), _SMOOTHING_FRAMES, axis=0))
    margin = 0.5 * (_CROP - 1)
    crop = np.array([[_CROP, 0, -margin * size[0]], [0, _CROP, -margin * size[1]], [0, 0, 1]])
    for i, image in enumerate(clip):
        turn = (smooth[i] * turns[i].inv()).as_matrix()
        warp: FloatArray = crop @ intrinsics @ turn @ np.linalg.inv(intrinsics)
        yield np.asarray(cv2.warpPerspective(image, warp, size), dtype=np.uint8)


def _continuous(quaternions: FloatArray) -> FloatArray:
    """(n, 4) the same rotations with signs that do not jump."""
    signs = np.cumprod(np.concatenate([[1.0], np.sign((quaternions[1:] * quaternions[:-1]).sum(axis=1))]))
    return quaternions * signs[:, None]


def run_cases(cases: Sequence[Case], jobs: int, kept: Path | None) -> Iterator[Outcome]:
    """Outcomes in the order of the cases; those found in the file `kept` are not run again."""
    return run_kept(run_case, cases, jobs, kept, _read_outcome, lambda outcome: json.dumps(asdict(outcome)))


def _read_outcome(line: str) -> tuple[Case, Outcome]:
    fields: dict[str, Any] = json.loads(line)
    fields["case"] = Case(**fields["case"])
    fields["reasons"], fields["notes"] = tuple(fields["reasons"]), tuple(fields["notes"])
    return fields["case"], Outcome(**fields)
