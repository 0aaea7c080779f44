"""Learn from a stream of batches (online MOB), keeping only counts and a sample of past rows.

A batch is coded at the prices of the counts so far, its counts are added, and all atoms are updated together from the
sum. From time to time, atoms that no longer save anything are replaced by atoms grown from the errors of the latest
rows. The sample is searched again when the number of rows has grown by an eighth, from the current atoms and from
scratch. Once the sample no longer contains all rows, it is searched again when their number has grown by half, and from
scratch when it has doubled.
"""

from __future__ import annotations

import logging
import time
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix, stack_rows
from ..engine.block import Block
from ..engine.codelength import Codelength
from ..engine.coding import coding_rule, frequent_codes, hard_codes
from ..engine.counts import Counts
from ..engine.objective import Objective, settle_counts
from ..engine.passes import PassSpec, RowCounts
from ..errors import InputError, Parameter
from ..model.model import Model
from ..model.result import Round
from ..parallel import Workers
from ..rows.passes import codes_exactly, result_from_counts, savings, updated_atoms
from ..rows.source import MemoryRows
from ..search.constraints import search
from ..search.driver import SearchRequest
from ..search.moves.grow import grow
from ..search.paper import append_rank_one
from ..search.params import SearchParams
from ..search.starts.initial import start_factors
from ..search.verification import verified
from ..sparse_bits import packed
from ..validation import check_fraction
from .state import DecayedCounts, Reservoir, StreamState, refine, split_holdout

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class StreamTuning:
    """How many rows a stream keeps, and how often its atoms are replaced and refined."""

    max_sample_rows: int = 1 << 12  # kept as a sample, unless they have more than ``max_sample_bits``
    min_sample_rows: int = 1 << 10
    max_sample_bits: int = 1 << 26
    recent_rows: int = 1024  # the last rows, from which new atoms are grown
    rows_per_replacement: int = 512  # unused atoms are replaced whenever this many rows have come
    seeds_per_atom: int = 32  # a new atom grows from the best of this many rows
    min_new_atoms: int = 8  # a replacement may add this many atoms,
    new_atoms_share: float = 0.1  # or this share of the atoms there are
    scratch_rows: int = 512  # up to this many rows, every search starts from scratch, in all algebras allowed
    growth_per_search: float = 0.5  # the sample is searched again after this many rows per row at the last search;
    growth_per_search_of_all: float = 0.12  # the same while the sample holds all rows;
    min_rows_per_search: int = 256  # but not before this many rows, or as many as there were
    max_history: int = 1000  # rounds

    def sample_rows(self, n_features: int) -> int:
        """Return the maximum number of rows of a stream to keep."""
        return min(self.max_sample_rows, max(self.min_sample_rows, self.max_sample_bits // max(1, n_features)))


class StreamLearner:
    """Learns from batches of rows, in memory that does not grow with the number of batches.

    Parameters
    ----------
    params : SearchParams
        As for a search. Atoms passed as ``init`` are the start for the first batch; without them it is searched.
    forget : float
        The share of their weight that past rows lose with every new row.
    random : Generator
    tuning : StreamTuning, optional
    """

    def __init__(
        self, params: SearchParams, forget: float, random: np.random.Generator, tuning: StreamTuning | None = None
    ) -> None:
        if params.search == "paper":
            paper, fast = Parameter("search", "paper"), Parameter("search", "fast")
            raise InputError(paper, " needs all rows at once; learn from batches with ", fast)
        self.tuning = tuning or StreamTuning()
        self.params = replace(params, callbacks=())
        self.forget = check_fraction("forget", forget)
        self._callbacks = params.callbacks
        self.state: StreamState | None = None
        self._random = random

    def partial_fit(self, batch: BitMatrix, workers: Workers) -> None:
        """Learn from a batch. If this raises an error, also one of a callback, the state does not change."""
        if batch.n_rows == 0:
            raise InputError("the batch has no rows; skip it")
        started, before = time.perf_counter(), self.state
        if before is None:
            state = self._first_batch(batch, deepcopy(self._random), workers)
        else:
            if batch.n_cols != before.atoms.n_cols:
                raise InputError(
                    f"the batch has {batch.n_cols} features, but earlier batches had {before.atoms.n_cols}"
                )
            generators = deepcopy((before.random, before.draw))
            state = self._next_batch(replace(before, random=generators[0], draw=generators[1]), batch, workers)
        settles_bias = self.params.in_algebra(state.algebra).settles_bias
        bias, counts = settle_counts(state.bias, state.counts, settles_bias)
        state = replace(state, bias=bias, counts=counts)
        while self._is_rare(state.counts.rounded()).any():
            state = self._without_useless(state, self.params.objective(state.algebra), first=self.params.n_fixed)
        row = self._as_round(state, time.perf_counter() - started)
        history = (*state.history, row)[-self.tuning.max_history :]
        logger.info("batch %d: %d atoms, %d bits, %d bits wrong", row.round, row.atoms, row.bits, row.wrong_bits)
        for callback in self._callbacks:
            callback(row)
        self.state = replace(state, history=history, n_batches=row.round)

    # The first batch.

    def _first_batch(self, batch: BitMatrix, random: np.random.Generator, workers: Workers) -> StreamState:
        """Learn from the first batch: by one step from the atoms passed by the user, or by a search."""
        n, m = batch.shape
        draw = np.random.default_rng([*deepcopy(random).integers(2**63, size=4), 1])  # without advancing ``random``
        recent, max_rows = _last_rows(batch, self.tuning.recent_rows), self.tuning.sample_rows(m)
        empty, no_counts = BitMatrix.zeros(0, m), DecayedCounts.of(Counts.none(0, m))
        state = StreamState(random, draw, "", empty, BitMatrix.zeros(1, m), no_counts, Reservoir.empty(m, 0), recent)
        if not isinstance(self.params.init, str) and not self.params.is_constrained:
            state, codes = self._step_from_given(state, batch, workers)
            return replace(state, sample=state.sample.with_batch(batch, codes, self.forget, max_rows, draw))
        sample = state.sample.with_batch(batch, BitMatrix.zeros(n, 0), self.forget, max_rows, draw)
        state = self._search_sample(replace(state, sample=sample), n, workers)
        if len(sample.rows) == n:
            return state
        counts = _run_pass(batch, None, self._pass_spec(state), workers)[1]
        return self._updated(replace(state, counts=DecayedCounts.of(counts)))

    def _step_from_given(self, empty: StreamState, batch: BitMatrix, workers: Workers) -> tuple[StreamState, BitMatrix]:
        """Take one step from the atoms passed by the user, in the better algebra; return the state and the codes."""
        n, m = batch.shape
        candidates = []
        for algebra in self.params.algebras:
            atoms, codes = start_factors(batch, self.params, algebra == "or", workers, empty.random)
            objective, no_uses = self.params.objective(algebra), np.zeros(atoms.n_rows, np.int64)
            wrong = batch.column_weights()
            rule = objective.rule_from_counts(n, batch.n_known, wrong, no_uses, flat=True)._replace(swaps=False)
            coder = "exact" if codes_exactly(self.params, atoms) else "mdl"
            kept = None if codes is None else np.arange(atoms.n_rows)
            codes, counts = _run_pass(batch, codes, PassSpec(atoms, empty.bias, coder, rule, kept), workers)
            sample, decayed = Reservoir.empty(m, atoms.n_rows), DecayedCounts.of(counts)
            state = replace(empty, algebra=algebra, atoms=atoms, counts=decayed, sample=sample)
            candidates.append((self._updated(replace(state, n_at_search=n, n_at_scratch=n)), codes))
        lengths = {state.algebra: self._length(state).total for state, _ in candidates}
        errors = {state.algebra: int(state.counts.rounded().wrong.sum()) for state, _ in candidates}
        compared = errors if self.params.compares_errors else {}
        state, codes = candidates[self.params.best_algebra(list((compared or lengths).values()))]
        return replace(state, codelengths=lengths, compared=compared), codes

    def _search_sample(self, state: StreamState, n_rows: float, workers: Workers) -> StreamState:
        """Search the sample, which stands for ``n_rows`` rows, from scratch."""
        rows = state.sample.rows
        searched, holdout = split_holdout(rows, n_rows, self.params, state.random)
        share, deadline = len(searched) / n_rows, self.params.deadline()
        request = SearchRequest(rows[searched], self.params, workers, state.random, deadline, holdout, share)
        found = search(request)
        if len(self.params.algebras) > 1:
            lengths_text = ", ".join(f"{algebra} {bits} bits" for algebra, bits in found.codelengths.items())
            logger.info("%s is kept after %d rows (%s)", found.algebra, n_rows, lengths_text)
        state = replace(
            state,
            algebra=found.algebra,
            bias=BitMatrix.from_dense(found.bias[np.newaxis]),
            n_since_replacement=0,
            n_since_search=0,
            n_at_search=n_rows,
            n_since_scratch=0,
            n_at_scratch=n_rows,
            codelengths=found.codelengths if len(searched) >= int(n_rows) else {},  # else not those of all rows
            compared=found.compared,
        )
        counts = RowCounts(found.n_samples, found.n_known, found.wrong, found.uses)
        return self._with_factors(state, packed(found.atoms), found.codes, counts, n_rows, workers)

    def _with_factors(
        self,
        state: StreamState,
        atoms: BitMatrix,
        codes: BitMatrix,
        counts: RowCounts,
        n_rows: float,
        workers: Workers,
    ) -> StreamState:
        """Return the state with these atoms and codes, found at these counts."""
        are_codes_of_sample = len(codes) == len(state.sample.rows)
        coder = "mdl" if are_codes_of_sample else self.params.scratch_coder
        coder = "exact" if codes_exactly(self.params, atoms) else coder
        rule = self.params.objective(state.algebra).rule_from_counts(*counts)
        remembered = None if are_codes_of_sample or coder == "exact" else frequent_codes(codes, atoms.n_cols)
        spec = PassSpec(atoms, state.bias, coder, rule, np.arange(atoms.n_rows), remembered)
        codes, new_counts = _run_pass(state.sample.rows, codes if are_codes_of_sample else None, spec, workers)
        sample = replace(state.sample, codes=codes)
        return replace(state, atoms=atoms, sample=sample, counts=DecayedCounts.of(new_counts, n_rows))

    # Later batches.

    def _next_batch(self, state: StreamState, batch: BitMatrix, workers: Workers) -> StreamState:
        """Learn from a later batch."""
        n = batch.n_rows
        state = replace(state, counts=state.counts.decayed((1 - self.forget) ** n))
        codes, counts = _run_pass(batch, None, self._pass_spec(state), workers)
        state = self._updated(replace(state, counts=state.counts.plus(counts)))
        max_rows = min(self.tuning.sample_rows(batch.n_cols), int(np.ceil(state.counts.n_rows)))
        recent = stack_rows([state.recent, _last_rows(batch, self.tuning.recent_rows)], batch.n_cols)
        state = replace(
            state,
            sample=state.sample.with_batch(batch, codes, self.forget, max_rows, state.draw),
            recent=_last_rows(recent, self.tuning.recent_rows),
            n_since_replacement=state.n_since_replacement + n,
            n_since_search=state.n_since_search + n,
            n_since_scratch=state.n_since_scratch + n,
            codelengths={},
            compared={},
        )
        tuning, is_complete = self.tuning, len(state.sample.rows) >= int(state.counts.n_rows)
        growth = tuning.growth_per_search_of_all if is_complete else tuning.growth_per_search
        before = state.n_at_search
        if state.n_since_search >= max(growth * before, min(tuning.min_rows_per_search, before)):
            return self._refined(state, workers)
        if state.n_since_replacement >= tuning.rows_per_replacement:
            return self._replace_unused(state, workers)
        return state

    def _pass_spec(
        self, state: StreamState, kept: NDArray[np.intp] | None = None, coder: str | None = None
    ) -> PassSpec:
        """Return the pass with the current atoms: from the codes of the kept atoms, or else from scratch and from the
        nearest codes of the sample."""
        counts = state.counts.rounded()
        known = counts.n_rows, counts.known
        rule = self.params.objective(state.algebra).rule_from_counts(*known, counts.wrong, counts.uses)
        coder = "exact" if codes_exactly(self.params, state.atoms) else coder or self.params.scratch_coder
        remembered = None
        if kept is None and coder != "exact":
            sample = state.sample
            block = Block(sample.rows, state.atoms, sample.codes, state.algebra == "or", Workers(), state.bias)
            remembered = hard_codes(block, rule)
        return PassSpec(state.atoms, state.bias, coder, rule, kept, remembered)

    def _updated(self, state: StreamState) -> StreamState:
        """Update all atoms together from the counts, and correct the counts."""
        covers = state.algebra == "or"
        updated, n_flipped = updated_atoms(state.atoms, state.counts.rounded(), covers, self.params)
        if not n_flipped:
            return state
        atoms = packed(updated)
        flips = atoms.words ^ state.atoms.words
        return replace(state, atoms=atoms, counts=state.counts.flipped(state.atoms, flips, covers, state.bias))

    # Replacement of atoms.

    def _replace_unused(self, state: StreamState, workers: Workers) -> StreamState:
        """Drop atoms that save nothing, and grow others from the errors of the latest rows."""
        objective, wanted = self.params.objective(state.algebra), self.params.n_components
        state = replace(self._without_useless(state, objective, first=self.params.n_fixed), n_since_replacement=0)
        p = state.atoms.n_rows
        if wanted != "mdl" and p >= wanted:
            return state
        codes, before = _run_pass(state.recent, None, self._pass_spec(state), workers)
        block = Block(state.recent, state.atoms, codes, state.algebra == "or", workers, state.bias)
        if wanted == "mdl":
            max_new = max(self.tuning.min_new_atoms, int(self.tuning.new_atoms_share * p))
            if self.params.max_components is not None:
                max_new = min(max_new, self.params.max_components - p)
            if max_new > 0:
                grow(block, objective, state.random, max_new)
        else:
            n_seeds = self.tuning.seeds_per_atom
            rule = coding_rule("greedy", state.algebra, objective.max_atoms)
            while block.n_atoms < wanted and append_rank_one(block, rule, state.random, n_seeds):
                if not block.uses()[-1]:
                    break
        if self.params.limits.of_features:
            block.discard(~self.params.limits.allows(block.atoms()) & (np.arange(block.n_atoms) >= p))
        n_new = block.n_atoms - p
        if n_new == 0:
            return state
        atoms, codes = block.factors()
        counts, sample = state.counts.with_more_atoms(n_new), state.sample.with_more_atoms(n_new)
        grown = replace(state, atoms=atoms, counts=counts, sample=sample)
        _, after = _run_pass(state.recent, codes, self._pass_spec(grown, np.arange(atoms.n_rows), "mdl"), workers)
        grown = replace(grown, counts=counts.recoded(DecayedCounts.of(before).with_more_atoms(n_new), after))
        if wanted != "mdl":
            return grown
        grown = self._without_useless(grown, objective, first=p)
        return grown if self._cost(grown) < self._cost(state) else state

    def _without_useless(self, state: StreamState, objective: Objective, first: int = 0) -> StreamState:
        """Drop atoms, from index ``first``, that save nothing; with a fixed number, those that fix no errors."""
        if self.params.n_components != "mdl":
            objective = objective.errors_only()
        counts, words = state.counts.rounded(), state.atoms.words
        saved = savings(state.atoms, counts, objective)
        dropped = (saved <= 0) & (np.arange(len(saved)) >= first)
        dropped |= self._is_rare(counts)
        if not dropped.any():
            return state
        flips = np.where(dropped[:, np.newaxis], words, np.uint64(0))
        kept = np.flatnonzero(~dropped)
        counts_without = state.counts.flipped(state.atoms, flips, state.algebra == "or", state.bias)
        return replace(
            state,
            atoms=state.atoms[kept],
            counts=counts_without.with_atoms(kept),
            sample=state.sample.with_atoms(kept),
        )

    def _is_rare(self, counts: Counts) -> NDArray[np.bool_]:
        """Return which learned atoms have too few users."""
        is_learned = np.arange(len(counts.uses)) >= self.params.n_fixed
        return is_learned & ~self.params.has_enough_users(counts.uses)

    # Searches.

    def _refined(self, state: StreamState, workers: Workers) -> StreamState:
        """Search the sample from the current atoms, or from scratch while there are few rows; keep the better state."""
        rows, n_rows = state.sample.rows, state.counts.n_rows
        is_small = n_rows <= self.tuning.scratch_rows and isinstance(self.params.init, str)
        if is_small or self.params.is_constrained:
            return self._search_sample(state, n_rows, workers)
        state = replace(state, n_since_search=0, n_since_replacement=0, n_at_search=n_rows)
        from_scratch = len(rows) >= int(n_rows) or state.n_since_scratch >= state.n_at_scratch
        if from_scratch:
            state = replace(state, n_since_scratch=0, n_at_scratch=n_rows)
        spec = self._pass_spec(state, np.arange(state.atoms.n_rows), "mdl")
        codes, counts = _run_pass(rows, state.sample.codes, spec, workers)
        current = replace(state, counts=DecayedCounts.of(counts, n_rows), sample=replace(state.sample, codes=codes))
        better = refine(current, n_rows, self.params, from_scratch, workers)
        if better is None:
            return state
        found, n_known = better
        counts_of_found = RowCounts(len(found.codes), n_known, found.wrong, found.codes.column_weights())
        refined = replace(state, bias=found.bias)
        refined = self._with_factors(refined, found.atoms, found.codes, counts_of_found, n_rows, workers)
        cost, refined_cost = self._cost(current), self._cost(refined)
        if len(rows) >= int(n_rows):
            return refined if refined_cost < cost else current
        return refined if refined_cost < cost * (1 - self.params.plan.least_gain) else state

    # Results.

    def as_result(self) -> Model:
        """Return the result for the rows so far, weighted; the atom that saves most bits comes first."""
        state = self.state
        if state is None:
            raise InputError("nothing has been learned yet; pass a batch to partial_fit first")
        counts = state.counts.rounded()
        result, indices = result_from_counts(state.atoms, state.bias, counts, state.algebra, self.params)
        remembered = self._pass_spec(state).remembered
        result = replace(
            result,
            history=state.history,
            codelengths={**state.codelengths, **result.codelengths},
            compared=state.compared,
            remembered=None if remembered is None else remembered.T[indices].T,
        )
        return verified(result, self.params, result.n_samples, state.atoms.n_cols, of_stream=True)

    def _as_round(self, state: StreamState, seconds: float) -> Round:
        """Return the row of the history for a batch."""
        length, counts = self._length(state), state.counts.rounded()
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

    def _cost(self, state: StreamState) -> int:
        """Return the cost of the rows so far."""
        return self.params.objective(state.algebra).cost_of_counts(state.counts.rounded(), state.atoms, state.bias)

    def _length(self, state: StreamState) -> Codelength:
        """Return the codelength of the rows so far."""
        return state.counts.rounded().codelength(state.atoms, state.bias, self.params.atom_code)


def _last_rows(rows: BitMatrix, n: int) -> BitMatrix:
    """Return a copy of the last rows."""
    return rows[np.arange(max(0, len(rows) - n), len(rows))]


def _run_pass(rows: BitMatrix, codes: BitMatrix | None, spec: PassSpec, workers: Workers) -> tuple[BitMatrix, Counts]:
    """Run a pass on rows from their codes, or from scratch."""
    return MemoryRows(rows, workers).run_pass(spec, codes)
