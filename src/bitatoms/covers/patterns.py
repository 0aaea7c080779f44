"""The roles of a cover as patterns: what chance would explain of them, and how often they are complete."""

from __future__ import annotations

import numpy as np

from ..columns.table import Names, feature_names
from ..model.complete_rows import count_members
from ..model.patterns import Pattern, feature_shares, lifts_of
from .result import Cover


def role_patterns(cover: Cover, columns: Names | None = None) -> list[Pattern]:
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
