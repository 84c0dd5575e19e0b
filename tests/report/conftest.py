import re
from dataclasses import replace
from html import unescape
from io import BytesIO
from itertools import combinations

import numpy as np
import pytest
from grouping import changed
from PIL import Image

from doublewell.identify import identify
from doublewell.inference import Component, Posterior
from doublewell.law import Bernstein, Law, named_law
from doublewell.report import Truth, page_html
from doublewell.report.style import render
from doublewell.simulate import add_noise, initial_field, simulate
from doublewell.validate import validate

EPSILON = 0.06


def movie(mesh, *, frames=25, noise=0.02, law="sixth", geometry="circle"):
    dx = 1 / min(mesh)
    start = initial_field(geometry, mesh, dx, epsilon=EPSILON)
    clean = simulate(named_law(law), start, dx=dx, dt=2e-4, frames=frames, epsilon=EPSILON)
    return add_noise(clean, noise, seed=3)


@pytest.fixture(scope="session")
def make_movie():
    return movie


@pytest.fixture(scope="session")
def truth():
    return Truth(named_law("sixth"), EPSILON)


@pytest.fixture(scope="session")
def record():
    return movie((48, 48))


@pytest.fixture(scope="session")
def result(record, truth):
    return identify(record, truth.law.surface_tension(epsilon=1.0), method="weak")


@pytest.fixture(scope="session")
def bare(record):
    return identify(record, law=1, method="weak")


@pytest.fixture(scope="session")
def validation(result, record):
    return validate(result, record, start=4)


@pytest.fixture(scope="session")
def small():
    """A record on which the trajectory fit is fast: 15 frames of 32 x 32, periodic, epsilon = 0.1."""
    start = initial_field("nonconvex", (32, 32), 1 / 32, epsilon=0.1)
    clean = simulate(named_law("sixth"), start, dx=1 / 32, dt=5e-4, frames=15, epsilon=0.1)
    return add_noise(clean, 0.03, seed=5)


@pytest.fixture(scope="session")
def banded_truth():
    return Truth(named_law("sixth"), 0.1)


@pytest.fixture(scope="session")
def banded(small, banded_truth):
    """A result of the trajectory fit, averaged over the degrees."""
    return identify(small, banded_truth.law.surface_tension(epsilon=1.0))


@pytest.fixture(scope="session")
def in_units(banded):
    """The same with units of length, time and tension."""
    tension = replace(banded.scale.tension, unit="J/m^2", sd=None)
    known = changed(banded, length_unit="um", time_unit="s", tension=tension)
    return replace(known, scale=replace(banded.scale, tension=tension))


@pytest.fixture(scope="session")
def single(banded):
    """The same with its second degree alone; made from the average, because another fit would compile again."""
    fit = banded.posterior.path[2]
    part = Component(2, None, None, 1.0, fit.free, fit.coefficients, fit.covariance)
    alone = Posterior(Bernstein(2), (replace(fit, weight=1.0),), (part,), np.zeros((2, 3)), "bernstein")
    law = Law.bernstein(fit.coefficients)
    numbers = replace(banded.diagnostics, unconstrained=fit.free, active=fit.active)
    return replace(banded, law=law, posterior=alone, diagnostics=numbers)


@pytest.fixture(scope="session")
def check_figure():
    """Look at a figure: neither empty nor cut, and no two texts overlap. Return its pixels."""

    def look(figure):
        image = pixels(figure)
        check_picture(image)
        assert not clashes(figure)
        return image

    return look


def pixels(figure):
    with Image.open(BytesIO(render(figure, "png"))) as image:
        assert image.format == "PNG"
        return np.asarray(image.convert("RGB")).astype(np.int32)


def check_picture(image):
    height, width, _ = image.shape
    assert 300 < width < 2500
    assert 250 < height < 2500
    assert 0.02 < np.mean(np.any(image < 250, axis=-1)) < 0.95  # neither empty nor full
    assert np.unique(image @ [1, 256, 65536]).size > 50
    edge = np.concatenate([image[0], image[-1], image[:, 0], image[:, -1]])
    assert edge.min() > 240, "something is cut at the edge"


def written(axis):
    """The texts of an axis that are drawn, without tick labels beyond its limits."""
    legend = axis.get_legend()
    texts = [] if legend is None else [legend.get_title(), *legend.get_texts()]
    if axis.axison:
        texts += [axis.title, axis.xaxis.label, axis.yaxis.label]
        for scale, (low, high) in ((axis.xaxis, axis.get_xlim()), (axis.yaxis, axis.get_ylim())):
            ticks = scale.get_major_ticks()
            texts += [t.label1 for t in ticks if t.label1.get_visible() and low <= t.get_loc() <= high]
            texts += [t.label2 for t in ticks if t.label2.get_visible() and low <= t.get_loc() <= high]
    return [text for text in texts if text.get_visible() and text.get_text().strip()]


def clashes(figure):
    """Pairs of texts that overlap."""
    figure.canvas.draw()
    texts = [text for axis in figure.axes for text in written(axis)] + list(figure.texts)
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts]
    assert len(boxes) > 5
    return [(a, b) for (a, box), (b, other) in combinations(boxes, 2) if box.shrunk(0.9, 0.9).overlaps(other)]


@pytest.fixture(scope="session")
def words_of():
    """Return the text of a page as a reader sees it: no markup, style, script or data."""

    def read(html):
        body = re.sub(r"<(script|style|head)\b.*?</\1>", " ", html, flags=re.DOTALL)
        return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", body)))

    return read


@pytest.fixture(scope="session")
def banded_page(banded, small):
    return page_html(banded, small)


@pytest.fixture(scope="session")
def weak_page(result, record, validation):
    return page_html(result, record, validation=validation)
