"""The public surface: names, parameters, attributes, options, exit codes and formats, as lines of text.

``python tests/support/surface.py`` records it in ``tests/data/public_surface.txt``, which
``tests/test_public_surface.py`` compares. What is deprecated or hidden is marked.
"""

import contextlib
import inspect
import io
import re
import signal
import textwrap
from enum import Enum
from functools import partial
from importlib import import_module
from pathlib import Path
from unittest import mock

RECORD = Path(__file__).parents[1] / "data" / "public_surface.txt"
MODULES = ["", "baselines", "compare", "dask", "datasets", "estimators", "images", "plots", "report"]
SPECIAL = [f"__{name}__" for name in ("add", "array", "call", "eq", "getitem", "iter", "len", "or", "str", "xor")]


class Default(str):
    """A default value as text that no version of Python changes, as it stands in a signature."""

    __repr__ = str.__str__

    @classmethod
    def of(cls, value):
        if isinstance(value, (list, tuple)):
            return cls(f"({', '.join(map(cls.of, value))})")
        value = value.value if isinstance(value, Enum) else value.as_posix() if isinstance(value, Path) else value
        if value is None or isinstance(value, (bool, int, float, str)):
            return cls(repr(value))
        return cls(f"<{getattr(value, '__name__', type(value).__name__).strip('_')}>")


def parameters_of(function):
    """Return the parameters of a function or class, as in its signature, without annotations."""
    given = [each for each in inspect.signature(function).parameters.values() if each.name not in ("self", "cls")]
    defaults = [each.default if each.default is each.empty else Default.of(each.default) for each in given]
    shown = [each.replace(annotation=each.empty, default=own) for each, own in zip(given, defaults, strict=True)]
    return str(inspect.Signature(shown))


def mark(value):
    """Return a mark if the first line of the documentation calls something deprecated."""
    return " (deprecated)" if "deprecated" in (value.__doc__ or "").partition("\n")[0].lower() else ""


def member_lines(cls):
    """Yield lines for the fields and properties of a class, all in one, and for its public methods."""
    own = {name for base in cls.__mro__ if base.__module__.startswith("bitatoms") for name in vars(base)}
    fields = [name for name in getattr(cls, "__dataclass_fields__", getattr(cls, "_fields", ())) if name[0] != "_"]
    attributes, methods = fields, []
    for name in sorted(own - set(fields)):
        value = inspect.getattr_static(cls, name)
        function = inspect.unwrap(
            getattr(value, "__func__", getattr(value, "fn", value)), stop=lambda each: hasattr(each, "__signature__")
        )
        if name in SPECIAL:
            attributes.append(name)
        elif name.startswith("_") or re.fullmatch("set_.*_request", name) or inspect.isclass(value):
            continue
        elif inspect.isfunction(function):
            methods.append(f"  {cls.__name__}.{name}{parameters_of(function)}{mark(function)}")
        else:
            attributes.append(name + (mark(value) if isinstance(value, property) else ""))
    return ([f"  {cls.__name__}: {', '.join(attributes)}"] if attributes else []) + methods


def module_section(name):
    """Return the lines of the public names of a module."""
    module, top, lines = import_module(f"bitatoms.{name}".rstrip(".")), import_module("bitatoms"), []
    for each in module.__all__:
        value = getattr(module, each)
        if module is not top and getattr(top, each, None) is value:
            lines.append(f"{each}, as in bitatoms")
        elif inspect.isclass(value):
            has_parameters = not issubclass(value, (BaseException, Enum))
            lines += [f"class {each}{parameters_of(value) if has_parameters else ''}{mark(value)}"]
            lines += member_lines(value)
        elif inspect.isroutine(value):
            lines.append(f"def {each}{parameters_of(value)}{mark(value)}")
        else:
            lines.append(f"{'module' if inspect.ismodule(value) else 'value'} {each}")
    return lines


def fitted_section():
    """Return what estimators have after a small fit: attributes that end with an underscore."""
    import bitatoms as ba

    table = ba.Table(ba.BitMatrix.from_dense([[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1]] * 4), columns=list("abcd"))
    few = {"n_components": 2, "search": "paper", "random_state": 0}
    fits = [
        ba.BinaryDictionaryLearning(**few).fit(table),
        ba.BinaryDictionaryClassifier(n_models=1, **few).fit(table, ["x", "x", "x", "y", "y", "y"] * 2),
        ba.BinaryImputer(method="atoms", **few).fit(table),
        ba.CategoryEncoder().fit({"color": ["red", "blue"]}),
        ba.CoverMiner(random_state=0).fit(table),
        *(getattr(ba.baselines, name)(2).fit(table) for name in ba.baselines.__all__ if name != "dude"),
    ]
    names = [[name for name in dir(fit) if re.fullmatch("[a-z].*_", name) and hasattr(fit, name)] for fit in fits]
    return [f"{type(fit).__name__}: {', '.join(own)}" for fit, own in zip(fits, names, strict=True)]


