"""Dask arrays and clusters: fit on a cluster, and code lazily."""

from __future__ import annotations

from typing import Any

from .estimators import BinaryDictionaryLearning
from .rows.dask_transform import array_of, inverse_transform, score_samples, transform

__all__ = ["array_of", "fit", "inverse_transform", "score_samples", "transform"]


def fit(model: BinaryDictionaryLearning, X: Any, client: Any = None) -> BinaryDictionaryLearning:
    """Fit a model to a Dask array or data frame, on a cluster.

    The rows stay on their workers; only the rows of the sample that is searched and, pass by pass, sums of counts come
    here. The model is the one that the same rows give in memory, to the bit.

    Parameters
    ----------
    model : BinaryDictionaryLearning
        With the parameters of the search.
    X : dask array of shape (n_samples, n_features), or dask data frame
        Of any partitions, also of unknown sizes; their values are dense or SciPy's sparse matrices.
    client : distributed.Client, optional
        The cluster. Without one, that of the client made last in this process, or else threads of this process, as
        ``model.fit(X)`` does.

    Returns
    -------
    BinaryDictionaryLearning
        The model, fitted.

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
    return model._fit_elsewhere(X, client)
