"""Runs of the paper's methods equal those of the public functions."""

import pytest

import bitatoms as ba
from bitatoms import BitMatrix, datasets, factorize
from bitatoms.reproduce.runs import (
    UPDATES,
    best_round,
    run_learning,
    run_selection,
    starting_atoms,
    stopping_round,
)


@pytest.fixture(scope="module")
def blocks():
    """Blocks of the bundled halftone."""
    return BitMatrix.from_dense(datasets.cut_blocks(datasets.halftone()[:160, :320]))


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("start", ["samples", "bernoulli"])
def test_learning_equals_the_public_function(blocks, update, start):
    atoms = starting_atoms(start, blocks, 9, 0)
    run = run_learning(blocks, atoms, update)
    public = factorize(blocks, 9, search="paper", update=update, init=atoms)
    assert [row[1:-1] for row in run.history] == [row[1:-1] for row in public.history]
    assert sorted(map(bytes, run.atoms.words)) == sorted(map(bytes, public.atoms.words))
    product = run.codes.to_dense() @ run.atoms.to_dense() % 2
    assert (run.errors.to_dense() == blocks.to_dense() ^ product).all()
    assert run.converged


def test_selection_returns_the_best_round_with_patience_and_the_last_without(blocks):
    patient = run_selection(blocks, "mob", 0, patience=10)
    forced = run_selection(blocks, "mob", 0, until=patient.history[-1].atoms + 5)
    assert forced.atoms.n_rows == forced.history[-1].atoms == patient.history[-1].atoms + 5
    shared = forced.history[: len(patient.history)]
    assert [row[:-1] for row in shared] == [row[:-1] for row in patient.history]
    assert patient.atoms.n_rows == stopping_round(forced.history, 10).atoms == best_round(patient.history).atoms
    length = ba.codelength(blocks, patient.atoms, patient.codes)
    assert length.total == best_round(patient.history).bits


def test_selection_starts_from_distinct_samples(blocks):
    rows = set(map(bytes, blocks.words))
    run = run_selection(blocks, "k-prox", 5, until=20)
    assert run.start.n_rows == 16
    assert set(map(bytes, run.start.words)) <= rows
    assert [row.atoms for row in run.history] == [16, 17, 18, 19, 20]
