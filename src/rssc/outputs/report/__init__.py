"""report.html: the result on top, then everything that shows whether to trust it."""

from rssc.outputs.report.report import write_report

__all__ = ["write_report"]
