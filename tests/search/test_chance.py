"""Sparse tables without structure have no atoms; whether what a search found, or did not find, is more than chance."""

from dataclasses import replace

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.bits import BitMatrix
from bitatoms.engine.objective import Objective
from bitatoms.search.finish import beyond_chance
from bitatoms.search.margins import Margins
from bitatoms.search.moves.drop import are_by_chance
from bitatoms.sparse_bits import SparseBits
from support.blocks import block_of
from support.plans import use_windows
from support.results import assert_matches_oracle, every_algebra
from support.strategies import heterogeneous_rows, random_bits

pytestmark = pytest.mark.usefixtures("few_trials")


@pytest.fixture(scope="module")
def table():
    return heterogeneous_rows(1, 400, 100)


@pytest.fixture(scope="module")
def bundle(table):
    """The same table with three columns that are together in a few rows."""
    X = table.copy()
    X[:15, [70, 80, 90]] = 1
    return X


@every_algebra
def test_chance_atoms_are_dropped(table, algebra):
    result = ba.factorize(table, algebra=algebra, random_state=0)
    assert result.history[-1].move == "drop"
    assert min(row.bits for row in result.history) < result.bits_without  # some make the description shorter
    assert (result.atoms.n_rows, result.codelength.total) == (0, result.bits_without)
    assert_matches_oracle(result, table)


@pytest.mark.parametrize("explained", [True, False])
def test_windows_ask_by_the_columns_of_the_table(table, explained, monkeypatch):
    """The bundle is real, but saves fewer bits than its columns take to describe."""
    use_windows(monkeypatch, min_features=100)
    monkeypatch.setattr("bitatoms.sparse_bits._BITS_PER_ONE", 20)
    X, asked = table.copy(), []
    X[:7, [81, 90]] = 1

    def explain(self, columns, cells, either_way):
        asked.append((self.class_of[columns].tolist(), (cells.row_weights() == 2).sum(), either_way))
        return explained

    monkeypatch.setattr(Margins, "explain", explain)
    result = ba.factorize(X, algebra="or", random_state=0)
    own = Margins.from_weights(X.sum(axis=1), X.sum(axis=0)).class_of[[81, 90]].tolist()
    expected = (own, (X[:, 81] & X[:, 90]).sum(), False)
    assert asked == [expected] * (1 if explained else 2)  # for the summary, too
    assert "window" in {row.move for row in result.history}
    assert (result.atoms.n_rows == 0) == (result.codelength.total == result.bits_without) == explained
    assert_matches_oracle(result, X)


def test_atoms_that_are_not_by_chance_are_kept(bundle):
    result = ba.factorize(bundle, algebra="or", random_state=0)
    assert [70, 80, 90] in [np.flatnonzero(atom).tolist() for atom in result.atoms.to_dense()]
    assert result.codelength.total <= min(row.bits for row in result.history if row.move == "drop")
    assert_matches_oracle(result, bundle)


@every_algebra
def test_all_atoms_must_be_explained_and_save_little(bundle, algebra):
    X = bundle
    atoms, codes = np.zeros((3, 100), np.uint8), np.zeros((400, 3), np.uint8)
    atoms[0, [0, 1]] = 1
    codes[:, 0] = X[:, 0] & X[:, 1]
    longest = X.sum(axis=1).argmax()
    atoms[1], codes[longest] = X[longest], [0, 1, 0]
    atoms[2, [70, 80, 90]] = codes[:15, 2] = 1
    margins, objective = Margins.from_weights(X.sum(axis=1), X.sum(axis=0)), Objective(True, algebra)
    blocks = [block_of(X, atoms[:n], codes[:, :n], algebra) for n in (1, 2, 3)]
    assert [are_by_chance(block, objective, margins) for block in blocks] == [True, True, False]
    dear = replace(objective, share=0.01)  # of which all rows together pay 100 times as much
    assert not are_by_chance(blocks[1], dear, margins)


