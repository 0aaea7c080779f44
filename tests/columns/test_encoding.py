"""Tables of categories and numbers as tables of 0 and 1: containers, new rows, models, and back."""

import datetime
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bitatoms as ba
import naive
from bitatoms.columns.annotations import Annotations
from bitatoms.errors import InputWarning
from bitatoms.estimators import BinaryDictionaryLearning, BinaryImputer

pytestmark = pytest.mark.usefixtures("few_trials")

FRAME = {
    "colour": ["red", "blue", None, "red", "green", "blue"] * 10,
    "age": [25, 31, 44, None, 62, 58] * 10,
    "income": [1.5, 2.5, np.nan, 7.25, 9.0, 3.0] * 10,
    "smoker": [True, False, None, True, False, False] * 10,
    "kids": [0, 3, 2, 2, 0, 3] * 10,
}
COLUMNS = (
    "colour=blue", "colour=green", "colour=red", "age<40", "age>=40", "income<3", "income>=3", "smoker", "kids=0",
    "kids=2", "kids=3",
)  # fmt: skip


NAN = np.nan
BITS = [
    [0, 0, 1, 1, 0, 1, 0, 1, 1, 0, 0],
    [1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1],
    [NAN, NAN, NAN, 0, 1, NAN, NAN, NAN, 0, 1, 0],
    [0, 0, 1, NAN, NAN, 0, 1, 1, 0, 1, 0],
    [0, 1, 0, 0, 1, 0, 1, 0, 1, 0, 0],
    [1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1],
] * 10


def as_pandas(frame):
    return pytest.importorskip("pandas").DataFrame(frame)


def as_nullable(frame):
    return as_pandas(frame).convert_dtypes()


def as_polars(frame):
    return pytest.importorskip("polars").DataFrame(frame, strict=False)


def as_arrow(frame):
    return pytest.importorskip("pyarrow").table(frame)


def as_records(frame):
    return np.array(list(zip(*frame.values(), strict=True)), [(name, object) for name in frame])


CONTAINERS = (dict, as_pandas, as_nullable, as_polars, as_arrow, as_records)


@pytest.mark.parametrize("container", CONTAINERS)
def test_frames_of_all_kinds_give_the_same_table(container):
    frame = {name: [None if value != value else value for value in values] for name, values in FRAME.items()}
    table = ba.encode(container(frame), bins=2, as_number=["age"])
    assert table.columns == COLUMNS
    np.testing.assert_array_equal(table.to_dense(float), BITS)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_encoded_rows_are_those_of_the_reference(data):
    n = data.draw(st.sampled_from((1, 2, 63, 64, 65, 130)))
    texts = data.draw(st.lists(st.sampled_from(("a", "b", "c", None)), min_size=n, max_size=n))
    numbers = data.draw(st.lists(st.integers(-50, 50) | st.none(), min_size=n, max_size=n))
    if not any(text is not None for text in texts) or not any(number is not None for number in numbers):
        return
    table = ba.encode({"text": texts, "number": numbers}, as_number="number", bins=3)
    known = [number for number in numbers if number is not None]
    edges = [-np.inf, *naive.quantile_edges([float(number) for number in known], 3), np.inf]
    pairs = list(itertools.pairwise(edges))
    values = sorted({text for text in texts if text is not None})
    rows = [
        naive.one_hot(texts, [lambda text, own=own: text == own for own in values]),
        naive.one_hot(numbers, [lambda number, each=each: each[0] <= number < each[1] for each in pairs]),
    ]
    np.testing.assert_array_equal(table.to_dense(float), np.hstack([np.array(part, float) for part in rows]))
    encoding = ba.Encoding.of(table)
    assert encoding.apply({"number": numbers, "text": texts}) == table
    assert encoding.decode(table)["text"] == texts
    of_bins = dict(zip(encoding.variables[1].columns, pairs, strict=True))
    for number, name in zip(numbers, encoding.decode(table)["number"], strict=True):
        if number is None or len(edges) == 2:
            assert name == number
        else:
            assert of_bins[name][0] <= number < of_bins[name][1]


