"""Bits of rows at frozen frequencies, compared with sums over single cells; unknown cells cost nothing."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from bitatoms import BitMatrix, Constraints, factorize
from bitatoms.datasets import planted
from bitatoms.kernels.cpu.cell_costs import Sampling
from bitatoms.model.likelihood import Frequencies
from bitatoms.model.model import Averaging, Model, RowCoder
from bitatoms.parallel import Workers
from support.blocks import bits_of
from support.strategies import SEEDS, factorisations, random_bits

pytestmark = pytest.mark.usefixtures("few_trials")

ALGEBRAS = ("xor", "or")
SINGLE = Workers(1)


@st.composite
def problems(draw, *sizes):
    """Draw rows, atoms and codes, an algebra and a bias."""
    X, atoms, codes = draw(factorisations(*sizes))
    bias = random_bits(draw(SEEDS), 1, X.shape[1], 0.3)[0]
    return X, atoms, codes, draw(st.sampled_from(ALGEBRAS)), bias


SMALL = st.sampled_from((1, 5, 17)), st.sampled_from((1, 8, 65))
LIMITS = st.sampled_from((None, 1, 2))


def coder_of(X, atoms, codes, algebra, bias, max_atoms=None):
    """Return a coder with these atoms and the frequencies of these codes."""
    uses = codes.sum(axis=0).astype(np.int64)
    cells = naive.cell_counts(X, naive.product(codes, atoms, algebra) ^ bias)
    result = factorize(np.zeros((1, X.shape[1]), np.uint8), search="paper", constraints=Constraints(max_components=0))
    model = Model.from_factorization(result, max_atoms_per_sample=max_atoms)
    counted = {"uses": uses, "n_samples": len(X) if len(atoms) else 0}
    model = replace(model, atoms=BitMatrix.from_dense(atoms), bias=bias, algebra=algebra, coder="greedy", **counted)
    return RowCoder(model, Frequencies(cells, np.array([len(X) - uses, uses])))


@settings(max_examples=40)
@given(problems(), st.sampled_from((0, 1)))
def test_row_bits_are_sums_over_cells_and_atoms_by_frequencies_of_packed_rows(problem, left_out):
    X, atoms, codes, algebra, bias = problem
    coder, data, packed = coder_of(*problem), bits_of(X), BitMatrix.from_dense(codes)
    counts = coder.frequencies.cells, coder.frequencies.uses
    predicted = naive.product(codes, atoms, algebra) ^ bias
    expected = [naive.row_bits(*row, *counts, left_out) for row in zip(X, predicted, codes, strict=True)]
    bits = coder.row_bits(data, packed, SINGLE, left_out)
    np.testing.assert_allclose(bits, expected, atol=1e-6 * (X.shape[1] + len(atoms)))
    counted = coder.refitted(data, packed).frequencies
    np.testing.assert_array_equal(counted.cells, counts[0])
    np.testing.assert_array_equal(counted.uses, counts[1])


@given(problems(*SMALL), LIMITS)
def test_codes_are_shortened_as_by_the_oracle(problem, max_atoms):
    X, atoms, _, algebra, bias = problem
    coder, data = coder_of(*problem, max_atoms), bits_of(X)
    described = coder.describe(data, Workers(2, 64))
    start = coder.model.code(data, SINGLE).codes().to_dense()
    counts = coder.frequencies.cells, coder.frequencies.uses
    expected = [
        naive.shorten_code(x, atoms, code, algebra, bias, *counts, max_atoms) for x, code in zip(X, start, strict=True)
    ]
    predicted = naive.product(np.array(expected, np.uint8), atoms, algebra) ^ bias
    bits = [naive.row_bits(*row, *counts) for row in zip(X, predicted, expected, strict=True)]
    np.testing.assert_allclose(described.bits, bits, atol=1e-3)
    np.testing.assert_allclose(coder.row_bits(data, described.codes, SINGLE), described.bits)


@pytest.fixture(scope="module", params=ALGEBRAS)
def learned(request):
    """Return a model, the rows it was learned from, and its codes."""
    X = planted(300, 70, 5, algebra=request.param, noise=0.05, random_state=0).X
    result = factorize(X, algebra=request.param, random_state=0)
    return Model.from_factorization(result), X, result


def test_frequencies_of_a_result_are_those_of_its_rows(learned):
    model, X, result = learned
    frequencies = Frequencies.of_result(model)
    expected = naive.cell_counts(X, result.reconstruct().to_dense())
    np.testing.assert_array_equal(frequencies.cells, expected)
    np.testing.assert_array_equal(frequencies.uses[1], result.codes.column_weights())
    np.testing.assert_array_equal(frequencies.uses.sum(axis=0), len(X))


def test_results_without_counts_of_ones_have_one_frequency_of_errors_per_column(learned):
    model, X, _ = learned
    frequencies = Frequencies.of_result(replace(model, ones=None, missed=None))
    probabilities = frequencies.probabilities_of_ones()
    np.testing.assert_allclose(probabilities[0], (model.wrong + 0.5) / (len(X) + 1))
    np.testing.assert_allclose(probabilities[0], 1 - probabilities[1])


@settings(max_examples=30)
@given(problems(*SMALL, st.integers(0, 4)), LIMITS)
def test_cell_probabilities_are_means_over_all_codes(problem, max_atoms):
    X, atoms, _, algebra, bias = problem
    coder = coder_of(*problem, max_atoms)
    counts = coder.frequencies.cells, coder.frequencies.uses
    expected = [naive.cell_probabilities(x, atoms, algebra, bias, *counts, max_atoms) for x in X]
    np.testing.assert_allclose(coder.cell_probabilities(bits_of(X), SINGLE), expected, atol=1e-5)


@pytest.fixture(scope="module", params=ALGEBRAS)
def incomplete(request):
    """Return a model of a table with unknown cells, and the table."""
    X = planted(300, 70, 5, algebra=request.param, noise=0.05, random_state=0).X.astype(float)
    X[np.random.default_rng(0).random(X.shape) < 0.7] = np.nan
    result = factorize(X, algebra=request.param, random_state=0)
    return Model.from_factorization(result), BitMatrix.from_any(X, missing="unknown")


@pytest.mark.parametrize("max_atoms", [None, 1])
def test_sampled_codes_have_the_probabilities_of_all_codes(incomplete, max_atoms):
    model, data = replace(incomplete[0], max_atoms_per_sample=max_atoms), incomplete[1][:40]
    exact = RowCoder(model, Frequencies.of_result(model))
    sampled = replace(exact, averaging=Averaging(most_atoms=0, sampling=Sampling(skipped=10, kept=3000)))
    expected = exact.cell_probabilities(data, SINGLE)
    assert ((expected > 0.2) & (expected < 0.8)).sum() > 50  # some codes are ambiguous
    np.testing.assert_allclose(sampled.cell_probabilities(data, SINGLE), expected, atol=0.06)


def test_sampled_codes_depend_on_the_cells_of_a_row_only():
    """As recorded: samples of four sweeps; the last two rows are equal."""
    atoms, codes, bias = random_bits(0, 4, 6, 0.5), random_bits(1, 30, 4, 0.4), np.zeros(6, np.uint8)
    X = naive.product(codes, atoms, "or") ^ random_bits(2, 30, 6, 0.2)
    X[:3, :4] = 2
    coder = coder_of(X, atoms, codes, "or", bias)
    sampled = replace(coder, averaging=Averaging(most_atoms=0, sampling=Sampling(skipped=1, kept=4)))
    first, other = [0.4917, 0.75, 0.5514, 0.7955, 0.1774, 0.2619], [0.4917, 0.75, 0.6882, 0.7955, 0.1774, 0.5628]
    np.testing.assert_allclose(sampled.cell_probabilities(bits_of(X[:3]), SINGLE), [first, other, other], atol=1e-4)


def test_codes_are_sampled_if_there_are_more_atoms_than_the_limit(incomplete):
    model, data = incomplete[0], incomplete[1][:80]
    n = model.atoms.n_rows
    coders = [RowCoder(model, Frequencies.of_result(model), Averaging(most)) for most in (10, n, n - 1)]
    expected, at_limit, sampled = (coder.cell_probabilities(data, SINGLE) for coder in coders)
    np.testing.assert_array_equal(at_limit, expected)
    assert not np.array_equal(sampled, expected)


@pytest.mark.parametrize("most_atoms", [0, 10])
def test_cell_probabilities_do_not_depend_on_other_rows_chunks_and_threads(incomplete, most_atoms):
    model, data = incomplete
    coder = RowCoder(model, Frequencies.of_result(model), Averaging(most_atoms))
    expected = coder.cell_probabilities(data, SINGLE)
    np.testing.assert_array_equal(coder.cell_probabilities(data, Workers(3, chunk_rows=64)), expected)
    np.testing.assert_array_equal(coder.cell_probabilities(data[100:101], SINGLE), expected[100:101])
