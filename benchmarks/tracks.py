"""How far tracks are from the truth on rendered clips, by age, and how many there are.

The truth of a track is the point of the world that its reference observation shows: the first one for the tracks as
they are found, the middle one for those that the calibration keeps. Limits are on the latter.
"""

import argparse
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.limits import Figures, Limit, check
from rssc.model import Lens, Tracks
from rssc.model.arrays import FloatArray, IntArray
from rssc.pipeline.calibrate import calibrate
from rssc.simulation.clip import Clip, ClipOptions, render_clip
from rssc.simulation.clip_files import write_clip
from rssc.tracking.refinement import reference_observations
from rssc.tracking.track import track

AGES = (1, 4, 8, 16, 32)
LIMITS = (
    Limit("median_px_age_1", most=0.04),
    Limit("median_px_age_16", most=0.06),
    Limit("fraction_over_1px", most=0.005),
    Limit("live_tracks", least=400),
)
"""Of the worst clip; about one and a half times what is measured, three times for the share of wrong tracks."""


@dataclass(frozen=True)
class TrackErrors:
    """Errors of every observation against the truth of its track."""

    tracks: Tracks
    ages: IntArray
    """(m,) frames between the observation and its reference."""
    errors_px: FloatArray
    """(m,) distance from the true position, infinite where the point cannot be seen; 0 for the reference itself."""

    def median_at(self, age: int) -> float:
        """Median error of the observations of an age, NaN where there are none."""
        rows = self.errors_px[self.ages == age]
        return float(np.median(rows)) if len(rows) else float("nan")

    @property
    def fraction_over_1px(self) -> float:
        """Share of the tracks that are ever more than a pixel off."""
        worst = np.zeros(self.tracks.point_count)
        np.maximum.at(worst, self.tracks.points, self.errors_px)
        return float(np.mean(worst > 1.0))

    @property
    def live_tracks(self) -> int:
        """Number of tracks in the frame that has the fewest."""
        return int(np.bincount(self.tracks.frames, minlength=self.tracks.frame_count).min())

    @property
    def error_in_sigmas(self) -> float:
        """Root mean square of error per axis over standard deviation, over errors below a pixel; 1 is right."""
        rows = (self.ages != 0) & (self.errors_px < 1.0)
        return float(np.sqrt(np.mean(self.errors_px[rows] ** 2 / (2.0 * self.tracks.sigmas[rows] ** 2))))


def track_errors(clip: Clip, tracks: Tracks, references: IntArray) -> TrackErrors:
    """Compares tracks with the truth of the clip they were found in.

    Args:
        clip: With the truth.
        tracks: To be judged.
        references: (p,) the observation of each track that defines its truth.
    """
    points = np.full((tracks.point_count, 3), np.nan)
    for frame in np.unique(tracks.frames[references]):
        rows = np.flatnonzero(tracks.frames[references] == frame)
        points[rows] = clip.world_points(int(frame), tracks.pixels[references[rows]])
    errors = np.full(len(tracks), np.inf)
    for frame in range(tracks.frame_count):
        rows = np.flatnonzero(tracks.frames == frame)
        pixels, _ = clip.observe(points[tracks.points[rows]], frame)
        distance = np.linalg.norm(pixels - tracks.pixels[rows], axis=1)
        # A point a hair behind an outline is still where its patch shows it: judge the position alone.
        errors[rows] = np.where(np.isfinite(distance), distance, np.inf)
    errors[references] = 0.0
    ages = np.abs(tracks.frames - tracks.frames[references][tracks.points])
    return TrackErrors(tracks, ages, errors)


def benchmark_clips(width: int, height: int, frame_count: int) -> dict[str, ClipOptions]:
    """The clips, by name."""
    focal = 0.45 * width
    fisheye = Lens("fisheye", focal, 0.99 * focal, 0.5 * width + 3.5, 0.5 * height - 4.5, (0.02, -0.01, 0.0, 0.0))
    plain = ClipOptions(width, height, frame_count)
    return {
        "hand-held pinhole": replace(plain, motion="hand_held", seed=1),
        "shaky pinhole": replace(plain, motion="shaky", seed=2, readout_ratio=0.93),
        "hand-held fisheye": replace(plain, lens=fisheye, motion="hand_held", seed=3, readout_ratio=-0.6),
        "shaky fisheye": replace(plain, lens=fisheye, motion="shaky", seed=4, exposure=0.2, exposure_samples=3),
    }


def solved_tracks(clip: Clip) -> Tracks:
    """The tracks that a calibration of the clip keeps."""
    with tempfile.TemporaryDirectory() as folder:
        write_clip(clip, folder, video=False)
        calibration = calibrate(Path(folder), fps=clip.options.frames_per_second)
    return calibration.stretches[0].scene.tracks


def measure(argv: list[str]) -> Figures:
    """Renders the clips, tracks them and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks tracks", description=__doc__)
    parser.add_argument("--frames", type=int, default=40, help="frames of each clip")
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--height", type=int, default=720)
    arguments = parser.parse_args(argv)
    ages = "".join(f"{f'age {age}':>9}" for age in AGES)
    print(f"median error in pixels against the truth, {arguments.width}x{arguments.height}, {arguments.frames} frames")
    print(f"{'clip':<20}{'tracks':<8}{ages}{'p95':>8}{'over 1 px':>11}{'error/sigma':>13}{'live':>6}{'number':>8}")
    results: list[TrackErrors] = []
    for name, options in benchmark_clips(arguments.width, arguments.height, arguments.frames).items():
        clip = render_clip(options)
        found = track(clip.frames)
        kept = solved_tracks(clip)
        rows = {
            "found": track_errors(clip, found, found.offsets[:-1]),
            "kept": track_errors(clip, kept, reference_observations(kept)),
        }
        results.append(rows["kept"])
        for kind, result in rows.items():
            medians = "".join(f"{result.median_at(age):9.3f}" for age in AGES)
            print(
                f"{name:<20}{kind:<8}{medians}{np.percentile(result.errors_px, 95):8.3f}"
                f"{100 * result.fraction_over_1px:9.2f} %{result.error_in_sigmas:13.2f}{result.live_tracks:6d}"
                f"{result.tracks.point_count:8d}",
                flush=True,
            )
    return {
        "median_px_age_1": round(max(r.median_at(1) for r in results), 4),
        "median_px_age_16": round(max(r.median_at(16) for r in results), 4),
        "fraction_over_1px": round(max(r.fraction_over_1px for r in results), 4),
        "live_tracks": min(r.live_tracks for r in results),
    }


def main(argv: list[str]) -> int:
    return check(measure(argv), LIMITS)
