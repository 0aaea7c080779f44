"""Options that several commands share. Types, choices, defaults and help of parameters come from their declarations."""

# Typer reads annotations at run time, so they are not postponed here.
import functools
import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from .. import parameters
from ..covers.options import CoverOptions
from ..images.options import DenoiseOptions
from ..io.formats.registry import FORMATS
from ..io.options import ReadOptions
from ..model.options import RuleOptions
from ..parameters import choices, declarations, flat_declarations
from ..roles.options import AuditOptions
from ..run_options import NewRowOptions
from ..search.options import FitOptions
from .console import hide_notes
from .spelling import STANDARD

READ = {name: declared for name, declared in declarations(ReadOptions).items() if name != "format"}
_OF_COMMANDS = {
    **declarations(AuditOptions),
    **declarations(RuleOptions),
    **{name: declarations(DenoiseOptions)[name] for name in ("block_sizes", "stride", "noise")},
    **declarations(NewRowOptions),
    **flat_declarations(FitOptions),
    **READ,
}
READING, SEARCH, WRITING, GENERAL = "Reading options", "Search options", "Output options", "General options"


def declaration(name: str) -> tuple[Any, parameters.Param]:
    """Return the type and the declaration of a parameter of reading, of fitting, or of a command of its own."""
    return _OF_COMMANDS[name]


def parameter(name: str, *flags: str, panel: str, kind: type | None = None, **more: Any) -> Any:
    """Return the option of a declared parameter, of a kind of function where several have one of this name."""
    param = (declaration(name) if kind is None else declarations(kind)[name])[1]
    assert flags or param.option, f"{name} is declared without an option"
    more = {"help": param.help, "rich_help_panel": panel} | more
    return typer.Option(*flags or (f"--{param.option}",), **more)


def _choices_of(name: str) -> dict[str, str]:
    """Return the choices of a parameter as the members of an enumeration."""
    return {word: word for word in choices(declaration(name)[0])}


# Typer parses enumerations, and shells complete their values.
Format = StrEnum("Format", {name: name for name in FORMATS})  # type: ignore[misc]
Algebra = StrEnum("Algebra", _choices_of("algebra"))  # type: ignore[misc]
Search = StrEnum("Search", _choices_of("search"))  # type: ignore[misc]
Missing = StrEnum("Missing", _choices_of("missing"))  # type: ignore[misc]
Duplicates = StrEnum("Duplicates", _choices_of("duplicates"))  # type: ignore[misc]
Device = StrEnum("Device", _choices_of("device"))  # type: ignore[misc]
CoverObjective = StrEnum(  # type: ignore[misc]
    "CoverObjective", {word: word for word in choices(declarations(CoverOptions)["objective"][0])}
)
Absent = StrEnum("Absent", _choices_of("absent"))  # type: ignore[misc]

Data = Annotated[Path, typer.Argument(help="The table; - means standard input.", show_default=False)]
ModelFile = Annotated[Path, typer.Argument(help="A model written by 'bitatoms fit'.", show_default=False)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.", rich_help_panel=GENERAL)]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.", rich_help_panel=GENERAL)]
Jobs = Annotated[int, parameter("n_jobs", "--jobs", "-j", panel=GENERAL)]


def _check_device(context: typer.Context, device: Device) -> Device:
    """Check that there is a CUDA device if one is required, before a table is read."""
    if device == "cuda" and not context.resilient_parsing:  # as when a shell completes a command
        from ..device_choice import required_device

        required_device()
    return device


OnDevice = Annotated[Device, parameter("device", panel=GENERAL, callback=_check_device)]
DEVICE_DEFAULT = Device(declaration("device")[1].default)
AbsentColumns = Annotated[Absent, parameter("absent", panel=READING)]
ABSENT_DEFAULT = Absent(declaration("absent")[1].default)


def max_memory(panel: str, help: str | None = None) -> Any:
    """Return the option that bounds the memory of rows, codes and counts."""
    more: dict[str, Any] = {} if help is None else {"help": help}
    return parameter("max_memory", panel=panel, metavar="SIZE", show_default="none", **more)


def parse_size(text: str) -> tuple[int, int]:
    """Parse a size such as 16x16 into height and width."""
    height, _, width = text.lower().replace("×", "x").partition("x")
    try:
        size = int(height), int(width)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a size; pass height x width, such as 16x16") from None
    if min(size) < 1:
        raise typer.BadParameter(f"{text!r} is not a size; both numbers must be at least 1")
    return size


@dataclass(frozen=True)
class Reading:
    """How a table is read: its format, the keyword arguments of `bitatoms.read`, and the image shape of a row."""

    format: str | None
    options: dict[str, Any]
    tile: tuple[int, int] | None

    @property
    def read_options(self) -> ReadOptions:
        """The parameters of `bitatoms.read`."""
        return ReadOptions(self.format, **self.options)

    def given(self) -> dict[str, Any]:
        """Return the options that differ from their defaults."""
        options = {"format": self.format, **self.options, "tile": self.tile}
        return {name: value for name, value in options.items() if value not in (None, default_of(name))}

    def updated(self, options: dict[str, Any]) -> "Reading":
        """Return a copy with some options changed."""
        return Reading(self.format, self.options | options, self.tile)


def default_of(name: str) -> Any:
    """Return the default of an option."""
    return None if name in ("format", "tile") else declaration(name)[1].default


