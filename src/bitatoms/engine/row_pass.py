"""`run_pass`: what a thread, a reader of a store and a Dask worker all do to a chunk of rows in a pass."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix, stack_rows
from ..parallel import Workers
from ..sparse_bits import SparseBits
from .block import Block
from .counts import Counts, cells_of
from .device_rows import run_in_chunks
from .pass_spec import AtomGroup, PassSpec, coded_block, joined_codes

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
