"""What was found wrong with a camera or its footage, by cause: the one registry of them.

Tests are where what they look at is: files (`footage.metadata`, `pipeline.metadata`), pictures (`footage.survey`),
times (`pipeline.times`), the adjusted camera and its motion (`pipeline.causes`), parts of the footage against each
other (`pipeline.agreement`). `docs/causes.md` shows each of them.
"""

from dataclasses import dataclass
from typing import NamedTuple


class Cause(NamedTuple):
    """Why an answer may be wrong, or had to be looked for in another way."""

    title: str
    """A few words."""
    remedy: str = ""
    """What to do, where there is something."""
    doubted: bool = True
    """Whether a result is at most weak then; otherwise it was put right, and is only said."""


CAUSES = {
    "electronic_stabilisation": Cause("electronic stabilisation", "switch stabilisation off and record again"),
    "steadied": Cause(
        "stabilised, or on a gimbal",
        "switch stabilisation off, take the camera off its gimbal and tilt and pan it in your hands",
    ),
    "optical_stabilisation": Cause(
        "optical stabilisation", "switch stabilisation off, or use another lens of the phone"
    ),
    "focus_breathing": Cause("focus breathing", "lock focus and zoom"),
    "zoom": Cause("zoom", "lock the zoom"),
    "vibration": Cause("vibration", "hold the camera in your hands, or on a softer mount"),
    "compression": Cause("strong compression", "record or export at a higher bit rate"),
    "misfit": Cause("no camera explains the tracks", "film a scene that stands still, with stabilisation off"),
    "interlacing": Cause("interlacing", "record in a progressive mode (p, not i)"),
    "slow_motion": Cause("slow motion", "give the frame rate at which the frames were taken"),
    "capture_rate": Cause("slow motion or time lapse that the file tells of", doubted=False),
    "time_lapse": Cause("time lapse", "record a plain video"),
    "other_camera": Cause("clips of several cameras", "calibrate each camera by itself"),
    "contradiction": Cause(
        "stretches contradict each other",
        "are all of one camera in one mode, neither stabilised nor zoomed? calibrate each by itself",
    ),
    "disagreement": Cause(
        "parts of the clip disagree",
        "is the footage stabilised, did the camera zoom or refocus, or are frames missing?",
    ),
    "uncertain": Cause("the footage tells too little"),
    "frame_times": Cause("frames taken at other times than the file says", doubted=False),
    "capture_jitter": Cause("frames taken unevenly", doubted=False),
    "dropped_frames": Cause("missing frames that no time stamp tells of", doubted=False),
    "missing_frames": Cause("gaps in the time stamps", doubted=False),
    "misplaced": Cause("frames out of order", doubted=False),
    "variable_rate": Cause("a frame rate that varies", doubted=False),
    "cadence": Cause("another frame rate than that of the camera", doubted=False),
    "repeats": Cause("repeated frames", doubted=False),
    "frozen": Cause("a picture that stands still", doubted=False),
    "cut": Cause("cuts", doubted=False),
    "short_piece": Cause("pieces too short to use", doubted=False),
    "bars": Cause("black bars", doubted=False),
    "overlay": Cause("words or logos in the picture", doubted=False),
    "same_clip": Cause("the same clip twice", doubted=False),
}
"""By their names."""


@dataclass(frozen=True)
class Finding:
    """One thing about a clip that its calibration must know or its user should."""

    cause: str
    """Its name in `CAUSES`."""
    words: str
    """What was found, and what was done about it, in plain sentences."""
    strength: float = 1.0
    """The measured amount over the one from which on it is said: 1 and more."""

    def __post_init__(self) -> None:
        assert self.cause in CAUSES, self.cause

    @property
    def doubted(self) -> bool:
        return CAUSES[self.cause].doubted

    @property
    def reason(self) -> str:
        """The words and what to do."""
        remedy = CAUSES[self.cause].remedy
        return f"{self.words.removesuffix('.')}: {remedy}" if remedy else self.words
