"""Searches within constraints: atoms that stay as they are, and limits on those that are learned.

The moves of a search know nothing of constraints. Atoms that are *frozen* are given to rows first; a search then
explains the *residual table*, what they leave over, and its atoms join them. Under XOR, the residual table is the sum
of the table and of what frozen atoms make of each row. Under OR, it is the table in which the cells that they cover are
unknown: other atoms may cover them too, at no cost. Given the codes of frozen atoms, the codelength of the residual
table and that of the table differ by a constant.

Fixed atoms are frozen. So are atoms within the limits, into which those of a search are divided (`AtomLimits.pieces`):
the next search finds what they leave over.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import numpy as np

from ..bits import BitMatrix, either, stack_rows
from ..engine.block import Block, Change, reconstruct
from ..engine.coding import CODERS, MOST_EXACT_ATOMS, code, code_and_repair
from ..engine.limits import AtomLimits
from ..engine.objective import Objective
from ..engine.update import flips_together
from ..errors import InputError
from ..kernels.structs import CodingRule
from ..model.result import Factorization, Round
from ..sparse_bits import Bits, SparseBits, packed, sparse
from ..system.memory import memory_limit
from .context import SearchContext
from .driver import Found, SearchRequest, best_of_algebras, on_cpu, search_freely
from .finish import result_of_block
from .monitor import CALLBACK, CONVERGED, INTERRUPTED, MAX_ITER, SearchMonitor
from .moves.drop import drop, drop_useless, savings, with_settled_bias
from .params import SearchParams
from .states import StateStore
from .windows.driver import is_wide_and_sparse

_MAX_ROUNDS = 4  # searches of a residual table
_BYTES_PER_BYTE = 6  # of memory that a search of a packed table takes
_MAX_SWEEPS = 8  # of coding and update, after each of them


def search(request: SearchRequest) -> Factorization:
    """Return the best factorization of a table: within constraints, if there are any.

    The result does not depend on the form of the table, or on whether the memory of a device is large enough.
    """
    table, params, before = request.table, request.params, deepcopy(request.random)
    if params.is_constrained:
        find, table = search_within_constraints, _packed(table)
    else:
        by_ones = request.holdout is None and is_wide_and_sparse(table, params)
        find, table = search_freely, sparse(table) if by_ones else packed(table)
    request = replace(request, table=table)
    try:
        winners, ended = find(request)
    except MemoryError as error:
        request = on_cpu(request, before, error)
        winners, ended = find(request)
    return best_of_algebras(winners, request, ended)


def _packed(data: Bits) -> BitMatrix:
    """Return a table packed; raise an error if that takes more memory than there is."""
    n_bytes = _BYTES_PER_BYTE * data.n_rows * data.n_cols // 8
    if isinstance(data, SparseBits) and n_bytes > memory_limit():
        raise InputError(
            f"fixed atoms and limits need the table of {data.n_rows} rows and {data.n_cols} columns packed, "
            f"which takes about {n_bytes / 2**30:.1f} GiB of memory, more than there is; select rows or columns"
        )
    return packed(data)


def search_within_constraints(request: SearchRequest) -> Found:
    """Search in each algebra; an interrupted search ends with the best result so far."""
    winners, ended, algebras = {}, None, request.params.algebras
    for number, algebra in enumerate(algebras):
        now = time.perf_counter()
        end = now + (request.deadline - now) / (len(algebras) - number)
        constrained = ConstrainedSearch(request, algebra, end)
        try:
            constrained.run()
        except KeyboardInterrupt:
            ended = INTERRUPTED
        if constrained.best is not None:
            winners[algebra] = constrained.best_cost, constrained.result()
        if ended == INTERRUPTED or constrained.ended == CALLBACK:
            break
    return winners, ended


class ConstrainedSearch:
    """A search in one algebra, and the best block within the constraints that it has found so far."""

    def __init__(self, request: SearchRequest, algebra: str, deadline: float) -> None:
        self.params = params = replace(request.params.in_algebra(algebra), algebras=(algebra,))
        self.request, self.objective = request, params.objective(algebra, request.share)
        self.limits = params.limits.of_share(request.share)
        self.min_users = max(1, params.plan.of_share(request.share).min_users)
        monitor = SearchMonitor(self.objective, deadline, settles_bias=params.settles_bias)
        table, workers, random = packed(request.table), request.workers, request.random
        self.context = SearchContext(table, self.objective, params.plan, monitor, workers, random, request.holdout)
        self.best: Block | None = None
        self.best_cost, self.ended = 0, CONVERGED

    def run(self) -> None:
        """Search residual tables until that gains nothing; the best block is kept."""
        fixed, deadline = self.params.fixed_atoms, self.context.monitor.deadline
        none = BitMatrix.zeros(0, self.context.data.n_cols)
        block = self.context.block(none if fixed is None else fixed)
        self._sweep(block)
        self._keep(block)
        n_frozen = block.n_atoms
        for number in range(_MAX_ROUNDS):
            free = self.params.unconstrained(n_frozen)
            if free is None or (number and time.perf_counter() > deadline):
                break
            if number:  # the first search has chosen the bias
                free = replace(free, bias=False)
            if number and n_frozen < block.n_atoms:  # go on from the atoms beside the frozen ones
                atoms, codes = block.factors()
                free = replace(free, init=(atoms[n_frozen:], codes.T[n_frozen:].T))
            starts = [(block, n_frozen)]
            if number == 0 and n_frozen:  # rows may use fixed atoms otherwise if others are there
                starts.append((self.context.block(none), 0))
            found = []
            for i, (start, n) in enumerate(starts):
                now = time.perf_counter()
                end = now + (deadline - now) / (len(starts) - i)
                store = self.request.store if number == 0 and n == self.params.n_fixed else None
                beside = self._joined(start, n, self._search(start, n, free, end, store))
                self._sweep(beside)
                beside = self._without_useless(beside)
                found.append((self._cost(beside), beside, self._keep(beside)))
                if self.ended == CALLBACK:
                    break
            block = min(found, key=lambda each: each[0])[1]
            if not any(is_better for _, _, is_better in found) or self.ended not in (CONVERGED, MAX_ITER):
                break
            if self.limits.of_features:
                n_frozen = block.n_atoms

    def result(self) -> Factorization:
        """Return the best block as a result: fixed atoms first, then the others in order of the bits they save."""
        block, monitor, params = self.best, self.context.monitor, self.params
        assert block is not None
        monitor.record(block, Change(), 0, "within constraints")
        return result_of_block(block, self.objective, monitor, params.coder_after, self.ended, params.n_fixed)

    def _search(
        self, block: Block, n_frozen: int, free: SearchParams, deadline: float, store: StateStore | None
    ) -> Factorization:
        """Search what the frozen atoms leave over; an interrupted search ends the loop, with its result so far."""
        context, history = self.context, self.context.monitor.history
        atoms, codes = block.factors()
        frozen, own_codes = atoms[:n_frozen], codes.T[:n_frozen].T
        residual, holdout = self._residual(context.data, frozen, own_codes, block.bias), context.holdout
        if holdout is not None:
            held_out = Block(holdout.rows, frozen, None, block.covers, block.workers, block.bias)
            code_and_repair(held_out, self.objective.rule(context.block(frozen, own_codes, block.bias)))
            rows = self._residual(holdout.rows, frozen, held_out.codes(), block.bias)
            holdout = replace(holdout, rows=rows)
        n_rounds = len(history)

        def numbered(row: Round) -> Round:
            """Return a round with its number in all searches."""
            return row._replace(round=n_rounds + row.round)

        callbacks = tuple((lambda row, call=call: call(numbered(row))) for call in free.callbacks)
        free = replace(free, callbacks=callbacks)
        request = replace(self.request, table=residual, params=free, deadline=deadline, holdout=holdout, store=store)
        winners, ended = search_freely(request)
        if ended == INTERRUPTED or not winners:
            for _, found in winners.values():
                joined = self._joined(block, n_frozen, found)
                code(joined, self.objective.rule(joined))
                self._keep(self._without_useless(joined))
            raise KeyboardInterrupt
        ((_, found),) = winners.values()
        self.ended = ended or found.ended
        history += map(numbered, found.history)
        return found

    def _residual(self, data: BitMatrix, frozen: BitMatrix, codes: BitMatrix, bias: BitMatrix) -> BitMatrix:
        """Return what frozen atoms leave over of rows."""
        algebra = self.objective.algebra
        target, product = data ^ bias, reconstruct(codes, frozen, np.zeros(data.n_cols, np.uint8), algebra)
        if algebra == "xor":
            return target ^ product
        return target.with_unknown(either(data.unknown, product))

    def _joined(self, block: Block, n_frozen: int, found: Factorization) -> Block:
        """Return the rows with the frozen atoms and those that were found, divided into atoms within the limits."""
        context, fixed = self.context, self.params.fixed_atoms
        if fixed is not None and not n_frozen:  # they join the others, and no row uses them yet
            block, n_frozen = context.block(fixed), len(fixed)
        atoms, codes = block.factors()
        bias = block.bias ^ BitMatrix.from_dense(found.bias[np.newaxis])
        learned, users = _divided(context.data, self.limits, packed(found.atoms), found.codes.T)
        frozen, users_of_frozen = atoms[:n_frozen], codes.T[:n_frozen].words.copy()
        index = {atom.tobytes(): k for k, atom in reversed([*enumerate(frozen.words)])}
        same = np.array([index.get(atom.tobytes(), -1) for atom in learned.words], np.intp)
        combine = np.bitwise_or if block.covers else np.bitwise_xor
        for k in np.flatnonzero(same >= 0):  # an atom that is frozen already gets its users
            users_of_frozen[same[k]] = combine(users_of_frozen[same[k]], users.words[k])
        new, n_rows = np.flatnonzero(same < 0), context.data.n_rows
        together = stack_rows([frozen, learned[new]], context.data.n_cols)
        if self.objective.max_atoms is not None:
            return context.block(together, None, bias)  # rows may have more atoms now than they are allowed to
        own = BitMatrix.from_words(users_of_frozen, n_rows, check=False)
        return context.block(together, stack_rows([own, users[new]], n_rows).T, bias)

    def _sweep(self, block: Block) -> None:
        """Code all rows and update the learned atoms, while that lowers the cost; then code as `transform` does."""
        code(block, self.objective.rule(block))
        for _ in range(_MAX_SWEEPS):
            if not self._sweep_once(block, code):
                break
        self._sweep_once(block, CODERS["beam"])
        self._code_exactly(block)

    def _sweep_once(self, block: Block, coder: Callable[[Block, CodingRule], Change]) -> bool:
        """Code all rows and update the learned atoms; undo it unless it lowers the cost, and return whether it does."""
        before, cost = block.save(), self.objective.cost(block)
        coder(block, self.objective.rule(block))
        update_within(block, self.objective, self.params.n_fixed, self.limits)
        gains = self.objective.cost(block) < cost
        if not gains:
            block.restore(before)
        return gains

    def _code_exactly(self, block: Block) -> Change:
        """Give every row the best of all codes, if the fewest errors of few atoms are sought."""
        if self.objective.by_codelength or block.n_atoms > MOST_EXACT_ATOMS:
            return Change()
        return CODERS["exact"](block, self.objective.rule(block))

    def _without_useless(self, block: Block) -> Block:
        """Return the rows without learned atoms that save nothing, have too few users, or are too many.

        The users of an atom that is dropped are coded without it.
        """
        params, n_fixed, objective = self.params, self.params.n_fixed, self.objective
        most = block.n_atoms if params.plan.most is None else params.plan.most
        fewest = max(n_fixed, params.plan.fewest)
        while block.n_atoms > n_fixed:
            learned = np.arange(n_fixed, block.n_atoms)
            saved, uses = savings(block, objective, params.settles_bias), block.uses()
            is_rare = ~self.limits.has_enough_users(uses) | (uses < self.min_users) | (block.weights() == 0)
            order = learned[np.argsort(np.where(is_rare, np.iinfo(np.int64).min, saved)[learned], kind="stable")]
            n_dropped = int(is_rare[learned].sum()) or max(0, block.n_atoms - most)
            if n_dropped:
                drop(block, objective, order, max(1, n_dropped // 2), "any cost")
            elif drop(block, objective, order, block.n_atoms - fewest):
                continue
            elif params.is_mdl_search and (fewer := drop_useless(block, objective, fewest, n_fixed)) is not None:
                block = fewer
            elif not self._code_exactly(block):
                break
        return block

    def _cost(self, block: Block) -> int:
        """Return the cost by which blocks are compared, of held-out rows where there are any."""
        if self.context.holdout is not None and self.objective.by_codelength:
            return self.context.holdout.cost(block, self.objective)
        return self.objective.cost(block)

    def _keep(self, block: Block) -> bool:
        """Keep a block if it costs less than the best so far; return whether it does."""
        block = with_settled_bias(block, self.objective)
        cost = self._cost(block)
        if self.best is not None and cost >= self.best_cost:
            return False
        self.best, self.best_cost = block, cost
        return True


def _divided(data: BitMatrix, limits: AtomLimits, atoms: BitMatrix, users: BitMatrix) -> tuple[BitMatrix, BitMatrix]:
    """Return atoms within the limits and the rows that use them; parts of an atom have its users."""
    allowed = limits.allows(atoms)
    kept, filled = np.flatnonzero(allowed), data.filled()
    features, rows = [], []
    for k in np.flatnonzero(~allowed):
        uses = users[k : k + 1].to_dense(bool)[0]
        own, counts = np.flatnonzero(atoms[k : k + 1].to_dense()[0]), filled[np.flatnonzero(uses)].column_weights()
        is_free = np.ones(data.n_cols, bool)
        for piece in limits.pieces(own, counts, int(uses.sum())):
            features.append(np.zeros(data.n_cols, bool))
            features[-1][piece] = True
            rows.append(uses if is_free[piece].all() else np.zeros(data.n_rows, bool))
            is_free[piece] = False
    if not features:
        return atoms[kept], users[kept]
    return (
        stack_rows([atoms[kept], BitMatrix.from_dense(np.array(features))], data.n_cols),
        stack_rows([users[kept], BitMatrix.from_dense(np.array(rows))], data.n_rows),
    )


def update_within(block: Block, objective: Objective, n_fixed: int, limits: AtomLimits) -> Change:
    """Update all atoms but the first ``n_fixed`` by a vote of their users, as far as the limits allow."""
    if block.n_atoms <= n_fixed:
        return Change()
    free, bad = block.votes(0, block.n_atoms)
    atoms = block.atoms()
    flips, _ = flips_together(free, bad, block.rows.pairs(), atoms.words.copy(), block.covers, objective.costs, n_fixed)
    updated = packed(limits.projected(atoms, atoms ^ BitMatrix.from_words(flips, atoms.n_cols, check=False), n_fixed))
    return block.flip(updated.words ^ atoms.words)
