"""Exact covers: none missed, none added, figures that add up, and bounds that hold."""

import importlib.util
import math
import random
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bitatoms as ba
import naive
from bitatoms.covers.costs import AssignmentCost, fewest_roles
from bitatoms.covers.graph import cover_by_cliques
from bitatoms.covers.monitor import CoverMonitor
from bitatoms.covers.problem import Problem
from bitatoms.covers.search import CoverPlan, find_cover
from support.strategies import SEEDS, matrices, random_bits

pytestmark = pytest.mark.usefixtures("few_exchanges")

OBJECTIVES = ("roles", "assignments", "codelength")
every_objective = pytest.mark.parametrize("objective", OBJECTIVES)
tables = matrices(st.sampled_from((0, 1, 2, 5, 17, 30)), st.sampled_from((1, 2, 8, 31, 64, 65)))
few_rows = matrices(st.sampled_from((1, 5, 9)), st.sampled_from((2, 8, 33, 65)))


def check_cover(result, X, max_features=None, apart=()):
    """Check a cover and its limits by the definitions."""
    atoms, codes, direct = result.atoms.to_dense(), result.codes.to_dense(), result.direct.to_dense()
    assert (naive.product(codes, atoms, "or") | direct == X).all()
    assert not (naive.product(codes, atoms, "or") & direct).any()
    assert result.reconstruct() == ba.BitMatrix.from_dense(X)
    assert codes.any(axis=0).all()
    assert atoms.any(axis=1).all()
    assert not naive.violates_limits(atoms, max_features, apart, ())
    assert result.n_roles == len(atoms)
    assert result.n_user_assignments == codes.sum()
    assert result.n_permission_assignments == atoms.sum()
    assert result.n_direct == direct.sum()
    assert result.lower_bound <= result.cost
    cells = [tuple(cell) for cell in result.independent]
    assert all(X[cell] for cell in cells)
    for one, other in combinations(cells, 2):
        is_apart = any(one[1] != other[1] and {one[1], other[1]} <= set(each) for each in apart)
        assert is_apart or not naive.fit_into_one_role(X, one, other)


@given(X=tables, seed=SEEDS, objective=st.sampled_from(OBJECTIVES))
def test_covers_are_exact(X, seed, objective):
    result = ba.cover(X, objective=objective, max_iter=1, random_state=seed)
    check_cover(result, X)
    assert result.n_direct == 0
    n_users, n_permissions = X.any(axis=1).sum(), X.any(axis=0).sum()
    n_assignments = result.n_user_assignments + result.n_permission_assignments
    if objective == "roles":
        assert (result.cost, result.lower_bound) == (result.n_roles, len(result.independent))
    elif objective == "assignments":
        assert result.cost == result.n_roles + n_assignments
        assert result.lower_bound == len(result.independent) + n_users + n_permissions
    else:
        expected = ba.codelength(X, result.atoms, result.codes, algebra="or")
        assert result.cost == expected.total == result.codelength.total


@given(
    X=few_rows, seed=SEEDS, max_features=st.sampled_from((None, 1, 2, 5)),
    has_sets=st.booleans(), role=st.sampled_from((0.5, 1, 3)), direct=st.sampled_from((None, 0, 0.1, 1, 2.5, 100)),
)  # fmt: skip
def test_direct_grants_are_counted_and_limits_are_never_violated(X, seed, max_features, has_sets, role, direct):
    """With two sets of columns that are apart, of two and of three columns, or fewer where there are few."""
    rng, m = np.random.default_rng(seed), X.shape[1]
    apart = [sorted(rng.choice(m, min(size, m), replace=False).tolist()) for size in (2, 3) if has_sets]
    how = {"objective": "assignments", "weights": (role, 1, 0.25), "direct_weight": direct, "apart": apart}
    result = ba.cover(X, **how, max_features_per_atom=max_features, max_iter=1, random_state=seed)
    check_cover(result, X, max_features, apart)
    cost = role * result.n_roles + result.n_user_assignments + result.n_permission_assignments / 4
    assert result.cost == pytest.approx(cost + (direct or 0) * result.n_direct)
    assert direct is not None or result.n_direct == 0
    assert direct != 0 or result.n_roles == 0


