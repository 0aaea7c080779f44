"""The methods that can be compared: bitatoms, the paper's methods, baselines, and installed third-party programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .. import baselines
from ..api import factorize
from ..baselines.baseline import Baseline, Factors
from ..bits import BitMatrix
from ..errors import InputError, Parameter
from ..search.options import PaperSearch, Update

ERRORS, BITS = "wrong cells", "bits"


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


def all_methods() -> list[Method]:
    """Return all methods, bitatoms first."""
    fewest = "a given number of atoms, fewest"
    return [
        *_searches("", "bitatoms", ERRORS, f"{fewest} wrong cells"),
        *_searches("-bits", "bitatoms for bits", BITS, f"{fewest} bits; may use a bias", objective="codelength"),
        *_searches("-mdl", "bitatoms mdl", BITS, "the number of atoms with the fewest bits; may use a bias"),
        _paper("mob", "MOB", "the paper's method of binary directions"),
        _paper("k-prox", "K-PROX", "the paper's atoms updated by Proximus"),
        _baseline("message-passing", "message passing", baselines.MessagePassing, ERRORS, "Ravanbakhsh et al. 2016"),
        _baseline("nmf", "NMF + thresholds", baselines.ThresholdedNMF, ERRORS, "with thresholds, Zhang et al. 2007"),
        _baseline("nmf-penalty", "NMF + penalty", baselines.PenalizedNMF, ERRORS, "with a penalty, Zhang et al. 2007"),
        _baseline("panda", "PaNDa+", baselines.PandaPlus, BITS, "Lucchese et al. 2014"),
        _baseline(
            "proximus",
            "Proximus",
            baselines.Proximus,
            ERRORS,
            "at most one atom per row, so OR and XOR agree; Koyutürk et al. 2005",
            both_algebras=True,
        ),
        _baseline("asso", "Asso", baselines.Asso, ERRORS, "with all thresholds, Miettinen et al. 2008"),
        _baseline(
            "grecond", "GreConD", baselines.GreConD, "missed ones", "covers no zero, Belohlavek and Vychodil 2010"
        ),
    ]


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


def _searches(suffix: str, name: str, minimizes: str, about: str, **options: Any) -> list[Method]:
    """Return a search of bitatoms in both algebras."""
    return [
        Method(
            f"bitatoms-{algebra}{suffix}",
            name,
            algebra,
            minimizes,
            about,
            _factorizer(algebra=algebra, **options),
            is_bitatoms=True,
            chooses_rank=suffix == "-mdl",
        )
        for algebra in ("or", "xor")
    ]


def _paper(update: Update, name: str, about: str) -> Method:
    """Return a method of the paper, as published."""
    return Method(update, name, "xor", ERRORS, about, _factorizer(search=PaperSearch(update=update)))


def _factorizer(**options: Any) -> Callable[[Task], Factors]:
    """Return a function that runs `factorize`."""

    def run(task: Task) -> Factors:
        n_components: Any = "mdl" if task.rank is None else task.rank
        found = factorize(task.data, n_components, random_state=task.seed, n_jobs=task.n_jobs, **options)
        return Factors(found.atoms, found.codes, found.bias)

    return run


def _baseline(
    key: str, name: str, kind: type[Baseline], minimizes: str, about: str, both_algebras: bool = False
) -> Method:
    """Return a method of `bitatoms.baselines`."""
    seeded = "random_state" in kind().get_params()

    def run(task: Task) -> Factors:
        seed: dict[str, Any] = {"random_state": task.seed} if seeded else {}
        fitted = kind(n_components=task.rank, **seed).fit(task.data)
        return Factors(fitted.components_, fitted.codes_)

    return Method(key, name, kind.algebra, minimizes, about, run, seeded=seeded, both_algebras=both_algebras)
