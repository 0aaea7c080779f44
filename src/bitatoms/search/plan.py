"""Plans: how widely a search looks, and the constants that tune its algorithms.

`PLANS` holds one plan per search. Tests and benchmarks pass another plan, or replace an entry, to spend less time.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal


@dataclass(frozen=True)
class NmfBudget:
    """The work that goes into starting atoms from a non-negative factorization (`search/starts/nmf.py`)."""

    max_starts: int = 3
    operations: int = 7 * 10**9  # for all starts together (`nmf_extent`)
    max_rows: int = 1000
    max_iterations: int = 50
    min_iterations: int = 20
    thresholds: tuple[float, ...] = (0.2, 0.3, 0.4, 0.5, 0.6)  # as a share of an atom's largest value


@dataclass(frozen=True)
class FixedRankBudget:
    """The work that goes into a fixed number of atoms (`search/fixed_rank.py`)."""

    effort: int = 1  # multiplies the numbers of children and starts; the last coder is a beam above 1
    operations: int = 18 * 10**8  # for all trials together (`trial_operations`),
    max_trials: int = 12_000  # which are fewer on small tables
    children: int = 40  # that share them, with at least
    min_child_trials: int = 60  # each
    population: int = 8  # states that are kept
    max_failures: int = 12  # children in a row that are no better than the best state, after which it ends
    max_concept_work: float = 2e9  # rows times atoms times columns squared, above which concepts are no start
    sample_rows: int = 4000  # trials see at most this many rows
    neighbor_words: int = 4 * 10**9  # compared to find the nearest sampled row of each other row: a few seconds
    max_exact_atoms: int = 8  # up to this many atoms, every trial takes exact steps
    max_steps: int = 5  # of coding and update in a trial
    slack: float = 0.01  # a trial may be worse by this share of the errors, at first
    nmf: NmfBudget = NmfBudget()


@dataclass(frozen=True)
class LightSumBudget:
    """How long sums of atoms are sought, and of what (`search/moves/basis.py`)."""

    patience: int = 10  # draws in a row that give no lighter vector, after which it ends,
    max_patience: int = 10  # or up to this many, where vectors as light as those found are rarely drawn
    of_atoms: bool = False  # seek lighter atoms too, not only lighter codes: for a basis that is arbitrary so far


@dataclass(frozen=True)
class CheckBudget:
    """How many checks are sought, and the work that goes into it (`search/starts/parity_checks.py`)."""

    min_hash_tables: int = 3  # a check has no vote in the columns of its hash
    max_hash_tables: int = 8
    max_hash_bits: int = 22
    compared_words: int = 2_000_000  # per hash table
    compared_per_pair: int = 40  # other pairs
    max_per_bucket: int = 2000  # pairs of a bucket that are compared
    n_controls: int = 1000  # sums of four random rows, to see how many ones such sums have
    deviations: float = 4.5  # standard deviations by which a check has fewer ones than most sums of four rows
    per_row: int = 12  # checks that are enough
    listed: int = 8  # times as many are listed per hash table, to draw from
    min_per_row: float = 0.8  # with fewer, noise cannot be removed
    least_progress: float = 1 / 16  # share of these that each hash table must bring, or no further one is made
    rounds: int = 15  # of removing noise
    least_rise: float = 1e-3  # of the mean of checks, 1 where satisfied and -1 elsewhere, in a round
    min_satisfied: int = 3  # checks without any error, in which a row must be to be taken as free of noise,
    min_share: float = 0.5  # and the share of its checks that these are, relative to
    clean_quantile: float = 0.9  # this quantile of the share, which rows free of noise reach even if many others do not


@dataclass(frozen=True)
class PeelingBudget:
    """The work that goes into the completion of a basis (`search/starts/linear.py`)."""

    max_rounds: int = 80
    n_draws: int = 30  # of pivot columns per round, until groups are found
    coding_draws: int = 16
    light_sums: LightSumBudget = LightSumBudget()
    max_rows: int = 600  # compared per draw
    max_false: float = 0.03  # share of the pairs compared as near that are so by chance
    new_vectors: int = 4  # per round, at most
    n_controls: int = 64  # shuffled rows, to see how well rows outside the space are coded
    deviations: float = 3.5  # standard deviations by which coded rows have fewer errors than those
    max_left: float = 0.01  # share of rows not coded, at which the basis is complete
    min_uses: float = 0.01  # share of the rows coded so far that must use a vector
    max_rank: float = 0.75  # of the number of rows or columns; a larger basis is one of noise


@dataclass(frozen=True)
class LinearStartBudget:
    """The part of a table from which a basis is sought, and the work that goes into it (`search/starts/linear.py`)."""

    min_side: int = 8  # rows and columns
    max_rows: int = 2000
    max_cols: int = 512  # others get their atoms afterwards
    max_wide: int = 16384  # columns of a table; to code more takes long
    checks: CheckBudget = CheckBudget()
    peeling: PeelingBudget = PeelingBudget()


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
    cycle_rounds: int = 4  # the last round of a cycle tries to drop every atom
    bias_share: float = 0.6  # a bias is tried if this share of the rows has some feature
    child_rounds: int = 12  # of grow, sweep and drop
    perturbed_share: float = 0.1  # of the atoms, dropped by a perturbation
    min_holdout_rows: int = 1000  # fewer held-out rows say nothing about rare atoms
    linear_start: LinearStartBudget = LinearStartBudget()
    nmf_ranks: tuple[int, ...] = (6, 16, 40)  # numbers of atoms to start from by non-negative factorization, under OR
    nmf: NmfBudget = NmfBudget(max_starts=1, operations=2 * 10**9, max_rows=500)
    many_rows: int = 4000  # a sparse table with as many has rows with little of a pattern: no row is a start
    start_sums: LightSumBudget = LightSumBudget(100, 4000, of_atoms=True)  # of starts from linear algebra
    close: float = 1.25  # the best start of each kind is continued up to this multiple of the lowest cost


@dataclass(frozen=True)
class WindowTuning:
    """How wide tables are searched, by windows of their columns (`search/windows/driver.py`)."""

    min_features: int = 2048  # of a table; narrower ones are searched as one window
    width: int = 512  # columns of a window
    max_joined: int = 1 << 22  # atoms, and words of 64 rows, times columns of windows that are joined
    max_cells: int = 1 << 24  # of a table that is searched as a whole, too, if all its windows are joined
    starts: tuple[int, ...] = (64,)  # of a window, in place of those of "fast"
    max_related: int = 64  # columns of a window of a sparse table


@dataclass(frozen=True)
class Plan:
    """How widely to search. Checkpoints hold its ``repr``: fields added later stay out of it."""

    starts: tuple[int, ...]  # numbers of atoms to start from
    from_look: bool  # whether the first look is a start as well
    patience: float  # rounds in a row without a gain after which it ends
    max_rounds: int
    least_gain: float  # smaller gains do not count; a share of what is saved or of what is left, whichever is less
    more_starts: tuple[int, ...]  # whose states join the population
    children: int  # in an epoch: states that are perturbed or recombined
    by_beam: bool = False  # a child, and the best start, gets a sweep by beam
    population: int = 8  # states that are kept
    max_failed_epochs: int = 0  # in a row without a gain, after which the search ends; after one epoch, if 0
    fewest: int = 0  # atoms, in the end
    most: int | None = None
    left_out: frozenset[str] = frozenset()  # moves not made, to measure what each contributes
    only_starts: bool = field(default=False, repr=False)  # no starts but those of ``starts``
    mdl: MdlTuning = field(default=MdlTuning(), repr=False)
    fixed_rank: FixedRankBudget = field(default=FixedRankBudget(), repr=False)
    windows: WindowTuning = field(default=WindowTuning(), repr=False)

    def for_atoms(self, wanted: int | Literal["mdl"], most: int | None) -> Plan:
        """Return the plan for this number of atoms, or for one that the codelength decides, at most ``most``."""
        if wanted == "mdl":
            return replace(self, fewest=0, most=most)
        starts = self.starts if self.only_starts else (wanted, *(size for size in self.starts if size > wanted))
        return replace(self, starts=starts, fewest=wanted, most=wanted)


_FAST = Plan(
    starts=(256, 0),
    from_look=True,
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
        fixed_rank=FixedRankBudget(effort=6, max_failures=40),
    ),
}
PLANS["anytime"] = replace(
    PLANS["thorough"],
    fixed_rank=FixedRankBudget(max_failures=40),
    max_failed_epochs=10,
)
