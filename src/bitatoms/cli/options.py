"""Arguments and options of commands; types, choices, defaults and help of parameters come from their declarations.

A command is a function. The default of each of its parameters is a `Field`: an argument, an option, or a group of them
that become one value.
"""

from __future__ import annotations

import csv
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

import click

from ..io.formats.registry import FORMATS
from ..io.options import ReadOptions
from ..parameters import Options, Param, choices, declarations, flat_declarations
from ..run_options import NewRowOptions
from ..search.options import Constraints, FitOptions, Resources
from .help import Argument, Command, Option
from .output import STANDARD, Display, hide_notes, lines_to_stderr, print_error
from .paths import Input, NewRows, check_extension, check_writable, output_table
from .signals import describe_interrupt, interrupt_exit_code

READING, SEARCH, WRITING, GENERAL = "Reading options", "Search options", "Output options", "General options"
PATH = click.Path(path_type=Path)
OUTPUT = "File to write; - means standard output."
READABLE = ".csv, .tsv, .json, .md, .html or .xlsx; - is CSV on standard output"
Convert = Callable[[Any], Any]


@dataclass(frozen=True)
class Field:
    """One argument or option: what makes it, given its name, and what converts its value."""

    make: Callable[[str], click.Parameter]
    convert: Convert | None = None

    def parameters(self, name: str) -> list[click.Parameter]:
        """Return what click parses."""
        return [self.make(name)]

    def value(self, name: str, parsed: Mapping[str, Any]) -> Any:
        """Return the value, from what click has parsed."""
        value = parsed[name]
        return value if self.convert is None or value is None else self.convert(value)


@dataclass(frozen=True)
class Group:
    """Arguments and options that become one value together."""

    build: Callable[..., Any]
    fields: Mapping[str, Field | Group]

    def parameters(self, name: str) -> list[click.Parameter]:
        """Return what click parses."""
        return [one for name, each in self.fields.items() for one in each.parameters(name)]

    def value(self, name: str, parsed: Mapping[str, Any]) -> Any:
        """Return the value, from what click has parsed."""
        return self.build(**{name: each.value(name, parsed) for name, each in self.fields.items()})


def group(build: Callable[..., Any], fields: Mapping[str, Any]) -> Any:
    """Declare a value that is built from several arguments and options."""
    return Group(build, fields)


def command(*examples: str, formats: Mapping[str, str] | None = None) -> Callable[[Callable[..., Any]], Command]:
    """Make a command of a function.

    The options are those of its parameters, and its docstring is the help. If the function returns a text, the command
    was interrupted, and the text is what was written.
    """

    def decorate(function: Callable[..., str | None]) -> Command:
        fields = {name: each.default for name, each in inspect.signature(function).parameters.items()}
        params = [one for name, each in fields.items() for one in each.parameters(name)]
        params.sort(key=lambda one: getattr(one, "panel", "") in (GENERAL, READING))  # these come last

        def callback(**parsed: Any) -> None:
            if parsed.get("quiet"):
                hide_notes()
            files = [(one.file, parsed[one.name]) for one in params if getattr(one, "file", None) and one.name]
            written = [path for use, path in files if use == "write" and path is not None]
            read = [path for use, path in files if use == "read" and path is not None]
            with lines_to_stderr(STANDARD in written):  # standard output may lead to where lines would go
                check_writable(written, read, parsed.get("json", False))
                values = {name: each.value(name, parsed) for name, each in fields.items()}
                interrupted = function(**values)
            if interrupted is not None:
                print_error(f"{describe_interrupt()}; {interrupted}")
                raise click.exceptions.Exit(interrupt_exit_code())

        help = inspect.getdoc(function)
        title = function.__name__.replace("_", "-")
        return Command(title, examples, formats=formats or {}, callback=callback, params=params, help=help)

    return decorate


# --- single arguments and options


def argument(text: str, convert: Convert | None = None, **more: Any) -> Any:
    """Declare an argument, by default the path of a file that is read."""
    how: dict[str, Any] = {"type": PATH, "file": "read"} | more
    return Field(lambda name: Argument([name], text=text, **how), convert)


def option(*flags: str, help: str, convert: Convert | None = None, **more: Any) -> Any:
    """Declare an option."""
    more = {"show_default": True, "metavar": _metavar(more.get("type", str), bool(more.get("is_flag")))} | more
    return Field(lambda name: Option([*flags, name], help=help, **more), convert)


