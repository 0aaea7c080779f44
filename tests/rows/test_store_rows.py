"""StoreRows: a fit of a store gives the bits of a fit in memory."""

import pytest

from bitatoms.parallel import Workers
from bitatoms.rows.memory import MemoryRows
from bitatoms.rows.store import StoreRows
from support.sources import assert_same, learned

CASES = [
    {"n_components": 6},
    {"n_components": 12, "algebra": "or"},
    {"n_components": 20},
    {},
    {"algebra": "or"},
    {"n_components": 4, "search": "thorough", "search_rows": 100},
    {"search_rows": None, "n_components": 2, "max_iter": 1},
]


@pytest.mark.parametrize(
    ("form", "given"),
    [
        *(("all known", given) for given in CASES[::4]),
        *(("some unknown", given) for given in CASES[1::2]),
        *(("by ones", given) for given in CASES[2::4]),
    ],
    ids=str,
    indirect=["form"],
)
def test_a_store_and_memory_give_the_same_bits(any_bits, any_stores, tmp_path, given):
    given = {"search_rows": 200, **given}
    expected = learned(MemoryRows(any_bits, Workers()), **given)
    assert expected.atoms.n_rows
    assert (expected.known is None) == (any_bits.unknown is None)
    assert_same(learned(StoreRows(any_stores[0], Workers(2, 192)), **given), expected)
    assert_same(learned(StoreRows(any_stores[1], Workers(), code_folder=tmp_path), **given), expected)


def test_the_paper_search_needs_rows_in_memory(stores):
    with pytest.raises(ValueError, match='search="paper" needs all rows in memory'):
        learned(StoreRows(stores[0], Workers()), search="paper")
