"""The page: each experiment with its figures, the claims of the paper, and what was found here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bitatoms._version import __version__
from bitatoms.html.document import Section, html_document
from bitatoms.html.text import escape

from .experiment import Claim, Experiment, Panel, summarize_verdicts

_STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
_TITLE = "Binary Matrix Factorization via Dictionary Learning: experiments reproduced"
_PAPER = (
    "I. Ramírez, “Binary Matrix Factorization via Dictionary Learning”, IEEE Journal of Selected Topics in Signal "
    "Processing 12(6), 2018"
)


def render(experiments: Sequence[Experiment], provenance: str) -> str:
    """Return the HTML of the page; ``provenance`` describes the data and the machine."""
    sections = [_summary(experiments), *map(_section, experiments)]
    footer = f"<footer><p>Made by bitatoms {__version__}. {escape(provenance)}</p></footer>"
    kicker, skip_link = "The experiments of a paper", ("summary", "the results")
    return html_document(_TITLE, kicker, sections, skip_link=skip_link, footer=footer, style=_STYLE)


def _summary(experiments: Sequence[Experiment]) -> Section:
    """Return the section with all claims of the paper, linked to their experiments."""
    claims = [
        (experiment, panel, claim)
        for experiment in experiments
        for panel in experiment.panels
        for claim in panel.claims
    ]
    rows = "".join(
        f'<tr><td>{_badge(claim)}</td><td><a href="#{experiment.anchor}">{escape(claim.statement)}</a> '
        f'<span class="note">{escape(panel.title)}</span></td></tr>'
        for experiment, panel, claim in claims
        if claim.in_paper
    )
    return Section(
        f'<section id="summary"><p class="lede">{summarize_verdicts(claim for *_, claim in claims)}</p>'
        f"<p>{escape(_PAPER)}. This page repeats all of its experiments with the methods that it describes; errors in "
        "its text are corrected. No figure is copied from the paper.</p>"
        '<table class="claims"><thead><tr><th scope="col">verdict</th><th scope="col">claim of the paper</th></tr>'
        f"</thead><tbody>{rows}</tbody></table></section>",
        "summary",
        "Claims",
    )


def _section(experiment: Experiment) -> Section:
    """Return the section of an experiment."""
    panels = "".join(map(_panel, experiment.panels))
    head = f"<h2>{escape(experiment.title)}</h2><p>{escape(experiment.description)}</p>"
    return Section(f'<section id="{experiment.anchor}">{head}{panels}</section>', experiment.anchor, experiment.name)


def _panel(panel: Panel) -> str:
    """Return the figures of a panel, its runs and its claims."""
    heading = f"<h3>{escape(panel.title)}</h3>" if panel.title else ""
    description = f"<p>{escape(panel.description)}</p>" if panel.description else ""
    figures = "".join(figure.to_html() for figure in panel.figures)
    figures = f'<div class="{panel.layout}">{figures}</div>' if figures else ""
    runs = "" if panel.runs is None else panel.runs.to_html(f"{panel.title}: all runs")
    runs = f"<details><summary>All runs</summary>{runs}</details>" if runs else ""
    claims = f'<ul class="findings">{"".join(map(_claim, panel.claims))}</ul>' if panel.claims else ""
    return f'<div class="panel">{heading}{description}{figures}{runs}{claims}</div>'


def _claim(claim: Claim) -> str:
    """Return a claim with its verdict and finding."""
    explanation = f'<p class="note">{escape(claim.explanation)}</p>' if claim.explanation else ""
    note = "" if claim.in_paper else ' <span class="note">not in the paper</span>'
    return (
        f"<li>{_badge(claim)}{note}<p><q>{escape(claim.statement)}</q></p><p>{escape(claim.finding)}</p>"
        f"{explanation}</li>"
    )


def _badge(claim: Claim) -> str:
    """Return the verdict as a badge."""
    return f'<span class="verdict {claim.verdict.name.lower()}">{claim.verdict}</span>'