def test_the_order_of_categories_and_row_names_are_kept():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    sizes = pd.Categorical(["L", "S", None], ["S", "M", "L"], ordered=True)
    table = ba.encode(pd.DataFrame({"size": sizes, 7: [0.5, 1.5, 2.5]}, index=["ann", "bob", "cyd"]), bins=2)
    assert table.row_names == ("ann", "bob", "cyd")
    assert table.columns == ("size=S", "size=M", "size=L", "7<1", "7>=1")
    frame = pl.DataFrame({"size": pl.Series(["L", "S", None], dtype=pl.Enum(["S", "M", "L"]))})
    assert ba.encode(frame).columns == ("size=S", "size=M", "size=L")


DAY, TIME = datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1)
DATES = "contains dates or times"
BAD_FRAMES = [
    (lambda: {"when": [DAY]}, {}, DATES),
    (lambda: {"when": np.array(["2020-01-01"], "datetime64[D]")}, {}, DATES),
    (lambda: as_pandas({"when": [TIME]}), {}, DATES),
    (lambda: as_pandas({"when": [TIME]}).astype("period[D]").astype("category"), {}, DATES),
    (lambda: as_pandas({"when": [DAY]}).astype("category"), {}, DATES),
    (lambda: as_polars({"when": [TIME]}), {}, DATES),
    (lambda: {"a": ["x", "y"], "b": ["x"]}, {}, "'a' has 2 values and the column 'b' 1"),
    (lambda: {"a": np.zeros((2, 2))}, {}, r"has shape \(2, 2\)"),
    (lambda: as_pandas({"a": ["x"], "b": ["y"]}).set_axis(["a", "a"], axis=1), {}, "two columns have the name 'a'"),
    (lambda: FRAME, {"without": "colr"}, 'without="colr": there is no such column; the columns are'),
    (lambda: FRAME, {"as_number": "colr"}, 'as_number="colr": there is no such column'),
    (lambda: FRAME, {"as_number": "age", "as_category": "age"}, "cannot be both categories and numbers"),
    (lambda: FRAME, {"bins": 1}, "bins must be at least 2"),
]


@pytest.mark.parametrize(("frame", "how", "message"), BAD_FRAMES)
def test_frames_and_arguments_that_cannot_be_encoded(frame, how, message):
    with pytest.raises(ba.InputError, match=message):
        ba.encode(frame(), **how)


def test_arrays_and_columns_without_values():
    with pytest.raises(TypeError, match="must have named columns, got ndarray"):
        ba.encode(np.zeros((2, 2)))
    with pytest.warns(InputWarning, match="left out 1 column without values: 'empty'"):
        assert ba.encode({"empty": [None, ""], "a": ["x", "y"]}).columns == ("a=x", "a=y")


def test_an_encoding_is_that_of_its_table():
    table = ba.encode(FRAME)
    encoding = ba.Encoding.of(table)
    assert encoding == ba.Encoding.of(table.with_bits(table.bits))
    assert hash(encoding) == hash(ba.Encoding.of(table))
    assert encoding != ba.Encoding.of(ba.encode(FRAME, bins=2))
    about = Annotations({"variable": ["a"], "value": ["b"]}, 1)
    for other in (ba.Table.from_any([[0, 1]]), ba.Table(ba.BitMatrix.from_dense([[1]]), column_data=about)):
        assert ba.Encoding.of(other) is None
    assert "colour (3 values)" in repr(encoding)


