"""Calls of a studio: of its application, request by request, and of a server that is a process."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from urllib.parse import urlsplit

TOKEN = "t" * 43
HOST = "localhost:8765"


@dataclass
class Caller:
    """Calls an application as a server would, request by request."""

    app: object
    headers: dict = field(default_factory=lambda: {"host": HOST, "origin": f"http://{HOST}"})

    def __call__(self, method, path, body=b"", *, claim=None, blocks=None, **headers):
        """Return status, headers and body; `claim` is the Content-Length that is claimed, `blocks` a body in parts."""
        given = {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        if blocks is None:
            given["content-length"] = str(len(data) if claim is None else claim)
        parts = iter([data] if blocks is None else blocks)
        address, _, query = path.partition("?")
        known = [(k.encode("latin-1"), v.encode("latin-1")) for k, v in given.items() if v is not None]
        ends = {"client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8765)}
        place = {"path": address, "raw_path": address.encode(), "query_string": query.encode(), "root_path": ""}
        scope = {"type": "http", "http_version": "1.1", "scheme": "http", "method": method, "headers": known}
        scope |= place | ends
        sent = []
        self.taken = 0

        async def receive():
            part = next(parts, None)
            self.taken += len(part or b"")
            return {"type": "http.request", "body": part or b"", "more_body": part is not None and blocks is not None}

        async def send(message):
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))
        seen = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
        return sent[0]["status"], seen, b"".join(part.get("body", b"") for part in sent[1:])

    def enter(self):
        """Exchange the token for the cookie."""
        _, seen, _ = self("GET", f"/?token={TOKEN}")
        self.headers["cookie"] = seen["set-cookie"].split(";")[0]
        return self


class Server:
    """`doublewell studio` as a process, and requests to it."""

    def __init__(self, folder, *flags):
        words = [sys.executable, "-m", "doublewell", "studio", str(folder), "--port", "0", "--no-browser", *flags]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if found := re.search(r"http://\S+token=\S+", line):
                self.url = found[0]
                break
        else:
            raise AssertionError("".join(lines) + self.process.stderr.read())
        self.port = urlsplit(self.url).port
        self.headers = {"Host": f"localhost:{self.port}", "Origin": f"http://localhost:{self.port}"}
        _, seen, _ = self.ask("GET", "/?" + urlsplit(self.url).query)
        self.headers["Cookie"] = seen["Set-Cookie"].split(";")[0]

    def ask(self, method, path, body=None, **headers):
        """Return status, headers and body; a header None is left out."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            given = {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
            data = json.dumps(body) if isinstance(body, dict) else body
            kept = {name: value for name, value in given.items() if value is not None}
            connection.request(method, path, data, kept)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def runs(self):
        return json.loads(self.ask("GET", "/api/runs")[2])["runs"]

    def stop(self):
        """End the server as Ctrl-C does; return what it said on stderr."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self._over(40)

    def die(self):
        """End the server without any chance to tidy up."""
        os.kill(self.process.pid, signal.SIGKILL)
        return self._over(10)

    def _over(self, seconds):
        _, said = self.process.communicate(timeout=seconds)
        return said
