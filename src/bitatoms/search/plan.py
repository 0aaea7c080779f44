"""Plans: how widely a search looks, and the constants that tune its algorithms.

`PLANS` holds one plan per search. Tests and benchmarks pass another plan, or replace an entry, to spend less time.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

MIN_USERS = 2  # of an atom, where the codelength decides which there are: a copy of one row is not a pattern


@dataclass(frozen=True)
class NmfBudget:
    """The work that goes into starting atoms from a non-negative factorization (`search/starts/nmf.py`)."""

    max_starts: int = 3
    operations: int = 5 * 10**9  # for all starts together (`nmf_extent`)
    max_rows: int = 1000
    max_iterations: int = 50
    min_iterations: int = 10
    thresholds: tuple[float, ...] = (0.2, 0.3, 0.4, 0.5, 0.6)  # as a share of an atom's largest value


@dataclass(frozen=True)
class FixedRankBudget:
    """The work that goes into a fixed number of atoms (`search/fixed_rank.py`)."""

    operations: int = 2 * 10**9  # for all trials together (`trial_operations`),
    max_trials: int = 15_000  # which are fewer on small tables
    children: int = 40  # that share them, with at least
    min_child_trials: int = 60  # each
    max_failures: int = 12  # children in a row that are no better than the best state, after which it ends
    max_concept_work: float = 5e9  # rows times atoms times columns squared, above which concepts are no start
    sample_rows: int = 4000  # trials see at most this many rows,
    sample_cols: int = 2048  # and this many columns, or more: those that have most of the rarer of ones and zeros,
    sample_share: float = 0.85  # in all at least this share of them
    neighbor_words: int = 4 * 10**9  # compared to find the nearest sampled row of each other row: a few seconds
    max_exact_atoms: int = 8  # up to this many atoms, every trial takes exact steps
    max_steps: int = 3  # of coding and update in a trial
    slack: float = 0.01  # a trial may be worse by this share of the errors, at first
    nmf: NmfBudget = NmfBudget()


@dataclass(frozen=True)
class LinearBudget:
    """The work that goes into starts by linear algebra (`linear.py` and `parity_checks.py` in `search/starts`)."""

    max_rows: int = 2000  # of a sample, in which a basis is sought,
    max_cols: int = 512  # and its columns; others get their atoms afterwards
    max_spread: float = 1.8  # of the ones of sums of four rows, relative to independent bits; others are too alike
    hash_tables: int = 8  # of pairs of rows, to find checks,
    compared_words: int = 2_000_000  # for each of them
    near_tables: int = 64  # of rows beyond the sample, to find near ones
    check_deviations: float = 4.5  # standard deviations by which a check has fewer ones than most sums of four rows
    checks: int = 12  # per row that are enough
    min_checks: float = 0.8  # per row; with fewer, noise cannot be removed
    least_progress: float = 0.05  # share of the rows that a round of peeling codes,
    peeling_patience: int = 3  # or it ends after this many rounds in a row
    coded_deviations: float = 3.5  # standard deviations by which coded rows have fewer errors than shuffled ones
    max_judged: float = 1.05  # times the cost of some rows in the first look, above which a basis is not a start
    sum_patience: int = 300  # draws in a row without lighter sums of atoms, after which a basis is a start,
    max_sum_patience: int = 4000  # or up to this many, where sums as light as those found are rarely drawn


@dataclass(frozen=True)
class MdlTuning:
    """The constants of the search for the shortest codelength (`search/mdl_search.py`, `search/rounds.py`)."""

    sparse_share: float = 0.05  # tables with a smaller share of ones are sparse
    first_look_atoms: int = 128
    min_rows_per_atom: int = 8  # of a start; with fewer, it has fewer atoms
    rows_per_start_atom: int = 16  # atoms of a start are sought among this many rows each
    flat_sweeps: int = 3
    min_new_atoms: int = 8  # a round may add this many atoms,
    new_atoms_share: float = 0.1  # or this share of the atoms there are
    cycle_rounds: int = 2  # the last round of a cycle tries to drop every atom
    bias_share: float = 0.6  # a bias is tried if this share of the rows has some feature
    child_rounds: int = 12  # of grow, sweep and drop
    perturbed_share: float = 0.1  # of the atoms, dropped by a perturbation
    min_holdout_rows: int = 1000  # fewer held-out rows say nothing about rare atoms
    linear: LinearBudget = LinearBudget()
    nmf_ranks: tuple[int, ...] = (6, 16, 40)  # numbers of atoms to start from by non-negative factorization, under OR
    nmf: NmfBudget = NmfBudget(max_starts=1, operations=2 * 10**9, max_rows=500)
    close: float = 1.25  # the best start of each kind is continued up to this multiple of the lowest cost


@dataclass(frozen=True)
class WindowTuning:
    """How wide tables are searched, by windows of their columns (`search/windows/driver.py`)."""

    min_features: int = 2048  # of a table; narrower ones are searched as one window
    width: int = 512  # columns of a window
    max_joined: int = 1 << 23  # atoms, and words of 64 rows, times columns of windows that are joined
    max_cells: int = 1 << 24  # of a table that is searched as a whole, too, if all its windows are joined
    starts: tuple[int, ...] = (64,)  # of a window, in place of those of "fast"
    max_related: int = 64  # columns of a window of a sparse table


@dataclass(frozen=True)
class Plan:
    """How widely to search. Checkpoints hold its ``repr``: fields added later stay out of it."""

    starts: tuple[int, ...]  # numbers of atoms to start from
    patience: float  # rounds in a row without a gain after which it ends
    max_rounds: int
    least_gain: float  # smaller gains do not count; a share of what is saved or of what is left, whichever is less
    more_starts: tuple[int, ...]  # whose states join the population
    children: int  # in an epoch: states that are perturbed or recombined
    epochs: int = 1  # at least, of a search for a given number of atoms
    by_beam: bool = False  # whether each child, or the state of a search without children, gets a sweep by beam
    population: int = 8  # states that are kept
    max_failed_epochs: int = 0  # further epochs in a row without a gain, after which the search ends
    fewest: int = 0  # atoms, in the end
    most: int | None = None
    min_users: int = field(default=0, repr=False)  # of an atom, in the end
    left_out: frozenset[str] = frozenset()  # starts and moves that are not made
    mdl: MdlTuning = field(default=MdlTuning(), repr=False)
    fixed_rank: FixedRankBudget = field(default=FixedRankBudget(), repr=False)
    windows: WindowTuning = field(default=WindowTuning(), repr=False)

    def for_atoms(self, wanted: int | Literal["mdl"], most: int | None) -> Plan:
        """Return the plan for this number of atoms, or for one that the codelength decides, at most ``most``."""
        if wanted == "mdl":
            return replace(self, fewest=0, most=most, min_users=MIN_USERS)
        starts = (wanted, *(size for size in self.starts if size > wanted))
        return replace(self, starts=starts, fewest=wanted, most=wanted)

    def of_share(self, share: float) -> Plan:
        """Return the plan for a sample with this share of the rows: users of an atom are fewer."""
        return replace(self, min_users=min(self.min_users, max(1, round(self.min_users * share))))

    def in_one_epoch(self) -> Plan:
        """Return the plan with as many epochs as a fast search has."""
        return replace(self, epochs=1, max_failed_epochs=0)

    def without(self, *parts: str) -> Plan:
        """Return the plan without these starts and moves."""
        return replace(self, left_out=self.left_out.union(parts))

    def with_starts(self, *sizes: int) -> Plan:
        """Return the plan with starts of these sizes alone, besides the first look."""
        return replace(self, starts=sizes, more_starts=()).without("linear", "nmf")

    def for_ensembles(self) -> Plan:
        """Return the plan of one of many models: the first look as its only start, if it has one, and few rounds."""
        plan = self if "first look" in self.left_out else self.with_starts()
        return replace(plan, patience=1)


_FAST = Plan(
    starts=(256, 0),
    patience=3,
    max_rounds=0,
    least_gain=1e-3,
    more_starts=(),
    children=0,
)
PLANS = {
    "fast": _FAST,
    "thorough": replace(
        _FAST,
        more_starts=(512, 32),
        children=8,
        epochs=4,
    ),
}
PLANS["anytime"] = replace(PLANS["thorough"], max_failed_epochs=10)
