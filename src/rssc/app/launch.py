"""Starts the server of the page on this machine, and a browser that shows it."""

import os
import secrets
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import platformdirs
import uvicorn

from rssc.app.server import make_app
from rssc.errors import InputError
from rssc.io.files import make_folder

_HOST = "127.0.0.1"
_LOCK_NAME = "lock"
_GRACE_SECONDS = 1
"""For answers that are being sent when the server ends."""


def launch(
    folder: Path | None, port: int | None, limit_bytes: int, browser: bool, tell: Callable[[str, Path], None]
) -> None:
    """Serves the page until the server is interrupted.

    Args:
        folder: For videos and results; that of the user's data where not given.
        port: To listen on; any that is free where not given.
        limit_bytes: Of a video.
        browser: Whether to open a browser.
        tell: Called with the address and the folder when both are known.
    """
    place = platformdirs.user_data_path("rssc") / "app" if folder is None else folder.absolute()
    made = not place.exists()
    make_folder(place)
    if made:
        # Videos are the user's own.
        place.chmod(0o700)
    with _alone(place), _listen(port) as listener:
        token = secrets.token_urlsafe(24)
        app = make_app(place, token, limit_bytes)
        address = f"http://{_HOST}:{listener.getsockname()[1]}"
        tell(f"{address}/{token}/", place)
        server = uvicorn.Server(
            uvicorn.Config(
                app, log_level="error", access_log=False, server_header=False, lifespan="on",
                timeout_graceful_shutdown=_GRACE_SECONDS,
            )
        )  # fmt: skip
        if browser and _has_screen():
            threading.Thread(target=webbrowser.open, args=[address + app.ticket_path], daemon=True).start()
        with _ended_by_signals():
            server.run(sockets=[listener])


def _listen(port: int | None) -> socket.socket:
    if port is not None and not 0 < port < 65536:
        raise InputError(f"port is {port}; expected 1 to 65535.")
    try:
        return socket.create_server((_HOST, port or 0))
    except OSError as error:
        raise InputError(
            f"cannot listen on port {port}: {(error.strerror or str(error)).lower()}; choose another --port, or none."
        ) from error


def _has_screen() -> bool:
    """Whether a browser has a place to be shown: a browser for text would take the terminal."""
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


@contextmanager
def _ended_by_signals() -> Generator[None]:
    """Leaves signals to the server, which ends in order; Ctrl-C is how one ends it, not an error."""
    wakeup = signal.set_wakeup_fd(-1)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with suppress(KeyboardInterrupt):
            yield
    finally:
        signal.signal(signal.SIGINT, before)
        signal.set_wakeup_fd(wakeup)


@contextmanager
def _alone(folder: Path) -> Generator[None]:
    """Keeps other servers from the folder; the system lets go of it when this process ends, however it does."""
    with (folder / _LOCK_NAME).open("a") as file:
        try:
            if sys.platform == "win32":
                import msvcrt

                msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            else:
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(
                f"another rssc app uses {folder}; open the address that it printed, or give another --folder."
            ) from None
        yield
