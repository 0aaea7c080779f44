"""Role reports: every statement against the oracle, and by hand."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import bitatoms as ba
import naive
from bitatoms.covers.coding import code_from_below
from bitatoms.roles.pairs import overlapping_pairs
from support.strategies import matrices, random_bits

pytestmark = pytest.mark.usefixtures("few_exchanges")

sizes = st.sampled_from((1, 3, 64, 65))


def indices(names):
    """Return the numbers at the end of default names: row 0, x0, role 1."""
    return [int(name.split()[-1].lstrip("x")) - name.startswith("role") for name in names]


def difference(each):
    (permission,), (role,) = indices([each.permission]), indices([each.role])
    assert each.user == f"row {each.row}"
    return each.row, permission, role, each.n_peers, each.n_with, indices(each.given_by)


def statements(report):
    """Return a report by indices, as the oracle does."""
    return {
        "roles": [(*map(indices, role[1:5]), *role[5:]) for role in report.roles],
        "permissions": [(*map(indices, each[1:3]), each.n_direct) for each in report.permissions],
        "users": [(indices(user.roles), user.n_permissions, indices(user.direct), user.fit) for user in report.users],
        "pairs": [
            (*indices(pair[:2]), *pair[2:6], None if pair.within is None else indices([pair.within])[0])
            for pair in report.overlaps
        ],
        "unusual": [difference(each) for each in report.unusual],
        "missing": [difference(each) for each in report.missing],
    }


@given(
    X=matrices(st.sampled_from((0, 1, 5, 17)), sizes),
    seed=st.integers(0, 99),
    n_roles=st.integers(0, 6),
    min_peers=st.integers(1, 3),
    min_share=st.sampled_from((0, 0.5, 0.9, 1)),
)
def test_reports_equal_the_oracle(X, seed, n_roles, min_peers, min_share):
    atoms = random_bits(seed, n_roles, X.shape[1], 0.4)
    if len(X):  # some roles that users have
        atoms[::2] &= X[np.arange(len(atoms[::2])) % len(X)]
    report = ba.role_report(X, atoms, min_peers=min_peers, min_share=min_share)
    codes = code_from_below(ba.BitMatrix.from_dense(X), ba.BitMatrix.from_dense(atoms)).to_dense()
    assert statements(report) == naive.role_statements(X, atoms, codes, min_peers, min_share)
    assert (report.codes.to_dense() == codes).all()
    assert (report.direct.to_dense() == X & ~naive.product(codes, atoms, "or") & 1).all()
    assert indices(role.name for role in report.unassigned_roles) == np.flatnonzero(~codes.any(axis=0)).tolist()
    assert report.n_grants == X.sum()
    assert report.n_direct == report.direct.bits.count()
    assert report.n_user_assignments == codes.sum()
    assert report.n_permission_assignments == atoms.sum()
    json.dumps(report.to_dict())
    assert report.summary().startswith("1 role for " if n_roles == 1 else f"{n_roles} roles for ")


# Six clerks, of whom Fay may also pay; a guard; Hal, who only may vote; and Ida, who may do nothing.
COLUMNS = ["read", "write", "print", "pay", "open", "vote"]
CLERK = [1, 1, 1, 0, 0, 0]
PEOPLE = {
    **dict.fromkeys(("ann", "bob", "cat", "dan"), CLERK), "eve": [1, 1, 0, 0, 0, 0], "fay": [1, 1, 1, 1, 0, 0],
    "gus": [0, 0, 0, 0, 1, 0], "hal": [0, 0, 0, 0, 0, 1], "ida": [0, 0, 0, 0, 0, 0],
}  # fmt: skip
USERS = pd.DataFrame(PEOPLE, index=COLUMNS).T
ROLES = pd.DataFrame(
    {"clerk": [1, 1, 0, 0, 0], "printing": [0, 0, 1, 0, 0], "payer": [1, 0, 0, 1, 0], "guard": [0, 0, 0, 0, 1]},
    index=COLUMNS[:5],
).T


@pytest.fixture(scope="module")
def report():
    return ba.role_report(USERS, ROLES, min_peers=4, min_share=0.8)


def test_statements_by_hand(report):
    """The oracle has the others; these are selected from them, and have names."""
    clerk, _, payer, guard = report.roles
    assert clerk.users == ("ann", "bob", "cat", "dan", "eve", "fay")
    assert (clerk.own_permissions, clerk.only_users, clerk.n_grants, clerk.n_only) == (("write",), ("eve",), 12, 11)
    assert (report.single_user_roles, report.unassigned_roles, report.cover) == ((payer, guard), (), None)
    assert [permission.name for permission in report.permissions_of(1)] == ["pay", "open", "vote"]
    assert report.permissions_of(len(USERS)) == ()
    fits = {fit: [user.name for user in report.users_by_fit(fit)] for fit in ("own", "none", "empty")}
    assert fits == {"own": ["gus"], "none": ["hal"], "empty": ["ida"]}
    assert [each[1:] for each in report.unusual] == [("fay", "pay", "clerk", 5, 0, ("payer",))]
    assert [each[1:] for each in report.missing] == [("eve", "print", "clerk", 5, 5, ())]
    assert list(pd.DataFrame(report.users).columns) == ["row", "name", "roles", "n_permissions", "direct", "fit"]


def test_the_summary_by_hand(report):
    assert report.summary() == (
        "4 roles for 9 users and 6 permissions: 13 user assignments and 6 permission assignments.\n"
        "Of 20 permissions of users, 1 comes from no role (1 user).\n"
        "2 roles have a single user.\n"
        "1 user has only roles that nobody else has, 1 has no role, and 1 has no permission.\n"
        "Compared with users of the same roles, 1 permission is unusual, and 1 is missing."
    )
    assert ba.role_report([[1, 1], [1, 1]], [[1, 1]]).summary() == (  # counts of none are left out
        "1 role for 2 users and 2 permissions: 2 user assignments and 2 permission assignments.\n"
        "The roles give all users exactly their permissions, 4 in all."
    )


def test_only_the_pairs_that_overlap_most_are_kept():
    atoms = csr_array([[1, 1, 1, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 0, 1]])
    codes = csr_array([[1, 0, 0, 1], [1, 0, 0, 1], [0, 1, 1, 0]])
    every, n_pairs = overlapping_pairs(atoms, codes, ("a", "b", "c", "d"))
    assert [pair[:2] for pair in every] == [("a", "b"), ("c", "d"), ("a", "c"), ("a", "d"), ("b", "c")]
    kept, n_found = overlapping_pairs(atoms, codes, ("a", "b", "c", "d"), max_pairs=3)
    assert n_pairs == n_found == len(every) == 5
    assert kept == (every[0], every[3], every[4])  # the same users of a and d, and of b and c


def test_a_cover_is_reported_with_its_own_codes_and_bound():
    users = ba.datasets.permissions(40)
    found = ba.cover(users, objective="assignments", weights=(9, 1, 1), direct_weight=2, max_iter=1, random_state=0)
    report = ba.role_report(users, found)
    assert report.cover is found
    assert report.codes.bits == found.codes
    assert report.direct.bits == found.direct
    assert (report.n_direct, len(report.roles)) == (found.n_direct, found.n_roles)
    others = ba.datasets.permissions(30, 5)
    assert ba.role_report(others, found).cover is None  # not a cover of these users


def test_columns_are_matched_by_name():
    report = ba.role_report(USERS[COLUMNS[::-1]], ROLES)
    assert {role.name: set(role.users) for role in report.roles}["printing"] == {"ann", "bob", "cat", "dan", "fay"}
    unknown = ROLES.assign(fly=[1, 0, 0, 0])
    report = ba.role_report(USERS, unknown)
    assert report.permissions[-1] == ("fly", ("clerk",), (), 0)
    assert report.roles[0].users == ()  # nobody can fly


INVALID = [
    ([[1, 0]], [[1, 0, 1]], {}, "the roles have 3 columns, and the users 2"),
    ([[1, np.nan]], [[1, 0]], {}, "missing value"),
    (USERS, ROLES.T, {}, "the roles have no column of the users: they have 'clerk', 'printing', 'payer', 'guard', and"),
    ([[1, 0]], pd.DataFrame([[1, 0], [1, 1]], index=["a", "a"]), {}, "two roles have the name 'a'"),
    ([[1]], [[1]], {"min_peers": 0}, "min_peers"),
    ([[1]], [[1]], {"min_share": 1.5}, "min_share"),
]


@pytest.mark.parametrize(("users", "roles", "limits", "message"), INVALID)
def test_input_is_checked(users, roles, limits, message):
    with pytest.raises(ValueError, match=message):
        ba.role_report(users, roles, **limits)
