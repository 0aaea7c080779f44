"""Parameters as they are written on the command line: ``missing="zero"`` is ``--missing zero``."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..covers.options import CoverOptions
from ..errors import Message, Parameter, in_python
from ..images.options import DenoiseOptions
from ..io.options import ReadOptions
from ..model.options import RuleOptions
from ..parameters import Param, declarations, flat_declarations
from ..roles.options import AuditOptions
from ..run_options import NewRowOptions
from ..search.options import FitOptions
from ..verbosity import escape_name

_DECLARED: dict[str, Param] = {
    name: param
    for name, (_, param) in {
        **declarations(CoverOptions), **declarations(ReadOptions), **declarations(DenoiseOptions),
        **flat_declarations(FitOptions), **declarations(NewRowOptions), **declarations(RuleOptions),
        **declarations(AuditOptions),
    }.items()
}  # fmt: skip
_OPTIONS = {name: param.option for name, param in _DECLARED.items() if param.option} | {
    name: name for name in ("format", "objective", "output", "threshold", "tile", "groups")
}
_OPTIONS |= {"sample_weight": "weight-column", "max_rows": "max-rows"}
_COMMANDS = {"bitatoms.cover": "bitatoms roles"}  # that do what a function does
_REPEATED = ("without", "as_category", "as_number")  # options that take one of several values each time
STANDARD = Path("-")  # the standard input or output


def as_option(parameter: Parameter) -> str:
    """Spell a parameter as an option; as in Python where the command line has no such option.

    Control characters are escaped: the commands accept names of columns in this spelling.
    """
    name, value = parameter.name, parameter.value
    if name not in _OPTIONS:
        return _COMMANDS.get(name) or in_python(parameter)
    option = _OPTIONS[name]
    if value is None or isinstance(value, bool):
        return f"--no-{option}" if value is False else f"--{option}"
    joint = "," if name == "long" else "x"
    text = joint.join(map(str, value)) if isinstance(value, tuple) else str(value)
    return f"--{option} {shlex.quote(escape_name(text))}"


def describe(error: BaseException | str) -> str:
    """Return the message of an error or a warning, with its parameters spelled as options."""
    return error.describe(as_option) if isinstance(error, Message) else str(error)


def as_arguments(options: Mapping[str, Any]) -> str:
    """Return options as they are written on the command line, each with a blank before it."""
    words = []
    for name, value in options.items():
        values = value if name in _REPEATED else (value,)
        words += [f" {as_option(Parameter(name, each))}" for each in values]
    return "".join(words)


def quote_path(path: Path) -> str:
    """Return a path as it is written on the command line."""
    text = str(path)
    return shlex.quote(f"./{text}" if text.startswith("-") and path != STANDARD else text)
