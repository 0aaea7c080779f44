"""`BinaryDictionaryLearning`: the scikit-learn estimator over `bitatoms.factorize`; `load` and `annotate`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.metaestimators import available_if

from ..api import fitting, with_columns_of
from ..base import SearchLimitWarning, check_not_empty, tile_of, warn_of_limit
from ..bits import BitMatrix
from ..columns.matching import matched_table
from ..columns.table import Picture
from ..errors import InputError, NoAtomsWarning, Parameter
from ..io import model_file
from ..model.model import Model
from ..model.result import Factorization, Interrupted
from ..online.stream import StreamLearner
from ..parallel import Workers
from ..parameters import with_documentation, with_values
from ..rows import out_of_core
from ..rows.budget import given_memory_limit
from ..rows.out_of_core import StoreRows
from ..rows.passes import PassResult, with_codes
from ..rows.source import MemoryRows, RowSource
from ..rows.subsample import learn
from ..rows.weights import WeightedRows
from ..search.options import PaperSearch
from ..search.params import SearchParams
from ..sparse_bits import Bits, packed
from ..system.verbosity import log_to_stderr
from ..validation import as_generator, restored_on_error
from .model_estimator import FitSample
from .options import EstimatorOptions, result_parameters
from .statements import StatementsEstimator

_MAX_KEPT_BYTES = 1 << 26  # of the codes of a fit
_MOST_KEPT_CELLS, _LEAST_KEPT_ROWS = 1 << 22, 1000  # of the table of a fit, by which predictions are fitted


class TrainingRows(NamedTuple):
    """The rows of a fit, who processes them, what picture each of them is, and rows with weights before repetition."""

    rows: RowSource
    workers: Workers
    picture: Picture | None
    weighted: WeightedRows | None = None


def _has_partial_fit(estimator: BinaryDictionaryLearning) -> bool:
    """Return whether the search can learn from batches; the error gives the reason."""
    if estimator.search == "paper" or isinstance(estimator.search, PaperSearch):
        raise AttributeError('search="paper" needs all rows at once; learn from batches with search="fast"')
    return True


@with_documentation
class BinaryDictionaryLearning(StatementsEstimator):
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

    _learned = ("_model", "_stream", "_components", "_fit_codes", "_fit_sample")
    _fit_codes: BitMatrix | None = None  # of the training data, if they are small: `bitatoms.write_report` shows them
    _kind = EstimatorOptions
    _shared_workers: Workers | None = None  # of a caller that fits several models at the same time

    @with_values(EstimatorOptions)
    def __init__(self, parameters: dict[str, Any]) -> None:
        self.__dict__.update(parameters)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a pickle, without the codes of the training data."""
        return {name: value for name, value in super().__getstate__().items() if name != "_fit_codes"}

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
            stream = StreamLearner(self._params_of(weighted), self.forget, as_generator(self.random_state))
        limit = given_memory_limit(self._resources.max_memory)
        rows = batch.bits if weighted is None else packed(weighted.repeated(limit))
        with log_to_stderr(self.verbose):
            stream.partial_fit(rows, self._workers(rows))
        self._stream = stream
        self._set_model(self._model_of(stream.as_result(), stream.params, tile_of(batch)))

    @contextmanager
    def _opened(self, X: Any, sample_weight: Any = None, client: Any = None) -> Iterator[TrainingRows]:
        """Open the rows to fit, of a Dask collection on the cluster of a client; their columns become the model's."""
        self._search_params()  # check them before rows are read
        limit = given_memory_limit(self._resources.max_memory)
        if not out_of_core.is_out_of_core(X):
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
        how = self.binarize, workers, limit, self._resources.checkpoint, client, self.device
        with out_of_core.open_rows(X, *how) as (rows, header, picture):
            self._reset()
            check_not_empty((rows.n_rows, rows.n_features))
            self._set_features(header)
            yield TrainingRows(rows, workers, picture)

    def _learn(self, opened: TrainingRows, keeps_codes: bool = False) -> Factorization | PassResult:
        """Search, and store the model that is found."""
        rows, workers, picture, weighted = opened
        params, resources = self._params_of(weighted), self._resources
        try:
            with fitting(rows, params, self.random_state, self.verbose, resources) as (random, checkpoint):
                learned = learn(rows, params, workers, random, checkpoint, False, keeps_codes)
        except Interrupted as interrupted:
            if interrupted.result is not None:
                self._set_model(self._model_of(interrupted.result, params, picture))
            raise
        result = learned.result if isinstance(learned, PassResult) else learned
        self._set_model(self._model_of(result, params, picture))
        self._fit_sample = _sample_of(rows, replace(params, algebras=(result.algebra,)), result.atoms.n_rows)
        if isinstance(learned, Factorization) and weighted is None and learned.codes.words.nbytes <= _MAX_KEPT_BYTES:
            self._fit_codes = learned.codes
        if result.ended in ("max_iter", "max_time") and not params.ends_at_limit:
            goes_on = result.ended == "max_time" and resources.checkpoint is not None and result is learned
            resume = (", or pass ", Parameter("resume", True), " to resume from the checkpoint") if goes_on else ()
            warn_of_limit(result.ended, "the search", "a better model", *resume, stacklevel=4)
        elif result.ended == "max_memory":
            text = "memory ran out before the search converged; this is the best model so far"
            warnings.warn(SearchLimitWarning(text), stacklevel=4)
        elif not result.atoms.n_rows and params.n_components == "mdl" and params.max_components != 0:
            text = (
                "no atom makes the description of X shorter, so that codes are empty: its columns say little about "
                "each other, or its rows are too few. More rows may help; "
            )
            warnings.warn(
                NoAtomsWarning(text, Parameter("n_components", 5), " finds atoms that save no bits"), stacklevel=4
            )
        return learned

    def _params_of(self, weighted: WeightedRows | None) -> SearchParams:
        """Return the parameters of a search of the columns of the model, and of the repetitions of weighted rows."""
        params = with_columns_of(self._search_params(), self._header)
        return params if weighted is None else replace(params, init=weighted.repeated_init(params.init))

    def _workers(self, data: Bits | None = None) -> Workers:
        """Return who processes a table, None if its rows are not in memory."""
        return self._shared_workers or super()._workers(data)


