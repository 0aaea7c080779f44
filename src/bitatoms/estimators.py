"""The scikit-learn face: a thin class over ``factorize``."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from .algorithms.block import Block
from .algorithms.coding import CODERS, coding_rule
from .algorithms.model import Factorization, Interrupted, reconstruct
from .algorithms.pricing import codelength_prices
from .bits import BitMatrix
from .door import refuse_masked
from .factorization import factorize
from .parallel import Workers, count_threads


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


@_with_parameters_of(factorize)
class BinaryDictionaryLearning(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Binary matrix factorization by dictionary learning: the few binary patterns (atoms) that explain a table.

    Parameters
    ----------
    (those of :func:`bitatoms.factorize`)

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
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks
        self.binarize = binarize
        self.device = device
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> BinaryDictionaryLearning:
        """Learn atoms from the samples X, of shape (n_samples, n_features); y is not looked at.

        Ctrl-C raises KeyboardInterrupt and leaves the best model so far on the estimator.
        """
        for name in [name for name in vars(self) if name.endswith("_")]:  # a fit that fails leaves no half of a model
            delattr(self, name)
        parameters = {**self.get_params(deep=False), "binarize": None}
        data = self._table(X, reset=True)
        try:
            result = factorize(data, **parameters)
        except Interrupted as interrupted:
            if interrupted.result is not None:
                self._keep(interrupted.result)
            raise
        self._keep(result)
        if result.ended in ("max_iter", "max_time"):
            warnings.warn(
                f"{result.ended} ended the search before it converged; raise it for a better model",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _keep(self, result: Factorization) -> None:
        """Take over what was learned, and how samples are coded."""
        self.components_ = result.atoms.to_dense()
        self.bias_ = result.bias
        self.codelength_ = result.codelength
        self.history_ = list(result.history)
        self.algebra_ = result.algebra
        self.codelengths_ = dict(result.codelengths)
        self.summary_ = result.summary()
        self.n_components_ = result.atoms.n_rows
        self.n_iter_ = result.n_iter
        # Share of the training samples in which a feature is wrong or an atom used, never quite 0 or 1.
        n_samples = result.codes.n_rows
        self._wrong_share = (result.wrong + 0.5) / (n_samples + 1)
        self._use_share = (result.codes.column_weights() + 0.5) / (n_samples + 1)
        self._coder = result.coder
        prices = None
        if self._coder in ("mdl", "beam"):  # frozen at what they are at the end of fit
            prices = codelength_prices(n_samples, result.wrong, result.codes.column_weights())
        limits = self.max_atoms_per_sample, self.residual_limit
        self._rule = coding_rule(self._coder, self.algebra_, *limits, prices)

    def transform(self, X: Any) -> NDArray[np.uint8]:
        """The atoms that each sample uses: codes of shape (n_samples, n_components_), uint8.

        Each sample is coded afresh, whatever its code was in ``fit``.
        """
        return self._code(X).factors()[1].to_dense()

    def inverse_transform(self, X: Any) -> NDArray[np.uint8]:
        """The samples that these codes, of shape (n_samples, n_components_), stand for."""
        check_is_fitted(self, "components_")
        codes = BitMatrix.from_any(X, name="the code matrix")
        if codes.n_cols != self.n_components_:
            raise ValueError(f"the codes have {codes.n_cols} columns, but the model has {self.n_components_} atoms")
        return reconstruct(codes, BitMatrix.from_dense(self.components_), self.bias_, self.algebra_).to_dense()

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Minus the bits that each sample takes, of shape (n_samples,): samples that fit badly stand out.

        A wrong bit and the use of an atom cost by how rare they were in ``fit``. The atoms themselves, which all
        samples share, are not counted in.
        """
        block = self._code(X)
        codes = block.factors()[1]
        errors = BitMatrix.trusted(block.rows.errors, block.n_features)
        return -(_bits(errors, self._wrong_share) + _bits(codes, self._use_share))

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the bits a sample takes, on average over X; higher is better. y is not looked at."""
        return float(self.score_samples(X).mean())

    def _code(self, X: Any) -> Block:
        """The samples coded afresh."""
        check_is_fitted(self, "components_")
        data = self._table(X, reset=False)
        shifted = BitMatrix.trusted(data.words ^ BitMatrix.from_dense(self.bias_[np.newaxis]).words, data.n_cols)
        atoms = BitMatrix.from_dense(self.components_)
        block = Block(shifted, atoms, None, self._rule.covers, Workers(count_threads(self.n_jobs)))
        prices = self._rule.prices
        if prices is not None:  # copies, for a model may be loaded read-only, and numba compiles anew for such arrays
            prices = type(prices)(*(np.array(price) for price in prices))
        CODERS[self._coder](block, self._rule._replace(prices=prices))
        return block

    def _table(self, X: Any, reset: bool) -> BitMatrix:
        """X as packed bits, by scikit-learn's rules: named and counted features, no missing values, not empty."""
        packed = isinstance(X, BitMatrix)
        if packed and 0 in X.shape:
            what = "sample" if X.n_rows == 0 else "feature"
            raise ValueError(f"Found array with 0 {what}(s) (shape={X.shape}) while a minimum of 1 is required.")
        refuse_masked(X, "X")  # scikit-learn would look past the mask
        formats = ("csr", "csc", "coo")
        checked = validate_data(self, X, reset=reset, skip_check_array=packed, accept_sparse=formats, dtype=None)
        return BitMatrix.from_any(checked, self.binarize)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _bits(table: BitMatrix, share: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each row, the bits that its ones and zeros cost where ones have these shares."""
    one, zero = -np.log2(share), -np.log2(1 - share)
    return np.asarray(table.to_sparse() @ (one - zero)) + zero.sum()
