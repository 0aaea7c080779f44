"""Declarations of parameters: type, default, limits, help and documentation.

The parameters of a feature are the fields of a dataclass beside it, such as `ReadOptions`. Signatures, documentation
and command-line options follow from it; the code uses it as a value, which is checked when it is created.
"""

from __future__ import annotations

import functools
import inspect
import os
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from types import NoneType, UnionType
from typing import (
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    Self,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from .errors import InputError, Parameter
from .validation import check_choice, check_int


@dataclass(frozen=True)
class Param:
    """The declaration of a parameter, apart from its name and its type."""

    default: Any
    help: str  # one line for the command line, and the beginning of the documentation
    details: str = ""  # the rest of the documentation
    minimum: int = 0  # the smallest integer allowed
    # Called with the name and the value instead of the check that follows from the type; returns the value to use.
    check: Callable[[str, Any], Any] | None = None
    type: str | None = None  # in the documentation, where it cannot be derived from the annotation
    option: str | None = None  # the name of the command-line option, if there is one
    # How a fit runs, not what it finds; neither stored in model files nor read from them: a file may be untrusted.
    is_run_setting: bool = False
    formats: tuple[str, ...] = ()  # the file formats that it applies to; empty for all
    is_remembered: bool = False  # by a model for new files, because it decides what their cells mean
    is_common: bool = False  # whether ``--help`` describes its option; ``--help-all`` describes all options


class Options:
    """Parameters of one feature: a frozen dataclass whose fields are declared by `option`, checked when it is created.

    A subclass, decorated with ``@dataclass(frozen=True, kw_only=True)``, is both the declaration, from which
    signatures, documentation and command-line options follow, and the value that the code uses.
    """

    def __post_init__(self) -> None:
        for name, declared in declarations(type(self)).items():
            object.__setattr__(self, name, check(name, getattr(self, name), declared))

    def __repr__(self) -> str:
        values = self.get_params(deep=False).items()
        given = [f"{name}={value!r}" for name, value in values if repr(value) != repr(getattr(type(self), name))]
        return f"{type(self).__name__}({', '.join(given)})"

    @classmethod
    def from_flat(cls, values: Mapping[str, Any]) -> Self:
        """Return options from fields by name, those of nested options among them, as on the command line."""
        flat, own = dict(values), {}
        for name, group in _groups(cls).items():
            given = {each: flat.pop(each) for each in declarations(group) if each in flat}
            own[name] = group(**given) if given else None
        return cls(**flat, **own)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the fields by name, as scikit-learn's estimators do, so that grids can vary them."""
        own = {name: getattr(self, name) for name in declarations(type(self))}
        inner = {name: value.get_params() for name, value in own.items() if deep and isinstance(value, Options)}
        return own | {f"{name}__{each}": value for name, of in inner.items() for each, value in of.items()}

    def __sklearn_clone__(self) -> Self:
        return self  # it cannot change


def option(default: Any, help: str, details: str = "", **more: Any) -> Any:
    """Declare a parameter as a field of `Options`; see `Param` for the arguments."""
    return field(default=default, metadata={"param": Param(default, help, details, **more)})


def declared_in(kind: type[Options], name: str, **changes: Any) -> Any:
    """Declare a parameter as it is declared in other `Options`, apart from these changes."""
    param = replace(declarations(kind)[name][1], **changes)
    return field(default=param.default, metadata={"param": param})


def declarations(kind: Any) -> dict[str, tuple[Any, Param]]:
    """Return the type and the declaration of each field of `Options`, by name."""
    return _declared(kind)


def flat_declarations(kind: type[Options]) -> dict[str, tuple[Any, Param]]:
    """Return the declarations of `Options`; the fields of nested options take the place of the field that has them."""
    flat, groups = dict[str, tuple[Any, Param]](), _groups(kind)
    for name, declared in declarations(kind).items():
        flat |= declarations(groups[name]) if name in groups else {name: declared}
    return flat


def options_kind(annotation: Any) -> type[Options] | None:
    """Return the `Options` that a type allows, if any."""
    kinds = (part for part in _alternatives(annotation) if isinstance(part, type) and issubclass(part, Options))
    return next(kinds, None)


def nested_kinds(kind: type[Options]) -> dict[str, type[Options]]:
    """Return the `Options` that parameters of other `Options` may hold, by name."""
    return {name: inner for name, (annotation, _) in declarations(kind).items() if (inner := options_kind(annotation))}


def _groups(kind: type[Options]) -> dict[str, type[Options]]:
    """Return the parameters that hold other `Options` if they are given at all."""
    return {name: inner for name, inner in nested_kinds(kind).items() if declarations(kind)[name][1].default is None}


def nested_declarations(kind: type[Options]) -> dict[str, tuple[Any, Param]]:
    """Return the declarations of `Options` and of nested ones, by name as in `Options.get_params`: ``outer__inner``."""
    inner = {name: declarations(each) for name, each in nested_kinds(kind).items()}
    return declarations(kind) | {f"{name}__{each}": own for name, of in inner.items() for each, own in of.items()}


@functools.cache
def _declared(kind: Any) -> dict[str, tuple[Any, Param]]:
    hints = get_type_hints(kind)
    ordered = sorted(fields(kind), key=lambda each: each.kw_only is True)  # as in a signature
    return {each.name: (hints[each.name], each.metadata["param"]) for each in ordered}


def choices(annotation: Any) -> tuple[str, ...]:
    """Return the strings that a type allows."""
    return tuple(word for part in _alternatives(annotation) if get_origin(part) is Literal for word in get_args(part))


def check(name: str, value: Any, declared: tuple[Any, Param]) -> Any:
    """Return the value of a parameter, checked against its declaration."""
    annotation, param = declared
    if param.check is not None:
        return param.check(name, value)
    types, words, kind = _alternatives(annotation), choices(annotation), options_kind(annotation)
    if (value is None and NoneType in types) or (kind is not None and isinstance(value, kind)):
        return value
    if isinstance(value, type) and issubclass(value, Options):
        raise InputError(Parameter(name), f" must be {value.__name__}(...), not the class {value.__name__}")
    if kind is not None and not words:
        raise InputError(Parameter(name), f" must be {kind.__name__}(...) or None, not {value!r}")
    if words and (int not in types or isinstance(value, str)):
        check_choice(name, value, words, "an integer" if int in types else f"{kind.__name__}(...)" if kind else None)
        return value
    return check_int(name, value, param.minimum) if int in types and str not in types else value


_Fields = ParamSpec("_Fields")
_Kind = TypeVar("_Kind", bound=Options)
_First = TypeVar("_First")
_Second = TypeVar("_Second")
_Third = TypeVar("_Third")
_Result = TypeVar("_Result")


class with_options(Generic[_Fields, _Kind]):
    """Let a function whose last argument is ``options`` take the fields of these `Options` as its own parameters.

    Type checkers see the real fields, which follow the other parameters of the function. In its docstring, their
    documentation takes the place of ``{parameters}``.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from bitatoms.parameters import Options, option, with_options
    >>> @dataclass(frozen=True, kw_only=True)
    ... class RepeatOptions(Options):
    ...     times: int = option(2, "How often.", minimum=1)
    >>> @with_options(RepeatOptions)
    ... def repeat(text: str, options: RepeatOptions) -> str:
    ...     return text * options.times
    >>> repeat("ab", times=3)
    'ababab'
    """

    def __init__(self, kind: Callable[_Fields, _Kind]) -> None:
        self._kind: Any = kind

    @overload
    def __call__(
        self, function: Callable[[_First, _Kind], _Result]
    ) -> Callable[Concatenate[_First, _Fields], _Result]: ...

    @overload
    def __call__(
        self, function: Callable[[_First, _Second, _Kind], _Result]
    ) -> Callable[Concatenate[_First, _Second, _Fields], _Result]: ...

    @overload
    def __call__(
        self, function: Callable[[_First, _Second, _Third, _Kind], _Result]
    ) -> Callable[Concatenate[_First, _Second, _Third, _Fields], _Result]: ...

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return _taking_fields(function, self._kind, self._kind)


def with_values(
    kind: Callable[_Fields, Options],
) -> Callable[[Callable[[_First, dict[str, Any]], None]], Callable[Concatenate[_First, _Fields], None]]:
    """Let the constructor of an estimator take the fields of `Options`, and pass it their values, unchecked, as a dict.

    scikit-learn requires that a constructor stores parameters as they are; `fit` checks them.
    """
    return lambda function: _taking_fields(function, cast(Any, kind), dict)


def _taking_fields(function: Callable[..., Any], kind: type[Options], collect: Callable[..., Any]) -> Any:
    """Return a function with the fields of `Options` as parameters, which it collects as its last argument."""
    *own, _ = inspect.signature(function).parameters.values()
    declared = declarations(kind)
    listed = [each.replace(annotation=declared[each.name][0]) for each in inspect.signature(kind).parameters.values()]
    signature = inspect.Signature([*own, *listed])

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        try:
            bound = signature.bind(*args, **given)
        except TypeError as error:
            raise TypeError(f"{function.__qualname__}() {error}{advice_on(kind, given)}") from None
        bound.apply_defaults()
        first = [bound.arguments.pop(parameter.name) for parameter in own]
        return function(*first, collect(**bound.arguments))

    call.__signature__, call.kind = signature, kind  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in signature.parameters.values()}
    call.__doc__ = function.__doc__ and _with_parameters(function.__doc__, kind)
    return call


