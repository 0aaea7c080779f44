"""`cross_validate_cells`: judge models by known cells that were hidden from them."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ..bits import BitMatrix
from ..columns.table import Table, as_bits, header_of
from ..device_choice import workers_for
from ..frames import in_memory
from ..imputation.hidden_cells import CellScores, hidden_folds, shares_of
from ..imputation.tied_columns import known_ties
from ..io.api import read
from ..parallel import Workers
from ..search.monitor import at_once
from ..sparse_bits import packed
from ..system.libraries import import_library
from ..validation import as_generator, check_fraction, check_int
from .dictionary_learning import BinaryDictionaryLearning
from .imputer import OTHER_METHODS, BinaryImputer

MAJORITY = "column majority"
_MAX_CELLS = 1 << 26  # of all tables that are searched at the same time: predictions take 8 bytes for each


class FoldScores(NamedTuple):
    """A model and the cells of one fold that were hidden from it."""

    n_atoms: int | None  # None for a model without atoms
    codelength: int | None  # bits that describe the other cells
    scores: CellScores


@dataclass(frozen=True, eq=False)
class CellValidation:
    """How well models predict cells that they did not see.

    Attributes
    ----------
    folds : dict of str to list of FoldScores
        For each model, ``n_atoms``, ``codelength`` and ``scores`` in each fold.
    share : float
        The share of the known cells hidden in each fold.
    """

    folds: Mapping[str, Sequence[FoldScores]]
    share: float

    @property
    def best(self) -> str:
        """The model with the lowest log loss."""
        losses = self.to_dict()["log_loss"]
        return list(self.folds)[int(np.argmin(losses))]

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the means over folds by column, for `pandas.DataFrame`.

        Returns
        -------
        dict of str to list
            ``model``, ``n_atoms``, ``codelength``, ``accuracy``, ``log_loss`` (bits per hidden cell), ``log_loss_sd``
            (standard deviation over folds) and ``calibration_error``. None where a model has no such number.
        """
        rows = list(self.folds.values())
        return {
            "model": list(self.folds),
            "n_atoms": [_mean([fold.n_atoms for fold in row]) for row in rows],
            "codelength": [_mean([fold.codelength for fold in row]) for row in rows],
            "accuracy": [_mean([fold.scores.accuracy for fold in row]) for row in rows],
            "log_loss": [_mean([fold.scores.log_loss for fold in row]) for row in rows],
            "log_loss_sd": [float(np.std([fold.scores.log_loss for fold in row])) for row in rows],
            "calibration_error": [_mean([fold.scores.calibration_error for fold in row]) for row in rows],
        }

    def to_pandas(self) -> Any:
        """Return the means over folds as a pandas DataFrame with one row per model."""
        pd = import_library("pandas", "data frames need")
        return pd.DataFrame(self.to_dict()).set_index("model")

    def __str__(self) -> str:
        columns = self.to_dict()
        heads = ("model", "atoms", "codelength", "right", "log loss", "calibration")
        rows = [
            (
                name,
                "" if n_atoms is None else f"{n_atoms:g}",
                "" if codelength is None else f"{codelength:.0f}",
                f"{100 * accuracy:.2f} %",
                f"{log_loss:.4f} ± {sd:.4f}",
                f"{calibration:.4f}",
            )
            for name, n_atoms, codelength, accuracy, log_loss, sd, calibration in zip(*columns.values(), strict=True)
        ]
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        lines = [
            "  ".join(cell.rjust(width) if index else cell.ljust(width) for index, (cell, width) in enumerate(cells))
            for cells in (list(zip(row, widths, strict=True)) for row in (heads, *rows))
        ]
        return "\n".join(line.rstrip() for line in lines)