PLAIN = Reading(None, {name: param.default for name, (_, param) in READ.items()}, None)


class Input(NamedTuple):
    """A table to read: its path, and how it is read."""

    path: Path
    reading: Reading

    @property
    def name(self) -> str:
        """The path as it appears in messages."""
        return "standard input" if self.path == STANDARD else str(self.path)

    def with_all_known(self) -> "Input":
        """Return the same table; missing values, unless they are read as 0, are an error."""
        refused = {"missing": "refuse"} if self.reading.options["missing"] == "unknown" else {}
        return self._replace(reading=self.reading.updated(refused))

    @property
    def title(self) -> str:
        """The name of the file."""
        return "standard input" if self.path == STANDARD else self.path.name


class NewRows(NamedTuple):
    """A table for a model: the model's path, the table, and what columns mean that the table lacks."""

    model_path: Path
    data: Input
    absent: str


_option = functools.partial(parameter, panel=READING, show_default=False)


def _reading(
    format: Annotated[
        Format | None,
        typer.Option(
            "--format",
            "-f",
            help="Format of the table; inferred from its name by default ('bitatoms convert -h' lists the formats).",
            metavar="FORMAT",
            show_default=False,
            rich_help_panel=READING,
        ),
    ] = None,
    binarize: Annotated[float | None, _option("binarize")] = None,
    missing: Annotated[Missing, _option("missing")] = Missing(declaration("missing")[1].default),  # noqa: B008
    duplicates: Annotated[Duplicates, _option("duplicates")] = Duplicates("refuse"),  # noqa: B008
    header: Annotated[bool | None, _option("header", "--header/--no-header")] = None,
    row_names: Annotated[bool | None, _option("row_names", "--row-names/--no-row-names")] = None,
    separator: Annotated[str | None, _option("separator")] = None,
    sheet: Annotated[str | None, _option("sheet")] = None,
    long: Annotated[str | None, _option("long", metavar="ROW,ITEM")] = None,
    categories: Annotated[bool, _option("categories", "--categories")] = False,
    as_category: Annotated[
        list[str] | None,
        _option(
            "as_category",
            help="With --categories: column of categories that would be taken for numbers; may be repeated.",
        ),
    ] = None,
    as_number: Annotated[
        list[str] | None,
        _option(
            "as_number",
            help="With --categories: column of numbers that would be taken for categories; may be repeated.",
        ),
    ] = None,
    bins: Annotated[
        int, _option("bins", min=2, help="With --categories: number of bins of a number, of equally many rows.")
    ] = declaration("bins")[1].default,
    names: Annotated[str | None, _option("names", metavar="FILE")] = None,
    layer: Annotated[str | None, _option("layer")] = None,
    modality: Annotated[str | None, _option("modality")] = None,
    blocks: Annotated[str | None, _option("blocks", metavar="HEIGHTxWIDTH")] = None,
    transpose: Annotated[bool | None, _option("transpose", "--transpose/--no-transpose")] = None,
    without: Annotated[
        list[str] | None, _option("without", help="Column to leave out, by name; repeat the option for several.")
    ] = None,
    dosage: Annotated[bool, _option("dosage", "--dosage")] = False,
    phased: Annotated[bool, _option("phased", "--phased")] = False,
    region: Annotated[str | None, _option("region")] = None,
    maf: Annotated[float | None, _option("maf")] = None,
    keep: Annotated[str | None, _option("keep", metavar="FILE")] = None,
    extract: Annotated[str | None, _option("extract", metavar="FILE")] = None,
    tile: Annotated[
        str | None,
        typer.Option(
            help="Height and width, such as 8x8, if each row is an image; atoms are then shown as images.",
            metavar="HEIGHTxWIDTH",
            show_default=False,
            rich_help_panel=READING,
        ),
    ] = None,
) -> Reading:
    """Return the options for reading as a value."""
    options = {
        "binarize": binarize,
        "missing": str(missing),
        "duplicates": str(duplicates),
        "header": header,
        "row_names": row_names,
        "separator": None if separator is None else separator.replace("\\t", "\t"),
        "sheet": sheet,
        "long": long,
        "categories": categories,
        "as_category": tuple(as_category or ()),
        "as_number": tuple(as_number or ()),
        "bins": bins,
        "names": names,
        "layer": layer,
        "modality": modality,
        "blocks": None if blocks is None else parse_size(blocks),
        "transpose": transpose,
        "without": tuple(without or ()),
        "dosage": dosage,
        "phased": phased,
        "region": region,
        "maf": maf,
        "keep": keep,
        "extract": extract,
    }
    assert options.keys() == READ.keys()
    return Reading(None if format is None else str(format), options, None if tile is None else parse_size(tile))


def hide_all_notes() -> None:
    """Print no warnings and notes until the command ends: see `run` in app.py."""
    warnings.simplefilter("ignore")
    hide_notes()


def with_reading_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for reading to a command, which receives them as one argument, ``reading``."""
    added = inspect.signature(_reading).parameters
    own = inspect.signature(command).parameters

    @functools.wraps(command)
    def run(**given: Any) -> None:
        values = {name: given.pop(name) for name in added}
        if given.get("quiet"):
            hide_all_notes()
        command(**given, reading=_reading(**values))

    shown = [parameter for name, parameter in own.items() if name != "reading"]
    both = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in (*shown, *added.values())]
    run.__signature__ = inspect.Signature(both)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in both}
    return run
