"""Answers the page's requests. Every answer but files is JSON; an error is one line, as the command line has it."""

import asyncio
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rssc import __version__
from rssc.app.answers import TooLargeError, file_answer, in_words, page_answer, read_options
from rssc.app.compare import Comparisons
from rssc.app.guard import Guard
from rssc.app.queue import Command, Queue, work_command
from rssc.app.run import Kind, Run
from rssc.app.runs import Runs
from rssc.errors import InputError
from rssc.names import FORMAT_WORDS, LENS_NAMES

_PAGES = {
    "": ("index.html", "text/html; charset=utf-8"),
    "style.css": ("style.css", "text/css; charset=utf-8"),
    "app.js": ("app.js", "text/javascript; charset=utf-8"),
    "view.js": ("view.js", "text/javascript; charset=utf-8"),
    "dom.js": ("dom.js", "text/javascript; charset=utf-8"),
}
_RESULTS = ("calibration.json", "report.html", "trajectory.tum", "points.ply", "stretches.npz")
_SPARE_BYTES = 100_000_000
"""That an upload leaves free on the disk: results need a place, too."""


def make_app(folder: Path, token: str, limit_bytes: int, command: Command = work_command) -> Guard:
    """The server of a folder, as an ASGI application.

    Args:
        folder: For runs; see `runs`.
        token: The first part of every path.
        limit_bytes: Of a video.
        command: What does the jobs.
    """
    site = _Site(folder, limit_bytes, command)
    routes = [Route(f"/{path}", page_answer(*page)) for path, page in _PAGES.items()]
    for method, path, endpoint in (
        ("GET", "/state", site.state),
        ("POST", "/runs", site.upload),
        ("DELETE", "/runs/{id}", site.delete),
        ("POST", "/runs/{id}/check", site.check),
        ("POST", "/runs/{id}/calibrate", site.calibrate),
        ("POST", "/runs/{id}/again", site.again),
        ("POST", "/runs/{id}/rectify", site.rectify),
        ("POST", "/runs/{id}/cancel", site.cancel),
        ("GET", "/runs/{id}/frames/{number:int}.jpg", site.frame),
        ("GET", "/runs/{id}/report", site.report),
        ("GET", "/runs/{id}/rectified", site.rectified),
        ("GET", "/runs/{id}/results/{name}", site.result),
        ("GET", "/runs/{id}/exports/{name}.zip", site.export),
        ("GET", "/compare/{first}/{second}", site.compare),
    ):
        routes.append(Route(path, in_words(endpoint), methods=[method]))
    return Guard(Starlette(routes=routes, lifespan=site.lifespan), token)


