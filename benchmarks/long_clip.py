"""A clip of 10,000 frames, which repeats the laps of `whole_clip`: memory, error, and every frame placed."""

import tempfile
from pathlib import Path

from benchmarks.limits import Figures, Limit, check
from benchmarks.loop_clip import loop_clip, rendered_loop, true_camera
from benchmarks.whole_clip import clip_parser, image_size, rendered, track_options

LIMITS = (
    Limit("peak_gb", most=3.0),
    Limit("unplaced", most=0),
    Limit("error_percent", most=0.5),
)
"""Memory in units of 1e9 bytes; the error as in `whole_clip`."""


def measure(argv: list[str]) -> Figures:
    parser = clip_parser("long_clip", __doc__)
    parser.add_argument("--long", type=int, default=10_000, help="frames of the long clip")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        clip, calibration = loop_clip(options.frames, *image_size(options)), work / "camera.json"
        true_camera(clip).save(calibration)
        video = rendered_loop(options.rendered or work / "rendered", clip, options.long)
        return rendered(clip, video, calibration, work / "long", options.long, track_options(options))


def main(argv: list[str]) -> int:
    return check(measure(argv), LIMITS)
