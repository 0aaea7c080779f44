"""Users who differ from others with the same role: permissions that few of these have, or that nearly all have."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .options import AuditOptions


class Difference(NamedTuple):
    """A user (row) and a permission (column), and the role whose other users the user is compared with."""

    row: int
    column: int
    role: int
    n_peers: int
    n_with: int


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
        self.n_users: NDArray[np.int64] = np.asarray(codes.sum(axis=0)).reshape(-1)
        self.is_large = self.n_users > options.min_peers  # roles whose users have enough peers
        self.counts = (codes.T @ data).tocsr()  # users of each role who have each permission
        self.counts.sort_indices()

    def unusual(self) -> list[Difference]:
        """Return the permissions of users that no large role of theirs gives, and that few users of these roles have.

        The user is compared with the users of the role that has the most.
        """
        large = self.codes.multiply(self.is_large[np.newaxis]).tocsr()
        large.eliminate_zeros()
        given = (large @ self.atoms).astype(bool).astype(np.int64)
        rest = (self.data - self.data.multiply(given)).tocsr()
        rest.eliminate_zeros()
        rest.sort_indices()
        found = []
        for row in np.flatnonzero(np.diff(rest.indptr)).tolist():
            roles = np.sort(_columns_of(large, row))
            if not len(roles):
                continue
            columns = _columns_of(rest, row)
            n_with = np.stack([self._users_with(role, columns) for role in roles.tolist()]) - 1  # without the user
            n_peers = self.n_users[roles] - 1
            is_unusual = ((n_peers[:, np.newaxis] - n_with) / n_peers[:, np.newaxis] >= self.min_share).all(axis=0)
            most = int(np.argmax(n_peers))
            for index in np.flatnonzero(is_unusual).tolist():
                values = (int(columns[index]), int(roles[most]), int(n_peers[most]), int(n_with[most, index]))
                found.append(Difference(row, *values))
        return found

    def _users_with(self, role: int, columns: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return how many users of a role have these permissions, each of which at least one of them has."""
        start = self.counts.indptr[role]
        return self.counts.data[start + np.searchsorted(_columns_of(self.counts, role), columns)]

    def missing(self) -> list[Difference]:
        """Return the permissions that users lack and nearly all other users of one of their roles have.

        Of several roles, it is the one with the largest share, then the one with the most users.
        """
        best: dict[tuple[int, int], Difference] = {}
        members, holders = self.codes.tocsc(), self.data.tocsc()
        for role in np.flatnonzero(self.is_large).tolist():
            n_peers = int(self.n_users[role]) - 1
            columns = _columns_of(self.counts, role)
            counts = self.counts.data[self.counts.indptr[role] : self.counts.indptr[role + 1]]
            users = _columns_of(members, role)
            for index in np.flatnonzero((counts <= n_peers) & (counts / n_peers >= self.min_share)).tolist():
                column, n_with = int(columns[index]), int(counts[index])
                for row in np.setdiff1d(users, _columns_of(holders, column)).tolist():
                    before = best.get((row, column))
                    # Compared as fractions, so that no rounding decides.
                    if before is None or (n_with * before.n_peers, n_peers) > (
                        before.n_with * n_peers,
                        before.n_peers,
                    ):
                        best[row, column] = Difference(row, column, role, n_peers, n_with)
        return [best[cell] for cell in sorted(best)]


def _columns_of(matrix: Any, row: int) -> NDArray[np.intp]:
    """Return the indices of the entries of a row of a CSR array, or of a column of a CSC array."""
    return matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]
