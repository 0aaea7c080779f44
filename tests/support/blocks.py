"""Blocks made of dense tables, and assertions on them."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

import naive
from bitatoms.bits import BitMatrix
from bitatoms.engine.block import Block
from bitatoms.engine.coding import coding_rule
from bitatoms.engine.objective import Objective
from bitatoms.kernels.structs import Prices
from bitatoms.parallel import Workers
from support.devices import DEVICE

ALGEBRAS = st.sampled_from(("xor", "or"))
THREADS = (Workers(), Workers(1, 64), Workers(2, 64), Workers(3))
WORKERS = st.sampled_from(THREADS if DEVICE is None else (Workers(device=DEVICE),))
LIMITS = st.sampled_from((None, 1, 2, 3))


def packed(table):
    """Return writable words of a dense table."""
    return BitMatrix.from_dense(table).words.copy()


def unpacked(words, n_cols):
    return BitMatrix.from_words(words.copy(), n_cols, check=False).to_dense()


def bits_of(X):
    """Return a table as packed bits; cells above 1 are unknown."""
    return BitMatrix.from_dense(X == 1).with_unknown(BitMatrix.from_dense(X > 1))


def table_of(bits):
    """Return packed bits as a table, with 2 in unknown cells."""
    return bits.filled().to_dense() + (0 if bits.unknown is None else 2 * bits.unknown.to_dense())


def block_of(X, atoms, codes, algebra, workers=Workers()):  # noqa: B008 - frozen
    """Return a block that has counted its rows: what it keeps of that must not outlive a change of them."""
    tables = [bits_of(table) for table in (X, atoms, codes)]
    block = Block(*tables, algebra == "or", workers)
    block.wrong(), block.uses()
    return block


def prices_of(bits, uses, added=None, forbidden=None):
    """Return prices as the kernels take them: those of uses padded to a multiple of 16 atoms."""
    lanes = -(-len(uses) // 16) * 16
    prices = Prices(np.array(bits, np.int32), np.pad(uses, (0, lanes - len(uses))).astype(np.int32))
    if added is None:
        return prices
    words = BitMatrix.from_dense(forbidden[np.newaxis]).words[0].copy() if forbidden.any() else prices.forbidden
    mean = (prices.bits + added) // 2
    return prices._replace(added=np.array(added, np.int32), mean=mean.astype(np.int32), forbidden=words)


def priced_rule(algebra, prices, max_atoms=None, residual_limit=0, coder="mdl"):
    """Return the rule of coding at prices of errors and uses."""
    return coding_rule(coder, algebra, max_atoms, residual_limit, prices_of(*prices))


def changes_without(block, removal, k, has_costs=False):
    """Return what changes if the users of atom k do without it; the block is left as it is."""
    costs = Objective(False, "or" if block.covers else "xor").removal_costs(block)
    if has_costs:
        costs = costs._replace(missed=np.zeros(block.n_features, int), added=np.zeros(block.n_features, int))
    index, changes = removal.first_useless(np.array([k]), np.array([1 << 40]), costs)
    assert index == 0
    return changes


def within(codes, limit):
    """Return codes with at most ``limit`` atoms per row."""
    return codes if limit is None else codes * (np.cumsum(codes, axis=1) <= limit).astype(np.uint8)


def factors(block):
    atoms, codes = block.factors()
    return atoms.to_dense(), codes.to_dense()


def assert_consistent(block, X, algebra):
    """Assert that errors, users, cover masks and counts are those of the atoms and codes."""
    atoms, codes = factors(block)
    errors = naive.errors(X, atoms, codes, algebra)
    np.testing.assert_array_equal(block.errors().filled().to_dense(), errors)
    np.testing.assert_array_equal(block.wrong(), errors.sum(axis=0))
    np.testing.assert_array_equal(block.uses(), codes.sum(axis=0))
    assert block.errors().unknown == bits_of(X).unknown
    assert block.data() ^ block.bias == bits_of(X)
    np.testing.assert_array_equal(unpacked(block.rows.users(), len(X)), codes.T)
    if algebra == "or":
        cover = codes.astype(int) @ atoms
        rows = block.rows.on_host()
        for mask, least in ((rows.covered, 1), (rows.twice, 2)):
            np.testing.assert_array_equal(unpacked(mask, X.shape[1]), (cover >= least) | (X > 1))


def assert_step(block, change, X, before, after, algebra):
    """Assert that a step led from the factors before to those after, and counted its changes."""
    for found, wanted in zip(factors(block), after, strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert change.atoms == (before[0] != after[0]).sum()
    assert change.codes == (before[1] != after[1]).sum()
    errors = [naive.errors(X, atoms, codes, algebra) for atoms, codes in (before, after)]
    assert change.errors == (errors[0] != errors[1]).sum()
    assert_consistent(block, X, algebra)
