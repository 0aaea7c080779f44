"""`load`: read a fitted estimator from a model file."""

from __future__ import annotations

import os
from typing import Any

from ..io import model_file
from ..model.model import Model
from .dictionary_learning import BinaryDictionaryLearning


def load(path: str | os.PathLike[str]) -> BinaryDictionaryLearning:
    """Read a model that `BinaryDictionaryLearning.save` or ``bitatoms fit`` wrote.

    Parameters
    ----------
    path : str or path-like
        The file. It holds arrays and JSON; nothing in it is executed.

    Returns
    -------
    BinaryDictionaryLearning
        Fitted, with the parameters that decided the result. Those that are not plain values (arrays of atoms, random
        generators), and those that state how a fit runs (``n_jobs``, ``device``, ``verbose``, ``max_memory``,
        ``checkpoint``, ``resume``, ``callbacks``), have their defaults.

    Examples
    --------
    >>> import bitatoms as ba
    >>> X = ba.datasets.planted(300, 40, 4, noise=0.02, random_state=0).X
    >>> model = ba.BinaryDictionaryLearning(random_state=0).fit(X)
    >>> model.save("model.npz")
    >>> loaded = ba.load("model.npz")
    >>> bool((loaded.transform(X) == model.transform(X)).all())
    True
    """
    model, parameters, _ = model_file.load(path)
    return fitted_estimator(model, parameters)


def fitted_estimator(model: Model, parameters: dict[str, Any]) -> BinaryDictionaryLearning:
    """Return an estimator with these parameters that has learned this model."""
    estimator = BinaryDictionaryLearning()
    estimator.set_params(**parameters)
    estimator._set_features(model.header)
    estimator._set_model(model)
    return estimator
