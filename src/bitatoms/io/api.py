"""Read tables from files and write them; the extension of the file selects the format."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..columns.encoding import Encoding
from ..columns.matching import ColumnMatch, NoKnownColumn, match_columns
from ..columns.table import Header, Names, Table, feature_names
from ..columns.variants import dosage_columns, interleaved
from ..errors import InputError, Parameter
from ..formatting import be, counted, quoted
from ..parameters import with_options
from ..sparse_bits import Bits, SparseBits, packed
from .atomic import atomic_write
from .errors import FileError
from .formats import categories, long
from .formats.registry import FORMATS, HDF5_FORMATS, infer_format, load_reader, sniff_format
from .labels.names import named_columns
from .layout import check_shape
from .options import CELL_FORMATS, DOSAGE_FORMATS, DROPPING_FORMATS, ReadOptions
from .out_of_core.transposing import transpose
from .stream import (
    RowChunk,
    Source,
    TableStream,
    collect,
    find_columns,
    named_chunks,
    unique_columns,
)
from .text import TextRows


@with_options(ReadOptions)
def read(path: str | os.PathLike[str], options: ReadOptions) -> Table:
    """Read a table of 0 and 1 from a file, with the names of its rows and columns.

    Rows are packed while they are read: memory holds the packed table, one bit per cell (two if cells are missing), and
    a few chunks. Sparse matrices and lists of items with 2048 columns or more and few ones are not packed. Cells of
    text files may also be true and false, yes and no, x and blank. A warning states how many values are missing.

    Parameters
    ----------
    path : str or path-like
        The file; its extension selects the format. A folder with the files of 10x Genomics is also allowed.
    {parameters}

    Returns
    -------
    Table
        The table: ``bits``, ``row_names``, ``columns``; with ``row_data`` and ``column_data`` if the file contains
        more about rows and columns, as AnnData do in ``obs`` and ``var``.

    Raises
    ------
    FileError
        The file cannot be read. The message states the file, the position, the problem and how to fix it.

    Examples
    --------
    >>> import bitatoms as ba
    >>> with open("basket.csv", "w") as file:
    ...     _ = file.write("who,milk,bread\\nann,yes,no\\nbob,yes,yes\\n")
    >>> table = ba.read("basket.csv")
    >>> table
    Table(2 x 2, density 0.75, rows 'ann' ... 'bob', columns 'milk' ... 'bread')
    """
    source = _source_of(path, options)
    with _translate_errors(source):
        return collect(open_table(source, options))


def _source_of(path: str | os.PathLike[str], options: ReadOptions) -> Source:
    """Return a file to read."""
    return Source(Path(path), infer_format(path, options.format), os.fspath(path))


def read_matching(
    path: str | os.PathLike[str],
    learned: Header,
    options: ReadOptions,
    absent: str | None = None,
    name: str | None = None,
) -> Table:
    """Read the columns of a table that a model was fitted on; see `match_columns`.

    Columns that the model does not know are not converted, where the format allows it, and may contain anything.
    ``name`` is what messages about the columns call the table; by default its path.
    """
    source = _source_of(path, options)
    name = source.name if name is None else name
    with _translate_errors(source):
        encoding = Encoding.of(learned)
        if encoding is not None and _has_variables(source, options, encoding):
            stream = categories.read_encoded(source, options, encoding, absent, name)
            return collect(_with_columns(stream, match_columns(learned, stream.header, absent, name)))
        if encoding is not None and _has_copies(source, options, encoding):
            options = replace(options, dosage=True, binarize=None)
        stream = open_table(source, options)
        try:
            if options.dosage and encoding is not None:  # messages name columns of the file
                given = _raw_header(stream.header)
                match_columns(encoding.raw_header, given, absent, name).warn_differences(name)
                match = match_columns(learned, stream.header, absent, name)
            else:
                match = match_columns(learned, stream.header, absent, name)
                match.warn_differences(name)
        except NoKnownColumn:
            _check_orientation(source, options, learned, encoding, name)
            if source.format in CELL_FORMATS:
                check_shape(TextRows(source, options), options)
            raise
        # Numbered duplicates do not have the names that the file has. Items and rows are not columns of the file.
        renamed = options.duplicates != "refuse" or options.transpose or stream.absent_is_zero
        if match.unknown and source.format in DROPPING_FORMATS and not renamed:
            without = (*options.without, *_names_in_file(stream.header, match.unknown, options))
            stream = open_table(source, replace(options, without=without))
            match = match_columns(learned, stream.header, absent, name)
        return collect(_with_columns(stream, match))


def _raw_header(header: Header) -> Header:
    """Return the columns of a file whose numbers of copies have become two columns each."""
    encoding = Encoding.of(header)
    return Header(0, ()) if encoding is None else encoding.raw_header


def _has_variables(source: Source, options: ReadOptions, encoding: Encoding) -> bool:
    """Return whether a file has the categories and numbers of a model, rather than its columns of 0 and 1."""
    if encoding.is_of_copies or source.format not in CELL_FORMATS:
        return False
    source.check_path()
    load_reader(source.format, source.name)
    return categories.has_variables(source, options, encoding)


def _has_copies(source: Source, options: ReadOptions, encoding: Encoding) -> bool:
    """Return whether a file has numbers of copies of the variants of a model, rather than its columns of 0 and 1."""
    if not encoding.is_of_copies or options.dosage or options.long or options.categories:
        return False
    if source.format not in DOSAGE_FORMATS:
        return False
    names = _names_ahead(source, replace(options, dosage=True, binarize=None))
    return encoding.is_raw(None if names == feature_names(None, range(len(names))) else names, len(names))


def _names_ahead(source: Source, options: ReadOptions) -> Names:
    """Return the names of the columns of a file read with these options; of its variants, if it has copies of them."""
    with suppress(InputError):  # raised again when the file is read
        header = open_table(source, replace(options, missing="zero")).header  # without notes about missing values
        return (_raw_header(header) if options.dosage else header).names or ()
    return ()


def _check_orientation(
    source: Source, options: ReadOptions, learned: Header, encoding: Encoding | None, table: str
) -> None:
    """Raise if the columns of a model, or its variants, are the rows of a file that was read by columns, or reverse."""
    exchanged, what = replace(options, transpose=not options.transpose), "columns"
    if encoding is not None and encoding.is_of_copies and source.format in DOSAGE_FORMATS:
        exchanged, what = replace(exchanged, dosage=True, binarize=None), "variants"
        learned = encoding.raw_header
    of_file = set(_names_ahead(source, exchanged))
    known = next((name for name in learned.names or () if name in of_file), None)
    if known is not None:
        axis, fix = ("columns", "without ") if options.transpose else ("rows", "with ")
        problem = f"{table}: its {axis} are the {what} of the model, such as {quoted(known)}; read it {fix}"
        raise InputError(problem, Parameter("transpose", True))


def _names_in_file(header: Header, columns: Names, options: ReadOptions) -> Names:
    """Return what a file calls columns: numbers of copies have one column there, and two in the table."""
    if not options.dosage:
        return columns
    unknown, ids = set(columns), () if header.data is None else header.data["id"].tolist()
    named = zip(header.names or (), ids, strict=True)
    return tuple(dict.fromkeys(name for column, name in named if column in unknown))


def read_known_values(
    path: str | os.PathLike[str], learned: Header, options: ReadOptions
) -> dict[str, list[str | None]]:
    """Return the values of the variables of a model as a file has them, None where they are missing.

    The dict is empty if the model was not learned from a table of categories, or the file is none.
    """
    source, encoding = _source_of(path, options), Encoding.of(learned)
    with _translate_errors(source):
        if encoding is None or not _has_variables(source, options, encoding):
            return {}
        return categories.read_values(source, options, encoding)


def read_row_label(path: str | os.PathLike[str], of_rows: Names, options: ReadOptions) -> str:
    """Return what a text file or a sheet calls the column of the names of its rows, ``of_rows``; empty if unknown."""
    source = _source_of(path, options)
    if source.format not in CELL_FORMATS or options.transpose or options.long or options.header is False:
        return ""
    with _translate_errors(source):
        first = next((cells for _, cells in TextRows(source, options) if cells), [""])[0].strip()
    return "" if first in of_rows else first


def _with_columns(stream: TableStream, match: ColumnMatch) -> TableStream:
    """Return a stream with the columns of a model."""
    if match.learned is None:
        return stream
    n_cols, names, _, data = match.learned
    chunks = (RowChunk(match.gather(chunk.bits), chunk.names) for chunk in stream.chunks)
    return replace(stream, n_cols=n_cols, chunks=chunks, columns=names, picture=None, column_data=data)


def _transposed(source: Source, stream: TableStream, are_copies: bool) -> TableStream:
    """Return a stream with rows and columns exchanged; the rows are read now.

    A row of numbers of copies becomes two, one copy or more and two copies, and then a pair of columns.
    """
    names: list[str] = []

    def lines() -> Iterator[RowChunk]:
        n_rows, n_ones = 0, None
        for chunk in stream.chunks:
            names.extend(chunk.names or ())
            bits = chunk.bits
            if are_copies:
                pairs = packed(bits)
                bits = interleaved(*(pairs.take_columns(np.arange(i, 2 * stream.n_cols, 2)) for i in (0, 1)))
            n_rows += len(bits)
            n_ones = (n_ones or 0) + bits.count() if isinstance(bits, SparseBits) else None
            if source.is_transposed:
                source.check_size(n_rows, stream.n_cols, n_ones=n_ones)
            yield RowChunk(bits)

    rows: Iterable[Bits]
    if source.scratch is None:
        rows = (collect(TableStream(stream.n_cols, lines())).data.T,)
        n_cols = rows[0].shape[1]
    else:
        transposer = transpose(source.scratch, (chunk.bits for chunk in lines()), stream.n_cols)
        n_cols, rows = transposer.n_cols, transposer.rows()
    chunks = named_chunks(rows, stream.columns)
    n_cols //= 1 + are_copies
    return TableStream(n_cols, chunks, names or None, row_data=stream.column_data, column_data=stream.row_data)


def _with_paired_columns(stream: TableStream) -> TableStream:
    """Return a stream of numbers of copies with the names of its columns: one copy or more, two copies.

    Its chunks have these columns already, while its names are those of the file.
    """
    columns, data = dosage_columns(feature_names(stream.columns, range(stream.n_cols)))
    return replace(stream, n_cols=len(columns), columns=columns, column_data=data)


def open_table(source: Source, options: ReadOptions) -> TableStream:
    """Open a file as a stream of row chunks, with distinct column names and without the columns to drop.

    Errors, including those found while iterating, are raised as one-line FileErrors.
    """
    with _translate_errors(source):
        source = source._replace(is_transposed=bool(options.transpose) and source.scratch is None)
        stream = _open_stream(source, options)
        if options.names is not None:
            stream.columns = named_columns(source, stream, options.names)
        if stream.columns is not None and not options.transpose:
            stream.columns = unique_columns(source, stream.columns, options.duplicates)
        if options.without and source.format not in DROPPING_FORMATS:
            stream = drop_columns(source, stream, options.without)
        if options.transpose:
            stream = _transposed(source, stream, options.dosage)
            stream.columns = stream.columns and unique_columns(source, stream.columns, options.duplicates)
        if options.dosage:
            stream = _with_paired_columns(stream)
    return replace(stream, chunks=_translate_chunk_errors(source, stream.chunks))


def drop_columns(source: Source, stream: TableStream, without: Sequence[str]) -> TableStream:
    """Return a stream without these columns."""
    columns = feature_names(stream.columns, range(stream.n_cols))
    dropped = find_columns(source, without, columns)
    kept = [index for index, name in enumerate(columns) if name not in dropped]
    chunks = (RowChunk(chunk.bits.take_columns(kept), chunk.names) for chunk in stream.chunks)
    names = None if stream.columns is None else tuple(columns[index] for index in kept)
    data = None if stream.column_data is None else stream.column_data.take(np.array(kept, np.intp))
    return replace(stream, n_cols=len(kept), chunks=chunks, columns=names, picture=None, column_data=data)


def _translate_chunk_errors(source: Source, chunks: Iterator[RowChunk]) -> Iterator[RowChunk]:
    """Yield the same chunks; errors found while iterating are translated too."""
    with _translate_errors(source):
        yield from chunks


@contextmanager
def _translate_errors(source: Source) -> Iterator[None]:
    """Raise errors about a file as one-line FileErrors; if its content is of another format, name that format."""
    try:
        yield
    except FileError as error:
        found = sniff_format(source.path)
        is_same = found == source.format or (found in HDF5_FORMATS and source.format in HDF5_FORMATS)
        if found is None or is_same or source.format == "zarr":
            raise
        problem = f"not a file of the format {source.format!r}: it looks like {found!r}; pass "
        raise source.error(problem, Parameter("format", found)) from error
    except OSError as error:
        raise source.error(f"cannot be read: {error.strerror or error}") from error
    except MemoryError as error:
        raise source.error("does not fit into memory; read fewer rows or columns") from error


def _open_stream(source: Source, options: ReadOptions) -> TableStream:
    """Check the options and the path, and call the reader of the format."""
    options.check_format(source)
    source.check_path()
    reader = load_reader(source.format, source.name)
    given = options.given()
    for name in ("categories", "dosage"):  # what all cells are
        for other in ("long", "binarize", "dosage"):
            if name in given and other in given and name != other:
                both = (
                    Parameter(name, True),
                    " cannot be combined with ",
                    Parameter(other, given[other] is True or None),
                )
                raise source.error(*both)
    if options.categories:
        return categories.read(source, options)
    for name in ("as_category", "as_number", "bins"):
        if name in given:
            raise source.error(Parameter(name), " requires ", Parameter("categories", True))
    stream: TableStream = (reader if options.long is None else long).read(source, options)
    return stream


def write(table: Any, path: str | os.PathLike[str], format: str | None = None) -> None:
    """Write a table of 0 and 1 to a file, with the names of its rows and columns.

    Unknown cells become missing values, such as NA in CSV files and NaN in arrays, so that they are read back as
    unknown. Lists of items and images cannot hold them. The write is atomic: on an error, the file is absent or
    unchanged.

    Parameters
    ----------
    table : Table, or any input of Table.from_any
        The table.
    path : str or path-like
        The file; its extension selects the format.
    format : str, optional
        The format, if the extension does not select it; see `read`.

    Raises
    ------
    FileError
        The file cannot be written, or the format cannot hold the table.

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
    if table.data.n_unknown and not FORMATS[format].stores_unknown:
        cells = f"{counted(table.bits.n_unknown, 'cell')} {be(table.bits.n_unknown)}"
        fix = "; read the table with ", Parameter("missing", "zero"), ", or write .npz or .csv"
        raise FileError(f"{path.name}: {cells} unknown, which this format cannot store", *fix)
    reader = load_reader(format, str(path))
    with atomic_write(path, getattr(reader, "companions", lambda path: ())(path)) as temporary:
        reader.write(table, temporary, format)
