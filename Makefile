# Every target does its own set-up: a fresh clone, python3, make and a package index are enough.
#
#   make demo    fit a forecast to the Mauna Loa CO2 record; writes co2_forecast.png
#   make panel   fit 64 series on one process and on two, by Dask
#   make test    the default test suite: a few minutes on two cores
#   make test-all             the whole test suite: hours; what has passed since the code last changed is skipped
#   make test-all SHARD=2/6   a sixth of it
#   make test-optimized       a part of it under `python -OO`
#   make test-interop         programs with PyTorch, JAX, PyMC, xarray and pandas, in an environment of its own
#   make test-interop-smoke   a few of them, with JAX alone
#   make test-array-api       the test suite of the array API standard, which is cloned
#   make docs    build the site, site/index.html; a broken link or an undocumented name fails
#   make bench   compare with other engines, in an environment of its own
#   make readme  put the figures of the last `make bench` into README.md and its picture
#   make lint    ruff
#   make types   mypy --strict
#   make clean   remove the environments, caches and products

PYTHON ?= python3
VENV := .venv
# The extras of pyproject.toml that the tests run with: `test` is what the suite itself needs.
EXTRAS ?= dev
BENCH_VENV := .venv-bench
INTEROP_VENV := .venv-interop
SMOKE_VENV := .venv-interop-smoke
BIN := $(VENV)/bin
BENCH_BIN := $(BENCH_VENV)/bin
# Two workers are what the smallest machines have. The tests of a file share what they build, so one worker runs them.
WORKERS ?= 2
PARALLEL := -n $(WORKERS) --dist loadfile
PYTEST_FLAGS ?=
# tests/selection.py states what is left to the nightly run.
DEFAULT_SUITE := -q -m "not nightly" --programs 40 --interpreted-kernels
SHARD ?= 1/1
INTEROP_TESTS := tests/test_interop_torch.py tests/test_interop_jax.py tests/test_interop_pytensor.py \
    tests/test_xarray_pandas.py tests/test_gallery.py
ARRAY_API_TESTS ?= .array-api-tests
ARRAY_API_COMMIT := 55fcc60
# Other programs are drawn every day; a run of an earlier day is repeated with `make test-all SEED=20260131`.
SEED ?= $(shell date +%Y%m%d)

.PHONY: demo panel test test-all test-optimized test-interop test-interop-smoke test-array-api docs bench readme lint types clean
# The targets share environments, and two pips in one environment spoil it.
.NOTPARALLEL:
# Without this, make deletes the interpreters as intermediate files.
.SECONDARY:

demo: $(VENV)/.installed-examples
	$(BIN)/python examples/co2_forecast.py

panel: $(VENV)/.installed-examples $(VENV)/.installed-distributed
	$(BIN)/python examples/panel_fit.py

test: $(VENV)/.installed-$(EXTRAS)
	$(BIN)/python -m pytest $(PARALLEL) $(DEFAULT_SUITE) $(PYTEST_FLAGS)

test-all: $(VENV)/.installed-$(EXTRAS)
	$(BIN)/python -m pytest $(PARALLEL) -q --shard $(SHARD) --resume --programs-seed $(SEED) $(PYTEST_FLAGS)

# Tests that compare values, under the interpreter without assertions; pytest's own still run, since it rewrites them.
test-optimized: $(VENV)/.installed-dev
	$(BIN)/python -OO -m pytest -q -p no:doctest -W ignore::pytest.PytestConfigWarning tests/test_optimized.py \
	    tests/test_engine.py tests/test_copy_slices.py tests/test_func.py tests/test_programs.py \
	    tests/test_compiler_programs.py --programs 40 $(PYTEST_FLAGS)

test-interop: $(INTEROP_VENV)/.installed-interop
	$(INTEROP_VENV)/bin/python -m pytest -q $(INTEROP_TESTS) $(PYTEST_FLAGS)

test-interop-smoke: $(SMOKE_VENV)/.installed-interop-smoke
	$(SMOKE_VENV)/bin/python -m pytest -q tests/test_interop_jax.py -k "operator or single_precision" $(PYTEST_FLAGS)

# What fails, here as with NumPy itself, is in tests/array_api_xfails.txt.
test-array-api: $(VENV)/.installed-array-api $(ARRAY_API_TESTS)/pytest.ini
	cd $(ARRAY_API_TESTS) && ARRAY_API_TESTS_MODULE=viewgrad ARRAY_API_TESTS_VERSION=2024.12 $(CURDIR)/$(BIN)/python \
	    -m pytest -q --disable-deadline --rootdir=. --xfails-file=$(CURDIR)/tests/array_api_xfails.txt array_api_tests $(PYTEST_FLAGS)

$(ARRAY_API_TESTS)/pytest.ini:
	git clone --quiet https://github.com/data-apis/array-api-tests $(ARRAY_API_TESTS)
	cd $(ARRAY_API_TESTS) && git checkout --quiet $(ARRAY_API_COMMIT) && git submodule --quiet update --init

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict

bench: $(BENCH_VENV)/.installed-bench
	$(BENCH_BIN)/python -m benchmarks
	$(BENCH_BIN)/python -m benchmarks.sources

readme: $(BENCH_VENV)/.installed-bench
	$(BENCH_BIN)/python -m benchmarks.readme

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy --strict viewgrad

clean:
	rm -rf $(VENV) $(BENCH_VENV) $(INTEROP_VENV) $(SMOKE_VENV) $(ARRAY_API_TESTS) build dist site .hypothesis .mypy_cache .pytest_cache .ruff_cache .test_progress *.png
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps depend on pyproject.toml: a changed dependency is installed at the next use, an unchanged one never again.
$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[$*]"
	touch $@

$(INTEROP_VENV)/.installed-interop: pyproject.toml | $(INTEROP_VENV)/bin/python
	$(INTEROP_VENV)/bin/python -m pip install --quiet --editable ".[interop]"
	touch $@

$(SMOKE_VENV)/.installed-interop-smoke: pyproject.toml | $(SMOKE_VENV)/bin/python
	$(SMOKE_VENV)/bin/python -m pip install --quiet --editable ".[test,interop-jax]"
	touch $@

# A peer that cannot be had here (no wheel for this platform) must not keep the others from being measured.
$(BENCH_VENV)/.installed-bench: pyproject.toml | $(BENCH_BIN)/python
	$(BENCH_BIN)/python -m pip install --quiet --editable .
	@$(BENCH_BIN)/python -c 'import tomllib; \
	    project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	    print(*project["optional-dependencies"]["bench"], sep="\n")' | \
	while read -r requirement; do \
	    $(BENCH_BIN)/python -m pip install --quiet "$$requirement" </dev/null \
	        || echo "make bench: skipped $$requirement, which could not be installed"; \
	done
	touch $@

%/bin/python:
	$(PYTHON) -m venv $*
