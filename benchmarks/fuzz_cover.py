"""Draw tables and parameters, cover them, and check every cover by the definitions and against the proven optimum.

``python benchmarks/fuzz_cover.py --covers 20000 --jobs 2`` prints how many covers were checked, and the call of
each one that is wrong. Small tables are compared with the lowest cost, which SciPy's ``milp`` proves.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

import bitatoms as ba
from bitatoms.engine.codelength import string_bits

Table = NDArray[np.uint8]

_WEIGHTS = ((1, 1, 1), (1, 0, 0), (0, 1, 1), (3, 1, 1), (1, 0, 2), (0.5, 1, 0.25), (5, 0.1, 0.2), (0, 1, 0), (1, 3, 1))
_DIRECT = (None, None, 0, 0.25, 1, 1.5, 3, 100)
_MAX_VARIABLES = 500  # of a program whose optimum is proved
_BATCH = 100  # covers per task


# --- tables and parameters


def draw_table(rng: np.random.Generator, max_side: int) -> Table:
    """Return a table with equal, contained and empty rows and columns."""
    n, m = rng.integers(1, max_side + 1, 2)
    if rng.random() < 0.5:
        X = rng.random((n, m)) < rng.choice((0.2, 0.5, 0.8, 0.95))
    else:
        k = rng.integers(1, 4)
        X = (rng.random((n, k)) < 0.5) @ (rng.random((k, m)) < 0.5)
    for table in (X, X.T):  # a change of the rows of the transposed table is one of its columns
        for _ in range(rng.integers(0, 3)):
            row, other = rng.integers(len(table), size=2)
            kind = rng.integers(3)
            if kind == 0:
                table[row] = table[other]
            elif kind == 1:
                table[row] &= table[other]
            else:
                table[row] = False
    return X.astype(np.uint8)


def draw_parameters(rng: np.random.Generator, X: Table) -> dict[str, Any]:
    """Return parameters of `bitatoms.cover` that suit the table."""
    how: dict[str, Any] = {"objective": str(rng.choice(("roles", "assignments", "codelength")))}
    if how["objective"] == "assignments":
        how["weights"] = _WEIGHTS[rng.integers(len(_WEIGHTS))]
        how["direct_weight"] = _DIRECT[rng.integers(len(_DIRECT))]
    n, m = X.shape
    if rng.random() < 0.4:
        how["max_features_per_atom"] = int(rng.integers(1, 5))
    if m > 1 and rng.random() < 0.3:
        sizes = rng.integers(2, min(m, 4) + 1, rng.integers(1, 3))
        how["apart"] = [sorted(rng.choice(m, size, replace=False).tolist()) for size in sizes]
    if m > 1 and rng.random() < 0.3:
        equal = np.flatnonzero((X.T == X[:, rng.integers(m)]).all(axis=1)).tolist()
        if len(equal) > 1:
            how["together"] = [equal[: rng.integers(2, len(equal) + 1)]]
    if rng.random() < 0.6:
        roles = rng.random((rng.integers(1, 4), m)) < rng.choice((0.2, 0.5))
        for role in roles:
            if rng.random() < 0.6:
                role &= X[rng.integers(n)].astype(bool)
        how["fixed_atoms"] = roles[[is_allowed(np.flatnonzero(role), how) for role in roles]].astype(np.uint8)
    return how | {"max_iter": int(rng.integers(1, 3)), "random_state": int(rng.integers(1000))}


def is_allowed(columns: NDArray[np.intp], how: dict[str, Any]) -> bool:
    """Return whether the limits allow a role with these columns."""
    has = set(columns.tolist())
    return (
        len(has) <= how.get("max_features_per_atom", len(has))
        and all(len(has & set(apart)) <= 1 for apart in how.get("apart", ()))
        and all(len(has & set(together)) in (0, len(together)) for together in how.get("together", ()))
    )


# --- the lowest cost


class Program(NamedTuple):
    """Binary variables with costs; each row of the matrix times the variables is at least its lower limit."""

    costs: list[float]
    rows: list[dict[int, float]]
    lower: list[float]

    def add(self, cost: float) -> int:
        """Add a variable, and return its index."""
        self.costs.append(cost)
        return len(self.costs) - 1

    def require(self, row: dict[int, float], lower: float) -> None:
        """Add a constraint."""
        self.rows.append(row)
        self.lower.append(lower)

    def optimum(self) -> float:
        """Return the lowest cost."""
        if not self.costs:
            return 0
        entries = [(i, j, value) for i, row in enumerate(self.rows) for j, value in row.items()]
        i, j, values = zip(*entries, strict=True) if entries else ((), (), ())
        matrix = coo_array((values, (i, j)), shape=(len(self.rows), len(self.costs))).tocsr()
        constraints = [LinearConstraint(matrix, self.lower, np.inf)] if self.rows else []
        found = milp(
            self.costs, integrality=1, bounds=Bounds(0, 1), constraints=constraints, options={"mip_rel_gap": 0}
        )
        if found.status != 0:
            raise RuntimeError(f"the optimum was not proved: {found.message}")
        return float(found.fun)


def lowest_cost(X: Table, how: dict[str, Any]) -> float | None:
    """Return the lowest cost of an exact cover within the limits, or None if the table is too large to prove it."""
    if X.shape[1] > 8:
        return None
    return _fewest_bits(X, how) if how["objective"] == "codelength" else _fewest_assignments(X, how)


def _column_sets(X: Table, how: dict[str, Any]) -> list[NDArray[np.intp]]:
    """Return all sets of columns that may be roles of some row."""
    m = X.shape[1]
    every = ((np.arange(1, 1 << m)[:, np.newaxis] >> np.arange(m)) & 1).astype(bool)
    used = [columns for columns in every if (X[:, columns] == 1).all(axis=1).any()]
    return [columns for columns in map(np.flatnonzero, used) if is_allowed(columns, how)]


def _users(X: Table, columns: NDArray[np.intp]) -> list[int]:
    """Return the rows that have all of the columns."""
    return np.flatnonzero((X[:, columns] == 1).all(axis=1)).tolist()


def _fixed(X: Table, how: dict[str, Any]) -> list[NDArray[np.intp]]:
    """Return the columns of the fixed roles."""
    return [np.flatnonzero(role) for role in how.get("fixed_atoms", np.zeros((0, X.shape[1])))]


def _fewest_assignments(X: Table, how: dict[str, Any]) -> float | None:
    """Return the lowest weighted structural complexity, or the fewest roles: a variable per role, and per its user."""
    role, user, permission = how.get("weights", (1, 0, 0))
    direct, sets, fixed = how.get("direct_weight"), _column_sets(X, how), _fixed(X, how)
    if sum(len(_users(X, columns)) for columns in sets) > _MAX_VARIABLES:
        return None
    program = Program([], [], [])
    cover: dict[tuple[int, int], dict[int, float]] = {(i, j): {} for i, j in np.argwhere(X == 1).tolist()}
    for columns in [*fixed, *sets]:
        is_fixed = len(fixed) > 0 and any(columns is each for each in fixed)
        used = None if is_fixed else program.add(role + permission * len(columns))
        for i in _users(X, columns) if len(columns) else ():
            assigned = program.add(user)
            if used is not None:
                program.require({used: 1, assigned: -1}, 0)
            for j in columns.tolist():
                cover[i, j][assigned] = 1
    for row in cover.values():
        if direct is not None:
            row[program.add(direct)] = 1
        program.require(row, 1)
    return program.optimum() + sum(role + permission * len(columns) for columns in fixed)


def _fewest_bits(X: Table, how: dict[str, Any]) -> float | None:
    """Return the fewest bits of roles without errors: a variable per rectangle of ones."""
    n, m = X.shape
    user_bits, permission_bits = string_bits(n, range(n + 1)), string_bits(m, range(m + 1))
    program = Program([], [], [])
    cover: dict[tuple[int, int], dict[int, float]] = {(i, j): {} for i, j in np.argwhere(X == 1).tolist()}
    fixed, sets = _fixed(X, how), _column_sets(X, how)
    if sum(2 ** len(_users(X, columns)) for columns in [*fixed, *sets]) > _MAX_VARIABLES:
        return None

    def add_rectangles(columns: NDArray[np.intp], min_users: int) -> dict[int, float]:
        """Add a variable for each set of at least this many users, and return all of them."""
        added: dict[int, float] = {}
        users = _users(X, columns) if len(columns) else []
        for size in range(min_users, len(users) + 1):
            for chosen in combinations(users, size):
                variable = program.add(float(user_bits[size] + permission_bits[len(columns)]))
                added[variable] = 1
                for i in chosen:
                    for j in columns.tolist():
                        cover[i, j][variable] = 1
        return added

    for columns in fixed:  # each has exactly one set of users, of none or more
        program.require(add_rectangles(columns, 0), 1)
    for columns in sets:
        add_rectangles(columns, 1)
    for row in cover.values():
        program.require(row, 1)
    return program.optimum() + m * float(string_bits(n, [0])[0])


# --- checks


def violations(cover: ba.Cover, X: Table, how: dict[str, Any], lowest: float | None) -> Iterator[str]:
    """Yield what is wrong about a cover, by the definitions and by the lowest cost, if it is known."""
    atoms, codes, direct = cover.atoms.to_dense(), cover.codes.to_dense(), cover.direct.to_dense()
    product = (codes.astype(int) @ atoms > 0).astype(np.uint8)
    if ((product | direct) != X).any() or (product & direct).any():
        yield "it is not exact"
    if how.get("direct_weight") is None and direct.any():
        yield "it has direct grants"
    fixed = how.get("fixed_atoms", np.zeros((0, X.shape[1])))
    if (atoms[: len(fixed)] != fixed).any():
        yield "fixed roles are not first"
    if not (codes[:, len(fixed) :].any(axis=0).all() and atoms[len(fixed) :].any(axis=1).all()):
        yield "a role is empty"
    if not all(is_allowed(np.flatnonzero(role), how) for role in atoms):
        yield "a role violates the limits"
    cost = _cost(cover, X, how)
    if abs(cost - cover.cost) > 1e-9:
        yield f"it costs {cost}, but reports {cover.cost}"
    if cover.lower_bound > cover.cost or cover.is_optimal != (cover.lower_bound == cover.cost):
        yield "its bound exceeds its cost"
    history = cover.history[-1]
    n_assignments = int(codes.sum() + atoms.sum() + direct.sum())
    if history.roles != len(atoms) or history.assignments < n_assignments:
        yield f"the history ends with {history}"
    yield from _contradictions(cover)
    if lowest is not None and not cover.lower_bound <= lowest + 1e-6:
        yield f"its bound {cover.lower_bound} exceeds the optimum {lowest}"
    if lowest is not None and not cover.cost >= lowest - 1e-6:
        yield f"its cost {cover.cost} is below the optimum {lowest}"


def _cost(cover: ba.Cover, X: Table, how: dict[str, Any]) -> float:
    """Return the cost by definition."""
    if how["objective"] == "roles":
        return len(cover.atoms)
    if how["objective"] == "codelength":
        return ba.codelength(X, cover.atoms, cover.codes, algebra="or").total
    role, user, permission = how["weights"]
    atoms, codes = cover.atoms.to_dense(), cover.codes.to_dense()
    assignments = role * len(atoms) + user * codes.sum() + permission * atoms.sum()
    return float(assignments + (how["direct_weight"] or 0) * cover.direct.to_dense().sum())


def _contradictions(cover: ba.Cover) -> Iterator[str]:
    """Yield statements of the summary that contradict the cover."""
    text = cover.summary()
    numbers = [float(number) for number in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?", text)]
    counts = [cover.n_roles, cover.codes.n_rows, cover.n_user_assignments, cover.n_permission_assignments]
    counts += [cover.n_direct] if cover.n_direct else []
    n_users = int((cover.codes.to_dense().sum(axis=1) > 0).sum())
    counts += [round(cover.n_user_assignments / n_users, 1)] if n_users else []
    counts += [cover.cost] if cover.is_optimal else [cover.cost, cover.lower_bound]
    if not np.allclose(numbers, counts, rtol=1e-9, atol=1e-9):
        yield f"the summary has the numbers {numbers} in place of {counts}"
    if ("the lowest possible" in text) != cover.is_optimal:
        yield "the summary contradicts is_optimal"


class Checked(NamedTuple):
    """What a batch of covers gave: how many of each kind, and the calls that were wrong."""

    counts: Counter[str]
    failures: list[str]


def check(seed: int, n: int) -> Checked:
    """Draw and check this many covers."""
    counts: Counter[str] = Counter()
    failures = []
    for number in range(n):
        rng = np.random.default_rng([seed, number])
        X = draw_table(rng, 20 if rng.random() < 0.1 else int(rng.choice((3, 4, 5, 8))))
        how = draw_parameters(rng, X)
        call = f"ba.cover({X.tolist()}, " + ", ".join(
            f"{name}={value.tolist() if isinstance(value, np.ndarray) else value!r}" for name, value in how.items()
        )
        try:
            cover = ba.cover(X, **how)
        except ValueError as error:
            counts["refused: " + re.sub(r"\d+|'.*?'", "#", str(error))[:60]] += 1
            continue
        except Exception as error:
            failures.append(f"{call})\n  {type(error).__name__}: {error}")
            continue
        lowest = lowest_cost(X, how)
        counts["covers"] += 1
        counts[how["objective"]] += 1
        for name in ("fixed_atoms", "max_features_per_atom", "apart", "together", "direct_weight"):
            counts[name] += how.get(name) is not None
        counts["is_optimal"] += cover.is_optimal
        counts["optimum proved by milp"] += lowest is not None
        counts["optimum found"] += lowest is not None and cover.cost <= lowest + 1e-6
        failures += [f"{call})\n  {wrong}" for wrong in violations(cover, X, how, lowest)]
    return Checked(counts, failures)


def main(arguments: list[str] | None = None) -> int:
    """Check covers, and print what was found; return 1 if one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--covers", type=int, default=2000, help="number of covers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    args = parser.parse_args(arguments)
    sizes = [min(_BATCH, args.covers - start) for start in range(0, args.covers, _BATCH)]
    seeds = [args.seed * 1_000_003 + batch for batch in range(len(sizes))]
    counts: Counter[str] = Counter()
    failures: list[str] = []
    with ProcessPoolExecutor(args.jobs) as pool:
        for checked in pool.map(check, seeds, sizes):
            counts += checked.counts
            failures += checked.failures
    for name, count in counts.most_common():
        print(f"{count:8d}  {name}")
    print("\n".join([f"{len(failures)} wrong", *failures[:20]]))
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
