"""The whole flow on one page: from videos of one camera to its calibration.

choose stretches -> solve each by itself (`solve`) -> one camera for all (`together`) -> judge (`verdict`) -> `answer`
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rssc.errors import InputError, NotCalibratableError
from rssc.model.calibration import Calibration
from rssc.pipeline.result import answer, cannot_tell
from rssc.pipeline.stretch import CalibrateOptions, Solution, solve_stretch
from rssc.runtime.progress import Progress, Stages
from rssc.runtime.threads import thread_count


@dataclass(frozen=True)
class _Job:
    """A stretch to be solved in a process of its own."""

    source: Path
    frames: tuple[int, int]
    options: CalibrateOptions
    threads: int


def calibrate(
    source: Path | str | Sequence[Path | str], *, progress: Progress = lambda stage, share: None, **options: Any
) -> Calibration:
    """Calibrates the camera that took a video.

    Args:
        source: A video file, or a folder of images; or several of them, all from the same camera in the same mode.
        progress: Called with the name of the stage and the share of it that is done.
        **options: Fields of `CalibrateOptions`.
    """
    from rssc.footage.footage import choose_stretches, read_footage

    settings = CalibrateOptions(**options)
    sources = [Path(source)] if isinstance(source, Path | str) else [Path(one) for one in source]
    if not sources:
        raise InputError("there is no source; give a video file or a folder of images.")
    stage = Stages(progress)
    with stage("reading") as report:
        chosen: list[tuple[Path, tuple[int, int]]] = []
        notes: tuple[str, ...] = ()
        for path in sources:
            ranges, told = choose_stretches(path, fps=settings.fps, frames=settings.frames, report=report)
            chosen += [(path, frames) for frames in ranges]
            notes += told
        footage = None
        if len(chosen) == 1:
            path, frames = chosen[0]
            footage = read_footage(path, fps=settings.fps, frames=frames, report=report)
    try:
        if footage is not None:
            solutions = [solve_stretch(footage, sources[0], settings, stage)]
        else:
            with stage("solving stretches") as report:
                solutions, failures = _solve_all([_Job(path, frames, settings, 1) for path, frames in chosen], report)
            if not solutions:
                raise NotCalibratableError("; ".join(failures))
            _check_same_camera(solutions)
            notes += tuple(f"left out: {failure}" for failure in failures)
        return answer(solutions, settings, stage, notes)
    except NotCalibratableError as error:
        path, frames = chosen[0]
        footage = footage or read_footage(path, fps=settings.fps, frames=frames)
        return cannot_tell(footage.width, footage.height, footage.frame_interval_s, (str(error),), settings)


def _solve_job(job: _Job) -> Solution:
    from rssc.footage.footage import read_footage

    os.environ["RSSC_THREADS"] = str(job.threads)
    footage = read_footage(job.source, fps=job.options.fps, frames=job.frames)
    return solve_stretch(footage, job.source, job.options, Stages(lambda stage, share: None))


def _solve_all(jobs: list[_Job], report: Callable[[float], None]) -> tuple[list[Solution], list[str]]:
    """Solves stretches side by side; those that cannot tell are left out, with what they said."""
    found: dict[int, Solution] = {}
    failures = []
    workers = min(len(jobs), thread_count())
    # Not forked: threads of ours may be running.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(_solve_job, job): i for i, job in enumerate(jobs)}
        for done, future in enumerate(as_completed(futures)):
            try:
                found[futures[future]] = future.result()
            except BrokenProcessPool as error:
                raise InputError("memory ran out while solving stretches; choose fewer with --frames A:B.") from error
            except NotCalibratableError as error:
                job = jobs[futures[future]]
                failures.append(f"frames {job.frames[0]}:{job.frames[1]} of {job.source.name}: {error}")
            report((done + 1) / len(jobs))
    return [found[i] for i in sorted(found)], failures


def _check_same_camera(solutions: Sequence[Solution]) -> None:
    sizes = {(s.stretch.scene.camera.width, s.stretch.scene.camera.height) for s in solutions}
    if len(sizes) > 1:
        listed = " and ".join(f"{width} x {height}" for width, height in sorted(sizes))
        raise InputError(f"the sources have frames of {listed} pixels; expected one camera in one mode.")
    intervals = [s.frame_interval_s for s in solutions]
    if max(intervals) > 1.02 * min(intervals):
        rates = " and ".join(f"{1 / t:.2f}" for t in sorted({round(t, 5) for t in intervals}))
        raise InputError(f"the sources have {rates} frames per second; expected one camera in one mode.")
