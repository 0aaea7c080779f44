"""Pairs of roles with common permissions, or with nearly the same users."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import triu

from ..columns.table import Names
from .entries import RolePair

MAX_PAIRS = 5000  # pairs that are kept
_SAME_USERS = 0.9  # Jaccard index from which two roles have nearly the same users


class _Shared(NamedTuple):
    """How many elements pairs of sets share, if any. A pair is the number first * n_sets + second."""

    pairs: NDArray[np.int64]  # sorted
    counts: NDArray[np.int64]
    sizes: NDArray[np.int64]  # of each set

    @classmethod
    def of(cls, sets: Any) -> _Shared:
        """Return what each pair of the rows of a sparse array shares."""
        shared = triu(sets @ sets.T, k=1).tocoo()
        pairs = shared.row.astype(np.int64) * sets.shape[0] + shared.col
        order = np.argsort(pairs)
        return cls(pairs[order], shared.data[order], np.asarray(sets.sum(axis=1)).reshape(-1))

    def of_pairs(self, pairs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return how many elements pairs share, and their Jaccard index."""
        index = np.minimum(np.searchsorted(self.pairs, pairs), max(0, len(self.pairs) - 1))
        shared = np.zeros(len(pairs), np.int64)
        if len(self.pairs):
            shared = np.where(self.pairs[index] == pairs, self.counts[index], 0)
        first, second = np.divmod(pairs, max(1, len(self.sizes)))
        either = self.sizes[first] + self.sizes[second] - shared
        return shared, shared / np.maximum(either, 1)


def overlapping_pairs(
    atoms: Any, codes: Any, names: Names, max_pairs: int = MAX_PAIRS
) -> tuple[tuple[RolePair, ...], int]:
    """Return the pairs of roles that overlap, those with the largest overlap of permissions first, and their number.

    ``atoms`` and ``codes`` are sparse arrays. If there are more than ``max_pairs``, those whose permissions or users
    overlap most are returned.
    """
    by_permissions, by_users = _Shared.of(atoms), _Shared.of(codes.T.tocsr())
    same_users = by_users.pairs[by_users.of_pairs(by_users.pairs)[1] >= _SAME_USERS]
    pairs = np.union1d(by_permissions.pairs, same_users)
    n_pairs = len(pairs)
    n_permissions, overlap = by_permissions.of_pairs(pairs)
    n_users, user_overlap = by_users.of_pairs(pairs)
    kept = np.sort(np.argsort(-np.maximum(overlap, user_overlap), kind="stable")[:max_pairs])
    order = kept[np.lexsort((-user_overlap[kept], -overlap[kept]))]
    sizes, found = by_permissions.sizes, []
    for index in order.tolist():
        one, other = divmod(int(pairs[index]), len(names))
        inner = one if sizes[one] < sizes[other] else other
        found.append(
            RolePair(
                names[one],
                names[other],
                int(n_permissions[index]),
                float(overlap[index]),
                int(n_users[index]),
                float(user_overlap[index]),
                names[inner] if 0 < sizes[inner] == n_permissions[index] else None,
            )
        )
    return tuple(found), n_pairs
