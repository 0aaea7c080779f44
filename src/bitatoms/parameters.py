"""Parameters, each declared once: type, default, limits, help and documentation.

`factorize`, the estimator and the command line take their signatures, checks, options and documentation from the
declarations here. Each is a field of a `TypedDict`, annotated with a `Param`, so that type checkers know it too.
"""

from __future__ import annotations

import functools
import inspect
import os
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    Self,
    TypedDict,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from .errors import InputError, Parameter
from .validation import (
    check_choice,
    check_fraction,
    check_int,
    check_noise,
    check_not_negative,
    check_threshold,
)

CoverObjective = Literal["roles", "assignments", "codelength"]

_WIDTH = 112  # characters of a line of documentation, without its indentation
_Documented = TypeVar("_Documented", bound=Callable[..., Any])


@dataclass(frozen=True)
class Param:
    """The declaration of a parameter, apart from its name and its type.

    Parameters
    ----------
    default : object
        Its default value.
    help : str
        One line for the command line, and the beginning of the documentation.
    details : str
        The rest of the documentation.
    minimum : int
        The smallest integer allowed.
    check : callable, optional
        Called with the name and the value instead of the check that follows from the type. It returns the value to use.
    type : str, optional
        The type in the documentation, where it cannot be derived from the annotation.
    option : str, optional
        The name of the command-line option, if there is one.
    is_run_setting : bool
        Whether it states how a fit runs, not what it finds. Run settings are neither stored in model files nor read
        from them, because a file may be untrusted.
    formats : tuple of str
        The file formats that it applies to; empty for all, and for parameters that are not about files.
    is_remembered : bool
        Whether a model remembers it for new files, because it decides what their cells mean.
    """

    default: Any
    help: str
    details: str = ""
    minimum: int = 0
    check: Callable[[str, Any], Any] | None = None
    type: str | None = None
    option: str | None = None
    is_run_setting: bool = False
    formats: tuple[str, ...] = ()
    is_remembered: bool = False


class Options:
    """Parameters of one feature: a frozen dataclass whose fields are declared by `option`, checked when it is created.

    A subclass, decorated with ``@dataclass(frozen=True, kw_only=True)``, is both the declaration, from which
    signatures, documentation and command-line options follow, and the value that the code uses.
    """

    def __post_init__(self) -> None:
        for name, declared in declarations(type(self)).items():
            object.__setattr__(self, name, check(name, getattr(self, name), declared))

    def __repr__(self) -> str:
        values = {name: (repr(value), repr(_default(self, name))) for name, value in self.get_params().items()}
        given = [f"{name}={value}" for name, (value, default) in values.items() if value != default]
        return f"{type(self).__name__}({', '.join(given)})"

    @classmethod
    def from_flat(cls, values: Mapping[str, Any]) -> Self:
        """Return options from fields by name, those of nested options among them, as on the command line."""
        flat, own = dict(values), {}
        for name, declared in declarations(cls).items():
            inner = _nested(declared)
            if inner is not None:
                given = {each: flat.pop(each) for each in declarations(inner) if each in flat}
                own[name] = inner(**given) if given else None
        return cls(**flat, **own)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the fields by name, as scikit-learn's estimators do, so that grids can vary them."""
        own = {name: getattr(self, name) for name in declarations(type(self))}
        inner = {name: value.get_params() for name, value in own.items() if deep and isinstance(value, Options)}
        return own | {f"{name}__{each}": value for name, of in inner.items() for each, value in of.items()}

    def __sklearn_clone__(self) -> Self:
        return self  # it cannot change


def option(
    default: Any,
    help: str,
    details: str = "",
    *,
    minimum: int = 0,
    check: Callable[[str, Any], Any] | None = None,
    type: str | None = None,
    option: str | None = None,
    is_run_setting: bool = False,
    formats: tuple[str, ...] = (),
    is_remembered: bool = False,
) -> Any:
    """Declare a parameter as a field of `Options`; see `Param` for the arguments."""
    param = Param(default, help, details, minimum, check, type, option, is_run_setting, formats, is_remembered)
    return field(default=default, metadata={"param": param})


def declared_in(kind: type[Options], name: str, **changes: Any) -> Any:
    """Declare a parameter as it is declared in other `Options`, apart from these changes."""
    param = replace(declarations(kind)[name][1], **changes)
    return field(default=param.default, metadata={"param": param})


