"""The scikit-learn face: a thin class over ``factorize``."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..api import factorize, learn_from, telling
from ..base import TableTransformer, check_not_empty
from ..bits import BitMatrix
from ..core.block import Block
from ..core.model import Model, Pattern
from ..core.result import CountsResult, Factorization, Interrupted
from ..io import model_file
from ..online.stream import StreamLearner
from ..parallel import Workers, count_threads
from ..rows import dispatch
from ..rows.budget import checked
from ..rows.memory import MemoryRows
from ..rows.passes import PassResult
from ..rows.source import RowSource
from ..rows.store_transform import code_store, codes_in_memory, dense_bytes, row_bits
from ..search.params import SEARCH_PARAMS, SearchParams, resolve
from ..table import Names, Picture, Table
from ..validation import as_generator


def _with_parameters_of(function: Any) -> Any:
    """Put the description of the function's parameters where the class refers to it."""

    def decorate(cls: type) -> type:
        if cls.__doc__ and function.__doc__:
            described = function.__doc__.split("    n_components :")[1].split("    Returns\n")[0].rstrip()
            cls.__doc__ = cls.__doc__.replace(
                "    (those of :func:`bitatoms.factorize`)", f"    n_components :{described}"
            )
        return cls

    return decorate


def _takes_batches(estimator: BinaryDictionaryLearning) -> bool:
    """Whether there is partial_fit; where there is not, why."""
    if estimator.search == "paper":
        raise AttributeError('search="paper" needs all rows at once; learn from batches with search="fast"')
    return True


