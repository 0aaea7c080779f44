"""Coders: from rows and atoms to codes and errors, by name.

``"bmp"`` is Binary Matching Pursuit (Algorithm 3 of the paper) with the association-accuracy rule: toggle the atom
with the largest gain per bit. ``"greedy"`` toggles the atom with the largest gain. ``"exact"`` takes the best of all
codes. A gain is the number of errors that a toggle fixes. Under XOR, the order by gain per bit is the order by
association accuracy |d & r| / |d|, and both rules stop at the same rows: where no toggle gains.

``"mdl"`` and ``"beam"`` gain bits of codelength instead, by the prices in the rule. ``"mdl"`` toggles by gain, and
swaps one atom for another where no toggle gains. ``"beam"`` is a beam search over toggles under XOR; under OR it is
``"mdl"`` from scratch and from all atoms that fit into the row.

A new coder needs a function of a `Block` and a `Rule` in `CODERS`, and its name among the choices of ``coder`` in
`bitatoms.parameters` and among the coders of the searches in `bitatoms.search.params`. The moves of the fast and the
thorough search (`bitatoms.search.moves.sweep`) call their coders directly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels.cpu import pursuit
from ..kernels.structs import Prices, Rule, coding_scratch, covering
from .block import Block, Change, Words, changed, coded
from .host_kernels import HostKernels, summed
from .information_sets import code_from_information_sets

NO_LIMIT = 1 << 60
PRICED_CODERS = ("mdl", "beam")  # by codelength, or at a price of 1 for each error
MOST_EXACT_ATOMS = 16
MAX_WIDE_BEAM_ATOMS = 128  # up to this many atoms, a beam may be wide
_NARROW = 4  # the width of a beam with more atoms
_MIN_WIDTH, _MAX_WIDTH, _WIDTH_TIMES_ATOMS = 8, 32, 1024  # the width with few atoms
_EXPENSIVE = 1.5  # rows that cost this many times the average may be stuck in a local optimum
_LEAST_TYPICAL = 1e-9  # the average, if no row costs anything
_VERY_EXPENSIVE, _WIDER = 3, 8  # rows that cost 3 times the average get a beam 8 times as wide


def coding_rule(
    coder: str, algebra: str, max_atoms: int | None = None, residual_limit: int = 0, prices: Prices | None = None
) -> Rule:
    """Return the rule by which the coder of this name toggles atoms, with the limits of Algorithm 3."""
    return Rule(
        covers=covering(algebra),
        by_ratio=True if coder == "bmp" else None,
        max_atoms=NO_LIMIT if max_atoms is None else max_atoms,
        # With prices, a row without errors may still be coded for less.
        residual_limit=-1 if prices is not None and residual_limit == 0 else residual_limit,
        prices=prices,
        swaps=prices is not None,
    )


def code(block: Block, rule: Rule) -> Change:
    """Code the rows greedily from their current codes; without prices, rows that cannot change are skipped."""
    if block.n_atoms == 0:
        return Change()
    if rule.prices is not None:
        return _code_at_prices(block, rule, from_scratch=False)
    return coded(block.kernels.code_stale(block.kernels.tables(), rule))


def code_exactly(block: Block, rule: Rule) -> Change:
    """Give every row the best of all codes; for few atoms."""
    if block.n_atoms == 0:
        return Change()
    change = coded(block.kernels.code_exactly(rule))
    block.mark_stale()
    return change


def pursue(block: Block, rule: Rule) -> Change:
    """Add atoms to the rows in the order of their gains at the beginning, until one does not lower the errors."""
    if block.n_atoms == 0:
        return Change()
    block.move_to_host()
    assert isinstance(block.kernels, HostKernels)
    tables = block.kernels.tables()

    def code(start: int, stop: int) -> tuple[int, int]:
        scratch = coding_scratch(block._rows, tables)
        return pursuit.pursue_rows(block._rows, tables, rule, start, stop, scratch)

    return coded(summed(block.map_rows(code, block.kernels.code_cost())))


def code_from_scratch(block: Block, rule: Rule) -> Change:
    """Code the rows greedily from scratch, and keep a new code where it costs less."""
    return _code_at_prices(block, rule, from_scratch=True)


def _code_at_prices(block: Block, rule: Rule, from_scratch: bool) -> Change:
    """Code all rows greedily at the prices of the rule."""
    if block.n_atoms == 0:
        return Change()
    change = coded(block.kernels.code_at_prices(_tables(block, rule), rule, from_scratch))
    block.mark_stale()
    return change


def code_by_beam(block: Block, rule: Rule) -> Change:
    """Code the rows by beam from scratch, and keep a new code where it costs less.

    With few atoms, rows that still cost far more than the average are coded by a wider beam. Under OR, where greedy
    coding seldom gets stuck, this is ``code_from_scratch``.
    """
    if rule.covers or block.n_atoms == 0:
        return code_from_scratch(block, rule)
    assert rule.prices is not None
    kernels, tables = block.kernels, _tables(block, rule)
    block._rows.stale[:] = 1
    if block.n_atoms > MAX_WIDE_BEAM_ATOMS:
        change = coded(kernels.code_by_beam(tables, rule, _NARROW, 2))
    else:
        width = _width(block.n_atoms)
        before = block._rows.codes.copy(), block._rows.errors.copy()  # a bit changed twice is not changed
        kernels.code_by_beam(tables, rule, width, 3)
        costs = kernels.row_costs(rule.prices)
        block._rows.stale[:] = costs * block.n_rows > _VERY_EXPENSIVE * int(costs.sum())
        kernels.code_by_beam(tables, rule, _WIDER * width, 3)
        change = changed(block, *before)
    block.mark_stale()
    return change


def _tables(block: Block, rule: Rule) -> Any:
    """Return the tables of the atoms of a block for coding at the prices of a rule."""
    assert rule.prices is not None
    return block.kernels.priced(block._atoms.words, rule.prices)


def would_use(block: Block, atoms: Words, rule: Rule) -> Words:
    """Return the rows that would gain from each candidate as an additional atom: bits of shape (atoms, rows)."""
    assert rule.prices is not None
    return block.kernels.offer(block.kernels.priced(atoms, rule.prices), rule)


def typical_cost(prices: Prices, n_rows: int, wrong: NDArray[np.int64], uses: NDArray[np.int64]) -> float:
    """Return the mean cost of a row at these prices, from counts of errors and uses; never 0, which means unknown."""
    cost = int(prices.bits.astype(np.int64) @ wrong) + int(prices.uses[: len(uses)].astype(np.int64) @ uses)
    return max(_LEAST_TYPICAL, cost / max(1, n_rows))


def code_and_repair(block: Block, rule: Rule) -> Change:
    """Code the rows greedily, then code by beam those that cost far more than a typical row.

    The other rows are seldom stuck. File formats call this coder "mend".
    """
    return _code_and_beam(block, rule, every=False)


def _code_and_beam(block: Block, rule: Rule, every: bool = True) -> Change:
    """Code the rows greedily, then by a narrow beam, and by a wide one where that found a better code or rows are
    expensive. If the rule holds the typical cost, the code of a row does not depend on the other rows."""
    if block.n_atoms == 0 or (rule.covers and not every):
        return code(block, rule)
    assert rule.prices is not None
    if rule.covers:
        return code(block, rule) + code_from_scratch(block, rule) + code_from_subsets(block, rule)
    before = block._rows.codes.copy(), block._rows.errors.copy()  # a bit changed twice is not changed
    code(block, rule)
    kernels, tables = block.kernels, _tables(block, rule)
    greedy_costs = kernels.row_costs(rule.prices)
    typical = rule.typical or float(greedy_costs.mean() if block.n_rows else 0)
    few = block.n_atoms <= MAX_WIDE_BEAM_ATOMS
    block._rows.stale[:] = 1 if every else greedy_costs > _EXPENSIVE * typical
    kernels.code_by_beam(tables, rule, _MIN_WIDTH if few else _NARROW, 2)
    if few:
        width = _width(block.n_atoms)
        costs = kernels.row_costs(rule.prices)
        block._rows.stale[:] = (costs < greedy_costs) | (costs > _EXPENSIVE * typical)
        kernels.code_by_beam(tables, rule, width, 3)
        block._rows.stale[:] = kernels.row_costs(rule.prices) > _VERY_EXPENSIVE * typical
        kernels.code_by_beam(tables, rule, _WIDER * width, 3)
    if every:  # the same draws for every chunk of rows
        code_from_information_sets(block, rule, np.random.default_rng(0))
    block.mark_stale()
    return changed(block, *before)


def code_from_subsets(block: Block, rule: Rule, chunk_rows: int = 8192) -> Change:
    """Under OR, code the rows from all atoms that are subsets of them, and keep a new code where it costs less.

    From scratch, the atoms chosen first may exclude others that fit better together.
    """
    if rule.residual_limit > 0:  # a row within the limit takes no atoms, and here it would begin with some
        return Change()

    def code_again(other: Block) -> None:
        targets = other._read_rows.errors | other._read_rows.covered  # no atom is used: only unknown cells are covered
        other.set_codes(other.kernels.subset_codes(targets, other._atoms.words, rule.max_atoms))
        code(other, rule)

    return keep_cheaper(block, rule, code_again, chunk_rows)


def keep_cheaper(block: Block, rule: Rule, coder: Callable[[Block], None], chunk_rows: int = 8192) -> Change:
    """Code rows again, from no atoms, by this coder, and keep a new code where it costs less.

    Rows are coded in chunks: a second state of all rows would take much memory.
    """
    assert rule.prices is not None
    before = block._rows.codes.copy(), block._rows.errors.copy()
    xp, old_costs = block.kernels.xp, block.kernels.row_costs(rule.prices)
    for chunk in block.uncoded_chunks(chunk_rows):
        coder(chunk.block)
        new_costs = chunk.block.kernels.row_costs(rule.prices)
        better = xp.flatnonzero(new_costs < old_costs[chunk.start : chunk.start + chunk.block.n_rows])
        taken = chunk.block._read_rows.codes[better], chunk.block._read_rows.errors[better]
        block.kernels.restore_rows(better + chunk.start, *taken)
    block.mark_stale()
    return changed(block, *before)


def _width(n_atoms: int) -> int:
    """Return the width of a beam where there are few atoms."""
    return min(_MAX_WIDTH, max(_MIN_WIDTH, _WIDTH_TIMES_ATOMS // n_atoms))


CODERS: dict[str, Callable[[Block, Rule], Change]] = {
    "bmp": code,
    "greedy": code,
    "exact": code_exactly,
    "mdl": code,
    "beam": _code_and_beam,
}
