"""What a stream keeps after a batch: counts of rows that weigh less with time, and a sample, which is searched."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix, stack_rows
from ..engine.block import Block
from ..engine.coding import code_from_nearest, frequent_codes
from ..engine.counts import Counts
from ..model.result import Round
from ..parallel import Workers
from ..search.context import HoldOut, SearchContext, split_rows
from ..search.fixed_rank import search_fixed_rank
from ..search.mdl_search import search_mdl
from ..search.monitor import CONVERGED, SearchMonitor, SearchResult
from ..search.params import SearchParams
from ..search.states import State

Floats = NDArray[np.float64]

_MAX_TRIALS = 16  # of a search for the fewest errors


@dataclass(frozen=True, eq=False)
class DecayedCounts:
    """The fields of `Counts`, over rows whose weight decays with time. They are integers if nothing is forgotten.

    When atoms change, the counts are corrected, while the codes of past rows stay as they were. The correction is exact
    for one bit of one atom per column, except for the votes on atoms that share rows with it: which of those rows are
    wrong is unknown, and is estimated within the possible bounds.
    """

    n_rows: float
    known: Floats
    uses: Floats
    wrong: Floats
    free: Floats
    bad: Floats
    pairs: Floats
    ones: Floats
    missed: Floats

    @classmethod
    def of(cls, counts: Counts, n_rows: float | None = None) -> DecayedCounts:
        """Return the counts of rows in memory, scaled to ``n_rows`` rows if that is given."""
        scale = 1.0 if n_rows is None else n_rows / max(1, counts.n_rows)
        return _by_field(lambda own: scale * own, counts)

    def decayed(self, factor: float) -> DecayedCounts:
        """Return all counts multiplied by a factor."""
        return _by_field(lambda own: factor * own, self)

    def plus(self, counts: Counts) -> DecayedCounts:
        """Return the sum with the counts of more rows."""
        return _by_field(add, self, counts)

    def recoded(self, before: DecayedCounts, after: Counts) -> DecayedCounts:
        """Return the counts after some of the rows, with these counts before, were coded again."""
        return _by_field(lambda own, more, less: own + more - less, self, after, before).within_bounds()

    def with_more_atoms(self, n_atoms: int) -> DecayedCounts:
        """Return the counts with more atoms, which no row uses."""
        wider = ((0, n_atoms), (0, 0))
        return replace(
            self,
            uses=np.pad(self.uses, (0, n_atoms)),
            free=np.pad(self.free, wider),
            bad=np.pad(self.bad, wider),
            pairs=np.pad(self.pairs, (0, n_atoms)),
        )

    def with_atoms(self, kept: NDArray[np.intp]) -> DecayedCounts:
        """Return the counts with these atoms, in their order; the others must be all zeros."""
        pairs = self.pairs[np.ix_(kept, kept)]
        return replace(self, uses=self.uses[kept], free=self.free[kept], bad=self.bad[kept], pairs=pairs)

    def flipped(self, atoms: BitMatrix, flips: NDArray[np.uint64], covers: bool, bias: BitMatrix) -> DecayedCounts:
        """Return the counts after these bits of the atoms are flipped, while rows keep their codes."""
        where = np.argwhere(BitMatrix.from_words(flips.copy(), atoms.n_cols, check=False).to_dense(bool).T)
        if len(where) == 0:
            return self
        bits, bias_bits = atoms.to_dense(bool), bias.to_dense(bool)[0]
        shared = self.pairs + np.tril(self.pairs, -1).T
        np.fill_diagonal(shared, 0)
        after = replace(self, **{name: getattr(self, name).copy() for name in ("wrong", "free", "bad", "missed")})
        for i, k in where.tolist():
            free, bad = after.free[k, i], after.bad[k, i]
            after.wrong[i] += free - 2 * bad
            # Where no other atom decides the bit, rows in which a predicted zero is wrong are those that miss a one.
            after.missed[i] += -bad if bits[k, i] == bias_bits[i] else free - bad
            if not covers:
                _flip_xor(after, k, i, shared[k])
            elif bits[k, i]:
                _uncover_or(after, k, i, shared[k], bits[:, i])
            else:
                _cover_or(after, i, shared[k])
            after.bad[k, i] = free - bad
            bits[k, i] ^= True
        return after.within_bounds()

    def within_bounds(self) -> DecayedCounts:
        """Return the nearest counts that rows could have."""
        n = max(0.0, self.n_rows)
        uses = np.clip(self.uses, 0, n)
        pairs = np.tril(np.clip(self.pairs, 0, np.minimum(uses[:, np.newaxis], uses)))
        np.fill_diagonal(pairs, uses)
        known = np.clip(self.known, 0, n)
        wrong, ones = np.clip(self.wrong, 0, known), np.clip(self.ones, 0, known)
        free = np.clip(self.free, 0, np.minimum(uses[:, np.newaxis], known))
        bad = np.clip(self.bad, np.maximum(0, wrong - (known - free)), np.minimum(free, wrong))
        missed = np.clip(self.missed, np.maximum(0, wrong - (known - ones)), np.minimum(ones, wrong))
        return DecayedCounts(n, known, uses, wrong, free, bad, pairs, ones, missed)

    def rounded(self) -> Counts:
        """Return the counts rounded to integers."""
        integers = _by_field(np.rint, self).within_bounds()
        arrays = {field.name: getattr(integers, field.name) for field in fields(integers)}
        n_rows = int(arrays.pop("n_rows"))
        return Counts(n_rows, **{name: array.astype(np.int64) for name, array in arrays.items()}, codes_changed=0)


def _by_field(function: Callable[..., Any], *counts: Counts | DecayedCounts) -> DecayedCounts:
    """Return the counts that a function gives for each field of others."""
    names = [field.name for field in fields(DecayedCounts)]
    return DecayedCounts(*(function(*(getattr(each, name) for each in counts)) for name in names))


def _flip_xor(counts: DecayedCounts, k: int, i: int, shared: Floats) -> None:
    """XOR: in the users of k, right and wrong are exchanged, also for other atoms that those rows use."""
    free, bad = counts.free[k, i], counts.bad[k, i]
    if not free:
        return
    shared = shared * (free / counts.uses[k])  # of these rows, about as many as of all users know the bit
    other_bad, other_free = counts.bad[:, i], counts.free[:, i]
    lower = np.maximum(0, np.maximum(shared + bad - free, shared + other_bad - other_free))
    upper = np.minimum(shared, np.minimum(bad, other_bad))
    both = np.minimum(np.maximum(shared * (bad / free), lower), upper)
    other_bad += shared - 2 * both


def _cover_or(counts: DecayedCounts, i: int, shared: Floats) -> None:
    """OR: where an atom now covers the bit, the other atoms of the row no longer decide it."""
    lost = np.divide(shared, counts.uses, out=np.zeros_like(shared), where=counts.uses > 0)
    counts.free[:, i] *= 1 - lost
    counts.bad[:, i] *= 1 - lost


def _uncover_or(counts: DecayedCounts, k: int, i: int, shared: Floats, bits: NDArray[np.bool_]) -> None:
    """OR: where only k covered the bit, the other atoms of the row without the bit now decide it.

    Where one other atom covered it too, that atom now decides it, but the number of such rows is unknown.
    """
    free, bad = counts.free[k, i], counts.bad[k, i]
    if not free or not counts.uses[k]:
        return
    gained = np.where(bits, 0, np.minimum(shared * (free / counts.uses[k]), counts.uses - counts.free[:, i]))
    counts.free[:, i] += gained
    counts.bad[:, i] += gained * ((free - bad) / free)


@dataclass(frozen=True, eq=False)
class Reservoir:
    """Sampled rows in order of arrival, with their codes and keys.

    Each new row draws a key from the Gumbel distribution. With every later row, keys fall as the logarithm of the
    row's weight does. At any time the rows with the highest keys are a sample drawn without replacement by these
    weights, and a row that has left never returns (Efraimidis and Spirakis, 2006).
    """

    rows: BitMatrix
    codes: BitMatrix
    keys: NDArray[np.float64]

    @classmethod
    def empty(cls, n_features: int, n_atoms: int) -> Reservoir:
        """Return a reservoir without rows."""
        return cls(BitMatrix.zeros(0, n_features), BitMatrix.zeros(0, n_atoms), np.empty(0))

    def with_batch(
        self, batch: BitMatrix, codes: BitMatrix, forget: float, max_rows: int, random: np.random.Generator
    ) -> Reservoir:
        """Return the reservoir after a batch, with at most ``max_rows`` rows."""
        decay = -np.inf if forget == 1 else batch.n_rows * np.log1p(-forget)
        keys = np.concatenate([self.keys + decay, random.gumbel(size=batch.n_rows)])
        kept = np.sort(np.argsort(-keys, kind="stable")[: min(max_rows, int((keys > -np.inf).sum()))])
        return Reservoir(_select(self.rows, batch, kept), _select(self.codes, codes, kept), keys[kept])

    def with_atoms(self, kept: NDArray[np.intp]) -> Reservoir:
        """Return the reservoir with the codes of these atoms, in their order."""
        return replace(self, codes=self.codes.T[kept].T)

    def with_more_atoms(self, n_atoms: int) -> Reservoir:
        """Return the reservoir with additional atoms, which no row uses."""
        n_rows = len(self.rows)
        return replace(self, codes=stack_rows([self.codes.T, BitMatrix.zeros(n_atoms, n_rows)], n_rows).T)


def _select(first: BitMatrix, second: BitMatrix, indices: NDArray[np.intp]) -> BitMatrix:
    """Return rows of two stacked matrices by index."""
    return stack_rows([first, second], second.n_cols)[indices]


@dataclass(frozen=True, eq=False)
class StreamState:
    """All that is kept after a batch."""

    random: np.random.Generator
    draw: np.random.Generator  # draws the rows that stay in the sample
    algebra: str
    atoms: BitMatrix
    bias: BitMatrix
    counts: DecayedCounts
    sample: Reservoir
    recent: BitMatrix  # the last rows
    n_since_replacement: int = 0  # rows since unused atoms were replaced
    n_since_search: int = 0  # rows since the last search
    n_at_search: float = 0.0  # weight of all rows at the last search
    n_since_scratch: int = 0  # rows since the last search from scratch
    n_at_scratch: float = 0.0  # weight of all rows at the last search from scratch
    codelengths: Mapping[str, int] = field(default_factory=dict)  # of the same rows in each algebra tried
    compared: Mapping[str, int] = field(default_factory=dict)  # as in a `Factorization`
    history: tuple[Round, ...] = ()
    n_batches: int = 0


def split_holdout(
    rows: BitMatrix, n_all: float, params: SearchParams, random: np.random.Generator
) -> tuple[NDArray[np.intp], HoldOut | None]:
    """Return the indices of the rows to search, and the rows to hold out.

    Rows are held out if the number of atoms is not fixed and the sample is incomplete, because atoms could overfit.
    """
    if len(rows) >= int(n_all) or params.n_components != "mdl":
        return np.arange(len(rows)), None
    searched, held_out = split_rows(random.permutation(len(rows)))
    return searched, HoldOut(rows[held_out], int(n_all))


def refine(
    state: StreamState, n_all: float, params: SearchParams, from_scratch: bool, workers: Workers
) -> tuple[State, NDArray[np.int64]] | None:
    """Return the best state that a search of the sample finds from the current atoms, and from scratch if requested.

    ``n_all`` is the number of rows that the sample stands for. The search for the shortest codelength makes other
    starts in any case. The number of rows searched in which each column is known is returned, too.
    """
    rows, codes = state.sample.rows, state.sample.codes
    searched, holdout = split_holdout(rows, n_all, params, state.random)
    share = len(searched) / n_all if params.by_codelength else 1.0
    plan, objective = params.plan.in_one_epoch().of_share(share), params.objective(state.algebra, share)
    monitor = SearchMonitor(
        objective,
        deadline=params.deadline(),
        min_atoms=plan.fewest,
        max_atoms=plan.most,
        min_users=plan.min_users,
        by_holdout=holdout is not None,
        settles_bias=params.settles_bias,
    )
    context = SearchContext(rows[searched], objective, plan, monitor, workers, state.random, holdout)
    errors_only = replace(context, objective=replace(objective.errors_only(), share=1.0))
    block = context.block(state.atoms, codes[searched], state.bias)
    code_from_nearest(block, objective.rule(block), frequent_codes(codes, rows.n_cols))
    if not params.by_codelength:
        _lower_errors(errors_only, block)
        if from_scratch:
            search_fixed_rank(errors_only)
        return monitor.best and (monitor.best, context.data.n_known)
    if params.n_components != "mdl" and len(rows) >= int(n_all) and not state.bias.count():
        block = min(block, _lower_errors(errors_only, block), key=objective.cost)
    search_mdl(context, first=lambda: SearchResult(block, CONVERGED))
    return monitor.best and (monitor.best, context.data.n_known)


def _lower_errors(context: SearchContext, block: Block) -> Block:
    """Lower the number of errors by a few trials, then by the slower coders."""
    plan = context.plan
    few_trials = replace(plan, fixed_rank=replace(plan.fixed_rank, max_trials=_MAX_TRIALS), population=1)
    return search_fixed_rank(replace(context, plan=few_trials), block.factors()).block
