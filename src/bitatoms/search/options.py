"""Options of `factorize` and of the searches for atoms; `resolve` in `params.py` decides what they leave open."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, get_args

from ..errors import InputError, Parameter
from ..parameters import Options, option, with_documentation
from ..run_options import RunOptions
from ..validation import (
    check_bool,
    check_callbacks,
    check_choice,
    check_feature_sets,
    check_fraction,
    check_seconds,
)

Algebra = Literal["auto", "or", "xor"]
Search = Literal["fast", "thorough", "anytime", "paper"]
ObjectiveName = Literal["auto", "codelength", "errors"]
Coder = Literal["auto", "mdl", "beam", "greedy", "exact"]
PaperCoder = Literal["bmp", "greedy", "exact"]
Update = Literal["mob", "k-prox"]
INITS = ("auto", "samples", "bernoulli", "spread", "greedy")


def _check_algebra(name: str, value: Any) -> Any:
    """Check the name of an algebra."""
    if value == "prefer-or":
        raise InputError(Parameter(name, value), " is now the default, ", Parameter(name, "auto"), "; omit it")
    check_choice(name, value, get_args(Algebra))
    return value


def _check_init(name: str, value: Any) -> Any:
    """Check the name of an initialization; atoms are checked when they are used."""
    if value is None or isinstance(value, (str, Real)):
        check_choice(name, value, INITS, "atoms, or a pair (atoms, codes)")
    return value


def _check_coder(name: str, value: Any) -> Any:
    """Check a coder; the error for one of the paper says where it is passed."""
    check_choice(name, value, get_args(Coder), 'search=bitatoms.PaperSearch(coder="bmp")' if value == "bmp" else None)
    return value


def _check_fixed_atoms(name: str, value: Any) -> Any:
    """Check that atoms are a table; its cells are checked when the table to learn from is known."""
    if isinstance(value, (str, Real)):
        raise InputError(Parameter(name), f" must be an array or a table of atoms, or None, not {value!r}")
    return value


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


@with_documentation
@dataclass(frozen=True, kw_only=True, repr=False)
class PaperSearch(Options):
    """The published methods, with their mistakes corrected: ``search=PaperSearch(...)``.

    ``search="paper"`` is the same with the defaults. The algebra is XOR, unless OR is asked for.

    Parameters
    ----------
    {parameters}

    Examples
    --------
    >>> import bitatoms as ba
    >>> X = ba.datasets.planted(300, 40, 4, code_density=0.4, noise=0.02, random_state=0).X
    >>> ba.factorize(X, 4, search=ba.PaperSearch(coder="greedy"), random_state=0).atoms.shape
    (4, 40)
    """

    coder: PaperCoder = option(
        "bmp",
        "How codes are found, in the search and in ``transform``.",
        '"bmp" is Binary Matching Pursuit with the association accuracy of the paper; "greedy" selects by plain gain, '
        'which is better in almost all cases; "exact" tries all codes, for at most 16 atoms.',
    )
    update: Update = option(
        "mob",
        "How atoms are updated: Method of Binary Directions, or K-PROX.",
        '"mob" sets each atom to the majority of its samples (Section III-B of the paper), one atom at a time. '
        '"k-prox" fits each atom and its samples together by Proximus (Section III-C). With ``coder="exact"``, "mob" '
        "becomes the exact step: each feature takes the best of all possible columns of the atoms.",
    )
    init_density: float = option(
        0.5, 'Fraction of ones in atoms drawn with ``init="bernoulli"``.', check=check_fraction
    )
    residual_limit: int = option(
        0,
        "A sample with at most this many wrong cells is not coded further.",
        "The limit w_max of Algorithm 3. It is ignored if the requested number of atoms could not be used otherwise.",
    )
    start_components: int | Literal["auto"] = option(
        "auto",
        'Number of atoms that ``n_components="mdl"`` starts with; the search never returns fewer.',
        '"auto" is 16 as in the paper, or 1 with ``coder="exact"``.',
    )
    patience: int | None = option(
        1,
        'Number of atoms added in a row without a shorter codelength after which "mdl" stops; 1 as in the paper.',
        "None continues to ``max_components``.",
        minimum=1,
    )


@with_documentation
@dataclass(frozen=True, kw_only=True, repr=False)
class Constraints(Options):
    """What a factorization must fulfil: known atoms, and limits of the others: ``constraints=Constraints(...)``.

    Parameters
    ----------
    {parameters}

    Examples
    --------
    >>> import bitatoms as ba
    >>> X = ba.datasets.planted(300, 40, 4, code_density=0.4, noise=0.02, random_state=0).X
    >>> result = ba.factorize(X, constraints=ba.Constraints(max_components=2), random_state=0)
    >>> result.atoms.shape
    (2, 40)
    """

    fixed_atoms: Any = option(
        None,
        "Known atoms: they stay as they are, and others are learned beside them.",
        "They come first in the result, in their order, also if no sample uses them, and count as atoms of "
        "``n_components`` and ``max_components``. Columns of a table with names are matched by name. See "
        "docs/tutorials/given-atoms.md.",
        check=_check_fixed_atoms,
        type="array-like, Table or BitMatrix of shape (n_atoms, n_features), optional",
        option="fixed",
    )
    bias: bool = option(
        True,
        "Whether columns that are one in most rows may be a bias, which all samples have.",
        "Without a bias, a table is codes times atoms, and atoms that most samples use take its place. With a "
        'given number of atoms and the fewest wrong cells, and with ``search="paper"``, there is none in any case.',
        check=check_bool,
        option="bias",
    )
    max_components: int | None = option(
        None, 'Maximum number of atoms that ``n_components="mdl"`` may return.', option="max-atoms"
    )
    max_atoms_per_sample: int | None = option(
        None,
        "Once a sample uses this many atoms, coding can only remove atoms from it.",
        "The limit h_max of Algorithm 3.",
        minimum=1,
    )
    max_features_per_atom: int | None = option(
        None,
        "Maximum number of features (ones) of an atom.",
        "This limit and the next three hold for atoms that are learned, not for ``fixed_atoms``.",
        minimum=1,
        option="max-features-per-atom",
    )
    min_samples_per_atom: int | None = option(
        None,
        "Minimum number of training rows that use an atom.",
        "In a stream, rows count as much as they are remembered (see ``forget``).",
        minimum=1,
        option="min-samples-per-atom",
    )
    apart: Any = option(
        (),
        "Sets of features of which an atom has at most one (separation of duty).",
        'By name or index, such as ``[["create order", "pay order"]]``.',
        check=check_feature_sets,
        type="list of sets of features, optional",
        option="apart",
    )
    together: Any = option(
        (),
        "Sets of features of which an atom has all or none.",
        "By name or index. Sets that share a feature are one set.",
        check=check_feature_sets,
        type="list of sets of features, optional",
        option="together",
    )


@with_documentation
@dataclass(frozen=True, kw_only=True, repr=False)
class Resources(Options):
    """The memory of a fit, and where its progress is stored: ``resources=Resources(...)``.

    Parameters
    ----------
    {parameters}

    Examples
    --------
    >>> import bitatoms as ba
    >>> ba.BinaryDictionaryLearning(resources=ba.Resources(max_memory="500MB")).resources.max_memory
    '500MB'
    """

    max_memory: int | str | None = option(
        None,
        "Memory limit for rows, codes and counts, such as 500MB or 2GiB.",
        "A number of bytes, or text with a unit. If the rows that are searched by default do not fit, fewer are "
        "searched, at least 1024 of them; apart from that, it does not change the result. With None, passes over "
        "a packed store take 512 MiB, and a search takes what it needs. Python, the libraries and "
        "the compiled kernels take up to 350 MB in addition.",
        option="max-memory",
        is_run_setting=True,
    )
    checkpoint: str | os.PathLike[str] | None = option(
        None,
        "Folder for the progress of a fit, so that it can be resumed.",
        "The states of a search are written once a minute. If only a subsample is searched, the passes "
        "over all rows follow: the folder is written after each of them, and every half minute during a pass.",
        option="checkpoint",
        is_run_setting=True,
    )
    resume: bool = option(
        False,
        "Resume from the checkpoint, if there is one: a search ends no worse, passes over rows with the same bits.",
        "Only the same call with the same rows can be resumed; ``max_time`` may differ. A search that it has ended "
        "continues.",
        check=check_bool,
        option="resume",
        is_run_setting=True,
    )


@dataclass(frozen=True)
class AtomOptions(Options):
    """How many atoms to look for."""

    n_components: int | Literal["mdl"] = option(
        "mdl",
        'Number of atoms; "mdl" chooses the number with the shortest codelength.',
        'With "mdl", every atom that is learned is used by two samples or more, except with ``search="paper"``. '
        'With a number, "fast" and "thorough" return exactly this many atoms, each used by some sample. They '
        "return fewer, with a warning, only if the data cannot use more.",
        minimum=1,
        option="atoms",
        is_common=True,
    )


@dataclass(frozen=True, kw_only=True)
class SearchOptions(AtomOptions):
    """What a search looks for, and how."""

    algebra: Algebra = option(
        "auto",
        "How the atoms of a row are combined; auto keeps OR unless XOR is 5% shorter.",
        '"xor": a feature is one if an odd number of the atoms of a sample have it. "or": if any of them has it; '
        'the features of an atom then come together. "auto" tries both and keeps OR, which is easier to read, unless '
        "XOR is better by more than 5 %: in codelength, or in wrong cells where these are minimized (see "
        'docs/how-it-works/xor-and-or.md). With costs of errors it is OR, and with ``search="paper"`` XOR.',
        check=_check_algebra,
        option="algebra",
        is_common=True,
    )
    search: Search | PaperSearch = option(
        "fast",
        "Search method; thorough takes two to three times as long as fast, anytime as long as it is given.",
        '"fast" grows atoms, fits them together and drops them, judged by the codelength (see '
        'docs/how-it-works/search.md). "thorough" does the same with more starts, beam coding and random restarts '
        'of atoms. "anytime" restarts, recombines and perturbs until ``max_time`` (60 seconds, unless ``max_time`` '
        'or ``max_iter`` is given), or until that gains nothing. "paper" runs the published methods, with their '
        "mistakes corrected; a `PaperSearch` has their own parameters.",
        option="search",
        is_common=True,
    )
    objective: ObjectiveName = option(
        "auto",
        "What the search minimizes: the codelength, or the number of wrong cells.",
        '"auto" is the codelength with ``n_components="mdl"``, and the number of wrong cells otherwise.',
    )
    coder: Coder = option(
        "auto",
        "How codes are found, in the search and in ``transform``; auto depends on the search.",
        "With the codelength as objective: "
        '"mdl" (the default of "fast") selects by bits of codelength gained and swaps atoms where that helps; '
        '"beam" (the default of "thorough" and "anytime") follows several partial codes at a time. For the '
        'fewest wrong cells, rows are coded by "exact" up to 16 atoms and by "greedy" above. With "auto", '
        '``transform`` uses "beam" where the search uses "mdl" or "greedy", because it has no codes to start from, '
        "and the search ends with it too. The coders of the paper are parameters of `PaperSearch`.",
        check=_check_coder,
    )
    init: Any = option(
        "auto",
        "The atoms to start from.",
        '"samples": distinct nonzero rows drawn at random. "bernoulli": random bits. "spread": rows far from each '
        'other. "greedy": one atom at a time, each fitted to the errors that the previous ones leave; this takes '
        "longer and ends with the fewest wrong cells. An array of atoms, or a pair (atoms, codes), is used as it "
        "is; if it has fewer atoms than ``n_components``, others are grown from the errors that these leave. "
        'With "auto", "fast" and "thorough" try several starts; with "paper" it is "samples", or "greedy" with '
        '``PaperSearch(coder="exact")``.',
        check=_check_init,
        type=f"{{{', '.join(map(repr, INITS))}}}, array of atoms, or pair (atoms, codes), default='auto'",
    )
    n_init: int | Literal["auto"] = option(
        "auto", "Number of starts; the best result is kept.", '"auto" is 1.', minimum=1
    )
    constraints: Constraints | None = option(
        None, "Known atoms, and limits of atoms and of their number; none by default."
    )
    false_negative_cost: float | Mapping[str, float] = option(
        1.0,
        "How much worse a missed one is than by its code, 1 or more.",
        "Each takes ``8 * (cost - 1)`` bits more than its code in what the search minimizes. One cost, one per "
        "feature, or a mapping of names of features to costs, 1 for the others. Costs require OR and the "
        "codelength as objective, and no bias is learned. To miss no one at all, use `bitatoms.cover`. See "
        "docs/tutorials/roles.md.",
        check=_check_finite_costs,
        type="float, array-like of shape (n_features,) or dict",
        option="false-negative-cost",
    )
    false_positive_cost: float | Mapping[str, float] = option(
        1.0,
        "How much worse an added one is than by its code, 1 or more; inf forbids added ones.",
        "As ``false_negative_cost``. With an infinite cost, a sample uses only atoms all of whose features it "
        "has (factorization from below).",
        check=_check_costs,
        type="float, array-like of shape (n_features,) or dict",
        option="false-positive-cost",
    )
    max_iter: int = option(
        1000,
        "Maximum number of rounds of the search.",
        'With a given number of atoms, a round improves one state by trials. ``search="anytime"`` has no limit by '
        "default; if another number is given, its result does not depend on the time. "
        'With ``search="paper"``: maximum number of iterations for each number of atoms. They converge '
        "exactly, mostly within 5 to 40 iterations.",
        minimum=1,
    )
    max_time: float | None = option(
        None,
        "Number of seconds after which the search returns the best result so far.",
        "The fit ends at most 10 % and 2 seconds later; compiling kernels on a new machine, and coding all rows "
        "for ``factorize``, may take longer. If there is no time for a pass over all rows of a large table, the "
        "model is that of the rows searched. The result depends on the speed of the machine.",
        check=check_seconds,
        option="max-time",
        is_common=True,
    )
    search_rows: int | Literal["auto"] | None = option(
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
    )
    callbacks: Any = option(
        None,
        "Called with each new entry of the history, a `Round`; a callback that returns True ends the search.",
        check=check_callbacks,
        type="callable or list of callables, optional",
        is_run_setting=True,
    )

    @property
    def paper(self) -> PaperSearch | None:
        """The parameters of the published methods, if they are searched by; None for other searches."""
        if isinstance(self.search, PaperSearch):
            return self.search
        return PaperSearch() if self.search == "paper" else None


@dataclass(frozen=True, kw_only=True)
class FitOptions(RunOptions, SearchOptions):
    """What a fit of one model takes: the options of the search, and how it is run."""

    resources: Resources | None = option(
        None,
        "Memory limit, checkpoint, and whether to resume; no limit and no checkpoint by default.",
        is_run_setting=True,
    )


@dataclass(frozen=True, kw_only=True)
class FactorizeOptions(FitOptions):
    """Parameters of `bitatoms.factorize`."""

    mask: Any = option(
        None,
        "True where a cell is unknown, whatever X contains there, as in `numpy.ma`; in addition to missing values.",
        check=lambda name, value: value,  # checked together with X
        type="BitMatrix, sparse or dense array-like of bool of shape (n_samples, n_features), optional",
    )
    sample_weight: Any = option(
        None,
        "Whole numbers from 0 up: how many equal samples each sample counts as.",
        "A sample with weight w counts as w equal samples that follow each other, to the bit; one with weight 0 is "
        "left out of learning. Codes are those of the samples in X: of the first of the repetitions, or, with weight "
        "0, those of a new sample.",
        check=lambda name, value: value,  # checked together with X
        type="array-like of shape (n_samples,), optional",
    )
