"""Passes over rows: what one does (`PassSpec`), and `run_pass`, which threads, stores and Dask workers all call.

Atoms that share no columns with others are coded on their own: a wide table may have a hundred thousand atoms, most of
which have few columns, and a row is then coded with some of them at a time, on their columns only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from ..bits import BitMatrix, stack_rows
from ..kernels.structs import CodingRule, Prices
from ..parallel import Workers
from ..sparse_bits import Bits, SparseBits, packed
from .block import Block
from .coding import CODERS, NO_LIMIT, code, code_and_repair, code_from_nearest, typical_cost
from .counts import Counts, cells_of
from .device_rows import run_in_chunks
from .distinct_rows import DistinctRows, find_distinct
from .information_sets import N_DRAWS
from .row_state import lanes_of

# Equal rows are looked for among at least this many rows, and coded once if at most this share of them is distinct.
_WITH_FAST_CODER, _WITH_SLOW_CODER = (1 << 14, 1 / 4), (1 << 8, 3 / 4)
_FEW_ATOMS = 8  # all codes of which are soon tried
_MIN_SPLIT, _GROUP_COLUMNS = 1 << 11, 1 << 9  # columns of atoms that are coded in groups, and of a group

Indices = NDArray[np.intp]


class RowCounts(NamedTuple):
    """Counts of coded rows: the known cells and the errors of each column, and the uses of each atom."""

    n_rows: int
    known: NDArray[np.int64]
    wrong: NDArray[np.int64]
    uses: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PassSpec:
    """What a pass does: code the rows with these atoms, and count.

    ``kept`` are the indices of the atoms among those of the pass before, whose codes the rows start from; None where
    rows are coded from scratch. ``coder`` is a name of CODERS, or "mend" for `code_and_repair`. Rows that are coded
    from scratch also start from the nearest of the ``remembered`` codes, if the rule has prices. ``voted`` are the bits
    of the atoms on which votes are counted, None for all. ``priced_by`` are the counts that the rule comes from;
    without them, rows are coded with all atoms together.
    """

    atoms: Bits
    bias: BitMatrix
    coder: str
    rule: CodingRule
    kept: NDArray[np.intp] | None = None
    remembered: BitMatrix | None = None
    voted: SparseBits | None = None
    priced_by: RowCounts | None = None

    @property
    def n_listed(self) -> int | None:
        """The number of bits of the atoms that have votes, None if all have."""
        return None if self.voted is None else self.voted.count()

    @property
    def is_split(self) -> bool:
        """Whether a pass codes rows, and counts, by groups of atoms: bits outside of a group must have no votes."""
        return self.voted is not None and len(self.groups) > 1

    @property
    def largest_group(self) -> tuple[int, int] | None:
        """The largest number of atoms, and of columns, of a group; None if all atoms are coded together."""
        if len(self.groups) < 2:
            return None
        sizes = [group.spec.atoms.shape for group in self.groups]
        return max(n_atoms for n_atoms, _ in sizes), max(n_columns for _, n_columns in sizes)

    @cached_property
    def groups(self) -> list[AtomGroup]:
        """The groups of atoms that rows are coded with.

        Columns without atoms are wrong or not whatever the code of a row is. They, and the other groups, matter only
        to limits on all errors or atoms of a row.
        """
        columns, rule = np.flatnonzero(self.atoms.column_weights()), self.rule
        is_limited = rule.max_atoms < NO_LIMIT or rule.residual_limit > 0
        if self.priced_by is not None and not is_limited and len(columns) >= _MIN_SPLIT:
            return [self._group(*group) for group in atom_groups(self.atoms, _GROUP_COLUMNS)]
        needs_all = self.priced_by is None or rule.residual_limit > 0 or len(columns) == self.atoms.n_cols
        return [self._group(np.arange(self.atoms.n_rows), None if needs_all else columns)]

    def _group(self, atoms: NDArray[np.intp], columns: NDArray[np.intp] | None) -> AtomGroup:
        """Return a group of atoms, coded at the prices of all atoms and columns; ``columns`` is None for all."""
        own, bias, rule, remembered = self.atoms[atoms], self.bias, self.rule, self.remembered
        if columns is None:
            return AtomGroup(atoms, None, PassSpec(packed(own), bias, self.coder, rule, None, remembered, self.voted))
        own, bias = own.take_columns(columns), bias.take_columns(columns)
        remembered = remembered and remembered.take_columns(atoms)
        voted = self.voted and self.voted[atoms].take_columns(columns)
        if rule.prices is not None and self.priced_by is not None:
            uses = np.zeros(lanes_of(len(atoms)), np.int32)
            uses[: len(atoms)] = rule.prices.uses[atoms]
            prices = _of_columns(rule.prices, columns, self.atoms.n_cols)._replace(uses=uses)
            n_rows, _, all_wrong, all_uses = self.priced_by
            typical = typical_cost(prices, n_rows, all_wrong[columns], all_uses[atoms])
            rule = rule._replace(prices=prices, typical=typical)
        return AtomGroup(atoms, columns, PassSpec(packed(own), bias, self.coder, rule, None, remembered, voted))


class AtomGroup(NamedTuple):
    """Atoms that are coded without regard to others, and their columns."""

    atoms: NDArray[np.intp]
    columns: NDArray[np.intp] | None  # None for all
    spec: PassSpec  # the pass that codes rows with these atoms

    @property
    def features(self) -> NDArray[np.intp] | slice:
        """The columns as an index."""
        return slice(None) if self.columns is None else self.columns

    def columns_of(self, data: Bits) -> BitMatrix:
        """Return the columns of rows."""
        return packed(data if self.columns is None else data.take_columns(self.columns))

    def codes_of(self, data: Bits, workers: Workers) -> tuple[NDArray[np.intp] | None, BitMatrix]:
        """Return rows, None for all, and their codes from scratch; other rows use no atom.

        In sparse tables, most rows have no ones in these columns, and all of these have the same code.
        """
        if self.columns is None or isinstance(data, BitMatrix):
            return None, row_codes(self.columns_of(data), self.spec, workers)
        rows, own = data.window(self.columns, 1)
        if not self.spec.bias.count():
            return rows, row_codes(own, self.spec, workers)
        own = stack_rows((own, BitMatrix.zeros(1, own.n_cols)), own.n_cols)
        index = np.full(len(data), len(rows))
        index[rows] = np.arange(len(rows))
        return None, row_codes(own, self.spec, workers)[index]

    def block(self, data: Bits, codes: BitMatrix, workers: Workers) -> Block:
        """Return the columns of rows as a block on the host with their codes; those of other atoms are ignored."""
        own, own_codes, spec = self.columns_of(data), codes.take_columns(self.atoms), self.spec
        return Block(own, packed(spec.atoms), own_codes, spec.rule.covers, workers.without_device, spec.bias)


def _of_columns(prices: Prices, columns: NDArray[np.intp], n_features: int) -> Prices:
    """Return the prices of errors in some columns."""
    if not prices.own_costs():
        return Prices(prices.bits[columns], prices.uses)
    forbidden = prices.forbidden
    if len(forbidden):
        table = BitMatrix.from_words(forbidden[np.newaxis].copy(), n_features, check=False)
        forbidden = table.take_columns(columns).words[0].copy()
    return Prices(prices.bits[columns], prices.uses, prices.added[columns], prices.mean[columns], forbidden)


def joined_codes(
    parts: Sequence[tuple[NDArray[np.intp] | None, BitMatrix]], n_rows: int, order: NDArray[np.intp]
) -> BitMatrix:
    """Return the codes of all rows with the atoms of all parts, in this order.

    A part has the codes of some rows, in ascending order, or of all (None); other rows use none of its atoms.
    """
    users = []
    for rows, codes in parts:
        if rows is None:
            users.append(codes.T)
        else:
            sparse = codes.T.to_sparse()
            users.append(BitMatrix.from_csr(sparse.indptr, rows[sparse.indices], n_rows))
    return stack_rows(users, n_rows)[order].T


def coded_block(data: BitMatrix, codes: BitMatrix | None, spec: PassSpec, workers: Workers) -> Block:
    """Return rows coded with all atoms together, starting from their codes or from scratch."""
    distinct = _distinct(data, codes, spec)
    if distinct is None:
        return _coded(data, codes, spec, workers)
    after = _coded_once(distinct, data, codes, spec, workers)
    return Block(data, packed(spec.atoms), after, spec.rule.covers, workers, spec.bias)


def row_codes(data: BitMatrix, spec: PassSpec, workers: Workers) -> BitMatrix:
    """Return the codes of rows from scratch, found with all atoms together."""
    distinct = _distinct(data, None, spec)
    if distinct is None:
        return _coded(data, None, spec, workers).codes()
    return _coded_once(distinct, data, None, spec, workers)


def _distinct(data: BitMatrix, codes: BitMatrix | None, spec: PassSpec) -> DistinctRows | None:
    """Return the distinct rows, if these are much fewer and the codes of equal rows are equal.

    They are if rows start from the same codes, and what a typical row costs is not taken from the other rows.
    """
    rule = spec.rule
    if rule.prices is not None and not rule.covers and not rule.typical:
        return None
    is_slow = spec.coder in ("beam", "mend") or (spec.coder == "exact" and spec.atoms.n_rows > _FEW_ATOMS)
    least, max_share = _WITH_SLOW_CODER if is_slow or spec.remembered is not None else _WITH_FAST_CODER
    return find_distinct(data, codes, max_share=max_share) if len(data) >= least else None


def _coded_once(
    distinct: DistinctRows, data: BitMatrix, codes: BitMatrix | None, spec: PassSpec, workers: Workers
) -> BitMatrix:
    """Return the codes of rows, of which equal ones are coded once."""
    starts = None if codes is None else codes[distinct.rows]
    return _coded(data[distinct.rows], starts, spec, workers).codes()[distinct.numbers]


def _coded(data: BitMatrix, codes: BitMatrix | None, spec: PassSpec, workers: Workers) -> Block:
    """Return rows coded, all of them."""
    block = Block(data, packed(spec.atoms), codes, spec.rule.covers, workers, spec.bias)
    prices = spec.rule.prices
    if prices is not None:  # numba would compile the kernels again for read-only arrays
        prices = Prices(*(array.copy() for array in prices))
    rule = spec.rule._replace(prices=prices)
    if codes is None and spec.remembered is not None and prices is not None:
        code(block, rule)
        code_from_nearest(block, rule, spec.remembered)
    if spec.coder == "mend":
        code_and_repair(block, rule, N_DRAWS)
    else:
        CODERS[spec.coder](block, rule)
    return block


def atom_groups(atoms: Bits, width: int) -> list[tuple[Indices, Indices]]:
    """Return atoms and columns of each group; small groups are put together until they have about ``width`` columns.

    Columns that no atom has are in no group. An atom without ones is in the first group, if there is one.
    """
    n_atoms, ones = atoms.n_rows, atoms.to_sparse()
    n_nodes = n_atoms + atoms.n_cols  # of a graph with an edge from each atom to each of its columns
    starts = np.concatenate((ones.indptr, np.full(atoms.n_cols, ones.indptr[-1])))
    graph = csr_array((ones.data, ones.indices + n_atoms, starts), shape=(n_nodes, n_nodes))
    _, component = connected_components(graph, directed=False)
    columns = np.flatnonzero(atoms.column_weights())
    found, first, sizes = np.unique(component[n_atoms + columns], return_index=True, return_counts=True)
    by_place = np.argsort(first)
    group = np.zeros(component.max(initial=-1) + 1, np.intp)
    group[found[by_place]] = np.unique((np.cumsum(sizes[by_place]) - 1) // width, return_inverse=True)[1]
    members = [_by_group(group[component[:n_atoms]]), _by_group(group[component[n_atoms + columns]])]
    return [(own, columns[at]) for own, at in zip(*members, strict=True)] if len(columns) else []


def _by_group(groups: Indices) -> list[Indices]:
    """Return the indices of the members of each group, in ascending order."""
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)


_VOTES_AT_A_TIME = 1 << 18


def run_pass(data: BitMatrix, codes: BitMatrix | None, spec: PassSpec, workers: Workers) -> tuple[BitMatrix, Counts]:
    """Run a pass on rows with the codes of the pass before, and return their new codes and the counts.

    If the memory of a device is too small for the rows, they are processed in chunks.
    """

    def run(rows: slice) -> tuple[BitMatrix, Counts]:
        return _run_pass(data[rows], None if codes is None else codes[rows], spec, workers)

    chunks = run_in_chunks(run, len(data), workers)
    if len(chunks) == 1:
        return chunks[0]
    all_codes, all_counts = zip(*chunks, strict=True)
    return stack_rows(all_codes, spec.atoms.n_rows), reduce(Counts.__add__, all_counts)


def _run_pass(data: BitMatrix, codes: BitMatrix | None, spec: PassSpec, workers: Workers) -> tuple[BitMatrix, Counts]:
    """Run a pass on rows that fit into the memory of the device, if there is one."""
    if spec.kept is None or codes is None:
        codes = None
    elif len(spec.kept) != codes.n_cols or (np.diff(spec.kept) != 1).any():
        codes = codes.take_columns(spec.kept)
    if not spec.is_split:
        return _run(data, codes, spec, workers)

    def run(own: Workers, group: AtomGroup) -> tuple[BitMatrix, Counts]:
        own_codes = None if codes is None else codes.take_columns(group.atoms)
        return _run(group.columns_of(data), own_codes, group.spec, own)

    total, parts = _counts_without_atoms(data, spec), []
    for group, (own_codes, counts) in zip(spec.groups, workers.map_tasks(run, spec.groups), strict=True):
        parts.append((None, own_codes))
        total = total.put(group.atoms, group.features, counts)
    order = np.argsort(np.concatenate([group.atoms for group in spec.groups]))
    return joined_codes(parts, len(data), order), total


def _run(data: BitMatrix, codes: BitMatrix | None, spec: PassSpec, workers: Workers) -> tuple[BitMatrix, Counts]:
    """Run a pass with all atoms together; ``codes`` are those of its atoms."""
    block = coded_block(data, codes, spec, workers)
    return block.codes(), count(block, data, block.rows.count_changed_codes(codes), spec.voted)


def _counts_without_atoms(data: BitMatrix, spec: PassSpec) -> Counts:
    """Return the counts of rows before those of the groups of atoms are put into them."""
    is_set, ones = spec.bias.to_dense(bool)[0], data.column_weights()
    known = data.n_known
    return replace(
        Counts.none(*spec.atoms.shape, spec.voted),
        n_rows=len(data),
        known=known,
        wrong=np.where(is_set, known - ones, ones),
        ones=ones,
        missed=np.where(is_set, 0, ones),
        free=np.zeros(spec.n_listed or 0, np.int32),
        bad=np.zeros(spec.n_listed or 0, np.int32),
    )


def count(block: Block, data: BitMatrix, codes_changed: int = 0, voted: SparseBits | None = None) -> Counts:
    """Return the counts of coded rows; ``data`` is that of the block."""
    free, bad, pairs = _all_votes(block) if voted is None else _listed_votes(block, voted)
    return Counts(
        n_rows=len(data),
        known=data.n_known,
        uses=block.uses(),
        wrong=block.wrong(),
        free=free,
        bad=bad,
        pairs=pairs,
        ones=block.ones(data),
        missed=block.missed(data),
        codes_changed=codes_changed,
        voted=voted,
    )


def _all_votes(block: Block) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the votes on all bits of the atoms, free and bad, and how many rows use both of two atoms."""
    p, m = block.n_atoms, block.n_features
    free, bad = block.votes(0, p) if p else (np.zeros((0, m), np.int64),) * 2
    return free.astype(np.int64), bad.astype(np.int64), block.rows.pairs().astype(np.int64)


def _listed_votes(block: Block, voted: SparseBits) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Return the votes on some bits, counted on all bits of a few atoms at a time, and no pairs."""
    free, bad = np.empty((2, voted.count()), np.int32)
    step = max(1, _VOTES_AT_A_TIME // block.n_features)
    for first in range(0, block.n_atoms, step):
        last = min(first + step, block.n_atoms)
        listed, cells = cells_of(voted, first, last)
        some_free, some_bad = block.votes(first, last)
        free[listed], bad[listed] = some_free[cells], some_bad[cells]
    return free, bad, np.zeros((0, 0), np.int64)
