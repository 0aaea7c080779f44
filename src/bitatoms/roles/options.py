"""Options of `role_report`: which users are compared, and what counts as a difference."""

from __future__ import annotations

from dataclasses import dataclass

from ..parameters import Options, option
from ..validation import check_fraction


@dataclass(frozen=True, kw_only=True)
class PeerOptions(Options):
    """Parameters of `bitatoms.role_report`."""

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
