"""Lifts of atoms and of their features: of the training table by definition, and where there is none."""

from dataclasses import replace

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.bits import BitMatrix
from bitatoms.core.lifts import AtomCounts, lifts_of

pytestmark = pytest.mark.usefixtures("few_trials")


def test_what_chance_does_not_explain_at_all_has_no_lift():
    atoms = BitMatrix.from_dense([[1, 1, 0], [0, 0, 1], [0, 0, 0]])
    counts = AtomCounts(np.array([4, 0, 4]), 8, np.array([0, 4, 8]), 8, np.array([0, 4, 4]))
    expected, whole, members = lifts_of(atoms, np.zeros(3, np.uint8), counts)
    assert expected.tolist() == [0, 4, 8]
    np.testing.assert_array_equal(whole, [np.nan, 1, 1])
    np.testing.assert_array_equal(members, [np.nan, np.nan, 1])


@pytest.mark.parametrize("unknown", [0.0, 0.15])
@pytest.mark.parametrize("flipped", [False, True])
def test_patterns_have_the_lifts_of_the_training_table(unknown, flipped):
    X = ba.datasets.planted(300, 12, 3, algebra="or", code_density=0.3, noise=0.05, random_state=1).X
    cells = np.where(np.random.default_rng(0).random(X.shape) < unknown, np.nan, (X ^ flipped).astype(float))
    model = ba.BinaryDictionaryLearning(algebra="or", random_state=0).fit(cells)
    assert bool(model.bias_.any()) == flipped
    wanted, known = 1 - model.bias_, ~np.isnan(cells)
    for pattern, atom in zip(model.patterns(), model.components_ == 1, strict=True):
        columns = np.flatnonzero(atom)
        shares = [(cells[known[:, i], i] == wanted[i]).mean() for i in columns]
        all_known = known[:, columns].all(axis=1)
        assert pattern.expected == pytest.approx(all_known.sum() * np.prod(shares))
        assert pattern.lift == pytest.approx(pattern.complete / pattern.expected)
        for k, lift in enumerate(pattern.member_lifts):
            others = np.delete(columns, k)
            rest = known[:, columns[k]] & (cells[:, others] == wanted[others]).all(axis=1)
            has = cells[rest, columns[k]] == wanted[columns[k]]
            assert lift == pytest.approx(has.mean() / shares[k])


def test_models_without_the_counts_have_no_lifts(tmp_path):
    X = ba.datasets.planted(100, 10, 2, algebra="or", noise=0.02, random_state=0).X
    model = ba.BinaryDictionaryLearning(algebra="or", random_state=0).fit(X)
    model.save(tmp_path / "model.npz")
    assert ba.load(tmp_path / "model.npz").patterns() == model.patterns()
    learned = model.as_model()
    older = replace(learned, lacking=None).patterns()[0]
    assert (older.lift, older.member_lifts) == (model.patterns()[0].lift, None)
    oldest = replace(learned, complete=None).patterns()[0]
    assert (oldest.expected, oldest.lift, oldest.member_lifts) == (None, None, None)
    stream = ba.BinaryDictionaryLearning(2, algebra="or", random_state=0).partial_fit(X)
    assert stream.patterns()[0].lift is None
