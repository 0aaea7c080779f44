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
from dataclasses import dataclass, replace

import numpy as np

from ..bits import BitMatrix, either, stack_rows
from ..engine.block import Block, Change, reconstruct
from ..engine.codelength import string_bits
from ..engine.coding import CODERS, MOST_EXACT_ATOMS, PRICED_CODERS, code, code_and_repair
from ..engine.limits import AtomLimits
from ..engine.objective import Objective
from ..engine.remembered import hard_codes
from ..engine.update import flips_together
from ..errors import InputError
from ..kernels.structs import Rule, covering
from ..memory import memory_limit
from ..model.result import Factorization, Interrupted, Round
from ..parallel import Workers
from ..sparse_bits import Bits, SparseBits, packed
from .context import HoldOut
from .driver import Candidate, best_of_algebras, search_freely, with_evidence
from .finish import described
from .journal import StepStore
from .monitor import CALLBACK, CONVERGED, MAX_ITER, SearchMonitor
from .moves.drop import drop_some, drop_useless, savings
from .params import SearchParams

_MAX_ROUNDS = 4  # searches of a residual table
_BYTES_PER_BYTE = 6  # of memory that a search of a packed table takes
_MAX_SWEEPS = 8  # of coding and update, after each of them


def search(
    data: Bits,
    params: SearchParams,
    workers: Workers,
    random: np.random.Generator,
    deadline: float = float("inf"),
    holdout: HoldOut | None = None,
    share: float = 1.0,
    steps: StepStore | None = None,
) -> Factorization:
    """Return the best factorization over the algebras and the restarts, within the constraints of the parameters.

    The arguments are those of `search_freely`, which makes the search if there are no constraints.
    """
    if not params.is_constrained:
        return search_freely(data, params, workers, random, deadline, holdout, share, steps)
    n_bytes = _BYTES_PER_BYTE * data.n_rows * data.n_cols // 8
    if isinstance(data, SparseBits) and n_bytes > memory_limit():
        raise InputError(
            f"fixed atoms and limits need the table of {data.n_rows} rows and {data.n_cols} columns packed, "
            f"which takes about {n_bytes / 2**30:.1f} GiB of memory, more than there is; select rows or columns"
        )
    table, winners, interrupted = packed(data), {}, False
    for number, algebra in enumerate(params.algebras):
        now = time.perf_counter()
        end = now + (deadline - now) / (len(params.algebras) - number)
        own = replace(params, algebras=(algebra,))
        constrained = ConstrainedSearch(table, own, workers, random, end, holdout, share, steps)
        try:
            constrained.run()
        except KeyboardInterrupt:
            interrupted = True
        if constrained.best is not None:
            winners[algebra] = Candidate(constrained.best_cost, constrained.result())
        if interrupted or constrained.ended == CALLBACK:
            break
    best = best_of_algebras(winners, params, holdout, share) if winners else None
    if interrupted or best is None:
        raise Interrupted(best and replace(best, ended="interrupted"))
    return best if holdout is not None else with_evidence(best, table, params)


