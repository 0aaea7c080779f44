"""Dask arrays and data frames: fit on a cluster, and transform lazily."""

from __future__ import annotations

from typing import Any

from .estimators import BinaryDictionaryLearning
from .rows.dask_transform import array_of, decision_function, inverse_transform, score_samples, transform

__all__ = ["array_of", "decision_function", "fit", "inverse_transform", "score_samples", "transform"]


def fit(model: BinaryDictionaryLearning, X: Any, client: Any = None) -> BinaryDictionaryLearning:
    """Fit a model to a Dask array or data frame, on a cluster.

    The rows stay on their workers. Only the subsample that is searched and, in each pass, sums of counts are
    transferred. The model is bit-identical to that of the same rows in memory.

    Parameters
    ----------
    model : BinaryDictionaryLearning
        An estimator with the parameters of the search.
    X : dask array of shape (n_samples, n_features), or dask data frame
        The samples, in any partitions, also of unknown sizes. Partitions hold dense or masked arrays or SciPy sparse
        matrices. Missing values are unknown cells.
    client : distributed.Client, optional
        The cluster. By default the client that was created last in this process, or threads of this process if there
        is none, as in ``model.fit(X)``.

    Returns
    -------
    BinaryDictionaryLearning
        The same estimator, fitted.

    Examples
    --------
    >>> import dask.array
    >>> import bitatoms as ba
    >>> from bitatoms.dask import fit
    >>> planted = ba.datasets.planted(300, 40, 4, code_density=0.4, noise=0.02, random_state=0)
    >>> X = dask.array.from_array(planted.X, chunks=(100, 40))
    >>> fit(ba.BinaryDictionaryLearning(random_state=0), X).n_components_
    4
    """
    return model._fit(X, client=client)
