"""What a video file says about the camera that took it."""

from dataclasses import dataclass
from typing import Literal

Stabilisation = Literal["off", "electronic", "on"]
"""As the file says; "on" where it does not say of which kind."""

_STABILISATION = {
    "off": "stabilisation off",
    "electronic": "electronic stabilisation on",
    "on": "stabilisation on",
}


@dataclass(frozen=True)
class Metadata:
    """What a video file says about its camera and its settings: claims to compare with the footage, not measurements.

    Nothing personal: no places, no dates, no serial numbers.
    """

    make: str = ""
    """Who made the camera; empty where the file does not say, like all words here."""
    model: str = ""
    lens: str = ""
    """Lens, field of view or zoom, in the camera's words."""
    capture_rate: float | None = None
    """Frames per second that the sensor took; None where the file does not say, like all numbers here."""
    time_lapse: bool = False
    """Whether the file says that it is a time lapse."""
    readout_time_s: float | None = None
    """Readout time of a frame, in seconds."""
    exposure_range_s: tuple[float, float] | None = None
    """Shortest and longest exposure time in the file, in seconds."""
    stabilisation: Stabilisation | None = None
    stabilisation_setting: str = ""
    """What the camera calls it."""
    gyro: bool = False
    """Whether the file carries data of a gyroscope."""

    @property
    def camera(self) -> str:
        """Make and model."""
        if self.model.lower().startswith(self.make.lower()):
            return self.model or self.make
        return f"{self.make} {self.model}".strip()

    @property
    def settings(self) -> str:
        """Of the camera, in one line: what changes its lens, its readout or its rate."""
        return ", ".join(filter(None, [self.lens, self._rate, self._stabilisation]))

    @property
    def words(self) -> str:
        """All of it in one line; empty where the file says nothing."""
        parts = [
            self.camera,
            self.lens,
            self._rate,
            "" if self.readout_time_s is None else f"readout {1e3 * self.readout_time_s:.2f} ms",
            "" if self.exposure_range_s is None else f"exposure {exposure_range_words(*self.exposure_range_s)}",
            self._stabilisation,
            "gyro data" if self.gyro else "",
        ]
        return ", ".join(part for part in parts if part)

    @property
    def _rate(self) -> str:
        captured = "" if self.capture_rate is None else f"captured at {self.capture_rate:.6g} frames per second"
        return ", ".join(filter(None, [captured, "a time lapse" if self.time_lapse else ""]))

    @property
    def _stabilisation(self) -> str:
        setting = f" ({self.stabilisation_setting})" if self.stabilisation_setting else ""
        return "" if self.stabilisation is None else f"{_STABILISATION[self.stabilisation]}{setting}"


def exposure_range_words(shortest_s: float, longest_s: float) -> str:
    """Exposure times as photographers write them: "1/240 s", or "1/1000 to 1/240 s"."""
    shortest, longest = (f"1/{1 / time:.0f}" if time < 0.4 else f"{time:.1f}" for time in (shortest_s, longest_s))
    return f"{shortest} s" if shortest == longest else f"{shortest} to {longest} s"
