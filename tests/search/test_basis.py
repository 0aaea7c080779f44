"""Light sums: other atoms with the same product, of which atoms or codes have fewer ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from bitatoms import BitMatrix
from bitatoms.engine.block import Block
from bitatoms.engine.objective import Objective
from bitatoms.parallel import Workers
from bitatoms.search.moves import basis
from bitatoms.search.moves.basis import lighten
from support.blocks import assert_consistent, bits_of, block_of, factors, packed
from support.strategies import SEEDS, factorisations, random_bits

CODELENGTH = Objective(True, "xor")


def scrambled(atoms, codes, seed=0):
    """Return other factors with the same product: sums of about half of the atoms, and the codes that go with them."""
    p = len(atoms)
    sums = next(sums for draw in range(100) if naive.rank(sums := random_bits(seed + draw, p, p, 0.5)) == p)
    inverse = naive.reduced_rows(sums, range(p))[1]
    return naive.product(sums, atoms, "xor"), naive.product(codes, inverse, "xor")


def as_set(table):
    return set(map(bytes, table))


@settings(max_examples=40)
@given(factorisations(n_atoms=st.integers(0, 9)), st.booleans(), SEEDS)
def test_lighter_codes_keep_the_product_and_never_raise_the_cost(problem, has_bias, seed):
    X, atoms, codes = problem
    bias = BitMatrix.from_dense(random_bits(seed, 1, X.shape[1], 0.5 * has_bias))
    block = Block(*map(bits_of, (X, atoms, codes)), None, Workers(), bias)
    cost, errors = CODELENGTH.cost(block), block.errors()
    is_better = lighten(block, CODELENGTH, np.random.default_rng(seed), 5)
    assert_consistent(block, np.where(X > 1, X, X ^ bias.to_dense()), "xor")
    assert block.errors() == errors
    new_atoms, new_codes = factors(block)
    np.testing.assert_array_equal(naive.product(new_codes, new_atoms, "xor"), naive.product(codes, atoms, "xor"))
    assert CODELENGTH.cost(block) < cost if is_better else np.array_equal(new_codes, codes)
    assert is_better or np.array_equal(new_atoms, atoms)


@pytest.mark.parametrize(("shape", "of_codes", "seed"), [((400, 2), 0.3, 0), ((400, 20), 0.3, 0), ((400, 65), 0.05, 1)])
def test_the_planted_factors_of_a_scrambled_basis_are_found(shape, of_codes, seed):
    atoms, codes = random_bits(seed, shape[1], 130, 0.5), random_bits(seed + 9, *shape, of_codes)
    X = naive.product(codes, atoms, "xor")
    block = block_of(X, *scrambled(atoms, codes), "xor")
    assert lighten(block, CODELENGTH, np.random.default_rng(seed), 100)
    found_atoms, found_codes = factors(block)
    assert_consistent(block, X, "xor")
    assert as_set(found_codes.T) == as_set(codes.T)
    assert as_set(found_atoms) == as_set(atoms)
    assert not lighten(block, CODELENGTH, np.random.default_rng(1), 5)


def test_other_atoms_that_take_as_many_bits_are_not_taken(monkeypatch):
    """Exchanging two of them."""
    atoms, codes = random_bits(1, 3, 70, 0.5), random_bits(2, 50, 3, 0.5)
    block = block_of(naive.product(codes, atoms, "xor"), atoms, codes, "xor")
    exchanged = packed(np.eye(3, dtype=np.uint8)[[1, 0, 2]])
    monkeypatch.setattr(basis, "_lightest_sums", lambda *_: exchanged)
    assert not lighten(block, CODELENGTH, np.random.default_rng(0), 100)
    assert block.factors() == (bits_of(atoms), bits_of(codes))


def test_columns_that_are_rarely_drawn_are_found():
    """A draw finds one of them with probability .001."""
    atoms, codes = random_bits(1, 40, 70, 0.5), random_bits(2, 600, 40, 0.28)
    block = block_of(naive.product(codes, atoms, "xor"), *scrambled(atoms, codes), "xor")
    lighten(block, CODELENGTH, np.random.default_rng(0), 300, 4000)
    assert len(as_set(factors(block)[1].T) & as_set(codes.T)) >= 35


def test_columns_are_found_from_a_sample_of_many_rows(monkeypatch):
    monkeypatch.setattr(basis, "_SAMPLE_ROWS", 300)
    atoms, codes = random_bits(1, 12, 70, 0.5), random_bits(2, 1000, 12, 0.2)
    block = block_of(naive.product(codes, atoms, "xor"), *scrambled(atoms, codes), "xor")
    assert lighten(block, CODELENGTH, np.random.default_rng(0), 100)
    assert as_set(factors(block)[1].T) == as_set(codes.T)


def test_nothing_changes_under_or_with_one_atom_with_many_or_for_the_fewest_errors():
    codes = random_bits(0, 150, 129, 0.5)
    for algebra, n_atoms, objective in (
        ("or", 5, Objective(True, "or")),
        ("xor", 0, CODELENGTH),
        ("xor", 1, CODELENGTH),
        ("xor", 129, CODELENGTH),
        ("xor", 5, Objective(False, "xor")),
    ):
        atoms = random_bits(1, n_atoms, 70, 0.5)
        block = block_of(random_bits(2, 150, 70, 0.5), *scrambled(atoms, codes[:, :n_atoms]), algebra)
        before = block.factors()
        assert not lighten(block, objective, np.random.default_rng(0), 5)
        assert block.factors() == before
