"""`bitatoms fit`, `crossvalidate` and `stability`: learn a model, and see how far it can be trusted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..formatting import percent
from ..search.options import Constraints, FitOptions, Resources
from . import options
from .output import (
    STANDARD,
    Display,
    SearchProgress,
    as_arguments,
    print_json,
    print_line,
    print_note,
    quote_path,
    show_status,
)
from .paths import Input, NewRows, OutputTable, check_checkpoint, listed, print_written

if TYPE_CHECKING:
    from ..bits import BitMatrix
    from ..columns.table import Table
    from ..estimators import BinaryDictionaryLearning
    from ..estimators.atom_stability import Stability
    from ..model.model import Model
    from ..rows.store import Store
    from ..rows.weights import Weights
    from .stores import ModelRows

_Codes = Iterable["BitMatrix"] | None


@options.command(
    "bitatoms fit baskets.csv -o model.npz",
    "bitatoms fit cells.h5ad --binarize 0 --algebra or -o model.npz --patterns patterns.md",
    "bitatoms fit picture.pbm --blocks 16x16 -o model.npz --search thorough",
    "bitatoms fit counted.csv --weight-column count -o model.npz",
    "zcat big.csv.gz | bitatoms fit - -o model.npz",
    "bitatoms fit rows.zarr -o model.npz --max-memory 500MB --checkpoint checkpoint --resume",
)
def fit(
    data: Input = options.table(),
    output: Path | None = options.model_output("Write the model, an .npz file."),
    report: Path | None = options.page("--report", "Write the report, an HTML page."),
    codes: OutputTable | None = options.table_file(
        "--codes", "Write the codes of the fit (which atoms each row uses) as a table, in any format."
    ),
    atoms_to: OutputTable | None = options.table_file("--atoms-to", "Write the atoms as a table, in any format."),
    patterns: Path | None = options.readable("--patterns", "patterns", "the patterns", is_common=False),
    search: FitOptions = options.declared_options(FitOptions, without=("binarize",)),
    weight_column: str | None = options.option(
        "--weight-column",
        help="Column, no feature, with the weight of each row: a whole number, how many times the row counts.",
        metavar="NAME",
        panel=options.SEARCH,
        is_common=False,
    ),
    shown: Display = options.display(5),
) -> str | None:
    """Learn the patterns (atoms) of a table, and print a summary.

    The number of atoms is chosen by minimum description length (MDL): the table and its atoms together take the
    fewest bits. The table may also be a packed store, which may be larger than memory (see 'bitatoms pack').
    """
    from ..rows.store import Store
    from ..rows.weights import checked_weights
    from . import files, stores
    from .summary import describe_encoding, describe_unknown, model_json, print_patterns

    limits, resources, quiet = search.constraints or Constraints(), search.resources or Resources(), shown.is_silent
    how, checkpoint = options.RunSettings(search.n_jobs, search.device, resources.max_memory), resources.checkpoint
    if checkpoint is not None:
        check_checkpoint(Path(checkpoint), [data.path, output, codes, atoms_to, patterns, report])
    elif resources.resume:
        from ..api import no_checkpoint

        raise no_checkpoint()
    weights: Weights | None = None
    if weight_column is None:
        rows = files.open_packed(data) or files.read_table(data, quiet)
    else:
        rows, given = files.read_with_weights(data, weight_column, quiet)
        weights = checked_weights(given, len(rows))
    files.described(rows, data, quiet)
    if limits.fixed_atoms is not None:
        known = files.read_atoms(limits.fixed_atoms, quiet)
        search = replace(search, constraints=replace(limits, fixed_atoms=known))
    if isinstance(rows, Store):
        stores.check_fit(rows, search, how, codes, report)
    if not quiet:
        if not isinstance(rows, Store) and (unknown := describe_unknown(rows)):
            print_line(unknown)
        for line in describe_encoding(rows):
            print_line(line)
        if weights is not None:
            print_line(f"Weights: column {weight_column!r}, {weights.sum()} rows in all")
    resume_hint = "" if checkpoint is None else f"; repeat the command with --resume to resume from {checkpoint}"
    keeps_model, keeps_codes = bool(output or checkpoint), bool(codes or report)
    with _fitted(rows, weights, search, quiet, keeps_model, keeps_codes) as (model, fitted, interrupted):
        if model is None:
            return f"nothing was written{resume_hint}"
        written: list[Path | OutputTable] = []
        complete = model.ended not in files.CUT_SHORT
        if output is not None:
            path = output if complete else files.path_of_interrupted(output)
            packed = stores.packing_options(rows) if isinstance(rows, Store) else {}
            remembered = packed | files.remembered_options(data)
            save = partial(files.save_model, model, path, _to_store(search.get_params(deep=False)), remembered)
            written.append(path)
            try:
                save()
            except KeyboardInterrupt:  # saving is short, and the search may have been long
                if path == STANDARD:  # a part of it may be written
                    raise
                interrupted = True
                save()
        read = stores.ModelRows(model, rows, how)
        if complete:
            if report is not None and fitted is not None:
                fitted = [*fitted]  # they may be wanted once more
            others: list[tuple[Path | OutputTable | None, Any]] = [
                (atoms_to, partial(files.write_atom_table, model, atoms_to)),
                (patterns, partial(files.write_pattern_file, model, patterns)),
                (report, partial(_write_report, read, fitted, weights, data, report, quiet)),
                (codes, partial(_write_codes, read, fitted, weights, codes, quiet)),
            ]
            try:
                for file, write in others:
                    if file is not None and not interrupted:
                        write()
                        written.append(file)
            except KeyboardInterrupt:
                interrupted = True
            if interrupted:
                return f"only {listed(written)} was written" if written else "nothing was written"
        if shown.json:
            print_json(model_json(model, shown.top))
        elif not quiet:
            print_line(f"\n{model.summary()}")
            print_patterns(model, shown.top, "\nThe strongest patterns (atoms):")
            print_written(written, "Nothing was written; -o model.npz keeps the model.")
            can_be_read = complete and STANDARD not in (output, data.path)
            if output is not None and can_be_read and model.atoms.n_rows and weights is None:
                _print_next_command(read, data, output, codes is not None, report is not None)
        if complete:
            return None
        result = "nothing was written"
        if output is not None:
            kept = "" if written[0] == output else f", and {output} was not replaced"
            rest = ", and nothing else was written" if any((codes, atoms_to, patterns, report)) else ""
            result = f"the best model so far is in {written[0]}{kept}{rest}"
        if model.ended == "max_memory":
            raise MemoryError(f"memory ran out; {result}{resume_hint}")
        return f"{result}{resume_hint}"


def _to_store(search: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a search to store with its model."""
    from ..estimators.options import EstimatorOptions, stored_parameters

    return stored_parameters(EstimatorOptions(**search).get_params())


