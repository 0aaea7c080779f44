"""Fixed atoms stay bit for bit; learned atoms, and the codes of samples, keep to their limits, wherever rows are."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bitatoms as ba
import naive
from bitatoms.engine.limits import AtomLimits
from bitatoms.errors import InputError
from support.faults import ctrl_c_when
from support.parameters import nested
from support.results import assert_matches_oracle, every_fit
from support.strategies import random_bits
from support.ways import fit_a_cluster, fit_a_store, fit_by_passes

pytestmark = pytest.mark.usefixtures("few_trials")
M = 24
LIMITS = st.sampled_from(
    [
        {},
        {"max_features_per_atom": 3},
        {"min_samples_per_atom": 20},
        {"apart": [(0, 1, 2), (5, 9)]},
        {"together": [(3, 4), (7, 8, 11)]},
        {"max_features_per_atom": 5, "apart": [(0, 12), (1, 13)], "together": [(3, 4)], "min_samples_per_atom": 9},
    ]
)


def table(seed, n=80, algebra="or"):
    return ba.datasets.planted(n, M, 5, algebra=algebra, code_density=0.3, noise=0.03, random_state=seed).X


def almost_planted(seed):
    """Return two atoms of the table, each with a bit too many or too few: their users want to flip it."""
    atoms = ba.datasets.planted(500, M, 5, algebra="or", code_density=0.3, noise=0.03, random_state=seed).atoms[:2]
    return atoms ^ np.eye(2, M, dtype=np.uint8)


def check(X, model, fixed, limits):
    """Check what a model promises, from its atoms and its counts."""
    atoms, n_fixed = model.atoms.to_dense(), 0 if fixed is None else len(fixed)
    if fixed is not None:
        np.testing.assert_array_equal(atoms[:n_fixed], fixed)
    of_features = limits.get("max_features_per_atom"), limits.get("apart", ()), limits.get("together", ())
    assert not naive.violates_limits(atoms[n_fixed:], *of_features)
    assert (model.uses[n_fixed:] >= limits.get("min_samples_per_atom", 1)).all()


@pytest.mark.filterwarnings("ignore:6 atoms were requested")
@settings(max_examples=6)
@given(
    st.integers(0, 30),
    st.sampled_from(["xor", "or", "auto"]),
    st.sampled_from([0, 2]),
    LIMITS,
    st.sampled_from(["mdl", 6]),
    st.booleans(),
)
def test_constraints_are_never_violated(seed, algebra, n_fixed, limits, n_components, has_unknown):
    X = table(seed, 50, "or" if algebra == "auto" else algebra).astype(float)
    if has_unknown:
        X[random_bits(seed, *X.shape, 0.1) == 1] = np.nan
    fixed = random_bits(seed + 1, n_fixed, M, 0.3) if n_fixed else None
    result = ba.factorize(X, n_components, **nested(algebra=algebra, fixed_atoms=fixed, random_state=seed, **limits))
    check(X, result, fixed, limits)
    if n_components == 6:
        assert len(result.atoms) <= 6
    # The result describes the table: its figures are those of its factors.
    known = ~np.isnan(X)
    errors = (result.reconstruct().to_dense() != X) & known
    assert result.wrong.tolist() == errors.sum(axis=0).tolist()
    np.testing.assert_array_equal(result.uses, result.codes.to_dense().sum(axis=0))
    if not n_fixed and not limits:
        return
    length = ba.codelength(np.where(known, X, np.nan), result.atoms, result.codes, result.bias, result.algebra)
    assert result.codelength == length


@pytest.mark.parametrize("n_components", ["mdl", 2])
@pytest.mark.filterwarnings("ignore:2 atoms were requested")
def test_an_atom_with_the_least_number_of_samples_is_kept(n_components):
    X = np.repeat([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]], [20, 30], axis=0)
    found = [
        ba.factorize(
            X, n_components, algebra="or", constraints=ba.Constraints(min_samples_per_atom=least), random_state=0
        ).codes.column_weights()
        for least in (20, 21)
    ]
    assert [sorted(uses.tolist()) for uses in found] == [[20, 30], [30]]


def test_constraints_hold_in_memory_stores_and_clusters(tmp_path):
    X, fixed, limits = table(3, 200), almost_planted(3), {"max_features_per_atom": 4, "min_samples_per_atom": 20}
    X[:, -3:] |= random_bits(2, 200, 3, 0.9)  # what a bias would take
    parameters = {"algebra": "or", "fixed_atoms": fixed, "random_state": 0, **limits}
    models = [fit(parameters, X, tmp_path) for fit in (fit_by_passes, fit_a_store, fit_a_cluster)]
    for model in models:
        check(X, model, fixed, limits)
        assert model.atoms == models[0].atoms
        assert model.uses[:2].any()  # rows vote on a fixed atom
        assert not model.bias.any()


@pytest.mark.parametrize("algebra", ["xor", "or"])
def test_no_bias_is_learned_if_none_is_wanted(algebra, tmp_path):
    X = table(7, 160, algebra)
    X[:, :4] |= random_bits(3, 160, 4, 0.9)  # columns that most rows have
    unbiased = ba.factorize(X, algebra=algebra, constraints=ba.Constraints(bias=False), random_state=0)
    assert not unbiased.bias.any()
    assert ((X != unbiased.reconstruct().to_dense()).mean(axis=0) < 0.5).all()  # atoms take its place
    model = ba.BinaryDictionaryLearning(
        algebra=algebra, constraints=ba.Constraints(bias=False), random_state=0
    ).partial_fit(X)
    assert not model.bias_.any()
    model.save(tmp_path / "model.npz")
    loaded = ba.load(tmp_path / "model.npz")
    assert (loaded.constraints.bias, loaded.as_model().has_bias) == (False, False)


@pytest.mark.parametrize("limit", [{"max_features_per_atom": 4, "n_components": 3}, {"fixed_atoms": [[1] * M]}])
def test_a_callback_or_ctrl_c_in_any_round_ends_a_search_within_constraints(limit):
    how = {"algebra": "or", "random_state": 0, **limit}
    ba.factorize(table(1), **nested(**how, callbacks=(rounds := []).append))
    for at in (1, len(rounds)):
        seen = []
        result = ba.factorize(table(1), **nested(**how, callbacks=lambda row: seen.append(row) or len(seen) == at))  # noqa: B023
        assert (result.ended, len(seen)) == ("callback", at)
        check(table(1), result, limit.get("fixed_atoms"), limit)
    with pytest.raises(ba.Interrupted) as caught:
        ba.factorize(table(1), **nested(**how, callbacks=ctrl_c_when(lambda row: row.round == 2)))
    check(table(1), caught.value.result, limit.get("fixed_atoms"), limit)
    assert caught.value.result.ended == "interrupted"


def test_a_note_names_the_limits_if_they_leave_fewer_atoms_than_were_requested():
    X = table(1)
    with pytest.warns(UserWarning, match="3 atoms were requested, but only 0 are found within the limits"):
        found = ba.factorize(
            X, 3, algebra="or", constraints=ba.Constraints(min_samples_per_atom=len(X) + 1), random_state=0
        )
    assert found.atoms.n_rows == 0


def test_the_rounds_of_searches_within_constraints_are_numbered_from_1_on():
    rounds = []
    result = ba.factorize(
        table(2),
        constraints=ba.Constraints(max_features_per_atom=4),
        callbacks=rounds.append,
        algebra="xor",
        random_state=0,
    )
    assert result.history[:-1] == tuple(rounds)
    assert result.history[-1].move == "within constraints"
    assert [row.round for row in result.history] == [*range(1, len(result.history) + 1)]
    assert sum(row.move == "start" for row in result.history) > 1


@pytest.mark.parametrize(("algebra", "seed"), [("xor", 0), ("or", 1)])
def test_a_given_number_of_atoms_within_constraints_has_the_best_of_all_codes(algebra, seed):
    X = random_bits(seed, 30, 12, 0.5)
    result = ba.factorize(X, 5, algebra=algebra, constraints=ba.Constraints(max_features_per_atom=4), random_state=0)
    atoms = result.atoms.to_dense()
    best = naive.exact_code(X, atoms, result.codes.to_dense(), algebra)
    assert result.wrong_bits == naive.errors(X, atoms, best, algebra).sum()


def test_every_atom_within_constraints_saves_bits():
    X = np.tri(26, 23, dtype=np.uint8)[random_bits(0, 26, 1, 0.5)[:, 0].cumsum()]
    result = ba.factorize(X, algebra="or", constraints=ba.Constraints(max_features_per_atom=3), random_state=0)
    assert (result.saved > 0).all()


def test_the_minimum_of_rows_is_scaled_to_resamples():
    X = ba.datasets.planted(100, M, 3, algebra="or", code_density=0.4, noise=0.01, random_state=0).X
    result = ba.factorize(X, algebra="or", random_state=0)
    recurrence = ba.stability(
        X, result, constraints=ba.Constraints(min_samples_per_atom=30), n_resamples=2, random_state=0
    )
    assert (recurrence.overlaps > 0.5).any()


def test_a_loaded_model_keeps_its_constraints(tmp_path):
    X, fixed = pd.DataFrame(table(8), columns=[f"c{i}" for i in range(M)]), random_bits(6, 2, M, 0.3)
    limits = {"apart": [("c0", "c5")], "together": [(3, 4)], "max_features_per_atom": 5}
    model = ba.BinaryDictionaryLearning(**nested(algebra="or", fixed_atoms=fixed, random_state=0, **limits)).fit(X)
    model.save(tmp_path / "model.npz")
    loaded = ba.load(tmp_path / "model.npz")
    again = ba.BinaryDictionaryLearning(**loaded.get_params(deep=False) | {"random_state": 0}).fit(X)
    np.testing.assert_array_equal(again.components_, model.components_)


def test_fixed_atoms_are_matched_by_name():
    X = pd.DataFrame(table(9), columns=[f"c{i}" for i in range(M)])
    fixed = pd.DataFrame([[1, 1, 0], [0, 1, 1]], columns=["c20", "c3", "c7"])
    result = ba.factorize(X, constraints=ba.Constraints(fixed_atoms=fixed), algebra="xor", random_state=0)
    atoms = result.atoms.to_dense()[:2]
    assert [np.flatnonzero(atom).tolist() for atom in atoms] == [[3, 20], [3, 7]]
    with pytest.raises(InputError, match="the table lacks columns of fixed_atoms: 'other'"):
        ba.factorize(
            X,
            constraints=ba.Constraints(fixed_atoms=fixed.rename(columns={"c7": "other"})),
            algebra="xor",
            random_state=0,
        )


@settings(max_examples=40)
@given(st.integers(0, 100), st.sampled_from([None, 1, 2, 5]), st.booleans(), st.booleans())
def test_pieces_and_projections_keep_to_the_limits(seed, max_features, has_apart, has_together):
    apart = ((0, 1, 2), (2, 9)) if has_apart else ()
    together = ((3, 4),) if has_together and max_features != 1 else ()
    limits = AtomLimits(max_features, None, apart, together)
    atoms, counts = random_bits(seed, 4, M, 0.4), np.random.default_rng(seed).integers(0, 50, M)
    for atom in atoms:
        features = np.flatnonzero(atom)
        pieces = limits.pieces(features, counts, 50)
        made = np.array([np.isin(np.arange(M), piece) for piece in pieces]).reshape(-1, M)
        assert not naive.violates_limits(made, max_features, apart, together)
        covered = set(np.flatnonzero(made.any(axis=0)))
        tied = {i for each in together for i in each}
        assert set(features.tolist()) - tied == covered - tied
    before = np.array(
        [row if not naive.violates_limits([row], max_features, apart, together) else 0 * row for row in atoms]
    )
    after = before ^ random_bits(seed + 1, 4, M, 0.3)
    projected = limits.projected(ba.BitMatrix.from_dense(before), ba.BitMatrix.from_dense(after), 1).to_dense()
    np.testing.assert_array_equal(projected[0], after[0])
    assert not naive.violates_limits(projected[1:], max_features, apart, together)
    for old, new, made in zip(before[1:], after[1:], projected[1:], strict=True):
        if not naive.violates_limits([new], max_features, apart, together):
            np.testing.assert_array_equal(made, new)
        assert ((made == old) | (made == new)).all()


# Limits on the atoms per sample, in searches and for new samples.

LIMITS_OF_ROWS = {"fast": {"max_atoms_per_sample": 1}, "thorough": {"max_atoms_per_sample": 2}}


@every_fit
@pytest.mark.filterwarnings("ignore:20 atoms were requested")
def test_samples_are_coded_within_the_limits(small, how):
    limits = LIMITS_OF_ROWS[how["search"]]
    result = ba.factorize(small[:110], **nested(**how, **limits))
    assert_matches_oracle(result, small[:110])
    n_most = result.codes.row_weights().max()
    assert n_most == limits["max_atoms_per_sample"] or (how["n_components"], how["objective"]) == (20, "codelength")
    model = ba.BinaryDictionaryLearning(**nested(**how, **limits)).fit(small[:110])
    np.testing.assert_array_equal(model.components_, result.atoms.to_dense())
    for codes in (result.codes.to_dense(), model.transform(small[110:])):
        assert 1 <= codes.sum(axis=1).max() <= limits["max_atoms_per_sample"]


@pytest.mark.parametrize(
    ("algebra", "search", "n_components", "coder"), [("xor", "fast", 5, "auto"), ("or", "thorough", 20, "greedy")]
)
def test_new_samples_are_coded_for_the_fewest_errors(small, algebra, search, n_components, coder):
    how = {"algebra": algebra, "search": search, "coder": coder, "random_state": 0}
    model = ba.BinaryDictionaryLearning(n_components, **nested(**how)).fit(small[:100])
    new, empty = small[100:], np.zeros((len(small) - 100, n_components), np.uint8)
    if n_components == 5:  # the best of all codes
        expected = naive.exact_code(new, model.components_, empty, algebra)
    else:
        expected = naive.code(new, model.components_, empty, coder, algebra)
    np.testing.assert_array_equal(model.transform(new), expected)
