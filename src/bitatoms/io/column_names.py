"""Names of numbered columns, from a file with a number and a name per line: `--names items.csv`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..columns.variables import parse_number
from ..errors import warn
from ..formatting import listed_names, quoted
from .options import ReadOptions
from .stream import Source, TableStream
from .text import TextRows


def named_columns(
    source: Source, stream: TableStream, names: str | os.PathLike[str] | Mapping[int, str]
) -> Sequence[str]:
    """Return the names of the columns of a stream by their numbers; those without a name keep their number.

    Parameters
    ----------
    source : Source
        The file of the table.
    stream : TableStream
        Its columns are named by numbers, or have no names. These are numbered from 0 if a number 0 has a name, and
        otherwise from 1.
    names : str or mapping of int to str
        A file with a number and a name per line, or both for each number.
    """
    file = "names" if isinstance(names, Mapping) else str(names)
    name_of = names if isinstance(names, Mapping) else read_names(file)
    numbers: Sequence[str] = (
        [str(index) for index in range(0 not in name_of, stream.n_cols + (0 not in name_of))]
        if stream.columns is None
        else stream.columns
    )
    found = [name_of.get(int(number)) if _is_number(number) else None for number in numbers]
    lacking = tuple(number for number, name in zip(numbers, found, strict=True) if name is None)
    if numbers and len(lacking) == len(numbers):
        listed = listed_names(tuple(map(str, sorted(name_of))))
        raise source.error(f"none of its columns ({listed_names(tuple(numbers))}) is a number in {file}: {listed}")
    if lacking:
        columns = "1 column keeps its" if len(lacking) == 1 else f"{len(lacking)} columns keep their"
        warn(f"{source.name}: {columns} own name, because {file} has none: {listed_names(lacking)}")
    return [number if name is None else name for number, name in zip(numbers, found, strict=True)]


def _is_number(name: str) -> bool:
    """Return whether the name of a column is a non-negative integer."""
    return name.isascii() and name.isdecimal() and len(name) < 19


def read_names(path: str) -> dict[int, str]:
    """Return the name of each number in a file; its first line may be a header, and further cells are ignored.

    Raises
    ------
    FileError
        If a line has no number or no name, or a number has two names.
    """
    source = Source(Path(path), "tsv" if path.lower().endswith((".tsv", ".tab")) else "csv", path)
    if not source.path.is_file():
        raise source.error("there is no such file")
    names: dict[int, str] = {}
    for line, number, name in _numbered(source):
        if names.setdefault(number, name) != name:
            both = f"{quoted(names[number])} and {quoted(name)}"
            raise source.error(f"line {line}: the number {number} has two names, {both}; delete one of them")
    if not names:
        raise source.error("it contains no names")
    return names


def _numbered(source: Source) -> Iterator[tuple[int, int, str]]:
    """Yield the number of each line, the number in it and the name."""
    for index, (line, cells) in enumerate(record for record in TextRows(source, ReadOptions()) if record[1]):
        number, name = (cell.strip() for cell in (*cells, "", "")[:2])
        value = parse_number(number)
        if index == 0 and value is None:
            continue  # a header
        if value is None or value < 0 or not value.is_integer() or not name:
            found = ", ".join(map(quoted, cells[:2]))
            raise source.error(f"line {line} contains {found}; expected a number and a name, separated by a comma")
        yield line, int(value), name
