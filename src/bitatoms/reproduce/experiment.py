"""What an experiment leaves: figures, and claims of the paper beside what was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from ..report.html.figures import Figure
from ..report.html.tables import DataTable


class Verdict(StrEnum):
    """Whether what was found agrees with what the paper says."""

    AGREES = "agrees"
    PARTLY = "agrees in part"
    DIFFERS = "differs"
    NOT_SEEN = "cannot be seen here"


_COUNTED = {
    Verdict.AGREES: "{} agree with what was found",
    Verdict.PARTLY: "{} in part",
    Verdict.DIFFERS: "{} not",
    Verdict.NOT_SEEN: "{} cannot be seen in this data",
}


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, or what one would expect beside it, and what was found of it."""

    says: str  # the paper
    found: str  # here
    verdict: Verdict
    why: str = ""  # where it does not agree, or not quite
    of_paper: bool = True


@dataclass(frozen=True, eq=False)
class Panel:
    """Figures that belong together, and the claims that are read off them."""

    title: str  # the data set, and the method where it is one
    about: str
    figures: tuple[Figure, ...]
    claims: tuple[Claim, ...] = ()
    layout: str = "curves"  # how figures stand beside each other, as the style of the page names it
    numbers: DataTable | None = None  # of all runs behind it


@dataclass(frozen=True, eq=False)
class Experiment:
    """A part of Section V of the paper."""

    place: str  # its address on the page
    name: str  # among the contents
    title: str
    about: str
    panels: tuple[Panel, ...]

    @property
    def claims(self) -> tuple[Claim, ...]:
        """All claims of its panels."""
        return tuple(claim for panel in self.panels for claim in panel.claims)


def judged(agrees: bool, otherwise: Verdict = Verdict.DIFFERS) -> Verdict:
    """The verdict where a fact decides."""
    return Verdict.AGREES if agrees else otherwise


def counted(claims: Iterable[Claim]) -> str:
    """How many claims of the paper there are, and how many of them hold, in a sentence."""
    counts = Counter(claim.verdict for claim in claims if claim.of_paper)
    said = ", ".join(words.format(counts[verdict]) for verdict, words in _COUNTED.items() if counts[verdict])
    return f"{counts.total()} claims of the paper were looked at: {said}."
