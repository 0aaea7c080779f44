"""Deprecated name of `bitatoms.dask`."""

import warnings

from ..dask import array_of, fit, inverse_transform, score_samples, transform

__all__ = ["array_of", "fit", "inverse_transform", "score_samples", "transform"]

warnings.warn(
    "bitatoms.scale.dask is deprecated and will be removed in 0.3; import bitatoms.dask", FutureWarning, stacklevel=2
)
