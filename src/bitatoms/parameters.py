"""Parameters, each declared once: type, default, limits, help and documentation.

`factorize`, the estimator and the command line take their signatures, checks, options and documentation from the
declarations here. Each is a field of a `TypedDict`, annotated with a `Param`, so that type checkers know it too.
"""

from __future__ import annotations

import functools
import inspect
import os
import textwrap
from collections.abc import Callable, Iterable, Mapping
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
    check_threshold,
)

Algebra = Literal["xor", "or", "auto", "prefer-or"]
Search = Literal["fast", "thorough", "anytime", "paper"]
ObjectiveName = Literal["auto", "codelength", "errors"]
Update = Literal["mob", "k-prox"]
Coder = Literal["auto", "bmp", "greedy", "exact", "mdl", "beam"]
Missing = Literal["unknown", "zero", "refuse"]
Duplicates = Literal["refuse", "number"]
Absent = Literal["auto", "refuse", "zero", "unknown"]
ImputationMethod = Literal["auto", "atoms", "neighbours", "profiles"]
DeviceChoice = Literal["cpu", "cuda", "auto"]
INITS = ("auto", "samples", "bernoulli", "spread", "greedy")

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
    is_common : bool
        Whether ``--help`` describes its option; ``--help-all`` describes all options.
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
    is_common: bool = False


class Options:
    """Parameters of one feature: a frozen dataclass whose fields are declared by `option`, checked when it is created.

    A subclass, decorated with ``@dataclass(frozen=True, kw_only=True)``, is both the declaration, from which
    signatures, documentation and command-line options follow, and the value that the code uses.
    """

    def __post_init__(self) -> None:
        for name, declared in declarations(type(self)).items():
            object.__setattr__(self, name, check(name, getattr(self, name), declared))

    @classmethod
    def from_flat(cls, values: Mapping[str, Any]) -> Self:
        """Return options from fields by name, those of nested options among them, as on the command line."""
        flat, own = dict(values), {}
        for name, declared in declarations(cls).items():
            inner = _nested(declared)
            if inner is not None:
                own[name] = inner(**{each: flat.pop(each) for each in declarations(inner) if each in flat})
        return cls(**flat, **own)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the fields by name, as scikit-learn's estimators do, so that grids can vary them."""
        return {name: getattr(self, name) for name in declarations(type(self))}

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
    is_common: bool = False,
) -> Any:
    """Declare a parameter as a field of `Options`; see `Param` for the arguments."""
    param = Param(
        default, help, details, minimum, check, type, option, is_run_setting, formats, is_remembered, is_common
    )
    return field(default=default, metadata={"param": param})


def declared_in(kind: type[Options], name: str, **changes: Any) -> Any:
    """Declare a parameter as it is declared in other `Options`, apart from these changes."""
    param = replace(declarations(kind)[name][1], **changes)
    return field(default=param.default, metadata={"param": param})


def _check_init(name: str, value: Any) -> Any:
    """Check the name of an initialization; atoms are checked when they are used."""
    if value is None or isinstance(value, (str, Real)):
        check_choice(name, value, INITS, "atoms, or a pair (atoms, codes)")
    return value


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


def _check_costs(name: str, value: Any) -> Any:
    """Check the costs of errors: numbers of at least 1; how many are needed is checked when a table is known."""
    import numpy as np  # not needed for help

    costs = list(value.values()) if isinstance(value, Mapping) else value
    try:
        numbers = np.asarray(costs, np.float64)
    except (TypeError, ValueError):
        numbers = np.array(np.nan)
    if numbers.ndim > 1 or isinstance(value, (str, bool)) or not (numbers >= 1).all():
        raise InputError(
            Parameter(name),
            f" must be 1 or more, a number or one per feature, not {value!r}; to make one kind of error cheaper, raise "
            "the cost of the other",
        )
    return value if isinstance(value, Mapping) else float(numbers) if numbers.ndim == 0 else numbers


