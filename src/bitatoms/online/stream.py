"""Learning from a stream of rows, a batch at a time (online MOB): of what is past, counts are kept and a sample.

A batch is coded at the prices of the counts so far, its counts are added, and all atoms are updated together from the
sum. Now and then a look is taken at the latest rows: atoms that serve no more make room for such as mend what is wrong
there. And the sample is searched again, from the atoms there are and from scratch: while it holds all rows, whenever an
eighth more have come; later, half as many more as were remembered the last time (from scratch: as many).
"""

from __future__ import annotations

import logging
import time
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..core.atoms import flips_together
from ..core.block import Block
from ..core.coding import coding_rule
from ..core.counts import Counts
from ..core.objective import Objective
from ..core.pass_spec import PassSpec, run_pass
from ..core.result import CountsResult, Round
from ..kernels.structs import covering
from ..mdl import Codelength
from ..parallel import Workers
from ..rows.memory import MemoryRows, joined
from ..rows.passes import codes_exactly, counted, savings
from ..search.driver import search
from ..search.initial import start_factors
from ..search.moves.grow import grow
from ..search.params import SearchParams
from ..search.proximus import append_rank_one
from ..validation import check_fraction
from .decayed_counts import DecayedCounts
from .refine import Sample, refine, split_holdout
from .reservoir import Reservoir, sample_size

logger = logging.getLogger(__name__)

_YOUNG = 512  # rows before which atoms are sought from scratch each time, in all algebras allowed
_RECENT = 1024  # rows that a look is taken at,
_LOOK_EVERY = 512  # whenever so many have come
_SEEDS = 32  # a new atom grows from the best of so many rows
_FEWEST_NEW, _SHARE_NEW = 8, 0.1  # atoms that a look may add: so many, or this share of those there are
_SEARCH_EVERY = 0.5  # the sample is searched again when so many rows have come for each that there was the last time;
_WHOLE_EVERY = 0.12  # the same as long as the sample holds all rows;
_SOONEST = 256  # and no sooner than after so many, or as many as there were
_MOST_ROUNDS = 1000  # of the history


@dataclass(frozen=True, eq=False)
class _State:
    """All that is known after a batch."""

    random: np.random.Generator
    draw: np.random.Generator  # of the rows that stay in the sample
    algebra: str
    atoms: BitMatrix
    bias: BitMatrix
    counts: DecayedCounts
    sample: Reservoir
    recent: BitMatrix  # the last rows,
    unseen: int = 0  # and how many have come since a look was taken at them
    since: int = 0  # rows that have come since the last search,
    searched: float = 0.0  # when so many were remembered;
    since_scratch: int = 0  # and the same for the last search from scratch
    scratched: float = 0.0
    codelengths: tuple[tuple[str, int], ...] = ()  # in each algebra tried, of the same rows
    history: tuple[Round, ...] = ()
    n_batches: int = 0


