"""Pairs of roles with common permissions, or with nearly the same users."""

from __future__ import annotations

import numpy as np

from ..bits import BitMatrix
from ..core.recurrence import atom_overlaps
from ..table import Names
from .entries import RolePair

_SAME_USERS = 0.9  # Jaccard index from which two roles have nearly the same users


def overlapping_pairs(atoms: BitMatrix, codes: BitMatrix, names: Names) -> tuple[RolePair, ...]:
    """Return the pairs of roles that overlap, those with the largest overlap of permissions first."""
    by_permissions, by_users = atom_overlaps(atoms, atoms), atom_overlaps(codes.T, codes.T)
    first, second = np.nonzero(np.triu((by_permissions > 0) | (by_users >= _SAME_USERS), k=1))
    order = np.lexsort((-by_users[first, second], -by_permissions[first, second]))
    n_permissions, n_users = atoms.row_weights(), codes.column_weights()
    pairs = []
    for one, other in np.stack([first, second], axis=1)[order].tolist():
        overlap, user_overlap = float(by_permissions[one, other]), float(by_users[one, other])
        shared = _shared(overlap, int(n_permissions[one] + n_permissions[other]))
        inner = one if n_permissions[one] < n_permissions[other] else other
        is_within = 0 < n_permissions[inner] == shared
        pairs.append(
            RolePair(
                names[one],
                names[other],
                shared,
                overlap,
                _shared(user_overlap, int(n_users[one] + n_users[other])),
                user_overlap,
                names[inner] if is_within else None,
            )
        )
    return tuple(pairs)


def _shared(overlap: float, n_both: int) -> int:
    """Return how many elements two sets share, from their Jaccard index and their sizes together."""
    return round(n_both * overlap / (1 + overlap))
