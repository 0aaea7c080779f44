"""Atoms and rows to codes and errors: the coders by name.

``"bmp"`` is Binary Matching Pursuit (Algorithm 3 of the paper) with the association-accuracy rule: toggle the atom
with the largest gain a bit. ``"greedy"`` toggles the atom with the largest gain. ``"exact"`` takes the best of all
codes. A gain is the number of wrong bits that a toggle takes away; under XOR ordering atoms by gain a bit is
ordering them by association accuracy |d & r| / |d|, and both rules stop at the same rows: where no toggle gains.

``"mdl"`` and ``"beam"`` gain bits of codelength instead, by the prices in the rule: ``"mdl"`` toggles by gain, and
swaps one atom for another where no toggle gains; ``"beam"`` also follows several ways to a code at a time (XOR; under
OR it is ``"mdl"`` from nothing and from all atoms that fit).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.cpu import beam, coding, dictionary
from ..kernels.structs import AtomArrays, Prices, Rule, beam_scratch, coding_scratch, covering
from .block import ROW_COST, Block, Change, Words, coded
from .exact import code_exactly

NO_LIMIT = 1 << 60
MOST_EXACT_ATOMS = 16
FEW_FOR_BEAM = 128  # atoms for which a beam may be wide
_NARROW = 4  # the width of a beam, where there are more
_LEAST_WIDTH, _MOST_WIDTH, _WIDTH_TIMES_ATOMS = 8, 32, 1024  # and where there are few
_FAR_MORE, _WIDER = 3, 8  # rows that cost so many times the average then get a beam so many times as wide
_SLAB = 8192  # rows
_DEAR = 1.5  # rows that cost so many times the average may be stuck


def coding_rule(
    coder: str, algebra: str, max_atoms: int | None = None, residual_limit: int = 0, prices: Prices | None = None
) -> Rule:
    """What the coder of this name toggles, and the limits of Algorithm 3."""
    return Rule(
        covers=covering(algebra),
        by_ratio=coder == "bmp",
        max_atoms=NO_LIMIT if max_atoms is None else max_atoms,
        # At a price, a row without a wrong bit may still be coded for less.
        residual_limit=-1 if prices is not None and residual_limit == 0 else residual_limit,
        prices=prices,
        swaps=prices is not None,
    )


def code(block: Block, rule: Rule) -> Change:
    """Code the rows greedily from the codes they have; without prices, only rows that can change are looked at."""
    if block.n_atoms == 0:
        return Change()
    if rule.prices is not None:
        return _code_at_prices(block, rule, afresh=False)
    _refresh_tables(block)

    def code(start: int, stop: int) -> tuple[int, int]:
        scratch = coding_scratch(block.rows, block.atoms)
        return coding.code_rows(block.rows, block.atoms, rule, start, stop, scratch)

    return coded(block.each_block(code, _code_cost(block)))


def code_afresh(block: Block, rule: Rule) -> Change:
    """Code the rows greedily from nothing, and keep that where it costs less than the code they have."""
    return _code_at_prices(block, rule, afresh=True)


def _code_at_prices(block: Block, rule: Rule, afresh: bool) -> Change:
    """Code all rows greedily at prices."""
    if block.n_atoms == 0:
        return Change()
    assert rule.prices is not None
    tables = priced(block, block.atoms, rule.prices)

    def code(start: int, stop: int) -> tuple[int, int]:
        scratch, rows = coding_scratch(block.rows, tables), np.arange(start, stop)
        had = np.empty((1, block.rows.codes.shape[1]), np.uint64), np.empty((1, block.rows.errors.shape[1]), np.uint64)
        more = np.zeros(block.n_features, np.int64), np.zeros(block.n_atoms, np.int64)
        return coding.code_at_prices(block.rows, tables, rule, rows, afresh, *had, *more, scratch)

    change = coded(block.each_block(code, (4 if afresh else 1) * _code_cost(block)))
    block.forget_clean()
    return change


def code_by_beam(block: Block, rule: Rule) -> Change:
    """Code the rows by beam from nothing, and keep that where it costs less than the code they have.

    With few atoms, rows that then still cost far more than most are coded by a wider beam. Under OR, where one toggle
    at a time seldom gets stuck, this is ``code_afresh``.
    """
    if rule.covers or block.n_atoms == 0:
        return code_afresh(block, rule)
    assert rule.prices is not None
    tables = priced(block, block.atoms, rule.prices)
    block.rows.stale[:] = 1
    if block.n_atoms > FEW_FOR_BEAM:
        change = _code_stale_by_beam(block, tables, rule, _NARROW, 2)
    else:
        width = _width(block.n_atoms)
        had = block.rows.codes.copy(), block.rows.errors.copy()  # a bit changed twice is not changed
        _code_stale_by_beam(block, tables, rule, width, 3)
        costs = np.empty(block.n_rows, np.int64)
        beam.price_rows(block.rows, rule.prices, costs)
        block.rows.stale[:] = costs * block.n_rows > _FAR_MORE * int(costs.sum())
        _code_stale_by_beam(block, tables, rule, _WIDER * width, 3)
        change = _changed(block, *had)
    block.forget_clean()
    return change


def _code_stale_by_beam(block: Block, tables: AtomArrays, rule: Rule, width: int, patience: int) -> Change:
    """Code the stale rows by a beam of this width, done after so many levels without a better way."""
    prints = np.empty(block.n_atoms, np.uint64)
    beam.fingerprint_atoms(block.atoms.words, prints)

    def code(start: int, stop: int) -> tuple[int, int]:
        scratch, kept = coding_scratch(block.rows, tables), coding_scratch(block.rows, tables)
        ways = beam_scratch(block.rows, tables, width)
        return beam.beam_rows(block.rows, tables, rule, prints, patience, start, stop, ways, scratch, kept)

    share = float(block.rows.stale.mean()) if block.n_rows else 0.0
    return coded(block.each_block(code, 10 * width * share * _code_cost(block)))


def priced(block: Block, atoms: AtomArrays, prices: Prices) -> AtomArrays:
    """The tables of these atoms for coding at these prices."""
    lanes = len(atoms.weights)
    tables = atoms._replace(
        weights=np.zeros(lanes, np.int32),
        slices=np.empty((block.n_features, lanes), np.uint8),
        overlaps=np.empty((len(atoms.words), lanes), np.int32),
    )
    dictionary.slice_atoms(atoms.words, atoms.weights, atoms.slices)
    listed, factor = np.empty(block.n_features + 1, np.int64), 1 if block.covers else 2
    dictionary.price_atoms(atoms, prices.bits, factor, listed, tables)
    return tables


def offer(block: Block, atoms: Words, rule: Rule) -> Words:
    """The rows in which each of these, as one more atom, would gain: bits of shape (atoms, rows)."""
    assert rule.prices is not None
    tables = priced(block, block.tables(atoms), rule.prices)
    users = np.zeros((len(atoms), block.rows.users.shape[1]), np.uint64)

    def ask(start: int, stop: int) -> None:
        coding.offer_atoms(block.rows, tables, rule, start, stop, coding_scratch(block.rows, tables), users)

    block.each_block(ask, ROW_COST + 0.1 * tables.slices.size)
    return users


def _refresh_tables(block: Block) -> None:
    """Bring the tables up to date with the atoms changed, and find the rows that could use those."""
    atoms = block.atoms
    changed = np.flatnonzero(atoms.changed)
    if len(changed) == 0:
        return
    dictionary.slice_atoms(atoms.words, atoms.weights, atoms.slices)
    dictionary.overlap_atoms(atoms.words, atoms.changed, 1 if block.covers else 2, atoms.overlaps)
    atoms.changed[:] = 0
    if len(changed) == block.n_atoms:
        block.rows.stale[:] = 1
        return
    some = block.tables(atoms.words[changed])
    dictionary.slice_atoms(some.words, some.weights, some.slices)

    def recheck(start: int, stop: int) -> None:
        coding.recheck_rows(block.rows, some, block.covers, start, stop, coding_scratch(block.rows, some))

    block.each_block(recheck, _code_cost(block) * len(changed) / block.n_atoms)


def _code_cost(block: Block) -> float:
    """About how many nanoseconds it takes to code a row."""
    return ROW_COST + 0.1 * block.atoms.slices.size


def typical_cost(prices: Prices, n_rows: int, wrong: NDArray[np.int64], uses: NDArray[np.int64]) -> float:
    """What a row costs at these prices on average, from counts of wrong bits and uses."""
    cost = int(prices.bits.astype(np.int64) @ wrong) + int(prices.uses[: len(uses)].astype(np.int64) @ uses)
    return cost / max(1, n_rows)


def code_and_mend(block: Block, rule: Rule) -> Change:
    """Code the rows greedily, and those that cost far more than is typical by beam: the rest are seldom stuck."""
    return _code_and_beam(block, rule, every=False)


def _code_and_beam(block: Block, rule: Rule, every: bool = True) -> Change:
    """Code the rows greedily, then by beam: a narrow one, and a wide one for the rows in which that found a better code
    or that are dear. What a row gets does not depend on the others, where the rule says what is typical."""
    if block.n_atoms == 0 or (rule.covers and not every):
        return code(block, rule)
    assert rule.prices is not None
    if rule.covers:
        return code(block, rule) + code_afresh(block, rule) + _code_from_fitting(block, rule)
    had = block.rows.codes.copy(), block.rows.errors.copy()  # a bit changed twice is not changed
    code(block, rule)
    tables, before, now = priced(block, block.atoms, rule.prices), *np.empty((2, block.n_rows), np.int64)
    beam.price_rows(block.rows, rule.prices, before)
    typical = rule.typical or float(before.mean() if block.n_rows else 0)
    few = block.n_atoms <= FEW_FOR_BEAM
    block.rows.stale[:] = 1 if every else before > _DEAR * typical
    _code_stale_by_beam(block, tables, rule, _LEAST_WIDTH if few else _NARROW, 2)
    if few:
        width = _width(block.n_atoms)
        beam.price_rows(block.rows, rule.prices, now)
        block.rows.stale[:] = (now < before) | (now > _DEAR * typical)
        _code_stale_by_beam(block, tables, rule, width, 3)
        beam.price_rows(block.rows, rule.prices, now)
        block.rows.stale[:] = now > _FAR_MORE * typical
        _code_stale_by_beam(block, tables, rule, _WIDER * width, 3)
    block.forget_clean()
    return _changed(block, *had)


def _code_from_fitting(block: Block, rule: Rule) -> Change:
    """Under OR: code the rows from all atoms that lie wholly within them, and keep that where it costs less.

    From nothing, the atoms taken first may leave no room for others that fit better together.
    """
    if rule.residual_limit > 0:  # a row that is right enough takes no more atoms, and here it would begin with more
        return Change()
    assert rule.prices is not None
    had = block.rows.codes.copy(), block.rows.errors.copy()
    data, atoms = block.data(), block.factors()[0]
    before = np.empty(block.n_rows, np.int64)
    beam.price_rows(block.rows, rule.prices, before)
    for start in range(0, block.n_rows, _SLAB):  # some at a time: a second state of all rows would take much memory
        some = slice(start, start + _SLAB)
        codes = _fitting(data.words[some] ^ block.bias.words, atoms, rule.max_atoms)
        other = Block(data[some], atoms, codes, block.covers, block.workers, block.bias)
        code(other, rule)
        rows = np.arange(start, start + other.n_rows)
        now = np.empty(other.n_rows, np.int64)
        beam.price_rows(other.rows, rule.prices, now)
        better = np.flatnonzero(now < before[some])
        taken = other.rows.codes[better], other.rows.errors[better]
        coding.restore_rows(block.rows, block.atoms, rows[better], *taken, block.covers)
    block.forget_clean()
    return _changed(block, *had)


def _fitting(target: Words, atoms: BitMatrix, most: int) -> BitMatrix:
    """Codes of all atoms that lie wholly within each row, or of none where these are too many."""
    within = np.array([~(atom & ~target).any(axis=1) for atom in atoms.words])
    return BitMatrix.from_dense((within & (within.sum(axis=0) <= most)).T)


def _width(n_atoms: int) -> int:
    """The width of a beam where there are few atoms."""
    return min(_MOST_WIDTH, max(_LEAST_WIDTH, _WIDTH_TIMES_ATOMS // n_atoms))


def _changed(block: Block, codes: Words, errors: Words) -> Change:
    """The bits in which a block differs from the codes and errors it had."""
    pairs = (codes, block.rows.codes), (errors, block.rows.errors)
    n_codes, n_errors = (int(np.bitwise_count(old ^ new).sum()) for old, new in pairs)
    return Change(codes=n_codes, errors=n_errors)


CODERS: dict[str, Callable[[Block, Rule], Change]] = {
    "bmp": code,
    "greedy": code,
    "exact": code_exactly,
    "mdl": code,
    "beam": _code_and_beam,
}
