"""`bitatoms compare`: read the tables, run the methods, print the ranking, and write the results."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.text import Text

from ..formatting import counted
from ..io.errors import FileError
from ..search.options import FitOptions
from ..system.libraries import import_library
from . import options
from .output import STANDARD, Display, new_grid, out, print_json, print_line, print_rich, show_status
from .paths import Input, check_folder

if TYPE_CHECKING:
    from rich.table import Table as Grid

    from ..bits import BitMatrix
    from ..compare import Comparison, Dataset, Run
    from ..compare.rankings import Ranking

_GAP = 2  # blanks between columns


def _names(text: str) -> list[str]:
    """Return names separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _numbers(text: str) -> list[int]:
    """Return positive integers separated by commas."""
    numbers = [int(word) for word in _names(text)]
    if min(numbers) < 1:
        raise ValueError
    return numbers


@options.command(
    "bitatoms compare digits planted-or -o comparison",
    "bitatoms compare baskets.csv --atoms 5,10,20 --seeds 5 -o comparison",
    "bitatoms compare mushroom.npz --only bitatoms-or,asso,grecond --max-time 300 -o comparison",
    "bitatoms compare --list",
)
def compare(
    data: tuple[str, ...] = options.argument(
        "Tables, or names of bundled data sets (see --list).", str, None, nargs=-1, required=False
    ),
    output: Path = options.option("--output -o", Path("comparison"), "Folder to write to.", metavar="FOLDER"),
    ranks: list[int] | None = options.option(
        "--atoms -k",
        help="Numbers of atoms, such as 2,4,8.",
        show_default="2,4,8,16, or fewer",
        convert=options.parser("--atoms", "positive integers separated by commas, such as 2,4,8", _numbers),
    ),
    only: list[str] | None = options.option(
        "--only", help="Methods to run, such as bitatoms-or,asso.", show_default="all", convert=_names
    ),
    leave_out: list[str] | None = options.option("--leave-out", help="Methods to leave out.", convert=_names),
    seeds: int = options.option(
        "--seeds", 1, "Number of seeds; with several, tables show medians and ranges.", minimum=1
    ),
    seed: int = options.option("--seed", 0, "The first seed.", minimum=0),
    max_time: float = options.option(
        "--max-time", 60.0, "Seconds per run; a method that takes longer is not run again on that table."
    ),
    list_methods: bool = options.option("--list", False, "List the methods and the bundled data sets, and exit."),
    jobs: int = options.declared(FitOptions, "n_jobs", "Options", default=1, is_common=True),
    reading: Input = options.group(partial(Input, STANDARD), **options.reading()),
    shown: Display = options.display(),
) -> str | None:
    """Run bitatoms and other methods on the same data, and compare their errors, codelengths and times.

    Writes compare.md, compare.csv and figures. After Ctrl-C, the finished runs are written. If the folder holds an
    earlier comparison, they go to a folder named interrupted inside it.
    """
    from .. import compare as comparisons
    from ..compare.methods import select_methods

    if list_methods:
        _list_all(shown.json)
        return None
    if not data:
        raise FileError(f"no data to compare; pass a file, or one of {', '.join(comparisons.BUNDLED)}")
    chosen: dict[str, Any] = {"only": only, "leave_out": leave_out or []}
    select_methods(**chosen)  # check the names before tables are read
    import_library("matplotlib", "figures need")
    if output.suffix.lower() in (".html", ".htm"):
        raise FileError(
            f"{output}: a comparison is written to a folder, as Markdown, CSV and PNG, not as a page; pass a folder"
        )
    check_folder(output, "a comparison")
    tables = _tables(data, reading, shown.is_silent)
    how: dict[str, Any] = {"seeds": seeds, "random_state": seed, "max_time": max_time, "n_jobs": jobs}
    with show_status("Starting", shown.is_silent) as line:

        def show_run(done: int, all_runs: int, run: Run) -> None:
            n_atoms = "" if run.asked is None else f", {counted(run.asked, 'atom')}"
            label = f"{run.data}: {run.method.label}{n_atoms}"
            line.update(f"{label}; {done} of {all_runs} runs done, {line.seconds}", "  (Ctrl-C keeps them)")

        command = shlex.join(("bitatoms", *sys.argv[1:]))
        comparison = comparisons.compare(tables, ranks=ranks, **chosen, **how, callback=show_run, command=command)
    if comparison.interrupted and not comparison.runs:
        return "nothing was written"
    folder = _folder_of_interrupted(output) if comparison.interrupted else output
    with show_status("Drawing", shown.is_silent):
        written = comparison.write(folder)
    if shown.json:
        print_json(_as_json(comparison, written))
    elif not shown.quiet:
        for table in comparison.tables:
            _print_table(comparison, table)
        print_line(f"\nWritten: {folder / 'compare.md'}, compare.csv and {counted(len(written) - 2, 'figure')}")
    if not comparison.interrupted:
        return None
    rest = f"; not reached: {', '.join(comparison.not_reached)}" if comparison.not_reached else ""
    return f"the {len(comparison.runs)} runs that were done are in {folder}{rest}"


def _folder_of_interrupted(folder: Path) -> Path:
    """Return where to write an interrupted comparison: a folder within the given one if that holds a comparison."""
    others = (folder / f"interrupted{ending}" for ending in chain([""], (f"-{number}" for number in count(2))))
    return next(each for each in chain([folder], others) if not (each / "compare.csv").exists())


