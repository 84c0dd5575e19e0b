# Each of these sets up what it needs on a machine with Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MINIMUM := build/minimum
OUT ?= demo
PAPER ?= out/paper

# Compiled programs are kept here between runs, JAX's and numba's; make clean clears them.
export DOUBLEWELL_CACHE := $(CURDIR)/build/cache/jax
export NUMBA_CACHE_DIR := $(CURDIR)/build/cache/numba

# Tests that take long, by path: recovery, sweeps, whole trajectory fits of many shapes, pages, examples, the paper,
# golden results, benchmarks, a browser. `pytest -p costs --costs FILE` measures what a file costs.
SLOW := tests/slow tests/golden tests/recovery tests/convergence tests/docs tests/examples tests/paper \
	tests/test_readme.py tests/test_tiled.py tests/test_wells.py tests/test_wells_views.py tests/test_identify_many.py \
	tests/likelihood/test_batch.py tests/likelihood/test_hard_records.py tests/adequacy/test_check.py \
	tests/adequacy/test_false_alarms.py tests/record/test_pixels.py tests/report/test_browser.py tests/studio/test_jobs.py tests/studio/test_walk.py \
	tests/test_contrast.py tests/test_drift.py tests/test_physical.py tests/test_determined.py tests/plan/test_prediction.py \
	tests/adequacy/test_alternatives.py tests/export/test_solvers.py tests/plan/test_conserved.py tests/baselines/test_conserved.py
PYTEST := -m pytest -n 2 --dist loadfile

.PHONY: demo docs paper test test-slow test-all test-golden test-minimum lint bench bench-compare bench-accuracy clean

$(VENV)/.ready: pyproject.toml paper/pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]' -e ./paper
	touch $@

demo: $(VENV)/.ready
	$(BIN)/doublewell demo --out $(OUT)

# Every table and figure of the paper; a run that was stopped resumes with the same command. TINY=1: small records, no pages.
paper: $(VENV)/.ready
ifdef TINY
	$(BIN)/python -m doublewell_paper --tiny --out $(PAPER)-tiny
else
	$(BIN)/python -m doublewell_paper --out $(PAPER)
	mkdir -p docs/figures
	cp $(PAPER)/paper.md docs/paper.md
	cp $(PAPER)/figures/*.png docs/figures/
endif

# The site, in build/site: the tutorial is run again, a broken reference or link is an error. Open build/site/index.html.
$(VENV)/.docs-ready: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@

docs: $(VENV)/.docs-ready
	$(BIN)/python docs/site/run_page.py docs/tutorial.ipynb --out build/tutorial
	rm -rf build/site
	$(BIN)/python -m sphinx -W -E --keep-going -q -b html -c docs/site -d build/site-cache docs build/site
	$(BIN)/python docs/site/check_site.py build/site
	touch build/site/.nojekyll

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# A tiny record, which compiles the weak kernel or loads it from numba's cache.
WARM = -c 'import doublewell as d, numpy as n; d.weak_evidence(d.Record(n.eye(10)[:9, None] * n.ones((10, 1)), dx=1.0, dt=1.0), d.Bernstein(0), [(2, 2.0)])'

# Tests compile hundreds of programs for small records: without optimisations of LLVM and the newer emitters of fused loops
# that takes half the time (14 programs of a small fit: 5.4 s, with the emitters 10.3 s).
test test-slow test-golden: export XLA_FLAGS := --xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false

# What a change can break, in minutes. The kernels are compiled once, before the workers share the cache.
test: lint
	$(BIN)/python $(WARM)
	$(BIN)/python $(PYTEST) --durations 20 $(SLOW:%=--ignore=%)

# The rest.
test-slow: $(VENV)/.ready
	$(BIN)/python $(WARM)
	$(BIN)/python $(PYTEST) --durations 20 $(SLOW)

test-all: test test-slow

# The stored answers of 0.1 alone.
test-golden: $(VENV)/.ready
	$(BIN)/python $(PYTEST) tests/golden

# The same tests with the oldest libraries that pyproject.toml declares, in an environment of their own.
$(MINIMUM)/.ready: pyproject.toml paper/pyproject.toml constraints-minimum.txt
	$(PYTHON) -m venv $(MINIMUM)
	$(MINIMUM)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-minimum.txt -e '.[dev]' -e ./paper
	touch $@

test-minimum: $(MINIMUM)/.ready
	$(MINIMUM)/bin/python $(WARM)
	$(MINIMUM)/bin/python $(PYTEST)

# Speed and memory: all tables, stored in benchmarks/results/bench.json; or the quick ones beside the stored ones.
bench: $(VENV)/.ready
	$(BIN)/python benchmarks/bench.py

bench-compare: $(VENV)/.ready
	$(BIN)/python benchmarks/bench.py --compare

# Errors of the paper's cases; the second one takes long.
bench-accuracy: $(VENV)/.ready
	$(BIN)/python benchmarks/accuracy.py
	$(BIN)/python benchmarks/trajectory_figures.py

clean:
	rm -rf $(VENV) $(MINIMUM) build/cache $(OUT) .mypy_cache .ruff_cache .pytest_cache