def _check_seconds(name: str, value: Any) -> float | None:
    """Return a positive number of seconds, or None."""
    if value is None:
        return None
    if not isinstance(value, Real) or not float(value) > 0:
        raise InputError(Parameter(name), f" must be a positive number of seconds or None, not {value!r}")
    return float(value)


def _check_callbacks(name: str, value: Any) -> tuple[Callable[[Any], object], ...]:
    """Return no callback, one, or several as a tuple."""
    if value is None:
        return ()
    callbacks = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    for callback in callbacks:
        if not callable(callback):
            raise TypeError(f"{name} must be callable, or a list of callables, not {callback!r}")
    return callbacks


def _check_random_state(name: str, value: Any) -> Any:
    """Check a seed; generators are used as they are."""
    return check_int(name, value, 0) if isinstance(value, (str, Real)) else value


def _check_sizes(name: str, value: Any) -> tuple[int, ...]:
    """Return one size or several as a tuple of integers of at least 2."""
    sizes = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
    if not sizes:
        raise InputError(Parameter(name), " is empty; pass at least one size, such as 8")
    return tuple(check_int(name, size, 2) for size in sizes)


def _check_feature_sets(name: str, value: Any) -> tuple[tuple[int | str, ...], ...]:
    """Return sets of features by name or index; a single set may be passed as it is."""
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InputError(Parameter(name), f' must be sets of features, such as [["a", "b"]], not {value!r}')
    sets = list(value)
    if sets and all(isinstance(each, (str, Integral)) for each in sets):
        sets = [sets]
    checked = []
    for each in sets:
        if isinstance(each, str) or not isinstance(each, Iterable):
            raise InputError(Parameter(name), f' must be sets of features, such as [["a", "b"]], not {value!r}')
        features = list(dict.fromkeys(each))
        for feature in features:
            if isinstance(feature, bool) or not isinstance(feature, (str, Integral)):
                raise InputError(Parameter(name), f" has {feature!r}, which is neither a name nor an index")
        if len(features) < 2:
            raise InputError(Parameter(name), f" has the set {features!r}; a set needs at least two features")
        checked.append(tuple(each if isinstance(each, str) else int(each) for each in features))
    return tuple(checked)


def _check_weights(name: str, value: Any) -> tuple[float, ...]:
    """Return the weights of roles, user assignments and permission assignments."""
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 3:
        raise InputError(
            Parameter(name),
            f" must be three numbers, for roles, user assignments and permission assignments, not {value!r}",
        )
    try:
        weights = tuple(check_not_negative(name, weight) for weight in value)
    except InputError:
        raise InputError(
            Parameter(name), f" must be three finite numbers of at least 0, not {', '.join(map(repr, value))}"
        ) from None
    if not any(weights):
        raise InputError(Parameter(name), " are all 0; at least one of them must be positive")
    return weights


Binarize = Annotated[
    float | None,
    Param(
        None,
        "Threshold: values above it become 1, all others 0.",
        "Without it, all values must be 0 or 1.",
        check=lambda name, value: check_threshold(value),
        option="binarize",
    ),
]


Verbose = Annotated[
    int,
    Param(
        0,
        'Log progress and results to standard error, with the logger "bitatoms".',
        "1 logs notable improvements, 2 every move.",
        is_run_setting=True,
    ),
]

RandomState = Annotated[
    Any,
    Param(
        None,
        "Random seed; the same seed gives bit-identical results.",
        check=_check_random_state,
        type="int, Generator, RandomState or None, default=None",
        option="seed",
    ),
]


