"""A pass over some rows: counts against the oracle, also for another bias, that they add up, and votes on some bits."""

from dataclasses import replace
from unittest import mock
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from bitatoms.bits import BitMatrix
from bitatoms.engine import counts as module
from bitatoms.engine.block import Block
from bitatoms.engine.counts import Counts, voted_bits
from bitatoms.engine.objective import Objective, flip_bias, flip_counts, mostly_wrong, settle_bias, settle_counts
from bitatoms.engine.passes import PassSpec, RowCounts, count, run_pass
from bitatoms.engine.update import flips_by_column
from bitatoms.online.state import DecayedCounts
from bitatoms.parallel import Workers
from bitatoms.rows.source import MemoryRows
from bitatoms.sparse_bits import SparseBits, toggled
from support.blocks import ALGEBRAS, WORKERS, bits_of, block_of, priced_rule
from support.sources import assert_same_counts
from support.strategies import SEEDS, factorisations, priced_factorisations, random_bits, random_prices


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
    np.testing.assert_array_equal(counts.pairs, np.tril(codes.T.astype(int) @ codes))
    for k in range(len(atoms)):
        free, bad = naive.free_and_wrong(X ^ bias, atoms, codes, k, algebra)
        np.testing.assert_array_equal(counts.free[k], free)
        np.testing.assert_array_equal(counts.bad[k], bad)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("algebra", ["xor", "or"])
@pytest.mark.parametrize("from_codes", [False, True])
def test_a_pass_by_groups_of_atoms_codes_and_counts_as_the_oracle_does(from_codes, algebra, seed):
    group = np.random.default_rng(seed).integers(4, size=130)  # no atom has columns of the last one
    atoms = random_bits(seed, 9, 130, 0.3) * (np.arange(9)[:, np.newaxis] % 3 == group)
    codes, bias = random_bits(seed + 1, 40, 9, 0.3), random_bits(seed + 2, 1, 130, 0.2)
    X = naive.product(codes, atoms, algebra) ^ bias ^ random_bits(seed + 3, 40, 130, 0.08)
    X[random_bits(seed + 4, 40, 130, 0.02 * (seed % 2)) == 1] = 2
    before, prices = codes ^ random_bits(seed + 5, 40, 9, 0.2), random_prices(seed, 130, 9, (255, 300))
    kept, codes = None, np.zeros_like(codes)
    if from_codes:
        kept = np.array([0, 1, 2, 4, 5, 7, 8])
        atoms, codes, prices = atoms[kept], before[:, kept], (prices[0], prices[1][kept])
    expected = naive.priced_code(X ^ bias, atoms, codes, algebra, prices)
    spec = spec_of(atoms, prices, algebra, bias, kept)
    with mock.patch.multiple("bitatoms.engine.counts", _MIN_FEATURES=0, MAX_VOTES=atoms.size - 1):
        voted = voted_bits(spec.atoms)
    counted = RowCounts(10, np.full(130, 10), np.zeros(130, np.int64), np.zeros(len(atoms), np.int64))
    spec = replace(spec, atoms=SparseBits.from_bits(spec.atoms), voted=voted, priced_by=counted)
    with mock.patch.multiple("bitatoms.engine.passes", _MIN_SPLIT=1, _GROUP_COLUMNS=seed + 1):
        assert spec.is_split
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


@given(priced_factorisations(), ALGEBRAS, st.sampled_from((None, 0.6, 1.0)), SEEDS)
def test_a_pass_codes_and_counts_as_the_oracle_does(problem, algebra, share, seed):
    """From nothing, or from the codes of the atoms that are kept."""
    X, atoms, codes, prices = problem
    bias, kept, start = random_bits(seed, 1, X.shape[1], 0.2), None, np.zeros_like(codes)
    if share is not None:
        kept = np.flatnonzero(random_bits(seed + 1, 1, len(atoms), share)[0])
        atoms, start, prices = atoms[kept], codes[:, kept], (prices[0], prices[1][kept])
    spec = spec_of(atoms, prices, algebra, bias, kept)
    after, counts = run_pass(bits_of(X), BitMatrix.from_dense(codes), spec, Workers())
    expected = naive.priced_code(X ^ bias, atoms, start, algebra, prices)
    np.testing.assert_array_equal(after.to_dense(), expected)
    assert counts.codes_changed == (expected != start).sum()
    assert_counts(counts, X, atoms, expected, algebra, bias)


