"""What ``bitatoms compare`` does: reads the tables, runs the contenders, says who won, and writes all of it."""

from __future__ import annotations

import shlex
from pathlib import Path
from textwrap import wrap
from typing import Any, NamedTuple

from rich.cells import cell_len
from rich.table import Table as Grid
from rich.text import Text

from ..bits import BitMatrix
from ..compare import BUNDLED, Comparison, Dataset, Run, all_methods
from ..compare import compare as run_comparison
from ..compare.figures import older_figures
from ..compare.methods import chosen
from ..compare.standings import Standings, fewest_bits, fewest_wrong
from ..compare.verdict import verdicts
from ..io.errors import FileError
from ..report.html.figures import check_matplotlib
from .console import Line, doing, out, say, say_json
from .files import check_folder, read_telling, spelled
from .options import STANDARD

_GAP = 2  # blanks between columns
Rows = tuple[tuple[str, ...], ...]


class Wanted(NamedTuple):
    """Who is run, and how, as it was written on the command line."""

    atoms: str | None
    only: str | None
    leave_out: str | None
    seeds: int
    seed: int
    max_time: float
    jobs: int

    def arguments(self) -> dict[str, Any]:
        """The same as `bitatoms.compare.compare` takes it."""
        return {
            "ranks": None if self.atoms is None else _numbers(self.atoms),
            "only": None if self.only is None else _names(self.only),
            "leave_out": _names(self.leave_out or ""),
            "seeds": self.seeds,
            "random_state": self.seed,
            "max_time": self.max_time,
            "n_jobs": self.jobs,
        }

    def spelled(self) -> str:
        """The same on the command line, each with a blank before it."""
        options = {"atoms": self.atoms, "only": self.only, "leave-out": self.leave_out}
        words = [f" --{name} {shlex.quote(value)}" for name, value in options.items() if value is not None]
        words += [f" --{name} {value:g}" for name, value, usual in self._figures() if value != usual]
        return "".join(words)

    def _figures(self) -> tuple[tuple[str, float, float], ...]:
        """Options that are numbers, with what they are where they are not given."""
        return ("seeds", self.seeds, 1), ("seed", self.seed, 0), ("max-time", self.max_time, 60), ("jobs", self.jobs, 1)


def compare(
    data: list[str], folder: Path, wanted: Wanted, quiet: bool, json: bool, reading: dict[str, Any]
) -> str | None:
    """Compare, and write what came of it; returns what there is to say when Ctrl-C ended it early."""
    if not data:
        raise FileError(f"there is nothing to compare on; name a file, or some of {', '.join(BUNDLED)}")
    how = wanted.arguments()
    chosen(how["only"], how["leave_out"])  # before tables are read
    check_matplotlib()
    check_folder(folder, "a comparison")
    silent = quiet or json
    tables = _tables(data, reading, silent)
    command = f"bitatoms compare {shlex.join(data)}{wanted.spelled()}{spelled(reading)} -o {shlex.quote(str(folder))}"
    with doing("Getting ready", silent) as status:
        line = Line(silent, status)

        def told(done: int, all_runs: int, run: Run) -> None:
            asked = "" if run.asked is None else f", {run.asked} atom{'' if run.asked == 1 else 's'}"
            coming = f"{run.data}: {run.contender.label}{asked}"
            line.tell(f"{coming}; {done} of {all_runs} runs done, {line.seconds}", "  (Ctrl-C keeps them)")

        comparison = run_comparison(tables, **how, callback=told, command=command)
    if comparison.interrupted and not comparison.runs:
        return "interrupted; nothing was written"
    with doing("Drawing", silent):
        written = comparison.write(folder)
    if json:
        say_json(_as_json(comparison, written, older_figures(folder, written)))
    elif not quiet:
        for table in comparison.tables:
            _say_table(comparison, table)
        say(f"\nWritten: {folder / 'index.html'}, compare.md, compare.csv and {len(written) - 3} files of figures")
        if older := len(older_figures(folder, written)):
            files = "1 file" if older == 1 else f"{older} files"
            say(f"Left in {folder / 'figures'}: {files} of figures of an earlier comparison")
    if not comparison.interrupted:
        return None
    rest = f"; not reached: {', '.join(comparison.not_reached)}" if comparison.not_reached else ""
    return f"interrupted; the {len(comparison.runs)} runs that were done are in {folder}{rest}"


def list_all(json: bool) -> None:
    """Say who can be compared, and on which data."""
    everyone = all_methods()
    if json:
        keys = ("key", "name", "algebra", "small", "about")
        listed = [{key: getattr(each, key) for key in keys} for each in everyone]
        say_json({"contenders": listed, "data": {name: bundled.about for name, bundled in BUNDLED.items()}})
        return
    grid = _grid(("contender", "", "algebra", "makes small", "what it is"), 5)
    for each in everyone:
        grid.add_row(*map(Text, (each.key, each.name, each.algebra_label, each.small, each.about)))
    out.print(grid, soft_wrap=False)
    data = _grid(("data", "what it is"), 2)
    for name, bundled in BUNDLED.items():
        data.add_row(Text(name), Text(bundled.about))
    say("")
    out.print(data, soft_wrap=False)


