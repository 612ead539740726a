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


def error_words(error: Exception) -> tuple[str, int] | None:
    """What a user is told of an error, in one line, and the exit code; None for a fault of our own."""
    if isinstance(error, RsscError):
        return str(error), error.exit_code
    if isinstance(error, MemoryError):
        return "not enough memory for these frames; choose fewer with --frames A:B.", 2
    if isinstance(error, OSError):
        return f"{error.filename or 'a file'}: {error.strerror or error}.", 2
    return None