def _check_finite_costs(name: str, value: Any) -> Any:
    """Check the costs of errors that cannot be forbidden."""
    import numpy as np  # not needed for help

    value = _check_costs(name, value)
    if np.isinf(list(value.values()) if isinstance(value, Mapping) else value).any():
        raise InputError(
            Parameter(name), " must be finite: a factorization cannot be kept from missing ones; use ",
            Parameter("bitatoms.cover"), " for an exact cover, or pass a large finite cost",
        )  # fmt: skip
    return value


def _check_fixed_atoms(name: str, value: Any) -> Any:
    """Check that atoms are a table; its cells are checked when the table to learn from is known."""
    if isinstance(value, (str, Real)):
        raise InputError(Parameter(name), f" must be an array or a table of atoms, or None, not {value!r}")
    return value


def _check_bool(name: str, value: Any) -> bool:
    """Return a boolean."""
    if not isinstance(value, bool) and type(value).__name__ != "bool":  # NumPy's is called bool, too
        raise InputError(Parameter(name), f" must be True or False, not {value!r}")
    return bool(value)


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


NComponents = Annotated[
    int | Literal["mdl"],
    Param(
        "mdl",
        'Number of atoms; "mdl" chooses the number with the shortest codelength.',
        'With a number, "fast" and "thorough" return exactly this many atoms, each used by some sample. They '
        "return fewer, with a warning, only if the data cannot use more.",
        minimum=1,
        option="atoms",
    ),
]

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


NJobs = Annotated[
    int | None,
    Param(
        None,
        "Number of threads; -1 uses all processors.",
        "None is 1. The result does not depend on it.",
        option="jobs",
        is_run_setting=True,
    ),
]

