"""CSV and TSV files: round trips, detection of the layout, malformed files."""

import gzip
import warnings

import pytest

import bitatoms as ba
from support.files import assert_read_error

ANN = ba.Table(ba.BitMatrix.from_dense([[1, 0], [1, 1]]), ["ann", "bob"], ["milk", "bread"])


@pytest.mark.parametrize(
    "text",
    [
        "who,milk,bread\nann,1,0\nbob,1,1\n",
        ",milk,bread\nann,1,0\nbob,1,1",
        '"milk","bread"\n"ann",1,0\n"bob",1,1\n',  # as R writes it
        "who;milk;bread\r\nann;yes;no\r\nbob;YES;Yes\r\n",
        "who\tmilk\tbread\nann\ttrue\tfalse\nbob\tTRUE\tTrue\n",
        "who|milk|bread\nann|T|F\nbob|t|t\n",
        "who,milk,bread\nann, 1 ,0.0\n\nbob,1.0,1\n",
        b"\xef\xbb\xbfwho,milk,bread\nann,1,0\nbob,1,1\n",
        gzip.compress(b"who,milk,bread\nann,1,0\nbob,1,1\n", mtime=0),
        "who,milk,bread,\nann,1,0,\nbob,1,1,\n",  # separators at the ends of lines
        "who,milk,bread\nann,1,0,\nbob,1,1,\n",
        "who;milk;bread\nann;x;-;\nbob;x;x;\n",
        "sep=;\nwho;milk;bread\nann;1;0\nbob;1;1\n",  # as Excel writes it
        "who, milk ,bread \n ann ,1,0\nbob,1,1\n",
        '"who", "milk",bread \nann,1,0\n "bob",1,1\n',
    ],
)
def test_names_separators_and_words_are_detected(file, text):
    assert ba.read(file(text)) == ANN


@pytest.mark.parametrize(
    ("text", "shape", "has_names"),
    [
        ("1,0\n0,1\n", (2, 2), (False, False)),
        ("milk,bread\n1,0\n", (1, 2), (False, True)),
        ("ann,1,0\nbob,0,1\n", (2, 2), (True, False)),
        ("id,milk\n1,0\n2,1\n3,1\n", (3, 1), (True, True)),  # distinct numbers that are no bits
        ("milk\n1\n0\n", (2, 1), (False, True)),
        ("milk,bread\n", (0, 2), (False, True)),
        (",milk,bread\n", (0, 2), (False, True)),
        ("1\n", (1, 1), (False, False)),
        ('"1","0"\n', (0, 2), (False, True)),  # only names are quoted
        ('"0","1"\n"ann",1,0\n"bob",0,1\n', (2, 2), (True, True)),  # as R writes it
        ('"x","yes"\n"x",\n', (2, 2), (False, False)),  # text is quoted
        ("a,b\nx,x,\nx,-,\n", (2, 2), (False, True)),  # R omits the header cell of row names, but lines end in a comma
    ],
)
@pytest.mark.filterwarnings("ignore:.*blank cell is read as 0:bitatoms.errors.InputWarning")
def test_header_and_row_names_are_detected(file, text, shape, has_names):
    table = ba.read(file(text))
    assert table.shape == shape
    assert (table.row_names is not None, table.columns is not None) == has_names


NUMBERS_AS_NAMES = {  # a file, options, the cell that made its first column one of names, if that is noted
    "too large": ("a,b\n1e400,1\n1,0\n", {"binarize": 0}, "1e400"),
    "digits of another script": ("a,b\n2,1\n１,0\n", {"binarize": 0}, "１"),
    "decimal commas": ("a;b\n1,5;1\n2,5;0\n", {"binarize": 0}, "1,5"),
    "a typing error": ("a,b\n7,1\n3o,0\n", {"binarize": 0}, "3o"),
    "not ones and zeros": ("a,b\n1,0\n2,1\n", {}, "2"),
    "no header": ("7,0\n8,1\n", {}, "7"),
    "categories": ("a;b\n1,5;u\n2,5;v\n", {"categories": True}, "1,5"),
    "copies": ("a,b\n3,1\n1,0\n", {"dosage": True}, "3"),
    "names": ("who,a\nann,1\nbob,0\n", {}, None),
    "an identifier": ("id,a\n7,1\n8,0\n", {}, None),
    "no name": (",a\n7,1\n8,0\n", {}, None),
    "dates": ("when,a\n2020-01-01,1\n2020-01-02,0\n", {}, None),
}


