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

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.cpu import beam, coding, dictionary, pursuit
from ..kernels.structs import AtomArrays, Prices, Rule, beam_scratch, coding_scratch, covering
from .block import ROW_COST, Block, Change, Words, changed, coded
from .exact import code_exactly
from .information_sets import code_from_information_sets

NO_LIMIT = 1 << 60
PRICED_CODERS = ("mdl", "beam")  # by codelength, or at a price of 1 for each error
MOST_EXACT_ATOMS = 16
MAX_WIDE_BEAM_ATOMS = 128  # up to this many atoms, a beam may be wide
_NARROW = 4  # the width of a beam with more atoms
_MIN_WIDTH, _MAX_WIDTH, _WIDTH_TIMES_ATOMS = 8, 32, 1024  # the width with few atoms
_LANES_PER_LISTED = 64  # atoms that are added to at once take about as long as one that is listed
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
    _refresh_tables(block)

    def code(start: int, stop: int) -> tuple[int, int]:
        scratch = coding_scratch(block._rows, block._atoms)
        return coding.code_rows(block._rows, block._atoms, rule, start, stop, scratch)

    return coded(block.map_rows(code, code_cost(block)))


def pursue(block: Block, rule: Rule) -> Change:
    """Add atoms to the rows in the order of their gains at the beginning, until one does not lower the errors."""
    if block.n_atoms == 0:
        return Change()
    _refresh_tables(block)

    def code(start: int, stop: int) -> tuple[int, int]:
        scratch = coding_scratch(block._rows, block._atoms)
        return pursuit.pursue_rows(block._rows, block._atoms, rule, start, stop, scratch)

    return coded(block.map_rows(code, code_cost(block)))


def code_from_scratch(block: Block, rule: Rule) -> Change:
    """Code the rows greedily from scratch, and keep a new code where it costs less."""
    return _code_at_prices(block, rule, from_scratch=True)


def _code_at_prices(block: Block, rule: Rule, from_scratch: bool) -> Change:
    """Code all rows greedily at the prices of the rule."""
    if block.n_atoms == 0:
        return Change()
    assert rule.prices is not None
    tables = priced(block, block._atoms, rule.prices)

    def code(start: int, stop: int) -> tuple[int, int]:
        scratch, rows = coding_scratch(block._rows, tables), np.arange(start, stop)
        before = np.empty(block._rows.codes.shape[1], np.uint64), np.empty(block.n_words, np.uint64)
        return coding.code_at_prices(block._rows, tables, rule, rows, from_scratch, *before, scratch)

    change = coded(block.map_rows(code, (4 if from_scratch else 1) * code_cost(block)))
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
    tables = priced(block, block._atoms, rule.prices)
    block._rows.stale[:] = 1
    if block.n_atoms > MAX_WIDE_BEAM_ATOMS:
        change = _code_stale_by_beam(block, tables, rule, _NARROW, 2)
    else:
        width = _width(block.n_atoms)
        before = block._rows.codes.copy(), block._rows.errors.copy()  # a bit changed twice is not changed
        _code_stale_by_beam(block, tables, rule, width, 3)
        costs = block.row_costs(rule.prices)
        block._rows.stale[:] = costs * block.n_rows > _VERY_EXPENSIVE * int(costs.sum())
        _code_stale_by_beam(block, tables, rule, _WIDER * width, 3)
        change = changed(block, *before)
    block.mark_stale()
    return change


def _code_stale_by_beam(block: Block, tables: AtomArrays, rule: Rule, width: int, patience: int) -> Change:
    """Code the stale rows by a beam of this width, up to ``patience`` levels without a better code."""
    fingerprints = np.empty(block.n_atoms, np.uint64)
    beam.fingerprint_atoms(block._atoms.words, fingerprints)

    def code(start: int, stop: int) -> tuple[int, int]:
        scratch, saved = coding_scratch(block._rows, tables), coding_scratch(block._rows, tables)
        beams = beam_scratch(block._rows, tables, width)
        return beam.beam_rows(block._rows, tables, rule, fingerprints, patience, start, stop, beams, scratch, saved)

    share = float(block._rows.stale.mean()) if block.n_rows else 0.0
    return coded(block.map_rows(code, 10 * width * share * code_cost(block)))


def priced(block: Block, atoms: AtomArrays, prices: Prices) -> AtomArrays:
    """Return the tables of these atoms for coding at these prices.

    If atoms have few of the columns, those of each column are listed: a wrong bit then concerns only these. So they are
    where missed and added ones have prices of their own; the weights of atoms are then at the prices of added ones.
    """
    lanes, n_ones = len(atoms.weights), int(np.bitwise_count(atoms.words).sum())
    tables = atoms._replace(
        weights=np.zeros(lanes, np.int32),
        slices=np.empty((0, lanes), np.uint8),
        overlaps=np.empty((len(atoms.words), lanes), np.int32),
    )
    if n_ones * _LANES_PER_LISTED < block.n_features * lanes or prices.own_costs():
        by_column = BitMatrix.from_words(atoms.words.copy(), block.n_features, check=False).T.to_sparse()
        starts, listed_atoms = by_column.indptr.astype(np.int64), by_column.indices.astype(np.int32)
        tables = tables._replace(column_starts=starts, column_atoms=listed_atoms)
    else:
        tables = tables._replace(slices=np.empty((block.n_features, lanes), np.uint8))
        dictionary.slice_atoms(atoms.words, atoms.weights, atoms.slices)
    listed, factor = np.empty(block.n_features + 1, np.int64), 1 if block.covers else 2
    dictionary.price_atoms(atoms, prices.bits, factor, listed, tables)
    if prices.own_costs():
        tables.weights[:] = np.bincount(
            tables.column_atoms, np.repeat(prices.added, np.diff(tables.column_starts)), lanes
        )
    return tables


