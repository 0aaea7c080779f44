"""`Cover`: an exact cover as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..engine.block import reconstruct
from ..engine.codelength import Codelength, codelength_from_counts
from ..formatting import counted, verb
from .monitor import CoverRound


@dataclass(frozen=True, eq=False, kw_only=True)
class Cover:
    """An exact cover: every row of the table is the union of the atoms (roles) that it uses, and of its direct grants.

    Attributes
    ----------
    atoms : BitMatrix of shape (n_roles, n_features)
        The permissions of each role. Fixed roles come first, then the role that covers most ones.
    codes : BitMatrix of shape (n_samples, n_roles)
        The roles of each user. A user has only roles all of whose permissions are ones of its row.
    direct : BitMatrix of shape (n_samples, n_features)
        Permissions granted outside of roles; empty unless ``direct_weight`` is given.
    objective : {"roles", "assignments", "codelength"}
        What was minimized.
    cost : int or float
        Its value: the number of roles, the weighted structural complexity, or the bits of the codelength.
    lower_bound : int or float
        No exact cover costs less; with fixed roles and limits, none that keeps to them.
    independent : ndarray of shape (n, 2), int64
        Ones of the table (row, column), no two of which fit into one role, or are allowed in one: without direct
        grants, every cover has at least n roles, besides fixed roles.
    ended : {"converged", "max_iter", "max_time", "callback", "interrupted"}
        Why the search ended.
    history : tuple of CoverRound
        The best cover after each round: ``round``, ``move``, ``roles``, ``assignments``, ``seconds``.
    is_limited : bool
        Whether roles were fixed or limited; the lower bound is then that of such covers.
    """

    atoms: BitMatrix
    codes: BitMatrix
    direct: BitMatrix = field(repr=False)
    objective: str
    cost: float
    lower_bound: float
    independent: NDArray[np.int64] = field(repr=False)
    ended: str = "converged"
    history: tuple[CoverRound, ...] = field(default=(), repr=False)
    is_limited: bool = field(default=False, repr=False)

    @property
    def is_optimal(self) -> bool:
        """Whether the cost is proved to be the lowest: it equals the lower bound."""
        return self.cost == self.lower_bound

    @property
    def n_roles(self) -> int:
        """Number of roles."""
        return self.atoms.n_rows

    @property
    def n_user_assignments(self) -> int:
        """Number of roles of all users together."""
        return self.codes.count()

    @property
    def n_permission_assignments(self) -> int:
        """Number of permissions of all roles together."""
        return self.atoms.count()

    @property
    def n_direct(self) -> int:
        """Number of permissions granted outside of roles."""
        return self.direct.count()

    @property
    def codelength(self) -> Codelength:
        """Bits that describe the table by roles and codes; a direct grant is an error of the roles."""
        return codelength_from_counts(
            self.codes.n_rows,
            self.atoms.n_cols,
            self.direct.column_weights(),
            self.codes.column_weights(),
            self.atoms.row_weights(),
        )

    def reconstruct(self) -> BitMatrix:
        """Return the table: the union of the roles of each row, and its direct grants."""
        bias = np.zeros(self.atoms.n_cols, np.uint8)
        product = reconstruct(self.codes, self.atoms, bias, "or")
        return BitMatrix.from_words(product.words | self.direct.words, product.n_cols, check=False)

    def summary(self) -> str:
        """Return a description of the cover in a few sentences."""
        n_users = int((self.codes.row_weights() > 0).sum())
        roles = f"{counted(self.n_roles, 'role')} {verb(self.n_roles, 'cover')}"
        lines = [
            f"{roles} all ones of {counted(self.codes.n_rows, 'row')} exactly: "
            f"{counted(self.n_user_assignments, 'user assignment')} and "
            f"{counted(self.n_permission_assignments, 'permission assignment')}"
        ]
        if self.n_direct:
            lines[0] += f", and {counted(self.n_direct, 'direct grant')}"
        if n_users:
            lines.append(f"A user with roles has {self.n_user_assignments / n_users:.1f} of them")
        what = {
            "roles": f"The number of roles is {self.cost}",
            "assignments": f"The weighted structural complexity is {self.cost:.12g}",
            "codelength": f"The codelength is {counted(int(self.cost), 'bit')}",
        }[self.objective]
        best = "the lowest possible" if self.is_optimal else f"and cannot be lower than {self.lower_bound:.12g}"
        lines.append(f"{what}, {best}" + (" with these fixed roles and limits" if self.is_limited else ""))
        limits = {
            "interrupted": "The search was interrupted: with more time it may find a better cover",
            "max_time": "The search ended at its time limit: with more time it may find a better cover",
            "max_iter": "The search ended at its limit of rounds: with more rounds it may find a better one",
            "callback": "The search was ended by a callback: without it, it may find a better one",
        }
        if self.ended in limits and not self.is_optimal:
            lines.append(limits[self.ended])
        return ".\n".join(lines) + "."
