"""`CategoryEncoder` in pipelines of scikit-learn."""

from datetime import date

import numpy as np
import pytest
from scipy.sparse import issparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import OneHotEncoder

import bitatoms as ba
from bitatoms.errors import InputWarning

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
    with pytest.raises(ba.InputError, match=r"^X lacks columns that the model was fitted on: 'age'; add them$"):
        encoder.transform({"colour": ["blue"]})


def test_columns_that_are_left_out():
    frame = FRAME | {"id": [f"id {number}" for number in range(40)], "day": [date(2020, 1, 1)] * 40}
    with pytest.raises(ba.InputError, match=r'the column .day. contains dates or times; .* with without="day"'):
        ba.CategoryEncoder().fit(frame)
    encoder = clone(ba.CategoryEncoder(without=["id", "day"], bins=2))
    assert encoder.fit_transform(frame) == encoder.transform(frame) == encoder.transform(FRAME)
    assert encoder.transform(FRAME) == ba.encode(FRAME, bins=2)
    assert ba.CategoryEncoder(without="day").fit(frame).transform(frame).columns[-1] == "id=id 9"
    with pytest.warns(InputWarning, match="ignored 1 column that the model was not fitted on: 'other'"):
        encoder.transform(frame | {"other": [1] * 40})
    with pytest.raises(ba.InputError, match='without="week": there is no such column'):
        encoder.set_params(without="week").fit(frame)


@pytest.mark.parametrize("container", [dict, "pandas"])
def test_pipelines(container):
    frame = pytest.importorskip("pandas").DataFrame(FRAME) if container == "pandas" else FRAME
    model = ba.BinaryDictionaryLearning(2, algebra="or", search="paper", random_state=0)
    pipeline = make_pipeline(ba.CategoryEncoder(bins=2), clone(model)).fit(frame)
    model.fit(ba.encode(frame, bins=2))
    np.testing.assert_array_equal(pipeline.transform(frame), model.transform(frame))
    assert ba.Encoding.of(pipeline[-1]) == pipeline[0].encoding_


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_output_may_be_data_frames(library):
    pytest.importorskip(library)
    encoder = clone(ba.CategoryEncoder(bins=2).set_output(transform=library)).set_output()
    for frame in (encoder.fit_transform(FRAME), encoder.transform(FRAME)):
        assert type(frame).__module__.startswith(library)
        assert ba.Table.from_any(frame).bits == ba.encode(FRAME, bins=2).bits
        assert list(frame.columns) == list(encoder.get_feature_names_out())
    complete = encoder.transform({"colour": ["red"], "age": [20]})
    assert ba.Table.from_any(complete).bits == encoder.set_output(transform="default").transform(FRAME).bits[:1]
    with pytest.raises(ValueError, match='transform="numpy" is not one of default, pandas, polars'):
        encoder.set_output(transform="numpy")


@pytest.mark.parametrize("has_sparse", [False, True])
def test_other_transformers_are_put_beside_it(has_sparse):
    """As arrays, in which unknown cells are NaN, or sparse ones, with the names of both."""
    frame = pytest.importorskip("pandas").DataFrame(FRAME)
    expected = ba.encode(FRAME, bins=2)
    encoder, other = ba.CategoryEncoder(bins=2), OneHotEncoder(sparse_output=has_sparse)
    columns = ColumnTransformer([("own", encoder, ["colour", "age"]), ("one", other, ["age"])], sparse_threshold=1)
    for both in (columns, FeatureUnion([("own", encoder), ("one", other)])):
        found = both.fit_transform(frame)
        assert issparse(found) == has_sparse
        dense = found.toarray() if has_sparse else found
        np.testing.assert_array_equal(dense[:, : expected.shape[1]], expected.to_dense(float))
        assert list(both.get_feature_names_out())[: expected.shape[1]] == [f"own__{name}" for name in expected.columns]
    np.testing.assert_array_equal(np.hstack([expected, [[2]] * 40])[:, :-1], expected.to_dense(float))


def test_data_frames_keep_their_index_in_pipelines_of_scikit_learn():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(FRAME).assign(size=1.5).set_index(pd.Index(range(5, 45)))
    encoder, imputer = ba.CategoryEncoder(bins=2), SimpleImputer(strategy="most_frequent")
    columns = ColumnTransformer([("encoded", encoder, ["colour", "age"])], remainder="passthrough")
    found = make_pipeline(columns, imputer).set_output(transform="pandas").fit_transform(frame)
    assert found.index.equals(frame.index)
    assert list(found.columns)[-2:] == ["encoded__age=51", "remainder__size"]
    with config_context(transform_output="pandas"):
        assert clone(encoder).fit_transform(frame).index.equals(frame.index)
