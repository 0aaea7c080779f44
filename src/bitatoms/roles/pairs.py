"""Pairs of roles with common permissions, or with nearly the same users."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import triu

from ..columns.table import Names
from .entries import RolePair

MAX_PAIRS = 5000  # pairs that are kept
_SAME_USERS = 0.9  # Jaccard index from which two roles have nearly the same users


def overlapping_pairs(
    atoms: Any, codes: Any, names: Names, max_pairs: int = MAX_PAIRS
) -> tuple[tuple[RolePair, ...], int]:
    """Return the pairs of roles that overlap, those with the largest overlap of permissions first, and their number.

    ``atoms`` and ``codes`` are sparse arrays. If there are more than ``max_pairs``, those whose permissions or users
    overlap most are returned.
    """
    by_permissions, by_users = _shared(atoms), _shared(codes.T.tocsr())
    same_users = by_users.copy()
    same_users.data = (_overlap(codes.T, by_users.data, *by_users.nonzero()) >= _SAME_USERS).astype(np.int64)
    first, second = (by_permissions + same_users).nonzero()
    n_permissions, n_users = (np.asarray(shared[first, second]).reshape(-1) for shared in (by_permissions, by_users))
    overlap, user_overlap = _overlap(atoms, n_permissions, first, second), _overlap(codes.T, n_users, first, second)
    kept = np.sort(np.argsort(-np.maximum(overlap, user_overlap), kind="stable")[:max_pairs])
    sizes, found = np.asarray(atoms.sum(axis=1)).reshape(-1), []
    for index in kept[np.lexsort((-user_overlap[kept], -overlap[kept]))].tolist():
        one, other = int(first[index]), int(second[index])
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
    return tuple(found), len(first)


def _shared(sets: Any) -> Any:
    """Return how many elements each two rows of a sparse array share, above the diagonal of a sparse array."""
    shared = triu(sets @ sets.T, k=1).tocsr()
    shared.sort_indices()
    return shared


def _overlap(
    sets: Any, n_shared: NDArray[np.int64], first: NDArray[np.intp], second: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Return the Jaccard index of pairs of sets that share this many elements."""
    sizes = np.asarray(sets.sum(axis=1)).reshape(-1)
    return n_shared / np.maximum(sizes[first] + sizes[second] - n_shared, 1)
