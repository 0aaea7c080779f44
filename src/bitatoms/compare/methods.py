"""The methods that can be compared: bitatoms, the paper's methods, baselines, and installed third-party programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .. import baselines
from ..api import factorize
from ..baselines.baseline import Baseline, Factors
from ..bits import BitMatrix
from ..errors import InputError, Parameter
from ..search.options import PaperSearch, Update
from .deprecated import renamed_attribute
from .third_party import ThirdParty, installed

ERRORS, BITS = "wrong cells", "bits"
_OLD_FIELDS = {"small": "minimizes", "ours": "is_bitatoms", "chooses": "chooses_rank", "either": "both_algebras"}


class Task(NamedTuple):
    """What a method is run on, and with which settings.

    Attributes
    ----------
    data : BitMatrix
        The table.
    rank : int or None
        Number of atoms; None if the method chooses it.
    seed : int
        Random seed.
    n_jobs : int or None
        Number of threads.
    """

    data: BitMatrix
    rank: int | None
    seed: int
    n_jobs: int | None = None


@dataclass(frozen=True)
class Method:
    """A method, and the function that runs it.

    Attributes
    ----------
    key : str
        Name on the command line and in files.
    name : str
        Name in tables and figures.
    algebra : {"xor", "or"}
        Its algebra.
    minimizes : str
        Its objective.
    about : str
        What it does.
    run : callable
        Takes a `Task`, and returns `Factors`.
    is_bitatoms : bool
        Whether it is a method of bitatoms.
    seeded : bool
        Whether the result depends on the seed.
    chooses_rank : bool
        Whether it takes no number of atoms.
    both_algebras : bool
        Whether it gives each row at most one atom: OR and XOR then agree, and it is ranked in both.
    """

    key: str
    name: str
    algebra: str
    minimizes: str
    about: str
    run: Callable[[Task], Factors] = field(repr=False)
    is_bitatoms: bool = False
    seeded: bool = True
    chooses_rank: bool = False
    both_algebras: bool = False

    small = renamed_attribute("small", "minimizes")
    ours = renamed_attribute("ours", "is_bitatoms")
    chooses = renamed_attribute("chooses", "chooses_rank")
    either = renamed_attribute("either", "both_algebras")

    @property
    def label(self) -> str:
        """Its name with the algebra."""
        return f"{self.name} ({self.algebra_label})"

    @property
    def algebras(self) -> tuple[str, ...]:
        """The algebras that it is ranked in."""
        return ("or", "xor") if self.both_algebras else (self.algebra,)

    @property
    def algebra_label(self) -> str:
        """The algebra as shown: OR, XOR or OR/XOR."""
        return "/".join(self.algebras).upper()


class Contender(Method):
    """Deprecated: `Method` with its old field names."""

    def __init__(self, *values: Any, **named: Any) -> None:
        super().__init__(*values, **{_OLD_FIELDS.get(name, name): value for name, value in named.items()})


def all_methods() -> list[Method]:
    """Return all methods available here: bitatoms first, installed third-party programs last."""
    return [*_bitatoms_methods(), *_paper_methods(), *_baseline_methods(), *map(_third_party_method, installed())]


def select_methods(only: Any = None, leave_out: Any = ()) -> list[Method]:
    """Return the methods of these keys (default: all) without those to leave out; `Method` objects are used as is."""
    available = {method.key: method for method in all_methods()}
    wanted = list(available) if only is None else _as_list("only", only)
    available |= {each.key: each for each in wanted if isinstance(each, Method)}
    keys, excluded = (dict.fromkeys(map(_key, each)) for each in (wanted, _as_list("leave_out", leave_out)))
    for key in (*keys, *excluded):
        if key not in available:
            raise InputError(f"there is no method {key!r}; choose from {', '.join(available)}")
    selected = [available[key] for key in keys if key not in excluded]
    if not selected:
        raise InputError(f"no method is left to compare; choose from {', '.join(available)}")
    return selected


def _as_list(name: str, value: Any) -> list[str | Method]:
    """Return keys or methods as a list; a single one is accepted."""
    single = isinstance(value, (str, Method))
    wanted = [value] if single else list(value) if isinstance(value, Iterable) else None
    if wanted is None or not all(isinstance(each, (str, Method)) for each in wanted):
        raise InputError(Parameter(name), f" is {value!r}; pass the key of a method, such as 'asso', or a list of keys")
    return wanted


def _key(each: str | Method) -> str:
    """Return the key of a method."""
    return each if isinstance(each, str) else each.key


def _bitatoms_methods() -> list[Method]:
    """Return the searches of bitatoms, each in both algebras."""
    variants: tuple[tuple[str, str, str, str, dict[str, Any]], ...] = (
        ("", "bitatoms", ERRORS, "a given number of atoms, fewest wrong cells", {}),
        (
            "-bits",
            "bitatoms for bits",
            BITS,
            "a given number of atoms, fewest bits; may use a bias",
            {"objective": "codelength"},
        ),
        ("-mdl", "bitatoms mdl", BITS, "the number of atoms with the fewest bits; may use a bias", {}),
    )
    return [
        Method(
            key=f"bitatoms-{algebra}{suffix}",
            name=name,
            algebra=algebra,
            minimizes=minimizes,
            about=about,
            run=_factorize_runner(algebra=algebra, **options),
            is_bitatoms=True,
            chooses_rank=suffix == "-mdl",
        )
        for suffix, name, minimizes, about, options in variants
        for algebra in ("or", "xor")
    ]


def _paper_methods() -> list[Method]:
    """Return the methods of the paper, as published."""
    updates: tuple[tuple[Update, str, str], ...] = (
        ("mob", "MOB", "method of binary directions"),
        ("k-prox", "K-PROX", "atoms updated by Proximus"),
    )
    return [
        Method(
            key=update,
            name=name,
            algebra="xor",
            minimizes=ERRORS,
            about=f"the paper's {about}",
            run=_factorize_runner(algebra="xor", search=PaperSearch(update=update)),
        )
        for update, name, about in updates
    ]


def _factorize_runner(**options: Any) -> Callable[[Task], Factors]:
    """Return a function that runs `factorize`."""

    def run(task: Task) -> Factors:
        n_components: Any = "mdl" if task.rank is None else task.rank
        found = factorize(task.data, n_components, random_state=task.seed, n_jobs=task.n_jobs, **options)
        return Factors(found.atoms, found.codes, found.bias)

    return run


def _baseline_methods() -> list[Method]:
    """Return the methods of `bitatoms.baselines`."""
    seeded = (
        ("message-passing", "message passing", ERRORS, "Ravanbakhsh et al. 2016", baselines.MessagePassing),
        ("nmf", "NMF + thresholds", ERRORS, "NMF with thresholds, Zhang et al. 2007", baselines.ThresholdedNMF),
        ("nmf-penalty", "NMF + penalty", ERRORS, "NMF with a penalty, Zhang et al. 2007", baselines.PenalizedNMF),
        ("panda", "PaNDa+", BITS, "Lucchese et al. 2014", baselines.PandaPlus),
        (
            "proximus",
            "Proximus",
            ERRORS,
            "at most one atom per row, so OR and XOR agree; Koyutürk et al. 2005",
            baselines.Proximus,
        ),
    )
    deterministic = (
        ("asso", "Asso", ERRORS, "with all thresholds, Miettinen et al. 2008", baselines.Asso),
        ("grecond", "GreConD", "missed ones", "covers no zero, Belohlavek and Vychodil 2010", baselines.GreConD),
    )
    return [
        Method(
            key=key,
            name=name,
            algebra=estimator.algebra,
            minimizes=minimizes,
            about=about,
            run=_baseline_runner(estimator, is_seeded),
            seeded=is_seeded,
            both_algebras=estimator is baselines.Proximus,
        )
        for is_seeded, group in ((True, seeded), (False, deterministic))
        for key, name, minimizes, about, estimator in group
    ]


def _baseline_runner(estimator: type[Baseline], seeded: bool) -> Callable[[Task], Factors]:
    """Return a function that fits an estimator of `bitatoms.baselines`."""

    def run(task: Task) -> Factors:
        options: dict[str, Any] = {"random_state": task.seed} if seeded else {}
        fitted = estimator(n_components=task.rank, **options).fit(task.data)
        return Factors(fitted.components_, fitted.codes_)

    return run


def _third_party_method(program: ThirdParty) -> Method:
    """Return a third-party program as a method."""

    def run(task: Task) -> Factors:
        assert task.rank is not None  # these programs do not choose
        return program.run(task.data.to_dense(), task.rank, task.seed)

    key = program.name.lower().replace(" ", "-")
    return Method(key, program.name, program.algebra, ERRORS, f"{program.package}, as installed", run)


def default_ranks(shape: tuple[int, int]) -> Sequence[int]:
    """Return the numbers of atoms to try on a table: at most half its rows and columns."""
    return [rank for rank in (2, 4, 8, 16) if rank <= min(shape) // 2] or [1]
