"""Covers with fixed roles and limits: exact, never violated, never below their bound; wrong ones are not returned."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import bitatoms as ba
from bitatoms.covers import driver
from bitatoms.covers.limits import RoleLimits
from bitatoms.covers.options import CoverOptions
from bitatoms.covers.verification import verified
from bitatoms.errors import InternalError

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


# --- covers that are not what was asked for


X = np.array([[1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 1, 1]], np.uint8)
FIXED = np.array([[1, 1, 0, 0]], np.uint8)
BITS, FIXED_BITS = ba.BitMatrix.from_dense(X), ba.BitMatrix.from_dense(FIXED)


@pytest.fixture(scope="module")
def cover():
    return ba.cover(X, fixed_atoms=FIXED, random_state=0)


def changed(bits, *cells):
    """Return a matrix with other values in these cells."""
    dense = bits.to_dense()
    for cell in cells:
        dense[cell] ^= 1
    return ba.BitMatrix.from_dense(dense)


def with_role(cover, atom, used):
    """Return the roles of a cover and one more, which all users have, or none."""
    codes = np.hstack([cover.codes.to_dense(), np.full((3, 1), used, np.uint8)])
    atoms = np.vstack([cover.atoms.to_dense(), atom])
    return {"atoms": ba.BitMatrix.from_dense(atoms), "codes": ba.BitMatrix.from_dense(codes)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda cover: {"codes": changed(cover.codes, (0, 0))}, "roles and direct grants are not the table"),
        (lambda cover: {"codes": changed(cover.codes, (0, 1))}, "roles and direct grants are not the table"),
        (lambda cover: {"atoms": changed(cover.atoms, (1, 0))}, "roles and direct grants are not the table"),
        (
            lambda cover: {"codes": changed(cover.codes, (0, 0)), "direct": changed(cover.direct, (0, 0), (0, 1))},
            "it has direct grants",
        ),
        (lambda cover: {"atoms": cover.atoms[::-1], "codes": cover.codes.T[::-1].T}, "fixed roles were changed"),
        (lambda cover: with_role(cover, X[0], 0), "a role has no users"),
        (lambda cover: with_role(cover, 0 * X[0], 1), "a role has no permissions"),
        (lambda cover: {"cost": 3}, "its cost is 2, not 3"),
        (lambda cover: {"objective": "assignments"}, "its cost is 10, not 2"),
        (lambda cover: {"objective": "codelength"}, "its cost is .*, not 2"),
        (lambda cover: {"lower_bound": 3}, "it costs 2, less than its bound 3"),
        (lambda cover: {"independent": np.array([[0, 2]])}, "the lower bound is not proved"),
        (lambda cover: {"independent": np.array([[0, 0]])}, "the lower bound is not proved"),
        (lambda cover: {"independent": np.array([[2, 2], [1, 3]])}, "the lower bound is not proved"),
    ],
)
def test_a_wrong_cover_is_an_internal_error(cover, change, message):
    limits = RoleLimits(FIXED_BITS)
    verified(cover, BITS, CoverOptions(), limits)
    with pytest.raises(InternalError, match=f"internal error: the cover .* is invalid: {message}"):
        verified(replace(cover, **change(cover)), BITS, CoverOptions(), limits)


def test_a_cover_beyond_its_limits_is_an_internal_error(cover):
    for limits, message in (
        ({"max_features": 1}, "a role has too many features"),
        ({"apart": ((0, 1),)}, "a role has features that are apart"),
        ({"together": ((0, 2),)}, "a role has some of the features that are together"),
    ):
        with pytest.raises(InternalError, match=message):
            verified(cover, BITS, CoverOptions(), RoleLimits(FIXED_BITS, **limits))


def test_internal_errors_keep_their_message_between_processes():
    error = InternalError("a role has no users")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert str(error).startswith("internal error: a role has no users. The result was discarded")


def test_ones_that_are_apart_are_independent():
    """Column 0 belongs together with 2, which is apart from 1: no role has both."""
    ones = np.ones((1, 3), np.uint8)
    found = ba.cover(ones, apart=[{1, 2}], together=[{0, 2}], random_state=0)
    assert (found.n_roles, found.lower_bound) == (2, 2)
    limits = RoleLimits(ba.BitMatrix.zeros(0, 3), apart=((1, 2),), together=((0, 2),))
    for cells in ([[0, 0], [0, 1]], [[0, 1], [0, 2]]):
        verified(replace(found, independent=np.array(cells)), ba.BitMatrix.from_dense(ones), CoverOptions(), limits)
    wrong = replace(found, independent=np.array([[0, 0], [0, 2]]))
    with pytest.raises(InternalError, match="the lower bound is not proved"):
        verified(wrong, ba.BitMatrix.from_dense(ones), CoverOptions(), limits)


def test_a_search_that_loses_ones_returns_nothing(monkeypatch):
    """The command, the function and the estimator return covers of one function, which checks them."""

    def lose_a_role(monitor, *_):
        monitor.roles = monitor.roles[1:]
        return "converged"

    monkeypatch.setattr(driver, "find_cover", lose_a_role)
    with pytest.raises(InternalError, match="it has direct grants"):
        ba.cover(X, random_state=0)
    with pytest.raises(InternalError, match="it has direct grants"):
        ba.CoverMiner(random_state=0).fit(X)
