"""The package: imports, public names and version."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import bitatoms

HEAVY = {"numba", "sklearn", "scipy", "matplotlib", "dask", "pandas", "polars"}


def modules_loaded_by(code):
    report = f"{code}\nimport sys; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    run = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import bitatoms; dir(bitatoms)", HEAVY),
        ("import bitatoms; bitatoms.BitMatrix", {"sklearn", "matplotlib"}),
        ("import bitatoms.cli.files, bitatoms.cli.stores", {"sklearn", "pandas"}),  # only commands that fit do
    ],
)
def test_imports_are_light(code, heavy):
    assert not modules_loaded_by(code) & heavy


@pytest.mark.parametrize("options", ["--help", "--version", "fit --help"])
def test_help_and_version_are_light(options):
    printed = f"import contextlib, sys; sys.argv[1:] = {options.split()!r}; from bitatoms.__main__ import main"
    loaded = modules_loaded_by(f"{printed}\nwith contextlib.suppress(SystemExit): main()")
    assert "click" in loaded
    assert not loaded & (HEAVY | {"numpy"})


def test_public_names_exist_and_are_documented():
    """The names themselves are in the recorded surface."""
    values = {name: getattr(bitatoms, name) for name in bitatoms.__all__}
    assert dir(bitatoms) == sorted([*values, "__version__"])
    assert [name for name, value in values.items() if not value.__doc__] == []
    assert all(value is getattr(bitatoms, name) for name, value in values.items())


def test_no_module_shadows_a_public_name_and_unknown_ones_raise():
    import_module("bitatoms.estimators.dictionary_learning")  # imports all lower layers
    modules = {name for name in bitatoms.__all__ if isinstance(getattr(bitatoms, name), ModuleType)}
    assert modules == {"baselines", "datasets", "plots"}
    assert list(bitatoms.__all__) == sorted(bitatoms.__all__)
    with pytest.raises(AttributeError, match="module 'bitatoms' has no attribute 'factorise'"):
        bitatoms.factorise  # noqa: B018


def test_warnings_are_suppressed_only_where_one_thing_runs_at_a_time():
    """``catch_warnings`` changes the filters of all threads, and leaves wrong ones if two threads use it at once."""
    package = Path(bitatoms.__file__).parent
    users = {
        file.relative_to(package).as_posix()
        for file in package.rglob("*.py")
        if "catch_warnings" in file.read_text(encoding="utf-8")
    }
    programs = {"cli/app.py", "compare/runner.py"}
    libraries = {"baselines/nmf.py", "io/formats/single_cell/anndata_elements.py"}  # which have no option for it
    assert users == programs | libraries
