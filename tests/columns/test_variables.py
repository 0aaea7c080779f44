"""Variables: quantile bins and categories against slow reference implementations, and their annotations."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from bitatoms.columns.annotations import Annotations, Labels
from bitatoms.columns.encoding import ColumnTies
from bitatoms.columns.table import Header
from bitatoms.columns.variables import (
    MISSING,
    UNSEEN,
    Variable,
    column_data,
    learned_variable,
    quantile_edges,
    shortest_between,
    summarized,
    variables_of,
)
from bitatoms.errors import InputError, InputWarning

NUMBERS = st.integers(-30, 30) | st.floats(-1e6, 1e6).map(lambda number: round(number, 3))
INF = math.inf


@settings(max_examples=50, deadline=None)
@given(st.lists(NUMBERS, min_size=1, max_size=40), st.integers(1, 7))
def test_bins_are_those_of_the_reference(numbers, bins):
    edges = quantile_edges(*np.unique(np.array(numbers, float), return_counts=True), bins)
    assert list(edges) == naive.quantile_edges([float(number) for number in numbers], bins)
    for lower, upper in zip((-INF, *edges), (*edges, INF), strict=True):
        assert any(lower <= number < upper for number in numbers)  # no bin is empty


@settings(max_examples=50, deadline=None)
@given(*[st.floats(-1e9, 1e9).map(lambda number: round(number, 6))] * 2)
def test_an_edge_has_the_fewest_digits(first, second):
    lower, upper = sorted((first, second))
    if lower < upper:
        assert shortest_between(lower, upper) == naive.shortest_between(lower, upper)


CASES = {  # values and how they are to be taken, and the names of the columns
    "text": (["red", "blue", "red"], "auto", ("v=blue", "v=red")),
    "text with blanks": (["a ", "a", " ", None], "auto", ("v=a",)),
    "yes and no": (["yes", "No", "no"], "auto", ("v",)),
    "only yes": (["yes", "yes"], "auto", ("v=yes",)),
    "0 and 1": ([0.0, 1.0, np.nan], "auto", ("v",)),
    "booleans": ([True, False], "auto", ("v",)),
    "booleans as categories": ([True, False], "category", ("v=0", "v=1")),
    "few integers": ([1, 2, 3] * 3, "auto", ("v=1", "v=2", "v=3")),
    "few integers as floats": ([1.0, 2.0, np.nan] * 3, "auto", ("v=1", "v=2")),
    "few integers as numbers": ([1, 2, 3, 4] * 3, "number", ("v<2", "2<=v<3", "3<=v<4", "v>=4")),
    "many integers": (list(range(20, 60)), "auto", ("v<30", "30<=v<40", "40<=v<50", "v>=50")),
    "large integers": ([2**53, 2**53 + 1, 2**60, 2**60 + 1], "number", ("v<1e+18", "v>=1e+18")),
    "many integers as categories": ([7, 5, 12], "category", ("v=5", "v=7", "v=12")),
    "few fractions": ([0.5, 1.5, 2.5, 3.5] * 9, "auto", ("v<1", "1<=v<2", "2<=v<3", "v>=3")),
    "one number": ([2.5, 2.5], "auto", ("v=2.5",)),
    "text of numbers": (["10", "2"], "auto", ("v=10", "v=2")),
    "text as numbers": (["1", "2.5", "9"], "number", ("v<2", "2<=v<9", "v>=9")),
}


def values_of(given):
    """Return values as they are given for columns of these types."""
    return Labels.of(given) if any(isinstance(value, str) for value in given) else np.array(given)


@pytest.mark.parametrize("case", CASES)
def test_kinds_of_variables(case):
    given, how, columns = CASES[case]
    variable = learned_variable("v", summarized(values_of(given)), 4, how)
    assert variable.columns == columns
    codes = variable.codes(values_of(given))
    is_known = np.array([value is not None and value == value and str(value).strip() != "" for value in given])
    np.testing.assert_array_equal(codes == MISSING, ~is_known)
    assert (codes[is_known] >= 0).all()


def test_categories_keep_their_order_and_list():
    sizes = Labels.of_categories([2, 0, -1], np.array(["S", "M", "L"], object), is_ordered=True)
    assert learned_variable("size", summarized(sizes), 4, "auto").values == ("S", "M", "L")
    marks = Labels.of_categories([0, 1], np.array([10, 9]))
    assert learned_variable("mark", summarized(marks), 4, "auto").values == ("10", "9")


ERRORS = {
    "names": (Labels.of([str(number) for number in range(101)]), "auto", "101 different texts in 101 rows"),
    "no number": (Labels.of(["1", "two"]), "number", "contains 'two', which is not a number"),
    "infinite": (np.array([1, np.inf]), "auto", "contains infinite numbers"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_values_that_are_no_variable(case):
    values, how, message = ERRORS[case]
    with pytest.raises(InputError, match=message):
        learned_variable("v", summarized(values), 4, how)
    if case == "names":
        assert learned_variable("v", summarized(values), 4, "category").n_columns == 101


def test_decimal_commas_are_noted():
    prices = summarized(Labels.of(["1,5", "2", "1,5"]))
    with pytest.warns(InputWarning, match="'1,5', which is read as categories; write numbers with a decimal point"):
        assert learned_variable("price", prices, 4, "auto").columns == ("price=1,5", "price=2")
    assert learned_variable("price", prices, 4, "category").n_columns == 2


BIN = Variable("age", "bin", bounds=((-INF, 30), (30, 45), (45, INF)))
VALUE = Variable("kids", "value", ("0", "1", "2"))
CATEGORY = Variable("colour", "category", ("blue", "red"))
BOOLEAN = Variable("smoker", "boolean")
GIVEN = {
    "numbers in bins": (BIN, np.array([29.9, 30, 45, np.nan]), [0, 1, 2, MISSING]),
    "text in bins": (BIN, Labels.of(["29", " 30 ", None, ""]), [0, 1, MISSING, MISSING]),
    "infinite numbers in bins": (BIN, np.array([-INF, INF]), [0, 2]),
    "names of bins": (BIN, Labels.of(["age<30", "age>=45"]), [0, 2]),
    "booleans in bins": (BIN, np.array([True]), [0]),
    "numbers as values": (VALUE, np.array([1.0, 7.0, np.nan]), [1, UNSEEN, MISSING]),
    "text as values": (VALUE, Labels.of(["2", "2.0", "two"]), [2, 2, UNSEEN]),
    "unseen categories": (CATEGORY, Labels.of(["red", "pink", "Red"]), [1, UNSEEN, UNSEEN]),
    "masked": (VALUE, np.ma.MaskedArray([1, 0], [False, True]), [1, MISSING]),
    "words": (BOOLEAN, Labels.of(["YES", "f", "1", "0.0", None]), [1, 0, 1, 0, MISSING]),
    "no values": (BIN, np.array([]), []),
}


@pytest.mark.parametrize("case", GIVEN)
def test_codes_of_values(case):
    variable, given, expected = GIVEN[case]
    assert variable.codes(given).tolist() == expected


@pytest.mark.parametrize(
    ("variable", "given", "found"),
    [
        (BIN, Labels.of(["old"]), "contains text, such as 'old', but it was encoded from numbers"),
        (BOOLEAN, Labels.of(["perhaps"]), "contains 'perhaps', but it was encoded from 0 and 1, or yes and no"),
        (BOOLEAN, np.array([0, 2]), "contains 2, but it was encoded from 0 and 1"),
        (CATEGORY, np.array([3, 4]), "contains numbers, such as 3, but it was encoded from text, such as 'blue'"),
    ],
)
def test_values_of_another_type(variable, given, found):
    with pytest.raises(InputError, match=found):
        variable.codes(given, "new.csv")


def test_decoded_values():
    assert BIN.decoded([2, MISSING]) == ["age>=45", None]
    assert VALUE.decoded([2, 0]) == [2, 0]
    assert Variable("x", "value", ("0.5", "-3")).decoded([0, 1]) == [0.5, -3]
    assert CATEGORY.decoded([1]) == ["red"]
    assert BOOLEAN.decoded([1, 0, MISSING]) == [True, False, None]


def test_variables_are_found_in_annotations_of_any_order():
    data = column_data([BIN, BOOLEAN, CATEGORY, VALUE])
    assert [variable for variable, _ in variables_of(Header(data.n, data=data))] == [BIN, BOOLEAN, CATEGORY, VALUE]
    shuffled = data.take([8, 0, 3, 5, 2, 4, 7, 6, 1])
    found = {
        variable.name: (variable, indices.tolist()) for variable, indices in variables_of(Header(9, data=shuffled))
    }
    assert found["colour"] == (Variable("colour", "category", ("red", "blue")), [3, 5])
    ties = ColumnTies.of(Header(9, data=shuffled))
    assert [groups.tolist() for groups in ties.exclusive] == [[[3, 5]], [[0, 6, 7], [1, 4, 8]]]
    assert ties.first.tolist() == [0, 1, 2, 3, 1, 3, 0, 0, 1]
    assert ColumnTies.of(Header(3, data=data.take([0, 2, 3]))).exclusive == ()  # a bin is left out


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": ["bin", "bin", "category", "boolean"]},
        {"kind": ["bin", "bin", "bin", "other"]},
        {"upper": np.array([1.0, np.nan, 3, 4])},
        {"lower": Labels.of(["a", "b", "c", "d"])},
        {"variable": ["age", "age", "smoker", "smoker"], "kind": ["bin", "bin", "boolean", "boolean"]},
        {"kind": ["value"] * 4},
        {"kind": ["category"] * 4},
    ],
)
def test_malformed_annotations_are_ignored(changes):
    assert variables_of(Header(4, data=column_data([BIN, BOOLEAN]).updated(**changes))) == []
    assert variables_of(Header(1)) == variables_of(Header(1, data=Annotations({"variable": ["a"]}, 1))) == []
