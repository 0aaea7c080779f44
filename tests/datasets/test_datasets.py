"""Planted factors, digits, halftones, blocks of pictures, and synthetic baskets and genotypes."""

import sys
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import bitatoms as ba
from bitatoms import BitMatrix
from bitatoms.datasets import baskets, cut_blocks, digits, dither, genotypes, halftone, planted, stitch_blocks
from bitatoms.datasets.market_baskets import HABITS
from bitatoms.datasets.synthetic_genotypes import POPULATIONS

sides = st.integers(0, 40)
block_sides = st.integers(1, 20)


def is_bits(array):
    return array.dtype == np.uint8 and set(np.unique(array)) <= {0, 1}


@pytest.mark.parametrize("algebra", ["xor", "or"])
@pytest.mark.parametrize(("n_samples", "n_features", "n_components"), [(0, 5, 2), (7, 0, 3), (4, 3, 0), (50, 65, 9)])
def test_clean_is_the_product_of_the_factors(algebra, n_samples, n_features, n_components):
    data = planted(n_samples, n_features, n_components, algebra=algebra, code_density=0.4, random_state=3)
    clean = np.zeros((n_samples, n_features), dtype=bool)
    for row in range(n_samples):
        for atom in np.flatnonzero(data.codes[row]):
            bits = data.atoms[atom].astype(bool)
            clean[row] = clean[row] ^ bits if algebra == "xor" else clean[row] | bits
    assert np.array_equal(data.clean, clean)
    assert data.atoms.shape == (n_components, n_features)
    assert data.codes.shape == (n_samples, n_components)
    assert all(is_bits(part) for part in (data.X, data.atoms, data.codes, data.clean))


def test_planted_densities_and_noise():
    data = planted(2000, 300, 40, atom_density=0.3, code_density=0.1, noise=0.02, random_state=0)
    assert data.atoms.mean() == pytest.approx(0.3, abs=0.02)
    assert data.codes.mean() == pytest.approx(0.1, abs=0.01)
    assert (data.X != data.clean).mean() == pytest.approx(0.02, abs=0.002)


@pytest.mark.parametrize(("noise", "wrong"), [(0, 0.0), (1, 1.0)])
def test_noise_of_0_and_1(noise, wrong):
    data = planted(30, 70, 3, noise=noise, random_state=0)
    assert (data.X != data.clean).mean() == wrong


def test_same_seed_gives_same_data():
    first, second = planted(20, 65, 3, random_state=7), planted(20, 65, 3, random_state=np.random.default_rng(7))
    assert np.array_equal(first.X, second.X)
    assert not np.array_equal(first.X, planted(20, 65, 3, random_state=8).X)
    legacy = [planted(20, 65, 3, random_state=np.random.RandomState(7)).X for _ in range(2)]
    assert np.array_equal(*legacy)
    assert planted(20, 65, 3).X.shape == (20, 65)


def test_chunks_of_rows_do_not_change_planted_data(monkeypatch):
    whole = planted(100, 33, 4, random_state=1)
    monkeypatch.setattr(
        "bitatoms.datasets.planted_factors._row_chunks",
        lambda n_rows, width: [slice(i, i + 7) for i in range(0, n_rows, 7)],
    )
    chunked = planted(100, 33, 4, random_state=1)
    assert np.array_equal(whole.X, chunked.X)
    assert np.array_equal(whole.clean, chunked.clean)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"algebra": "and"}, ValueError, "algebra='and' is not available; choose from 'xor', 'or'"),
        ({"n_samples": -1}, ValueError, "n_samples must be at least 0, not -1"),
        ({"n_features": 2.5}, TypeError, "n_features must be an integer, not 2.5"),
        ({"noise": 1.5}, ValueError, "noise must be between 0 and 1, not 1.5"),
        ({"atom_density": float("nan")}, ValueError, "atom_density must be between 0 and 1, not nan"),
        ({"code_density": -0.1}, ValueError, "code_density must be between 0 and 1, not -0.1"),
        ({"random_state": -1}, ValueError, "random_state must be None, a non-negative integer, .* not -1"),
        ({"random_state": "seed"}, ValueError, "random_state must be None, a non-negative integer, .* not 'seed'"),
    ],
)
def test_planted_raises_for_invalid_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        planted(**{"n_samples": 4, "n_features": 5, "n_components": 2, **arguments})


