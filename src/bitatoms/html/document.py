"""Self-contained HTML documents: styles, scripts and images are inlined, so a page needs no network."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from .._version import __version__
from ..io.atomic import atomic_write
from .text import escape, format_count, pluralize

_FOOTER = f"<footer><p>Made by bitatoms {__version__}.</p></footer>"


class Section(NamedTuple):
    """A section of a page: one without HTML is left out, one without an anchor is not listed in the contents."""

    html: str
    anchor: str = ""
    title: str = ""


def html_document(
    heading: str,
    kicker: str,
    sections: Sequence[Section],
    *,
    title: str | None = None,
    skip_link: tuple[str, str] | None = None,
    footer: str = _FOOTER,
    style: str = "",
    script: str = "",
) -> str:
    """Return the HTML of a page; ``style`` is appended to the style sheet that all pages share.

    ``title`` is that of the browser window, by default the heading; ``skip_link`` is the anchor and the name of the
    section that screen readers can skip to.
    """
    shown = [section for section in sections if section.html]
    skip = "" if skip_link is None else f'<a class="skip" href="#{skip_link[0]}">Skip to {skip_link[1]}</a>\n'
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_content_security_policy(script)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="bitatoms {__version__}">
<link rel="icon" href="data:,">
<title>{escape(title or heading)}</title>
<style>{read_asset("html", "base.css")}{style}</style>
</head>
<body>
{skip}<header class="top">
<p class="kicker">{escape(kicker)}</p>
<h1>{escape(heading)}</h1>
{_contents(shown)}
</header>
<main>
{chr(10).join(section.html for section in shown)}
</main>
{footer}
{f"<script>{script}</script>" if script else ""}
</body>
</html>
"""


def summary_section(lede: str, figures: Sequence[tuple[str, str]], sentences: Iterable[str]) -> Section:
    """Return the section at the top: a sentence, numbers with their labels, and further sentences, if there are any."""
    shown = "".join(f"<div><dt>{label}</dt><dd>{number}</dd></div>" for number, label in figures)
    paragraphs = "".join(f"<p>{sentence}</p>" for sentence in sentences if sentence)
    return Section(f"""<section id="summary">
<p class="lede">{lede}</p>
{f'<dl class="figures">{shown}</dl>' if shown else ""}
<div class="sentences">{paragraphs}</div>
</section>""")


def more(number: int, noun: str = "") -> str:
    """State how many items are not shown, if there are any."""
    what = pluralize(number, noun) if noun else f"{format_count(number)} more"
    return f'<p class="note">and {what}</p>' if number > 0 else ""


def section(anchor: str, heading: str, *parts: str, title: str = "", otherwise: str = "") -> Section:
    """Return a section of parts, or with another text if all are empty; it has no HTML if that is empty, too.

    ``title`` is its name in the contents, by default its heading.
    """
    body = "".join(parts) or otherwise
    html = f'<section id="{anchor}">\n<h2>{heading}</h2>\n{body}\n</section>' if body else ""
    return Section(html, anchor, title or heading)


def part(heading: str, text: str, body: str) -> str:
    """Return a part of a section; nothing if it has no body."""
    return f"<h3>{heading}</h3>{f'<p>{text}</p>' if text else ''}{body}" if body else ""


def glossary_section(entries: Sequence[tuple[str, str]]) -> Section:
    """Return the section with the definitions of terms, which are shown after a click."""
    items = "".join(f"<dt>{term}</dt><dd>{meaning}</dd>" for term, meaning in entries)
    html = f'<section id="words"><details><summary><h2>Glossary</h2></summary><dl>{items}</dl></details></section>'
    return Section(html, "words", "Glossary")


def write_page(html: str, path: str | os.PathLike[str]) -> None:
    """Write a page to a file. The write is atomic."""
    with atomic_write(Path(path)) as temporary:
        temporary.write_text(html, encoding="utf-8", newline="\n")


def read_asset(package: str, name: str) -> str:
    """Return the text of a file inside a subpackage of bitatoms."""
    return files(f"bitatoms.{package}").joinpath(name).read_text(encoding="utf-8")


def _contents(sections: Sequence[Section]) -> str:
    """Return links to the sections."""
    links = "".join(
        f'<li><a href="#{section.anchor}">{section.title}</a></li>' for section in sections if section.anchor
    )
    return f'<nav aria-label="Contents"><ul>{links}</ul></nav>' if links else ""


def _content_security_policy(script: str) -> str:
    """Return a policy that allows this one script and inlined images, and forbids all requests."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    script_rule = f"script-src 'sha256-{digest}'" if script else "script-src 'none'"
    rules = ("default-src 'none'", "img-src data:", "style-src 'unsafe-inline'", script_rule)
    return "; ".join((*rules, "base-uri 'none'", "form-action 'none'"))