@pytest.mark.parametrize(
    ("weights", "direct", "cost", "bound"),  # a third for two roles, for each user, for each permission
    [
        ((1, 1, 1), 1, (1 + 3 + 2) + 1, math.ceil((2 * 1 + (3 * 2 + 1) + (2 * 3 + 1)) / 3)),
        # In quarters, because costs are integers of the smallest weight.
        ((0.25, 1, 1), 1, (0.25 + 3 + 2) + 1, math.ceil(4 * (2 * 0.75 + (3 * 2 + 1) + (2 * 3 + 1)) / 3) / 4),
        ((2, 1, 0.5), 3, (2 + 3 + 0.5 * 2) + 3, (2 * 3 + (3 * 3 + 3) + (2 * 1.5 + 1.5)) / 3),
    ],
)
def test_direct_grants_by_hand(weights, direct, cost, bound):
    """A role for the block is as cheap as direct grants, or cheaper; for one cell it is not."""
    X = np.array([[1, 1, 0], [1, 1, 0], [1, 1, 0], [0, 0, 1]])
    result = ba.cover(X, objective="assignments", weights=weights, direct_weight=direct, random_state=0)
    assert (result.n_roles, result.n_direct, result.cost, result.lower_bound) == (1, 1, cost, bound)


@pytest.mark.parametrize(("n_rows", "n_columns", "most"), [(1, 1, 1), (3, 5, 3), (200, 30, 30)])
def test_one_role_less_outweighs_all_assignments_and_these_count_equally(n_rows, n_columns, most):
    cost = fewest_roles(n_rows, n_columns, most)
    assert (most - 1) * cost.of(n_rows, n_columns) < most * cost.of(1, 1)
    assert cost.of(2, 1) - cost.of(1, 1) == cost.of(1, 2) - cost.of(1, 1) == 1


def test_a_planted_cover_is_found_and_proved_to_be_the_smallest():
    k = 30
    data = ba.datasets.planted(200, 300, k, algebra="or", atom_density=0.05, code_density=0.1, noise=0, random_state=0)
    result = ba.cover(data.X, max_iter=1, random_state=0)
    check_cover(result, data.X)
    assert result.n_roles <= k
    assert result.is_optimal


def test_equal_users_and_permissions_count_each():
    X = ba.datasets.permissions(40).to_dense()
    repeated = np.repeat(np.repeat(X, 3, axis=0), 2, axis=1)
    one, many = (ba.cover(table, max_iter=3, random_state=0) for table in (X, repeated))
    check_cover(many, repeated)
    assert one.n_roles == many.n_roles
    weighed = ba.cover(X, objective="assignments", weights=(1, 3, 2), random_state=0)
    counted = ba.cover(repeated, objective="assignments", random_state=0)
    assert weighed.cost == counted.cost
    assert weighed.lower_bound == counted.lower_bound


# --- how a search ends


@pytest.fixture(scope="module")
def table():
    return ba.datasets.permissions(200)


class CallClock:
    """A clock that counts function calls: the same on every machine, however busy it is."""

    def __enter__(self):
        self._seconds, self._profile = 0.0, sys.getprofile()
        sys.setprofile(self._count)
        return self

    def __exit__(self, *_):
        sys.setprofile(self._profile)

    def _count(self, _frame, event, _argument):
        self._seconds += 1e-6 if event in ("call", "c_call") else 0

    def __call__(self):
        return self._seconds


