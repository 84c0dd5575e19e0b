"""The studio in a browser, from a dropped file to an export; what must survive, and what must be refused."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from base64 import b64encode
from pathlib import Path

import numpy as np
import psutil
import pytest

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
NASTY = '<img src=x onerror="document.title=1">.npy'

if not os.environ.get("CI"):  # there a missing browser is an error
    pytest.importorskip("playwright", reason="Playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)", allow_module_level=True)

from axe_playwright_python.sync_playwright import Axe  # noqa: E402
from playwright.sync_api import expect, sync_playwright  # noqa: E402
from studio_calls import Server  # noqa: E402

from doublewell.export import export  # noqa: E402
from doublewell.io import load_result, save  # noqa: E402
from doublewell.law import named_law  # noqa: E402
from doublewell.simulate import add_noise, initial_field, simulate  # noqa: E402

SOON, LATER = 60_000, 300_000  # milliseconds
expect.set_options(timeout=SOON)


@pytest.fixture(scope="module")
def browser():
    assert CHROMIUM is not None, "Chromium is not installed"
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory, drop):
    """The start folder, with a movie that takes long to fit, beside a file that nobody may read."""
    base = tmp_path_factory.mktemp("walk")
    (base / "start").mkdir()
    np.save(base / "secret.npy", np.zeros((5, 16, 16)))
    start = initial_field("nonconvex", (96, 96), 1 / 96, epsilon=0.05)
    movie = simulate(named_law("sixth"), start, dx=1 / 96, dt=1e-4, frames=41, epsilon=0.05)
    save(add_noise(movie, 0.03, seed=1), base / "start/long.npz")
    save(drop, base / "start/drop.npz")
    return base / "start"


@pytest.fixture(scope="module")
def server(place):
    started = Server(place)
    yield started
    assert started.stop() == ""


@pytest.fixture
def visit(browser):
    """Open the page of a server; at the end nothing may have been said in its console or asked of others."""
    opened, troubles = [], []

    def go(server, **options):
        context = browser.new_context(accept_downloads=True, **options)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.new_page()
        page.set_default_timeout(SOON)
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("response", lambda got: got.status < 400 or troubles.append(f"{got.status} {got.url}"))
        page.on("request", lambda asked: known(server, asked.url) or troubles.append(asked.url))
        page.goto(server.url)
        expect(page.locator("#folder")).to_contain_text("start")
        assert page.url == f"http://localhost:{server.port}/"  # without the token
        opened.append(context)
        return page

    def known(server, url):
        return url.startswith((f"http://localhost:{server.port}/", "data:", "blob:", "about:"))

    yield go
    for context in opened:
        context.close()
    assert troubles == []


def drop_on(page, path, name=None):
    """Drop a file on the page."""
    data = b64encode(Path(path).read_bytes()).decode()
    page.evaluate(
        """([data, name]) => {
            const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
            const transfer = new DataTransfer();
            transfer.items.add(new File([bytes], name));
            document.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
        }""",
        [data, name or Path(path).name],
    )


def field(page, name):
    return page.locator(f"#field-{name}")


def begin(page, file, name, **words):
    """Fill in the form and start a run; return its card."""
    page.select_option("#file", file)
    expect(page.locator("#findings .box").first).to_be_visible()
    for key, word in words.items():
        control = field(page, key)
        if not control.is_visible():
            page.locator(f"details:has(#field-{key}) > summary").first.click()
        if control.evaluate("(item) => item.tagName") == "SELECT":
            control.select_option(word)
        else:
            control.fill(word)
    page.fill("#name", name)
    expect(page.locator("#identify")).to_be_enabled()
    page.click("#identify")
    return card(page, name)


def card(page, name):
    found = page.locator(f'article[aria-label="run {name}"]')
    expect(found).to_be_visible()
    return found


def state(page, name, word, timeout=LATER):
    expect(card(page, name).locator(".badge").first).to_have_text(word, timeout=timeout)


def test_from_a_dropped_tiff_to_moose(visit, server, place, camera, tmp_path):
    page = visit(server)
    drop_on(page, camera)
    expect(field(page, "dx")).to_have_value("0.5")  # of the file
    expect(field(page, "dt")).to_have_value("2.0")
    expect(field(page, "length_unit")).to_have_value("um")
    expect(page.locator("#findings")).to_contain_text("--levels")  # is asked for, while frames are shown
    expect(page.locator("#identify")).to_be_disabled()
    slider, when = page.locator("#frame"), page.locator("#when")
    slider.focus()
    page.keyboard.press("ArrowRight")
    expect(when).to_have_text("frame 1 of 0 to 24, t = 2")
    before = page.locator("#profile").inner_html()
    page.locator("#row").focus()
    page.keyboard.press("Home")
    assert page.locator("#profile").inner_html() != before

    field(page, "levels").fill("600,1400")
    expect(page.locator("#findings")).to_contain_text("No problems found")
    field(page, "surface_tension").fill("0.3 J/m^2 +- 5 %")
    page.check("input[value=leave_out]")
    box = page.locator("#overlay").bounding_box()
    cell = box["width"] / 32
    page.mouse.move(box["x"] + 0.2 * cell, box["y"] + 0.2 * cell)
    page.mouse.down()
    page.mouse.move(box["x"] + 2.6 * cell, box["y"] + 1.5 * cell, steps=3)
    page.mouse.up()
    expect(field(page, "leave_out")).to_have_value("0:2,0:3")
    field(page, "frames").fill("1:")
    page.fill("#name", "camera")
    expect(page.locator("#identify")).to_be_enabled()
    page.click("#as-python")
    expect(page.locator("#copied-note")).to_contain_text("The script")  # when it is on the clipboard
    script = page.evaluate("navigator.clipboard.readText()")
    page.click("#as-command")
    expect(page.locator("#copied-note")).to_contain_text("The command")
    command = page.evaluate("navigator.clipboard.readText()")
    assert page.locator("#copied pre").inner_text() == command
    page.click("#identify")
    expect(page.locator("#legend")).to_contain_text("camera (early, weak form)", timeout=LATER)
    state(page, "camera", "done")
    expect(page.locator("#legend .name")).to_have_text("camera")
    assert page.locator("#curves polygon").count() == 1  # the band
    expect(page.locator("#numbers")).to_contain_text("J/m³")

    card(page, "camera").get_by_role("button", name="Show the report").click()
    report = page.frame_locator("#page")
    expect(report.locator("h1")).to_contain_text("Free energy from")
    expect(report.locator("#when")).to_contain_text("frame")  # its own script runs
    page.click("#close-report")
    card(page, "camera").locator("summary").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="MOOSE").click()
    (folder,) = (place / "doublewell-studio/runs").glob("*/law.i")
    result = load_result(folder.parent / "result.json")
    assert Path(download.value.path()).read_text() == export(result, "moose")
    assert download.value.suggested_filename == "law.i"

    for number, words in enumerate(([sys.executable, "script.py"], [sys.executable, "-m", *shlex.split(command)])):
        here = tmp_path / str(number)
        here.mkdir()
        (here / "script.py").write_text(script)
        subprocess.run(words, cwd=here, check=True, capture_output=True)
        again = load_result(here / "result.json")
        assert again.coefficients.tolist() == result.coefficients.tolist()  # to the last bit
        assert again.epsilon == result.epsilon
    assert (folder.parent / "script.py").read_text() == script


def test_a_window_and_several_runs_side_by_side(visit, server):
    page = visit(server)
    one = begin(page, "drop.npz", "weak one", method="weak", check="false")
    expect(one).to_contain_text("done", timeout=LATER)
    page.check("input[value=window]")
    box = page.locator("#overlay").bounding_box()
    cell = box["width"] / 32
    page.mouse.move(box["x"] + 2.5 * cell, box["y"] + 3.5 * cell)
    page.mouse.down()
    page.mouse.move(box["x"] + 29.5 * cell, box["y"] + 30.5 * cell, steps=3)
    page.mouse.up()
    expect(field(page, "window")).to_have_value("3:31,2:30")
    expect(field(page, "boundary")).to_have_value("open")
    page.fill("#name", "weak window")
    expect(page.locator("#identify")).to_be_enabled()
    page.click("#identify")
    state(page, "weak window", "done")
    expect(page.locator("#legend")).to_contain_text("weak window")
    expect(page.locator("#legend")).to_contain_text("weak one")
    assert page.locator("#numbers thead th").count() == 1 + page.locator("#legend .name").count()
    page.get_by_role("radio", name="effective force G").check()
    expect(page.locator("#legend")).to_contain_text("effective force G")
    shown = page.locator("#legend .name").count()
    card(page, "weak window").get_by_label("show the curve").uncheck()
    expect(page.locator("#legend .name")).to_have_count(shown - 1)


def test_a_run_is_stopped_with_the_best_answer_so_far(visit, server):
    page = visit(server)
    run = begin(page, "long.npz", "stopped run")
    expect(run).to_contain_text("fitting", timeout=LATER)
    time.sleep(5.0)
    run.get_by_role("button", name="Stop").click()
    state(page, "stopped run", "stopped")
    expect(run).to_contain_text("the best answer so far")
    run.get_by_role("button", name="Show the report").click()
    expect(page.frame_locator("#page").locator("h1")).to_contain_text("Free energy from")


def running(place, name):
    for path in (place / "doublewell-studio/runs").iterdir():
        if json.loads((path / "request.json").read_text())["name"] == name:
            return path, json.loads((path / "pid.json").read_text())["pid"]
    raise AssertionError(name)


def test_a_job_that_is_killed_leaves_the_studio_alive(visit, server, place):
    page = visit(server)
    run = begin(page, "long.npz", "killed run")
    expect(run.locator(".badge").first).to_have_text("running")
    expect(run).to_contain_text("weak-form fit", timeout=LATER)
    os.kill(running(place, "killed run")[1], signal.SIGKILL)
    state(page, "killed run", "crashed")
    expect(run).to_contain_text("code -9")
    begin(page, "drop.npz", "after it", method="weak", check="false")
    state(page, "after it", "done")
    run.get_by_role("button", name="Remove").click()
    expect(page.locator('article[aria-label="run killed run"]')).to_have_count(0)


def test_a_server_that_dies_loses_nothing(visit, place, drop):
    folder = place.parent / "again/start"
    folder.mkdir(parents=True)
    save(drop, folder / "drop.npz")
    shutil.copy(place / "long.npz", folder)
    first = Server(folder)
    page = visit(first)
    begin(page, "drop.npz", "finished", method="weak", check="false")
    state(page, "finished", "done")
    long = begin(page, "long.npz", "under way", method="trajectory", check="false", degree="1")
    expect(long).to_contain_text("weak-form fit", timeout=LATER)
    path, process = running(folder, "under way")
    page.close()
    first.die()
    second = Server(folder / "drop.npz")  # a movie instead of its folder
    page = visit(second)
    expect(page.locator("#file")).to_have_value("drop.npz")
    expect(page.locator("#view")).to_be_visible()
    state(page, "finished", "done")
    expect(page.locator("#legend .name").first).to_have_text("finished")
    state(page, "under way", "done")  # by the process that outlived its server
    assert json.loads((path / "pid.json").read_text())["pid"] == process
    assert second.stop() == ""


def test_attacks_are_refused(visit, server, place):
    """Over the wire what test_security tries on the application; here also a page of somebody else."""
    ask, body = server.ask, {"file": "drop.npz", "words": {}}
    (place / "link.npy").symlink_to(place.parent / "secret.npy")
    assert ask("GET", "/api/state", Host="evil.example")[0] == 421  # a name bent to this machine
    assert ask("GET", "/", Cookie=None)[0] == 403  # no token
    assert ask("GET", "/?token=guess", Cookie=None)[0] == 403
    assert ask("POST", "/api/runs", body, Origin="http://evil.example")[0] == 403  # another origin
    assert ask("POST", "/api/runs", body, Origin=None)[0] == 403
    assert ask("GET", "/api/state", Sec_Fetch_Site="same-site")[0] == 403  # another port of this machine
    for name in ("../secret.npy", "/etc/passwd", "link.npy"):
        for task in ("inspect", "frame", "runs"):
            status, _, answer = ask("POST", f"/api/{task}", {"file": name, "words": {}})
            assert "error" in json.loads(answer), (name, task, status)
    assert ask("PUT", "/api/upload/large.tif", b"", Content_Length=str(10**10))[0] == 413  # 10 GB
    assert ask("POST", "/api/inspect", b"x" * 10**6)[0] == 413
    assert ask("GET", "/runs/..%2f..%2fsecret.npy/result.json")[0] in (400, 404)
    assert ask("GET", "/../secret.npy")[0] == 404
    status, _, answer = ask("POST", "/api/inspect", {"file": "drop.npz", "words": {"checkpoint": "/elsewhere/x"}})
    assert "not a field" in json.loads(answer)["error"]
    status, _, answer = ask(
        "POST", "/api/inspect", {"file": "drop.npz", "words": {"mask": str(place.parent / "secret.npy")}}
    )
    assert "outside of the folder" in json.loads(answer)["error"]
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    upgrade["Sec-WebSocket-Key"] = "A" * 22 + "=="
    assert ask("GET", "/api/state", **upgrade, Origin="http://evil.example")[0] != 101
    (place / "link.npy").unlink()


def test_the_token_is_in_no_argument_list_environment_or_log(visit, server, place):
    visit(server)
    token = server.url.split("token=")[1]
    ours = psutil.Process(server.process.pid)
    for process in (ours, *ours.children(recursive=True)):
        assert token not in " ".join([*process.cmdline(), *process.environ().values()])
    kept = [path for path in (place / "doublewell-studio").rglob("*") if path.is_file()]
    assert kept
    assert not any(token.encode() in path.read_bytes() for path in kept)


def test_scripts_in_names_and_metadata_are_text(visit, server, place):
    tifffile = pytest.importorskip("tifffile")
    page = visit(server)
    np.save(place / "u.npy", np.random.default_rng(0).normal(size=(6, 16, 40)))
    drop_on(page, place / "u.npy", NASTY)
    expect(page.locator("#status")).to_contain_text(NASTY)
    np.save(place / NASTY, np.load(place / "u.npy"))  # in the folder a name may be anything
    page.reload()
    page.select_option("#file", NASTY)
    expect(page.locator("#findings")).to_contain_text("--dx")
    script = "<script>document.title=1</script>"
    about = {"axes": "TYX", "PhysicalSizeX": 1.0, "PhysicalSizeXUnit": script, "TimeIncrement": 1.0, "Name": script}
    tifffile.imwrite(place / "nasty.ome.tif", np.zeros((6, 16, 16), np.float32), metadata=about)
    page.reload()
    page.select_option("#file", "nasty.ome.tif")
    expect(page.locator("#findings .box").first).to_be_visible()
    begin(page, "drop.npz", script, method="weak", check="false")
    state(page, script, "done")
    assert page.title() == "doublewell studio"
    assert page.locator("img, script:not([src='/app.js'])").count() == 0


def test_no_other_page_can_frame_or_read_the_studio(browser, server, tmp_path):
    context = browser.new_context()
    page = context.new_page()
    page.goto(server.url)
    expect(page.locator("#folder")).to_contain_text("start")
    other = context.new_page()
    (tmp_path / "evil.html").write_text(
        f'<iframe src="http://localhost:{server.port}/"></iframe>'
        f'<form method="post" action="http://localhost:{server.port}/api/runs"><input name="file" value="x"></form>'
    )
    other.goto((tmp_path / "evil.html").as_uri())
    assert other.frames[1].evaluate("document.querySelector('#folder') === null")
    got = other.evaluate(f"fetch('http://localhost:{server.port}/api/state').then((x) => x.text(), () => 'refused')")
    assert got == "refused"
    count = len(server.runs())
    with other.expect_navigation():
        other.evaluate("document.forms[0].submit()")
    assert "only the page of the studio" in other.inner_text("body")
    assert len(server.runs()) == count
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(1280, 900), (390, 844)])
def test_nothing_serious_for_accessibility(visit, server, scheme, size):
    page = visit(server, color_scheme=scheme, viewport={"width": size[0], "height": size[1]})
    if not any(run["answer"] for run in server.runs()):
        begin(page, "drop.npz", "for axe", method="weak", check="false")
        state(page, "for axe", "done")
    page.select_option("#file", "drop.npz")
    expect(page.locator("#findings .box").first).to_be_visible()
    expect(page.locator("#view")).to_be_visible()
    for summary in page.locator("#form > form > details > summary").all():
        summary.click()
    expect(page.locator("#legend .name").first).to_be_visible()  # with a run, its curve and its numbers
    answer = Axe().run(page).response
    found = answer["violations"]
    assert len(answer["passes"]) > 20
    serious = [
        (item["id"], [node["html"] for node in item["nodes"]])
        for item in found
        if item["impact"] in ("serious", "critical")
    ]
    assert serious == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")  # nothing to scroll sideways


def test_a_run_by_keyboard_alone(visit, server):
    page = visit(server)
    page.locator("#file").focus()
    page.locator("#file").press("d")  # drop.npz
    expect(page.locator("#file")).to_have_value("drop.npz")
    expect(page.locator("#findings .box").first).to_be_visible()
    for _ in range(200):
        page.keyboard.press("Tab")
        here = page.evaluate("document.activeElement.id")
        if here == "field-method":
            page.keyboard.press("w")
        elif here == "name":
            page.keyboard.type("by keyboard")
            expect(page.locator("#identify")).to_be_enabled()
        elif here == "identify":
            page.keyboard.press("Enter")
            break
    state(page, "by keyboard", "done")
