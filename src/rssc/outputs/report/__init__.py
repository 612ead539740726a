"""report.html: the answer on top, then everything that shows whether to believe it."""

from rssc.outputs.report.report import write_report

__all__ = ["write_report"]