def cross_validate_cells(
    X: Any,
    models: Any = ("mdl",),
    *,
    n_folds: int = 5,
    share: float = 0.1,
    binarize: float | None = None,
    random_state: Any = 0,
    **parameters: Any,
) -> CellValidation:
    """Hide some of the known cells, learn from the others, and compare how well models predict the hidden ones.

    It answers whether a table has structure, and how many atoms describe it: a model that predicts hidden cells better
    than the shares of the columns has found some, and one with too many atoms predicts them worse.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData or path
        The table, of shape (n_samples, n_features). It may have missing values. Pass encoded categories as a Table,
        which knows which columns belong together; an array does not.
    models : sequence or dict, default=("mdl",)
        What to compare. Each is a number of atoms or "mdl"; "neighbours", "profiles" or "regression", for
        `BinaryImputer` with that method; a dict of parameters of `BinaryDictionaryLearning`; or an estimator with
        ``predict_cell_proba``. The keys of a dict are the names of the models.
    n_folds : int, default=5
        Number of times that cells are hidden. The folds are disjoint if ``n_folds * share`` is at most 1.
    share : float, default=0.1
        Share of the known cells that is hidden in each fold. The columns of a variable that `bitatoms.encode` made, and
        the two columns of a genotype, are hidden together, because the others would tell the hidden one.
    binarize : float or None, default=None
        Threshold: values above it become 1, all others 0.
    random_state : int, Generator, RandomState or None, default=0
        Decides which cells are hidden, and the searches for atoms.
    **parameters : dict
        Parameters of `BinaryDictionaryLearning` for the models that are numbers, "mdl" or dicts.

    Returns
    -------
    CellValidation
        ``print`` shows it as a table; ``to_dict`` and ``to_pandas`` convert it. The first model, "column majority",
        predicts the shares of ones in the columns.

    Examples
    --------
    >>> import bitatoms as ba
    >>> X = ba.datasets.planted(200, 40, 3, code_density=0.4, noise=0.02, random_state=0).X
    >>> result = ba.cross_validate_cells(X, [1, "mdl"], n_folds=2)
    >>> result.best
    'mdl'
    """
    n_folds = check_int("n_folds", n_folds, 1)
    if not 0 < check_fraction("share", share) < 1:
        raise ValueError(f"share must be above 0 and below 1, not {share!r}")
    table = _table(X, binarize)
    data = table.bits
    random = as_generator(random_state)
    seed = int(random.integers(2**31))
    estimators = _named_estimators(models, seed, parameters)
    hidden = list(hidden_folds(data, n_folds, share, random, known_ties(table.header).first))
    if not all(fold.count() for fold in hidden):
        raise ValueError(f"no cell was hidden: X has {int(data.n_known.sum())} known cells; raise share")
    folds = {MAJORITY: [_majority_scores(data, fold) for fold in hidden]}
    for name, estimator in estimators.items():
        # Other estimators may mean something else by a device, and are not given these workers.
        device = estimator.device if isinstance(estimator, BinaryDictionaryLearning) else "cpu"
        workers = workers_for(getattr(estimator, "n_jobs", None), device, math.prod(data.shape))
        score, most = partial(_fold_scores, estimator, table), _most_at_once(estimator, data)
        with closing(workers.map_tasks(score, hidden, most)) as scores:
            folds[name] = list(scores)
    return CellValidation(folds, share)


def _most_at_once(estimator: Any, data: BitMatrix) -> int:
    """Return how many copies of a model may be fitted at the same time; only one if their order matters."""
    n_cells = data.n_rows * data.n_cols
    if not isinstance(estimator, BinaryDictionaryLearning) or estimator.max_time is not None or estimator.callbacks:
        return 1
    return at_once(n_cells, False) or max(1, _MAX_CELLS // n_cells)


def _fold_scores(estimator: Any, table: Table, workers: Workers, hidden: BitMatrix) -> FoldScores:
    """Return how well a model predicts hidden cells."""
    fitted = clone(estimator)
    if isinstance(fitted, BinaryDictionaryLearning):
        fitted._shared_workers = workers

    def predict(visible: BitMatrix) -> NDArray[np.float64]:
        known = table.with_bits(visible)
        return np.asarray(fitted.fit(known).predict_cell_proba(known))

    scores = CellScores.of_hidden(table.bits, hidden, predict)
    codelength = getattr(fitted, "codelength_", None)
    n_atoms = getattr(fitted, "n_components_", None)
    return FoldScores(n_atoms, None if codelength is None else codelength.total, scores)


def _majority_scores(data: BitMatrix, hidden: BitMatrix) -> FoldScores:
    """Return how well the shares of the columns predict hidden cells."""

    def predict(visible: BitMatrix) -> NDArray[np.float64]:
        return np.broadcast_to(shares_of(visible), visible.shape)

    return FoldScores(None, None, CellScores.of_hidden(data, hidden, predict))


def _table(X: Any, binarize: float | None) -> Table:
    """Return a table with unknown cells, and with what is known about its columns."""
    if isinstance(X, (str, os.PathLike)):
        return read(X, binarize=binarize)
    X = in_memory(X)
    bits = packed(as_bits(X, binarize, missing="unknown"))
    header = header_of(X, bits.n_cols)
    return Table(bits, columns=header.names, column_data=header.data)


def _named_estimators(models: Any, seed: int, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the estimators to compare, by name."""
    if isinstance(models, (str, int)):
        models = (models,)
    named = models.items() if isinstance(models, Mapping) else ((_name(model), model) for model in models)
    estimators = {}
    for name, model in named:
        if name in estimators or name == MAJORITY:
            raise ValueError(f"two models have the name {name!r}; pass a dict to give them names")
        estimators[name] = _estimator(model, {"random_state": seed, **parameters})
    return estimators


def _name(model: Any) -> str:
    """Return the name of a model in the table."""
    return ", ".join(f"{name}={value!r}" for name, value in model.items()) if isinstance(model, Mapping) else str(model)


def _estimator(model: Any, parameters: Mapping[str, Any]) -> Any:
    """Return the estimator of a model that was requested."""
    if isinstance(model, Mapping):
        return BinaryDictionaryLearning(**{**parameters, **model})
    if isinstance(model, str) and model in OTHER_METHODS:
        return BinaryImputer(method=model, random_state=parameters["random_state"])  # type: ignore[arg-type]
    if isinstance(model, (str, int, np.integer)) and not isinstance(model, bool):
        return BinaryDictionaryLearning(model if isinstance(model, str) else int(model), **parameters)  # type: ignore[arg-type]
    if hasattr(model, "fit") and hasattr(model, "predict_cell_proba"):
        return model
    raise TypeError(
        f'a model is a number of atoms, "mdl", "neighbours", "profiles", "regression", a dict of parameters, or an '
        f"estimator with predict_cell_proba, not {model!r}"
    )


def _mean(values: list[Any]) -> float | None:
    """Return the mean, or None if there is no number for each fold."""
    return None if None in values else float(np.mean(values))
