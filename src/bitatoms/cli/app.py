"""The commands as Typer parses them.

What they do is in `commands.py`, which is imported when a command runs, so that help is fast.
"""

# Typer reads annotations at run time, so they are not postponed here.
import csv
import io
import os
import sys
import warnings
from enum import StrEnum
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .._version import __version__
from ..covers.options import CoverOptions
from ..io.formats.registry import FORMATS
from ..libraries import explained
from . import options
from .console import Display, print_error, print_line, print_note, printing_notes
from .options import (
    ABSENT_DEFAULT,
    DEVICE_DEFAULT,
    GENERAL,
    SEARCH,
    WRITING,
    AbsentColumns,
    Algebra,
    AsJson,
    CoverObjective,
    Data,
    Format,
    Input,
    Jobs,
    ModelFile,
    NewRows,
    OnDevice,
    Quiet,
    Search,
    default_of,
    hide_all_notes,
    parameter,
    with_reading_options,
)
from .signals import describe_interrupt, interrupt_exit_code, interrupted_by_sigterm
from .spelling import STANDARD
from .streams import lines_beside

BAD_INPUT = 2
_VERBOSE = "bitatoms.verbose"  # whether --version prints more
_LIMITS = "Constraints"
_FIXED_HELP = (
    "Known atoms, a table with one row per atom, or a pattern file: they stay as they are, and others are learned "
    "beside them."
)
_APART_HELP = (
    "Features of which an atom has at most one, separated by commas (quote names that contain commas); may be repeated."
)
_TOGETHER_HELP = (
    "Features of which an atom has all or none, separated by commas (quote names that contain commas); may be repeated."
)
_COMPARISON, _RULES, _REPORT = "Comparison options", "Rule options", "Report options"
_AUTO, _FAST = Algebra(default_of("algebra")), Search(default_of("search"))
_ROLES = CoverObjective("roles")


class Demo(StrEnum):
    """The data of the demonstration."""

    baskets = "baskets"
    customers = "customers"
    genotypes = "genotypes"
    digits = "digits"
    halftone = "halftone"


def _output(*flags: str, help: str, **more: Any) -> Any:
    """Return an option that names a file to write."""
    more = {"show_default": False} | more
    return typer.Option(*flags, help=help, rich_help_panel=WRITING, **more)


def _comparison(*flags: str, help: str, **more: Any) -> Any:
    """Return an option of a comparison."""
    return typer.Option(*flags, help=help, rich_help_panel=_COMPARISON, **more)


Output = Annotated[Path, _output("--output", "-o", help="File to write; - means standard output.", show_default=True)]
To = Annotated[Format | None, _output("--to", help="Format to write; inferred from the file name by default.")]
Top = Annotated[int, typer.Option(min=0, help="Number of atoms to show.", rich_help_panel=GENERAL)]
AtomsTo = Annotated[Path | None, _output("--atoms-to", help="Write the atoms as a table, in any format.")]
Decode = Annotated[
    bool,
    _output(
        "--decode",
        help="Write a table of categories or of numbers of copies, as the model's table was: one column per variable.",
    ),
]
READABLE = ".csv, .tsv, .json, .md, .html or .xlsx; - is CSV on standard output"
Patterns = Annotated[Path | None, _output("--patterns", help=f"Write the patterns as {READABLE}.")]


def _examples(*commands: str) -> str:
    """Return examples for the end of a help page."""
    return "Examples:\n\n" + "\n\n".join(f"`{command}`" for command in commands)


class Commands(TyperGroup):
    """The group of commands, which prints errors in one line."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options before the command."""
        ctx.meta[_VERBOSE] = "--verbose" in takewhile(lambda argument: argument.startswith("-"), args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run a command, and translate exceptions to exit codes."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print_error(f"{describe_interrupt()}; nothing was written")
            raise typer.Exit(interrupt_exit_code()) from None
        except (ValueError, ImportError, OSError, MemoryError) as error:
            if os.environ.get("BITATOMS_DEBUG"):
                raise
            print_error(explained(error) or error)
            raise typer.Exit(BAD_INPUT) from error


app = typer.Typer(
    name="bitatoms",
    cls=Commands,
    epilog="Start with `bitatoms demo`.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(context: typer.Context, requested: bool) -> None:
    """Print the version before other options are parsed, for which typer imports more than this needs."""
    if not requested:
        return
    if context.meta[_VERBOSE]:
        from ..versions import describe_installation

        print_line(describe_installation())
    else:
        print_line(f"bitatoms {__version__}")
    raise typer.Exit


def _check_verbose(requested: bool) -> None:
    if requested:  # otherwise the version was printed before
        raise typer.BadParameter("--verbose goes with --version")


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True),
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", help="With --version: all that is installed, for bug reports.", callback=_check_verbose
        ),
    ] = False,
) -> None:
    """Find the few binary patterns (atoms) that explain a large binary table."""


