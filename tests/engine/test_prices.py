"""The prices by which rows are coded, those of groups of atoms, and costs of missed and added ones, by the oracles."""

from math import log2
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from bitatoms.bits import BitMatrix
from bitatoms.engine import update
from bitatoms.engine.codelength import AtomCode
from bitatoms.engine.counts import are_ones
from bitatoms.engine.objective import Objective
from bitatoms.engine.passes import PassSpec, RowCounts
from bitatoms.engine.prices import EQUAL_COSTS, ERROR_BITS, ErrorCosts, codelength_prices
from bitatoms.engine.update import flips_by_column, flips_together, update_together
from bitatoms.kernels.structs import MAX_PRICE
from bitatoms.sparse_bits import SparseBits
from support.blocks import bits_of, block_of, factors, priced_rule
from support.costs import random_costs
from support.strategies import SEEDS, factorisations, random_bits, random_prices


def slope(n_rows, ones):
    return log2((n_rows - ones + 0.5) / (ones + 0.5))


def expected_prices(n_rows, known, wrong, uses):
    """Return the exact prices in units of the largest one, before they are rounded."""
    bits = [max(0.05, slope(length, count)) for length, count in zip(known, wrong, strict=True)]
    unit = MAX_PRICE / max(bits)
    per_use = [max(0.0, slope(n_rows, count)) if count else 5.06 for count in uses]
    return [max(1, price * unit) for price in bits], [price * unit for price in per_use]


@given(st.data(), st.integers(1, 3000), st.sampled_from((1, 7, 65)), st.sampled_from((0, 1, 5, 130)))
def test_prices_are_the_nearest_integers_to_the_slopes(data, n_rows, n_features, n_atoms):
    random = np.random.default_rng(data.draw(st.integers(0, 1000)))
    known, uses = (random.integers(0, n_rows + 1, size) for size in (n_features, n_atoms))
    if data.draw(st.booleans()):
        known[:] = n_rows
    wrong = random.integers(0, known + 1)
    prices = codelength_prices(n_rows, known, wrong, uses)
    bits, per_use = expected_prices(n_rows, known.tolist(), wrong.tolist(), uses.tolist())
    assert np.abs(prices.bits - bits).max() <= 0.5 + 1e-9
    assert np.abs(prices.uses[:n_atoms] - per_use).max(initial=0) <= 0.5 + 1e-9
    assert not prices.uses[n_atoms:].any()
    assert prices.bits.max() == MAX_PRICE


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_rows_outside_the_search_pay_their_share_of_an_atom_rounded(share):
    objective = Objective(by_codelength=True, algebra="xor", share=share)
    alone = Objective(by_codelength=True, algebra="xor")
    atoms = bits_of(np.tri(40, 100, -1, np.uint8))
    assert np.abs(objective.of_atoms(atoms) - share * alone.of_atoms(atoms)).max() <= 0.5


@pytest.mark.parametrize(("wrong", "density"), [([100, 300, 200], 0.2), ([900, 100, 500], 0.3), ([0, 0, 0], 0)])
def test_one_price_for_all_features_is_that_of_their_mean_up_to_a_density_of_0_3(wrong, density):
    """With more errors, each would cost next to nothing, and no row would be coded."""
    flat = codelength_prices(1000, np.full(len(wrong), 1000), np.array(wrong), np.array([5, 0]), flat=True)
    _, per_use = expected_prices(1000, [1000], [1000 * density], [5, 0])
    assert flat.bits.tolist() == [MAX_PRICE] * 3
    np.testing.assert_allclose(flat.uses[:2], per_use, atol=0.5 + 1e-9)


# --- groups of atoms with which rows are coded on their own


@pytest.mark.parametrize("min_split", [1, 1000])
def test_prices_and_typical_costs_are_those_of_the_atoms_and_columns_of_a_group(min_split, monkeypatch):
    """Also if there is one group only, of which some columns are left out because no atom has them."""
    monkeypatch.setattr("bitatoms.engine.passes._MIN_SPLIT", min_split)
    monkeypatch.setattr("bitatoms.engine.passes._GROUP_COLUMNS", 1)
    random = np.random.default_rng(0)
    atoms = random_bits(0, 6, 90, 0.4) * (np.arange(6)[:, np.newaxis] % 2 == random.integers(3, size=90))
    bits, uses = random_prices(1, 90, 6, (255, 300))
    counts = RowCounts(50, np.full(90, 50), random.integers(50, size=90), random.integers(50, size=6))
    rule = priced_rule("xor", (bits, uses))._replace(typical=1.0)
    spec = PassSpec(BitMatrix.from_dense(atoms), BitMatrix.zeros(1, 90), "mdl", rule, priced_by=counts)
    assert len(spec.groups) == (2 if min_split == 1 else 1)
    for group in spec.groups:
        prices, own = group.spec.rule.prices, len(group.atoms)
        np.testing.assert_array_equal(group.spec.atoms.to_dense(), atoms[np.ix_(group.atoms, group.columns)])
        np.testing.assert_array_equal(prices.bits, bits[group.columns])
        np.testing.assert_array_equal(prices.uses[:own], uses[group.atoms])
        cost = (bits * counts.wrong)[group.columns].sum() + (uses * counts.uses)[group.atoms].sum()
        assert group.spec.rule.typical == pytest.approx(cost / 50)


