"""Passes over all rows with the atoms found on a sample, wherever the rows are.

A pass codes the rows and counts. From its counts all atoms are updated together, and atoms that cost more bits than
they save are dropped. The next pass starts from the codes of the previous one, as long as passes improve the result.
A pass is a function of the rows, the previous codes and its spec, so lost work can be repeated and a stopped fit
resumed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..engine.block import Change
from ..engine.codelength import string_bits
from ..engine.coding import MOST_EXACT_ATOMS
from ..engine.counts import Counts, voted_bits
from ..engine.objective import Objective, flip_bias, mostly_wrong, settle_counts
from ..engine.passes import PassSpec, RowCounts
from ..engine.update import flips_by_column, flips_together
from ..errors import InputError, warn
from ..kernels.gpu.device import is_out_of_memory
from ..model.complete_rows import with_members
from ..model.model import Model
from ..model.result import Factorization, Interrupted, ResultBase
from ..parallel import OutOfTime, Workers
from ..search.monitor import MAX_MEMORY, MAX_TIME, SearchMonitor
from ..search.moves.drop import savings_from_votes
from ..search.params import SearchParams
from ..sparse_bits import Bits, packed, sparse, toggled
from .budget import MemoryLimitError
from .checkpoint import Checkpoint, PassState
from .source import PassRun, RowSource

_CODE_COST = 0.2  # nanoseconds per bit of codes that are put into another order
_MAX_PASSES = {"fast": 6, "thorough": 12, "anytime": 12}


@dataclass(frozen=True, eq=False)
class PassResult:
    """The result of passes over all rows."""

    result: Model
    spec: PassSpec  # of the best pass
    indices: NDArray[np.intp]  # of the atoms of the result among those of the spec
    codes: Any  # of the best pass, in the form of the row source; None if they were not kept


class PassLimits(NamedTuple):
    """When passes end: after the deadline, no pass begins, and at the time ``cut_off``, the running one ends.

    Both are times of `time.perf_counter`. A first pass is always completed if it ``must_cover_all_rows``.
    """

    deadline: float = float("inf")
    cut_off: float = float("inf")
    must_cover_all_rows: bool = True


def run_passes(
    rows: RowSource,
    state: PassState,
    params: SearchParams,
    limits: PassLimits = PassLimits(),  # noqa: B008 - immutable
    checkpoint: Checkpoint | None = None,
    keeps_codes: bool = False,
) -> PassResult:
    """Run passes over all rows from a state on, and return the best one; its codes too, if ``keeps_codes``.

    The codes of rows in memory are always returned.

    Raises
    ------
    Interrupted
        On Ctrl-C, with the result of the best pass, or None before the first pass is complete.
    OutOfTime, MemoryError, MemoryLimitError
        The first pass took too long, or more memory than there is.
    """
    passes = _Passes(rows, state, params, limits, checkpoint, keeps_codes or rows.in_memory is not None)
    ended = None
    try:
        passes.run()
    except KeyboardInterrupt:
        if not passes.state.best:
            raise Interrupted(None) from None
        ended = "interrupted"
    except (OutOfTime, MemoryError, MemoryLimitError) as error:
        if not passes.state.best or is_out_of_memory(error):
            raise
        ended = ended_by(error)
    found = passes.result(ended)
    try:
        found = _with_members(found, rows)
    except KeyboardInterrupt:
        ended = "interrupted"
    except MemoryError:  # the result is complete without these counts
        pass
    if ended == "interrupted":
        raise Interrupted(found.result)
    return found


def ended_by(error: Exception) -> str:
    """Return the limit that an error is about, as the reason that a search ended; warn about a memory limit."""
    if isinstance(error, MemoryLimitError):
        warn(*error.args)
    return MAX_TIME if isinstance(error, OutOfTime) else MAX_MEMORY


def initial_state(found: Factorization, params: SearchParams) -> PassState:
    """Return the state before the first pass, which codes all rows at the prices of the sample.

    Rows start from scratch and from the nearest codes of the sample.
    """
    priced_by = RowCounts(found.n_samples, found.n_known, found.wrong, found.uses)
    rule = params.objective(found.algebra).rule_from_counts(*priced_by)
    voted = voted_bits(found.atoms)
    atoms = packed(found.atoms) if voted is None else found.atoms
    coder = "exact" if codes_exactly(params, atoms) else params.scratch_coder
    bias = BitMatrix.from_dense(found.bias[np.newaxis])
    spec = PassSpec(atoms, bias, coder, rule, None, found.remembered, voted, priced_by)
    return PassState(found.algebra, found.ended, found.compared, (spec,), found.history)


def codes_exactly(params: SearchParams, atoms: Bits) -> bool:
    """Return whether each row gets the best of all possible codes."""
    return not params.by_codelength and atoms.n_rows <= MOST_EXACT_ATOMS


@dataclass(eq=False)
class _Passes:
    """The loop over passes, with its current state and the codes of the passes that are still needed."""

    rows: RowSource
    state: PassState
    params: SearchParams
    limits: PassLimits
    checkpoint: Checkpoint | None
    keeps_codes: bool

    def __post_init__(self) -> None:
        self.params = self.params.in_algebra(self.state.algebra)
        self.objective = self.params.objective(self.state.algebra)
        self.codes: dict[int, Any] = {}  # by number of the pass
        history = list(self.state.history)
        self.monitor = SearchMonitor(self.objective, self.limits.deadline, self.params.callbacks, history=history)

    def run(self) -> None:
        """Run passes until they no longer gain, or a limit stops them."""
        self._restore_codes()
        while not self.state.finished and not (self.state.best and self.monitor.should_stop()):
            number = len(self.state.specs)
            must_complete = self.limits.must_cover_all_rows and not self.state.best
            deadline = float("inf") if must_complete else self.limits.cut_off
            run = PassRun(number, self.state.partial, lambda partial: self._save(partial=partial), deadline)
            before = self.codes.get(number - 1)
            self.codes[number], counts = self.rows.run_pass(self.state.specs[-1], before, run)
            self.state = self._after_pass(number, counts)
            self._save()
            needed = {self.state.best} if self.state.finished else {self.state.best, number}
            self.codes = {n: codes for n, codes in self.codes.items() if n in needed}
            self.rows.discard_codes(needed)
        if self.state.finished:
            self.rows.discard_codes({self.state.best} if self.keeps_codes else set())

    def _restore_codes(self) -> None:
        """Load or recompute the codes of an earlier process: of the best pass and, unless finished, of the last one."""
        if self.state.finished and not self.keeps_codes:
            return
        last = self.state.best if self.state.finished else len(self.state.specs) - 1
        needed = {self.state.best, last} - {0}
        for number in needed:
            codes = self.rows.load_codes(number, self.state.specs[number - 1].atoms.n_rows)
            if codes is not None:
                self.codes[number] = codes
        if self.codes.keys() >= needed:
            return
        for number in range(1, last + 1):
            before = self.codes.get(number - 1)
            self.codes[number], _ = self.rows.run_pass(self.state.specs[number - 1], before, PassRun(number))
            self.codes = {n: codes for n, codes in self.codes.items() if n in {*needed, number}}
            self.rows.discard_codes(set(self.codes))

    def _save(self, **changes: Any) -> None:
        """Save the state, with these changes."""
        if self.checkpoint is not None:
            self.checkpoint.save(replace(self.state, **changes))

    def _after_pass(self, number: int, counts: Counts) -> PassState:
        """Return the state after a pass: record it, compare it with the best one, and specify the next."""
        spec = self.state.specs[-1]
        bias, settled = settle_counts(spec.bias, counts, self.params.settles_bias)
        atoms, n_flipped = updated_atoms(spec.atoms, settled, spec.rule.covers, self.params)
        change = Change(codes=counts.codes_changed, atoms=n_flipped)
        length = settled.codelength(spec.atoms, bias, self.objective.code)
        n_rows, n_wrong, move = settled.n_rows, int(settled.wrong.sum()), f"pass {number} over all rows"
        self.monitor.record_counts(n_rows, spec.atoms.n_rows, n_wrong, length, change, 1, move)
        is_best = gains = True
        if not self._is_allowed(counts):  # the next pass has fewer atoms
            is_best = False
        elif self.state.counts is not None:
            if any((getattr(self.state.counts, name) != getattr(counts, name)).any() for name in ("ones", "known")):
                raise InputError("the rows changed between two passes over them; fit again")
            cost = self._cost(spec, counts)
            least = self._cost(self.state.specs[self.state.best - 1], self.state.counts)
            gains = cost < least - self.params.plan.least_gain * least
            n_more = spec.atoms.n_rows - self.state.specs[self.state.best - 1].atoms.n_rows
            is_best = (cost, n_more) < (least, 0)
        best, best_counts = (number, counts) if is_best else (self.state.best, self.state.counts)
        is_last = number >= min(_MAX_PASSES[self.params.search], self.params.plan.max_rounds)
        finished = not gains or (is_last and best > 0)
        following = () if finished else (self._next_spec(replace(spec, bias=bias), settled, atoms),)
        return replace(
            self.state,
            specs=(*self.state.specs, *following),
            partial=None,
            history=tuple(self.monitor.history),
            best=best,
            counts=best_counts,
            finished=finished,
        )

    def _cost(self, spec: PassSpec, counts: Counts) -> int:
        """Return the objective: bits, or wrong cells."""
        bias, settled = settle_counts(spec.bias, counts, self.params.settles_bias)
        return self.objective.cost_of_counts(settled, spec.atoms, bias)

    def _is_allowed(self, counts: Counts) -> bool:
        """Return whether the atoms of a pass are few enough, and those that are learned have enough users."""
        n_fixed, most = self.params.n_fixed, self.params.plan.most
        has_enough = self.params.has_enough_users(counts.uses[n_fixed:])
        return bool(has_enough.all()) and (most is None or len(counts.uses) <= most)

    def _next_spec(self, spec: PassSpec, counts: Counts, updated: Bits) -> PassSpec:
        """Return a pass with updated atoms, without those that cost more than they save."""
        saved = savings(spec.atoms, counts, self.objective)
        dropped = dropped_atoms(saved, counts.uses, self.params)
        kept = np.setdiff1d(np.arange(len(saved)), dropped)
        atoms = updated[kept]
        bias, wrong = self._bias_without(dropped, spec, counts)
        priced_by = RowCounts(counts.n_rows, counts.known, wrong, counts.uses[kept])
        rule = self.objective.rule_from_counts(*priced_by)
        coder = "exact" if codes_exactly(self.params, atoms) else "mdl"
        return PassSpec(atoms, bias, coder, rule, kept, None, voted_bits(atoms), priced_by)

    def _bias_without(
        self, dropped: NDArray[np.intp], spec: PassSpec, counts: Counts
    ) -> tuple[BitMatrix, NDArray[np.int64]]:
        """Return the bias that takes the columns wrong in most rows without some atoms, and the wrong rows per column.

        An atom that most rows use may save nothing because the bias can take its columns: without that, the next pass
        would code the rows without the atom, and with errors in all its columns. The changes of several atoms are added
        as if no row used two of them.
        """
        if not self.params.settles_bias:
            return spec.bias, counts.wrong
        change = np.zeros(len(counts.wrong), np.int64)
        ones, (free, bad) = sparse(spec.atoms), counts.votes_on_ones(spec.atoms)
        of_dropped = ones.entries_of(dropped)
        np.add.at(change, ones.indices[of_dropped], (free - 2 * bad)[of_dropped])
        without = np.clip(counts.wrong + change, 0, counts.known)
        flips = mostly_wrong(counts.known, without)
        return flip_bias(spec.bias, flips), np.where(flips, counts.known - without, counts.wrong)

    def result(self, ended: str | None = None) -> PassResult:
        """Return the best pass as a result."""
        spec, counts = self.state.specs[self.state.best - 1], self.state.counts
        assert counts is not None
        result, indices = result_from_counts(spec.atoms, spec.bias, counts, self.state.algebra, self.params)
        ended = ended or self.monitor.stop_reason or self.state.ended
        result = replace(
            result,
            history=self.state.history,
            ended=ended,
            compared=self.state.compared,
            remembered=self._remembered(indices),
        )
        return PassResult(result, spec, indices, self.codes.get(self.state.best))

    def _remembered(self, indices: NDArray[np.intp]) -> BitMatrix | None:
        """Return the codes of the sample, for the atoms of the best pass with these indices."""
        remembered = self.state.specs[0].remembered
        if remembered is None:
            return None
        for spec in self.state.specs[1 : self.state.best]:
            if spec.kept is not None:
                remembered = remembered.T[spec.kept].T
        return remembered.T[indices].T


def updated_atoms(atoms: Bits, counts: Counts, covers: bool, params: SearchParams) -> tuple[Bits, int]:
    """Return the atoms with the bits flipped that differ in most of their users, and the number of these bits.

    Fixed atoms stay as they are, and the others within their limits.
    """
    n_fixed = params.n_fixed
    if counts.voted is not None:
        atom, column = flips_by_column(counts.free, counts.bad, counts.voted, atoms, params.costs, n_fixed)
        return params.limits.projected(atoms, toggled(atoms, atom, column), n_fixed), len(atom)
    words = packed(atoms).words
    votes = counts.free, counts.bad, counts.pairs
    flips, n_flipped = flips_together(*votes, words.copy(), covers, params.costs, n_fixed)
    updated = BitMatrix.from_words(words ^ flips, atoms.n_cols, check=False)
    return params.limits.projected(atoms, updated, n_fixed), n_flipped


def dropped_atoms(saved: NDArray[np.int64], uses: NDArray[np.int64], params: SearchParams) -> NDArray[np.intp]:
    """Return the indices of atoms that a next pass leaves out, from what each saves and how many rows use it.

    They save nothing, or have too few users, or are more than are allowed. Fixed atoms always stay.
    """
    order = np.argsort(saved, kind="stable")
    order = order[order >= params.n_fixed]
    droppable = order[: max(0, len(saved) - params.plan.fewest)]
    dropped = np.union1d(droppable[saved[droppable] <= 0], order[~params.has_enough_users(uses[order])])
    if params.is_constrained:
        n_surplus = 0 if params.plan.most is None else len(saved) - len(dropped) - params.plan.most
        dropped = np.union1d(dropped, order[~np.isin(order, dropped)][: max(0, n_surplus)])
    return dropped


def result_from_counts(
    atoms: Bits, bias: BitMatrix, counts: Counts, algebra: str, params: SearchParams
) -> tuple[Model, NDArray[np.intp]]:
    """Return the result that counts of all rows give, and the indices of its atoms.

    Fixed atoms come first. The others are sorted by the bits they save; unused and empty ones are left out.
    """
    params = params.in_algebra(algebra)
    bias, counts = settle_counts(bias, counts, params.settles_bias)
    objective = replace(params.objective(algebra), by_codelength=True)
    saved = savings(atoms, counts, objective, bias if params.settles_bias else None)
    indices = np.argsort(-saved, kind="stable")
    is_learned = (indices >= params.n_fixed) & (counts.uses[indices] > 0) & (atoms.row_weights()[indices] > 0)
    indices = np.append(np.arange(params.n_fixed), indices[is_learned])
    atoms, uses = atoms[indices], counts.uses[indices]
    all_known = bool((counts.known == counts.n_rows).all())
    length = replace(counts, uses=uses).codelength(atoms, bias, objective.code)
    result = Model(
        atoms=atoms,
        bias=bias.to_dense()[0],
        algebra=algebra,
        codelength=length,
        history=(),
        wrong=counts.wrong,
        coder=params.coder_after,
        objective="codelength" if params.by_codelength else "errors",
        codelengths={algebra: length.total},
        bits_without=int(string_bits(counts.known, counts.ones).sum()),
        saved=saved[indices],
        ones=counts.ones,
        missed=counts.missed,
        known=None if all_known else counts.known,
        costs=params.costs or None,
        has_bias=params.bias,
        n_samples=counts.n_rows,
        uses=uses,
    )
    return result, indices


def _with_members(found: PassResult, rows: RowSource) -> PassResult:
    """Return the result of passes with the counts of the rows that have all features of its atoms.

    They are not stated if the bias has changed after the pass in a column of an atom.
    """
    spec, result = found.spec, found.result
    members = rows.count_members(spec).of_atoms(spec.atoms, found.indices)
    if spec.atoms.column_weights()[result.bias != spec.bias.to_dense()[0]].any():
        return replace(found, result=replace(result, rows_hash=members.rows_hash))
    return replace(found, result=with_members(result, members))


def with_codes(found: PassResult, workers: Workers = Workers()) -> Factorization:  # noqa: B008 - frozen
    """Return the result of passes over rows in memory, with their codes."""
    kept = {name: getattr(found.result, name) for name in ResultBase.__dataclass_fields__}
    codes, indices = found.codes, found.indices
    words = np.empty((len(codes), -(-len(indices) // 64)), np.uint64)

    def select(start: int, stop: int) -> None:
        words[start:stop] = codes[start:stop].T[indices].T.words

    workers.map_rows(select, len(codes), _CODE_COST * codes.n_cols)
    return Factorization(**kept, codes=BitMatrix.from_words(words, len(indices), check=False))


def savings(atoms: Bits, counts: Counts, objective: Objective, bias: BitMatrix | None = None) -> NDArray[np.int64]:
    """Return how much the objective would rise without each atom, from counts of rows coded with them.

    ``bias`` is the current one, if it takes the columns that would be wrong in most rows.
    """
    sizes, votes = (counts.n_rows, counts.known), counts.votes_on_ones(atoms)
    return savings_from_votes(*sizes, atoms, counts.wrong, counts.uses, *votes, objective, bias)
