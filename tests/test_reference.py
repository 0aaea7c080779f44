"""The reference on the documentation site: it lists every public name."""

import ast
import dataclasses
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import bitatoms as ba

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src/bitatoms"
LISTING = re.compile(r"^\.\. currentmodule:: (\S+)\n\n\.\. autosummary::\n(?:   :.*\n)*\n((?:   \w+\n)+)", re.MULTILINE)


def public_modules():
    """Return the names of the modules that list public names: the package, and its modules and packages."""
    files = [PACKAGE / "__init__.py", *PACKAGE.glob("[a-z]*.py"), *PACKAGE.glob("*/__init__.py")]
    listing = [file for file in files if any(is_listing(node) for node in ast.parse(file.read_text("utf-8")).body)]
    names = [file.relative_to(PACKAGE.parent).with_suffix("").as_posix().replace("/", ".") for file in listing]
    return sorted({name.removesuffix(".__init__") for name in names})


def is_listing(node):
    """Return whether a statement assigns ``__all__``."""
    return isinstance(node, ast.Assign) and any(getattr(target, "id", None) == "__all__" for target in node.targets)


def listed_names():
    """Return the pairs of module and name that the pages of the reference list."""
    pages = sorted((ROOT / "docs/reference/python").glob("*.md"))
    listings = [found for page in pages for found in LISTING.findall(page.read_text(encoding="utf-8"))]
    return [(module, name) for module, names in listings for name in names.split()]


def test_public_modules_are_found():
    assert {"bitatoms", "bitatoms.dask", "bitatoms.datasets", "bitatoms.report"} <= set(public_modules())


@pytest.mark.parametrize("module", public_modules())
def test_the_reference_lists_every_public_name(module):
    """Under its module, or where another module has the same object; a module has a page with its name as a heading."""
    pytest.importorskip("dask")
    listed = listed_names()
    objects = [getattr(import_module(owner), name) for owner, name in listed]
    values = {name: getattr(import_module(module), name) for name in import_module(module).__all__}
    missing = [name for name, value in values.items() if not any(value is listed for listed in objects)]
    modules = [name for name in missing if f"{module}.{name}" in {owner for owner, _ in listed}]
    assert sorted(missing) == sorted(modules)


def fields_of(value):
    """Return the public fields of a named tuple or a dataclass."""
    names = getattr(value, "_fields", None) or [field.name for field in dataclasses.fields(value)]
    return [name for name in names if not name.startswith("_")]


def test_the_fields_of_results_are_documented():
    """In the sections Attributes or Parameters of the docstring, or, for a Model, in that of a Factorization."""
    pytest.importorskip("dask")
    values = [getattr(import_module(module), name) for module, name in listed_names()]
    records = [
        one for one in values if isinstance(one, type) and (dataclasses.is_dataclass(one) or hasattr(one, "_fields"))
    ]
    assert ba.Pattern in records
    undocumented = {}
    for record in records:
        text = inspect.getdoc(record) + (inspect.getdoc(ba.Factorization) if record is ba.Model else "")
        entries = re.findall(r"^(\w+(?:, \w+)*) : ", text, re.MULTILINE)
        documented = {name for entry in entries for name in entry.split(", ")}
        undocumented[record.__name__] = [name for name in fields_of(record) if name not in documented]
    assert {name: fields for name, fields in undocumented.items() if fields} == {}


def test_the_reference_lists_names_once():
    listed = listed_names()
    assert len(listed) > len(ba.__all__)
    assert len(set(listed)) == len(listed)