@contextmanager
def _fitted(
    rows: Table | Store, weights: Weights | None, search: FitOptions, quiet: bool, keeps_model: bool, keeps_codes: bool
) -> Iterator[tuple[Model | None, _Codes, bool]]:
    """Fit the estimator with progress; yield the model, after Ctrl-C the best so far, codes, and whether that came."""
    from ..estimators import BinaryDictionaryLearning
    from ..estimators.dictionary_learning import fit_with_codes
    from ..rows.store import Store
    from .stores import ObservedStore

    codes, interrupted = None, False
    with ExitStack() as stack:
        with show_status("Starting", quiet) as line:
            n_rows = len(rows) if weights is None else int(weights.sum())
            progress = SearchProgress(line, n_rows, keeps_model)
            estimator = BinaryDictionaryLearning(**search.get_params(deep=False) | {"callbacks": progress})
            data = ObservedStore(rows, progress.update_rows) if isinstance(rows, Store) else rows
            try:
                if keeps_codes:
                    codes = stack.enter_context(fit_with_codes(estimator, data, weights))
                else:
                    estimator.fit(data, sample_weight=weights)
            except KeyboardInterrupt:
                interrupted = True
        model = None
        if hasattr(estimator, "n_iter_"):
            model = estimator.scoring_model() if keeps_model else estimator.as_model()
        yield model, codes, interrupted


def _write_report(
    rows: ModelRows, fitted: _Codes, weights: Weights | None, data: Input, path: Path | None, quiet: bool
) -> None:
    """Write the report on the rows that the fit has seen, each as often as its weight states."""
    import numpy as np

    from ..bits import stack_rows
    from ..rows.store import Store
    from .explain import write_page
    from .files import read_table

    assert path is not None
    codes = None if fitted is None else stack_rows(fitted, rows.model.atoms.n_rows)
    table = read_table(data, quiet) if isinstance(rows.table, Store) else rows.table
    if weights is not None:
        repeated = np.repeat(np.arange(len(weights)), weights)
        table, codes = table[repeated], None if codes is None else codes[repeated]
    write_page(rows.model, table, path, rows.how, quiet, title=data.title, codes=codes)


