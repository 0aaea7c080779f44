"""Weights of rows: whole numbers. A row with weight w counts as w equal rows that follow each other.

Learning sees the repeated rows, so that a weight equals that many repetitions, bit for bit, in every search. Packed
rows are small.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix, stack_rows
from ..cell_values import missing_cells
from ..errors import InputError, Parameter
from ..formatting import quoted
from ..frames import on_host
from ..model.model import Model
from ..parallel import Workers
from ..sparse_bits import Bits, SparseBits
from ..system.memory import memory_limit
from ..validation import MAX_WEIGHT, weight_advice
from .budget import MemoryLimitError, bytes_of
from .source import init_of_rows

Weights = NDArray[np.int64]
_INDEX_BYTES = 8  # of a repetition, while rows are repeated
_MAX_SHARE = 0.5  # of the memory of the machine, for repeated rows


def checked_weights(sample_weight: Any, n_rows: int) -> Weights:
    """Return the weights of rows as integers, after checking that they are whole numbers from 0 up, and not all 0."""
    weights = np.asarray(on_host(sample_weight, "sample_weight"))
    if isinstance(sample_weight, np.ma.MaskedArray) and np.ma.is_masked(sample_weight):
        weights = np.ma.filled(sample_weight.astype(float), np.nan)
    if weights.dtype.kind == "O":
        weights = _as_numbers(weights)
    if weights.dtype.kind not in "biuf":
        raise InputError(
            Parameter("sample_weight"), f" must consist of whole numbers, but its dtype is {weights.dtype}"
        )
    if weights.shape != (n_rows,):
        raise InputError(
            Parameter("sample_weight"), f" has shape {weights.shape}, but X has {n_rows} rows; pass one weight per row"
        )
    _check_values(weights)
    whole = weights.astype(np.int64)
    if not whole.any():
        raise InputError(
            Parameter("sample_weight"),
            " is zero for every row: found 0 sample(s), while a minimum of 1 is required; pass weights above 0",
        )
    return whole


def _as_numbers(weights: NDArray[Any]) -> NDArray[Any]:
    """Return objects as numbers, missing values as NaN; raise for text, whatever it says."""
    for row, value in enumerate(weights.ravel().tolist()):
        if isinstance(value, (str, bytes)):
            raise InputError(
                Parameter("sample_weight"),
                f" must consist of whole numbers, but the weight of row {row} is text ({quoted(value)}); convert it",
            )
    filled = np.where(missing_cells(weights), np.nan, weights)
    try:
        return filled.astype(float)
    except (TypeError, ValueError):
        return weights


def _check_values(weights: NDArray[Any]) -> None:
    """Raise for the first weight that is not a whole number from 0 up."""
    if weights.dtype.kind == "b":
        return
    values = weights.astype(float)
    is_wrong = ~((values >= 0) & (values < MAX_WEIGHT) & (values == np.floor(values)))
    if not is_wrong.any():
        return
    row = int(is_wrong.argmax())
    value = float(values[row])
    raise InputError(
        Parameter("sample_weight"),
        f" must consist of whole numbers from 0 up, but the weight of row {row} is "
        f"{'missing' if np.isnan(value) else weights[row]} ({int(is_wrong.sum())} in all); {weight_advice(value)}",
    )


class WeightedRows(NamedTuple):
    """The rows that a user passed, and how often each of them counts."""

    data: Bits
    weights: Weights

    @classmethod
    def of(cls, data: Bits, sample_weight: Any) -> WeightedRows | None:
        """Return rows with their weights, checked; None without weights."""
        return None if sample_weight is None else cls(data, checked_weights(sample_weight, len(data)))

    def repeated(self, max_memory: int | None) -> Bits:
        """Return the rows, each as often as its weight states; raise MemoryLimitError if they are too large.

        The limit is ``max_memory`` bytes, by default a share of the memory of the machine.
        """
        data, weights = self
        if (weights == 1).all():
            return data
        n_bytes = bytes_of(data) / len(data)
        if isinstance(data, SparseBits):
            mean_ones = float(weights.astype(float) @ data.row_weights()) / total_weight(weights)
            n_bytes = _INDEX_BYTES + mean_ones * (data.indices.itemsize + _INDEX_BYTES)
        check_total(weights, n_bytes + _INDEX_BYTES, max_memory)
        rows: Bits = data[self._index]
        # Where all unknown cells are in rows with weight 0, the rows are those of a table without a mask.
        return rows.filled() if isinstance(rows, BitMatrix) and not rows.n_unknown else rows

    def repeated_init(self, init: Any) -> Any:
        """Return the start of a search of the repeated rows: initial codes, if there are any, are repeated too."""
        return init_of_rows(init, len(self.weights), lambda codes: codes[self._index])

    def own_codes(self, codes: BitMatrix, model: Model, workers: Workers) -> BitMatrix:
        """Return the codes of these rows, given those of the repetitions, of which each row takes the first.

        Rows with weight 0 are coded as new ones. A search may leave repetitions of a row with different codes.
        """
        is_absent = self.weights == 0
        firsts = (np.cumsum(self.weights) - self.weights)[~is_absent]
        all_codes = stack_rows((codes[firsts], model.codes(self.data[is_absent], workers)), codes.n_cols)
        order = np.concatenate([np.flatnonzero(~is_absent), np.flatnonzero(is_absent)])
        return all_codes[np.argsort(order)]

    @property
    def _index(self) -> NDArray[np.intp]:
        """The index of the row of each repetition."""
        return np.repeat(np.arange(len(self.weights)), self.weights)


def check_total(weights: Weights, row_bytes: float, max_memory: int | None) -> None:
    """Raise MemoryLimitError if as many rows as the weights state, of this many bytes each, do not fit into memory."""
    total = total_weight(weights)
    limit = int(_MAX_SHARE * memory_limit()) if max_memory is None else max_memory
    if total * row_bytes > limit:
        raise MemoryLimitError(
            "the sum of ",
            Parameter("sample_weight"),
            f" is {total:.6g}, and this many rows take {total * row_bytes:.3g} bytes, more than ",
            f"half of the memory ({limit})" if max_memory is None else Parameter("max_memory", limit),
            "; divide all weights by the same number, and round them",
        )


def total_weight(weights: Weights) -> float:
    """Return the sum of weights, exact below 2**53; that of huge weights does not overflow."""
    return float(weights.sum(dtype=np.float64))
