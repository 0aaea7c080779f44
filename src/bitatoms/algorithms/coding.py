"""Atoms and rows to codes and errors: the coders by name.

``"bmp"`` is Binary Matching Pursuit (Algorithm 3 of the paper) with the association-accuracy rule: toggle the atom
with the largest gain a bit. ``"greedy"`` toggles the atom with the largest gain. ``"exact"`` takes the best of all
codes. A gain is the number of wrong bits that a toggle takes away; under XOR ordering atoms by gain a bit is
ordering them by association accuracy |d & r| / |d|, and both rules stop at the same rows: where no toggle gains.

``"mdl"`` and ``"beam"`` gain bits of codelength instead, by the prices in the rule: ``"mdl"`` toggles by gain, and
swaps one atom for another where no toggle gains; ``"beam"`` also follows several ways to a code at a time (XOR; under
OR it is ``"mdl"``).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..kernels.cpu import beam, coding, dictionary
from ..kernels.tables import Atoms, Prices, Rule, beam_room, coding_scratch, covering
from .block import ROW_COST, Block, Change, Words, coded
from .exact import code_exactly

NO_LIMIT = 1 << 60
MOST_EXACT_ATOMS = 16
_LEAST_WIDTH, _MOST_WIDTH = 8, 32  # of a beam
_WIDTH_TIMES_ATOMS = 1024


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
    """Code the rows greedily from the codes they have; only rows that can change are looked at."""
    if block.n_atoms == 0:
        return Change()
    if rule.prices is None:
        _refresh_tables(block)
        return code_stale(block, block.atoms, rule)
    block.rows.stale[:] = 1
    change = code_stale(block, priced(block, block.atoms, rule.prices), rule)
    block.forget_clean()
    return change


def code_stale(block: Block, tables: Atoms, rule: Rule) -> Change:
    """Code the stale rows greedily with these tables."""

    def code(start: int, stop: int) -> tuple[int, int]:
        return coding.code_rows(block.rows, tables, rule, start, stop, coding_scratch(block.rows, tables))

    return coded(block.each_block(code, _code_cost(block)))


def code_afresh(block: Block, rule: Rule) -> Change:
    """Code the rows greedily from nothing, and keep that where it costs less than the code they have."""
    if block.n_atoms == 0:
        return Change()
    assert rule.prices is not None
    tables = priced(block, block.atoms, rule.prices)

    def code(start: int, stop: int) -> tuple[int, int]:
        scratch, kept = coding_scratch(block.rows, tables), coding_scratch(block.rows, tables)
        return coding.recode_rows(block.rows, tables, rule, start, stop, scratch, kept)

    change = coded(block.each_block(code, 4 * _code_cost(block)))
    block.forget_clean()
    return change


def code_by_beam(block: Block, rule: Rule) -> Change:
    """Code the rows by beam from nothing, and keep that where it costs less than the code they have.

    Under OR, where one toggle at a time seldom gets stuck, by ``code_afresh``.
    """
    if rule.covers or block.n_atoms == 0:
        return code_afresh(block, rule)
    assert rule.prices is not None
    width = min(_MOST_WIDTH, max(_LEAST_WIDTH, _WIDTH_TIMES_ATOMS // block.n_atoms))
    tables = priced(block, block.atoms, rule.prices)
    prints = np.empty(block.n_atoms, np.uint64)
    beam.fingerprint_atoms(block.atoms.words, prints)

    def code(start: int, stop: int) -> tuple[int, int]:
        scratch, kept = coding_scratch(block.rows, tables), coding_scratch(block.rows, tables)
        ways = beam_room(block.rows, tables, width)
        return beam.beam_rows(block.rows, tables, rule, prints, start, stop, ways, scratch, kept)

    change = coded(block.each_block(code, 10 * width * _code_cost(block)))
    block.forget_clean()
    return change


def priced(block: Block, atoms: Atoms, prices: Prices) -> Atoms:
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


def _code_and_beam(block: Block, rule: Rule) -> Change:
    return code(block, rule) + code_by_beam(block, rule)


CODERS: dict[str, Callable[[Block, Rule], Change]] = {
    "bmp": code,
    "greedy": code,
    "exact": code_exactly,
    "mdl": code,
    "beam": _code_and_beam,
}


def chosen_coder(coder: str) -> str:
    """The coder that is meant: "auto" is the paper's."""
    return "bmp" if coder == "auto" else coder
