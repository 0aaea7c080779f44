"""The public surface: names, parameters, attributes, options, exit codes and formats, as lines of text.

``python tests/support/surface.py`` records it in ``tests/data/public_surface.txt``, which
``tests/test_public_surface.py`` compares. What SIMPLER.md part 3 cuts has a section of its own, "to be removed".
"""

import contextlib
import dataclasses
import inspect
import io
import os
import re
import signal
import textwrap
import warnings
from enum import Enum
from functools import partial
from importlib import import_module
from pathlib import Path
from types import NoneType
from typing import NamedTuple, get_args, get_origin
from unittest import mock

RECORD = Path(__file__).parents[1] / "data" / "public_surface.txt"
MODULES = ["", "baselines", "compare", "dask", "datasets", "estimators", "images", "plots", "report"]
REMOVED_MODULES = ["reproduce"]
REMOVED_COMMANDS, REMOVED_FORMATS = ["reproduce"], ["haps"]
OLD_NAMES = {  # module-level names that are imported with a warning
    "bitatoms.compare": ["Contender", "Tried", "contenders"],
    "bitatoms.report": ["Findings", "findings", "page"],
}


def spelled(value):
    """Return a default value as text that no version of Python changes."""
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(spelled, value))})"
    value = value.value if isinstance(value, Enum) else os.fspath(value) if isinstance(value, Path) else value
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if inspect.isroutine(value) or inspect.isclass(value):
        return f"<{value.__name__}>"
    return "<factory>" if "FACTORY" in type(value).__name__ else f"<{type(value).__name__}>"


class Default(str):
    """The text of a default value, as it stands in a signature."""

    __repr__ = str.__str__


def parameters_of(function):
    """Return the parameters of a function or class, as in its signature, without annotations."""
    shown = []
    for name, parameter in inspect.signature(function).parameters.items():
        default = parameter.default if parameter.default is parameter.empty else Default(spelled(parameter.default))
        if name not in ("self", "cls"):
            shown.append(parameter.replace(annotation=parameter.empty, default=default))
    return str(inspect.Signature(shown))


def is_deprecated(value):
    """Return whether the first line of the documentation calls something deprecated."""
    return value is not None and "deprecated" in (value.__doc__ or "").partition("\n")[0].lower()


SPECIAL = [f"__{name}__" for name in ("add", "array", "call", "eq", "getitem", "iter", "len", "or", "str", "xor")]


def is_written_here(function):
    """Return whether a function stands in the source of the package; methods of dataclasses are generated."""
    return hasattr(function, "__code__") and f"{os.sep}bitatoms{os.sep}" in function.__code__.co_filename


def members_of(cls):
    """Yield the public methods, properties and fields of a class: name, value, and parameters if it is a method."""
    own = [base for base in cls.__mro__ if base.__module__.startswith("bitatoms")]
    fields = [name for name in fields_of(cls) if not name.startswith("_")]
    yield from ((name, None, "") for name in fields)
    for name in sorted({name for base in own for name in vars(base)} - set(fields)):
        value = inspect.getattr_static(cls, name)
        is_special = name in SPECIAL
        if (name.startswith("_") and not is_special) or re.fullmatch("set_.*_request", name):  # of scikit-learn
            continue
        function = getattr(value, "__func__", getattr(value, "fn", value))
        if is_written_here(inspect.unwrap(function)):
            yield name, function, "" if is_special else parameters_of(function)
        elif not is_special and not inspect.isclass(value):
            yield name, value, ""


def fields_of(cls):
    """Return the names of the fields of a dataclass or a named tuple."""
    if dataclasses.is_dataclass(cls):
        return [field.name for field in dataclasses.fields(cls)]
    return getattr(cls, "_fields", ())


def names_of(module):
    """Yield lines for the public names of a module, each with the value that it describes."""
    top = import_module("bitatoms")
    for name in module.__all__:
        value = getattr(module, name)
        if module is not top and getattr(top, name, None) is value:
            yield value, f"{name}, as in bitatoms"
        elif inspect.ismodule(value):
            yield value, f"module {name}"
        elif inspect.isclass(value):
            has_own_parameters = not issubclass(value, (BaseException, Enum))
            yield value, f"class {name}{parameters_of(value) if has_own_parameters else ''}"
            members = list(members_of(value))
            attributes = [member for member, one, text in members if not text and not is_deprecated(one)]
            if attributes:
                yield value, f"  {name}: {', '.join(attributes)}"
            yield from (
                (one, f"  {name}.{member}{text}") for member, one, text in members if text or is_deprecated(one)
            )
        elif callable(value):
            yield value, f"def {name}{parameters_of(value)}"
        else:
            yield None, f"value {name}"


