"""Tables in and out on the command line, where - is the standard input or output."""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..io.errors import FileError
from ..io.formats import FORMATS, format_of
from ..io.modelfile import MEANING
from ..io.tables import read, write
from ..table import Picture, Table
from .options import STANDARD

_REMEMBERED_FOR = {"layer": ("h5ad", "zarr"), "blocks": ("pbm",)}  # other formats have no use for these
_NOT_ONE_FILE = ("bed", "zarr")  # several files, or a folder: these have no place in a stream


def read_table(path: Path, reading: dict[str, Any]) -> Table:
    """The table that a file, or the standard input, holds."""
    tile = reading["tile"]
    how = {name: value for name, value in reading.items() if name != "tile"}
    how["without"] = how["without"] or ()
    with _spooled(path, how["format"]) as file:
        try:
            table = read(file, **how)
        except FileError as error:
            if file == path:
                raise
            raise FileError(str(error).replace(str(file), called(path), 1)) from error
    return table if tile is None else Table(table.bits, table.rows, table.columns, Picture(tile))


def called(path: Path) -> str:
    """What a file that is read is called in messages."""
    return "standard input" if path == STANDARD else str(path)


def meaning(reading: dict[str, Any]) -> dict[str, Any]:
    """The options that a model remembers, for data to come are to be read as those it was learned from."""
    return {name: reading[name] for name in MEANING if reading[name] not in (None, "refuse")}


def as_learned(path: Path, reading: dict[str, Any], remembered: dict[str, Any]) -> dict[str, Any]:
    """The options that a model remembers, where others are not given and the format has use for them."""
    format = "csv" if path == STANDARD and reading["format"] is None else format_of(path, reading["format"])
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
def _spooled(path: Path, format: str | None) -> Iterator[Path]:
    """The file itself; of the standard input, or a pipe, a copy in a file, for readers may have to go back in it."""
    if path != STANDARD and not path.is_fifo():
        yield path
        return
    format = format or "csv"
    if format in _NOT_ONE_FILE:
        raise FileError(f"{called(path)}: {FORMATS[format].what} cannot come through it; name the file")
    with tempfile.TemporaryDirectory(prefix="bitatoms-") as folder:
        copy = Path(folder) / f"input{FORMATS[format].endings[0]}"
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
        raise FileError(f"standard output: {FORMATS[format].what} cannot go through it; name a file")
    with tempfile.TemporaryDirectory(prefix="bitatoms-") as folder:
        made = Path(folder) / f"output{FORMATS[format].endings[0]}"
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
            format_of(path, writing=True)
