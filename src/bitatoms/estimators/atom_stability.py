"""`stability`: which atoms are found again, if only a part of the rows is searched."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..base import SearchLimitWarning, check_not_empty
from ..columns.matching import match_columns
from ..columns.table import Header
from ..device_choice import workers_for
from ..errors import InputError, Parameter
from ..formatting import be, percent
from ..model.model import Model
from ..model.patterns import Recurrence, match_atoms, overlaps
from ..model.result import Factorization, ResultBase
from ..parallel import Workers
from ..rows import out_of_core
from ..rows.budget import given_memory_limit
from ..rows.source import MemoryRows, RowSource
from ..rows.subsample import search_part
from ..run_options import DeviceChoice
from ..search.options import Constraints, PaperSearch
from ..search.params import SearchParams
from ..system.libraries import import_library
from ..system.verbosity import log_to_stderr
from ..validation import as_generator, check_fraction, check_int
from .dictionary_learning import BinaryDictionaryLearning, fitted_estimator, load

TRUSTED = 0.75  # an atom that recurs in this share of the resamples is called stable
_LIMITS = ("max_iter", "max_time")

_Opened = tuple[BinaryDictionaryLearning, SearchParams, RowSource]  # a fitted model, how its atoms are searched, rows

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Stability:
    """How often the atoms of a model are found again by searches of parts of the rows.

    Attributes
    ----------
    model : BinaryDictionaryLearning
        The model, fitted. Its ``patterns()``, its report and its file show how often each atom recurs.
    overlaps : ndarray of shape (n_resamples, n_atoms)
        The overlap of each atom with the atom that it is matched to in each resample: the Jaccard index of their
        features, 1 if they are equal; 0 if it is matched to none.
    share : float
        The share of the rows that each search saw.
    threshold : float
        The overlap from which an atom recurs in a resample.
    """

    model: BinaryDictionaryLearning
    overlaps: NDArray[np.float64]
    share: float
    threshold: float

    @property
    def n_resamples(self) -> int:
        """Number of resamples."""
        return len(self.overlaps)

    @property
    def recurrence(self) -> Recurrence:
        """How often each atom recurs, as the model and its file hold it."""
        counts = (self.overlaps >= self.threshold).sum(axis=0)
        return Recurrence(counts, len(self.overlaps), self.share, self.threshold)

    @property
    def recurs(self) -> NDArray[np.float64]:
        """For each atom, the share of the resamples in which it recurs."""
        return self.recurrence.shares

    @property
    def mean_overlap(self) -> NDArray[np.float64]:
        """For each atom, its mean overlap over all resamples."""
        return self.overlaps.mean(axis=0)

    @property
    def is_stable(self) -> NDArray[np.bool_]:
        """For each atom, whether it recurs in at least 75 % of the resamples."""
        return self.recurs >= TRUSTED

    def summary(self) -> str:
        """Return a description of the result in a few sentences."""
        n_atoms, n_stable = self.overlaps.shape[1], int(self.is_stable.sum())
        if not n_atoms:
            return "The model has no atoms, so none can recur."
        atoms = f"{n_stable} of {n_atoms} atoms {be(n_stable)} stable"
        lines = [
            f"{atoms}: found again, with an overlap of at least {self.threshold:g}, by at least {TRUSTED:.0%} of "
            f"{self.recurrence.searches}",
            f"On average, {percent(float(self.recurs.mean()), 1)} of the atoms are found again",
        ]
        return ".\n".join(lines) + "."

    def __str__(self) -> str:
        return self.summary()

    def to_dict(self) -> dict[str, list[Any]]:
        """Return one entry per atom by column, for `pandas.DataFrame`.

        Returns
        -------
        dict of str to list
            ``atom``, ``features``, ``rows``, ``bits_saved``, ``recurs``, ``mean_overlap`` and ``is_stable``.
        """
        patterns = self.model.patterns()
        names = ("atom", "features", "rows", "bits_saved", "recurs")
        own = {name: [getattr(pattern, name) for pattern in patterns] for name in names}
        return own | {name: getattr(self, name).tolist() for name in ("mean_overlap", "is_stable")}

    def to_pandas(self) -> Any:
        """Return the same as a pandas DataFrame with one row per atom."""
        pd = import_library("pandas", "data frames need")
        return pd.DataFrame(self.to_dict()).set_index("atom")


def stability(
    X: Any,
    model: Any = None,
    *,
    n_resamples: int = 20,
    share: float = 0.5,
    threshold: float = 0.8,
    random_state: Any = 0,
    n_jobs: int | None = None,
    device: DeviceChoice = "cpu",
    callback: Callable[[Stability], object] | None = None,
    **parameters: Any,
) -> Stability:
    """Search parts of the rows, and count how often each atom of a model is found again: which atoms can be trusted.

    An atom that depends on a few rows, or on the seed, is rarely found again. See docs/tutorials/stability.md.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData, Store, Dask collection or path
        The samples that the model was learned from, of shape (n_samples, n_features).
    model : BinaryDictionaryLearning, Model, Factorization or path, optional
        The model whose atoms are looked for: fitted, or the path of its file. By default one is fitted first.
    n_resamples : int, default=20
        Number of searches.
    share : float, default=0.5
        Share of the rows that each search sees, drawn without replacement. With 1, all rows are searched again, and
        only the seed differs.
    threshold : float, default=0.8
        The overlap from which an atom is found again: the Jaccard index of its features with those of another atom.
    random_state : int, Generator, RandomState or None, default=0
        Decides which rows are drawn, and the searches; also that for the model, if it is fitted first.
    n_jobs : int, optional
        Number of searches that run at the same time; -1 uses all processors. The result does not depend on it.
        Rows that are not in memory are searched by one search at a time with this many threads.
    device : {"cpu", "cuda", "auto"}, default="cpu"
        Where rows are processed, as in `factorize`. The result does not depend on it.
    callback : callable, optional
        Called with the `Stability` of the resamples so far after each of them. If it returns True, no more follow.
    **parameters : dict
        Parameters of `BinaryDictionaryLearning` for the searches; ``max_time`` limits each of them. By default they are
        those of the model, if it is an estimator or a file. The algebra is always that of the model. ``callbacks``,
        ``resources.checkpoint`` applies only to the model that is fitted first.

    Returns
    -------
    Stability
        ``recurs`` has the share of the resamples in which each atom is found again. ``print`` shows a summary;
        ``to_dict`` and ``to_pandas`` convert it. ``model`` is the model with these shares.

    Notes
    -----
    The atoms of the model and those of a resample are matched one to one: the pair with the largest overlap first. An
    atom makes the features present that it has, and absent where the bias sets them; the overlap of two atoms is the
    number of features of which both say the same, divided by the number of features of which either says something.

    Examples
    --------
    >>> import bitatoms as ba
    >>> X = ba.datasets.planted(300, 40, 4, code_density=0.4, noise=0.02, random_state=1).X
    >>> result = ba.stability(X, n_resamples=4)
    >>> result.recurs
    array([1., 1., 1., 1.])
    >>> print(result)
    4 of 4 atoms are stable: found again, with an overlap of at least 0.8, by at least 75% of 4 searches, each of
    50% of the rows.
    On average, 100% of the atoms are found again.
    """
    n_resamples = check_int("n_resamples", n_resamples, 1)
    for name, value in (("share", share), ("threshold", threshold)):
        if not check_fraction(name, value) > 0:
            raise InputError(Parameter(name), f" must be above 0, not {value!r}")
    random = as_generator(random_state)
    if model is None or isinstance(model, Factorization):
        opened = _open_new(X, model, {"random_state": random_state, "n_jobs": n_jobs, "device": device, **parameters})
    else:
        opened = _open_fitted(X, _as_estimator(model), parameters)
    found: list[NDArray[np.float64]] = []
    endings: list[str] = []
    with opened as (estimator, params, rows), log_to_stderr(estimator.verbose):
        learned = estimator.as_model()
        _check_algebra(parameters, learned)
        is_in_memory = rows.in_memory is not None
        workers = workers_for(n_jobs, device, rows.n_rows * rows.n_features if is_in_memory else None)
        params = replace(params, algebras=(learned.algebra,), callbacks=())
        search = partial(_search, rows, learned, params, max(1, round(share * rows.n_rows)))
        seeds = [*random.integers(2**63, size=(n_resamples, 4))]
        # A search of rows that are not in memory may take all the memory that the limit allows.
        with closing(workers.map_tasks(search, seeds, at_once=None if is_in_memory else 1)) as searches:
            for overlap, ended in searches:
                found.append(overlap)
                endings.append(ended)
                logger.info("resample %d of %d is searched", len(found), n_resamples)
                result = Stability(copy(estimator), np.array(found), float(share), float(threshold))
                result.model._set_model(replace(learned, recurrence=result.recurrence))
                if callback is not None and callback(result) is True:
                    break
    for limit in () if params.ends_at_limit else _LIMITS:
        if n_limited := endings.count(limit):
            text = f" ended {n_limited} of {len(found)} searches before they converged; raise it for better ones"
            warnings.warn(SearchLimitWarning(Parameter(limit), text), stacklevel=2)
    return result


def _search(
    rows: RowSource, learned: Model, params: SearchParams, n_drawn: int, workers: Workers, seed: NDArray[np.int64]
) -> tuple[NDArray[np.float64], str]:
    """Search a resample; return the overlap of each atom of the model with its partner, and why the search ended."""
    if not learned.atoms.n_rows:  # nothing to look for
        return np.zeros(0), "converged"
    random = np.random.default_rng(seed)
    drawn = np.sort(random.choice(rows.n_rows, n_drawn, replace=False))
    result = search_part(rows, drawn, params, workers, random)
    return match_atoms(overlaps(learned, result)), result.ended


@contextmanager
def _open_new(X: Any, result: Factorization | None, parameters: dict[str, Any]) -> Iterator[_Opened]:
    """Open rows, and make a model of a factorization of them; if there is none, fit one."""
    if result is not None:
        if result.sample_weight is not None and (result.sample_weight != 1).any():
            raise InputError(
                "the factorization has weights of rows, which resamples would ignore; repeat the rows by their "
                "weights, X = np.repeat(X, weights, axis=0), and factorize these without ",
                Parameter("sample_weight"),
            )
        parameters = _parameters_of(result) | parameters
    estimator = BinaryDictionaryLearning(**parameters)
    with estimator._opened(X) as opened:
        params = estimator._params_of(None)
        if result is None:
            estimator._learn(opened)
        else:
            match_columns(Header(result.atoms.n_cols), Header(opened.rows.n_features), table="X")
            estimator._set_model(estimator._model_of(result, params, opened.picture))
        yield estimator, params, opened.rows


@contextmanager
def _open_fitted(X: Any, estimator: BinaryDictionaryLearning, parameters: dict[str, Any]) -> Iterator[_Opened]:
    """Open the rows of a fitted model."""
    searching = copy(estimator)
    searching.set_params(**parameters)
    params = searching._params_of(None)
    if not out_of_core.is_out_of_core(X):
        table = searching._validate_table(X, reset=False)
        yield estimator, params, MemoryRows(table.data, Workers(), given_memory_limit(searching._resources.max_memory))
        return
    how = searching.binarize, Workers(), given_memory_limit(searching._resources.max_memory), None
    with out_of_core.open_rows(X, *how) as (rows, header, _):
        check_not_empty((rows.n_rows, rows.n_features))
        if match_columns(estimator._header, header, table="X").indices is not None:
            raise InputError("the columns of X are not in the order of the model; pass the rows that it learned from")
        yield estimator, params, rows


def _parameters_of(result: ResultBase) -> dict[str, Any]:
    """Return the parameters of a search for such a result."""
    n_atoms = {} if result.objective == "codelength" else {"n_components": result.atoms.n_rows}
    return {"algebra": result.algebra, **n_atoms}


def _as_estimator(model: Any) -> BinaryDictionaryLearning:
    """Return a fitted model as an estimator; the one that was passed is not changed."""
    if isinstance(model, (str, os.PathLike)):
        return load(model)
    if isinstance(model, BinaryDictionaryLearning):
        check_is_fitted(model, "n_components_")
        return copy(model)
    if isinstance(model, Model):
        own: dict[str, Any] = {"constraints": Constraints(max_atoms_per_sample=model.max_atoms_per_sample)}
        if model.residual_limit:
            own["search"] = PaperSearch(residual_limit=model.residual_limit)
        return fitted_estimator(model, _parameters_of(model) | own)
    raise TypeError(
        "model must be a fitted BinaryDictionaryLearning, a Model, a Factorization or the path of a model file, "
        f"not {type(model).__name__}"
    )


def _check_algebra(parameters: dict[str, Any], learned: Model) -> None:
    """Raise an error for an algebra that is not that of the model."""
    algebra = parameters.get("algebra", learned.algebra)
    if algebra in ("xor", "or") and algebra != learned.algebra:
        raise InputError(
            Parameter("algebra", algebra), f" is not the algebra of the model, {learned.algebra!r}; omit it, or ",
            Parameter("model"),
        )  # fmt: skip