def python_section(name):
    """Return the lines of a public module."""
    module = import_module(f"bitatoms.{name}".rstrip("."))
    return [line for value, line in names_of(module) if not is_deprecated(value)]


def fitted_section():
    """Return what estimators have after a small fit: attributes that end with an underscore."""
    import bitatoms as ba

    table = ba.Table(ba.BitMatrix.from_dense([[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1]] * 4), columns=list("abcd"))
    few = {"n_components": 2, "search": "paper", "random_state": 0}
    baselines = [getattr(ba.baselines, name)(2) for name in ba.baselines.__all__ if name != "dude"]
    fits = [
        ba.BinaryDictionaryLearning(**few).fit(table),
        ba.BinaryDictionaryClassifier(n_models=1, **few).fit(table, ["x", "x", "x", "y", "y", "y"] * 2),
        ba.BinaryImputer(method="atoms", **few).fit(table),
        ba.CategoryEncoder().fit({"color": ["red", "blue"]}),
        ba.CoverMiner(random_state=0).fit(table),
        *(baseline.fit(table) for baseline in baselines),
    ]
    lines = []
    for model in fits:
        names = [name for name in dir(model) if name.endswith("_") and not name.startswith("_")]
        lines += [f"{type(model).__name__}: {', '.join(name for name in names if hasattr(model, name))}"]
    return lines


class Option(NamedTuple):
    """An argument or an option of a command."""

    line: str
    is_hidden: bool


def spelled_option(parameter):
    """Return an argument or an option of a command with its flags, kind and default."""
    kind, declared = get_args(parameter.annotation)[:2]
    alternatives = [each for each in get_args(kind) if each is not NoneType] or [kind]
    repeats = get_origin(alternatives[0]) is list or get_origin(kind) is list
    kind = get_args(alternatives[0])[0] if get_origin(alternatives[0]) is list else alternatives[0]
    is_argument = type(declared).__name__ == "ArgumentInfo"
    flags = [flag for flag in (declared.default, *(declared.param_decls or ())) if isinstance(flag, str)]
    flags = flags or [f"--{parameter.name.replace('_', '-')}"]
    words = [f"<{parameter.name}>" if is_argument else "/".join(flags)]
    if isinstance(kind, type) and issubclass(kind, Enum):
        words.append("|".join(each.value for each in kind))
    elif kind is not bool:
        words.append(kind.__name__)
    words += ["..."] if repeats else []
    default = parameter.default
    if default in (parameter.empty, ...):
        words.append("required")
    elif default is not None and default is not False:
        words.append(f"default={spelled(default)}")
    return Option(" ".join(words), bool(declared.hidden))


def options_by_command():
    """Return the options of each command, visible and hidden ones, by its name."""
    from bitatoms.cli.app import app

    functions = {"bitatoms": app.registered_callback.callback}
    for command in app.registered_commands:
        functions[command.name or command.callback.__name__.replace("_", "-")] = command.callback
    return {
        name: [spelled_option(each) for each in inspect.signature(function).parameters.values()]
        for name, function in functions.items()
    }


def command_section():
    """Return each option once, with the commands that have it."""
    kept = {name: options for name, options in options_by_command().items() if name not in REMOVED_COMMANDS}
    commands = {}
    for name, options in kept.items():
        for option in options:
            if not option.is_hidden:
                commands.setdefault(option.line, []).append(name)
    lines = [f"{line}: {', '.join(owners)}" for line, owners in sorted(commands.items())]
    return [f"commands: {', '.join(kept)}", *lines]


def exit_code(arguments, fault=None):
    """Return the exit code of a command; with a fault, the command calls it instead of what it does."""
    from bitatoms.cli.app import run

    with contextlib.ExitStack() as stack:
        for stream in (contextlib.redirect_stdout, contextlib.redirect_stderr):
            stack.enter_context(stream(io.StringIO()))
        if fault is not None:
            stack.enter_context(mock.patch("bitatoms.cli.commands.show", side_effect=fault))
        try:
            run(arguments)
        except SystemExit as ended:
            return ended.code or 0
    return 0


