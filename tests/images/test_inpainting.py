"""Inpainting: holes are filled, known pixels do not change. Blocks and their evidence equal a naive version."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bitatoms as ba
import naive
from bitatoms.images import blocks as blocks_module
from bitatoms.images.blocks import BlockGrid, evidence, evidence_at
from bitatoms.model.model import Model
from bitatoms.parallel import Workers
from support.strategies import random_bits

pytestmark = pytest.mark.usefixtures("few_trials")


@pytest.fixture(scope="module")
def picture():
    """A small halftone of two grays."""
    return ba.datasets.dither(np.repeat([[0.3] * 36 + [0.7] * 36], 72, axis=0))


@pytest.mark.parametrize("hole", [None, np.s_[30:34], np.s_[30:45, 10:25]], ids=["pixels", "scratch", "square"])
def test_holes_are_filled_and_known_pixels_do_not_change(picture, hole):
    mask = random_bits(0, 72, 72, 0.3 if hole is None else 0) == 1
    mask[hole if hole is not None else np.s_[:0]] = True
    result = ba.inpaint(np.where(mask, 1, picture), mask, block_sizes=6, random_state=0)
    wrong = result.image != picture
    assert not wrong[~mask].any()
    assert wrong[mask].mean() < 0.05
    assert result.n_filled == mask.sum()
    assert result.accuracy > 0.95 > 0.8 > result.baseline
    assert result.image.dtype == picture.dtype


ODD_MASKS = {  # of 16 x 16 pixels: which ones are unknown, and the size of blocks
    "corner": (lambda down, across: down + across == 0, 4),
    "hole": (lambda down, across: (abs(down - 7.5) < 6) & (abs(across - 8.5) < 6), 99),  # larger than a block
    "line known": (lambda down, across: down > 0, 99),
    "pixel known": (lambda down, across: down + across < 30, 4),
    "checkerboard": (lambda down, across: (down + across) % 2 == 0, 4),
}


@pytest.mark.parametrize("name", ODD_MASKS)
def test_odd_masks_are_filled_and_known_pixels_do_not_change(name):
    is_unknown, size = ODD_MASKS[name]
    image, mask = np.tile(random_bits(1, 4, 4, 0.5), (4, 4)), is_unknown(*np.indices((16, 16)))
    result = ba.inpaint(image, mask, block_sizes=size, random_state=0)
    assert np.array_equal(result.image[~mask], image[~mask])
    assert result.n_filled == mask.sum()
    assert result.baseline == max(image[~mask].mean(), 1 - image[~mask].mean())
    assert 0 <= result.accuracy <= 1
    if name == "corner":  # of which copies are known
        assert np.array_equal(result.image, image)


@pytest.mark.parametrize(("shape", "value"), [((1, 1), 0), ((1, 7), 1), ((7, 1), 0), ((3, 5), 1)])
def test_a_constant_picture_smaller_than_a_block_stays_constant(shape, value):
    image, mask = np.full(shape, value), np.zeros(shape, bool)
    mask.flat[2:4] = True  # none of the single pixel
    result = ba.inpaint(image, mask, random_state=0)
    assert np.array_equal(result.image, image)
    assert result.n_filled == mask.sum()


@pytest.mark.parametrize(
    ("under", "kind", "dtype"),
    [(np.nan, float, bool), (255, np.uint8, np.int8), (-1, np.int64, float), (None, object, object)],
)
def test_any_value_may_be_under_a_mask_of_any_type(under, kind, dtype):
    expected, mask = np.tile(random_bits(1, 4, 4, 0.5), (3, 3)), np.zeros((12, 12), dtype)
    mask[4:7, 5] = 1
    image = expected.astype(kind)
    image[mask.astype(bool)] = under
    result = ba.inpaint(image, mask, block_sizes=4, random_state=0)
    assert np.array_equal(result.image.astype(np.uint8), expected)
    assert result.image.dtype == kind
    image[11, 2] = under
    with pytest.raises(ValueError, match=r"image contains values other than 0 and 1 \(first: .* at row 11, column 2\)"):
        ba.inpaint(image, mask, block_sizes=4)


@pytest.mark.parametrize("algebra", ["xor", "or"])
def test_evidence_at_unknown_pixels_equals_that_of_complete_pictures(algebra):
    """If one pixel alone is unknown, its evidence is that which `evidence` finds for it."""
    image = (np.tile(random_bits(1, 5, 5, 0.5), (3, 3)) ^ random_bits(2, 15, 15, 0.05)).astype(bool)
    grid = BlockGrid(image.shape, (3, 4), 2)
    blocks = grid.cut(image)
    model = Model.from_factorization(ba.factorize(blocks, 5, algebra=algebra, coder="mdl", objective="codelength"))
    expected = evidence(model, blocks, grid, Workers())
    for pixel in [(0, 0), (7, 8), (14, 3)]:
        unknown = np.zeros(image.shape, bool)
        unknown[pixel] = True
        found = evidence_at(unknown, model, grid.cut(image, unknown), grid, Workers())
        assert found[pixel] == expected[pixel]
        assert np.count_nonzero(found) <= 1


# --- blocks


@given(
    st.integers(0, 99), st.integers(2, 15), st.integers(2, 15), st.integers(1, 9), st.integers(1, 9), st.integers(1, 5)
)
@settings(max_examples=30)
def test_blocks_are_cut_in_order_and_the_last_ones_end_at_the_border(seed, height, width, tall, wide, stride):
    image = random_bits(seed, height, width, 0.5).astype(bool)
    grid = BlockGrid(image.shape, (min(tall, height), min(wide, width)), stride)
    expected = [image[i : i + grid.block[0], j : j + grid.block[1]].ravel() for i in grid.tops for j in grid.lefts]
    assert grid.cut(image).to_dense().tolist() == np.array(expected, np.uint8).tolist()
    assert grid.tops.tolist() == [*range(0, height - grid.block[0], stride), height - grid.block[0]]


@pytest.mark.parametrize("algebra", ["xor", "or"])
def test_evidence_equals_the_naive_version(monkeypatch, algebra):
    monkeypatch.setattr(blocks_module, "_CHUNK_BLOCKS", 20)  # several chunks
    image = np.tile(random_bits(1, 5, 5, 0.5), (2, 2)) ^ random_bits(2, 10, 10, 0.05)
    grid = BlockGrid(image.shape, (3, 4), 2)
    blocks = grid.cut(image.astype(bool))
    model = Model.from_factorization(ba.factorize(blocks, 5, algebra=algebra, coder="mdl", objective="codelength"))
    model = replace(model, remembered=None)  # the oracle codes from scratch only
    rule = model.rule
    prices = rule.prices.bits.astype(int), rule.prices.uses[: model.atoms.n_rows].astype(int)
    found = evidence(model, blocks, grid, Workers(2))
    expected = naive.evidence(
        image, grid.block, grid.tops, grid.lefts, model.atoms.to_dense(), algebra, prices, model.bias
    )
    assert np.array_equal(found, expected)
