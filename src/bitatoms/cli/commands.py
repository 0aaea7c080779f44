"""What the commands do, once they are parsed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from ..algorithms.result import Counted, Factorization, Interrupted
from ..factorization import factorize
from ..io import modelfile
from ..io.beside import beside
from ..io.errors import FileError
from ..io.formats import FORMATS, format_of
from ..io.patterns import check_patterns, write_patterns
from ..model import Model
from ..parallel import Workers, count_threads
from ..report import write_report
from ..table import Names, Picture, Table
from .files import (
    as_learned,
    check_format,
    check_named,
    check_report,
    check_writable,
    meaning,
    quoted,
    read_table,
    spelled,
    write_table,
)
from .options import STANDARD
from .telling import Progress, as_json, doing, in_words, note, say, say_json, shape_in_words, strongest


class Wanted(NamedTuple):
    """What to write of a model beside itself."""

    codes: Path | None = None
    atoms: Path | None = None
    patterns: Path | None = None
    report: Path | None = None

    def check(self, model: Path | None, read: Path, json: bool) -> None:
        """Before long work: refuse what could not be written at its end, with the model and beside what is read."""
        check_named(model, "a model")
        check_named(self.report, "a report")
        check_writable(model, *self, read=(read,))
        if json and STANDARD in self:
            raise FileError("standard output: --json goes there; name a file for the table")
        check_format(self.codes, self.atoms)
        check_patterns(self.patterns)
        check_report(self.report)

    @property
    def paths(self) -> list[Path]:
        """The files that are asked for."""
        return [path for path in self if path is not None]


def fit(
    data: Path, output: Path | None, wanted: Wanted, how: dict[str, Any], top: int, quiet: bool, json: bool,
    reading: dict[str, Any],
) -> bool:  # fmt: skip
    """Learn from a table; returns False when Ctrl-C ended it early."""
    wanted.check(output, data, json)
    if output is not None and output.suffix.lower() != ".npz":
        raise FileError(f"{output}: a model is an .npz file; give it that ending")
    telling = not quiet and not json and STANDARD not in wanted
    table = _read(data, reading, not telling)
    if telling:
        say(f"{_title(data)}: {in_words(table)}")
    model = _learn(table, telling, output is not None, how)
    written = [] if output is None else [output]
    if output is not None:
        modelfile.save(model, output, {k: v for k, v in how.items() if k != "n_jobs"}, meaning(reading))
    whole = model.ended != "interrupted"
    if whole:
        _write_more(model, table, wanted, _title(data), how["n_jobs"])
        written += wanted.paths
    if json:
        say_json(as_json(model, top))
    elif telling:
        say(f"\n{model.summary()}")
        strongest(model, top, "\nThe strongest patterns (atoms):")
        say(
            f"\nWritten: {', '.join(map(str, written))}"
            if written
            else "\nNothing was written; -o model.npz keeps the model."
        )
        if output is not None and wanted.report is None and data != STANDARD and model.atoms.n_rows:
            rest = {name: value for name, value in reading.items() if name not in (*meaning(reading), "tile")}
            say(f"Next: bitatoms report {quoted(output)} {quoted(data)} -o report.html{spelled(rest)}")
    return whole


def _learn(table: Table, telling: bool, keeps: bool, how: dict[str, Any]) -> Model:
    """Search, with progress; Ctrl-C ends it with the best found so far."""
    if 0 in table.shape:
        what = "rows" if len(table) == 0 else "columns"
        raise ValueError(f"the table has no {what}: there is nothing to learn from")
    try:
        with doing("Getting ready (on a new machine this compiles for some 25 seconds)", not telling) as status:
            progress = Progress(len(table), not telling, status, keeps)
            result: Factorization | Counted = factorize(table.bits, callbacks=progress, **how)
    except Interrupted as stopped:
        if stopped.result is None:
            raise KeyboardInterrupt from None
        result = stopped.result
    if result.ended == "max_time" and telling:
        note("max_time= ended the search before it was done; more time may give a better model")
    tile = None if table.picture is None else Picture(table.picture.tile)
    return Model.from_factorization(result, columns=table.columns, picture=tile)


def _write_more(model: Model, table: Table, wanted: Wanted, title: str, jobs: int) -> None:
    """Write what was asked for beside the model."""
    if wanted.codes is not None:
        write_table(_codes(model, table, jobs), wanted.codes, None)
    if wanted.atoms is not None:
        write_table(_atoms(model), wanted.atoms, None)
    if wanted.patterns is not None:
        write_patterns(model, wanted.patterns)
    if wanted.report is not None:
        write_report(model, table, wanted.report, title=title, n_jobs=jobs)


def transform(
    model: Path, data: Path, output: Path, to: str | None, jobs: int, quiet: bool, reading: dict[str, Any]
) -> None:
    """Write the codes of a table; from one .h5ad file to another, add them to what is there."""
    adds = _is_h5ad(data, reading["format"]) and _is_h5ad(output, to)
    check_writable(output, read=(model,) if adds else (model, data))
    learned, table = _both(model, data, reading, quiet)
    codes = _codes(learned, table, jobs)
    if adds:
        from ..io.annotated import write_annotated

        with beside(output) as made:
            write_annotated(data, made, codes.bits, learned)
    else:
        write_table(codes, output, to)
    if not quiet and output != STANDARD:
        a_row = codes.bits.count() / max(1, len(codes))
        say(f"{output}: which of {codes.shape[1]} atoms each of {len(codes)} rows uses, {a_row:.1f} on average")


def reconstruct(
    model: Path, data: Path | None, codes: Path | None, output: Path, to: str | None, jobs: int, quiet: bool,
    reading: dict[str, Any],
) -> None:  # fmt: skip
    """Write a table as the model sees it, from the table itself or from codes."""
    check_writable(output, read=(model, data, codes))
    if data is not None:
        learned, table = _both(model, data, reading, quiet)
        rows, picture, held = table.rows, table.picture, _codes(learned, table, jobs).bits
    else:
        assert codes is not None
        learned = _loaded(model).model
        given = _read(codes, reading, quiet)
        n_atoms = learned.atoms.n_rows
        if given.shape[1] != n_atoms:
            raise FileError(f"{codes}: codes of {given.shape[1]} columns, but the model has {n_atoms} atoms")
        rows, picture, held = given.rows, learned.picture, given.bits
    made = Table(learned.reconstruct(held), rows, learned.columns, picture)
    write_table(made, output, to)
    if not quiet and output != STANDARD:
        say(f"{output}: {shape_in_words(made)}")


def show(model: Path, wanted: Wanted, top: int, json: bool) -> None:
    """Say what a model has learned, and write its atoms and patterns."""
    wanted.check(None, model, json)
    learned = _loaded(model).model
    if wanted.atoms is not None:
        write_table(_atoms(learned), wanted.atoms, None)
    if wanted.patterns is not None:
        write_patterns(learned, wanted.patterns)
    if json:
        say_json(as_json(learned))
        return
    if STANDARD in wanted:
        return
    say(learned.summary())
    strongest(learned, top, "")
    if wanted.paths:
        say(f"\nWritten: {', '.join(map(str, wanted.paths))}")


def report(
    model: Path, data: Path, output: Path, title: str | None, rows: list[str], jobs: int, quiet: bool,
    reading: dict[str, Any],
) -> None:  # fmt: skip
    """Write the page of a model and a table."""
    check_named(output, "a report")
    check_writable(output, read=(model, data))
    check_report(output)
    learned, table = _both(model, data, reading, quiet)
    with doing("Writing the report", quiet):
        write_report(learned, table, output, title=title or _title(data), rows=tuple(rows), n_jobs=jobs)
    if not quiet:
        say(f"The report is in {output}; open it in a browser.")


def convert(data: Path, output: Path, to: str | None, quiet: bool, reading: dict[str, Any]) -> None:
    """Write a table in another format."""
    check_writable(output)
    if output != STANDARD:
        format_of(output, to, writing=True)
    table = _read(data, reading, quiet)
    write_table(table, output, to)
    if not quiet and output != STANDARD:
        say(f"{output}: {shape_in_words(table)}")


def _both(path: Path, data: Path, reading: dict[str, Any], quiet: bool) -> tuple[Model, Table]:
    """A model, and a table that is read, where nothing else is said, as the one it was learned from."""
    model, _, remembered = _loaded(path)
    added = as_learned(data, reading, remembered)
    if added and not quiet:
        note(f"{_title(data)} is read as the data of the model were:{spelled(added)}")
    table = _read(data, reading | added, quiet)
    if model.columns is not None and table.columns is not None and table.columns != model.columns:
        table = _in_order(model.columns, table, data, quiet)
    try:
        model.check(table)
    except ValueError as error:
        raise FileError(f"{_title(data)}: {error}") from error
    return model, table


def _loaded(path: Path) -> modelfile.Loaded:
    """What a model file holds."""
    if path == STANDARD:
        raise FileError("standard input: a model cannot come through it; name the file")
    return modelfile.load(path)


def _in_order(columns: Names, table: Table, data: Path, quiet: bool) -> Table:
    """The table with its columns in this order, if they are the same; else as it is."""
    place = {name: number for number, name in enumerate(table.columns or ())}
    if len(columns) != len(place) or any(name not in place for name in columns):
        return table
    if not quiet:
        note(f"the columns of {_title(data)} are in another order than those of the model, and are put into its order")
    return Table(table.bits.T[[place[name] for name in columns]].T, table.rows, columns)


def _read(data: Path, reading: dict[str, Any], quiet: bool) -> Table:
    """The table of a file; that of a large one takes a while."""
    with doing(f"Reading {_title(data)}", quiet):
        return read_table(data, reading)


def _codes(model: Model, table: Table, jobs: int) -> Table:
    """The codes of a table, with names."""
    codes = model.code(table.bits, Workers(count_threads(jobs))).factors()[1]
    return Table(codes, table.rows, model.atom_names)


def _atoms(model: Model) -> Table:
    """The atoms as a table, with names."""
    return Table(model.atoms, model.atom_names, model.columns, model.picture)


def _is_h5ad(path: Path, format: str | None) -> bool:
    """Whether a file is, or is to become, an AnnData."""
    return path != STANDARD and FORMATS["h5ad"].endings[0] in (path.suffix.lower(), f".{format}")


def _title(data: Path) -> str:
    """What a table is called."""
    return "standard input" if data == STANDARD else data.name
