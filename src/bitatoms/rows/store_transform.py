"""The codes of all rows of a store by a model, computed while they are read: into another store, or into memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from .._version import __version__
from ..bits import BitMatrix
from ..core.block import Block
from ..core.model import Model
from ..core.pass_spec import coded_block
from ..io.atomic import atomic_write
from ..io.errors import FileError
from ..io.packed_store import PackedStoreWriter
from ..io.stream import RowChunk
from ..parallel import Workers
from ..table import Table
from .store import Store

Result = TypeVar("Result")


def code_store(
    store: Store, model: Model, output: str | os.PathLike[str], workers: Workers, max_memory: int | None = None
) -> Store:
    """Write the codes of all rows as a packed store, an atom a column, with the names of the rows."""
    if os.path.realpath(output) == os.path.realpath(store.path):
        raise FileError(f"{os.fspath(output)}: the rows are there; choose another name for their codes")
    about = {"source": store.path.name, "format": "codes", "options": {}, "bitatoms": __version__}
    coded = _each(store, model, workers, max_memory, _codes)
    with (
        atomic_write(Path(output)) as made,
        PackedStoreWriter(made, model.atoms.n_rows, model.atom_names, about=about) as written,
    ):
        for codes in coded:
            start = written.n_rows
            written.append(RowChunk(codes, store.row_names(start, start + len(codes))))
    return Store(output)


def codes_in_memory(store: Store, model: Model, workers: Workers, max_memory: int | None = None) -> BitMatrix:
    """The codes of all rows, packed."""
    n_atoms = model.atoms.n_rows
    words = np.empty((store.n_rows, -(-n_atoms // 64)), np.uint64)
    start = 0
    for codes in _each(store, model, workers, max_memory, _codes):
        words[start : start + len(codes)] = codes.words
        start += len(codes)
    return BitMatrix.from_words(words, n_atoms, check=False)


def dense_bytes(store: Store, model: Model) -> int:
    """Bytes that the codes of all rows take as an array of uint8."""
    return store.n_rows * model.atoms.n_rows


def row_bits(store: Store, model: Model, workers: Workers, max_memory: int | None = None) -> NDArray[np.float64]:
    """Minus the bits that each row takes."""

    def taken(block: Block) -> NDArray[np.float64]:
        return -model.row_bits(block.errors(), _codes(block))

    bits = np.empty(store.n_rows)
    start = 0
    for some in _each(store, model, workers, max_memory, taken):
        bits[start : start + len(some)] = some
        start += len(some)
    return bits


def _codes(block: Block) -> BitMatrix:
    return block.factors()[1]


def _each(
    store: Store, model: Model, workers: Workers, max_memory: int | None, result: Callable[[Block], Result]
) -> Iterator[Result]:
    """What is made of each piece of the rows, coded afresh; refused at once where the columns are others."""
    model.check(Table(BitMatrix.zeros(0, store.n_features), columns=store.columns))
    order, alone = model.pass_spec, Workers(1)
    size = workers.chunk_rows or store.memory(max_memory, workers).chunk_rows(model.atoms.n_rows)
    return workers.map_stream(lambda data: result(coded_block(data, None, order, alone)), store.pieces(size))
