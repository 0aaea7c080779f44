"""Linear algebra over GF(2), near pairs of rows and light sums of four rows, bit for bit against the oracles."""

from itertools import chain, combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from bitatoms.kernels.cpu import gf2
from bitatoms.kernels.cpu.words import find_nearest_rows
from bitatoms.kernels.structs import ColumnDraw
from support.blocks import bits_of, packed, unpacked
from support.strategies import SEEDS, matrices, random_bits

WIDTHS = (1, 63, 64, 65, 130)
widths = pytest.mark.parametrize("n_cols", WIDTHS)
FEW_ROWS = st.sampled_from((0, 1, 2, 5, 9, 17))


def reduced(rows, columns):
    """Return the rows as the kernel reduces them, the old rows that each is the sum of, and the pivots."""
    words, sums = packed(rows), packed(np.eye(len(rows), dtype=np.uint8))
    pivots = np.empty(len(rows), np.int64)
    rank = gf2.reduce_rows(words, sums, np.asarray(columns, np.int64), pivots)
    return unpacked(words, rows.shape[1]), unpacked(sums, len(rows)), pivots[:rank].tolist()


def draw_of(atoms, columns):
    """Return a draw of pivots with its tables, made by the oracle."""
    rows, sums, pivots = naive.reduced_rows(atoms, columns)
    rows, sums = rows[: len(pivots)], sums[: len(pivots)]
    products, codes = (tabulated(table) for table in (rows, sums))
    return ColumnDraw(np.array(pivots, np.int64), packed(rows), packed(sums), products, codes)


