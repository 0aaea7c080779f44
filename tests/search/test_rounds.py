"""Rounds of the search for the shortest codelength: what its moves keep, how they are counted, and held-out rows."""

import math
from dataclasses import replace

import numpy as np
import pytest

import naive
from bitatoms import BitMatrix
from bitatoms.engine.objective import Objective
from bitatoms.search import rounds
from bitatoms.search.context import HoldOut, SearchContext, split_rows
from bitatoms.search.plan import PLANS
from bitatoms.search.rounds import MdlSearch
from support.blocks import block_of
from support.contexts import search_context
from support.results import atom_in_two_parts, every_algebra, planted_in
from support.strategies import random_bits


def search_of(X, algebra, holdout=None, **plan):
    """Return a search for the shortest codelength that has not begun."""
    plan, by_holdout = replace(PLANS["fast"], **plan), holdout is not None
    return MdlSearch(search_context(X, Objective(True, algebra), plan, holdout=holdout, by_holdout=by_holdout))


@every_algebra
@pytest.mark.parametrize(("fewest", "n_dropped"), [(0, 2), (1, 2), (2, 1), (3, 0)])
def test_atoms_that_save_nothing_on_held_out_rows_are_dropped(algebra, fewest, n_dropped):
    atoms = np.kron(np.eye(3, dtype=np.uint8), np.ones((1, 20), np.uint8))
    codes = random_bits(0, 400, 3, 0.3)
    rows = BitMatrix.from_dense(random_bits(1, 100, 1, 0.3) @ atoms[1:2])  # they use the second atom only
    tuning = replace(PLANS["fast"].mdl, min_holdout_rows=1)
    search = search_of(codes @ atoms, algebra, HoldOut(rows, 1000), fewest=fewest, mdl=tuning)
    block = search.context.block(BitMatrix.from_dense(atoms), BitMatrix.from_dense(codes))
    search.drop(block, every=True)
    assert [row.move for row in search.context.monitor.history] == ["drop"] * bool(n_dropped)
    kept = [1] if n_dropped == 2 else [1, 2] if n_dropped else [0, 1, 2]
    np.testing.assert_array_equal(block.atoms().to_dense(), atoms[kept])


@every_algebra
def test_a_sweep_by_beam_leaves_the_local_optima_of_toggles_and_drops_what_is_of_no_use(algebra):
    """Codes are empty, and of the last two atoms no row is made."""
    data = planted_in(algebra)
    others = random_bits(0, 2, 60, 0.3)
    search = search_of(data.X, algebra, max_rounds=1)
    block = search.context.block(BitMatrix.from_dense(np.vstack([data.atoms, others])), BitMatrix.zeros(600, 8))
    search.sweep_by_beam(block)
    assert sorted(block.atoms().to_dense().tolist()) == sorted(data.atoms.tolist())
    history = search.context.monitor.history
    moves = [row.move for row in history if row.move != "change basis"]
    assert moves == ["beam sweep", "sweep", "drop"]
    assert search.context.cost(block) <= min(row.bits for row in history)
    by_toggles = search.context.block(BitMatrix.from_dense(np.vstack([data.atoms, others])), BitMatrix.zeros(600, 8))
    search.sweep(by_toggles)
    assert search.context.cost(block) < search.context.cost(by_toggles)


@pytest.mark.parametrize("by_beam", [True, False])
def test_a_child_is_improved_by_rounds_and_by_beam_if_the_plan_has_that(by_beam):
    data = planted_in("or")
    tuning = replace(PLANS["fast"].mdl, child_rounds=2)
    search = search_of(data.X, "or", by_beam=by_beam, mdl=tuning, max_rounds=10**6)
    block = search.context.block(BitMatrix.from_dense(data.atoms[:4]))
    before = search.context.cost(block)
    found = search.improved(block)
    history = search.context.monitor.history
    moves = [row.move for row in history]
    assert moves.count("grow") == 2
    assert moves.count("beam sweep") == by_beam
    assert found.cost == search.context.cost(search.context.block_of(found)) == search.context.monitor.best_cost
    assert found.cost < before


@pytest.mark.parametrize("left_out", ["grow", "swap", "change basis", "eliminate", "beam sweep"])
def test_a_move_can_be_left_out(left_out):
    """To measure what it contributes."""
    data = planted_in("xor", 200, 40, 4)
    search = search_of(data.X, "xor", left_out=frozenset({left_out}), max_rounds=4)
    block = search.context.block(BitMatrix.from_dense(data.X[:8]))
    n_before, n_most = block.n_atoms, 0
    for _ in range(4):
        block = search.run_rounds(block, 1)
        n_most = max(n_most, block.n_atoms)
    search.sweep_by_beam(block)
    moves = {row.move for row in search.context.monitor.history}
    assert left_out != "grow" or n_most <= n_before
    assert (left_out in moves) == (left_out == "grow")  # the sweep after it remains
    assert {"grow", "sweep"} <= moves


@pytest.mark.parametrize(("best", "least"), [(900, 10), (200, 20), (1000, 0), (1100, 0)])
def test_a_gain_is_at_least_a_share_of_what_is_saved_or_of_what_is_left(best, least):
    search = search_of(random_bits(0, 60, 20, 0.4), "xor", least_gain=0.1)
    search.cost_without_atoms = 1000
    assert [search.gains(cost, best) for cost in (best - least - 1, best - least)] == [True, False]


