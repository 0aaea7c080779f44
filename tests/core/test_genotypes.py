"""Genotypes of two cells that are predicted together."""

import numpy as np
import pytest

from bitatoms.core.genotypes import (
    concordance,
    dosage_r2,
    dosages,
    genotype_cells,
    genotype_probabilities,
    likely_genotypes,
)

CODINGS = ("carries", "exclusive")


@pytest.mark.parametrize("coding", CODINGS)
def test_known_genotypes_stay(coding):
    genotypes = np.array([[0, 1, 2], [2, 1, 0]], np.int8)
    cells = [cell.astype(float) for cell in genotype_cells(genotypes, coding)]
    np.testing.assert_array_equal(likely_genotypes(*cells, coding), genotypes)
    np.testing.assert_array_equal(dosages(genotype_probabilities(*cells, coding)), genotypes)


@pytest.mark.parametrize("coding", CODINGS)
def test_probabilities_add_up_and_no_genotype_is_impossible(coding):
    first, second = np.random.default_rng(0).random((2, 1000))
    probabilities = genotype_probabilities(first, second, coding)
    np.testing.assert_allclose(probabilities.sum(axis=-1), 1)
    assert (probabilities >= 0).all()
    cells = genotype_cells(likely_genotypes(first, second, coding), coding)
    impossible = cells[1] & ~cells[0] if coding == "carries" else cells[0] & cells[1]
    assert not impossible.any()


@pytest.mark.parametrize("coding", CODINGS)
def test_probabilities_of_possible_genotypes_are_found_from_their_cells(coding):
    expected = np.random.default_rng(0).dirichlet([1, 1, 1], 50)
    carries, two, one = expected[:, 1:].sum(axis=1), expected[:, 2], expected[:, 1]
    cells = (carries, two) if coding == "carries" else (two, one)
    np.testing.assert_allclose(genotype_probabilities(*cells, coding), expected, atol=1e-12)


def test_the_joint_choice_differs_from_that_of_each_cell():
    assert likely_genotypes(0.6, 0.35) == 0  # 0.4, 0.25, 0.35: each cell alone would give one copy


def test_a_known_cell_is_kept_against_the_other():
    assert likely_genotypes(0.2, 1.0) == 2
    assert likely_genotypes(0.0, 0.9) == 0
    assert likely_genotypes(1.0, 0.3) == 1


def test_scores():
    truth = np.array([0, 1, 2, 2])
    assert concordance(truth, [0, 1, 1, 2]) == 0.75
    assert np.isnan(concordance([], []))
    assert dosage_r2(truth, truth / 2) == pytest.approx(1)
    assert dosage_r2(truth, [0.1, 1.2, 1.5, 1.9]) == pytest.approx(np.corrcoef(truth, [0.1, 1.2, 1.5, 1.9])[0, 1] ** 2)
    assert np.isnan(dosage_r2(truth, np.ones(4)))
    assert np.isnan(dosage_r2([], []))
