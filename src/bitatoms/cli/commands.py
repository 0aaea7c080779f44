"""The commands, once their arguments are parsed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..api import no_checkpoint
from ..bits import BitMatrix, stack_rows
from ..columns.encoding import Encoding
from ..columns.matching import match_columns
from ..columns.table import Header, Picture, Table
from ..device_choice import checked_device
from ..errors import Parameter
from ..formatting import counted, listed_names
from ..frames import obsm_key
from ..html.model_tables import pattern_table
from ..io import model_file
from ..io.atomic import atomic_write
from ..io.errors import FileError
from ..io.formats.registry import FORMATS
from ..model.model import Model
from ..report import write_report
from ..rows.budget import coding_rows, given_memory_limit
from ..rows.store import Store
from ..rows.store_transform import StoreTransform
from ..rows.weights import WeightedRows, Weights, checked_weights
from . import stores
from .console import Display, print_json, print_line, print_note, print_result
from .files import (
    CUT_SHORT,
    check_checkpoint,
    check_html_extension,
    check_json_output,
    check_output,
    check_readable,
    check_writable,
    is_packed,
    load_model,
    load_model_and_table,
    named_rows,
    open_packed,
    path_of_interrupted,
    read_atoms,
    read_with_status,
    read_with_weights,
    remembered_options,
    table_format,
    write_code_table,
    write_decoded,
    write_readable,
    write_table,
)
from .options import Input, NewRows
from .progress import ObservedStore, SearchProgress, show_status
from .spelling import as_arguments, quote_path
from .stores import RunOptions, show_store, write_codes
from .streams import is_stream, output_file, output_name
from .summary import (
    describe_codes,
    describe_shape,
    describe_size,
    describe_table,
    describe_unknown,
    model_json,
    print_patterns,
    table_json,
)

_NUMBER_FORMATS = ("csv", "tsv", "xlsx", "npy")


class Outputs(NamedTuple):
    """The files to write."""

    model: Path | None = None
    codes: Path | None = None
    atoms: Path | None = None
    patterns: Path | None = None
    report: Path | None = None

    def check(self, read: Path, json: bool) -> None:
        """Check before long work that all files can be written."""
        check_writable(*self, read=(read,))
        check_json_output(json, *self.paths)
        for table in (self.codes, self.atoms):
            if table is not None:
                table_format(table)
        if self.patterns is not None:
            check_readable(self.patterns, "patterns")
        if self.report is not None:
            check_html_extension(self.report)
        if self.model is not None and self.model.suffix.lower() != ".npz" and not is_stream(self.model):
            raise FileError(f"{self.model}: a model is an .npz file; use the extension .npz")

    @property
    def paths(self) -> list[Path]:
        """The files that are requested."""
        return [path for path in self if path is not None]


class BesideTable(NamedTuple):
    """What a fit takes beside its table: the column with the weights of rows, and the file of fixed atoms."""

    weight_column: str | None = None
    fixed: Path | None = None


class OutputTable(NamedTuple):
    """A table to write: its path, and its format if the path does not show it."""

    path: Path
    format: str | None = None


def fit(
    data: Input,
    outputs: Outputs,
    search: dict[str, Any],
    run: RunOptions,
    display: Display,
    beside: BesideTable = BesideTable(),  # noqa: B008 - immutable
) -> str | None:
    """Learn from a table. If Ctrl-C ended it early, return what was written."""
    outputs.check(data.path, display.json)
    if run.checkpoint is not None:
        check_checkpoint(run.checkpoint, data.path, *outputs)
    elif run.resume:
        raise no_checkpoint()
    quiet = display.quiet or display.json
    table, weights = _open_weighted(data, beside.weight_column, quiet)
    if beside.fixed is not None:
        search = search | {"fixed_atoms": read_atoms(beside.fixed, quiet)}
    if 0 in table.shape:
        raise FileError(f"{data.name}: the table has no {'rows' if len(table) == 0 else 'columns'}")
    if isinstance(table, Store):
        stores.check_fit(table, search, run, outputs.codes, outputs.report)
    if not quiet:
        described = stores.describe_store(table) if isinstance(table, Store) else describe_table(table)
        print_line(f"{data.title}: {described}")
        if not isinstance(table, Store) and (unknown := describe_unknown(table)):
            print_line(unknown)
        if (encoding := Encoding.of(table)) is not None:
            print_line(f"Encoded: {encoding.described()}")
        if weights is not None:
            print_line(f"Weights: column {beside.weight_column!r}, {weights.sum()} rows in all")
    resume_hint = (
        "" if run.checkpoint is None else f"; repeat the command with --resume to resume from {run.checkpoint}"
    )
    keeps_model = outputs.model is not None or run.checkpoint is not None
    keeps_codes = outputs.codes is not None or outputs.report is not None
    fitting = _learned(table, weights, search, run, quiet, keeps_model, keeps_codes)
    with fitting as (model, codes, interrupted):
        if model is None:
            return f"nothing was written{resume_hint}"
        written = []
        complete = model.ended not in CUT_SHORT
        if outputs.model is not None:
            written.append(outputs.model if complete else path_of_interrupted(outputs.model))
            packed = stores.packing_options(table) if isinstance(table, Store) else {}
            save = partial(save_model, model, written[0], to_store(search), packed | remembered_options(data.reading))
            try:
                save()
            except KeyboardInterrupt:  # saving is short, and the search may have been long
                if is_stream(written[0]):  # a part of it may be written
                    raise
                interrupted = True
                save()
        if complete:
            try:
                writing = _write_outputs(model, codes, table, weights, outputs, data, run, quiet)
                for path in () if interrupted else writing:
                    written.append(path)
            except KeyboardInterrupt:
                interrupted = True
            if interrupted:
                return f"only {listed(written)} was written" if written else "nothing was written"
        if display.json:
            print_json(model_json(model, display.top))
        elif not quiet:
            print_line(f"\n{model.summary()}")
            print_patterns(model, display.top, "\nThe strongest patterns (atoms):")
            print_line(
                f"\nWritten: {listed(written)}" if written else "\nNothing was written; -o model.npz keeps the model."
            )
            can_be_read = outputs.model is not None and not is_stream(outputs.model) and not is_stream(data.path)
            if complete and can_be_read and model.atoms.n_rows and weights is None:
                _print_next_command(data, outputs, run, table)
        if complete:
            return None
        result = _describe_written(written, outputs) + resume_hint
        if model.ended == "max_memory":
            raise MemoryError(f"memory ran out; {result}")
        return result


def _open_weighted(data: Input, column: str | None, quiet: bool) -> tuple[Table | Store, Weights | None]:
    """Open a packed store, or read other data with the weights of its rows, if they are in a column."""
    if column is None:
        return open_data(data, quiet), None
    if is_packed(data.path, data.reading.format):
        raise FileError(
            f"{data.name}: ",
            Parameter("sample_weight", column),
            " does not apply to packed stores; pass the file that was packed",
        )
    table, weights = read_with_weights(data, column, quiet)
    return table, checked_weights(weights, len(table)) if len(table) else None


def _repeated(table: Table, weights: Weights | None) -> Table:
    """Return a table with the rows that a fit has seen, each as often as its weight states."""
    if weights is None:
        return table
    names = None if table.row_names is None else tuple(np.repeat(np.array(table.row_names, object), weights).tolist())
    rows = WeightedRows(table.data, weights).repeated(None)
    picture = None if table.picture is None else Picture(table.picture.tile)
    return Table(rows, names, table.columns, picture, column_data=table.column_data)


def save_model(model: Model, path: Path, parameters: dict[str, Any], reading: dict[str, Any]) -> None:
    """Write a model to a file or a stream."""
    with output_file(path, ".npz") as file:
        model_file.save(model, file, parameters, reading)


def to_store(search: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a search to store with its model, from the options of the command."""
    from ..estimators.options import EstimatorOptions, stored_parameters

    return stored_parameters(EstimatorOptions.from_flat(search).get_params())