def would_use(block: Block, atoms: Words, rule: Rule) -> Words:
    """Return the rows that would gain from each candidate as an additional atom: bits of shape (atoms, rows)."""
    assert rule.prices is not None
    tables = priced(block, block.atom_tables(atoms), rule.prices)
    users = np.zeros((len(atoms), block._read_rows.users.shape[1]), np.uint64)

    def offer(start: int, stop: int) -> None:
        coding.offer_atoms(block._read_rows, tables, rule, start, stop, coding_scratch(block._read_rows, tables), users)

    block.map_rows(offer, ROW_COST + 0.1 * block.n_features * len(tables.weights))
    return users


def _refresh_tables(block: Block) -> None:
    """Update the tables of changed atoms, and mark the rows that could use them as stale."""
    atoms = block._atoms
    changed = np.flatnonzero(atoms.changed)
    if len(changed) == 0:
        return
    dictionary.slice_atoms(atoms.words, atoms.weights, atoms.slices)
    dictionary.overlap_atoms(atoms.words, atoms.changed, 1 if block.covers else 2, atoms.overlaps)
    atoms.changed[:] = 0
    if len(changed) == block.n_atoms:
        block._rows.stale[:] = 1
        return
    tables = block.atom_tables(atoms.words[changed])
    dictionary.slice_atoms(tables.words, tables.weights, tables.slices)

    def recheck(start: int, stop: int) -> None:
        coding.recheck_rows(block._rows, tables, block.covers, start, stop, coding_scratch(block._rows, tables))

    block.map_rows(recheck, code_cost(block) * len(changed) / block.n_atoms)


def code_cost(block: Block) -> float:
    """Return about how many nanoseconds it takes to code a row."""
    return ROW_COST + 0.1 * block._atoms.slices.size


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
    tables, greedy_costs = priced(block, block._atoms, rule.prices), block.row_costs(rule.prices)
    typical = rule.typical or float(greedy_costs.mean() if block.n_rows else 0)
    few = block.n_atoms <= MAX_WIDE_BEAM_ATOMS
    block._rows.stale[:] = 1 if every else greedy_costs > _EXPENSIVE * typical
    _code_stale_by_beam(block, tables, rule, _MIN_WIDTH if few else _NARROW, 2)
    if few:
        width = _width(block.n_atoms)
        costs = block.row_costs(rule.prices)
        block._rows.stale[:] = (costs < greedy_costs) | (costs > _EXPENSIVE * typical)
        _code_stale_by_beam(block, tables, rule, width, 3)
        block._rows.stale[:] = block.row_costs(rule.prices) > _VERY_EXPENSIVE * typical
        _code_stale_by_beam(block, tables, rule, _WIDER * width, 3)
    if every:  # the same draws for every chunk of rows
        code_from_information_sets(block, rule, np.random.default_rng(0))
    block.mark_stale()
    return changed(block, *before)


def code_from_subsets(block: Block, rule: Rule, chunk_rows: int = 8192) -> Change:
    """Under OR, code the rows from all atoms that are subsets of them, and keep a new code where it costs less.

    From scratch, the atoms chosen first may exclude others that fit better together. Rows are coded in chunks: a second
    state of all rows would take much memory.
    """
    if rule.residual_limit > 0:  # a row within the limit takes no atoms, and here it would begin with some
        return Change()

    def coded_from_subsets(data: BitMatrix, atoms: BitMatrix) -> Block:
        target = (data ^ block.bias).words
        if data.unknown is not None:
            target = target | data.unknown.words
        codes = _subset_codes(target, atoms, rule.max_atoms)
        other = Block(data, atoms, codes, block.covers, block.workers, block.bias)
        code(other, rule)
        return other

    return keep_cheaper(block, rule, coded_from_subsets, chunk_rows)


def keep_cheaper(
    block: Block, rule: Rule, coded_again: Callable[[BitMatrix, BitMatrix], Block], chunk_rows: int = 8192
) -> Change:
    """Code chunks of rows again, by a function of the rows and the atoms, and keep a new code where it costs less."""
    assert rule.prices is not None
    before = block._rows.codes.copy(), block._rows.errors.copy()
    data, atoms, old_costs = block.data(), block.atoms(), block.row_costs(rule.prices)
    for start in range(0, block.n_rows, chunk_rows):
        other = coded_again(data[start : start + chunk_rows], atoms)
        rows = np.arange(start, start + other.n_rows)
        better = np.flatnonzero(other.row_costs(rule.prices) < old_costs[rows])
        taken = other._rows.codes[better], other._rows.errors[better]
        coding.restore_rows(block._rows, block._atoms.words, rows[better], *taken, block.covers)
    block.mark_stale()
    return changed(block, *before)


def _subset_codes(target: Words, atoms: BitMatrix, max_atoms: int) -> BitMatrix:
    """Return codes of all atoms that are subsets of each row, or of none where these are too many."""
    lacking = np.ascontiguousarray(~target.T)
    within = np.empty((atoms.n_rows, len(target)), bool)
    for atom, has_it in zip(atoms.words, within, strict=True):
        words = np.flatnonzero(atom)  # few, in wide tables
        lacked = np.bitwise_or.reduce(lacking[words] & atom[words, np.newaxis], axis=0)
        np.equal(lacked, 0, out=has_it)
    return BitMatrix.from_dense((within & (within.sum(axis=0) <= max_atoms)).T)


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
