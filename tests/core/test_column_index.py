"""Atoms listed by column give the gains of the dense tables, and therefore the same codes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitatoms import BitMatrix
from bitatoms.core import coding, host_kernels
from bitatoms.core.block import Block
from bitatoms.core.objective import codelength_prices
from bitatoms.kernels.structs import covering
from bitatoms.parallel import Workers
from support.blocks import block_of, factors, priced_rule
from support.strategies import SEEDS, random_bits


def coded(data, atoms, algebra, coder, seed):
    prices = codelength_prices(len(data), data.n_known, np.arange(data.n_cols) % 9, np.arange(len(atoms)) % 7)
    block = Block(data, BitMatrix.from_dense(atoms), None, covering(algebra), Workers())
    tables = block.kernels.priced(block.atoms().words, prices)
    rule = coding.coding_rule("mdl", algebra, None, 0, prices)
    coding.CODERS[coder](block, rule)
    return block.codes(), tables


@given(
    st.sampled_from(("xor", "or")), st.sampled_from(("mdl", "beam")), st.sampled_from((1, 17, 70)),
    st.sampled_from((1, 65, 200)), st.sampled_from((0.0, 0.1)), SEEDS,
)  # fmt: skip
def test_same_codes(algebra, coder, n_atoms, n_cols, unknown, seed):
    X = random_bits(seed, 66, n_cols, 0.3)
    data = BitMatrix.from_dense(X).with_unknown(BitMatrix.from_dense(random_bits(seed + 1, 66, n_cols, unknown)))
    atoms = random_bits(seed + 2, n_atoms, n_cols, 0.1)
    found = {}
    for lanes in (0, 1 << 40):  # always listed, never listed
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(host_kernels, "_LANES_PER_LISTED", lanes)
            found[lanes], tables = coded(data, atoms, algebra, coder, seed)
        assert len(tables.column_starts) == (0 if lanes and atoms.any() else n_cols + 1)
        assert len(tables.slices) == (n_cols if lanes and atoms.any() else 0)
        if not lanes:
            entries = tables.column_starts, tables.column_atoms
            for column in range(n_cols):
                listed = entries[1][entries[0][column] : entries[0][column + 1]]
                assert listed.tolist() == np.flatnonzero(atoms[:, column]).tolist()
    assert found[0] == found[1 << 40]


def test_atoms_with_few_of_the_columns_are_listed():
    narrow, wide = random_bits(0, 64, 200, 0.3), random_bits(0, 640, 2000, 0.002)
    for atoms, is_listed in ((narrow, False), (wide, True)):
        _, tables = coded(BitMatrix.from_dense(atoms), atoms, "or", "mdl", 0)
        assert (len(tables.column_starts) > 0) == is_listed


def test_gains_of_a_beam_add_up_past_32_bits():
    """A row uses those of 13 atoms, without common columns, of which it has most columns."""
    atoms = np.pad(np.kron(np.eye(13, dtype=np.uint8), np.ones((1, 10), np.uint8)), ((0, 0), (0, 1170)))
    X = np.pad(random_bits(0, 5, 130, 0.9), ((0, 0), (0, 1170)))
    block = block_of(X, atoms, np.zeros((5, 13), np.uint8), "xor")
    rule = priced_rule("xor", (np.full(1300, 1 << 26), np.zeros(13, int)))
    block.kernels.code_by_beam(block.kernels.priced(block.atoms().words, rule.prices), rule, 2, 3)
    np.testing.assert_array_equal(factors(block)[1], X[:, :130].reshape(5, 13, 10).sum(axis=2) > 5)
