"""A page of HTML that is complete in itself: style, script and pictures are in it; nothing comes from elsewhere."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

from ..._version import __version__
from .text import text


class Section(NamedTuple):
    """A part of a page; without a place it is not among the contents."""

    html: str
    place: str = ""
    name: str = ""


class Top(NamedTuple):
    """What stands above the sections."""

    title: str  # of the window
    kicker: str
    heading: str
    skip: tuple[str, str] | None = None  # the place that a link leads to for who does not see the page, and its name


def document(top: Top, sections: Sequence[Section], footer: str, style: str, script: str = "") -> str:
    """The whole page; ``style`` is added to what all pages share."""
    skip = "" if top.skip is None else f'<a class="skip" href="#{top.skip[0]}">Skip to {top.skip[1]}</a>\n'
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="bitatoms {__version__}">
<link rel="icon" href="data:,">
<title>{text(top.title)}</title>
<style>{inlined("report.html", "base.css")}{style}</style>
</head>
<body>
{skip}<header class="top">
<p class="kicker">{text(top.kicker)}</p>
<h1>{text(top.heading)}</h1>
{_contents(sections)}
</header>
<main>
{chr(10).join(section.html for section in sections)}
</main>
{footer}
{f"<script>{script}</script>" if script else ""}
</body>
</html>
"""


def inlined(package: str, name: str) -> str:
    """Return the text of a file inside a subpackage of bitatoms."""
    return files(f"bitatoms.{package}").joinpath(name).read_text(encoding="utf-8")


def _contents(sections: Sequence[Section]) -> str:
    """Links to the sections."""
    links = "".join(f'<li><a href="#{section.place}">{section.name}</a></li>' for section in sections if section.place)
    return f'<nav aria-label="Contents"><ul>{links}</ul></nav>' if links else ""


def _policy(script: str) -> str:
    """What a browser may do with this page: run this one script, show the pictures in it, and fetch nothing."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    runs = f"script-src 'sha256-{digest}'" if script else "script-src 'none'"
    rules = ("default-src 'none'", "img-src data:", "style-src 'unsafe-inline'", runs)
    return "; ".join((*rules, "base-uri 'none'", "form-action 'none'"))
