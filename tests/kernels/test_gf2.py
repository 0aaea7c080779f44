"""Linear algebra over GF(2), bit for bit against the oracles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from bitatoms.kernels.cpu import gf2
from bitatoms.kernels.structs import ColumnDraw
from support.blocks import packed, unpacked
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


@given(matrices(n_rows=FEW_ROWS), st.sampled_from((0, 1, 3, 20)))
def test_first_independent_rows_match_the_oracle(rows, most):
    chosen = np.empty(most, np.int64)
    words = packed(rows)
    by_top = np.full(64 * words.shape[1], -1, np.int64)
    count = gf2.first_independent(words, np.empty((most, words.shape[1]), np.uint64), by_top, chosen)
    assert chosen[:count].tolist() == naive.first_independent(rows)[:most]


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
