"""`CategoryEncoder`: `bitatoms.encode` as a transformer, for pipelines of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..columns.column_types import names_of_columns
from ..columns.encode_options import EncodeOptions, check_names
from ..columns.encoding import Encoding, encode
from ..columns.table import Table
from ..errors import InputError, Parameter
from ..frames import in_memory
from ..parameters import with_documentation, with_values
from .outputs import chosen_output, columns_like

_OUTPUTS = ("default", "pandas", "polars")


@with_documentation
class CategoryEncoder(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Encode tables of categories and numbers as tables of 0 and 1: `bitatoms.encode` as a transformer.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    encoding_ : Encoding
        The variables: their names, kinds, values and bins.
    n_features_in_ : int
        Number of columns of the data frame.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names.

    Notes
    -----
    ``transform`` returns a Table, in which unknown cells are missing values and columns have names. A
    BinaryDictionaryLearning that is fitted on it stores the encoding too, and then encodes data frames itself. Other
    steps of scikit-learn, such as ColumnTransformer and SimpleImputer, read it as an array, in which unknown cells are
    NaN. For data frames, which keep the names, call ``set_output``.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> import bitatoms as ba
    >>> frame = {"colour": ["red", "blue"] * 20, "age": [20, 50] * 20}
    >>> encoder = ba.CategoryEncoder(bins=2)
    >>> model = make_pipeline(encoder, ba.BinaryDictionaryLearning(1, random_state=0)).fit(frame)
    >>> list(encoder.get_feature_names_out())
    ['colour=blue', 'colour=red', 'age=20', 'age=50']
    >>> model.transform({"colour": ["red", "blue"], "age": [20, 50]}).shape
    (2, 1)
    """

    @with_values(EncodeOptions)
    def __init__(self, parameters: dict[str, Any]) -> None:
        self.__dict__.update(parameters)

    def fit(self, X: Any, y: Any = None) -> CategoryEncoder:
        """Learn the values and bins of the columns.

        Parameters
        ----------
        X : pandas or polars DataFrame, pyarrow Table, mapping of names to columns, or structured array
            The samples.
        y : None
            Ignored.

        Returns
        -------
        CategoryEncoder
            This estimator, fitted.
        """
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Learn the values and bins of the columns, and encode the same samples.

        Parameters
        ----------
        X : pandas or polars DataFrame, pyarrow Table, mapping of names to columns, or structured array
            The samples.
        y : None
            Ignored.

        Returns
        -------
        Table, or a data frame after ``set_output``
        """
        X = in_memory(X)
        table = encode(X, **self.get_params())
        self.encoding_ = Encoding.of(table) or Encoding(())
        self.feature_names_in_ = np.array(names_of_columns(X), object)
        self.n_features_in_ = len(self.feature_names_in_)
        return self._output(table, X)

    def transform(self, X: Any) -> Any:
        """Encode samples, as `Encoding.apply` does.

        Parameters
        ----------
        X : pandas or polars DataFrame, pyarrow Table, mapping of names to columns, or structured array
            The samples. Columns may be in any order. Those that were not encoded are ignored, with a warning unless
            they are in ``without``; those that are absent are an error.

        Returns
        -------
        Table, or a data frame after ``set_output``
        """
        check_is_fitted(self)
        X = in_memory(X)
        return self._output(self.encoding_._applied(X, None, "unknown", "X", check_names("without", self.without)), X)

    def set_output(self, *, transform: str | None = None) -> CategoryEncoder:
        """Choose what ``transform`` and ``fit_transform`` return, as for the transformers of scikit-learn.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, optional
            A Table, or a data frame in which unknown cells are missing values. None changes nothing. Before it is
            called, ``transform_output`` of ``sklearn.set_config`` decides.

        Returns
        -------
        CategoryEncoder
            This estimator.
        """
        if transform is not None:
            if transform not in _OUTPUTS:
                raise InputError(Parameter("transform", transform), f" is not one of {', '.join(_OUTPUTS)}")
            self._sklearn_output_config = {"transform": transform}  # the attribute that scikit-learn's clone copies
        return self

    def _output(self, table: Table, X: Any) -> Any:
        """Return a table of these samples in the type that was chosen."""
        chosen = chosen_output(self)
        if chosen == "default":
            return table
        if chosen == "pandas":
            frame = table.to_pandas()
            return frame if getattr(X, "iloc", None) is None else frame.set_axis(X.index, axis=0)
        from polars import DataFrame, Series

        unknown = table.bits.unknown
        columns = DataFrame(table.bits.filled().to_dense(), schema=list(self.encoding_.columns))
        if unknown is None:
            return columns
        masks = unknown.to_dense(bool).T
        return columns.with_columns(
            column.set(Series(mask), None) for column, mask in zip(columns, masks, strict=True) if mask.any()
        )

    def inverse_transform(self, X: Any) -> Any:
        """Return the values of the variables; see `Encoding.decode`.

        Parameters
        ----------
        X : Table, array or data frame
            Encoded samples, such as those that a model completed.

        Returns
        -------
        dict of str to list, or data frame
            For a data frame, one of the same package with its index.
        """
        check_is_fitted(self)
        X = in_memory(X)
        return columns_like(X, self.encoding_.decode(X))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns of 0 and 1.

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        ndarray of str objects
        """
        check_is_fitted(self)
        return np.array(self.encoding_.columns, object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = True
        return tags
