"""Packed stores on the command line: made of any table, learned from and coded a piece at a time, never read whole."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

from ..api import factorize, learn_from
from ..bits import BitMatrix
from ..core.model import Model
from ..core.result import CountsResult, Factorization
from ..io.errors import FileError
from ..io.formats import infer_format
from ..io.model_file import CELL_OPTIONS
from ..io.stream import Source
from ..parallel import Workers, count_threads
from ..rows import dispatch
from ..rows.budget import checked
from ..rows.packing import pack
from ..rows.passes import PassResult
from ..rows.store import Store, check_memory
from ..rows.store_transform import code_store, codes_in_memory
from ..rows.subsample import auto_sample
from ..search.params import SEARCH_PARAMS, resolve
from ..table import Table
from .console import Line, Progress, doing, names_in_words, say, say_json, size_in_words
from .files import check_named, check_writable, quoted, said_of, spelled, spooled, title_of, write_table
from .options import STANDARD

_NAME_BYTES = 100  # about what the name of a row takes in memory


class Running(NamedTuple):
    """How to learn, as far as it does not change what is found."""

    jobs: int = -1
    max_memory: str | None = None
    checkpoint: Path | None = None
    resume: bool = False

    @property
    def limit(self) -> int:
        """Bytes that work on a store may take."""
        return checked(self.max_memory)

    @property
    def workers(self) -> Workers:
        """Threads that do it."""
        return Workers(count_threads(self.jobs))


class Watched(Store):
    """A store that tells how many of its rows were gone through."""

    def __init__(self, path: str, told: Callable[[int], None]) -> None:
        super().__init__(path)
        self._told = told

    def pieces(self, n_rows: int | None = None, start: int = 0) -> Iterator[BitMatrix]:
        """The rows in their order, some at a time."""
        for data in super().pieces(n_rows, start):
            yield data
            start += len(data)
            self._told(start)


def as_packed(store: Store) -> dict[str, Any]:
    """The options that say what the cells meant when they were packed, for a model to remember."""
    options = store.about.get("options")
    given = options if isinstance(options, dict) else {}
    kept = {name: given[name] for name in CELL_OPTIONS if name in given and _is_meaning(name, given[name])}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in kept.items()}


def _is_meaning(name: str, value: Any) -> bool:
    """Whether an option that a store tells of can be what it says."""
    if name == "binarize":
        return isinstance(value, float) and math.isfinite(value)
    if name == "blocks":
        return isinstance(value, list) and len(value) == 2 and all(type(side) is int and side > 0 for side in value)
    return isinstance(value, str) and value == {"missing": "zero", "duplicates": "number"}.get(name, value)


def in_words(store: Store) -> str:
    """What a store holds, as it says without being read."""
    return f"{size_in_words(store.shape)}, packed, {names_in_words(store.has_row_names, store.columns)}"


def about(store: Store) -> dict[str, Any]:
    """What a store holds, for machines."""
    return {
        "rows": store.n_rows,
        "columns": store.n_features,
        "row_names": store.has_row_names,
        "column_names": store.columns is not None,
        "bytes": size_on_disk(store),
        "about": store.about,
    }


def size_on_disk(store: Store) -> int:
    """Bytes of all files of a store."""
    return sum(
        os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(store.path) for name in names
    )


def searched_rows(n_rows: int, n_features: int, how: dict[str, Any]) -> int:
    """How many rows are searched: all, or those of a sample."""
    most = auto_sample(n_features) if how["sample_rows"] == "auto" else how["sample_rows"]
    return n_rows if most is None or how["search"] == "paper" else min(n_rows, most)


def check_fit(
    store: Store, data: Path, how: dict[str, Any], running: Running, codes: Path | None, report: Path | None
) -> None:
    """Before long work: refuse what cannot be done with a store as it is asked for."""
    if how["search"] == "paper":
        raise FileError(
            f'{data}: search="paper" needs all rows in memory, and those of a packed store are not; take '
            f'search="fast", or fit what bitatoms convert {quoted(data)} table.npz writes, if it fits'
        )
    check_codes(store, codes, 1, running)
    if report is not None:
        _check_report(store, data, running)
    n_searched = searched_rows(*store.shape, how)
    n_atoms = how["n_components"] if isinstance(how["n_components"], int) else None
    check_memory(store, running.workers, running.limit, n_searched, n_atoms)


def check_codes(store: Store, path: Path | None, n_atoms: int, running: Running, to: str | None = None) -> None:
    """Refuse codes of so many atoms that would have to be in memory to be written, and do not fit."""
    if path is None or _streams(path, to):
        return
    needed = len(store) * (-(-n_atoms // 64) * 8 + _NAME_BYTES * store.has_row_names)
    if needed > running.limit:
        where = "standard output" if path == STANDARD else path
        raise FileError(
            f"{where}: the codes of {len(store)} rows take {needed / 2**20:.0f} MiB on their way there, more than "
            f"max_memory={running.limit}; write them to a .zarr store"
        )


def _check_report(store: Store, data: Path, running: Running) -> None:
    """Refuse a report, for which a store is read into memory, where it takes more than half of what may be had."""
    needed = len(store) * -(-store.n_features // 64) * 8
    limit = "the memory of this machine" if running.max_memory is None else f"max_memory={running.limit}"
    fits = running.max_memory is None or 2 * needed <= running.limit
    try:
        if running.max_memory is None:
            Source(data, "zarr", str(data)).check_size(2 * len(store), store.n_features)
    except FileError:
        fits = False
    if not fits:
        raise FileError(
            f"{data}: a report needs the whole table in memory, {needed / 2**20:.0f} MiB packed, and that is more than "
            f"half of {limit}; leave --report out"
        )


def learn(store: Store, progress: Progress, how: dict[str, Any], running: Running) -> Factorization | CountsResult:
    """Learn from a store."""
    usual = {name: parameter.default for name, parameter in signature(factorize).parameters.items()}
    asked = usual | how | {"callbacks": progress}
    settings = resolve(**{name: asked[name] for name in SEARCH_PARAMS})
    folder, workers = running.checkpoint, running.workers
    with dispatch.open_rows(Watched(store.name, progress.rows), None, workers, running.limit, folder) as place:
        learned = learn_from(place.rows, settings, workers, how["random_state"], 0, folder, running.resume)
    return learned.result if isinstance(learned, PassResult) else learned


def write_codes(store: Store, model: Model, path: Path, to: str | None, running: Running, quiet: bool) -> Table | Store:
    """Write the codes of a store: piece by piece into another store, or as one table in another format."""
    check_codes(store, path, model.atoms.n_rows, running, to)
    with doing(f"Coding {store.path.name}", quiet) as status:
        line = Line(quiet, status, f"Coding {store.path.name}", len(store))
        watched = Watched(store.name, line.rows)
        if _streams(path, to):
            return code_store(watched, model, path, running.workers, running.limit)
        bits = codes_in_memory(watched, model, running.workers, running.limit)
    names = store.row_names()
    codes = Table(bits, None if names is None else tuple(names), model.atom_names)
    write_table(codes, path, to)
    return codes


def check_columns(store: Store, data: Path, model: Model) -> None:
    """Refuse a store whose columns are not those of the model, in their order."""
    ours, theirs = model.columns, store.columns
    if ours is not None and theirs is not None and ours != theirs and sorted(ours) == sorted(theirs):
        raise FileError(
            f"{data}: its columns are in another order than those of the model, and a packed store is not put in "
            f"order on its way; take what bitatoms convert {quoted(data)} table.npz writes, if it fits into memory"
        )
    try:
        model.check(Table(BitMatrix.zeros(0, store.n_features), columns=theirs))
    except ValueError as error:
        raise FileError(f"{data.name}: {error}") from error


def _streams(path: Path, to: str | None) -> bool:
    """Whether a table that is written there goes out a piece at a time."""
    return path != STANDARD and infer_format(path, to, writing=True) == "zarr"


def pack_table(source: Path, output: Path, quiet: bool, json: bool, reading: dict[str, Any]) -> str | None:
    """Write a table as a packed store; returns what there is to say when Ctrl-C ended it early, but not too early."""
    check_named(output, "a store")
    check_writable(output, read=(source,))
    if output.suffix.lower() != ".zarr":
        raise FileError(f"{output}: a packed store is a folder; give it the ending .zarr")
    if reading["tile"] is not None:
        raise FileError(f"{output}: say tile= when it is learned from; leave it out")
    store = _packed(source, output, reading, quiet or json)
    if quiet and not json:
        return None
    try:
        n_ones = _count_ones(store, json)
    except KeyboardInterrupt:
        return f"interrupted; {output} was written, and not yet read back to count its ones"
    if json:
        say_json({**about(store), "ones": n_ones})
    else:
        share = n_ones / max(1, math.prod(store.shape))
        say(f"{output}: {in_words(store)}, {share:.2%} ones, {_size(size_on_disk(store))} on disk")
        say(f"Next: bitatoms fit {quoted(output)} -o model.npz")
    return None


def _packed(source: Path, output: Path, reading: dict[str, Any], quiet: bool) -> Store:
    """The packed store of a file, or of the standard input."""
    format, what = reading["format"], f"Packing {title_of(source)}"
    how = {name: value for name, value in reading.items() if name not in ("format", "tile")}
    how["without"] = how["without"] or ()
    with spooled(source, format) as file, said_of(source, file), doing(what, quiet) as status:
        return pack(file, output, format=format, callback=Line(quiet, status, what).rows, **how)


def _count_ones(store: Store, quiet: bool) -> int:
    """How many ones a store has, by reading it back, which shows as well that this can be done."""
    what = f"Reading {store.path.name} back"
    with doing(what, quiet) as status:
        watched = Watched(store.name, Line(quiet, status, what, store.n_rows).rows)
        return sum(bits.count() for bits in watched.pieces())


def show_store(store: Store, wanted: list[Path], json: bool) -> None:
    """Say what a packed store holds, without reading its rows."""
    if wanted:
        raise FileError(
            f"{store.name}: this is a packed store, no model; 'bitatoms fit {store.name} -o MODEL.npz' makes one of it"
        )
    if json:
        say_json(about(store))
        return
    say(f"{store.name}: {in_words(store)}, {_size(size_on_disk(store))} on disk")
    options = as_packed(store)
    if store.about.get("source"):
        say(f"packed from {store.about['source']}{f', read with{spelled(options)}' if options else ''}")


def _size(n_bytes: int) -> str:
    """A number of bytes as people say it."""
    power = min(3, max(0, len(str(n_bytes)) - 1) // 3)
    return f"{n_bytes / 1000**power:.4g} {('bytes', 'kB', 'MB', 'GB')[power]}"