@app.command(
    epilog=_examples(
        "bitatoms fit baskets.csv -o model.npz",
        "bitatoms fit cells.h5ad --binarize 0 --algebra or -o model.npz --patterns patterns.md",
        "bitatoms fit picture.pbm --blocks 16x16 -o model.npz --search thorough",
        "bitatoms fit counted.csv --weight-column count -o model.npz",
        "zcat big.csv.gz | bitatoms fit - -o model.npz",
        "bitatoms fit rows.zarr -o model.npz --max-memory 500MB --checkpoint checkpoint --resume",
    )
)
@with_reading_options
def fit(
    data: Data,
    output: Annotated[Path | None, _output("--output", "-o", help="Write the model, an .npz file.")] = None,
    atoms: Annotated[str, parameter("n_components", "--atoms", "-k", panel=SEARCH, metavar="INTEGER|mdl")] = "mdl",
    algebra: Annotated[Algebra, parameter("algebra", panel=SEARCH)] = _AUTO,
    search: Annotated[Search, parameter("search", panel=SEARCH)] = _FAST,
    max_atoms: Annotated[int | None, parameter("max_components", panel=SEARCH)] = None,
    false_negative_cost: Annotated[float, parameter("false_negative_cost", panel=_LIMITS, metavar="COST")] = 1.0,
    false_positive_cost: Annotated[float, parameter("false_positive_cost", panel=_LIMITS, metavar="COST")] = 1.0,
    fixed: Annotated[Path | None, parameter("fixed_atoms", panel=_LIMITS, metavar="FILE", help=_FIXED_HELP)] = None,
    bias: Annotated[bool, parameter("bias", "--bias/--no-bias", panel=_LIMITS)] = True,
    max_features: Annotated[int | None, parameter("max_features_per_atom", panel=_LIMITS, min=1)] = None,
    min_samples: Annotated[int | None, parameter("min_samples_per_atom", panel=_LIMITS, min=1)] = None,
    apart: Annotated[
        list[str] | None, parameter("apart", panel=_LIMITS, metavar="FEATURE,...", help=_APART_HELP)
    ] = None,
    together: Annotated[
        list[str] | None, parameter("together", panel=_LIMITS, metavar="FEATURE,...", help=_TOGETHER_HELP)
    ] = None,
    max_time: Annotated[float | None, parameter("max_time", panel=SEARCH)] = None,
    seed: Annotated[int, parameter("random_state", panel=SEARCH, min=0)] = 0,
    search_rows: Annotated[str, parameter("search_rows", panel=SEARCH, metavar="INTEGER|all|auto")] = "auto",
    checkpoint: Annotated[Path | None, parameter("checkpoint", panel=SEARCH, metavar="FOLDER")] = None,
    resume: Annotated[bool, parameter("resume", panel=SEARCH)] = False,
    max_memory: Annotated[str | None, options.max_memory(SEARCH)] = None,
    weight_column: Annotated[
        str | None,
        typer.Option(
            "--weight-column",
            help="Column, no feature, with the weight of each row: a whole number, how many times the row counts.",
            metavar="NAME",
            show_default=False,
            rich_help_panel=SEARCH,
        ),
    ] = None,
    codes: Annotated[
        Path | None,
        _output("--codes", help="Write the codes of the fit (which atoms each row uses) as a table, in any format."),
    ] = None,
    atoms_to: AtomsTo = None,
    patterns: Patterns = None,
    report: Annotated[Path | None, _output("--report", help="Write the report, an HTML page.")] = None,
    top: Top = 5,
    jobs: Jobs = -1,
    device: OnDevice = DEVICE_DEFAULT,
    quiet: Quiet = False,
    json: AsJson = False,
    reading: Any = None,
) -> None:
    """Learn the patterns (atoms) of a table, and print a summary.

    The number of atoms is chosen by minimum description length (MDL): the table and its atoms together take the
    fewest bits. The table may also be a packed store, which may be larger than memory (see 'bitatoms pack').
    """
    from . import commands
    from .stores import RunOptions

    parameters = {
        "n_components": _parse_atoms(atoms),
        "algebra": str(algebra),
        "search": str(search),
        "max_components": max_atoms,
        "false_negative_cost": false_negative_cost,
        "false_positive_cost": false_positive_cost,
        "bias": bias,
        "max_features_per_atom": max_features,
        "min_samples_per_atom": min_samples,
        "apart": _parse_features(apart),
        "together": _parse_features(together),
        "max_time": max_time,
        "random_state": seed,
        "search_rows": _parse_search_rows(search_rows),
    }
    outputs = commands.Outputs(output, codes, atoms_to, patterns, report)
    run = RunOptions(jobs, max_memory, checkpoint, resume, str(device))
    beside = commands.BesideTable(weight_column, fixed)
    with lines_beside(*outputs):
        _exit(commands.fit(Input(data, reading), outputs, parameters, run, Display(quiet, json, top), beside))