def write_pattern_file(model: Model, path: Path) -> None:
    """Write patterns to a file or a stream, by default as CSV."""
    write_readable(pattern_table(model.patterns()), path)


def _write_report(
    model: Model, table: Table, page: ReportPage, run: RunOptions, quiet: bool, codes: BitMatrix | None = None
) -> None:
    """Write a report to a file or a stream, with the codes of a fit if there are any."""
    with show_status("Writing the report", quiet), output_file(page.path, ".html") as file:
        shown: dict[str, Any] = {"title": page.title, "rows": page.rows, "groups": page.groups}
        shown |= {"codes": codes, "max_rows": page.max_rows}
        write_report(model, table, file, **shown, n_jobs=run.n_jobs, device=checked_device(run.device))


def _describe_written(written: list[Path], outputs: Outputs) -> str:
    """Describe what was written of a search that was cut short."""
    if not written:
        return "nothing was written"
    kept = "" if written[0] == outputs.model else f", and {outputs.model} was not replaced"
    others = ", and nothing else was written" if len(outputs.paths) > 1 else ""
    return f"the best model so far is in {written[0]}{kept}{others}"


def _print_next_command(data: Input, outputs: Outputs, run: RunOptions, rows: Table | Store) -> None:
    """Suggest the next command: a report, unless that would pack a table that is not packed yet."""
    assert outputs.model is not None
    encoding = ("categories", "as_category", "as_number", "bins", "dosage")
    known = (*remembered_options(data.reading), *encoding, "tile")  # options that the model remembers
    options = as_arguments({name: value for name, value in data.reading.given().items() if name not in known})
    model, table = quote_path(outputs.model), quote_path(data.path)
    is_packed_table = isinstance(rows, Table) and isinstance(rows.data, BitMatrix)
    if not is_packed_table and outputs.codes is None:
        if run.max_memory is not None:
            options += as_arguments({"max_memory": run.max_memory})
        codes = "codes.zarr" if isinstance(rows, Store) else "codes.npz"
        print_line(f"Next: bitatoms transform {model} {table} -o {codes}{options}")
    elif is_packed_table and outputs.report is None:
        print_line(f"Next: bitatoms report {model} {table} -o report.html{options}")


