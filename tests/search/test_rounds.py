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
def test_thinning_out_keeps_the_atoms_that_save_most(algebra):
    data = planted_in(algebra)
    others = random_bits(0, 14, 60, 0.1)
    codes = np.hstack([random_bits(1, 600, 14, 0.01), data.codes])
    search = search_of(data.X, algebra, max_rounds=1)
    block = search.context.block(*map(BitMatrix.from_dense, (np.vstack([others, data.atoms]), codes)))
    block, improved = search.thin_out(block)
    assert improved
    assert {atom.tobytes() for atom in data.atoms} <= {atom.tobytes() for atom in block.atoms().to_dense()}
    assert block.n_atoms < 14


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


def test_polish_extends_atoms_which_counts_as_a_sweep():
    X, atoms, codes, joined = atom_in_two_parts(63)
    search = search_of(X, "or", max_rounds=1)
    block = search.context.block(BitMatrix.from_dense(atoms), BitMatrix.from_dense(codes))
    search.polish(block, by_beam=False)
    history = search.context.monitor.history
    assert [row.iterations for row in history if row.move == "extend"] == [1]  # then nothing is left to extend
    assert sorted(block.atoms().to_dense().tolist()) == sorted(joined.tolist())


@every_algebra
def test_regrowing_finds_what_other_atoms_hide(algebra):
    """Two atoms of five columns each, found as one of six columns that their users have in part."""
    random = np.random.default_rng(0)
    X = (random.random((300, 100)) < 0.02).astype(np.uint8)
    true = np.zeros((2, 100), np.uint8)
    true[0, [1, 2, 3, 4, 5]] = true[1, [4, 5, 6, 7, 8]] = 1
    X[:20] |= true[0]
    X[20:40] |= true[1]
    search = search_of(X, algebra, max_rounds=10**6)
    wrong = np.zeros((1, 100), np.uint8)
    wrong[0, 1:9] = 1
    codes = np.zeros((300, 1), np.uint8)
    codes[:40] = 1
    block = search.context.block(BitMatrix.from_dense(wrong), BitMatrix.from_dense(codes))
    before = search.context.cost(block)
    assert search.regrows
    block = search.regrow(block)
    assert {atom.tobytes() for atom in true} <= {atom.tobytes() for atom in block.atoms().to_dense()}
    assert search.context.cost(block) == search.context.monitor.best_cost < before
    moves = [row.move for row in search.context.monitor.history]
    assert search.tuning.failed_regrowths < moves.count("regrow") <= search.tuning.max_regrowths
    assert moves[-1] == "go back"


def test_regrowing_ends_early_if_it_never_gains():
    atom = np.zeros((1, 100), np.uint8)
    atom[0, :5] = 1
    codes = np.zeros((300, 1), np.uint8)
    codes[:60] = 1
    search = search_of(codes @ atom, "or", max_rounds=10**6)
    block = search.regrow(search.context.block(*map(BitMatrix.from_dense, (atom, codes))))
    assert block.atoms() == BitMatrix.from_dense(atom)
    moves = [row.move for row in search.context.monitor.history]
    assert moves.count("regrow") == search.tuning.first_regrowths < search.tuning.failed_regrowths


def test_which_tables_are_regrown():
    sparse = np.zeros((40, 30), np.uint8)
    sparse[:5, :3] = 1
    assert search_of(sparse, "or").regrows
    assert not search_of(1 - sparse, "or").regrows
    assert not search_of(np.zeros((4, 600), np.uint8), "or").regrows
    assert not search_of(sparse, "or", HoldOut(BitMatrix.from_dense(sparse), 100)).regrows


@pytest.mark.parametrize(("best", "least"), [(900, 10), (200, 20), (1000, 0), (1100, 0)])
def test_a_gain_is_at_least_a_share_of_what_is_saved_or_of_what_is_left(best, least):
    search = search_of(random_bits(0, 60, 20, 0.4), "xor", least_gain=0.1)
    search.cost_without_atoms = 1000
    assert [search.gains(cost, best) for cost in (best - least - 1, best - least)] == [True, False]


@pytest.mark.parametrize(
    ("n_pairs", "by_sums", "moves"), [(0, False, []), (2, False, ["change basis"]), (0, True, ["change basis"])]
)
def test_sums_of_two_or_of_many_atoms_change_the_basis(n_pairs, by_sums, moves, monkeypatch):
    search = search_of(random_bits(0, 60, 20, 0.4), "xor")
    monkeypatch.setattr(rounds, "change_basis", lambda *block: n_pairs)
    monkeypatch.setattr(rounds, "lighten", lambda *block: by_sums)
    search.change_basis(search.context.block(BitMatrix.zeros(0, 20)), 5)
    assert [row.move for row in search.context.monitor.history] == moves


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
