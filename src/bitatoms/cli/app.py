"""The commands as they are parsed. What they do is in `commands.py`, which is loaded when one runs: help is quick then.

Annotations are looked at as they are, and therefore not postponed."""

import io
import os
import sys
import warnings
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .._version import __version__
from ..io.formats import FORMATS
from . import options
from .console import fail, note
from .options import STANDARD, TELLING, AsJson, Data, Format, Jobs, ModelFile, Quiet, reads

BAD_INPUT, INTERRUPTED = 2, 130
_LEARNING, _RUNNING, _WRITING = "How to learn", "Who is run, and how", "What to write"


class Algebra(StrEnum):
    """How the atoms of a row are put together."""

    auto = "auto"
    xor = "xor"
    OR = "or"


class Search(StrEnum):
    """How to search."""

    fast = "fast"
    thorough = "thorough"
    paper = "paper"


class Demo(StrEnum):
    """The data to try it on."""

    baskets = "baskets"
    genotypes = "genotypes"
    digits = "digits"
    halftone = "halftone"


Output = Annotated[
    Path, typer.Option("--output", "-o", help="Where to write it; - is the standard output.", rich_help_panel=_WRITING)
]
To = Annotated[
    Format | None,
    typer.Option(
        help="The format to write, where the ending does not tell it.", show_default=False, rich_help_panel=_WRITING
    ),
]
Top = Annotated[int, typer.Option(min=0, help="How many of the strongest atoms to show.", rich_help_panel=TELLING)]


def _also(*names: str, help: str) -> Any:
    """An option that names one more file to write."""
    return typer.Option(*names, help=help, show_default=False, rich_help_panel=_WRITING)


def _learning(*names: str, help: str, **more: Any) -> Any:
    """An option of learning."""
    return typer.Option(*names, help=help, rich_help_panel=_LEARNING, **more)


def _running(*names: str, help: str, **more: Any) -> Any:
    """An option of comparing."""
    return typer.Option(*names, help=help, rich_help_panel=_RUNNING, **more)


AtomsTo = Annotated[Path | None, _also("--atoms-to", help="The atoms, as a table in any format.")]
Patterns = Annotated[Path | None, _also(help="The patterns to read, as .csv, .json or .md.")]


def _examples(*commands: str) -> str:
    """Examples for the end of a help page."""
    return "Examples:\n\n" + "\n\n".join(f"`{command}`" for command in commands)