class LearnedModel(NamedTuple):
    """The model of a fit, None if there is none yet; its codes, if they are available; whether Ctrl-C came."""

    model: Model | None
    codes: Iterable[BitMatrix] | None
    interrupted: bool


@contextmanager
def _learned(
    table: Table | Store,
    weights: Weights | None,
    search: dict[str, Any],
    run: RunOptions,
    quiet: bool,
    keeps_model: bool,
    keeps_codes: bool,
) -> Iterator[LearnedModel]:
    """Fit the estimator with progress, and yield the model: after Ctrl-C the best so far, if any."""
    # Only this needs scikit-learn, which takes longer to import than many commands take to run.
    from ..estimators import BinaryDictionaryLearning
    from ..estimators.dictionary_learning import fit_with_codes
    from ..estimators.options import EstimatorOptions

    codes, interrupted = None, False
    with ExitStack() as stack:
        with show_status("Starting", quiet) as status:
            n_rows = len(table) if weights is None else int(weights.sum())
            progress = SearchProgress(n_rows, quiet, status, keeps_model)
            how = EstimatorOptions.from_flat({**search, "callbacks": progress, **run._asdict()})
            estimator = BinaryDictionaryLearning(**how.get_params(deep=False))
            data = ObservedStore(table, progress.update_rows) if isinstance(table, Store) else table
            try:
                if keeps_codes:
                    codes = stack.enter_context(fit_with_codes(estimator, data, weights))
                else:
                    estimator.fit(data, sample_weight=weights)
            except KeyboardInterrupt:
                interrupted = True
        yield LearnedModel(estimator.as_model() if hasattr(estimator, "n_iter_") else None, codes, interrupted)


