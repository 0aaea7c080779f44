"""Links that work on GitHub, turned into links of the site.

Pages link to files of the repository outside docs/, and docstrings name pages ("See docs/tutorials/gpu.md").
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx


# Files outside docs/ that are pages of the site. All others are offered as downloads.
PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing/index.md",
    "benchmarks/README.md": "contributing/benchmarks.md",
    "examples/paper/README.md": "how-good/data-of-the-paper.md",
}
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
    """Let links to files outside docs/ lead to the pages that include them."""
    folder = posixpath.dirname(docname)

    def inside(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", folder, link[2]))
        page = _EXAMPLE.sub(r"gallery/\1.rst", target)
        page = PAGES.get(target) if page == target else page
        return f"{link[1]}{posixpath.relpath(page, folder or '.')}{link[3] or ''})" if page else link[0]

    source[0] = _LINK.sub(inside, source[0])


def link_docstring(app: Sphinx, kind: str, name: str, value: object, options: object, lines: list[str]) -> None:
    """Make links of the pages that a docstring names, and none of shapes such as ``(n_components_, n_features)``."""
    for number, line in enumerate(lines):
        line = _SHAPE.sub(lambda shape: re.sub(r"_(?=[,)])", r"\\_", shape[0]), line)
        lines[number] = _PAGE.sub(lambda page: f":doc:`/{page[1]}`", line)
