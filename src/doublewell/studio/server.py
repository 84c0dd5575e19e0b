"""Server: the routes of the studio. It opens no movie and no result: workers do, and it hands on their files."""

from __future__ import annotations

import contextlib
import os
import re
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any
from uuid import uuid4

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from doublewell.errors import InputError
from doublewell.studio.jobs import Jobs
from doublewell.studio.places import OWN, UPLOADS, upload_name
from doublewell.studio.processes import Limits, Looker
from doublewell.studio.security import REPORT, Guard
from doublewell.version import __version__

_PAGE = {
    "index.html": "text/html", "studio.css": "text/css", "app.js": "text/javascript", "form.js": "text/javascript",
    "view.js": "text/javascript", "runs.js": "text/javascript", "icon.svg": "image/svg+xml",
}  # fmt: skip
_FILES = re.compile(
    r"(report\.html|result\.json|answer\.json|early\.json|facts\.csv|script\.py|law\w*\.(i|py|tex|json))"
)
_LOOKING = 120.0  # seconds that a movie may take to be opened and surveyed
_LONGEST = 200  # characters of the name of a run


@dataclass(frozen=True)
class Studio:
    """What the routes need."""

    root: Path
    first: str  # the movie that is opened first
    jobs: Jobs
    inspecting: Looker
    showing: Looker


def application(root: Path, *, token: str, host: str, job: Limits, upload: int, first: str = "") -> Starlette:
    """Return the web application of a start folder."""
    (root / UPLOADS).mkdir(parents=True, exist_ok=True)
    log, looking = root / OWN / "look.log", Limits(job.memory, min(job.seconds, _LOOKING))
    studio = Studio(root, first, Jobs(root, job), Looker(root, log, looking), Looker(root, log, looking))

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(studio.jobs.close)
        studio.inspecting.close()
        studio.showing.close()

    routes = [
        Route("/", _page), Route("/{name}", _page), Route("/api/state", _state),
        Route("/api/inspect", _inspect, methods=["POST"]), Route("/api/frame", _frame, methods=["POST"]),
        Route("/api/upload/{name}", _upload, methods=["PUT"]), Route("/api/runs", _runs, methods=["GET", "POST"]),
        Route("/api/runs/{run}/stop", _stop, methods=["POST"]), Route("/api/runs/{run}", _remove, methods=["DELETE"]),
        Route("/runs/{run}/{name}", _result),
    ]  # fmt: skip
    guard = Middleware(Guard, token=token, host=host, most=upload)
    app = Starlette(
        routes=routes,
        middleware=[guard],
        lifespan=lifespan,
        exception_handlers={InputError: _refused, OSError: _refused},
    )
    app.state.studio = studio
    return app


async def _refused(_: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 400)


def _of(request: Request) -> Studio:
    studio: Studio = request.app.state.studio
    return studio


async def _asked(request: Request) -> dict[str, Any]:
    """Return the body of a request: an object with the name of a file and the words of a form."""
    try:
        value = await request.json()
    except ValueError:
        value = None
    asked: dict[str, Any] = value if isinstance(value, dict) else {}
    if not isinstance(asked.get("words"), dict) or not isinstance(asked.get("file"), str):
        raise InputError("expected JSON with a file and the words of a form")
    return asked


async def _page(request: Request) -> Response:
    name = request.path_params.get("name", "index.html")
    if name not in _PAGE:
        return Response(status_code=404)
    content = files("doublewell.studio").joinpath("page", name).read_bytes()
    return Response(content, media_type=_PAGE[name])


async def _state(request: Request) -> Response:
    studio = _of(request)
    fields = await run_in_threadpool(studio.inspecting.ask, {"do": "fields"})
    listed = await run_in_threadpool(studio.inspecting.ask, {"do": "files"})
    known = {"version": __version__, "folder": str(studio.root), "first": studio.first}
    return JSONResponse({**known, **fields, **listed, "runs": studio.jobs.listing()})


async def _inspect(request: Request) -> Response:
    asked = await _asked(request)
    asked = {"do": "inspect", "file": asked["file"], "words": asked["words"]}
    return JSONResponse(await run_in_threadpool(_of(request).inspecting.ask, asked))


async def _frame(request: Request) -> Response:
    asked = await _asked(request)
    number = asked.get("frame", 0)
    if not isinstance(number, int):
        raise InputError("frame: expected an integer")
    asked = {"do": "frame", "file": asked["file"], "words": asked["words"], "frame": number}
    return JSONResponse(await run_in_threadpool(_of(request).showing.ask, asked))


async def _upload(request: Request) -> Response:
    """Stream a file to the disk, under a name of its own until it is whole."""
    studio, name = _of(request), upload_name(request.path_params["name"])
    folder = studio.root / UPLOADS
    part = folder / f".{uuid4().hex}.part"
    try:
        with part.open("xb") as file:
            async for block in request.stream():
                await run_in_threadpool(file.write, block)
        stem, dot, ending = name.partition(".")
        target, number = folder / name, 2
        while True:
            try:
                os.link(part, target)  # never over a file that is there
                break
            except FileExistsError:
                target, number = folder / f"{stem}-{number}{dot}{ending}", number + 1
    except ClientDisconnect:
        return Response(status_code=400)
    finally:
        part.unlink(missing_ok=True)
    return JSONResponse({"file": f"{UPLOADS}/{target.name}"})


async def _runs(request: Request) -> Response:
    studio = _of(request)
    if request.method == "GET":
        return JSONResponse({"runs": await run_in_threadpool(studio.jobs.listing)})
    asked = await _asked(request)
    checked = {"do": "inspect", "file": asked["file"], "words": asked["words"]}
    answer = await run_in_threadpool(studio.inspecting.ask, checked)
    if "error" in answer:
        raise InputError(answer["error"])
    name = str(asked.get("name", ""))[:_LONGEST]
    return JSONResponse({"run": await run_in_threadpool(studio.jobs.begin, asked["file"], asked["words"], name)})


async def _stop(request: Request) -> Response:
    await run_in_threadpool(_of(request).jobs.stop, request.path_params["run"])
    return JSONResponse({})


async def _remove(request: Request) -> Response:
    await run_in_threadpool(_of(request).jobs.remove, request.path_params["run"])
    return JSONResponse({})


async def _result(request: Request) -> Response:
    """Return a file of a run: the report to be shown in a frame without rights, the others as downloads."""
    name, folder = request.path_params["name"], _of(request).jobs.path(request.path_params["run"])
    path = folder / name
    if not _FILES.fullmatch(name) or path.is_symlink() or not path.is_file():
        return Response(status_code=404)
    if name == "report.html" and "download" not in request.query_params:
        return FileResponse(path, media_type="text/html", headers={"Content-Security-Policy": REPORT})
    return FileResponse(path, media_type="application/octet-stream", filename=name)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens there."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise InputError(
            f"the studio cannot listen on {host}, port {port} ({error.strerror or error}): choose another --port, or 0 "
            "for a free one"
        ) from error
