"""Groups of atoms with which rows are coded on their own: their prices, and the cost of a typical row."""

import numpy as np
import pytest

from bitatoms.bits import BitMatrix
from bitatoms.core.pass_spec import PassSpec, RowCounts
from support.blocks import priced_rule
from support.strategies import random_bits, random_prices


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
