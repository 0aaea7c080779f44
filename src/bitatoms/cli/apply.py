"""`bitatoms transform`, `reconstruct`, `complete`, `convert` and `pack`: from one table to another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from ..errors import Parameter
from ..formatting import counted, listed_names
from ..io.errors import FileError
from ..io.formats.registry import FORMATS
from ..io.options import ReadOptions
from . import options
from .output import STANDARD, Display, print_json, print_line, print_note, print_result, show_status
from .paths import (
    Input,
    NewRows,
    OutputTable,
    check_extension,
    check_not_stream,
    check_writable,
    output_file,
    output_name,
    output_table,
    spooled,
)

if TYPE_CHECKING:
    from ..bits import BitMatrix
    from ..columns.table import Table
    from ..imputation.hidden_cells import GenotypeScores
    from ..imputation.pool import PooledPredictors, Predictor
    from ..model.model import Model
    from ..parallel import Workers

_HIDDEN_SHARE = 0.02  # of the known genotypes, for the check
_SCORED_CELLS = 1 << 24  # cells of the rows that are checked


def decode_flag() -> Any:
    """Declare whether the values of encoded variables are written."""
    help = "Write a table of categories or of numbers of copies, as the model's table was: one column per variable."
    return options.option("--decode", False, help, panel=options.WRITING)


@options.command(
    "bitatoms transform model.npz new.csv -o codes.csv",
    "bitatoms transform model.npz cells.h5ad --binarize 0 -o annotated.h5ad",
    "bitatoms transform model.npz new.csv --soft -o soft.csv",
    "bitatoms transform model.npz new.csv | head",
    "bitatoms transform model.npz rows.zarr -o codes.zarr --max-memory 500MB",
)
def transform(
    rows: NewRows = options.new_rows(file=None),
    output: OutputTable = options.table_output(),
    soft: bool = options.option(
        "--soft",
        False,
        "Write soft codes (bits that each atom saves in each row) as .csv, .tsv, .xlsx or .npy.",
        panel=options.WRITING,
    ),
    how: options.RunSettings = options.run("max_memory", "n_jobs", "device"),
    shown: Display = options.display(),
) -> None:
    """Write the codes of a table: which atoms each row uses.

    Columns that have names may be in any order; those that the model does not know are ignored. If input and output are
    .h5ad files, the output is a copy of the input with codes and soft codes in obsm and atoms in varm. If both are
    packed stores, codes are written in chunks.

    A soft code is the number of bits that the row takes without the atom, less those that it takes with it: above 0
    where the atom is present, below 0 where it is absent.

    Each row is coded afresh, as a new row is. For rows that the model was fitted on, the codes can differ slightly from
    those of the fit, which 'bitatoms show' counts; 'bitatoms fit --codes' writes the codes of the fit.
    """
    from .stores import ModelRows, write_codes
    from .summary import describe_codes

    adds = not soft and _adds_to_anndata(rows, output)
    if not adds:
        check_writable([output.path], [rows.data.path])
    if soft:
        _write_soft_codes(rows, output, how, shown)
        return
    read = ModelRows.open(rows, how, shown.is_silent)
    if adds:
        from ..io.atomic import atomic_write
        from ..io.formats.single_cell.h5ad import write_annotated

        codes: Any = read.codes()
        with output_file(output.path, ".h5ad") as file, atomic_write(file) as made:
            write_annotated(rows.data.path, made, codes.bits, read.model, read.soft_codes(codes))
    else:
        codes = write_codes(read, output, shown.is_silent)
    if shown.json or not shown.quiet:
        chunks = codes.stored_chunks() if hasattr(codes, "stored_chunks") else [codes.bits]
        n_uses = sum(bits.count() for bits in chunks)
        mean = n_uses / max(1, len(codes))
        values = {"written": output.name, "rows": len(codes), "atoms": codes.shape[1], "uses": n_uses}
        line = f"{output.name}: codes of {describe_codes(codes.shape)}, {mean:.1f} atoms per row"
        print_result(values, shown, line)


def _adds_to_anndata(rows: NewRows, output: OutputTable) -> bool:
    """Return whether codes are added to a copy of an AnnData file."""
    from ..frames import obsm_key
    from .files import load_model

    options, path = rows.data.options, rows.data.path
    is_h5ad = path != STANDARD and FORMATS["h5ad"].extensions[0] in (path.suffix.lower(), f".{options.format}")
    # Codes of a transposed AnnData are those of its variables, which obsm cannot hold; atoms of obsm do not fit varm.
    if output.format != "h5ad" or not is_h5ad or options.transpose:
        return False
    return obsm_key(options.layer or load_model(rows.model).reading.get("layer")) is None


def _write_soft_codes(rows: NewRows, output: OutputTable, how: options.RunSettings, shown: Display) -> None:
    """Write the soft codes of a table: the bits that each atom saves in each row."""
    from ..io.atomic import atomic_write
    from .files import named_rows, write_readable
    from .stores import ModelRows
    from .summary import describe_codes

    if output.format not in ("csv", "tsv", "xlsx", "npy"):
        raise FileError(
            f"{output.name}: soft codes are numbers, which are written as .csv, .tsv, .xlsx or .npy; a copy of an "
            ".h5ad file has them in any case: omit --soft"
        )
    read = ModelRows.open(rows, how, shown.is_silent)
    with show_status(f"Coding {rows.data.title}", shown.is_silent):
        soft, atom_names = read.soft_codes(), read.model.atom_names
    if output.format == "npy":
        with output_file(output.path, ".npy") as file, atomic_write(file) as made, open(made, "wb") as array:
            np.save(array, soft)
    elif not len(atom_names):
        raise FileError(
            f"{output.name}: the model has no atoms, so soft codes have no columns; .npy files can store them"
        )
    else:
        numbers = named_rows(read.names(), atom_names, map(np.ndarray.tolist, soft), number_format=".6g")
        write_readable(numbers, output.path, output.format)
    values = {"written": output.name, "rows": len(soft), "atoms": soft.shape[1]}
    print_result(values, shown, f"{output.name}: soft codes of {describe_codes(soft.shape)}")


def _rows_or_codes(
    model: Path, data: Path | None, codes: Path | None, absent: str, options: ReadOptions, tile: tuple[int, int] | None
) -> tuple[NewRows, bool]:
    """Return the table to read, and whether it has codes."""
    given = data if codes is None else codes
    if given is None or None not in (data, codes):
        raise click.UsageError("pass either a table or --codes")
    return NewRows(model, Input(given, options, tile), absent), codes is not None


@options.command(
    "bitatoms reconstruct model.npz picture.pbm --blocks 16x16 -o clean.pbm",
    "bitatoms reconstruct model.npz --codes codes.csv -o table.csv",
)
def reconstruct(
    given: tuple[NewRows, bool] = options.group(
        _rows_or_codes,
        model=options.model_file(),
        data=options.argument("The table to code and reconstruct.", required=False),
        codes=options.input_file("--codes", "Codes to reconstruct, instead of a table."),
        absent=options.absent(),
        **options.reading(),
    ),
    output: OutputTable = options.table_output(),
    decode: bool = decode_flag(),
    how: options.RunSettings = options.run("n_jobs", "device"),
    shown: Display = options.display(),
) -> None:
    """Reconstruct a table from its atoms, without noise.

    The rows of a table are coded afresh, as by 'bitatoms transform'. For the reconstruction of the fit, pass the codes
    that 'bitatoms fit --codes' wrote.
    """
    from ..columns.table import Table
    from . import files
    from .stores import ModelRows
    from .summary import describe_shape, describe_size, table_json

    (rows, is_codes), quiet = given, shown.is_silent
    if decode:
        files.check_decoded(output, rows.model)
    if is_codes:
        model, data = files.load_model(rows.model).model, rows.data.with_all_known()
        coded, picture = _in_order_of_atoms(files.read_table(data, quiet), model, data.name), model.picture
    else:
        model, read = files.load_model_and_table(rows, quiet)
        coded, picture = ModelRows(model, read, how).codes(), read.picture
    bits = _possible_genotypes(model.reconstruct(coded.bits), model, quiet)
    columns, row_data = model.columns, coded.row_data
    made = Table(bits, coded.row_names, columns, picture, row_data=row_data, column_data=model.column_data)
    if decode:
        decoded = files.decoded_values(made)
        files.write_decoded(decoded, made, output)
        values, written = {"rows": len(made), "columns": len(decoded)}, describe_size((len(made), len(decoded)))
    else:
        files.write_table(made, output)
        values, written = table_json(made), describe_shape(made)
    print_result({"written": output.name, **values}, shown, f"{output.name}: {written}")


def _possible_genotypes(samples: BitMatrix, model: Model, quiet: bool) -> BitMatrix:
    """Return samples with the nearest possible genotypes, and print how many were impossible."""
    possible, n_impossible = model.possible(samples)
    if n_impossible and not quiet:
        print_note(
            f"{counted(n_impossible, 'genotype')} of the reconstruction had two copies of an allele but not one; "
            "changed to the nearest possible genotype, no copy or two, by the bit that the model gets wrong more often"
        )
    return possible


def _in_order_of_atoms(codes: Table, model: Model, name: str) -> Table:
    """Return codes with one column per atom: by name if their columns have the names of atoms, else by position."""
    from ..columns.matching import match_columns
    from ..columns.table import Header

    n_atoms = model.atoms.n_rows
    if codes.columns is not None and not set(codes.columns).isdisjoint(model.atom_names):
        match = match_columns(Header(n_atoms, model.atom_names), codes.header, table=name)
        match.warn_differences(name)
        return match.gather_table(codes)
    if codes.shape[1] != n_atoms:
        raise FileError(f"{name}: the codes have {codes.shape[1]} columns, but the model has {n_atoms} atoms")
    return codes


@options.command(
    "bitatoms complete model.npz table.csv -o filled.csv",
    "bitatoms complete model.npz table.csv --only-missing -o predictions.csv",
    "bitatoms complete model.npz genotypes.bed --neighbours -o filled.bed",
)
def complete(
    rows: NewRows = options.new_rows(),
    output: Path = options.output_path(),
    to: str | None = options.output_format(),
    only_missing: bool = options.option(
        "--only-missing",
        False,
        f"List the missing cells (row, column, value, probability of a one) as {options.READABLE}.",
        panel=options.WRITING,
    ),
    decode: bool = decode_flag(),
    neighbours: bool = options.option(
        "--neighbours",
        False,
        "Predict by similar rows of the table, not by the atoms of the model; better where rows resemble other rows, "
        "or parts of them, as haplotypes do.",
    ),
    how: options.RunSettings = options.run("n_jobs", "device"),
    shown: Display = options.display(),
) -> None:
    """Fill in the missing values of a table; known values stay as they are.

    A missing value becomes 1 if that is more probable than 0, given the known values of its row. The probabilities are
    fitted to known values of the table that are hidden.
    """
    from ..columns.table import Table
    from ..columns.variants import are_variants
    from . import files
    from .summary import describe_shape, describe_size

    if decode and only_missing:
        raise click.UsageError("--decode writes a table, not a list; omit --only-missing")
    name = output_name(output)
    if only_missing:
        if to not in (None, "csv"):
            raise FileError(f"{name}: a list of missing values is not written as {to}; use the extension .csv")
        options.check_readable("lists of missing values", output)
    made_table = None if only_missing else output_table(output, to)
    if decode and made_table is not None:
        files.check_decoded(made_table, rows.model)
    quiet = shown.is_silent
    if decode:  # known values are written as they are in the file
        model, table, original, label = files.load_model_and_original(rows, quiet)
    else:
        model, table = files.load_model_and_table(rows, quiet)
    workers, n_filled, n_columns = how.workers(table.bits), table.bits.n_unknown, table.shape[1]
    with show_status("Comparing rows" if neighbours else "Predicting", quiet):
        predictor = _predictor(model, table.bits, neighbours, workers)
    with show_status("Predicting", quiet):
        completed = predictor.completed(table.bits, workers)
        if made_table is None:
            _write_list(predictor, completed, model, table, output, workers)
            written = f"{counted(n_filled, 'missing value')} predicted"
        else:
            made = table.with_bits(completed)
            if table.columns is None or (decode and table.column_data is None):
                data = model.column_data if decode else None
                made = Table(made.data, table.row_names, model.columns, table.picture, column_data=data)
            if decode:
                known = files.decoded_values(made.with_bits(table.bits), original)
                values = files.decoded_values(made, original)
                files.write_decoded(values, made, made_table, label)
                n_filled, n_columns = files.count_missing(known) - files.count_missing(values), len(values)
                described = describe_size((len(made), n_columns))
            else:
                files.write_table(made, made_table)
                described = describe_shape(made)
            written = f"{described}, {counted(n_filled, 'missing value')} filled in"
    if shown.quiet and not shown.json:
        return
    lines, checked = [], {}
    if are_variants(table.column_data) and 0 not in table.shape:
        with show_status("Hiding genotypes to predict them", quiet):
            scores = _genotype_scores(model, table, neighbours, workers)
        by = "similar rows" if neighbours else "the model, which has learned from them"
        right = f"{scores.concordance:.1%} are right (concordance); dosage r2 {scores.dosage_r2:.3f}."
        lines = [f"Check: of {scores.n_genotypes} known genotypes, hidden and predicted by {by}, {right}"]
        checked = {"check": scores._asdict()}
    result = {"written": name, "rows": len(table), "columns": n_columns, "filled": n_filled, **checked}
    print_result(result, shown, f"{name}: {written}", *lines)


def _predictor(model: Model, data: BitMatrix, by_neighbours: bool, workers: Workers) -> PooledPredictors:
    """Return what predicts missing values, by the model or by the rows of the table, fitted to hidden cells of it."""
    from ..imputation.hidden_cells import shares_of
    from ..imputation.pool import PooledPredictors, predict_hidden
    from ..imputation.similar_rows import fit_similar_rows
    from ..imputation.tied_columns import found_ties

    random = np.random.default_rng(0)
    if not by_neighbours:
        is_fitted = model.pool is not None or not data.n_unknown
        return (model if is_fitted else model.calibrated(data, workers, random)).predictors

    def learn(visible: BitMatrix) -> dict[str, Predictor]:
        return {"neighbours": fit_similar_rows(visible, np.random.default_rng(0), workers)}

    tied = found_ties(data, model.tied_columns)
    hidden = predict_hidden(data, tied, learn, random, workers)
    return PooledPredictors(shares_of(data), tuple(learn(data).values()), hidden.pool_of(hidden.names), tied)


def _genotype_scores(model: Model, table: Table, by_neighbours: bool, workers: Workers) -> GenotypeScores:
    """Return how well known genotypes of a part of the rows are predicted if they are hidden."""
    from ..bits import BitMatrix
    from ..columns.encoding import ColumnTies
    from ..imputation.hidden_cells import GenotypeScores, hidden_genotypes, without_cells

    random, bits = np.random.default_rng(0), table.bits
    pairs = ColumnTies.of(table.header).nested
    chosen = np.sort(random.permutation(len(bits))[: max(1, _SCORED_CELLS // bits.n_cols)])
    hidden = hidden_genotypes(bits[chosen], pairs, _HIDDEN_SHARE, random)
    words = np.zeros_like(bits.words)
    words[chosen] = hidden.words
    visible = without_cells(bits, BitMatrix.from_words(words, bits.n_cols, check=False))
    predictor = _predictor(model, visible, by_neighbours, workers)
    probabilities = predictor.cell_probabilities(visible[chosen], workers)
    predicted = predictor.tied.most_probable(probabilities, visible[chosen])
    truth = bits.filled()[chosen].to_dense(bool)
    return GenotypeScores.of(truth, probabilities, predicted, hidden.to_dense(bool), pairs)


def _write_list(
    predictor: PooledPredictors, completed: BitMatrix, model: Model, table: Table, path: Path, workers: Workers
) -> None:
    """Write row, column, value and probability of each missing value, row by row."""
    from ..columns.table import feature_names
    from ..html.tables import DataTable
    from .files import write_readable

    def filled_cells() -> Iterator[tuple[Any, ...]]:
        unknown = table.bits.unknown
        if unknown is None:
            return
        rows = np.flatnonzero(unknown.words.any(axis=1))
        columns = feature_names(model.columns if table.columns is None else table.columns, range(unknown.n_cols))
        mask, probabilities = unknown[rows].to_dense(bool), predictor.cell_probabilities(table.bits[rows], workers)
        values = completed[rows].to_dense()
        for row, own, of_row, filled in zip(rows.tolist(), mask, probabilities, values, strict=True):
            name = row if table.row_names is None else table.row_names[row]
            for column in np.flatnonzero(own).tolist():
                yield name, columns[column], int(filled[column]), float(of_row[column])

    names = ("row", "column", "value", "probability")
    write_readable(DataTable(names, filled_cells(), {"probability": ".6f"}), path)


@options.command(
    "bitatoms convert table.csv table.parquet",
    "bitatoms convert picture.pbm blocks.npz --blocks 16x16",
    "bitatoms convert cells.h5ad cells.npz --layer counts --binarize 0",
    "bitatoms convert filtered_feature_bc_matrix cells.h5ad --binarize 0",
    formats={name: f"{about.description} ({', '.join(about.extensions)})" for name, about in FORMATS.items()},
)
def convert(
    data: Input = options.table(file=None),
    output: OutputTable = options.table_output(options.argument(options.OUTPUT, file="write")),
    shown: Display = options.display(),
) -> None:
    """Convert a table to another format, with its row and column names."""
    from .files import read_table, write_table
    from .summary import describe_encoding, describe_shape, describe_unknown, table_json

    read = read_table(data, shown.is_silent)
    write_table(read, output)
    lines = describe_encoding(read)
    print_result({"written": output.name, **table_json(read)}, shown, f"{output.name}: {describe_shape(read)}", *lines)
    if shown.quiet:
        return
    axes = {"rows": read.row_data, "columns": None if lines else read.column_data}
    lost = [f"{axis} ({listed_names(tuple(data))})" for axis, data in axes.items() if data]
    if lost and not FORMATS[output.format].stores_annotations:
        annotations = f"the annotations of {' and '.join(lost)}"
        print_note(f"{output.name}: the format {output.format} does not store {annotations}")
    if (unknown := describe_unknown(read)) and not shown.json:
        print_line(unknown)


@options.command(
    "bitatoms pack big.csv.gz -o rows.zarr",
    "bitatoms pack counts.parquet --binarize 0 -o rows.zarr",
    "zcat big.csv.gz | bitatoms pack - -o rows.zarr",
)
def pack(
    source: Input = options.table(),
    output: Path = options.output("--output -o", "The store to write, .zarr.", required=True),
    how: options.RunSettings = options.run("max_memory", max_memory={"help": "Memory limit, such as 500MB or 2GiB."}),
    shown: Display = options.display(),
) -> str | None:
    """Pack a table into a store on disk, in chunks; the table may be larger than memory.

    'bitatoms fit' and 'bitatoms transform' process such a store in chunks.
    """
    from ..rows import store
    from . import stores

    check_not_stream(output, "a store")
    check_extension("a packed store is a folder", (".zarr",), output)
    if source.tile is not None:
        raise FileError(f"{output}: pass ", Parameter("tile"), " to bitatoms fit instead")
    quiet = shown.is_silent
    with spooled(source) as file, show_status(f"Packing {source.title}", quiet) as line:
        options = source.options.get_params()
        packed = store.pack(file, output, max_memory=how.max_memory, callback=line.update_rows, **options)
    if shown.quiet and not shown.json:
        return None
    try:
        n_ones = stores.count_ones(packed, shown.json)
    except KeyboardInterrupt:
        return f"{output} was written, but not read back to count its ones"
    if shown.json:
        print_json({**stores.store_json(packed), "ones": n_ones})
    else:
        stores.print_stored(packed, n_ones)
        print_line(f"Next: {stores.fit_command(packed, n_ones)}")
    return None
