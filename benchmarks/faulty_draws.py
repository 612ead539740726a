"""Drawn clips of cameras with faults: which faults, how strong, on which seeds, and how they are calibrated."""

import ast
import hashlib
import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

import rssc.simulation.faults
from benchmarks.drawn_clips import (
    DRAWN_MODELS,
    READOUT,
    DrawnOutcome,
    bits_per_pixel,
    compare,
    filled_once,
    frames_key,
    frames_of,
    read_content,
    read_outcome,
)
from benchmarks.draws import SEEDS, Content, Draw, clip_of, content_of, draw
from benchmarks.faulty_tracks import calibrate_tracks
from benchmarks.pool import run_kept
from rssc.errors import InputError, RsscError
from rssc.model.calibration import Calibration
from rssc.pipeline.calibrate import calibrate
from rssc.simulation.clip import Clip
from rssc.simulation.clip_files import VIDEO_NAME, write_images
from rssc.simulation.faults import Faults, FaultyClip, make_faults
from rssc.simulation.faults.capture import even_capture
from rssc.simulation.faults.files import write_stamped_images, write_stamped_video

REPORTED = range(5_000, 6_000)
"""Seeds of the benchmark."""
FITTED = SEEDS["fit"][5_000:]
"""Seeds on which limits of the causes are fitted."""
assert all(set(REPORTED).isdisjoint(seeds) for seeds in SEEDS.values())

CLEAN = "clean"
OF_FILES = frozenset({"tagged_slow_motion"})
"""Faults that only a file tells: tracks do not have them."""
_MOTIONS = ("hand_held", "shaky", "walking")
_FRAMES = 60
_USUAL_READOUT_S = 0.035
"""Of clips without a fault at the most; hardly a sensor that films needs longer."""
_SLOWEST_READOUT_S = 0.05
"""Video is read faster: 24 frames per second leave 42 ms. A longer readout tells that the file plays too slowly."""
_USUAL_RATE = 30.5
"""Frames per second up to which cameras film that are not meant to be slowed down."""


@dataclass(frozen=True)
class FaultyDraw:
    """A drawn clip and what is wrong with it."""

    drawn: Draw
    fault: str = CLEAN
    """One of `rssc.simulation.faults.FAULTS`, or none."""
    strength: float = 0.0
    rendered: bool = True
    """Whether it is calibrated from its frames; otherwise from simulated tracks, see `faulty_tracks`."""

    def __str__(self) -> str:
        return f"{self.fault:22s} {self.strength:7.4g} {self.drawn}"

    @property
    def tellable(self) -> bool:
        """Whether footage and file can tell the fault at all.

        Untagged slow motion shows by an impossible readout; tagged by a capture rate that is no usual one: otherwise
        the camera may have left out frames in poor light.
        """
        played = abs(self.drawn.readout) / self.drawn.fps * self.strength
        if self.fault == "tagged_slow_motion":
            return self.drawn.fps > _USUAL_RATE
        return self.fault != "slow_motion" or played > _SLOWEST_READOUT_S

    def faults(self, clip: Clip) -> Faults:
        """What is wrong with the clip."""
        if self.fault == CLEAN:
            return Faults(even_capture(len(clip)))
        return make_faults(self.fault, self.strength, clip.motion, clip.camera, len(clip), [self.drawn.seed, 20])


@dataclass(frozen=True)
class FaultyOutcome:
    """Result of the pipeline on such a clip."""

    case: FaultyDraw
    outcome: DrawnOutcome
    """The readout is the time in seconds over the true frame interval: a wrong rate makes it wrong."""
    causes: tuple[str, ...]
    """That the verdict names, the first one first."""


def base_draws(count: int, seeds: Sequence[int], strengths: Mapping[str, Sequence[float]]) -> list[Draw]:
    """The first clips that determine a camera of a known lens, and can have every fault at every strength.

    Args:
        count: How many are wanted.
        seeds: To go through.
        strengths: Of every fault; the last is the largest.
    """
    found: list[Draw] = []
    for seed in seeds:
        drawn = _base(seed)
        clip = clip_of(drawn)
        strongest = (FaultyDraw(drawn, fault, of_fault[-1]) for fault, of_fault in strengths.items())
        if all(_can_be_made(case, clip) for case in strongest) and not content_of(clip).doubts:
            found.append(drawn)
            if len(found) == count:
                return found
    raise InputError(f"only {len(found)} of {len(seeds)} seeds give good clips; {count} are wanted.")


def _can_be_made(case: FaultyDraw, clip: Clip) -> bool:
    """Whether a motion has as much fast rotation as a stabiliser is to take back, within what the lens sees."""
    try:
        faults = case.faults(clip)
        return faults.stabiliser is None or faults.stabiliser.margin() > 0
    except InputError:
        return False


