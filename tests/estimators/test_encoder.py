"""`CategoryEncoder` in pipelines of scikit-learn."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import bitatoms as ba

FRAME = {"colour": ["red", "blue", None, "red"] * 10, "age": [20, 50, 51, 21] * 10}


def test_it_encodes_as_the_function_does():
    encoder = ba.CategoryEncoder(bins=2, as_number="age")
    table = encoder.fit_transform(FRAME)
    assert table == ba.encode(FRAME, bins=2, as_number="age") == encoder.fit(FRAME).transform(FRAME)
    assert encoder.get_feature_names_out().tolist() == list(table.columns)
    assert encoder.feature_names_in_.tolist() == ["colour", "age"]
    assert encoder.n_features_in_ == 2
    assert encoder.inverse_transform(table)["colour"] == FRAME["colour"]
    other = {"age": [30], "colour": ["blue"]}
    assert encoder.transform(other) == encoder.encoding_.apply(other)


def test_parameters_and_clones():
    encoder = clone(ba.CategoryEncoder(bins=3))
    assert encoder.get_params() == {"as_category": (), "as_number": (), "bins": 3}
    assert encoder.set_params(bins=5).bins == 5
    with pytest.raises(NotFittedError):
        encoder.transform(FRAME)
    with pytest.raises(TypeError, match="unexpected keyword argument 'bin'"):
        ba.CategoryEncoder(bin=3)


@pytest.mark.parametrize("container", [dict, "pandas"])
def test_pipelines(container):
    frame = pytest.importorskip("pandas").DataFrame(FRAME) if container == "pandas" else FRAME
    model = ba.BinaryDictionaryLearning(2, algebra="or", search="paper", random_state=0)
    pipeline = make_pipeline(ba.CategoryEncoder(bins=2), clone(model)).fit(frame)
    model.fit(ba.encode(frame, bins=2))
    np.testing.assert_array_equal(pipeline.transform(frame), model.transform(frame))
    assert ba.Encoding.of(pipeline[-1]) == pipeline[0].encoding_
