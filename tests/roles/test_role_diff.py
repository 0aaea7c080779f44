"""Differences of two sets of roles: matched by the oracle, users by the definition, and by hand."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bitatoms as ba
import naive
from bitatoms.covers.coding import code_from_below
from support.strategies import matrices, random_bits

numbers = st.integers(0, 5)


def roles(indices):
    return tuple(f"role {index + 1}" for index in indices)


def permissions(row):
    return tuple(f"x{column}" for column in np.flatnonzero(row))


@given(
    X=matrices(st.sampled_from((0, 1, 12)), st.sampled_from((1, 6, 65))),
    seed=st.integers(0, 99),
    n_old=numbers,
    n_new=numbers,
    threshold=st.sampled_from((0, 0.5, 1)),
)
def test_differences_equal_the_oracle(X, seed, n_old, n_new, threshold):
    old, new = (random_bits(seed + side, n, X.shape[1], 0.3) for side, n in enumerate((n_old, n_new)))
    new[: n_old // 2] = old[: min(n_old // 2, n_new)]
    diff = ba.role_diff(old, new, X, threshold=threshold)
    pairs = naive.matched_roles(old, new, threshold)
    found = sorted([*diff.unchanged, *diff.changed], key=lambda change: int(change.new.split()[1]))
    assert [(change.old, change.new) for change in found] == [roles((r,)) + roles((s,)) for r, s in pairs]
    for change, (r, s) in zip(found, pairs, strict=True):
        assert change.added == permissions(new[s] & ~old[r] & 1)
        assert change.removed == permissions(old[r] & ~new[s] & 1)
    assert tuple(role.name for role in diff.new) == roles(s for s in range(n_new) if s not in [p[1] for p in pairs])
    assert tuple(role.name for role in diff.gone) == roles(r for r in range(n_old) if r not in [p[0] for p in pairs])
    codes = [code_from_below(*map(ba.BitMatrix.from_dense, (X, atoms))).to_dense() for atoms in (old, new)]
    granted_before, granted_after = (
        naive.product(code, atoms, "or") for code, atoms in zip(codes, (old, new), strict=True)
    )
    changes = {user.row: user[2:] for user in diff.users}
    for i in range(len(X)):
        before, after = (set(np.flatnonzero(code[i]).tolist()) for code in codes)
        gained = sorted(s for s in after if not any((r, s) in pairs for r in before))
        lost = sorted(r for r in before if not any((r, s) in pairs for s in after))
        more, less = granted_after[i] & ~granted_before[i] & 1, granted_before[i] & ~granted_after[i] & 1
        expected = roles(gained), roles(lost), permissions(more), permissions(less)
        assert changes.get(i, ((), (), (), ())) == expected
    assert diff.keeps_permissions == (granted_before == granted_after).all()
    json.dumps(diff.to_dict())


COLUMNS = ["read", "write", "pay", "open"]
OLD = pd.DataFrame({"clerk": [1, 1, 0, 0], "cashier": [0, 0, 1, 1], "reader": [1, 0, 0, 0]}, index=COLUMNS).T
NEW = pd.DataFrame({"scribe": [1, 1, 0], "cashier": [0, 0, 1], "teller": [1, 0, 1]}, index=["write", "read", "pay"]).T
USERS = pd.DataFrame({"ann": [1, 1, 0, 0], "bob": [1, 0, 1, 1]}, index=COLUMNS).T


def test_by_hand():
    diff = ba.role_diff(OLD, NEW, USERS)
    assert diff.unchanged == (("clerk", "scribe", 1, (), (), (1, 1)),)
    assert diff.changed == (("cashier", "cashier", 0.5, (), ("open",), (1, 1)),)
    assert diff.new == (("teller", ("write", "pay"), 0),)
    assert diff.gone == (("reader", ("read",), 1),)
    assert diff.users == ((1, "bob", (), ("reader",), (), ("read", "open")),)
    assert not diff.has_same_roles
    assert diff.keeps_permissions is False
    assert diff.summary() == (
        "3 roles before and 3 after: 1 unchanged, 1 changed, 1 new, 1 gone.\n"
        "Of 2 users, 1 gains or loses roles.\n"
        "1 user gets fewer permissions from roles than before."
    )


def test_without_users_and_of_equal_roles_those_with_the_same_name_are_matched():
    same = pd.DataFrame([[1, 0], [1, 0]], index=["a", "b"])
    diff = ba.role_diff(same, same.iloc[::-1])
    assert {change.old: change.new for change in diff.unchanged} == {"a": "a", "b": "b"}
    assert (diff.has_same_roles, diff.users, diff.keeps_permissions) == (True, None, None)
    assert [change.n_users for change in diff.unchanged] == [None] * 2
    assert diff.summary() == "2 roles before and 2 after: 2 unchanged."
    assert ba.role_diff(OLD, NEW, threshold=0.6).changed == ()


def test_a_cover_that_says_the_same_in_another_way_keeps_all_permissions():
    X = [[1, 1, 0], [1, 1, 1], [0, 0, 1]]
    diff = ba.role_diff(X, ba.cover(X, max_iter=1), X)
    assert diff.keeps_permissions
    assert [user.lost for user in diff.users] == [("role 2",)]
    assert "The roles give every user the same permissions as before." in diff.summary()


def test_input_is_checked():
    with pytest.raises(ValueError, match="the new roles have 1 columns, and the old roles 2"):
        ba.role_diff([[1, 0]], [[1]])
    with pytest.raises(ValueError, match="threshold must be between 0 and 1"):
        ba.role_diff([[1]], [[1]], threshold=2)
