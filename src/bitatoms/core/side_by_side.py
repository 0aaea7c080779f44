"""Factorizations of groups of columns, put side by side to one of the whole table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ..bits import BitMatrix, stack_rows
from ..mdl import codelength_from_counts
from .result import Factorization


class Part(NamedTuple):
    """The factorization of some columns of a table."""

    columns: NDArray[np.intp]  # in increasing order
    result: Factorization


def side_by_side(parts: Sequence[Part], n_features: int) -> Factorization:
    """Return the factorization with the atoms of all parts, each of which has other columns of the same rows.

    The atom that saves most bits comes first. What the parts do not have in common is that of the first one:
    the hash of the rows and the history are for the caller to set.
    """
    results = [part.result for part in parts]
    first = results[0]
    saved = None
    if all(result.saved is not None for result in results):
        saved = np.concatenate([result.saved for result in results])
    n_atoms = sum(result.atoms.n_rows for result in results)
    order = np.arange(n_atoms) if saved is None else np.argsort(-saved, kind="stable")
    codes = stack_rows([result.codes.T for result in results], first.n_samples)[order].T
    atoms = _joined_atoms(parts, n_features)[order]
    wrong, bias = _scattered(parts, n_features, "wrong"), _scattered(parts, n_features, "bias")
    known = None if first.known is None else _scattered(parts, n_features, "known")
    assert wrong is not None
    assert bias is not None
    length = codelength_from_counts(
        first.n_samples, n_features, wrong, codes.column_weights(), atoms.row_weights(), int(bias.sum()), known
    )
    complete = None
    if all(result.complete is not None for result in results):
        complete = np.concatenate([result.complete for result in results])[order]
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
        complete=complete,
        rows_hash=None,
        remembered=_joined_codes([result.remembered for result in results], results, order),
    )


def _joined_atoms(parts: Sequence[Part], n_features: int) -> BitMatrix:
    """Return the atoms of all parts, in the columns of the table."""
    sparse = [part.result.atoms.to_sparse() for part in parts]
    indices = np.concatenate([part.columns[atoms.indices] for part, atoms in zip(parts, sparse, strict=True)])
    n_ones = np.concatenate([np.diff(atoms.indptr) for atoms in sparse])
    indptr = np.concatenate([[0], np.cumsum(n_ones)])
    shape = len(n_ones), n_features
    return BitMatrix.from_sparse(csr_array((np.ones(len(indices), np.uint8), indices, indptr), shape=shape))


def _scattered(parts: Sequence[Part], n_features: int, field: str) -> NDArray | None:
    """Return an array of the results with one value per column, for all columns of the table."""
    out = None
    for columns, result in parts:
        values = getattr(result, field)
        if values is None:
            return None
        if out is None:
            out = np.zeros(n_features, values.dtype)
        out[columns] = values
    return out


def _joined_codes(
    codes: Sequence[BitMatrix | None], results: Sequence[Factorization], order: NDArray[np.intp]
) -> BitMatrix | None:
    """Return remembered codes of all atoms: the first ones of all parts in one row, and so on."""
    n_codes = max((len(of_part) for of_part in codes if of_part is not None), default=0)
    if not n_codes:
        return None
    joined = np.zeros((len(order), n_codes), np.uint8)
    start = 0
    for of_part, result in zip(codes, results, strict=True):
        stop = start + result.atoms.n_rows
        if of_part is not None:
            joined[start:stop, : len(of_part)] = of_part.to_dense().T
        start = stop
    return BitMatrix.from_dense(joined[order]).T