def tabulated(rows):
    """Return the table of the kernel, with garbage in it before."""
    table = np.full((-(-len(rows) // 8), 256, -(-rows.shape[1] // 64)), 77, np.uint64)
    gf2.tabulate_sums(packed(rows), len(rows), table)
    return table


@given(matrices(n_rows=st.sampled_from((0, 1, 2, 9, 17, 70))), SEEDS)
def test_elimination_matches_the_oracle(rows, seed):
    columns = np.random.default_rng(seed).permutation(rows.shape[1])
    found, expected = reduced(rows, columns), naive.reduced_rows(rows, columns)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])
    assert found[2] == expected[2]


@given(matrices(n_rows=FEW_ROWS))
def test_pivots_of_the_transpose_are_the_rows_that_are_not_sums_of_earlier_ones(rows):
    assert reduced(rows.T, np.arange(len(rows)))[2] == naive.first_independent(rows)


def named(rows, made_of):
    """Return rows with the old rows that each is the sum of, packed as for light sums, and the words of the rows."""
    words = packed(rows)
    words = np.pad(words, ((0, 0), (0, max(0, gf2.FIRST_WORDS - words.shape[1]))))
    return np.hstack([words, packed(made_of)]), words.shape[1]


LIGHT = [(10, 65, 0.2, 13), (8, 130, 0.5, 50), (12, 64, 0.3, 20), (10, 320, 0.2, 60), (9, 400, 0.5, 180)]


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize(("n_rows", "n_cols", "density", "limit"), LIGHT)
def test_light_sums_match_the_oracle(n_rows, n_cols, density, limit, depth):
    """The rows are sums of original ones themselves, most of which have much in common; the last row is not used."""
    original = random_bits(0, n_rows, n_cols, density / 2) ^ random_bits(1, 1, n_cols, density)
    original[0], made_of = random_bits(2, 1, n_cols, 0.1), random_bits(3, n_rows, n_rows, 0.2)
    rows, weights = naive.product(made_of, original, "xor"), original.sum(axis=1).astype(np.int64)
    words, n_words = named(rows, made_of)
    expected = naive.light_sums(rows[:-1], made_of[:-1], weights, limit, depth)
    assert len(expected) > 2
    for most in (len(expected) + 5, 2, 0):
        found = np.empty((most, words.shape[1]), np.uint64)
        work = np.full((2, words.shape[1]), 77, np.uint64)
        count = gf2.list_light_sums(words, work, weights, n_rows - 1, n_words, limit, depth, found)
        assert count == len(expected[:most])
        for row, (total, names) in zip(found[:count], expected, strict=False):
            np.testing.assert_array_equal(unpacked(row[np.newaxis, : -(-n_cols // 64)], n_cols)[0], total)
            np.testing.assert_array_equal(unpacked(row[np.newaxis, n_words:], n_rows)[0], names)


@widths
@pytest.mark.parametrize("n_atoms", [0, 9])
def test_cleared_rows_are_zero_in_the_pivots_and_differ_by_a_sum_of_atoms(n_atoms, n_cols):
    atoms, rows = random_bits(1, n_atoms, n_cols, 0.5), random_bits(2, 12, n_cols, 0.5)
    atoms[n_atoms // 2 :][:1] = 0
    columns = np.random.default_rng(n_atoms).permutation(n_cols)
    draw = draw_of(atoms, columns)
    cleared = np.full((12, -(-n_cols // 64)), 77, np.uint64)
    gf2.clear_pivots(packed(rows), draw, cleared)
    found = unpacked(cleared, n_cols)
    assert not found[:, draw.pivots].any()
    used = naive.information_set(atoms, np.arange(n_atoms), columns)
    codes = np.array([naive.information_set_candidates(x, atoms, *used)[0] for x in rows])
    np.testing.assert_array_equal(found, rows ^ naive.product(codes, atoms, "xor"))


# --- near pairs of rows and light sums of four rows


VERY_FEW_ROWS = st.sampled_from((0, 1, 2, 5, 17))


@given(matrices(n_rows=VERY_FEW_ROWS), st.sampled_from((0, 1, 7, 64, 200)))
def test_distances_match_the_oracle(rows, limit):
    n, m = rows.shape
    counts, near = np.full(m + 1, 77, np.int64), np.full((n, n), 77, np.uint8)
    gf2.count_distances(packed(rows), counts)
    gf2.mark_near(packed(rows), limit, near)
    distances = naive.distances(rows)
    np.testing.assert_array_equal(counts, np.bincount(distances[np.tril_indices(n, -1)], minlength=m + 1))
    np.testing.assert_array_equal(near, (distances <= limit) & ~np.eye(n, dtype=bool))


@given(matrices(n_rows=FEW_ROWS), SEEDS, *map(st.sampled_from, ((0, 1, 30), (0, 3, 1000), (0, 1, 20))))
def test_near_pairs_with_the_same_hash_match_the_oracle(rows, seed, limit, max_compared, most):
    n = len(rows)
    hashes = np.random.default_rng(seed).integers(3, size=n).astype(np.uint64)
    order = np.argsort(hashes, kind="stable")
    is_listed, found = random_bits(seed, 1, n, 0.2)[0].astype(bool), np.full((most, 2), 77)
    expected = naive.near_pairs(rows, hashes, order.tolist(), limit, max_compared, is_listed, most)
    before = is_listed.copy()
    count = gf2.list_near_pairs(packed(rows), hashes, order, limit, max_compared, is_listed, found)
    assert found[:count].tolist() == expected
    assert np.flatnonzero(is_listed & ~before).tolist() == sorted(np.ravel(expected).astype(int).tolist())
    assert (found[count:] == 77).all()


@given(SEEDS, st.sampled_from((1, 64, 130)), st.sampled_from((0, 0.3)), st.sampled_from((0, 0.3)))
def test_the_nearest_row_differs_in_the_fewest_cells_that_both_know(seed, n_cols, share, share_of_others):
    rows, others = random_bits(seed, 9, n_cols, 0.4), random_bits(seed + 1, 7, n_cols, 0.4)
    rows[random_bits(seed + 2, 9, n_cols, share) > 0] = 2
    others[random_bits(seed + 3, 7, n_cols, share_of_others) > 0] = 2
    found, (bits, of_others) = np.full(7, 77), (bits_of(rows), bits_of(others))
    find_nearest_rows(bits.words, bits.unknown_words, of_others.words, of_others.unknown_words, 1, 6, found)
    expected = [((rows != x) & (rows < 2) & (x < 2)).sum(axis=1).argmin() for x in others[1:6]]
    assert found.tolist() == [77, *expected, 77]


def bucketed(hashes, n_buckets, group_bits=0, n_parts=1):
    """Return the pairs of rows in each bucket, and the arrays of the kernel, which fills them in parts."""
    n_pairs = len(hashes) * (len(hashes) - 1) // 2
    ends, first, second = (np.full(size, 77, np.int32) for size in (n_buckets, n_pairs, n_pairs))
    shift = n_buckets.bit_length() - 1 - group_bits
    group_of = hashes >> shift
    ends_of_groups = np.searchsorted(np.sort(group_of), np.arange(1 << group_bits), side="right")
    groups = ends_of_groups, np.argsort(group_of, kind="stable")
    for part in np.array_split(np.arange(1 << group_bits), n_parts)[::-1]:
        gf2.bucket_pairs(hashes, shift, *groups, part[0], part[-1] + 1, ends, first, second)
    pairs = list(zip(first.tolist(), second.tolist(), strict=True))
    starts = [0, *ends[:-1]]
    return [pairs[start:end] for start, end in zip(starts, ends, strict=True)], (ends, first, second)


@pytest.mark.parametrize("n_rows", [0, 1, 2, 3, 20])
@pytest.mark.parametrize(("n_bits", "group_bits", "n_parts"), [(0, 0, 1), (1, 1, 2), (4, 0, 1), (4, 2, 3), (4, 4, 5)])
def test_buckets_hold_the_pairs_whose_hashes_add_up_to_their_number(n_rows, n_bits, group_bits, n_parts):
    hashes = np.random.default_rng(n_rows).integers(1 << n_bits, size=n_rows)
    buckets, _ = bucketed(hashes, 1 << n_bits, group_bits, n_parts)
    assert buckets == naive.bucketed_pairs(hashes, 1 << n_bits)


@pytest.mark.parametrize("n_cols", [1, 63, 64, 65, 130])
def test_light_sums_of_four_are_those_of_two_pairs_in_a_bucket(n_cols):
    rows, hashes = random_bits(n_cols, 14, n_cols, 0.2), np.random.default_rng(1).integers(8, size=14)
    rows[7:] = rows[:7]
    (buckets, arrays), limit = bucketed(hashes, 8), n_cols // 4

    def found(max_compared=10**6, max_per_bucket=10**6, start=0, most=10**4):
        fours = np.empty((most, 4), np.int64)
        count = gf2.list_light_fours(packed(rows), *arrays, limit, max_compared, max_per_bucket, start, fours)
        return [tuple(four) for four in fours[:count].tolist()]

    pairs, expected = list(combinations(range(13, -1, -1), 2)), set()
    for one, other in product(pairs, pairs):
        same_bucket = hashes[one[0]] ^ hashes[one[1]] == hashes[other[0]] ^ hashes[other[1]]
        is_light = np.bitwise_xor.reduce(rows[[*one, *other]]).sum() <= limit
        if one > other and same_bucket and is_light and not set(one) & set(other):
            expected.add((*one, *other))
    every = found()
    assert len(every) == len(set(every)) > 5
    assert set(every) == expected
    assert found(most=4) == every[:4]
    by_bucket = [[four for four in every if hashes[four[0]] ^ hashes[four[1]] == value] for value in range(8)]
    assert found(start=5) == list(chain(*by_bucket[5:], *by_bucket[:5]))
    assert found(max_compared=1, start=2) == next(each for value in range(8) if (each := by_bucket[(2 + value) % 8]))
    first = {pair for bucket in buckets for pair in bucket[:5]}
    assert found(max_per_bucket=5) == [four for four in every if {four[:2], four[2:]} <= first]


def test_few_rows_have_no_sum_of_four():
    for n_rows in (0, 1, 3):
        arrays = bucketed(np.zeros(n_rows, np.int64), 1)[1]
        found = np.empty((9, 4), np.int64)
        rows = packed(np.zeros((n_rows, 5), np.uint8))
        assert gf2.list_light_fours(rows, *arrays, 5, 100, 100, 0, found) == 0
