"""The layout of a text table: what its rows and columns contain, decided once from the options and the first rows.

A text file or a sheet is a table of ones and zeros, a table of categories, a long table (each line names a row and one
of its items) or lists of items. Lists are detected where a file cannot be a table of ones and zeros and is hardly one
of categories either; the options select the other shapes. Files that may be of another shape get an error with advice.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ..columns.table import first_duplicate
from ..columns.variables import parse_number
from ..errors import Parameter, warn
from ..formatting import listed_names, quoted
from .cells import CellPosition, Cells, are_cells, is_text, state_of
from .errors import FileError
from .limits import HEAD_ROWS, MAX_LISTED_CELLS, TABLE_ROWS
from .options import ReadOptions
from .stream import Source, find_columns, unique_columns
from .text import TextRows, is_blank

Advice = tuple[str | Parameter, ...]  # a part of a message
Head = Sequence[Sequence[str]]  # the cells of the first rows that are not blank

_NUMBERED = r"(id|ids|no|nr|num|number|code|key|nummer)?"
# Names of columns, in the order in which they are preferred; letters and digits only.
_ROW_NAMES = (
    rf"(sales|purchase)?(order|invoice|transaction|trans|txn|basket|receipt|bill|ticket|cart|bestellung|bestell|beleg|"
    rf"rechnung|rechnungs|bon|warenkorb|commande|facture|pedido|factura|ordine){_NUMBERED}|tid|row",
    rf"(user|customer|client|member|account|visitor|household|person|employee|kunde|kunden){_NUMBERED}(name)?",
)
_ITEM_NAMES = (
    r"(item|product|article|good|artikel|produkt|produit|producto|articulo|prodotto|permission|entitlement|privilege)s?"
    r"(name|description|desc|title|bezeichnung)?|description",
    r"(item|product|article|stock|artikel|produkt|permission)(id|no|nr|num|number|code|key|nummer)|sku|ean|upc|asin",
)
_QUANTITY_NAMES = (
    r"(order|ordered|item|line|sold|sales|invoiced|product)?(quantity|quantities|qty|menge|anzahl|units|pieces|quantite|"
    r"quantité|cantidad|quantita|quantità)(ordered|sold|invoiced)?",
)
_IDENTIFIER = re.compile(r"(.*[\W_])?(?i:id|nr|no|number|index|key|row)\W?|.*[a-z](I[dD]|N[or]|Number|Index|Key)")
# Also numbers that readers refuse: with a decimal comma, with separators of thousands, in digits of other scripts.
_LIKE_NUMBER = re.compile(
    r"(?=[-+\u2212]?[.,]?\d)[-+\u2212]?(\d{1,3}([ .,'_]\d{3})+|\d*)([.,]\d*)?([eE][-+]?\d+)?\s?%?"
)
CATEGORY_NAMES = 0.5  # share of the cells of the header of a table of categories that look like names
_MANY_LINES = 4  # below a first line, from which it is taken for a header if it looks like one


@dataclass(frozen=True)
class Layout:
    """What the rows of a text file or a sheet contain.

    Attributes
    ----------
    shape : {"table", "categories", "long", "lists"}
        A table of ones and zeros or numbers, a table of categories, a long table, or lists of items.
    header : bool
        Whether the first row is a header.
    labels : list of str
        What columns are called: their names, or their numbers, counting from 1.
    row_names : int or None
        The column that names the rows.
    columns : list of int
        The columns of the table: its items, if it is long. In a list, the items begin in the first of these.
    quantity : int or None
        The column of the quantities of a long table.
    is_trailing : bool
        Whether each line ends with a separator, so that its last cell is empty.
    other_shape : tuple of str and Parameter
        How to read the file if it looks like a long table or lists of items.
    doubt : tuple of str and Parameter
        A note on a first column that may not be row names.
    """

    shape: Literal["table", "categories", "long", "lists"]
    header: bool
    labels: list[str] = field(default_factory=list)
    row_names: int | None = None
    columns: list[int] = field(default_factory=list)
    quantity: int | None = None
    is_trailing: bool = False
    other_shape: Advice = ()
    doubt: Advice = ()

    @classmethod
    def detect(
        cls, rows: TextRows, options: ReadOptions, known: Collection[str] | None = None, may_be_lists: bool = False
    ) -> Layout:
        """Detect the layout of a file from its first rows, which are not consumed.

        Parameters
        ----------
        rows : TextRows
            The rows of the file.
        options : ReadOptions
            The options of the user.
        known : collection of str, optional
            The variables of a model that reads a table of categories; another first column may name the rows.
        may_be_lists : bool, default=False
            Whether the file may be detected to contain lists of items.

        Raises
        ------
        FileError
            The file is empty, or it cannot have the layout that the options require.
        """
        source = rows.source
        if source.format == "baskets":
            return cls("lists", bool(options.header), columns=[int(bool(options.row_names))])
        is_long = options.long is not None or source.format == "pairs"
        is_compared = is_long or options.categories  # the first row with those below
        head = [row for row in rows.head(HEAD_ROWS if is_compared else TABLE_ROWS) if row[1]]
        filled = [cells for _, cells in head if not is_blank(cells)]
        if not (filled if is_compared else head):
            raise source.error(f"the file contains only blank {source.unit}s")
        if options.categories:
            return _categories(source, options, filled, known)
        if is_long:
            return _long(source, options, filled)
        if may_be_lists and _may_be_lists(filled):
            lists = _detect_lists([cells for _, cells in rows.head(HEAD_ROWS) if not is_blank(cells)])
            if lists is not None and options.header in (None, lists.header):
                return lists
        return _table(source, options, head, rows.has_marked_header())

    @property
    def column_labels(self) -> list[str]:
        """What the columns of the table are called."""
        return [self.labels[index] for index in self.columns]

    @property
    def names(self) -> list[str] | None:
        """The names of the columns of the table, None if the file has none."""
        return self.column_labels if self.header else None

    def rows_below(self, rows: TextRows, with_blank: bool = False) -> Iterator[tuple[int, list[str]]]:
        """Yield the numbers and cells of the rows below the header; raise FileError if one has another width."""
        found = (row for row in rows if (row[1] if with_blank else not is_blank(row[1])))
        for number, cells in itertools.islice(found, self.header, None):
            if len(cells) != len(self.labels):
                unit = rows.source.unit
                raise rows.source.error(f"{unit} {number} has {len(cells)} cells; expected {len(self.labels)}")
            yield number, cells

    def position_of(self, source: Source) -> Callable[[int, int], CellPosition]:
        """Return the positions of cells, from the number of a row and the index of a column of the table."""
        label = self.labels if self.header else range(1, len(self.labels) + 1)
        return lambda row, column: CellPosition(row, label[self.columns[column]], source.unit)


# Tables of ones and zeros.


def _table(source: Source, options: ReadOptions, head: list[tuple[int, list[str]]], is_marked: bool) -> Layout:
    """Return the layout of a table of ones and zeros or of numbers."""
    cells = Cells(source, options)
    head = [head[0], *([row for row in head[1:] if not is_blank(row[1])] or head[1:])]
    first = head[0][1]
    other_shape = _suggest_shape(cells, [row for _, row in head])
    header = options.header
    if header is None:
        header = is_marked or _has_names_above_bits(cells, [row for _, row in head])
    body = head[1:] if header else head
    rows = [row for _, row in body]
    n_cells = len(rows[0]) if body else len(first)
    row_names = options.row_names
    doubt: Advice = ()
    if row_names is None:
        row_names = _lacks_first_name(first if header else None, rows)
        if not row_names and _are_row_names(cells, rows):
            row_names = True
            doubt = doubt_row_names(source, first[0] if header else "1", (row[0] for row in rows), cells.is_valid)
    is_trailing = header and bool(body) and _ends_in_separators(first, rows, row_names)
    columns = list(range(int(row_names), n_cells - is_trailing))
    labels = [str(number) for number in range(1, n_cells + 1)]
    if header:
        names = first[:-1] if is_trailing and len(first) == n_cells else first
        names = names[1:] if row_names and len(names) == len(columns) + 1 else names
        if len(names) != len(columns) and other_shape:
            raise not_a_table(source, *body[0], other_shape)
        if len(names) != len(columns):
            unit = source.unit
            raise source.error(
                f"the first {unit} has {len(first)} cells and {unit} {body[0][0]} has {n_cells}; delete any {unit}s "
                "above the header"
            )
        if other_shape and first_duplicate(names) is not None and options.duplicates == "refuse":
            raise not_a_table(source, *head[1], other_shape)
        labels = [*[""] * row_names, *names, *[""] * is_trailing]
    excluded = find_columns(source, options.without, [labels[index] for index in columns])
    kept = [index for index in columns if labels[index] not in excluded]
    return Layout("table", header, labels, 0 if row_names else None, kept, None, is_trailing, other_shape, doubt)


def _has_names_above_bits(cells: Cells, rows: Head) -> bool:
    """Return whether the first row contains column names: cells that are no bits, beyond the name of a row."""
    first, *body = rows
    if any(not cells.is_valid(cell) for cell in first[1:] or first):
        return True
    row_names_below = any(not cells.is_valid(row[0]) for row in body)
    return bool(body) and (not first[0].strip() if row_names_below else not cells.is_valid(first[0]))


def _lacks_first_name(header: list[str] | None, rows: Head) -> bool:
    """Return whether there is a header without a name for the first column, which therefore contains row names."""
    if header is None:
        return False
    n_cells = len(rows[0]) if rows else len(header)
    # R writes a header without a cell for the row names; if all lines end in a separator, this is another file.
    if len(header) == n_cells - 1:
        return any(row[-1].strip() for row in rows)
    return len(header) == n_cells > 1 - len(rows) and not header[0].strip()


def _are_row_names(cells: Cells, rows: Head) -> bool:
    """Return whether the cells of the first column differ and are not all cells of the table."""
    if not rows or len(rows[0]) < 2:
        return False
    first_column = [row[0] for row in rows]
    are_distinct = len(set(first_column)) == len(first_column)
    return are_distinct and any(not cells.is_valid(cell) for cell in first_column)


def _ends_in_separators(header: list[str], rows: Head, row_names: bool) -> bool:
    """Return whether all lines end in a separator, so that the last cell is always empty and unnamed."""
    n_cells = len(rows[0])
    unnamed = (len(header) == n_cells and not header[-1].strip()) or (
        len(header) == n_cells - 1 and (not row_names or header[0])
    )
    return bool(unnamed) and n_cells > 1 + row_names and not any(row[-1].strip() for row in rows)


def not_a_table(source: Source, number: int, cells: Sequence[str], advice: Advice) -> FileError:
    """Return the error for a row that contains no ones and zeros."""
    text = ", ".join(repr(cell.strip()[:20]) for cell in cells[:3])
    categories = "; for categories and numbers, pass ", Parameter("categories", True)
    problem = f"{source.unit} {number} contains {text} instead of ones and zeros; "
    return source.error(problem, *advice, *categories)


def check_shape(rows: TextRows, options: ReadOptions) -> None:
    """Raise an error that says how to read a file that looks like a long table or like lists of items."""
    if (layout := Layout.detect(rows, options)).other_shape:
        raise not_a_table(rows.source, *rows.head(2)[-1], layout.other_shape)


def as_lists(widths: Collection[int]) -> Advice:
    """Return how to read lists of items; ``widths`` are the numbers of cells per line."""
    lists: Advice = "if each line lists the items of one row, pass ", Parameter("format", "baskets")
    as_long = "; if it names a row and one of its items, pass ", Parameter("format", "pairs")
    return (*lists, *as_long) if set(widths) == {2} else lists


def _as_long(columns: tuple[str, str]) -> Advice:
    """Return how to read a long table."""
    return "if each line names a row and one of its items, ", Parameter("long", columns, reads_file=True)


def _suggest_shape(cells: Cells, rows: Head) -> Advice:
    """Return how to read a file whose first rows look like lists of items, or like a long table; () if they do not."""
    if advice := _suggest_long(rows):
        return advice
    words = [cell for row in rows[1:] for cell in row if cell.strip()]
    return as_lists({*map(len, rows)}) if words and all(map(is_text, words)) else ()


# Row names.


def names_rows(label: str) -> bool:
    """Return whether the name of a column shows that it names rows, such as those of orders and customers, or an id."""
    return bool(_IDENTIFIER.fullmatch(label)) or _named([label], _ROW_NAMES) is not None


def doubt_row_names(source: Source, label: str, cells: Iterable[str], is_regular: Callable[[str], bool]) -> Advice:
    """Return a note on a first column that was taken for row names and may be part of the table; () if it is clear.

    It is clear if the name of the column shows it, or if no cell looks like a number. A cell that is not regular made
    the column one of names.
    """
    words = [cell.strip() for cell in cells]
    if names_rows(label) or not any(map(_LIKE_NUMBER.fullmatch, words)):
        return ()
    odd = next((word for word in words if not is_regular(word)), "")
    about = f"column {quoted(label)} is read as row names, because its cells differ and one of them is {quoted(odd)}; "
    keep = Parameter("row_names", False), " reads it as a column of the table, and "
    return f"{source.name}: {about}", *keep, Parameter("row_names", True), " confirms that it names the rows"


# Tables of categories, and long tables: their first row is compared with the cells below.


def _has_header(rows: Head, share: float) -> bool:
    """Return whether the first row contains names: this share of its cells are no numbers and do not occur below."""
    first, *body = rows
    if not body and share == 1:
        return False
    below = [{row[index].strip() for row in body if index < len(row)} for index in range(len(first))]
    words = [cell.strip() for cell in first]
    n_names = sum(
        parse_number(word) is None and not (word and word in values) for word, values in zip(words, below, strict=True)
    )
    return n_names >= share * len(first)


def header_and_labels(rows: Head, header: bool | None, share: float) -> tuple[bool, list[str]]:
    """Return whether the first row is a header, unless that is given, and what columns are called."""
    if header is None:
        header = _has_header(rows, share)
    return header, [cell.strip() if header else str(number) for number, cell in enumerate(rows[0], 1)]


def _categories(source: Source, options: ReadOptions, head: Head, known: Collection[str] | None) -> Layout:
    """Return the layout of a table of categories."""
    header, labels = header_and_labels(head, options.header, CATEGORY_NAMES)
    has_names = options.row_names
    unnamed = header and not labels[0]
    if has_names is None and known is not None:
        texts = [row[0] for row in head[header:]]
        has_names = labels[0] not in known and len(set(texts)) == len(texts)
    row_names = 0 if has_names or (options.row_names is None and unnamed) else None
    variables = [index for index in range(len(labels)) if index != row_names]
    if header and (blank := [index + 1 for index in variables if not labels[index]]):
        raise source.error(f"column {blank[0]} has no name; write one into the first {source.unit}")
    distinct = unique_columns(source, [labels[index] for index in variables], options.duplicates)
    for index, name in zip(variables, distinct, strict=True):
        labels[index] = name
    without = find_columns(source, options.without, distinct)
    kept = [index for index in variables if labels[index] not in without]
    return Layout("categories", header, labels, row_names, kept)


def _long(source: Source, options: ReadOptions, head: Head) -> Layout:
    """Return the layout of a long table: select its two columns, and that of quantities."""
    header, labels = header_and_labels(head, options.header, 1)
    excluded = find_columns(source, options.without, labels)
    kept = [index for index, label in enumerate(labels) if label not in excluded]
    if options.long is not None:
        row, item = (labels.index(find_columns(source, (name,), labels).pop()) for name in options.long)
    elif len(kept) == 2:
        row, item = kept
    elif header and (chosen := _long_columns([labels[index] for index in kept])):
        row, item = (kept[index] for index in chosen)
        about = f"rows are named by column {quoted(labels[row])} and items by column {quoted(labels[item])}; "
        warn(f"{source.name}: {about}", Parameter("long"), " chooses other columns")
    else:
        listed = listed_names([labels[index] for index in kept], 10)
        needed = "two are needed, one with the row and one with the item of each line"
        others = ("; choose them with ", Parameter("long"), ", or drop the others with ", Parameter("without"))
        single = ("; if each line lists the items of one row, pass ", Parameter("format", "baskets"))
        raise source.error(f"the columns are {listed}; {needed}", *(single if len(kept) < 2 else others))
    names = [label if index in kept else "" for index, label in enumerate(labels)]
    quantity = _named(names, _QUANTITY_NAMES) if header else None
    return Layout("long", header, labels, row, [item], None if quantity in (row, item) else quantity)


def _long_columns(labels: Sequence[str]) -> tuple[int, int] | None:
    """Return the columns of the rows and of the items that are named so, if there is one of each; otherwise None."""
    row, item = _named(labels, _ROW_NAMES), _named(labels, _ITEM_NAMES)
    return None if row is None or item is None else (row, item)


def _named(labels: Sequence[str], names: Sequence[str]) -> int | None:
    """Return the only column with a name of the first kind that occurs; None if there is none, or there are several."""
    bare = [re.sub(r"[\W_]", "", label).lower() for label in labels]
    for pattern in names:
        found = [index for index, label in enumerate(bare) if re.fullmatch(pattern, label)]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _suggest_long(head: Head) -> Advice:
    """Return how to read a table whose first rows look like those of a long table, as a part of a message, or ().

    They do if their header names a column of rows and one of items. Others do if they have two or three cells, if the
    first one occurs again in other lines, if another one is always text (or a number, in a table of two columns), and
    if no column consists of ones and zeros, unless all lines are of one row.
    """
    header, labels = header_and_labels(head, None, 1)
    body = head[header:]
    widths = set(map(len, body))
    if widths != {len(labels)}:
        return ()
    columns = [[cell.strip() for cell in column] for column in zip(*body, strict=True)]
    if header and (chosen := _long_columns(labels)) is not None:
        rows, items = (columns[index] for index in chosen)
        # Text in the first column may name the rows of a table of ones and zeros, and one cell may list items.
        may_be_table = are_cells(items) or (are_cells(rows) and chosen[1] == 0)
        are_lists = 2 * sum(bool(re.search("[,;|]", item)) for item in items) > len(items)
        if not may_be_table and (not are_lists or _named(labels, _QUANTITY_NAMES) is not None):
            return _as_long((labels[chosen[0]], labels[chosen[1]]))
    if not widths <= {2, 3}:
        return ()
    are_items = [all(map(is_text, column)) for column in columns[1:]]
    # Only ones may be quantities, or one order, but a column of ones and zeros is part of a table.
    if (
        len({cell.lower() for cell in columns[0]}) == len(body)
        or any(are_cells(column) and {*map(state_of, column)} != {1} for column in columns)
        or (are_cells(columns[0]) and not any(are_items))
    ):
        return ()
    if len(columns) == 2:
        counts: Advice = () if are_items[0] else ("; for counts, pass ", Parameter("binarize", 0))
        return *_as_long((labels[0], labels[1])), *counts
    if all(are_items):  # such as an order, its date and an item
        return (
            "if each line names a row and one of its items, pass ",
            Parameter("long"),
            " with the names of both columns",
        )
    return _as_long((labels[0], labels[1 if are_items[0] else 2])) if any(are_items) else ()


# Lists of items.


def _may_be_lists(head: Head) -> bool:
    """Return whether the first rows are not wide, and the second one does not consist of ones and zeros."""
    if len(head) < 2 or max(map(len, head[:2])) > MAX_LISTED_CELLS:
        return False
    words = [cell for cell in head[1][1:] if cell.strip()]
    return not words or not are_cells(words)


def _detect_lists(head: Head) -> Layout | None:
    """Return the layout of lists of items: text, in lines of different lengths, or with blanks only at their ends.

    Numbers are items if they are integers above 0 and no line lists one twice.
    """
    lists = [_without_blank_end(cells) for cells in head]
    if _are_counted(lists):
        return Layout("lists", True, columns=[1])
    header = _is_numbered_header(lists[0])
    body = lists[header:]
    if len(body) < 2 or len(set(map(len, body))) == 1:
        return None
    if any("" in items or len(set(items)) < len(items) for items in body):
        return None
    is_ragged = len(set(map(len, head[header:]))) > 1
    items = [item for each in body for item in each]
    are_numbers = is_ragged and all(item.isascii() and item.isdecimal() and item.strip("0") for item in items)
    if not are_numbers and not all(map(is_text, items)):
        return None
    if are_numbers and set(items) == {"1"}:
        return None
    if not header:
        first, *others = body
        is_many = len(others) >= _MANY_LINES or not is_ragged
        is_wide = len(first) >= max(map(len, others)) or 2 * sum(len(each) == len(first) for each in others) >= len(
            others
        )
        if is_many and is_wide and set(first).isdisjoint(item for each in others for item in each):
            return None  # the first line looks like a header
        if not is_ragged and not _moves(body):
            return None
    return Layout("lists", header, columns=[0])


def _without_blank_end(cells: Sequence[str]) -> list[str]:
    """Return the cells of a line up to the last one that is not blank, stripped."""
    stripped = [cell.strip() for cell in cells]
    while stripped and not stripped[-1]:
        stripped.pop()
    return stripped


def _are_counted(lists: Head) -> bool:
    """Return whether lists are below a header, and their first cell is the number of the items that follow."""
    if len(lists) < 3 or not all(lists) or not is_text(lists[0][0]):
        return False
    is_counted = all(
        cells[0] == str(len(cells) - 1) and "" not in cells and all(map(is_text, cells[1:])) for cells in lists[1:]
    )
    return is_counted and len(set(map(len, lists[1:]))) > 1


def _is_numbered_header(cells: Sequence[str]) -> bool:
    """Return whether cells are numbered items, such as Item 1, Item 2, ..., or numbers from 0, as of pandas."""
    numbers = [re.fullmatch(r"(\D*)(\d{1,6})", cell) for cell in cells]
    if len(cells) < 2 or not all(numbers):
        return False
    found = [(match[1], int(match[2])) for match in numbers if match]
    stem, start = found[0]
    is_start = start == 0 if not stem else start <= 1 and _named([stem], _ITEM_NAMES[:1]) is not None
    return is_start and found == [(stem, start + index) for index in range(len(found))]


def _moves(lists: Head) -> bool:
    """Return whether an item is in different positions of lines."""
    position: dict[str, int] = {}
    return any(position.setdefault(item, index) != index for items in lists for index, item in enumerate(items))
