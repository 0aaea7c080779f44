"""The page: its sections, from top to bottom."""

from __future__ import annotations

from typing import Any

from .._version import __version__
from .atoms import patterns
from .features import by_feature
from .findings import Findings
from .html.document import Section, Top, document, inlined
from .html.text import count, many, text
from .length import where_bits_go
from .pictures import whole_picture
from .rows import chosen_rows, worst_rows
from .summary import summary

_SHOWN_PARAMETERS = ("n_components", "search", "objective", "random_state")
_WORDS = (
    ("pattern", "Features that often come together; called an atom in the program, and in its paper."),
    ("feature", "A column of the table. Each cell of it is a one (yes) or a zero (no)."),
    (
        "bits",
        "How long the shortest description is that was found, in answers to yes/no questions. Patterns have to be "
        "described too: one that does not save more than it costs is left out.",
    ),
    ("bits saved", "How much longer the description of the table learned from would be without this pattern."),
    ("accounted for", "A one of the table that the patterns of its row have too."),
    ("missed", "A one of the table that the patterns of its row do not have."),
    ("invented", "A zero of the table that the patterns of its row take for a one."),
)
_ALGEBRAS = {
    "or": "A feature that two patterns of a row have is a one (OR).",
    "xor": "A feature that two patterns of a row have is a zero again (XOR).",
}


def render(found: Findings, title: str | None, parameters: dict[str, Any]) -> str:
    """The whole page; ``parameters`` are those of the search, as far as they are known."""
    heading = title or f"A table of {many(found.n_rows, 'row')} and {many(found.n_features, 'column')}"
    top = Top(f"{heading} – patterns", "Patterns in a table of zeros and ones", heading, ("patterns", "the patterns"))
    style, script = (inlined("report", name) for name in ("page.css", "page.js"))
    return document(top, _sections(found), _footer(found, parameters), style, script)


def _sections(found: Findings) -> list[Section]:
    """What the page shows, from top to bottom; without atoms there is no more to say than what the table holds."""
    sections = (
        Section(summary(found)),
        Section(_whole(found) if found.explains else "", "picture", "Picture"),
        Section(patterns(found), "patterns", "Patterns"),
        Section(where_bits_go(found) if found.explains else "", "bits", "Where the bits go"),
        Section(chosen_rows(found) if found.explains else "", "rows", "Rows"),
        Section(worst_rows(found) if found.explains else "", "worst", "Worst fits"),
        Section(by_feature(found), "features", "Features"),
        Section(_glossary(found), "words", "Words"),
    )
    return [section for section in sections if section.html]


def _whole(found: Findings) -> str:
    """The picture that the rows are blocks of."""
    shown = whole_picture(found)
    return f'<section id="picture"><h2>The picture</h2>{shown}</section>' if shown else ""


def _glossary(found: Findings) -> str:
    """What the words mean."""
    words = (*_WORDS, ("putting patterns together", _ALGEBRAS[found.model.algebra]))
    items = "".join(f"<dt>{word}</dt><dd>{meaning}</dd>" for word, meaning in words)
    return (
        '<section id="words"><details><summary><h2>What do these words mean?</h2></summary>'
        f"<dl>{items}</dl></details></section>"
    )


def _footer(found: Findings, parameters: dict[str, Any]) -> str:
    """How this was made, and where the numbers are."""
    model = found.model
    how = [
        f"algebra {model.algebra.upper()}",
        f"rows coded by “{text(model.coder)}”",
        f"search ended: {text(model.ended)}",
    ]
    known = {name: parameters[name] for name in _SHOWN_PARAMETERS if name in parameters}
    asked = [f"{name}={text(value)}" for name, value in known.items() if isinstance(value, (int, float, str))]
    how += [f"asked for: {', '.join(asked)}"] if asked else []
    return f"""<footer>
<p>Made by bitatoms {__version__} from a table of {count(found.n_rows)} × {count(found.n_features)} and a model of
{many(found.n_atoms, "pattern")} learned from {many(model.n_samples, "row")}; {"; ".join(how)}.</p>
<p>All numbers as a table: <code>bitatoms show MODEL --patterns patterns.csv</code></p>
</footer>"""
