"""`rssc evaluate`: a calibration against the truth."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from rssc.cli.options import Printing, PrintingOptions
from rssc.outputs.options import EvaluateOptions

if TYPE_CHECKING:
    from rssc.cli.terminal import Terminal


@dataclass(frozen=True)
class Evaluate:
    """Compare a calibration with a known camera, or with another calibration.

    Cameras are compared by their projection: how far apart, in pixels, they put a far point at places of the image
    after the best rotation, and what the error bars predict there. Parameters are shown where they have the same
    meaning in both lenses. The last line is the same as one JSON object; with --json it is the only one.
    """

    calibration: Positional[Path]
    """calibration.json of `rssc calibrate`, with trajectory.tum beside it where trajectories are compared."""
    truth: Annotated[Path, arg(metavar="FILE")]
    """truth.json of `rssc simulate` (or any file with its image, lens and shutter blocks); another calibration.json,
    whose error bars then count, too; a Kalibr camchain (FILE or FILE:CAM); or an OpenCV YAML."""
    options: Annotated[EvaluateOptions, arg(name="comparison")] = field(default_factory=EvaluateOptions)
    printing: PrintingOptions = field(default_factory=Printing)

    def run(self, terminal: "Terminal") -> int:
        from rssc.api import evaluate
        from rssc.outputs.evaluate import print_evaluation

        evaluation = evaluate(self.calibration, self.truth, self.options)
        print_evaluation(terminal.console, evaluation)
        terminal.say(json.dumps(evaluation.document()), wrap=False)
        terminal.give(evaluation.document())
        return 0
