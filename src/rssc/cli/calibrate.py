"""`rssc calibrate`: the main job."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console
from tyro.conf import Positional

from rssc.cli.options import Output, exit_code, parse_frames
from rssc.errors import InputError, NotCalibratableError


@dataclass(frozen=True)
class Calibrate:
    """Tell a camera's intrinsics, lens distortion and readout time from a plain video.

    The clip should show a textured, still scene from a moving camera: walk around and turn the camera up, down and
    sideways; two to five seconds are enough. No zoom, no stabilisation, fixed focus.
    """

    sources: Positional[tuple[Path, ...]]
    """A video file or a folder of images; or several, all from one camera in one mode."""
    output: Output
    """Folder for calibration.json, report.html, trajectory.tum and points.ply."""
    fps: float | None = None
    """Frames per second of a folder of images without time stamps in their names."""
    lens: Literal["auto", "pinhole", "radial", "opencv", "fisheye"] = "auto"
    """Lens model; auto chooses by evidence."""
    method: Literal["auto", "te", "ceq", "ceh", "dpq", "dph"] = "auto"
    """auto is our best estimator; the others are the methods of the paper as it has them (one knot a frame)."""
    frames: str | None = None
    """A:B, the first frame and one past the last; the most informative stretches of a long video where not given."""
    undistorted_from: str | None = None
    """FILE[:CAM], for images that were undistorted: the Kalibr camchain or OpenCV YAML that was used for it."""
    init: Path | None = None
    """Folder of a COLMAP model to start from."""
    target: str | None = None
    """A board that the video shows, for a calibration in metres: a YAML file as Kalibr has it, or a word such as
    aprilgrid:6x6:0.088:0.3, checkerboard:7x6:0.03 or charuco:7x5:0.04:0.03:DICT_4X4_50."""

    def run(self, console: Console) -> int:
        from rssc.io.files import make_folder
        from rssc.outputs.result_folder import write_results
        from rssc.outputs.terminal import print_calibration, stage_progress
        from rssc.pipeline.calibrate import calibrate
        from rssc.pipeline.target import calibrate_target

        frames = parse_frames(self.frames)
        for source in self.sources:
            if not source.exists():
                raise InputError(f"{source} does not exist; give a video file or a folder of images.")
        if self.target is not None and (self.init is not None or self.method not in ("auto", "te")):
            raise InputError("--target starts by itself and solves with te; leave out --init and --method.")
        folder = make_folder(self.output)
        with stage_progress(console) as progress:
            shared = {"fps": self.fps, "lens": self.lens, "frames": frames, "undistorted_from": self.undistorted_from,
                      "progress": progress}  # fmt: skip
            if self.target is not None:
                if len(self.sources) > 1:
                    raise InputError(f"--target takes one source; there are {len(self.sources)}.")
                calibration = calibrate_target(next(iter(self.sources)), self.target, **shared)
            else:
                calibration = calibrate(self.sources, method=self.method, init=self.init, **shared)
        write_results(calibration, folder)
        if not calibration.stretches:
            raise NotCalibratableError("; ".join(calibration.reasons))
        print_calibration(console, calibration)
        console.print(f"Written to {folder}: calibration.json, report.html, trajectory.tum, points.ply", markup=False)
        return exit_code(calibration)
