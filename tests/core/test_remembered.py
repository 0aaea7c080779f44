"""Remembered codes: which ones, the nearest one of a row against the oracle, and what they are for."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import naive
from bitatoms import BitMatrix, factorize
from bitatoms.core.model import Model
from bitatoms.core.pass_spec import PassSpec, coded_block
from bitatoms.core.remembered import frequent_codes, hard_codes, max_remembered
from bitatoms.parallel import Workers
from support.blocks import ALGEBRAS, LIMITS, WORKERS, bits_of, block_of, priced_rule, within
from support.strategies import priced_factorisations, random_bits


@given(priced_factorisations(n_rows=st.sampled_from((1, 17, 65))), ALGEBRAS, st.sampled_from((1, 7, 64)))
def test_a_pass_from_remembered_codes_is_that_of_the_oracle(problem, algebra, chunk_rows):
    """For any chunks."""
    X, atoms, codes, prices = problem
    remembered, bias = codes[::3], BitMatrix.zeros(1, X.shape[1])
    data, rule = bits_of(X), priced_rule(algebra, prices)
    spec = PassSpec(BitMatrix.from_dense(atoms), bias, "mdl", rule, remembered=BitMatrix.from_dense(remembered))
    expected = naive.code_from_remembered(X, atoms, remembered, algebra, prices)
    for start in range(0, len(X), chunk_rows):
        chunk = slice(start, start + chunk_rows)
        block = coded_block(data[chunk], None, spec, Workers())
        np.testing.assert_array_equal(block.codes().to_dense(), expected[chunk])


@given(priced_factorisations(n_cols=st.sampled_from((9, 65))), ALGEBRAS, WORKERS, LIMITS)
def test_codes_that_are_not_found_from_scratch_are_hard(problem, algebra, workers, max_atoms):
    X, atoms, codes, prices = problem
    codes = within(codes, max_atoms)
    block = block_of(X, atoms, codes, algebra, workers)
    found = hard_codes(block, priced_rule(algebra, prices, max_atoms))
    fresh = naive.priced_code(X, atoms, np.zeros_like(codes), algebra, prices, max_atoms)
    hard = naive.cheaper(X, atoms, fresh, codes, algebra, prices)
    hard = codes[(hard != fresh).any(axis=1)]
    expected = frequent_codes(BitMatrix.from_dense(hard), X.shape[1])
    assert (BitMatrix.zeros(0, len(atoms)) if found is None else found) == expected
    assert found is None or len(found)


def test_the_most_frequent_codes_are_remembered():
    codes = np.repeat([[1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 0, 0]], [1, 3, 1, 9, 9], axis=0)
    found = frequent_codes(BitMatrix.from_dense(codes), 100).to_dense()
    np.testing.assert_array_equal(found, [[0, 1, 1, 0], [1, 1, 0, 0], [1, 0, 0, 1]])


def test_of_codes_as_frequent_some_are_remembered_whatever_the_order_of_the_rows():
    n_features = 10**6  # of very wide tables, few codes are remembered
    often, seldom = random_bits(0, 5, 70, 0.5), random_bits(1, 300, 70, 0.5)
    codes = np.vstack([often, seldom, often])
    found = frequent_codes(BitMatrix.from_dense(codes), n_features)
    assert len(found) == max_remembered(n_features) == 16
    assert {row.tobytes() for row in found.to_dense()[:5]} == {row.tobytes() for row in often}
    assert found == frequent_codes(BitMatrix.from_dense(np.random.default_rng(0).permutation(codes)), n_features)
    ordered = frequent_codes(BitMatrix.from_dense(seldom), 100).to_dense().tolist()  # all of them
    assert np.ptp(np.diff([ordered.index(row) for row in found.to_dense()[5:].tolist()])) <= 1


def test_rows_find_the_codes_of_the_fit_again():
    """Rows that use many atoms, which are not found from scratch; every row is new, with noise of its own."""
    atoms, codes = random_bits(0, 40, 100, 0.3), random_bits(1, 100, 40, 0.2)[np.arange(600) % 100]
    X = naive.product(codes, atoms, "xor") ^ random_bits(2, 600, 100, 0.03)
    how = {"objective": "codelength", "init": (atoms, codes[:300]), "random_state": 0, "max_iter": 1, "coder": "mdl"}
    model = Model.from_factorization(factorize(X[:300], 40, **how))
    forgetful = replace(model, remembered=None)
    new = BitMatrix.from_dense(X[300:])
    wrong, wrong_from_scratch = (each.code(new, Workers()).wrong().sum() for each in (model, forgetful))
    assert wrong / X[300:].size < 0.035
    assert wrong_from_scratch > 2 * wrong