class _Site:
    """What the requests are about."""

    def __init__(self, folder: Path, limit_bytes: int, command: Command) -> None:
        self.runs = Runs(folder)
        self.queue = Queue(self.runs, command)
        self.comparisons = Comparisons(self.runs, command)
        self.limit_bytes = limit_bytes

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncGenerator[None]:
        """Works on the queue while the server runs."""
        work = asyncio.create_task(self.queue.work())
        yield
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work

    async def state(self, request: Request) -> Response:
        """All that is new since a version; 204 for nothing."""
        since = int(request.query_params.get("since", -1))
        if since == self.runs.version:
            return Response(status_code=204)
        document = self.runs.changes(since)
        if since < 0:
            document |= {
                "limit_bytes": self.limit_bytes, "lenses": ["auto", *LENS_NAMES], "release": __version__,
                "formats": FORMAT_WORDS,
            }  # fmt: skip
        return JSONResponse(document)

    async def upload(self, request: Request) -> Response:
        """Takes a video: the body is the file, `name` its name. It is checked next."""
        name = request.query_params.get("name", "").strip() or "video"
        told = request.headers.get("content-length", "")
        self._require_room(name, int(told) if told.isdecimal() else 0)
        run, path = self.runs.begin_upload(name)
        try:
            await self._receive(request, name, path)
            self.runs.end_upload(run)
        except BaseException:
            self.runs.drop_upload(run)
            raise
        self.queue.add(run, "check")
        return JSONResponse({"id": run.id}, 201)

    async def _receive(self, request: Request, name: str, path: Path) -> None:
        count = 0
        with path.open("wb") as file:
            async for chunk in request.stream():
                count += len(chunk)
                if count > self.limit_bytes:
                    self._require_room(name, count)
                # The disk may be slow; the page is answered meanwhile.
                await asyncio.to_thread(file.write, chunk)
        if count == 0:
            raise InputError(f"{name} is empty; expected a video file.")

    def _require_room(self, name: str, size: int) -> None:
        if size > self.limit_bytes:
            raise TooLargeError(
                f"{name} is larger than the limit of {self.limit_bytes / 1e9:g} GB; cut it to the seconds that show "
                f"the motion, or start rssc app with a larger --limit."
            )
        free = shutil.disk_usage(self.runs.folder).free
        if size + _SPARE_BYTES > free:
            raise TooLargeError(
                f"{name} has {size / 1e6:.0f} MB and {self.runs.folder} has {free / 1e6:.0f} MB left; delete runs, or "
                f"start rssc app with another --folder."
            )

    async def check(self, request: Request) -> Response:
        """Checks a video again, with other options."""
        run = self._run(request)
        return await self._begin(request, run, run, "check")

    async def calibrate(self, request: Request) -> Response:
        """Calibrates a run that has no result yet."""
        run = self._run(request)
        if self.runs.document(run, "calibrate") is not None:
            raise InputError(f"{run.name} has a result already; calibrate again as another run.")
        return await self._begin(request, run, run, "calibrate")

    async def again(self, request: Request) -> Response:
        """Calibrates the video of a run again, as another run."""
        return await self._begin(request, self._run(request), None, "calibrate")

    async def _begin(self, request: Request, run: Run, place: Run | None, kind: Kind) -> Response:
        """Puts a job into the queue, with the options that the request has; of a new run where no place is given."""
        options = await read_options(request)
        options.chosen()
        if place is None:
            place = await asyncio.to_thread(self.runs.again, run, options)
        self.queue.add(place, kind, options)
        return JSONResponse({"id": place.id})

    async def rectify(self, request: Request) -> Response:
        """Makes the rectified video of a run."""
        run = self._run(request)
        if not (self.runs.document(run, "calibrate") or {}).get("quantities"):
            raise InputError(f"{run.name} has no calibration; calibrate it first.")
        self.queue.add(run, "rectify")
        return JSONResponse({"id": run.id})

    async def cancel(self, request: Request) -> Response:
        """Ends the job of a run; answers when its processes are gone."""
        run = self._run(request)
        await self.queue.cancel(run)
        return JSONResponse({"id": run.id})

    async def delete(self, request: Request) -> Response:
        """Removes a run with its files."""
        run = self._run(request)
        await self.queue.cancel(run)
        self.runs.delete(run)
        return JSONResponse({"id": run.id})

    async def frame(self, request: Request) -> Response:
        """A frame that the check looked at."""
        number = int(request.path_params["number"])
        return file_answer(self.runs.path(self._run(request), "check", f"{number}.jpg"), media_type="image/jpeg")

    async def report(self, request: Request) -> Response:
        """The report, to look at. Its scripts run apart from the page, which knows the token."""
        path = self.runs.path(self._run(request), "calibrate", "report.html")
        return file_answer(path, headers={"Content-Security-Policy": "sandbox allow-scripts allow-downloads"})

    async def result(self, request: Request) -> Response:
        """A file of the result."""
        run, name = self._run(request), str(request.path_params["name"])
        if name not in _RESULTS:
            raise KeyError(name)
        return file_answer(self.runs.path(run, "calibrate", name), filename=f"{Path(run.file).stem}_{name}")

    async def rectified(self, request: Request) -> Response:
        """The rectified video."""
        run = self._run(request)
        return file_answer(
            self.runs.path(run, "rectify", "rectified.mp4"), filename=f"{Path(run.file).stem}_rectified.mp4"
        )

    async def export(self, request: Request) -> Response:
        """A format of export as a zip."""
        run, name = self._run(request), str(request.path_params["name"])
        if name not in FORMAT_WORDS:
            raise KeyError(name)
        path = self.runs.path(run, "calibrate", "exports", f"{name}.zip")
        return file_answer(path, filename=f"{Path(run.file).stem}_{name}.zip")

    async def compare(self, request: Request) -> Response:
        """Two runs against each other, in pixels."""
        first, second = (self.runs.get(str(request.path_params[name])) for name in ("first", "second"))
        return JSONResponse(await self.comparisons.get(first, second))

    def _run(self, request: Request) -> Run:
        return self.runs.get(str(request.path_params["id"]))
