"""Names in files: of numbered columns, a number and a name per line (`--names items.csv`), and several in one cell."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ...columns.variables import parse_number
from ...errors import warn
from ...formatting import counted, listed_names, quoted
from ..options import ReadOptions
from ..stream import Source, TableStream
from ..text import TextRows

_AMBIGUOUS = re.compile(r'^["\s]|[;\r\n]|\s$')  # a name that is quoted among others


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
    first = 0 if 0 in name_of else 1
    numbers = stream.columns or [str(number) for number in range(first, stream.n_cols + first)]
    found = [name_of.get(int(number)) if _is_number(number) else None for number in numbers]
    lacking = [number for number, name in zip(numbers, found, strict=True) if name is None]
    if numbers and len(lacking) == len(numbers):
        listed = listed_names(sorted(name_of))
        raise source.error(f"none of its columns ({listed_names(numbers)}) is a number in {file}: {listed}")
    if lacking:
        columns = f"{counted(len(lacking), 'column')} {'keeps its' if len(lacking) == 1 else 'keep their'} own name"
        warn(f"{source.name}: {columns}, because {file} has none: {listed_names(lacking)}")
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
    source.check_path()
    names: dict[int, str] = {}
    is_first = True
    for line, cells in TextRows(source, ReadOptions()):
        text, name = (cell.strip() for cell in (*cells, "", "")[:2])
        number = parse_number(text)
        is_header, is_first = is_first and number is None, is_first and not cells
        if not cells or is_header:
            continue
        if number is None or number < 0 or not number.is_integer() or not name:
            found = ", ".join(map(quoted, cells[:2]))
            raise source.error(f"line {line} contains {found}; expected a number and a name, separated by a comma")
        if names.setdefault(int(number), name) != name:
            both = f"{quoted(names[int(number)])} and {quoted(name)}"
            raise source.error(f"line {line}: the number {int(number)} has two names, {both}; delete one of them")
    if not names:
        raise source.error("it contains no names")
    return names


def join_names(names: Iterable[str]) -> str:
    """Return names separated by ``; ``; one with a semicolon is quoted, as cells of CSV files are.

    Examples
    --------
    >>> print(join_names(["milk", "tea; green", "jam"]))
    milk; "tea; green"; jam
    """
    return "; ".join(f'"{name.replace(chr(34), 2 * chr(34))}"' if _AMBIGUOUS.search(name) else name for name in names)


def split_names(text: str) -> tuple[str, ...]:
    """Return the names that `join_names` has joined; blanks around them, and names that are blank, are ignored.

    Raises
    ------
    ValueError
        Quotes do not match.

    Examples
    --------
    >>> split_names('milk; "tea; green";jam')
    ('milk', 'tea; green', 'jam')
    """
    try:
        (names,) = csv.reader([text], delimiter=";", skipinitialspace=True, strict=True) if text.strip() else ([],)
    except (csv.Error, ValueError):
        raise ValueError(f"quotes do not match in {quoted(text)}; write a name with a semicolon in quotes") from None
    return tuple(stripped for name in names if (stripped := name.strip()))
