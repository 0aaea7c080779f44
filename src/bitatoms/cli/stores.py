"""Packed stores, and rows that are either in a store or in memory."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..columns.table import Table
from ..errors import InputError, Parameter
from ..formatting import percent
from ..io.errors import FileError
from ..io.options import remembered
from ..io.stream import Source
from ..model.model import Model
from ..parallel import Workers
from ..rows.budget import coding_rows, given_memory_limit, parse_memory_limit
from ..rows.store import Store, check_memory, memory_budget
from ..rows.store_transform import Result, RowFunction, StoreTransform, collect_codes, write_code_store
from ..search.options import FitOptions
from ..sparse_bits import Bits, is_smaller_sparse
from .files import load_model, load_model_and_table, open_packed, write_code_table
from .options import RunSettings
from .output import Display, as_arguments, print_json, print_line, quote_path, show_status
from .paths import NewRows, OutputTable
from .summary import describe_table

AnyBits = TypeVar("AnyBits", BitMatrix, Bits)

_EXPECTED_ATOMS = 256  # for which a suggested memory limit suffices
_NAME_BYTES = 100  # approximate size of the name of a row in memory
_COUNTED_BITS = 1 << 27  # of rows that are read back together
_ROWS_AT_A_TIME = 1 << 14  # of a table in memory


class ObservedStore(Store):
    """A store that reports how many of its rows have been read."""

    def __init__(self, store: Store, callback: Callable[[int], None]) -> None:
        super().__init__(store.name)
        self.picture = store.picture
        self._callback = callback

    def chunks(self, n_rows: int | None = None, start: int = 0) -> Iterator[BitMatrix]:
        """Iterate over the rows in chunks."""
        return self._observed(super().chunks(n_rows, start), start)

    def stored_chunks(self, n_rows: int | None = None, start: int = 0) -> Iterator[Bits]:
        """Iterate over the rows in chunks, as they are stored."""
        stored = super().stored_chunks(n_rows, start)
        return stored if self.n_ones is None else self._observed(stored, start)  # packed ones are observed already

    def _observed(self, chunks: Iterator[AnyBits], start: int) -> Iterator[AnyBits]:
        """Yield chunks, and report them."""
        for data in chunks:
            yield data
            start += len(data)
            self._callback(start)


def packing_options(store: Store) -> dict[str, Any]:
    """Return the options that decided the meaning of the cells when a store was packed."""
    options = store.about.get("options")
    try:  # a store is untrusted
        return remembered(options) if isinstance(options, dict) else {}
    except (InputError, TypeError, ValueError):
        return {}


def store_json(store: Store) -> dict[str, Any]:
    """Return the properties of a store, for ``--json``."""
    return {
        "rows": store.n_rows,
        "columns": store.n_features,
        "row_names": store.has_row_names,
        "column_names": store.columns is not None,
        "has_unknown": store.has_unknown,
        "sparse": store.n_ones is not None,
        "bytes": bytes_on_disk(store),
        "about": store.about,
    }


def bytes_on_disk(store: Store) -> int:
    """Return the total size of the files of a store."""
    return sum(
        os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(store.path) for name in names
    )


def check_fit(
    store: Store, search: FitOptions, run: RunSettings, codes: OutputTable | None = None, report: Path | None = None
) -> None:
    """Check before long work that a store can be searched as requested, and that codes and a report fit into memory."""
    if search.search == "paper":
        raise FileError(
            f"{store.name}: ", Parameter("search", "paper"), " needs all rows in memory; use ",
            Parameter("search", "fast"), "; or, if the table fits into memory, fit the output of "
            f"bitatoms convert {quote_path(Path(store.name))} table.npz",
        )  # fmt: skip
    check_codes(store, codes, 1, run)
    if report is not None:
        _check_report(store, run)
    n_atoms = search.n_components if isinstance(search.n_components, int) else None
    n_searched = 0  # by default, as many rows are searched as fit
    if run.max_memory is not None and search.search_rows != "auto":
        n_searched = len(store) if search.search_rows is None else min(len(store), search.search_rows)
    check_memory(store, run.workers(), run.memory_limit, n_searched, n_atoms)


def check_codes(store: Store, output: OutputTable | None, n_atoms: int, run: RunSettings) -> None:
    """Check that codes that are written from memory fit into it."""
    if output is None or output.format == "zarr":
        return
    needed = len(store) * (-(-n_atoms // 64) * 8 + _NAME_BYTES * store.has_row_names)
    if needed > run.memory_limit:
        raise FileError(
            f"{output.name}: writing the codes of {len(store)} rows takes {needed / 2**20:.0f} MiB of memory, "
            "more than ", Parameter("max_memory", run.memory_limit), "; write them to a .zarr store",
        )  # fmt: skip


def _check_report(store: Store, run: RunSettings) -> None:
    """Check that a store, which a report reads into memory, takes at most half of it."""
    needed = len(store) * -(-store.n_features // 64) * 8
    limit: Any = "the memory of this machine"
    if run.max_memory is not None:
        limit, fits = Parameter("max_memory", run.memory_limit), 2 * needed <= run.memory_limit
    else:
        fits = True
        try:
            Source(store.path, "zarr", store.name).check_size(2 * len(store), store.n_features)
        except FileError:
            fits = False
    if not fits:
        raise FileError(
            f"{store.name}: a report needs the entire table in memory, {needed / 2**20:.0f} MiB packed, which is more "
            "than half of ", limit, "; omit --report",
        )  # fmt: skip


@dataclass(frozen=True)
class ModelRows:
    """A model, and rows with its columns: a table in memory, or a packed store, which is read in chunks."""

    model: Model
    table: Table | Store
    how: RunSettings
    absent: str | None = None

    @classmethod
    def open(cls, rows: NewRows, how: RunSettings, quiet: bool) -> ModelRows:
        """Read the model and the table; a packed store is only opened."""
        store = open_packed(rows.data)
        model, table = load_model_and_table(rows, quiet) if store is None else (load_model(rows.model).model, store)
        return cls(model, table, how, rows.absent)

    @cached_property
    def workers(self) -> Workers:
        """The threads and the device to use."""
        return self.how.workers(None if isinstance(self.table, Store) else self.table.data)

    def transform(self, store: Store) -> StoreTransform:
        """Return what processes the rows of a store."""
        return StoreTransform(store, self.model, self.workers, self.how.memory_limit, self.absent)

    def map_chunks(self, function: RowFunction[Result]) -> Iterator[Result]:
        """Yield a function of the model, each chunk of rows, and workers."""
        if isinstance(self.table, Store):
            yield from self.transform(self.table).map_chunks(function)
            return
        workers, size = self.workers, min(_ROWS_AT_A_TIME, self.coded_together or _ROWS_AT_A_TIME)
        for start in range(0, len(self.table), size):
            yield function(self.model, self.table.data[start : start + size], workers)

    def chunks(self) -> Iterator[Bits]:
        """Yield all rows: those of a table in memory together, which is faster to count in."""
        return self.transform(self.table).chunks() if isinstance(self.table, Store) else iter([self.table.data])

    def names(self, start: int = 0, stop: int | None = None) -> Sequence[str] | None:
        """Return the names of some rows, None if rows have none."""
        given = self.table.row_names
        return given(start, stop) if callable(given) else None if given is None else given[start:stop]

    def row_names(self, start: int, stop: int) -> Sequence[str | int]:
        """Return the names of some rows, their indices if they have none."""
        names = self.names(start, stop)
        return range(start, stop) if names is None else names

    @property
    def in_memory(self) -> Table:
        """The table, which is not a store."""
        assert isinstance(self.table, Table)
        return self.table

    @property
    def coded_together(self) -> int | None:
        """The number of rows of a table in memory to code together, if there is a limit of memory."""
        return coding_rows(self.in_memory.data, self.model, given_memory_limit(self.how.max_memory))

    def codes(self) -> Table:
        """Return the codes of a table in memory, with names."""
        table = self.in_memory
        return self.named(self.model.codes(table.data, self.workers, self.coded_together), table.row_names)

    def soft_codes(self, codes: Table | None = None) -> NDArray[np.float64]:
        """Return the bits that each atom saves in each row, given the codes of a table in memory if they are known."""
        if isinstance(self.table, Store):
            return self.transform(self.table).soft_codes()
        bits = (self.codes() if codes is None else codes).bits
        return self.model.soft_codes(self.table.data, bits, self.workers, self.coded_together)

    def named(self, codes: BitMatrix, row_names: Sequence[str] | None) -> Table:
        """Return codes with the names of rows and atoms."""
        return Table(codes, row_names, self.model.atom_names, row_data=self.table.row_data)


def write_codes(
    rows: ModelRows, output: OutputTable, quiet: bool, fitted: Iterable[BitMatrix] | None = None
) -> Table | Store:
    """Write the codes of rows: those of a store in chunks to another store, others as one table.

    They are those of a fit, in chunks of rows, or, if these are not given, the rows are coded with the model.
    """
    store = rows.table
    if isinstance(store, Table):
        if fitted is None:
            codes = rows.codes()
        else:
            (bits,) = fitted
            codes = rows.named(bits, store.row_names)
        write_code_table(codes, output)
        return codes
    check_codes(store, output, rows.model.atoms.n_rows, rows.how)
    task = f"Coding {store.path.name}" if fitted is None else f"Writing the codes of {store.path.name}"
    with show_status(task, quiet, len(store)) as line:
        observed = ObservedStore(store, line.update_rows)
        chunks = rows.transform(observed).code_chunks() if fitted is None else fitted
        if output.format == "zarr":
            return write_code_store(store, chunks, rows.model, output.path)
        codes = rows.named(collect_codes(store, chunks, rows.model), store.row_names())
    write_code_table(codes, output)
    return codes


def fit_command(store: Store, n_ones: int | None = None) -> str:
    """Return the command that fits a store, with a memory limit if the default is too small for passes over it."""
    needed = memory_budget(store, None, RunSettings().workers()).needed(0, _EXPECTED_ATOMS)
    if n_ones is not None and not store.has_unknown and is_smaller_sparse(store.shape, n_ones):
        needed = 0  # all rows are searched, without passes over them
    limit = f" --max-memory {-(-needed // 2**20)}MiB" if needed > parse_memory_limit(None) else ""
    return f"bitatoms fit {quote_path(Path(store.name))} -o model.npz{limit}"


def count_ones(store: Store, quiet: bool) -> int:
    """Count the ones of a store by reading it back, which also shows that it can be read."""
    with show_status(f"Reading {store.path.name} back", quiet, store.n_rows) as line:
        observed = ObservedStore(store, line.update_rows)
        n_rows = max(1, _COUNTED_BITS // max(1, store.n_features))
        return sum(bits.count() for bits in observed.stored_chunks(n_rows))


def show_store(store: Store, is_written: bool, display: Display) -> None:
    """Describe a packed store without reading its rows."""
    if is_written:
        raise FileError(
            f"{store.name}: this is a packed store, not a model; this command writes one: {fit_command(store)}"
        )
    if display.json:
        print_json({**store_json(store), **({} if store.n_ones is None else {"ones": store.n_ones})})
        return
    if display.quiet:
        return
    print_stored(store, store.n_ones)
    options = packing_options(store)
    if store.about.get("source"):
        read_with = f", read with{as_arguments(options)}" if options else ""
        print_line(f"packed from {store.about['source']}{read_with}")


def print_stored(store: Store, n_ones: int | None) -> None:
    """Print the size of a store, in rows and on disk."""
    density = "" if n_ones is None else f", {percent(n_ones, math.prod(store.shape))} ones"
    n_bytes = bytes_on_disk(store)
    power = min(3, max(0, len(str(n_bytes)) - 1) // 3)
    size = f"{n_bytes / 1000**power:.4g} {('bytes', 'kB', 'MB', 'GB')[power]}"
    print_line(f"{store.name}: {describe_table(store)}{density}, {size} on disk")