@_with_parameters_of(factorize)
class BinaryDictionaryLearning(TableTransformer):
    """Binary matrix factorization by dictionary learning: the few binary patterns (atoms) that explain a table.

    Parameters
    ----------
    (those of :func:`bitatoms.factorize`)
    max_memory : int, str or None, default=None
        Bytes that rows, codes and counts of a packed store may take together (also "500 MB", "2 GiB"); None is 512 MiB.
        It does not change what is found.
    forget : float, default=0.0
        The share of their weight that the rows so far lose with every row that ``partial_fit`` takes in: 1e-4 remembers
        about the last 10 000; 0 forgets nothing.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features), uint8
        The atoms, the one that saves most bits first.
    bias_ : ndarray of shape (n_features,), uint8
        Added to every sample; all zeros with ``search="paper"`` and for the fewest errors.
    codelength_ : Codelength
        The bits that describe the training data: ``errors``, ``codes``, ``atoms`` and their ``total``.
    history_ : list of Round
        One row a move: what was done, atoms, bits, wrong bits, what changed, iterations, seconds.
    algebra_ : {"xor", "or"}
        The algebra of the result.
    codelengths_ : dict
        The shortest codelength found in each algebra that was tried, in bits.
    summary_ : str
        What was found, in words.
    n_components_ : int
        Number of atoms.
    n_iter_ : int
        Steps of learning that were taken.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had names that are all strings.

    Examples
    --------
    >>> import bitatoms as ba
    >>> X = ba.datasets.planted(300, 40, 4, code_density=0.4, noise=0.02, random_state=0).X
    >>> model = ba.BinaryDictionaryLearning(random_state=0).fit(X)
    >>> codes = model.transform(X)
    >>> bool((model.inverse_transform(codes) != X).mean() < 0.03)
    True
    """

    def __init__(
        self,
        n_components: int | str = "mdl",
        *,
        algebra: str = "xor",
        search: str = "fast",
        objective: str = "auto",
        update: str = "mob",
        coder: str = "auto",
        init: Any = "auto",
        init_density: float = 0.5,
        n_init: int | str = "auto",
        start_components: int | str = "auto",
        max_components: int | None = None,
        patience: int | str | None = "auto",
        max_atoms_per_sample: int | None = None,
        residual_limit: int = 0,
        max_iter: int = 1000,
        max_time: float | None = None,
        sample_rows: int | str | None = "auto",
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
        max_memory: int | str | None = None,
        forget: float = 0.0,
        n_jobs: int | None = None,
        verbose: int = 0,
        callbacks: Any = None,
        binarize: float | None = None,
        device: str = "cpu",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.algebra = algebra
        self.search = search
        self.objective = objective
        self.update = update
        self.coder = coder
        self.init = init
        self.init_density = init_density
        self.n_init = n_init
        self.start_components = start_components
        self.max_components = max_components
        self.patience = patience
        self.max_atoms_per_sample = max_atoms_per_sample
        self.residual_limit = residual_limit
        self.max_iter = max_iter
        self.max_time = max_time
        self.sample_rows = sample_rows
        self.checkpoint = checkpoint
        self.resume = resume
        self.max_memory = max_memory
        self.forget = forget
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks
        self.binarize = binarize
        self.device = device
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> BinaryDictionaryLearning:
        """Learn atoms from the samples X, of shape (n_samples, n_features); y is not looked at.

        X may also be a packed store on disk (a `Store`, or the path of one), or a Dask array; the same rows give the
        same model to the bit, wherever they are. Ctrl-C raises KeyboardInterrupt and leaves the best model so far on
        the estimator.
        """
        if dispatch.is_elsewhere(X):
            return self._fit_elsewhere(X)
        self._reset()
        params, data = self._settings(), self._table(X, reset=True)
        return self._learn(MemoryRows(data, self._workers()), params, _tile_of(X))

    @available_if(_takes_batches)
    def partial_fit(self, X: Any, y: Any = None) -> BinaryDictionaryLearning:
        """Learn from one more batch of samples, of shape (n_samples, n_features); y is not looked at.

        The samples themselves are not kept: of what is past there are counts, which fade by ``forget``, and a sample of
        at most 4096 rows. The first batch is learned as ``fit`` would, or from atoms given as ``init`` by one step:
        code, count, update. The result depends on the batches and their order (see docs/scale.md). The first call, and
        one after ``fit`` or ``load``, begins a new stream, with the parameters of then. Interrupted, nothing of the
        batch is learned.

        Examples
        --------
        >>> import bitatoms as ba
        >>> X = ba.datasets.planted(2000, 40, 4, code_density=0.4, noise=0.02, random_state=0).X
        >>> model = ba.BinaryDictionaryLearning(4, random_state=0)
        >>> for start in range(0, 2000, 500):
        ...     model = model.partial_fit(X[start : start + 500])
        >>> model.components_.shape, model.as_model().n_samples
        ((4, 40), 2000)
        """
        online: StreamLearner | None = getattr(self, "_online", None)
        if online is None:
            self._reset()
        data = self._table(X, reset=online is None)
        if online is None:
            online = StreamLearner(self._settings(), self.forget, as_generator(self.random_state))
        with telling(self.verbose):
            online.partial_fit(data, self._workers())
        self._online = online
        self._keep(self._learned(online.as_result(), _tile_of(X)))
        return self

    def _reset(self) -> None:
        """A fit that fails leaves no half of a model."""
        for name in [name for name in vars(self) if name.endswith("_") or name == "_online"]:
            delattr(self, name)

    def _fit_elsewhere(self, X: Any, client: Any = None) -> BinaryDictionaryLearning:
        """Learn from a store, or from a Dask array on the cluster of a client."""
        self._settings()  # what is wrong with them is said before rows are read
        how = self.binarize, self._workers(), checked(self.max_memory), self.checkpoint, client
        with dispatch.open_rows(X, *how) as place:
            return self._fit_rows(*place)

    def _fit_rows(
        self, rows: RowSource, columns: Names | None = None, picture: Picture | None = None
    ) -> BinaryDictionaryLearning:
        """Learn from rows that are not in memory."""
        self._reset()
        check_not_empty((rows.n_rows, rows.n_features))
        self._check_columns(Table(BitMatrix.zeros(0, rows.n_features), columns=columns), reset=True)
        return self._learn(rows, self._settings(), picture)

    def _learn(self, rows: RowSource, params: SearchParams, picture: Picture | None) -> BinaryDictionaryLearning:
        """Search, and keep what is found."""
        own = self._workers(), self.random_state, self.verbose, self.checkpoint, self.resume
        try:
            learned = learn_from(rows, params, *own)
        except Interrupted as interrupted:
            if interrupted.result is not None:
                self._keep(self._learned(interrupted.result, picture))
            raise
        result = learned.result if isinstance(learned, PassResult) else learned
        self._keep(self._learned(result, picture))
        if result.ended in ("max_iter", "max_time"):
            warnings.warn(
                f"{result.ended} ended the search before it converged; raise it for a better model",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def _settings(self) -> SearchParams:
        """The parameters of the search."""
        parameters = self.get_params(deep=False)
        return resolve(**{name: parameters[name] for name in SEARCH_PARAMS})

    def _workers(self) -> Workers:
        return Workers(count_threads(self.n_jobs))

    def _keep(self, model: Model) -> None:
        """Take over what was learned."""
        self._model = model
        self.components_ = model.atoms.to_dense()
        self.bias_ = model.bias
        self.codelength_ = model.codelength
        self.history_ = list(model.history)
        self.algebra_ = model.algebra
        self.codelengths_ = dict(model.codelengths)
        self.summary_ = model.summary()
        self.n_components_ = model.atoms.n_rows
        self.n_iter_ = model.n_iter

    def _learned(self, result: Factorization | CountsResult, picture: Picture | None) -> Model:
        """The model of a result, with the names of its features."""
        names = getattr(self, "feature_names_in_", None)
        columns = None if names is None else tuple(map(str, names))
        return Model.from_factorization(result, self.max_atoms_per_sample, self.residual_limit, columns, picture)

    def as_model(self) -> Model:
        """What was learned as plain data: what `save` writes, and a report is made of.

        Returns
        -------
        Model
            With the atoms and the bias that ``components_`` and ``bias_`` hold now.
        """
        check_is_fitted(self, "components_")
        return replace(self._model, atoms=BitMatrix.from_dense(self.components_), bias=self.bias_)

    def transform(self, X: Any, output: str | os.PathLike[str] | None = None) -> Any:
        """The atoms that each sample uses: codes of shape (n_samples, n_components_), uint8.

        Each sample is coded afresh, whatever its code was in ``fit``. The codes of a Dask array are a Dask array, not
        computed yet. Those of a packed store are an array where that fits into ``max_memory``; with ``output``, a path,
        they are written there as a packed store, which comes back, however many there are.
        """
        if not dispatch.is_elsewhere(X):
            if output is not None:
                raise ValueError("output= is for the codes of a packed store; bitatoms.write writes those of a table")
            return self._code(X).factors()[1].to_dense()
        model, store = self.as_model(), dispatch.store_of(X, self.binarize)
        if store is None:
            from ..rows import dask_transform

            if output is not None:
                raise ValueError("output= is for the codes of a packed store; those of a Dask array have to_zarr")
            return dask_transform.transform(model, X, self.binarize)
        check_not_empty(store.shape)
        limit = checked(self.max_memory)
        if output is not None:
            return code_store(store, model, output, self._workers(), limit)
        if (needed := dense_bytes(store, model)) > limit:
            raise ValueError(
                f"the codes of {len(store)} samples take {needed} bytes as an array, more than max_memory={limit}; "
                'pass output="codes.zarr" to have them written to a store'
            )
        return codes_in_memory(store, model, self._workers(), limit).to_dense()

    def inverse_transform(self, X: Any) -> Any:
        """The samples that these codes, of shape (n_samples, n_components_), stand for."""
        check_is_fitted(self, "components_")
        if dispatch.is_dask(X):
            from ..rows import dask_transform

            return dask_transform.inverse_transform(self.as_model(), X)
        codes = BitMatrix.from_any(X, name="the code matrix")
        if codes.n_cols != self.n_components_:
            raise ValueError(f"the codes have {codes.n_cols} columns, but the model has {self.n_components_} atoms")
        return self.as_model().reconstruct(codes).to_dense()

    def score_samples(self, X: Any) -> Any:
        """Minus the bits that each sample takes, of shape (n_samples,): samples that fit badly stand out.

        A wrong bit and the use of an atom cost by how rare they were in ``fit``. The atoms themselves, which all
        samples share, are not counted in.
        """
        if dispatch.is_elsewhere(X):
            store = dispatch.store_of(X, self.binarize)
            if store is not None:
                check_not_empty(store.shape)
                return row_bits(store, self.as_model(), self._workers(), checked(self.max_memory))
            from ..rows import dask_transform

            return dask_transform.score_samples(self.as_model(), X, self.binarize)
        block = self._code(X)
        codes = block.factors()[1]
        errors = block.errors()
        return -self._model.row_bits(errors, codes)

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the bits a sample takes, on average over X; higher is better. y is not looked at."""
        return float(self.score_samples(X).mean())

    def _code(self, X: Any) -> Block:
        """The samples coded afresh."""
        return self.as_model().code(self._table(X, reset=False), self._workers())

    def patterns(self) -> list[Pattern]:
        """The atoms as people read them: features by name, how many samples use each, how many bits it saves.

        Returns
        -------
        list of Pattern
            Named tuples ``(atom, features, rows, share, bits_saved)``, the one that saves most bits first;
            ``pandas.DataFrame(model.patterns())`` makes a table of them.
        """
        return self.as_model().patterns()

    def save(self, path: Any) -> None:
        """Write the fitted model to one file; `bitatoms.load` reads it.

        Parameters
        ----------
        path : str or path-like
            Mostly with the ending .npz. The file holds arrays and JSON, no pickles, and is there whole or not at all.
        """
        passing = ("checkpoint", "resume")  # of one fit, not of the model
        parameters = {name: value for name, value in self.get_params(deep=False).items() if name not in passing}
        model_file.save(self.as_model(), path, parameters)


def _tile_of(X: Any) -> Picture | None:
    """The picture that each row of a table is, if it is one."""
    return None if not isinstance(X, Table) or X.picture is None else Picture(X.picture.tile)


def load(path: Any) -> BinaryDictionaryLearning:
    """Read a model that `BinaryDictionaryLearning.save` or ``bitatoms fit`` wrote.

    Parameters
    ----------
    path : str or path-like
        The file. Nothing in it is executed: it holds arrays and JSON.

    Returns
    -------
    BinaryDictionaryLearning
        Fitted, with the parameters it was fitted with (but for those that are no plain values: a callback, an array of
        atoms to start from, a random generator).

    Examples
    --------
    >>> import bitatoms as ba
    >>> X = ba.datasets.planted(300, 40, 4, noise=0.02, random_state=0).X
    >>> model = ba.BinaryDictionaryLearning(random_state=0).fit(X)
    >>> model.save("model.npz")
    >>> again = ba.load("model.npz")
    >>> bool((again.transform(X) == model.transform(X)).all())
    True
    """
    model, parameters, _ = model_file.load(path)
    estimator = BinaryDictionaryLearning()
    known = estimator.get_params(deep=False)
    estimator.set_params(**{name: value for name, value in parameters.items() if name in known})
    estimator.n_features_in_ = model.atoms.n_cols
    if model.columns is not None:
        estimator.feature_names_in_ = np.array(model.columns, object)
    estimator._keep(model)
    return estimator


def annotate(adata: Any, model: BinaryDictionaryLearning, layer: str | None = None) -> None:
    """Put codes and atoms into an AnnData, where scanpy and its neighbours look for them.

    Parameters
    ----------
    adata : AnnData of shape (n_obs, n_vars)
        It is changed: ``obsm["X_bitatoms"]`` gets the codes of its observations, ``varm["bitatoms_atoms"]`` the atoms,
        and ``uns["bitatoms"]`` what else was learned.
    model : BinaryDictionaryLearning
        Fitted; its ``binarize`` makes ones and zeros of counts.
    layer : str, optional
        The layer to code instead of ``X``.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> import bitatoms as ba
    >>> counts = np.random.default_rng(0).poisson(0.5, (50, 20)).astype(np.float32)
    >>> adata = anndata.AnnData(counts)
    >>> model = ba.BinaryDictionaryLearning(3, binarize=0, random_state=0).fit(adata)
    >>> ba.annotate(adata, model)
    >>> adata.obsm["X_bitatoms"].shape, adata.varm["bitatoms_atoms"].shape
    ((50, 3), (20, 3))
    """
    from ..io.readers import h5ad

    learned = model.as_model()
    table = Table.from_any(adata, binarize=model.binarize, layer=layer)
    learned.check(table)
    h5ad.annotate(adata, learned.code(table.bits, Workers(count_threads(model.n_jobs))).factors()[1], learned)
