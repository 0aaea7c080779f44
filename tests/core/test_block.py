"""Every operation on a block, bit for bit against the oracles, for any chunks and threads."""

import numpy as np

from bitatoms.core.block import Change
from bitatoms.core.coding import code, coding_rule
from bitatoms.core.exact import update_exactly
from support.blocks import block_of, factors


def test_overlaps_of_heavy_atoms_exceed_a_byte():
    """Atoms and rows that share more than 255 ones, and rows too wide for 16-bit gains."""
    for n_features in (600, 40000):
        X = np.ones((3, n_features), np.uint8)
        X[1, ::7] = 0
        atoms = np.ones((2, n_features), np.uint8)
        atoms[1, ::7] = 0
        block = block_of(X, atoms, np.zeros((3, 2), np.uint8), "xor")
        code(block, coding_rule("greedy", "xor"))
        np.testing.assert_array_equal(factors(block)[1], [[1, 0], [0, 1], [1, 0]])


def test_greedy_coding_after_an_exact_update_codes_the_rows_that_changed():
    X, atoms, codes = (np.array(table, np.uint8) for table in ([[1], [0], [1]], [[0], [0]], [[1, 1], [1, 0], [1, 0]]))
    block = block_of(X, atoms, codes, "or")
    code(block, coding_rule("greedy", "or"))
    update_exactly(block)
    assert factors(block)[0].tolist() == [[1], [0]]
    code(block, coding_rule("greedy", "or"))
    assert factors(block)[1].tolist() == [[1, 1], [0, 0], [1, 0]]


def test_changes_add_up():
    assert Change(1, 2, 3) + Change(10, 20, 30) == Change(11, 22, 33)
    assert Change(codes=1)
    assert not Change()