def advice_on(kind: type[Options], given: Iterable[str]) -> str:
    """Return where arguments belong that are not fields of `Options`, but of nested ones."""
    for outer, inner in nested_kinds(kind).items():
        for name in given:
            if name in declarations(inner) and name not in declarations(kind):
                owner = f"bitatoms.{inner.__name__}"
                return f"; {name} is a parameter of {owner}: {outer}={owner}({name}=...)"
    return ""


def with_documentation(cls: type[_Result]) -> type[_Result]:
    """Write the parameters of `Options`, or of an estimator that takes them, into the docstring of the class."""
    cls.__doc__ = _with_parameters(cls.__doc__ or "", getattr(cls.__init__, "kind", cast(Any, cls)))
    return cls


def _with_parameters(docstring: str, kind: type[Options]) -> str:
    """Return a docstring with numpydoc entries of `Options`, in lines of 112 characters, for ``{parameters}``."""
    entries = []
    for name, (annotation, param) in declarations(kind).items():
        text = textwrap.wrap(f"{param.help} {param.details}", 112, break_long_words=False, break_on_hyphens=False)
        described = param.type or _type_text(annotation, param.default)
        entries.append("\n    ".join([f"{name} : {described}", *text]))
    return inspect.cleandoc(docstring).replace("{parameters}", "\n".join(entries))


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    """Return the types of a union, or the type alone."""
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def _type_text(annotation: Any, default: Any) -> str:
    """Return a type and a default as numpydoc writes them."""
    names = []
    for part in _alternatives(annotation):
        if get_origin(part) is Literal:
            names += [_quoted(word) for word in get_args(part)]
        elif part is not NoneType:
            names.append("path-like" if get_origin(part) is os.PathLike else part.__name__)
    if get_origin(annotation) is Literal:
        return f"{{{', '.join(names)}}}, default={_quoted(default)}"
    if NoneType in _alternatives(annotation) and default is not None:
        names.append("None")
    listed = " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    return f"{listed}, optional" if default is None else f"{listed}, default={_quoted(default)}"


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)
