"""Coding: sums of many bits, atoms listed by column, examples by hand, remembered codes, and information sets."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from bitatoms import BitMatrix, factorize
from bitatoms.engine import coding, host_rows
from bitatoms.engine.block import Block, Change
from bitatoms.engine.coding import CODERS, code, coding_rule, frequent_codes, hard_codes, max_remembered, pursue
from bitatoms.engine.information_sets import code_from_information_sets, supports
from bitatoms.engine.passes import PassSpec, coded_block
from bitatoms.engine.prices import codelength_prices, unit_prices
from bitatoms.engine.update import update_exactly
from bitatoms.kernels.structs import coding_scratch
from bitatoms.model.model import Model
from bitatoms.parallel import Workers
from support.blocks import (
    ALGEBRAS,
    LIMITS,
    WORKERS,
    bits_of,
    block_of,
    factors,
    packed,
    priced_rule,
    within,
)
from support.strategies import SEEDS, planted, priced_factorisations, random_bits, random_prices


@pytest.mark.parametrize("algebra", ["xor", "or"])
def test_prices_of_many_bits_add_up_past_16_bits(algebra):
    """300 wrong bits at the highest price, and more."""
    for n_features in (257, 258, 300, 1000):
        X, atoms = random_bits(0, 6, n_features, 0.9), random_bits(1, 20, n_features, 0.95)
        X[0], atoms[0] = 1, 1
        prices = np.full(n_features, 255), np.full(20, 70000)
        none = np.zeros((6, 20), np.uint8)
        block = block_of(X, atoms, none, algebra)
        code(block, priced_rule(algebra, prices))
        np.testing.assert_array_equal(factors(block)[1], naive.priced_code(X, atoms, none, algebra, prices))


@pytest.mark.parametrize("n_atoms", [5, 17])
@pytest.mark.parametrize("algebra", ["xor", "or"])
def test_after_one_atom_changed_the_rows_that_could_use_it_are_coded_again(algebra, n_atoms):
    X, atoms = random_bits(0, 70, 40, 0.5), random_bits(1, n_atoms, 40, 0.3)
    block, rule = block_of(X, atoms, np.zeros((70, n_atoms), np.uint8), algebra), coding_rule("greedy", algebra)
    code(block, rule)
    flips = np.zeros_like(atoms)
    flips[3] = atoms[3] ^ X[0]
    block.flip(packed(flips))
    before = factors(block)[1]
    assert block.rows.tables(block._atoms).weights[:n_atoms].tolist() == (atoms ^ flips).sum(axis=1).tolist()
    code(block, rule)
    expected = naive.code(X, atoms ^ flips, before, "greedy", algebra)
    np.testing.assert_array_equal(factors(block)[1], expected)
    assert (expected != before).any()


@pytest.mark.parametrize("n_atoms", [9, 20, 40, 130])
def test_nothing_is_written_past_the_gains_of_the_atoms(n_atoms, monkeypatch):
    guarded = []

    def with_guards(*given):
        scratch = coding_scratch(*given)
        longer = [np.full(len(array) + 200, 77, array.dtype) for array in (scratch.gains, scratch.trial)]
        guarded.extend(array[-200:] for array in longer)
        return scratch._replace(gains=longer[0][:-200], trial=longer[1][:-200])

    monkeypatch.setattr("bitatoms.engine.host_rows.coding_scratch", with_guards)
    X, atoms = random_bits(0, 5, 70, 0.5), random_bits(1, n_atoms, 70, 0.5)
    for rule in (coding_rule("greedy", "xor"), priced_rule("xor", (np.full(70, 3), np.zeros(n_atoms, int)))):
        code(block_of(X, atoms, np.zeros((5, n_atoms), np.uint8), "xor"), rule)
    assert len(guarded) >= 4
    assert all((guard == 77).all() for guard in guarded)


@pytest.mark.parametrize("algebra", ["xor", "or"])
@pytest.mark.parametrize("n_others", [0, 10])
@pytest.mark.parametrize("n_unknown", [0, 1])
def test_a_swap_by_hand(n_unknown, n_others, algebra):
    """Three bits are wrong with the first atom, two with the second; no single toggle reduces the cost."""
    x = np.array([[1, 1, 1, 1, 0, 0, 2 * n_unknown]], np.uint8)
    atoms = np.array([[1, 1, 0, 0, 1, 0, 0], [1, 1, 1, 1, 1, 1, 0]] + [[0] * 7] * n_others, np.uint8)
    block = block_of(x, atoms, np.eye(1, 2 + n_others, dtype=np.uint8), algebra)
    code(block, priced_rule(algebra, (np.ones(7, int), np.ones(2 + n_others, int))))
    assert np.flatnonzero(factors(block)[1]).tolist() == [1]


def test_pursuit_goes_by_the_gains_at_the_beginning():
    """After the first atom, the third would fix two errors; but the second was ahead of it, and no longer gains."""
    x = np.array([[1, 1, 1, 1, 1, 0, 0, 1, 1]], np.uint8)
    atoms = np.array([[1, 1, 1, 1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0, 1, 1, 1]], np.uint8)
    block = block_of(x, atoms, np.zeros((1, 3), np.uint8), "xor")
    pursue(block, coding_rule("bmp", "xor"))
    assert factors(block)[1].tolist() == [[1, 0, 0]]
    code(block, coding_rule("bmp", "xor"))
    assert factors(block)[1].tolist() == [[1, 0, 1]]


@pytest.mark.parametrize("seed", range(2))
def test_under_or_subsets_find_codes_that_greedy_coding_misses(seed):
    """A row is the union of three atoms; greedy coding first takes and keeps a fourth, which shares more with it."""
    random = np.random.default_rng(seed)
    parts = np.zeros((3, 65), np.uint8)
    for part, bits in zip(parts, np.split(random.permutation(65)[:36], 3), strict=True):
        part[bits] = 1
    row = parts.any(axis=0)
    decoy = np.zeros(65, np.uint8)
    decoy[np.concatenate([np.flatnonzero(row)[:24], np.flatnonzero(~row)[:6]])] = 1
    atoms, data = np.vstack([decoy, parts]), np.vstack([row, np.zeros((2, 65), bool)]).astype(np.uint8)
    block = Block(BitMatrix.from_dense(data), BitMatrix.from_dense(atoms), None, True, Workers())
    CODERS["beam"](block, coding_rule("beam", "or", prices=unit_prices(65, 4)))
    codes = block.codes().to_dense()
    assert codes.tolist() == [[0, 1, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert (naive.product(codes, atoms, "or") == data).all()
    assert not block.wrong().any()


def test_overlaps_of_heavy_atoms_exceed_a_byte():
    """Atoms and rows that share more than 255 ones, and rows too wide for 16-bit gains."""
    for n_features in (600, 40000):
        X = np.ones((3, n_features), np.uint8)
        X[1, ::7] = 0
        atoms = np.ones((2, n_features), np.uint8)
        atoms[1, ::7] = 0
        block = block_of(X, atoms, np.zeros((3, 2), np.uint8), "xor")
        code(block, coding_rule("greedy", "xor"))
        np.testing.assert_array_equal(factors(block)[1], [[1, 0], [0, 1], [1, 0]])


def test_greedy_coding_after_an_exact_update_codes_the_rows_that_changed():
    X, atoms, codes = (np.array(table, np.uint8) for table in ([[1], [0], [1]], [[0], [0]], [[1, 1], [1, 0], [1, 0]]))
    block = block_of(X, atoms, codes, "or")
    code(block, coding_rule("greedy", "or"))
    update_exactly(block)
    assert factors(block)[0].tolist() == [[1], [0]]
    code(block, coding_rule("greedy", "or"))
    assert factors(block)[1].tolist() == [[1, 1], [0, 0], [1, 0]]


def test_changes_add_up():
    assert Change(1, 2, 3) + Change(10, 20, 30) == Change(11, 22, 33)
    assert Change(codes=1)
    assert not Change()


# --- atoms listed by column


def prepared(data, atoms, algebra):
    """Return a block without codes, the rule of coding at its prices, and the tables for it."""
    prices = codelength_prices(len(data), data.n_known, np.arange(data.n_cols) % 9, np.arange(len(atoms)) % 7)
    block = Block(data, BitMatrix.from_dense(atoms), None, algebra == "or", Workers())
    tables = block.rows.priced(block.atoms().words, prices)
    return block, coding.coding_rule("mdl", algebra, None, 0, prices), tables


@given(
    st.sampled_from(("xor", "or")), st.sampled_from(("mdl", "beam")), st.sampled_from((1, 17, 70)),
    st.sampled_from((1, 65, 200)), st.sampled_from((0.0, 0.1)), SEEDS,
)  # fmt: skip
def test_same_codes(algebra, coder, n_atoms, n_cols, unknown, seed):
    X = random_bits(seed, 66, n_cols, 0.3)
    data = BitMatrix.from_dense(X).with_unknown(BitMatrix.from_dense(random_bits(seed + 1, 66, n_cols, unknown)))
    atoms = random_bits(seed + 2, n_atoms, n_cols, 0.1)
    found = {}
    for lanes in (0, 1 << 40):  # always listed, never listed
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(host_rows, "_LANES_PER_LISTED", lanes)
            block, rule, tables = prepared(data, atoms, algebra)
            assert len(tables.column_starts) == (0 if lanes and atoms.any() else n_cols + 1)
            assert len(tables.slices) == (n_cols if lanes and atoms.any() else 0)
            coding.CODERS[coder](block, rule)
            found[lanes] = block.codes()
        if not lanes:
            entries = tables.column_starts, tables.column_atoms
            for column in range(n_cols):
                listed = entries[1][entries[0][column] : entries[0][column + 1]]
                assert listed.tolist() == np.flatnonzero(atoms[:, column]).tolist()
    assert found[0] == found[1 << 40]


def test_atoms_with_few_of_the_columns_are_listed():
    narrow, wide = random_bits(0, 64, 200, 0.3), random_bits(0, 640, 2000, 0.002)
    for atoms, is_listed in ((narrow, False), (wide, True)):
        tables = prepared(BitMatrix.from_dense(atoms), atoms, "or")[2]
        assert (len(tables.column_starts) > 0) == is_listed


def test_gains_of_a_beam_add_up_past_32_bits():
    """A row uses those of 13 atoms, without common columns, of which it has most columns."""
    atoms = np.pad(np.kron(np.eye(13, dtype=np.uint8), np.ones((1, 10), np.uint8)), ((0, 0), (0, 1170)))
    X = np.pad(random_bits(0, 5, 130, 0.9), ((0, 0), (0, 1170)))
    block = block_of(X, atoms, np.zeros((5, 13), np.uint8), "xor")
    rule = priced_rule("xor", (np.full(1300, 1 << 26), np.zeros(13, int)))
    block.rows.code_by_beam(block.rows.priced(block.atoms().words, rule.prices), rule, 2, 3)
    np.testing.assert_array_equal(factors(block)[1], X[:, :130].reshape(5, 13, 10).sum(axis=2) > 5)


# --- codes from information sets, and what they are for


@pytest.mark.parametrize(("more_errors", "is_taken"), [(1, True), (2, True), (3, False)])
def test_a_cheaper_code_may_have_two_more_errors(more_errors, is_taken):
    """Without the atom one expensive bit is wrong, with it several cheap ones."""
    x, atoms = np.eye(1, 6, dtype=np.uint8), np.zeros((1, 6), np.uint8)
    atoms[0, : 2 + more_errors] = 1
    block = block_of(x, atoms, np.zeros((1, 1), np.uint8), "xor")
    rule = priced_rule("xor", (np.array([99, 1, 1, 1, 1, 1]), np.array([0])))
    code_from_information_sets(block, rule, np.random.default_rng(0), 5)
    assert factors(block)[1].tolist() == [[int(is_taken)]]


def test_cases_that_are_not_supported_change_nothing():
    X, atoms, codes = planted(0, 9, 200, 129, "xor")
    prices = random_prices(0, 200, 129)
    many = block_of(X, atoms, codes, "xor"), priced_rule("xor", prices)
    unpriced = block_of(X, atoms[:5], codes[:, :5], "xor"), coding_rule("greedy", "xor")
    limited = unpriced[0], priced_rule("xor", (prices[0], prices[1][:5]), residual_limit=3)
    union = block_of(X, atoms[:5], codes[:, :5], "or"), priced_rule("or", (prices[0], prices[1][:5]))
    none = block_of(X, atoms[:0], codes[:, :0], "xor"), priced_rule("xor", (prices[0], prices[1][:0]))
    for block, rule in (many, unpriced, limited, union, none):
        before = block.codes()
        assert not supports(block, rule)
        assert not code_from_information_sets(block, rule, np.random.default_rng(0))
        assert block.codes() == before
    most = block_of(X, atoms[:128], codes[:, :128], "xor"), priced_rule("xor", (prices[0], prices[1][:128]))
    assert supports(*most)


# --- remembered codes: which ones, the nearest one of a row, and what they are for


@given(priced_factorisations(n_rows=st.sampled_from((1, 17, 65))), ALGEBRAS, st.sampled_from((1, 7, 64)))
def test_a_pass_from_remembered_codes_is_that_of_the_oracle(problem, algebra, chunk_rows):
    """For any chunks."""
    X, atoms, codes, prices = problem
    remembered, bias = codes[::3], BitMatrix.zeros(1, X.shape[1])
    data, rule = bits_of(X), priced_rule(algebra, prices)
    spec = PassSpec(BitMatrix.from_dense(atoms), bias, "mdl", rule, remembered=BitMatrix.from_dense(remembered))
    expected = naive.code_from_remembered(X, atoms, remembered, algebra, prices)
    for start in range(0, len(X), chunk_rows):
        chunk = slice(start, start + chunk_rows)
        block = coded_block(data[chunk], None, spec, Workers())
        np.testing.assert_array_equal(block.codes().to_dense(), expected[chunk])


@given(priced_factorisations(n_cols=st.sampled_from((9, 65))), ALGEBRAS, WORKERS, LIMITS)
def test_codes_that_are_not_found_from_scratch_are_hard(problem, algebra, workers, max_atoms):
    X, atoms, codes, prices = problem
    codes = within(codes, max_atoms)
    block = block_of(X, atoms, codes, algebra, workers)
    found = hard_codes(block, priced_rule(algebra, prices, max_atoms))
    fresh = naive.priced_code(X, atoms, np.zeros_like(codes), algebra, prices, max_atoms)
    hard = naive.cheaper(X, atoms, fresh, codes, algebra, prices)
    hard = codes[(hard != fresh).any(axis=1)]
    expected = frequent_codes(BitMatrix.from_dense(hard), X.shape[1])
    assert (BitMatrix.zeros(0, len(atoms)) if found is None else found) == expected
    assert found is None or len(found)


def test_the_most_frequent_codes_are_remembered():
    codes = np.repeat([[1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 0, 0]], [1, 3, 1, 9, 9], axis=0)
    found = frequent_codes(BitMatrix.from_dense(codes), 100).to_dense()
    np.testing.assert_array_equal(found, [[0, 1, 1, 0], [1, 1, 0, 0], [1, 0, 0, 1]])


def test_of_codes_as_frequent_some_are_remembered_whatever_the_order_of_the_rows():
    n_features = 10**6  # of very wide tables, few codes are remembered
    often, seldom = random_bits(0, 5, 70, 0.5), random_bits(1, 300, 70, 0.5)
    codes = np.vstack([often, seldom, often])
    found = frequent_codes(BitMatrix.from_dense(codes), n_features)
    assert len(found) == max_remembered(n_features) == 16
    assert {row.tobytes() for row in found.to_dense()[:5]} == {row.tobytes() for row in often}
    assert found == frequent_codes(BitMatrix.from_dense(np.random.default_rng(0).permutation(codes)), n_features)
    ordered = frequent_codes(BitMatrix.from_dense(seldom), 100).to_dense().tolist()  # all of them
    assert np.ptp(np.diff([ordered.index(row) for row in found.to_dense()[5:].tolist()])) <= 1


def test_rows_find_the_codes_of_the_fit_again():
    """Rows that use many atoms, which are not found from scratch; every row is new, with noise of its own."""
    atoms, codes = random_bits(0, 40, 100, 0.3), random_bits(1, 100, 40, 0.2)[np.arange(600) % 100]
    X = naive.product(codes, atoms, "xor") ^ random_bits(2, 600, 100, 0.03)
    how = {"objective": "codelength", "init": (atoms, codes[:300]), "random_state": 0, "max_iter": 1, "coder": "mdl"}
    model = Model.from_factorization(factorize(X[:300], 40, algebra="xor", **how))
    forgetful = replace(model, remembered=None)
    new = BitMatrix.from_dense(X[300:])
    wrong, wrong_from_scratch = (each.code(new, Workers()).wrong().sum() for each in (model, forgetful))
    assert wrong / X[300:].size < 0.035
    assert wrong_from_scratch > 2 * wrong