def output(*flags: str, help: str, convert: Convert | None = None, **more: Any) -> Any:
    """Declare an option that names a file to write."""
    more = {"type": PATH, "panel": WRITING, "file": "write"} | more
    return option(*flags, help=help, convert=convert, **more)


def page(*flags: str, help: str, **more: Any) -> Any:
    """Declare an option that names an HTML page to write."""
    return output(*flags, help=help, convert=_as_page, **more)


def _as_page(path: Path) -> Path | None:
    return check_extension(path, "a report is an HTML page", ".html", ".htm")


def model_output(help: str) -> Any:
    """Declare the option that names a model to write."""
    return output("--output", "-o", help=help, convert=_as_model)


def _as_model(path: Path) -> Path | None:
    return check_extension(path, "a model is an .npz file", ".npz")


def table_file(*flags: str, help: str, **more: Any) -> Any:
    """Declare an option that names a table to write, in the format of its extension."""
    return output(*flags, help=help, convert=output_table, **{"is_common": False} | more)


def readable(*flags: str, contents: str, **more: Any) -> Any:
    """Declare an option that names a table to write that people read."""

    def check(path: Path) -> Path:
        if path != STANDARD:
            from ..html.tables import readable_format

            readable_format(path, contents)
        return path

    return output(*flags, convert=check, **more)


def pattern_output(**more: Any) -> Any:
    """Declare the option that names a file of patterns to write."""
    return readable("--patterns", contents="patterns", help=f"Write the patterns as {READABLE}.", **more)


def flag(*flags: str, help: str, **more: Any) -> Any:
    """Declare an option without a value."""
    return option(*flags, help=help, is_flag=True, default=False, **more)


def _metavar(type: Any, is_flag: bool) -> str | None:
    """Return a word for the values of a type."""
    if is_flag or isinstance(type, click.Choice):
        return None
    words = {int: "INTEGER", float: "NUMBER", PATH: "FILE"}
    return "INTEGER" if isinstance(type, click.IntRange) else words.get(type, "TEXT")


# --- options that are declared with the parameters of Python


def parse_atoms(text: str) -> int | str:
    """Return a number of atoms, or "mdl"."""
    return _integer_or(text, "--atoms", {"mdl": "mdl"}, "an integer or mdl")


def _parse_search_rows(text: str) -> int | str | None:
    return _integer_or(text, "--search-rows", {"auto": "auto", "all": None}, "an integer, all or auto")


def _integer_or(text: str, name: str, words: Mapping[str, Any], what: str) -> Any:
    """Return the meaning of a word, or an integer."""
    try:
        return words[text] if text in words else int(text)
    except ValueError:
        raise click.UsageError(f"{name} is {text!r}; pass {what}") from None


def parse_numbers(name: str, what: str, kind: Callable[[str], float] = int) -> Convert:
    """Return a function that parses numbers separated by commas; integers stay integers."""

    def parse(text: str) -> tuple[float, ...]:
        try:
            numbers = [kind(part) for part in text.split(",")]
        except ValueError:
            raise click.UsageError(f"{name} is {text!r}; pass {what}") from None
        return tuple(int(number) if number == int(number) else number for number in numbers)

    return parse


def _parse_size(text: str) -> tuple[int, int]:
    """Parse a size such as 16x16 into height and width."""
    height, _, width = text.lower().replace("×", "x").partition("x")
    try:
        size = int(height), int(width)
    except ValueError:
        raise click.UsageError(f"{text!r} is not a size; pass height x width, such as 16x16") from None
    if min(size) < 1:
        raise click.UsageError(f"{text!r} is not a size; both numbers must be at least 1")
    return size


def _parse_features(sets: tuple[str, ...]) -> list[tuple[str, ...]] | None:
    """Return sets of names that are separated by commas, and quoted as in CSV files if they contain any."""
    return [_parse_names(names) for names in sets] or None


def _parse_names(text: str) -> tuple[str, ...]:
    """Return names that are separated by commas."""
    try:
        (names,) = csv.reader([text], skipinitialspace=True, strict=True)
    except csv.Error as error:
        raise click.UsageError(f"{text!r} is not a list of names separated by commas: {error}") from None
    return tuple(name.strip() for name in names)


def _available(device: str) -> str:
    """Check that there is a CUDA device if one is required, before a table is read."""
    if device == "cuda":
        from ..device_choice import required_device

        required_device()
    return device


