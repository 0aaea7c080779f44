"""`CoverMiner`: the scikit-learn estimator over `bitatoms.cover`."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..api import run_cover
from ..base import TableTransformer, warn_of_limit
from ..bits import BitMatrix
from ..columns.table import Names, Table, axis_names, feature_names
from ..covers.coding import code_from_below
from ..covers.options import CoverOptions
from ..covers.result import Cover
from ..engine.block import reconstruct
from ..frames import in_memory
from ..model.complete_rows import count_members
from ..model.patterns import Pattern, feature_shares, lifts_of, pattern_frame
from ..model.result import Interrupted
from ..parameters import with_documentation, with_values
from .outputs import frame_like, transformed


@with_documentation
class CoverMiner(TableTransformer):
    """Find roles: atoms whose union is each row of a table exactly, with no one missed and none added.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features), uint8
        The roles. The one that covers most ones comes first.
    cover_ : Cover
        The cover of the training data, with its codes and a lower bound.
    n_components_ : int
        Number of roles.
    n_iter_ : int
        Number of rounds of the search.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    cover : The function, which returns a `Cover`.

    Examples
    --------
    >>> import bitatoms as ba
    >>> X = ba.datasets.planted(50, 30, 4, algebra="or", atom_density=0.2, noise=0, random_state=0).X
    >>> miner = ba.CoverMiner(random_state=0).fit(X)
    >>> miner.components_.shape, miner.cover_.is_optimal
    ((4, 30), True)
    >>> bool((miner.inverse_transform(miner.transform(X)) == X).all())
    True
    """

    @with_values(CoverOptions)
    def __init__(self, parameters: dict[str, Any]) -> None:
        self.__dict__.update(parameters)

    def fit(self, X: Any, y: Any = None) -> CoverMiner:
        """Find the roles of a table.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData or path
            The users, of shape (n_samples, n_features), without missing values.
        y : None
            Ignored.

        Returns
        -------
        CoverMiner
            This estimator, fitted.

        Raises
        ------
        Interrupted
            On Ctrl-C. It is a KeyboardInterrupt; the estimator then holds the best cover so far.
        """
        self._reset()
        options = CoverOptions(**self.get_params())
        table = self._table_in_memory(X, reset=True)
        if options.has_limits and table.columns is None and table.row_names is None:
            table = Table(table.data, *axis_names(X))  # scikit-learn's validation drops the names of a data frame
        try:
            found = run_cover(table, options)
        except Interrupted as interrupted:
            self._set_cover(interrupted.result)
            raise
        self._set_cover(found)
        if found.ended == "max_time" and not found.is_optimal:
            warn_of_limit("max_time", "the search", "a better cover")
        return self

    def _set_cover(self, found: Cover) -> None:
        """Store a cover and its fitted attributes."""
        self.cover_ = found
        self.components_ = found.atoms.to_dense()
        self.n_components_ = found.n_roles
        self.n_iter_ = max(1, len(found.history))

    def transform(self, X: Any) -> Any:
        """Return the roles of users, from below: only roles all of whose permissions a user has.

        The roles cover as many of the ones of a row as these roles can, and are the fewest that do so. Rows of the
        training data are covered completely, apart from direct grants, with no more roles than ``cover_.codes`` has.
        (If a row has very many combinations of roles, they are the fewest found, which may be more in both cases.)

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Table, BitMatrix, AnnData or path
            The users, of shape (n_samples, n_features).

        Returns
        -------
        ndarray or data frame of shape (n_samples, n_components_), uint8
            For a data frame, one of the same package with its index and the columns atom1, atom2, ...
        """
        check_is_fitted(self, "n_components_")
        X = in_memory(X)
        data = self._table_in_memory(X, reset=False).bits
        codes = code_from_below(data, BitMatrix.from_dense(self.components_)).to_dense()
        return transformed(self, X, codes, self.get_feature_names_out())

    def inverse_transform(self, X: Any) -> Any:
        """Return the permissions of users with these roles.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or BitMatrix of shape (n_samples, n_components_)
            The roles of each user.

        Returns
        -------
        ndarray or data frame of shape (n_samples, n_features), uint8
            For a data frame, one of the same package with its index.
        """
        X = in_memory(X)
        codes = self._codes_of(X)
        bias = np.zeros(self.n_features_in_, np.uint8)
        users = reconstruct(codes, BitMatrix.from_dense(self.components_), bias, "or").to_dense()
        return frame_like(X, users, feature_names(self._header.names, range(self.n_features_in_)))

    def to_frame(self) -> Any:
        """Return the roles as a pandas data frame, one row per role.

        Returns
        -------
        pandas.DataFrame
            With the columns of `BinaryDictionaryLearning.to_frame` that roles have: ``atom`` (the number of the role,
            from 1), ``features`` (its permissions), ``size``, ``rows`` (users who have the role), ``share``,
            ``complete`` (users who have all its permissions), ``expected``, ``lift`` and ``member_lifts``.

        Examples
        --------
        >>> import bitatoms as ba
        >>> users = ba.datasets.permissions(60)
        >>> roles = ba.CoverMiner(random_state=0).fit(users).to_frame()
        >>> list(roles.columns)
        ['atom', 'features', 'size', 'rows', 'share', 'complete', 'expected', 'lift', 'member_lifts']
        """
        check_is_fitted(self, "n_components_")
        names = getattr(self, "feature_names_in_", None)
        columns = None if names is None else tuple(names.tolist())
        return pattern_frame(_patterns(self.cover_, columns), leave_out=("bits_saved", "recurs", "span"))


def _patterns(cover: Cover, columns: Names | None = None) -> list[Pattern]:
    """Return the roles in readable form, in their order; the bits that a role saves are not counted."""
    table, n = cover.reconstruct(), cover.codes.n_rows
    users, counted = cover.codes.column_weights(), count_members(table, cover.atoms)
    shares = feature_shares(np.zeros(table.n_cols, np.uint8), table.column_weights(), table.n_known)
    lifts = lifts_of(cover.atoms, shares, counted)
    return [
        Pattern(
            atom=k + 1,
            features=feature_names(columns, np.flatnonzero(cover.atoms[k]).tolist()),
            rows=int(users[k]),
            share=float(users[k] / max(1, n)),
            bits_saved=0,
            complete=int(counted.complete[k]),
            **lifts.of_pattern(k),
        )
        for k in range(cover.n_roles)
    ]