ComputeDevice = Annotated[
    DeviceChoice,
    Param(
        "cpu",
        "Where rows are processed: cpu, cuda (an NVIDIA GPU) or auto; the result has the same bits on every device.",
        '"cuda" needs a CUDA device and CuPy (``pip install "bitatoms[cuda12]"`` or ``"bitatoms[cuda13]"``). "auto" is '
        "a CUDA device if there is one and the table is large enough to gain: at least 2**27 cells, or not in memory. "
        "Otherwise it is the CPU, and the log states why. See docs/tutorials/gpu.md.",
        option="device",
        is_run_setting=True,
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

AbsentColumns = Annotated[
    Absent,
    Param(
        "auto",
        "Columns of the model that a table of new rows lacks: an error, 0, or unknown cells.",
        '"auto" is "unknown" in genotypes and expression data (AnnData), and otherwise "refuse". In lists of items '
        "(transactions), absent items are always 0. See docs/reference/files.md.",
        option="absent",
    ),
]


class SearchKwargs(TypedDict, total=False):
    """Parameters that decide what a search finds."""

    algebra: Annotated[
        Algebra,
        Param(
            "xor",
            "How the atoms of a row are combined; auto keeps the shorter, prefer-or OR unless XOR is 5% shorter.",
            '"xor": a feature is one if an odd number of the atoms of a sample have it. "or": if any of them has it; '
            'the features of an atom then come together. "auto" tries both and keeps the shorter codelength. '
            '"prefer-or" tries both and keeps OR, which is easier to read, unless XOR is better by more than 5 %: in '
            "codelength, or in wrong cells where these are minimized (see docs/how-it-works/xor-and-or.md).",
            option="algebra",
        ),
    ]
    search: Annotated[
        Search,
        Param(
            "fast",
            "Search method; thorough takes two to three times as long as fast, anytime as long as it is given.",
            '"fast" grows atoms, fits them together and drops them, judged by the codelength (see '
            'docs/how-it-works/search.md). "thorough" does the same with more starts, beam coding and random restarts '
            'of atoms. "anytime" restarts, recombines and perturbs until ``max_time`` (60 seconds, unless ``max_time`` '
            'or ``max_iter`` is given), or until that gains nothing. "paper" runs the published methods, with their '
            "mistakes corrected.",
            option="search",
        ),
    ]
    objective: Annotated[
        ObjectiveName,
        Param(
            "auto",
            "What the search minimizes: the codelength, or the number of wrong cells.",
            '"auto" is the codelength with ``n_components="mdl"``, and the number of wrong cells otherwise.',
        ),
    ]
    update: Annotated[
        Update,
        Param(
            "mob",
            "How atoms are updated: Method of Binary Directions, or K-PROX.",
            '"mob" sets each atom to the majority of its samples (Section III-B of the paper): one atom at a '
            'time with ``search="paper"``, all together otherwise. "k-prox", only with ``search="paper"``, fits each '
            'atom and its samples together by Proximus (Section III-C). With ``coder="exact"``, "mob" becomes the '
            "exact step: each feature takes the best of all possible columns of the atoms.",
        ),
    ]
    coder: Annotated[
        Coder,
        Param(
            "auto",
            "How codes are found, in the search and in ``transform``; auto depends on the search.",
            'With ``search="paper"``: "bmp" (the default) is Binary Matching Pursuit with the association accuracy of '
            'the paper; "greedy" selects by plain gain, which is better in almost all cases; "exact" tries all codes, '
            "for at most 16 atoms. With the other searches and the codelength as objective: "
            '"mdl" (the default of "fast") selects by bits of codelength gained and swaps atoms where that helps; '
            '"beam" (the default of "thorough" and "anytime") follows several partial codes at a time. For the '
            'fewest wrong cells, these searches code exactly up to 16 atoms and greedily above. With "auto", '
            '``transform`` uses "beam" where the search uses "mdl" or "greedy", because it has no codes to start from, '
            "and the search ends with "
            "it too.",
        ),
    ]
    init: Annotated[
        Any,
        Param(
            "auto",
            "The atoms to start from.",
            '"samples": distinct nonzero rows drawn at random. "bernoulli": random bits. "spread": rows far from each '
            'other. "greedy": one atom at a time, each fitted to the errors that the previous ones leave; this takes '
            "longer and ends with the fewest wrong cells. An array of atoms, or a pair (atoms, codes), is used as it "
            "is; if it has fewer atoms than ``n_components``, others are grown from the errors that these leave. "
            'With "auto", "fast" and "thorough" try several starts; with "paper" it is "samples", or "greedy" with '
            '``coder="exact"``.',
            check=_check_init,
            type=f"{{{', '.join(map(repr, INITS))}}}, array of atoms, or pair (atoms, codes), default='auto'",
        ),
    ]
    fixed_atoms: Annotated[
        Any,
        Param(
            None,
            "Known atoms: they stay as they are, and others are learned beside them.",
            "They come first in the result, in their order, also if no sample uses them, and count as atoms of "
            "``n_components`` and ``max_components``. Columns of a table with names are matched by name. See "
            "docs/tutorials/given-atoms.md.",
            check=_check_fixed_atoms,
            type="array-like, Table or BitMatrix of shape (n_atoms, n_features), optional",
            option="fixed",
        ),
    ]
    bias: Annotated[
        bool,
        Param(
            True,
            "Whether columns that are one in most rows may be a bias, which all samples have.",
            "Without a bias, a table is codes times atoms, and atoms that most samples use take its place. With a "
            'given number of atoms and the fewest wrong cells, and with ``search="paper"``, there is none in any case.',
            check=_check_bool,
            option="bias",
        ),
    ]
    max_features_per_atom: Annotated[
        int | None,
        Param(
            None,
            "Maximum number of features (ones) of an atom.",
            "This limit and the next three hold for atoms that are learned, not for ``fixed_atoms``.",
            minimum=1,
            option="max-features-per-atom",
        ),
    ]
    min_samples_per_atom: Annotated[
        int | None,
        Param(
            None,
            "Minimum number of training rows that use an atom.",
            "In a stream, rows count as much as they are remembered (see ``forget``).",
            minimum=1,
            option="min-samples-per-atom",
        ),
    ]
    apart: Annotated[
        Any,
        Param(
            None,
            "Sets of features of which an atom has at most one (separation of duty).",
            'By name or index, such as ``[["create order", "pay order"]]``.',
            check=_check_feature_sets,
            type="list of sets of features, optional",
            option="apart",
        ),
    ]
    together: Annotated[
        Any,
        Param(
            None,
            "Sets of features of which an atom has all or none.",
            "By name or index. Sets that share a feature are one set.",
            check=_check_feature_sets,
            type="list of sets of features, optional",
            option="together",
        ),
    ]
    init_density: Annotated[
        float, Param(0.5, 'Fraction of ones in atoms drawn with ``init="bernoulli"``.', check=check_fraction)
    ]
    n_init: Annotated[
        int | Literal["auto"],
        Param("auto", "Number of starts; the best result is kept.", '"auto" is 1.', minimum=1),
    ]
    start_components: Annotated[
        int | Literal["auto"],
        Param(
            "auto",
            'Number of atoms that "mdl" starts with.',
            '"auto" tries several numbers. With ``search="paper"`` it is 16 as in the paper, or 1 with '
            '``coder="exact"``, and the search never returns fewer atoms.',
        ),
    ]
    max_components: Annotated[
        int | None, Param(None, 'Maximum number of atoms that "mdl" may return.', option="max-atoms")
    ]
    patience: Annotated[
        int | Literal["auto"] | None,
        Param(
            "auto",
            'Number of rounds in a row without improvement after which "mdl" stops.',
            'With "fast" and "thorough", a round that gains very little counts as one without improvement. "auto" is '
            '3, or 1 with ``search="paper"`` as in the paper. None continues to ``max_components`` with "paper" and '
            "to ``max_iter`` otherwise.",
            minimum=1,
        ),
    ]
    max_atoms_per_sample: Annotated[
        int | None,
        Param(
            None,
            "Once a sample uses this many atoms, coding can only remove atoms from it.",
            "The limit h_max of Algorithm 3.",
            minimum=1,
        ),
    ]
    residual_limit: Annotated[
        int,
        Param(
            0,
            "A sample with at most this many wrong cells is not coded further.",
            "The limit w_max of Algorithm 3. It is ignored if the requested number of atoms could not be used "
            "otherwise.",
        ),
    ]
    false_negative_cost: Annotated[
        float | Mapping[str, float],
        Param(
            1.0,
            "How much worse a missed one is than by its code, 1 or more.",
            "Each takes ``8 * (cost - 1)`` bits more than its code in what the search minimizes. One cost, one per "
            "feature, or a mapping of names of features to costs, 1 for the others. Costs require OR and the "
            "codelength as objective, and no bias is learned. To miss no one at all, use `bitatoms.cover`. See "
            "docs/tutorials/roles.md.",
            check=_check_finite_costs,
            type="float, array-like of shape (n_features,) or dict",
            option="false-negative-cost",
        ),
    ]
    false_positive_cost: Annotated[
        float | Mapping[str, float],
        Param(
            1.0,
            "How much worse an added one is than by its code, 1 or more; inf forbids added ones.",
            "As ``false_negative_cost``. With an infinite cost, a sample uses only atoms all of whose features it "
            "has (factorization from below).",
            check=_check_costs,
            type="float, array-like of shape (n_features,) or dict",
            option="false-positive-cost",
        ),
    ]
    max_iter: Annotated[
        int,
        Param(
            1000,
            "Maximum number of rounds of the search.",
            'With a given number of atoms, a round improves one state by trials. ``search="anytime"`` has no limit by '
            "default; if another number is given, its result does not depend on the time. "
            'With ``search="paper"``: maximum number of iterations for each number of atoms. They converge '
            "exactly, mostly within 5 to 40 iterations.",
            minimum=1,
        ),
    ]
    max_time: Annotated[
        float | None,
        Param(
            None,
            "Number of seconds after which the search returns the best result so far.",
            "The fit ends at most 10 % and 2 seconds later; compiling kernels on a new machine, and coding all rows "
            "for ``factorize``, may take longer. If there is no time for a pass over all rows of a large table, the "
            "model is that of the rows searched. The result depends on the speed of the machine.",
            check=_check_seconds,
            option="max-time",
        ),
    ]
    search_rows: Annotated[
        int | Literal["auto"] | None,
        Param(
            "auto",
            "Number of rows to search; the result is then refined on all rows.",
            'If X has more rows than this, "fast" and "thorough" search a subsample of this size, drawn with '
            "``random_state``. Then, in passes over all rows, they code the rows, fit the atoms to all of them and "
            'drop the atoms that cost more bits than they save (see docs/tutorials/scale.md). "auto" is 65536; if that '
            "many rows would have more than 2**31 bits (2**33 if they are searched by windows of columns), it is "
            "smaller, but at least 4096. Tables that are searched by their ones are searched whole. None searches all "
            "rows.",
            minimum=2,
            option="search-rows",
        ),
    ]
    callbacks: Annotated[
        Any,
        Param(
            None,
            "Called with each new entry of the history, a `Round`; a callback that returns True ends the search.",
            check=_check_callbacks,
            type="callable or list of callables, optional",
            is_run_setting=True,
        ),
    ]


class FactorizeKwargs(SearchKwargs, total=False):
    """Parameters of `bitatoms.factorize`: those of the search, and how it is run."""

    checkpoint: Annotated[
        str | os.PathLike[str] | None,
        Param(
            None,
            "Folder for the progress of a fit, so that it can be resumed.",
            "The states of a search are written once a minute. If only a subsample is searched, the passes "
            "over all rows follow: the folder is written after each of them, and every half minute during a pass.",
            option="checkpoint",
            is_run_setting=True,
        ),
    ]
    resume: Annotated[
        bool,
        Param(
            False,
            "Resume from the checkpoint, if there is one: a search ends no worse, passes over rows with the same bits.",
            "Only the same call with the same rows can be resumed; ``max_time`` may differ. A search that it has ended "
            "continues.",
            option="resume",
            is_run_setting=True,
        ),
    ]
    n_jobs: NJobs
    device: ComputeDevice
    verbose: Verbose
    binarize: Binarize
    max_memory: Annotated[
        int | str | None,
        Param(
            None,
            "Memory limit for rows, codes and counts, such as 500MB or 2GiB.",
            "A number of bytes, or text with a unit. If the rows that are searched by default do not fit, fewer are "
            "searched, at least 1024 of them; apart from that, it does not change the result. With None, passes over "
            "a packed store take 512 MiB, and a search takes what it needs. Python, the libraries and "
            "the compiled kernels take up to 350 MB in addition.",
            option="max-memory",
            is_run_setting=True,
        ),
    ]
    random_state: RandomState


class EstimatorKwargs(FactorizeKwargs, total=False):
    """Parameters of `bitatoms.BinaryDictionaryLearning`: those of `factorize`, of new rows, stores and streams."""

    absent: AbsentColumns
    forget: Annotated[
        float,
        Param(
            0.0,
            "Fraction of their weight that earlier rows lose with every row that ``partial_fit`` learns from.",
            "1e-4 remembers about the last 10 000 rows; 0 forgets nothing.",
            check=check_fraction,
        ),
    ]


class ClassifierKwargs(SearchKwargs, total=False):
    """Parameters of `bitatoms.BinaryDictionaryClassifier`: those of the search for each class, and of the classes."""

    n_models: Annotated[
        int,
        Param(
            8,
            "Number of models per class; the bits of a sample are the mean over them.",
            "Each is learned from a bootstrap sample of the samples of the class: as many, drawn with replacement. "
            "With 1, a single model is learned from all of them, which takes less time and leads to more errors.",
            minimum=1,
        ),
    ]
    priors: Annotated[
        Any,
        Param(
            None,
            "Probabilities of the classes, in the order of ``classes_``.",
            "By default the shares of the classes in ``fit``.",
            type="array-like of shape (n_classes,), optional",
        ),
    ]
    n_jobs: NJobs
    device: ComputeDevice
    verbose: Verbose
    binarize: Binarize
    random_state: RandomState
    absent: AbsentColumns


class ImputerKwargs(SearchKwargs, total=False):
    """Parameters of `bitatoms.BinaryImputer`: those of the search for atoms, and of the profiles."""

    method: Annotated[
        ImputationMethod,
        Param(
            "auto",
            "What predicts unknown cells: atoms, similar rows (neighbours), or profiles of similar rows.",
            '"atoms": a model as that of `BinaryDictionaryLearning`. "neighbours": rows vote, similar ones with more '
            "weight; only the columns near a cell are compared if that predicts better, as along a genome. "
            '"profiles": groups of similar rows, each with the shares of ones in its columns. Neighbours and profiles '
            'are faster, and better where no few atoms explain the table. "auto" hides a tenth of the known cells, '
            "learns all three from the others, and keeps the one that predicts the hidden cells with the lowest log "
            "loss. With more than 300 000 known cells, neighbours are used, unless their log loss is above 0.1 and "
            "atoms predict cells of 128 rows and 64 columns with a log loss lower by at least 5 %.",
        ),
    ]
    n_profiles: Annotated[
        int | Literal["auto"],
        Param("auto", "Number of profiles.", '"auto" is one per 20 rows, at most 50.', minimum=1),
    ]
    n_jobs: NJobs
    device: ComputeDevice
    verbose: Verbose
    binarize: Binarize
    random_state: RandomState
    absent: AbsentColumns


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


def _nested(declared: tuple[Any, Param]) -> type[Options] | None:
    """Return the `Options` that a parameter holds if it is given at all."""
    annotation, param = declared
    return options_kind(annotation) if param.default is None else None


@functools.cache
def _declared(kind: Any) -> dict[str, tuple[Any, Param]]:
    hints = get_type_hints(kind, include_extras=True)
    if issubclass(kind, Options):
        return {each.name: (hints[each.name], each.metadata["param"]) for each in fields(kind)}
    return {name: get_args(hint) for name, hint in hints.items()}


def declaration(name: str) -> tuple[Any, Param]:
    """Return the type and the declaration of a parameter."""
    return ({"n_components": get_args(NComponents)} | declarations(EstimatorKwargs))[name]


def result_parameters() -> dict[str, tuple[Any, Param]]:
    """Return the parameters of the estimator that decide the result: all but the run settings."""
    declared = {"n_components": get_args(NComponents)} | declarations(EstimatorKwargs)
    return {name: each for name, each in declared.items() if not each[1].is_run_setting}


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
        check_choice(name, value, words, "an integer" if int in types else None)
        return value
    return check_int(name, value, param.minimum) if int in types else value


def checked(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a TypedDict, each checked against its declaration."""
    return {name: check(name, values[name], declared) for name, declared in declarations(kind).items()}


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
            raise TypeError(f"{function.__name__}() {error}") from None
        first = [values.pop(parameter.name, parameter.default) for parameter in own]
        return function(*first, collect(**values))

    call.__signature__ = signature  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in signature.parameters.values()}
    if function.__doc__:
        described = "\n".join(_described(each.name, *declarations(kind)[each.name]) for each in listed)
        call.__doc__ = inspect.cleandoc(function.__doc__).replace("{parameters}", described)
    return call


def documented(kind: type) -> Callable[[_Documented], _Documented]:
    """Show the parameters of a TypedDict in the signature of a function, or of a class and its constructor.

    In the docstring, their documentation takes the place of ``{parameters}``.
    """

    def decorate(function: _Documented) -> _Documented:
        target: Any = vars(function)["__init__"] if isinstance(function, type) else function
        own = inspect.signature(target)
        declared = {"n_components": get_args(NComponents)} if "n_components" in own.parameters else {}
        declared |= declarations(kind)
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
