"""Arguments and options of commands; types, choices, defaults and help of parameters come from their declarations.

A command is a function. The default of each of its parameters is a `Field`: an argument, an option, or a group of them
that become one value.
"""

from __future__ import annotations

import csv
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

import click

from ..io.formats.registry import FORMATS
from ..io.options import ReadOptions
from ..parameters import Options, Param, choices, declarations, flat_declarations
from ..run_options import NewRowOptions
from ..search.options import Constraints, FitOptions, Resources
from .help import Argument, Command, FileUse, Option
from .output import STANDARD, Display, describe_interrupt, hide_notes, interrupt_exit_code, lines_to_stderr, print_error
from .paths import Input, NewRows, check_extension, check_writable, output_table

READING, SEARCH, WRITING, GENERAL = "Reading options", "Search options", "Output options", "General options"
PATH = click.Path(path_type=Path)
OUTPUT = "File to write; - means standard output."
READABLE = ".csv, .tsv, .json, .md, .html or .xlsx; - is CSV on standard output"
Convert = Callable[[Any], Any]
How = dict[str, Any]  # arguments of `option`


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


def group(build: Callable[..., Any], **fields: Any) -> Any:
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


def argument(help: str, type: Any = PATH, file: FileUse = "read", **more: Any) -> Any:
    """Declare an argument, by default the path of a file that is read."""
    return Field(lambda name: Argument([name], help, type=type, file=file, **more))


def option(flags: str, default: Any = None, help: str = "", *, convert: Convert | None = None, **more: Any) -> Any:
    """Declare an option by its names, separated by blanks; its type is that of the default, or text."""
    kind = PATH if isinstance(default, Path) else str if default is None else type(default)
    how: How = {"type": kind, "is_flag": kind is bool, "show_default": True} | more
    if "minimum" in how:
        how["type"] = click.IntRange(how.pop("minimum"))
    words = {int: "INTEGER", click.IntRange: "INTEGER", float: "NUMBER", click.Path: "FILE", str: "TEXT"}
    if not how["is_flag"]:
        how.setdefault("metavar", words.get(how["type"]) or words.get(type(how["type"])))
    if not how.get("required"):  # None is a default, too
        how["default"] = default
    return Field(lambda name: Option([*flags.split(), name], help=help, **how), convert)


def input_file(flags: str, help: str, **more: Any) -> Any:
    """Declare an option that names a file to read."""
    return option(flags, help=help, type=PATH, file="read", **more)


def output(flags: str, help: str, default: Path | None = None, **more: Any) -> Any:
    """Declare an option that names a file to write."""
    how: How = {"type": PATH, "panel": WRITING, "file": "write"}
    return option(flags, default, help, **how | more)


def page(flags: str, help: str, default: Path | None = None) -> Any:
    """Declare an option that names an HTML page to write."""
    return output(flags, help, default, convert=partial(check_extension, "a report is an HTML page", (".html", ".htm")))


def model_output(help: str) -> Any:
    """Declare the option that names a model to write."""
    return output("--output -o", help, convert=partial(check_extension, "a model is an .npz file", (".npz",)))


def table_file(flags: str, help: str, is_common: bool = False) -> Any:
    """Declare an option that names a table to write, in the format of its extension."""
    return output(flags, help, convert=output_table, is_common=is_common)


def readable(flags: str, contents: str, what: str, is_common: bool = True) -> Any:
    """Declare an option that names a table to write that people read."""
    help = f"Write {what} as {READABLE}."
    return output(flags, help, convert=partial(check_readable, contents), is_common=is_common)


def check_readable(contents: str, path: Path) -> Path:
    """Return the path of a table that people read, checked for its extension."""
    if path != STANDARD:
        from ..html.tables import readable_format

        readable_format(path, contents)
    return path


# --- options that are declared with the parameters of Python