def test_flips_do_not_depend_on_how_many_votes_are_converted_at_a_time():
    random, atoms = np.random.default_rng(0), bits_of(random_bits(0, 5, 70, 0.5)).words
    free, wrong = random.integers(0, 50, (2, 5, 70), np.int32)
    pairs = np.full((5, 5), 50)
    expected, n_expected = flips_together(free, wrong, pairs, atoms, False)
    with mock.patch.object(update, "_MAX_CONVERTED", 0):  # those of one atom
        flips, n_flips = flips_together(free, wrong, pairs, atoms, False)
    assert n_flips == n_expected > 10
    np.testing.assert_array_equal(flips, expected)


# --- costs of missed and added ones


@given(factorisations(n_atoms=st.integers(1, 8)), SEEDS)
def test_updates_weigh_votes_by_the_costs_of_errors(problem, seed):
    X, atoms, codes = problem
    costs = random_costs(seed, X.shape[1])
    weights = [np.rint(16 * np.minimum(each, 1 << 20)).astype(np.int64) for each in (costs.missed, costs.added)]
    block = block_of(X, atoms, codes, "or")
    update_together(block, costs)
    updated = naive.update_together(X, atoms, codes, "or", weights)
    np.testing.assert_array_equal(factors(block)[0], updated)

    def cost(atoms):
        errors = naive.errors(X, atoms, codes, "or")
        missed = (errors * (X == 1)).sum(axis=0)
        return int(weights[0] @ missed + weights[1] @ (errors.sum(axis=0) - missed))

    assert cost(updated) <= cost(atoms)
    # From votes on all bits as a list, one flip per column: the one that lowers the costs most, if one does.
    block = block_of(X, atoms, codes, "or")
    free, bad = block.votes(0, len(atoms))
    voted = SparseBits.from_bits(bits_of(np.ones_like(atoms)))
    flipped = atoms.copy()
    flipped[flips_by_column(free.ravel(), bad.ravel(), voted, bits_of(atoms), costs)] ^= 1
    for i in range(X.shape[1]):
        single = [atoms.copy() for _ in atoms]
        for k, each in enumerate(single):
            each[k, i] ^= 1
        assert cost(flipped) <= cost(atoms)
        own = atoms.copy()
        own[:, i] = flipped[:, i]
        assert cost(own) == min(cost(atoms), *map(cost, single))
    assert are_ones(bits_of(atoms), voted).tolist() == atoms.astype(bool).ravel().tolist()


@settings(max_examples=30)
@given(factorisations(n_atoms=st.integers(0, 6)), SEEDS)
def test_a_block_costs_its_code_and_what_its_errors_cost_beyond_it(problem, seed):
    X, atoms, codes = problem
    costs = random_costs(seed, X.shape[1])
    block, errors = block_of(X, atoms, codes, "or"), naive.errors(X, atoms, codes, "or").astype(int)
    added = (errors * (X == 0)).sum(axis=0)
    np.testing.assert_array_equal(block.added(), added)
    plain = Objective(True, "or", has_bias=False)
    beyond = 0
    for kind, each in ((X == 1, costs.missed), (X == 0, costs.added)):
        for count, cost in zip((errors * kind).sum(axis=0).tolist(), each.tolist(), strict=True):
            beyond += count * (1 << 32 if np.isinf(cost) else round((cost - 1) * ERROR_BITS))
    with_costs = Objective(True, "or", costs=costs, has_bias=False)
    assert with_costs.cost(block) - plain.cost(block) == beyond
    assert with_costs.cost(block) == block.codelength(block.wrong()).total + with_costs.cost_beyond_codelength(block)


