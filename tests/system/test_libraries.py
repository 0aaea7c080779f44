"""Errors about libraries that are not installed name what installs them, as pyproject.toml does."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import bitatoms as ba
from bitatoms.system.libraries import LIBRARIES, MissingLibrary, explained, import_library, pip_command

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# What other libraries bring along, what tables of users are made of.
OTHERS = {"cupy", "llvmlite", "polars", "threadpoolctl", "zstandard"}


def names_of(requirements):
    return {re.match(r"[\w-]+", requirement)[0].lower() for requirement in requirements}


def test_libraries_are_those_of_the_package_and_its_extras():
    required = {library.distribution for library in LIBRARIES.values() if library.extra is None}
    assert required == names_of(PROJECT["dependencies"])
    for library in LIBRARIES.values():
        if library.extra is not None and library.distribution != "h5py":  # which anndata requires
            assert library.distribution in names_of(PROJECT["optional-dependencies"][library.extra])


def test_all_imported_libraries_are_listed():
    statement = re.compile(r"^ *(?:import|from) ([a-z]\w*)(?:\.\w+)*(?: as \w+| import .*)?$", re.MULTILINE)
    files = Path(ba.__file__).parent.rglob("*.py")
    imported = {name for file in files for name in statement.findall(file.read_text(encoding="utf-8"))}
    assert {"numpy", "zarr", "dask"} <= imported
    assert imported - set(sys.stdlib_module_names) - OTHERS - {"bitatoms"} <= LIBRARIES.keys()


def test_commands_that_install():
    commands = {("click", "rich"): '"bitatoms[cli]"', ("zarr", "dask"): '"bitatoms[dask,zarr]"', ("numba",): "bitatoms"}
    assert {names: pip_command(*names) for names in commands} == {k: f"pip install {v}" for k, v in commands.items()}


def test_a_library_that_is_installed_and_broken_raises_its_own_error(monkeypatch, tmp_path):
    (tmp_path / "openpyxl.py").write_text("import no_such_module")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "openpyxl", raising=False)
    with pytest.raises(ModuleNotFoundError, match="no_such_module") as caught:
        import_library("openpyxl", "sheets need")
    assert explained(caught.value) is None
    assert explained(ValueError()) is None


def test_data_frames_name_the_extra(monkeypatch):
    model = ba.BinaryDictionaryLearning(2, algebra="xor", random_state=0).fit([[1, 1, 0], [0, 0, 1]] * 4)
    annotations = ba.datasets.genotypes(5, 3).column_data
    monkeypatch.setitem(sys.modules, "pandas", None)
    table = ba.Table(ba.BitMatrix.from_dense([[1]]))
    for convert in (table.to_pandas, annotations.to_pandas, model.to_frame, model.to_rules):
        with pytest.raises(MissingLibrary, match=r'data frames need pandas; .*pip install "bitatoms\[pandas\]"'):
            convert()
    assert model.patterns()  # lists need no other library


def test_required_libraries_are_named_in_python_and_on_the_command_line():
    """The package is imported without numba, and its names are not."""
    code = """
import sys
sys.modules["numba"] = None
import bitatoms
try:
    bitatoms.factorize
except ImportError as error:
    print(error)
bitatoms.show_versions()
sys.argv[1:] = ["pack", "table.csv", "-o", "x.zarr"]
from bitatoms.__main__ import main
main()
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    message = "bitatoms needs numba; install it with pip install bitatoms"
    lines = run.stdout.splitlines()
    assert lines[:2] == [message, f"bitatoms {ba.__version__}"]
    assert re.search(r"^compiled kernels +unknown \(.*numba.*\)$", run.stdout, re.MULTILINE)
    assert (run.returncode, run.stderr) == (2, f"bitatoms: {message}\n")