@pytest.mark.parametrize("changed", ["dense", "unknown cells", "a number of atoms"])
def test_other_searches_keep_what_is_shortest(table, changed):
    X, n_atoms = np.ma.masked_array(table, np.zeros(table.shape, bool)), "mdl"
    X[0, 99] = np.ma.masked if changed == "unknown cells" else 0
    if changed == "dense":
        X = X[:, table.sum(axis=0) > 12]
    if changed == "a number of atoms":
        n_atoms = 3
    result = ba.factorize(X, n_atoms, algebra="or", objective="codelength", random_state=0)
    assert result.atoms.n_rows > 0
    compared = [row for row in result.history if (row.move == "drop" if n_atoms == "mdl" else row.atoms == n_atoms)]
    assert result.codelength.total <= min(row.bits for row in compared)


# The count of atoms, or of related columns, beyond chance.


@pytest.fixture(scope="module")
def sparse(bundle):
    """A table with one pattern that saves few bits, and a result that has two atoms for it and one by chance."""
    atoms, codes = np.zeros((3, 100), np.uint8), np.zeros((400, 3), np.uint8)
    atoms[0, [70, 80, 90]] = atoms[1, [70, 80]] = atoms[2, [0, 1]] = 1
    codes[:15, 0] = codes[:10, 1] = 1
    codes[:, 2] = bundle[:, 0] & bundle[:, 1]
    result = ba.factorize(bundle, algebra="or", random_state=0)
    return bundle, replace(result, atoms=BitMatrix.from_dense(atoms), codes=BitMatrix.from_dense(codes))


@every_algebra
def test_noise_has_no_related_columns(algebra):
    result = ba.factorize(random_bits(0, 300, 40, 0.3), algebra=algebra, random_state=0)
    assert (result.atoms.n_rows, result.beyond_chance) == (0, 0)
    assert result.saves_little
    assert "No atom makes the description shorter, and no two features occur together" in result.summary()


def test_related_columns_are_counted_where_there_are_no_atoms():
    X = random_bits(0, 300, 40, 0.3)
    nothing = ba.factorize(X, algebra="xor", random_state=0)
    X[:, 1] = np.where(random_bits(1, 300, 1, 0.9)[:, 0], X[:, 0], X[:, 1])  # alike
    X[:, 3] = np.where(random_bits(2, 300, 1, 0.9)[:, 0], X[:, 2] ^ 1, X[:, 3])  # exclusive
    X[:, 4], X[:, 5] = 1, 1
    assert beyond_chance(nothing, BitMatrix.from_dense(X), 0.05) == 2


def test_what_is_saved_in_sparse_tables_is_more_than_chance(sparse):
    X, _ = sparse
    result = ba.factorize(X, algebra="or", random_state=0)
    small = ba.factorize(np.vstack([X, heterogeneous_rows(2, 3600, 100)]), algebra="or", random_state=0)
    assert not result.saves_little
    assert result.beyond_chance is None
    assert small.saves_little
    assert 1 <= small.beyond_chance <= small.atoms.n_rows
    assert "That is a small saving, but more than chance" in small.summary()


@pytest.mark.parametrize("form", [BitMatrix.from_dense, lambda X: SparseBits.from_bits(BitMatrix.from_dense(X))])
def test_atoms_beyond_chance_are_counted(sparse, form):
    X, result = sparse
    assert beyond_chance(result, form(X), 0.05) == 2


def test_where_nothing_is_known(sparse):
    X, result = sparse
    table, nothing = BitMatrix.from_dense(X), replace(result, atoms=result.atoms[:0], codes=BitMatrix.zeros(400, 0))
    assert beyond_chance(nothing, table, 0.05) > 0
    assert beyond_chance(nothing, SparseBits.from_bits(table), 0.05) is None  # all pairs are too many
    for cut in ("max_time", "max_iter", "callback", "interrupted", "max_memory"):
        assert beyond_chance(replace(result, ended=cut), table, 0.05) is None
    unknown = table.with_unknown(BitMatrix.from_dense(random_bits(0, 400, 100, 0.01)))
    assert beyond_chance(result, unknown, 0.05) is None
    assert beyond_chance(nothing, BitMatrix.from_dense(random_bits(0, 401, 10, 0.5)), 0.05) is None  # too few columns
    assert beyond_chance(nothing, BitMatrix.from_dense(random_bits(0, 400, 10, 0.5)), 0.05) == 0