@given(priced_factorisations(), ALGEBRAS, WORKERS, st.sampled_from(("mdl", "mend", "beam")))
def test_counts_of_chunks_add_up(problem, algebra, workers, coder):
    X, atoms, codes, prices = problem
    data, spec = bits_of(X), spec_of(atoms, prices, algebra, coder=coder)
    codes, whole = run_pass(data, None, spec, Workers())
    found, total = MemoryRows(data, workers).run_pass(spec)
    assert same(whole, total)
    assert found == codes
    assert same(Counts.none(len(atoms), X.shape[1]) + whole, whole)


# --- the bias takes the columns that are wrong in more than half of the rows


def block_with_bias(problem, algebra, bias):
    """Return a block with this bias."""
    X, atoms, codes, _ = problem
    factors = map(bits_of, (X, atoms, codes))
    return Block(*factors, algebra == "or", Workers(), bias)


@given(priced_factorisations(), ALGEBRAS, SEEDS)
def test_counts_with_a_flipped_bias_are_those_of_the_same_codes_with_that_bias(problem, algebra, seed):
    bias, flips = (random_bits(seed + i, 1, problem[0].shape[1], 0.5) for i in range(2))
    blocks = [block_with_bias(problem, algebra, BitMatrix.from_dense(each)) for each in (bias, bias ^ flips)]
    counts, expected = (count(block, block.data()) for block in blocks)
    assert flip_bias(blocks[0].bias, flips[0] == 1) == blocks[1].bias
    assert_same_counts(flip_counts(counts, flips[0] == 1), expected)
    assert_same_counts(flip_counts(DecayedCounts.of(counts), flips[0] == 1).rounded(), expected)


@given(priced_factorisations(), ALGEBRAS, SEEDS)
def test_a_settled_bias_leaves_no_column_wrong_in_more_than_half_of_the_rows(problem, algebra, seed):
    n_cols = problem[0].shape[1]
    block = block_with_bias(problem, algebra, BitMatrix.from_dense(random_bits(seed, 1, n_cols, 0.3)))
    settled, wrong = settle_bias(block.n_known, block.wrong(), block.bias)
    with_settled = block_with_bias(problem, algebra, settled)
    np.testing.assert_array_equal(with_settled.wrong(), wrong)
    assert not mostly_wrong(block.n_known, wrong).any()
    counts = count(block, block.data())
    assert settle_counts(block.bias, counts, False) == (block.bias, counts)
    bias, counts = settle_counts(block.bias, counts, True)
    assert bias == settled
    assert_same_counts(counts, count(with_settled, with_settled.data()))
    objective = Objective(True, algebra)
    assert objective.cost(block) == objective.cost(with_settled) == with_settled.codelength(wrong).total
    assert block.codelength(wrong, settled) == with_settled.codelength(wrong)


@pytest.mark.parametrize(("wrong", "expected"), [([2, 0], [0, 0]), ([3, 4], [1, 1])])
def test_half_of_the_rows_is_not_most_of_them(wrong, expected):
    bias, _ = settle_bias(np.full(2, 4), np.array(wrong), BitMatrix.zeros(1, 2))
    assert bias.to_dense()[0].tolist() == expected


# --- votes on some bits of the atoms of wide tables


@pytest.fixture
def few_votes(monkeypatch):
    """Let atoms of narrow tables have votes on some bits, with up to 20 candidates in all."""
    monkeypatch.setattr(module, "_MIN_FEATURES", 1)
    monkeypatch.setattr(module, "MAX_VOTES", 20)


def dense(voted):
    return voted.bits.to_dense().astype(bool)


def test_all_bits_have_votes_where_they_are_not_many(monkeypatch):
    monkeypatch.setattr(module, "MAX_VOTES", 3 * 2048)
    assert voted_bits(BitMatrix.zeros(3, 2048)) is None
    assert voted_bits(BitMatrix.zeros(4, 2047)) is None
    assert voted_bits(BitMatrix.zeros(4, 2048)) is not None


@pytest.mark.usefixtures("few_votes")
def test_candidates_are_the_ones_of_atoms_with_which_an_atom_shares_ones(monkeypatch):
    atoms = np.zeros((4, 12), np.uint8)
    atoms[0, [0, 1, 2]] = atoms[1, [2, 3]] = atoms[2, [1, 2, 5, 7]] = atoms[3, [9, 10]] = 1
    expected = atoms.astype(bool)
    expected[0, [3, 5, 7]] = expected[1, [0, 1, 5, 7]] = expected[2, [0, 3]] = True
    np.testing.assert_array_equal(dense(voted_bits(BitMatrix.from_dense(atoms))), expected)
    monkeypatch.setattr(module, "_MAX_CANDIDATES", 2)  # by the number of shared ones, then by column
    expected[0, 3] = False
    expected[1, [5, 7]] = False
    np.testing.assert_array_equal(dense(voted_bits(BitMatrix.from_dense(atoms))), expected)
    monkeypatch.setattr(module, "_MAX_LINKED", 2)  # three atoms have column 2
    expected[1] = atoms[1]
    expected[0, 7] = expected[0, 5] = True
    expected[2, 3] = False
    np.testing.assert_array_equal(dense(voted_bits(BitMatrix.from_dense(atoms))), expected)