def _list_all(json: bool) -> None:
    """Print the methods that can be compared, and the bundled data."""
    from ..compare import BUNDLED, all_methods

    methods = all_methods()
    if json:
        fields = {"key": "key", "name": "name", "algebra": "algebra", "small": "minimizes", "about": "about"}
        listed = [{key: getattr(each, field) for key, field in fields.items()} for each in methods]
        print_json({"contenders": listed, "data": {name: bundled.about for name, bundled in BUNDLED.items()}})
        return
    grid = _grid(("method", "", "algebra", "minimizes", "what it is"), 5)
    for each in methods:
        grid.add_row(*map(Text, (each.key, each.name, each.algebra_label, each.minimizes, each.about)))
    print_rich(grid, soft_wrap=False)
    data = _grid(("data", "what it is"), 2)
    for name, bundled in BUNDLED.items():
        data.add_row(Text(name), Text(bundled.about))
    print_line("")
    print_rich(data, soft_wrap=False)


def _tables(data: tuple[str, ...], reading: Input, quiet: bool) -> dict[str, BitMatrix]:
    """Return the tables by name: those of files, and bundled ones."""
    from ..compare import BUNDLED
    from .files import read_table

    twice = {name for name in data if data.count(name) > 1}
    if twice:
        raise FileError(f"{min(twice)}: passed twice; pass it once")
    titles = [Path(given).name for given in data]
    tables = {}
    for given, title in zip(data, titles, strict=True):
        path = Path(given)
        if given in BUNDLED and not path.exists():
            with show_status(f"Generating {given}", quiet):
                tables[given] = BUNDLED[given].make()
            continue
        if path != STANDARD and not path.exists() and path.suffix == "":
            raise FileError(f"{given}: there is no such file or bundled data set; choose from {', '.join(BUNDLED)}")
        name = "standard input" if path == STANDARD else title if titles.count(title) == 1 else given
        tables[name] = read_table(replace(reading, path=path).with_all_known(), quiet).bits
    return tables


def _print_table(comparison: Comparison, table: Dataset) -> None:
    """Print the rankings of a table."""
    from ..compare.rankings import rank_by_bits, rank_by_wrong_cells, summarize

    rows, columns = table.shape
    print_line(f"\n{table.name}: {rows} rows of {columns} columns, {table.density:.2%} ones", style="bold")
    results = comparison.results(table)
    for ranking in (rank_by_wrong_cells(table, results), rank_by_bits(table, results)):
        print_line(f"\n{ranking.heading}")
        _print_ranking(ranking)
        for note in ranking.notes:
            print_line(note)
    print_line("")
    for sentence in summarize(table, results):
        print_line(sentence)


def _print_ranking(ranking: Ranking) -> None:
    """Print a table of methods, the best in bold; if it is too wide, break lines in cells, then split it."""
    from ..compare.rankings import TEXT_COLUMNS

    columns = list(zip(ranking.columns, *ranking.rows, strict=True))
    if _width(columns) > out.width:
        columns = [
            (head.replace(" ", "\n"), *(cell.replace(" (", "\n(") for cell in cells)) for head, *cells in columns
        ]
    groups = [list(range(TEXT_COLUMNS))]  # of columns that fit side by side, after those that hold names
    for j in range(TEXT_COLUMNS, len(columns)):
        if len(groups[-1]) > TEXT_COLUMNS and _width([columns[each] for each in (*groups[-1], j)]) > out.width:
            groups.append(list(range(TEXT_COLUMNS)))
        groups[-1].append(j)
    for shown in groups:
        heads, *rows = zip(*(columns[j] for j in shown), strict=True)
        grid = _grid(heads, TEXT_COLUMNS)
        for i, row in enumerate(rows):
            styles = ("bold green" if (i, j) in ranking.best else "" for j in shown)
            grid.add_row(*map(Text, row, styles))
        if shown is not groups[0]:
            print_line("")
        print_rich(grid, soft_wrap=False)


def _width(columns: list[tuple[str, ...]]) -> int:
    """Return the characters that columns take side by side."""
    widths = (max(cell_len(line) for cell in column for line in cell.split("\n")) for column in columns)
    return sum(widths) + _GAP * (len(columns) - 1)


def _grid(columns: tuple[str, ...], texts: int) -> Grid:
    """Return a table without lines."""
    grid = new_grid()
    for number, name in enumerate(columns):
        grid.add_column(name, overflow="fold", justify="left" if number < texts else "right")
    return grid


def _as_json(comparison: Comparison, written: list[Path]) -> dict[str, Any]:
    """Return the results, for ``--json``."""
    from ..compare.rankings import summarize

    numbers = comparison.numbers()
    names = [column.lower().replace(" ", "_") for column in numbers.columns]
    return {
        "data": [
            {"name": table.name, "rows": table.shape[0], "columns": table.shape[1], "bits_without": table.bits_without}
            for table in comparison.tables
        ],
        "runs": [dict(zip(names, row, strict=True)) for row in numbers.rows],
        "verdicts": {table.name: summarize(table, comparison.results(table)) for table in comparison.tables},
        "how": dict(comparison.how),
        "interrupted": comparison.interrupted,
        "not_reached": list(comparison.not_reached),
        "written": [str(path) for path in written],
    }
