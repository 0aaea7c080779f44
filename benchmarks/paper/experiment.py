"""The results of an experiment: figures, and claims of the paper with what was found here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from bitatoms.html.tables import DataTable

from .figures import Figure

BITS_PER_SAMPLE = "bits a sample"  # the name of this column in all CSV files


class Verdict(StrEnum):
    """Whether a finding agrees with a claim."""

    AGREES = "agrees"
    PARTLY = "agrees in part"
    DIFFERS = "differs"
    NOT_SEEN = "cannot be seen here"


_SUMMARIES = {
    Verdict.AGREES: "{} agree with the results",
    Verdict.PARTLY: "{} agree in part",
    Verdict.DIFFERS: "{} differ",
    Verdict.NOT_SEEN: "{} cannot be checked on this data",
}


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, or a related expectation, and what was found here.

    Attributes
    ----------
    statement : str
        The claim.
    finding : str
        What was found here.
    verdict : Verdict
        Whether the two agree.
    explanation : str
        Why they differ, if they do.
    in_paper : bool
        Whether the paper makes the claim.
    """

    statement: str
    finding: str
    verdict: Verdict
    explanation: str = ""
    in_paper: bool = True


@dataclass(frozen=True, eq=False)
class Panel:
    """Figures of one data set, or of one model of it, and the claims about them.

    Attributes
    ----------
    title, description : str
        Its heading, and what it shows.
    figures : tuple of Figure
        The figures.
    claims : tuple of Claim
        What the paper claims about them.
    layout : str
        CSS class that arranges the figures.
    runs : DataTable or None
        All runs behind the figures.
    """

    title: str
    description: str
    figures: tuple[Figure, ...]
    claims: tuple[Claim, ...] = ()
    layout: str = "curves"
    runs: DataTable | None = None


@dataclass(frozen=True, eq=False)
class Experiment:
    """An experiment of Section V of the paper.

    Attributes
    ----------
    anchor : str
        Anchor of its section on the page.
    name : str
        Name in the contents.
    title, description : str
        Its heading, and what it repeats.
    panels : tuple of Panel
        Its parts.
    """

    anchor: str
    name: str
    title: str
    description: str
    panels: tuple[Panel, ...]

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims of all panels."""
        return tuple(claim for panel in self.panels for claim in panel.claims)


def verdict_if(agrees: bool, otherwise: Verdict = Verdict.DIFFERS) -> Verdict:
    """Return `Verdict.AGREES` if the condition holds."""
    return Verdict.AGREES if agrees else otherwise


def summarize_verdicts(claims: Iterable[Claim]) -> str:
    """Return one sentence with the number of the paper's claims per verdict."""
    counts = Counter(claim.verdict for claim in claims if claim.in_paper)
    parts = ", ".join(summary.format(counts[verdict]) for verdict, summary in _SUMMARIES.items() if counts[verdict])
    return f"{counts.total()} claims of the paper were checked: {parts}."