@pytest.mark.usefixtures("few_votes")
def test_many_atoms_are_done_step_by_step(monkeypatch):
    atoms = BitMatrix.from_dense(random_bits(3, 70, 200, 0.03))
    voted = voted_bits(atoms)
    assert (dense(voted) >= atoms.to_dense()).all()
    monkeypatch.setattr(module, "_ATOMS_PER_STEP", 1000)
    assert voted_bits(atoms) == voted


def listed(X, atoms, codes, algebra, seed):
    """Return a block, votes on the ones of the atoms and on random other bits, and the counts with these votes."""
    block = block_of(X, atoms, codes, algebra)
    voted = SparseBits.from_bits(BitMatrix.from_dense(random_bits(seed, *atoms.shape, 0.3) | atoms))
    return block, voted, count(block, bits_of(X), voted=voted)


@given(factorisations(n_atoms=st.integers(1, 6)), ALGEBRAS, SEEDS, st.sampled_from((1, 200, 10**6)))
def test_votes_are_those_on_all_bits(problem, algebra, seed, n_votes_at_a_time):
    X, atoms, codes = problem
    with patch("bitatoms.engine.passes._VOTES_AT_A_TIME", n_votes_at_a_time):
        block, voted, counts = listed(X, atoms, codes, algebra, seed)
    every, has_vote = count(block, bits_of(X)), dense(voted)
    assert counts.pairs.size == 0
    for name in ("uses", "wrong", "ones", "missed", "known"):
        np.testing.assert_array_equal(getattr(counts, name), getattr(every, name))

    def assert_same_votes(some, all_of_them):
        for name in ("free", "bad"):
            np.testing.assert_array_equal(getattr(some, name), getattr(all_of_them, name)[has_vote])
        packed_atoms = BitMatrix.from_dense(atoms)
        for form in (packed_atoms, SparseBits.from_bits(packed_atoms)):
            for votes, expected in zip(some.votes_on_ones(form), all_of_them.votes_on_ones(form), strict=True):
                np.testing.assert_array_equal(votes, expected)
        np.testing.assert_array_equal(all_of_them.votes_on_ones(packed_atoms)[0], all_of_them.free[atoms == 1])

    assert_same_votes(counts, every)
    none = Counts.none(*atoms.shape, voted)
    assert_same_votes(none.add(counts).add(counts), every + every)
    assert_same_votes(counts.copy(), every)
    flips = random_bits(seed, 1, X.shape[1], 0.5)[0].astype(bool)
    assert_same_votes(flip_counts(counts, flips), flip_counts(every, flips))


@given(factorisations(n_atoms=st.integers(1, 6)), ALGEBRAS, SEEDS)
def test_the_flip_that_fixes_most_errors_of_each_column_is_taken(problem, algebra, seed):
    X, atoms, codes = problem
    _, voted, counts = listed(X, atoms, codes, algebra, seed)
    packed_atoms = BitMatrix.from_dense(atoms)
    cells = flips_by_column(counts.free, counts.bad, voted, packed_atoms)
    flipped = np.zeros_like(atoms)
    flipped[cells] = 1
    for form in (packed_atoms, SparseBits.from_bits(packed_atoms)):
        changed = toggled(form, *cells)
        assert type(changed) is type(form)
        np.testing.assert_array_equal(changed.to_dense(), atoms ^ flipped)
    votes = [naive.free_and_wrong(X, atoms, codes, k, algebra) for k in range(len(atoms))]
    gains = np.array(
        [np.where(free > 0, 2 * wrong - free + 0.5 * atoms[k], -1) for k, (free, wrong) in enumerate(votes)]
    )
    gains = np.where(dense(voted) & (gains > 0), np.floor(gains), -1)  # 0.5: a one is cleared if that does no harm
    expected = np.zeros_like(atoms)
    helped = gains.max(axis=0) >= 0
    expected[gains.argmax(axis=0)[helped], np.flatnonzero(helped)] = 1
    np.testing.assert_array_equal(flipped, expected)
    assert len(cells[0]) == expected.sum()
    before, after = (int(naive.errors(X, each, codes, algebra).sum()) for each in (atoms, atoms ^ flipped))
    assert after == before - gains[expected.astype(bool)].sum()
