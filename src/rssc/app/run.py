"""A run: a video, how to calibrate it, and the last job. As JSON, these are run.json and what the page is told."""

import time
from fractions import Fraction
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from rssc.errors import InputError
from rssc.pipeline.options import CalibrateOptions

Kind = Literal["check", "calibrate", "rectify"]
State = Literal["queued", "running", "done", "failed", "cancelled"]
KINDS: tuple[Kind, ...] = ("check", "calibrate", "rectify")


class Options(BaseModel):
    """How to calibrate, as the page's form has it."""

    model_config = ConfigDict(extra="forbid")

    lens: str = "auto"
    fps: str = ""
    """A number, also as a fraction; empty for that of the file."""
    first: int | None = None
    """First frame."""
    last: int | None = None
    """One past the last frame."""

    def chosen(self) -> CalibrateOptions:
        """The options of `rssc.calibrate`.

        Raises:
            InputError: A value is none that they take.
        """
        try:
            fps = float(Fraction(self.fps.strip())) if self.fps.strip() else None
        except (ValueError, ZeroDivisionError):
            raise InputError(f"fps is {self.fps!r}; expected a number, for instance 29.97 or 30000/1001.") from None
        frames = None if self.first is None and self.last is None else (self.first, self.last)
        return CalibrateOptions(fps=fps, frames=frames, lens=self.lens)

    def same_frames(self, other: "Options") -> bool:
        """Whether a check with the one says the same with the other."""
        return (self.fps, self.first, self.last) == (other.fps, other.first, other.last)


class Stage(BaseModel):
    """One stage of a job."""

    name: str
    share: float = 0.0
    began: float = Field(default_factory=time.time)
    ended: float | None = None


class Job(BaseModel):
    """A piece of work on a run."""

    kind: Kind
    state: State = "queued"
    queued: float = Field(default_factory=time.time)
    began: float | None = None
    ended: float | None = None
    stages: list[Stage] = []
    error: str = ""
    """In the words of the command line."""

    @property
    def active(self) -> bool:
        """Whether it waits or runs."""
        return self.state in ("queued", "running")


class Run(BaseModel):
    """A video, and what was done with it."""

    id: str
    name: str
    """As the user has it; may hold any character."""
    file: str
    """Its name on disk."""
    bytes: int
    created: float = Field(default_factory=time.time)
    options: Options = Field(default_factory=Options)
    job: Job | None = None
    """The last one."""
