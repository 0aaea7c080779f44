"""The command `stability`: which atoms of a model are found again."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from ..columns.table import Table
from ..estimators import BinaryDictionaryLearning
from ..estimators.atom_stability import Stability, stability
from ..estimators.dictionary_learning import fitted_estimator
from ..estimators.options import result_parameters
from ..formatting import percent
from ..io.errors import FileError
from ..rows.store import Store
from ..search.options import Resources
from . import stores
from .commands import Outputs, listed, open_data, save_model, to_store, write_pattern_file
from .console import Display, print_json, print_line
from .files import load_model, load_model_and_table, open_packed, remembered_options
from .options import Input, NewRows
from .progress import ProgressLine, show_status
from .stores import RunOptions
from .summary import describe_table, print_patterns


class Resampling(NamedTuple):
    """How rows are drawn, and which atoms count as found again."""

    n_resamples: int
    share: float
    threshold: float
    random_state: int


class _Opened(NamedTuple):
    """A table, its model if there is one, and what the file of the model is to hold besides it."""

    table: Table | Store
    model: BinaryDictionaryLearning | None
    parameters: dict[str, Any]
    reading: dict[str, Any]


def stability_of(
    data: Input,
    model: Path | None,
    outputs: Outputs,
    search: dict[str, Any],
    resampling: Resampling,
    run: RunOptions,
    display: Display,
) -> str | None:
    """Print how often the atoms of a model are found again. If Ctrl-C ended it early, return what was done."""
    outputs.check(data.path, display.json)
    quiet = display.quiet or display.json
    table, fitted, parameters, reading = _open(data, model, search, run, quiet)
    if 0 in table.shape:
        raise FileError(f"{data.name}: the table has no {'rows' if len(table) == 0 else 'columns'}")
    if not quiet:
        described = stores.describe_store(table) if isinstance(table, Store) else describe_table(table)
        print_line(f"{data.title}: {described}")
    result, interrupted = _resampled(table, fitted, search, resampling, run, quiet)
    if result is None:
        return "nothing was written" if outputs.paths else "no resample was searched"
    learned = result.model.as_model()
    if outputs.model is not None:
        save_model(learned, outputs.model, parameters, reading)
    if outputs.patterns is not None:
        write_pattern_file(learned, outputs.patterns)
    if display.json:
        print_json(_as_json(result))
    elif not quiet:
        print_line(f"\n{result.summary()}")
        print_patterns(learned, display.top, "\nThe patterns (atoms):")
        if outputs.paths:
            print_line(f"\nWritten: {listed(outputs.paths)}")
    done = f"{result.n_resamples} of {resampling.n_resamples} resamples"
    return f"only {done} were searched" if interrupted else None


def _open(data: Input, model: Path | None, search: dict[str, Any], run: RunOptions, quiet: bool) -> _Opened:
    """Open the table, with the columns of the model if there is one."""
    store = open_packed(data)
    if model is None:
        table = open_data(data, quiet) if store is None else store
        packed = {} if store is None else stores.packing_options(store)
        return _Opened(table, None, to_store(search), packed | remembered_options(data.reading))
    loaded = load_model(model, result_parameters())
    limit = {} if search["max_time"] is None else {"max_time": search["max_time"]}
    # What the cells of the table mean is decided when it is read.
    estimator = fitted_estimator(loaded.model, loaded.parameters | limit | {"binarize": None})
    if store is not None:
        return _Opened(store, estimator, loaded.parameters, loaded.reading)
    table = load_model_and_table(NewRows(model, data, "refuse"), quiet)[1]
    named = Table(table.data, table.row_names, loaded.model.columns, column_data=loaded.model.column_data)
    return _Opened(named, estimator, loaded.parameters, loaded.reading)


def _resampled(
    table: Table | Store,
    fitted: BinaryDictionaryLearning | None,
    search: dict[str, Any],
    resampling: Resampling,
    run: RunOptions,
    quiet: bool,
) -> tuple[Stability | None, bool]:
    """Search the resamples with progress; return the result, of those searched until Ctrl-C, and whether it came."""
    so_far: list[Stability] = []
    with show_status("Searching", quiet) as status:
        progress = ProgressLine(quiet, status)

        def update(result: Stability) -> None:
            so_far.append(result)
            recurs = percent(float(result.recurs.mean()), 1) if result.recurs.size else "none"
            done = f"{result.n_resamples} of {resampling.n_resamples} resamples"
            progress.update(f"Searched {done}: {recurs} of the atoms recur, {progress.seconds}")

        own: dict[str, Any] = {
            "n_jobs": run.n_jobs,
            "device": run.device,
            "resources": Resources(max_memory=run.max_memory),
            "callback": update,
        }
        own |= search if fitted is None else {}
        try:
            result = stability(table, fitted, **resampling._asdict(), **own)
        except KeyboardInterrupt:
            return (so_far[-1] if so_far else None), True
    return result, False


def _as_json(result: Stability) -> dict[str, Any]:
    """Return the result for ``--json``."""
    columns = result.to_dict()
    atoms = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return {**result.recurrence.settings, "stable": int(result.is_stable.sum()), "atoms": atoms}
