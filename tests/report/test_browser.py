"""The page in a browser: no errors, no requests, the slider moves, phone, print, light and dark."""

import os
import re
import shutil
from dataclasses import replace

import pytest
from grouping import changed

from doublewell.problem import Source
from doublewell.report import write_page
from doublewell.report.overview import Entry, overview_html

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
NASTY = '<img src=x onerror="document.title=1">'

if not os.environ.get("CI"):  # there a missing browser is an error
    pytest.importorskip("playwright", reason="Playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)", allow_module_level=True)

from playwright.sync_api import expect, sync_playwright  # noqa: E402


@pytest.fixture(scope="module")
def browser():
    assert CHROMIUM is not None, "Chromium is not installed"
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory, banded, small, result, record, validation):
    folder = tmp_path_factory.mktemp("pages")
    named = changed(banded, source=Source(f"{NASTY}.npz"))
    entries = [Entry.of(f"{NASTY} {k}", f"{NASTY} {k}/report.html", each) for k, each in enumerate((banded, banded))]
    entries = [replace(entry, conditions={NASTY: k}) for k, entry in enumerate(entries)]
    (folder / "overview.html").write_text(overview_html([*entries, Entry(NASTY, error=NASTY)]), encoding="utf-8")
    return {
        "overview": folder / "overview.html",
        "trajectory": write_page(named, small, folder / "trajectory.html"),
        "weak": write_page(result, record, folder / "weak.html", validation=validation),
    }


@pytest.fixture
def visit(browser, files):
    """Open a page and return it; at the end nothing may have been said or asked for."""
    opened, troubles = [], []

    def go(name="trajectory", **options):
        context = browser.new_context(**options)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda asked: troubles.append(asked.url) if not known(asked.url) else None)
        page.goto(files[name].as_uri())
        opened.append(context)
        return page

    def known(url):
        return url.startswith("data:") or url in {path.as_uri() for path in files.values()}

    yield go
    for context in opened:
        context.close()
    assert troubles == []


@pytest.mark.parametrize("name", ["trajectory", "weak", "overview"])
def test_opens_offline_without_errors(visit, name):
    page = visit(name, offline=True)
    assert page.locator("h1").inner_text().startswith("Free energ")
    assert page.locator("section").count() == (5 if name == "overview" else 9)
    assert page.evaluate("[...document.images].every((image) => image.complete && image.naturalWidth > 0)")


def test_a_file_name_with_markup_is_text(visit):
    page = visit()
    assert page.title() == f"{NASTY}.npz: free energy"
    assert page.locator("h1").inner_text() == f"Free energy from {NASTY}.npz"
    assert page.locator("img[src=x]").count() == 0


def shown(page, kind):
    return page.locator(f"image.live-{kind}").get_attribute("href")


def test_the_slider_moves_the_frame(visit):
    page = visit()
    slider, when = page.locator("#frame"), page.locator("#when")
    assert when.inner_text() == "frame 7, t = 0.0035"
    before = {kind: shown(page, kind) for kind in ("observed", "predicted", "rest")}
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert when.inner_text() == "frame 8, t = 0.004"
    assert slider.get_attribute("aria-valuetext") == "frame 8, t = 0.004"
    assert all(shown(page, kind) != before[kind] for kind in before)
    page.keyboard.press("End")
    assert when.inner_text() == "frame 14, t = 0.007"
    page.keyboard.press("Home")
    assert when.inner_text() == "frame 0, t = 0"
    sizes = page.evaluate(
        "Promise.all([...document.querySelectorAll('#viewer image.pixels')].map(async (item) => {"
        " const image = new Image(); image.src = item.getAttribute('href'); await image.decode();"
        " return image.naturalWidth; }))"
    )
    assert sizes == [32, 32, 32]


def test_the_movie_plays_and_stops(visit):
    page = visit()
    page.locator("#play").click()
    assert page.locator("#play").inner_text() == "Stop"
    expect(page.locator("#when")).to_have_text("frame 14, t = 0.007")
    expect(page.locator("#play")).to_have_text("Play")
    page.locator("#play").click()  # from the start again
    expect(page.locator("#when")).not_to_have_text("frame 14, t = 0.007")
    page.locator("#play").click()
    assert page.locator("#play").inner_text() == "Play"


@pytest.mark.parametrize("width", [320, 360, 412, 800])
@pytest.mark.parametrize("name", ["trajectory", "weak", "overview"])
def test_no_screen_scrolls_sideways(visit, name, width):
    page = visit(name, viewport={"width": width, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for box in page.locator("svg").all():
        place = box.bounding_box()
        assert place is None or place["x"] + place["width"] <= width


CLASHES = """() => {
    const found = [];
    for (const svg of document.querySelectorAll("svg")) {
        const frame = svg.getBoundingClientRect();
        if (!frame.width) continue;
        const texts = [...svg.querySelectorAll("text:not(.mark)")];
        const boxes = texts.map((item) => item.getBoundingClientRect());
        boxes.forEach((a, i) => {
            const inside = a.left > frame.left - 1 && a.right < frame.right + 1 && a.bottom < frame.bottom + 1;
            if (!inside) found.push(texts[i].textContent + " leaves its drawing");
            boxes.slice(i + 1).forEach((b, k) => {
                const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
                const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
                if (across > 1 && down > 3) found.push(texts[i].textContent + " over " + texts[i + 1 + k].textContent);
            });
        });
    }
    return found;
}"""


@pytest.mark.parametrize("width", [360, 1200])
@pytest.mark.parametrize("name", ["trajectory", "weak", "overview"])
def test_no_texts_of_a_drawing_overlap(visit, name, width):
    assert visit(name, viewport={"width": width, "height": 800}).evaluate(CLASHES) == []


def contrast(page, selector):
    """The contrast of a text against the page, by the formula of the accessibility guidelines."""
    colours = [
        page.locator(selector).first.evaluate("(item) => getComputedStyle(item).color"),
        page.locator("body").evaluate("(item) => getComputedStyle(item).backgroundColor"),
    ]
    levels = []
    for colour in colours:
        shares = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [x / 12.92 if x <= 0.03928 else ((x + 0.055) / 1.055) ** 2.4 for x in shares]
        levels.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(levels) + 0.05) / (min(levels) + 0.05), levels[1]


@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_light_and_dark_are_readable(visit, scheme, dark):
    page = visit(color_scheme=scheme)
    for selector in ("p", "figcaption", "a", ".badge", "summary"):
        ratio, paper = contrast(page, selector)
        assert ratio > 4.5, selector
        assert (paper < 0.1) is dark


def test_print_shows_three_frames_and_no_controls(visit):
    page = visit(color_scheme="dark")
    assert page.locator(".strip").is_hidden()
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.emulate_media(media="print")
    assert page.locator("#viewer").is_hidden()
    assert page.locator(".strip img.pixels").count() == 9
    assert page.locator(".strip img.pixels").first.is_visible()
    assert contrast(page, "p")[1] > 0.9  # white paper, also where the screen is dark


def test_without_script_the_frames_are_there(browser, files):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(files["trajectory"].as_uri())
    assert page.locator(".strip img.pixels").first.is_visible()
    assert page.locator("#viewer").is_hidden()
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_overview_shows_laws_movies_and_tests(visit, scheme):
    page = visit("overview", color_scheme=scheme)
    assert page.title() == "3 movies: free energy"
    expect(page.locator("svg")).to_have_count(3)
    assert page.locator("#movies tbody tr").count() == 3
    page.locator("#agreement summary").click()
    expect(page.locator("#agreement table")).to_be_visible()