_SETS = {"type": str, "multiple": True, "convert": _parse_features, "metavar": "FEATURE,..."}
_QUOTED = "separated by commas (quote names that contain commas); may be repeated."
# How parameters are written that an option cannot take as they are in Python, and help that names options.
_SPECIAL: dict[str, dict[str, Any]] = {
    "n_components": {"flags": ("--atoms", "-k"), "metavar": "INTEGER|mdl", "convert": parse_atoms},
    "random_state": {"type": click.IntRange(0), "default": 0, "metavar": "INTEGER"},
    "n_jobs": {"flags": ("--jobs", "-j"), "default": -1},
    "device": {"convert": _available},
    "search_rows": {"metavar": "INTEGER|all|auto", "convert": _parse_search_rows},
    "max_memory": {"metavar": "SIZE"},
    "checkpoint": {"type": PATH, "metavar": "FOLDER"},
    "fixed_atoms": {
        "type": PATH,
        "metavar": "FILE",
        "help": "Known atoms, a table with one row per atom, or a pattern file: they stay as they are, and others are "
        "learned beside them.",
    },
    "apart": _SETS | {"help": f"Features of which an atom has at most one, {_QUOTED}"},
    "together": _SETS | {"help": f"Features of which an atom has all or none, {_QUOTED}"},
    "weights": {
        "default": "1,1,1",
        "metavar": "ROLE,USER,PERMISSION",
        "convert": parse_numbers("--weights", "three numbers separated by commas, such as 1,1,1", float),
    },
    "block_sizes": {
        "default": "6,8",
        "metavar": "INTEGERS",
        "convert": parse_numbers("--block-sizes", "integers separated by commas, such as 6,8"),
    },
    "format": {
        "flags": ("--format", "-f"),
        "type": click.Choice(list(FORMATS)),
        "metavar": "FORMAT",
        "help": "Format of the table; inferred from its name by default ('bitatoms convert --help-all' lists the "
        "formats).",
    },
    "separator": {"convert": lambda text: text.replace("\\t", "\t")},
    "long": {"metavar": "ROW,ITEM"},
    "as_category": {
        "help": "With --categories: column of categories that would be taken for numbers; may be repeated."
    },
    "as_number": {"help": "With --categories: column of numbers that would be taken for categories; may be repeated."},
    "bins": {"help": "With --categories: number of bins of a number, of equally many rows."},
    "without": {"help": "Column to leave out, by name; repeat the option for several."},
    "names": {"metavar": "FILE"},
    "keep": {"metavar": "FILE"},
    "extract": {"metavar": "FILE"},
    "blocks": {"metavar": "HEIGHTxWIDTH", "convert": _parse_size},
}


def declared(kind: type[Options], name: str, panel: str = SEARCH, **changes: Any) -> Any:
    """Declare the option of a parameter as the parameter is declared, apart from these changes."""
    annotation, param = flat_declarations(kind)[name]
    assert param.option, f"{name} is declared without an option"
    more = _as_option(annotation, param) | _SPECIAL.get(name, {}) | {"panel": panel} | changes
    return option(*more.pop("flags", ()) or _flags(param, more), **more)


