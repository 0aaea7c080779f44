"""A search that is killed again and again resumes from its journal, and gives the bits of an uninterrupted one."""

from dataclasses import replace

import numpy as np
import pytest

from bitatoms.bits import BitMatrix
from bitatoms.datasets import planted
from bitatoms.parallel import OutOfTime, Workers
from bitatoms.rows.memory import MemoryRows
from bitatoms.search.params import resolve
from bitatoms.search.windows.driver import WindowSearch, is_wide_and_sparse
from bitatoms.sparse_bits import SparseBits
from support.clock import WorkClock
from support.journals import Killed, MemoryJournal
from support.plans import use_small_budget, use_windows
from support.results import assert_same_search, planted_in
from support.sources import learned

SMALL = planted(100, 30, 4, noise=0.04, random_state=0).X
OVERLAID = planted_in("or", 100, 30, 4, seed=1).X
NOISE = np.random.default_rng(0).integers(0, 2, (40, 20), np.uint8)
WIDE = np.hstack([planted(70, 40, 3, noise=0.02, random_state=seed).X for seed in range(3)])
SCATTERED = np.hstack([planted(150, 40, 3, noise=0.02, random_state=seed).X for seed in range(3)])
SCATTERED = SCATTERED[:, np.random.default_rng(0).permutation(SCATTERED.shape[1])]
BUNDLES = np.random.default_rng(0).random((300, 120)) < 0.006
for rows, columns in zip(np.arange(300).reshape(6, 50), np.arange(120).reshape(6, 20), strict=True):
    BUNDLES[np.ix_(rows[:25], columns[:4])] = True
SEARCHES = {
    "mdl xor": (SMALL, {}),
    "both algebras, two starts each": (OVERLAID, {"algebra": "prefer-or", "n_init": 2}),
    "thorough": (SMALL[:60], {"search": "thorough"}),
    "anytime": (SMALL, {"search": "anytime", "max_iter": 25}),
    "anytime k": (NOISE, {"search": "anytime", "n_components": 4, "max_iter": 80}),
    "k": (SMALL, {"n_components": 3}),
    "k codelength": (OVERLAID, {"n_components": 18, "objective": "codelength", "algebra": "or"}),
    "paper": (SMALL, {"search": "paper", "start_components": 1, "patience": 2}),
    "paper k": (SMALL, {"search": "paper", "n_components": 4}),
    "windows of scattered columns": (SCATTERED, {"algebra": "or"}),
    "windows of a sample": (WIDE, {"search_rows": 60, "algebra": "or"}),
    "sparse windows": (SparseBits.from_bits(BitMatrix.from_dense(BUNDLES)), {"algebra": "or"}),
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
    data = table if isinstance(table, SparseBits) else BitMatrix.from_dense(table)
    return learned(MemoryRows(data, Workers(1)), 0, journal, **params)


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_killed_again_and_again_gives_the_same_bits(name):
    table, params = SEARCHES[name]
    journal = MemoryJournal()
    expected = fit(table, journal, **params)
    n_steps, n_kills = journal.steps.n_saved, 0
    if isinstance(table, SparseBits):
        assert is_wide_and_sparse(table, resolve(**params))
        assert [row.move for row in expected.history] == ["no model", *["window"] * 6, "finish"]
    if "search_rows" not in params:
        assert journal.finished
        assert_same(fit(table, journal, **params), expected)
        assert journal.steps.n_saved == n_steps  # all steps are taken from the journal
    if name in ("mdl xor", "windows of scattered columns"):
        assert_same(fit(table, **params), expected)  # the journal has no influence
    if name == "both algebras, two starts each":
        assert len(journal.steps.records) == 4  # those of steps within the starts were dropped
    journal = MemoryJournal()
    found = None
    while found is None:
        journal.steps.kill_after = n_steps // 5
        try:
            found = fit(table, journal, **params)
        except Killed:
            n_kills += 1
    assert_same(found, expected)
    assert n_kills >= min(4, n_steps // 2) > 0
    assert journal.steps.n_loaded >= n_kills


def assert_same(found, expected):
    """Assert that two results are the same, with codes or from passes."""
    if hasattr(expected, "codes"):
        assert_same_search(found, expected)
    assert found.atoms == expected.atoms
    assert found.codelength == expected.codelength
    assert [row[:-1] for row in found.history] == [row[:-1] for row in expected.history]


def out_of_time_at_first(step):
    """Return a step of a search, for which there is no time the first time that it is made."""
    n_made = 0

    def made(self):
        nonlocal n_made
        n_made += 1
        if n_made == 1:
            raise OutOfTime
        return step(self)

    return made


def test_windows_that_were_cut_short_are_searched_again_and_do_not_become_worse(monkeypatch):
    WorkClock(monkeypatch)
    table, journal, costs = SCATTERED, MemoryJournal(), []
    for max_time in (3.0, 9.0, 0.1, 0.1):
        found = fit(table, journal, max_time=max_time)
        assert (found.ended, journal.finished) == ("max_time", False)
        costs.append(found.codelength.total)
    assert costs == sorted(costs, reverse=True)
    assert costs[1] < costs[0]
    assert costs[2] == costs[1]
    with monkeypatch.context() as patch:
        for step in ("_join", "_search", "_divide"):  # cut off before it is made
            original = getattr(WindowSearch, step)
            patch.setattr(WindowSearch, step, out_of_time_at_first(original))
            found = fit(table, journal, max_time=1)
            assert (found.ended, found.codelength.total) == ("max_time", costs[1])
            patch.setattr(WindowSearch, step, original)
    complete = fit(table, journal)
    assert complete.codelength.total <= fit(table).codelength.total


@pytest.mark.parametrize("change", [lambda states: states[1:], lambda states: (*states, states[0])])
def test_a_record_of_windows_with_other_states_is_corrupt(change):
    journal = MemoryJournal()
    fit(WIDE, journal, callbacks=lambda row: row.move == "join")
    (name,) = [name for name in journal.steps.records if name.endswith("stopped")]
    journal.steps.records[name] = replace(
        journal.steps.records[name], states=change(journal.steps.records[name].states)
    )
    with pytest.raises(ValueError, match="more or fewer states"):
        fit(WIDE, journal, callbacks=lambda row: True)
