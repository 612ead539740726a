"""Lets only the page's own requests through.

The server listens on this machine alone, but every page of every browser of this machine can send it requests, and so
can other users. The address has a token that they do not know; and the host must be this machine by number or as
localhost, so that a name that somebody makes to point here (DNS rebinding) is of no use.
"""

import secrets
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HOSTS = ("127.0.0.1", "localhost")
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Guard:
    """Answers 403 to whoever does not know the token, and passes the rest on without it."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app = app
        self.token = token
        self._ticket = secrets.token_urlsafe(16)

    @property
    def ticket_path(self) -> str:
        """A path that leads to the page once: other users see what a browser is started with, but only afterwards."""
        return f"/open/{self._ticket}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        path = str(scope["path"])
        first, _, _ = path[1:].partition("/")
        if not _is_own(Headers(scope=scope)):
            response = PlainTextResponse("This server answers its own page on this machine only.\n", 403)
            await response(scope, receive, send_guarded)
        elif self._ticket and secrets.compare_digest(path.encode(), self.ticket_path.encode()):
            self._ticket = ""
            await RedirectResponse(f"/{self.token}/", 303)(scope, receive, send_guarded)
        elif not secrets.compare_digest(first.encode(), self.token.encode()):
            words = "The address lacks its token; open the one that `rssc app` printed when it was started.\n"
            await PlainTextResponse(words, 403)(scope, receive, send_guarded)
        else:
            inner = {**scope, "root_path": scope.get("root_path", "") + f"/{self.token}"}
            await self.app(inner, receive, send_guarded)


def _is_own(headers: Headers) -> bool:
    """Whether a request names this machine, and comes from no other page."""
    host = headers.get("host", "")
    origin = headers.get("origin")
    return _hostname(host) in _HOSTS and (origin is None or origin == f"http://{host}")


def _hostname(host: str) -> str | None:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None
