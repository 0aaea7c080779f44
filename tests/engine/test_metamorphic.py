"""Relations between tables whose results must be related: no oracle, and any size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitatoms.bits import BitMatrix
from bitatoms.engine.block import Block, CountedRows
from bitatoms.engine.coding import code, code_by_beam, code_from_scratch, code_from_subsets, coding_rule
from bitatoms.engine.passes import PassSpec, run_pass
from bitatoms.engine.update import fit_each, update_each, update_together
from bitatoms.parallel import Workers
from support.blocks import ALGEBRAS, bits_of, factors, priced_rule
from support.strategies import SEEDS, priced_factorisations, random_bits

COUNTS = (
    "n_rows", "known", "ones", "wrong", "missed", "uses", "free", "bad", "pairs", "codes_changed",
)  # fmt: skip
problems = priced_factorisations(n_atoms=st.sampled_from((1, 4, 17)))


def steps(algebra, prices):
    """Yield steps whose result does not depend on the order of columns or rows."""
    greedy, priced = coding_rule("greedy", algebra), priced_rule(algebra, prices)._replace(typical=99.0)
    yield lambda block: code(block, greedy)
    yield update_each
    yield lambda block: code(block, priced)
    yield update_together
    yield lambda block: code_from_scratch(block, priced)
    yield lambda block: fit_each(block, greedy)
    yield lambda block: (code_by_beam if algebra == "xor" else code_from_subsets)(block, priced)


def made(X, atoms, codes, algebra, prices, bias=None):
    """Return the atoms, codes, errors and codelength after all steps."""
    bias = None if bias is None else BitMatrix.from_dense(bias)
    block = Block(*map(bits_of, (X, atoms, codes)), algebra == "or", Workers(), bias)
    changes = [step(block) for step in steps(algebra, prices)]
    return *factors(block), block.errors().filled().to_dense(), block.codelength(block.wrong()), changes


@given(problems, ALGEBRAS, SEEDS)
def test_the_order_of_rows_and_columns_does_not_matter(problem, algebra, seed):
    X, atoms, codes, (bits, uses) = problem
    rows, columns = (np.random.default_rng(seed).permutation(size) for size in X.shape)
    expected = made(*problem[:3], algebra, (bits, uses))
    found = made(X[np.ix_(rows, columns)], atoms[:, columns], codes[rows], algebra, (bits[columns], uses))
    np.testing.assert_array_equal(found[0], expected[0][:, columns])
    np.testing.assert_array_equal(found[1], expected[1][rows])
    np.testing.assert_array_equal(found[2], expected[2][np.ix_(rows, columns)])
    assert found[3:] == expected[3:]


@given(problems, ALGEBRAS, SEEDS, st.sampled_from((0.5, 1.0)))
def test_a_complement_with_a_flipped_bias_is_the_same_problem(problem, algebra, seed, density):
    X, atoms, codes, prices = problem
    flips = random_bits(seed, 1, X.shape[1], density)
    expected = made(*problem[:3], algebra, prices)
    found = made(np.where(X > 1, X, X ^ flips), atoms, codes, algebra, prices, flips)
    for one, other in zip(found[:3], expected[:3], strict=True):
        np.testing.assert_array_equal(one, other)
    assert (found[3].errors, found[4]) == (expected[3].errors, expected[4])


@given(problems, ALGEBRAS, SEEDS)
def test_columns_and_rows_that_are_unknown_are_not_there(problem, algebra, seed):
    X, atoms, codes, prices = problem
    columns = np.flatnonzero(random_bits(seed, 1, X.shape[1], 0.6)[0])
    rows = np.flatnonzero(random_bits(seed + 1, 1, len(X), 0.6)[0])
    hidden = np.full_like(X, 2)
    hidden[np.ix_(rows, columns)] = X[np.ix_(rows, columns)]
    codes[np.setdiff1d(np.arange(len(X)), rows)] = 0
    uses = np.maximum(prices[1], 1)  # a row without known cells would use an atom that costs nothing
    whole = made(hidden, atoms, codes, algebra, (prices[0], uses))
    part = made(hidden[np.ix_(rows, columns)], atoms[:, columns], codes[rows], algebra, (prices[0][columns], uses))
    np.testing.assert_array_equal(whole[2][np.ix_(rows, columns)], part[2])
    assert whole[2].sum() == part[2].sum()
    np.testing.assert_array_equal(whole[1][rows], part[1])
    np.testing.assert_array_equal(whole[0][:, columns], part[0])


@given(problems, ALGEBRAS, SEEDS, st.sampled_from((0.0, 0.4)))
def test_rows_that_use_no_atom_may_be_counted_only(problem, algebra, seed, bias):
    X, atoms, codes, _ = problem
    n, m = X.shape
    others = np.eye(m, dtype=np.uint8)[np.random.default_rng(seed).integers(m, size=9)]
    others[::4] = 0
    bias, covers = BitMatrix.from_dense(random_bits(seed, 1, m, bias)), algebra == "or"
    every = np.vstack([X, others]), atoms, np.vstack([codes, np.zeros((9, len(atoms)), np.uint8)])
    whole = Block(*map(bits_of, every), covers, Workers(), bias)
    some = Block(
        *map(bits_of, problem[:3]), covers, Workers(), bias, CountedRows(9, others.sum(axis=0, dtype=np.int64))
    )
    assert (some.n_rows, some.n_samples) == (n, whole.n_samples) == (n, n + 9)
    for count in ("wrong", "uses", *(["added"] if covers else [])):
        np.testing.assert_array_equal(getattr(some, count)(), getattr(whole, count)(), count)
    np.testing.assert_array_equal(some.missed(some.data()), whole.missed(whole.data()))
    np.testing.assert_array_equal(some.n_known, whole.n_known)
    assert some.codelength(some.wrong()) == whole.codelength(whole.wrong())


@pytest.mark.parametrize("times", [2, 5])
@given(problem=problems, algebra=ALGEBRAS, coder=st.sampled_from(("mdl", "mend", "beam")))
def test_counts_of_repeated_rows_are_those_of_the_rows_as_often(problem, algebra, coder, times):
    X, atoms, codes, prices = problem
    rule = priced_rule(algebra, prices)._replace(typical=100.0)
    kept = np.arange(len(atoms)) if coder == "mdl" else None
    spec = PassSpec(BitMatrix.from_dense(atoms), BitMatrix.zeros(1, X.shape[1]), coder, rule, kept)
    once, expected = run_pass(bits_of(X), bits_of(codes), spec, Workers())
    often, counts = run_pass(bits_of(np.repeat(X, times, axis=0)), bits_of(np.repeat(codes, times, 0)), spec, Workers())
    assert often == once[np.repeat(np.arange(len(X)), times)]
    for name in COUNTS:
        np.testing.assert_array_equal(getattr(counts, name), times * np.asarray(getattr(expected, name)), name)