def spelled_option(parameter):
    """Return an argument or an option of a command with its flags, type and default."""
    is_argument = parameter.param_type_name == "argument"
    words = [f"<{parameter.name}>" if is_argument else "/".join([*parameter.opts, *parameter.secondary_opts])]
    if not getattr(parameter, "is_flag", False):
        names = {"text": "str", "integer": "int", "integer range": "int", "path": "Path"}
        kind = parameter.type
        words.append("|".join(kind.choices) if hasattr(kind, "choices") else names.get(kind.name, kind.name))
    words += ["..."] if parameter.multiple or parameter.nargs == -1 else []
    default = parameter.to_info_dict()["default"]
    if parameter.required:
        words.append("required")
    elif default is not None and default is not False:
        words.append(f"default={Default.of(default)}")
    return " ".join([*words, "(hidden)"] if getattr(parameter, "hidden", False) else words)


def command_section():
    """Return each option once, with the commands that have it."""
    from bitatoms.cli.app import COMMANDS, app

    names = [name for group in COMMANDS.values() for name in group]
    options = {}
    for name, command in {"bitatoms": app, **{name: app.get_command(None, name) for name in names}}.items():
        for parameter in command.params:
            options.setdefault(spelled_option(parameter), []).append(name)
    groups = [f"commands, {title.lower()}: {', '.join(group)}" for title, group in COMMANDS.items()]
    return [*groups, *(f"{line}: {', '.join(options[line])}" for line in sorted(options))]


def exit_code(*arguments, fault=None):
    """Return the exit code of a command; with a fault, ``show`` calls it instead of what it does."""
    from bitatoms.cli.app import run

    patch = mock.patch("bitatoms.cli.files.load_model", side_effect=fault) if fault else contextlib.nullcontext()
    with patch, contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            run(list(arguments))
        except SystemExit as ended:
            return ended.code or 0
    return 0


def exit_section():
    """Return the exit codes of the command line."""
    return [
        f"success: {exit_code('--version')}",
        f"error in the command: {exit_code('fit', '--no-such-option')}",
        f"error in the input: {exit_code('show', 'no such file.npz')}",
        f"Ctrl-C: {exit_code('show', 'model.npz', fault=KeyboardInterrupt)}",
        f"SIGTERM: {exit_code('show', 'model.npz', fault=lambda *_: signal.raise_signal(signal.SIGTERM))}",
    ]


def format_section():
    """Return the file formats with what they can hold."""
    from bitatoms.io.formats.registry import FORMATS

    shown = [name for name in FORMATS["csv"]._fields if name not in ("description", "module")]
    return [
        f"{name}: {', '.join(f'{field}={Default.of(getattr(one, field))}' for field in shown)}"
        for name, one in FORMATS.items()
    ]


def choice_section():
    """Return the words that parameters take."""
    from bitatoms.covers.options import CoverOptions
    from bitatoms.estimators.options import ClassifierOptions, EstimatorOptions, ImputerOptions
    from bitatoms.io.options import ReadOptions
    from bitatoms.parameters import choices, declarations
    from bitatoms.search.options import INITS, PaperSearch

    kinds = EstimatorOptions, ClassifierOptions, ImputerOptions, PaperSearch, CoverOptions, ReadOptions
    declared = [(name, kind) for each in kinds for name, (kind, _) in declarations(each).items()]
    lines = [f"{name}: {', '.join(words)}" for name, kind in declared if (words := choices(kind))]
    return [*dict.fromkeys(lines), f"init: {', '.join(INITS)}"]


SECTIONS = {
    **{f"bitatoms.{name}".rstrip("."): partial(module_section, name) for name in MODULES},
    "choices of parameters": choice_section,
    "fitted attributes": fitted_section,
    "command line": command_section,
    "exit codes": exit_section,
    "file formats": format_section,
}
NEEDS = {
    "bitatoms.plots": "matplotlib",
    "bitatoms.dask": "dask",
    "command line": "click",
    "exit codes": "click",
}


def recorded():
    """Return the lines of each section of the record."""
    text = re.sub("\n {6}", " ", RECORD.read_text(encoding="utf-8")).strip("[\n")
    return {part.partition("]\n")[0]: part.splitlines()[1:] for part in text.split("\n\n[")}


def record():
    """Write the surface as it is."""
    wrapped = partial(
        textwrap.wrap, width=118, subsequent_indent=6 * " ", break_long_words=False, break_on_hyphens=False
    )
    sections = [[f"[{name}]", *(part for line in of() for part in wrapped(line))] for name, of in SECTIONS.items()]
    RECORD.write_text("\n\n".join(map("\n".join, sections)) + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    record()
