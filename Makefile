# Every target installs what it needs into .venv, and again when pyproject.toml has changed.
PYTHON ?= python3
BENCH ?=
PAPER ?=
DATA ?=

# The tests start many processes, each of which would compile all modules again without bytecode files.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
INSTALL = $(PYTHON) -m venv .venv && $(BIN)/python -m pip install --quiet --disable-pip-version-check
# One thread in each library: the examples of the gallery use few rows, and times on pages compare methods.
SPHINX = OMP_NUM_THREADS=1 .venv-docs/bin/python -m sphinx
# Tests of blocks of rows, which compute on a device if TEST_DEVICE is set.
BLOCK_TESTS := $(patsubst %,tests/engine/test_%.py,beam block_machine coding counts device_rows removal)
# The development environment contains everything that the demo needs.
DEMO := $(if $(wildcard .venv/.dev),.venv/.dev,.venv/.demo)

# Tests are distributed by module: tests of a module share fits.
PYTEST = $(BIN)/python -m pytest --ignore tests/browser -n auto --dist loadfile --no-loadscope-reorder

.PHONY: help demo test test-all test-browser test-formats test-gpu test-emulated check kernels bench paper docs linkcheck dist clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1	\2/p' Makefile

demo: $(DEMO)  ## learn atoms of a halftone image and of digits, print a comparison, draw the atoms
	$(BIN)/python examples/demo.py

test test-all: export OMP_NUM_THREADS = 1  # each process of the tests would start as many threads as there are processors
test: .venv/.dev  ## run the checks while kernels are compiled, then the tests and the examples in docstrings
	$(BIN)/bitatoms warmup --quiet & $(MAKE) check; status=$$?; wait; exit $$status
	$(PYTEST) -m "not slow"

test-all: .venv/.dev  ## run all tests, the slow ones too, in random order with 200 examples, and with an emulated CUDA device
	TEST_ORDER=$${TEST_ORDER:-1} HYPOTHESIS_EXAMPLES=200 $(PYTEST)
	$(MAKE) test-emulated

test-browser: .venv/.browser  ## test the HTML pages in Chromium, which must be installed (CHROMIUM=path if it is not found)
	REQUIRE_BROWSER=1 $(BIN)/python -m pytest tests/browser

test-formats: export OMP_NUM_THREADS = 1
test-formats: .venv-formats/.installed  ## test the file formats that need large libraries, in .venv-formats; uses bcftools and plink2 if installed
	.venv-formats/bin/python -m pytest tests/formats tests/io/test_format_contract.py tests/test_readme.py

test-gpu: export OMP_NUM_THREADS = 1
test-gpu: .venv/.dev  ## test computing on a CUDA device, with CuPy in .venv; skipped without a device (REQUIRE_GPU=1 fails)
	TEST_DEVICE=cuda $(BIN)/python -m pytest tests/gpu $(BLOCK_TESTS)

test-emulated: export OMP_NUM_THREADS = 1
test-emulated: .venv/.dev  ## test the kernels of CUDA devices on the processor, as test-gpu does on a device; needs a C++ compiler
	TEST_DEVICE=emulated $(BIN)/python -m pytest $(BLOCK_TESTS)

check: .venv/.dev  ## check style, format, types and import order
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

kernels: .venv/.dev  ## record which kernels the common calls need, after a change of a kernel or of how it is called
	OMP_NUM_THREADS=1 $(BIN)/python packaging/record_kernels.py

bench: .venv/.dev  ## measure time, memory and codelength; DATA=folder for the tables of the paper, BENCH=... for options
	$(BIN)/python benchmarks/bench.py $(BENCH) $(if $(DATA),"$(DATA)")

paper: .venv/.dev  ## repeat the experiments of the paper, into build/paper; PAPER=... for options
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.paper $(PAPER)

docs: .venv-docs/.installed  ## build the documentation site into build/docs, warnings are errors; run the tutorials in full
	$(SPHINX) -j auto -b html -d build/doctrees -W --keep-going docs build/docs
	OMP_NUM_THREADS=1 .venv-docs/bin/python docs/tutorials/run_pages.py

linkcheck: .venv-docs/.installed  ## check the links of the site to other sites, without running the gallery
	$(SPHINX) -b linkcheck -d build/doctrees-linkcheck -D plot_gallery=False docs build/linkcheck

dist: .venv-dist/.installed  ## build wheel and sdist in dist/, check them, and run the demo from the installed wheel
	rm -rf dist
	.venv-dist/bin/python -m build --quiet --outdir dist
	.venv-dist/bin/python -m twine check --strict dist/*
	.venv-dist/bin/python packaging/check_dist.py dist

clean:  ## remove what the other targets created
	rm -rf .venv .venv-dist .venv-docs .venv-formats docs/gallery docs/reference/python/generated build dist demo-atoms.png .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp is touched last, so that a failed installation is repeated.
.venv/.demo: pyproject.toml
	$(INSTALL) -e ".[plot]"
	@touch $@

.venv/.dev: pyproject.toml
	$(INSTALL) -e ".[dev]"
	@touch $@

.venv/.browser: pyproject.toml
	$(INSTALL) -e ".[browser]"
	@touch $@

.venv-formats/.installed: pyproject.toml
	$(PYTHON) -m venv .venv-formats
	.venv-formats/bin/python -m pip install --quiet --disable-pip-version-check -e ".[test,formats]"
	@touch $@

.venv-docs/.installed: pyproject.toml
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	@touch $@

.venv-dist/.installed: Makefile
	$(PYTHON) -m venv .venv-dist
	.venv-dist/bin/python -m pip install --quiet --disable-pip-version-check "build>=1.2" "twine>=6.1"
	@touch $@