def _write_outputs(
    model: Model,
    codes: Iterable[BitMatrix] | None,
    table: Table | Store,
    weights: Weights | None,
    outputs: Outputs,
    data: Input,
    run: RunOptions,
    quiet: bool,
) -> Iterator[Path]:
    """Write what was requested besides the model; yield each file when it is complete."""
    if outputs.atoms is not None:
        write_table(_atoms(model), outputs.atoms)
        yield outputs.atoms
    if outputs.patterns is not None:
        write_pattern_file(model, outputs.patterns)
        yield outputs.patterns
    if outputs.report is not None:
        rows = read_with_status(data, quiet) if isinstance(table, Store) else _repeated(table, weights)
        codes = None if codes is None else [*codes]  # they may be wanted once more
        fitted = None if codes is None else stack_rows(codes, model.atoms.n_rows)
        if fitted is not None and weights is not None:
            fitted = fitted[np.repeat(np.arange(len(weights)), weights)]
        _write_report(model, rows, ReportPage(outputs.report, data.title), run, quiet, fitted)
        yield outputs.report
    if outputs.codes is not None:
        if codes is None and not quiet:
            n_rows = len(table) if weights is None else weights.sum()
            print_note(
                f"the search ended before all rows were coded: the counts of the model are those of {model.n_samples} "
                f"of {n_rows} rows, and {outputs.codes} has the codes that bitatoms transform gives"
            )
        if isinstance(table, Store):
            write_codes(table, model, outputs.codes, None, run, quiet, fitted=codes)
        elif codes is None:
            write_code_table(_codes(model, table, run), outputs.codes)
        else:
            (bits,) = codes
            codes_table = Table(bits, table.row_names, model.atom_names, row_data=table.row_data)
            write_code_table(codes_table, outputs.codes)
        yield outputs.codes


def transform(rows: NewRows, output: OutputTable, run: RunOptions, display: Display) -> None:
    """Write the codes of a table; from one .h5ad file to another, as a copy of the input with codes."""
    (model_path, data, absent), quiet = rows, display.is_silent
    check_json_output(display.json, output.path)
    format = table_format(*output)
    # Codes of a transposed AnnData are those of its variables, which obsm cannot hold; atoms of obsm do not fit varm.
    adds = format == "h5ad" and _is_h5ad(data) and not data.reading.options["transpose"] and not _is_of_obsm(rows)
    check_writable(output.path, read=(model_path,) if adds else (model_path, data.path))
    store = open_packed(data)
    codes: Table | Store
    if store is not None:
        model = load_model(model_path).model
        codes = write_codes(store, model, *output, run, quiet, absent)
    else:
        model, table = load_model_and_table(rows, quiet)
        codes = _codes(model, table, run)
        if adds:
            from ..io.formats.single_cell.h5ad import write_annotated

            soft = _soft_codes(model, table, codes, run)
            with output_file(output.path, ".h5ad") as file, atomic_write(file) as made:
                write_annotated(data.path, made, codes.bits, model, soft)
        else:
            write_code_table(codes, *output)
    if display.json or not display.quiet:
        n_uses = codes.bits.count() if isinstance(codes, Table) else sum(bits.count() for bits in codes.stored_chunks())
        mean, name = n_uses / max(1, len(codes)), output_name(output.path)
        values = {"written": name, "rows": len(codes), "atoms": codes.shape[1], "uses": n_uses}
        line = f"{name}: codes of {describe_codes(codes.shape)}, {mean:.1f} atoms per row"
        print_result(values, display, line)