def _write_codes(
    rows: ModelRows, fitted: _Codes, weights: Weights | None, output: OutputTable | None, quiet: bool
) -> None:
    """Write the codes of the fit, or, if it ended before all rows were coded, of the model."""
    from .stores import write_codes

    assert output is not None
    if fitted is None and not quiet:
        n_rows = len(rows.table) if weights is None else weights.sum()
        print_note(
            f"the search ended before all rows were coded: the counts of the model are those of {rows.model.n_samples} "
            f"of {n_rows} rows, and {output.path} has the codes that bitatoms transform gives"
        )
    write_codes(rows, output, quiet, fitted)


def _print_next_command(rows: ModelRows, data: Input, output: Path, has_codes: bool, has_report: bool) -> None:
    """Suggest the next command: a report, unless that would pack a table that is not packed yet."""
    from ..bits import BitMatrix
    from ..columns.table import Table
    from .files import remembered_options

    encoding = ("categories", "as_category", "as_number", "bins", "dosage")
    known = (*remembered_options(data), *encoding, "tile")  # options that the model remembers
    given = {name: value for name, value in data.given().items() if name not in known}
    model, table = quote_path(output), quote_path(data.path)
    is_packed_table = isinstance(rows.table, Table) and isinstance(rows.table.data, BitMatrix)
    if not is_packed_table and not has_codes:
        if rows.how.max_memory is not None:
            given["max_memory"] = rows.how.max_memory
        name = "codes.npz" if isinstance(rows.table, Table) else "codes.zarr"
        print_line(f"Next: bitatoms transform {model} {table} -o {name}{as_arguments(given)}")
    elif is_packed_table and not has_report:
        print_line(f"Next: bitatoms report {model} {table} -o report.html{as_arguments(given)}")


@options.command(
    "bitatoms crossvalidate table.csv", "bitatoms crossvalidate table.csv --atoms 2,4,8,mdl,profiles --algebra or"
)
def crossvalidate(
    data: Input = options.table(),
    atoms: str = options.option(
        "--atoms --components -k",
        "mdl",
        "What to compare: numbers of atoms, mdl, neighbours (similar rows), profiles (groups of them) and regression.",
        metavar="LIST",
        panel=options.SEARCH,
    ),
    algebra: str = options.declared(FitOptions, "algebra"),
    search: str = options.declared(FitOptions, "search"),
    max_time: float | None = options.declared(FitOptions, "max_time"),
    seed: int = options.declared(FitOptions, "random_state"),
    folds: int = options.option("--folds", 5, "Number of times that cells are hidden.", minimum=1),
    share: float = options.option("--share", 0.1, "Share of the known cells that is hidden each time."),
    how: options.RunSettings = options.run("n_jobs", "device"),
    shown: Display = options.display(),
) -> None:
    """Hide known cells, and compare how well models predict them.

    The models learn from the other cells. A model that predicts the hidden ones better than 'column majority' has found
    structure. The log loss is in bits per hidden cell; lower is better.
    """
    from ..estimators.cell_validation import cross_validate_cells
    from ..estimators.imputer import OTHER_METHODS
    from .files import described, read_table

    models = [word if word in OTHER_METHODS else options.parse_atoms(word) for word in atoms.split(",")]
    rows = described(read_table(data, shown.is_silent), data, shown.is_silent)
    fits = {"algebra": algebra, "search": search, "max_time": max_time, **how.threads}
    with show_status("Cross-validating", shown.is_silent):
        result = cross_validate_cells(rows, models, n_folds=folds, share=share, random_state=seed, **fits)
    if shown.json:
        found = _records(result.to_dict())
        print_json({"share": result.share, "n_folds": folds, "best": result.best, "models": found})
        return
    print_line(str(result) if shown.quiet else f"\n{result}")
    if not shown.quiet:
        print_line(f"\nThe log loss, in bits per hidden cell, is lowest with: {result.best}.")


