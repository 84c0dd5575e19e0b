"""The separate 256 x 256 records beside the published networks, and the clean controls."""

from __future__ import annotations

from doublewell.hints import Array
from doublewell_paper.paper_numbers import paper_numbers
from doublewell_paper.results import Results, mean, scores
from doublewell_paper.table import Entry, Row, Table
from doublewell_paper.tables.kinds import HALF, TableKind

__all__ = ["KINDS"]

_WHY = "one noise seed and unstated outlines: a single record's error moves by this much from seed to seed."


def published(results: Results) -> Table:
    """Return ranges over three geometries beside the paper's networks, which are not run here."""
    paper = paper_numbers()["published_256_noise_0.01"]
    rows = []
    for method in ("STAC m=2", "smoothed FD4 m=2", "trajectory m=2", "trajectory m=5", "trajectory auto"):
        lines = results.of("published", method)
        told = paper["STAC"] if method == "STAC m=2" else [None] * 7
        entries = []
        for score, known in (("e_G", told[3:5]), ("e_F", told[5:7])):
            ends = _ends(scores(lines, score))
            entries += [Entry(value, paper_end, HALF) for value, paper_end in zip(ends, known, strict=True)]
        times = [line.seconds for line in lines]
        seconds = paper["seconds STAC, CPU"][1] if method == "STAC m=2" else None
        entries.append(Entry(max(times) if times else None, seconds))
        rows.append(Row(method, tuple(entries), _WHY))
    for name in ("SPINN", "PFWNN"):
        told = paper[name]
        entries = [Entry(paper=told[k]) for k in (3, 4, 5, 6)]
        rows.append(
            Row(f"{name}, projected (paper)", (*entries, Entry(paper=paper["seconds both networks together, GPU"][1])))
        )
    columns = ("e_G least", "e_G most", "e_F least", "e_F most", "seconds, most")
    remark = "Percent, sixth law, noise 0.01, circle, nonconvex and inclusion; norms on 20001 phase values."
    return Table("published", "256 x 256 records and published networks", columns, tuple(rows), (remark,))


def _ends(values: Array) -> tuple[float | None, float | None]:
    return (float(values.min()), float(values.max())) if values.size else (None, None)


_NOISY = ("published", "published more")
_CLEAN = ("published clean",)
_CONTROLS = {
    "clean STAC m=2": (_CLEAN, "STAC m=2"),
    "clean analytic weak m=2": (_CLEAN, "analytic weak m=2"),
    "clean direct FD4 m=2": (_CLEAN, "direct FD4 m=2"),
    "noisy STAC m=2": (_NOISY, "STAC m=2"),
    "noisy smoothed FD4 m=2": (_NOISY, "smoothed FD4 m=2"),
    "noisy trajectory auto": (_NOISY, "trajectory auto"),
}


def controls(results: Results) -> Table:
    """Return each geometry of the 256 x 256 set, clean and noisy."""
    names = sorted({line.spec.geometry for line in results.merged((*_NOISY, *_CLEAN), "STAC m=2")})
    rows = [Row(name, tuple(_control(results, name, *place) for place in _CONTROLS.values())) for name in names]
    remark = "e_G in percent. Direct differences on clean, fine records are the paper's case against a ranking."
    return Table("controls", "Each geometry of the 256 x 256 set", tuple(_CONTROLS), tuple(rows), (remark,))


def _control(results: Results, geometry: str, cases: tuple[str, ...], method: str) -> Entry:
    return Entry(mean([x for x in results.merged(cases, method) if x.spec.geometry == geometry], "e_G"))


KINDS = (
    TableKind("published", ("published",), published),
    TableKind("controls", (*_NOISY, *_CLEAN), controls),
)
