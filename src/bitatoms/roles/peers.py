"""Users who differ from others with the same role: permissions that few of these have, or that nearly all have."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .options import AuditOptions
from .tables import without

Difference = tuple[int, int, int, int, int]  # user (row), permission (column), role, its other users, those who have it


class Peers:
    """The users of each role, and how many of them have each permission.

    Parameters
    ----------
    data, atoms, codes : sparse arrays of int64
        Users x permissions, roles x permissions and users x roles.
    options : AuditOptions
        Which roles have enough users to compare, and from which share on a difference counts.
    """

    def __init__(self, data: Any, atoms: Any, codes: Any, options: AuditOptions) -> None:
        self.data, self.atoms, self.codes, self.min_share = data, atoms, codes, options.min_share
        n_users = np.asarray(codes.sum(axis=0)).reshape(-1)
        self.n_peers: NDArray[np.int64] = n_users - 1
        self.is_large = n_users > options.min_peers  # roles whose users have enough peers
        self.counts = (codes.T @ data).tocsr()  # users of each role who have each permission
        self.counts.sort_indices()
        self.counted_role = np.repeat(np.arange(len(n_users)), np.diff(self.counts.indptr))  # of each of the counts

    def unusual(self) -> list[Difference]:
        """Return the permissions of users that no large role of theirs gives, and that few users of these roles have.

        The user is compared with the users of the role that has the most.
        """
        large = self.codes.multiply(self.is_large[np.newaxis]).tocsr()
        large.eliminate_zeros()
        n_peers, usual = np.maximum(self.n_peers[self.counted_role], 1), self.counts.copy()
        usual.data = ((n_peers - (usual.data - 1)) / n_peers < self.min_share).astype(np.int64)  # without the user
        rest, found = without(self.data, large @ (self.atoms + usual)), []
        for row in np.flatnonzero(np.diff(rest.indptr) * np.diff(large.indptr)).tolist():
            roles = np.sort(_columns_of(large, row))
            role = int(roles[np.argmax(self.n_peers[roles])])
            columns, having = _columns_of(rest, row), self.counts[[role]].toarray().ravel()
            found += [
                (row, column, role, int(self.n_peers[role]), int(having[column]) - 1) for column in columns.tolist()
            ]
        return found

    def missing(self) -> list[Difference]:
        """Return the permissions that users lack and nearly all other users of one of their roles have.

        Of several roles, it is the one with the largest share, then the one with the most users.
        """
        n_peers, n_with = np.maximum(self.n_peers[self.counted_role], 1), self.counts.data
        is_lacked = self.is_large[self.counted_role] & (n_with <= n_peers) & (n_with / n_peers >= self.min_share)
        lacked = np.flatnonzero(is_lacked)
        lacked = lacked[np.lexsort((-n_peers[lacked], -(n_with / n_peers)[lacked]))]
        members, holders = self.codes.tocsc(), self.data.tocsc()
        best: dict[tuple[int, int], Difference] = {}
        for index in lacked.tolist():
            role, column = int(self.counted_role[index]), int(self.counts.indices[index])
            for row in np.setdiff1d(_columns_of(members, role), _columns_of(holders, column)).tolist():
                best.setdefault((row, column), (row, column, role, int(n_peers[index]), int(n_with[index])))
        return [best[cell] for cell in sorted(best)]


def _columns_of(matrix: Any, row: int) -> NDArray[np.intp]:
    """Return the indices of the entries of a row of a CSR array, or of a column of a CSC array."""
    return matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]
