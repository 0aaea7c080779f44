"""Parameters in objects: how estimators show, set, clone and store them, and how grids vary them."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import bitatoms as ba
from bitatoms.errors import InputError

ESTIMATORS = [
    *[ba.BinaryDictionaryLearning, ba.BinaryDictionaryClassifier, ba.BinaryImputer, ba.CategoryEncoder, ba.CoverMiner]
]
SEARCHING = ESTIMATORS[:3]


@pytest.fixture(scope="module")
def X():
    return ba.datasets.planted(90, 20, 4, noise=0.02, random_state=0).X


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_estimators_have_at_most_22_parameters(estimator):
    assert len(estimator().get_params(deep=False)) <= 22


@pytest.mark.parametrize("estimator", SEARCHING)
def test_nested_parameters_are_listed_and_set(estimator):
    model = estimator()
    assert model.get_params()["constraints"] is None
    model.set_params(constraints__max_components=5, constraints__bias=False, search="paper", search__coder="greedy")
    assert model.constraints == ba.Constraints(max_components=5, bias=False)
    assert model.search == ba.PaperSearch(coder="greedy")
    before = model.constraints
    model.set_params(constraints__max_components=2)
    assert (before.max_components, model.constraints.max_components, model.constraints.bias) == (5, 2, False)
    shown = model.get_params()
    assert (shown["constraints__max_components"], shown["search__coder"]) == (2, "greedy")
    assert "constraints__max_components" not in model.get_params(deep=False)


def test_resources_are_set():
    model = ba.BinaryDictionaryLearning().set_params(resources__max_memory="1GB")
    assert model.resources == ba.Resources(max_memory="1GB")
    assert "resources=Resources(max_memory='1GB')" in repr(model)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"constraints__most": 2}, "Invalid parameter 'constraints__most' for BinaryDictionaryLearning"),
        ({"other__most": 2}, "Invalid parameter 'other__most'"),
        ({"algebra__most": 2}, "Invalid parameter 'algebra__most'"),
        (
            {"search__coder": "greedy"},
            r"search='fast' has no parameter 'coder'; set search=PaperSearch\(\) first",
        ),
        ({"constraints__max_components": 1.5}, "max_components must be an integer"),
        ({"components": 2}, "Invalid parameter 'components'"),
    ],
)
def test_other_nested_parameters_are_refused(given, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ba.BinaryDictionaryLearning().set_params(**given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"max_components": 2},
            r"parameter of bitatoms\.Constraints: constraints=bitatoms\.Constraints\(max_components=",
        ),
        ({"patience": 2}, r"parameter of bitatoms\.PaperSearch: search=bitatoms\.PaperSearch\(patience="),
        ({"checkpoint": "a"}, r"parameter of bitatoms\.Resources: resources=bitatoms\.Resources\(checkpoint="),
    ],
)
@pytest.mark.parametrize(
    "function",
    [
        lambda **given: ba.factorize([[1]], **given),
        ba.BinaryDictionaryLearning,
        ba.BinaryDictionaryLearning().set_params,
    ],
)
def test_an_error_names_the_object_that_holds_a_parameter(function, given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        function(**given)


def test_a_value_of_another_type_is_refused_by_fit(X):
    model = ba.BinaryDictionaryLearning(constraints={"max_components": 2})
    with pytest.raises(InputError, match=r"constraints must be Constraints\(\.\.\.\) or None"):
        model.fit(X)


@pytest.mark.parametrize("estimator", SEARCHING)
def test_clones_share_their_objects(estimator):
    """They cannot change."""
    atoms = np.eye(2, 20, dtype=np.uint8)
    model = estimator(search=ba.PaperSearch(update="k-prox"), constraints=ba.Constraints(fixed_atoms=atoms))
    copied = clone(model)
    assert (copied.search, copied.constraints) == (model.search, model.constraints)
    with pytest.raises(AttributeError):
        copied.constraints.max_components = 3


def test_a_grid_varies_nested_parameters_and_searches(X):
    searches = ["fast", ba.PaperSearch(), ba.PaperSearch(coder="greedy")]
    grid = {"constraints__max_components": [1, 2], "search": searches}
    model = ba.BinaryDictionaryLearning(algebra="xor", random_state=0)
    found = GridSearchCV(model, grid, cv=2, error_score="raise").fit(X)
    assert found.best_params_["constraints__max_components"] == 2
    assert [each is searches[i % 3] for i, each in enumerate(found.cv_results_["param_search"])] == [True] * 6
    assert found.best_estimator_.n_components_ <= 2
    coders = GridSearchCV(model.set_params(search="paper"), {"search__coder": ["bmp", "greedy"]}, cv=2).fit(X)
    assert np.isfinite(coders.cv_results_["mean_test_score"]).all()


def test_model_files_hold_nested_parameters_but_no_resources(X, tmp_path):
    model = ba.BinaryDictionaryLearning(
        search=ba.PaperSearch(coder="greedy", patience=2),
        constraints=ba.Constraints(max_components=3, max_atoms_per_sample=2),
        resources=ba.Resources(max_memory="1GB", checkpoint=tmp_path / "checkpoint"),
        random_state=0,
    ).fit(X)
    model.save(tmp_path / "model.npz")
    loaded = ba.load(tmp_path / "model.npz")
    assert (loaded.search, loaded.constraints, loaded.resources) == (model.search, model.constraints, None)
    limited = ba.BinaryDictionaryLearning(constraints=ba.Constraints(apart=[[0, 1]]), random_state=0).fit(X)
    limited.save(tmp_path / "model.npz")
    assert ba.load(tmp_path / "model.npz").constraints == limited.constraints
