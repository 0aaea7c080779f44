"""What the commands do, once they are parsed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ..api import factorize
from ..core.model import Model
from ..core.result import CountsResult, Factorization, Interrupted
from ..io import model_file
from ..io.atomic import atomic_write
from ..io.errors import FileError
from ..io.formats import FORMATS, infer_format
from ..io.patterns import check_patterns_path, write_patterns
from ..parallel import Workers, count_threads
from ..report import write_report
from ..rows.budget import checked
from ..rows.store import Store
from ..table import Picture, Table
from . import stores
from .console import Progress, as_json, doing, in_words, note, say, say_json, shape_in_words, strongest
from .files import (
    both,
    called,
    check_checkpoint,
    check_format,
    check_named,
    check_report,
    check_writable,
    is_packed,
    loaded,
    meaning,
    packed_store,
    quoted,
    read_table,
    read_telling,
    spelled,
    title_of,
    write_table,
)
from .options import STANDARD
from .stores import Running, show_store, write_codes


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
        check_patterns_path(self.patterns)
        check_report(self.report)

    @property
    def paths(self) -> list[Path]:
        """The files that are asked for."""
        return [path for path in self if path is not None]


def fit(
    data: Path, output: Path | None, wanted: Wanted, how: dict[str, Any], running: Running, top: int, quiet: bool,
    json: bool, reading: dict[str, Any],
) -> str | None:  # fmt: skip
    """Learn from a table; returns what there is to say when Ctrl-C ended it early."""
    wanted.check(output, data, json)
    if output is not None and output.suffix.lower() != ".npz":
        raise FileError(f"{output}: a model is an .npz file; give it that ending")
    check_checkpoint(running.checkpoint, running.resume, data, output, *wanted)
    telling = not quiet and not json and STANDARD not in wanted
    table = _opened(data, reading, running, not telling)
    if 0 in table.shape:
        what = "rows" if len(table) == 0 else "columns"
        raise ValueError(f"the table has no {what}: there is nothing to learn from")
    if isinstance(table, Store):
        stores.check_fit(table, data, how, running, wanted.codes, wanted.report)
    if telling:
        say(f"{title_of(data)}: {stores.in_words(table) if isinstance(table, Store) else in_words(table)}")
    by_sample = stores.searched_rows(*table.shape, how) < len(table)
    if running.checkpoint is not None and not by_sample and telling:
        note(f"all {len(table)} rows are searched at once, so that there is nothing to keep in {running.checkpoint}")
    goes_on = running.checkpoint is not None and by_sample
    resumed = f"; the same command with --resume goes on from what {running.checkpoint} holds" if goes_on else ""
    model = _learn(table, telling, output is not None or goes_on, how, running)
    if model is None:
        return f"interrupted; nothing was written{resumed}"
    written = [] if output is None else [output]
    if output is not None:
        remembered = stores.as_packed(table) | meaning(reading) if isinstance(table, Store) else meaning(reading)
        model_file.save(model, output, how, remembered)
    whole = model.ended != "interrupted"
    if whole:
        try:
            for path in _write_more(model, table, wanted, data, running, not telling, reading):
                written.append(path)
        except KeyboardInterrupt:
            return f"interrupted; {f'only {_listed(written)} was written' if written else 'nothing was written'}"
    if json:
        say_json(as_json(model, top))
    elif telling:
        say(f"\n{model.summary()}")
        strongest(model, top, "\nThe strongest patterns (atoms):")
        say(f"\nWritten: {_listed(written)}" if written else "\nNothing was written; -o model.npz keeps the model.")
        if whole and output is not None and data != STANDARD and model.atoms.n_rows:
            _say_next(data, output, wanted, isinstance(table, Store), reading)
    if whole:
        return None
    kept = f"the best model so far is in {output}" if output else "nothing was written"
    return f"interrupted; {kept}{', and nothing else was written' if output and wanted.paths else ''}{resumed}"


def _say_next(data: Path, model: Path, wanted: Wanted, packed: bool, reading: dict[str, Any]) -> None:
    """Say what a user may do next."""
    rest = spelled({name: value for name, value in reading.items() if name not in (*meaning(reading), "tile")})
    if packed and wanted.codes is None:
        say(f"Next: bitatoms transform {quoted(model)} {quoted(data)} -o codes.zarr{rest}")
    elif not packed and wanted.report is None:
        say(f"Next: bitatoms report {quoted(model)} {quoted(data)} -o report.html{rest}")


def _learn(table: Table | Store, telling: bool, keeps: bool, how: dict[str, Any], running: Running) -> Model | None:
    """Search, with progress; Ctrl-C ends it with the best found so far, if any."""
    result: Factorization | CountsResult | None
    try:
        with doing("Getting ready (on a new machine this compiles for some 25 seconds)", not telling) as status:
            progress = Progress(len(table), not telling, status, keeps)
            if isinstance(table, Store):
                result = stores.learn(table, progress, how, running)
            else:
                own = {"n_jobs": running.jobs, "checkpoint": running.checkpoint, "resume": running.resume}
                result = factorize(table.bits, callbacks=progress, **(own | how))
    except KeyboardInterrupt as stopped:
        result = stopped.result if isinstance(stopped, Interrupted) else None
    if result is None:
        return None
    if result.ended == "max_time" and telling:
        note("max_time= ended the search before it was done; more time may give a better model")
    tile = None if table.picture is None else Picture(table.picture.tile)
    return Model.from_factorization(result, columns=table.columns, picture=tile)


def _write_more(
    model: Model,
    table: Table | Store,
    wanted: Wanted,
    data: Path,
    running: Running,
    quiet: bool,
    reading: dict[str, Any],
) -> Iterator[Path]:
    """Write what was asked for beside the model, and say what is written."""
    if wanted.atoms is not None:
        write_table(_atoms(model), wanted.atoms, None)
        yield wanted.atoms
    if wanted.patterns is not None:
        write_patterns(model, wanted.patterns)
        yield wanted.patterns
    if wanted.codes is not None:
        if isinstance(table, Store):
            write_codes(table, model, wanted.codes, None, running, quiet)
        else:
            write_table(_codes(model, table, running.jobs), wanted.codes, None)
        yield wanted.codes
    if wanted.report is not None:
        with doing("Writing the report", quiet):
            whole = read_table(data, reading) if isinstance(table, Store) else table
            write_report(model, whole, wanted.report, title=title_of(data), n_jobs=running.jobs)
        yield wanted.report


def transform(
    model: Path, data: Path, output: Path, to: str | None, running: Running, quiet: bool, reading: dict[str, Any]
) -> None:
    """Write the codes of a table; from one .h5ad file to another, add them to what is there."""
    adds = _is_h5ad(data, reading["format"]) and _is_h5ad(output, to)
    check_writable(output, read=(model,) if adds else (model, data))
    store = packed_store(data, reading)
    codes: Table | Store
    if store is not None:
        learned = loaded(model).model
        stores.check_columns(store, data, learned)
        codes = write_codes(store, learned, output, to, running, quiet or output == STANDARD)
    else:
        _refuse_limit(data, running)
        learned, table = both(model, data, reading, quiet)
        codes = _codes(learned, table, running.jobs)
        if adds:
            from ..io.readers.h5ad import write_annotated

            with atomic_write(output) as made:
                write_annotated(data, made, codes.bits, learned)
        else:
            write_table(codes, output, to)
    if not quiet and output != STANDARD:
        used = codes.bits.count() if isinstance(codes, Table) else sum(bits.count() for bits in codes.pieces())
        a_row = used / max(1, len(codes))
        say(f"{output}: which of {codes.shape[1]} atoms each of {len(codes)} rows uses, {a_row:.1f} on average")


def reconstruct(
    model: Path, data: Path | None, codes: Path | None, output: Path, to: str | None, jobs: int, quiet: bool,
    reading: dict[str, Any],
) -> None:  # fmt: skip
    """Write a table as the model sees it, from the table itself or from codes."""
    check_writable(output, read=(model, data, codes))
    if data is not None:
        learned, table = both(model, data, reading, quiet)
        rows, picture, held = table.row_names, table.picture, _codes(learned, table, jobs).bits
    else:
        assert codes is not None
        learned = loaded(model).model
        given = read_telling(codes, reading, quiet)
        n_atoms = learned.atoms.n_rows
        if given.shape[1] != n_atoms:
            raise FileError(f"{codes}: codes of {given.shape[1]} columns, but the model has {n_atoms} atoms")
        rows, picture, held = given.row_names, learned.picture, given.bits
    made = Table(learned.reconstruct(held), rows, learned.columns, picture)
    write_table(made, output, to)
    if not quiet and output != STANDARD:
        say(f"{output}: {shape_in_words(made)}")


def show(model: Path, wanted: Wanted, top: int, json: bool) -> None:
    """Say what a model has learned, and write its atoms and patterns."""
    wanted.check(None, model, json)
    if is_packed(model):
        show_store(Store(model), wanted.paths, json)
        return
    learned = loaded(model).model
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
    learned, table = both(model, data, reading, quiet)
    with doing("Writing the report", quiet):
        write_report(learned, table, output, title=title or title_of(data), rows=tuple(rows), n_jobs=jobs)
    if not quiet:
        say(f"The report is in {output}; open it in a browser.")


def convert(data: Path, output: Path, to: str | None, quiet: bool, reading: dict[str, Any]) -> None:
    """Write a table in another format."""
    check_writable(output)
    if output != STANDARD:
        infer_format(output, to, writing=True)
    table = read_telling(data, reading, quiet)
    write_table(table, output, to)
    if not quiet and output != STANDARD:
        say(f"{output}: {shape_in_words(table)}")


def _opened(data: Path, reading: dict[str, Any], running: Running, quiet: bool) -> Table | Store:
    """A packed store as it is, all else read."""
    store = packed_store(data, reading)
    if store is None:
        _refuse_limit(data, running)
    return read_telling(data, reading, quiet) if store is None else store


def _refuse_limit(data: Path, running: Running) -> None:
    """Refuse a limit of memory for what is read whole."""
    if running.max_memory is not None:
        checked(running.max_memory)
        raise FileError(
            f"{called(data)}: max_memory= is for packed stores, and this is read whole; "
            f"bitatoms pack {quoted(data)} -o rows.zarr makes one of it"
        )


def _codes(model: Model, table: Table, jobs: int) -> Table:
    """The codes of a table, with names."""
    codes = model.code(table.bits, Workers(count_threads(jobs))).factors()[1]
    return Table(codes, table.row_names, model.atom_names)


def _atoms(model: Model) -> Table:
    """The atoms as a table, with names."""
    return Table(model.atoms, model.atom_names, model.columns, model.picture)


def _is_h5ad(path: Path, format: str | None) -> bool:
    """Whether a file is, or is to become, an AnnData."""
    return path != STANDARD and FORMATS["h5ad"].extensions[0] in (path.suffix.lower(), f".{format}")


def _listed(paths: list[Path]) -> str:
    return ", ".join(map(str, paths))