class CoverKwargs(TypedDict, total=False):
    """Parameters of `bitatoms.cover` and `bitatoms.CoverMiner`: what a cover minimizes, and how it is searched."""

    objective: Annotated[
        CoverObjective,
        Param(
            "roles",
            "What is minimized: the number of roles, the weighted assignments, or the codelength.",
            '"roles": the fewest atoms and, among covers with as many, few assignments. "assignments": weighted '
            'structural complexity, the sum of roles, user assignments and permission assignments. "codelength": the '
            "bits that describe atoms and codes.",
            option="objective",
        ),
    ]
    weights: Annotated[
        Sequence[float],
        Param(
            (1, 1, 1),
            "Weights of a role, of a user assignment and of a permission assignment.",
            'For ``objective="assignments"``.',
            check=_check_weights,
            type="sequence of three numbers, default=(1, 1, 1)",
            option="weights",
        ),
    ]
    direct_weight: Annotated[
        float | None,
        Param(
            None,
            "Weight of a permission granted to a user directly, outside of roles; not allowed by default.",
            'For ``objective="assignments"``.',
            check=lambda name, value: None if value is None else check_not_negative(name, value),
            option="direct-weight",
        ),
    ]
    fixed_atoms: Annotated[
        Any,
        Param(
            None,
            "Roles that are known, as a table with one row per role: they are kept as they are, and come first.",
            "Columns that have names are matched by name. A row gets those of them all of whose ones it has, and "
            "few that cover as much as they can; other roles are found for the rest.",
            check=lambda name, value: value,
            type="table of roles x features, optional",
            option="fixed",
        ),
    ]
    max_features_per_atom: Annotated[
        int | None,
        Param(None, "Number of features that a role has at most.", minimum=1, option="max-features-per-atom"),
    ]
    apart: Annotated[
        Any,
        Param(
            None,
            "Sets of features, by name or index, of which a role has at most one.",
            "Separation of duties within a role; a user may still have several of them by different roles.",
            check=_check_feature_sets,
            type="list of sets of str or int, optional",
            option="apart",
        ),
    ]
    together: Annotated[
        Any,
        Param(
            None,
            "Sets of features, by name or index, of which a role has all or none.",
            "Every row must have all or none of them too.",
            check=_check_feature_sets,
            type="list of sets of str or int, optional",
            option="together",
        ),
    ]
    max_iter: Annotated[
        int,
        Param(
            100,
            "Maximum number of rounds of the search.",
            "A round takes about a quarter of a second, whatever the size of the table.",
            minimum=1,
            option="max-iter",
        ),
    ]
    max_time: Annotated[
        float | None,
        Param(
            None,
            "Number of seconds after which the search returns the best result so far.",
            "The result then depends on the speed of the machine.",
            check=_check_seconds,
            option="max-time",
        ),
    ]
    callbacks: Annotated[
        Any,
        Param(
            None,
            "Called with each new entry of the history, a `CoverRound`; a callback that returns True ends the search.",
            check=_check_callbacks,
            type="callable or list of callables, optional",
            is_run_setting=True,
        ),
    ]
    verbose: Verbose
    binarize: Binarize
    random_state: RandomState


class BlockKwargs(TypedDict, total=False):
    """Parameters of `bitatoms.inpaint`: the blocks that atoms are learned from."""

    block_sizes: Annotated[
        Sequence[int],
        Param(
            (6, 8),
            "Heights of the square blocks in pixels; the atoms of all sizes are used together.",
            "More sizes take more time.",
            check=_check_sizes,
            type="int or sequence of int, default=(6, 8)",
            option="block-sizes",
        ),
    ]
    stride: Annotated[
        int,
        Param(
            2,
            "Blocks begin every this many pixels; 1 takes four times as long as 2.",
            minimum=1,
            option="stride",
        ),
    ]


class DenoiseKwargs(BlockKwargs, total=False):
    """Parameters of `bitatoms.denoise`: the blocks, and the noise."""

    noise: Annotated[
        float | None,
        Param(
            None,
            "Probability that a pixel was flipped, below 0.5; estimated by default.",
            check=lambda name, value: None if value is None else check_noise(name, value),
            option="noise",
        ),
    ]


class RuleKwargs(TypedDict, total=False):
    """Parameters of `BinaryDictionaryLearning.rules`: which rules are listed."""

    min_support: Annotated[
        float,
        Param(
            0.001,
            "Share of the rows that must have antecedent and consequent.",
            check=check_fraction,
            option="min-support",
        ),
    ]
    min_confidence: Annotated[
        float,
        Param(
            0.2,
            "Share of the rows with the antecedent that must have the consequent.",
            check=check_fraction,
            option="min-confidence",
        ),
    ]
    min_lift: Annotated[
        float,
        Param(
            1.5,
            "How many times as frequent the consequent must be in the rows with the antecedent as in all rows.",
            check=check_not_negative,
            option="min-lift",
        ),
    ]


class PeerKwargs(TypedDict, total=False):
    """Parameters of `bitatoms.role_report`: which users are compared, and what counts as a difference."""

    min_peers: Annotated[
        int,
        Param(
            5,
            "Number of other users that a role must have for its users to be compared with them.",
            minimum=1,
            option="min-peers",
        ),
    ]
    min_share: Annotated[
        float,
        Param(
            0.9,
            "Share of the other users of a role who must lack a permission that a user has, or have one that it lacks.",
            check=check_fraction,
            option="min-share",
        ),
    ]


