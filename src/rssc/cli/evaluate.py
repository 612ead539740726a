"""`rssc evaluate`: a calibration against the truth."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from rich.console import Console
from tyro.conf import Positional, arg


@dataclass(frozen=True)
class Evaluate:
    """Compare a calibration with a known camera, or with another calibration.

    Cameras are compared by their projection: how far apart, in pixels, they put a far point at places of the image
    after the best rotation, and what the error bars predict there. Parameters are shown where they have the same
    meaning in both lenses. The last line is the same as one JSON object.
    """

    calibration: Positional[Path]
    """calibration.json of `rssc calibrate`."""
    truth: Path
    """truth.json of `rssc simulate` (or any file with its image, lens and shutter blocks); another calibration.json,
    whose error bars then count, too; a Kalibr camchain (FILE or FILE:CAM); or an OpenCV YAML."""
    trajectory: Path | None = None
    """True trajectory as a TUM file; compared with the trajectory.tum beside the calibration, up to a similarity."""
    max_difference: float = 0.01
    """Poses further apart in time than so many seconds are not matched."""
    json_file: Annotated[Path | None, arg(name="json")] = None
    """File to write the JSON object to."""

    def run(self, console: Console) -> int:
        from rssc.io.files import write_text
        from rssc.outputs.evaluate import evaluate, print_evaluation
        from rssc.outputs.terminal import print_text

        evaluation = evaluate(self.calibration, self.truth, self.trajectory, self.max_difference)
        print_evaluation(console, evaluation)
        line = json.dumps(evaluation.document())
        if self.json_file is not None:
            write_text(self.json_file, line + "\n")
        print_text(console, line, wrap=False)
        return 0