def transform_soft(rows: NewRows, output: OutputTable, run: RunOptions, display: Display) -> None:
    """Write the soft codes of a table: the bits that each atom saves in each row."""
    (model_path, data, absent), quiet = rows, display.is_silent
    check_json_output(display.json, output.path)
    name = output_name(output.path)
    format = table_format(*output)
    if format not in _NUMBER_FORMATS:
        raise FileError(
            f"{name}: soft codes are numbers, which are written as .csv, .tsv, .xlsx or .npy; a copy of an .h5ad file "
            "has them in any case: omit --soft"
        )
    check_writable(output.path, read=(model_path, data.path))
    store = open_packed(data)
    if store is not None:
        model = load_model(model_path).model
        with show_status(f"Coding {store.path.name}", quiet):
            soft = StoreTransform(store, model, run.workers(), run.memory_limit, absent).soft_codes()
        row_names: Sequence[str] | None = store.row_names()
    else:
        model, table = load_model_and_table(rows, quiet)
        soft = _soft_codes(model, table, _codes(model, table, run), run)
        row_names = table.row_names
    if format == "npy":
        with output_file(output.path, ".npy") as file, atomic_write(file) as made, open(made, "wb") as array:
            np.save(array, soft)
    elif not len(model.atom_names):
        raise FileError(f"{name}: the model has no atoms, so soft codes have no columns; .npy files can store them")
    else:
        numbers = named_rows(row_names, model.atom_names, map(np.ndarray.tolist, soft), number_format=".6g")
        write_readable(numbers, output.path, format)
    values = {"written": name, "rows": len(soft), "atoms": soft.shape[1]}
    print_result(values, display, f"{name}: soft codes of {describe_codes(soft.shape)}")


def reconstruct(
    rows: NewRows, is_codes: bool, output: OutputTable, is_decoded: bool, run: RunOptions, display: Display
) -> None:
    """Write the reconstruction of a table, or of codes; of encoded variables, their values if it is decoded."""
    (model_path, data, _), quiet = rows, display.is_silent
    check_json_output(display.json, output.path)
    check_writable(output.path, read=(model_path, data.path))
    check_output(output.path, output.format, rows.model_path if is_decoded else None)
    if is_codes:
        model = load_model(model_path).model
        codes = _in_order_of_atoms(read_with_status(data.with_all_known(), quiet), model, data.name)
        picture = model.picture
    else:
        model, table = load_model_and_table(rows, quiet)
        codes, picture = _codes(model, table, run), table.picture
    bits = possible_genotypes(model.reconstruct(codes.bits), model, quiet)
    made = Table(bits, codes.row_names, model.columns, picture, row_data=codes.row_data, column_data=model.column_data)
    name = output_name(output.path)
    if is_decoded:
        size = write_decoded(made, *output)
        values, written = {"rows": size.rows, "columns": size.columns}, describe_size((size.rows, size.columns))
    else:
        write_table(made, *output)
        values, written = table_json(made), describe_shape(made)
    print_result({"written": name, **values}, display, f"{name}: {written}")


def possible_genotypes(samples: BitMatrix, model: Model, quiet: bool) -> BitMatrix:
    """Return samples with the nearest possible genotypes, and print how many were impossible."""
    possible, n_impossible = model.possible(samples)
    if n_impossible and not quiet:
        genotypes = counted(n_impossible, "genotype")
        print_note(
            f"{genotypes} of the reconstruction had two copies of an allele but not one; changed to the nearest "
            "possible genotype, no copy or two, by the bit that the model gets wrong more often"
        )
    return possible


def _in_order_of_atoms(codes: Table, model: Model, name: str) -> Table:
    """Return codes with one column per atom: by name if their columns have the names of atoms, else by position."""
    n_atoms = model.atoms.n_rows
    if codes.columns is not None and not set(codes.columns).isdisjoint(model.atom_names):
        match = match_columns(Header(n_atoms, model.atom_names), codes.header, table=name)
        match.warn_differences(name)
        return match.gather_table(codes)
    if codes.shape[1] != n_atoms:
        raise FileError(f"{name}: the codes have {codes.shape[1]} columns, but the model has {n_atoms} atoms")
    return codes


def show(model_path: Path, outputs: Outputs, display: Display) -> None:
    """Describe a model, and write its atoms and patterns."""
    outputs.check(model_path, display.json)
    if is_packed(model_path):
        show_store(Store(model_path), outputs.paths, display)
        return
    model = load_model(model_path).model
    if outputs.atoms is not None:
        write_table(_atoms(model), outputs.atoms)
    if outputs.patterns is not None:
        write_pattern_file(model, outputs.patterns)
    if display.json:
        print_json(model_json(model))
        return
    if display.quiet:
        return
    print_line(model.summary())
    print_patterns(model, display.top, "")
    if outputs.paths:
        print_line(f"\nWritten: {listed(outputs.paths)}")