def declarations(kind: Any) -> dict[str, tuple[Any, Param]]:
    """Return the type and the declaration of each field of `Options` (or of a TypedDict), by name."""
    return _declared(kind)


def flat_declarations(kind: type[Options]) -> dict[str, tuple[Any, Param]]:
    """Return the declarations of `Options`; the fields of nested options take the place of the field that has them."""
    flat: dict[str, tuple[Any, Param]] = {}
    for name, declared in declarations(kind).items():
        inner = _nested(declared)
        flat |= {name: declared} if inner is None else declarations(inner)
    return flat


def options_kind(annotation: Any) -> type[Options] | None:
    """Return the `Options` that a type allows, if any."""
    kinds = (part for part in _alternatives(annotation) if isinstance(part, type) and issubclass(part, Options))
    return next(kinds, None)


def _default(options: Options, name: str) -> Any:
    """Return the default of a field."""
    return declarations(type(options))[name][1].default


def _nested(declared: tuple[Any, Param]) -> type[Options] | None:
    """Return the `Options` that a parameter holds if it is given at all."""
    annotation, param = declared
    return options_kind(annotation) if param.default is None else None


def nested_declarations(kind: type[Options]) -> dict[str, tuple[Any, Param]]:
    """Return the declarations of `Options` and of nested ones, by name as in `Options.get_params`: ``outer__inner``."""
    nested = {}
    for name, declared in declarations(kind).items():
        inner = options_kind(declared[0])
        nested[name] = declared
        if inner is not None:
            nested |= {f"{name}__{each}": own for each, own in declarations(inner).items()}
    return nested


@functools.cache
def _declared(kind: Any) -> dict[str, tuple[Any, Param]]:
    hints = get_type_hints(kind, include_extras=True)
    if issubclass(kind, Options):
        return {each.name: (hints[each.name], each.metadata["param"]) for each in fields(kind)}
    return {name: get_args(hint) for name, hint in hints.items()}


def choices(annotation: Any) -> tuple[str, ...]:
    """Return the strings that a type allows."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return tuple(word for part in _alternatives(annotation) if get_origin(part) is Literal for word in get_args(part))


def with_defaults(kind: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all parameters of a TypedDict: those given, and the defaults of the others."""
    declared = declarations(kind)
    for name in given:
        if name not in declared:
            raise TypeError(f"got an unexpected keyword argument {name!r}")
    return {name: given.get(name, param.default) for name, (_, param) in declared.items()}


def select(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the parameters that a TypedDict declares."""
    return {name: values[name] for name in declarations(kind)}


def check(name: str, value: Any, declared: tuple[Any, Param]) -> Any:
    """Return the value of a parameter, checked against its declaration."""
    annotation, param = declared
    if param.check is not None:
        return param.check(name, value)
    types, words, kind = _alternatives(annotation), choices(annotation), options_kind(annotation)
    if (value is None and NoneType in types) or (kind is not None and isinstance(value, kind)):
        return value
    if kind is not None and not words:
        raise InputError(Parameter(name), f" must be {kind.__name__}(...) or None, not {value!r}")
    if words and (int not in types or isinstance(value, str)):
        also = "an integer" if int in types else None if kind is None else f"{kind.__name__}(...)"
        check_choice(name, value, words, also)
        return value
    return check_int(name, value, param.minimum) if int in types else value


def checked(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a TypedDict, each checked against its declaration."""
    return {name: check(name, values[name], declared) for name, declared in declarations(kind).items()}


_Fields = ParamSpec("_Fields")
_Kind = TypeVar("_Kind", bound=Options)
_First = TypeVar("_First")
_Second = TypeVar("_Second")
_Result = TypeVar("_Result")
_Class = TypeVar("_Class")


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

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return _taking_fields(function, self._kind, self._kind)


class with_values(Generic[_Fields]):
    """Let the constructor of an estimator take the fields of `Options`, and pass it their values, unchecked, as a dict.

    scikit-learn requires that a constructor stores parameters as they are; `fit` checks them.
    """

    def __init__(self, kind: Callable[_Fields, Options]) -> None:
        self._kind: Any = kind

    def __call__(
        self, function: Callable[[_First, dict[str, Any]], None]
    ) -> Callable[Concatenate[_First, _Fields], None]:
        defaults = {name: param.default for name, (_, param) in declarations(self._kind).items()}
        return _taking_fields(function, self._kind, lambda **given: defaults | given)


def _taking_fields(function: Callable[..., Any], kind: type[Options], collect: Callable[..., Any]) -> Any:
    """Return a function with the fields of `Options` as parameters, which it collects as its last argument."""
    *own, _ = inspect.signature(function).parameters.values()
    by_name = {each.name: each for each in fields(cast(Any, kind))}
    listed = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY if by_name[name].kw_only else inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=param.default,
            annotation=annotation,
        )
        for name, (annotation, param) in declarations(kind).items()
    ]
    listed.sort(key=lambda parameter: parameter.kind)  # those that may be passed by position come first
    signature = inspect.Signature([*own, *listed])

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        try:
            values = signature.bind(*args, **given).arguments
        except TypeError as error:
            raise TypeError(f"{function.__qualname__}() {error}{_advice(kind, given)}") from None
        first = [values.pop(parameter.name, parameter.default) for parameter in own]
        return function(*first, collect(**values))

    call.__signature__, call.kind = signature, kind  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in signature.parameters.values()}
    if function.__doc__:
        described = "\n".join(_described(each.name, *declarations(kind)[each.name]) for each in listed)
        call.__doc__ = inspect.cleandoc(function.__doc__).replace("{parameters}", described)
    return call


