"""Any table from and to a file: the format by its ending, what is wrong in one line, there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..table import Table, feature_names
from .atomic import atomic_write
from .errors import FileError
from .formats import infer_format, load_reader, sniff_format
from .stream import ReadOptions, RowChunk, Source, TableStream, check_columns_exist, collect, unique_columns

_TEXT = ("csv", "tsv")
_ONLY_FOR = {  # options that other formats have no use for
    "header": _TEXT,
    "row_names": (*_TEXT, "parquet", "feather"),
    "separator": (*_TEXT, "baskets"),
    "layer": ("h5ad", "npz", "zarr"),
    "blocks": ("pbm",),
}


_LEAVE_OUT = (*_TEXT, "parquet", "feather")
_IN_BLOCKS = ("parquet", "feather", "zarr")


def read(
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    binarize: float | None = None,
    missing: str = "refuse",
    duplicates: str = "refuse",
    header: bool | None = None,
    row_names: bool | None = None,
    separator: str | None = None,
    layer: str | None = None,
    blocks: tuple[int, int] | None = None,
    without: Sequence[str] = (),
) -> Table:
    """Read a table of 0 and 1 from a file, packed as it comes in, with the names of its rows and columns.

    Parameters
    ----------
    path : str or path-like
        The file; its ending tells the format.
    format : str, optional
        The format where the ending does not tell it: "csv", "tsv", "npy", "npz", "parquet", "feather", "mtx", "fimi",
        "baskets", "pbm", "h5ad", "bed" or "zarr".
    binarize : float, optional
        Take what is above this number as a one. Without it all cells must be zeros and ones: numbers, or in text also
        true and false, yes and no, x and blank.
    missing : {"refuse", "zero"}, default="refuse"
        What to do with missing values: say how many there are and where the first is, or take them as zeros.
    duplicates : {"refuse", "number"}, default="refuse"
        What to do with names of columns that come twice: refuse them, or put a number behind the later ones.
    header, row_names : bool, optional
        Whether the first line, and the first column, of a text file hold names; told from the file by default.
    separator : str, optional
        What stands between the cells of a text file; told from the file by default.
    layer : str, optional
        The layer of an .h5ad file, or the array within an .npz file or a Zarr store; by default the main one.
    blocks : pair of int, optional
        Height and width of the blocks to cut a .pbm picture in, a block a row; by default each line of pixels is a row.
    without : sequence of str, default=()
        Columns to leave out, by name; of a text file without names by their numbers from 1 on.

    Returns
    -------
    Table
        ``bits``, ``rows``, ``columns``: takes as much memory as its bits, however large the file.

    Raises
    ------
    FileError
        A ValueError whose message names the file, the place and the remedy.

    Examples
    --------
    >>> import bitatoms as ba
    >>> with open("basket.csv", "w") as file:
    ...     _ = file.write("who,milk,bread\\nann,yes,no\\nbob,yes,yes\\n")
    >>> table = ba.read("basket.csv")
    >>> table
    Table(2 x 2, density 0.75, rows 'ann' ... 'bob', columns 'milk' ... 'bread')
    """
    without = (without,) if isinstance(without, str) else tuple(without)
    options = ReadOptions(binarize, missing, duplicates, header, row_names, separator, layer, blocks, without)
    source = Source(Path(path), infer_format(path, format), os.fspath(path))
    with _translate_errors(source):
        return collect(source, open_table(source, options), duplicates)


class StreamingSource(Source):
    """A file whose rows are not kept: where its format can be read a block at a time, it may be larger than memory."""

    def check_size(self, n_rows: int, n_cols: int, streamable: bool = False) -> None:
        """Refuse only what no table can be, unless it is collect in memory."""
        if min(n_rows, n_cols) < 0 or not (streamable or self.format in _IN_BLOCKS):
            super().check_size(n_rows, n_cols)


def open_table(source: Source, options: ReadOptions) -> TableStream:
    """The rows of a file, on their way in; all that is wrong with it is said in one line, then too.

    The names of its columns are all different, and those to leave out are left out.
    """
    with _translate_errors(source):
        stream = _stream(source, options)
        if stream.columns is not None:
            stream.columns = unique_columns(source, stream.columns, options.duplicates)
        # Modules whose columns may be no numbers at all have left them out by themselves.
        if options.without and source.format not in _LEAVE_OUT:
            stream = drop_columns(source, stream, options.without)
    return replace(stream, chunks=_translate_chunk_errors(source, stream.chunks))


def drop_columns(source: Source, stream: TableStream, without: Sequence[str]) -> TableStream:
    """A stream without these columns."""
    columns = feature_names(stream.columns, range(stream.n_cols))
    check_columns_exist(source, without, columns)
    gone = set(without)
    kept = [place for place, name in enumerate(columns) if name not in gone]
    blocks = (RowChunk(rows.bits.T[kept].T, rows.names) for rows in stream.chunks)
    return TableStream(len(kept), blocks, None if stream.columns is None else tuple(columns[place] for place in kept))


def _translate_chunk_errors(source: Source, blocks: Iterator[RowChunk]) -> Iterator[RowChunk]:
    """The same blocks; what is wrong in the middle of the file is said as at its beginning."""
    with _translate_errors(source):
        yield from blocks


@contextmanager
def _translate_errors(source: Source) -> Iterator[None]:
    """Whatever is wrong with a file is said in one line, with its name and what to do."""
    try:
        yield
    except FileError as error:
        found = sniff_format(source.path)
        if found is None or found == source.format or source.format == "zarr":
            raise
        message = f"not a file of the format {source.format!r}: it looks like {found!r}; pass format={found!r}"
        raise source.error(message) from error
    except OSError as error:
        raise source.error(f"cannot be read: {error.strerror or error}") from error
    except MemoryError as error:
        raise source.error("takes more memory than there is; take fewer rows or columns") from error


def _stream(source: Source, options: ReadOptions) -> TableStream:
    """The stream of a file that is there."""
    if options.missing not in ("refuse", "zero"):
        raise ValueError(f'missing must be "refuse" or "zero", got {options.missing!r}')
    if options.duplicates not in ("refuse", "number"):
        raise ValueError(f'duplicates must be "refuse" or "number", got {options.duplicates!r}')
    for name, formats in _ONLY_FOR.items():
        if getattr(options, name) is not None and source.format not in formats:
            raise source.error(f"{name}= is for {', '.join(formats)}, not for {source.format!r}; leave it out")
    if not source.path.exists():
        raise source.error("there is no such file")
    if source.path.is_dir() and source.format != "zarr":
        raise source.error("this is a folder, not a file")
    module = load_reader(source.format, source.name)
    stream: TableStream = module.read(source, options)
    return stream


def write(table: Any, path: str | os.PathLike[str], format: str | None = None) -> None:
    """Write a table of 0 and 1 to a file, with the names of its rows and columns; there whole, or not at all.

    Parameters
    ----------
    table : Table, or whatever Table.from_any takes
        The table.
    path : str or path-like
        The file; its ending tells the format.
    format : str, optional
        The format where the ending does not tell it, as in `read`.

    Raises
    ------
    FileError
        Where the file cannot be written, or the format cannot hold such a table.

    Examples
    --------
    >>> import bitatoms as ba
    >>> table = ba.Table.from_any([[1, 0, 1], [0, 1, 0]])
    >>> ba.write(table, "small.mtx")
    >>> ba.read("small.mtx") == table
    True
    """
    table = table if isinstance(table, Table) else Table.from_any(table)
    path = Path(path)
    format = infer_format(path, format, writing=True)
    module = load_reader(format, str(path))
    with atomic_write(path, getattr(module, "companions", lambda path: ())(path)) as made:
        module.write(table, made, format)