@pytest.mark.parametrize(
    "limits", [{}, {"fixed_atoms": np.eye(5, 100)}, pytest.param({"max_features_per_atom": 10}, marks=pytest.mark.slow)]
)
def test_the_time_limit_is_kept_on_tables_that_are_too_large_for_it(limits, monkeypatch):
    X = ba.datasets.planted(600, 100, 30, algebra="or", noise=0.05, random_state=0).X
    ba.cover(X[:20], **limits)  # modules are imported
    with CallClock() as clock:
        monkeypatch.setattr("time.perf_counter", clock)
        found = ba.cover(X, max_time=0.1, random_state=0, **limits)
        n_seconds = clock()
        monkeypatch.undo()
    assert found.ended == "max_time"
    assert "time limit" in found.summary()
    check_cover(found, X)
    assert 0.1 < n_seconds < 0.16


@pytest.mark.parametrize("n_batches", [0, 1, 3])
@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_batches_end_with_the_search_and_keep_what_they_found(n_batches, error, monkeypatch):
    X = random_bits(0, 40, 30, 0.15)
    problem = Problem.from_bits(ba.BitMatrix.from_dense(X))
    monitor = CoverMonitor(problem, AssignmentCost((1, 1, 1)))
    n_searched = 0

    def limited(*args):
        nonlocal n_searched
        n_searched += 1
        if n_searched > n_batches:
            monitor.stop_reason = "max_time"
            if error is not None:
                raise error
        return cover_by_cliques(*args)

    monkeypatch.setattr("bitatoms.covers.search.cover_by_cliques", limited)
    ended = find_cover(monitor, random.Random(0), 1, CoverPlan(max_cells=10, clique_steps=20))
    assert ended == ("max_time" if error is None else "interrupted")
    assert n_searched == n_batches + 1
    assert len(monitor.independent.rows) > 0 or n_batches == 0
    atoms, codes = problem.atoms(monitor.roles).to_dense(), problem.codes(monitor.roles).to_dense()
    assert (naive.product(codes, atoms, "or") == X).all()


def test_each_round_exchanges_roles_for_the_same_work(monkeypatch):
    work = []

    def exchange(state, *_):
        work.append(state.work)
        state.work += 6
        return False

    monkeypatch.setattr("bitatoms.covers.search.exchange_roles", exchange)
    monitor = CoverMonitor(Problem.from_bits(ba.BitMatrix.from_dense(np.eye(3))), AssignmentCost((1, 1, 1)))
    assert find_cover(monitor, random.Random(0), 3, CoverPlan(round_work=10)) == "max_iter"
    assert work == [0, 6] * 3


def test_the_history_ends_with_the_cover_that_is_returned(monkeypatch):
    """The search converges in its first round of exchanges, which gains something."""
    monkeypatch.setattr("bitatoms.covers.driver.PLAN", CoverPlan(round_work=10**9, patience=1, min_patience=50))
    X, rows = ba.datasets.planted(60, 40, 8, algebra="or", noise=0.02, random_state=0).X, []
    result = ba.cover(X, objective="assignments", callbacks=rows.append, random_state=0)
    assert result.ended == "converged"
    assert result.history == tuple(rows)
    assert rows[-1].roles + rows[-1].assignments == result.cost < rows[2].roles + rows[2].assignments


def test_callbacks_see_each_round_and_can_end_the_search(table):
    rows = []

    def callback(row):
        rows.append(row)
        return len(rows) == 3

    result = ba.cover(table, objective="assignments", callbacks=callback, random_state=0)
    assert result.ended == "callback"
    assert result.history == tuple(rows)
    assert [row.round for row in rows] == [1, 2, 3]
    assert [row.move for row in rows] == ["rows or columns", "cliques", "greedy"]
    assert rows[-1].roles + rows[-1].assignments == result.cost
    check_cover(result, table.to_dense())