class Commands(TyperGroup):
    """The commands; what goes wrong in one is said in a line."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            fail("interrupted; nothing was written")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:  # whoever read the output has enough; what is still to be flushed has nowhere to go
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit from None
        except (ValueError, ImportError, OSError, MemoryError) as error:
            if os.environ.get("BITATOMS_DEBUG"):
                raise
            fail(str(error) or type(error).__name__)
            raise typer.Exit(BAD_INPUT) from error


app = typer.Typer(
    name="bitatoms",
    cls=Commands,
    epilog="To begin with, try `bitatoms demo`.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _say_version(wanted: bool) -> None:
    if wanted:
        print(f"bitatoms {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option("--version", help="Say which version this is.", callback=_say_version, is_eager=True),
    ] = False,
) -> None:
    """Find the few binary patterns (atoms) that explain a large table of yes and no."""


@app.command(
    epilog=_examples(
        "bitatoms fit baskets.csv -o model.npz",
        "bitatoms fit cells.h5ad --binarize 0 --algebra or -o model.npz --patterns patterns.md",
        "bitatoms fit picture.pbm --blocks 16x16 -o model.npz --search thorough",
        "zcat big.csv.gz | bitatoms fit - -o model.npz",
        "bitatoms fit rows.zarr -o model.npz --max-memory 500MB --checkpoint so-far --resume",
    )
)
@reads
def fit(
    data: Data,
    output: Annotated[Path | None, _also("--output", "-o", help="The model, an .npz file.")] = None,
    atoms: Annotated[
        str, _learning("--atoms", "-k", help="How many atoms; mdl chooses by description length.")
    ] = "mdl",
    algebra: Annotated[
        Algebra, _learning(help="How the atoms of a row are put together; auto keeps what is described shorter.")
    ] = Algebra.auto,
    search: Annotated[Search, _learning(help="How to search; thorough takes several times as long.")] = Search.fast,
    max_atoms: Annotated[int | None, _learning(help="The most atoms that mdl may end with.")] = None,
    max_time: Annotated[float | None, _learning(help="Seconds after which to end with the best found.")] = None,
    seed: Annotated[int, _learning(min=0, help="The same seed gives the same result, to the bit.")] = 0,
    sample_rows: Annotated[
        str,
        _learning(help="How many rows to search where there are more, before going through all; or all, or auto."),
    ] = "auto",
    checkpoint: Annotated[
        Path | None,
        _learning(help="A folder to keep how far it has come, where a sample is searched.", metavar="FOLDER"),
    ] = None,
    resume: Annotated[
        bool, _learning("--resume", help="Go on from the checkpoint, if there is one, to the same result.")
    ] = False,
    max_memory: Annotated[str | None, options.max_memory(_LEARNING)] = None,
    codes: Annotated[Path | None, _also(help="Which atoms each row uses, as a table in any format.")] = None,
    atoms_to: AtomsTo = None,
    patterns: Patterns = None,
    report: Annotated[Path | None, _also(help="The report, a page of HTML.")] = None,
    top: Top = 5,
    jobs: Jobs = -1,
    quiet: Quiet = False,
    json: AsJson = False,
    reading: Any = None,
) -> None:
    """Learn the patterns (atoms) of a table, and say what was found.

    How many there are is chosen by description length: with that number, the table and its atoms together take the
    fewest bits to write down. A packed store, as 'bitatoms pack' writes it, is not read whole.
    """
    from . import commands
    from .stores import Running

    how = {
        "n_components": _number_or_mdl(atoms),
        "algebra": str(algebra),
        "search": str(search),
        "max_components": max_atoms,
        "max_time": max_time,
        "random_state": seed,
        "sample_rows": _rows_or_word(sample_rows),
    }
    wanted = commands.Wanted(codes, atoms_to, patterns, report)
    running = Running(jobs, max_memory, checkpoint, resume)
    _end(commands.fit(data, output, wanted, how, running, top, quiet, json, reading))


@app.command(
    epilog=_examples(
        "bitatoms transform model.npz new.csv -o codes.csv",
        "bitatoms transform model.npz cells.h5ad --binarize 0 -o annotated.h5ad",
        "bitatoms transform model.npz new.csv | head",
        "bitatoms transform model.npz rows.zarr -o codes.zarr --max-memory 500MB",
    )
)
@reads
def transform(
    model: ModelFile,
    data: Data,
    output: Output = STANDARD,
    to: To = None,
    max_memory: Annotated[str | None, options.max_memory(TELLING)] = None,
    jobs: Jobs = -1,
    quiet: Quiet = False,
    reading: Any = None,
) -> None:
    """Tell which atoms each row of a table uses: its codes.

    From one .h5ad file to another, they are added to what is there: codes in obsm, atoms in varm. From a packed store
    to another they go a piece at a time.
    """
    from . import commands
    from .stores import Running

    commands.transform(model, data, output, to and str(to), Running(jobs, max_memory), quiet, reading)


@app.command(
    epilog=_examples(
        "bitatoms reconstruct model.npz picture.pbm --blocks 16x16 -o clean.pbm",
        "bitatoms reconstruct model.npz --codes codes.csv -o table.csv",
    )
)
@reads
def reconstruct(
    model: ModelFile,
    data: Annotated[
        Path | None, typer.Argument(help="The table to take apart and put together again.", show_default=False)
    ] = None,
    codes: Annotated[
        Path | None, typer.Option(help="Codes to put together, instead of a table.", show_default=False)
    ] = None,
    output: Output = STANDARD,
    to: To = None,
    jobs: Jobs = -1,
    quiet: Quiet = False,
    reading: Any = None,
) -> None:
    """Put rows together from their atoms: the table as the model sees it, without what it takes for noise."""
    from . import commands

    if (data is None) == (codes is None):
        raise typer.BadParameter("give a table, or --codes and a file: one of the two")
    commands.reconstruct(model, data, codes, output, to and str(to), jobs, quiet, reading)


@app.command(
    epilog=_examples("bitatoms show model.npz", "bitatoms show model.npz --patterns patterns.md --atoms-to atoms.csv")
)
def show(
    model: ModelFile, atoms_to: AtomsTo = None, patterns: Patterns = None, top: Top = 20, json: AsJson = False
) -> None:
    """Show what a model has learned, or what a packed store holds."""
    from . import commands

    commands.show(model, commands.Wanted(atoms=atoms_to, patterns=patterns), top, json)


@app.command(epilog=_examples("bitatoms report model.npz baskets.csv -o report.html"))
@reads
def report(
    model: ModelFile,
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.", rich_help_panel=_WRITING)] = Path(
        "report.html"
    ),
    title: Annotated[str | None, _also(help="The title of the page.")] = None,
    row: Annotated[
        list[str] | None, _also(help="A row to show before and after, by name or number; may be given several times.")
    ] = None,
    jobs: Jobs = -1,
    quiet: Quiet = False,
    reading: Any = None,
) -> None:
    """Write a page that shows the patterns, where they occur, and what they leave unexplained."""
    from . import commands

    commands.report(model, data, output, title, row or [], jobs, quiet, reading)


@app.command(
    epilog=_examples(
        "bitatoms convert table.csv table.parquet",
        "bitatoms convert picture.pbm blocks.npz --blocks 16x16",
        "bitatoms convert cells.h5ad cells.npz --layer counts --binarize 0",
    )
    + "\n\nFormats:\n\n"
    + "\n\n".join(f"`{name}` ({', '.join(about.extensions)}): {about.description}" for name, about in FORMATS.items())
)
@reads
def convert(
    data: Data,
    output: Annotated[Path, typer.Argument(help="Where to write it; - is the standard output.", show_default=False)],
    to: To = None,
    quiet: Quiet = False,
    reading: Any = None,
) -> None:
    """Turn a table of one format into another, with its names."""
    from . import commands

    commands.convert(data, output, to and str(to), quiet, reading)


@app.command(
    epilog=_examples(
        "bitatoms compare digits planted-or -o comparison",
        "bitatoms compare baskets.csv --atoms 5,10,20 --seeds 5 -o comparison",
        "bitatoms compare mushroom.npz --only bitatoms-or,asso,grecond --max-time 300 -o comparison",
        "bitatoms compare --list",
    )
)
@reads
def compare(
    data: Annotated[
        list[str] | None,
        typer.Argument(help="Tables, or names of data that come with bitatoms (see --list).", show_default=False),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder to write to.", rich_help_panel=_WRITING, metavar="FOLDER")
    ] = Path("comparison"),
    atoms: Annotated[
        str | None,
        _running("--atoms", "-k", help="How many atoms to ask for, as in 2,4,8.", show_default="2,4,8,16, or fewer"),
    ] = None,
    only: Annotated[str | None, _running(help="Who is run, as in bitatoms-or,asso.", show_default="all")] = None,
    leave_out: Annotated[str | None, _running(help="Who is not run.", show_default=False)] = None,
    seeds: Annotated[int, _running(min=1, help="How many seeds; the table then shows medians and ranges.")] = 1,
    seed: Annotated[int, _running(min=0, help="The first seed.")] = 0,
    max_time: Annotated[float, _running(help="Seconds; who takes longer is not run again on the same table.")] = 60.0,
    list_them: Annotated[
        bool, _running("--list", help="Say who can be compared, and on which data; run nothing.")
    ] = False,
    jobs: Annotated[int, _running("--jobs", "-j", help="Threads; -1 is all processors.")] = 1,
    quiet: Quiet = False,
    json: AsJson = False,
    reading: Any = None,
) -> None:
    """Run bitatoms and other methods on the same data by the same clock, and write who gets what wrong in which time.

    Written are compare.md, compare.csv, a page (index.html) and the figures. Programs of others that are installed are
    run, too.
    """
    from . import compare

    if list_them:
        compare.list_all(json)
        return
    wanted = compare.Wanted(atoms, only, leave_out, seeds, seed, max_time, jobs)
    _end(compare.compare(data or [], output, wanted, quiet, json, reading))


@app.command(
    epilog=_examples(
        "bitatoms reproduce -o paper",
        "bitatoms reproduce --einstein einstein.pbm --mnist openml -o paper",
        "bitatoms reproduce --mnist t10k-images-idx3-ubyte.gz -o paper",
    )
)
def reproduce(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder to write to.", rich_help_panel=_WRITING, metavar="FOLDER")
    ] = Path("paper"),
    einstein: Annotated[
        Path | None,
        typer.Option(help="The paper's halftone picture.", metavar="FILE", show_default="another, which is bundled"),
    ] = None,
    mnist: Annotated[
        str | None,
        typer.Option(
            help="The digits of MNIST: openml to fetch them, or a file.",
            metavar="FILE|openml",
            show_default="other digits, which are bundled",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same figures, but for times.")] = 0,
    quiet: Quiet = False,
    json: AsJson = False,
) -> None:
    """Do the experiments of the paper again: its figures, and each of its claims beside what is found.

    Written are a page (index.html), the claims (claims.csv), and the figures with their numbers. Without the paper's
    data, bundled data stand in, and the page says so. It takes about half a minute.
    """
    from . import reproduce

    reproduce.reproduce(output, einstein, mnist, seed, quiet, json)


@app.command(
    epilog=_examples(
        "bitatoms pack big.csv.gz -o rows.zarr",
        "bitatoms pack counts.parquet --binarize 0 -o rows.zarr",
        "zcat big.csv.gz | bitatoms pack - -o rows.zarr",
    )
)
@reads
def pack(
    source: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="The store to make, .zarr.", rich_help_panel=_WRITING)],
    quiet: Quiet = False,
    json: AsJson = False,
    reading: Any = None,
) -> None:
    """Pack a table into a store on disk, a block of rows at a time: it may be larger than memory.

    fit and transform take such a store without reading it whole.
    """
    from . import stores

    _end(stores.pack_table(source, output, quiet, json, reading))


@app.command(epilog=_examples("bitatoms demo", "bitatoms demo genotypes --folder somewhere"))
def demo(
    which: Annotated[Demo, typer.Argument(help="Which data to try it on.")] = Demo.baskets,
    folder: Annotated[Path, typer.Option(help="Where to put the files.")] = Path("bitatoms-demo"),
) -> None:
    """Try it: write a table, learn its patterns, and write a report, by commands that are shown."""
    from . import demo

    demo.run(which, folder, app)


def _number_or_mdl(text: str) -> int | str:
    """The number of atoms as a number, or "mdl"."""
    if text == "mdl":
        return text
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"--atoms is {text!r}; give a number, or mdl") from None


def _rows_or_word(text: str) -> int | str | None:
    """The rows of a sample as a number, "auto", or None for all."""
    if text in ("auto", "all"):
        return text if text == "auto" else None
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"--sample-rows is {text!r}; give a number, all, or auto") from None


def _end(stopped: str | None) -> None:
    """Where Ctrl-C ended a command early, say what came of it."""
    if stopped is not None:
        fail(stopped)
        raise typer.Exit(INTERRUPTED)


def _tell_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    """A warning as a note; those for programmers are left out."""
    if not issubclass(category, (DeprecationWarning, PendingDeprecationWarning)):
        note(str(message))


def run(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 2 wrong input or use, 130 interrupted."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a letter shows a question mark
            stream.reconfigure(errors="replace")
    with warnings.catch_warnings():
        warnings.showwarning = _tell_warning
        app(arguments, prog_name="bitatoms")
