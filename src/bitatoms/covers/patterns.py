"""The roles of a cover as patterns: what chance would explain of them, and how often they are complete."""

from __future__ import annotations

import numpy as np

from ..engine.members import count_members
from ..model.lifts import AtomCounts, lifts_of
from ..model.model import Pattern, number_or_none
from ..table import Names, feature_names
from .result import Cover


def role_patterns(cover: Cover, columns: Names | None = None) -> list[Pattern]:
    """Return the roles in readable form, in their order; the bits that a role saves are not counted."""
    table, n = cover.reconstruct(), cover.codes.n_rows
    users, (complete, lacking, _) = cover.codes.column_weights(), count_members(table, cover.atoms)
    bias = np.zeros(table.n_cols, np.uint8)
    lifts = lifts_of(cover.atoms, bias, AtomCounts(table.column_weights(), table.n_known, complete, n, lacking))
    assert lifts.members is not None
    members = np.split(lifts.members, np.cumsum(cover.atoms.row_weights())[:-1])
    return [
        Pattern(
            atom=k + 1,
            features=feature_names(columns, np.flatnonzero(cover.atoms[k]).tolist()),
            rows=int(users[k]),
            share=float(users[k] / max(1, n)),
            bits_saved=0,
            complete=int(complete[k]),
            expected=float(lifts.expected[k]),
            lift=number_or_none(lifts.whole[k]),
            member_lifts=tuple(map(number_or_none, members[k])),
        )
        for k in range(cover.n_roles)
    ]
