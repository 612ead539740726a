"""What was found wrong with footage, by cause."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One thing about a clip that its calibration must know or its user should."""

    cause: str
    """Its name in one word, such as "bars" or "interlacing"."""
    words: str
    """What was found and what was done about it, in plain sentences."""
    strength: float
    """The measured amount over the one from which on it is said: 1 and more."""
