"""`CoverState`: the roles of a cover while a search changes them, with a journal by which a change is taken back."""

from __future__ import annotations

from collections.abc import Iterable

from .costs import RoleCost
from .masks import indices, transposed
from .problem import Problem, Role

_NO_ROLE = Role(0, 0)


class CoverState:
    """Roles by number, the numbers of the roles of each row and each column as sets, and the cost of all roles.

    Every role is a rectangle of ones; whether the roles cover all ones is up to the caller.
    """

    def __init__(self, problem: Problem, cost: RoleCost, roles: Iterable[Role]) -> None:
        self.problem, self.role_cost = problem, cost
        self.roles: dict[int, Role] = dict(enumerate(roles))
        self.row_roles = transposed([role.users for role in self.roles.values()], len(problem.rows))
        self.column_roles = transposed([role.permissions for role in self.roles.values()], len(problem.columns))
        self.work = 0  # grows by about the same in the same time, however large the table is
        self._costs = {number: self.cost_of(role) for number, role in self.roles.items()}
        self.cost = sum(self._costs.values())
        self._journal: dict[int, Role] = {}
        self._free: list[int] = []

    def set(self, number: int, role: Role) -> None:
        """Replace a role; one without users or permissions is removed."""
        if not role.users or not role.permissions:
            role = _NO_ROLE
        before = self.roles.get(number, _NO_ROLE)
        self._journal.setdefault(number, before)
        bit = 1 << number
        for row in indices(role.users ^ before.users):
            self.row_roles[row] ^= bit
        for column in indices(role.permissions ^ before.permissions):
            self.column_roles[column] ^= bit
        self.cost -= self._costs.pop(number, 0)
        if role.users:
            self.roles[number] = role
            self._costs[number] = cost = self.cost_of(role)
            self.cost += cost
        elif before.users:
            del self.roles[number]
            self._free.append(number)

    def add(self, role: Role) -> int:
        """Add a role, and return its number."""
        while self._free:
            if (number := self._free.pop()) not in self.roles:
                break
        else:
            number = len(self.roles)
        self.set(number, role)
        return number

    def remove(self, number: int) -> None:
        """Remove a role."""
        self.set(number, _NO_ROLE)

    def commit(self) -> None:
        """Keep all changes."""
        self._journal = {}

    def undo(self) -> None:
        """Take back all changes since the last `commit`."""
        for number, role in list(self._journal.items()):
            self.set(number, role)
        self.commit()

    def cost_of(self, role: Role) -> int:
        """Return the cost of a role."""
        return self.role_cost.of(*self.problem.size(role))

    def covered(self, row: int) -> int:
        """Return the columns that the roles of a row cover, fixed ones included."""
        self.work += 1
        numbers, roles, columns = self.row_roles[row], self.roles, self.problem.given[row]
        while numbers:
            lowest = numbers & -numbers
            columns |= roles[lowest.bit_length() - 1].permissions
            numbers ^= lowest
        return columns

    def covered_twice(self, row: int) -> int:
        """Return the columns that at least two roles of a row cover, or one besides the fixed roles."""
        self.work += 1
        numbers, roles, once, twice = self.row_roles[row], self.roles, self.problem.given[row], 0
        while numbers:
            lowest = numbers & -numbers
            permissions = roles[lowest.bit_length() - 1].permissions
            twice |= once & permissions
            once |= permissions
            numbers ^= lowest
        return twice

    def trim(self, numbers: Iterable[int], rows: int) -> None:
        """Take from roles, one after the other, the users and permissions for which they are not needed.

        A role is needed where no other role covers a one. It is left as it is if it would cost more without them, and
        if it is needed for all its ones in these rows: the roles of the others did not change.
        """
        known: dict[int, int] = {}  # as long as the roles of a row do not change

        def twice(row: int) -> int:
            if row not in known:
                known[row] = self.covered_twice(row)
            return known[row]

        for number in numbers:
            role = self.roles.get(number)
            if role is None or not any(twice(row) & role.permissions for row in indices(role.users & rows)):
                continue
            users = permissions = 0
            for row in indices(role.users):
                needed = role.permissions & ~twice(row)
                if needed:
                    users |= 1 << row
                    permissions |= needed
            trimmed = Role(users, permissions)
            if trimmed != role and (not users or self.cost_of(trimmed) <= self._costs[number]):
                self.set(number, trimmed)
                for row in indices(role.users):
                    del known[row]
