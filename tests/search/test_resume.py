"""A search that is killed again and again resumes from its states, and ends no worse than the best that was saved."""

import numpy as np
import pytest

from bitatoms.bits import BitMatrix
from bitatoms.datasets import planted
from bitatoms.engine.codelength import Codelength, string_bits
from bitatoms.model.result import Factorization
from bitatoms.parallel import Workers
from bitatoms.rows.source import MemoryRows
from bitatoms.search.states import SavedStates, State
from bitatoms.search.windows.driver import is_wide_and_sparse
from bitatoms.sparse_bits import SparseBits
from support.journals import Killed, MemoryJournal
from support.parameters import resolved
from support.plans import use_small_budget, use_windows
from support.results import assert_same_search, planted_in
from support.sources import learned

SMALL = planted(100, 30, 4, noise=0.04, random_state=0).X
OVERLAID = planted_in("or", 100, 30, 4, seed=1).X
NOISE = np.random.default_rng(0).integers(0, 2, (40, 20), np.uint8)
UNKNOWN = np.where(np.random.default_rng(1).random(SMALL.shape) < 0.1, np.nan, SMALL)
WIDE = np.hstack([planted(70, 40, 3, noise=0.02, random_state=seed).X for seed in range(3)])
SCATTERED = np.hstack([planted(150, 40, 3, noise=0.02, random_state=seed).X for seed in range(3)])
SCATTERED = SCATTERED[:, np.random.default_rng(0).permutation(SCATTERED.shape[1])]
BUNDLES = np.random.default_rng(0).random((300, 120)) < 0.006
for rows, columns in zip(np.arange(300).reshape(6, 50), np.arange(120).reshape(6, 20), strict=True):
    BUNDLES[np.ix_(rows[:25], columns[:4])] = True
SPARSE = SparseBits.from_bits(BitMatrix.from_dense(BUNDLES))
SEARCHES = {
    "mdl xor": (SMALL, {"algebra": "xor"}),
    "both algebras, two starts each": (OVERLAID, {"algebra": "auto", "n_init": 2}),
    "thorough": (SMALL[:60], {"search": "thorough", "algebra": "xor"}),
    "anytime": (SMALL, {"algebra": "xor", "search": "anytime", "max_iter": 25}),
    "anytime k": (NOISE, {"algebra": "xor", "search": "anytime", "n_components": 4, "max_iter": 80}),
    "k": (SMALL, {"n_components": 3, "algebra": "xor"}),
    "k codelength": (OVERLAID, {"n_components": 18, "objective": "codelength", "algebra": "or"}),
    "unknown cells": (UNKNOWN, {"algebra": "or"}),
    "costs": (OVERLAID, {"algebra": "or", "false_positive_cost": 4}),
    "fixed atoms": (OVERLAID, {"algebra": "or", "fixed_atoms": OVERLAID[:1]}),
    "a given start": (SMALL, {"init": SMALL[:6], "algebra": "xor"}),
    "paper": (SMALL, {"search": "paper", "start_components": 1, "patience": 2}),
    "paper k": (SMALL, {"search": "paper", "n_components": 4}),
    "sample": (SMALL, {"search_rows": 60, "algebra": "xor"}),
    "windows of scattered columns": (SCATTERED, {"algebra": "or"}),
    "windows of a sample": (WIDE, {"search_rows": 60, "algebra": "or"}),
    "sparse windows": (SPARSE, {"algebra": "or"}),
}


@pytest.fixture(autouse=True, scope="module")
def small_searches():
    """Search little, also by windows of tables of 100 columns."""
    with pytest.MonkeyPatch.context() as patch:
        use_windows(patch, min_features=100, width=40, max_related=8, max_cells=10_000)
        use_small_budget(patch)
        yield


def fit(table, journal=None, **params):
    """Return the result of a search, as another process would find it."""
    data = table if isinstance(table, SparseBits) else BitMatrix.from_any(table, missing="unknown")
    return learned(MemoryRows(data, Workers(1)), 0, journal, **params)


def best_cost(saved, table):
    """Return the cost of the best state that was saved of a start, or of its windows and the other columns together."""
    if not saved.columns:
        return saved.states[0].cost
    data = table if isinstance(table, SparseBits) else BitMatrix.from_dense(table)
    others = np.setdiff1d(np.arange(data.n_cols), np.concatenate(saved.columns))
    return sum(state.cost for state in saved.states) + string_bits(data.n_known, data.column_weights())[others].sum()


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_killed_again_and_again_ends_no_worse_than_what_it_saved(name):
    table, params = SEARCHES[name]
    journal = MemoryJournal()
    expected = fit(table, journal, **params)
    if isinstance(expected, Factorization):
        assert_same_search(fit(table, **params), expected)  # saving has no influence
    n_saved, n_kills, found, least = journal.states.n_saved, 0, None, {}
    journal = MemoryJournal()
    while found is None:
        journal.states.kill_after = (n_kills + 1) * n_saved // 3
        journal.states.restart()
        try:
            found = fit(table, journal, **params)
        except Killed:
            n_kills += 1
        if "search_rows" in params:  # costs are those of held-out rows
            continue
        now = {start: best_cost(saved, table) for start, saved in journal.states.saved.items()}
        assert all(now[start] <= cost for start, cost in least.items())
        least = now
    assert n_kills > 0
    assert journal.states.n_loaded > 0 or journal.state is not None
    if "search_rows" not in params and "fixed_atoms" not in params:  # whose states are of a part of the table
        by_errors = "n_components" in params and "objective" not in params
        cost = found.wrong_bits if by_errors else found.codelength.total
        assert cost <= min(least[start] for start in least if start.startswith(found.algebra))
    if isinstance(table, SparseBits):
        assert is_wide_and_sparse(table, resolved(**params))


@pytest.mark.parametrize("name", ["mdl xor", "thorough", "paper", "windows of scattered columns"])
def test_a_finished_search_is_not_made_again(name):
    table, params = SEARCHES[name]
    journal, n_rounds = MemoryJournal(), []
    expected = fit(table, journal, **params)
    journal.states.restart()
    found = fit(table, journal, callbacks=n_rounds.append, **params)
    assert found.codelength.total <= expected.codelength.total
    assert len(n_rounds) < len(expected.history) / 2


@pytest.mark.parametrize(("what", "columns"), [("columns", [0, 0]), ("columns", [1, 120]), ("rows", [0, 1])])
def test_windows_of_another_table_are_not_restored(what, columns):
    journal = MemoryJournal()
    fit(SCATTERED, journal, algebra="or")
    atoms, codes, bias = (BitMatrix.zeros(*shape) for shape in ((1, 2), (149, 1), (1, 2)))
    state = State(0, atoms, codes, bias, np.zeros(2, np.int64), Codelength(0, 0, 0))
    for name in journal.states.saved:
        journal.states.saved[name] = SavedStates([state], None, [np.array(columns)])
    journal.states.restart()
    with pytest.raises(ValueError, match=f"do not have the {what} of the table"):
        fit(SCATTERED, journal, algebra="or")
