"""The page: its sections put together, with the style and the script in it, and nothing that comes from elsewhere."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import Any, NamedTuple

from .. import __version__
from .atoms import patterns
from .features import by_feature
from .findings import Findings
from .length import where_bits_go
from .pictures import whole_picture
from .rows import chosen_rows, worst_rows
from .summary import summary
from .words import count, many, text

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


class Section(NamedTuple):
    """A part of the page; without a place it is not among the contents."""

    html: str
    place: str = ""
    name: str = ""


def render(found: Findings, title: str | None, parameters: dict[str, Any]) -> str:
    """The whole page; ``parameters`` are those of the search, as far as they are known."""
    heading = title or f"A table of {many(found.n_rows, 'row')} and {many(found.n_features, 'column')}"
    style, script = (_inlined(name) for name in ("page.css", "page.js"))
    sections = _sections(found)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="bitatoms {__version__}">
<link rel="icon" href="data:,">
<title>{text(heading)} – patterns</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#patterns">Skip to the patterns</a>
<header class="top">
<p class="kicker">Patterns in a table of zeros and ones</p>
<h1>{text(heading)}</h1>
{_contents(sections)}
</header>
<main>
{chr(10).join(section.html for section in sections)}
</main>
{_footer(found, parameters)}
<script>{script}</script>
</body>
</html>
"""


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


def _contents(sections: list[Section]) -> str:
    """Links to the sections."""
    links = "".join(f'<li><a href="#{section.place}">{section.name}</a></li>' for section in sections if section.place)
    return f'<nav aria-label="Contents"><ul>{links}</ul></nav>'


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


def _inlined(name: str) -> str:
    """A file that lies beside this one."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _policy(script: str) -> str:
    """What a browser may do with this page: run this one script, show the pictures in it, and fetch nothing."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    rules = ("default-src 'none'", "img-src data:", "style-src 'unsafe-inline'", f"script-src 'sha256-{digest}'")
    return "; ".join((*rules, "base-uri 'none'", "form-action 'none'"))
