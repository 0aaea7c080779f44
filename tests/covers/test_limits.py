"""Covers with fixed roles and limits: exact, never violated, and never below their bound."""

import numpy as np
import pandas as pd
import pytest

import bitatoms as ba

pytestmark = pytest.mark.usefixtures("few_exchanges")


@pytest.mark.parametrize(("objective", "cost"), [("roles", 2), ("assignments", 8), ("codelength", 9)])
def test_fixed_roles_with_some_of_equal_columns_and_one_without_ones(objective, cost):
    """No row can have the fixed role, although it distinguishes columns that are equal in the table."""
    X, fixed = [[1, 1, 1, 0]], [[0, 0, 1, 1]]
    found = ba.cover(X, objective=objective, fixed_atoms=fixed, random_state=0)
    assert found.atoms.to_dense().tolist() == [[0, 0, 1, 1], [1, 1, 1, 0]]
    assert found.codes.to_dense().tolist() == [[0, 1]]
    assert (found.cost, found.n_direct, found.codelength.total) == (cost, 0, 9)


FIRST_TWO = np.array([[1, 1, 0, 0]])
LAST_TWO_DIFFER = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1]])


def test_the_bound_of_the_codelength_counts_fixed_roles():
    """A string of 4 bits with r ones takes 2 + ceil(log2 (4 choose r)) bits: 2, 4 or 5."""
    found = ba.cover(LAST_TWO_DIFFER, objective="codelength", fixed_atoms=FIRST_TWO, random_state=0)
    errors, fixed, others = 4 * 2, 5 + 5, (4 + 4) + (4 + 5)
    assert found.cost == errors + fixed + others
    # The fixed role has at least the users of the cheapest role, and there are two other roles, of 2 + 2 bits at least.
    assert found.lower_bound == errors + (2 + 5) + 2 * (2 + 2)


def test_the_bound_of_assignments_counts_fixed_roles():
    found = ba.cover(LAST_TWO_DIFFER, objective="assignments", weights=(3, 1, 2), fixed_atoms=FIRST_TWO, random_state=0)
    assert found.cost == 3 * 3 + (2 + 2 + 1) + 2 * (2 + 1 + 1)
    # Two other roles, one role per user, and two permissions that fixed roles do not cover.
    assert found.lower_bound == (3 + 2 * 2) + 3 * 2 + 4 + 2 * 2


@pytest.mark.parametrize("n_fixed", [0, 1])
def test_the_bound_of_roles_counts_the_permissions_of_limited_roles(n_fixed):
    fixed = np.array([[1, 1, 0, 0, 0]])[:n_fixed]
    found = ba.cover(np.ones((2, 5), int), max_features_per_atom=2, fixed_atoms=fixed, random_state=0)
    assert (found.cost, found.lower_bound, found.is_optimal) == (3, 3, True)


def test_the_summary_qualifies_the_lowest_cost():
    X = [[1, 1, 0], [0, 0, 1]]
    assert "is 2, the lowest possible.\n" in ba.cover(X, fixed_atoms=np.zeros((0, 3))).summary() + "\n"
    others = {"fixed_atoms": [[0, 0, 1]], "together": [{0, 1}]}  # a fixed role without features that are together
    for limits in ({"fixed_atoms": [[1, 0, 0]]}, {"apart": [{0, 1}]}, {"together": [{0, 1}]}, others):
        assert ", the lowest possible with these fixed roles and limits." in ba.cover(X, **limits).summary()


def test_names_of_features():
    users = ba.datasets.permissions(60)
    roles = ba.cover(users, max_iter=1, random_state=0)
    known = ba.Table(roles.atoms[3:5], None, users.columns).to_pandas().iloc[:, ::-1].assign(fly=0)
    miner = ba.CoverMiner(fixed_atoms=known, apart=[{"mail", "calendar"}], max_iter=1, random_state=0).fit(users)
    assert (miner.components_[:2] == roles.atoms[3:5].to_dense()).all()
    both = [users.columns.index(name) for name in ("mail", "calendar")]
    assert (miner.components_[:, both].sum(axis=1) <= 1).all()
    assert (miner.inverse_transform(miner.transform(users)) == users.to_dense()).all()
    frame = ba.cover(users.to_pandas(), apart=[("mail", "calendar")], max_iter=1)
    assert (frame.atoms.to_dense()[:, both].sum(axis=1) <= 1).all()


FRAME = pd.DataFrame([[1, 1, 0], [1, 0, 1]], index=["ann", "bob"], columns=["pay", "approve", "read"])


ALL = {"X": [[1, 1, 1], [0, 0, 0]], "together": [{0, 1}, {1, 2}]}


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (
            {"together": [{"pay", "approve"}]},
            r"together cannot be kept: 'bob' has 'pay', but not 'approve' \(1 such row\)",
        ),
        ({"apart": [{"pay", "aprove"}]}, "apart names 'aprove', which is not a column of the table"),
        ({"apart": [{0, 3}]}, "apart has the index 3, but the table has 3 columns"),
        ({"apart": "pay"}, "apart must be sets of features"),
        ({"together": [{"pay"}]}, "together has the set .* a set needs at least two features"),
        ({"together": [(1, 0.5)]}, "together has 0.5, which is neither a name nor an index"),
        ({"max_features_per_atom": 0}, "max_features_per_atom must be at least 1"),
        ({"fixed_atoms": [[1, np.nan, 0]]}, r"fixed_atoms contains a missing value \(NaN\) at row 0, column 1"),
        ({"fixed_atoms": [[1, 0]]}, "fixed_atoms have 2 columns, and the table 3"),
        ({"fixed_atoms": pd.DataFrame([[1]], columns=["fly"])}, "the table lacks columns of fixed_atoms: 'fly'"),
        ({"fixed_atoms": [[1, 1, 1]], "max_features_per_atom": 2}, "role 1 of fixed_atoms has 3 features"),
        ({"fixed_atoms": [[1, 1, 0]], "apart": [{0, 1}]}, "fixed_atoms has 'pay', 'approve', which are apart"),
        (ALL | {"apart": [{0, 2}]}, "feature 0 and feature 2 are in a set of apart and belong together"),
        (ALL | {"max_features_per_atom": 2}, "3 features that belong together .*, more than max_features_per_atom=2"),
        ({"X": [[1, 1, 1]], "together": [{0, 1}], "fixed_atoms": [[1, 0, 0]]}, "'x0' only, of features that are tog"),
    ],
)
def test_limits_are_checked(limits, message):
    with pytest.raises(ValueError, match=message):
        ba.cover(**{"X": FRAME} | limits)
