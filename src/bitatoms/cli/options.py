"""Options that several commands share, each with its help; annotations are looked at as they are, so not postponed."""

import functools
import inspect
import warnings
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ..io.formats import FORMATS

Format = StrEnum("Format", {name: name for name in FORMATS})  # type: ignore[misc]  # shells complete its values


class Missing(StrEnum):
    """What to do with missing values."""

    refuse = "refuse"
    zero = "zero"


class Duplicates(StrEnum):
    """What to do with names of columns that come twice."""

    refuse = "refuse"
    number = "number"


def size(text: str) -> tuple[int, int]:
    """A height and a width, written as 16x16."""
    tall, _, wide = text.lower().replace("×", "x").partition("x")
    try:
        pair = int(tall), int(wide)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no size; write height x width, as in 16x16") from None
    if min(pair) < 1:
        raise typer.BadParameter(f"{text!r} is no size; both numbers are at least 1")
    return pair


STANDARD = Path("-")  # the standard input or output
_READING = "How to read the data"
TELLING = "What to say"

Data = Annotated[Path, typer.Argument(help="The table; - is the standard input.", show_default=False)]
ModelFile = Annotated[Path, typer.Argument(help="A model, as 'bitatoms fit' writes it.", show_default=False)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.", rich_help_panel=TELLING)]
AsJson = Annotated[bool, typer.Option("--json", help="Say it in JSON, for machines.", rich_help_panel=TELLING)]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 is all processors.", rich_help_panel=TELLING)]


def max_memory(panel: str) -> Any:
    """The option that bounds the memory of work on a packed store."""
    return typer.Option(
        "--max-memory",
        metavar="SIZE",
        help="The memory that work on a packed store may take, as in 500MB or 2GiB.",
        show_default="512MiB",
        rich_help_panel=panel,
    )


def _option(*names: str, help: str, **more: Any) -> Any:
    """An option of reading."""
    return typer.Option(*names, help=help, show_default=False, rich_help_panel=_READING, **more)


def _reading(
    format: Annotated[
        Format | None,
        _option("--format", "-f", help="Its name, if not by the ending; convert -h lists them.", metavar="FORMAT"),
    ] = None,
    binarize: Annotated[float | None, _option(help="Take what is above this number as a one.")] = None,
    missing: Annotated[Missing, _option(help="Missing values: refuse them, or take them as zeros.")] = Missing.refuse,
    duplicates: Annotated[
        Duplicates, _option(help="Columns of the same name: refuse them, or number them.")
    ] = Duplicates.refuse,
    header: Annotated[
        bool | None,
        _option("--header/--no-header", help="Whether the first line of a text file holds names; told from it."),
    ] = None,
    row_names: Annotated[
        bool | None,
        _option("--row-names/--no-row-names", help="Whether the first column of a text file does; told from it."),
    ] = None,
    separator: Annotated[str | None, _option(help="What stands between cells of a text file; told from it.")] = None,
    layer: Annotated[
        str | None, _option(help="The layer of an .h5ad file; the array of an .npz file or a store.")
    ] = None,
    blocks: Annotated[
        str | None, _option(help="Cut a .pbm picture in blocks of this height x width, as in 16x16, a block a row.")
    ] = None,
    without: Annotated[
        list[str] | None, _option(help="A column to leave out, by name; may be given several times.")
    ] = None,
    tile: Annotated[
        str | None, _option(help="Every row is a picture of this height x width, as in 8x8, and is shown as one.")
    ] = None,
) -> dict[str, Any]:
    """The options of reading, as `bitatoms.read` takes them, and the tile."""
    return {
        "format": None if format is None else str(format),
        "binarize": binarize,
        "missing": str(missing),
        "duplicates": str(duplicates),
        "header": header,
        "row_names": row_names,
        "separator": None if separator is None else separator.replace("\\t", "\t"),
        "layer": layer,
        "blocks": None if blocks is None else size(blocks),
        "without": tuple(without or ()) or None,
        "tile": None if tile is None else size(tile),
    }


def reads(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command all options of reading, which it gets as one argument, ``reading``."""
    ours = inspect.signature(_reading).parameters
    theirs = inspect.signature(command).parameters

    @functools.wraps(command)
    def run(**given: Any) -> None:
        how = {name: given.pop(name) for name in ours}
        if given.get("quiet"):
            warnings.simplefilter("ignore")  # until the command ends: see `run` in app.py
        command(**given, reading=_reading(**how))

    own = [parameter for name, parameter in theirs.items() if name != "reading"]
    both = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in (*own, *ours.values())]
    run.__signature__ = inspect.Signature(both)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in both}
    return run
