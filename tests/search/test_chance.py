"""Sparse tables without structure have no atoms, however many ones some of their rows have."""

from dataclasses import replace

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.core.margins import Margins
from bitatoms.core.objective import Objective
from bitatoms.search.moves.drop import are_by_chance
from support.blocks import block_of
from support.plans import use_windows
from support.results import assert_matches_oracle, every_algebra
from support.strategies import heterogeneous_rows

pytestmark = pytest.mark.usefixtures("few_trials")


@pytest.fixture(scope="module")
def table():
    return heterogeneous_rows(1, 400, 100)


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
    use_windows(monkeypatch, min_features=100, max_sparse_share=0.05)
    X, asked = table.copy(), []
    X[:7, [81, 90]] = 1

    def explain(self, columns, cells, either_way, is_copy):
        asked.append((self.class_of[columns].tolist(), (cells.row_weights() == 2).sum(), either_way, is_copy))
        return explained

    monkeypatch.setattr(Margins, "explain", explain)
    result = ba.factorize(X, algebra="or", random_state=0)
    own = Margins.from_weights(X.sum(axis=1), X.sum(axis=0)).class_of[[81, 90]].tolist()
    expected = (own, (X[:, 81] & X[:, 90]).sum(), False, False)
    assert asked == [expected] * (1 if explained else 2)  # for the summary, too
    assert "window" in {row.move for row in result.history}
    assert (result.atoms.n_rows == 0) == (result.codelength.total == result.bits_without) == explained
    assert_matches_oracle(result, X)


def test_atoms_that_are_not_by_chance_are_kept(table):
    X = table.copy()
    X[:15, [70, 80, 90]] = 1
    result = ba.factorize(X, algebra="or", random_state=0)
    assert [70, 80, 90] in [np.flatnonzero(atom).tolist() for atom in result.atoms.to_dense()]
    assert result.codelength.total == min(row.bits for row in result.history)
    assert_matches_oracle(result, X)


@every_algebra
def test_all_atoms_must_be_explained_and_save_little(table, algebra):
    X = table.copy()
    X[:15, [70, 80, 90]] = 1
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
    X, n_atoms = table, "mdl"
    if changed == "dense":
        X = table[:, table.sum(axis=0) > 12]
    elif changed == "unknown cells":
        X = np.ma.masked_array(table, np.zeros(table.shape, bool))
        X[0, 99] = np.ma.masked
    else:
        n_atoms = 3
    result = ba.factorize(X, n_atoms, algebra="or", objective="codelength", random_state=0)
    assert result.atoms.n_rows > 0
    assert result.codelength.total == min(row.bits for row in result.history if n_atoms == "mdl" or row.atoms == 3)
