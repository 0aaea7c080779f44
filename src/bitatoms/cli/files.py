"""Tables and models from and to files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..columns.encoding import Encoding
from ..columns.table import Header, Picture, Table, check_picture
from ..columns.variables import parse_number
from ..errors import Parameter
from ..html.model_tables import pattern_table
from ..html.tables import DataTable
from ..io import model_file
from ..io.api import open_table, read, read_known_values, read_matching, read_row_label, write
from ..io.atomic import is_zarr_store
from ..io.errors import FileError
from ..io.formats.registry import FORMATS, GENOTYPE_FORMATS, infer_format
from ..io.labels.patterns import read_patterns
from ..io.labels.rows import read_weight_column
from ..io.options import ReadOptions, remembered
from ..io.store.packed_store import METADATA_KEY, TABLE_FORMAT
from ..io.stream import Source
from ..model.model import Model
from ..parameters import Param
from ..rows.store import Store
from .output import STANDARD, as_arguments, print_line, print_note, show_status
from .paths import Input, NewRows, OutputTable, output_file, spooled
from .summary import describe_table

AnyTable = TypeVar("AnyTable", bound=Table | Store)
CUT_SHORT = ("interrupted", "max_memory")  # how a search ends that was neither finished nor limited by the user
# Formats that a remembered option applies to.
_FORMATS_WITH = {
    "layer": ("h5ad", "h5mu", "zarr"),
    "modality": ("h5mu", "10x"),
    "blocks": ("pbm", "png", "tiff"),
    "phased": GENOTYPE_FORMATS,
}


# --- reading


@contextmanager
def _opened(data: Input, quiet: bool) -> Iterator[Path]:
    """Yield the file of a table, and show that it is read while that takes long."""
    with show_status(f"Reading {data.title}", quiet), spooled(data) as file:
        yield file


def read_table(data: Input, quiet: bool, learned: Header | None = None, absent: str | None = None) -> Table:
    """Read a table from a file, or from standard input; with the columns of a model if these are given."""
    with _opened(data, quiet) as file:
        return _read_file(file, data, learned, absent)


def _read_file(file: Path, data: Input, learned: Header | None = None, absent: str | None = None) -> Table:
    """Read the table from a file that holds the data."""
    if learned is None:
        table = read(file, **data.options.get_params())
    else:
        table = read_matching(file, learned, data.options, absent, data.title)
    if data.tile is None:
        return table
    return Table(
        table.data,
        table.row_names,
        table.columns,
        Picture(data.tile),
        absent_is_zero=table.absent_is_zero,
        row_data=table.row_data,
        column_data=table.column_data,
    )


def described(table: AnyTable, data: Input, quiet: bool) -> AnyTable:
    """Return what was read after printing its size; a table without rows or columns is an error."""
    if 0 in table.shape:
        raise FileError(f"{data.name}: the table has no {'rows' if len(table) == 0 else 'columns'}")
    if not quiet:
        print_line(f"{data.title}: {describe_table(table)}")
    return table


def read_with_weights(data: Input, column: str, quiet: bool) -> tuple[Table, NDArray[np.float64]]:
    """Read a table, and the weights of its rows from one of its columns, which is left out of the table."""
    if is_packed(data):
        raise FileError(
            f"{data.name}: ",
            Parameter("sample_weight", column),
            " does not apply to packed stores; pass the file that was packed",
        )
    with _opened(data, quiet) as file:
        weights, is_first = read_weight_column(file, column, data.options)
        own: dict[str, Any] = {"without": (*data.options.without, column)}
        if is_first and data.options.row_names is None:
            own["row_names"] = False  # different weights could be taken for names
        return _read_file(file, data.updated(**own)), weights


def read_atoms(path: Path, quiet: bool) -> Table:
    """Read known atoms: a table with one row per atom, or the pattern file of a model."""
    patterns = None if path == STANDARD else read_patterns(path)
    return read_table(Input(path).with_all_known(), quiet) if patterns is None else patterns


def remembered_options(data: Input) -> dict[str, Any]:
    """Return the options that a model remembers because they decide what the cells mean."""
    return remembered(data.given())


def load_model(path: Path, declared: dict[str, tuple[Any, Param]] | None = None) -> model_file.LoadedModel:
    """Read a model file, and the parameters declared, if any."""
    if path == STANDARD:
        raise FileError("standard input: a model cannot be read from a stream; pass a file")
    return model_file.load(path, declared)


def load_model_and_table(rows: NewRows, quiet: bool) -> tuple[Model, Table]:
    """Read a model, and a table with the options that the model remembers and its columns."""
    model, data = _load_model(rows, quiet)
    return model, read_table(data, quiet, model.header, rows.absent)


def load_model_and_original(rows: NewRows, quiet: bool) -> tuple[Model, Table, dict[str, list[str | None]], str]:
    """Read a model and a table; also return the values of variables in the file, and what it calls the row names."""
    model, data = _load_model(rows, quiet)
    with _opened(data, quiet) as file:
        table = _read_file(file, data, model.header, rows.absent)
        label = "" if table.row_names is None else read_row_label(file, table.row_names, data.options)
        return model, table, read_known_values(file, model.header, data.options), label


def _load_model(rows: NewRows, quiet: bool) -> tuple[Model, Input]:
    """Read a model, and return how a table is read with the options that it remembers."""
    (model, _, stored), data = load_model(rows.model), rows.data
    # The meaning of the cells of a packed store was decided when it was packed.
    added = {} if is_packed(data) else _options_from_model(data, stored)
    if added and not quiet:
        print_note(f"{data.title} is read with the options of the model's data:{as_arguments(added)}")
    return model, data.updated(**added)


def _options_from_model(data: Input, stored: dict[str, Any]) -> dict[str, Any]:
    """Return the options that a model remembers, that were not given, and that apply to the format of the data."""
    format = data.options.format
    format = "csv" if data.path == STANDARD and format is None else infer_format(data.path, format)
    return {
        name: value
        for name, value in stored.items()
        if name not in data.given() and format in _FORMATS_WITH.get(name, (format,))
    }


# --- packed stores


def is_packed(data: Input) -> bool:
    """Return whether a table is a packed store."""
    path = data.path
    if path == STANDARD or data.options.format not in (None, "zarr") or not is_zarr_store(path):
        return False
    try:
        about = json.loads((path / "zarr.json").read_bytes())["attributes"][METADATA_KEY]
    except (OSError, ValueError, LookupError, TypeError):  # the reader reports what is wrong with it
        return False
    return isinstance(about, dict) and about.get("format") == TABLE_FORMAT


def open_packed(data: Input) -> Store | None:
    """Open a packed store; return None for other data."""
    if not is_packed(data):
        return None
    path, options = data.path, data.options
    store = Store(path)
    _check_packed_options(path, options)
    if store.has_unknown and options.missing != "unknown":
        raise FileError(
            f"{path}: some of its cells are unknown, which only bitatoms pack can change; omit ",
            Parameter("missing", options.missing),
        )
    if data.tile is not None:
        store.picture = check_picture(Picture(data.tile), store.shape)
    return store


def _check_packed_options(path: Path, options: ReadOptions) -> None:
    """Raise an error for options that do not apply to a packed store."""
    if options.transpose:
        raise FileError(
            f"{path}: a packed store can be transposed only by bitatoms pack; omit ", Parameter("transpose", True)
        )
    if options.without:
        raise FileError(
            f"{path}: columns of a packed store can be left out only by bitatoms pack; omit ", Parameter("without")
        )
    if options.binarize is not None and not 0 <= options.binarize < 1:
        raise FileError(f"{path}: a packed store contains only 0 and 1; omit ", Parameter("binarize"))
    open_table(Source(path, "zarr", str(path), keeps_rows=False), options)


# --- writing


def write_table(table: Table, output: OutputTable | None) -> None:
    """Write a table to a file or a stream, if it is requested."""
    if output is not None:
        with output_file(output.path, FORMATS[output.format].extensions[0]) as file:
            write(table, file, output.format)


def write_code_table(codes: Table, output: OutputTable | None) -> None:
    """Write the codes of rows as a table; an error explains that a model without atoms gives no columns."""
    try:
        write_table(codes, output)
    except FileError as error:
        if codes.shape[1] or output is None:
            raise
        raise FileError(
            f"{output.name}: the model has no atoms, so codes have no columns, which this format cannot store; "
            ".npz files can"
        ) from error


def write_atom_table(model: Model, output: OutputTable | None) -> None:
    """Write the atoms as a table, if it is requested."""
    write_table(
        Table(model.atoms, model.atom_names, model.columns, model.picture, column_data=model.column_data), output
    )


def write_pattern_file(model: Model, path: Path | None) -> None:
    """Write patterns to a file or a stream, by default as CSV, if they are requested."""
    if path is not None:
        write_readable(pattern_table(model.patterns()), path)


def named_rows(
    row_names: Sequence[str] | None,
    columns: Iterable[str],
    rows: Iterable[Sequence[Any]],
    label: str = "",
    number_format: str = "",
) -> DataTable:
    """Return a table to read whose first column, called ``label``, has the names of the rows, if they have names."""
    names = tuple(columns)
    formats = dict.fromkeys(names, number_format)
    if row_names is None:
        return DataTable(names, rows, formats)
    return DataTable((label, *names), ((name, *row) for name, row in zip(row_names, rows, strict=True)), formats)


def write_readable(table: DataTable, path: Path, format: str | None = None) -> None:
    """Write a table to read to a file or, by default as CSV, to a stream."""
    with output_file(path, ".csv") as file:
        table.write(file, format)


def save_model(model: Model, path: Path, parameters: dict[str, Any], reading: dict[str, Any]) -> None:
    """Write a model to a file or a stream."""
    with output_file(path, ".npz") as file:
        model_file.save(model, file, parameters, reading)


def path_of_interrupted(path: Path) -> Path:
    """Return where to write the model of a search that was cut short: only another such model is replaced.

    For ``model.npz`` it is that file, or ``model.interrupted.npz`` if it holds anything else, or
    ``model.interrupted-2.npz``, and so on. A stream is written into.
    """
    if path == STANDARD:
        return path
    endings = chain(["", ".interrupted"], (f".interrupted-{number}" for number in count(2)))
    paths = (path.with_name(f"{path.stem}{ending}{path.suffix}") for ending in endings)
    return next(each for each in paths if not each.exists() or _is_interrupted(each))


def _is_interrupted(path: Path) -> bool:
    """Return whether a file is the model of a search that was cut short."""
    try:
        return model_file.load(path).model.ended in CUT_SHORT
    except (FileError, OSError):
        return False


# --- values of encoded variables


def check_decoded(output: OutputTable, model_path: Path) -> None:
    """Raise if decoded values cannot be written: they need a model of categories or copies, and a text format."""
    if output.format not in ("csv", "tsv", "xlsx"):
        raise FileError(f"{output.name}: categories are written as .csv, .tsv or .xlsx; use one of these extensions")
    if Encoding.of(load_model(model_path).model) is None:
        raise FileError(
            f"{model_path}: the model was not learned from a table of categories or of numbers of copies; omit --decode"
        )


def decoded_values(table: Table, original: dict[str, list[str | None]] | None = None) -> dict[str, list[Any]]:
    """Return the values of encoded variables: as the original has them, if it does. Of genotypes, numbers of copies."""
    encoding = Encoding.of(table)
    assert encoding is not None
    return encoding.decode(table, original or None)


def write_decoded(values: dict[str, list[Any]], table: Table, output: OutputTable, label: str = "") -> None:
    """Write the values of encoded variables to a file or a stream, with the names of rows below a label."""
    encoding = Encoding.of(table)
    if encoding is not None and output.format == "xlsx":  # whose cells have types
        numbers = {variable.name for variable in encoding.variables if variable.kind != "category"}
        values = values | {name: list(map(_as_number, values[name])) for name in numbers}
    rows = zip(*values.values(), strict=True)
    named = named_rows(table.row_names, values, rows, "" if label in values else label)
    write_readable(named, output.path, output.format)


def count_missing(values: Mapping[str, Sequence[Any]]) -> int:
    """Return how many values of variables are None."""
    return sum(value is None for column in values.values() for value in column)


def _as_number(value: Any) -> Any:
    """Return a text that is a number as one; others, such as the names of bins, as they are."""
    number = parse_number(value.strip()) if isinstance(value, str) else None
    return value if number is None else number
