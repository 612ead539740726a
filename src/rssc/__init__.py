"""Rolling-shutter camera self-calibration."""

__version__ = "0.1.0"