def _tables(data: list[str], reading: dict[str, Any], quiet: bool) -> dict[str, BitMatrix]:
    """The tables by name: those of files, and those that come with bitatoms."""
    twice = {name for name in data if data.count(name) > 1}
    if twice:
        raise FileError(f"{min(twice)}: this is named twice; leave it out once")
    titles = [Path(given).name for given in data]
    tables = {}
    for given, title in zip(data, titles, strict=True):
        path = Path(given)
        if given in BUNDLED and not path.exists():
            with doing(f"Making {given}", quiet):
                tables[given] = BUNDLED[given].make()
            continue
        if path != STANDARD and not path.exists() and path.suffix == "":
            raise FileError(f"{given}: there is no such file, and no data of that name; there are {', '.join(BUNDLED)}")
        name = "standard input" if path == STANDARD else title if titles.count(title) == 1 else given
        tables[name] = read_telling(path, reading, quiet).bits
    return tables


def _say_table(comparison: Comparison, table: Dataset) -> None:
    """What the runs on a table came to."""
    rows, columns = table.shape
    say(f"\n{table.name}: {rows} rows of {columns} columns, {table.density:.2%} ones", style="bold")
    for standings in (fewest_wrong(comparison, table), fewest_bits(comparison, table)):
        say(f"\n{standings.heading}")
        _say_standings(standings)
        for told in standings.notes:
            say(told)
    say("")
    for said in verdicts(comparison, table):
        say(said)


def _say_standings(standings: Standings) -> None:
    """A table of contenders, the best in bold; where it is too wide, ranges stand below, then columns do."""
    rows = standings.rows
    if len(_portions(standings, rows)) > 1:
        rows = tuple(tuple(cell.replace(" (", "\n(") for cell in row) for row in rows)
    for place, columns in enumerate(_portions(standings, rows)):
        widths = [_width(standings, rows, j) for j in columns]
        heads = tuple(standings.columns[j] for j in columns)
        if sum(max(pair) + _GAP for pair in zip(map(cell_len, heads), widths, strict=True)) - _GAP > out.width:
            heads = tuple("\n".join(wrap(head, width)) for head, width in zip(heads, widths, strict=True))
        grid = _grid(heads, standings.texts)
        for i, row in enumerate(rows):
            grid.add_row(*(Text(row[j], style="bold green" if (i, j) in standings.best else "") for j in columns))
        if place:
            say("")
        out.print(grid, soft_wrap=False)


def _portions(standings: Standings, rows: Rows) -> list[list[int]]:
    """The columns in portions that fit into the terminal, each with those that hold no figures before it."""
    names = list(range(standings.texts))
    room = out.width - sum(_width(standings, rows, j) + _GAP for j in names)
    portions: list[list[int]] = [[]]
    for j in range(standings.texts, len(standings.columns)):
        needed = sum(_width(standings, rows, other) + _GAP for other in portions[-1]) + _width(standings, rows, j)
        if portions[-1] and needed > room:
            portions.append([])
        portions[-1].append(j)
    return [names + some for some in portions]


def _width(standings: Standings, rows: Rows, column: int) -> int:
    """Letters that a column needs, its head broken between words."""
    lines = (line for row in rows for line in row[column].split("\n"))
    return max(map(cell_len, (*lines, *standings.columns[column].split())))


def _grid(columns: tuple[str, ...], texts: int) -> Grid:
    """A table without lines."""
    grid = Grid(box=None, pad_edge=False, show_edge=False, header_style="bold")
    for place, name in enumerate(columns):
        grid.add_column(name, overflow="fold", justify="left" if place < texts else "right")
    return grid


def _as_json(comparison: Comparison, written: list[Path], older: list[Path]) -> dict[str, Any]:
    """What came of it, for machines."""
    numbers = comparison.numbers()
    names = [column.lower().replace(" ", "_") for column in numbers.columns]
    return {
        "data": [
            {"name": table.name, "rows": table.shape[0], "columns": table.shape[1], "bits_without": table.bits_without}
            for table in comparison.tables
        ],
        "runs": [dict(zip(names, row, strict=True)) for row in numbers.rows],
        "verdicts": {table.name: verdicts(comparison, table) for table in comparison.tables},
        "how": dict(comparison.how),
        "interrupted": comparison.interrupted,
        "not_reached": list(comparison.not_reached),
        "written": [str(path) for path in written],
        "older_figures": [str(path) for path in older],
    }


def _names(text: str) -> list[str]:
    """Names that stand between commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _numbers(text: str) -> list[int]:
    """Numbers that stand between commas."""
    words = _names(text)
    if not words or not all(word.isdecimal() and int(word) for word in words):
        raise ValueError(f"--atoms is {text!r}; give numbers from 1 on with commas between them, as in 2,4,8")
    return [int(word) for word in words]