def parser(name: str, what: str, parse: Callable[[str], Any]) -> Convert:
    """Return a function that parses the text of an option, and raises an error that states what to pass."""

    def convert(text: str) -> Any:
        try:
            return parse(text)
        except ValueError:
            raise click.UsageError(f"{name} is {text!r}; pass {what}") from None

    return convert


def _number(text: str) -> float:
    """Return a number, an integer if it is one."""
    number = float(text)
    return int(number) if number.is_integer() else number


def _numbers(text: str) -> tuple[float, ...]:
    """Return numbers that are separated by commas."""
    return tuple(map(_number, text.split(",")))


def _size(text: str) -> tuple[int, int]:
    """Return the height and the width of a size such as 16x16."""
    height, _, width = text.lower().replace("×", "x").partition("x")
    if min(size := (int(height), int(width))) < 1:
        raise ValueError
    return size


def _names(text: str) -> tuple[str, ...]:
    """Return names that are separated by commas, and quoted as in CSV files if they contain any."""
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


parse_atoms = parser("--atoms", "an integer or mdl", lambda text: text if text == "mdl" else int(text))
_OF_CATEGORIES = ("as_category", "as_number", "bins")
_SIZE = "height x width, such as 16x16"
_SETS = {"multiple": True, "metavar": "FEATURE,...", "convert": lambda sets: [*map(_names, sets)] or None}
QUOTED = "separated by commas (quote names that contain commas)"
_KNOWN = "Known atoms, a table with one row per atom, or a pattern file: they stay as they are, and others are learned."
# How parameters are written whose options are not as they are in Python.
_SPECIAL: dict[str, dict[str, Any]] = {
    "n_components": {"flags": "--atoms -k", "metavar": "INTEGER|mdl", "convert": parse_atoms},
    "random_state": {"minimum": 0, "default": 0},
    "n_jobs": {"flags": "--jobs -j", "default": -1},
    "device": {"convert": _available},
    "search_rows": {
        "metavar": "INTEGER|all|auto",
        "convert": parser(
            "--search-rows",
            "an integer, all or auto",
            lambda text: text if text == "auto" else None if text == "all" else int(text),
        ),
    },
    "max_memory": {"metavar": "SIZE"},
    "checkpoint": {"type": PATH, "metavar": "FOLDER"},
    "fixed_atoms": {"type": PATH, "help": _KNOWN},
    "apart": _SETS | {"help": f"Features of which an atom has at most one, {QUOTED}."},
    "together": _SETS | {"help": f"Features of which an atom has all or none, {QUOTED}."},
    "weights": {
        "default": "1,1,1",
        "metavar": "ROLE,USER,PERMISSION",
        "convert": parser("--weights", "three numbers separated by commas, such as 1,1,1", _numbers),
    },
    "block_sizes": {
        "default": "6,8",
        "metavar": "INTEGERS",
        "convert": parser("--block-sizes", "integers separated by commas, such as 6,8", _numbers),
    },
    "format": {
        "flags": "--format -f",
        "type": click.Choice(list(FORMATS)),
        "metavar": "FORMAT",
        "help": "Format of the table; by default that of its name. 'bitatoms convert --help-all' lists the formats.",
    },
    "separator": {"convert": lambda text: text.replace("\\t", "\t")},
    "long": {"metavar": "ROW,ITEM"},
    "blocks": {"metavar": "HEIGHTxWIDTH", "convert": parser("--blocks", _SIZE, _size)},
}


def declared(kind: type[Options], name: str, panel: str = SEARCH, **changes: Any) -> Any:
    """Declare the option of a parameter as the parameter is declared, apart from these changes."""
    annotation, param = flat_declarations(kind)[name]
    assert param.option, f"{name} is declared without an option"
    own = {"flags": f"--{param.option}", "default": param.default, "help": param.help, "is_common": param.is_common}
    how = own | _type_of(annotation, param) | _SPECIAL.get(name, {}) | {"panel": panel} | changes
    if how.get("is_flag") and how["default"] is not False:
        how["flags"] += f"/--no-{param.option}"
    if name in _OF_CATEGORIES:
        how["help"] = f"With --categories: {how['help'][0].lower()}{how['help'][1:]}"
    if how.get("multiple"):
        how["help"] = f"{how['help'].removesuffix('.')}; may be repeated."
    return option(**how)