class ReportPage(NamedTuple):
    """A report to write: its path, its title, the rows to show, their groups (a file of labels or a field), and how
    many rows it contains."""

    path: Path
    title: str | None = None
    rows: tuple[str, ...] = ()
    groups: str | None = None
    max_rows: int | None = None


def report(rows: NewRows, page: ReportPage, run: RunOptions, display: Display) -> None:
    """Write the report on a model and a table."""
    (model_path, data, _), quiet = rows, display.is_silent
    check_json_output(display.json, page.path)
    check_writable(page.path, read=(model_path, data.path))
    check_html_extension(page.path)
    model, table = load_model_and_table(rows, quiet)
    _write_report(model, table, page._replace(title=page.title or data.title), run, quiet)
    if display.json or not is_stream(page.path):
        values = {"written": output_name(page.path), "patterns": model.atoms.n_rows, **table_json(table)}
        print_result(values, display, f"The report is in {page.path}; open it in a browser.")


def convert(data: Input, output: OutputTable, display: Display) -> None:
    """Write a table in another format."""
    check_writable(output.path)
    check_json_output(display.json, output.path)
    table_format(*output)
    table = read_with_status(data, display.is_silent)
    write_table(table, *output)
    name, lines = output_name(output.path), []
    if (encoding := Encoding.of(table)) is not None:
        lines = [f"Encoded: {encoding.described()}"]
    print_result({"written": name, **table_json(table)}, display, f"{name}: {describe_shape(table)}", *lines)
    if not display.quiet:
        _note_lost_annotations(table, output)
        if (unknown := describe_unknown(table)) and not display.json:
            print_line(unknown)


def _note_lost_annotations(table: Table, output: OutputTable) -> None:
    """Print which annotations of rows and columns the format of a file does not store."""
    format = table_format(*output)
    axes = {"rows": table.row_data, "columns": None if Encoding.of(table) else table.column_data}
    lost = [f"{axis} ({listed_names(tuple(data))})" for axis, data in axes.items() if data]
    if lost and not FORMATS[format].stores_annotations:
        name = output_name(output.path)
        print_note(f"{name}: the format {format} does not store the annotations of {' and '.join(lost)}")


def open_data(data: Input, quiet: bool) -> Table | Store:
    """Open a packed store, or read other data."""
    store = open_packed(data)
    return read_with_status(data, quiet) if store is None else store


def _codes(model: Model, table: Table, run: RunOptions) -> Table:
    """Return the codes of a table, with names."""
    max_rows = coding_rows(table.data, model, given_memory_limit(run.max_memory))
    codes = model.codes(table.data, run.workers(table.data), max_rows)
    return Table(codes, table.row_names, model.atom_names, row_data=table.row_data)


def _soft_codes(model: Model, table: Table, codes: Table, run: RunOptions) -> NDArray[np.float64]:
    """Return the soft codes of a table with these codes."""
    max_rows = coding_rows(table.data, model, given_memory_limit(run.max_memory))
    return model.soft_codes(table.data, codes.bits, run.workers(table.data), max_rows)


def _atoms(model: Model) -> Table:
    """Return the atoms as a table, with names."""
    return Table(model.atoms, model.atom_names, model.columns, model.picture, column_data=model.column_data)


def _is_h5ad(data: Input) -> bool:
    """Return whether data are an AnnData file, which can be read again."""
    suffixes = data.path.suffix.lower(), f".{data.reading.format}"
    return not is_stream(data.path) and FORMATS["h5ad"].extensions[0] in suffixes


def _is_of_obsm(rows: NewRows) -> bool:
    """Return whether the columns of data are those of an array in the ``obsm`` of an AnnData."""
    layer = rows.data.reading.options["layer"] or load_model(rows.model_path).reading.get("layer")
    return obsm_key(layer) is not None


def listed(paths: list[Path]) -> str:
    return ", ".join(map(output_name, paths))