def test_digits():
    X, y = digits()
    assert X.shape == (1797, 64)
    assert is_bits(X)
    assert X.sum() == 37151
    assert set(y) == set(range(10))


def test_dither_is_proportional_to_the_gray():
    for black in range(19):
        tile = dither(np.full((6, 6), 1 - black / 18))
        assert tile.sum() == 2 * black
        assert is_bits(tile)


def test_dither_accepts_integers_and_floats():
    gray = np.arange(256, dtype=np.uint8).reshape(8, 32)
    assert np.array_equal(dither(gray), dither(gray / 255.0))
    assert not dither(np.full((9, 17), 255)).any()
    assert dither(np.zeros((9, 17), dtype=np.uint8)).all()
    assert dither(np.zeros((0, 3))).shape == (0, 3)


@pytest.mark.parametrize(
    ("gray", "error", "message"),
    [
        (
            np.zeros((4, 4, 3)),
            ValueError,
            r"gray has 3 dimensions; pass a 2-D array \(convert a color image to gray first\)",
        ),
        ([[0, 300]], ValueError, r"outside 0 to 255 \(first: 300 at row 0, column 1\)"),
        ([[0.5], [np.nan]], ValueError, r"outside 0 to 1 \(first: nan at row 1, column 0\)"),
        ([[0.5, -0.1]], ValueError, r"outside 0 to 1 \(first: -0.1 at row 0, column 1\)"),
        ([[True, False]], TypeError, "gray has dtype bool; pass integers"),
    ],
)
def test_dither_raises_for_invalid_values(gray, error, message):
    with pytest.raises(error, match=message):
        dither(gray)


def test_halftone_repeats_blocks():
    picture = halftone()
    assert picture.shape == (854, 1280)
    assert is_bits(picture)
    blocks = cut_blocks(picture)
    assert blocks.shape == (4320, 256)
    assert len(np.unique(blocks, axis=0)) < 3500
    assert np.array_equal(stitch_blocks(blocks, picture.shape), picture)
    assert halftone(enlarge=1).shape == (427, 640)
    with pytest.raises(ValueError, match="enlarge must be at least 1, not 0"):
        halftone(enlarge=0)


def test_halftone_without_pillow_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r'pip install "bitatoms\[image\]"'):
        halftone()


@given(st.data(), sides, sides, block_sides, block_sides)
def test_stitch_blocks_inverts_cut_blocks(data, height, width, tall, wide):
    picture = data.draw(arrays(np.uint8, (height, width), elements=st.integers(0, 1)))
    blocks = cut_blocks(picture, (tall, wide))
    assert blocks.shape == (-(-height // tall) * -(-width // wide), tall * wide)
    assert blocks.sum() == picture.sum()
    assert np.array_equal(stitch_blocks(blocks, picture.shape, (tall, wide)), picture)


def test_each_row_is_one_block():
    picture = np.zeros((6, 10), dtype=bool)
    picture[2:4, 5:10] = True
    assert np.array_equal(cut_blocks(picture, (2, 5)).sum(axis=1), [0, 0, 0, 10, 0, 0])


def test_stitch_blocks_accepts_packed_rows_and_copies():
    picture = dither(np.linspace(0, 1, 30 * 50).reshape(30, 50))
    blocks = cut_blocks(picture)
    stitched = stitch_blocks(BitMatrix.from_dense(blocks), picture.shape)
    assert np.array_equal(stitched, picture)
    stitch_blocks(blocks, picture.shape)[:] = 0
    assert np.array_equal(cut_blocks(picture), blocks)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: cut_blocks(np.zeros(4)), ValueError, "image has 1 dimensions; pass a 2-D array"),
        (
            lambda: cut_blocks([[0, 1], [2, 0]]),
            ValueError,
            r"image contains .* \(first: 2 at row 1, column 0\); threshold",
        ),
        (lambda: cut_blocks([[0, 1]], 4), ValueError, r"block must be a pair \(height, width\), not 4"),
        (lambda: cut_blocks([[0, 1]], (0, 4)), ValueError, "block height must be at least 1, not 0"),
        (lambda: cut_blocks([[0, 1]], (2, 1.5)), TypeError, "block width must be an integer, not 1.5"),
        (lambda: stitch_blocks([[0.5] * 4], (2, 2), (2, 2)), ValueError, "X contains values other than 0 and 1"),
        (
            lambda: stitch_blocks(np.zeros((3, 4)), (4, 4), (2, 2)),
            ValueError,
            "X is 3 × 4, but an image of 4 × 4 in blocks of 2 × 2 takes 4 × 4; pass the shape and block",
        ),
        (
            lambda: stitch_blocks(np.zeros((1, 4)), (2, -2), (2, 2)),
            ValueError,
            "shape width must be at least 0, not -2",
        ),
    ],
)
def test_blocks_raise_for_invalid_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()


