"""Codes and scores of all rows of a store, computed with a model one chunk at a time."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._version import __version__
from ..bits import BitMatrix
from ..columns.matching import match_columns
from ..errors import InputError, Parameter
from ..io.atomic import atomic_write
from ..io.errors import FileError
from ..io.store.packed_store import PackedStoreWriter
from ..io.stream import RowChunk
from ..model.model import Model
from ..model.recommendation import Recommendations, recommend
from ..model.row_fit import ScoredRows, numbered_rows, score_rows
from ..parallel import Workers
from ..sparse_bits import Bits
from .budget import DEFAULT_LIMIT
from .store import Store, memory_budget

Result = TypeVar("Result")
RowFunction = Callable[[Model, Bits, Workers], Result]  # of rows with the columns of the model


@dataclass(frozen=True, eq=False)
class StoreTransform:
    """The rows of a store, with the columns of a model, processed in chunks of rows.

    Parameters
    ----------
    store : Store
    model : Model
    workers : Workers
    max_memory : int, optional
        Bytes that chunks may take together; 512 MiB by default.
    absent : str, optional
        What columns that the store lacks are, as in `match_columns`.
    """

    store: Store
    model: Model
    workers: Workers
    max_memory: int = DEFAULT_LIMIT
    absent: str | None = None

    def chunks(self) -> Iterator[Bits]:
        """Yield all rows."""
        return self.map_chunks(lambda model, data, workers: data)

    def map_chunks(self, function: RowFunction[Result]) -> Iterator[Result]:
        """Yield a function of each chunk of rows; columns are matched before the first."""
        store, model = self.store, self.model
        match = match_columns(model.header, store.header, self.absent, store.path.name)
        match.warn_differences(store.path.name)
        fills_unknown = bool(match.absent) and match.fill == "unknown"
        read: Callable[[int], Iterator[Bits]]
        if store.n_ones is not None and not fills_unknown:
            width, read = model.n_coded_columns, store.stored_chunks
        else:
            # Chunks whose columns are gathered are in memory twice.
            width, read = model.atoms.n_cols + (0 if match.indices is None else store.n_features), store.chunks
        budget = memory_budget(store, self.max_memory, self.workers, width)
        if fills_unknown:
            budget = replace(budget, has_unknown=True)
        chunks = read(self.workers.chunk_rows or budget.coding_rows(model))
        return self.workers.map_stream(lambda own, data: function(model, match.gather(data), own), chunks)

    def code_chunks(self) -> Iterator[BitMatrix]:
        """Code all rows, and yield their codes."""
        return self.map_chunks(Model.codes)

    def recommended_chunks(self, n: int) -> Iterator[Recommendations]:
        """Yield n recommendations for each row."""
        return self.map_chunks(lambda model, data, workers: recommend(model, data, n, workers))

    def scored_chunks(self) -> Iterator[ScoredRows]:
        """Yield all rows with the bits that they take."""
        return numbered_rows(self.map_chunks(score_rows))

    def score_samples(self) -> NDArray[np.float64]:
        """Return minus the bits of each row."""
        return _collected(self.map_chunks(scores_of), np.empty(self.store.n_rows))

    def soft_codes(self) -> NDArray[np.float64]:
        """Return the bits that each atom saves in each row; raise if they do not fit into memory."""
        shape = self.store.n_rows, self.model.atoms.n_rows
        needed = 8 * math.prod(shape)
        if needed > self.max_memory:
            raise InputError(
                f"the soft codes of {self.store.n_rows} samples take {needed} bytes, more than ",
                Parameter("max_memory", self.max_memory),
                "; code fewer rows at a time",
            )
        return _collected(self.map_chunks(soft_codes_of), np.empty(shape))


def scores_of(model: Model, data: Bits, workers: Workers, max_rows: int | None = None) -> NDArray[np.float64]:
    """Return minus the bits of each row."""
    return -score_rows(model, data, workers, max_rows).bits


def soft_codes_of(model: Model, data: Bits, workers: Workers, max_rows: int | None = None) -> NDArray[np.float64]:
    """Return the bits that each atom saves in each row."""
    return model.soft_codes(data, model.codes(data, workers, max_rows), workers, max_rows)


def write_code_store(store: Store, chunks: Iterable[BitMatrix], model: Model, output: str | os.PathLike[str]) -> Store:
    """Write the codes of all rows as a packed store with one column per atom and the names of the rows."""
    if os.path.realpath(output) == os.path.realpath(store.path):
        raise FileError(f"{os.fspath(output)}: this is the input store; choose another name for the codes")
    about = {"source": store.path.name, "format": "codes", "options": {}, "bitatoms": __version__}
    with (
        atomic_write(Path(output)) as path,
        PackedStoreWriter(path, model.atoms.n_rows, model.atom_names, about=about, row_data=store.row_data) as writer,
    ):
        for codes in chunks:
            start = writer.n_rows
            writer.append(RowChunk(codes, store.row_names(start, start + len(codes))))
    return Store(output)


def collect_codes(store: Store, chunks: Iterable[BitMatrix], model: Model) -> BitMatrix:
    """Return the codes of all rows, packed, from their chunks."""
    n_atoms = model.atoms.n_rows
    words = np.empty((store.n_rows, -(-n_atoms // 64)), np.uint64)
    return BitMatrix.from_words(_collected((codes.words for codes in chunks), words), n_atoms, check=False)


def _collected(chunks: Iterable[NDArray[Any]], out: NDArray[Any]) -> NDArray[Any]:
    """Copy chunks of rows into an array of all rows, and return it."""
    start = 0
    for chunk in chunks:
        out[start : start + len(chunk)] = chunk
        start += len(chunk)
    return out
