"""Outputs follow inputs: a data frame gives a data frame of the same package, with its index and names."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import bitatoms as ba
from bitatoms.baselines import Asso

pytestmark = pytest.mark.usefixtures("few_trials")

X = ba.datasets.planted(120, 8, 3, code_density=0.4, noise=0.02, random_state=0).X
INCOMPLETE = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
Y = np.where(X[:, 0] == 1, "yes", "no")
NAMES = [f"f{column}" for column in range(8)]
ATOMS = ["atom1", "atom2", "atom3"]


def as_pandas(values):
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(values, columns=NAMES, index=[f"r{row}" for row in range(len(values))])


def as_polars(values):
    return pytest.importorskip("polars").DataFrame(values, schema=NAMES)


def as_arrow(values):
    return pytest.importorskip("pyarrow").Table.from_pandas(as_pandas(values), preserve_index=False)


def as_arrow_with_index(values):
    return pytest.importorskip("pyarrow").Table.from_pandas(as_pandas(values))


class Stream:
    """A table of another library."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


def package(made):
    return type(made).__module__.partition(".")[0]


def check(made, given, values, columns=None, has_index=True):
    """Assert that a result is of the package of X and has its index (if pyarrow has one), these values and columns."""
    assert package(made) == package(given)
    if package(given) == "pyarrow" and hasattr(made, "column_names"):
        made = made.to_pandas()
        given = given.to_pandas() if has_index else made
    if hasattr(given, "iloc"):
        assert list(made.index) == list(given.index)
    if columns is not None:
        assert list(made.columns) == list(columns)
    np.testing.assert_array_equal(np.asarray(made), values)


@pytest.fixture(scope="module")
def model():
    return ba.BinaryDictionaryLearning(3, random_state=0).fit(X)


@pytest.mark.filterwarnings("ignore:the columns of X have", "ignore:X (has|does not have) .*feature names")
@pytest.mark.parametrize("frame", [as_pandas, as_polars, as_arrow, as_arrow_with_index])
def test_models(frame, model):
    given = frame(X)
    named = clone(model).fit(given)
    codes = model.transform(X)
    assert list(named.get_feature_names_out()) == ATOMS
    check(named.transform(given), given, codes, ATOMS, has_index=False)
    check(named.fit_transform(given), given, codes, ATOMS, has_index=False)
    check(named.decision_function(given), given, model.decision_function(X), ATOMS)
    check(named.score_samples(given), given, model.score_samples(X))
    assert named.score(given) == model.score(X)
    check(named.predict_cell_proba(given), given, model.predict_cell_proba(X), NAMES)
    check(named.inverse_transform(named.transform(given)), given, model.inverse_transform(codes), NAMES, False)
    check(model.transform(given), given, codes, ATOMS, has_index=False)  # it was fitted without names
    for array in (X, ba.Table.from_any(given), X.tolist()):
        assert type(named.transform(array)) is np.ndarray
    for method in (ba.CoverMiner(max_iter=1, random_state=0), Asso(3)):
        method.fit(given)
        atoms, table = [f"atom{number}" for number in range(1, method.n_components_ + 1)], ba.Table.from_any(given)
        check(method.transform(given), given, method.transform(table), atoms, False)
        product = method.inverse_transform(method.transform(table))
        check(method.inverse_transform(method.transform(given)), given, product, NAMES, False)


@pytest.mark.parametrize("frame", [as_pandas, as_polars, as_arrow, as_arrow_with_index])
def test_imputers_keep_types(frame):
    given, imputer = frame(INCOMPLETE), ba.BinaryImputer(method="neighbours", random_state=0)
    expected = imputer.fit_transform(INCOMPLETE)
    probabilities = imputer.predict_cell_proba(INCOMPLETE)
    completed = imputer.fit(given).transform(given)
    check(completed, given, expected, NAMES, has_index=False)
    assert np.asarray(completed).dtype == np.float64
    check(imputer.predict_cell_proba(given), given, probabilities, NAMES)
    of_bits = as_pandas(X).astype({"f1": "Int8", "f2": bool, "f3": "boolean"})
    types = imputer.fit(of_bits).transform(of_bits).dtypes
    assert types.tolist() == of_bits.dtypes.tolist()


@pytest.mark.parametrize("frame", [as_pandas, as_polars, as_arrow])
def test_classifiers_give_arrays_to_scikit_learn(frame):
    given, classifier = frame(X), ba.BinaryDictionaryClassifier(1, random_state=0)
    bits = clone(classifier).fit(X, Y).codelengths(X)
    classifier.fit(given, Y)
    check(classifier.codelengths(given), given, bits, ["no", "yes"])
    for method in (classifier.predict, classifier.predict_proba, classifier.decision_function):
        assert type(method(given)) is np.ndarray


def test_scores_of_scikit_learn_take_data_frames():
    classifier = ba.BinaryDictionaryClassifier(1, random_state=0)
    for score in ("roc_auc", "neg_log_loss"):
        assert np.isfinite(cross_val_score(classifier, as_pandas(X), Y == "yes", scoring=score, cv=2)).all()


def test_arrow_streams_give_pyarrow_tables(model):
    given = as_arrow(X)
    named = clone(model).fit(given)
    check(named.transform(Stream(given)), given, model.transform(X), ATOMS)
    check(named.score_samples(Stream(given)), given, model.score_samples(X))
    check(named.complete(Stream(given)), given, X, NAMES)
    check(named.inverse_transform(Stream(named.transform(given))), given, named.inverse_transform(model.transform(X)))


@pytest.mark.parametrize("frame", [as_pandas, as_polars, as_arrow])
@pytest.mark.parametrize("chosen", ["pandas", "polars"])
def test_set_output_chooses(frame, chosen, model):
    pytest.importorskip("polars")
    given = frame(X)
    for estimator, names in ((clone(model), ATOMS), (ba.BinaryImputer(method="neighbours", random_state=0), NAMES)):
        made = estimator.set_output(transform=chosen).fit_transform(given)
        assert package(made) == chosen
        assert list(made.columns) == names
        with config_context(transform_output=chosen):
            assert package(clone(estimator).fit_transform(given)) == chosen


@pytest.mark.parametrize("frame", [as_pandas, as_polars, as_arrow, as_arrow_with_index])
def test_pipelines(frame, model):
    given = frame(INCOMPLETE)
    steps = ba.BinaryImputer(method="neighbours", random_state=0), clone(model), LogisticRegression()
    predicted = make_pipeline(*steps).fit(given, Y).predict(given)
    np.testing.assert_array_equal(predicted, make_pipeline(*steps).fit(INCOMPLETE, Y).predict(INCOMPLETE))


def test_decoded_rows_are_a_data_frame():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"colour": ["red", "blue", "red"], "age": [20, 50, 20]}, index=list("abc"))
    encoder = ba.CategoryEncoder(bins=2).fit(frame)
    encoded = encoder.transform(frame)
    assert encoder.inverse_transform(encoded) == {
        "colour": ["red", "blue", "red"],
        "age": ["age<50", "age>=50", "age<50"],
    }
    decoded = encoder.inverse_transform(encoded.to_pandas().set_axis(frame.index))
    assert decoded["colour"].to_dict() == frame["colour"].to_dict()
