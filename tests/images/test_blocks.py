"""Overlapping blocks, and the evidence of their codelengths: equal to a naive version."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bitatoms as ba
import naive
from bitatoms.core.model import Model
from bitatoms.images import blocks as blocks_module
from bitatoms.images.blocks import BlockGrid, evidence
from bitatoms.parallel import Workers
from support.strategies import random_bits

pytestmark = pytest.mark.usefixtures("few_trials")


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
