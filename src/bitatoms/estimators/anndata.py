"""`annotate`: add codes and atoms to an AnnData."""

from __future__ import annotations

from typing import Any

from ..matching import matched_table
from .dictionary_learning import BinaryDictionaryLearning


def annotate(adata: Any, model: BinaryDictionaryLearning, layer: str | None = None) -> None:
    """Add codes and atoms to an AnnData, in the fields that scanpy and similar tools use.

    Parameters
    ----------
    adata : AnnData of shape (n_obs, n_vars)
        It is changed: ``obsm["X_bitatoms"]`` is set to the codes of its observations, ``obsm["X_bitatoms_soft"]`` to
        their soft codes (`BinaryDictionaryLearning.decision_function`, as float32), ``varm["bitatoms_atoms"]`` to the
        atoms, and ``uns["bitatoms"]`` to the rest of the model, such as the ``names`` of the atoms, their ``uses`` and
        the ``bits_saved`` by each. In the atoms, 1 means that the variable is present, -1
        that it is absent, and 0 that the atom leaves it as it is. Only a model with a bias has -1: there the atom
        clears a variable that the bias sets, which `BinaryDictionaryLearning.patterns` calls "not" the variable. The
        variables may be in any order; for those that the model was not fitted on, the atoms are 0.
    model : BinaryDictionaryLearning
        A fitted model. Its ``binarize`` is applied to the values.
    layer : str, optional
        The layer to code instead of ``X``. "raw" is the ``raw`` of the AnnData, if no layer has this name. It may have
        other variables; the atoms are stored for those of ``adata.var``.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> import bitatoms as ba
    >>> counts = np.random.default_rng(0).poisson(0.5, (50, 20)).astype(np.float32)
    >>> adata = anndata.AnnData(counts)
    >>> model = ba.BinaryDictionaryLearning(3, binarize=0, random_state=0).fit(adata)
    >>> ba.annotate(adata, model)
    >>> adata.obsm["X_bitatoms"].shape, adata.obsm["X_bitatoms_soft"].shape, adata.varm["bitatoms_atoms"].shape
    ((50, 3), (50, 3), (20, 3))
    """
    from ..io.readers import h5ad

    if not hasattr(adata, "obsm"):
        raise TypeError(f'adata must be an AnnData, got {type(adata).__name__}; for its raw, pass layer="raw"')
    learned = model.as_model()
    table = matched_table(adata, learned.header, model.absent, binarize=model.binarize, layer=layer)
    workers = model._workers(table.data)
    codes = learned.codes(table.data, workers)
    h5ad.annotate(adata, codes, learned, learned.soft_codes(table.data, codes, workers))
