"""`bitatoms rules`: of the rows with some features of a pattern, how many have another one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..formatting import counted, times
from ..html.model_tables import rule_table
from ..model.model import Model
from ..model.options import RuleOptions
from ..model.rules import Chunks, Rule, find_rules
from ..rows.store_transform import StoreTransform
from .console import Display, print_json, print_line
from .files import (
    check_json_output,
    check_readable,
    check_writable,
    load_model,
    load_model_and_table,
    open_packed,
    write_readable,
)
from .options import Input, NewRows
from .progress import show_status
from .stores import RunOptions
from .streams import output_name


def rules(
    model_path: Path,
    data: Input | None,
    output: Path | None,
    limits: dict[str, Any],
    absent: str,
    run: RunOptions,
    display: Display,
) -> None:
    """Print the rules of a model, counted in its training table or in another one, and write them to a file."""
    wanted = RuleOptions(**limits)
    check_writable(output, read=(model_path, None if data is None else data.path))
    check_json_output(display.json, output)
    if output is not None:
        check_readable(output, "rules")
    model, chunks = _opened(model_path, data, absent, run, display.is_silent)
    with show_status("Counting", display.is_silent):
        found = find_rules(model, wanted, chunks)
    if output is not None:
        write_readable(rule_table(found), output)
    if display.json:
        print_json({"rules": rule_table(found).records(), "patterns": model.atoms.n_rows})
    elif not display.quiet:
        _print_rules(found, model, display.top, output)


def _opened(
    model_path: Path, data: Input | None, absent: str, run: RunOptions, quiet: bool
) -> tuple[Model, Chunks | None]:
    """Return the model, and what returns the rows to count, None if the model has counted them."""
    if data is None:
        return load_model(model_path).model, None
    store = open_packed(data)
    if store is not None:
        model = load_model(model_path).model
        return model, StoreTransform(store, model, run.workers(), run.memory_limit, absent).chunks
    model, table = load_model_and_table(NewRows(model_path, data, absent), quiet)
    return model, lambda: [table.data]


def _print_rules(found: list[Rule], model: Model, n_shown: int, output: Path | None) -> None:
    """Print how many rules there are, and the first ones."""
    count = counted(len(found), "rule")
    if output is not None:
        print_line(f"{output_name(output)}: {count}")
        return
    patterns = counted(model.atoms.n_rows, "pattern")
    if not found:
        print_line(f"No rules from {patterns}; lower --min-support, --min-confidence or --min-lift to see more.")
        return
    print_line(f"{count} from {patterns}, those that account for most rows beyond chance first:\n")
    for rule in found[:n_shown]:
        sentence = str(rule)
        print_line(f"{sentence[0].upper()}{sentence[1:]} ({times(rule.lift)}).")
    if len(found) > n_shown:
        print_line(f"and {len(found) - n_shown} more (--top {len(found)} shows all)")
