"""The shape of a table of text: rows of ones and zeros, a long table of rows and items, or lists of items.

Shapes are detected from the first lines, and only where a file cannot be a table of ones and zeros and is hardly one
of categories either. Other files that may be of another shape get an error with advice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from ..columns.variables import parse_number
from ..errors import Parameter
from .cells import state_of
from .stream import Source

Advice = tuple[str | Parameter, ...]  # a part of a message
Head = Sequence[Sequence[str]]  # the cells of the first lines that are not blank

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
_MANY_LINES = 4  # below a first line, from which it is taken for a header if it looks like one


class LongTable(NamedTuple):
    """A long table: whether the first line is a header, and the indices of the row and of the item in a line."""

    header: bool
    row: int
    item: int


class ItemLists(NamedTuple):
    """Lists of items: whether the first line is a header, and how many cells precede the items of a line."""

    header: bool = False
    first: int = 0


def detect_shape(head: Head) -> LongTable | ItemLists | None:
    """Return the shape of a file that is clearly a long table or lists of items; None for all others."""
    return (_detect_long_table(head) or _detect_lists(head)) if head else None


def has_header(head: Head) -> bool:
    """Return whether the first line contains column names: no numbers, and nothing that occurs again in its column."""
    first, *body = head
    columns = [{cells[index] for cells in body if index < len(cells)} for index in range(len(first))]
    return bool(body) and not any(
        parse_number(cell.strip()) is not None or cell in others for cell, others in zip(first, columns, strict=True)
    )


def column_labels(first: Sequence[str], header: bool) -> list[str]:
    """Return what columns are called: their names, or their numbers, counting from 1."""
    return [cell.strip() if header else str(number) for number, cell in enumerate(first, 1)]


def long_columns(labels: Sequence[str]) -> tuple[int, int] | None:
    """Return the columns of the rows and of the items that are named so, if there is one of each; otherwise None."""
    row, item = _named(labels, _ROW_NAMES), _named(labels, _ITEM_NAMES)
    return None if row is None or item is None else (row, item)


def quantity_column(labels: Sequence[str]) -> int | None:
    """Return the column that is named as quantities are, if there is one; otherwise None."""
    return _named(labels, _QUANTITY_NAMES)


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
    about = f"column {label[:40]!r} is read as row names, because its cells differ and one of them is {odd[:40]!r}; "
    keep = Parameter("row_names", False), " reads it as a column of the table, and "
    return f"{source.name}: {about}", *keep, Parameter("row_names", True), " confirms that it names the rows"


def _named(labels: Sequence[str], names: Sequence[str]) -> int | None:
    """Return the only column with a name of the first kind that occurs; None if there is none, or there are several."""
    bare = [re.sub(r"[\W_]", "", label).lower() for label in labels]
    for pattern in names:
        found = [index for index, label in enumerate(bare) if re.fullmatch(pattern, label)]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _detect_long_table(head: Head) -> LongTable | None:
    """Return the layout of a long table.

    Either its header names a column of rows and one of items, and a row occurs with several items, unless there are no
    other columns and most items are no lists in one cell. Or it has two columns and no header: numbered rows, each in
    consecutive lines, and items.
    """
    if len(head) < 2 or len(set(map(len, head))) != 1:
        return None
    header = has_header(head)
    body = head[1:] if header else head
    columns = [[cell.strip() for cell in column] for column in zip(*body, strict=True)]
    chosen = long_columns([cell.strip() for cell in head[0]]) if header else (0, 1) if len(columns) == 2 else None
    if chosen is None:
        return None
    rows, items = columns[chosen[0]], columns[chosen[1]]
    if _may_be_table(rows, items, chosen, header) or not (any(rows) if header else all(rows)):
        return None
    pairs = {(row, item) for row, item in zip(rows, items, strict=True) if row and item}
    recurs = len({row for row, _ in pairs}) < len(pairs)
    if header:
        return LongTable(True, *chosen) if recurs or (len(columns) == 2 and not _are_lists(items)) else None
    runs = [row for row, _ in groupby(rows)]
    is_numbered = all(any(letter.isdecimal() for letter in row) for row in rows)
    is_sorted = len(set(runs)) == len(runs) > 1 and len(pairs) == len(body)
    is_text = all(map(_is_text, items)) and set(items).isdisjoint(rows)
    return LongTable(False, *chosen) if recurs and is_numbered and is_sorted and is_text else None


def _may_be_table(rows: Sequence[str], items: Sequence[str], chosen: tuple[int, int], header: bool) -> bool:
    """Return whether the columns of rows and items may be a part of a table of ones and zeros.

    Text in the first column may name the rows of such a table. Below a header, text in another column cannot.
    """
    return _are_cells(items) or (_are_cells(rows) and (chosen[1] == 0 or not header))


def _are_lists(items: Sequence[str]) -> bool:
    """Return whether most cells of a column list several items."""
    return 2 * sum(bool(re.search("[,;|]", item)) for item in items) > len(items)


def _are_cells(column: Sequence[str]) -> bool:
    """Return whether all cells of a column are ones, zeros or missing."""
    return all(state_of(cell) is not None for cell in column)


def _is_text(cell: str) -> bool:
    """Return whether a cell is neither a number nor one of the words for ones, zeros and missing values."""
    return state_of(cell) is None and parse_number(cell.strip()) is None


def _detect_lists(head: Head) -> ItemLists | None:
    """Return the layout of lists of items: text, in lines of different lengths, or with blanks only at their ends.

    Numbers are items if they are integers above 0 and no line lists one twice.
    """
    lists = [_without_blank_end(cells) for cells in head]
    if counted := _counted_lists(lists):
        return counted
    header = bool(lists) and _is_numbered_header(lists[0])
    body = lists[header:]
    if len(body) < 2 or len(set(map(len, body))) == 1:
        return None
    if any("" in items or len(set(items)) < len(items) for items in body):
        return None
    is_ragged = len(set(map(len, head[header:]))) > 1
    items = [item for each in body for item in each]
    are_numbers = is_ragged and all(item.isascii() and item.isdecimal() and item.strip("0") for item in items)
    if not are_numbers and not all(map(_is_text, items)):
        return None
    if are_numbers and all(item == "1" for item in items):
        return None
    if header:
        return ItemLists(True)
    first, *others = body
    is_many = len(others) >= _MANY_LINES or not is_ragged
    is_wide = len(first) >= max(map(len, others)) or 2 * sum(len(each) == len(first) for each in others) >= len(others)
    if is_many and is_wide and set(first).isdisjoint(item for each in others for item in each):
        return None  # the first line looks like a header
    if not is_ragged and not _moves(body):
        return None
    return ItemLists()


def _without_blank_end(cells: Sequence[str]) -> list[str]:
    """Return the cells of a line up to the last one that is not blank, stripped."""
    stripped = [cell.strip() for cell in cells]
    while stripped and not stripped[-1]:
        stripped.pop()
    return stripped


def _counted_lists(lists: Sequence[Sequence[str]]) -> ItemLists | None:
    """Return the layout of lists below a header whose first cell is the number of the items that follow."""
    if len(lists) < 3 or not all(lists) or not _is_text(lists[0][0]):
        return None
    is_counted = all(
        cells[0] == str(len(cells) - 1) and "" not in cells and all(map(_is_text, cells[1:])) for cells in lists[1:]
    )
    return ItemLists(True, 1) if is_counted and len(set(map(len, lists[1:]))) > 1 else None


def _is_numbered_header(cells: Sequence[str]) -> bool:
    """Return whether cells are numbered items, such as Item 1, Item 2, ..., or numbers from 0, as of pandas."""
    numbers = [re.fullmatch(r"(\D*)(\d{1,6})", cell) for cell in cells]
    if len(cells) < 2 or not all(numbers):
        return False
    found = [(match[1], int(match[2])) for match in numbers if match]
    stem, start = found[0]
    is_start = start == 0 if not stem else start <= 1 and _named([stem], _ITEM_NAMES[:1]) is not None
    return is_start and found == [(stem, start + index) for index in range(len(found))]


def _moves(lists: Sequence[Sequence[str]]) -> bool:
    """Return whether an item is in different positions of lines."""
    position: dict[str, int] = {}
    return any(position.setdefault(item, index) != index for items in lists for index, item in enumerate(items))


def suggest_pairs(head: Head) -> Advice:
    """Return how to read a table whose first lines look like those of a long table, as a part of a message, or ().

    They do if their header names a column of rows and one of items. Others do if they have two or three cells, if the
    first one occurs again in other lines, if another one is always text (or a number, in a table of two columns), and
    if no column consists of ones and zeros, unless all lines are of one row.
    """
    header = has_header(head)
    body = head[header:]
    widths = set(map(len, body))
    labels = column_labels(head[0], header)
    if widths != {len(labels)}:
        return ()
    columns = [[cell.strip() for cell in column] for column in zip(*body, strict=True)]
    advice: Advice = ("if each line names a row and one of its items, pass ",)
    if header and (chosen := long_columns(labels)) is not None:
        rows, items = (columns[index] for index in chosen)
        are_lists = _are_lists(items) and quantity_column(labels) is None
        if not _may_be_table(rows, items, chosen, header) and not are_lists:
            return (*advice, Parameter("long", (labels[chosen[0]], labels[chosen[1]])))
    if not widths <= {2, 3}:
        return ()
    states = [set(map(state_of, column)) for column in columns]
    are_items = [all(_is_text(cell) for cell in column) for column in columns[1:]]
    # Only ones may be quantities, or one order, but a column of ones and zeros is part of a table.
    if (
        len({cell.lower() for cell in columns[0]}) == len(body)
        or (None not in states[0] and not (states[0] == {1} and any(are_items)))
        or any(None not in each and each != {1} for each in states)
    ):
        return ()
    if len(columns) == 2:
        counts = ("; for counts, pass ", Parameter("binarize", 0))
        as_pairs = Parameter("format", "pairs")
        return (*advice, as_pairs) if are_items[0] else (*advice, as_pairs, *counts)
    if all(are_items):  # such as an order, its date and an item
        return (*advice, Parameter("long"), " with the names of both columns")
    return (*advice, Parameter("long", (labels[0], labels[1 if are_items[0] else 2]))) if any(are_items) else ()