@dataclass(eq=False)
class ConstrainedSearch:
    """A search in one algebra, and the best block within the constraints that it has found so far."""

    data: BitMatrix
    params: SearchParams
    workers: Workers
    random: np.random.Generator
    deadline: float
    holdout: HoldOut | None
    share: float
    steps: StepStore | None
    best: Block | None = None
    best_cost: int = 0
    ended: str = CONVERGED
    history: tuple[Round, ...] = ()

    def __post_init__(self) -> None:
        (self.algebra,) = self.params.algebras
        self.limits = self.params.limits.of_share(self.share)
        self.params = self.params.in_algebra(self.algebra)
        self.objective = self.params.objective(self.algebra, self.share)

    def run(self) -> None:
        """Search residual tables until that gains nothing; the best block is kept."""
        fixed = self.params.fixed_atoms
        none = BitMatrix.zeros(0, self.data.n_cols)
        block = self._block(none if fixed is None else fixed)
        self._sweep(block)
        self._keep(block)
        n_frozen = block.n_atoms
        for number in range(_MAX_ROUNDS):
            free = self.params.unconstrained(n_frozen)
            if free is None or (number and time.perf_counter() > self.deadline):
                break
            if number:  # the first search has chosen the bias
                free = replace(free, bias=False)
            if number and n_frozen < block.n_atoms:  # go on from the atoms beside the frozen ones
                atoms, codes = block.factors()
                free = replace(free, init=(atoms[n_frozen:], codes.T[n_frozen:].T))
            starts = [(block, n_frozen)]
            if number == 0 and n_frozen:  # rows may use fixed atoms otherwise if others are there
                starts.append((self._block(none), 0))
            found = []
            for i, (start, n) in enumerate(starts):
                now = time.perf_counter()
                end = now + (self.deadline - now) / (len(starts) - i)
                found.append(self._beside(start, n, free, number, end))
                if self.ended == CALLBACK:
                    break
            block = min(found, key=lambda each: each[0])[1]
            if not any(is_better for _, _, is_better in found) or self.ended not in (CONVERGED, MAX_ITER):
                break
            if self.limits.of_features:
                n_frozen = block.n_atoms

    def _beside(
        self, block: Block, n_frozen: int, free: SearchParams, number: int, deadline: float
    ) -> tuple[int, Block, bool]:
        """Put atoms that explain the rest beside the first atoms of a block, which are frozen.

        Return what that costs, the block, and whether it is the best so far, which is kept.
        """
        block = self._joined(block, n_frozen, self._search(block, n_frozen, free, number, deadline))
        self._sweep(block)
        block = self._without_useless(block)
        return self._cost(block), block, self._keep(block)

    def _search(self, block: Block, n_frozen: int, free: SearchParams, number: int, deadline: float) -> Factorization:
        """Search what the frozen atoms leave over; an interrupted search ends the loop, with its result so far."""
        atoms, codes = block.factors()
        frozen, own_codes = atoms[:n_frozen], codes.T[:n_frozen].T
        residual, holdout = self._residual(self.data, frozen, own_codes, block.bias), self.holdout
        if holdout is not None:
            held_out = Block(holdout.rows, frozen, None, block.covers, holdout.workers, block.bias)
            before = Block(self.data, frozen, own_codes, block.covers, self.workers, block.bias)
            code_and_repair(held_out, self.objective.rule(before))
            rows = self._residual(holdout.rows, frozen, held_out.codes(), block.bias)
            holdout = replace(holdout, rows=rows)
        steps = self.steps if number == 0 and n_frozen == self.params.n_fixed else None
        n_rounds = len(self.history)

        def numbered(row: Round) -> Round:
            """Return a round with its number in all searches."""
            return row._replace(round=n_rounds + row.round)

        callbacks = tuple((lambda row, call=call: call(numbered(row))) for call in free.callbacks)
        free = replace(free, callbacks=callbacks)
        try:
            found = search_freely(residual, free, self.workers, self.random, deadline, holdout, self.share, steps)
        except Interrupted as interrupted:
            if interrupted.result is not None:
                joined = self._joined(block, n_frozen, interrupted.result)
                code(joined, self.objective.rule(joined))
                self._keep(self._without_useless(joined))
            raise
        self.ended, self.history = found.ended, (*self.history, *map(numbered, found.history))
        return found

    def _residual(self, data: BitMatrix, frozen: BitMatrix, codes: BitMatrix, bias: BitMatrix) -> BitMatrix:
        """Return what frozen atoms leave over of rows."""
        target, product = data ^ bias, reconstruct(codes, frozen, np.zeros(data.n_cols, np.uint8), self.algebra)
        if self.algebra == "xor":
            return target ^ product
        return target.with_unknown(either(data.unknown, product))

    def _joined(self, block: Block, n_frozen: int, found: Factorization) -> Block:
        """Return the rows with the frozen atoms and those that were found, divided into atoms within the limits."""
        fixed = self.params.fixed_atoms
        if fixed is not None and not n_frozen:  # they join the others, and no row uses them yet
            block, n_frozen = self._block(fixed), len(fixed)
        atoms, codes = block.factors()
        bias = block.bias ^ BitMatrix.from_dense(found.bias[np.newaxis])
        learned, users = self._divided(packed(found.atoms), found.codes.T)
        frozen, users_of_frozen = atoms[:n_frozen], codes.T[:n_frozen].words.copy()
        index = {atom.tobytes(): k for k, atom in reversed([*enumerate(frozen.words)])}
        same = np.array([index.get(atom.tobytes(), -1) for atom in learned.words], np.intp)
        combine = np.bitwise_xor if self.algebra == "xor" else np.bitwise_or
        for k in np.flatnonzero(same >= 0):  # an atom that is frozen already gets its users
            users_of_frozen[same[k]] = combine(users_of_frozen[same[k]], users.words[k])
        new = np.flatnonzero(same < 0)
        together = stack_rows([frozen, learned[new]], self.data.n_cols)
        own = BitMatrix.from_words(users_of_frozen, self.data.n_rows, check=False)
        uses = stack_rows([own, users[new]], self.data.n_rows).T
        if self.objective.max_atoms is not None or self.objective.residual_limit:
            return self._block(together, None, bias)  # rows may have more atoms now than they are allowed to
        return self._block(together, uses, bias)

    def _divided(self, atoms: BitMatrix, users: BitMatrix) -> tuple[BitMatrix, BitMatrix]:
        """Return atoms within the limits and the rows that use them; parts of an atom have its users."""
        allowed = self.limits.allows(atoms)
        if allowed.all():
            return atoms, users
        features, rows = [], []
        filled = self.data.filled()
        for k in np.flatnonzero(~allowed):
            uses = users[k : k + 1].to_dense(bool)[0]
            own, counts = np.flatnonzero(atoms[k : k + 1].to_dense()[0]), filled[np.flatnonzero(uses)].column_weights()
            is_free = np.ones(self.data.n_cols, bool)
            for piece in self.limits.pieces(own, counts, int(uses.sum())):
                features.append(np.zeros(self.data.n_cols, bool))
                features[-1][piece] = True
                rows.append(uses if is_free[piece].all() else np.zeros(self.data.n_rows, bool))
                is_free[piece] = False
        kept = np.flatnonzero(allowed)
        if not features:
            return atoms[kept], users[kept]
        return (
            stack_rows([atoms[kept], BitMatrix.from_dense(np.array(features))], self.data.n_cols),
            stack_rows([users[kept], BitMatrix.from_dense(np.array(rows))], self.data.n_rows),
        )

    def _block(self, atoms: BitMatrix, codes: BitMatrix | None = None, bias: BitMatrix | None = None) -> Block:
        return Block(self.data, atoms, codes, covering(self.algebra), self.workers, bias)

    def _sweep(self, block: Block) -> None:
        """Code all rows and update the learned atoms, while that lowers the cost; then code as `transform` does."""
        code(block, self.objective.rule(block))
        for _ in range(_MAX_SWEEPS):
            if not self._sweep_once(block, code):
                break
        self._sweep_once(block, CODERS["beam"])
        self._code_exactly(block)

    def _code_exactly(self, block: Block) -> Change:
        """Give every row the best of all codes, if the fewest errors of few atoms are sought."""
        if self.objective.by_codelength or block.n_atoms > MOST_EXACT_ATOMS:
            return Change()
        return CODERS["exact"](block, self.objective.rule(block))

    def _sweep_once(self, block: Block, coder: Callable[[Block, Rule], Change]) -> bool:
        """Code all rows and update the learned atoms; undo it unless it lowers the cost, and return whether it does."""
        before, cost = block.save(), self.objective.cost(block)
        coder(block, self.objective.rule(block))
        update_within(block, self.objective, self.params.n_fixed, self.limits)
        gains = self.objective.cost(block) < cost
        if not gains:
            block.restore(before)
        return gains

    def _without_useless(self, block: Block) -> Block:
        """Return the rows without learned atoms that save nothing, have too few users, or are too many.

        The users of an atom that is dropped are coded without it.
        """
        params, n_fixed = self.params, self.params.n_fixed
        most = block.n_atoms if params.plan.most is None else params.plan.most
        fewest = max(n_fixed, params.plan.fewest)
        while block.n_atoms > n_fixed:
            learned = np.arange(n_fixed, block.n_atoms)
            saved, uses = savings(block, self.objective, params.settles_bias), block.uses()
            is_rare = ~self.limits.has_enough_users(uses) | (uses == 0) | (block.weights() == 0)
            order = learned[np.argsort(np.where(is_rare, np.iinfo(np.int64).min, saved)[learned], kind="stable")]
            n_dropped = int(is_rare[learned].sum()) or max(0, block.n_atoms - most)
            if n_dropped:
                drop_some(block, self.objective, order[: max(1, n_dropped // 2)], n_dropped, always=True)
            elif drop_some(block, self.objective, order, block.n_atoms - fewest):
                continue
            elif params.is_mdl_search and (fewer := drop_useless(block, self.objective, fewest, n_fixed)) is not None:
                block = fewer
            elif not self._code_exactly(block):
                break
        return block

    def _cost(self, block: Block) -> int:
        """Return the cost by which blocks are compared, of held-out rows where there are any."""
        if self.holdout is not None and self.objective.by_codelength:
            return self.holdout.cost(block, self.objective)
        return self.objective.cost(block)

    def _keep(self, block: Block) -> bool:
        """Keep a block if it costs less than the best so far; return whether it does."""
        bias, _ = self.objective.settled_bias(block)
        if bias != block.bias:
            block = block.with_factors(*block.factors(), bias)
        cost = self._cost(block)
        if self.best is not None and cost >= self.best_cost:
            return False
        self.best, self.best_cost = block, cost
        return True

    def result(self) -> Factorization:
        """Return the best block as a result: fixed atoms first, then the others in order of the bits they save."""
        block, n_fixed = self.best, self.params.n_fixed
        assert block is not None
        by_codelength = replace(self.objective, by_codelength=True, share=1.0)
        saved = savings(block, by_codelength, self.params.settles_bias)
        order = np.append(np.arange(n_fixed), n_fixed + np.argsort(-saved[n_fixed:], kind="stable"))
        atoms, codes = block.factors()
        atoms, codes, wrong = atoms[order], codes.T[order].T, block.wrong()
        length = block.codelength(wrong, ranks=self.objective.ranks)
        coder = self.params.coder_after
        remembered = hard_codes(block, self.objective.rule(block)) if coder in PRICED_CODERS else None
        monitor = SearchMonitor(self.params.by_codelength, algebra=self.algebra, history=list(self.history))
        n_wrong = int(wrong.sum())
        monitor.record_counts(block.n_rows, block.n_atoms, n_wrong, length, Change(), 0, "within constraints")
        return Factorization(
            atoms=atoms,
            codes=codes,
            bias=block.bias.to_dense()[0],
            algebra=self.algebra,
            codelength=length,
            history=tuple(monitor.history),
            wrong=wrong,
            ended=self.ended,
            coder=coder,
            objective="codelength" if self.params.by_codelength else "errors",
            saved=saved[order],
            remembered=remembered and remembered.T[order].T,
            bits_without=int(string_bits(self.data.n_known, self.data.column_weights()).sum()),
            costs=self.params.costs,
            has_bias=self.params.bias,
            **described(block, atoms, block.bias),
        )


def update_within(block: Block, objective: Objective, n_fixed: int, limits: AtomLimits) -> Change:
    """Update all atoms but the first ``n_fixed`` by a vote of their users, as far as the limits allow."""
    if block.n_atoms <= n_fixed:
        return Change()
    free, bad = block.votes(0, block.n_atoms)
    atoms = block.atoms()
    flips, _ = flips_together(free, bad, block.pairs(), atoms.words.copy(), block.covers, objective.costs, n_fixed)
    updated = packed(limits.projected(atoms, atoms ^ BitMatrix.from_words(flips, atoms.n_cols, check=False), n_fixed))
    return block.flip(updated.words ^ atoms.words)
