"""A comparison as an HTML page: summary, rankings and figures per table, the methods, and how it was run."""

from __future__ import annotations

from collections.abc import Sequence

from .._version import __version__
from ..formatting import percent
from ..html.document import PageHeader, Section, html_document, read_asset
from ..html.figures import Figure
from ..html.tables import table_html
from ..html.text import escape, name_html, pluralize, truncated
from .environment import COMMAND
from .figures import file_slugs
from .rankings import Ranking, overview, rank_by_bits, rank_by_wrong_cells
from .results import ComparisonData, Dataset
from .summary import summarize

_GLOSSARY = (
    ("wrong cells", "Cells in which the product of codes and atoms differs from the table."),
    (
        "bits",
        "The codelength: the bits needed to describe the atoms, the codes (which atoms each row uses) and the wrong "
        "cells. It is computed in the same way for all methods, whatever they minimize.",
    ),
    ("CPU seconds", "Summed over all processors, without reading the data, compiling and loading."),
    (
        "OR, XOR",
        "How atoms are combined. A cell that two atoms of a row contain is a one under OR, and a zero under XOR. "
        "Wrong cells are ranked within each algebra, bits across both. A method that gives each row at most one atom "
        "is the same in both algebras, and is ranked in both.",
    ),
    (
        "bias",
        "A row of bits that all rows start from. Only bitatoms for bits and bitatoms mdl may use one. Its bits are "
        "part of the codelength, and its effect on the cells counts in the wrong cells.",
    ),
)


def render_page(comparison: ComparisonData, figures: Sequence[Sequence[Figure]]) -> str:
    """Return the page; ``figures`` holds the figures of each table."""
    tables = comparison.tables
    names = [table.name for table in tables]
    heading = truncated(", ".join(names) or "no results") if len(names) < 4 else f"{len(names)} tables"
    top = PageHeader(
        f"{heading} – comparison", "Binary matrix factorization methods compared on the same data", heading
    )
    ids = [f"data-{slug}" for slug in file_slugs(names)]
    sections = [
        Section(_summary_section(comparison)),
        *(
            Section(_table_section(comparison, table, table_id, of_table), table_id, name_html(table.name))
            for table, table_id, of_table in zip(tables, ids, figures, strict=True)
        ),
        Section(_methods_section(comparison), "methods", "Methods"),
        Section(_how_section(comparison), "how", "How it was run"),
    ]
    return html_document(top, sections, _footer(), read_asset("compare", "page.css"))


def _summary_section(comparison: ComparisonData) -> str:
    """Return the first section: the numbers of methods, tables and runs, and the best methods."""
    n_done = sum(run.done for run in comparison.runs)
    size = f"{_count_methods(comparison)}; {pluralize(len(comparison.tables), 'table')}, {pluralize(n_done, 'run')}."
    note = f'<p class="warning">{escape(comparison.interruption_note)}</p>' if comparison.interrupted else ""
    best = overview(comparison).to_html("Best method per table") if len(comparison.tables) > 1 else ""
    return (
        f'<section id="summary"><p class="lede">{size} Wrong cells and bits are computed by the same function for all '
        f"methods, from their atoms and codes.</p>{note}{best}</section>"
    )


def _count_methods(comparison: ComparisonData) -> str:
    """Return the number of methods; all variants of bitatoms count as one."""
    is_bitatoms = {run.method.key: run.method.is_bitatoms for run in comparison.runs}
    n_variants = sum(is_bitatoms.values())
    n_others = len(is_bitatoms) - n_variants
    if not n_variants:
        return pluralize(n_others, "method")
    variants = "bitatoms" if n_variants == 1 else f"bitatoms in {n_variants} variants"
    return f"{variants} and {pluralize(n_others, 'other method')}" if n_others else variants


def _table_section(comparison: ComparisonData, table: Dataset, section_id: str, figures: Sequence[Figure]) -> str:
    """Return the section on one table."""
    about = f"{escape(table.about[:1].upper() + table.about[1:])}; " if table.about else ""
    shape = f"{pluralize(table.shape[0], 'row')} of {pluralize(table.shape[1], 'column')}"
    size = f"{shape}, {percent(table.density, 1)} ones."
    sentences = "".join(f"<li>{escape(sentence)}</li>" for sentence in summarize(comparison, table))
    rankings = "".join(_ranking(rank(comparison, table), table.name) for rank in (rank_by_wrong_cells, rank_by_bits))
    images = "".join(figure.to_html() for figure in figures)
    return (
        f'<section id="{section_id}"><h2>{name_html(table.name)}</h2><p class="note">{about}{size}</p>'
        f'<ul class="findings">{sentences}</ul>{rankings}<div class="figures">{images}</div></section>'
    )


def _ranking(ranking: Ranking, table_name: str) -> str:
    """Return a ranking with its heading and notes."""
    notes = "".join(f"<p>{escape(note)}</p>" for note in ranking.notes)
    label = f"{ranking.heading}: {truncated(table_name)}"
    body = ranking.to_html(label) if ranking.rows else "<p>No results.</p>"
    return f'<h3>{escape(ranking.heading)}</h3>{body}<div class="note notes">{notes}</div>'


def _methods_section(comparison: ComparisonData) -> str:
    """Return the methods that were run, and the glossary."""
    methods = list({run.method.key: run.method for run in comparison.runs}.values())
    columns = ("", "algebra", "minimizes", "description", "key")
    rows = [
        (
            escape(each.name),
            each.algebra_label,
            escape(each.minimizes),
            escape(each.about),
            f"<code>{escape(each.key)}</code>",
        )
        for each in methods
    ]
    row_classes = {index: "bitatoms" for index, each in enumerate(methods) if each.is_bitatoms}
    table = table_html(columns, rows, [False] * len(columns), "Methods", "ranking", row_classes)
    glossary = "".join(f"<dt>{term}</dt><dd>{definition}</dd>" for term, definition in _GLOSSARY)
    return f'<section id="methods"><h2>Methods</h2>{table}<dl class="glossary">{glossary}</dl></section>'


def _how_section(comparison: ComparisonData) -> str:
    """Return the machine, the versions, and the command to repeat the comparison."""
    items = "".join(
        f"<dt>{escape(label)}</dt><dd>{f'<code>{escape(value)}</code>' if label == COMMAND else escape(value)}</dd>"
        for label, value in comparison.how
    )
    return f'<section id="how"><h2>How it was run</h2><dl class="glossary">{items}</dl></section>'


def _footer() -> str:
    """Return the footer with the names of the other files."""
    return (
        f"<footer><p>Made by bitatoms {__version__}. All runs are in <code>compare.csv</code> in the same folder; "
        "<code>compare.md</code> holds this page as Markdown.</p></footer>"
    )