@app.command(
    epilog=_examples(
        "bitatoms transform model.npz new.csv -o codes.csv",
        "bitatoms transform model.npz cells.h5ad --binarize 0 -o annotated.h5ad",
        "bitatoms transform model.npz new.csv --soft -o soft.csv",
        "bitatoms transform model.npz new.csv | head",
        "bitatoms transform model.npz rows.zarr -o codes.zarr --max-memory 500MB",
    )
)
@with_reading_options
def transform(
    model: ModelFile,
    data: Data,
    output: Output = STANDARD,
    to: To = None,
    soft: Annotated[
        bool,
        _output(
            "--soft", help="Write soft codes (bits that each atom saves in each row) as .csv, .tsv, .xlsx or .npy."
        ),
    ] = False,
    absent: AbsentColumns = ABSENT_DEFAULT,
    max_memory: Annotated[str | None, options.max_memory(GENERAL)] = None,
    jobs: Jobs = -1,
    device: OnDevice = DEVICE_DEFAULT,
    quiet: Quiet = False,
    json: AsJson = False,
    reading: Any = None,
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
    from . import commands
    from .stores import RunOptions

    run = RunOptions(jobs, max_memory, device=str(device))
    rows = NewRows(model, Input(data, reading), str(absent))
    with lines_beside(output):
        write = commands.transform_soft if soft else commands.transform
        write(rows, commands.OutputTable(output, to and str(to)), run, Display(quiet, json))


@app.command(
    epilog=_examples(
        "bitatoms reconstruct model.npz picture.pbm --blocks 16x16 -o clean.pbm",
        "bitatoms reconstruct model.npz --codes codes.csv -o table.csv",
    )
)
@with_reading_options
def reconstruct(
    model: ModelFile,
    data: Annotated[Path | None, typer.Argument(help="The table to code and reconstruct.", show_default=False)] = None,
    codes: Annotated[
        Path | None, typer.Option(help="Codes to reconstruct, instead of a table.", show_default=False)
    ] = None,
    output: Output = STANDARD,
    to: To = None,
    decode: Decode = False,
    absent: AbsentColumns = ABSENT_DEFAULT,
    jobs: Jobs = -1,
    device: OnDevice = DEVICE_DEFAULT,
    quiet: Quiet = False,
    json: AsJson = False,
    reading: Any = None,
) -> None:
    """Reconstruct a table from its atoms, without noise.

    The rows of a table are coded afresh, as by 'bitatoms transform'. For the reconstruction of the fit, pass the codes
    that 'bitatoms fit --codes' wrote.
    """
    from . import commands
    from .stores import RunOptions

    given = data if codes is None else codes
    if given is None or None not in (data, codes):
        raise typer.BadParameter("pass either a table or --codes")
    table = commands.OutputTable(output, to and str(to))
    rows = NewRows(model, Input(given, reading), str(absent))
    with lines_beside(output):
        run = RunOptions(jobs, device=str(device))
        commands.reconstruct(rows, codes is not None, table, decode, run, Display(quiet, json))


@app.command(
    epilog=_examples(
        "bitatoms complete model.npz table.csv -o filled.csv",
        "bitatoms complete model.npz table.csv --only-missing -o predictions.csv",
        "bitatoms complete model.npz genotypes.bed --neighbours -o filled.bed",
    )
)
@with_reading_options
def complete(
    model: ModelFile,
    data: Data,
    output: Output = STANDARD,
    to: To = None,
    only_missing: Annotated[
        bool,
        _output(
            "--only-missing",
            help=f"List the missing cells (row, column, value, probability of a one) as {READABLE}.",
        ),
    ] = False,
    decode: Decode = False,
    neighbours: Annotated[
        bool,
        typer.Option(
            "--neighbours",
            help="Predict by similar rows of the table, not by the atoms of the model; better where rows resemble "
            "other rows, or parts of them, as haplotypes do.",
        ),
    ] = False,
    absent: AbsentColumns = ABSENT_DEFAULT,
    jobs: Jobs = -1,
    device: OnDevice = DEVICE_DEFAULT,
    quiet: Quiet = False,
    json: AsJson = False,
    reading: Any = None,
) -> None:
    """Fill in the missing values of a table; known values stay as they are.

    A missing value becomes 1 if that is more probable than 0, given the known values of its row.
    """
    from . import completion
    from .commands import OutputTable
    from .stores import RunOptions

    rows = NewRows(model, Input(data, reading), str(absent))
    with lines_beside(output):
        if decode and only_missing:
            raise typer.BadParameter("--decode writes a table, not a list; omit --only-missing")
        table = OutputTable(output, to and str(to))
        run = RunOptions(jobs, device=str(device))
        completion.complete(rows, table, only_missing, decode, neighbours, run, Display(quiet, json))


@app.command(
    epilog=_examples(
        "bitatoms crossvalidate table.csv",
        "bitatoms crossvalidate table.csv --atoms 2,4,8,mdl,profiles --algebra or",
    )
)
@with_reading_options
def crossvalidate(
    data: Data,
    atoms: Annotated[
        str,
        typer.Option(
            "--atoms",
            "--components",
            "-k",
            help="What to compare: numbers of atoms, mdl, neighbours (similar rows) and profiles (groups of them).",
            metavar="LIST",
            rich_help_panel=SEARCH,
        ),
    ] = "mdl",
    algebra: Annotated[Algebra, parameter("algebra", panel=SEARCH)] = _AUTO,
    search: Annotated[Search, parameter("search", panel=SEARCH)] = _FAST,
    max_time: Annotated[float | None, parameter("max_time", panel=SEARCH)] = None,
    seed: Annotated[int, parameter("random_state", panel=SEARCH, min=0)] = 0,
    folds: Annotated[int, typer.Option(min=1, help="Number of times that cells are hidden.")] = 5,
    share: Annotated[float, typer.Option(help="Share of the known cells that is hidden each time.")] = 0.1,
    jobs: Jobs = -1,
    device: OnDevice = DEVICE_DEFAULT,
    quiet: Quiet = False,
    json: AsJson = False,
    reading: Any = None,
) -> None:
    """Hide known cells, learn from the others, and compare how well models predict the hidden ones.

    A model that predicts them better than 'column majority' has found structure. The log loss is in bits per hidden
    cell; lower is better.
    """
    from . import completion

    parameters = {"algebra": str(algebra), "search": str(search), "max_time": max_time}
    parameters |= {"n_jobs": jobs, "device": str(device)}
    models = [word if word in ("neighbours", "profiles") else _parse_atoms(word) for word in atoms.split(",")]
    hiding = {"n_folds": folds, "share": share, "random_state": seed}
    completion.crossvalidate(Input(data, reading), models, hiding | parameters, quiet, json)


@app.command(
    epilog=_examples(
        "bitatoms stability baskets.csv model.npz -o model.npz",
        "bitatoms stability baskets.csv --algebra or --resamples 50 --patterns patterns.csv",
        "bitatoms stability baskets.csv model.npz --share 1",
    )
)
@with_reading_options
def stability(
    data: Data,
    model: Annotated[
        Path | None,
        typer.Argument(help="The model of the table; by default one is learned first.", show_default=False),
    ] = None,
    output: Annotated[
        Path | None, _output("--output", "-o", help="Write the model with the shares, an .npz file; may be MODEL.")
    ] = None,
    atoms: Annotated[
        str | None,
        parameter("n_components", "--atoms", "-k", panel=SEARCH, metavar="INTEGER|mdl", show_default="mdl"),
    ] = None,
    algebra: Annotated[Algebra | None, parameter("algebra", panel=SEARCH, show_default=str(_AUTO))] = None,
    search: Annotated[Search | None, parameter("search", panel=SEARCH, show_default=str(_FAST))] = None,
    max_time: Annotated[float | None, parameter("max_time", panel=SEARCH)] = None,
    seed: Annotated[int, parameter("random_state", panel=SEARCH, min=0)] = 0,
    resamples: Annotated[int, typer.Option(min=1, help="Number of searches.")] = 20,
    share: Annotated[
        float, typer.Option(help="Share of the rows that each search sees; with 1, only the seeds differ.")
    ] = 0.5,
    threshold: Annotated[
        float, typer.Option(help="Overlap of the features (Jaccard index) from which an atom is found again.")
    ] = 0.8,
    patterns: Patterns = None,
    max_memory: Annotated[str | None, options.max_memory(GENERAL)] = None,
    top: Top = 20,
    jobs: Jobs = -1,
    device: OnDevice = DEVICE_DEFAULT,
    quiet: Quiet = False,
    json: AsJson = False,
    reading: Any = None,
) -> None:
    """Search parts of the rows, and print how often each atom is found again: which patterns can be trusted.

    Each search sees half of the rows. An atom that at least 75% of the searches find again is called stable. 'bitatoms
    show' and 'bitatoms report' show the shares of a model that is written with -o.
    """
    from . import commands
    from .stability import Resampling, stability_of
    from .stores import RunOptions

    if model is not None and (atoms, algebra, search) != (None, None, None):
        raise typer.BadParameter("a model has its own --atoms, --algebra and --search; omit these, or the model")
    parameters = {
        "n_components": _parse_atoms(atoms or "mdl"),
        "algebra": str(algebra or _AUTO),
        "search": str(search or _FAST),
        "max_time": max_time,
    }
    outputs = commands.Outputs(output, patterns=patterns)
    resampling, run = Resampling(resamples, share, threshold, seed), RunOptions(jobs, max_memory, device=str(device))
    display = Display(quiet, json, top)
    with lines_beside(*outputs):
        _exit(stability_of(Input(data, reading), model, outputs, parameters, resampling, run, display))


@app.command(
    epilog=_examples(
        "bitatoms roles users.csv -o roles.csv",
        "bitatoms roles users.csv -o roles.csv --codes user-roles.csv --objective assignments",
        "bitatoms roles users.csv -o roles.csv --objective assignments --direct-weight 2 --direct exceptions.csv",
        "bitatoms roles users.csv -o roles.csv --fixed known-roles.csv --apart 'pay,approve'",
        "bitatoms roles users.csv -o roles.csv --report roles.html",
        "bitatoms roles users.csv --roles roles.csv --report roles.html --direct exceptions.csv",
    )
)
@with_reading_options
def roles(
    data: Data,
    output: Annotated[
        Path | None, _output("--output", "-o", help="Write the roles, one row per role, as a table, in any format.")
    ] = None,
    codes: Annotated[
        Path | None, _output("--codes", help="Write the roles of each user as a table, in any format.")
    ] = None,
    direct: Annotated[
        Path | None, _output("--direct", help="Write the permissions granted outside of roles, in any format.")
    ] = None,
    report: Annotated[
        Path | None,
        _output("--report", help="Write a report for auditors, an HTML page; with --json, its data are printed too."),
    ] = None,
    given: Annotated[
        Path | None,
        typer.Option(
            "--roles",
            help="Give the users these roles, a table with one row per role, instead of a search.",
            show_default=False,
            rich_help_panel=SEARCH,
        ),
    ] = None,
    objective: Annotated[CoverObjective, parameter("objective", panel=SEARCH, kind=CoverOptions)] = _ROLES,
    weights: Annotated[
        str, parameter("weights", panel=SEARCH, kind=CoverOptions, metavar="ROLE,USER,PERMISSION")
    ] = "1,1,1",
    direct_weight: Annotated[float | None, parameter("direct_weight", panel=SEARCH, kind=CoverOptions)] = None,
    fixed: Annotated[
        Path | None,
        parameter(
            "fixed_atoms",
            panel=SEARCH,
            kind=CoverOptions,
            metavar="FILE",
            help="Keep these roles, a table with one row per role, as they are, and find others for the rest.",
        ),
    ] = None,
    max_features: Annotated[
        int | None, parameter("max_features_per_atom", panel=SEARCH, kind=CoverOptions, min=1)
    ] = None,
    apart: Annotated[
        list[str] | None,
        parameter(
            "apart",
            panel=SEARCH,
            kind=CoverOptions,
            metavar="PERMISSION,...",
            help="Permissions of which a role has at most one, separated by commas (quote names that contain commas); "
            "may be repeated.",
        ),
    ] = None,
    together: Annotated[
        list[str] | None,
        parameter(
            "together",
            panel=SEARCH,
            kind=CoverOptions,
            metavar="PERMISSION,...",
            help="Permissions of which a role has all or none, separated by commas (quote names that contain commas); "
            "may be repeated.",
        ),
    ] = None,
    max_iter: Annotated[int, parameter("max_iter", panel=SEARCH, kind=CoverOptions, min=1)] = 100,
    max_time: Annotated[float | None, parameter("max_time", panel=SEARCH, kind=CoverOptions)] = None,
    seed: Annotated[int, parameter("random_state", "--seed", "--random-state", panel=SEARCH, min=0)] = 0,
    min_peers: Annotated[int, parameter("min_peers", panel=_REPORT, min=1)] = default_of("min_peers"),
    min_share: Annotated[float, parameter("min_share", panel=_REPORT)] = default_of("min_share"),
    top: Annotated[int, typer.Option(min=0, help="Number of roles to show.", rich_help_panel=GENERAL)] = 5,
    quiet: Quiet = False,
    json: AsJson = False,
    reading: Any = None,
) -> None:
    """Find the roles of a table of users and permissions: an exact cover, with no one missed and none added.

    A user gets every permission of each of its roles, and no other. The summary gives a lower bound: no cover has
    fewer roles, or a lower cost.

    With --roles, nothing is searched: users get those of the given roles all of whose permissions they have, and few
    that give as many of their permissions as these roles can. Columns are matched by name. The report lists the
    permissions that come from no role, unusual permissions, and who fits no role.
    """
    from .roles import RoleOutputs, RoleSearch, audit_roles, find_roles

    parameters = {
        "objective": str(objective),
        "weights": _parse_weights(weights),
        "direct_weight": direct_weight,
        "max_features_per_atom": max_features,
        "apart": _parse_features(apart),
        "together": _parse_features(together),
        "max_iter": max_iter,
        "max_time": max_time,
        "random_state": seed,
    }
    outputs = RoleOutputs(output, codes, direct, report)
    search = RoleSearch(parameters, {"min_peers": min_peers, "min_share": min_share}, fixed)
    display = Display(quiet, json, top)
    with lines_beside(*outputs):
        if given is not None:
            audit_roles(Input(data, reading), given, outputs, search, display)
        else:
            _exit(find_roles(Input(data, reading), outputs, search, display))


@app.command(
    "roles-diff",
    epilog=_examples(
        "bitatoms roles-diff old-roles.csv roles.csv",
        "bitatoms roles-diff old-roles.csv roles.csv --users users.csv --report changes.html",
    ),
)
@with_reading_options
def roles_diff(
    old: Annotated[Path, typer.Argument(help="The old roles, a table with one row per role.", show_default=False)],
    new: Annotated[Path, typer.Argument(help="The new roles.", show_default=False)],
    users: Annotated[
        Path | None,
        typer.Option(
            help="Users and their permissions, to see whose roles change; options for reading apply to this table.",
            show_default=False,
        ),
    ] = None,
    report: Annotated[
        Path | None,
        _output("--report", help="Write the report on the new roles with the changes, an HTML page; needs --users."),
    ] = None,
    threshold: Annotated[
        float,
        typer.Option(
            help="Overlap of permissions (Jaccard index) from which a role is changed; below, it is gone and a new one "
            "is there.",
        ),
    ] = 0.5,
    min_peers: Annotated[int, parameter("min_peers", panel=_REPORT, min=1)] = default_of("min_peers"),
    min_share: Annotated[float, parameter("min_share", panel=_REPORT)] = default_of("min_share"),
    top: Annotated[int, typer.Option(min=0, help="Number of roles and users to show.", rich_help_panel=GENERAL)] = 10,
    quiet: Quiet = False,
    json: AsJson = False,
    reading: Any = None,
) -> None:
    """Compare two sets of roles: which are unchanged, changed, new and gone, and whose roles change.

    Roles are matched by their permissions, and permissions by their names. Users get roles of both sets as by 'bitatoms
    roles --roles'.
    """
    from .roles_diff import ComparisonOptions, RoleSets, compare_roles

    sets = RoleSets(old, new, None if users is None else Input(users, reading))
    options = ComparisonOptions(threshold, {"min_peers": min_peers, "min_share": min_share})
    with lines_beside(report):
        compare_roles(sets, report, options, Display(quiet, json, top))


@app.command(
    epilog=_examples("bitatoms show model.npz", "bitatoms show model.npz --patterns patterns.md --atoms-to atoms.csv")
)
def show(
    model: ModelFile,
    atoms_to: AtomsTo = None,
    patterns: Patterns = None,
    top: Top = 20,
    quiet: Quiet = False,
    json: AsJson = False,
) -> None:
    """Describe a model or a packed store.

    The counts of a model are those of its fit: 'used by' counts the codes that 'bitatoms fit --codes' writes.
    """
    from . import commands

    if quiet:
        hide_all_notes()
    outputs = commands.Outputs(atoms=atoms_to, patterns=patterns)
    with lines_beside(*outputs):
        commands.show(model, outputs, Display(quiet, json, top))


@app.command(
    epilog=_examples(
        "bitatoms rules model.npz",
        "bitatoms rules model.npz baskets.csv --min-confidence 0.5 -o rules.csv",
        "bitatoms rules model.npz baskets.zarr --json",
    )
)
@with_reading_options
def rules(
    model: ModelFile,
    data: Annotated[
        Path | None,
        typer.Argument(
            help="The table to count in, which gives shorter rules; by default the counts of the model are used.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[Path | None, _output("--output", "-o", help=f"Write the rules as {READABLE}.")] = None,
    min_support: Annotated[float, parameter("min_support", panel=_RULES)] = default_of("min_support"),
    min_confidence: Annotated[float, parameter("min_confidence", panel=_RULES)] = default_of("min_confidence"),
    min_lift: Annotated[float, parameter("min_lift", panel=_RULES)] = default_of("min_lift"),
    top: Annotated[int, typer.Option(min=0, help="Number of rules to print.", rich_help_panel=GENERAL)] = 20,
    absent: AbsentColumns = ABSENT_DEFAULT,
    max_memory: Annotated[str | None, options.max_memory(GENERAL)] = None,
    jobs: Jobs = -1,
    quiet: Quiet = False,
    json: AsJson = False,
    reading: Any = None,
) -> None:
    """Print rules: of the rows with some features of a pattern, which share has another one, and of all rows.

    All counts are exact: those of the training table, or of the table that is given. Without a table, a rule has all
    features of a pattern; with one, few of them from which another one follows about as often. A rule is left out if a
    more general one has about the same confidence.
    """
    from . import rules
    from .stores import RunOptions

    table = None if data is None else Input(data, reading)
    limits = {"min_support": min_support, "min_confidence": min_confidence, "min_lift": min_lift}
    with lines_beside(output):
        rules.rules(model, table, output, limits, str(absent), RunOptions(jobs, max_memory), Display(quiet, json, top))


@app.command(
    epilog=_examples(
        "bitatoms recommend model.npz baskets.csv",
        "bitatoms recommend model.npz baskets.csv -n 3 -o next.csv",
        "bitatoms recommend model.npz baskets.zarr -o next.csv --max-memory 500MB",
    )
)
@with_reading_options
def recommend(
    model: ModelFile,
    data: Data,
    n: Annotated[int, typer.Option("--number", "-n", min=1, help="Number of items per row.")] = 5,
    output: Annotated[
        Path | None,
        _output("--output", "-o", help=f"Write row, rank, item and probability as {READABLE}."),
    ] = None,
    absent: AbsentColumns = ABSENT_DEFAULT,
    max_memory: Annotated[str | None, options.max_memory(GENERAL)] = None,
    jobs: Jobs = -1,
    device: OnDevice = DEVICE_DEFAULT,
    quiet: Quiet = False,
    json: AsJson = False,
    reading: Any = None,
) -> None:
    """Print the next items of each row: the most probable ones that it does not have.

    The probability of an item is that with its own cell hidden, given all other cells of the row.
    """
    from . import scoring
    from .stores import RunOptions

    rows = NewRows(model, Input(data, reading), str(absent))
    with lines_beside(output):
        scoring.recommend_items(rows, n, output, RunOptions(jobs, max_memory, device=str(device)), Display(quiet, json))


@app.command(
    epilog=_examples(
        "bitatoms score model.npz baskets.csv",
        "bitatoms score model.npz baskets.csv -n 50 -o scores.csv",
        "bitatoms score model.npz baskets.zarr --json",
    )
)
@with_reading_options
def score(
    model: ModelFile,
    data: Data,
    n: Annotated[int, typer.Option("--number", "-n", min=0, help="Number of rows to print.")] = 10,
    output: Annotated[
        Path | None,
        _output(
            "--output",
            "-o",
            help=f"Write all rows, their bits and wrong cells as {READABLE}.",
        ),
    ] = None,
    absent: AbsentColumns = ABSENT_DEFAULT,
    max_memory: Annotated[str | None, options.max_memory(GENERAL)] = None,
    jobs: Jobs = -1,
    device: OnDevice = DEVICE_DEFAULT,
    quiet: Quiet = False,
    json: AsJson = False,
    reading: Any = None,
) -> None:
    """Print the rows that fit worst, with the cells that make them so.

    The bits of a row are minus log2 of how frequent its cells and atoms were in the fit. An unexpected feature is one
    that the row has and its patterns do not; a missing one is one that its patterns have and the row does not.
    """
    from . import scoring
    from .stores import RunOptions

    rows = NewRows(model, Input(data, reading), str(absent))
    with lines_beside(output):
        scoring.score(rows, output, RunOptions(jobs, max_memory, device=str(device)), Display(quiet, json, n))


@app.command(epilog=_examples("bitatoms report model.npz baskets.csv -o report.html"))
@with_reading_options
def report(
    model: ModelFile,
    data: Data,
    output: Annotated[Path, _output("--output", "-o", help="The page to write.", show_default=True)] = Path(
        "report.html"
    ),
    title: Annotated[str | None, _output("--title", help="Title of the page.")] = None,
    row: Annotated[
        list[str] | None,
        _output("--row", help="Row to show before and after coding, by name or number (from 0); may be repeated."),
    ] = None,
    groups: Annotated[
        str | None,
        _output(
            "--groups",
            help="Groups of rows, such as populations: a CSV file with the name and the group of each row, or a field "
            "of the table, such as a column of obs.",
        ),
    ] = None,
    max_rows: Annotated[
        int | None,
        _output(
            "--max-rows",
            min=0,
            help="The most rows that the page contains to be explored, by default 10000; 0 shows no single rows.",
        ),
    ] = None,
    absent: AbsentColumns = ABSENT_DEFAULT,
    jobs: Jobs = -1,
    device: OnDevice = DEVICE_DEFAULT,
    quiet: Quiet = False,
    json: AsJson = False,
    reading: Any = None,
) -> None:
    """Write an HTML page to explore the patterns: where they occur, and what they do not explain."""
    from . import commands
    from .stores import RunOptions

    rows = NewRows(model, Input(data, reading), str(absent))
    with lines_beside(output):
        page = commands.ReportPage(output, title, tuple(row or ()), groups, max_rows)
        commands.report(rows, page, RunOptions(jobs, device=str(device)), Display(quiet, json))


@app.command(
    epilog=_examples(
        "bitatoms convert table.csv table.parquet",
        "bitatoms convert picture.pbm blocks.npz --blocks 16x16",
        "bitatoms convert cells.h5ad cells.npz --layer counts --binarize 0",
        "bitatoms convert filtered_feature_bc_matrix cells.h5ad --binarize 0",
    )
    + "\n\nFormats:\n\n"
    + "\n\n".join(f"`{name}` ({', '.join(about.extensions)}): {about.description}" for name, about in FORMATS.items())
)
@with_reading_options
def convert(
    data: Data,
    output: Annotated[Path, typer.Argument(help="File to write; - means standard output.", show_default=False)],
    to: To = None,
    quiet: Quiet = False,
    json: AsJson = False,
    reading: Any = None,
) -> None:
    """Convert a table to another format, with its row and column names."""
    from . import commands

    with lines_beside(output):
        commands.convert(Input(data, reading), commands.OutputTable(output, to and str(to)), Display(quiet, json))


@app.command(
    epilog=_examples(
        "bitatoms denoise scan.pbm -o clean.pbm",
        "bitatoms denoise scan.png --binarize 127 -o clean.png",
        "bitatoms denoise scan.tif --noise 0.02 --block-sizes 8 -o clean.tif",
    )
)
@with_reading_options
def denoise(
    data: Annotated[Path, typer.Argument(help="The picture; - means standard input.", show_default=False)],
    output: Annotated[Path, _output("--output", "-o", help="File to write; - means standard output.")],
    to: To = None,
    noise: Annotated[float | None, parameter("noise", panel=SEARCH)] = None,
    block_sizes: Annotated[str, parameter("block_sizes", panel=SEARCH, metavar="INTEGERS")] = "6,8",
    stride: Annotated[int, parameter("stride", panel=SEARCH, min=1)] = default_of("stride"),
    algebra: Annotated[Algebra, parameter("algebra", panel=SEARCH)] = _AUTO,
    search: Annotated[Search, parameter("search", panel=SEARCH)] = _FAST,
    max_time: Annotated[float | None, parameter("max_time", panel=SEARCH)] = None,
    seed: Annotated[int, parameter("random_state", panel=SEARCH, min=0)] = 0,
    jobs: Jobs = -1,
    device: OnDevice = DEVICE_DEFAULT,
    quiet: Quiet = False,
    json: AsJson = False,
    reading: Any = None,
) -> None:
    """Remove noise from a black-and-white picture, by atoms learned from its own blocks.

    The noise flips pixels, each with the same probability, which is estimated. This works best on pictures that repeat
    themselves, such as halftones and text. A gray picture needs a threshold (--binarize).
    """
    from . import commands, images

    parameters = {
        "noise": noise,
        "block_sizes": _parse_integers("--block-sizes", block_sizes),
        "stride": stride,
        "algebra": str(algebra),
        "search": str(search),
        "max_time": max_time,
        "random_state": seed,
        "n_jobs": jobs,
        "device": str(device),
    }
    table = commands.OutputTable(output, to and str(to))
    with lines_beside(output):
        images.denoise_file(Input(data, reading), table, parameters, Display(quiet, json))


@app.command(
    epilog=_examples(
        "bitatoms inpaint scratched.pbm --mask scratches.pbm -o whole.pbm",
        "bitatoms inpaint scratched.png --mask scratches.png -o whole.png",
    )
)
@with_reading_options
def inpaint(
    data: Annotated[Path, typer.Argument(help="The picture; - means standard input.", show_default=False)],
    mask: Annotated[
        Path, typer.Option(help="A picture of the same size: black where a pixel is unknown.", show_default=False)
    ],
    output: Annotated[Path, _output("--output", "-o", help="File to write; - means standard output.")],
    to: To = None,
    block_sizes: Annotated[str, parameter("block_sizes", panel=SEARCH, metavar="INTEGERS")] = "6,8",
    stride: Annotated[int, parameter("stride", panel=SEARCH, min=1)] = default_of("stride"),
    algebra: Annotated[Algebra, parameter("algebra", panel=SEARCH)] = _AUTO,
    search: Annotated[Search, parameter("search", panel=SEARCH)] = _FAST,
    max_time: Annotated[float | None, parameter("max_time", panel=SEARCH)] = None,
    seed: Annotated[int, parameter("random_state", panel=SEARCH, min=0)] = 0,
    jobs: Jobs = -1,
    device: OnDevice = DEVICE_DEFAULT,
    quiet: Quiet = False,
    json: AsJson = False,
    reading: Any = None,
) -> None:
    """Fill the holes of a black-and-white picture, by atoms learned from its known pixels.

    Known pixels do not change. This works best on pictures that repeat themselves, such as halftones and text.
    """
    from . import commands, images

    parameters = {
        "block_sizes": _parse_integers("--block-sizes", block_sizes),
        "stride": stride,
        "algebra": str(algebra),
        "search": str(search),
        "max_time": max_time,
        "random_state": seed,
        "n_jobs": jobs,
        "device": str(device),
    }
    table = commands.OutputTable(output, to and str(to))
    with lines_beside(output):
        images.inpaint_file(Input(data, reading), mask, table, parameters, Display(quiet, json))


@app.command(
    epilog=_examples(
        "bitatoms compare digits planted-or -o comparison",
        "bitatoms compare baskets.csv --atoms 5,10,20 --seeds 5 -o comparison",
        "bitatoms compare mushroom.npz --only bitatoms-or,asso,grecond --max-time 300 -o comparison",
        "bitatoms compare --list",
    )
)
@with_reading_options
def compare(
    data: Annotated[
        list[str] | None,
        typer.Argument(help="Tables, or names of bundled data sets (see --list).", show_default=False),
    ] = None,
    output: Annotated[
        Path, _output("--output", "-o", help="Folder to write to.", show_default=True, metavar="FOLDER")
    ] = Path("comparison"),
    atoms: Annotated[
        str | None,
        _comparison("--atoms", "-k", help="Numbers of atoms, such as 2,4,8.", show_default="2,4,8,16, or fewer"),
    ] = None,
    only: Annotated[
        str | None, _comparison("--only", help="Methods to run, such as bitatoms-or,asso.", show_default="all")
    ] = None,
    leave_out: Annotated[
        str | None, _comparison("--leave-out", help="Methods to leave out.", show_default=False)
    ] = None,
    seeds: Annotated[
        int, _comparison("--seeds", min=1, help="Number of seeds; with several, tables show medians and ranges.")
    ] = 1,
    seed: Annotated[int, _comparison("--seed", min=0, help="The first seed.")] = 0,
    max_time: Annotated[
        float,
        _comparison("--max-time", help="Seconds per run; a method that takes longer is not run again on that table."),
    ] = 60.0,
    list_methods: Annotated[
        bool, _comparison("--list", help="List the methods and the bundled data sets, and exit.")
    ] = False,
    jobs: Annotated[int, parameter("n_jobs", "--jobs", "-j", panel=_COMPARISON)] = 1,
    quiet: Quiet = False,
    json: AsJson = False,
    reading: Any = None,
) -> None:
    """Run bitatoms and other methods on the same data, and compare their errors, codelengths and times.

    Writes compare.md, compare.csv and figures. After Ctrl-C, the finished runs are written. If the folder holds an
    earlier comparison, they go to a folder named interrupted inside it.
    """
    from . import compare

    if list_methods:
        compare.list_all(json)
        return
    requested = compare.ComparisonOptions(atoms, only, leave_out, seeds, seed, max_time, jobs)
    _exit(compare.compare(data or [], output, requested, quiet, json, reading))


@app.command(
    epilog=_examples(
        "bitatoms pack big.csv.gz -o rows.zarr",
        "bitatoms pack counts.parquet --binarize 0 -o rows.zarr",
        "zcat big.csv.gz | bitatoms pack - -o rows.zarr",
    )
)
@with_reading_options
def pack(
    source: Data,
    output: Annotated[Path, _output("--output", "-o", help="The store to write, .zarr.")],
    max_memory: Annotated[str | None, options.max_memory(GENERAL, "Memory limit, such as 500MB or 2GiB.")] = None,
    quiet: Quiet = False,
    json: AsJson = False,
    reading: Any = None,
) -> None:
    """Pack a table into a store on disk, in chunks; the table may be larger than memory.

    'bitatoms fit' and 'bitatoms transform' process such a store in chunks.
    """
    from . import stores

    _exit(stores.pack_table(Input(source, reading), output, max_memory, quiet, json))


@app.command(epilog=_examples("bitatoms demo", "bitatoms demo genotypes --folder somewhere"))
def demo(
    data: Annotated[Demo, typer.Argument(help="The data to use.")] = Demo.baskets,
    folder: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("bitatoms-demo"),
    quiet: Quiet = False,
    json: AsJson = False,
) -> None:
    """Try bitatoms: write an example table, learn its patterns and write a report. Prints the commands it runs."""
    from . import demo

    if quiet:
        hide_all_notes()
    demo.run(data, folder, _command(), Display(quiet, json))


@app.command(
    epilog=_examples("bitatoms warmup", "NUMBA_CACHE_DIR=/opt/kernels bitatoms warmup", "bitatoms warmup --device cuda")
)
def warmup(
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", help="Processes; -1 is one per processor.", rich_help_panel=GENERAL)
    ] = -1,
    device: Annotated[
        options.Device,
        parameter(
            "device", panel=GENERAL, help="With cuda, compile the kernels of the GPU too; auto: if there is one."
        ),
    ] = DEVICE_DEFAULT,
    quiet: Quiet = False,
    json: AsJson = False,
) -> None:
    """Compile the kernels of all common calls now, for container images, clusters and demonstrations.

    This takes about a minute. Without it, a kernel is compiled when it is first needed, and the fit waits.
    """
    from ..device_choice import checked_device
    from . import warmup

    warmup.run(jobs, checked_device(str(device)), Display(quiet, json))


def _parse_atoms(text: str) -> int | str:
    """Return a number of atoms, or "mdl"."""
    if text == "mdl":
        return text
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"--atoms is {text!r}; pass an integer or mdl") from None


def _parse_integers(option: str, text: str) -> tuple[int, ...]:
    """Return integers that are separated by commas."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"{option} is {text!r}; pass integers separated by commas, such as 6,8") from None


def _parse_weights(text: str) -> tuple[float, ...]:
    """Return numbers that are separated by commas, integers where they can be."""
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(
            f"--weights is {text!r}; pass three numbers separated by commas, such as 1,1,1"
        ) from None
    return tuple(int(number) if number.is_integer() else number for number in numbers)


def _parse_features(sets: list[str] | None) -> list[tuple[str, ...]] | None:
    """Return sets of names that are separated by commas, and quoted as in CSV files if they contain any."""
    return None if not sets else [_parse_names(names) for names in sets]


def _parse_names(text: str) -> tuple[str, ...]:
    """Return names that are separated by commas."""
    try:
        (names,) = csv.reader([text], skipinitialspace=True, strict=True)
    except csv.Error as error:
        raise typer.BadParameter(f"{text!r} is not a list of names separated by commas: {error}") from None
    return tuple(name.strip() for name in names)


def _parse_search_rows(text: str) -> int | str | None:
    """Return a number of rows, "auto", or None for all."""
    if text in ("auto", "all"):
        return text if text == "auto" else None
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"--search-rows is {text!r}; pass an integer, all or auto") from None


def _exit(interrupted: str | None) -> None:
    """Exit with the code of the signal if one ended a command early, after printing what was written."""
    if interrupted is not None:
        print_error(f"{describe_interrupt()}; {interrupted}")
        raise typer.Exit(interrupt_exit_code())


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    """Print a warning as a note, unless it is a deprecation meant for programmers."""
    if not issubclass(category, (DeprecationWarning, PendingDeprecationWarning)):
        print_note(message)


@cache
def _command() -> Any:
    """Return all commands, built once: Typer would build them again for each call in a process."""
    return typer.main.get_command(app)


def run(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: 0 for success, 2 for invalid input, 130 after Ctrl-C, 143 after SIGTERM."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # show characters that the terminal lacks as question marks
            stream.reconfigure(errors="replace")
    with warnings.catch_warnings(), interrupted_by_sigterm(), printing_notes():
        warnings.showwarning = _show_warning
        _command()(arguments, prog_name="bitatoms")
