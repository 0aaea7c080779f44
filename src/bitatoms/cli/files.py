"""Tables and models from and to files, where - means standard input or output."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..columns.encoding import Encoding
from ..columns.table import Header, Picture, Table, check_picture
from ..columns.variables import parse_number
from ..errors import Parameter
from ..html.tables import DataTable, readable_format
from ..io import model_file
from ..io.api import StreamingSource, open_table, read, read_known_values, read_matching, read_row_label, write
from ..io.atomic import is_zarr_store, link_target, write_error
from ..io.errors import FileError
from ..io.formats.registry import FORMATS, GENOTYPE_FORMATS, check_one_file, infer_format
from ..io.options import ReadOptions, remembered
from ..io.patterns import read_patterns
from ..io.store.packed_store import METADATA_KEY, TABLE_FORMAT
from ..io.weight_column import read_weight_column
from ..model.model import Model
from ..parameters import Param
from ..rows.store import Store
from .console import print_note
from .options import PLAIN, Input, NewRows, Reading, default_of
from .progress import show_status
from .spelling import STANDARD, as_arguments
from .streams import is_stream, output_file, output_name, spooled

CUT_SHORT = ("interrupted", "max_memory")  # how a search ends that was neither finished nor limited by the user
_DECODED_FORMATS = ("csv", "tsv", "xlsx")
# Formats that a remembered option applies to.
_FORMATS_WITH = {
    "layer": ("h5ad", "h5mu", "zarr"),
    "modality": ("h5mu", "10x"),
    "blocks": ("pbm", "png", "tiff"),
    "phased": GENOTYPE_FORMATS,
}


class Original(NamedTuple):
    """What a file has and its table of 0 and 1 has not, for a table that is decoded."""

    values: dict[str, list[str | None]]  # of variables
    row_label: str  # what the column of the names of rows is called


class DecodedSize(NamedTuple):
    """The numbers of rows, of variables and of missing values of a decoded table."""

    rows: int
    columns: int
    missing: int


def read_table(data: Input, learned: Header | None = None, absent: str | None = None) -> Table:
    """Read the table from a file, or from standard input; with the columns of a model if these are given."""
    with spooled(data) as file, named_in_errors(data, file):
        return _read_file(file, data, learned, absent)


def _read_file(file: Path, data: Input, learned: Header | None, absent: str | None) -> Table:
    """Read the table from a file that holds the data."""
    reading = data.reading
    if learned is None:
        table = read(file, reading.format, **reading.options)
    else:
        table = read_matching(file, learned, reading.read_options, absent, data.title)
    if reading.tile is None:
        return table
    return Table(
        table.data,
        table.row_names,
        table.columns,
        Picture(reading.tile),
        absent_is_zero=table.absent_is_zero,
        row_data=table.row_data,
        column_data=table.column_data,
    )


def read_with_status(data: Input, quiet: bool, learned: Header | None = None, absent: str | None = None) -> Table:
    """Read a table, and show that while it takes long."""
    with show_status(f"Reading {data.title}", quiet):
        return read_table(data, learned, absent)


def read_with_weights(data: Input, column: str, quiet: bool) -> tuple[Table, NDArray[np.float64]]:
    """Read a table, and the weights of its rows from one of its columns, which is left out of the table."""
    with show_status(f"Reading {data.title}", quiet), spooled(data) as file, named_in_errors(data, file):
        options = data.reading.options
        weights, is_first = read_weight_column(file, column, data.reading.read_options)
        own: dict[str, Any] = {"without": (*options["without"], column)}
        if is_first and options["row_names"] is None:
            own["row_names"] = False  # different weights could be taken for names
        return read_table(Input(file, data.reading.updated(own))), weights


def read_atoms(path: Path, quiet: bool) -> Table:
    """Read known atoms: a table with one row per atom, or the pattern file of a model."""
    patterns = None if path == STANDARD else read_patterns(path)
    return read_with_status(Input(path, PLAIN).with_all_known(), quiet) if patterns is None else patterns


def remembered_options(reading: Reading) -> dict[str, Any]:
    """Return the options that a model remembers because they decide what the cells mean."""
    return remembered(reading.given())


def options_from_model(data: Input, stored: dict[str, Any]) -> dict[str, Any]:
    """Return the options that a model remembers, that were not given, and that apply to the format of the data."""
    format = data.reading.format
    format = "csv" if data.path == STANDARD and format is None else infer_format(data.path, format)
    return {
        name: value
        for name, value in stored.items()
        if data.reading.options[name] == default_of(name) and format in _FORMATS_WITH.get(name, (format,))
    }


@contextmanager
def named_in_errors(data: Input, file: Path) -> Iterator[None]:
    """Name the data in errors about a file that is a copy of them."""
    try:
        yield
    except FileError as error:
        if file == data.path:
            raise
        parts = [part.replace(str(file), data.name, 1) if isinstance(part, str) else part for part in error.args]
        raise FileError(*parts) from error


def table_format(path: Path, format: str | None = None) -> str:
    """Return the format of a table to write, by default CSV on the standard output; raise if a path cannot hold it."""
    if path != STANDARD:
        return infer_format(path, format, writing=True)
    format = format or "csv"
    check_one_file(format, output_name(path))
    return format


def write_table(table: Table, path: Path, format: str | None = None) -> None:
    """Write a table to a file or a stream."""
    format = table_format(path, format)
    with output_file(path, FORMATS[format].extensions[0]) as file:
        write(table, file, format)


def check_output(path: Path, format: str | None, decoded_by: Path | None) -> None:
    """Raise if a table cannot be written; decoded values need a model of categories or copies, and a text format."""
    format = table_format(path, format)
    if decoded_by is None:
        return
    if format not in _DECODED_FORMATS:
        raise FileError(
            f"{output_name(path)}: categories are written as .csv, .tsv or .xlsx; use one of these extensions"
        )
    model = load_model(decoded_by).model
    if Encoding.of(model) is None:
        raise FileError(
            f"{decoded_by}: the model was not learned from a table of categories or of numbers of copies; omit --decode"
        )


def decoded_values(table: Table, original: Original | None = None) -> dict[str, list[Any]]:
    """Return the values of encoded variables: as the original has them, if it does. Of genotypes, numbers of copies."""
    encoding = Encoding.of(table)
    assert encoding is not None
    return encoding.decode(table, None if original is None else original.values or None)


def write_decoded(table: Table, path: Path, format: str | None = None, original: Original | None = None) -> DecodedSize:
    """Write the values of encoded variables to a file or a stream (see `decoded_values`); return their numbers."""
    values, encoding, format = decoded_values(table, original), Encoding.of(table), table_format(path, format)
    size = DecodedSize(len(table), len(values), count_missing(values))
    if encoding is not None and format == "xlsx":  # whose cells have types
        numbers = {variable.name for variable in encoding.variables if variable.kind != "category"}
        values |= {name: list(map(_as_number, values[name])) for name in numbers}
    label = original.row_label if original is not None and original.row_label not in values else ""
    write_readable(named_rows(table.row_names, values, zip(*values.values(), strict=True), label), path, format)
    return size


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


def check_readable(path: Path, contents: str) -> None:
    """Raise an error that names the contents of a file if its ending is not one of a table to read."""
    if not is_stream(path):
        readable_format(path, contents)


def write_readable(table: DataTable, path: Path, format: str | None = None) -> None:
    """Write a table to read to a file or, by default as CSV, to a stream."""
    with output_file(path, ".csv") as file:
        table.write(file, format)


def count_missing(values: Mapping[str, Sequence[Any]]) -> int:
    """Return how many values of variables are None."""
    return sum(value is None for column in values.values() for value in column)


def _as_number(value: Any) -> Any:
    """Return a text that is a number as one; others, such as the names of bins, as they are."""
    number = parse_number(value.strip()) if isinstance(value, str) else None
    return value if number is None else number


def write_code_table(codes: Table, path: Path, format: str | None = None) -> None:
    """Write the codes of rows as a table; an error explains that a model without atoms gives no columns."""
    try:
        write_table(codes, path, format)
    except FileError as error:
        if codes.shape[1]:
            raise
        raise FileError(
            f"{output_name(path)}: the model has no atoms, so codes have no columns, which this format cannot store; "
            ".npz files can"
        ) from error


def check_writable(*paths: Path | None, read: tuple[Path | None, ...] = ()) -> None:
    """Check before long work that files can be written, and that none of them is also read or written twice."""
    used = {path.resolve() for path in read if path is not None and path != STANDARD}
    for path in paths:
        if path is None:
            continue
        resolved = STANDARD if path == STANDARD else path.resolve()
        if resolved in used:
            name = output_name(path)
            raise FileError(f"{name}: this command already reads or writes this file; choose another name")
        used.add(resolved)
        if path != STANDARD:
            check_parent(path)
            if path.is_dir() and path.suffix != ".zarr":
                raise FileError(f"{path}: there is a folder of this name; choose another name")


def check_json_output(json: bool, *outputs: Path | None) -> None:
    """Check that nothing else is written to the standard output if the result is printed as JSON."""
    if json and STANDARD in outputs:
        raise FileError("standard output: --json already writes to it; choose a file for other output")


def check_parent(path: Path) -> None:
    """Check that the folder of a file exists, where symbolic links lead."""
    folder = link_target(path).parent
    if not folder.is_dir():
        raise FileError(f"{path}: there is no folder {str(folder)!r}; create it first")


def check_checkpoint(folder: Path, *others: Path | None) -> None:
    """Check before long work that a folder can contain a checkpoint and is not used for anything else."""
    check_not_stream(folder, "a checkpoint")
    if any(other is not None and other != STANDARD and other.resolve() == folder.resolve() for other in others):
        raise FileError(f"{folder}: this command already reads or writes this file; choose another name")
    check_parent(folder)
    if folder.exists() and not folder.is_dir():
        raise FileError(f"{folder}: this is a file, but a checkpoint is a folder; choose another name")
    if is_zarr_store(folder):
        raise FileError(f"{folder}: this is a Zarr store; a checkpoint needs a folder of its own")


def check_folder(folder: Path, content: str) -> None:
    """Check before long work that a folder can be created and written to."""
    existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not existing.is_dir():
        raise FileError(f"{folder}: {existing} is a file, but {content} is written to a folder; choose another name")
    try:
        tempfile.TemporaryDirectory(prefix=".bitatoms-", dir=existing).cleanup()
    except OSError as error:
        raise write_error(folder, error) from error


def check_not_stream(path: Path, content: str) -> None:
    """Check that a path is neither the standard output nor a device or a pipe, which cannot hold a folder."""
    if is_stream(path):
        raise FileError(f"{output_name(path)}: {content} cannot be written to a stream; pass a file name")


def check_html_extension(path: Path) -> None:
    """Check the extension of a report."""
    if path.suffix.lower() not in (".html", ".htm") and not is_stream(path):
        raise FileError(f"{path}: a report is an HTML page; use the extension .html")


def is_packed(path: Path, format: str | None = None) -> bool:
    """Return whether a path is that of a packed store."""
    if path == STANDARD or format not in (None, "zarr") or not is_zarr_store(path):
        return False
    try:
        about = json.loads((path / "zarr.json").read_bytes())["attributes"][METADATA_KEY]
    except (OSError, ValueError, LookupError, TypeError):  # the reader reports what is wrong with it
        return False
    return isinstance(about, dict) and about.get("format") == TABLE_FORMAT


def open_packed(data: Input) -> Store | None:
    """Open a packed store; return None for other data."""
    path, reading = data
    if not is_packed(path, reading.format):
        return None
    store = Store(path)
    _check_packed_options(path, reading.options)
    if store.has_unknown and reading.options["missing"] != "unknown":
        raise FileError(
            f"{path}: some of its cells are unknown, which only bitatoms pack can change; omit ",
            Parameter("missing", reading.options["missing"]),
        )
    if reading.tile is not None:
        store.picture = check_picture(Picture(reading.tile), store.shape)
    return store


def _check_packed_options(path: Path, options: dict[str, Any]) -> None:
    """Raise an error for options that do not apply to a packed store."""
    threshold = options["binarize"]
    if options["transpose"]:
        raise FileError(
            f"{path}: a packed store can be transposed only by bitatoms pack; omit ", Parameter("transpose", True)
        )
    if options["without"]:
        raise FileError(
            f"{path}: columns of a packed store can be left out only by bitatoms pack; omit ", Parameter("without")
        )
    if threshold is not None and not 0 <= threshold < 1:
        raise FileError(f"{path}: a packed store contains only 0 and 1; omit ", Parameter("binarize"))
    open_table(StreamingSource(path, "zarr", str(path)), ReadOptions(**options))


def path_of_interrupted(path: Path) -> Path:
    """Return where to write the model of a search that was cut short: only another such model is replaced.

    For ``model.npz`` it is that file, or ``model.interrupted.npz`` if it holds anything else, or
    ``model.interrupted-2.npz``, and so on. A stream is written into.
    """
    if is_stream(path):
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


def load_model(path: Path, declared: dict[str, tuple[Any, Param]] | None = None) -> model_file.LoadedModel:
    """Read a model file, and the parameters declared, if any."""
    if path == STANDARD:
        raise FileError("standard input: a model cannot be read from a stream; pass a file")
    return model_file.load(path, declared)


def load_model_and_table(rows: NewRows, quiet: bool) -> tuple[Model, Table]:
    """Read a model, and a table with the options that the model remembers and its columns."""
    model, data = _load_model(rows, quiet)
    return model, read_with_status(data, quiet, model.header, rows.absent)


def load_model_and_original(rows: NewRows, quiet: bool) -> tuple[Model, Table, Original]:
    """Read a model and a table as `load_model_and_table` does, and what else a decoded table takes from the file."""
    model, data = _load_model(rows, quiet)
    with show_status(f"Reading {data.title}", quiet), spooled(data) as file, named_in_errors(data, file):
        table = _read_file(file, data, model.header, rows.absent)
        options = data.reading.read_options
        values = read_known_values(file, model.header, options)
        label = "" if table.row_names is None else read_row_label(file, table.row_names, options)
        return model, table, Original(values, label)


def _load_model(rows: NewRows, quiet: bool) -> tuple[Model, Input]:
    """Read a model, and return how a table is read with the options that it remembers."""
    model, _, stored = load_model(rows.model_path)
    data = rows.data
    # The meaning of the cells of a packed store was decided when it was packed.
    added = {} if is_packed(data.path, data.reading.format) else options_from_model(data, stored)
    if added and not quiet:
        print_note(f"{data.title} is read with the options of the model's data:{as_arguments(added)}")
    return model, Input(data.path, data.reading.updated(added))
