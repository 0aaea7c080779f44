"""Claims and verdicts, on data with a known answer."""

import numpy as np
import pytest

from bitatoms import BitMatrix, datasets
from bitatoms.reproduce import Claim, Verdict
from bitatoms.reproduce.datasets import PaperDataset, load_halftone
from bitatoms.reproduce.experiment import summarize_verdicts
from bitatoms.reproduce.experiments.initialisation import initialisation
from bitatoms.reproduce.experiments.model_claims import model_claims
from bitatoms.reproduce.experiments.models import highlighted_atoms
from bitatoms.reproduce.runs import (
    UPDATES,
    run_selection,
)
from bitatoms.reproduce.similarity import sample_similarity
from support.strategies import random_bits


def test_highlighted_atoms_are_used_by_some_samples_but_not_most():
    data = np.repeat(random_bits(0, 3, 30, 0.4), 4, axis=0)
    atoms = np.concatenate([data[::4], random_bits(9, 1, 30, 0.4)])
    codes = np.zeros((12, 4), np.uint8)
    codes[np.arange(8), np.arange(8) // 4] = 1  # no sample uses the third pattern
    codes[:, 3] = 1  # used by most
    highlighted = highlighted_atoms(*map(BitMatrix.from_dense, (data, atoms, codes)))
    assert set(highlighted.values()) == {0, 1}
    assert next(iter(highlighted)) == "red"


def test_digits_resemble_other_digits_and_noise_does_not():
    noise = BitMatrix.from_dense(random_bits(0, 300, 64, 0.3))
    assert not sample_similarity(noise[:16], noise, noise[:16]).is_clear
    digits = BitMatrix.from_dense(datasets.digits()[0][:300])
    assert sample_similarity(digits[:16], digits, digits[:16]).is_clear
    assert sample_similarity(digits[:16], digits, digits[:0]).jaccard == 1


def test_atoms_of_noise_are_not_interpretable():
    noise = BitMatrix.from_dense(random_bits(1, 300, 100, 0.3))
    dataset = PaperDataset("noise", "Einstein", "", True, noise, (10, 10), picture=np.zeros((10, 10), np.uint8))
    runs = [run_selection(noise, update, 0, patience=2) for update in UPDATES]
    claim = model_claims(dataset, *runs, 0)[0]
    assert claim.statement.startswith("The atoms are clearly interpretable")
    assert claim.verdict is Verdict.DIFFERS


@pytest.mark.parametrize(
    ("n_digits", "kind", "verdict"),
    [
        (6, "true", Verdict.AGREES),  # clear for some atoms, not for all
        (3, "true", Verdict.PARTLY),  # clear for all
        (3, "shuffled", Verdict.DIFFERS),
        (3, "unknown", Verdict.NOT_SEEN),
    ],
)
def test_codes_are_compared_with_the_labels(n_digits, kind, verdict):
    X, y = datasets.digits()
    chosen = np.flatnonzero(y < n_digits)
    labels = {"true": y[chosen], "shuffled": np.random.default_rng(0).permutation(y[chosen]), "unknown": None}[kind]
    dataset = PaperDataset("digits", "MNIST", "", True, BitMatrix.from_dense(X[chosen]), (8, 8), labels=labels)
    run = run_selection(dataset.data, "mob", 0, patience=2)
    claim = model_claims(dataset, run, run, 0)[-1]
    assert "correspondence" in claim.statement
    assert claim.verdict is verdict


def test_bernoulli_start_fails_on_sparse_data_only():
    sparse = PaperDataset("few", "MNIST", "", False, BitMatrix.from_dense(np.eye(289, dtype=np.uint8)[:150]), (17, 17))
    experiment = initialisation(sparse, load_halftone(None), 0)
    claims = {claim.statement: claim for claim in experiment.claims}
    fails = next(
        claim for statement, claim in claims.items() if statement.startswith("The Bernoulli start does not work")
    )
    assert fails.verdict is Verdict.AGREES
    assert fails.finding.startswith("No atom is ever used, with any seed")
    assert claims["Both starts work well, with both methods."].verdict is Verdict.PARTLY
    assert claims["In all cases some atoms come to resemble halftone patterns."].verdict is Verdict.AGREES


def test_verdicts_are_summarized_in_a_sentence():
    claims = [Claim("a", "b", verdict) for verdict in (Verdict.AGREES, Verdict.AGREES, Verdict.DIFFERS)]
    claims.append(Claim("ours", "b", Verdict.AGREES, in_paper=False))
    assert summarize_verdicts(claims) == "3 claims of the paper were checked: 2 agree with the results, 1 differ."


def test_renamed_attributes_still_work_with_a_warning():
    claim = Claim("a", "b", Verdict.AGREES, "c", in_paper=False)
    with pytest.warns(FutureWarning, match="Claim.says was renamed to statement"):
        assert claim.says == "a"
    with pytest.warns(FutureWarning, match="Claim.of_paper was renamed to in_paper"):
        assert claim.of_paper is False
    with pytest.raises(AttributeError, match="'Claim' object has no attribute 'nothing'"):
        claim.nothing  # noqa: B018
