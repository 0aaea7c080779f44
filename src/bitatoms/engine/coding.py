"""Coders: from rows and atoms to codes and errors, by name.

``"bmp"`` is Binary Matching Pursuit (Algorithm 3 of the paper) with the association-accuracy rule: toggle the atom
with the largest gain per bit. ``"greedy"`` toggles the atom with the largest gain. ``"exact"`` takes the best of all
codes. A gain is the number of errors that a toggle fixes. Under XOR, the order by gain per bit is the order by
association accuracy |d & r| / |d|, and both rules stop at the same rows: where no toggle gains.

``"mdl"`` and ``"beam"`` gain bits of codelength instead, by the prices in the rule. ``"mdl"`` toggles by gain, and
swaps one atom for another where no toggle gains. ``"beam"`` is a beam search over toggles under XOR; under OR it is
``"mdl"`` from scratch and from all atoms that fit into the row.

The codes of some rows that are learned from are remembered, because they are hard to find, and new rows start from
them. Under XOR, toggling one atom at a time from scratch often gets stuck, and so does a beam. Learning leads rows to
better codes step by step. A new row is likely to need a code that is, or is close to, that of a similar row.

A new coder needs a function of a `Block` and a `CodingRule` in `CODERS`, and its name among the choices of ``coder`` in
`bitatoms.search.options` and among the coders of the searches in `bitatoms.search.params`. The moves of the fast and
the thorough search (`bitatoms.search.moves.sweep`) call their coders directly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.structs import CodingRule, Prices
from .block import Block, Change, coded, reconstruct
from .device_rows import DeviceRows
from .host_rows import HostRows
from .information_sets import code_from_information_sets
from .row_state import Words, lanes_of

NO_LIMIT = 1 << 60
PRICED_CODERS = ("mdl", "beam")  # by codelength, or at a price of 1 for each error
MOST_EXACT_ATOMS = 16
MAX_WIDE_BEAM_ATOMS = 128  # up to this many atoms, a beam may be wide
_NARROW = 4  # the width of a beam with more atoms
_MIN_WIDTH, _MAX_WIDTH, _WIDTH_TIMES_ATOMS = 8, 32, 1024  # the width with few atoms
_EXPENSIVE = 1.5  # rows that cost this many times the average may be stuck in a local optimum
_LEAST_TYPICAL = 1e-9  # the average, if no row costs anything
_VERY_EXPENSIVE, _WIDER = 3, 8  # rows that cost 3 times the average get a beam 8 times as wide
_CHUNK_ROWS = 8192  # that are coded again at a time
_MAX_REMEMBERED, _MIN_REMEMBERED = 4096, 16
_MAX_BITS = 1 << 21  # fewer are remembered where their products would have more bits
_MIN_ATOMS = 2  # one toggle leads to a code of one atom
_MAX_COST = 1 << 30  # of the atoms of a code, if the prices are absurd


def coding_rule(
    coder: str, algebra: str, max_atoms: int | None = None, residual_limit: int = 0, prices: Prices | None = None
) -> CodingRule:
    """Return the rule by which the coder of this name toggles atoms, with the limits of Algorithm 3."""
    return CodingRule(
        covers=algebra == "or",
        by_ratio=coder == "bmp",
        max_atoms=NO_LIMIT if max_atoms is None else max_atoms,
        # With prices, a row without errors may still be coded for less.
        residual_limit=-1 if prices is not None and residual_limit == 0 else residual_limit,
        prices=prices,
        swaps=prices is not None,
    )


def code(block: Block, rule: CodingRule) -> Change:
    """Code the rows greedily from their current codes; without prices, rows that cannot change are skipped."""
    if block.n_atoms == 0:
        return Change()
    if rule.prices is not None:
        return _finished(block, block.rows.code_at_prices(_tables(block, rule), rule))
    return coded(block.rows.code_stale(block.rows.tables(block._atoms), rule))


def code_exactly(block: Block, rule: CodingRule) -> Change:
    """Give every row the best of all codes; for few atoms."""
    if block.n_atoms == 0:
        return Change()
    return _finished(block, block.rows.code_exactly(block._atoms, rule))


def pursue(block: Block, rule: CodingRule) -> Change:
    """Add atoms to the rows in the order of their gains at the beginning, until one does not lower the errors."""
    block.move_to_host()
    return code(block, rule._replace(pursues=True))


def code_from_scratch(block: Block, rule: CodingRule) -> Change:
    """Code the rows greedily from scratch, and keep a new code where it costs less."""
    if block.n_atoms == 0:
        return Change()
    return _finished(block, block.rows.code_at_prices(_tables(block, rule), rule, from_scratch=True))


def code_by_beam(block: Block, rule: CodingRule) -> Change:
    """Code the rows by beam from scratch, and keep a new code where it costs less.

    Under OR, where greedy coding seldom gets stuck, this is ``code_from_scratch``.
    """
    if rule.covers or block.n_atoms == 0:
        return code_from_scratch(block, rule)
    before = block.rows.save()
    _beam(block, rule)
    return _finished(block, block.rows.changes_since(before))


def _beam(block: Block, rule: CodingRule) -> None:
    """Code the rows by a narrow beam, and by a wide one where that found a better code or rows are expensive."""
    assert rule.prices is not None
    rows, tables, typical = block.rows, _tables(block, rule), _typical(block, rule)
    before = rows.row_costs(rule.prices)
    few = block.n_atoms <= MAX_WIDE_BEAM_ATOMS
    rows.arrays.stale[:] = 1
    rows.code_by_beam(tables, rule, _MIN_WIDTH if few else _NARROW, 2)
    if few:
        width, costs = _width(block.n_atoms), rows.row_costs(rule.prices)
        rows.arrays.stale[:] = (costs < before) | (costs > _EXPENSIVE * typical)
        rows.code_by_beam(tables, rule, width, 3)
        rows.arrays.stale[:] = rows.row_costs(rule.prices) > _VERY_EXPENSIVE * typical
        rows.code_by_beam(tables, rule, _WIDER * width, 3)


def _typical(block: Block, rule: CodingRule) -> float:
    """Return what a typical row costs: as the rule says or, if it does not, the mean of the rows."""
    assert rule.prices is not None
    return rule.typical or float(block.row_costs(rule.prices).mean() if block.n_rows else 0)


def _finished(block: Block, changes: tuple[int, int]) -> Change:
    """Return what coding changed, after marking all as stale: it does not track what else could change."""
    block.mark_stale()
    return coded(changes)


def _tables(block: Block, rule: CodingRule) -> Any:
    """Return the tables of the atoms of a block for coding at the prices of a rule."""
    assert rule.prices is not None
    return block.rows.priced(block._atoms.words, rule.prices)


def would_use(block: Block, atoms: Words, rule: CodingRule) -> Words:
    """Return the rows that would gain from each candidate as an additional atom: bits of shape (atoms, rows)."""
    assert rule.prices is not None
    return block.rows.offer(block.rows.priced(atoms, rule.prices), rule)


def typical_cost(prices: Prices, n_rows: int, wrong: NDArray[np.int64], uses: NDArray[np.int64]) -> float:
    """Return the mean cost of a row at these prices, from counts of errors and uses; never 0, which means unknown."""
    cost = int(prices.bits.astype(np.int64) @ wrong) + int(prices.uses[: len(uses)].astype(np.int64) @ uses)
    return max(_LEAST_TYPICAL, cost / max(1, n_rows))


def code_and_repair(block: Block, rule: CodingRule, n_draws: int = 0) -> Change:
    """Code the rows greedily; under XOR, code those that are stuck again, from draws of information sets and by beam.

    A row is stuck if it costs far more than a typical one. If the rule holds the typical cost, the code of a row does
    not depend on the other rows. File formats call this coder "mend".
    """
    if block.n_atoms == 0 or rule.covers:
        return code(block, rule)
    before = block.rows.save()
    code(block, rule)
    rule = rule._replace(typical=_typical(block, rule))
    if n_draws:
        _recode_stuck(
            block, rule, lambda stuck: code_from_information_sets(stuck, rule, np.random.default_rng(0), n_draws)
        )
    _recode_stuck(block, rule, lambda stuck: _beam(stuck, rule))
    return _finished(block, block.rows.changes_since(before))


def _recode_stuck(block: Block, rule: CodingRule, recode: Callable[[Block], object]) -> None:
    """Code the rows again, by this function of a block of them, that cost far more than a typical row."""
    assert rule.prices is not None
    rows = np.flatnonzero(block.row_costs(rule.prices) > _EXPENSIVE * rule.typical)
    if len(rows):
        stuck = block.sample(rows)
        recode(stuck)
        block.rows.put_rows(block._atoms.words, rows, stuck.codes().words.copy(), stuck.errors().words.copy())


def _code_and_beam(block: Block, rule: CodingRule) -> Change:
    """Code the rows greedily, then by beam and from draws of information sets; under OR, from scratch and from subsets.

    If the rule holds the typical cost, the code of a row does not depend on the other rows.
    """
    if block.n_atoms == 0:
        return Change()
    if rule.covers:
        return code(block, rule) + code_from_scratch(block, rule) + code_from_subsets(block, rule)
    before = block.rows.save()
    code(block, rule)
    _beam(block, rule)
    code_from_information_sets(block, rule, np.random.default_rng(0))  # the same draws for every chunk of rows
    return _finished(block, block.rows.changes_since(before))


def code_from_subsets(block: Block, rule: CodingRule, chunk_rows: int = _CHUNK_ROWS) -> Change:
    """Under OR, code the rows from all atoms that are subsets of them, and keep a new code where it costs less.

    From scratch, the atoms chosen first may exclude others that fit better together.
    """
    if rule.residual_limit > 0:  # a row within the limit takes no atoms, and here it would begin with some
        return Change()
    atoms = block._atoms.words
    return _keep_cheaper(
        block, rule, lambda rows: rows.set_codes(atoms, atoms, rows.subset_codes(atoms, rule.max_atoms)), chunk_rows
    )


def _keep_cheaper(
    block: Block, rule: CodingRule, start: Callable[[Any], None], chunk_rows: int = _CHUNK_ROWS
) -> Change:
    """Code rows again, greedily from the codes that this function gives to rows without any, and keep a new code where
    it costs less."""
    if block.n_atoms == 0:
        return Change()
    assert rule.prices is not None
    tables = _tables(block, rule)

    def code_again(rows: Any) -> None:
        start(rows)
        rows.code_at_prices(tables, rule)

    return _finished(block, block.rows.keep_cheaper(block._atoms.words, rule.prices, code_again, chunk_rows))


def _width(n_atoms: int) -> int:
    """Return the width of a beam where there are few atoms."""
    return min(_MAX_WIDTH, max(_MIN_WIDTH, _WIDTH_TIMES_ATOMS // n_atoms))


def max_remembered(n_features: int) -> int:
    """Return the largest number of codes to remember."""
    return max(_MIN_REMEMBERED, min(_MAX_REMEMBERED, _MAX_BITS // max(1, n_features)))


def hard_codes(block: Block, rule: CodingRule) -> BitMatrix | None:
    """Return `frequent_codes` of the rows of a block in which coding from scratch ends at a higher cost.

    None if there is no such row. Where missed and added ones have prices of their own, under OR, none are needed.
    """
    assert rule.prices is not None
    if rule.prices.own_costs():
        return None
    fresh = Block(block.data(), block.atoms(), None, block.covers, block.workers, block.bias)
    code(fresh, rule)
    hard = np.flatnonzero(fresh.row_costs(rule.prices) > block.row_costs(rule.prices))
    codes = frequent_codes(block.codes()[hard], block.n_features)
    return codes if len(codes) else None


def frequent_codes(codes: BitMatrix, n_features: int) -> BitMatrix:
    """Return different codes of at least two atoms, the most frequent first, at most `max_remembered`.

    Of codes that are as frequent as each other, the lowest as binary numbers come first. Where there are too many,
    those returned lie evenly spaced in this order. The result does not depend on the order of the rows.
    """
    limit = max_remembered(n_features)
    several = codes.words[codes.row_weights() >= _MIN_ATOMS]
    distinct, counts = np.unique(several, axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    if len(order) > limit:
        least = counts[order[limit - 1]]
        certain, tied = order[counts[order] > least], order[counts[order] == least]
        n_left = limit - len(certain)
        order = np.concatenate([certain, tied[np.arange(n_left) * len(tied) // n_left]])
    return BitMatrix.from_words(distinct[order], codes.n_cols, check=False)


def code_from_nearest(block: Block, rule: CodingRule, remembered: BitMatrix) -> Change:
    """Code each row from the nearest of the remembered codes, and keep the new code where it costs less.

    The nearest is the code that costs least, of its atoms and the errors that it leaves in known cells, and less than
    no atoms. Of codes that cost the same, the first is taken. Codes with more atoms than the rule allows are ignored.
    """
    assert rule.prices is not None
    if not len(remembered) or rule.prices.own_costs():
        return Change()
    codes = remembered[np.flatnonzero(remembered.row_weights() <= rule.max_atoms)]
    no_bias, algebra = np.zeros(block.n_features, np.uint8), "or" if block.covers else "xor"
    products = reconstruct(codes, block.atoms(), no_bias, algebra)
    uses, use_prices = np.zeros(lanes_of(len(codes)), np.int32), rule.prices.uses[: block.n_atoms]
    uses[: len(codes)] = np.minimum(codes.to_dense() @ use_prices.astype(np.int64), _MAX_COST)

    def start(rows: HostRows | DeviceRows) -> None:
        if len(codes):
            rows.start_from_nearest(block._atoms.words, rule, codes, products, uses)

    return _keep_cheaper(block, rule, start)


CODERS: dict[str, Callable[[Block, CodingRule], Change]] = {
    "bmp": code,
    "greedy": code,
    "exact": code_exactly,
    "mdl": code,
    "beam": _code_and_beam,
}
