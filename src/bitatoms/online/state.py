"""What a stream keeps: the state after a batch, with a sample of its rows (`Reservoir`), and searches of the sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix, stack_rows
from ..engine.block import Block
from ..engine.coding import code_from_nearest, frequent_codes
from ..model.result import Round
from ..parallel import Workers
from ..search.context import HoldOut, SearchContext, split_rows
from ..search.fixed_rank import search_fixed_rank
from ..search.mdl_search import search_mdl
from ..search.monitor import CONVERGED, SearchMonitor, SearchResult
from ..search.params import SearchParams
from ..search.states import State
from .decayed_counts import DecayedCounts

_MAX_TRIALS = 16  # of a search for the fewest errors


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
        n_all = self.codes.n_cols + n_atoms
        words = np.zeros((len(self.rows), -(-n_all // 64)), np.uint64)
        words[:, : self.codes.words.shape[1]] = self.codes.words
        return replace(self, codes=BitMatrix.from_words(words, n_all, check=False))


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
    plan, objective = replace(params.plan, anytime=None), params.objective(state.algebra, share)
    monitor = SearchMonitor(
        objective,
        deadline=params.deadline(),
        min_atoms=plan.fewest,
        max_atoms=plan.most,
        by_holdout=holdout is not None,
        settles_bias=params.settles_bias,
    )
    context = SearchContext(rows[searched], objective, plan, monitor, workers, state.random, holdout)
    errors_only = replace(
        context,
        objective=replace(objective.errors_only(), share=1.0),
        plan=replace(plan, fixed_rank=replace(plan.fixed_rank, effort=1)),
    )
    block = context.block(state.atoms, codes[searched], state.bias)
    code_from_nearest(block, objective.rule(block), frequent_codes(codes, rows.n_cols))
    if not params.by_codelength:
        _lower_errors(errors_only, block)
        if from_scratch:
            search_fixed_rank(errors_only)
        return monitor.best and (monitor.best, context.data.n_known)
    if params.n_components != "mdl" and len(rows) >= int(n_all) and not state.bias.count():
        block = min(block, _lower_errors(errors_only, block), key=objective.cost)
    search_mdl(context, first=SearchResult(block, CONVERGED))
    return monitor.best and (monitor.best, context.data.n_known)


def _lower_errors(context: SearchContext, block: Block) -> Block:
    """Lower the number of errors by a few trials, then by the slower coders."""
    plan = context.plan
    budget = replace(plan.fixed_rank, max_trials=_MAX_TRIALS, start_share=1.0, population=1)
    few_trials = replace(plan, fixed_rank=budget)
    return search_fixed_rank(replace(context, plan=few_trials), block.factors()).block
