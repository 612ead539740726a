"""Rendered clips for the benchmarks: what to film, the whole pipeline on it, and how far off it is.

Outcomes can be kept in a file, so that several benchmarks share them and an interrupted run goes on.
"""

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

NAMES = ("fx", "fy", "cx", "cy", "readout_ratio")


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
    axis: str = "rows"
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


@dataclass(frozen=True)
class Outcome:
    """What the pipeline said about a clip."""

    case: Case
    status: str
    lens: str = ""
    direction: str = ""
    errors: dict[str, float] = field(default_factory=dict)
    """Estimate minus truth."""
    sigmas: dict[str, float] = field(default_factory=dict)
    truth: dict[str, float] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def percent(self, name: str) -> float:
        """Error in percent of the truth."""
        return 100 * self.errors.get(name, np.nan) / self.truth.get(name, np.nan)

    def in_sigmas(self, name: str) -> float:
        return self.errors.get(name, np.nan) / max(self.sigmas.get(name, np.nan), 1e-300)

    @property
    def accurate(self) -> bool:
        """Within the limits that good clips must reach: 0.3 % readout, 0.1 % focal length, 1 px."""
        return (
            abs(self.errors.get("readout_ratio", np.nan)) <= max(0.003 * abs(self.case.readout), 0.002)
            and max(abs(self.percent("fx")), abs(self.percent("fy"))) <= 0.1
            and max(abs(self.errors["cx"]), abs(self.errors["cy"])) <= 1.0
        )

    def inside(self, name: str) -> bool:
        """Whether the truth lies in the reported 95 % interval."""
        return abs(self.in_sigmas(name)) <= 1.96


def run_case(case: Case) -> Outcome:
    """Renders one clip, calibrates it with nothing but its frames and compares."""
    # One thread per process: the cases themselves run side by side.
    os.environ["RSSC_THREADS"] = "1"
    import cv2

    from rssc.errors import RsscError
    from rssc.pipeline.calibrate import calibrate
    from rssc.simulation.clip import ClipOptions, render_clip, typical_lens
    from rssc.simulation.clip_files import VIDEO_NAME, write_clip

    clip = render_clip(
        ClipOptions(case.width, case.height, case.frames, lens=typical_lens(case.lens, case.width, case.height),
                    readout_ratio=case.readout, axis=case.axis, motion=case.motion, world=case.world,  # type: ignore[arg-type]
                    texture=case.texture, seed=case.seed)
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        source, fps = Path(name), clip.options.frames_per_second
        if case.compressed:
            write_clip(clip, source, video=True)
            source, fps = source / VIDEO_NAME, None
        else:
            for i, image in enumerate(_stabilised(clip) if case.stabilised else clip):
                cv2.imwrite(str(source / f"{i:04d}.png"), image)
        try:
            found = calibrate(source, fps=fps)
        except RsscError as error:
            return Outcome(case, "refused", reasons=(str(error),))
    truth = {name: getattr(clip.camera.lens, name) for name in NAMES[:4]} | {"readout_ratio": case.readout}
    values = {name: getattr(found.camera.lens, name) for name in NAMES[:4]}
    values["readout_ratio"] = found.camera.shutter.readout_ratio
    return Outcome(
        case, found.status, found.camera.lens.model, found.camera.shutter.direction,
        {name: values[name] - truth[name] for name in NAMES}, {name: found.sigma(name) for name in NAMES}, truth,
        found.reasons, found.notes,
    )  # fmt: skip


def _stabilised(clip) -> Iterator[np.ndarray]:
    """The frames as a phone's stabiliser would show them: turned back to a smooth path, and cropped."""
    import cv2
    from scipy.ndimage import gaussian_filter1d
    from scipy.spatial.transform import Rotation

    lens, size = clip.camera.lens, (clip.camera.width, clip.camera.height)
    intrinsics = np.array([[lens.fx, 0, lens.cx], [0, lens.fy, lens.cy], [0, 0, 1]])
    times = np.arange(len(clip)) + 0.5 * clip.camera.shutter.readout_ratio
    turns = Rotation.from_matrix(clip.motion.cam_from_world(times)[:, :, :3])
    smooth = Rotation.from_quat(gaussian_filter1d(_continuous(turns.as_quat()), 8.0, axis=0))
    crop = np.array([[1.12, 0, -0.06 * size[0]], [0, 1.12, -0.06 * size[1]], [0, 0, 1]])
    for i, image in enumerate(clip):
        turn = (smooth[i] * turns[i].inv()).as_matrix()
        yield cv2.warpPerspective(image, crop @ intrinsics @ turn @ np.linalg.inv(intrinsics), size)


def _continuous(quaternions: np.ndarray) -> np.ndarray:
    signs = np.cumprod(np.concatenate([[1.0], np.sign((quaternions[1:] * quaternions[:-1]).sum(axis=1))]))
    return quaternions * signs[:, None]


def run_cases(cases: Sequence[Case], jobs: int, kept: Path | None) -> Iterator[Outcome]:
    """Outcomes in the order of the cases; those found in the file `kept` are not run again."""
    known: dict[Case, Outcome] = {}
    if kept is not None and kept.exists():
        known = {outcome.case: outcome for outcome in map(_outcome, kept.read_text().splitlines())}
    missing = [case for case in cases if case not in known]
    with ProcessPoolExecutor(jobs) as pool:
        running = pool.map(run_case, missing)
        for case in cases:
            if case not in known:
                known[case] = next(running)
                if kept is not None:
                    with kept.open("a") as file:
                        file.write(json.dumps(asdict(known[case])) + "\n")
            yield known[case]


def _outcome(line: str) -> Outcome:
    fields = json.loads(line)
    fields["case"] = Case(**fields["case"])
    fields["reasons"], fields["notes"] = tuple(fields["reasons"]), tuple(fields["notes"])
    return Outcome(**fields)