def _sample_of(rows: RowSource, params: SearchParams, n_atoms: int) -> FitSample:
    """Return rows of a table, or all, and the parameters of searches of them.

    Searches of all rows, with some cells hidden, find as many atoms as the fit: predictions are those of its like.
    """
    n_rows = max(_LEAST_KEPT_ROWS, _MOST_KEPT_CELLS // rows.n_features)
    data = rows.ones() if rows.in_memory is None else rows.in_memory
    if rows.n_rows > n_rows:
        chosen = np.sort(np.random.default_rng(0).choice(rows.n_rows, n_rows, replace=False))
        data = rows.take(chosen) if data is None else data[chosen]
        init = params.init[0] if isinstance(params.init, tuple) else params.init  # without the codes of other rows
        params = replace(params, init=init)
    else:
        data = rows.take(np.arange(rows.n_rows)) if data is None else data
        if params.is_mdl_search and not (params.is_constrained or params.is_wide(rows.n_features)):
            params = replace(params, plan=replace(params.plan, fewest=n_atoms, most=n_atoms))
    return FitSample(data, replace(params, callbacks=()))


@contextmanager
def fit_with_codes(
    estimator: BinaryDictionaryLearning, X: Any, sample_weight: Any = None
) -> Iterator[Iterable[BitMatrix] | None]:
    """Fit an estimator to a table in memory or to a packed store, and yield the codes of the fit in chunks of rows.

    The counts of its model refer to these codes. Coding the same rows again may give slightly different ones.
    The codes are available until the exit. They are None if the model is that of a sample, because a limit was reached
    before all rows were coded. With weights, they are those of `WeightedRows.own_codes`.
    """
    with estimator._opened(X, sample_weight) as opened:
        rows, weighted = opened.rows, opened.weighted
        learned = estimator._learn(opened, keeps_codes=True)
        try:
            if isinstance(rows, StoreRows) and not isinstance(learned, Factorization):
                yield rows.code_chunks(learned.codes, learned.spec.atoms.n_rows, learned.indices)
                return
            codes = (learned if isinstance(learned, Factorization) else with_codes(learned)).codes
            if len(codes) != rows.n_rows:
                yield None
            else:
                yield [codes if weighted is None else weighted.own_codes(codes, estimator._model, opened.workers)]
        finally:
            rows.discard_codes(set())


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
        generators), and those that state how a fit runs (``n_jobs``, ``device``, ``verbose``, ``callbacks``,
        ``resources``), have their defaults.

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
    model, parameters, _ = model_file.load(path, result_parameters())
    return fitted_estimator(model, parameters)


def fitted_estimator(model: Model, parameters: dict[str, Any]) -> BinaryDictionaryLearning:
    """Return an estimator with these parameters that has learned this model."""
    estimator = BinaryDictionaryLearning()
    estimator.set_params(**parameters)
    estimator._set_features(model.header)
    estimator._set_model(model)
    return estimator


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
    from ..io.formats.single_cell import h5ad

    if not hasattr(adata, "obsm"):
        raise TypeError(f'adata must be an AnnData, got {type(adata).__name__}; for its raw, pass layer="raw"')
    learned = model.as_model()
    table = matched_table(adata, learned.header, model.absent, binarize=model.binarize, layer=layer)
    workers = model._workers(table.data)
    codes = learned.codes(table.data, workers)
    h5ad.annotate(adata, codes, learned, learned.soft_codes(table.data, codes, workers))
