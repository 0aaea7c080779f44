"""Factorizations of groups of columns, put side by side to one of the whole table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..engine.codelength import STRINGS, AtomCode
from ..engine.passes import joined_codes
from ..sparse_bits import SparseBits, index_type, smaller_bits
from .result import Factorization


class ColumnFactors(NamedTuple):
    """The factorization of some columns of a table."""

    columns: NDArray[np.intp]
    result: Factorization
    rows: NDArray[np.intp] | None = None  # of the table that have codes; None for all


def join_columns(
    parts: Sequence[ColumnFactors], n_rows: int, n_features: int, code: AtomCode = STRINGS
) -> Factorization:
    """Return the factorization of a table with the atoms of all parts, each of which has other columns.

    The atom that saves most bits comes first. What the parts do not have in common is that of the first one:
    the history and the counts of members are for the caller to set. ``code`` describes atoms.
    """
    results = [part.result for part in parts]
    first = results[0]
    saved = None
    if all(result.saved is not None for result in results):
        saved = np.concatenate([result.saved for result in results])
    n_atoms = sum(result.atoms.n_rows for result in results)
    order = np.arange(n_atoms) if saved is None else np.argsort(-saved, kind="stable")
    codes = joined_codes([(part.rows, part.result.codes) for part in parts], n_rows, order)
    atoms = smaller_bits(_joined_atoms(parts, n_features)[order])
    wrong, bias = _scattered(parts, n_features, "wrong"), _scattered(parts, n_features, "bias")
    known = None
    if any(result.known is not None for result in results):  # a part without unknown cells does not count known ones
        known = np.full(n_features, n_rows)
        for columns, result, _ in parts:
            known[columns] = n_rows if result.known is None else result.known
    assert wrong is not None
    assert bias is not None
    length = code.codelength(n_rows, wrong, codes.column_weights(), atoms, int(bias.sum()), known)
    return replace(
        first,
        atoms=atoms,
        codes=codes,
        bias=bias,
        codelength=length,
        wrong=wrong,
        saved=None if saved is None else saved[order],
        ones=_scattered(parts, n_features, "ones"),
        missed=_scattered(parts, n_features, "missed"),
        known=known,
        remembered=_joined_remembered(results, order),
    )


def _joined_atoms(parts: Sequence[ColumnFactors], n_features: int) -> SparseBits:
    """Return the atoms of all parts, in the columns of the table."""
    sparse = [part.result.atoms.to_sparse() for part in parts]
    indices = np.concatenate([part.columns[atoms.indices] for part, atoms in zip(parts, sparse, strict=True)])
    n_ones = np.concatenate([np.diff(atoms.indptr) for atoms in sparse])
    atom_of = np.repeat(np.arange(len(n_ones)), n_ones)
    order = np.lexsort((indices, atom_of))  # the columns of a window need not be in order
    return SparseBits(
        np.concatenate(([0], np.cumsum(n_ones))), indices[order].astype(index_type(n_features)), n_features
    )


def _scattered(parts: Sequence[ColumnFactors], n_features: int, field: str) -> NDArray | None:
    """Return an array of the results with one value per column, for all columns of the table."""
    out = None
    for columns, result, _ in parts:
        values = getattr(result, field)
        if values is None:
            return None
        if out is None:
            out = np.zeros(n_features, values.dtype)
        out[columns] = values
    return out


def _joined_remembered(results: Sequence[Factorization], order: NDArray[np.intp]) -> BitMatrix | None:
    """Return remembered codes of all atoms: the first ones of all parts in one row, and so on."""
    codes = [result.remembered or BitMatrix.zeros(0, result.atoms.n_rows) for result in results]
    n_codes = max(map(len, codes))
    return joined_codes([(np.arange(len(own)), own) for own in codes], n_codes, order) if n_codes else None