@pytest.mark.parametrize("case", NUMBERS_AS_NAMES)
def test_numbers_that_are_read_as_row_names_are_noted(file, case):
    text, options, odd = NUMBERS_AS_NAMES[case]
    path, label = file(text), "1" if case == "no header" else "a"
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        assert ba.read(path, **options).row_names is not None
    expected = f"column '{label}' is read as row names, because its cells differ and one of them is {odd!r}; "
    assert [expected in str(note.message) for note in notes] == ([True] if odd else [])
    assert all("row_names=False reads it as a column of the table" in str(note.message) for note in notes)
    ba.read(path, row_names=True, **options)  # without a note, which would be an error


def test_options_override_detection(file):
    ones = file("1,0\n1,1\n")
    assert ba.read(ones, header=True).columns == ("1", "0")
    assert ba.read(ones, row_names=True).row_names == ("1", "1")
    assert ba.read(file("1 0\n1 1\n"), separator=" ").shape == (2, 2)
    assert ba.read(file("a,b\n1,0\n", "table.data"), "csv").columns == ("a", "b")
    assert ba.read(file("a,b,a,a.2\n1,0,1,0\n"), duplicates="number").columns == ("a", "b", "a.3", "a.2")


BAD = {  # a file, parts of the message, and options
    "blank lines": ("\n\n\n", "only blank lines"),
    "ragged": ("a,b\n1,0\n1\n", "line 3 has 1 cells; expected 2", 'format="baskets"'),
    "ragged, too long": ("a,b\n1,0\n1,0,1\n", "line 3 has 3 cells; expected 2"),
    "header too short": ("a,b,c\n1,0,1,1,1\n", "the first line has 3 cells and line 2 has 5"),
    "a title above the header": ("Sales\nid,a,b\nr1,0,1\n", "delete any lines above the header"),
    "unknown column": ("milk,b\n1,0\n", "there is no column 'mlik' (did you mean 'milk'?)", {"without": ["mlik"]}),
    "a separator of two characters": ('"a"::"b"\n1::0\n', "must be one character, got '::'", {"separator": "::"}),
    "not a number": ("a,b\n1,2\n3,much\n", "line 3, column 'b': 'much' is not a finite", {"binarize": 0}),
    "not a threshold": ("a,b\n0,2.5\n", "line 2, column 'b': 2.5 is neither 0 nor 1; pass binarize=0 to read"),
    "below names that span lines": ('a,b\n"one\ntwo\n3",1,0\n"4\n5",1,2\n', "line 6, column 'b': 2 is neither 0 nor 1"),
    "text": ("a,b\n1,0\n1,perhaps\n", "line 3, column 'b': 'perhaps' is neither a one (1, yes, true, x) nor a zero"),
    "duplicate name": ("a,b,a\n1,0,1\n", "columns 1 and 3 have the same name 'a'", 'duplicates="number"'),
    "unclosed quote": ('a,b\n1,"0\n1,0\n', "quote"),
    "not UTF-8": (b"a,b\n1,0\nK\xe4se,0\n", "line 3 is not UTF-8 (byte 0xe4)"),
    "zero bytes": (b"a,b\n1,\0\n", "line 2 contains a zero byte"),
    "truncated gzip": (gzip.compress(b"a,b\n" + b"1,0\n" * 100, mtime=0)[:-12], "cannot be read beyond line"),
    "a huge field": ("a,b\n1," + "9" * 200000 + "\n", "line 2"),
}


@pytest.mark.parametrize("case", BAD)
def test_malformed_files_are_errors(file, case):
    text, *parts = BAD[case]
    options = parts.pop() if isinstance(parts[-1], dict) else {}
    assert_read_error(file(text), *parts, **options)


