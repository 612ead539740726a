"""How requests are answered: pages, files, and errors in words."""

import json
from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response

from rssc.app.run import Options
from rssc.errors import InputError, RsscError, error_words

Endpoint = Callable[[Request], Awaitable[Response]]
_LARGEST_REQUEST = 10_000
"""Bytes of a request that is no upload."""


class TooLargeError(RsscError):
    """A video is larger than the limit, or than the disk."""


def page_answer(name: str, media_type: str) -> Endpoint:
    """The endpoint of a file of the package."""

    async def page(request: Request) -> Response:
        return Response(files("rssc.app").joinpath("pages", name).read_bytes(), media_type=media_type)

    return page


def file_answer(path: Path, **options: Any) -> Response:
    """A file of a run, with the options of `FileResponse`.

    Raises:
        KeyError: It is not there.
    """
    if not path.is_file():
        raise KeyError(path.name)
    return FileResponse(path, **options)


async def read_options(request: Request) -> Options:
    """The options that a request has as JSON.

    Raises:
        InputError: They are none.
    """
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST_REQUEST:
            raise InputError(f"the options have more than {_LARGEST_REQUEST} bytes; expected lens, fps and frames.")
    try:
        return Options.model_validate(json.loads(body or "{}"))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "options"
        raise InputError(f"{where} is {first['input']!r}; expected {first['msg'].lower()}.") from None


def in_words(endpoint: Endpoint) -> Endpoint:
    """The endpoint with its errors as JSON: 400 for what users can put right, 404 for what is not there."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except ClientDisconnect:
            return Response(status_code=400)
        except KeyError:
            return JSONResponse({"error": "there is no such file or run; it may have been deleted."}, 404)
        except TooLargeError as error:
            return JSONResponse({"error": str(error)}, 413)
        except (RsscError, ValueError) as error:
            return JSONResponse({"error": str(error)}, 400)
        except OSError as error:
            message, _ = error_words(error) or (str(error), 1)
            return JSONResponse({"error": message}, 500)

    return answer