def test_costs_of_1_are_equal():
    assert not EQUAL_COSTS
    assert ErrorCosts.of_columns(1, np.ones(3), 3) is EQUAL_COSTS
    costs = ErrorCosts.of_columns(1.0, np.array([1, 2, np.inf]), 3)
    assert costs.missed_bits.tolist() == [0, 0, 0]
    assert costs.added_bits.tolist() == [0, 8, 1 << 32]
    assert costs.forbidden.tolist() == [4]
    assert costs.take_columns(np.array([2, 0])).added.tolist() == [np.inf, 1]


# --- flips


PLAIN = [(by_codelength, algebra, False) for by_codelength in (True, False) for algebra in ("xor", "or")]
OBJECTIVES = st.sampled_from([*PLAIN, (True, "or", True), (True, "or", True)])  # the last two with costs of errors


@settings(max_examples=40)
@given(factorisations(n_atoms=st.integers(0, 5)), OBJECTIVES, SEEDS)
def test_flips_cost_what_the_errors_cost_more_after_them(problem, kind, seed):
    """Columns do not depend on each other, so that the costs of flips of one atom add up."""
    X, atoms, codes = problem
    by_codelength, algebra, has_costs = kind
    error_costs = random_costs(seed, X.shape[1]) if has_costs else EQUAL_COSTS
    objective = Objective(by_codelength, algebra, costs=error_costs, has_bias=not has_costs)
    block, flips = block_of(X, atoms, codes, algebra), random_bits(seed, *atoms.shape, 0.3).astype(bool)
    votes = block.votes(0, len(atoms))

    def cost(atoms):
        errors = naive.errors(X, atoms, codes, algebra)
        wrong, missed = errors.sum(axis=0), (errors * (X == 1)).sum(axis=0)
        cost = int(objective.of_errors(block.n_known, wrong).sum())
        return cost + (error_costs.of_counts(wrong, wrong - missed) if has_costs else 0)

    are_ones = atoms.astype(bool)
    costs = objective.of_flips(block, flips, are_ones, *votes)
    each = objective.of_each_flip(block, flips, are_ones, *votes)
    assert list(zip(*each[:2], strict=True)) == list(zip(*np.nonzero(flips), strict=True))
    for k in range(len(atoms)):
        flipped = atoms.copy()
        flipped[k] ^= flips[k]
        assert costs[k] == cost(flipped) - cost(atoms)
    for k, column, more in list(zip(*each, strict=True))[:20]:
        flipped = atoms.copy()
        flipped[k, column] ^= 1
        assert more == cost(flipped) - cost(atoms)


# --- bits at the ends of atoms that are not worth a longer stretch


@given(st.sampled_from((1, 2, 63, 64, 65, 130)), st.sampled_from((0.03, 0.2, 1)), SEEDS)
def test_far_bits_are_those_without_which_an_atom_costs_least(n_features, density, seed):
    """Of all cuts at one end, the one that saves most is made, if it saves anything."""
    random, atoms = np.random.default_rng(seed), random_bits(seed, 4, n_features, density)
    order = random.permutation(n_features)
    saved = random.integers(-5, 30, atoms.shape)
    of_bit, columns = np.nonzero(atoms)
    objective = Objective(True, "or", code=AtomCode(np.argsort(order)))
    far = np.zeros(atoms.shape, bool)
    far[of_bit, columns] = objective.far_bits(n_features, of_bit, columns, saved[of_bit, columns])
    assert not (far & (atoms == 0)).any()
    for k, atom in enumerate(atoms):
        ordered = [column for column in order if atom[column]]
        cuts = [ordered[cut:] for cut in range(len(ordered))] + [ordered[:cut] for cut in range(1, len(ordered))]
        costs = [_cost(atom, set(ordered) - set(left), saved[k], order) for left in cuts]
        found = _cost(atom, set(np.flatnonzero(far[k])), saved[k], order)
        assert found == min(costs, default=found)
        assert not far[k].any() or found < costs[0]


def _cost(atom, cleared, saved, order):
    """Return what an atom costs without some bits, and what these would save."""
    left = np.array([bit and column not in cleared for column, bit in enumerate(atom)], np.uint8)
    return naive.stretch_bits(left, order) + sum(int(saved[column]) for column in cleared)


def test_columns_without_an_order_have_no_far_bits():
    bits = np.zeros(3, np.intp), np.array([0, 1, 90]), np.array([9, 9, -9])
    assert Objective(True, "or").far_bits(100, *bits).tolist() == [False] * 3
    ordered = Objective(True, "or", code=AtomCode(np.arange(100)))
    assert ordered.far_bits(100, *bits).tolist() == [False, False, True]
    assert ordered.far_bits(100, *(array[:0] for array in bits)).tolist() == []
