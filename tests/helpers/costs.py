"""A plugin of pytest: processor seconds and compiled programs of each test file (`pytest -p costs --costs costs.tsv`).

Seconds are those of the processor, its threads and its children, so that a busy machine gives the same table. Programs
are those that XLA compiled, not those that it loaded from the cache.
"""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

import pytest

_COMPILED = "/jax/core/compile/backend_compile_duration"
_programs = [0, 0.0]
_begun: dict[str, tuple[float, int, float]] = {}
_costs: dict[str, list[tuple[str, float, int, float]]] = defaultdict(list)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--costs", default=None, help="file for the processor seconds and programs of each test")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--costs"):
        import jax

        jax.monitoring.register_event_duration_secs_listener(_count)


def _count(event: str, seconds: float, **_: object) -> None:
    if event == _COMPILED:
        _programs[0] += 1
        _programs[1] += seconds


def _now() -> tuple[float, int, float]:
    return sum(os.times()[:4]), int(_programs[0]), _programs[1]


def pytest_runtest_logstart(nodeid: str) -> None:
    _begun[nodeid] = _now()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    outcome = yield
    if call.when == "teardown" and item.nodeid in _begun:
        cost = [after - before for before, after in zip(_begun.pop(item.nodeid), _now(), strict=True)]
        outcome.get_result().user_properties.append(("cost", cost))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    for key, cost in report.user_properties:
        if key == "cost":
            _costs[report.nodeid.split("::")[0]].append((report.nodeid, *cost))


def pytest_terminal_summary(config: pytest.Config) -> None:
    name = config.getoption("--costs")
    if not name or hasattr(config, "workerinput"):
        return
    lines = ["seconds\tprograms\tcompiling\ttest"]
    files = [(file, *(sum(column) for column in list(zip(*rows, strict=True))[1:])) for file, rows in _costs.items()]
    for row in sorted(files, key=lambda row: -row[1]):
        lines.append(f"{row[1]:.2f}\t{row[2]}\t{row[3]:.2f}\t{row[0]}")
    for rows in _costs.values():
        lines.extend(f"{row[1]:.2f}\t{row[2]}\t{row[3]:.2f}\t{row[0]}" for row in rows)
    Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")
