"""`BinaryDictionaryLearning`: the scikit-learn estimator over `bitatoms.factorize`."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..api import learn_from, with_columns_of
from ..base import TableTransformer, check_not_empty
from ..bits import BitMatrix
from ..device_choice import workers_for
from ..errors import InputError, InputWarning, Parameter
from ..io import model_file
from ..matching import are_copies
from ..model.model import Model, Pattern
from ..model.result import CountsResult, Factorization, Interrupted
from ..online.stream import StreamLearner
from ..parallel import Workers
from ..parameters import (
    EstimatorKwargs,
    NComponents,
    SearchKwargs,
    check,
    declaration,
    documented,
    present_names,
    renamed_warning,
    select,
    with_defaults,
)
from ..rows import dispatch
from ..rows.budget import coding_rows, given_memory_limit, parse_memory_limit
from ..rows.memory import MemoryRows
from ..rows.passes import PassResult
from ..rows.source import RowSource
from ..rows.store_transform import code_store, codes_in_memory, dense_bytes, score_samples, soft_codes
from ..rows.weights import WeightedRows, check_total, checked_weights
from ..search.params import SearchParams, resolve
from ..sparse_bits import Bits, packed
from ..table import Picture, Table
from ..validation import as_generator, on_host, restored_on_error
from ..verbosity import log_to_stderr
from .same_kind import as_given, copies_as_given
from .statements import StatementsMixin

_MAX_KEPT_BYTES = 1 << 26  # of the codes of a fit


class SearchLimitWarning(InputWarning, ConvergenceWarning):
    """A limit on rounds or seconds ended a search before it converged."""


class TrainingRows(NamedTuple):
    """The rows of a fit, who processes them, what picture each of them is, and rows with weights before repetition."""

    rows: RowSource
    workers: Workers
    picture: Picture | None
    weighted: WeightedRows | None = None


def _has_partial_fit(estimator: BinaryDictionaryLearning) -> bool:
    """Return whether the search can learn from batches; the error gives the reason."""
    if estimator.search == "paper":
        raise AttributeError('search="paper" needs all rows at once; learn from batches with search="fast"')
    return True


@documented(EstimatorKwargs)
class BinaryDictionaryLearning(StatementsMixin, TableTransformer):
    """Binary matrix factorization by dictionary learning: find the few binary patterns (atoms) that explain a table.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features), uint8
        The atoms. The one that saves most bits comes first.
    bias_ : ndarray of shape (n_features,), uint8
        Added to every sample. All zeros with ``search="paper"`` and when the wrong cells are minimized.
    codelength_ : Codelength
        The bits that describe the training data: ``errors``, ``codes``, ``atoms`` and their ``total``.
    history_ : list of Round
        One row per move: what was done, atoms, bits, wrong cells, changes, iterations, seconds.
    algebra_ : {"xor", "or"}
        The algebra of the result.
    codelengths_ : dict
        The shortest codelength found in each algebra that was tried, in bits.
    summary_ : str
        A description of the result.
    n_components_ : int
        Number of atoms.
    n_iter_ : int
        Number of learning iterations.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has names that are all strings.

    Notes
    -----
    Wherever a method takes samples X, it also takes the path of a file. A file is read as by `bitatoms.read`; a packed
    store (see `bitatoms.pack`) is processed in chunks and may be larger than memory. Arrays of CuPy and tensors with
    DLPack's interface, such as those of PyTorch, are array-like, also on a GPU.

    Missing values (NaN, None, NA, masked; in sparse matrices NaN that is stored) are unknown cells: they have no
    influence on what is learned, and cost no bits.

    Columns of new samples that have names are matched to those of ``fit`` by name, in any order, where other estimators
    of scikit-learn raise an error. Unknown columns are ignored, with a warning; ``absent`` decides about columns that
    are absent. Arrays are matched by position.

    Examples
    --------
    >>> import bitatoms as ba
    >>> X = ba.datasets.planted(300, 40, 4, code_density=0.4, noise=0.02, random_state=0).X
    >>> model = ba.BinaryDictionaryLearning(random_state=0).fit(X)
    >>> codes = model.transform(X)
    >>> bool((model.inverse_transform(codes) != X).mean() < 0.03)
    True
    """

    _learned = ("_model", "_stream", "_components", "_fit_codes")
    _fit_codes: BitMatrix | None = None  # of the training data, if they are small: `bitatoms.write_report` shows them
    _missing = "unknown"
    _shared_workers: Workers | None = None  # of a caller that fits several models at the same time

    def __init__(self, n_components: NComponents = "mdl", **parameters: Unpack[EstimatorKwargs]) -> None:
        self.n_components = n_components
        for name, value in with_defaults(EstimatorKwargs, parameters).items():
            setattr(self, name, value)

    def set_params(self, **params: Any) -> BinaryDictionaryLearning:
        """Set the parameters of this estimator.

        Parameters
        ----------
        **params : dict
            Parameters by name.

        Returns
        -------
        BinaryDictionaryLearning
            This estimator.
        """
        super().set_params(**present_names(params))
        return self

    @property
    def components_(self) -> NDArray[np.uint8]:
        """The atoms, of shape ``(n_components_, n_features)``; an array of all cells is made when it is first used."""
        if "_components" not in vars(self):
            self._components = self._model.atoms.to_dense()
        return self._components

    @components_.setter
    def components_(self, atoms: NDArray[np.uint8]) -> None:
        self._components = atoms

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a pickle, without the codes of the training data."""
        return {name: value for name, value in super().__getstate__().items() if name != "_fit_codes"}

    @property
    def sample_rows(self) -> Any:
        """Deprecated name of ``search_rows``."""
        warnings.warn(renamed_warning("sample_rows"), stacklevel=2)
        return self.search_rows

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> BinaryDictionaryLearning:
        """Learn the atoms of a table.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData, Store, Dask collection or path
            The samples, of shape (n_samples, n_features). The same rows give the same model, to the bit, wherever
            they are stored.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional
            Whole numbers from 0 up, for tables in memory. A sample with weight w counts as w equal samples that follow
            each other, to the bit; one with weight 0 is left out.

        Returns
        -------
        BinaryDictionaryLearning
            This estimator, fitted.

        Raises
        ------
        Interrupted
            On Ctrl-C. It is a KeyboardInterrupt; the estimator then holds the best model so far.
        """
        return self._fit(X, sample_weight)

    def _fit(self, X: Any, sample_weight: Any = None, client: Any = None) -> BinaryDictionaryLearning:
        """Learn the atoms of a table, of a Dask collection on the cluster of a client."""
        with self._opened(X, sample_weight, client) as opened:
            self._learn(opened)
        return self

    @available_if(_has_partial_fit)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> BinaryDictionaryLearning:
        """Learn from one more batch of samples.

        The samples are not stored: the estimator keeps counts of earlier rows, which fade by ``forget``, and a
        subsample of at most 4096 rows. The first batch is learned as by ``fit``, or, if atoms are passed as ``init``,
        by one iteration of coding, counting and updating. The result depends on the batches and their order (see
        docs/tutorials/streams.md). The first call, and the first after ``fit`` or ``load``, begins a new stream with
        the current parameters. If a call raises an error, also one of a callback, the estimator is left as it was
        before the call, so that the batch can be passed again.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData or path
            The batch, of shape (n_samples, n_features).
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional
            Whole numbers from 0 up: how many equal samples each sample of the batch counts as.

        Returns
        -------
        BinaryDictionaryLearning
            This estimator.

        Examples
        --------
        >>> import bitatoms as ba
        >>> X = ba.datasets.planted(400, 40, 4, code_density=0.4, noise=0.02, random_state=0).X
        >>> model = ba.BinaryDictionaryLearning(random_state=0)
        >>> for start in range(0, 400, 200):
        ...     model = model.partial_fit(X[start : start + 200])
        >>> model.components_.shape, model.as_model().n_samples
        ((4, 40), 400)
        """
        before = dict(vars(self))
        try:
            with restored_on_error(self.random_state):
                self._learn_batch(X, sample_weight, copy(getattr(self, "_stream", None)))
        except BaseException:
            self.__dict__ = before
            raise
        return self

    def _learn_batch(self, X: Any, sample_weight: Any, stream: StreamLearner | None) -> None:
        """Learn from one more batch of a stream, or from the first batch of a new one."""
        if stream is None:
            self._reset()
        batch = self._validate_table(X, reset=stream is None)
        weighted = WeightedRows.of(batch.bits, sample_weight)
        if stream is None:
            params = with_columns_of(self._search_params(), self._header)
            if weighted is not None:
                params = replace(params, init=weighted.repeated_init(params.init))
            stream = StreamLearner(params, self.forget, as_generator(self.random_state))
        rows = batch.bits if weighted is None else packed(weighted.repeated(given_memory_limit(self.max_memory)))
        with log_to_stderr(self.verbose):
            stream.partial_fit(rows, self._workers(rows))
        self._stream = stream
        self._set_model(self._model_of(stream.as_result(), tile_of(batch)))

    @contextmanager
    def _opened(self, X: Any, sample_weight: Any = None, client: Any = None) -> Iterator[TrainingRows]:
        """Open the rows to fit, of a Dask collection on the cluster of a client; their columns become the model's."""
        self._search_params()  # check them before rows are read
        limit = given_memory_limit(self.max_memory)
        if not dispatch.is_out_of_core(X):
            self._reset()
            table = self._validate_table(X, reset=True)
            weighted = WeightedRows.of(table.data, sample_weight)
            data = table.data if weighted is None else weighted.repeated(limit)
            workers = self._workers(data)
            yield TrainingRows(MemoryRows(data, workers, limit), workers, tile_of(table), weighted)
            return
        if sample_weight is not None:
            raise InputError(
                Parameter("sample_weight"),
                f" is for tables in memory, not for a {type(X).__name__}; repeat its rows, or read it into memory",
            )
        workers = self._workers()
        how = self.binarize, workers, limit, self.checkpoint, client, self.device
        with dispatch.open_rows(X, *how) as (rows, header, picture):
            self._reset()
            check_not_empty((rows.n_rows, rows.n_features))
            self._set_features(header)
            yield TrainingRows(rows, workers, picture)

    def _learn(self, opened: TrainingRows, keeps_codes: bool = False) -> Factorization | PassResult:
        """Search, and store the model that is found."""
        rows, workers, picture, weighted = opened
        own = workers, self.random_state, self.verbose, self.checkpoint, self.resume
        params = with_columns_of(self._search_params(), self._header)
        if weighted is not None:
            params = replace(params, init=weighted.repeated_init(params.init))
        try:
            learned = learn_from(rows, params, *own, must_cover_all_rows=False, keeps_codes=keeps_codes)
        except Interrupted as interrupted:
            if interrupted.result is not None:
                self._set_model(self._model_of(interrupted.result, picture))
            raise
        result = learned.result if isinstance(learned, PassResult) else learned
        self._set_model(self._model_of(result, picture))
        if isinstance(learned, Factorization) and weighted is None and learned.codes.words.nbytes <= _MAX_KEPT_BYTES:
            self._fit_codes = learned.codes
        if result.ended in ("max_iter", "max_time") and not params.ends_at_limit:
            goes_on = result.ended == "max_time" and self.checkpoint is not None and result is learned
            resume = (", or pass ", Parameter("resume", True), " to go on from the checkpoint") if goes_on else ()
            warnings.warn(
                SearchLimitWarning(
                    Parameter(result.ended),
                    " ended the search before it converged; raise it for a better model",
                    *resume,
                ),
                stacklevel=4,
            )
        elif result.ended == "max_memory":
            warnings.warn(
                SearchLimitWarning("memory ran out before the search converged; this is the best model so far"),
                stacklevel=4,
            )
        return learned

    def _search_params(self) -> SearchParams:
        """Return the parameters of the search, checked."""
        for name in ("absent", "device"):
            check(name, getattr(self, name), declaration(name))
        return resolve(self.n_components, **select(SearchKwargs, vars(self)))

    def _workers(self, data: Bits | None = None) -> Workers:
        """Return who processes a table, None if its rows are not in memory."""
        n_cells = None if data is None else math.prod(data.shape)
        return self._shared_workers or workers_for(self.n_jobs, self.device, n_cells, self.verbose)

    def _set_model(self, model: Model) -> None:
        """Store a model and its fitted attributes."""
        self._model = model
        for name in ("_components", "_fit_codes"):
            self.__dict__.pop(name, None)
        self.bias_ = model.bias
        self.codelength_ = model.codelength
        self.history_ = list(model.history)
        self.algebra_ = model.algebra
        self.codelengths_ = dict(model.codelengths)
        self.summary_ = model.summary()
        self.n_components_ = model.atoms.n_rows
        self.n_iter_ = model.n_iter

    def _model_of(self, result: Factorization | CountsResult, picture: Picture | None) -> Model:
        """Return the model of a result, with the names of its features."""
        return Model.from_factorization(result, self.max_atoms_per_sample, self.residual_limit, self._header, picture)

    def as_model(self) -> Model:
        """Return what was learned as plain data, for `bitatoms.write_report` and other tools.

        Returns
        -------
        Model
            With the current ``components_`` and ``bias_``.
        """
        check_is_fitted(self, "n_components_")
        model = self._model
        atoms = BitMatrix.from_dense(self._components) if "_components" in vars(self) else model.atoms
        if atoms == model.atoms and (self.bias_ == model.bias).all():
            return model
        # The counts and codes are those of other atoms.
        model = replace(model, atoms=atoms, bias=self.bias_)
        model = replace(model, complete=None, lacking=None, atom_known=None)
        return replace(model, rows_hash=None, recurrence=None, remembered=None)

    def transform(self, X: Any, output: str | os.PathLike[str] | None = None) -> Any:
        """Return the codes of samples: the atoms that each sample uses.

        Each sample is coded as a new one is: from scratch, and from the nearest of the codes of ``fit`` that the model
        remembers because they are hard to find. The codes of the training data can therefore differ slightly from
        those of the fit, which `patterns`, ``summary_`` and ``codelength_`` refer to. With the same parameters,
        ``bitatoms.factorize(X, ...).codes`` are those of the fit. ``fit_transform(X)`` is ``fit(X).transform(X)``.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData, Store, Dask collection or path
            The samples, of shape (n_samples, n_features).
        output : str or path-like, optional
            For a packed store: write the codes to this path as a packed store.

        Returns
        -------
        ndarray of shape (n_samples, n_components_), uint8
            For a Dask collection, a lazy Dask array; with ``output``, a Store.
        """
        if not dispatch.is_out_of_core(X):
            if output is not None:
                raise ValueError("output= is for packed stores; use bitatoms.write to write the codes of a table")
            model, data, max_rows = self._to_code(X)
            return model.codes(data, self._workers(data), max_rows).to_dense()
        model, store = self.as_model(), dispatch.as_store(X, self.binarize)
        if store is None:
            from ..rows import dask_transform

            if output is not None:
                raise ValueError("output= is for packed stores; use to_zarr to write the codes of a Dask array")
            return dask_transform.transform(model, X, self.binarize, self.absent, self.device)
        check_not_empty(store.shape)
        limit = parse_memory_limit(self.max_memory)
        if output is not None:
            return code_store(store, model, output, self._workers(), limit, self.absent)
        if (needed := dense_bytes(store, model)) > limit:
            raise InputError(
                f"the codes of {len(store)} samples take {needed} bytes as an array, more than ",
                Parameter("max_memory", limit),
                "; pass ",
                Parameter("output", "codes.zarr"),
                " to write them to a store",
            )
        return codes_in_memory(store, model, self._workers(), limit, self.absent).to_dense()

    def inverse_transform(self, X: Any) -> Any:
        """Return the samples that these codes describe.

        Parameters
        ----------
        X : array-like, sparse matrix, BitMatrix or Dask array of shape (n_samples, n_components_)
            The codes.

        Returns
        -------
        ndarray of shape (n_samples, n_features), uint8
            For a Dask array, a lazy Dask array.
        """
        check_is_fitted(self, "n_components_")
        if dispatch.is_dask(X):
            from ..rows import dask_transform

            return dask_transform.inverse_transform(self.as_model(), X)
        codes = BitMatrix.from_any(X, name="the code matrix")
        if codes.n_cols != self.n_components_:
            raise ValueError(f"the codes have {codes.n_cols} columns, but the model has {self.n_components_} atoms")
        model = self.as_model()
        return model.possible(model.reconstruct(codes))[0].to_dense()

    def predict_cell_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of a one in every cell, known or not, given the known cells of its row.

        A code predicts a value for each cell. The probability of a one where 0 and where 1 is predicted is its
        frequency among such cells of the column in ``fit``. It is averaged over the codes of the row, weighted by
        2^-bits: over all codes with up to 10 atoms, otherwise over codes sampled in a way that depends only on the row.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData or path
            The samples, of shape (n_samples, n_features), with missing values.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64

        Examples
        --------
        >>> import bitatoms as ba
        >>> X = ba.datasets.planted(300, 40, 4, code_density=0.4, noise=0.02, random_state=0).X.astype(float)
        >>> X[0, :5] = float("nan")
        >>> ba.BinaryDictionaryLearning(random_state=0).fit(X).predict_cell_proba(X).shape
        (300, 40)
        """
        data = self._table_in_memory(X).bits
        return self.as_model().cell_probabilities(data, self._workers(data))

    def complete(self, X: Any) -> Any:
        """Return samples with their missing values filled in, known values as they are.

        A missing value becomes 1 where ``predict_cell_proba`` is above 0.5.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData or path
            The samples, of shape (n_samples, n_features), with missing values.

        Returns
        -------
        array, sparse array, data frame, Table or BitMatrix
            As X is, with its dtypes; with ``binarize``, 0 and 1. Columns are those of the model. For files, AnnData and
            pyarrow tables, a Table. An array, sparse array or data frame of numbers of copies (see `Table.from_any`)
            stays one, with one column per variant; `Table.to_dosages` converts a Table.

        Examples
        --------
        >>> import numpy as np
        >>> import bitatoms as ba
        >>> X = np.array([[1.0, 1, 0, 0]] * 20 + [[0, 0, 1, 1]] * 20)
        >>> model = ba.BinaryDictionaryLearning(random_state=0).fit(X)
        >>> model.complete([[np.nan, 1, 0, np.nan]])
        array([[1, 1, 0, 0]], dtype=uint8)
        """
        X = on_host(X)
        table = self._table_in_memory(X)
        completed = self.as_model().completed(table.bits, self._workers(table.bits))
        return (copies_as_given if are_copies(X, self._header) else as_given)(X, completed, table)

    def _table_in_memory(self, X: Any) -> Table:
        """Return X as a table with the columns of the model; raise for stores and Dask collections."""
        check_is_fitted(self, "n_components_")
        if dispatch.is_out_of_core(X):
            raise TypeError(f"cells of a {type(X).__name__} are not predicted; read its rows into memory first")
        return self._validate_table(X, reset=False)

    def decision_function(self, X: Any) -> Any:
        """Return the soft codes of samples: the bits that each atom saves, or would save, in each sample.

        The value of an atom is the bits of the sample without the atom, less its bits with it. The rest of its code is
        the one that ``transform`` returns, and the bits are those of `score_samples`. If the sample uses the atom, it
        is what the sample loses without it; if not, what it would gain with it. Where an atom is clearly present, the
        value is far above 0, where it is clearly absent, far below, and where it makes little difference, near 0.
        Unknown cells count for nothing. Under OR, only the cells that no other atom of the sample covers count.

        ``transform(X)`` is mostly ``decision_function(X) > 0``, but not always. Coders search codes at prices that
        differ slightly from these bits, or minimize the wrong cells without regard to the cost of a use. Under
        ``max_atoms_per_sample`` and ``residual_limit``, atoms that would save bits may remain unused. The values of a
        sample are each for one change of its code: they do not add up if two atoms are changed.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData, Store, Dask collection or path
            The samples, of shape (n_samples, n_features).

        Returns
        -------
        ndarray of shape (n_samples, n_components_), float64
            For a Dask collection, a lazy Dask array.

        Examples
        --------
        >>> import numpy as np
        >>> import bitatoms as ba
        >>> X = np.array([[1, 1, 1, 0, 0, 0]] * 20 + [[0, 0, 0, 1, 1, 1]] * 20)
        >>> model = ba.BinaryDictionaryLearning(2, random_state=0).fit(X)
        >>> new = [[1, 1, 1, 0, 0, 0], [1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 0]]
        >>> model.decision_function(new).round(1)
        array([[ 19. , -19. ],
               [  6.3, -19. ],
               [ 19. ,   6.3]])
        """
        if not dispatch.is_out_of_core(X):
            model, data, max_rows = self._to_code(X)
            workers = self._workers(data)
            return model.soft_codes(data, model.codes(data, workers, max_rows), workers, max_rows)
        model, store = self.as_model(), dispatch.as_store(X, self.binarize)
        if store is None:
            from ..rows import dask_transform

            return dask_transform.decision_function(model, X, self.binarize, self.absent, self.device)
        check_not_empty(store.shape)
        return soft_codes(store, model, self._workers(), parse_memory_limit(self.max_memory), self.absent)

    def score_samples(self, X: Any) -> Any:
        """Return minus the number of bits that each sample takes, its log-likelihood to base 2; higher is better.

        The bits of a sample are minus log2 of how frequent each of its cells, right or wrong with the code that
        ``transform`` returns, was in its column in ``fit``, and of how frequent each use and non-use of an atom was.
        Unknown cells cost nothing. The bits of the atoms themselves, which all samples share, are left out.

        Outliers, which the atoms describe badly, have low scores. A sample with unknown cells has a higher score than
        it would have if they were known: compare samples with about as many known cells. `score` is the mean.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData, Store, Dask collection or path
            The samples, of shape (n_samples, n_features).

        Returns
        -------
        ndarray of shape (n_samples,), float64
            For a Dask collection, a lazy Dask array.

        Examples
        --------
        >>> import numpy as np
        >>> import bitatoms as ba
        >>> X = np.array([[1, 1, 1, 0, 0, 0]] * 20 + [[0, 0, 0, 1, 1, 1]] * 20)
        >>> model = ba.BinaryDictionaryLearning(2, random_state=0).fit(X)
        >>> model.score_samples([[1, 1, 1, 0, 0, 0], [1, 0, 1, 0, 1, 0]]).round(1)
        array([ -2.1, -14.8])
        """
        if dispatch.is_out_of_core(X):
            store = dispatch.as_store(X, self.binarize)
            if store is not None:
                check_not_empty(store.shape)
                limit = parse_memory_limit(self.max_memory)
                return score_samples(store, self.as_model(), self._workers(), limit, self.absent)
            from ..rows import dask_transform

            return dask_transform.score_samples(self.as_model(), X, self.binarize, self.absent, self.device)
        model, data, max_rows = self._to_code(X)
        workers = self._workers(data)
        return -model.row_bits(data, model.codes(data, workers, max_rows), workers, max_rows)

    def _to_code(self, X: Any) -> tuple[Model, Bits, int | None]:
        """Return the model, samples in memory, and how many of them to code at a time."""
        model, data = self.as_model(), self._validate_table(X, reset=False).data
        return model, data, coding_rows(data, model, given_memory_limit(self.max_memory))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the mean number of bits per sample; higher is better.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData, Store, Dask collection or path
            The samples, of shape (n_samples, n_features).
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional
            Whole numbers from 0 up: how many equal samples each sample counts as.

        Returns
        -------
        float
            The mean of ``score_samples(X)``, with weights that of the repeated samples.
        """
        scores = self.score_samples(X)
        if sample_weight is None:
            return float(scores.mean())
        scores = np.asarray(scores)
        weights = checked_weights(sample_weight, len(scores))
        check_total(weights, scores.itemsize, given_memory_limit(self.max_memory))
        return float(np.repeat(scores, weights).mean())

    def patterns(self) -> list[Pattern]:
        """Return the atoms in readable form: features by name, how many samples use them, bits saved.

        Returns
        -------
        list of Pattern
            Named tuples ``(atom, features, rows, share, bits_saved, complete, recurs, span, expected, lift,
            member_lifts)``: ``rows`` samples use the atom, and ``complete`` samples have all its features. ``expected``
            samples would have all of them if features were independent of each other, and ``lift`` is ``complete /
            expected``. ``member_lifts`` has one number per feature: its share of the samples that have all other
            features of the atom, divided by its share of all samples. Only samples in which the features concerned are
            known count. ``recurs`` is the share of other searches that found the atom again, if `bitatoms.stability`
            has counted them. The atom that saves most bits comes first.
            `to_frame` returns them as a data frame.
        """
        return self.as_model().patterns()

    def to_frame(self) -> Any:
        """Return the atoms as a pandas data frame, one row per atom, the one that saves most bits first.

        The columns have the names of `patterns`, of files of patterns (``bitatoms show --patterns``) and of ``--json``.

        Returns
        -------
        pandas.DataFrame
            With the columns ``atom`` (1 saves most bits), ``features`` (a tuple of names), ``size`` (their number),
            ``rows`` (samples that use the atom), ``share`` (of all samples), ``bits_saved``, ``complete`` (samples that
            have all features), ``expected`` (those, if features were independent), ``lift``, ``member_lifts`` (one
            number per feature), ``recurs`` (see `bitatoms.stability`) and ``span`` (where the features are on a
            genome). What is unknown is missing (NA, NaN or None), such as ``recurs`` of a model whose stability was
            not counted.

        Raises
        ------
        MissingLibrary
            pandas is not installed; `patterns` works without it.

        See Also
        --------
        to_rules : Rules, as a data frame.

        Examples
        --------
        >>> import bitatoms as ba
        >>> table = ba.datasets.baskets(1000)
        >>> model = ba.BinaryDictionaryLearning(algebra="or", random_state=0).fit(table)
        >>> frame = model.to_frame()
        >>> frame.loc[frame["size"] > 4, ["atom", "size", "rows", "complete"]].head(2)
           atom  size  rows  complete
        0     1     5    82        63
        1     2     6    54        39
        """
        return self.as_model().to_frame()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file, which `bitatoms.load` reads.

        Parameters
        ----------
        path : str or path-like
            The file, by convention with the ending .npz. It holds arrays and JSON, no pickles. The write is atomic.
        """
        model_file.save(self.as_model(), path, self.get_params(deep=False))


def tile_of(table: Table) -> Picture | None:
    """Return the picture that each row of a table is, if it is one."""
    return None if table.picture is None else Picture(table.picture.tile)
