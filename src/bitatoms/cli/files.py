"""Tables in and out on the command line, where - is the standard input or output."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..core.model import Model
from ..io import model_file
from ..io.api import StreamingSource, open_table, read, write
from ..io.atomic import is_zarr_store, write_error
from ..io.errors import FileError
from ..io.formats import FORMATS, infer_format
from ..io.packed_store import METADATA_KEY, TABLE_FORMAT
from ..io.stream import ReadOptions
from ..rows.store import Store
from ..table import Names, Picture, Table, check_picture
from .console import doing, note
from .options import STANDARD

_REMEMBERED_FOR = {"layer": ("h5ad", "zarr"), "blocks": ("pbm",)}  # other formats have no use for these
_NOT_ONE_FILE = ("bed", "zarr")  # several files, or a folder: these have no place in a stream


def read_table(path: Path, reading: dict[str, Any]) -> Table:
    """The table that a file, or the standard input, holds."""
    tile = reading["tile"]
    how = {name: value for name, value in reading.items() if name != "tile"}
    how["without"] = how["without"] or ()
    with spooled(path, how["format"]) as file, said_of(path, file):
        table = read(file, **how)
    return table if tile is None else Table(table.bits, table.row_names, table.columns, Picture(tile))


def called(path: Path) -> str:
    """What a file that is read is called in messages."""
    return "standard input" if path == STANDARD else str(path)


def meaning(reading: dict[str, Any]) -> dict[str, Any]:
    """The options that a model remembers, for data to come are to be read as those it was learned from."""
    return {name: reading[name] for name in model_file.CELL_OPTIONS if reading[name] not in (None, "refuse")}


def as_learned(path: Path, reading: dict[str, Any], remembered: dict[str, Any]) -> dict[str, Any]:
    """The options that a model remembers, where others are not given and the format has use for them."""
    format = "csv" if path == STANDARD and reading["format"] is None else infer_format(path, reading["format"])
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in remembered.items()
        if reading[name] in (None, "refuse") and format in _REMEMBERED_FOR.get(name, (format,))
    }


def quoted(path: Path) -> str:
    """A path as it is written on the command line."""
    text = str(path)
    return shlex.quote(f"./{text}" if text.startswith("-") else text)


def spelled(reading: dict[str, Any]) -> str:
    """Options of reading as they are written on the command line, each with a blank before it."""
    words = []
    for name, value in reading.items():
        option = name.replace("_", "-")
        if value is True or value is False:
            words.append(f"--{'' if value else 'no-'}{option}")
        elif name == "without":
            words += [f"--without {shlex.quote(column)}" for column in value or ()]
        elif value not in (None, "refuse"):
            text = "x".join(map(str, value)) if isinstance(value, tuple) else str(value)
            words.append(f"--{option} {shlex.quote(text)}")
    return "".join(f" {word}" for word in words)


@contextmanager
def said_of(path: Path, file: Path) -> Iterator[None]:
    """What is wrong with the copy of a file is said of the file itself."""
    try:
        yield
    except FileError as error:
        if file == path:
            raise
        raise FileError(str(error).replace(str(file), called(path), 1)) from error


@contextmanager
def spooled(path: Path, format: str | None) -> Iterator[Path]:
    """The file itself; of the standard input, or a pipe, a copy in a file, for readers may have to go back in it."""
    if path != STANDARD and not path.is_fifo():
        yield path
        return
    format = format or "csv"
    if format in _NOT_ONE_FILE:
        raise FileError(f"{called(path)}: {FORMATS[format].description} cannot come through it; name the file")
    with tempfile.TemporaryDirectory(prefix="bitatoms-") as folder:
        copy = Path(folder) / f"input{FORMATS[format].extensions[0]}"
        with open(copy, "wb") as file:
            if path == STANDARD:
                shutil.copyfileobj(sys.stdin.buffer, file)
            else:
                with open(path, "rb") as pipe:
                    shutil.copyfileobj(pipe, file)
        yield copy


def write_table(table: Table, path: Path, format: str | None) -> None:
    """Write a table to a file, or to the standard output, by default as CSV."""
    if path != STANDARD:
        write(table, path, format)
        return
    format = format or "csv"
    if format in _NOT_ONE_FILE:
        raise FileError(f"standard output: {FORMATS[format].description} cannot go through it; name a file")
    with tempfile.TemporaryDirectory(prefix="bitatoms-") as folder:
        made = Path(folder) / f"output{FORMATS[format].extensions[0]}"
        write(table, made, format)
        with open(made, "rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def check_writable(*paths: Path | None, read: tuple[Path | None, ...] = ()) -> None:
    """Before long work: refuse what could not be written at its end, or would take the place of what is read."""
    places = {path.resolve() for path in read if path is not None and path != STANDARD}
    for path in paths:
        if path is not None and (place := path if path == STANDARD else path.resolve()) in places:
            raise FileError(f"{path}: this is read, or written, by the same command; choose another name")
        elif path is not None:
            places.add(place)
        if path is not None and path != STANDARD:
            if not path.parent.is_dir():
                raise FileError(f"{path}: there is no folder {str(path.parent)!r}; make it first")
            if path.is_dir() and path.suffix != ".zarr":
                raise FileError(f"{path}: there is a folder of that name; choose another name")


def check_checkpoint(folder: Path | None, resume: bool, *others: Path | None) -> None:
    """Before long work: refuse a checkpoint that is no folder of its own, and one to go on from that is not named."""
    if folder is None:
        if resume:
            raise FileError("resume=True goes on from a checkpoint; say where it is, checkpoint=folder")
        return
    check_named(folder, "a checkpoint")
    if any(other is not None and other != STANDARD and other.resolve() == folder.resolve() for other in others):
        raise FileError(f"{folder}: this is read, or written, by the same command; choose another name")
    if not folder.parent.is_dir():
        raise FileError(f"{folder}: there is no folder {str(folder.parent)!r}; make it first")
    if folder.exists() and not folder.is_dir():
        raise FileError(f"{folder}: is a file, and a checkpoint is a folder; choose another name")
    if is_zarr_store(folder):
        raise FileError(f"{folder}: this is a Zarr store, and a checkpoint is a folder of its own; choose another name")


def check_folder(folder: Path, what: str) -> None:
    """Before long work: refuse a folder that cannot be written to, or made where there is none yet."""
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not there.is_dir():
        raise FileError(f"{folder}: {there} is a file, and {what} is written to a folder; choose another name")
    try:
        tempfile.TemporaryDirectory(prefix=".bitatoms-", dir=there).cleanup()
    except OSError as error:
        raise write_error(folder, error) from error


def check_named(path: Path | None, what: str) -> None:
    """Refuse the standard output for what is no table."""
    if path == STANDARD:
        raise FileError(f"standard output: {what} cannot go through it; name a file")


def check_report(path: Path | None) -> None:
    """Refuse an ending that promises something else than a page."""
    if path is not None and path.suffix.lower() not in (".html", ".htm"):
        raise FileError(f"{path}: the report is a page of HTML; give it the ending .html")


def check_format(*paths: Path | None) -> None:
    """Before long work: refuse an ending that stands for no format of tables."""
    for path in paths:
        if path is not None and path != STANDARD:
            infer_format(path, writing=True)


def is_packed(path: Path, format: str | None = None) -> bool:
    """Whether a path stands for a packed store; all else is read."""
    if path == STANDARD or format not in (None, "zarr") or not is_zarr_store(path):
        return False
    try:
        about = json.loads((path / "zarr.json").read_bytes())["attributes"][METADATA_KEY]
    except (OSError, ValueError, LookupError, TypeError):  # the reader says what is wrong with it
        return False
    return isinstance(about, dict) and about.get("format") == TABLE_FORMAT


def packed_store(path: Path, reading: dict[str, Any]) -> Store | None:
    """The packed store that a path stands for, None for all else."""
    if not is_packed(path, reading["format"]):
        return None
    store = Store(path)
    _check_options(path, reading)
    if reading["tile"] is not None:
        store.picture = check_picture(Picture(reading["tile"]), store.shape)
    return store


def _check_options(path: Path, reading: dict[str, Any]) -> None:
    """Refuse options of reading that a packed store has no use for."""
    how = {name: value for name, value in reading.items() if name not in ("format", "tile")}
    threshold, without = how["binarize"], how["without"] or ()
    if without:
        raise FileError(f"{path}: columns are left out when a store is packed, by bitatoms pack; leave without= out")
    if threshold is not None and not 0 <= threshold < 1:
        raise FileError(f"{path}: a packed store has only ones and zeros; leave binarize= out")
    open_table(StreamingSource(path, "zarr", str(path)), ReadOptions(**how | {"without": ()}))


def both(path: Path, data: Path, reading: dict[str, Any], quiet: bool) -> tuple[Model, Table]:
    """A model, and a table that is read, where nothing else is said, as the one it was learned from."""
    model, _, remembered = loaded(path)
    packed = is_packed(data, reading["format"])  # what its cells mean was said when they were packed
    added = {} if packed else as_learned(data, reading, remembered)
    if added and not quiet:
        note(f"{title_of(data)} is read as the data of the model were:{spelled(added)}")
    table = read_telling(data, reading | added, quiet)
    if model.columns is not None and table.columns is not None and table.columns != model.columns:
        table = _in_order(model.columns, table, data, quiet)
    try:
        model.check(table)
    except ValueError as error:
        raise FileError(f"{title_of(data)}: {error}") from error
    return model, table


def loaded(path: Path) -> model_file.LoadedModel:
    """What a model file holds."""
    if path == STANDARD:
        raise FileError("standard input: a model cannot come through it; name the file")
    return model_file.load(path)


def _in_order(columns: Names, table: Table, data: Path, quiet: bool) -> Table:
    """The table with its columns in this order, if they are the same; else as it is."""
    place = {name: number for number, name in enumerate(table.columns or ())}
    if len(columns) != len(place) or any(name not in place for name in columns):
        return table
    if not quiet:
        note(
            f"the columns of {title_of(data)} are in another order than those of the model, and are put into its order"
        )
    return Table(table.bits.T[[place[name] for name in columns]].T, table.row_names, columns)


def read_telling(data: Path, reading: dict[str, Any], quiet: bool) -> Table:
    """The table of a file; that of a large one takes a while."""
    with doing(f"Reading {title_of(data)}", quiet):
        return read_table(data, reading)


def title_of(data: Path) -> str:
    """What a table is called."""
    return "standard input" if data == STANDARD else data.name
