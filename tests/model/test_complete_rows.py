"""Rows that have all features of an atom, or lack one; lifts; the hash of rows; groups, overlaps and ends of atoms."""

from dataclasses import replace
from functools import reduce
from operator import add
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bitatoms as ba
import naive
from bitatoms.bits import BitMatrix
from bitatoms.engine.distinct_rows import hash_rows
from bitatoms.engine.passes import atom_groups
from bitatoms.model.complete_rows import MemberCounts, count_members, describe_rows
from bitatoms.model.patterns import Recurrence, feature_shares, lifts_of, match_atoms, overlaps
from bitatoms.parallel import Workers
from bitatoms.sparse_bits import SparseBits
from support.blocks import WORKERS, bits_of
from support.strategies import SEEDS, SHARES, matrices, random_bits

pytestmark = pytest.mark.usefixtures("few_trials")


def assert_members(counts, X, atoms, bias):
    """Assert that counts are those of the oracle."""
    np.testing.assert_array_equal(counts.complete, naive.complete(X, atoms, bias).sum(axis=0))
    np.testing.assert_array_equal(counts.lacking, naive.lacking(X, atoms, bias))
    known = [naive.known(X)[:, atom > 0].all(axis=1).sum() for atom in atoms]
    np.testing.assert_array_equal(counts.atom_known, known)


@given(matrices(), SHARES, st.integers(0, 8), SEEDS, st.booleans(), WORKERS)
def test_counts_equal_the_oracle(X, unknown, n_atoms, seed, has_bias, workers):
    X = X + 2 * random_bits(seed + 2, *X.shape, unknown / 4)
    atoms = random_bits(seed, n_atoms, X.shape[1], 3 / X.shape[1])
    bias = random_bits(seed + 1, 1, X.shape[1], 0.3) if has_bias else None
    packed, own = (None, None) if bias is None else (BitMatrix.from_dense(bias), bias[0])
    assert_members(count_members(bits_of(X), BitMatrix.from_dense(atoms), workers, packed), X, atoms, own)
    if X.max(initial=0) < 2:
        sparse = (SparseBits.from_bits(BitMatrix.from_dense(table)) for table in (X, atoms))
        assert_members(count_members(*sparse, workers, packed), X, atoms, own)


def test_equals_the_oracle_in_rows_that_nearly_have_the_atoms():
    """Random rows mostly lack many features; these have few wrong cells, in atoms that lie in several words."""
    factors = ba.datasets.planted(300, 200, 5, algebra="or", code_density=0.4, atom_density=0.04, noise=0.04)
    assert np.count_nonzero(naive.lacking(factors.X, factors.atoms)) > 20
    counts = count_members(BitMatrix.from_dense(factors.X), BitMatrix.from_dense(factors.atoms))
    assert_members(counts, factors.X, factors.atoms, None)


@pytest.mark.parametrize("has_bias", [False, True])
def test_sparse_rows_are_counted_some_at_a_time(has_bias, monkeypatch):
    monkeypatch.setattr("bitatoms.model.complete_rows._ONES_AT_A_TIME", 7)
    monkeypatch.setattr("bitatoms.model.complete_rows._WORDS_AT_A_TIME", 1)
    X = np.zeros((150, 6), np.uint8)
    X[np.arange(130), np.random.default_rng(0).integers(0, 6, 130)] = 1
    atoms = np.array([np.arange(64) >> i & 1 for i in range(6)], np.uint8).T
    bias = np.array([[1, 0, 0, 1, 0, 0]], np.uint8) * has_bias
    data, packed_atoms = SparseBits.from_bits(BitMatrix.from_dense(X)), BitMatrix.from_dense(atoms)
    assert_members(count_members(data, packed_atoms, bias=BitMatrix.from_dense(bias)), X, atoms, bias[0])


