"""All baselines: the scikit-learn interface, reproducible results, and factors in their algebra."""

import inspect

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import bitatoms as ba
import naive
from bitatoms import BitMatrix, baselines
from bitatoms.baselines.baseline import Baseline
from bitatoms.datasets import planted
from bitatoms.table import Table

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


@parametrize_with_checks([quick(method, binarize=0.0) for method in METHODS])
def test_scikit_learn_checks_pass(estimator, check):
    check(estimator)


@each_method
def test_atoms_and_codes_are_bits_of_the_right_shape(method, table):
    model = quick(method).fit(table)
    assert model.components_.dtype == model.codes_.dtype == np.uint8
    assert 1 <= model.n_components_ <= 3
    assert model.components_.shape == (model.n_components_, 65)
    assert model.codes_.shape == (120, model.n_components_)
    assert max(model.components_.max(), model.codes_.max()) <= 1


@each_method
def test_fewer_wrong_cells_than_without_atoms(method, table):
    model = quick(method).fit(table)
    made = model.inverse_transform(model.codes_)
    assert (made == naive.product(model.codes_, model.components_, model.algebra)).all()
    assert (made != table).sum() < table.sum()


@each_method
def test_codelength_is_of_the_fitted_codes(method, table):
    model = quick(method).fit(table)
    assert model.codelength_ == ba.codelength(table, model.components_, model.codes_, algebra=model.algebra)


@each_method
def test_same_seed_gives_same_bits_for_every_container(method, table):
    models = [
        quick(method).fit(X)
        for X in (table, csr_array(table), BitMatrix.from_dense(table), Table(BitMatrix.from_dense(table)))
    ]
    for other in models[1:]:
        assert (other.components_ == models[0].components_).all()
        assert (other.codes_ == models[0].codes_).all()


@each_method
def test_transform_is_no_worse_than_without_atoms(method, table):
    model = quick(method).fit(table[:80])
    made = model.inverse_transform(model.transform(table[80:]))
    assert ((made != table[80:]).sum(axis=1) <= table[80:].sum(axis=1)).all()


@each_method
@pytest.mark.parametrize("X", [[[0]], [[1]], np.zeros((4, 3), int), np.ones((4, 3), int), np.eye(5, dtype=int)])
def test_trivial_tables(method, X):
    X = np.asarray(X)
    model = seeded(method).fit(X)
    assert model.codes_.shape == (len(X), model.n_components_)
    assert (model.inverse_transform(model.codes_) != X).sum() <= X.sum()


@each_method
@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[0, 2]], "first: 2 at row 0, column 1"),
        ([[0.5, 1]], "values other than 0 and 1"),
        ([[np.nan, 1]], "NaN|missing"),
    ],
)
def test_invalid_cells_raise(method, X, message):
    with pytest.raises(ValueError, match=message):
        quick(method).fit(X)


@each_method
@pytest.mark.parametrize("n_components", [0, -1, 2.5, "many"])
def test_invalid_n_components_raises(method, n_components, table):
    with pytest.raises((TypeError, ValueError), match="n_components"):
        quick(method, n_components).fit(table)


@each_method
def test_n_components_none_chooses_or_raises(method, table):
    assert method.chooses_rank == (method.__name__ in ("Asso", "GreConD", "PandaPlus", "Proximus"))
    if method.chooses_rank:
        assert quick(method, None).fit(table).n_components_ >= 1
    else:
        with pytest.raises(
            ValueError, match=f"n_components is None, but {method.__name__} cannot choose the number of atoms"
        ):
            quick(method, None).fit(table)


@each_method
def test_has_a_reference_and_an_example(method):
    assert issubclass(method, Baseline)
    assert method.algebra in ("or", "xor")
    assert "References\n" in method.__doc__
    assert ">>> " in method.__doc__
    assert clone(quick(method)).get_params()["n_components"] == 3


def test_public_names():
    assert ba.baselines is baselines
    assert list(baselines.__all__) == sorted(baselines.__all__)
