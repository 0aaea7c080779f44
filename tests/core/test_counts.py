"""A pass over some rows: counts against the oracle, and that they add up however the rows are cut."""

import pickle
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from bitatoms.bits import BitMatrix, stack_rows
from bitatoms.core.atom_groups import atom_groups
from bitatoms.core.counts import Counts
from bitatoms.core.pass_spec import PassSpec, RowCounts
from bitatoms.core.row_pass import run_pass
from bitatoms.core.voted_bits import voted_bits
from bitatoms.parallel import Workers
from bitatoms.rows.memory import MemoryRows
from bitatoms.sparse_bits import SparseBits
from support.blocks import ALGEBRAS, WORKERS, bits_of, priced_rule
from support.strategies import SEEDS, priced_factorisations, random_bits


def spec_of(atoms, prices, algebra, bias=None, kept=None, coder="mdl"):
    """Return a pass with these atoms at these prices."""
    bias = np.zeros((1, atoms.shape[1]), np.uint8) if bias is None else bias
    rule = priced_rule(algebra, prices, coder=coder)._replace(typical=100.0)
    return PassSpec(BitMatrix.from_dense(atoms), BitMatrix.from_dense(bias), coder, rule, kept)


def assert_counts(counts, X, atoms, codes, algebra, bias):
    """Assert that the counts are those of the oracle."""
    wrong = naive.errors(X, atoms, codes, algebra, bias[0])
    assert counts.n_rows == len(X)
    np.testing.assert_array_equal(counts.wrong, wrong.sum(axis=0))
    np.testing.assert_array_equal(counts.uses, codes.sum(axis=0))
    np.testing.assert_array_equal(counts.known, naive.known(X).sum(axis=0))
    np.testing.assert_array_equal(counts.ones, (X == 1).sum(axis=0))
    np.testing.assert_array_equal(counts.missed, (X & wrong).sum(axis=0))
    np.testing.assert_array_equal(counts.complete, naive.complete(X, atoms, bias[0]).sum(axis=0))
    np.testing.assert_array_equal(counts.lacking, naive.lacking(X, atoms, bias[0]))
    np.testing.assert_array_equal(counts.atom_known, [naive.known(X)[:, atom > 0].all(axis=1).sum() for atom in atoms])
    np.testing.assert_array_equal(counts.pairs, np.tril(codes.T.astype(int) @ codes))
    for k in range(len(atoms)):
        free, bad = naive.free_and_wrong(X ^ bias, atoms, codes, k, algebra)
        np.testing.assert_array_equal(counts.free[k], free)
        np.testing.assert_array_equal(counts.bad[k], bad)


@given(priced_factorisations(n_atoms=st.integers(1, 6)), ALGEBRAS, st.booleans(), st.integers(1, 4), SEEDS)
def test_a_pass_by_groups_of_atoms_codes_and_counts_as_the_oracle_does(problem, algebra, from_codes, n_groups, seed):
    X, atoms, codes, prices = problem
    random = np.random.default_rng(seed)
    atoms = atoms * (random.integers(n_groups, size=(len(atoms), 1)) == random.integers(n_groups, size=X.shape[1]))
    bias = random_bits(seed, 1, X.shape[1], 0.2)
    kept = np.union1d(0, np.flatnonzero(random.integers(0, 4, codes.shape[1]))) if from_codes else None
    if from_codes:
        atoms, codes, before = atoms[kept], codes[:, kept], codes
        prices = prices[0], prices[1][kept]
    else:
        codes, before = np.zeros_like(codes), codes
    expected = naive.priced_code(X ^ bias, atoms, codes, algebra, prices)
    spec = spec_of(atoms, prices, algebra, bias, kept)
    with mock.patch.multiple("bitatoms.core.voted_bits", _MIN_FEATURES=0, MAX_VOTES=atoms.size - 1):
        voted = voted_bits(spec.atoms)
    counted = RowCounts(10, np.zeros(X.shape[1], np.int64), np.zeros(len(atoms), np.int64))
    spec = replace(spec, atoms=SparseBits.from_bits(spec.atoms), voted=voted, priced_by=counted)
    with mock.patch.multiple("bitatoms.core.pass_spec", _MIN_SPLIT=1, _GROUP_COLUMNS=seed % 30 + 1):
        assert spec.is_split == (len(atom_groups(spec.atoms, seed % 30 + 1)) > 1)
        after, counts = run_pass(bits_of(X), BitMatrix.from_dense(before), spec, Workers(seed % 3 + 1))
    np.testing.assert_array_equal(after.to_dense(), expected)
    assert counts.codes_changed == (expected != codes).sum()
    has_vote = voted.to_dense(bool)
    whole = run_pass(bits_of(X), BitMatrix.from_dense(before), replace(spec, voted=None, priced_by=None), Workers())[1]
    assert_counts(whole, X, atoms, expected, algebra, bias)
    assert same(
        counts, replace(whole, free=whole.free[has_vote], bad=whole.bad[has_vote], pairs=counts.pairs, voted=voted)
    )