@pytest.mark.parametrize(
    ("n_pairs", "how", "moves"),
    [
        *[(0, {}, []), (2, {}, ["change basis"])],
        *[(2, {"max_atoms": 2}, []), (2, {"left_out": frozenset({"change basis"})}, [])],
    ],
)
def test_sums_of_two_atoms_change_the_basis(n_pairs, how, moves, monkeypatch):
    """Unless rows may have few atoms: some get more."""
    plan = replace(PLANS["fast"], left_out=how.get("left_out", frozenset()))
    objective = Objective(True, "xor", max_atoms=how.get("max_atoms"))
    search = MdlSearch(search_context(random_bits(0, 60, 20, 0.4), objective, plan))
    monkeypatch.setattr(rounds, "change_basis", lambda *block: n_pairs)
    search.change_basis(search.context.block(BitMatrix.zeros(0, 20)))
    assert [row.move for row in search.context.monitor.history] == moves


@pytest.mark.parametrize(("ones", "is_sparse"), [(0, True), (4, True), (5, False), (100, False)])
def test_tables_with_few_ones_are_sparse(ones, is_sparse):
    X = np.zeros((50, 100), np.uint8)
    X[:, :ones] = 1
    assert search_of(X, "or").is_sparse == is_sparse


def test_rounds_end_when_several_in_a_row_are_no_better_than_the_best(monkeypatch):
    search, dropped = search_of(random_bits(0, 60, 20, 0.4), "xor", patience=3, least_gain=0.0, max_rounds=10**6), []
    costs = iter([100, 90, 95, 92, 90, 89, 1])  # of the start, and after each round
    monkeypatch.setattr(SearchContext, "cost", lambda context, block: next(costs))
    monkeypatch.setattr(search, "drop", lambda block, every: dropped.append(every))
    search.run_rounds(search.context.block(BitMatrix.zeros(0, 20)))
    assert len(dropped) == 4
    assert [number for number, last in enumerate(dropped, 1) if last] == [
        number for number in range(1, 5) if number % search.tuning.cycle_rounds == 0
    ]


# Rows held out: the split, the cost that they estimate, and the atoms that they justify.


@pytest.mark.parametrize(("n_rows", "n_held_out"), [(2, 1), (9, 1), (17, 1), (18, 2), (900, 100)])
def test_one_of_nine_rows_is_held_out(n_rows, n_held_out):
    drawn = np.random.default_rng(0).permutation(n_rows)
    searched, held_out = split_rows(drawn)
    np.testing.assert_array_equal(held_out, np.sort(drawn[:n_held_out]))
    np.testing.assert_array_equal(searched, np.sort(drawn[n_held_out:]))


@every_algebra
def test_the_cost_is_that_of_all_rows_at_the_frequencies_of_the_block(algebra):
    """In the block, all rows use atoms as the held-out rows do, but some of their bits are wrong."""
    atoms = np.zeros((3, 65), np.uint8)
    atoms[0, :20], atoms[1, 20:45], atoms[2, 45:60] = 1, 1, 1
    codes, unseen = random_bits(0, 400, 3, 0.4), random_bits(1, 50, 3, 0.4)
    X, rows = codes @ atoms, unseen @ atoms
    X[:30, 3] ^= 1
    rows[:2, 64] ^= 1
    block = block_of(X, atoms, codes, algebra)
    cost = HoldOut(BitMatrix.from_dense(rows), 10_000).cost(block, Objective(True, algebra, share=0.04))

    def bits(ones, ones_of_block):
        share = (ones_of_block + 0.5) / 401
        return -(ones * math.log2(share) + (50 - ones) * math.log2(1 - share))

    wrong, wrong_in_block = (rows ^ unseen @ atoms).sum(axis=0), (X ^ codes @ atoms).sum(axis=0)
    of_rows = sum(map(bits, wrong, wrong_in_block)) + sum(map(bits, unseen.sum(axis=0), codes.sum(axis=0)))
    of_atoms = sum(naive.string_bits(65, int(ones)) + math.ceil(math.log2(10_000)) for ones in atoms.sum(axis=1))
    assert cost == round(10_000 / 50 * of_rows) + of_atoms


@every_algebra
def test_held_out_rows_justify_an_atom_that_saves_more_than_their_share_of_its_cost(algebra):
    atoms = np.zeros((2, 64), np.uint8)
    atoms[0, :3], atoms[1, 32:] = 1, 1
    codes = np.zeros((1000, 2), np.uint8)
    codes[:5] = 1
    block, objective = block_of(codes @ atoms, atoms, codes, algebra), Objective(True, algebra)
    rows = np.zeros((200, 64), np.uint8)
    rows[0] = atoms[0]  # saves 24 bits; the atom takes 22 bits, and its use 8 to state how many there are and 8 more
    for n_all, expected in ((200, False), (100_000, True)):
        saves = HoldOut(BitMatrix.from_dense(rows), n_all).saves(block, objective)
        assert saves.tolist() == [expected, False]


def test_an_atom_in_two_parts_becomes_one():
    """No bit of a part gains anything, and neither part can be dropped, before one is extended."""
    X, atoms, codes, joined = atom_in_two_parts(63)
    search = search_of(X, "or", max_rounds=1)
    block = search.context.block(*map(BitMatrix.from_dense, (atoms, codes)))
    search.drop(block, every=True)
    assert block.n_atoms == 3
    state = search.extended(block)
    assert sorted(state.atoms.to_dense().tolist()) == sorted(joined.tolist())
    assert not state.wrong.any()
    assert [row.move for row in search.context.monitor.history] == ["extend", "drop"]
