"""Message passing: messages equal max-sum, trees are solved exactly, planted factors are recovered."""

from itertools import product as all_choices

import numpy as np
import pytest

import naive
from bitatoms.baselines.message_passing import Beliefs, MessagePassing
from bitatoms.datasets import planted
from bitatoms.kernels.cpu.messages import MessageGraph, MessageScratch, exchange


def graph_of(X, n_atoms, seed, spread=1.0):
    random = np.random.default_rng(seed)
    shape = len(X), n_atoms, X.shape[1]
    return MessageGraph(X, *(spread * random.standard_normal(shape, np.float32) for _ in range(2)))


def best_with(variable, value, score, n_variables):
    """Return the highest score of all assignments with a variable at a value."""
    return max(score(bits) for bits in all_choices((0, 1), repeat=n_variables) if bits[variable] == value)


def log_odds(variable, score, n_variables):
    """Return the message of a factor to a variable: the best score with a one minus that with a zero."""
    return best_with(variable, 1, score, n_variables) - best_with(variable, 0, score, n_variables)


def both(code_says, atom_says, part_says):
    """Return the score of (code, atom, part), where the part of a cell is the AND of code and atom."""

    def score(bits):
        code, atom, part = bits
        return code * code_says + atom * atom_says + part * part_says if part == (code and atom) else -np.inf

    return score


def any_of(said, silent, cell):
    """Return the score of all parts of a cell, whose OR is the cell; one part sends no message."""

    def score(parts):
        return sum(part * said[k] for k, part in enumerate(parts) if k != silent) + (cell if any(parts) else 0.0)

    return score


def updated(X, to_codes, to_atoms, code_prior, atom_prior, step):
    """Return all updated messages, by enumerating the assignments of each factor."""
    (n, m), p = X.shape, to_codes.shape[1]
    code_says, atom_says, part_says = (np.zeros((n, p, m)) for _ in range(3))
    for i, k, j in np.ndindex(n, p, m):
        code_says[i, k, j] = code_prior + sum(to_codes[i, k, other] for other in range(m) if other != j)
        atom_says[i, k, j] = atom_prior + sum(to_atoms[other, k, j] for other in range(n) if other != i)

    for i, k, j in np.ndindex(n, p, m):
        part_says[i, k, j] = log_odds(2, both(code_says[i, k, j], atom_says[i, k, j], 0.0), 3)
    new_codes, new_atoms = to_codes.astype(float), to_atoms.astype(float)
    for i, k, j in np.ndindex(n, p, m):
        left = log_odds(k, any_of(part_says[i, :, j], k, 1.0 if X[i, j] else -1.0), p)
        to_code = log_odds(0, both(0.0, atom_says[i, k, j], left), 3)
        to_atom = log_odds(1, both(code_says[i, k, j], 0.0, left), 3)
        new_codes[i, k, j] += step * (to_code - new_codes[i, k, j])
        new_atoms[i, k, j] += step * (to_atom - new_atoms[i, k, j])
    return new_codes, new_atoms


@pytest.mark.parametrize(
    ("shape", "n_atoms"), [((3, 5), 3), ((1, 7), 2), ((6, 1), 2), ((4, 9), 1), ((1, 1), 4), ((2, 18), 2)]
)
def test_messages_equal_max_sum(shape, n_atoms):
    priors = (-0.7, 0.3) if n_atoms > 1 else (0.0, 0.0)
    X = np.random.default_rng(sum(shape)).integers(0, 2, shape, np.uint8)
    graph = graph_of(X, n_atoms, seed=1)
    beliefs = Beliefs(graph, *priors)
    expected = graph.to_codes.copy(), graph.to_atoms.copy()
    for _ in range(3):
        expected = updated(X, *expected, *priors, step=0.6)
        beliefs.update(0.6)
        np.testing.assert_allclose(graph.to_codes, expected[0], atol=1e-4)
        np.testing.assert_allclose(graph.to_atoms, expected[1], atol=1e-4)
    np.testing.assert_allclose(beliefs.codes, priors[0] + expected[0].sum(axis=2), atol=1e-4)
    np.testing.assert_allclose(beliefs.atoms, priors[1] + expected[1].sum(axis=0), atol=1e-4)


def test_chunks_of_rows_give_the_same_messages():
    X = np.random.default_rng(0).integers(0, 2, (9, 13), np.uint8)
    together, chunked = (graph_of(X, 3, seed=2) for _ in range(2))
    beliefs = Beliefs(together, 0.0, 0.0)
    codes, atoms, sums = beliefs.codes.copy(), beliefs.atoms, np.zeros((3, 13), np.float32)
    beliefs.update(0.5)
    scratch = MessageScratch(np.empty((3, 13), np.float32), *np.empty((3, 13), np.float32))
    for start, stop in ((0, 4), (4, 5), (5, 5), (5, 9)):
        exchange(chunked, start, stop, codes, atoms, np.float32(0.5), sums, scratch)
    assert (chunked.to_codes == together.to_codes).all()
    assert (sums == beliefs.atoms).all()


def wrong_share(model, X):
    return np.mean(naive.product(model.codes_, model.components_, "or") != X)


def test_planted_factors_are_recovered():
    data = planted(300, 120, 6, algebra="or", noise=0.05, random_state=1)
    model = MessagePassing(6, random_state=1).fit(data.X)
    assert np.mean(model.inverse_transform(model.codes_) != data.clean) < 0.002
    assert wrong_share(model, data.X) <= np.mean(data.clean != data.X) + 0.001


def test_more_starts_are_no_worse():
    data = planted(80, 40, 4, algebra="xor", noise=0.1, random_state=3)
    once, best = (MessagePassing(4, n_init=n_init, random_state=7).fit(data.X) for n_init in (1, 4))
    assert wrong_share(best, data.X) <= wrong_share(once, data.X)


def test_priors_and_the_noise():
    data = planted(60, 30, 3, algebra="or", random_state=1)
    few, many = (MessagePassing(3, flip=flip, n_init=2, random_state=0).fit(data.X) for flip in (0.01, 0.3))
    assert (few.components_ == many.components_).all()  # the noise has no effect with even priors
    even, against = (MessagePassing(3, atom_prior=prior, random_state=0).fit(data.X) for prior in (0.5, 1e-9))
    assert against.components_.sum() < even.components_.sum()
