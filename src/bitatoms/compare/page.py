"""The page of a comparison: for each table who is best, in words, tables and figures; and how it was run."""

from __future__ import annotations

from collections.abc import Sequence

from .._version import __version__
from ..report.html.document import PageHeader, Section, html_document, read_asset
from ..report.html.figures import Figure
from ..report.html.text import escape, name_html, percent, pluralize, truncated
from .comparison import Comparison, Dataset
from .environment import COMMAND
from .figures import slugs
from .methods import Method
from .standings import Standings, fewest_bits, fewest_wrong, overview
from .verdict import verdicts

_WORDS = (
    ("wrong cells", "Cells of the table in which the product of codes and atoms says something else."),
    (
        "bits",
        "What it takes to write the table down by atoms, by which of them each row uses, and by what is wrong then: "
        "the codelength. It is counted in one way for all, whatever a contender makes small.",
    ),
    ("CPU seconds", "Of all processors together, without reading the data, compiling and loading."),
    (
        "OR, XOR",
        "How atoms are put together: a cell that two atoms of a row have is a one (OR), or a zero again (XOR). By "
        "wrong cells, methods are ranked within an algebra, and who has the fewest in any is said too; by bits, across "
        "both. A method that gives a row one atom at most is the same in both, and stands in both.",
    ),
    (
        "bias",
        "A row of the table's width that all rows start from, which bitatoms for bits and bitatoms mdl may use; nobody "
        "else has one. Its bits are part of the codelength, and what it gets right and wrong counts in wrong cells.",
    ),
)


def render(comparison: Comparison, figures: Sequence[Sequence[Figure]]) -> str:
    """The whole page; ``figures`` are those of each table."""
    tables = comparison.tables
    names = [table.name for table in tables]
    heading = truncated(", ".join(names) or "nothing yet") if len(names) < 4 else f"{len(names)} tables"
    top = PageHeader(f"{heading} – a comparison", "Binary matrix factorization, compared on the same data", heading)
    places = [f"data-{slug}" for slug in slugs(names)]
    sections = [
        Section(_summary(comparison)),
        *(
            Section(_part(comparison, table, place, some), place, name_html(table.name))
            for table, place, some in zip(tables, places, figures, strict=True)
        ),
        Section(_contenders(comparison), "contenders", "Who is compared"),
        Section(_how(comparison), "how", "How it was run"),
    ]
    return html_document(top, sections, _footer(), read_asset("compare", "page.css"))


def _summary(comparison: Comparison) -> str:
    """What the page is."""
    done = sum(run.done for run in comparison.runs)
    said = f"{_methods(comparison)}; {pluralize(len(comparison.tables), 'table')}, {pluralize(done, 'run')}."
    ended = f'<p class="warning">{escape(comparison.ended)}</p>' if comparison.interrupted else ""
    best = overview(comparison).to_html("Who is best on each table") if len(comparison.tables) > 1 else ""
    return (
        f'<section id="summary"><p class="lede">{said} Wrong cells and bits are counted by the same function for all, '
        f"from the atoms and codes that each method gives.</p>{ended}{best}</section>"
    )


def _methods(comparison: Comparison) -> str:
    """How many methods there are; bitatoms is one of them, in however many ways it is run."""
    there = {run.contender.key: run.contender.ours for run in comparison.runs}
    ways = sum(there.values())
    others = len(there) - ways
    if not ways:
        return pluralize(others, "method")
    ours = "bitatoms" if ways == 1 else f"bitatoms in {ways} ways"
    return f"{ours} and {pluralize(others, 'other method')}" if others else ours


def _part(comparison: Comparison, table: Dataset, place: str, figures: Sequence[Figure]) -> str:
    """The part on one table."""
    about = f"{escape(table.about[:1].upper() + table.about[1:])}; " if table.about else ""
    shape = f"{pluralize(table.shape[0], 'row')} of {pluralize(table.shape[1], 'column')}"
    size = f"{shape}, {percent(table.density, 1)} ones."
    said = "".join(f"<li>{escape(each)}</li>" for each in verdicts(comparison, table))
    tables = "".join(
        _table(standings, table.name) for standings in (fewest_wrong(comparison, table), fewest_bits(comparison, table))
    )
    drawn = "".join(figure.to_html() for figure in figures)
    return (
        f'<section id="{place}"><h2>{name_html(table.name)}</h2><p class="note">{about}{size}</p>'
        f'<ul class="verdicts">{said}</ul>{tables}<div class="figures">{drawn}</div></section>'
    )


def _table(standings: Standings, of: str) -> str:
    """A table with its heading and its notes."""
    notes = "".join(f"<p>{escape(note)}</p>" for note in standings.notes)
    body = standings.to_html(f"{standings.heading}: {truncated(of)}") if standings.rows else "<p>No figures.</p>"
    return f'<h3>{escape(standings.heading)}</h3>{body}<div class="note notes">{notes}</div>'


def _contenders(comparison: Comparison) -> str:
    """Who was run, and what the words mean."""
    there: dict[str, Method] = {run.contender.key: run.contender for run in comparison.runs}
    rows = "".join(
        f'<tr{" class=ours" if each.ours else ""}><th scope="row">{escape(each.name)}</th><td>{each.algebra_label}</td>'
        f"<td>{escape(each.small)}</td><td>{escape(each.about)}</td><td><code>{escape(each.key)}</code></td></tr>"
        for each in there.values()
    )
    words = "".join(f"<dt>{word}</dt><dd>{meaning}</dd>" for word, meaning in _WORDS)
    heads = "".join(f'<th scope="col">{head}</th>' for head in ("", "algebra", "makes small", "what it is", "called"))
    return (
        '<section id="contenders"><h2>Who is compared</h2>'
        '<div class="scroll" role="region" aria-label="Who is compared" tabindex="0">'
        f'<table class="standings"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'
        f'<dl class="words">{words}</dl></section>'
    )


def _how(comparison: Comparison) -> str:
    """On which machine, and how to repeat it."""
    items = "".join(
        f"<dt>{escape(what)}</dt><dd>{f'<code>{escape(value)}</code>' if what == COMMAND else escape(value)}</dd>"
        for what, value in comparison.how
    )
    return f'<section id="how"><h2>How it was run</h2><dl class="words">{items}</dl></section>'


def _footer() -> str:
    """Where the numbers are."""
    return (
        f"<footer><p>Made by bitatoms {__version__}. All runs with all figures are in <code>compare.csv</code>, beside "
        "this page; the same in text in <code>compare.md</code>.</p></footer>"
    )
