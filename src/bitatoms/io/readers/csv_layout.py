"""Where the names and the table are in a file of text, told from its first lines."""

from __future__ import annotations

from typing import NamedTuple

from ..cells import TextCells
from ..stream import ReadOptions, Source, check_columns_exist


class Layout(NamedTuple):
    """Where the names and the columns of the table are in a file of text."""

    columns: list[str] | None
    row_names: bool
    places: list[int]  # of the table's columns among the cells of a line
    width: int  # cells of a line
    trailing: bool = False  # the last of them is what a separator at the end of the line makes

    @property
    def is_whole(self) -> bool:
        """Whether all cells of a line but the name of its row are the table's."""
        return len(self.places) + self.row_names == self.width


def is_quoted(line: str, cells: list[str], separator: str) -> bool:
    """Whether all cells of a line stand in quotes."""
    return line.rstrip("\r\n") == separator.join(f'"{cell}"' for cell in cells)


def _begins_with_names(words: TextCells, records: list[list[str]]) -> bool:
    """Whether the first line holds names: a cell of it is neither a one nor a zero, and not just the name of a row."""
    first, *body = records
    if any(not words.is_valid(cell) for cell in first[1:] or first):
        return True
    below = any(not words.is_valid(record[0]) for record in body)  # there are names of rows
    return bool(body) and (not first[0].strip() if below else not words.is_valid(first[0]))


def laid_out(
    source: Source, options: ReadOptions, words: TextCells, beginning: list[tuple[int, list[str]]], quoted: bool
) -> Layout:
    """Tell from the first rows whether the first line and the first column hold names."""
    first = beginning[0][1]
    header = options.header
    if header is None:
        header = quoted or _begins_with_names(words, [record for _, record in beginning])
    body = beginning[1:] if header else beginning
    width = len(body[0][1]) if body else len(first)
    named = options.row_names
    if named is None:
        column = [record[0] for _, record in body]
        strange = any(not words.is_valid(cell) for cell in column)
        # R writes a header without a cell for the row names; where all lines end in a separator, there are none.
        named = bool(column) and (
            (header and len(first) == width - 1 and any(record[-1].strip() for _, record in body))
            or (header and not first[0].strip() and len(first) == width)
            or (strange and len(set(column)) == len(column) and width > 1)
        )
    trailing = header and bool(body) and _ends_in_separators(first, [record for _, record in body], named)
    places = list(range(int(named), width - trailing))
    columns = None
    if header:
        columns = [name.strip() for name in (first[:-1] if trailing and len(first) == width else first)]
        if named and len(columns) == len(places) + 1:
            columns = columns[1:]
        places = places if body else list(range(len(columns)))
        if len(columns) != len(places):
            raise source.error(
                f"the first line has {len(first)} cells and line {body[0][0]} has {width}; if there is something above "
                "the line of names, delete it"
            )
    return _left_out(source, options, Layout(columns, named, places, width, trailing))


def _ends_in_separators(first: list[str], records: list[list[str]], named: bool) -> bool:
    """Whether all lines end in a separator, behind which there is nothing, not even a name."""
    width = len(records[0])
    unnamed = (len(first) == width and not first[-1].strip()) or (len(first) == width - 1 and (not named or first[0]))
    return bool(unnamed) and width > 1 + named and not any(record[-1].strip() for record in records)


def _left_out(source: Source, options: ReadOptions, layout: Layout) -> Layout:
    """The layout without the columns that are to be left out."""
    if not options.without:
        return layout
    columns = layout.columns or [str(place + 1) for place in layout.places]
    check_columns_exist(source, options.without, columns)
    kept = [number for number, name in enumerate(columns) if name not in options.without]
    names = None if layout.columns is None else [columns[number] for number in kept]
    return layout._replace(columns=names, places=[layout.places[number] for number in kept])