def _records(columns: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a table as mappings."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@options.command(
    "bitatoms stability baskets.csv model.npz -o model.npz",
    "bitatoms stability baskets.csv --algebra or --resamples 50 --patterns patterns.csv",
    "bitatoms stability baskets.csv model.npz --share 1",
)
def stability(
    data: Input = options.table(),
    model: Path | None = options.argument(
        "The model of the table; by default one is learned first.", required=False, file=None
    ),
    output: Path | None = options.model_output("Write the model with the shares, an .npz file; may be MODEL."),
    atoms: int | str | None = options.declared(FitOptions, "n_components", default=None, show_default="mdl"),
    algebra: str | None = options.declared(FitOptions, "algebra", default=None),
    search: str | None = options.declared(FitOptions, "search", default=None),
    max_time: float | None = options.declared(FitOptions, "max_time"),
    seed: int = options.declared(FitOptions, "random_state"),
    resamples: int = options.option("--resamples", 20, "Number of searches.", minimum=1),
    share: float = options.option(
        "--share", 0.5, "Share of the rows that each search sees; with 1, only the seeds differ."
    ),
    threshold: float = options.option(
        "--threshold", 0.8, "Overlap of the features (Jaccard index) from which an atom is found again."
    ),
    patterns: Path | None = options.readable("--patterns", "patterns", "the patterns"),
    how: options.RunSettings = options.run("max_memory", "n_jobs", "device"),
    shown: Display = options.display(20),
) -> str | None:
    """Search parts of the rows, and print how often each atom is found again: which patterns can be trusted.

    Each search sees half of the rows. An atom that at least 75% of the searches find again is called stable. 'bitatoms
    show' and 'bitatoms report' show the shares of a model that is written with -o.
    """
    from . import files
    from .summary import print_patterns

    given = {"n_components": atoms, "algebra": algebra, "search": search}
    given = {name: value for name, value in given.items() if value is not None}
    if model is not None and given:
        raise click.UsageError("a model has its own --atoms, --algebra and --search; omit these, or the model")
    fits = {"n_components": "mdl", "algebra": "auto", "search": "fast", "max_time": max_time} | given
    rows, fitted, parameters, remembered = _open_for_stability(data, model, fits, shown.is_silent)
    files.described(rows, data, shown.is_silent)
    drawn = {"n_resamples": resamples, "share": share, "threshold": threshold, "random_state": seed}
    more = drawn | how.threads | {"resources": Resources(max_memory=how.max_memory)} | ({} if fitted else fits)
    result, interrupted = _resampled(rows, fitted, more, shown.is_silent)
    if result is None:
        return "nothing was written" if output or patterns else "no resample was searched"
    learned = result.model.as_model()
    if output is not None:
        files.save_model(learned, output, parameters, remembered)
    files.write_pattern_file(learned, patterns)
    if shown.json:
        settings, found = result.recurrence.settings, _records(result.to_dict())
        print_json({**settings, "stable": int(result.is_stable.sum()), "atoms": found})
    elif not shown.is_silent:
        print_line(f"\n{result.summary()}")
        print_patterns(learned, shown.top, "\nThe patterns (atoms):")
        print_written([output, patterns])
    return f"only {result.n_resamples} of {resamples} resamples were searched" if interrupted else None


def _open_for_stability(
    data: Input, path: Path | None, fits: dict[str, Any], quiet: bool
) -> tuple[Table | Store, BinaryDictionaryLearning | None, dict[str, Any], dict[str, Any]]:
    """Return the table, the fitted estimator if there is a model, its parameters, and the options that it remembers."""
    from ..columns.table import Table
    from ..estimators.dictionary_learning import fitted_estimator
    from ..estimators.options import result_parameters
    from . import files
    from .stores import packing_options

    store = files.open_packed(data)
    if path is None:
        packed = {} if store is None else packing_options(store)
        return store or files.read_table(data, quiet), None, _to_store(fits), packed | files.remembered_options(data)
    model, parameters, remembered = files.load_model(path, result_parameters())
    limit = {} if fits["max_time"] is None else {"max_time": fits["max_time"]}
    # What the cells of the table mean is decided when it is read.
    estimator = fitted_estimator(model, parameters | limit | {"binarize": None})
    rows: Table | Store | None = store
    if rows is None:
        read = files.load_model_and_table(NewRows(path, data, "refuse"), quiet)[1]
        rows = Table(read.data, read.row_names, model.columns, column_data=model.column_data)
    return rows, estimator, parameters, remembered


def _resampled(
    rows: Table | Store, fitted: BinaryDictionaryLearning | None, more: dict[str, Any], quiet: bool
) -> tuple[Stability | None, bool]:
    """Search the resamples with progress; return the result, of those searched until Ctrl-C, and whether it came."""
    from ..estimators import atom_stability

    so_far: list[Stability] = []
    with show_status("Searching", quiet) as line:

        def update(result: Stability) -> None:
            so_far.append(result)
            recurs = percent(float(result.recurs.mean()), 1) if result.recurs.size else "none"
            done = f"{result.n_resamples} of {more['n_resamples']} resamples"
            line.update(f"Searched {done}: {recurs} of the atoms recur, {line.seconds}")

        try:
            return atom_stability.stability(rows, fitted, callback=update, **more), False
        except KeyboardInterrupt:
            return (so_far[-1] if so_far else None), True
