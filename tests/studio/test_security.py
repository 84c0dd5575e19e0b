"""Every attack is refused, and the answer to each request says what a browser may do with it."""

import asyncio
import json
import subprocess
import sys

import h5py
import numpy as np
import pytest

from doublewell.errors import InputError
from doublewell.studio.places import inside, upload_name

WORDS = {"file": "drop.npz", "words": {}}


def test_the_token_becomes_a_cookie_that_scripts_cannot_read(call):
    status, seen, body = call("GET", "/?token=" + "t" * 43, cookie=None)
    cookie = seen["set-cookie"]
    assert status == 200
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie  # noqa: PT018
    assert b"token" not in body
    assert "t" * 43 not in cookie


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ({"cookie": None}, 403),  # no token
        ({"cookie": "studio_0=guess"}, 403),
        ({"host": "evil.example"}, 421),  # a name that was bent to this machine
        ({"host": "localhost.evil.example:8765"}, 421),
        ({"host": "192.168.0.7:8765"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://localhost:9999"}, 403),  # another server of this machine
        ({"origin": "null"}, 403),
        ({"origin": None}, 403),
        ({"sec_fetch_site": "same-site"}, 403),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"claim": 10**6}, 413),
    ],
)
def test_a_request_from_elsewhere_is_refused(call, request_, status):
    assert call("POST", "/api/runs", WORDS, **request_)[0] == status
    assert call("GET", "/api/runs")[2] == b'{"runs":[]}'


def test_a_wrong_token_gives_no_cookie(call):
    status, seen, _ = call("GET", "/?token=" + "u" * 43, cookie=None)
    assert (status, "set-cookie" in seen) == (403, False)


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1:8765", "[::1]:8765", "LOCALHOST"])
def test_this_machine_may_be_reached_by_any_port_of_a_tunnel(call, host):
    assert call("GET", "/api/runs", host=host, origin=None)[0] == 200
    assert call("POST", "/api/runs/x/stop", b"{}", host=host, origin=f"http://{host}")[0] == 400  # there is no such run


