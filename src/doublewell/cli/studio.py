"""The command studio: checks its words, starts the server, and shows the address with its token, once."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from doublewell.cli.options import Integer
from doublewell.errors import InputError, library, whole

_FILE = """<!DOCTYPE html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={address}">"""


def studio(
    place: Path = Path(),
    /,
    *,
    host: str = "127.0.0.1",
    port: Integer = 8765,
    memory: str = "8GB",
    limit: str = "2 h",
    upload: str = "4GB",
    browser: Annotated[bool, Parameter(negative="--no-browser")] = True,
) -> None:
    """Look at movies and identify their laws in a browser page.

    Only this machine can reach the page, and only with the token in the address that is shown. Uploads and results are
    kept in the folder doublewell-studio of the start folder, and are there again at the next start. Ctrl-C ends the
    studio; runs then end with the best answer so far.

    Parameters
    ----------
    place
        The start folder, or a movie in it: the page sees no other files.
    host
        The address to listen on. 127.0.0.1 is this machine alone; anything else lets others try the token.
    port
        The port to listen on; 0 for a free one.
    memory
        The most resident memory of one identification, with its workers.
    limit
        The longest time of one identification.
    upload
        The largest file that may be dropped into the page.
    browser
        Open the page in a browser; --no-browser only shows its address.
    """
    for name in ("starlette", "uvicorn", "psutil"):
        library(name, "studio", "doublewell studio")
    from secrets import token_urlsafe

    import uvicorn

    from doublewell.studio.processes import Limits
    from doublewell.studio.server import application, listen
    from doublewell.units import parse_limit, parse_memory

    if not place.exists():
        raise InputError(f"{place} does not exist: expected a folder with movies, or one of them")
    whole(port, "--port", least=0, most=65535)
    seconds, _ = parse_limit(limit)
    if seconds is None:
        raise InputError(f"--limit is {limit!r}: expected a time such as '30 min'")
    movie = place.is_file() or place.suffix == ".zarr"
    root = (place.parent if movie else place).absolute()
    token, sizes = token_urlsafe(32), Limits(parse_memory(memory), seconds)
    sock = listen(host, port)
    app = application(
        root, token=token, host=host, job=sizes, upload=parse_memory(upload), first=place.name if movie else ""
    )
    shown = "localhost" if host in ("127.0.0.1", "0.0.0.0", "::", "::1") else host
    address = f"http://{shown}:{sock.getsockname()[1]}/?token={token}"
    sys.stdout.write(f"doublewell studio of {root}\n\n    {address}\n\nCtrl-C ends it.\n")
    sys.stdout.flush()
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(KeyboardInterrupt):
        if browser and _has_screen():
            _open(Path(folder, "studio.html"), address)
        config = uvicorn.Config(app, access_log=False, log_level="error", server_header=False, ws="none")
        uvicorn.Server(config).run(sockets=[sock])


def _has_screen() -> bool:
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _open(path: Path, address: str) -> None:
    """Open a file that leads to the page: the token would be seen among the arguments of a browser."""
    import webbrowser

    path.touch(mode=0o600)
    path.write_text(_FILE.format(address=address))
    webbrowser.open(path.as_uri())
