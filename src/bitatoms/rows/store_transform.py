"""Codes and scores of all rows of a store, computed with a model one chunk at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from .._version import __version__
from ..bits import BitMatrix
from ..errors import InputError, Parameter
from ..io.atomic import atomic_write
from ..io.errors import FileError
from ..io.packed_store import PackedStoreWriter
from ..io.stream import RowChunk
from ..matching import ColumnMatch, match_columns
from ..model.model import Model
from ..model.recommendation import Recommended, recommend
from ..model.row_fit import ScoredRows, score_rows
from ..parallel import Workers
from ..sparse_bits import Bits
from .store import Store, memory_budget

Result = TypeVar("Result")


def code_store(
    store: Store,
    model: Model,
    output: str | os.PathLike[str],
    workers: Workers,
    max_memory: int | None = None,
    absent: str | None = None,
) -> Store:
    """Code all rows, and write the codes as a packed store."""
    return write_code_store(store, code_chunks(store, model, workers, max_memory, absent), model, output)


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


def code_chunks(
    store: Store, model: Model, workers: Workers, max_memory: int | None = None, absent: str | None = None
) -> Iterator[BitMatrix]:
    """Code all rows, and yield their codes in chunks of rows."""
    return _map_chunks(Model.codes, store, model, workers, max_memory, absent)


def codes_in_memory(
    store: Store, model: Model, workers: Workers, max_memory: int | None = None, absent: str | None = None
) -> BitMatrix:
    """Code all rows, and return their codes, packed."""
    return collect_codes(store, code_chunks(store, model, workers, max_memory, absent), model)


def collect_codes(store: Store, chunks: Iterable[BitMatrix], model: Model) -> BitMatrix:
    """Return the codes of all rows, packed, from their chunks."""
    n_atoms = model.atoms.n_rows
    words = np.empty((store.n_rows, -(-n_atoms // 64)), np.uint64)
    start = 0
    for codes in chunks:
        words[start : start + len(codes)] = codes.words
        start += len(codes)
    return BitMatrix.from_words(words, n_atoms, check=False)


def dense_bytes(store: Store, model: Model) -> int:
    """Return the size of the codes of all rows as an array of uint8."""
    return store.n_rows * model.atoms.n_rows


def score_samples(
    store: Store, model: Model, workers: Workers, max_memory: int | None = None, absent: str | None = None
) -> NDArray[np.float64]:
    """Return minus the bits of each row."""
    return _collected(_map_chunks(scores_of, store, model, workers, max_memory, absent), np.empty(store.n_rows))


def soft_codes(
    store: Store, model: Model, workers: Workers, max_memory: int | None = None, absent: str | None = None
) -> NDArray[np.float64]:
    """Return the bits that each atom saves in each row; raise if they do not fit into memory."""
    needed = 8 * dense_bytes(store, model)
    if max_memory is not None and needed > max_memory:
        raise InputError(
            f"the soft codes of {store.n_rows} samples take {needed} bytes, more than ",
            Parameter("max_memory", max_memory),
            "; code fewer rows at a time",
        )
    soft = np.empty((store.n_rows, model.atoms.n_rows))
    return _collected(_map_chunks(soft_codes_of, store, model, workers, max_memory, absent), soft)


def recommended_chunks(
    store: Store, model: Model, n: int, workers: Workers, max_memory: int | None = None, absent: str | None = None
) -> Iterator[Recommended]:
    """Yield the recommendations for all rows in chunks of rows."""
    return _map_chunks(partial(_recommended, n), store, model, workers, max_memory, absent)


def _recommended(n: int, model: Model, data: Bits, workers: Workers) -> Recommended:
    return recommend(model, data, n, workers)


def scored_chunks(
    store: Store, model: Model, workers: Workers, max_memory: int | None = None, absent: str | None = None
) -> Iterator[ScoredRows]:
    """Yield all rows with the bits that they take, in chunks of rows."""
    start = 0
    for chunk in _map_chunks(score_rows, store, model, workers, max_memory, absent):
        yield chunk._replace(indices=chunk.indices + start)
        start += len(chunk.bits)


def matched_chunks(
    store: Store, model: Model, workers: Workers, max_memory: int | None = None, absent: str | None = None
) -> Iterator[Bits]:
    """Yield all rows with the columns of the model, in chunks of rows."""
    match, size, chunks = _matched(store, model, workers, max_memory, absent)
    return map(match.gather, chunks(size))


def scores_of(model: Model, data: Bits, workers: Workers) -> NDArray[np.float64]:
    """Return minus the bits of each row."""
    return -model.row_bits(data, model.codes(data, workers), workers)


def soft_codes_of(model: Model, data: Bits, workers: Workers) -> NDArray[np.float64]:
    """Return the bits that each atom saves in each row."""
    return model.soft_codes(data, model.codes(data, workers), workers)


def _collected(chunks: Iterable[NDArray[np.float64]], out: NDArray[np.float64]) -> NDArray[np.float64]:
    """Copy chunks of rows into an array of all rows, and return it."""
    start = 0
    for chunk in chunks:
        out[start : start + len(chunk)] = chunk
        start += len(chunk)
    return out


def _map_chunks(
    function: Callable[[Model, Bits, Workers], Result],
    store: Store,
    model: Model,
    workers: Workers,
    max_memory: int | None,
    absent: str | None,
) -> Iterator[Result]:
    """Yield a function of each chunk of rows; columns are matched before the first."""
    match, size, chunks = _matched(store, model, workers, max_memory, absent)
    return workers.map_stream(lambda own, data: function(model, match.gather(data), own), chunks(size))


def _matched(
    store: Store, model: Model, workers: Workers, max_memory: int | None, absent: str | None
) -> tuple[ColumnMatch, int, Callable[[int], Iterator[Bits]]]:
    """Return how columns are matched, the rows of a chunk, and what yields chunks of this size."""
    match = match_columns(model.header, store.header, absent, store.path.name)
    match.warn_differences(store.path.name)
    fills_unknown = bool(match.absent) and match.fill == "unknown"
    chunks: Callable[[int], Iterator[Bits]]
    if store.n_ones is not None and not fills_unknown:
        width, chunks = model.n_coded_columns, store.stored_chunks
    else:
        # Chunks whose columns are gathered are in memory twice.
        width, chunks = model.atoms.n_cols + (0 if match.indices is None else store.n_features), store.chunks
    budget = memory_budget(store, max_memory, workers, width)
    if fills_unknown:
        budget = replace(budget, has_unknown=True)
    size = workers.chunk_rows or budget.chunk_rows(
        model.atoms.n_rows, counts_votes=False, largest_group=model.pass_spec.largest_group
    )
    return match, size, chunks