def test_absent_ignored_missing_and_unseen_values():
    encoding = ba.Encoding.of(ba.encode({"a": ["x", "y"], "b": ["u", "v"]}))
    with pytest.raises(ba.InputError, match=r"lacks columns that the model was fitted on: 'b'.*absent="):
        encoding.apply({"a": ["x"]})
    with pytest.warns(InputWarning, match="1 absent column is unknown: 'b'"):
        np.testing.assert_array_equal(
            encoding.apply({"a": ["x"]}, absent="unknown").to_dense(float), [[1, 0, np.nan, np.nan]]
        )
    with pytest.warns(InputWarning, match="1 absent column is unknown: 'b'"):
        both = encoding.apply({"a": [None, "x"]}, absent="unknown", missing="zero")
    np.testing.assert_array_equal(both.to_dense(float), [[0, 0, np.nan, np.nan], [1, 0, np.nan, np.nan]])
    with pytest.warns(InputWarning, match="ignored 1 column that the model was not fitted on: 'c'"):
        encoding.apply({"a": ["x"], "b": ["u"], "c": [1]})
    rows = {"a": ["x", "z", "z"], "b": ["u", None, "v"]}
    with pytest.warns(InputWarning, match=r"2 values did not occur .* a \(2, such as 'z'\)"):
        made = encoding.apply(rows, missing="zero")
    assert made.to_dense().tolist() == [[1, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 1]]
    with pytest.warns(InputWarning), pytest.raises(ba.InputError, match="values of the column 'b' are missing; fill"):
        encoding.apply(rows, missing="refuse")
    dates = {"a": [datetime.date(2020, 1, 1)], "b": ["u"]}
    with pytest.raises(ba.InputError, match=r"'a' contains dates or times, but it was encoded from text, such as 'x'"):
        encoding.apply(dates)


@pytest.fixture(scope="module")
def shop():
    """A frame in which young customers buy small and red, and others large, blue or green; a model of it."""
    random = np.random.default_rng(0)
    is_young = random.random(240) < 0.5
    frame = {
        "colour": np.where(is_young, "red", random.choice(["blue", "green"], 240)).tolist(),
        "size": np.where(is_young, "S", "L").tolist(),
        "age": np.where(is_young, random.integers(18, 30, 240), random.integers(40, 80, 240)).tolist(),
    }
    return frame, BinaryDictionaryLearning(4, algebra="or", random_state=0).fit(ba.encode(frame))


def part(frame, rows):
    return {name: values[rows] for name, values in frame.items()}


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_model_encodes_new_rows(shop, container):
    frame, model = shop
    rows = part(frame, slice(20))
    other_order = {name: rows[name] for name in ("age", "colour", "size")}
    encoded = ba.Encoding.of(model).apply(rows)
    np.testing.assert_array_equal(model.transform(container(other_order)), model.transform(encoded))
    np.testing.assert_array_equal(model.score_samples(container(other_order)), model.score_samples(encoded))


def test_a_saved_model_encodes_new_rows(shop, tmp_path):
    frame, model = shop
    model.save(tmp_path / "model.npz")
    again = ba.load(tmp_path / "model.npz")
    assert ba.Encoding.of(again) == ba.Encoding.of(model)
    np.testing.assert_array_equal(again.transform(frame), model.transform(frame))
    encoded = ba.Encoding.of(model).apply(frame)  # is matched by its columns
    np.testing.assert_array_equal(model.transform(encoded.to_pandas()), model.transform(frame))
    assert any({"colour=red", "size=S"} <= set(pattern.features) for pattern in again.patterns())


def test_completion_gives_exactly_one_value_per_variable(shop):
    frame, model = shop
    rows, encoding = part(frame, slice(60)), ba.Encoding.of(model)
    rows["colour"] = [None if row % 3 == 0 else value for row, value in enumerate(rows["colour"])]
    rows["age"] = [None if row % 4 == 0 else value for row, value in enumerate(rows["age"])]
    encoded = encoding.apply(rows)
    imputer = BinaryImputer(algebra="xor", method="neighbours", random_state=0).fit(ba.encode(frame))
    for completed in (model.complete(encoded), encoded.with_bits(ba.BitMatrix.from_dense(imputer.transform(encoded)))):
        decoded = encoding.decode(completed)
        assert None not in decoded["colour"] + decoded["age"]
        assert decoded["size"] == rows["size"]
        colours = zip(rows["colour"], decoded["colour"], decoded["size"], strict=True)
        # The size, which is known, decides whether a colour is red.
        assert all(given in (own, None) and (own == "red") == (size == "S") for given, own, size in colours)


