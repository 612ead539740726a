"""A catalog of rendered clips of drawn cameras, with broken clips, degenerate ones and a worker that is killed.

Every camera has a lens, a readout and a rate of its own; its clips have worlds and motions of their own. A third of the
cameras names itself in its files, a third is named by a table, a third by its folder. A Dask cluster of two processes
on this machine does the work, and one of them is killed under way. Counted: truths within the 95 % interval of their
camera's row, failures that are named, clips that are lost. Then some of the clips are calibrated again by one local
worker and by several, for clips per hour. CPU seconds tell the cost where the machine has other work; only an idle one
tells the efficiency of record.
"""

import argparse
import csv
import os
import signal
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import av
import numpy as np

from benchmarks.limits import Figures, Limit, check
from benchmarks.pool import map_in_processes
from rssc.api import catalog
from rssc.datasets.golden import PARAMETERS, parameters_of
from rssc.fleet.entry import Catalog, Entry
from rssc.io.cache import CACHE_VARIABLE
from rssc.model.camera import Camera, Shutter
from rssc.runtime.extras import import_extra
from rssc.simulation.clip import ClipOptions, render_clip
from rssc.simulation.clip_files import write_video
from rssc.simulation.draw_lens import draw_lens

LIMITS = (
    Limit("cameras_found", least=1.0),
    Limit("inside_95", least=0.88),
    Limit("ok_beyond_4_sigma", most=0),
    Limit("fine_clips_used", least=0.8),
    Limit("failures_named", least=1.0),
    Limit("lost", most=0),
    Limit("workers_killed", least=1),
    Limit("measured_again", most=0),
    Limit("efficiency_2_workers", least=0.9, optional=True),
)
"""12 cameras have up to 60 truths: 95 % of them, less two standard deviations of that share."""
_SIZES, _RATES = ((320, 240), (384, 216), (360, 240)), (24.0, 25.0, 30.0, 50.0)
_LENSES = ("pinhole", "radial", "radial", "opencv", "fisheye")
_MOTIONS = ("hand_held", "shaky", "drone")
_FRAMES = 40
_BAD = 3
"""Clips that are broken, and as many that determine nothing."""
_KILLED_AT = 0.3
"""Share of the clips that are done when a worker is killed."""
_FLEET = 10_000


@dataclass(frozen=True)
class DrawnCamera:
    """A camera of the fleet."""

    number: int
    camera: Camera
    rate: float

    @property
    def name(self) -> str:
        return f"Maker Model {self.number}"

    @property
    def folder(self) -> str:
        """Where its clips lie: a name that says nothing, where others tell its name."""
        return self.name if self.number % 3 == 2 else f"card{self.number}"


@dataclass(frozen=True)
class Film:
    """A clip to be rendered."""

    of: DrawnCamera
    seed: int
    still: bool
    """Whether it is to determine nothing."""
    path: Path


def draw_camera(number: int) -> DrawnCamera:
    """A camera by its number."""
    rng = np.random.default_rng([number, 90])
    width, height = _SIZES[rng.integers(len(_SIZES))]
    lens = draw_lens(rng, _LENSES[rng.integers(len(_LENSES))], width, height)
    readout = round(float(rng.uniform(0.2, 0.95) * rng.choice((1, 1, -1))), 4)
    return DrawnCamera(number, Camera(width, height, lens, Shutter(readout)), float(rng.choice(_RATES)))


def film(wanted: Film) -> Path:
    """Renders a clip, with the name of its camera among its tags where that is where it stands."""
    camera = wanted.of.camera
    clip = render_clip(
        ClipOptions(
            camera.width, camera.height, _FRAMES, wanted.of.rate, camera.lens, seed=wanted.seed, image_noise=1.0,
            readout_ratio=camera.shutter.readout_ratio,
            motion="static" if wanted.still else _MOTIONS[wanted.seed % len(_MOTIONS)],
        )
    )  # fmt: skip
    path = wanted.path
    path.parent.mkdir(parents=True, exist_ok=True)
    if wanted.of.number % 3:
        write_video(clip, path, wanted.of.rate)
        return path
    plain = path.with_suffix(".plain.mp4")
    write_video(clip, plain, wanted.of.rate)
    make, model = wanted.of.name.split(" ", 1)
    _tag(plain, path, {"com.android.manufacturer": make, "com.android.model": model})
    plain.unlink()
    return path


def _tag(source: Path, target: Path, tags: dict[str, str]) -> None:
    options = {"movflags": "use_metadata_tags"}
    with av.open(str(source)) as plain, av.open(str(target), "w", format="mp4", options=options) as copy:
        made: Any = copy  # untyped keywords
        stream = made.add_stream_from_template(plain.streams.video[0])
        copy.metadata.update(tags)
        for packet in plain.demux(plain.streams.video[0]):
            if packet.dts is not None:
                packet.stream = stream
                made.mux(packet)


