"""Planted factors, digits, halftones, blocks of pictures, and synthetic baskets and genotypes."""

import sys
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import naive
from bitatoms import BitMatrix, datasets
from bitatoms.datasets import baskets, cut_blocks, digits, dither, genotypes, halftone, planted, stitch_blocks
from bitatoms.datasets.synthetic_genotypes import POPULATIONS

sides = st.integers(0, 40)
block_sides = st.integers(1, 20)


def is_bits(array):
    return array.dtype == np.uint8 and set(np.unique(array)) <= {0, 1}


@pytest.mark.parametrize("algebra", ["xor", "or"])
@pytest.mark.parametrize("shape", [(0, 5, 2), (7, 0, 3), (4, 3, 0), (50, 65, 9)])
def test_clean_is_the_product_of_the_factors(algebra, shape):
    data = planted(*shape, algebra=algebra, code_density=0.4, random_state=3)
    assert np.array_equal(data.clean, naive.product(data.codes, data.atoms, algebra))
    assert (*data.clean.shape, len(data.atoms)) == shape
    assert all(is_bits(part) for part in (data.X, data.atoms, data.codes, data.clean))


def test_planted_densities_and_noise():
    data = planted(2000, 300, 40, atom_density=0.3, code_density=0.1, noise=0.02, random_state=0)
    assert data.atoms.mean() == pytest.approx(0.3, abs=0.02)
    assert data.codes.mean() == pytest.approx(0.1, abs=0.01)
    assert (data.X != data.clean).mean() == pytest.approx(0.02, abs=0.002)
    for noise in (0, 1):
        data = planted(30, 70, 3, noise=noise, random_state=0)
        assert (data.X != data.clean).mean() == noise


def test_same_seed_gives_same_data():
    first, second = planted(20, 65, 3, random_state=7), planted(20, 65, 3, random_state=np.random.default_rng(7))
    assert np.array_equal(first.X, second.X)
    assert not np.array_equal(first.X, planted(20, 65, 3, random_state=8).X)
    legacy = [planted(20, 65, 3, random_state=np.random.RandomState(7)).X for _ in range(2)]
    assert np.array_equal(*legacy)
    assert not np.array_equal(planted(20, 65, 3).X, first.X)


def test_chunks_of_rows_do_not_change_planted_data(monkeypatch):
    def chunks_of_seven(n_rows, width):
        return [slice(start, start + 7) for start in range(0, n_rows, 7)]

    whole = planted(100, 33, 4, random_state=1)
    monkeypatch.setattr("bitatoms.datasets.planted_factors._row_chunks", chunks_of_seven)
    chunked = planted(100, 33, 4, random_state=1)
    assert np.array_equal([whole.X, whole.clean], [chunked.X, chunked.clean])


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
    gray = np.arange(256, dtype=np.uint8).reshape(8, 32)
    assert np.array_equal(dither(gray), dither(gray / 255.0))
    assert not dither(np.full((9, 17), 255)).any()
    assert dither(np.zeros((9, 17), dtype=np.uint8)).all()
    assert dither(np.zeros((0, 3))).shape == (0, 3)


def test_halftone_repeats_blocks():
    picture = halftone()
    assert picture.shape == (854, 1280)
    assert is_bits(picture)
    blocks = cut_blocks(picture)
    assert blocks.shape == (4320, 256)
    assert len(np.unique(blocks, axis=0)) < 3500
    assert np.array_equal(stitch_blocks(blocks, picture.shape), picture)
    assert halftone(enlarge=1).shape == (427, 640)


def test_halftone_without_pillow_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r'pip install "bitatoms\[image\]"'):
        halftone()


@given(st.data(), sides, sides, block_sides, block_sides)
def test_rows_are_blocks_padded_with_zeros_and_are_stitched_again(data, height, width, tall, wide):
    picture = data.draw(arrays(np.uint8, (height, width), elements=st.integers(0, 1)))
    padded = np.pad(picture, ((0, -height % tall), (0, -width % wide)))
    tops, lefts = range(0, height, tall), range(0, width, wide)
    expected = [padded[top : top + tall, left : left + wide].ravel() for top in tops for left in lefts]
    blocks = cut_blocks(picture, (tall, wide))
    assert np.array_equal(blocks, np.reshape(expected, (-1, tall * wide)))
    for rows in (blocks, BitMatrix.from_dense(blocks)):
        stitched = stitch_blocks(rows, picture.shape, (tall, wide))
        assert np.array_equal(stitched, picture)
        stitched[:] = 2
    assert np.array_equal(cut_blocks(picture, (tall, wide)), blocks)  # nothing was shared


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


@pytest.mark.parametrize("make", [baskets, genotypes])
def test_synthetic_tables_depend_on_the_seed(make):
    assert make(40, random_state=3) == make(40, random_state=np.random.default_rng(3))
    assert make(40, random_state=3) != make(40, random_state=4)
    assert make(0).shape[0] == 0
    assert make(1).shape[0] == 1


def test_customers_are_reproducible_and_lack_some_values():
    frame = datasets.customers(50, random_state=3)
    assert frame == datasets.customers(50, random_state=3) != datasets.customers(50, random_state=4)
    assert [len(values) for values in frame.values()] == [50] * 7
    assert any(None in values for values in frame.values())


def test_default_tables_do_not_change():
    """The examples in the documentation depend on them."""
    assert zlib.crc32(baskets().bits.to_bytes()) == 0x3238355E
    assert zlib.crc32(genotypes().bits.to_bytes()) == 0x415A395F
    assert (baskets().shape, baskets().row_names[-1]) == ((5000, 67), "basket 5000")
    assert baskets().columns == tuple(sorted(baskets().columns))
    for n_snps in (0, 1, 11, 25, 36):
        assert genotypes(5, n_snps).shape == (5, 2 * n_snps)
