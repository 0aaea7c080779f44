"""Options of `role_report`: the names of roles, which users are compared, and what counts as a difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..parameters import Options, option
from ..validation import check_fraction


@dataclass(frozen=True, kw_only=True)
class AuditOptions(Options):
    """Parameters of `bitatoms.role_report`."""

    names: Sequence[str] | None = option(
        None,
        "The names of the roles; by default those of the table, or role 1, role 2, ...",
        check=lambda name, value: value,  # checked when the roles are known
        type="sequence of str, optional",
    )
    min_peers: int = option(
        5,
        "Number of other users that a role must have for its users to be compared with them.",
        minimum=1,
        option="min-peers",
    )
    min_share: float = option(
        0.9,
        "Share of the other users of a role who must lack a permission that a user has, or have one that it lacks.",
        check=check_fraction,
        option="min-share",
    )
