# Every target sets up what it needs in .venv, and does so again when pyproject.toml is newer.
PYTHON ?= python3
BENCH ?=
DATA ?=

BIN := .venv/bin
INSTALL = $(PYTHON) -m venv .venv && $(BIN)/python -m pip install --quiet --disable-pip-version-check
# The developers' environment holds all that the demo needs: do not install twice.
DEMO := $(if $(wildcard .venv/.dev),.venv/.dev,.venv/.demo)

.PHONY: help demo test test-browser check bench clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1	\2/p' Makefile

demo: $(DEMO)  ## learn atoms from a halftone picture and from digits, print what was found, draw them
	$(BIN)/python examples/demo.py

test: check  ## the checks, then all tests and the examples in the documentation
	$(BIN)/python -m pytest -n auto --dist loadfile

test-browser: .venv/.browser  ## the report in Chromium, which must be there (CHROMIUM=path where it is not found)
	REQUIRE_BROWSER=1 $(BIN)/python -m pytest tests/browser

check: .venv/.dev  ## lint, format, types, and the order of the modules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/.dev  ## time, memory and codelength; DATA=folder for the sets of the paper, BENCH=... for options
	$(BIN)/python benchmarks/bench.py $(BENCH) $(if $(DATA),"$(DATA)")

clean:  ## remove all that the other targets made
	rm -rf .venv build dist demo-atoms.png .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp comes last, so that an install that failed is tried again.
.venv/.demo: pyproject.toml
	$(INSTALL) -e ".[plot]"
	@touch $@

.venv/.dev: pyproject.toml
	$(INSTALL) -e ".[dev]"
	@touch $@

.venv/.browser: pyproject.toml
	$(INSTALL) -e ".[browser]"
	@touch $@
