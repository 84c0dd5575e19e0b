"""Check a built site: every link leads somewhere, and no page loads anything from outside.

python docs/site/check_site.py build/site
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src"}
_STYLE_LOAD = re.compile(r"""(?:@import\s+(?:url\()?|url\()\s*["']?((?:https?:)?//[^"')\s]+)""")
_SCRIPT_LOAD = re.compile(r"""(?:fetch|importScripts|import)\(\s*["'`]((?:https?:)?//[^"'`]+)""")


@dataclass
class Page(HTMLParser):
    """The names, the links and the loads of one HTML file."""

    names: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Note what a tag names, where it leads and what it loads."""
        found = {name: value for name, value in attributes if value is not None}
        self.names |= {found[key] for key in ("id", "name") if key in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag == "link" and "href" in found and found.get("rel") not in ("canonical", "author"):
            self.loads.append(found["href"])
        if tag in _LOADS and _LOADS[tag] in found:
            self.loads.append(found[_LOADS[tag]])


def read_page(path: Path) -> Page:
    """Return what is in an HTML file."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def faults(site: Path) -> Iterator[str]:
    """Say what is wrong with a site: one line for each fault."""
    pages = {path: read_page(path) for path in sorted(site.rglob("*.html"))}
    if not pages:
        yield f"{site} holds no page"
    for path, page in pages.items():
        where = path.relative_to(site)
        yield from (f"{where}: {fault}" for fault in _page_faults(path, page, pages))
    for kind, pattern in ((".css", _STYLE_LOAD), (".js", _SCRIPT_LOAD)):
        for path in sorted(site.rglob(f"*{kind}")):
            for target in pattern.findall(path.read_text(encoding="utf-8", errors="replace")):
                yield f"{path.relative_to(site)}: loads {target} from outside"


def _page_faults(path: Path, page: Page, pages: dict[Path, Page]) -> Iterator[str]:
    for target in page.loads:
        parts = urlsplit(target)
        if parts.netloc or parts.scheme not in ("", "data"):
            yield f"loads {target} from outside"
        elif parts.path and not parts.scheme and not (path.parent / unquote(parts.path)).exists():
            yield f"loads {target}, which is not there"
    for target in page.links:
        parts = urlsplit(target)
        if parts.netloc or parts.scheme:
            continue  # a reader may follow it; nothing is loaded
        file = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
        if not file.exists():
            yield f"links to {target}, which is not there"
        elif parts.fragment and file.suffix == ".html":
            names = next((other.names for place, other in pages.items() if place.resolve() == file), set())
            if unquote(parts.fragment) not in names:
                yield f"links to {target}, which has no such place"


def main() -> int:
    """Print the faults; the exit code is 1 where there are any."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path)
    site = parser.parse_args().site
    found = list(faults(site))
    for fault in found:
        print(fault)
    print(f"{site}: {len(list(site.rglob('*.html')))} pages, {len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