def test_rows_with_no_value_or_several_are_decoded_as_none():
    encoding = ba.Encoding.of(ba.encode({"a": ["x", "y"], "b": [True, False]}))
    bits = ba.BitMatrix.from_dense([[1, 1, 0], [0, 0, 1], [0, 1, np.nan]], missing="unknown")
    table = ba.Table(bits, columns=encoding.columns)
    expected = {"a": [None, None, "y"], "b": [False, True, None]}
    for each in (table, bits, bits.to_dense(float), table.to_pandas().iloc[:, ::-1]):
        assert encoding.decode(each) == expected
    with pytest.raises(ValueError, match="2 columns"):
        encoding.decode(np.zeros((3, 2)))


def test_decoding_keeps_known_values_of_the_original():
    table = ba.encode(FRAME, bins=2)
    encoding, zeros = ba.Encoding.of(table), table.with_bits(ba.BitMatrix.zeros(*table.shape))
    for original in (FRAME, pytest.importorskip("pandas").DataFrame(FRAME)):
        decoded = encoding.decode(table.with_bits(table.bits.filled()), original)
        assert decoded["age"][:6] == [25, 31, 44, None, 62, 58]
        assert decoded["income"][:6] == [1.5, 2.5, None, 7.25, 9.0, 3.0]
        assert decoded["smoker"][:2] == [True, False]
    assert encoding.decode(zeros, {"colour": ["gold", " "] * 30})["colour"][:2] == ["gold", None]
    assert encoding.decode(zeros, {"colour": ["gold", " "] * 30})["age"] == [None] * 60
    with pytest.raises(ba.InputError, match="'age' of original has 1 values, but the table has 60 rows"):
        encoding.decode(table, {"age": [1]})
    survey = {"pet": ["True", "False", None, "False"], "dose": ["3.0", " 1", "1", None], "size": [2.0, 1.0, 2.0, None]}
    encoding = ba.Encoding.of(ba.encode({"pet": survey["pet"], "dose": [3, 1, 1, 3], "size": [2, 1, 2, 1]}))
    filled = ba.BitMatrix.from_dense([[0, 1, 0, 1, 0], [0, 1, 0, 1, 0], [1, 1, 0, 1, 0], [1, 0, 1, 1, 0]])
    for original in (survey, as_pandas(survey)):
        decoded = encoding.decode(filled, original)
        assert decoded["pet"] == ["True", "False", "True", "False"]
        assert decoded["dose"] == ["3.0", " 1", "1", "3.0"]
        assert list(map(str, decoded["size"])) == ["2.0", "1.0", "2.0", "1.0"]


def test_an_encoding_of_many_variables_is_described_in_one_line():
    frame = {f"{'very ' * 20}long {n}": ["a", "b", "a", "b"] for n in range(300)}
    frame |= {"age": [1.5, 2.5, 3.5, 4.5], "is": [0, 1, 1, 0]}
    many = ba.Encoding.of(ba.encode(frame, bins=2)).described()
    assert many.startswith("302 variables as 603 columns (300 categories, 1 in bins, 1 yes or no): very very")
    assert many.endswith("... (2 values) and 297 more")


def test_copies_of_alleles_are_encoded_variables():
    frame = as_pandas({"rs1": [0, 1, None], "rs2": [2, 0, 1]})
    table = ba.Table.from_any(frame, dosage=True)
    encoding = ba.Encoding.of(table)
    assert [variable.kind for variable in encoding.variables] == ["copies", "copies"]
    assert encoding.columns == table.columns
    assert repr(encoding) == "Encoding(rs1 (0, 1 or 2 copies), rs2 (0, 1 or 2 copies))"
    assert encoding.decode(table) == {"rs1": [0, 1, None], "rs2": [2, 0, 1]}
    assert encoding.apply(frame.iloc[:, ::-1]) == table
    filled = table.with_bits(table.bits.filled())
    assert encoding.decode(filled, {"rs1": [0.25, "1", None]}) == {"rs1": [0.25, "1", 0], "rs2": [2, 0, 1]}
    with pytest.raises(ba.InputError, match="'rs1' contains 3, but it was encoded from the numbers 0, 1 and 2"):
        encoding.decode(filled, {"rs1": [3, 0, 0]})