def bought_together(table, result):
    """Return the atoms as sets of items."""
    return [frozenset(table.names_of(np.flatnonzero(atom))) for atom in result.atoms.to_dense()]


@pytest.mark.parametrize(("algebra", "random_state"), [("or", 1), ("auto", 0)])
def test_default_search_finds_the_shopping_habits(random_state, algebra):
    table = baskets(random_state=random_state)
    found = bought_together(table, ba.factorize(table, algebra=algebra, random_state=0))
    assert {frozenset(habit.items) for habit in HABITS.values()} <= set(found)
    assert len(found) <= len(HABITS) + 3


def test_baskets_are_realistic():
    table = baskets()
    bought = table.to_dense()
    assert table.shape == (5000, 67)
    assert 0.03 < bought.mean() < 0.08
    assert bought.any(axis=1).all()
    shares = np.sort(bought.mean(axis=0))
    assert shares[-1] > 0.15
    assert 0.015 < shares[0] < 0.03
    assert table.columns == tuple(sorted(table.columns))
    assert (table.row_names[0], table.row_names[-1]) == ("basket 1", "basket 5000")


def test_two_copies_of_an_allele_imply_one():
    table = genotypes(50, 80)
    once, twice = table.to_dense()[:, ::2], table.to_dense()[:, 1::2]
    assert (once >= twice).all()
    assert twice.any()
    for first, second in zip(table.columns[::2], table.columns[1::2], strict=True):
        snp, allele = first.split(":")
        assert second == f"{snp}:{allele}{allele}"
    assert [name.split(":")[0] for name in table.columns[::2]] == [f"rs{1001 + snp}" for snp in range(80)]
    homes = [name.split()[0] for name in table.row_names]
    assert [homes.count(home) for home in POPULATIONS] == [17, 17, 16]
    assert len(set(table.row_names)) == 50


@pytest.mark.parametrize("algebra", ["or", "auto"])
def test_atoms_of_genotypes_are_runs_of_neighbouring_snps(algebra):
    table = genotypes()
    atoms = ba.factorize(table, algebra=algebra, random_state=0).atoms.to_dense()
    lengths = np.array([np.ptp(np.flatnonzero(atom)) // 2 + 1 for atom in atoms])
    assert (lengths[:20] <= 35).all()  # the maximum length of a block
    assert (lengths <= 35).mean() > 0.9


def test_haplotype_frequencies_depend_on_the_population():
    table = genotypes()
    carries = table.to_dense()[:, ::2].reshape(3, 200, -1).mean(axis=1)
    assert 0.15 < np.ptp(carries, axis=0).mean() < 0.4


@pytest.mark.parametrize("make", [baskets, genotypes])
def test_synthetic_tables_depend_on_the_seed(make):
    assert make(40, random_state=3) == make(40, random_state=np.random.default_rng(3))
    assert make(40, random_state=3) != make(40, random_state=4)
    assert make(0).shape[0] == 0
    assert make(1).shape[0] == 1
    with pytest.raises(ValueError, match="n_samples must be at least 0, not -1"):
        make(-1)


def test_default_tables_do_not_change():
    """The examples in the documentation depend on them."""
    assert zlib.crc32(baskets().bits.to_bytes()) == 0x3238355E
    assert zlib.crc32(genotypes().bits.to_bytes()) == 0x415A395F


@pytest.mark.parametrize("n_snps", [0, 1, 11, 25, 36])
def test_genotypes_of_few_snps(n_snps):
    assert genotypes(5, n_snps).shape == (5, 2 * n_snps)
