"""Tables of categories in text files and sheets: types of columns, missing words, row names, models."""

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.errors import InputWarning
from bitatoms.io.api import read_matching
from bitatoms.io.formats import categories
from bitatoms.io.options import ReadOptions
from support.files import assert_read_error

pytestmark = pytest.mark.usefixtures("few_trials")
TEXT = "customer,colour,age,member,kids\n" + "".join(
    f"c{row},{('red', 'blue', 'none')[row % 3]},{20 + row},{('yes', 'no')[row % 2]},{row % 4}\n" for row in range(40)
)
COLUMNS = (
    "colour=blue", "colour=none", "colour=red", "age<30", "30<=age<40", "40<=age<50", "age>=50", "member", "kids=0",
    "kids=1", "kids=2", "kids=3",
)  # fmt: skip


def as_sheet(tmp_path, text):
    """Write the cells of a text to a sheet: numbers as numbers, other cells as text."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for line in text.splitlines():
        book.active.append([float(cell) if cell.isdecimal() else cell or None for cell in line.split(",")])
    book.save(tmp_path / "table.xlsx")
    return tmp_path / "table.xlsx"


@pytest.mark.parametrize("kind", ["csv", "tsv", "xlsx"])
def test_a_file_is_encoded_as_its_frame_is(file, tmp_path, kind):
    text = TEXT if kind == "csv" else TEXT.replace(",", "\t")
    table = ba.read(as_sheet(tmp_path, TEXT) if kind == "xlsx" else file(text, f"table.{kind}"), categories=True)
    assert table.columns == COLUMNS
    assert table.row_names == tuple(f"c{row}" for row in range(40))
    _, colour, age, member, kids = zip(*(line.split(",") for line in TEXT.splitlines()[1:]), strict=True)
    frame = {"colour": list(colour), "age": list(map(int, age)), "member": [word == "yes" for word in member]}
    encoded = ba.encode(frame | {"kids": list(map(int, kids))})
    assert table.bits == encoded.bits
    assert ba.Encoding.of(table) == ba.Encoding.of(encoded)


@pytest.mark.parametrize("chunk_rows", [1, 7, 39, 40])
def test_files_are_read_in_chunks(file, tmp_path, monkeypatch, chunk_rows):
    expected = ba.read(file(TEXT), categories=True)
    monkeypatch.setattr(categories, "MAX_CHUNK_ROWS", chunk_rows)
    assert ba.read(file(TEXT), categories=True) == expected
    store = ba.pack(file(TEXT), tmp_path / "table.zarr", categories=True)
    assert ba.Encoding.of(store) == ba.Encoding.of(expected)
    assert ba.read(tmp_path / "table.zarr") == expected


@pytest.mark.parametrize("most", [5, 30])
def test_columns_of_many_numbers_are_counted_as_numbers(file, monkeypatch, most):
    expected = ba.read(file(TEXT), categories=True)
    monkeypatch.setattr(categories, "MAX_CATEGORIES", most)
    monkeypatch.setattr(categories, "MAX_CHUNK_ROWS", 8)
    assert ba.read(file(TEXT), categories=True) == expected
    problem = "'age' contains numbers and 'old'" if most == 30 else "'age' has more than 5 different texts"
    assert_read_error(file(TEXT.replace(",59,", ",old,")), problem, categories=True)
    texts = file("a,b\n" + "".join(f"x{row},t{row}\n" for row in range(40)))
    assert_read_error(texts, f"more than {most} different texts", 'without="b"', categories=True)


def test_missing_words_are_unknown_in_all_columns_of_the_variable(file):
    path = file("colour,age\nred,20\n,30\nNA,?\nred,n/a\nblue,40\nred,50\n")
    with pytest.warns(InputWarning, match="4 missing values are read as unknown cells"):
        table = ba.read(path, categories=True, bins=2)
    assert table.columns == ("colour=blue", "colour=red", "age<40", "age>=40")
    unknown = table.bits.unknown.to_dense().tolist()
    assert unknown == [[0, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert ba.read(path, categories=True, missing="zero").bits.n_unknown == 0
    assert_read_error(path, "4 values are missing, the first at line 3", categories=True, missing="refuse")


ROW_NAMES = {  # files, whether the first column names the rows
    "blank header": (",a\n1,x\n1,y\n", True),
    "different texts": ("who,a\nann,x\nbob,x\n", True),
    "equal texts": ("who,a\nann,x\nann,y\n", False),
    "different numbers": ("price,a\n1.5,x\n2.5,y\n", False),
    "an identifier": ("customer_id,a\n17,x\n18,y\n", True),
    "an identifier that comes back": ("customer_id,a\n17,x\n17,y\n", False),
    "an identifier with capitals": ("PassengerId,a\n17,x\n18,y\n", True),
    "an identifier of rows": ("orderid,a\n17,x\n18,y\n", True),
    "a word that ends like an identifier": ("paid,a\n17,x\n18,y\n", False),
    "one column": ("a\nx\ny\n", False),
}


@pytest.mark.parametrize("case", ROW_NAMES)
def test_row_names(file, case):
    text, has_names = ROW_NAMES[case]
    assert (ba.read(file(text), categories=True).row_names is not None) == has_names
    if case != "blank header":
        assert ba.read(file(text), categories=True, row_names=False).row_names is None


def test_types_of_columns_can_be_chosen(file):
    path = file("zip,mark,b\n" + "01234,1,x\n1234,2,y\n10115,3,x\n" * 3)
    table = ba.read(path, categories=True, as_category="zip", as_number=["mark"], bins=3, without="b")
    assert table.columns == ("zip=01234", "zip=10115", "zip=1234", "mark<2", "2<=mark<3", "mark>=3")
    assert_read_error(path, 'as_number="b"', "'x', which is not a number", categories=True, as_number="b")
    assert_read_error(path, "bins requires categories=True", bins=3)
    for name, value in (("long", "zip,b"), ("binarize", 3)):
        assert_read_error(path, f"categories=True cannot be combined with {name}", categories=True, **{name: value})


def test_a_file_without_header(file):
    path = file("x,3\ny,4\nx,5\ny,3\n" * 5)
    table = ba.read(path, categories=True)
    assert table.columns == ("1=x", "1=y", "2=3", "2=4", "2=5")
    assert len(table) == 20
    assert ba.read(path, categories=True, header=False) == table
    model = ba.BinaryDictionaryLearning(1, algebra="or", random_state=0).fit(table)
    np.testing.assert_array_equal(model.transform(path), model.transform(table))
    rows = "\n".join(",".join(map(str, row)) for row in table.to_dense().tolist())
    with pytest.warns(UserWarning, match="the columns of X have no names"):
        np.testing.assert_array_equal(model.transform(file(rows)), model.transform(table))


BAD = {
    "ragged": ("a,b\nx,1\ny\n", "line 3 has 1 cells; expected 2"),
    "unnamed": ("a,,b\nx,1,2\nx,1,3\n", "column 2 has no name"),
    "duplicate name": ("a,a\nx,1\ny,2\n", "columns 1 and 2 have the same name 'a'"),
    "duplicate encoding": ("a,a=b\nb=c,c\nd,c\nd,d\n", "'a' and 'a=b' would both be encoded as 'a=b=c'"),
    "empty": ("", "the file is empty"),
    "no values": ("a,b\n,NA\n,\n", "the table has no column with values"),
    "not UTF-8": (b"a,b\nK\xe4se,1\n", "line 2 is not UTF-8"),
    "unclosed quote": ('a,b\n"x,1\n', "quote"),
    "names": ("a,b\n" + "".join(f"x,t{row}\n" for row in range(150)), "has 150 different texts in 150 rows"),
}


def test_equal_names_are_numbered(file):
    table = ba.read(file("a,a\nx,x\ny,x\nx,y\n"), categories=True, duplicates="number")
    assert table.columns == ("a=x", "a=y", "a.2=x", "a.2=y")


@pytest.mark.parametrize("case", BAD)
@pytest.mark.filterwarnings("ignore::bitatoms.errors.InputWarning")  # of columns without values
def test_malformed_files(file, case):
    text, part = BAD[case]
    message = assert_read_error(file(text), part, categories=True)
    assert ("duplicates" in message) == (case == "duplicate name")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "table.csv"
    path.write_text(TEXT)
    return ba.BinaryDictionaryLearning(2, algebra="or", random_state=0).fit(ba.read(path, categories=True))


def test_a_model_reads_new_files(file, tmp_path, model):
    expected = model.transform(ba.read(file(TEXT), categories=True))
    np.testing.assert_array_equal(model.transform(file(TEXT)), expected)
    np.testing.assert_array_equal(model.transform(as_sheet(tmp_path, TEXT)), expected)
    lines = [line.split(",") for line in TEXT.splitlines()]
    other = file("\n".join(",".join((*line[:0:-1], "9")) for line in lines).replace(",9", ",more", 1))
    with pytest.warns(InputWarning, match="ignored 1 column that the model was not fitted on: 'more'"):
        np.testing.assert_array_equal(model.transform(other), expected)
    header, first, second, *_ = TEXT.splitlines()
    two = read_matching(file("\n".join((header, first, second))), model.as_model().header, ReadOptions())
    assert two.row_names == ("c0", "c1")
    with pytest.warns(InputWarning, match="ignored 1 column that the model was not fitted on: 'customer'"):
        equal = read_matching(file("\n".join((header, first, first))), model.as_model().header, ReadOptions())
    assert equal.row_names is None


def test_a_model_notes_unseen_and_absent_values(file, model):
    path = file("colour,age,member\nred,20,yes\npink,x,no\n")
    with pytest.warns(InputWarning), pytest.raises(ba.FileError, match="'age' contains text, such as 'x'"):
        model.transform(path)
    with (
        pytest.warns(InputWarning, match="1 absent column is unknown: 'kids'"),
        pytest.warns(InputWarning, match=r"1 value did not occur .* colour \(1, such as 'pink'\)"),
        pytest.warns(InputWarning, match="1 missing value is read as an unknown cell"),
    ):
        model.transform(file("colour,age,member\nred,20,yes\npink,,no\n"))
    with pytest.warns(InputWarning, match="10 absent columns are unknown"):
        assert len(model.transform(file("colour=red,colour=blue\n1,0\n"))) == 1
