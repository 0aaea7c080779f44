"""Who is compared: bitatoms in several ways, the paper's methods, those of others, and programs installed beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .. import baselines
from ..api import factorize
from ..bits import BitMatrix
from ..parameters import NComponents
from .third_party import ThirdParty, installed

ERRORS, BITS = "wrong cells", "bits"


class Factors(NamedTuple):
    """What a contender finds: tables of 0 and 1 in any form."""

    atoms: Any  # (n_atoms, n_features)
    codes: Any  # (n_samples, n_atoms)
    bias: Any = None  # (n_features,), or None


class Task(NamedTuple):
    """What a contender is asked for."""

    data: BitMatrix
    rank: int | None  # None: it chooses itself
    seed: int
    n_jobs: int | None = None


@dataclass(frozen=True)
class Method:
    """A method with all that it needs to be run."""

    key: str  # as it is called on the command line
    name: str
    algebra: str
    small: str  # what it makes small
    about: str
    run: Callable[[Task], Factors] = field(repr=False)
    ours: bool = False
    seeded: bool = True  # another seed may give another result
    chooses: bool = False  # it chooses the number of atoms, and is not asked for one
    either: bool = False  # a row uses one atom at most: OR and XOR give the same, and it stands in both

    @property
    def label(self) -> str:
        """Its name with the algebra."""
        return f"{self.name} ({self.algebra_label})"

    @property
    def algebras(self) -> tuple[str, ...]:
        """Those in which its product is what was counted."""
        return ("or", "xor") if self.either else (self.algebra,)

    @property
    def algebra_label(self) -> str:
        """The algebra as it is read."""
        return "/".join(self.algebras).upper()


def all_methods() -> list[Method]:
    """All there are here, bitatoms first and programs that are installed beside it last."""
    return [*_bitatoms(), *_paper(), *_others(), *map(_elsewhere, installed())]


def chosen(only: Any = None, leave_out: Any = ()) -> list[Method]:
    """Those of these names, or all, less those to leave out; one that is given as it is need not be in the list."""
    there = {contender.key: contender for contender in all_methods()}
    wanted = list(there) if only is None else _several("only", only)
    there |= {each.key: each for each in wanted if isinstance(each, Method)}
    keys, unwanted = (dict.fromkeys(map(_key, some)) for some in (wanted, _several("leave_out", leave_out)))
    for key in (*keys, *unwanted):
        if key not in there:
            raise ValueError(f"there is no contender {key!r}; there are {', '.join(there)}")
    picked = [there[key] for key in keys if key not in unwanted]
    if not picked:
        raise ValueError(f"no contender is left to compare; there are {', '.join(there)}")
    return picked


def _several(name: str, given: Any) -> list[str | Method]:
    """Names or contenders, of which one may stand alone."""
    alone = isinstance(given, (str, Method))
    wanted = [given] if alone else list(given) if isinstance(given, Iterable) else None
    if wanted is None or not all(isinstance(each, (str, Method)) for each in wanted):
        raise ValueError(f"{name} is {given!r}; give the name of a contender, such as 'asso', or several in a list")
    return wanted


def _key(each: str | Method) -> str:
    """What a contender is called."""
    return each if isinstance(each, str) else each.key


def _bitatoms() -> list[Method]:
    """The searches of bitatoms, in both algebras."""
    ways: tuple[tuple[str, str, str, str, dict[str, Any]], ...] = (
        ("", "bitatoms", ERRORS, "a number of atoms with the fewest wrong cells", {}),
        (
            "-bits",
            "bitatoms for bits",
            BITS,
            "a number of atoms with the fewest bits; may use a bias",
            {"objective": "codelength"},
        ),
        ("-mdl", "bitatoms mdl", BITS, "as many atoms as give the fewest bits; may use a bias", {}),
    )
    return [
        Method(
            key=f"bitatoms-{algebra}{ending}",
            name=name,
            algebra=algebra,
            small=small,
            about=about,
            run=_factorizer(algebra=algebra, **how),
            ours=True,
            chooses=ending == "-mdl",
        )
        for ending, name, small, about, how in ways
        for algebra in ("or", "xor")
    ]


def _paper() -> list[Method]:
    """The methods of the paper, as published."""
    updates = (("mob", "MOB", "method of binary directions"), ("k-prox", "K-PROX", "atoms and their rows by Proximus"))
    return [
        Method(
            update, name, "xor", ERRORS, f"the paper's {about}", _factorizer(search="paper", coder="bmp", update=update)
        )
        for update, name, about in updates
    ]


def _factorizer(**how: Any) -> Callable[[Task], Factors]:
    """What runs `factorize`."""

    def run(task: Task) -> Factors:
        n_components: NComponents = "mdl" if task.rank is None else task.rank
        found = factorize(task.data, n_components, random_state=task.seed, n_jobs=task.n_jobs, **how)
        return Factors(found.atoms, found.codes, found.bias)

    return run


def _others() -> list[Method]:
    """The methods of others, written from their papers."""
    seeded = (
        ("message-passing", "message passing", ERRORS, "Ravanbakhsh et al. 2016", baselines.MessagePassing),
        ("nmf", "NMF + thresholds", ERRORS, "NMF cut to 0 and 1, Zhang et al. 2007", baselines.ThresholdedNMF),
        ("nmf-penalty", "NMF + penalty", ERRORS, "NMF driven to 0 and 1, Zhang et al. 2007", baselines.PenalizedNMF),
        ("panda", "PaNDa+", BITS, "Lucchese et al. 2014", baselines.PandaPlus),
        (
            "proximus",
            "Proximus",
            ERRORS,
            "one atom a row: OR and XOR are the same; Koyutürk et al. 2005",
            baselines.Proximus,
        ),
    )
    settled = (
        ("asso", "Asso", ERRORS, "with all thresholds, Miettinen et al. 2008", baselines.Asso),
        ("grecond", "GreConD", "missed ones", "covers no zero, Belohlavek and Vychodil 2010", baselines.GreConD),
    )
    return [
        Method(
            key,
            name,
            method.algebra,
            small,
            about,
            _fitter(method, random),
            seeded=random,
            either=method is baselines.Proximus,
        )
        for random, methods in ((True, seeded), (False, settled))
        for key, name, small, about, method in methods
    ]


def _fitter(method: Any, seeded: bool) -> Callable[[Task], Factors]:
    """What fits an estimator of `bitatoms.baselines`."""

    def run(task: Task) -> Factors:
        how = {"random_state": task.seed} if seeded else {}
        fitted = method(n_components=task.rank, **how).fit(task.data)
        return Factors(fitted.components_, fitted.codes_)

    return run


def _elsewhere(program: ThirdParty) -> Method:
    """A program that is installed beside bitatoms."""

    def run(task: Task) -> Factors:
        assert task.rank is not None  # it does not choose
        return Factors(*program.run(task.data.to_dense(), task.rank, task.seed))

    key = program.name.lower().replace(" ", "-")
    return Method(key, program.name, program.algebra, ERRORS, f"{program.package}, as installed", run)


def default_ranks(shape: tuple[int, int]) -> Sequence[int]:
    """The numbers of atoms to try with a table of this shape: more than half its columns would be no summary."""
    return [rank for rank in (2, 4, 8, 16) if rank <= min(shape) // 2] or [1]
