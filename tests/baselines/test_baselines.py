"""All baselines: the scikit-learn interface, reproducible results, and factors in their algebra."""

import inspect

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

import naive
from bitatoms import BitMatrix, baselines
from bitatoms.columns.table import Table
from bitatoms.datasets import planted

QUICK = {  # parameters that make fits fast
    "Asso": {"threshold": 0.6},
    "MessagePassing": {"max_iter": 20, "n_init": 1},
    "PandaPlus": {"n_orders": 2},
    "PenalizedNMF": {"n_init": 1},
    "ThresholdedNMF": {"n_init": 1},
}
METHODS = [getattr(baselines, name) for name in baselines.__all__ if name != "dude"]  # a function, for pictures
each_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)


def seeded(method, n_components=3, **how):
    """Return an estimator with a fixed seed."""
    if "random_state" in inspect.signature(method).parameters:
        how["random_state"] = 0
    return method(n_components, **how)


def quick(method, n_components=3, **more):
    """Return an estimator that is fast to fit."""
    return seeded(method, n_components, **QUICK.get(method.__name__, {}), **more)


@pytest.fixture(scope="module")
def table():
    return planted(120, 65, 3, algebra="or", atom_density=0.3, code_density=0.3, noise=0.03, random_state=0).X


@parametrize_with_checks([quick(baselines.GreConD, binarize=0.0)])
def test_scikit_learn_checks_pass(estimator, check):
    """Of one method: all have the same base class."""
    check(estimator)


@each_method
@pytest.mark.parametrize(
    "check",
    ["fit2d_1sample", "fit2d_1feature", "fit_idempotent", "estimators_pickle", "transformer_general",
     "parameters_default_constructible"],
)  # fmt: skip
def test_scikit_learn_checks_of_what_a_method_adds_pass(method, check):
    getattr(estimator_checks, f"check_{check}")(method.__name__, quick(method, binarize=0.0))


@pytest.fixture(scope="module", params=METHODS, ids=lambda method: method.__name__)
def fitted(request, table):
    return quick(request.param).fit(table)


def test_bits_of_the_right_shape_explain_the_table_in_their_algebra(fitted, table):
    assert fitted.components_.dtype == fitted.codes_.dtype == np.uint8
    assert 1 <= fitted.n_components_ <= 3
    assert fitted.components_.shape == (fitted.n_components_, 65)
    assert fitted.codes_.shape == (120, fitted.n_components_)
    made = fitted.inverse_transform(fitted.codes_)
    assert (made == naive.product(fitted.codes_, fitted.components_, fitted.algebra)).all()
    assert (made != table).sum() < table.sum()
    expected = naive.codelength(table, fitted.components_, fitted.codes_, fitted.algebra)
    assert (fitted.codelength_.errors, fitted.codelength_.codes, fitted.codelength_.atoms) == expected


def test_same_seed_gives_same_bits_for_every_container(fitted, table):
    for X in (csr_array(table), BitMatrix.from_dense(table), Table(BitMatrix.from_dense(table))):
        other = quick(type(fitted)).fit(X)
        assert (other.components_ == fitted.components_).all()
        assert (other.codes_ == fitted.codes_).all()


def test_transform_is_no_worse_than_without_atoms(fitted):
    new = planted(40, 65, 3, algebra="or", atom_density=0.3, code_density=0.3, random_state=1).X
    made = fitted.inverse_transform(fitted.transform(new))
    assert ((made != new).sum(axis=1) <= new.sum(axis=1)).all()


TRIVIAL = {
    "zeros": np.zeros((5, 4), int),
    "ones": np.ones((5, 4), int),
    "one row": [[0, 1, 1]],
    "one column": [[1], [0], [1]],
    "equal rows": np.tile([1, 0, 1], (6, 1)),
    "diagonal": np.eye(5, dtype=int),
}


@each_method
@pytest.mark.parametrize("name", TRIVIAL)
def test_tables_of_rank_one_are_exact(method, name):
    X = np.asarray(TRIVIAL[name])
    for n_components in (1, 3):
        more = {"cost": "patterns", "pattern_weight": 0.01} if method is baselines.PandaPlus else {}
        model = seeded(method, n_components, **more).fit(X)
        assert model.codes_.shape == (len(X), model.n_components_)
        wrong = (model.inverse_transform(model.codes_) != X).sum()
        assert wrong == 0 if name != "diagonal" else wrong <= X.sum()
        if method.chooses_rank and name != "diagonal":
            assert model.n_components_ == X.any()


@each_method
def test_a_method_states_whether_it_chooses_the_rank(method, table):
    assert method.chooses_rank == (method.__name__ in ("Asso", "GreConD", "PandaPlus", "Proximus"))
    if method.chooses_rank:
        assert quick(method, None).fit(table).n_components_ >= 1
