"""The page: each experiment with its figures, and beside them what the paper says and what was found."""

from __future__ import annotations

from collections.abc import Sequence

from .._version import __version__
from ..report.html.document import Section, Top, document, inlined
from ..report.html.text import text
from .experiment import Claim, Experiment, Panel, counted

_TITLE = "Binary Matrix Factorization via Dictionary Learning, done again"
_PAPER = (
    "I. Ramírez, “Binary Matrix Factorization via Dictionary Learning”, IEEE Journal of Selected Topics in Signal "
    "Processing 12(6), 2018"
)


def render(experiments: Sequence[Experiment], how: str) -> str:
    """The whole page; ``how`` says on what it was made, and how to repeat it."""
    top = Top(_TITLE, "The experiments of a paper", _TITLE, ("summary", "what was found"))
    sections = [_summary(experiments), *map(_section, experiments)]
    footer = f"<footer><p>Made by bitatoms {__version__}. {text(how)}</p></footer>"
    return document(top, sections, footer, inlined("reproduce", "page.css"))


def _summary(experiments: Sequence[Experiment]) -> Section:
    """All claims, with links to where they are looked at."""
    claims = [
        (experiment, panel, claim)
        for experiment in experiments
        for panel in experiment.panels
        for claim in panel.claims
    ]
    rows = "".join(
        f'<tr><td>{_badge(claim)}</td><td><a href="#{experiment.place}">{text(claim.says)}</a> '
        f'<span class="note">{text(panel.title)}</span></td></tr>'
        for experiment, panel, claim in claims
        if claim.of_paper
    )
    return Section(
        f'<section id="summary"><p class="lede">{counted(claim for *_, claim in claims)}</p>'
        f"<p>{text(_PAPER)}. All of its experiments are done again here with the methods as it describes them, "
        "mistakes in its text mended. Its figures are not copied, but made anew.</p>"
        '<table class="claims"><thead><tr><th scope="col">what was found</th><th scope="col">the paper says</th></tr>'
        f"</thead><tbody>{rows}</tbody></table></section>",
        "summary",
        "Claims",
    )


def _section(experiment: Experiment) -> Section:
    """An experiment."""
    panels = "".join(map(_panel, experiment.panels))
    about = f"<h2>{text(experiment.title)}</h2><p>{text(experiment.about)}</p>"
    return Section(f'<section id="{experiment.place}">{about}{panels}</section>', experiment.place, experiment.name)


def _panel(panel: Panel) -> str:
    """Figures, and the claims that are read off them."""
    heading = f"<h3>{text(panel.title)}</h3>" if panel.title else ""
    about = f"<p>{text(panel.about)}</p>" if panel.about else ""
    figures = "".join(figure.to_html() for figure in panel.figures)
    claims = f'<ul class="found">{"".join(map(_claim, panel.claims))}</ul>' if panel.claims else ""
    runs = "" if panel.numbers is None else panel.numbers.to_html(f"{panel.title}: all runs")
    unfolded = f"<details><summary>All runs</summary>{runs}</details>" if runs else ""
    shown = f'<div class="{panel.layout}">{figures}</div>' if figures else ""
    return f'<div class="panel">{heading}{about}{shown}{unfolded}{claims}</div>'


def _claim(claim: Claim) -> str:
    """What the paper says, what was found, and whether the two agree."""
    why = f'<p class="note">{text(claim.why)}</p>' if claim.why else ""
    whose = "" if claim.of_paper else ' <span class="note">not in the paper</span>'
    return f"<li>{_badge(claim)}{whose}<p><q>{text(claim.says)}</q></p><p>{text(claim.found)}</p>{why}</li>"


def _badge(claim: Claim) -> str:
    """The verdict."""
    return f'<span class="verdict {claim.verdict.name.lower()}">{claim.verdict}</span>'
