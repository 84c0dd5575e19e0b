"""The page: what a reader finds in it, for every kind of result and record."""

import re
import zlib
from base64 import b64decode
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from grouping import changed
from PIL import Image

from doublewell.errors import InputError
from doublewell.facts import facts
from doublewell.identify import identify
from doublewell.options import Weak
from doublewell.problem import Source
from doublewell.record import Record, checksum
from doublewell.report import page_html, write_page
from doublewell.report.pictures import _FRAMES, _SIDE, Film, encode, make_film, origin, predicted, viewer


def refused(match):
    return pytest.raises(InputError, match=match)


def test_a_stranger_reads_wells_certainty_and_what_to_do(banded_page, words_of):
    words = words_of(banded_page)
    assert "the wells lie at u = −1 and u = 1, and the wells are symmetric" in words.split("Found:")[0]  # assumed
    assert "The energy is a double well, as assumed; its barrier" in words
    assert re.search(r"its barrier is F\(0\) = 0\.2\d+ \(95 %: 0\.2\d+ to 0\.2\d+\)", words)
    assert re.search(r"ε = 0\.1\d+ \(95 %: [\d.]+ to [\d.]+\)", words)
    assert re.search(r"The force is known to ±[\d.]+ % \(95 % band", words)
    assert "None of 23 tests is significant" in words
    assert "What would improve it" in words
    assert re.search(r"half of it would narrow the band of G from ±[\d.]+ % to about ±[\d.]+ %", words)
    assert "doublewell plan --law result.json --mesh 32x32" in words


def test_the_law_its_numbers_and_the_way_back(banded_page, banded, small, words_of):
    words = words_of(banded_page)
    lead = f"{float(banded.law.family.exact_bracket(banded.law.coefficients)[0]):.5g}"
    assert f"G(u) = −u (1 − u 2 ) [{lead}" in words
    assert checksum(small) in words
    assert banded.problem.records[0].checksum == checksum(small)
    assert "doublewell repeat result.json" in words
    assert "jax " in words
    for fit in banded.posterior.path:
        assert f" {fit.degree} {fit.chi2:.1f} " in words


