import re
from html import unescape

import pytest

from doublewell.report import page_html


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