def test_without_takes_escaped_names(file):
    path = file("\x1bred,a,b\x07\n1,0,1\n0,1,1\n")
    assert ba.read(path, without=[r"\x1bred"]).columns == ("a", "b\x07")
    assert ba.read(path, without=[r"b\x07", "\x1bred"]).columns == ("a",)
    assert_read_error(path, "there is no column '\\\\x1bre'", without=[r"\x1bre"])
    path = file("\x1bred,a,\\x1bred\n1,0,1\n0,1,1\n")  # a name that means two columns
    assert_read_error(path, r"columns 1 and 3 are both written \x1bred; rename one", without=[r"\x1bred"])
    assert ba.read(path, without=["\x1bred"]).columns == ("a", r"\x1bred")
    assert ba.read(path, without=["\x1bred", r"\x1bred"]).columns == ("a",)


def test_without_drops_columns(file):
    path = file("who,city,milk,total,bread\nann,Berlin,1,1,0\nbob,Rome,1,2,1\n")
    assert_read_error(path, "line 2, column 'city': 'Berlin' is neither a one", "without=")
    assert ba.read(path, without=["city", "total"]) == ANN
    without_names = file("ann,1,7,0\nbob,1,8,1\n")  # columns are counted as in the file
    assert ba.read(without_names, without="3", header=False) == ba.Table(ANN.bits, ANN.row_names)


def test_failed_write_leaves_the_old_file_and_no_other(file, tmp_path, monkeypatch):
    def raise_disk_full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    path = file("old content\n")
    with monkeypatch.context() as patched:
        patched.setattr("bitatoms.io.formats.csv.csv.writer", raise_disk_full)
        with pytest.raises(ba.FileError, match=r"table\.csv: cannot be written: No space left on device"):
            ba.write(ANN, path)
    assert path.read_text() == "old content\n"
    (tmp_path / "taken.csv").mkdir()
    for name, message in (("nowhere/table.csv", "there is no folder"), ("taken.csv", "a folder of that name exists")):
        with pytest.raises(ba.FileError, match=message):
            ba.write(ANN, tmp_path / name)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["table.csv", "taken.csv"]


# Text files of another shape that is not detected: errors name the parameters with which a file is read.
BASKETS = {"format": "baskets"}
OTHER_FORMATS = {
    "baskets, the first with an item twice": ("milk,tea,milk\nbeer,,\nbeer,tea,\n", BASKETS, (3, 3)),
    "baskets of two items": ("milk,bread\nbeer,crisps\ntea,jam\n", BASKETS, (3, 6)),
    "named orders": ("who,what\nann,soap\nann,tea\nbob,tea\n", {"long": ("who", "what")}, (2, 2)),
    "quantities, no header": ("7,2,milk\n7,1,tea\n9,3,tea\n", {"long": ("1", "3")}, (2, 2)),
    "one line": ('order number,article,qty\n7,"tea, green",2\n', {"long": ("order number", "article")}, (1, 1)),
}


@pytest.mark.parametrize(
    ("case", "binarize"),
    [*((case, None) for case in OTHER_FORMATS), ("named orders", 0)],  # with a threshold, numbers are cells
)
def test_lists_of_items_and_long_tables_name_their_format(file, case, binarize):
    text, options, shape = OTHER_FORMATS[case]
    suggested = [f'{name}="{value}"' if name == "format" else f"{name}={value}" for name, value in options.items()]
    message = assert_read_error(file(text), "instead of ones and zeros", *suggested, binarize=binarize)
    assert "duplicates" not in message
    assert ba.read(file(text), **options).shape == shape


def test_dates_beside_items_leave_the_choice_to_the_user(file):
    path = file("who,date,what\n7,2020-01-01,milk\n7,2020-01-01,tea\n8,2020-01-02,tea\n")
    assert_read_error(path, "pass long with the names of both columns")
    assert ba.read(path, long=("who", "what")).shape == (2, 2)
