"""The report page: its sections from top to bottom, the glossary and the footer."""

from __future__ import annotations

from typing import Any

from .._version import __version__
from ..html.document import Section, glossary_section, html_document, read_asset, section
from ..html.text import escape, format_count, pluralize
from .codelength import codelength_section
from .data import ReportData
from .explorer import explorer_section
from .genome import genome_section
from .pictures import full_picture
from .rows import rows_section, worst_rows_section
from .sections import groups_section, patterns_section, pixels_section, summary, unknown_section

STYLES = (("html", "cards.css"), ("report", "page.css"), ("report", "explorer.css"))
# One script of functions that share a scope. The last one starts the page.
SCRIPTS = (
    *("numbers", "bits", "data", "coder", "parse", "csv"),  # without a document, so that node can run them
    *("dom", "canvas", "facts", "lists", "details", "coding", "matrix", "explorer", "start"),
)
_SHOWN_PARAMETERS = ("n_components", "search", "objective", "random_state")
_GLOSSARY = (
    ("feature", "A column of the table. Each of its cells is a one (yes) or a zero (no)."),
    (
        "bits",
        "The length of the shortest description that was found, in answers to yes/no questions. The patterns are part "
        "of the description: a pattern that saves fewer bits than it takes is left out.",
    ),
    ("bits saved", "How much longer the description of the training table would be without this pattern."),
    ("unknown", "A cell whose value is missing. It is never wrong, and no bits are spent on it."),
    ("accounted for", "A one of the table that the patterns of its row have too."),
    ("missed", "A one of the table that the patterns of its row do not have."),
    ("invented", "A zero of the table that is a one in the patterns of its row."),
)


def render(data: ReportData, title: str | None, parameters: dict[str, Any]) -> str:
    """Return the HTML of the report; ``parameters`` are those of the search, as far as they are known."""
    heading = title or f"A table of {pluralize(data.n_rows, 'row')} and {pluralize(data.n_features, 'column')}"
    style = "".join(read_asset(*asset) for asset in STYLES)
    functions = "".join(read_asset("report", f"js/{name}.js") for name in SCRIPTS)
    script = f'"use strict";\n(() => {{\n{functions}}})();\n'
    return html_document(
        heading,
        "Patterns in a table of zeros and ones",
        _sections(data),
        title=f"{heading} – patterns",
        skip_link=("explore", "the patterns"),
        footer=_footer(data, parameters),
        style=style,
        script=script,
    )


def _sections(data: ReportData) -> list[Section]:
    """Return the sections; an empty model has neither codelength nor rows to show."""
    shows_fit = not data.is_model_empty
    shows_rows = shows_fit and data.shows_rows
    pattern = f"A set of features. {data.model.reading} The program and its paper call it an atom."
    return [
        summary(data),
        section("picture", "The picture", full_picture(data) if shows_rows else "", title="Picture"),
        patterns_section(data),
        explorer_section(data),
        genome_section(data),
        groups_section(data),
        *((codelength_section(data),) if shows_fit else ()),
        *((rows_section(data), worst_rows_section(data)) if shows_rows else ()),
        pixels_section(data),
        unknown_section(data),
        glossary_section((("pattern", pattern), *_GLOSSARY)),
    ]


def _footer(data: ReportData, parameters: dict[str, Any]) -> str:
    """Describe how the report was made."""
    model = data.model
    facts = [
        f"algebra {model.algebra.upper()}",
        f"rows coded by “{escape(model.coder)}”",
        f"search ended: {escape(model.ended)}",
    ]
    known = {name: parameters[name] for name in _SHOWN_PARAMETERS if name in parameters}
    shown = [f"{name}={escape(value)}" for name, value in known.items() if isinstance(value, (int, float, str))]
    facts += [f"parameters: {', '.join(shown)}"] if shown else []
    return f"""<footer>
<p>Made by bitatoms {__version__} from a table of {format_count(data.n_rows)} × {format_count(data.n_features)} and a
model of {pluralize(data.n_atoms, "pattern")} learned from {pluralize(model.n_samples, "row")}; {"; ".join(facts)}.</p>
<p>To export all patterns as CSV: <code>bitatoms show MODEL --patterns patterns.csv</code></p>
</footer>"""
