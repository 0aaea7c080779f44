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


def test_the_reference_lists_every_public_name_once():
    """Under its module, or where another module has the same object; a module has a page with its name as a heading."""
    pytest.importorskip("dask")
    listed = listed_names()
    assert len(set(listed)) == len(listed)
    assert {"bitatoms", "bitatoms.dask", "bitatoms.datasets", "bitatoms.report"} <= set(public_modules())
    objects = {id(getattr(import_module(owner), name)) for owner, name in listed}
    headings = {owner for owner, _ in listed}
    for module in map(import_module, public_modules()):
        missing = [name for name in module.__all__ if id(getattr(module, name)) not in objects]
        assert [name for name in missing if f"{module.__name__}.{name}" not in headings] == []


def test_the_fields_of_results_are_documented():
    """In the sections Attributes or Parameters of the docstring, or, for a Model, in that of a Factorization."""
    pytest.importorskip("dask")
    values = [getattr(import_module(module), name) for module, name in listed_names()]
    types = [value for value in values if isinstance(value, type)]
    fields = {one: one._fields for one in types if hasattr(one, "_fields")}
    fields |= {one: [field.name for field in dataclasses.fields(one)] for one in types if dataclasses.is_dataclass(one)}
    assert ba.Pattern in fields
    undocumented = []
    for record, names in fields.items():
        text = inspect.getdoc(record) + (inspect.getdoc(ba.Factorization) if record is ba.Model else "")
        entries = re.findall(r"^(\w+(?:, \w+)*) : ", text, re.MULTILINE)
        documented = {name for entry in entries for name in entry.split(", ")}
        undocumented += [f"{record.__name__}.{name}" for name in {*names} - documented if not name.startswith("_")]
    assert undocumented == []


def extension(name):
    """Import an extension of the site."""
    spec = spec_from_file_location(name, ROOT / f"docs/_extensions/{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_of_the_command_line_has_every_command_and_option():
    click = pytest.importorskip("click")
    from bitatoms.cli.app import app

    text = "\n".join(extension("command_line").described_commands())
    sections = dict(re.findall(r"^## bitatoms (\S+)\n(.*?)(?=^## )", text, re.MULTILINE | re.DOTALL))
    commands = {name: app.get_command(click.Context(app), name) for name in app.list_commands(click.Context(app))}
    assert list(sections) == list(commands)
    for name, command in commands.items():
        options = command.options()
        spelled = {spelling for one in options for spelling in (one.opts[0], *one.secondary_opts[:1])}
        shared = set(re.findall(r"`(--[a-z-]+)`", text.partition("## Reading options")[2]))
        assert spelled - set(re.findall(r"`(--?[A-Za-z-]+)`", sections[name])) <= shared
    assert "| `--search` `fast\\|thorough\\|anytime\\|paper` |" in sections["fit"]
    assert sections["fit"].count("| `fast` |") == 1


def test_examples_and_the_package_name_pages_that_exist():
    """`make docs` runs the examples; this is the part that takes no time."""
    examples = sorted((ROOT / "examples/gallery").glob("*.py"))
    assert examples
    assert [file.name for file in examples if not file.name.startswith("plot_")] == []
    texts = "".join(file.read_text(encoding="utf-8") for file in examples)
    named = {f"docs/{page}.md" for page in re.findall(r":doc:`(?:[^`<]*<)?/(?!gallery/)([^`>]+)", texts)}
    for file in PACKAGE.rglob("*.py"):
        named |= {*re.findall(r"\bdocs/[\w/-]+\.md", file.read_text(encoding="utf-8"))}
    included = extension("links").PAGES
    named |= {*included, *(f"docs/{page}" for page in included.values())}
    assert [page for page in sorted(named) if not (ROOT / page).exists()] == []
