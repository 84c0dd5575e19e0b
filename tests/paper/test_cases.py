import pytest

from doublewell.law import LAW_NAMES
from doublewell.simulate import GEOMETRIES
from doublewell_paper.cases import CASES, shrink
from doublewell_paper.figures import FIGURES
from doublewell_paper.methods import METHODS
from doublewell_paper.table import paper_numbers
from doublewell_paper.tables import TABLES


@pytest.mark.parametrize("name", CASES)
def test_a_case_names_what_exists(name):
    for case in (CASES[name], shrink(CASES[name])):
        assert case.name == name
        assert set(case.methods) <= set(METHODS)
        assert len({spec.record for spec in case.specs}) == len(case.specs)
        for spec in case.specs:
            assert spec.law in LAW_NAMES
            assert spec.geometry in GEOMETRIES
            assert (spec.seed is None) == (spec.noise == 0.0)
            slow = [method for method in case.methods_of(spec) if METHODS[method].slow]
            assert not (slow and spec.seed is None)


def test_the_papers_numbers_of_records():
    assert len(CASES["clean"].specs) == 8
    for name in ("principal 0.01", "principal 0.03", "fresh"):
        assert len(CASES[name].specs) == paper_numbers()["principal_noise_0.03"]["records"] == 80
    replicated = [case for name, case in CASES.items() if name.startswith("replication")]
    assert [len(case.specs) for case in replicated] == [40] * 4
    stress = [case for name, case in CASES.items() if name.startswith("stress")]
    assert sum(len(case.specs) for case in stress) == paper_numbers()["stress_noise_0.03"]["records"] == 120
    assert [case.name.removeprefix("stress ") for case in stress] == paper_numbers()["stress_noise_0.03"]["conditions"]
    assert len(CASES["outside cone"].specs) == 42


def test_fresh_seeds_are_fresh():
    seeds = {name: {spec.seed for spec in case.specs} - {None} for name, case in CASES.items()}
    old = seeds["principal 0.01"] | seeds["principal 0.03"]
    assert seeds["principal 0.01"] == seeds["principal 0.03"]
    assert all(len(found) == 10 for name, found in seeds.items() if name.startswith(("principal", "fresh", "repl")))
    for name in ("fresh", "replication full 0.03", "replication short 0.01", "outside cone"):
        assert not seeds[name] & old


@pytest.mark.parametrize("kind", [*TABLES.values(), *FIGURES.values()], ids=lambda kind: kind.name)
def test_tables_and_figures_name_cases_that_exist(kind):
    assert set(kind.cases) <= set(CASES)


def test_every_case_is_used():
    used = {name for kind in (*TABLES.values(), *FIGURES.values()) for name in kind.cases}
    assert used == set(CASES)


def test_supports_fit_both_folds():
    from doublewell.weak.weights import check_supports, split_folds

    for case in CASES.values():
        for spec in {s for s in case.specs if s.cells <= 96}:
            cells = spec.cells // spec.coarsen
            check_supports(spec.supports, spec.frames, (cells, cells), (1 / cells, 1 / cells))
            split_folds(spec.frames, max(n for n, _ in spec.supports), spec.training)


def test_the_numbers_are_the_papers():
    told = paper_numbers()
    assert told["principal_noise_0.03"]["ridge STAC m=5"] == [5.66, 1.22, 0.484, 0.112, 25, 0, 6.67, 0]
    assert told["replication"]["short 0.03"]["e_G"] == [9.5, 25.03, 15.55, 21.85, 15.16]
    assert told["outside_cone"]["m=5 noise 0.03"][:4] == [10.0, 2.88, 27.89, 0.23]
