"""The reference on the documentation site: it lists every public name."""

import ast
import dataclasses
import inspect
import re
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
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


def extension(name):
    """Import an extension of the site."""
    spec = spec_from_file_location(name, ROOT / f"docs/_extensions/{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_of_the_command_line_has_every_command_and_option():
    typer = pytest.importorskip("typer")
    from bitatoms.cli.app import app

    text = "\n".join(extension("command_line").described_commands())
    sections = dict(re.findall(r"^## bitatoms (\S+)\n(.*?)(?=^## )", text, re.MULTILINE | re.DOTALL))
    commands = typer.main.get_command(app).commands
    assert list(sections) == list(commands)
    for name, command in commands.items():
        options = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
        spelled = {spelling for one in options for spelling in (one.opts[0], *one.secondary_opts[:1])}
        shared = set(re.findall(r"`(--[a-z-]+)`", text.partition("## Reading options")[2]))
        assert spelled - set(re.findall(r"`(--?[A-Za-z-]+)`", sections[name])) <= shared
    assert "| `--search` `fast\\|thorough\\|anytime\\|paper` |" in sections["fit"]
    assert sections["fit"].count("| `fast` |") == 1


def test_links_out_of_docs_lead_to_pages_of_the_site():
    links = extension("links")
    source = ["[a](../../CONTRIBUTING.md#x) [b](search.md) [c](../../examples/gallery/plot_y.py) [d](../../LICENSE)"]
    links.link_pages(None, "how-it-works/index", source)
    assert source == ["[a](../contributing/index.md#x) [b](search.md) [c](../gallery/plot_y.rst) [d](../../LICENSE)"]
    lines = ["See docs/tutorials/gpu.md. An array of shape (n_components_, n_features_in_)."]
    links.link_docstring(None, "function", "f", None, None, lines)
    assert lines == [r"See :doc:`/tutorials/gpu`. An array of shape (n_components\_, n_features_in\_)."]


def test_the_pages_that_include_other_files_exist():
    pages = extension("links").PAGES
    assert [page for page in pages.values() if not (ROOT / "docs" / page).exists()] == []
    assert [file for file in pages if not (ROOT / file).exists()] == []


def test_examples_name_pages_that_exist():
    """`make docs` runs the examples; this is the part that takes no time."""
    examples = sorted((ROOT / "examples/gallery").glob("*.py"))
    assert examples
    assert [file.name for file in examples if not file.name.startswith("plot_")] == []
    for file in examples:
        pages = re.findall(r":doc:`(?:[^`<]*<)?/([^`>]+)", file.read_text(encoding="utf-8"))
        missing = [
            page for page in pages if not (ROOT / f"docs/{page}.md").exists() and not page.startswith("gallery/")
        ]
        assert missing == []


def test_the_package_names_pages_that_exist():
    texts = [file.read_text(encoding="utf-8") for file in PACKAGE.rglob("*.py")]
    named = {page for text in texts for page in re.findall(r"\bdocs/[\w/-]+\.md", text)}
    assert named
    assert [page for page in sorted(named) if not (ROOT / page).exists()] == []
