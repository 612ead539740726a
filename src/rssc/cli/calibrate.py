"""`rssc calibrate`: the main job."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console
from tyro.conf import Positional

from rssc.cli.options import Output, exit_code, parse_frames
from rssc.errors import InputError


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
        return exit_code(calibration)
