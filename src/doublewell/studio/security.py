"""Security: what every request must show before the studio looks at it. Anybody on this machine can reach a port.

Host        a name of this machine, so that a page of somebody else whose name was bent to 127.0.0.1 gets nothing
token       once, from the address that the terminal shows; it becomes a cookie that scripts and other sites cannot use
Origin      our own, on everything that is not read, and Fetch-Metadata of browsers that send it
size        counted while a body comes in, whatever Content-Length claims
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from hmac import compare_digest
from secrets import token_urlsafe
from typing import Any

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_NAMES = ("localhost", "127.0.0.1", "[::1]")
_SMALL = 2**16  # bytes of a request that is no upload
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
REPORT = (  # of a report in the page: its own policy names the style and the script by their hashes
    "sandbox allow-scripts; default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "frame-ancestors 'self'; base-uri 'none'; form-action 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin", "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin", "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}  # fmt: skip
_WELCOME = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=/">
<title>doublewell studio</title><link rel="icon" href="data:,"></head>
<body><p><a href="/">Open the studio</a></p></body></html>"""


class TooLargeError(Exception):
    """More came than is taken."""


class Guard:
    """Middleware that refuses what does not come from the page of this studio."""

    def __init__(self, app: ASGIApp, *, token: str, host: str, most: int) -> None:
        self._app, self._token, self._most = app, token, most
        self._hosts = {*_NAMES, host.lower(), f"[{host.lower()}]"}
        self._cookie = f"studio_{sha256(token.encode()).hexdigest()[:8]}"  # cookies do not know ports
        self._secret = token_urlsafe(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer that it is refused."""
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":  # there are no WebSockets here
            return await send({"type": "websocket.close", "code": 1008})
        headers, upload = Headers(scope=scope), scope["path"].startswith("/api/upload/")
        most, counted = self._most if upload else _SMALL, 0

        async def bounded() -> Message:
            nonlocal counted
            message = await receive()
            counted += len(message.get("body", b""))
            if counted > most:
                raise TooLargeError
            return message

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(raw=message["headers"])
                framed = "Content-Security-Policy" in answer  # the report, in the page
                for name, value in _HEADERS.items():
                    if name not in answer and not (framed and name == "X-Frame-Options"):
                        answer[name] = value
            await send(message)

        response = self._refusal(scope, headers, most)
        if response is not None:
            return await response(scope, receive, dressed)
        try:
            await self._app(scope, bounded, dressed)
        except TooLargeError:
            await PlainTextResponse(f"more than {most} bytes", 413)(scope, receive, dressed)
        return None

    def _refusal(self, scope: Scope, headers: Headers, most: int) -> Response | None:
        """Return the answer to a request that goes no further: one that is refused, or that brings the token."""
        host, method = headers.get("host", ""), scope["method"]
        if _name(host) not in self._hosts:
            return PlainTextResponse("this name is not one of the studio", 421)
        reads, site = method in ("GET", "HEAD"), headers.get("sec-fetch-site", "none")
        given, why = QueryParams(scope["query_string"]).get("token"), ""
        if reads and scope["path"] == "/" and given is not None:
            return self._welcome(given)
        own = reads or headers.get("origin") in (f"http://{host}", f"https://{host}")
        if not own or site not in ("same-origin", "none"):
            why = "only the page of the studio may ask for this"
        elif not _same(_cookies(headers).get(self._cookie, ""), self._secret):
            why = "open the address that the terminal shows: it holds the token of this studio"
        if why:
            return PlainTextResponse(why, 403)
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > most:
            return PlainTextResponse(f"more than {most} bytes", 413)
        return None

    def _welcome(self, token: str) -> Response:
        """Exchange the token for a cookie; the page follows by itself, without the token in its address."""
        if not _same(token, self._token):
            return PlainTextResponse("this is not the token of this studio: it was started again since", 403)
        response = HTMLResponse(_WELCOME)
        response.set_cookie(self._cookie, self._secret, httponly=True, samesite="strict", path="/")
        return response


def _same(given: str, known: str) -> bool:
    return compare_digest(given.encode("utf-8", "replace"), known.encode())


def _cookies(headers: Headers) -> Mapping[str, Any]:
    return cookie_parser(headers.get("cookie", ""))


def _name(host: str) -> str:
    """Return the name of a Host header without its port.

    >>> _name("LOCALHOST:8765"), _name("[::1]:80"), _name("evil.example")
    ('localhost', '[::1]', 'evil.example')
    """
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isdecimal() else host.lower()