def _flags(param: Param, more: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the name of an option; of a flag that is not off by default, with that of its opposite."""
    is_two_sided = more.get("type") is bool and more["default"] is not False
    return (f"--{param.option}/--no-{param.option}" if is_two_sided else f"--{param.option}",)


def _as_option(annotation: Any, param: Param) -> dict[str, Any]:
    """Return what click takes for a parameter of this type."""
    found = {"help": param.help, "default": param.default, "is_common": param.is_common}
    types = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    words = choices(annotation)
    if bool in types:
        return found | {"type": bool, "is_flag": True, "metavar": None}
    if words and int not in types:
        return found | {"type": click.Choice(words)}
    if param.default == ():
        return found | {"multiple": True, "default": None}
    if int in types and not words and str not in types:
        return found | {"type": click.IntRange(param.minimum) if param.minimum else int}
    return found | ({"type": float} if float in types else {})


def declared_options(
    kind: type[Options], panel: str = SEARCH, *, build: Callable[..., Any] | None = None, without: tuple[str, ...] = (),
    **changes: dict[str, Any],
) -> Any:  # fmt: skip
    """Declare all parameters of these `Options` that have an option; they become one object."""
    panels = {"n_jobs": GENERAL, "device": GENERAL}
    panels |= dict.fromkeys(declarations(Constraints), "Constraints")
    panels |= dict.fromkeys(declarations(Resources), "Resources")
    made = {
        name: declared(kind, name, **{"panel": panels.get(name, panel)} | changes.get(name, {}))
        for name, (_, param) in flat_declarations(kind).items()
        if param.option and name not in without
    }
    return Group(build or (lambda **values: kind.from_flat(values)), made)


# --- groups that several commands have


def display(top: int | None = None, what: str = "atoms to show", flags: tuple[str, ...] = ("--top",)) -> Any:
    """Declare what is printed."""
    fields = {
        "quiet": flag("--quiet", "-q", help="Print errors only.", panel=GENERAL, is_common=False),
        "json": flag("--json", help="Print the result as JSON.", panel=GENERAL, is_common=False),
    }
    if top is not None:
        number: dict[str, Any] = {"type": click.IntRange(0), "default": top, "panel": GENERAL, "is_common": False}
        fields = {"top": option(*flags, help=f"Number of {what}.", **number)} | fields
    return Group(Display, fields)


def reading_fields() -> dict[str, Any]:
    """Declare how a table is read: the options of `bitatoms.read`, and the image shape of rows."""
    tile = option(
        "--tile",
        help="Height and width, such as 8x8, if each row is an image; atoms are then shown as images.",
        convert=_parse_size,
        panel=READING,
        metavar="HEIGHTxWIDTH",
        is_common=False,
    )
    return {"options": declared_options(ReadOptions, READING), "tile": tile}


def table(
    *flags: str, help: str = "The table; - means standard input.", name: str = "data", file: Any = "read", **more: Any
) -> Any:
    """Declare a table to read and how it is read; without a required table, the value may be None."""
    more = {"file": file} | more
    path = option(*flags, help=help, type=PATH, **more) if flags else argument(help, **more)

    def build(options: ReadOptions, tile: tuple[int, int] | None, **path: Path | None) -> Input | None:
        given = path[name]
        return None if given is None else Input(given, options, tile)

    return Group(build, {name: path, **reading_fields()})


def model_file() -> Any:
    """Declare the model that is read."""
    return argument("A model written by 'bitatoms fit'.")


def new_rows(**more: Any) -> Any:
    """Declare a model, a table of new rows for it, and what columns mean that the table lacks."""
    absent = declared(NewRowOptions, "absent", READING)
    return Group(NewRows, {"model": model_file(), "data": table(**more), "absent": absent})


def output_format() -> Any:
    """Declare the format of a table to write."""
    return option(
        "--to",
        help="Format to write; inferred from the file name by default.",
        type=click.Choice(list(FORMATS)),
        metavar="FORMAT",
        panel=WRITING,
    )


def output_path(**more: Any) -> Any:
    """Declare the file to write, by default standard output."""
    return output("--output", "-o", help=OUTPUT, **{"default": STANDARD} | more)


def table_output(path: Any = None) -> Any:
    """Declare a table to write, and its format."""
    return Group(output_table, {"output": path or output_path(), "to": output_format()})


@dataclass(frozen=True)
class Run:
    """Where rows are processed, and the limit of memory; the result does not depend on it."""

    n_jobs: int = -1
    device: str = "cpu"
    max_memory: str | None = None

    @property
    def memory_limit(self) -> int:
        """The memory for processing a store, in bytes."""
        from ..rows.budget import parse_memory_limit

        return parse_memory_limit(self.max_memory)

    @property
    def threads(self) -> dict[str, Any]:
        """The keyword arguments of functions that take threads and a device."""
        from ..device_choice import checked_device

        return {"n_jobs": self.n_jobs, "device": checked_device(self.device)}

    def workers(self, data: Any = None) -> Any:
        """Return the threads and the device to use for a table, None if its rows are not in memory."""
        from ..device_choice import workers_for

        return workers_for(self.n_jobs, self.device, None if data is None else data.shape[0] * data.shape[1])


def run(*names: str, **changes: dict[str, Any]) -> Any:
    """Declare how a command runs: "n_jobs", "device" and "max_memory"."""
    shown = {"is_common": False}
    made = {name: declared(FitOptions, name, GENERAL, **shown | changes.get(name, {})) for name in names}
    return Group(Run, made)
