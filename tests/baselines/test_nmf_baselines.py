"""NMF baselines: thresholds are optimal, updates lower the penalty, planted factors are recovered."""

import numpy as np
import pytest

import naive
from bitatoms.baselines.nmf import (
    PenalizedNMF,
    RealFactors,
    ThresholdedNMF,
    best_rounded,
    best_thresholds,
    nmf_factors,
    penalized,
)
from bitatoms.datasets import planted


def wrong_cells(X, real, at_codes, at_atoms):
    """Return the number of wrong cells of the factors binarized by two thresholds."""
    codes, atoms = (real.codes > at_codes).astype(np.uint8), (real.atoms > at_atoms).astype(np.uint8)
    return int(naive.errors(X, atoms, codes, "or").sum())


def thresholds(factor):
    """Return all thresholds that give different factors."""
    return sorted({0.0, *factor.ravel().tolist()})


def random_case(seed, n, m, k):
    """Return a table and real factors with few (odd seeds) or many different values."""
    random = np.random.default_rng(seed)
    codes, atoms = random.random((n, k)), random.random((k, m))
    if seed % 2:
        codes, atoms = np.round(codes, 1), np.round(atoms, 1)
    return random.integers(0, 2, (n, m), np.uint8), RealFactors(codes, atoms, 1)


def share_wrong(model, X):
    return np.mean(model.inverse_transform(model.codes_) != X)


@pytest.mark.parametrize(("n", "m", "k"), [(5, 3, 2), (1, 9, 2), (7, 1, 1), (1, 1, 3), (6, 5, 3), (8, 9, 3)])
@pytest.mark.parametrize("seed", range(4))
def test_neither_threshold_can_be_improved_alone(n, m, k, seed):
    X, real = random_case(seed, n, m, k)
    best = best_thresholds(X, real)
    assert best.wrong == wrong_cells(X, real, best.codes, best.atoms)
    assert best.wrong <= min(wrong_cells(X, real, other, best.atoms) for other in thresholds(real.codes))
    assert best.wrong <= min(wrong_cells(X, real, best.codes, other) for other in thresholds(real.atoms))
    if len(thresholds(real.atoms)) <= 16:  # then all pairs are tried
        pairs = [(one, other) for one in thresholds(real.codes) for other in thresholds(real.atoms)]
        assert best.wrong == min(wrong_cells(X, real, *pair) for pair in pairs)


def test_many_thresholds_and_rows_are_counted_exactly():
    X, real = random_case(0, 70_000, 5, 2)  # more values than uint16 ranks, and more than one chunk of rows
    best = best_thresholds(X, real)
    product = (real.codes > best.codes).astype(int) @ (real.atoms > best.atoms).astype(int) > 0
    assert best.wrong == int((product != X).sum())


def test_best_candidate_is_rounded():
    X, good = planted_case(0)
    bad = RealFactors(np.ones_like(good.codes), np.ones_like(good.atoms), 3)
    found, n_iter = best_rounded(X, [bad, good, bad])
    assert n_iter == 7
    assert (naive.product(found.codes.astype(np.uint8), found.atoms.astype(np.uint8), "or") == X).all()


def planted_case(seed):
    """Return a table without noise and its factors with noise."""
    random = np.random.default_rng(seed)
    data = planted(30, 20, 3, algebra="or", noise=0.0, random_state=seed)
    blurred = [np.abs(factor - random.uniform(0, 0.3, factor.shape)) for factor in (data.codes, data.atoms)]
    return data.X, RealFactors(*blurred, 7)


def test_starts_are_scaled_and_the_first_is_deterministic():
    X = planted(40, 25, 4, algebra="or", random_state=0).X
    first, second = nmf_factors(X, 4, 2, 50, np.random.default_rng(1))
    for real in (first, second):
        np.testing.assert_allclose(real.codes.max(axis=0), 1)
        np.testing.assert_allclose(real.atoms.max(axis=1), 1)
    again = next(nmf_factors(X, 4, 1, 50, np.random.default_rng(2)))  # from the singular vectors
    np.testing.assert_allclose(again.codes, first.codes, atol=1e-6)
    few = [next(nmf_factors(X[:4], 4, 1, 50, np.random.default_rng(seed))) for seed in (1, 2)]  # just enough vectors
    np.testing.assert_allclose(few[0].codes, few[1].codes, atol=1e-6)


def moved(number, up, down, weight):
    """Return the paper's update of one value; a zero stays zero."""
    if number == 0:
        return 0.0
    return number * (up + 3 * weight * number**2) / (down + 2 * weight * number**3 + weight * number)


def updated(X, real, weight):
    """Update all atoms, then all codes, value by value."""
    codes, atoms = real.codes.copy(), real.atoms.copy()
    product = codes @ atoms
    for k, j in np.ndindex(*atoms.shape):
        atoms[k, j] = moved(atoms[k, j], codes[:, k] @ X[:, j], codes[:, k] @ product[:, j], weight)
    product = codes @ atoms
    for i, k in np.ndindex(*codes.shape):
        codes[i, k] = moved(codes[i, k], X[i] @ atoms[k], product[i] @ atoms[k], weight)
    return RealFactors(codes, atoms, real.n_iter + 1)


@pytest.mark.parametrize("weight", [0.0, 1.0, 100.0])
def test_updates_equal_those_of_the_paper(weight):
    X, real = planted_case(1)
    once = penalized(X.astype(float), real, weight, 2)
    expected = updated(X, updated(X, real, weight), weight)
    np.testing.assert_allclose(once.codes, expected.codes, atol=1e-9)
    np.testing.assert_allclose(once.atoms, expected.atoms, atol=1e-9)
    assert once.n_iter == real.n_iter + 2


@pytest.mark.parametrize("method", [ThresholdedNMF, PenalizedNMF])
def test_planted_factors_come_back_from_noise(method):
    data = planted(300, 120, 6, algebra="or", noise=0.05, random_state=0)
    model = method(6, n_init=1, random_state=0).fit(data.X)
    assert np.mean(model.inverse_transform(model.codes_) != data.clean) < 0.002
    assert share_wrong(model, data.X) <= np.mean(data.clean != data.X) + 0.001