def test_a_websocket_is_closed(call):
    sent = []

    async def send(message):
        sent.append(message)

    asyncio.run(call.app({"type": "websocket", "path": "/", "headers": [], "query_string": b""}, None, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]


@pytest.mark.parametrize("path", ["/", "/app.js", "/api/runs", "/nothing", "/runs/x/y", "/?token=wrong"])
def test_every_answer_has_the_headers(call, path):
    _, seen, _ = call("GET", path)
    policy = seen["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert seen["x-frame-options"] == "DENY"
    assert (seen["x-content-type-options"], seen["cache-control"]) == ("nosniff", "no-store")


def test_an_upload_is_counted_whatever_it_claims(call, folder):
    blocks = [b"x" * 30_000] * 1000
    status, _, _ = call("PUT", "/api/upload/large.tif", blocks=blocks)
    assert status == 413
    assert call.taken <= 130_000  # the rest was not even read
    assert call("PUT", "/api/upload/large.tif", claim=10**10)[0] == 413
    assert list((folder / "doublewell-studio/files").iterdir()) == []


def test_uploads_get_harmless_names_and_replace_nothing(call, folder):
    places = [
        json.loads(call("PUT", f"/api/upload/{name}", b"data")[2])["file"]
        for name in ["a.ome.tif"] * 2 + ["<script>.npy"]
    ]
    assert places == [f"doublewell-studio/files/{name}" for name in ("a.ome.tif", "a-2.ome.tif", "script_.npy")]
    assert all((folder / place).read_bytes() == b"data" for place in places)
    assert upload_name("../../etc/passwd") == "etc_passwd"
    assert call("PUT", "/api/upload/...", b"data")[0] == 400


@pytest.mark.parametrize(
    "name", ["../secret.npy", "/etc/passwd", "a/../../secret.npy", "", "x\0.npy", "..\\secret.npy", 3, "*.npy"]
)
def test_no_name_leads_out_of_the_folder(folder, name):
    with pytest.raises(InputError):
        inside(folder, name)


def test_no_link_leads_out_of_the_folder(folder):
    (folder / "link.npy").symlink_to(folder.parent / "secret.npy")
    (folder / "up").symlink_to(folder.parent)
    (folder / "store.zarr").mkdir()
    (folder / "store.zarr/0").symlink_to(folder.parent / "secret.npy")
    for name in ("link.npy", "up/secret.npy", "up", "store.zarr"):
        with pytest.raises(InputError, match="leads out of"):
            inside(folder, name)


@pytest.mark.parametrize(
    "path", ["/runs/../secret.npy", "/runs/20260101-000000-aaaaaa/../x", "/runs/x/request.json", "/..%2fsecret.npy"]
)
def test_no_result_leads_out_of_its_folder(call, path):
    assert call("GET", path)[0] in (400, 404)


def test_what_a_worker_may_read(call, folder):
    """A form cannot name files elsewhere, nor can a movie: an HDF5 link, a companion, a piece of a series."""
    secret = folder.parent / "secret.npy"
    u = np.random.default_rng(0).normal(size=(6, 16, 16))
    np.save(folder / "movie.npy", u)
    with h5py.File(folder.parent / "secret.h5", "w") as file:
        file["u"] = u
    with h5py.File(folder / "link.h5", "w") as file:
        file["u"] = h5py.ExternalLink(str(folder.parent / "secret.h5"), "u")
        file["other"] = np.zeros(3)
    (folder / "run.pvd").write_text(
        '<VTKFile type="Collection"><Collection><DataSet timestep="0" file="../secret.vti"/>'
        '<DataSet timestep="1" file="../secret.vti"/></Collection></VTKFile>'
    )
    (folder.parent / "secret.vti").write_text("<VTKFile/>")
    inspect = {"do": "inspect", "words": {"dx": "1", "dt": "1"}}
    ask = call.app.state.studio.inspecting.ask
    good = ask({**inspect, "file": "movie.npy"})
    assert "error" not in good
    for words in ({"mask": str(secret)}, {"levels": "auto", "dark": str(secret)}):
        answer = ask({**inspect, "file": "movie.npy", "words": {**inspect["words"], **words}})
        assert "outside of the folder" in answer["error"]
    driven = {
        **inspect["words"],
        "dynamics": f"allen-cahn(driving={folder.parent / 'force.txt'})",
        "boundary": "periodic",
    }
    (folder.parent / "force.txt").write_text("0 1\n1 2\n")
    assert "outside of the folder" in ask({**inspect, "file": "movie.npy", "words": driven})["error"]
    for name, words in (("link.h5", {}), ("link.h5", {"var": "u"}), ("run.pvd", {})):
        assert "error" in ask({**inspect, "file": name, "words": {**inspect["words"], **words}})
    assert "checkpoint" in ask({**inspect, "file": "movie.npy", "words": {"checkpoint": "/elsewhere/x"}})["error"]


def test_a_worker_reads_neither_the_system_nor_the_environment(folder):
    code = (
        "import sys; from pathlib import Path; from doublewell.studio.worker import confine\n"
        "confine(Path(sys.argv[1]))\n"
        "for place in sys.argv[2:]:\n"
        "    try: open(place); print('open')\n"
        "    except OSError as error: print(error.strerror[:7])\n"
    )
    (folder / "own.txt").write_text("x")
    places = [
        folder / "own.txt",
        "/etc/passwd",
        folder.parent / "secret.npy",
        "/proc/self/environ",
        folder / "../secret.npy",
    ]
    out = subprocess.run([sys.executable, "-c", code, folder, *places], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["open", *["outside"] * 4]


def test_the_token_is_in_no_argument_list(monkeypatch, tmp_path):
    """A browser is given a file of ours, which only we can read."""
    from doublewell.cli.studio import _open

    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    _open(tmp_path / "studio.html", "http://localhost:1/?token=abc")
    assert opened == [(tmp_path / "studio.html").as_uri()]
    assert (tmp_path / "studio.html").stat().st_mode & 0o077 == 0
    assert "token=abc" in (tmp_path / "studio.html").read_text()
