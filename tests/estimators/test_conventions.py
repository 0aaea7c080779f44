"""Estimators follow scikit-learn's conventions, and BinaryDictionaryLearning agrees with the oracles."""

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, csr_matrix, issparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

import naive
from bitatoms import (
    BinaryDictionaryClassifier,
    BinaryDictionaryLearning,
    BinaryImputer,
    BitMatrix,
    CoverMiner,
    PaperSearch,
    codelength,
    factorize,
)
from bitatoms.datasets import planted
from bitatoms.errors import NoAtomsWarning
from bitatoms.parallel import Workers
from support.parameters import nested
from support.strategies import SEEDS, matrices, random_bits

ALGEBRAS = ("xor", "or")
PAPER = {"search": "paper"}
LIMITS = {"max_atoms_per_sample": 2, "residual_limit": 3}


pytestmark = pytest.mark.usefixtures("few_trials", "few_exchanges")


@parametrize_with_checks(
    [
        BinaryDictionaryLearning(binarize=0.0, algebra="xor"),
        BinaryDictionaryLearning(
            4, binarize=0.0, search=PaperSearch(coder="greedy", update="k-prox"), algebra="or", init="bernoulli"
        ),
        BinaryDictionaryClassifier(2, search="paper", binarize=0.0, n_models=1, algebra="or"),
        BinaryImputer(binarize=0.0, method="profiles", n_profiles=2, algebra="xor"),
        CoverMiner(binarize=0.0, max_iter=1),
    ]
)
@pytest.mark.filterwarnings("ignore:init=.* finds only:UserWarning")
@pytest.mark.filterwarnings("ignore:3 atoms were requested:UserWarning")
@pytest.mark.filterwarnings("ignore:columns without any known value:UserWarning")
def test_scikit_learn_checks_pass(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def tables():
    """Return training rows and new rows."""
    X = planted(300, 65, 5, noise=0.05, atom_density=0.3, random_state=0).X
    return X[:200], X[200:]


@pytest.fixture(scope="module")
def fitted(tables):
    return BinaryDictionaryLearning(5, search=PaperSearch(coder="greedy"), random_state=0).fit(tables[0])


# --- what is learned


@pytest.mark.parametrize(
    "how",
    [
        {"init": "samples", "algebra": "auto"},
        {"n_components": 4, "search": "thorough"},
        {"n_components": 4, **PAPER},
    ],
    ids=str,
)
def test_fitted_attributes_equal_the_result_of_factorize(tables, how):
    estimator = BinaryDictionaryLearning(**nested(**how, random_state=0))
    assert estimator.fit(tables[0]) is estimator
    result = factorize(tables[0], **nested(**how, random_state=0))
    np.testing.assert_array_equal(estimator.components_, result.atoms.to_dense())
    np.testing.assert_array_equal(estimator.bias_, result.bias)
    assert estimator.components_.dtype == estimator.bias_.dtype == np.uint8
    assert not (estimator.bias_.any() and how.get("search") == "paper")
    assert [row[:-1] for row in estimator.history_] == [row[:-1] for row in result.history]
    for name in ("codelength", "algebra", "codelengths", "n_iter"):
        assert getattr(estimator, f"{name}_") == getattr(result, name)
    assert (estimator.summary_, estimator.n_components_) == (result.summary(), result.atoms.n_rows)
    assert estimator.n_features_in_ == 65
    assert not hasattr(estimator, "feature_names_in_")


def test_second_fit_starts_anew(tables):
    """Parameters are checked first: after an error in them, the model of the first fit stays."""
    pandas = pytest.importorskip("pandas")
    (first, second), how = tables, {"n_components": 4, "random_state": 0, **PAPER}
    estimator = BinaryDictionaryLearning(**nested(**how)).fit(pandas.DataFrame(first[:, :30]).add_prefix("bit"))
    assert len(estimator.feature_names_in_) == 30
    estimator.fit(second)
    assert not hasattr(estimator, "feature_names_in_")
    with pytest.raises(ValueError, match="search='slow' is not available"):
        estimator.set_params(search="slow").fit(first[:, :30])
    afresh = BinaryDictionaryLearning(**nested(**how)).fit(second)
    np.testing.assert_array_equal(estimator.components_, afresh.components_)
    np.testing.assert_array_equal(estimator.set_params(**PAPER).score_samples(first), afresh.score_samples(first))
    assert estimator.n_features_in_ == 65


@pytest.mark.parametrize("how", [PAPER, {}])
def test_model_without_atoms(tables, how):
    estimator = BinaryDictionaryLearning(**nested(max_components=0, **how)).fit(tables[0])
    codes = estimator.transform(tables[1])
    assert (estimator.components_.shape, codes.shape) == ((0, 65), (100, 0))
    assert not estimator.inverse_transform(codes).any()
    assert estimator.get_feature_names_out().tolist() == []
    assert estimator.score(tables[1]) < 0


def test_a_fit_without_atoms_warns():
    noise = np.random.default_rng(0).random((50, 8)) < 0.4
    with pytest.warns(NoAtomsWarning, match="no atom makes .* shorter.*; n_components=5 finds atoms") as caught:
        estimator = BinaryDictionaryLearning(algebra="xor", random_state=0).fit(noise)
    assert caught[0].filename == __file__
    assert estimator.n_components_ == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BinaryDictionaryLearning(algebra="xor", random_state=0, **nested(max_components=0)).fit(noise)
        BinaryDictionaryLearning(2, algebra="xor", random_state=0).fit(noise)


def test_max_iter_warns_and_leaves_a_model(tables):
    with pytest.warns(ConvergenceWarning, match="max_iter ended the search before it converged; raise it") as caught:
        estimator = BinaryDictionaryLearning(5, **nested(max_iter=1, random_state=0, **PAPER)).fit(tables[0])
    assert caught[0].filename == __file__
    assert (estimator.n_iter_, estimator.transform(tables[1]).shape) == (1, (100, 5))


# --- codes and samples


@pytest.mark.parametrize(
    ("coder", "algebra", "limits"),
    [
        ("bmp", "xor", {}),
        ("bmp", "or", LIMITS),
        ("greedy", "xor", LIMITS),
        ("greedy", "or", {}),
        ("exact", "xor", LIMITS),
        ("exact", "or", {}),
    ],
)
def test_transform_agrees_with_the_oracle(tables, algebra, coder, limits):
    own = {} if (coder, algebra) == ("bmp", "xor") else {"coder": coder}
    how = {**own, "algebra": algebra, **limits, **PAPER}
    estimator = BinaryDictionaryLearning(5, **nested(random_state=0, **how)).fit(tables[0])
    codes, start = estimator.transform(tables[1]), np.zeros((100, 5), np.uint8)
    rule = (algebra,) if coder == "exact" else (coder, algebra)
    limits = limits.get("max_atoms_per_sample"), limits.get("residual_limit", 0)
    code = naive.exact_code if coder == "exact" else naive.code
    np.testing.assert_array_equal(codes, code(tables[1], estimator.components_, start, *rule, *limits))
    assert codes.dtype == np.uint8


@settings(max_examples=4)
@given(matrices(st.sampled_from((1, 2, 17, 65))), st.sampled_from(ALGEBRAS), st.sampled_from(("mob", "k-prox")), SEEDS)
def test_fit_transform_equals_fit_and_transform(X, algebra, update, seed):
    for how in ({"update": update, "start_components": 2, **PAPER}, {}):
        how = {**how, "algebra": algebra, "random_state": seed}
        codes = BinaryDictionaryLearning(**nested(**how)).fit_transform(X)
        np.testing.assert_array_equal(codes, BinaryDictionaryLearning(**nested(**how)).fit(X).transform(X))


@pytest.mark.parametrize("how", [{"algebra": "or"}, {"n_components": 5, "coder": "greedy", **PAPER}])
def test_inverse_transform(tables, how):
    X, new = tables
    estimator = BinaryDictionaryLearning(**nested(**how, random_state=0)).fit(X ^ (np.arange(65) < 9))
    codes = estimator.transform(new)
    samples = estimator.inverse_transform(codes)
    expected = naive.product(codes, estimator.components_, estimator.algebra_) ^ estimator.bias_
    np.testing.assert_array_equal(samples, expected)
    assert samples.dtype == np.uint8
    for same in (codes.astype(bool), codes.tolist(), csr_array(codes), BitMatrix.from_dense(codes)):
        np.testing.assert_array_equal(estimator.inverse_transform(same), samples)


def test_a_bias_is_added_to_every_sample(tables, fitted):
    model = pickle.loads(pickle.dumps(fitted))
    model.bias_ = random_bits(3, 1, 65, 0.5)[0]
    codes = model.transform(tables[1] ^ model.bias_)
    np.testing.assert_array_equal(codes, fitted.transform(tables[1]))
    np.testing.assert_array_equal(model.inverse_transform(codes), fitted.inverse_transform(codes) ^ model.bias_)
    soft = model.decision_function(tables[1] ^ model.bias_)
    np.testing.assert_array_equal(soft, fitted.decision_function(tables[1]))
    counted = ("complete", "lacking", "rows_hash")  # with the factors of the fit
    assert all(getattr(fitted.as_model(), name) is not None for name in counted)
    assert all(getattr(model.as_model(), name) is None for name in counted)


@pytest.mark.parametrize("n_components", ["mdl", 8])
def test_transform_describes_samples_as_well_as_the_search(n_components):
    """Dense XOR factors, where toggling one atom at a time from empty codes gets stuck."""
    X = planted(400, 60, 6, atom_density=0.5, code_density=0.5, noise=0.05, random_state=0).X
    result = factorize(X, n_components, algebra="xor", random_state=0)
    model = BinaryDictionaryLearning(n_components, algebra="xor", random_state=0).fit(X)
    codes = model.transform(X[::-1])[::-1]
    assert (model.inverse_transform(codes) != X).sum() <= 1.05 * result.wrong_bits
    bits = codelength(X, model.components_, codes, model.bias_).total
    assert n_components != "mdl" or bits <= 1.01 * result.codelength.total


# --- scores


def bits_of(bits, n_ones, n_rows):
    """Return the bits that each row takes if ones were that frequent in the rows that a model was learned from."""
    shares = (n_ones + 0.5) / (n_rows + 1)
    return -np.log2(np.where(bits, shares, 1 - shares)).sum(axis=1)


@pytest.mark.parametrize("algebra", ALGEBRAS)
def test_the_bits_of_rows_are_those_of_errors_and_uses_of_atoms(tables, algebra):
    X, new = tables
    how = {"n_components": 5, "coder": "greedy", "algebra": algebra, "random_state": 0, **PAPER}
    estimator, result = BinaryDictionaryLearning(**nested(**how)).fit(X), factorize(X, **nested(**how))
    atoms, codes = result.atoms.to_dense(), result.codes.to_dense()
    new_codes = naive.code(new, atoms, np.zeros((100, 5), np.uint8), "greedy", algebra)
    wrong, new_wrong = naive.errors(X, atoms, codes, algebra), naive.errors(new, atoms, new_codes, algebra)
    expected = bits_of(new_wrong, wrong.sum(axis=0), 200) + bits_of(new_codes, codes.sum(axis=0), 200)
    given = BitMatrix.from_dense(new), BitMatrix.from_dense(new_codes), Workers(1)
    np.testing.assert_allclose(estimator.as_model().row_bits(*given), expected, rtol=1e-12)


def test_score_is_the_mean_of_the_scores_of_samples(tables, fitted):
    new = tables[1]
    assert fitted.score(new) == pytest.approx(fitted.score_samples(new).mean())
    assert fitted.score(new, np.zeros(100)) == fitted.score(new)


def test_soft_codes_are_differences_of_bits(tables, fitted):
    """Each is what the sample loses, or would gain: bits without the atom less bits with it."""
    new, model, workers = BitMatrix.from_dense(tables[1]), fitted.as_model(), Workers(1)
    codes = fitted.transform(new)
    bits, soft = model.row_bits(new, BitMatrix.from_dense(codes), workers), fitted.decision_function(new)
    assert soft.shape == codes.shape
    assert soft.dtype == np.float64
    for k in range(codes.shape[1]):
        toggled = codes.copy()
        toggled[:, k] ^= 1
        lost = model.row_bits(new, BitMatrix.from_dense(toggled), workers) - bits
        np.testing.assert_allclose(soft[:, k], np.where(codes[:, k], lost, -lost), atol=1e-9)


# --- with other libraries


def test_set_output_keeps_the_index(tables, fitted):
    """The checks of scikit-learn have data frames of both libraries."""
    pandas = pytest.importorskip("pandas")
    index = [f"row {j}" for j in range(100)]
    codes = clone(fitted).set_output(transform="pandas").fit(tables[0]).transform(pandas.DataFrame(tables[1], index))
    assert codes.index.tolist() == index
    np.testing.assert_array_equal(codes.to_numpy(), fitted.transform(tables[1]))


# --- tables of many kinds


@pytest.mark.parametrize("as_type", [np.float32, np.ndarray.tolist, csr_matrix, BitMatrix.from_dense])
def test_any_type_of_table_gives_the_same_bits(tables, fitted, as_type):
    X, new = (as_type(table) for table in tables)
    estimator = clone(fitted).fit(X)
    np.testing.assert_array_equal(np.asarray(X.todense() if issparse(X) else X), tables[0])  # the input is not modified
    np.testing.assert_array_equal(estimator.components_, fitted.components_)
    np.testing.assert_array_equal(estimator.transform(new), fitted.transform(tables[1]))
    np.testing.assert_array_equal(estimator.score_samples(new), fitted.score_samples(tables[1]))
    assert estimator.n_features_in_ == 65


# --- batches


def test_partial_fit():
    data = planted(1500, 40, 4, code_density=0.4, noise=0.02, random_state=0)
    X, model = data.X, BinaryDictionaryLearning(4, algebra="xor", random_state=0)
    for start in range(0, 1500, 500):
        assert model.partial_fit(X[start : start + 500]) is model
        assert model.as_model().n_samples == start + 500
    assert {tuple(atom) for atom in model.components_} == {tuple(atom) for atom in data.atoms}
    again = pickle.loads(pickle.dumps(model))
    for one in (model, again):
        one.partial_fit(X[:300])
    np.testing.assert_array_equal(model.components_, again.components_)
    with pytest.raises(ValueError, match="X has 39 features"):
        model.partial_fit(X[:, :39])
    assert (model.n_features_in_, model.as_model().n_samples) == (40, 1800)


@pytest.mark.parametrize("random_state", [int, np.random.default_rng])
def test_partial_fit_that_raises_leaves_the_estimator_as_it_was(random_state):
    X = planted(300, 30, 4, code_density=0.4, noise=0.02, random_state=0).X
    errors = []

    def callback(row):
        if errors:
            raise errors[0]

    how = {"n_components": 4, "callbacks": callback}
    model, undisturbed = (BinaryDictionaryLearning(**nested(random_state=random_state(7), **how)) for _ in range(2))
    for start, error in zip((0, 100, 200), (KeyboardInterrupt(), MemoryError(), ValueError()), strict=True):
        batch, attributes = X[start : start + 100], dict(vars(model))
        errors[:] = [error]
        with pytest.raises(type(error)):
            model.partial_fit(batch)
        errors.clear()
        assert vars(model).keys() == attributes.keys()
        assert all(vars(model)[name] is attributes[name] for name in attributes)
        for each in (model, undisturbed):
            each.partial_fit(batch)
        assert model.as_model().n_samples == start + 100
        np.testing.assert_array_equal(model.components_, undisturbed.components_)


def test_fit_and_partial_fit_start_anew_after_each_other():
    X = planted(600, 40, 4, code_density=0.4, noise=0.02, random_state=0).X
    model, fitted, streamed = (BinaryDictionaryLearning(4, algebra="xor", random_state=0) for _ in range(3))
    model.partial_fit(X[:300]).fit(X)
    np.testing.assert_array_equal(model.components_, fitted.fit(X).components_)
    with pytest.raises(ValueError, match="other than 0 and 1"):
        model.partial_fit(X[:200, :20] + 5)
    np.testing.assert_array_equal(model.transform(X), fitted.transform(X))  # the model of the fit is still there
    assert model.n_features_in_ == 40
    model.partial_fit(X[:300])
    assert model.as_model().n_samples == 300
    np.testing.assert_array_equal(model.components_, streamed.partial_fit(X[:300]).components_)


def test_paper_search_has_no_partial_fit():
    model = BinaryDictionaryLearning(4, search="paper")
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError, match="partial_fit") as caught:
        model.partial_fit([[1, 0]])
    assert 'search="paper" needs all rows at once' in str(caught.value.__cause__)