@pytest.mark.parametrize("n_rounds", [1, 2, 4])
def test_an_interrupt_keeps_the_best_cover(table, n_rounds):
    def callback(row):
        if row.round == n_rounds:
            raise KeyboardInterrupt

    with pytest.raises(ba.Interrupted) as raised:
        ba.cover(table, callbacks=callback, random_state=0)
    result = raised.value.result
    assert result.ended == "interrupted"
    assert len(result.history) == n_rounds
    check_cover(result, table.to_dense())
    assert result.is_optimal or "interrupted" in result.summary()


@every_objective
def test_an_interrupt_before_the_first_cover_gives_one_role_per_distinct_row(table, objective, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(CoverMonitor, "keep", interrupt)
    with pytest.raises(ba.Interrupted) as raised:
        ba.cover(table, objective=objective, random_state=0)
    result = raised.value.result
    check_cover(result, table.to_dense())
    assert result.n_roles == len(Problem.from_bits(table.bits).rows)
    assert (result.n_direct, result.is_optimal) == (0, False)


# --- input

NOT_NUMBERS = "weights must be three finite numbers of at least 0"
UNKNOWN = ba.Table.from_any(np.array([[1, np.nan]]), missing="unknown")


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"objective": "errors"}, "objective='errors' is not available; choose from 'roles', 'assignments'"),
        ({"weights": (1, 1)}, "weights must be three numbers"),
        ({"weights": "1,1,1"}, "weights must be three numbers"),
        ({"objective": "assignments", "weights": (1, -1, 0)}, NOT_NUMBERS),
        ({"objective": "assignments", "weights": (math.inf, 1, 1)}, NOT_NUMBERS),
        ({"objective": "assignments", "weights": (1, "x", 1)}, NOT_NUMBERS),
        ({"objective": "assignments", "weights": (0, 0, 0.0)}, "weights are all 0"),
        ({"weights": (2, 1, 1)}, 'weights requires objective="assignments"'),
        ({"direct_weight": 1}, 'direct_weight requires objective="assignments"'),
        ({"objective": "assignments", "direct_weight": math.inf}, "direct_weight must be a finite number"),
        ({"max_time": 0}, "max_time must be a positive number of seconds"),
        ({"X": [[1, np.nan]]}, r"missing value \(NaN\) at row 0, column 1"),
        ({"X": UNKNOWN}, "X contains an unknown value at row 0, column 1"),
    ],
)
def test_parameters_are_checked(how, message):
    with pytest.raises(ValueError, match=message):
        ba.cover(how.pop("X", [[1, 0]]), **how)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (3, 4)])
def test_tables_without_ones_need_no_role(shape):
    result = ba.cover(np.zeros(shape, int))
    assert (result.atoms.shape, result.codes.shape) == ((0, shape[1]), (shape[0], 0))
    assert (result.cost, result.is_optimal) == (0, True)
    assert result.summary().startswith("0 roles cover")


def test_any_table_can_be_covered():
    from scipy.sparse import csr_array

    X = ba.datasets.permissions(50)
    expected = ba.cover(X, random_state=0, max_iter=1)
    for given_ in (X.bits, X.to_dense(), csr_array(X.to_dense()), X.to_pandas()):
        assert ba.cover(given_, random_state=0, max_iter=1).atoms == expected.atoms
    assert ba.cover(X.to_dense() * 0.7, binarize=0.5, random_state=0, max_iter=1).atoms == expected.atoms


# --- random tables with random parameters, checked by the definitions and against proved optima


SCRIPT = Path(__file__).parents[2] / "benchmarks" / "fuzz_cover.py"


def test_random_covers_are_exact_and_never_beat_the_optimum():
    spec = importlib.util.spec_from_file_location("fuzz_cover", SCRIPT)
    fuzz_cover = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fuzz_cover)
    counts, failures = fuzz_cover.check(seed=0, n=120)
    assert failures == []
    assert counts["optimum found"] > 80
    for name in ("roles", "assignments", "codelength", "fixed_atoms", "apart", "together", "direct_weight"):
        assert counts[name] > 3
