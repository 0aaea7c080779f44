"""The prices by which rows are coded: the slope of the codelength in integers of one unit; those of groups of atoms."""

from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitatoms.bits import BitMatrix
from bitatoms.core.objective import Objective, codelength_prices
from bitatoms.core.pass_spec import PassSpec, RowCounts
from bitatoms.kernels.structs import MAX_PRICE
from support.blocks import priced_rule
from support.strategies import random_bits, random_prices


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
    prices = codelength_prices(n_rows, n_rows if (known == n_rows).all() else known, wrong, uses)
    bits, per_use = expected_prices(n_rows, known.tolist(), wrong.tolist(), uses.tolist())
    assert np.abs(prices.bits - bits).max() <= 0.5 + 1e-9
    assert np.abs(prices.uses[:n_atoms] - per_use).max(initial=0) <= 0.5 + 1e-9
    assert not prices.uses[n_atoms:].any()
    assert prices.bits.max() == MAX_PRICE


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_rows_outside_the_search_pay_their_share_of_an_atom_rounded(share):
    objective = Objective(by_codelength=True, algebra="xor", share=share)
    alone = Objective(by_codelength=True, algebra="xor")
    ones = np.arange(0, 40)
    bits = alone.of_atoms(100, ones)
    assert np.abs(objective.of_atoms(100, ones) - share * bits).max() <= 0.5


@pytest.mark.parametrize(("wrong", "density"), [([100, 300, 200], 0.2), ([900, 100, 500], 0.3), ([0, 0, 0], 0)])
def test_one_price_for_all_features_is_that_of_their_mean_up_to_a_density_of_0_3(wrong, density):
    """With more errors, each would cost next to nothing, and no row would be coded."""
    flat = codelength_prices(1000, 1000, np.array(wrong), np.array([5, 0]), flat=True)
    _, per_use = expected_prices(1000, [1000], [1000 * density], [5, 0])
    assert flat.bits.tolist() == [MAX_PRICE] * 3
    np.testing.assert_allclose(flat.uses[:2], per_use, atol=0.5 + 1e-9)


# --- groups of atoms with which rows are coded on their own


@pytest.mark.parametrize("min_split", [1, 1000])
def test_prices_and_typical_costs_are_those_of_the_atoms_and_columns_of_a_group(min_split, monkeypatch):
    """Also if there is one group only, of which some columns are left out because no atom has them."""
    monkeypatch.setattr("bitatoms.core.pass_spec._MIN_SPLIT", min_split)
    monkeypatch.setattr("bitatoms.core.pass_spec._GROUP_COLUMNS", 1)
    random = np.random.default_rng(0)
    atoms = random_bits(0, 6, 90, 0.4) * (np.arange(6)[:, np.newaxis] % 2 == random.integers(3, size=90))
    bits, uses = random_prices(1, 90, 6, (255, 300))
    counts = RowCounts(50, random.integers(50, size=90), random.integers(50, size=6))
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
