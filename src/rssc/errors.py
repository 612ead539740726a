"""Errors that name the value, what was expected and what to do. The command line prints them as one line."""


class RsscError(Exception):
    """Root of all errors of ours; `exit_code` is what the command line returns."""

    exit_code = 2


class InputError(RsscError):
    """The input is missing, unreadable or inconsistent."""


class NotCalibratableError(RsscError):
    """The input is fine, but the camera cannot be estimated from it."""

    exit_code = 3
    cause = "uncertain"
    """Its name in `rssc.model.finding.CAUSES`."""


class UnexplainedTracksError(NotCalibratableError):
    """No motion of a rigid camera through a scene at rest explains how points move in the image."""

    cause = "misfit"
