"""Forward selection (the paper's sixth figure): codelength, cost of a step, and parts, well past the minimum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...plots import codelength_curve
from ...report.html.figures import Figure, drawn
from ...report.html.tables import DataTable
from ..datasets import Subject
from ..drawing import curve
from ..experiment import Experiment, Panel
from ..runs import FAILURES, FIRST, UPDATES, selected, stops_at
from ..selection_curve import Path, running_median
from .selection_claims import claims_of_the_paper, smooth_curves, typical_curves

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SEEDS = 3
_PAST = 3  # times the number of atoms that selection would end with
_NEAR = 0.04  # of the codelength: what is shown above the minimum, at least
_LEAST = 48  # atoms that it is forced on to


def selection(digits: Subject, halftone: Subject, seed: int) -> Experiment:
    """Both methods on both sets; the paper has the second only."""
    about = (
        "After each atom that is added, all atoms are learned on until nothing changes. The paper stops at the first "
        f"that brings nothing, its author's program after {FAILURES} in a row; here selection is forced on, so that "
        f"the minimum can be seen. The faint lines are {_SEEDS - 1} other seeds."
    )
    panels = (_panel(halftone, seed, FIRST), _panel(digits, seed, 1))
    return Experiment("selection", "Forward selection", "How many atoms: forward selection", about, panels)


def _panel(subject: Subject, seed: int, first: int) -> Panel:
    """The curves of one set, and what the paper says of them."""
    paths = {update: _paths(subject, update, seed, first) for update in UPDATES}
    mains = {update: several[0] for update, several in paths.items()}
    figures = (
        *_codelengths(subject, paths),
        _costs(subject, mains),
        _times(subject, mains),
        *(_parts(subject, path) for path in mains.values()),
    )
    ends = "; ".join(
        f"{UPDATES[update]}: {path.best.atoms} atoms at the minimum, {stops_at(path.rounds, 1).atoms} by the paper's "
        f"rule, {stops_at(path.rounds, FAILURES).atoms} after {FAILURES} failures"
        for update, path in mains.items()
    )
    begins = f"from {first} random samples" if first > 1 else "from a single sample, to show the whole valley"
    about = f"{subject.name}, {begins}. {ends}."
    smooth = smooth_curves(paths)
    if subject.of_the_paper == "Einstein":
        return Panel(subject.name, about, figures, (*claims_of_the_paper(subject, mains, seed), smooth))
    return Panel(subject.name, f"{about} Not in the paper.", figures, (typical_curves(mains, of_paper=False), smooth))


def _paths(subject: Subject, update: str, seed: int, first: int) -> list[Path]:
    """Forced paths at several seeds, the first to be shown in full."""
    ended = selected(subject.data, update, seed, patience=FAILURES, first=first)
    until = max(_LEAST, _PAST * ended.atoms.n_rows)
    return [Path(selected(subject.data, update, seed + more, until=until, first=first)) for more in range(_SEEDS)]


def _codelengths(subject: Subject, paths: dict[str, list[Path]]) -> tuple[Figure, Figure]:
    """Codelength against atoms, both methods: all of it, and near the minimum."""
    lowest = min(several[0].bits.min() for several in paths.values())
    highest = max(several[0].bits[-1] for several in paths.values())

    def draw(ax: Axes) -> None:
        for update, several in paths.items():
            for path in several[1:]:
                curve(ax, update, path.atoms, path.bits, linewidth=0.8, alpha=0.35, label=None)
            main = several[0]
            curve(ax, update, main.atoms, main.bits)
            best = main.best
            curve(ax, update, [best.atoms], [best.bits / main.run.codes.n_rows], marker="o", label=None)
        ax.set(xlabel="atoms", ylabel="bits a sample")
        ax.legend(title="dot: the minimum", frameon=False)

    def draw_near(ax: Axes) -> None:
        draw(ax)
        reach = max(_NEAR * lowest, 1.2 * (highest - lowest))
        ax.set_ylim(lowest - 0.15 * reach, lowest + reach)
        ax.legend(title="dot: the minimum", frameon=False, loc="upper right")

    rows = [
        (UPDATES[update], run, row.atoms, row.bits / path.run.codes.n_rows, row.wrong_bits)
        for update, several in paths.items()
        for run, path in enumerate(several, 1)
        for row in path.rounds
    ]
    numbers = DataTable.of(("method", "run", "atoms", "bits a sample", "wrong pixels"), rows)
    name = f"{subject.name.lower()}-selection"
    ends = ", ".join(f"{UPDATES[update]} {several[0].best.atoms}" for update, several in paths.items())
    says = f"Codelength against the number of atoms; the minimum lies at {ends} atoms"
    return (
        drawn(name, f"{subject.name}: codelength", says, draw, numbers),
        drawn(f"{name}-near", f"{subject.name}: codelength, near the minimum", f"{says}; enlarged", draw_near, numbers),
    )


def _costs(subject: Subject, paths: dict[str, Path]) -> Figure:
    """Seconds of each step."""

    def draw(ax: Axes) -> None:
        for update, path in paths.items():
            curve(ax, update, path.atoms[1:], 1000 * path.steps, linestyle="", marker=".", alpha=0.3, label=None)
            curve(ax, update, path.atoms[1:], 1000 * running_median(path.steps))
        ax.set(xlabel="atoms", ylabel="milliseconds a step", yscale="log")
        ax.legend(frameon=False)

    rows = [
        (UPDATES[update], int(atoms), float(seconds), row.iterations)
        for update, path in paths.items()
        for atoms, seconds, row in zip(path.atoms[1:], path.steps, path.rounds[1:], strict=True)
    ]
    numbers = DataTable.of(("method", "atoms", "seconds", "inner steps"), rows)
    says = "Milliseconds that each further atom takes, against the number of atoms"
    title = f"{subject.name}: cost of a step (dots), and its running median"
    return drawn(f"{subject.name.lower()}-step-cost", title, says, draw, numbers)


def _times(subject: Subject, paths: dict[str, Path]) -> Figure:
    """Seconds until each number of atoms."""

    def draw(ax: Axes) -> None:
        for update, path in paths.items():
            curve(ax, update, path.atoms, [row.seconds for row in path.rounds])
        ax.set(xlabel="atoms", ylabel="seconds in all")
        ax.set_ylim(bottom=0)
        ax.legend(frameon=False)

    rows = [(UPDATES[update], row.atoms, row.seconds) for update, path in paths.items() for row in path.rounds]
    numbers = DataTable.of(("method", "atoms", "seconds in all"), rows)
    says = "Seconds that forward selection takes in all, against the number of atoms"
    return drawn(f"{subject.name.lower()}-selection-time", f"{subject.name}: time in all", says, draw, numbers)


def _parts(subject: Subject, path: Path) -> Figure:
    """The three parts of the codelength."""
    method, n_rows = UPDATES[path.run.update], path.run.codes.n_rows

    def draw(ax: Axes) -> None:
        fields = ("atoms", "bits_errors", "bits_codes", "bits_atoms")
        shares = (1, n_rows, n_rows, n_rows)  # a sample
        rows = [
            tuple(getattr(row, field) / of for field, of in zip(fields, shares, strict=True)) for row in path.rounds
        ]
        codelength_curve(np.array(rows, dtype=[(field, float) for field in fields]), ax=ax)
        for line in ax.lines:
            line.set_marker("")
        ax.set_ylabel("bits a sample")
        ax.legend(frameon=False)

    rows = [(row.atoms, row.bits_errors, row.bits_codes, row.bits_atoms, row.bits) for row in path.rounds]
    numbers = DataTable.of(("atoms", "bits of errors", "bits of codes", "bits of atoms", "bits"), rows)
    name = f"{subject.name.lower()}-parts-{path.run.update}"
    says = "The three parts of the codelength, and their sum, against the number of atoms"
    return drawn(name, f"{subject.name}, {method}: errors L(E), codes L(A), atoms L(D)", says, draw, numbers)