def _base(seed: int) -> Draw:
    models = DRAWN_MODELS
    drawn = draw(
        seed,
        lens=models[seed % len(models)],
        motion=_MOTIONS[seed // len(models) % len(_MOTIONS)],
        movers=0,
        frames=_FRAMES,
    )
    seconds = abs(drawn.readout) / drawn.fps
    return replace(
        drawn,
        readout=drawn.readout if abs(drawn.readout) >= 0.2 and seconds <= _USUAL_READOUT_S else 0.5,
        # Blur is asked about elsewhere, and long exposures take long to render.
        exposure=min(drawn.exposure, 0.1),
        crf=None if drawn.crf is None else min(drawn.crf, 24),
    )


def run_faulty(case: FaultyDraw, cache_to: Path | None) -> FaultyOutcome:
    """Renders a clip with its fault, or takes its frames from the cache, calibrates it and compares.

    Args:
        case: The clip.
        cache_to: Folder to keep frames in.
    """
    drawn, clip = case.drawn, clip_of(case.drawn)
    if not case.rendered:
        content, began = content_of(clip), time.perf_counter()
        found = calibrate_tracks(clip, case.faults(clip), drawn.seed)
        return _outcome(case, clip, content, found, time.perf_counter() - began)
    with tempfile.TemporaryDirectory() as scratch:
        folder = faulty_frames(case, clip, Path(scratch) if cache_to is None else cache_to)
        content = read_content(folder) if case.fault == CLEAN else content_of(clip)
        began = time.perf_counter()
        video = folder / VIDEO_NAME
        # Names of evenly taken frames are no time stamps: the user tells the rate.
        fps = None if case.fault == "stamp_jitter" else drawn.fps
        try:
            found = calibrate(video) if video.exists() else calibrate(folder, fps=fps)
        except RsscError as error:
            outcome = DrawnOutcome(drawn, content, "refused", reasons=(str(error),))
            return FaultyOutcome(case, outcome, ())
        made = _outcome(case, clip, content, found, time.perf_counter() - began)
        bits = bits_per_pixel(drawn, video) if video.exists() else None
        return replace(made, outcome=replace(made.outcome, bits_per_pixel=bits))


def _outcome(case: FaultyDraw, clip: Clip, content: Content, found: Calibration, seconds: float) -> FaultyOutcome:
    outcome = compare(case.drawn, clip, content, found, seconds)
    return FaultyOutcome(case, in_true_intervals(outcome, found), found.causes)


def in_true_intervals(outcome: DrawnOutcome, found: Calibration) -> DrawnOutcome:
    """The outcome with its readout in true frame intervals instead of those that the file, or the calibration, says."""
    factor = found.frame_interval_s * outcome.case.fps

    def scaled(values: dict[str, float]) -> dict[str, float]:
        return {name: value * factor if name == READOUT else value for name, value in values.items()}

    return replace(outcome, estimates=scaled(outcome.estimates), sigmas=scaled(outcome.sigmas))


def faulty_frames(case: FaultyDraw, clip: Clip, cache_folder: Path) -> Path:
    """The folder with the frames of a clip: PNG files, or a video; rendered where it is not there yet."""
    drawn = case.drawn
    if case.fault == CLEAN:
        return frames_of(drawn, clip, cache_folder)
    faulty = FaultyClip(clip, case.faults(clip))
    capture = faulty.faults.capture
    stamps = capture.stamps_s(drawn.fps)

    def fill(folder: Path) -> None:
        if drawn.crf is not None or capture.slowness != 1:
            tags = {name: value.format(fps=drawn.fps) for name, value in capture.tags.items()}
            crf = 20 if drawn.crf is None else drawn.crf
            write_stamped_video(faulty, folder / VIDEO_NAME, stamps, tags, crf, drawn.preset)
        elif case.fault == "stamp_jitter":
            write_stamped_images(faulty, folder, stamps)
        else:
            write_images(faulty, folder)

    text = f"{frames_key(drawn)} {case.fault} {case.strength!r} {_faults_version()}"
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    return filled_once(cache_folder / f"{drawn.seed:05d}-{case.fault}-{key}", fill)


@cache
def _faults_version() -> str:
    """Digest of the code of the faults; comments do not count."""
    files = sorted(Path(rssc.simulation.faults.__file__).parent.glob("*.py"))
    code = "".join(ast.dump(ast.parse(file.read_text())) for file in files)
    return hashlib.sha256(code.encode()).hexdigest()


def run_faulty_draws(
    cases: Sequence[FaultyDraw], jobs: int, kept: Path | None, frames_cache: Path | None
) -> Iterator[FaultyOutcome]:
    """Outcomes in the order of the cases; those found in the file `kept` are not run again."""
    task = partial(run_faulty, cache_to=frames_cache)
    return run_kept(task, cases, jobs, kept, _read_line, lambda outcome: json.dumps(asdict(outcome)))


def _read_line(line: str) -> tuple[FaultyDraw, FaultyOutcome]:
    outcome = read_faulty(line)
    return outcome.case, outcome


def read_faulty(line: str) -> FaultyOutcome:
    """An outcome as `run_faulty_draws` keeps it."""
    fields: dict[str, Any] = json.loads(line)
    case: dict[str, Any] = fields["case"]
    drawn = FaultyDraw(Draw(**case["drawn"]), case["fault"], case["strength"], case.get("rendered", True))
    return FaultyOutcome(drawn, read_outcome(json.dumps(fields["outcome"])), tuple(fields["causes"]))


def faulty_cases(
    bases: Sequence[Draw], strengths: Mapping[str, Sequence[float]], clips: int, clean: int, rendered: bool
) -> list[FaultyDraw]:
    """Clean clips, and clips of every fault on the same draws, so that each has its clean twin.

    Args:
        bases: At least as many as clean clips.
        strengths: Of every fault, from harmless to gross.
        clips: Of every fault; its strengths are spread over them.
        clean: Clean ones.
        rendered: Whether they are rendered.
    """
    if clean == 0:
        return []
    twins = [FaultyDraw(drawn, rendered=rendered) for drawn in bases[:clean]]
    # Every fault begins on another of its clips, so that the strongest of all are not on the same few.
    faulty = (
        FaultyDraw(
            bases[(number * clips + (i + number) % clips) % clean],
            fault,
            of_fault[int((i + 0.5) * len(of_fault) / clips)],
            rendered,
        )
        for number, (fault, of_fault) in enumerate(strengths.items())
        for i in range(clips)
        if rendered or fault not in OF_FILES
    )
    return list(chain(twins, faulty))
