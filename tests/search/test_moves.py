"""Each move alone: it keeps the block consistent and never raises the cost."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from bitatoms import BitMatrix, codelength
from bitatoms.datasets import planted
from bitatoms.engine import removal
from bitatoms.engine.block import Block, BlockState, Change, CountedRows
from bitatoms.engine.codelength import AtomCode
from bitatoms.engine.coding import code_by_beam, code_from_scratch
from bitatoms.engine.objective import Objective
from bitatoms.parallel import Workers
from bitatoms.search.finish import best_result
from bitatoms.search.moves.basis import change_basis
from bitatoms.search.moves.drop import drop, drop_useless, keep_best, savings
from bitatoms.search.moves.grow import _seeds, grow
from bitatoms.search.moves.merge import merge
from bitatoms.search.moves.sweep import (
    _useless_bits,
    extend,
    fewest_errors_sweep,
    flat_sweep,
    gain_of_sample,
    harmless_bits,
    sweep,
    trim,
)
from support.blocks import assert_consistent, bits_of, block_of, factors, table_of, within
from support.contexts import search_context
from support.results import ALGEBRAS, every_algebra, planted_in
from support.strategies import SEEDS, factorisations, random_bits

MAX_ATOMS = st.sampled_from((None, 1, 2))
OBJECTIVES = st.builds(Objective, st.booleans(), st.sampled_from(ALGEBRAS), MAX_ATOMS)
WORKERS = st.sampled_from((Workers(), Workers(1, 64)))
FILLED = factorisations(n_rows=st.sampled_from((1, 2, 17, 64, 65, 130)))


def state(problem, objective, workers, bias_seed=None):
    """Return a block within the limits of the objective, with or without a bias, and the data less the bias."""
    X, atoms, codes = problem
    bias = None if bias_seed is None else random_bits(bias_seed, 1, X.shape[1], 0.3)
    tables = (bits_of(table) for table in (X, atoms, within(codes, objective.max_atoms)))
    block = Block(*tables, objective.algebra == "or", workers, None if bias is None else BitMatrix.from_dense(bias))
    return block, X if bias is None else X ^ bias


def prune(block, objective, min_atoms=0):
    """Drop atoms that save nothing, and return how many."""
    return drop(block, objective, np.flatnonzero(savings(block, objective) <= 0), block.n_atoms - min_atoms)


def eliminate(block, objective, min_atoms=0):
    """Drop every atom without which the cost is lower, trying the one that saves least first; return how many."""
    order = np.argsort(savings(block, objective), kind="stable")
    return drop(block, objective, order, block.n_atoms - min_atoms)


def settled_cost_of(X, atoms, codes, objective, bias):
    """Return the cost by the oracle; the bias takes the columns that are wrong in more than half of the rows."""
    if not objective.by_codelength:
        return int(naive.errors(X, atoms, codes, objective.algebra, bias).sum())
    settled = naive.settled_bias(X, atoms, codes, objective.algebra, bias)
    return sum(naive.codelength(X, atoms, codes, objective.algebra, settled))


def cost_of(X, atoms, codes, objective):
    """Return the cost by the oracle, without a bias."""
    if objective.by_codelength:
        return sum(naive.codelength(X, atoms, codes, objective.algebra))
    return int(naive.errors(X, atoms, codes, objective.algebra).sum())


def cost_of_bias(block, objective):
    """Return the cost of the settled bias of a block."""
    bias, _ = objective.settled_bias(block)
    return objective.of_bias_ones(block.n_samples, block.n_features, np.array(bias.count()))


def cost_less_bias(block, objective):
    """Return the cost of a block without the bits of its bias, which dropping atoms leaves out of account."""
    return objective.cost(block) - cost_of_bias(block, objective)


def assert_within(block, objective):
    assert objective.max_atoms is None or (factors(block)[1].sum(axis=1) <= objective.max_atoms).all()


BIASES = st.sampled_from((None, 3))


@given(FILLED, OBJECTIVES, WORKERS, BIASES)
def test_the_cost_is_that_of_the_oracle(problem, objective, workers, bias):
    block, _ = state(problem, objective, workers, bias)
    X = table_of(block.data())
    assert objective.cost(block) == settled_cost_of(X, *factors(block), objective, block.bias.to_dense()[0])
    nothing = np.zeros((0, X.shape[1]), np.uint8), np.zeros((len(X), 0), np.uint8)
    assert objective.cost_of_nothing(bits_of(X)) == cost_of(X, *nothing, objective)


@given(FILLED, OBJECTIVES, WORKERS, BIASES)
def test_savings_are_the_increase_in_cost_without_each_atom(problem, objective, workers, bias):
    block, X = state(problem, objective, workers, bias)
    atoms, codes = factors(block)
    now = cost_of(X, atoms, codes, objective)
    expected = [
        cost_of(X, np.delete(atoms, k, axis=0), np.delete(codes, k, axis=1), objective) - now for k in range(len(atoms))
    ]
    assert savings(block, objective).tolist() == expected


@settings(max_examples=30)
@given(FILLED, OBJECTIVES, WORKERS, BIASES, st.sampled_from((prune, eliminate)), st.integers(0, 3))
def test_dropping_atoms_that_do_not_pay_never_raises_the_cost(problem, objective, workers, bias, move, least):
    block, X = state(problem, objective, workers, bias)
    atoms, _ = factors(block)
    before = cost_less_bias(block, objective)
    n_dropped = move(block, objective, least)
    left, codes = factors(block)
    assert_consistent(block, X, objective.algebra)
    assert_within(block, objective)
    assert len(left) == len(atoms) - n_dropped >= min(len(atoms), least)
    rest = iter(atoms.tolist())
    assert all(atom in rest for atom in left.tolist())  # those left are as they were, in order
    assert cost_less_bias(block, objective) <= before
    if move is prune and least == 0 and objective.by_codelength:
        while prune(block, objective):  # rows of a dropped atom, coded again, may leave others
            pass
        assert (block.uses() > 0).all()
        return
    assert n_dropped or np.array_equal(codes, within(problem[2], objective.max_atoms))


@settings(max_examples=30)
@given(FILLED, OBJECTIVES, WORKERS, BIASES, st.integers(0, 6), st.sampled_from(("any cost", "same codes")))
def test_the_best_atoms_are_kept(problem, objective, workers, bias, most, criterion):
    block, X = state(problem, objective, workers, bias)
    (atoms, codes), order = factors(block), np.argsort(savings(block, objective), kind="stable")
    n_dropped = keep_best(block, objective, most, criterion)
    assert_consistent(block, X, objective.algebra)
    assert_within(block, objective)
    assert n_dropped == max(0, len(atoms) - most)
    kept = np.sort(order[n_dropped:])
    np.testing.assert_array_equal(factors(block)[0], atoms[kept])
    if criterion == "same codes":
        np.testing.assert_array_equal(factors(block)[1], codes[:, kept])


def dropped_one_by_one(block, objective):
    """Drop atoms as `eliminate` does, by trials of all users in copies of the block: slow and obvious."""
    rule, rows, dropped = objective.rule(block), np.arange(block.n_rows), []
    uses = rule.prices.uses
    for k in np.argsort(savings(block, objective), kind="stable"):
        without = block.sample(rows)
        refused = rule._replace(prices=rule.prices._replace(uses=uses.copy()))
        without.removal(refused).code_without(k)
        without.mark_stale()
        kept = np.isin(np.arange(block.n_atoms), [*dropped, k], invert=True)
        costs = []
        for state, counted in ((block, kept | (np.arange(block.n_atoms) == k)), (without, kept)):
            errors = objective.of_errors(state.n_known, state.wrong()).sum()
            pays = objective.of_uses(state.n_rows, state.uses()) + objective.of_atoms(state.atoms())
            costs.append(errors + pays[counted].sum())
        if costs[1] <= costs[0]:
            block, uses = without, uses.copy()
            uses[k] = 1 << 27
            dropped.append(int(k))
    return sorted(dropped)


@settings(max_examples=25)
@given(FILLED, OBJECTIVES, st.sampled_from((Workers(), Workers(3, 64), Workers(4))))
def test_the_atoms_dropped_are_those_of_trials_one_by_one(problem, objective, workers):
    """Whatever the number of threads; no trial ends before all users are coded."""
    block, _ = state(problem, objective, workers)
    atoms = factors(block)[0]
    expected = np.delete(atoms, dropped_one_by_one(block, objective), axis=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(removal, "_FIRST_ROWS", 1000)
        eliminate(block, objective)
    np.testing.assert_array_equal(factors(block)[0], expected)


@every_algebra
def test_an_atom_that_saves_as_many_bits_as_it_costs_is_dropped(algebra):
    atoms, codes, objective = np.eye(1, 24, dtype=np.uint8), np.zeros((64, 1), np.uint8), Objective(True, algebra)
    atoms[0, 1] = codes[:4] = 1
    for move in (prune, eliminate):
        block, _ = state((codes @ atoms, atoms, codes), objective, Workers())
        assert savings(block, objective).tolist() == [0]
        assert move(block, objective) == 1


def pair_moves(X, atoms, codes):
    """Yield the codelength after each basis move."""
    for moved in basis_moves(atoms, codes):
        yield sum(naive.codelength(X, *moved, "xor"))


def basis_moves(atoms, codes):
    """Yield the factors after each basis move."""
    for k in range(len(atoms)):
        for other in range(len(atoms)):
            if other != k:
                new_atoms, new_codes = atoms.copy(), codes.copy()
                new_atoms[k] ^= atoms[other]
                new_codes[:, other] ^= codes[:, k]
                yield new_atoms, new_codes


@settings(max_examples=15)
@given(factorisations(n_rows=st.sampled_from((17, 65)), n_cols=st.sampled_from((9, 65)), n_atoms=st.integers(3, 7)))
def test_basis_moves_are_made_in_order_of_what_they_save(problem):
    block, X = state(problem, Objective(True, "xor"), Workers())
    now = factors(block)
    n_moves = change_basis(block, Objective(True, "xor"))
    for _ in range(n_moves):
        lengths = list(pair_moves(X, *now))
        now = list(basis_moves(*now))[lengths.index(min(lengths))]
    for found, expected in zip(factors(block), now, strict=True):
        np.testing.assert_array_equal(found, expected)


@settings(max_examples=30)
@given(FILLED, WORKERS, BIASES)
def test_a_change_of_basis_keeps_the_product_and_shortens_the_factors(problem, workers, bias):
    objective = Objective(True, "xor")
    block, X = state(problem, objective, workers, bias)
    before = factors(block)
    product, bits = naive.product(before[1], before[0], "xor"), cost_of(X, *before, objective)
    errors = block.errors()
    moves = change_basis(block, objective)
    after = factors(block)
    assert_consistent(block, X, "xor")
    assert block.errors() == errors
    np.testing.assert_array_equal(naive.product(after[1], after[0], "xor"), product)
    assert cost_of(X, *after, objective) <= bits - moves  # each saves at least one bit
    assert moves or all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))
    assert all(other >= cost_of(X, *after, objective) for other in pair_moves(X, *after))
    assert change_basis(block, objective) == 0
    once, _ = state(problem, objective, workers, bias)
    best = min(pair_moves(X, *before), default=bits)
    moves = change_basis(once, objective, max_moves=1)  # the one that saves most
    assert cost_of(X, *factors(once), objective) == (best if moves else bits)
    covering, _ = state(problem, Objective(True, "or"), workers, bias)
    assert change_basis(covering, objective) == 0
    assert all(np.array_equal(one, other) for one, other in zip(before, factors(covering), strict=True))


def test_the_basis_keeps_atoms_that_are_far_apart():
    """Their sum has a long stretch, which takes more bits than the rows that use both atoms would save."""
    atoms, codes = np.zeros((2, 3000), np.uint8), np.zeros((16, 2), np.uint8)
    atoms[0, [0, 10, 20, 30]] = atoms[1, 2999] = codes[:8] = 1
    for ranks in (np.arange(3000), np.arange(3000)[::-1].copy()):
        objective = Objective(True, "xor", code=AtomCode(ranks))
        block, _ = state((codes @ atoms, atoms, codes), objective, Workers())
        assert change_basis(block, objective) == 0


@settings(max_examples=30)
@given(FILLED, OBJECTIVES, WORKERS, BIASES, st.integers(1, 5), SEEDS)
def test_growing_appends_atoms_that_no_row_uses_yet(problem, objective, workers, bias, most, seed):
    block, X = state(problem, objective, workers, bias)
    atoms, codes = factors(block)
    grown = grow(block, objective, np.random.default_rng(seed), most)
    assert grown <= most
    new_atoms, new_codes = factors(block)
    assert len(new_atoms) == len(atoms) + grown
    np.testing.assert_array_equal(new_atoms[: len(atoms)], atoms)
    np.testing.assert_array_equal(new_codes[:, : len(atoms)], codes)
    assert not new_codes[:, len(atoms) :].any()
    assert new_atoms[len(atoms) :].any(axis=1).all()
    assert_consistent(block, X, objective.algebra)


def sweep_for_the_fewest_errors(block, objective):
    before = block.errors().count()
    fewest_errors_sweep(block, objective, np.random.default_rng(0))
    assert block.errors().count() <= before


plain_sweep, fresh_sweep = partial(sweep, swaps=False), partial(sweep, coder=code_from_scratch)
beam_sweep = partial(sweep, coder=code_by_beam)
MOVES = sweep, plain_sweep, fresh_sweep, beam_sweep, extend, merge, trim
OF_STARTS = flat_sweep, sweep_for_the_fewest_errors  # which may raise the cost


@settings(max_examples=90)
@given(FILLED, OBJECTIVES, WORKERS, BIASES, st.sampled_from((*MOVES, *OF_STARTS)))
def test_a_move_keeps_the_block_consistent_and_never_raises_the_cost(problem, objective, workers, bias, move):
    block, X = state(problem, objective, workers, bias)
    for _ in range(3):
        (atoms, codes), cost = factors(block), objective.cost(block)
        change = move(block, objective)
        new_atoms, new_codes = factors(block)
        assert_consistent(block, X, objective.algebra)
        assert_within(block, objective)
        if move in OF_STARTS:
            return
        assert objective.cost(block) <= cost - (bool(change) and move in (merge, trim))
        if not change:
            assert np.array_equal(atoms, new_atoms)
            assert np.array_equal(codes, new_codes)
        if move is merge:
            assert len(new_atoms) == len(atoms) - change
        if move is trim:
            assert np.array_equal(codes, new_codes)
            assert ((atoms == 1) | (new_atoms == 0)).all()
            assert change == (atoms != new_atoms).sum()


@every_algebra
@pytest.mark.parametrize("bias", [None, 3])
def test_savings_are_those_of_a_description_without_the_atom_whose_bias_takes_columns(algebra, bias):
    X, atoms, codes = (random_bits(seed, *shape, 0.6) for seed, shape in enumerate(((90, 11), (3, 11), (90, 3))))
    codes[:, 2] = 1  # all rows use it
    objective = Objective(True, algebra)
    block, _ = state((X, atoms, codes), objective, Workers(), bias)
    assert bias is None or (block.bias.to_dense()[0] & (2 * block.wrong() > 90)).any()  # that the bias gives up
    saved = savings(block, objective, settles_bias=True)
    for k in range(3):
        without, _ = state((X, np.delete(atoms, k, axis=0), np.delete(codes, k, axis=1)), objective, Workers(), bias)
        assert saved[k] == objective.cost(without) - objective.cost(block)
    assert (savings(block, objective) != saved).any()


@pytest.mark.parametrize("algebra", ["xor", "or"])
def test_atoms_that_the_bias_can_replace_are_dropped(algebra):
    X = np.zeros((60, 9), np.uint8)
    X[:, :4] = X[::2, 5:] = 1
    atoms, codes = np.zeros((2, 9), np.uint8), np.zeros((60, 2), np.uint8)
    atoms[0, 5:] = atoms[1, :4] = codes[::2, 0] = codes[:, 1] = 1
    objective, block = Objective(True, algebra), block_of(X, atoms, codes, algebra)
    better = drop_useless(block, objective)
    assert better.atoms().to_dense().tolist() == atoms[:1].tolist()
    assert better.bias.to_dense()[0].tolist() == atoms[1].tolist()
    assert not better.wrong().any()
    assert objective.cost(better) <= objective.cost(block)
    assert drop_useless(better, objective) is None
    assert drop_useless(block, objective, min_atoms=2) is None


@pytest.mark.parametrize(("n_rows", "n_sampled"), [(1, 1), (600, 256)])
def test_the_gain_of_a_sample_is_that_of_rows_from_all_of_the_table(n_rows, n_sampled):
    data = planted(n_rows, 65, 8, random_state=0)
    objective, codes = Objective(True, "xor"), data.codes.copy()
    codes[n_rows // 2 :] = 0
    block = block_of(data.X, data.atoms, codes, "xor")
    sampled = np.linspace(0, n_rows - 1, n_sampled).astype(int)
    before, after = (
        codelength(data.X[sampled], data.atoms, some[sampled]).total for some in (codes, np.zeros_like(codes))
    )

    def clear(sample):
        return sample.restore(BlockState(sample.atoms().words, np.zeros_like(sample.codes().words)))

    assert gain_of_sample(block, objective, clear) == pytest.approx(1 - after / before)
    np.testing.assert_array_equal(factors(block)[1], codes)
    assert_consistent(block, data.X, "xor")


@every_algebra
def test_merging_joins_the_parts_of_atoms(algebra):
    """Each of three atoms is in two parts, each of which some of the users lack."""
    data = planted_in(algebra, 300, 100, 3, noise=0.02)
    atoms = np.vstack([data.atoms, data.atoms])
    atoms[:3, 50:], atoms[3:, :50] = 0, 0
    codes = np.hstack([data.codes] * 2)
    codes &= 1 - random_bits(3, *codes.shape, 0.05)
    objective = Objective(True, algebra)
    block = block_of(data.X, atoms, codes, algebra)
    assert merge(block, objective) == 3
    found, users = factors(block)
    assert sorted(found.tolist()) == sorted(data.atoms.tolist())
    for k, atom in enumerate(found.tolist()):
        own = data.atoms.tolist().index(atom)
        np.testing.assert_array_equal(users[:, k], codes[:, own] | codes[:, own + 3])


def test_a_limit_on_atoms_per_row_prevents_merging():
    data = planted_in("or", 100, 60, 2)
    atoms = np.repeat(data.atoms, 2, axis=0)
    block = block_of(data.X, atoms, within(np.repeat(data.codes, 2, axis=1), 1), "or")
    assert merge(block, Objective(True, "or", max_atoms=1)) == 0


def with_a_common_column():
    """Return a table, and which rows use its atom, columns 0 to 4.

    Nearly half of all rows have column 59, and so do slightly more than half of those that use the atom.
    """
    random = np.random.default_rng(0)
    X, users = random.random((2000, 60)) < 0.01, np.arange(2000) < 200
    X[:, 59] = random.random(2000) < 0.45
    X[users, :5] = True
    X[:102, 59], X[102:200, 59] = True, False
    return X.astype(np.uint8), users


def test_the_result_of_a_search_has_trimmed_atoms():
    X, users = with_a_common_column()
    atom = np.isin(np.arange(60), [0, 1, 2, 3, 4, 59])[np.newaxis].astype(np.uint8)
    context = search_context(X, Objective(True, "or"), settles_bias=True)
    block = context.block(bits_of(atom), bits_of(users[:, np.newaxis].astype(np.uint8)))
    context.monitor.record(block, Change(), 0, "start")
    result = best_result(context, block, "beam", "converged")
    assert np.flatnonzero(result.atoms.to_dense()[0]).tolist() == [0, 1, 2, 3, 4]
    assert result.history[-1].move == "trim"


@settings(max_examples=12)
@given(FILLED, st.sampled_from(ALGEBRAS), WORKERS, SEEDS)
def test_moves_of_atoms_that_are_described_by_stretches(problem, algebra, workers, seed):
    random = np.random.default_rng(seed)
    order = random.permutation(problem[0].shape[1])
    objective = Objective(True, algebra, code=AtomCode(np.argsort(order)))
    block, X = state(problem, objective, workers)

    def cost():
        errors, codes, atoms = naive.codelength(X, *factors(block), algebra, order=order)
        assert objective.cost(block) == errors + codes + atoms + cost_of_bias(block, objective)
        return objective.cost(block)

    for _ in range(2):
        grow(block, objective, random, 3)
        for move in (plain_sweep, sweep, fresh_sweep, extend, trim, merge, change_basis):
            before = cost()
            move(block, objective)
            assert cost() <= before
            assert_consistent(block, X, algebra)
        prune(block, objective)
    atoms, codes = factors(block)
    without = [(np.delete(atoms, k, axis=0), np.delete(codes, k, axis=1)) for k in range(len(atoms))]
    bits = [sum(naive.codelength(X, *left, algebra, order=order)) for left in without]
    now = sum(naive.codelength(X, atoms, codes, algebra, order=order))
    assert savings(block, objective).tolist() == [each - now for each in bits]


def test_trimming_shortens_a_stretch():
    """A far column saves more than a bit of a string costs, but less than a longer stretch."""
    X = np.random.default_rng(0).random((400, 3000)) < 0.002
    X[:40, :6], X[:, 2500] = True, np.arange(400) % 4 == 0
    X[:25, 2500] = True
    atom = np.isin(np.arange(3000), [*range(6), 2500])[np.newaxis].astype(np.uint8)
    users = (np.arange(400) < 40)[:, np.newaxis].astype(np.uint8)
    for ranks, kept in ((None, [*range(6), 2500]), (np.arange(3000), [*range(6)])):
        block = block_of(X.astype(np.uint8), atom, users, "or")
        trim(block, Objective(True, "or", code=AtomCode(ranks)))
        assert np.flatnonzero(factors(block)[0][0]).tolist() == kept
        nothing = block_of(X.astype(np.uint8), atom[:0], users[:, :0], "or")
        assert grow(nothing, Objective(True, "or", code=AtomCode(ranks)), np.random.default_rng(0), 1) == 1
        assert np.flatnonzero(factors(nothing)[0][0]).tolist() == kept


def test_a_column_is_cleared_in_one_atom_at_a_time():
    """Two atoms, each with its own rows, have the same two columns far from the others."""
    X = np.random.default_rng(0).random((400, 3000)) < 0.002
    X[:40, :6] = X[40:80, 6:12] = True
    X[:, [2500, 2502]] = (np.arange(400) % 4 == 0)[:, np.newaxis]
    X[:15, [2500, 2502]] = X[40:55, [2500, 2502]] = True
    atoms, codes = np.zeros((2, 3000), np.uint8), np.zeros((400, 2), np.uint8)
    atoms[0, :6] = atoms[1, 6:12] = atoms[:, [2500, 2502]] = codes[:40, 0] = codes[40:80, 1] = 1
    block = block_of(X.astype(np.uint8), atoms, codes, "or")
    useless = _useless_bits(block, Objective(True, "or", code=AtomCode(np.arange(3000)))).to_dense()
    assert [np.flatnonzero(bits).tolist() for bits in useless] == [[2500, 2502], []]


def test_atoms_of_a_window_cost_what_they_cost_in_the_table():
    objective = Objective(True, "or", code=AtomCode(n_features=5000))
    bits = objective.of_atoms(BitMatrix.from_dense(np.tri(40, 40, -1, np.uint8)))
    assert bits.tolist() == [naive.string_bits(5000, n) for n in range(40)]


def row_sets(words):
    """Return bits of rows as a set of columns for each."""
    return {frozenset(np.flatnonzero(row).tolist()) for row in BitMatrix.from_words(words, 65, check=False).to_dense()}


@settings(max_examples=20)
@given(st.sampled_from(ALGEBRAS), SEEDS)
def test_candidates_start_from_the_errors_of_rows_of_two_rows_and_of_columns(algebra, seed):
    """Under OR, from missing ones only."""
    X, atoms, codes = (random_bits(seed + k, *shape, 0.3) for k, shape in enumerate(((30, 65), (3, 65), (30, 3))))
    wrong = naive.errors(X, atoms, codes, algebra)
    fixable = wrong & X if algebra == "or" else wrong
    of_rows = {frozenset(np.flatnonzero(row).tolist()) for row in fixable}
    of_pairs = {one & other for one in of_rows for other in of_rows}
    of_columns = set()
    for column in range(65):
        users = fixable[:, column] == 1
        # Under OR, cells that other atoms cover have no vote.
        free = users.sum() if algebra == "xor" else (naive.product(codes, atoms, "or")[users] == 0).sum(axis=0)
        of_columns.add(frozenset(np.flatnonzero(2 * fixable[users].sum(axis=0) > free).tolist()))
    block = block_of(X, atoms, codes, algebra)
    found = row_sets(_seeds(block, Objective(True, algebra), np.random.default_rng(seed)))
    assert found <= of_rows | of_pairs | of_columns
    assert all(len(columns) > 1 for columns in found)
    assert len(found & of_rows) > 15  # most of 30
    assert found & (of_pairs - of_rows)
    assert found & (of_columns - of_rows - of_pairs)


@every_algebra
def test_growing_finds_a_pattern_that_no_row_has_in_full(algebra):
    """Each row has seven or eight of ten columns."""
    random = np.random.default_rng(0)
    X = np.zeros((200, 60), np.uint8)
    for row in X[:80]:
        row[random.choice(10, random.integers(7, 9), replace=False)] = 1
    nothing = np.zeros((0, 60), np.uint8), np.zeros((200, 0), np.uint8)
    block = block_of(X, *nothing, algebra)
    assert grow(block, Objective(True, algebra), random, 1) == 1
    assert np.flatnonzero(factors(block)[0][0]).tolist() == [*range(10)]


@every_algebra
def test_atoms_that_are_grown_at_once_claim_different_rows(algebra):
    """Of two patterns that overlap in few rows, both are found; no other atom of the same rows is."""
    atoms, codes = np.zeros((2, 65), np.uint8), np.zeros((120, 2), np.uint8)
    atoms[0, :9] = atoms[1, 30:40] = codes[:40, 0] = codes[35:80, 1] = 1
    nothing = np.zeros((0, 65), np.uint8), np.zeros((120, 0), np.uint8)
    for most in (1, 2, 8):
        block = block_of(naive.product(codes, atoms, algebra), *nothing, algebra)
        assert grow(block, Objective(True, algebra), np.random.default_rng(0), most) == min(most, 2)
        assert {tuple(atom) for atom in factors(block)[0]} <= {tuple(atom) for atom in atoms}


@every_algebra
def test_nothing_grows_where_nothing_is_wrong_or_an_atom_costs_more_than_it_saves(algebra):
    atoms, codes = np.eye(2, 65, dtype=np.uint8), random_bits(0, 90, 2, 0.5)
    block = block_of(naive.product(codes, atoms, algebra), atoms, codes, algebra)
    assert grow(block, Objective(True, algebra), np.random.default_rng(0), 8) == 0
    once = np.zeros((90, 65), np.uint8)
    once[0, :2] = 1
    block = block_of(once, atoms[:0], codes[:, :0], algebra)
    assert grow(block, Objective(True, algebra), np.random.default_rng(0), 8) == 0


@settings(max_examples=30)
@given(FILLED, OBJECTIVES, st.integers(0, 40), BIASES)
def test_rows_that_are_only_counted(problem, objective, n_rest, bias_seed):
    """A block with other rows that use no atom costs what a block of all rows costs."""
    X, atoms, codes = problem
    bias = None if bias_seed is None else BitMatrix.from_dense(random_bits(bias_seed, 1, X.shape[1], 0.3))
    others = random_bits(9, n_rest, X.shape[1], 0.2)
    everything = np.vstack([X, others]).astype(np.uint8)
    if (X > 1).any():
        everything[len(X) :], others = 0, np.zeros_like(others)
    all_codes = np.vstack([codes, np.zeros((n_rest, codes.shape[1]), np.uint8)])
    covers = objective.algebra == "or"
    whole = Block(bits_of(everything), bits_of(atoms), bits_of(all_codes), covers, Workers(), bias)
    rest = CountedRows(n_rest, others.sum(axis=0).astype(np.int64))
    part = Block(bits_of(X), bits_of(atoms), bits_of(codes), covers, Workers(), bias, rest)
    np.testing.assert_array_equal(part.wrong(), whole.wrong())
    np.testing.assert_array_equal(part.missed(part.data()), whole.missed(whole.data()))
    assert (part.n_samples, objective.cost(part)) == (whole.n_rows, objective.cost(whole))
    assert part.codelength(part.wrong()) == whole.codelength(whole.wrong())
    np.testing.assert_array_equal(savings(part, objective), savings(whole, objective))
    for found, wanted in zip(objective.rule(part).prices, objective.rule(whole).prices, strict=True):
        np.testing.assert_array_equal(found, wanted)


@every_algebra
def test_growing_from_pairs_of_columns(algebra, monkeypatch):
    """Two columns that very few rows have, always together: no such row is drawn as a seed."""
    random = np.random.default_rng(0)
    X = (random.random((3000, 60)) < 0.03).astype(np.uint8)
    X[:, [10, 20]] = 0
    X[:8, [10, 20]] = 1
    objective, nothing = Objective(True, algebra), np.zeros((0, 60), np.uint8)

    def grown(from_pairs):
        block = block_of(X, nothing, np.zeros((3000, 0), np.uint8), algebra)
        grow(block, objective, np.random.default_rng(1), 8, from_pairs)
        return {tuple(np.flatnonzero(atom)) for atom in factors(block)[0]}

    without = grown(False)
    assert (10, 20) in grown(True) - without
    monkeypatch.setattr("bitatoms.search.moves.grow._MAX_PAIRED_COLUMNS", 59)
    assert grown(True) == without


@pytest.mark.parametrize(("algebra", "n_atoms"), [("xor", 2), ("or", 1)])
def test_atoms_are_not_extended_under_xor_or_if_there_is_only_one(algebra, n_atoms):
    """All users of an atom have a bit that it lacks: an update adds it."""
    atoms, codes = np.eye(n_atoms, 70, dtype=np.uint8), random_bits(0, 63, n_atoms, 0.5)
    X = naive.product(codes, atoms, algebra)
    X[:, 60:] |= codes[:, :1]
    block = block_of(X, atoms, codes, algebra)
    assert harmless_bits(block).any()
    assert not extend(block, Objective(True, algebra))
    np.testing.assert_array_equal(factors(block)[0], atoms)


@given(FILLED, WORKERS, BIASES)
def test_harmless_bits_make_no_cell_wrong(problem, workers, bias):
    block, X = state(problem, Objective(True, "or"), workers, bias)
    atoms, codes = factors(block)
    before = naive.errors(X, atoms, codes, "or")
    harmless = harmless_bits(block)
    for k, j in np.ndindex(atoms.shape):
        longer = atoms.copy()
        longer[k, j] = 1
        after = naive.errors(X, longer, codes, "or")
        is_candidate = codes[:, k].any() and atoms[k].any() and not atoms[k, j]
        assert harmless[k, j] == (is_candidate and not (after > before).any())