def same(one: Counts, other: Counts) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in Counts.__dataclass_fields__)


@given(priced_factorisations(), ALGEBRAS, st.booleans(), SEEDS)
def test_a_pass_codes_and_counts_as_the_oracle_does(problem, algebra, from_codes, seed):
    X, atoms, codes, prices = problem
    bias = random_bits(seed, 1, X.shape[1], 0.2)
    kept = np.arange(len(atoms)) if from_codes else None
    spec = spec_of(atoms, prices, algebra, bias, kept)
    after, counts = run_pass(bits_of(X), BitMatrix.from_dense(codes), spec, Workers())
    start = codes if from_codes else np.zeros_like(codes)
    expected = naive.priced_code(X ^ bias, atoms, start, algebra, prices)
    np.testing.assert_array_equal(after.to_dense(), expected)
    assert counts.codes_changed == (expected != start).sum()
    assert_counts(counts, X, atoms, expected, algebra, bias)


@given(priced_factorisations(n_atoms=st.integers(2, 6)), ALGEBRAS, st.data())
def test_rows_start_from_the_codes_of_the_kept_atoms(problem, algebra, data):
    X, atoms, codes, prices = problem
    kept = np.array(sorted(data.draw(st.sets(st.integers(0, len(atoms) - 1), max_size=len(atoms) - 1))), np.intp)
    own = prices[0], np.asarray(prices[1])[kept]
    after, counts = run_pass(
        bits_of(X), BitMatrix.from_dense(codes), spec_of(atoms[kept], own, algebra, kept=kept), Workers()
    )
    expected = naive.priced_code(X, atoms[kept], codes[:, kept], algebra, own)
    np.testing.assert_array_equal(after.to_dense(), expected)
    assert_counts(counts, X, atoms[kept], expected, algebra, np.zeros((1, X.shape[1]), np.uint8))


@given(priced_factorisations(), ALGEBRAS, WORKERS, st.sampled_from(("mdl", "mend", "beam")))
def test_counts_of_chunks_add_up(problem, algebra, workers, coder):
    X, atoms, codes, prices = problem
    data, spec = bits_of(X), spec_of(atoms, prices, algebra, coder=coder)
    codes, whole = run_pass(data, None, spec, Workers())
    chunks, total = MemoryRows(data, workers).run_pass(spec, None, 1, None, lambda partial: None)
    assert same(whole, total)
    assert stack_rows(chunks, len(atoms)) == codes
    assert same(Counts.none(len(atoms), X.shape[1], n_ones=int(atoms.sum())) + whole, whole)


@pytest.mark.parametrize("algebra", ["xor", "or"])
def test_a_pass_can_be_pickled(algebra):
    """Another process runs it and returns the counts."""
    X, atoms = random_bits(0, 70, 65, 0.3), random_bits(1, 5, 65, 0.3)
    spec = spec_of(atoms, (np.arange(1, 66), np.arange(5)), algebra, kept=np.arange(5))
    codes = BitMatrix.from_dense(random_bits(2, 70, 5, 0.3))
    data = bits_of(X)
    there = pickle.loads(pickle.dumps((data, codes, spec)))
    for array in (there[2].rule.prices.bits, there[2].rule.prices.uses, there[2].kept):
        array.flags.writeable = False  # as buffers from another process are
    here, away = run_pass(data, codes, spec, Workers()), run_pass(*there, Workers())
    assert here[0] == away[0]
    assert same(here[1], pickle.loads(pickle.dumps(away[1])))


def test_rows_in_memory_are_taken_by_index():
    X = random_bits(0, 130, 65, 0.3)
    rows = MemoryRows(bits_of(X), Workers())
    np.testing.assert_array_equal(rows.take(np.array([0, 64, 129])).to_dense(), X[[0, 64, 129]])
    assert rows.in_memory is not None
    assert (rows.n_rows, rows.n_features) == (130, 65)