def exit_section():
    """Return the exit codes of the command line."""
    return [
        f"success: {exit_code(['--version'])}",
        f"error in the command: {exit_code(['fit', '--no-such-option'])}",
        f"error in the input: {exit_code(['show', 'no such file.npz'])}",
        f"Ctrl-C: {exit_code(['show', 'model.npz'], fault=KeyboardInterrupt)}",
        f"SIGTERM: {exit_code(['show', 'model.npz'], fault=lambda *_: signal.raise_signal(signal.SIGTERM))}",
    ]


def spelled_format(name):
    """Return a file format with its extensions and what it can hold."""
    from bitatoms.io.formats import FORMATS

    one = FORMATS[name]
    words = [*one.extensions, *([f"{one.extensions[0]}.gz"] if one.gzip else [])]
    words += ["read, write" if one.is_writable else "read", f"library {one.library}" if one.library else "no library"]
    words += ["one file"] if one.is_one_file else ["several files"]
    words += ["unknown cells"] if one.stores_unknown else []
    words += ["annotations"] if one.stores_annotations else []
    return f"{name}: {', '.join(words)}"


def format_section():
    """Return the file formats."""
    from bitatoms.io.formats import FORMATS

    return [spelled_format(name) for name in FORMATS if name not in REMOVED_FORMATS]


def choice_section():
    """Return the words that parameters take."""
    from bitatoms import parameters

    kinds = [value for name, value in vars(parameters).items() if name.endswith("Kwargs")]
    lines = []
    for kind in kinds:
        for name, (annotation, _) in parameters.declarations(kind).items():
            words = parameters.choices(annotation)
            lines += [f"{name}: {', '.join(words)}"] if words else []
    return [*dict.fromkeys(lines), f"init: {', '.join(parameters.INITS)}"]


def removed_section():
    """Return what SIMPLER.md part 3 cuts, as long as it is there."""
    from bitatoms.io.formats import FORMATS
    from bitatoms.parameters import RENAMED

    lines = [f"format {spelled_format(name)}" for name in REMOVED_FORMATS if name in FORMATS]
    for name in MODULES:
        module = import_module(f"bitatoms.{name}".rstrip("."))
        lines += [f"{module.__name__}: {line}" for value, line in names_of(module) if is_deprecated(value)]
    for name in REMOVED_MODULES:
        lines += [f"bitatoms.{name}: {line}" for line in python_section(name)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        for name, old_names in OLD_NAMES.items():
            module = import_module(name)
            lines += [f"{name}: {old}" for old in old_names if hasattr(module, old)]
        lines += [f"bitatoms.scale.dask: {name}" for name in import_module("bitatoms.scale.dask").__all__]
    lines += [f"parameter {old}, now {new}" for old, new in RENAMED.items()]
    for name, options in options_by_command().items():
        shown = [option.line for option in options if option.is_hidden or name in REMOVED_COMMANDS]
        lines += [f"command {name}: {line}" for line in shown]
    return lines


NEEDS = {
    "bitatoms.plots": ["matplotlib"],
    "bitatoms.dask": ["dask"],
    "command line": ["typer"],
    "exit codes": ["typer"],
}
SECTIONS = {
    **{f"bitatoms.{name}".rstrip("."): partial(python_section, name) for name in MODULES},
    "choices of parameters": choice_section,
    "fitted attributes": fitted_section,
    "command line": command_section,
    "exit codes": exit_section,
    "file formats": format_section,
    "to be removed": removed_section,
}
NEEDS["to be removed"] = ["matplotlib", "dask", "typer"]


def collected(section):
    """Return the lines of a section of the surface as it is."""
    return SECTIONS[section]()


def recorded():
    """Return the lines of each section of the record."""
    sections, lines = {}, []
    for line in RECORD.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            lines = sections[line.strip("[]")] = []
        elif line.startswith("      "):
            lines[-1] += f" {line.strip()}"
        elif line:
            lines.append(line)
    return sections


def parts(lines):
    """Return the lines with one parameter or name per line, for a readable difference."""
    return [part for line in lines for part in line.replace(", ", ",\n    ").split("\n")]


def record():
    """Write the surface as it is."""
    text = []
    for section in SECTIONS:
        wrapped = (
            textwrap.wrap(line, 118, subsequent_indent="      ", break_long_words=False, break_on_hyphens=False)
            for line in collected(section)
        )
        text += [f"[{section}]", *(part for lines in wrapped for part in lines), ""]
    RECORD.write_text("\n".join(text), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    record()