def _advice(kind: type[Options], given: Iterable[str]) -> str:
    """Return where arguments belong that are not fields of `Options`, but of nested ones."""
    declared = declarations(kind)
    nested = {name: inner for name, (annotation, _) in declared.items() if (inner := options_kind(annotation))}
    for outer, inner in nested.items():
        for name in given:
            if name not in declared and name in declarations(inner):
                owner = f"bitatoms.{inner.__name__}"
                return f"; {name} is a parameter of {owner}: {outer}={owner}({name}=...)"
    return ""


def with_documentation(cls: type[_Class]) -> type[_Class]:
    """Write the parameters of `Options`, or of an estimator that takes them, into the docstring of the class."""
    kind = getattr(cls.__init__, "kind", cls)
    described = "\n".join(_described(name, *declared) for name, declared in declarations(kind).items())
    cls.__doc__ = inspect.cleandoc(cls.__doc__ or "").replace("{parameters}", described)
    return cls


def documented(kind: type) -> Callable[[_Documented], _Documented]:
    """Show the parameters of a TypedDict in the signature of a function, or of a class and its constructor.

    In the docstring, their documentation takes the place of ``{parameters}``.
    """

    def decorate(function: _Documented) -> _Documented:
        target: Any = vars(function)["__init__"] if isinstance(function, type) else function
        own = inspect.signature(target)
        declared = declarations(kind)
        explicit = [p for p in own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        listed = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=param.default, annotation=annotation)
            for name, (annotation, param) in declared.items()
            if name not in own.parameters
        ]
        target.__signature__ = own.replace(parameters=[*explicit, *listed])
        if function.__doc__:
            described = "\n".join(_described(name, *each) for name, each in declared.items())
            function.__doc__ = inspect.cleandoc(function.__doc__).replace("{parameters}", described)
        return function

    return decorate


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    """Return the types of a union, or the type alone."""
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def _described(name: str, annotation: Any, param: Param) -> str:
    """Return the entry of a parameter in a numpydoc section."""
    lines = textwrap.wrap(f"{param.help} {param.details}", _WIDTH, break_long_words=False, break_on_hyphens=False)
    return "\n    ".join([f"{name} : {param.type or _type_text(annotation, param.default)}", *lines])


def _type_text(annotation: Any, default: Any) -> str:
    """Return a type and a default as numpydoc writes them."""
    if get_origin(annotation) is Literal:
        return f"{{{', '.join(map(_quoted, get_args(annotation)))}}}, default={_quoted(default)}"
    names = []
    for part in _alternatives(annotation):
        if get_origin(part) is Literal:
            names += [_quoted(word) for word in get_args(part)]
        elif part is not NoneType:
            names.append("path-like" if get_origin(part) is os.PathLike else part.__name__)
    if NoneType in _alternatives(annotation) and default is not None:
        names.append("None")
    listed = " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    return f"{listed}, optional" if default is None else f"{listed}, default={_quoted(default)}"


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)
