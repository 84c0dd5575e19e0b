"""The studio starts from the wheel with its extra in an empty environment and serves its page to who has the token."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
from http.cookiejar import CookieJar
from urllib.error import HTTPError
from urllib.request import HTTPCookieProcessor, ProxyHandler, build_opener

import pytest
from installed import Installed

PATIENCE = 120.0  # seconds


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Installed:
    return Installed(tmp_path_factory.mktemp("shipped"), "studio")


def free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


def test_the_studio_has_a_help(installed) -> None:
    text = installed.run("doublewell", "studio", "--help")
    assert "--port" in text
    assert "--host" in text


def test_the_studio_starts_and_serves_its_page(installed) -> None:
    folder, port = installed.folder / "data", free_port()
    folder.mkdir()
    words = [str(installed.bin / "doublewell"), "studio", str(folder), "--port", str(port), "--no-browser"]
    with subprocess.Popen(
        words, cwd=installed.folder, env=installed.environment() | {"PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as process:  # fmt: skip
        try:
            printed, address = [], None
            for line in process.stdout or ():
                printed.append(line)
                if address := re.search(rf"http://(?:localhost|127\.0\.0\.1):{port}/\S*", line):
                    break
            assert address, "".join(printed)
            here = build_opener(HTTPCookieProcessor(CookieJar()), ProxyHandler({}))
            with here.open(address[0], timeout=PATIENCE) as answer:
                assert answer.status == 200
                assert "content-security-policy" in answer.headers
                assert "<html" in answer.read().decode("utf-8")
            with pytest.raises(HTTPError) as refused:
                build_opener(ProxyHandler({})).open(f"http://127.0.0.1:{port}/", timeout=PATIENCE)
            assert refused.value.code in (401, 403)
            refused.value.close()
            process.send_signal(signal.SIGINT)
            process.wait(timeout=PATIENCE)
        finally:
            process.kill()
