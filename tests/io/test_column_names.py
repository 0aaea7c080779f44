"""Names of numbered items and columns, from a file or a mapping."""

import pytest

import bitatoms as ba
from bitatoms.errors import InputWarning
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
