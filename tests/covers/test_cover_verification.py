"""Covers that are not what was asked for are never returned."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.covers import driver
from bitatoms.covers.limits import RoleLimits
from bitatoms.covers.verification import verified
from bitatoms.errors import InternalError

X = np.array([[1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 1, 1]], np.uint8)
FIXED = np.array([[1, 1, 0, 0]], np.uint8)
BITS, FIXED_BITS = ba.BitMatrix.from_dense(X), ba.BitMatrix.from_dense(FIXED)
PARAMS = {"weights": (1, 1, 1), "direct_weight": None}


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
    verified(cover, BITS, PARAMS, limits)
    with pytest.raises(InternalError, match=f"internal error: the cover .* is invalid: {message}"):
        verified(replace(cover, **change(cover)), BITS, PARAMS, limits)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"max_features": 1}, "a role has too many features"),
        ({"apart": ((0, 1),)}, "a role has features that are apart"),
        ({"together": ((0, 2),)}, "a role has some of the features that are together"),
    ],
)
def test_a_cover_beyond_its_limits_is_an_internal_error(cover, limits, message):
    with pytest.raises(InternalError, match=message):
        verified(cover, BITS, PARAMS, RoleLimits(FIXED_BITS, **limits))


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
        verified(replace(found, independent=np.array(cells)), ba.BitMatrix.from_dense(ones), PARAMS, limits)
    with pytest.raises(InternalError, match="the lower bound is not proved"):
        verified(replace(found, independent=np.array([[0, 0], [0, 2]])), ba.BitMatrix.from_dense(ones), PARAMS, limits)


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
