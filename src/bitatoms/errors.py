"""Errors that carry data, and are formatted where they are shown.

A message may name parameters to set. Python spells one ``missing="zero"``, the command line ``--missing zero``: the
error holds a `Parameter`, and the code that shows the error chooses the spelling.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

from .formatting import quoted


class Parameter(NamedTuple):
    """A parameter that a message names, with the value to give it where there is one.

    If it ``reads_file``, the message tells to read the file with it; on the command line, by the complete command.
    """

    name: str
    value: Any = None
    reads_file: bool = False


Spelling = Callable[[Parameter], str]


def in_python(parameter: Parameter) -> str:
    """Spell a parameter as a keyword argument: ``missing="zero"``, or ``max_time`` where no value is given."""
    if parameter.value is None:
        return parameter.name
    value = f'"{parameter.value}"' if isinstance(parameter.value, str) else repr(parameter.value)
    argument = f"{parameter.name}={value}"
    return f"read it with {argument}" if parameter.reads_file else argument


class Message(Exception):
    """Mixin of errors and warnings whose arguments are text and parameters, joined when shown."""

    args: tuple[Any, ...]

    def describe(self, spell: Spelling = in_python) -> str:
        """Return the message, its parameters spelled as in Python or by the function given."""
        return "".join(spell(part) if isinstance(part, Parameter) else str(part) for part in self.args)

    def __str__(self) -> str:
        return self.describe()


class InputError(Message, ValueError):
    """Something that the user passed cannot be used; the message states what, where, and how to fix it.

    Examples
    --------
    >>> error = InputError("a value is missing; pass ", Parameter("missing", "zero"), " to read it as 0")
    >>> print(error)
    a value is missing; pass missing="zero" to read it as 0
    >>> error.describe(lambda parameter: f"--{parameter.name} {parameter.value}")
    'a value is missing; pass --missing zero to read it as 0'
    """


class InputWarning(Message, UserWarning):
    """Something that the user passed is used, but probably not as meant."""


class NoAtomsWarning(InputWarning):
    """No atom makes the description of a table shorter: the model has none."""


def first_line(error: BaseException) -> str:
    """Return the message of an error in one line, without lines that only draw a rule; its type if it has none."""
    lines = (line.strip() for line in str(error).splitlines() if line.strip(" ="))
    return next(lines, type(error).__name__)


def warn(*message: str | Parameter) -> None:
    """Issue an InputWarning at the line that called the package, directly or through scikit-learn's wrappers."""
    package, wrappers = str(Path(__file__).parent), os.path.join("site-packages", "sklearn")
    depth = 1
    while (name := sys._getframe(depth).f_code.co_filename).startswith(package) or wrappers in name:
        depth += 1
    warnings.warn(InputWarning(*message), stacklevel=depth + 1)


@dataclass(frozen=True)
class Cell:
    """A cell that cannot become a bit: where it is, what it holds, and how many such cells there are."""

    row: int
    column: int
    problem: str  # what it holds, as a noun phrase: "a missing value (NaN)", "2", "text ('a')"
    count: int = 1
    name: str | None = None  # of the column


class InvalidCell(InputError):
    """A table contains a cell that is neither 0 nor 1; ``cell`` is the first one.

    Parameters
    ----------
    table : str
        What messages call the table.
    cell : Cell
        The first such cell.
    statement : str
        What is wrong, with ``{problem}``, ``{where}`` and ``{count}`` in the place of the cell's fields.
    hint : str and Parameter, any number
        How to fix it.
    """

    def __init__(self, table: str, cell: Cell, statement: str, *hint: str | Parameter) -> None:
        self.table, self.cell, self.statement, self.hint = table, cell, statement, hint
        where = f"at row {cell.row}, column {cell.column}" + ("" if cell.name is None else f" ({quoted(cell.name)})")
        text = statement.format(problem=cell.problem, where=where, count=cell.count)
        super().__init__(f"{table} {text}; ", *hint)

    def __reduce__(self) -> Any:
        return type(self), (self.table, self.cell, self.statement, *self.hint)

    def with_cell(self, **changes: Any) -> Self:
        """Return the same error about a cell with another ``row``, ``count`` or ``name``."""
        return type(self)(self.table, replace(self.cell, **changes), self.statement, *self.hint)

    def shifted(self, n_rows: int) -> Self:
        """Return the same error for a table that has this many more rows before these."""
        return self.with_cell(row=self.cell.row + n_rows)


@contextmanager
def named_columns(names: Sequence[str] | None) -> Iterator[None]:
    """Add the name of the column to an error about a cell of a table whose columns have these names."""
    try:
        yield
    except InvalidCell as error:
        if names is None:
            raise
        raise error.with_cell(name=names[error.cell.column]) from error.__cause__


class MissingCell(InvalidCell):
    """A table contains a missing or infinite value; ``cell.count`` is the number of such cells."""

    def __init__(
        self, table: str, cell: Cell, statement: str = "contains {problem} {where} ({count} in all)",
        *hint: str | Parameter,
    ) -> None:  # fmt: skip
        super().__init__(table, cell, statement, *(hint or ("fill or drop such values first",)))


class InvalidCellType(InvalidCell, TypeError):
    """A table contains an object that cannot be converted to a number."""


class InternalError(RuntimeError):
    """A result is not what was asked for. It is not returned; this is a defect of bitatoms."""

    def __str__(self) -> str:
        return f"internal error: {self.args[0]}. The result was discarded; please report this with the parameters."