def films_of(cameras: Sequence[DrawnCamera], count: int, folder: Path) -> list[Film]:
    """Clips of all cameras in turn, and those that determine nothing."""
    films = [(cameras[i % len(cameras)], 1000 + i, False, f"clip{i}.mp4") for i in range(count)]
    films += [(cameras[i % len(cameras)], 5000 + i, True, f"still{i}.mp4") for i in range(_BAD)]
    return [Film(of, seed, still, folder / of.folder / name) for of, seed, still, name in films]


def break_clips(folder: Path, whole: Path) -> list[Path]:
    """Files that are no clips: one cut off, an empty one, one that is something else."""
    data = whole.read_bytes()
    contents = {"cut.mp4": data[: len(data) // 3], "empty.mov": b"", "words.mkv": b"no video at all\n" * 100}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return [folder / name for name in contents]


def write_table(films: Sequence[Film], path: Path) -> None:
    """Names the cameras that are named by a table."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("path", "camera"))
        rows.writerows((one.path, one.of.name) for one in films if one.of.number % 3 == 1)


@contextmanager
def _without_cache() -> Generator[None]:
    """Nothing is taken from earlier runs: that is what is measured."""
    before = os.environ.get(CACHE_VARIABLE)
    os.environ[CACHE_VARIABLE] = ""
    try:
        yield
    finally:
        if before is None:
            del os.environ[CACHE_VARIABLE]
        else:
            os.environ[CACHE_VARIABLE] = before


def catalog_with_a_death(clips: Path, table: Path, output: Path) -> tuple[Catalog, int]:
    """The catalog by a cluster of two processes, one of which is killed; and how many were."""
    distributed = import_extra("distributed", "the benchmark")
    killed: list[int] = []
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs="CRITICAL"
    ) as cluster, distributed.Client(cluster) as client:  # fmt: skip

        def progress(stage: str, share: float) -> None:
            if stage == "calibrating" and share >= _KILLED_AT and not killed:
                number = next(iter(client.run(os.getpid).values()))
                os.kill(number, signal.SIGKILL)
                killed.append(number)

        found = catalog([clips], output, table=table, scheduler=cluster.scheduler_address, progress=progress)
    return found, len(killed)


def z_scores(drawn: DrawnCamera, entry: Entry) -> dict[str, float]:
    """Errors over their standard deviations; of a lens of another family the readout alone."""
    found = entry.calibration
    if found is None or entry.status == "degenerate":
        return {}
    same = found.camera.lens.family == drawn.camera.lens.family
    names = PARAMETERS if same else ("readout_ratio",)
    truth, values = parameters_of(drawn.camera), parameters_of(found.camera)
    return {name: (values[name] - truth[name]) / found.sigma(name) for name in names}


def judge(found: Catalog, cameras: Sequence[DrawnCamera], films: Sequence[Film], broken: Sequence[Path]) -> Figures:
    """Prints each camera against its truth, and each failure; returns the figures."""
    print(f"\n{'camera':16s} {'lens':18s} {'clips':>7s}  {'readout':>8s} {'truth':>8s} {'+- 95 %':>8s}  z  verdict")
    scores: list[float] = []
    beyond, rows = 0, 0
    for drawn in cameras:
        entries = [one for one in found.entries if one.mode.camera == drawn.name]
        usable = [one for one in entries if one.calibration is not None and one.status != "degenerate"]
        rows += len(entries) == len(usable) == 1
        for entry in usable:
            assert entry.calibration is not None
            of_camera = z_scores(drawn, entry)
            scores += of_camera.values()
            worst = max(of_camera, key=lambda name: abs(of_camera[name]))
            beyond += entry.status == "ok" and abs(of_camera[worst]) > 4
            shutter, sigma = entry.calibration.camera.shutter, entry.calibration.sigma("readout_ratio")
            lens = f"{drawn.camera.lens.model}: {entry.calibration.camera.lens.model}"
            print(
                f"{drawn.name:16s} {lens:18s} {entry.used:3d}/{len(entry.lines):<3d}  {shutter.readout_ratio:+8.4f} "
                f"{drawn.camera.shutter.readout_ratio:+8.4f} {1.96 * sigma:8.4f}  {of_camera[worst]:+5.1f} {worst:13s} "
                f"{entry.status} {'; '.join(entry.reasons)[:60]}"
            )
    lines = {Path(line.path): line for line in found.lines}
    bad = [*broken, *(one.path for one in films if one.still)]
    fine = [one.path for one in films if not one.still]
    print("\nclips that do not count:")
    for line in found.failures:
        print(f"  {Path(line.path).name:14s} {line.record.outcome:16s} {line.why[:110]}")
    named = [path for path in bad if path in lines and not lines[path].used and lines[path].why]
    return {
        "cameras": len(cameras),
        "clips": len(found.lines),
        "cameras_found": rows / len(cameras),
        "truths": len(scores),
        "inside_95": float(np.mean(np.abs(scores) <= 1.96)) if scores else float("nan"),
        "ok_beyond_4_sigma": beyond,
        "fine_clips_used": sum(lines[path].used for path in fine if path in lines) / len(fine),
        "failures_named": len(named) / len(bad),
        "lost": sum(path not in lines for path in (*bad, *fine)),
        "memory_mb": max(line.record.memory_bytes for line in found.lines) / 1e6,
    }


def throughput(paths: Sequence[Path], workers: int, output: Path) -> tuple[float, float]:
    """Seconds for all clips and CPU seconds of all of them, by so many local workers."""
    began = time.perf_counter()
    found = catalog(paths, output, jobs=workers)
    return time.perf_counter() - began, sum(line.record.cpu_seconds for line in found.lines)


def measure(argv: list[str]) -> Figures:
    parser = argparse.ArgumentParser(prog="python -m benchmarks fleet", description=__doc__)
    parser.add_argument("--clips", type=int, default=60, help="rendered clips, besides those that are bad")
    parser.add_argument("--cameras", type=int, default=12)
    parser.add_argument("--timed", type=int, default=12, help="clips for clips per hour; 0 to leave that out")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="numbers of local workers to compare")
    parser.add_argument("--jobs", type=int, default=2, help="processes that render")
    parser.add_argument("--rendered", type=Path, help="folder of rendered clips, kept from run to run")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as scratch, _without_cache():
        clips = (options.rendered or Path(scratch, "clips")).absolute()
        cameras = [draw_camera(i) for i in range(options.cameras)]
        films = films_of(cameras, options.clips, clips)
        list(map_in_processes(film, [one for one in films if not one.path.exists()], options.jobs))
        broken = break_clips(clips, films[0].path)
        table = Path(scratch, "clips.csv")
        write_table(films, table)
        began = time.perf_counter()
        found, killed = catalog_with_a_death(clips, table, Path(scratch, "catalog"))
        seconds = time.perf_counter() - began
        figures = {**judge(found, cameras, films, broken), "workers_killed": killed, "seconds": seconds}
        print(f"\n{len(found.lines)} clips by a cluster of 2 workers, {killed} of them killed: {seconds:.0f} s")
        began = time.perf_counter()
        again = catalog([clips], Path(scratch, "catalog"), table=table, jobs=1)
        changed = {line.path: line.record.seconds for line in again.lines} != {
            line.path: line.record.seconds for line in found.lines
        }
        figures |= {"measured_again": float(changed), "seconds_again": time.perf_counter() - began}
        print(f"the same again, from what is kept: {figures['seconds_again']:.0f} s")
        timed = [one.path for one in films if not one.still][: options.timed]
        return {**figures, **_rates(timed, options.workers, partial(Path, scratch))} if timed else figures


def _rates(paths: Sequence[Path], workers: Sequence[int], place: partial[Path]) -> dict[str, float]:
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    print(f"\n{len(paths)} clips of {_FRAMES} frames; load before it {load:.1f} on {os.cpu_count()} cores")
    print(
        f"{'workers':>7s} {'seconds':>8s} {'CPU s/clip':>10s} {'clips/h':>8s} {'efficiency':>10s}  {_FLEET} clips take"
    )
    rates: dict[int, float] = {}
    figures: dict[str, float] = {}
    for count in workers:
        seconds, cpu = throughput(paths, count, place(f"timed{count}"))
        rates[count] = 3600 * len(paths) / seconds
        efficiency = rates[count] / (count * rates[workers[0]] / workers[0])
        hours = _FLEET / rates[count]
        print(
            f"{count:7d} {seconds:8.1f} {cpu / len(paths):10.2f} {rates[count]:8.0f} {efficiency:10.2f}  {hours:.1f} h"
        )
        figures |= {f"clips_per_hour_{count}": rates[count], f"cpu_seconds_per_clip_{count}": cpu / len(paths)}
        if count > workers[0]:
            figures[f"efficiency_{count}_workers"] = efficiency
    slowest = figures[f"cpu_seconds_per_clip_{workers[0]}"] * _FLEET / 3600
    print(f"on paper: {_FLEET} such clips take {slowest:.0f} core hours, {slowest / 64:.1f} h on 64 idle cores")
    return {**figures, "core_hours_10000_clips": slowest}


def main(argv: list[str]) -> int:
    return check(measure(argv), LIMITS)
