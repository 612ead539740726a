"""The command line: `rssc demo | calibrate | simulate`. Commands without logic.

Exit codes: 0 fine, 2 bad input, 3 not calibratable from this footage.
"""

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console
from tyro.conf import Positional, arg

from rssc.errors import InputError, RsscError

Output = Annotated[Path, arg(aliases=["-o"])]


@dataclass(frozen=True)
class Demo:
    """Render a clip with known truth, calibrate it and show both. Needs no data."""

    output: Output = Path("rssc_demo")
    """Folder for the clip and the results."""
    seed: int = 1
    """Of the world and the motion."""

    def run(self, console: Console) -> int:
        from rssc.calibrate import calibrate
        from rssc.model import Lens
        from rssc.model.files import make_folder
        from rssc.outputs.files import write_results
        from rssc.outputs.terminal import print_calibration, stage_progress
        from rssc.simulation.clip import ClipOptions, render_clip
        from rssc.simulation.clip_files import VIDEO_NAME, write_clip

        began = time.perf_counter()
        folder = make_folder(self.output)
        video = folder / "clip" / VIDEO_NAME
        lens = Lens("radial", 512.0, 509.0, 324.0, 236.0, (-0.12, 0.03))
        clip = render_clip(ClipOptions(640, 480, 60, lens=lens, readout_ratio=0.62, seed=self.seed, colour=True))
        console.print(f"A room is filmed by a hand-held rolling-shutter camera, into {video}.", markup=False)
        with stage_progress(console) as progress:
            write_clip(clip, video.parent, video=True, progress=lambda done, total: progress("rendering", done / total))
            calibration = calibrate(video, progress=progress)
        write_results(calibration, folder)
        print_calibration(console, calibration, clip.camera)
        console.print(
            f"{time.perf_counter() - began:.0f} s; the clip with its truth is in {video.parent}, the calibration in "
            f"{folder}.\nNow your own video: rssc calibrate VIDEO -o OUT",
            markup=False,
        )
        return _exit_code(calibration)


@dataclass(frozen=True)
class Calibrate:
    """Tell a camera's intrinsics, lens distortion and readout time from a plain video.

    The clip should show a textured, still scene from a moving camera: walk around and turn the camera up, down and
    sideways; two to five seconds are enough. No zoom, no stabilisation, fixed focus.
    """

    source: Positional[Path]
    """A video file, or a folder of images."""
    output: Output
    """Folder for calibration.json, trajectory.tum and points.ply."""
    fps: float | None = None
    """Frames per second of a folder of images without time stamps in their names."""
    lens: Literal["auto", "pinhole", "radial", "opencv", "fisheye"] = "auto"
    """Lens model; auto chooses by evidence."""
    method: Literal["auto", "te", "ceq", "ceh", "dpq", "dph"] = "auto"
    """auto is our best estimator; the others are the methods of the paper as it has them (one knot a frame)."""
    frames: str | None = None
    """A:B, the first frame and one past the last; the most informative stretch of a long video where not given."""
    undistorted_from: str | None = None
    """FILE[:CAM], for images that were undistorted: the Kalibr camchain or OpenCV YAML that was used for it."""
    init: Path | None = None
    """Folder of a COLMAP model to start from."""

    def run(self, console: Console) -> int:
        from rssc.calibrate import calibrate
        from rssc.model.files import make_folder
        from rssc.outputs.files import write_results
        from rssc.outputs.terminal import print_calibration, stage_progress

        frames = parse_frames(self.frames)
        if not self.source.exists():
            raise InputError(f"{self.source} does not exist; give a video file or a folder of images.")
        folder = make_folder(self.output)
        with stage_progress(console) as progress:
            calibration = calibrate(
                self.source, progress=progress, fps=self.fps, lens=self.lens, method=self.method, frames=frames,
                undistorted_from=self.undistorted_from, init=self.init,
            )  # fmt: skip
        write_results(calibration, folder)
        print_calibration(console, calibration)
        console.print(f"Written to {folder}: calibration.json, trajectory.tum, points.ply", markup=False)
        return _exit_code(calibration)


@dataclass(frozen=True)
class Simulate:
    """Render a clip of a textured room with exact truth: truth.json and trajectory.tum beside the frames."""

    output: Output
    """Folder for the clip."""
    width: int = 640
    height: int = 480
    frames: int = 60
    """Number of frames."""
    fps: float = 30.0
    lens: Literal["pinhole", "radial", "opencv", "fisheye"] = "pinhole"
    """Lens model, with typical values for the image size."""
    readout_ratio: float = 0.55
    """Readout time over frame interval; negative reads from the bottom up."""
    motion: Literal["hand_held", "shaky", "drone", "pan", "rotation", "static"] = "hand_held"
    seed: int = 0
    noise: float = 1.5
    """Standard deviation of the image noise in grey levels."""
    exposure: float = 0.0
    """Exposure time as a share of the frame interval; 0 for no blur."""
    images: bool = False
    """PNG frames instead of an H.264 video."""

    def run(self, console: Console) -> int:
        from rssc.model.files import make_folder
        from rssc.outputs.terminal import stage_progress
        from rssc.simulation.clip import ClipOptions, render_clip, typical_lens
        from rssc.simulation.clip_files import write_clip

        folder = make_folder(self.output)
        clip = render_clip(
            ClipOptions(
                self.width, self.height, self.frames, self.fps, typical_lens(self.lens, self.width, self.height),
                self.readout_ratio, motion=self.motion, seed=self.seed, image_noise=self.noise, exposure=self.exposure,
                colour=True,
            )
        )  # fmt: skip
        with stage_progress(console) as progress:
            write_clip(
                clip, folder, video=not self.images, progress=lambda done, total: progress("rendering", done / total)
            )
        console.print(f"Written to {folder}: {len(clip)} frames, truth.json, trajectory.tum", markup=False)
        return 0


def parse_frames(text: str | None) -> tuple[int | None, int | None] | None:
    """(A, B) of "A:B", either of them optional."""
    if text is None:
        return None
    first, colon, last = text.partition(":")
    try:
        if not colon:
            raise ValueError
        return (int(first) if first else None, int(last) if last else None)
    except ValueError:
        raise InputError(f"frames are {text!r}; expected A:B, for instance 100:180.") from None


def _exit_code(calibration) -> int:
    return 3 if calibration.status == "degenerate" else 0


def main() -> None:
    """Entry point of the `rssc` command."""
    commands = {"demo": Demo, "calibrate": Calibrate, "simulate": Simulate}
    command = tyro.extras.subcommand_cli_from_dict(
        commands, prog="rssc", description="Rolling-shutter camera self-calibration from a plain video.",
        config=(tyro.conf.OmitArgPrefixes,),
    )  # fmt: skip
    try:
        sys.exit(command.run(Console()))
    except RsscError as error:
        message, code = str(error), error.exit_code
    except MemoryError:
        message, code = "not enough memory for these frames; choose fewer with --frames A:B.", 2
    except OSError as error:
        message, code = f"{error.filename or 'a file'}: {error.strerror or error}.", 2
    except KeyboardInterrupt:
        sys.exit(130)
    Console(stderr=True).print(f"rssc: {message}", highlight=False, soft_wrap=True, markup=False)
    sys.exit(code)


if __name__ == "__main__":
    main()
