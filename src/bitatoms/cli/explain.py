"""`bitatoms show`, `report` and `rules`: what a model has learned."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..formatting import counted, times
from ..model.options import RuleOptions
from . import options
from .output import STANDARD, Display, print_json, print_line, print_rest, print_result, show_status
from .paths import Input, NewRows, OutputTable, listed, output_file, output_name

if TYPE_CHECKING:
    from ..columns.table import Table
    from ..model.model import Model
    from ..model.rules import Chunks, Rule


@options.command("bitatoms show model.npz", "bitatoms show model.npz --patterns patterns.md --atoms-to atoms.csv")
def show(
    model: Path = options.model_file(),
    atoms_to: OutputTable | None = options.table_file("--atoms-to", "Write the atoms as a table, in any format."),
    patterns: Path | None = options.readable("--patterns", "patterns", "the patterns"),
    shown: Display = options.display(20),
) -> None:
    """Describe a model or a packed store.

    The counts of a model are those of its fit: 'used by' counts the codes that 'bitatoms fit --codes' writes.
    """
    from ..rows.store import Store
    from . import files
    from .stores import show_store
    from .summary import model_json, print_patterns

    written = [path for path in (atoms_to, patterns) if path is not None]
    if files.is_packed(Input(model)):
        show_store(Store(model), bool(written), shown)
        return
    learned = files.load_model(model).model
    files.write_atom_table(learned, atoms_to)
    files.write_pattern_file(learned, patterns)
    if shown.json:
        print_json(model_json(learned))
    elif not shown.quiet:
        print_line(learned.summary())
        print_patterns(learned, shown.top, "")
        if written:
            print_line(f"\nWritten: {listed(written)}")


@options.command("bitatoms report model.npz baskets.csv -o report.html")
def report(
    rows: NewRows = options.new_rows(),
    output: Path = options.page("--output -o", "The page to write.", Path("report.html")),
    title: str | None = options.option("--title", help="Title of the page."),
    row: tuple[str, ...] = options.option(
        "--row", help="Row to show before and after coding, by name or number (from 0); may be repeated.", multiple=True
    ),
    groups: str | None = options.option(
        "--groups",
        help="Groups of rows, such as populations: a CSV file with the name and the group of each row, or a field of "
        "the table, such as a column of obs.",
    ),
    max_rows: int | None = options.option(
        "--max-rows",
        help="The most rows that the page contains to be explored, by default 10000; 0 shows no single rows.",
        minimum=0,
    ),
    how: options.Run = options.run("n_jobs", "device"),
    shown: Display = options.display(),
) -> None:
    """Write an HTML page to explore the patterns: where they occur, and what they do not explain."""
    from .files import load_model_and_table
    from .summary import table_json

    model, read = load_model_and_table(rows, shown.is_silent)
    more = {"title": title or rows.data.title, "rows": row, "groups": groups, "max_rows": max_rows}
    write_page(model, read, output, how, shown.is_silent, **more)
    if shown.json or output != STANDARD:
        values = {"written": output_name(output), "patterns": model.atoms.n_rows, **table_json(read)}
        print_result(values, shown, f"The report is in {output}; open it in a browser.")


def write_page(model: Model, table: Table, path: Path, how: options.Run, quiet: bool, **more: Any) -> None:
    """Write a report to a file or a stream."""
    from ..report import write_report

    with show_status("Writing the report", quiet), output_file(path, ".html") as file:
        write_report(model, table, file, **more, **how.threads)


@options.command(
    "bitatoms rules model.npz",
    "bitatoms rules model.npz baskets.csv --min-confidence 0.5 -o rules.csv",
    "bitatoms rules model.npz baskets.zarr --json",
)
def rules(
    model: Path = options.model_file(),
    data: Input | None = options.table(
        "The table to count in, which gives shorter rules; by default the counts of the model are used.", required=False
    ),
    output: Path | None = options.readable("--output -o", "rules", "the rules"),
    limits: RuleOptions = options.declared_options(RuleOptions, "Rule options"),
    absent: str = options.absent(),
    how: options.Run = options.run("max_memory", "n_jobs"),
    shown: Display = options.display(20, "rules to print"),
) -> None:
    """Print rules: of the rows with some features of a pattern, which share has another one, and of all rows.

    All counts are exact: those of the training table, or of the table that is given. Without a table, a rule has all
    features of a pattern; with one, few of them from which another one follows about as often. A rule is left out if a
    more general one has about the same confidence.
    """
    from ..html.model_tables import rule_table
    from ..model.rules import find_rules
    from .files import load_model, write_readable

    learned, chunks = load_model(model).model, None
    if data is not None:
        learned, chunks = _counted(NewRows(model, data, absent), how, shown.is_silent)
    with show_status("Counting", shown.is_silent):
        found = find_rules(learned, limits, chunks)
    if output is not None:
        write_readable(rule_table(found), output)
    if shown.json:
        print_json({"rules": rule_table(found).records(), "patterns": learned.atoms.n_rows})
    elif not shown.quiet and output is not None:
        print_line(f"{output_name(output)}: {counted(len(found), 'rule')}")
    elif not shown.quiet:
        _print_rules(found, counted(learned.atoms.n_rows, "pattern"), shown.top)


def _counted(rows: NewRows, how: options.Run, quiet: bool) -> tuple[Model, Chunks]:
    """Return the model, and what returns the rows to count."""
    from ..rows.store import Store
    from ..rows.store_transform import StoreTransform
    from .files import open_model_and_rows

    model, read = open_model_and_rows(rows, quiet)
    if isinstance(read, Store):
        return model, StoreTransform(read, model, how.workers(), how.memory_limit, rows.absent).chunks
    return model, lambda: [read.data]


def _print_rules(found: list[Rule], patterns: str, n_shown: int) -> None:
    """Print how many rules there are, and the first ones."""
    if not found:
        print_line(f"No rules from {patterns}; lower --min-support, --min-confidence or --min-lift to see more.")
        return
    print_line(
        f"{counted(len(found), 'rule')} from {patterns}, those that account for most rows beyond chance first:\n"
    )
    for rule in found[:n_shown]:
        sentence = str(rule)
        print_line(f"{sentence[0].upper()}{sentence[1:]} ({times(rule.lift)}).")
    print_rest(len(found), n_shown)
