"""Forward selection (Figure 6 of the paper): codelength, cost of a step, and parts, well past the minimum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bitatoms.html.tables import DataTable
from bitatoms.plots import codelength_curve

from .datasets import PaperDataset
from .drawing import plot_method
from .experiment import BITS_PER_SAMPLE, Experiment, Panel
from .figures import Figure, plot_figure
from .runs import PATIENCE, START_ATOMS, UPDATES, run_selection, stopping_round
from .selection_claims import selection_claims, smoothness_claim, typical_parts_claim
from .selection_curve import SelectionCurve, running_median

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_N_SEEDS = 3
_EXTENSION = 3  # times the number of atoms at which selection would end
_MIN_ATOMS = 48  # that every curve continues to
_ZOOM = 0.04  # of the codelength: the height of the enlarged figure, at least


def selection(digits: PaperDataset, halftone: PaperDataset, seed: int) -> Experiment:
    """Run both methods on both data sets; the paper has the halftone only."""
    description = (
        "After each added atom, all atoms are learned until nothing changes. The paper stops at the first atom that "
        f"does not shorten the codelength, the author's program after {PATIENCE} in a row. Here selection continues, "
        f"so that the minimum is visible. The faint lines are {_N_SEEDS - 1} other seeds."
    )
    panels = (_panel(halftone, seed, START_ATOMS), _panel(digits, seed, 1))
    return Experiment("selection", "Forward selection", "How many atoms: forward selection", description, panels)


def _panel(dataset: PaperDataset, seed: int, n_start: int) -> Panel:
    """Return the curves of one data set and the claims about them."""
    curves = {update: _run_curves(dataset, update, seed, n_start) for update in UPDATES}
    first = {update: several[0] for update, several in curves.items()}
    figures = (
        *_codelength_figures(dataset, curves),
        _cost_figure(dataset, first),
        _time_figure(dataset, first),
        *(_parts_figure(dataset, curve) for curve in first.values()),
    )
    ends = "; ".join(
        f"{UPDATES[update]}: {curve.best.atoms} atoms at the minimum, {stopping_round(curve.rounds, 1).atoms} by the "
        f"paper's rule, {stopping_round(curve.rounds, PATIENCE).atoms} after {PATIENCE} failures"
        for update, curve in first.items()
    )
    start = f"from {n_start} random samples" if n_start > 1 else "from a single sample, to show the full curve"
    description = f"{dataset.name}, {start}. {ends}."
    smoothness = smoothness_claim(curves)
    if dataset.paper_name == "Einstein":
        return Panel(dataset.name, description, figures, (*selection_claims(dataset, first, seed), smoothness))
    claims = (typical_parts_claim(first, in_paper=False), smoothness)
    return Panel(dataset.name, f"{description} Not in the paper.", figures, claims)


def _run_curves(dataset: PaperDataset, update: str, seed: int, n_start: int) -> list[SelectionCurve]:
    """Run selection past its end with several seeds; the first curve is shown in full."""
    ended = run_selection(dataset.data, update, seed, patience=PATIENCE, n_start=n_start)
    until = max(_MIN_ATOMS, _EXTENSION * ended.atoms.n_rows)
    return [
        SelectionCurve(run_selection(dataset.data, update, seed + offset, until=until, n_start=n_start))
        for offset in range(_N_SEEDS)
    ]


def _codelength_figures(dataset: PaperDataset, curves: dict[str, list[SelectionCurve]]) -> tuple[Figure, Figure]:
    """Plot the codelength against the number of atoms, in full and near the minimum."""
    lowest = min(several[0].bits.min() for several in curves.values())
    highest = max(several[0].bits[-1] for several in curves.values())

    def draw(ax: Axes) -> None:
        for update, (first, *others) in curves.items():
            for other in others:
                plot_method(ax, update, other.atoms, other.bits, linewidth=0.8, alpha=0.35, label=None)
            plot_method(ax, update, first.atoms, first.bits)
            best = first.best
            plot_method(ax, update, [best.atoms], [best.bits / first.run.codes.n_rows], marker="o", label=None)
        ax.set(xlabel="atoms", ylabel="bits per sample")
        ax.legend(title="dot: minimum", frameon=False)

    def draw_near(ax: Axes) -> None:
        draw(ax)
        height = max(_ZOOM * lowest, 1.2 * (highest - lowest))
        ax.set_ylim(lowest - 0.15 * height, lowest + height)
        ax.legend(title="dot: minimum", frameon=False, loc="upper right")

    rows = [
        (UPDATES[update], number, row.atoms, row.bits / curve.run.codes.n_rows, row.wrong_bits)
        for update, several in curves.items()
        for number, curve in enumerate(several, 1)
        for row in curve.rounds
    ]
    table = DataTable.from_rows(("method", "run", "atoms", BITS_PER_SAMPLE, "wrong pixels"), rows)
    name, title = f"{dataset.name.lower()}-selection", f"{dataset.name}: codelength"
    minima = ", ".join(f"{UPDATES[update]} {several[0].best.atoms}" for update, several in curves.items())
    alt = f"Codelength against the number of atoms; the minimum lies at {minima} atoms"
    return (
        plot_figure(name, title, alt, draw, table),
        plot_figure(f"{name}-near", f"{title} near the minimum", f"{alt}; enlarged", draw_near, table),
    )


def _cost_figure(dataset: PaperDataset, curves: dict[str, SelectionCurve]) -> Figure:
    """Plot the duration of each step."""

    def draw(ax: Axes) -> None:
        for update, curve in curves.items():
            atoms, milliseconds = curve.atoms[1:], 1000 * curve.step_seconds
            plot_method(ax, update, atoms, milliseconds, linestyle="", marker=".", alpha=0.3, label=None)
            plot_method(ax, update, atoms, 1000 * running_median(curve.step_seconds))
        ax.set(xlabel="atoms", ylabel="milliseconds per step", yscale="log")
        ax.legend(frameon=False)

    rows = [
        (UPDATES[update], int(atoms), float(seconds), row.iterations)
        for update, curve in curves.items()
        for atoms, seconds, row in zip(curve.atoms[1:], curve.step_seconds, curve.rounds[1:], strict=True)
    ]
    table = DataTable.from_rows(("method", "atoms", "seconds", "inner steps"), rows)
    alt = "Milliseconds per added atom, against the number of atoms"
    title = f"{dataset.name}: cost of a step (dots) and its running median"
    return plot_figure(f"{dataset.name.lower()}-step-cost", title, alt, draw, table)


def _time_figure(dataset: PaperDataset, curves: dict[str, SelectionCurve]) -> Figure:
    """Plot the time until each number of atoms."""

    def draw(ax: Axes) -> None:
        for update, curve in curves.items():
            plot_method(ax, update, curve.atoms, [row.seconds for row in curve.rounds])
        ax.set(xlabel="atoms", ylabel="total seconds")
        ax.set_ylim(bottom=0)
        ax.legend(frameon=False)

    rows = [(UPDATES[update], row.atoms, row.seconds) for update, curve in curves.items() for row in curve.rounds]
    table = DataTable.from_rows(("method", "atoms", "seconds in all"), rows)
    alt = "Total seconds of forward selection, against the number of atoms"
    return plot_figure(f"{dataset.name.lower()}-selection-time", f"{dataset.name}: total time", alt, draw, table)


def _parts_figure(dataset: PaperDataset, curve: SelectionCurve) -> Figure:
    """Plot the three parts of the codelength."""
    method, n_rows = UPDATES[curve.run.update], curve.run.codes.n_rows

    def draw(ax: Axes) -> None:
        fields = ("atoms", "bits_errors", "bits_codes", "bits_atoms")
        divisors = (1, n_rows, n_rows, n_rows)  # bits per sample
        rows = [
            tuple(getattr(row, field) / divisor for field, divisor in zip(fields, divisors, strict=True))
            for row in curve.rounds
        ]
        codelength_curve(np.array(rows, dtype=[(field, float) for field in fields]), ax=ax)
        for line in ax.lines:
            line.set_marker("")
        ax.set_ylabel("bits per sample")
        ax.legend(frameon=False)

    rows = [(row.atoms, row.bits_errors, row.bits_codes, row.bits_atoms, row.bits) for row in curve.rounds]
    table = DataTable.from_rows(("atoms", "bits of errors", "bits of codes", "bits of atoms", "bits"), rows)
    name = f"{dataset.name.lower()}-parts-{curve.run.update}"
    alt = "The three parts of the codelength, and their sum, against the number of atoms"
    return plot_figure(name, f"{dataset.name}, {method}: errors L(E), codes L(A), atoms L(D)", alt, draw, table)