def test_one_page_that_needs_nothing_else(banded_page, weak_page):
    for html in (banded_page, weak_page):
        assert len(html.encode()) < 2e6
        addresses = re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?([^"'\s>)]+)""", html)
        assert addresses
        assert all(place.startswith(("data:", "#", "+")) for place in addresses)
        assert "http" not in re.sub(r'http-equiv="', "", html)
        assert "Content-Security-Policy" in html
        assert "default-src &#x27;none&#x27;" in html


def test_every_figure_has_an_alternative_text(banded_page, weak_page):
    for html in (banded_page, weak_page):
        drawn = re.findall(r'<svg[^>]*aria-labelledby="(\S+) (\S+)"[^>]*>', html)
        assert len(drawn) == html.count("<svg") >= 8
        assert html.count('role="img"') == len(drawn)
        for title, text in drawn:
            assert len(re.findall(rf'<title id="{title}">[^<]+</title>', html)) == 1
            (said,) = re.findall(rf'<desc id="{text}">([^<]+)</desc>', html)
            assert len(said) > 60
        names = re.findall(r'\bid="([^"]+)"', html)
        assert len(names) == len(set(names))
        assert 'style="' not in html  # which the page's own policy forbids
        assert all("alt=" in head for head in re.findall(r"<img[^>]*>", html))


def test_units_are_shown_where_they_are_known(banded, in_units, small, words_of):
    movie = Record(
        small.slab(), dx=small.dx, times=small.times, q=1.0, boundary="periodic", length_unit="um", time_unit="s"
    )
    html = page_html(in_units, movie)
    words = words_of(html)
    assert "with the given q = 1 um²/s" in words
    assert "J/m² its scale ε?" in words
    first = r"its barrier is f\(0\) = [\d.]+ × 10\S+ J/m³ \(95 %: .* to .*\), and κ = \S+ × 10\S+ J/m .*"
    second = r"In the paper's pair it is F\(0\) = [\d.]+ \(J/m²\)² \(95 %: .* to .*\), and ε = [\d.]+ \(J/m²\) um"
    assert re.search(first + second, words)
    assert words.index("f(u) = κ ∫") < words.index("F(u) = ε² ∫")
    assert words.index("In physical units") < words.index("In the units of the movie") < words.index("barrier H(0)")
    charts = [html.index(f'id="curve-{symbol}') for symbol in "fGF"]
    assert charts == sorted(charts)
    assert re.search(r"barrier H\(0\) [\d.]+ 1/um²", words)
    assert re.search(r"planar interface from u = −0.9 to 0.9 [\d.]+ um", words)
    for name in ("x (um)", "y (um)", "time (s)", "time since the first frame (s)"):
        assert name in words
    assert re.search(r"frame 7, t = 0.0035 s", words)
    assert "frame interval dt 0.0005 s" in words
    assert "In physical units lengths in um, times in s; G and H in 1/um²" in words
    assert re.search(r"gradient coefficient κ [\d.]+ × 10⁻\S J/m ", words)
    assert "G(u)  (1/um²)" in html
    assert "In physical units" not in words_of(page_html(banded, small))


def test_without_boundary_and_tension(record, words_of):
    bare = Record(record.slab(), dx=record.dx, times=record.times, q=record.q)
    words = words_of(page_html(identify(bare, method="weak"), bare))
    assert "No prediction: the record is a window" in words
    assert "Use the trajectory fit" in words
    assert "has no noise model" in words
    assert "Measure a surface tension by other means" in words
    assert "F and ε are not determined" in words
    assert "ε and F are not determined: the dynamics contain only G" in words
    assert "pass --surface-tension to fix the scale" in words


NASTY = '<img src=x onerror="alert(1)">&amp;"\'</script><b>'


def test_text_from_files_stays_text(banded, small):
    source = Source(f"/data/{NASTY}.npz", (("var", NASTY), ("dt", 0.1)))
    html = page_html(changed(banded, source=source), small)
    assert NASTY not in html
    assert "<img src=x" not in html
    assert html.count("</script>") == 2  # the data and the script
    assert (
        html.count("&lt;img src=x onerror=&quot;alert(1)&quot;&gt;&amp;amp;&quot;&#x27;&lt;/script&gt;&lt;b&gt;")
        == 2  # the path and the option
    )


def test_the_same_page_each_time_and_other_validations(banded, small, banded_page, validation, result, record):
    assert zlib.crc32(page_html(banded, small).encode()) == zlib.crc32(banded_page.encode())
    assert "evolved from the observed frame 4, whose noise it keeps" in page_html(result, record, validation=validation)


def test_the_page_shows_the_fields_of_the_fit(banded, small, banded_page, words_of):
    assert "the recovered law evolved from the initial field that was fitted with it" in words_of(banded_page)
    film = make_film(small, predicted(banded, small))
    fit = banded.diagnostics.likelihood
    assert np.sqrt(np.mean((film.observed - film.predicted) ** 2, axis=(1, 2))) == pytest.approx(
        fit.residual_frames, rel=0.02
    )


def test_a_result_without_its_initial_field_says_so(banded, small, words_of):
    fit = replace(banded.diagnostics.likelihood, initial=None)
    older = replace(banded, diagnostics=replace(banded.diagnostics, likelihood=fit))
    words = words_of(page_html(older, small))
    assert "evolved from the observed frame 0, whose noise it keeps" in words
    assert "This result holds no fitted initial field" in words


def test_a_movie_on_a_line_is_one_picture(make_movie, words_of):
    line = make_movie((96,), frames=21)
    html = page_html(identify(line, law=1, method="weak"), line)
    words = words_of(html)
    assert "each picture is the whole movie, time upwards" in words
    assert 'type="range"' not in html
    assert html.count("Root mean square over time of predicted minus observed") == 1


def test_three_axes_show_the_middle_slice(make_movie, words_of):
    block = make_movie((20, 18, 16), frames=9)
    html = page_html(identify(block, law=0, method=Weak(supports=[(2, 0.25)])), block)
    words = words_of(html)
    assert "Three space axes: the middle slice is shown, z = 0.625" in words
    assert "Three axes: the middle slice." in words
    assert 'type="range"' in html


def test_large_records_are_thinned_and_said_so(result):
    u = np.tanh(np.linspace(-3.0, 3.0, 500))[None, None] * np.ones((130, 330, 1))
    big = Record(u.astype(np.float32), dx=0.01, dt=0.1, q=1.0)
    found = predicted(result, big)
    film = make_film(big, found)
    assert film.observed.shape == (61, 110, 125)
    assert film.frames[:2] + film.frames[-1:] == (0, 2, 129)
    np.testing.assert_array_equal(film.observed[3], u[film.frames[3], ::3, ::4].astype(np.float32))
    assert film.notes == (
        "61 of 130 frames are shown, evenly spread.",
        "Of each frame one pixel in 3 along y and one pixel in 4 along x is shown; nothing is averaged, so the noise "
        "looks as it is.",
    )
    assert "No prediction: the record is a window" in origin(facts(result), found)


def test_the_worst_movie_makes_a_page_of_less_than_12_megabytes():
    noise = np.random.default_rng(0).uniform(-1.0, 1.0, (61, 160, 160))  # no image is larger, and none compresses less
    assert noise.shape[:2] == (_FRAMES, _SIDE)
    film = Film(tuple(range(61)), np.arange(61.0), noise, noise[::-1], (), (1.0, 1.0))
    assert 6e6 < len(viewer(film)) < 11.5e6


def test_a_movie_too_large_to_evolve_is_evolved_in_part_or_not_at_all(result, record, monkeypatch):
    monkeypatch.setattr("doublewell.report.pictures._VALUES", 10 * 48 * 48)
    found = predicted(result, record)
    assert (found.start, found.predicted.frames) == (15, 10)
    assert "from frame 15 on" in " ".join(make_film(record, found).notes)
    monkeypatch.setattr("doublewell.report.pictures._VALUES", 48 * 48)
    assert "too large to be evolved" in predicted(result, record)


def test_a_law_that_cannot_be_evolved_is_said(result, record, monkeypatch):
    def refuse(*_, **__):
        raise InputError("the field left the range")

    monkeypatch.setattr("doublewell.report.pictures.validate", refuse)
    assert predicted(result, record) == "the law could not be evolved: the field left the range"


def test_images_are_png_with_the_first_row_below():
    field = np.array([[-1.0, 0.0, 1.0], [2.0, -2.0, 0.5]])
    with Image.open(BytesIO(b64decode(encode(field, (-1.0, 1.0), "gray")))) as image:
        assert (image.format, image.size) == ("PNG", (3, 2))
        pixels = np.asarray(image.convert("L"))
    assert pixels.tolist() == [[255, 0, 191], [0, 128, 255]]


def test_writing_is_whole_or_not_at_all(banded, small, tmp_path, monkeypatch):
    said = []
    path = write_page(banded, small, tmp_path / "new" / "page.html", progress=lambda *words: said.append(words[0]))
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert list(dict.fromkeys(said)) == ["checking the data", "evolving", "drawing"]
    before = path.read_bytes()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
    with refused(r"page\.html could not be written: No space left"):
        write_page(banded, small, path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["page.html"]


def test_wrong_arguments(banded, small, record, tmp_path):
    with refused(r"report\.txt: expected a name that ends in \.html for a page"):
        write_page(banded, small, tmp_path / "report.txt")
    with refused("expected a Result, got Record: call write_page"):
        write_page(small, small, tmp_path / "report.html")
    with refused("record is a ndarray: expected a Record"):
        write_page(banded, small.slab(), tmp_path / "report.html")
    with refused(r"shape \(25, 48, 48\) and the result of \(15, 32, 32\): expected the record that the result came"):
        write_page(banded, record, tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


def test_another_movie_of_the_same_shape_is_told(banded, small, words_of):
    words = words_of(page_html(banded, small.replace(small.slab()[:, ::-1])))
    assert "Is this the movie of the result?" in words
    assert "their checksums differ" in words.lower()
