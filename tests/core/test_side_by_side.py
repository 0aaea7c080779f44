"""Factorizations of groups of columns, put side by side, are one of the whole table."""

from dataclasses import replace

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.core.side_by_side import Part, side_by_side
from support.blocks import bits_of
from support.results import assert_matches_oracle
from support.strategies import random_bits

pytestmark = pytest.mark.usefixtures("few_trials")


def table(with_unknown):
    X = np.hstack([ba.datasets.planted(130, m, 3, noise=0.02, random_state=m).X for m in (30, 65, 1, 20)])
    where = {"none": 0, "some columns": np.arange(X.shape[1]) < 20, "all columns": 1}[with_unknown]
    return np.where(random_bits(1, *X.shape, 0.1) & where, 2, X).astype(np.uint8)


@pytest.mark.parametrize(
    ("algebra", "with_unknown"), [("xor", "none"), ("or", "none"), ("or", "some columns"), ("xor", "all columns")]
)
def test_the_parts_make_the_whole(algebra, with_unknown):
    X = table(with_unknown)
    columns = np.split(np.random.default_rng(0).permutation(X.shape[1]), [30, 95, 96])
    if with_unknown == "some columns":
        columns = np.split(np.arange(X.shape[1])[::-1], [30, 95, 96])  # all unknown cells are in the last part
    columns = [np.sort(part) if number % 2 else part for number, part in enumerate(columns)]
    results = [ba.factorize(bits_of(X[:, part]), algebra=algebra, random_state=0) for part in columns]
    whole = side_by_side([Part(*part) for part in zip(columns, results, strict=True)], *X.shape)
    assert whole.atoms.n_rows == sum(result.atoms.n_rows for result in results)
    assert (np.diff(whole.saved) <= 0).all()
    if with_unknown == "none":
        assert_matches_oracle(whole, X)
    known = X < 2
    np.testing.assert_array_equal(whole.ones, ((X == 1) & known).sum(axis=0))
    np.testing.assert_array_equal(whole.wrong, ((whole.reconstruct().to_dense() != X) & known).sum(axis=0))
    missed = (X == 1) & (whole.reconstruct().to_dense() == 0)
    np.testing.assert_array_equal(whole.missed, missed.sum(axis=0))
    if with_unknown != "none":
        np.testing.assert_array_equal(whole.known, known.sum(axis=0))
    errors = sum(result.codelength.errors for result in results)
    assert (whole.codelength.errors, whole.uses.sum()) == (errors, sum(result.uses.sum() for result in results))
    for part, result in zip(columns, results, strict=True):  # an atom has the same columns, users and figures
        for k in range(result.atoms.n_rows):
            wanted = np.zeros(X.shape[1], np.uint8)
            wanted[part] = result.atoms.to_dense()[k]
            same = np.flatnonzero((whole.atoms.to_dense() == wanted).all(axis=1))
            users = result.codes.to_dense()[:, k]
            (same,) = [i for i in same if (whole.codes.to_dense()[:, i] == users).all()]
            assert (whole.saved[same], whole.complete[same]) == (result.saved[k], result.complete[k])


def test_remembered_codes_of_each_part_are_kept():
    X = table("none")
    halves = np.arange(30), np.arange(30, X.shape[1])
    results = [ba.factorize(X[:, part], algebra="xor", random_state=0) for part in halves]
    sizes = [result.atoms.n_rows for result in results]
    remembered = random_bits(0, 3, sizes[0], 0.5), random_bits(1, 5, sizes[1], 0.5)
    results = [replace(result, remembered=bits_of(codes)) for result, codes in zip(results, remembered, strict=True)]
    whole = side_by_side([Part(*part) for part in zip(halves, results, strict=True)], *X.shape)
    order = np.argsort(-np.concatenate([result.saved for result in results]), kind="stable")
    expected = np.hstack([np.pad(remembered[0], ((0, 2), (0, 0))), remembered[1]])[:, order]
    np.testing.assert_array_equal(whole.remembered.to_dense(), expected)
    none = side_by_side(
        [Part(part, replace(result, remembered=None)) for part, result in zip(halves, results, strict=True)], *X.shape
    )
    assert none.remembered is None