class StreamLearner:
    """What is learned from batches of rows, one after the other; of a size that does not depend on how many came.

    Parameters
    ----------
    params : SearchParams
        As for a search. Atoms given as ``init`` are where the first batch starts; without them it is searched.
    forget : float
        The share of their weight that the rows so far lose with every row that comes.
    random : Generator
    """

    def __init__(self, params: SearchParams, forget: float, random: np.random.Generator) -> None:
        if params.search == "paper":
            raise ValueError('search="paper" needs all rows at once; learn from batches with search="fast"')
        self.params = replace(params, callbacks=())
        self.forget = check_fraction("forget", forget)
        self._callbacks = params.callbacks
        self._state: _State | None = None
        self._random = random

    def take_in(self, batch: BitMatrix, workers: Workers) -> None:
        """Learn from a batch; stopped in the middle, nothing of it is learned."""
        if batch.n_rows == 0:
            raise ValueError("a batch without rows was given; leave it out")
        began, before = time.perf_counter(), self._state
        if before is None:
            state = self._begin(batch, deepcopy(self._random), workers)
        else:
            if batch.n_cols != before.atoms.n_cols:
                raise ValueError(f"the batch has {batch.n_cols} features, and those before had {before.atoms.n_cols}")
            generators = deepcopy((before.random, before.draw))
            state = self._go_on(replace(before, random=generators[0], draw=generators[1]), batch, workers)
        row = self._round(state, time.perf_counter() - began)
        self._state = replace(state, history=(*state.history, row)[-_MOST_ROUNDS:], n_batches=row.round)
        logger.info("batch %d: %d atoms, %d bits, %d bits wrong", row.round, row.atoms, row.bits, row.wrong_bits)
        for callback in self._callbacks:
            callback(row)

    # The first batch.

    def _begin(self, batch: BitMatrix, random: np.random.Generator, workers: Workers) -> _State:
        """Learn from the first batch: from the atoms given by one step, or as a search does."""
        n, m = batch.shape
        draw = np.random.default_rng([*deepcopy(random).integers(2**63, size=4), 1])  # leaves the other as it is
        if not isinstance(self.params.init, str):
            state, codes = self._given(batch, random, draw, workers)
            sample = state.sample.take_in(batch, codes, self.forget, sample_size(m), draw)
            return replace(state, sample=sample, recent=_last(batch, _RECENT))
        sample = Reservoir.empty(m, 0).take_in(batch, BitMatrix.zeros(n, 0), self.forget, sample_size(m), draw)
        state = replace(self._found(sample, n, random, draw, workers), recent=_last(batch, _RECENT))
        if len(sample.rows) == n:
            return state
        counts = _swept(batch, None, self._order(state), workers)[1]
        return self._updated(replace(state, counts=DecayedCounts.of(counts)))

    def _given(
        self, batch: BitMatrix, random: np.random.Generator, draw: np.random.Generator, workers: Workers
    ) -> tuple[_State, BitMatrix]:
        """One step from the atoms that the user gave, in the algebra in which rows are shorter then; and codes."""
        n, m = batch.shape
        ends = []
        for algebra in self.params.algebras:
            atoms, codes = start_factors(batch, self.params, covering(algebra), workers, random)
            objective, no_uses = self.params.objective(algebra), np.zeros(atoms.n_rows, np.int64)
            rule = objective.rule_from_counts(n, batch.column_weights(), no_uses, flat=True)._replace(swaps=False)
            coder = "exact" if codes_exactly(self.params, atoms) else "mdl"
            bias = BitMatrix.zeros(1, m)
            kept = None if codes is None else np.arange(atoms.n_rows)
            codes, counts = _swept(batch, codes, PassSpec(atoms, bias, coder, rule, kept), workers)
            sample = Reservoir.empty(m, atoms.n_rows)
            state = _State(random, draw, algebra, atoms, bias, DecayedCounts.of(counts), sample, batch[:0])
            ends.append((self._updated(replace(state, searched=n, scratched=n)), codes))
        lengths = tuple((state.algebra, self._length(state).total) for state, _ in ends)
        state, codes = ends[int(np.argmin([bits for _, bits in lengths]))]
        return replace(state, codelengths=lengths), codes

    def _found(
        self,
        sample: Reservoir,
        n_rows: float,
        random: np.random.Generator,
        draw: np.random.Generator,
        workers: Workers,
    ) -> _State:
        """What a search from scratch finds in a sample of so many rows."""
        rows, m = sample.rows, sample.rows.n_cols
        seen, holdout = split_holdout(rows, n_rows, self.params, random, workers)
        until = self.params.deadline()
        found = search(rows[seen], self.params, workers, random, until, holdout, len(seen) / n_rows)
        if len(self.params.algebras) > 1:
            each = ", ".join(f"{algebra} {bits} bits" for algebra, bits in found.codelengths.items())
            logger.info('algebra="auto": %s after %d rows (%s)', found.algebra, n_rows, each)
        nothing = DecayedCounts.of(Counts.none(found.atoms.n_rows, m))
        bias, lengths = BitMatrix.from_dense(found.bias[np.newaxis]), tuple(found.codelengths.items())
        state = _State(random, draw, found.algebra, found.atoms, bias, nothing, sample, rows[:0])
        state = replace(state, searched=n_rows, scratched=n_rows, codelengths=lengths)
        counts = found.n_samples, found.wrong, found.uses
        return self._with_factors(state, found.atoms, found.codes, counts, n_rows, workers)

    def _with_factors(
        self,
        state: _State,
        atoms: BitMatrix,
        codes: BitMatrix,
        counts: tuple[int, NDArray[np.int64], NDArray[np.int64]],
        n_rows: float,
        workers: Workers,
    ) -> _State:
        """With atoms, and codes of the sample, that were found at these counts of rows, wrong bits and uses."""
        there = len(codes) == len(state.sample.rows)
        coder = "exact" if codes_exactly(self.params, atoms) else "mdl" if there else self._coder
        rule = self.params.objective(state.algebra).rule_from_counts(*counts)
        order = PassSpec(atoms, state.bias, coder, rule, np.arange(atoms.n_rows))
        codes, now = _swept(state.sample.rows, codes if there else None, order, workers)
        sample = replace(state.sample, codes=codes)
        return replace(state, atoms=atoms, sample=sample, counts=DecayedCounts.of(now, n_rows))

    # Those after it.

    def _go_on(self, state: _State, batch: BitMatrix, workers: Workers) -> _State:
        """Learn from one more batch."""
        n = batch.n_rows
        state = replace(state, counts=state.counts.faded((1 - self.forget) ** n))
        codes, counts = _swept(batch, None, self._order(state), workers)
        state = self._updated(replace(state, counts=state.counts.plus(counts)))
        most = min(sample_size(batch.n_cols), int(np.ceil(state.counts.n_rows)))
        recent = np.concatenate([state.recent.words, _last(batch, _RECENT).words])
        state = replace(
            state,
            sample=state.sample.take_in(batch, codes, self.forget, most, state.draw),
            recent=_last(BitMatrix.from_words(recent, batch.n_cols, check=False), _RECENT),
            unseen=state.unseen + n,
            since=state.since + n,
            since_scratch=state.since_scratch + n,
            codelengths=(),
        )
        often = _WHOLE_EVERY if len(state.sample.rows) >= int(state.counts.n_rows) else _SEARCH_EVERY
        if state.since >= max(often * state.searched, min(_SOONEST, state.searched)):
            return self._searched_again(state, workers)
        if state.unseen >= _LOOK_EVERY:
            return self._looked(state, workers)
        return state

    def _order(self, state: _State, kept: NDArray[np.intp] | None = None, coder: str | None = None) -> PassSpec:
        """How rows are coded with the atoms of now: from nothing, or on from the codes they have."""
        counts = state.counts.whole()
        rule = self.params.objective(state.algebra).rule_from_counts(counts.n_rows, counts.wrong, counts.uses)
        coder = "exact" if codes_exactly(self.params, state.atoms) else coder or self._coder
        return PassSpec(state.atoms, state.bias, coder, rule, kept)

    def _updated(self, state: _State) -> _State:
        """All atoms updated together from the counts, and these corrected for it."""
        counts, covers = state.counts.whole(), covering(state.algebra)
        if not state.atoms.n_rows:
            return state
        flips, flipped = flips_together(counts.free, counts.bad, counts.pairs, state.atoms.words.copy(), covers)
        if not flipped:
            return state
        atoms = BitMatrix.from_words(state.atoms.words ^ flips, state.atoms.n_cols, check=False)
        return replace(state, atoms=atoms, counts=state.counts.flipped(state.atoms, flips, covers, state.bias))

    # New atoms for old.

    def _looked(self, state: _State, workers: Workers) -> _State:
        """Atoms that serve no more dropped, and others grown from what is wrong in the latest rows."""
        objective, wanted = self.params.objective(state.algebra), self.params.n_components
        state = replace(self._without_idle(state, objective), unseen=0)
        p = state.atoms.n_rows
        if wanted != "mdl" and p >= wanted:
            return state
        codes, before = _swept(state.recent, None, self._order(state), workers)
        block = Block(state.recent, state.atoms, codes, covering(state.algebra), workers, state.bias)
        if wanted == "mdl":
            most = max(_FEWEST_NEW, int(_SHARE_NEW * p))
            if self.params.max_components is not None:
                most = min(most, self.params.max_components - p)
            if most > 0:
                grow(block, objective, state.random, most, self.params.plan.n_fits)
        else:
            rule = coding_rule("greedy", state.algebra, objective.max_atoms, objective.residual_limit)
            while block.n_atoms < wanted and append_rank_one(block, rule, state.random, _SEEDS):
                if not block.rows.users[-1].any():
                    break
        n_new = block.n_atoms - p
        if n_new == 0:
            return state
        atoms, codes = block.factors()
        counts, sample = state.counts.with_more_atoms(n_new), state.sample.with_more_atoms(n_new)
        grown = replace(state, atoms=atoms, counts=counts, sample=sample)
        _, after = _swept(state.recent, codes, self._order(grown, np.arange(atoms.n_rows), "mdl"), workers)
        grown = replace(grown, counts=counts.coded_again(DecayedCounts.of(before).with_more_atoms(n_new), after))
        if wanted != "mdl":
            return grown
        grown = self._without_idle(grown, objective, first=p)
        return grown if self._length(grown).total < self._length(state).total else state

    def _without_idle(self, state: _State, objective: Objective, first: int = 0) -> _State:
        """Without the atoms, from one on, that save nothing; where there must be so many, that mend nothing."""
        if self.params.n_components != "mdl":
            objective = replace(objective, by_codelength=False)
        counts, words = state.counts.whole(), state.atoms.words
        saved = savings(state.atoms, counts, objective)
        gone = (saved <= 0) & (np.arange(len(saved)) >= first)
        if not gone.any():
            return state
        flips = np.where(gone[:, np.newaxis], words, np.uint64(0))
        kept = np.flatnonzero(~gone)
        remembered = state.counts.flipped(state.atoms, flips, covering(state.algebra), state.bias)
        return replace(
            state,
            atoms=state.atoms[kept],
            counts=remembered.with_atoms(kept),
            sample=state.sample.with_atoms(kept),
        )

    # The search again.

    def _searched_again(self, state: _State, workers: Workers) -> _State:
        """Search the sample from the atoms there are, or while there are few rows from scratch; keep what is better."""
        rows, n_rows = state.sample.rows, state.counts.n_rows
        if n_rows <= _YOUNG and isinstance(self.params.init, str):
            anew = self._found(state.sample, n_rows, state.random, state.draw, workers)
            return replace(anew, recent=state.recent, history=state.history, n_batches=state.n_batches)
        state = replace(state, since=0, unseen=0, searched=n_rows)
        from_scratch = len(rows) >= int(n_rows) or state.since_scratch >= state.scratched
        if from_scratch:
            state = replace(state, since_scratch=0, scratched=n_rows)
        order = self._order(state, np.arange(state.atoms.n_rows), "mdl")
        codes, counts = _swept(rows, state.sample.codes, order, workers)
        here = replace(state, counts=DecayedCounts.of(counts, n_rows), sample=replace(state.sample, codes=codes))
        sample = Sample(rows, n_rows, state.algebra, state.atoms, codes, state.bias)
        found = refine(sample, self.params, from_scratch, workers, state.random)
        if found is None:
            return state
        n_seen, there = len(found.codes), replace(state, bias=found.bias)
        counts_then = n_seen, found.wrong, found.codes.column_weights()
        there = self._with_factors(there, found.atoms, found.codes, counts_then, n_rows, workers)
        now, then = self._cost(here), self._cost(there)
        if sample.is_whole:
            return there if then < now else here
        return there if then < now * (1 - self.params.plan.least_gain) else state

    # What was learned.

    def as_result(self) -> CountsResult:
        """What was learned, of the rows remembered; the atom that saves most bits comes first."""
        state = self._state
        if state is None:
            raise ValueError("nothing was learned yet: no batch was taken in")
        result, _ = counted(state.atoms, state.bias, state.counts.whole(), state.algebra, self.params)
        return replace(result, history=state.history, codelengths={**dict(state.codelengths), **result.codelengths})

    def _round(self, state: _State, seconds: float) -> Round:
        """A batch as a row of the history."""
        length, counts = self._length(state), state.counts.whole()
        return Round(
            round=state.n_batches + 1,
            move="batch",
            atoms=state.atoms.n_rows,
            bits=length.total,
            bits_errors=length.errors,
            bits_codes=length.codes,
            bits_atoms=length.atoms,
            wrong_bits=int(counts.wrong.sum()),
            codes_changed=0,
            atoms_changed=0,
            errors_changed=0,
            iterations=1,
            start=1,
            algebra=state.algebra,
            seconds=seconds,
            rows=counts.n_rows,
        )

    # What all of these need.

    @property
    def _coder(self) -> str:
        """How rows are coded from nothing."""
        return "beam" if self.params.search == "thorough" else "mend"

    def _cost(self, state: _State) -> int:
        """What is made small, for the rows remembered."""
        return self._length(state).total if self.params.by_codelength else int(state.counts.whole().wrong.sum())

    def _length(self, state: _State) -> Codelength:
        """Bits that describe the rows remembered."""
        return state.counts.whole().codelength(state.atoms, state.bias)


def _last(rows: BitMatrix, most: int) -> BitMatrix:
    """The last rows, of their own."""
    return BitMatrix.from_words(rows.words[-most:].copy(), rows.n_cols, check=False)


def _swept(rows: BitMatrix, codes: BitMatrix | None, order: PassSpec, workers: Workers) -> tuple[BitMatrix, Counts]:
    """Do what is ordered with rows and the codes they have, or from nothing with a piece of them at a time."""
    if codes is not None:
        return run_pass(rows, codes, order, workers)
    pieces, counts = MemoryRows(rows, workers).run_pass(order, None, 1, None, lambda part: None)
    return joined(pieces, order.atoms.n_rows), counts
