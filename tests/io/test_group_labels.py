"""Files of labels: the group of each row."""

import pytest

import bitatoms as ba
from bitatoms.io.group_labels import read_group_labels

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