@given(matrices(), SHARES, SEEDS, st.integers(0, 5), st.integers(1, 100))
def test_counts_of_chunks_add_up_and_those_of_some_atoms_are_taken(X, unknown, seed, n_atoms, size):
    X = X + 2 * random_bits(seed + 2, *X.shape, unknown / 4)
    atoms, bias = random_bits(seed, n_atoms, X.shape[1], 3 / X.shape[1]), random_bits(seed + 1, 1, X.shape[1], 0.3)
    packed = BitMatrix.from_dense(atoms), Workers(), BitMatrix.from_dense(bias)
    chunks = [bits_of(X[start : start + size]) for start in range(0, max(1, len(X)), size)]
    total = reduce(add, (describe_rows(chunk, *packed) for chunk in chunks))
    assert_members(total, X, atoms, bias[0])
    assert total.rows_hash == hash_rows(bits_of(X))
    some = np.random.default_rng(seed).permutation(n_atoms)[: n_atoms // 2 + 1]
    for form in (packed[0], SparseBits.from_bits(packed[0])):
        assert_members(total.of_atoms(form, some), X, atoms[some], bias[0])


# --- the hash of rows


@given(matrices(), SEEDS)
def test_the_hash_ignores_the_order_of_rows_and_adds_up_over_chunks(X, seed):
    X = X + 2 * random_bits(seed, *X.shape, 0.1)
    data = bits_of(X)
    assert hash_rows(bits_of(np.random.default_rng(seed).permutation(X))) == hash_rows(data)
    cut = len(X) // 3
    assert sum(hash_rows(part) for part in (data[:cut], data[cut:])) % 2**64 == hash_rows(data)
    assert sum(hash_rows(bits_of(part)) for part in (X[:cut], X[cut:])) % 2**64 == hash_rows(data)  # masks of their own


@pytest.mark.parametrize("n_cols", [2, 64, 65, 130])
def test_the_hash_tells_tables_with_the_same_counts_apart(n_cols):
    X = random_bits(0, 200, n_cols, 0.3)
    shuffled = np.random.default_rng(1).permuted(X, axis=0)
    one_unknown = X.copy()
    one_unknown[np.argwhere(X == 0)[0]] = 2
    tables = X, shuffled, X[:-1], 1 - X, np.c_[X, X[:, :1] * 0], one_unknown
    assert len({hash_rows(bits_of(table)) for table in tables}) == 6


# --- lifts


def test_what_chance_does_not_explain_at_all_has_no_lift():
    atoms = BitMatrix.from_dense([[1, 1, 0], [0, 0, 1], [0, 0, 0]])
    counts = MemberCounts(np.array([0, 4, 8]), np.array([0, 4, 4]), np.full(3, 8))
    lifts = lifts_of(atoms, feature_shares(np.zeros(3, np.uint8), np.array([4, 0, 4]), np.full(3, 8)), counts)
    assert lifts.expected.tolist() == [0, 4, 8]
    np.testing.assert_array_equal(lifts.whole, [np.nan, 1, 1])
    np.testing.assert_array_equal(lifts.members, [np.nan, np.nan, 1])


@pytest.mark.parametrize("unknown", [0.0, 0.15])
@pytest.mark.parametrize("flipped", [False, True])
def test_patterns_have_the_lifts_of_the_training_table(unknown, flipped):
    X = ba.datasets.planted(300, 12, 3, algebra="or", code_density=0.3, noise=0.05, random_state=1).X
    cells = np.where(np.random.default_rng(0).random(X.shape) < unknown, np.nan, (X ^ flipped).astype(float))
    model = ba.BinaryDictionaryLearning(algebra="or", random_state=0).fit(cells)
    assert bool(model.bias_.any()) == flipped
    wanted, known = 1 - model.bias_, ~np.isnan(cells)
    for pattern, atom in zip(model.patterns(), model.components_ == 1, strict=True):
        columns = np.flatnonzero(atom)
        shares = [(cells[known[:, i], i] == wanted[i]).mean() for i in columns]
        all_known = known[:, columns].all(axis=1)
        assert pattern.expected == pytest.approx(all_known.sum() * np.prod(shares))
        assert pattern.lift == pytest.approx(pattern.complete / pattern.expected)
        for k, lift in enumerate(pattern.member_lifts):
            others = np.delete(columns, k)
            rest = known[:, columns[k]] & (cells[:, others] == wanted[others]).all(axis=1)
            has = cells[rest, columns[k]] == wanted[columns[k]]
            assert lift == pytest.approx(has.mean() / shares[k])


def test_models_without_the_counts_have_no_lifts():
    X = ba.datasets.planted(100, 10, 2, algebra="or", noise=0.02, random_state=0).X
    model = ba.BinaryDictionaryLearning(algebra="or", random_state=0).fit(X)
    learned = model.as_model()
    for name in ("complete", "lacking", "ones"):
        older = replace(learned, **{name: None}).patterns()[0]
        assert (older.expected, older.lift, older.member_lifts) == (None, None, None)
    stream = ba.BinaryDictionaryLearning(2, algebra="or", random_state=0).partial_fit(X)
    assert stream.patterns()[0].lift is None


# --- groups of atoms that share no columns


@given(st.sampled_from((0, 1, 7, 40)), st.sampled_from((1, 65, 130)), st.sampled_from((0.0, 0.01, 0.05)), SEEDS)
def test_groups_are_the_connected_atoms_and_columns(n_atoms, n_cols, density, seed):
    atoms = random_bits(seed, n_atoms, n_cols, density)
    packed = BitMatrix.from_dense(atoms)
    wanted = sorted(naive.connected_columns(atoms))
    for bits in (packed, SparseBits.from_bits(packed)):
        groups = atom_groups(bits, 1)
        assert sorted(columns.tolist() for _, columns in groups) == wanted
        for own, columns in groups:
            assert (np.diff(own) > 0).all()
            np.testing.assert_array_equal(np.flatnonzero(atoms[own].any(axis=0)), columns)
        if wanted:
            assert sorted(np.concatenate([own for own, _ in groups]).tolist()) == list(range(n_atoms))


@given(st.sampled_from((1, 10, 1000)), SEEDS)
def test_small_groups_are_put_together(width, seed):
    atoms = random_bits(seed, 40, 200, 0.01)
    sizes = [len(columns) for columns in naive.connected_columns(atoms)]
    groups = atom_groups(BitMatrix.from_dense(atoms), width)
    assert sum(len(columns) for _, columns in groups) == sum(sizes)
    assert all(len(columns) < width + max(sizes) for _, columns in groups)
    assert len(groups) <= min(len(sizes), -(-sum(sizes) // width))


# --- overlaps, and atoms matched one to one


def result(atoms, bias):
    return SimpleNamespace(atoms=BitMatrix.from_dense(atoms), bias=np.asarray(bias, np.uint8))


@given(SEEDS, st.sampled_from([1, 63, 64, 65, 130]), st.integers(0, 9), st.integers(0, 9), st.booleans())
def test_overlaps_equal_the_oracle(seed, n_features, n_first, n_second, has_bias):
    density = 4 / n_features
    first, second = (
        random_bits(seed, n_first, n_features, density),
        random_bits(seed + 1, n_second, n_features, density),
    )
    second[: n_first // 2] = first[: min(n_first // 2, n_second)]
    biases = random_bits(seed + 2, 2, n_features, 0.3 * has_bias)
    found = overlaps(result(first, biases[0]), result(second, biases[1]))
    assert found.shape == (n_first, n_second)
    for (j, k), value in np.ndenumerate(found):
        assert value == naive.overlap(first[j], biases[0], second[k], biases[1])


def test_an_atom_without_ones_overlaps_with_none():
    nothing = result([[0, 0, 0]], [1, 0, 0])
    assert overlaps(nothing, nothing) == 0


@settings(max_examples=50)
@given(SEEDS, st.integers(0, 8), st.integers(0, 8))
def test_matching_equals_the_oracle(seed, n_rows, n_columns):
    """With many ties."""
    table = np.random.default_rng(seed).integers(0, 4, (n_rows, n_columns)) / 3
    np.testing.assert_array_equal(match_atoms(table), naive.match_atoms(table))


def test_shares_are_of_the_searches():
    assert Recurrence(np.array([0, 3, 4]), 4, 0.5, 0.8).shares.tolist() == [0, 0.75, 1]
