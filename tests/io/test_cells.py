"""Cells of files as bits: missing and infinite values, positions, and the parameters that messages name."""

import pickle

import numpy as np
import pytest

import bitatoms as ba
from support.files import assert_read_error


def on_command_line(parameter):
    return f"--{parameter.name}" if parameter.value is None else f"--{parameter.name} {parameter.value}"


def test_a_cell_with_blanks_is_a_one_above_the_threshold_only(file):
    np.testing.assert_array_equal(ba.read(file("a,b\n 2 , 2.5\n 1.5 ,7\n"), binarize=2).to_dense(), [[0, 1], [0, 1]])


def test_parameters_of_messages(file):
    path = file("a,b\n1,7\n,0\n")
    with pytest.raises(ba.FileError) as caught:
        ba.read(path)
    message = caught.value.describe(on_command_line)
    assert "line 2, column 'b': 7 is neither 0 nor 1" in message
    assert "pass --binarize 0 to read values above 0 as 1" in message
    assert message.endswith("drop it with --without b")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(ba.FileError) as caught:
        ba.read(path, binarize=0, missing="refuse")
    assert "1 value is missing, at line 3, column 'a'" in str(caught.value)
    assert "pass --missing zero to read it as 0" in caught.value.describe(on_command_line)


@pytest.mark.parametrize(("text", "column"), [("a,b\n1,7\n", "b"), ("1,0\n1,7\n", "2"), ("a,b c\n1,often\n", "b c")])
def test_message_names_the_column_to_drop(file, text, column):
    assert_read_error(file(text), f'drop it with without="{column}"')
    assert ba.read(file(text), without=column).shape[1] == 1
    assert_read_error(file("a,b\ninf,0\n1,3\n"), "line 2, column 'a': 'inf' is not a finite number", binarize=0)


@pytest.mark.parametrize(
    ("word", "bit"),
    [("1.00", 1), ("+1", 1), ("1.", 1), ("1.000000e+00", 1), ("-0", 0), ("-0.0", 0), ("0.00", 0), ("0E+00", 0)],
)
def test_zero_and_one_may_be_written_as_any_decimal(tmp_path, word, bit):
    (tmp_path / "table.csv").write_text(f"a,b\n1, {word}\n0,1\n")
    (tmp_path / "bare.csv").write_text(f"1,{word}\n0,1\n")  # not a header
    for name in ("table.csv", "bare.csv"):
        assert ba.read(tmp_path / name).to_dense().tolist() == [[1, bit], [0, 1]]
    table = ba.Table(ba.BitMatrix.from_dense([[1, 0]]), columns=[word, "0"])
    ba.write(table, tmp_path / "names.csv")
    assert ba.read(tmp_path / "names.csv") == table


@pytest.mark.parametrize("word", ["01", "-1", "1e1", "1e-400", "1.00000000000000000000001", "0,0"])
def test_other_numbers_are_not_bits(file, word):
    shown = word if "," not in word else repr(word)
    assert_read_error(file(f"a;b\n1;{word}\n0;1\n"), f"line 2, column 'b': {shown} is neither")


NOT_NUMBERS = ("1_0", "٣", "１", "1e1_0", "0x10", "1d5", "1,5", "1-2", "1.2.3", "infnan", "1+2+7", "--3", "1e", "3x")


@pytest.mark.parametrize("word", NOT_NUMBERS)
def test_only_ascii_decimals_are_numbers(tmp_path, word):
    """Python's float accepts underscores and the digits of other scripts."""
    parquet, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    path = tmp_path / "table.csv"
    path.write_text(f"a;b\n5;0\n3;{word}\n", encoding="utf-8")
    assert_read_error(path, f"line 3, column 'b': {word!r} is not a finite number, as binarize requires", binarize=0)
    path.write_text(f"a;b\n1;0\n1;{word}\n", encoding="utf-8")
    assert_read_error(path, f"line 3, column 'b': {word!r} is neither a one (1, yes, true, x) nor a zero")
    parquet.write_table(pa.table({"a": ["5", "3"], "b": ["0", word]}), tmp_path / "table.parquet")
    assert_read_error(tmp_path / "table.parquet", f"{word!r} is not a finite number", binarize=0)
    if "," in word:
        return
    for position, values in enumerate(([word, "1", "2.5"], ["1", word, "2"], ["2", "1", word])):
        path = tmp_path / f"table{position}.mtx"
        entries = "".join(f"{row} 1 {value}\n" for row, value in enumerate(values, 1))
        path.write_text(f"%%MatrixMarket matrix coordinate real general\n3 1 3\n{entries}", encoding="utf-8")
        assert_read_error(path, f"line {3 + position}: {word!r} is not a number", binarize=0)


@pytest.mark.parametrize("word", ["5", "+5", "-5", "5.", ".5", "-.5e+1", "1E-3", "00012", "1e5", "5.25"])
def test_numbers_of_all_forms_are_read(tmp_path, word):
    (tmp_path / "table.csv").write_text(f"a,b\n {word} ,7\n")
    (tmp_path / "table.mtx").write_text(f"%%MatrixMarket matrix array real general\n1 2\n{word}\n7\n")
    for name in ("table.csv", "table.mtx"):
        assert ba.read(tmp_path / name, binarize=0).to_dense().tolist() == [[int(float(word) > 0), 1]]
