"""Names of numbered items and columns, labels of rows, and several names in one cell."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bitatoms as ba
from bitatoms.errors import InputWarning
from bitatoms.io.labels.names import join_names, split_names
from bitatoms.io.labels.rows import read_group_labels
from support.files import assert_read_error


@pytest.fixture
def items(file):
    return file("1 2 5\n2 5\n1\n", "items.dat")


@pytest.mark.parametrize(
    "text",
    [
        "1,milk\n2,bread\n5,tea\n",
        'id,name,price\n5,tea,2\n1,milk,1\n2,"bread",3\n9,gin,9\n',
        "\ufeffnumber;name\n1; milk \n02;bread\n5;tea\n",
        "1,milk\n1,milk\n2,bread\n5,tea\n",
        {1: "milk", 2: "bread", 5: "tea"},
    ],
)
def test_numbered_items_get_names(file, items, text):
    table = ba.read(items, names=text if isinstance(text, dict) else file(text, "names.csv"))
    assert table.columns == ("milk", "bread", "tea")
    assert table.bits == ba.read(items).bits


@pytest.mark.parametrize("start", [0, 1])
def test_columns_without_names_are_numbered(file, start):
    path, names = file("1,0\n0,1\n"), file(f"{start},a\n{start + 1},b\n", "names.csv")
    assert ba.read(path, names=names).columns == ("a", "b")
    assert ba.read(path, names=names, transpose=True).row_names == ("a", "b")


def test_numbers_without_a_name_are_kept_with_a_note(file, items):
    with pytest.warns(InputWarning, match=r"2 columns keep their own name, because .*names\.csv has none: '2', '5'"):
        assert ba.read(items, names=file("1,milk\n", "names.csv")).columns == ("milk", "2", "5")


BAD = {
    "two names": ("1,milk\n1,tea\n", "line 2: the number 1 has two names, 'milk' and 'tea'"),
    "no number": ("1,milk\nx,tea\n", "line 2 contains 'x', 'tea'; expected a number and a name"),
    "no name": ("1,milk\n2\n", "line 2 contains '2'; expected a number and a name"),
    "negative": ("1,milk\n-2,tea\n", "line 2 contains '-2', 'tea'"),
    "empty": ("", "the file is empty"),
    "header only": ("id,name\n", "it contains no names"),
}


@pytest.mark.parametrize("case", BAD)
def test_malformed_files_of_names(file, items, case):
    text, part = BAD[case]
    assert_read_error(file(text, "names.csv"), part, read=lambda path: ba.read(items, names=path))


def test_names_that_do_not_fit(tmp_path, items):
    assert_read_error(items, "none of its columns ('1', '2', '5') is a number in names: '7'", names={7: "gin"})
    assert_read_error(items, "columns 1 and 2 have the same name 'milk'", names={1: "milk", 2: "milk", 5: "tea"})
    with pytest.raises(ba.FileError, match="there is no such file"):
        ba.read(items, names=tmp_path / "absent.csv")


# Labels of rows

NAMES = ("f1 ann", "bob", "cyd/1", "cyd/2")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sample,population\nann,north\nbob,south\ncyd,south\n", ["north", "south", "south", "south"]),
        ("f1 ann\tnorth\ncyd/2\tisland\n", ["north", None, None, "island"]),
        ("a\nb\nc\n\nd\n", ["a", "b", "c", "d"]),
        ("label\na\nb\nc\nd\n", ["a", "b", "c", "d"]),
        ("ann,x,north\nbob,y,\n", ["north", None, None, None]),
        ('"bob","south, west"\n', [None, "south, west", None, None]),
    ],
)
def test_labels_of_rows(tmp_path, text, expected):
    (tmp_path / "labels.csv").write_text(text)
    assert read_group_labels(tmp_path / "labels.csv", NAMES, 4) == expected


@pytest.mark.parametrize(
    ("text", "names", "message"),
    [
        ("a\nb\n", NAMES, "it has 2 labels for 4 rows"),
        ("zoe,north\n", NAMES, "none of its names is a row of the table: it has 'zoe', and the table 'f1 ann'"),
        ("ann,north\n", None, "the rows of the table have none"),
        ("", NAMES, "the file is empty"),
        (None, NAMES, "there is no such file"),
    ],
)
def test_malformed_labels(tmp_path, text, names, message):
    if text is not None:
        (tmp_path / "labels.csv").write_text(text)
    with pytest.raises(ba.FileError, match=message):
        read_group_labels(tmp_path / "labels.csv", names, 4)


# Several names in one cell


@given(st.lists(st.text(st.sampled_from('ab; "\n,\r'), min_size=1).map(str.strip).filter(bool), max_size=4))
def test_names_that_are_joined_are_split_into_the_same_names(names):
    assert split_names(join_names(names)) == tuple(names)


def test_only_names_that_would_be_ambiguous_are_quoted():
    assert (
        join_names(["milk, fat", 'a 3" pipe', "tea;green", '"x" y']) == 'milk, fat; a 3" pipe; "tea;green"; """x"" y"'
    )
    assert split_names(" tea ;; jam; ") == ("tea", "jam")
    assert split_names(" ") == ()
