"""Links that work on GitHub, turned into links of the site.

Pages link to files of the repository outside docs/, and docstrings name pages ("See docs/tutorials/gpu.md").
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx


ROOT = Path(__file__).parents[2]
# Files outside docs/ that are pages of the site. All others are offered as downloads.
PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CODE_OF_CONDUCT.md": "contributing/code-of-conduct.md",
    "CONTRIBUTING.md": "contributing/index.md",
    "SECURITY.md": "contributing/security.md",
    "benchmarks/README.md": "contributing/benchmarks.md",
    "examples/paper/README.md": "how-good/data-of-the-paper.md",
}
_INCLUDE = re.compile(r"^```\{include\} (\S+)\n```$", re.MULTILINE)
_EXAMPLE = re.compile(r"examples/gallery/(\w+)\.py$")
_LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?\)")
_SHAPE = re.compile(r"\bshape \([\w, ]*\)")  # a word that ends with _ is a link in reStructuredText
_PAGE = re.compile(r"\bdocs/((?:[a-z-]+/)*[a-z-]+)\.md\b")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.connect("source-read", link_pages)
    app.connect("autodoc-process-docstring", link_docstring, priority=100)  # before numpydoc
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def link_pages(app: Sphinx, docname: str, source: list[str]) -> None:
    """Include files from outside docs/, and let links to them lead to the pages that include them."""
    folder = posixpath.dirname(docname)

    def included(fence: re.Match[str]) -> str:
        """Return a file with links relative to this page."""
        path = posixpath.normpath(posixpath.join("docs", folder, fence[1]))
        app.env.note_dependency(str(ROOT / path))

        def moved(link: re.Match[str]) -> str:
            if "://" in link[2]:
                return link[0]
            target = posixpath.join(posixpath.dirname(path), link[2])
            return f"{link[1]}{posixpath.relpath(target, posixpath.join('docs', folder))}{link[3] or ''})"

        return _LINK.sub(moved, (ROOT / path).read_text(encoding="utf-8"))

    def inside(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", folder, link[2]))
        page = _EXAMPLE.sub(r"gallery/\1.rst", target)
        page = PAGES.get(target) if page == target else page
        return f"{link[1]}{posixpath.relpath(page, folder or '.')}{link[3] or ''})" if page else link[0]

    source[0] = _LINK.sub(inside, _INCLUDE.sub(included, source[0]))


def link_docstring(app: Sphinx, kind: str, name: str, value: object, options: object, lines: list[str]) -> None:
    """Make links of the pages that a docstring names, and none of shapes such as ``(n_components_, n_features)``."""
    for number, line in enumerate(lines):
        line = _SHAPE.sub(lambda shape: re.sub(r"_(?=[,)])", r"\\_", shape[0]), line)
        lines[number] = _PAGE.sub(lambda page: f":doc:`/{page[1]}`", line)
