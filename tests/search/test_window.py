"""Windows of columns: joined and divided, nothing is lost, and costs add up."""

import numpy as np
import pytest

from bitatoms.bits import BitMatrix
from bitatoms.mdl import Codelength, string_bits
from bitatoms.search.monitor import Snapshot
from bitatoms.search.window import Window, divided, joined
from support.strategies import random_bits


def window_of(columns, n_rows, n_atoms, seed, bias=False, known=False):
    """Return a window of which most columns are in no atom, with the codelength that its parts add up to."""
    m, random = len(columns), np.random.default_rng(seed)
    atoms = random_bits(seed, n_atoms, m, 0.2)
    atoms[:, random.permutation(m)[: m // 2]] = 0
    codes, wrong = random_bits(seed + 1, n_rows, n_atoms, 0.4), random.integers(0, n_rows // 2, m)
    signs = random_bits(seed + 2, 1, m, 0.1) * bias
    n_known = random.integers(n_rows // 2, n_rows + 1, m) if known else n_rows
    bits = [string_bits(n_known, wrong), string_bits(n_rows, codes.sum(axis=0)), string_bits(m, atoms.sum(axis=1))]
    length = Codelength(*(int(part.sum()) for part in bits))
    state = Snapshot(*map(BitMatrix.from_dense, (atoms, codes, signs)), length, wrong, n_known)
    return Window(np.asarray(columns), state, length.total, np.random.default_rng(seed), groups=(seed,))


def without_model_of(window):
    """Return a function that makes windows without a model of some columns of this one."""

    def without_model(columns):
        at, best = np.flatnonzero(np.isin(window.columns, columns)), window.best
        n_known = best.n_known[at] if isinstance(best.n_known, np.ndarray) else best.n_known
        bits = int(string_bits(n_known, best.wrong[at]).sum())
        shapes = (0, len(at)), (best.codes.n_rows, 0), (1, len(at))
        state = Snapshot(*(BitMatrix.zeros(*s) for s in shapes), Codelength(bits, 0, 0), best.wrong[at], n_known)
        return Window(columns, state, bits, None)

    return without_model


def columns_of(window):
    """Return what a window says of each of its columns."""
    best = window.best
    product = best.codes.to_dense().astype(int) @ best.atoms.to_dense() + best.bias.to_dense()
    n_known = np.broadcast_to(best.n_known, len(window.columns))
    rows = zip(product.T.tolist(), best.wrong.tolist(), n_known.tolist(), strict=True)
    return dict(zip(window.columns.tolist(), rows, strict=True))


@pytest.mark.parametrize("n_atoms", [0, 1, 5])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_a_divided_window_joined_again_is_the_same(n_atoms, bias, known):
    window = window_of(np.arange(100, 31, -1), 30, n_atoms, 3, bias, known)
    part, rest = divided(window, without_model_of(window))
    assert part.described.all()
    assert not rest.described.any()
    assert (part.cost + rest.cost, part.best.codelength.atoms) == (window.cost, window.best.codelength.atoms)
    again = joined([part, rest])
    assert columns_of(again) == columns_of(window)
    assert (again.best.codelength, again.cost) == (window.best.codelength, window.cost)
    assert (again.groups, again.random) == (window.groups, window.random)


@pytest.mark.parametrize("known", [False, True])
def test_joined_windows_have_the_columns_of_all(known):
    windows = [
        window_of(np.arange(start, start + 13), 70, n_atoms, start, known=known and start == 13)
        for start, n_atoms in ((0, 2), (13, 0), (26, 65))
    ]
    window = joined(windows[::-1])
    assert window.columns.tolist() == [*range(39)]
    assert columns_of(window) == {column: of for each in windows for column, of in columns_of(each).items()}
    assert window.best.atoms.shape == (67, 39)
    assert window.cost == sum(each.cost for each in windows) == window.best.codelength.total
    assert window.groups == (26, 13, 0)