class CheckedWords(click.Choice[str]):
    """Words that a declaration checks: its error may say more than which words there are."""

    def __init__(self, words: Sequence[str], declared: Param) -> None:
        super().__init__(words)
        self._declared = declared

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the word, checked."""
        assert self._declared.check
        assert param
        return self._declared.check(param.name or "", value)


def _type_of(annotation: Any, param: Param) -> dict[str, Any]:
    """Return what click takes for a parameter of this type."""
    types = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    words = choices(annotation)
    if bool in types:
        return {"type": bool, "is_flag": True}
    if words and int not in types:
        return {"type": click.Choice(words) if param.check is None else CheckedWords(words, param)}
    if param.default == ():
        return {"type": str, "multiple": True, "default": None}
    if int in types and not words and str not in types:
        return {"minimum": param.minimum} if param.minimum else {"type": int}
    is_path = any(get_origin(each) is os.PathLike for each in types)
    return {"type": float} if float in types else {"type": str, "metavar": "FILE"} if is_path else {"type": str}


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


def display(top: int | None = None, what: str = "atoms to show", flags: str = "--top") -> Any:
    """Declare what is printed."""
    how: How = {"panel": GENERAL, "is_common": False}
    fields = {
        "quiet": option("--quiet -q", False, "Print errors only.", **how),
        "json": option("--json", False, "Print the result as JSON.", **how),
    }
    if top is not None:
        fields = {"top": option(flags, top, f"Number of {what}.", minimum=0, **how)} | fields
    return Group(Display, fields)


def reading() -> dict[str, Any]:
    """Declare how a table is read: the options of `bitatoms.read`, and the image shape of rows."""
    tile = option(
        "--tile",
        help="Height and width, such as 8x8, if each row is an image; atoms are then shown as images.",
        convert=parser("--tile", _SIZE, _size),
        metavar="HEIGHTxWIDTH",
        panel=READING,
        is_common=False,
    )
    return {"options": declared_options(ReadOptions, READING), "tile": tile}


def table(help: str = "The table; - means standard input.", flags: str = "", **more: Any) -> Any:
    """Declare a table to read and how it is read; without a required table, the value may be None."""
    path = input_file(flags, help) if flags else argument(help, **more)
    name = flags.removeprefix("--") or "data"

    def build(options: ReadOptions, tile: tuple[int, int] | None, **path: Path | None) -> Input | None:
        given = path[name]
        return None if given is None else Input(given, options, tile)

    return Group(build, {name: path, **reading()})


def model_file() -> Any:
    """Declare the model that is read."""
    return argument("A model written by 'bitatoms fit'.")


def absent() -> Any:
    """Declare what columns mean that a table of new rows lacks."""
    return declared(NewRowOptions, "absent", READING)


def new_rows(**more: Any) -> Any:
    """Declare a model, a table of new rows for it, and what columns mean that the table lacks."""
    return Group(NewRows, {"model": model_file(), "data": table(**more), "absent": absent()})


def output_path(**more: Any) -> Any:
    """Declare the file to write, by default standard output."""
    return output("--output -o", OUTPUT, **{"default": STANDARD} | more)


def output_format() -> Any:
    """Declare the format of a table to write."""
    help = "Format to write; inferred from the file name by default."
    return option("--to", help=help, type=click.Choice(list(FORMATS)), metavar="FORMAT", panel=WRITING)


def table_output(path: Any = None) -> Any:
    """Declare a table to write, and its format."""
    return Group(output_table, {"output": path or output_path(), "to": output_format()})


@dataclass(frozen=True)
class RunSettings:
    """Where rows are processed, and the limit of memory; the result does not depend on it."""

    n_jobs: int | None = -1
    device: str = "cpu"
    max_memory: int | str | None = None

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
    return Group(RunSettings, made)
