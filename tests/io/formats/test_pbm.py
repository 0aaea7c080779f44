"""PBM files: raw and text pictures, as lines of pixels and as blocks."""

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bitatoms as ba
from bitatoms import BitMatrix, Table
from bitatoms.columns.table import Picture
from bitatoms.io.formats import pbm
from support.files import assert_read_error
from support.memory import read_with_peak
from support.strategies import random_bits

SIDES = st.integers(1, 40)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("pictures") / "picture.pbm"


def raw(bits):
    """Return a picture as P4."""
    return f"P4\n{bits.shape[1]} {bits.shape[0]}\n".encode() + np.packbits(bits, axis=1).tobytes()


def plain(bits, separator=""):
    """Return a picture as P1."""
    return f"P1\n{bits.shape[1]} {bits.shape[0]}\n" + "\n".join(separator.join(map(str, row)) for row in bits.tolist())


@given(st.integers(0, 99), SIDES, SIDES, SIDES, SIDES, st.sampled_from((pbm.CHUNK_BITS, 300)))
@settings(max_examples=30)
def test_blocks_equal_cut_blocks_and_are_written_as_the_picture(path, seed, height, width, tall, wide, chunk_bits):
    bits = random_bits(seed, height, width, 0.5)
    path.write_bytes(raw(bits))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pbm, "CHUNK_BITS", chunk_bits)
        table = ba.read(path, blocks=(tall, wide))
        assert np.array_equal(table.to_dense(), ba.datasets.cut_blocks(bits, (tall, wide)))
        assert table.picture == Picture((tall, wide), (height, width))
        assert np.array_equal(ba.read(path).to_dense(), bits)
        ba.write(table, path)
        assert path.read_bytes() == raw(bits)
        assert ba.read(path, blocks=(tall, wide)) == table


@pytest.mark.parametrize("chunk_bits", [pbm.CHUNK_BITS, 300])
@pytest.mark.parametrize("separator", ["", " ", "\t\n"])
def test_reads_text_pictures_with_and_without_blanks(tmp_path, monkeypatch, chunk_bits, separator):
    monkeypatch.setattr(pbm, "CHUNK_BITS", chunk_bits)
    bits = random_bits(0, 30, 70, 0.5)
    path = tmp_path / "text.pbm"
    path.write_text(plain(bits, separator))
    assert np.array_equal(ba.read(path).to_dense(), bits)
    assert np.array_equal(ba.read(path, blocks=(7, 9)).to_dense(), ba.datasets.cut_blocks(bits, (7, 9)))


@pytest.mark.parametrize("chunk", [1, 2, 3, 1 << 20])
def test_comments_are_ignored(file, monkeypatch, chunk):
    monkeypatch.setattr(pbm, "CHUNK_BYTES", chunk)
    path = file(b"P1#one\n# by hand 1 0\r3 #wide\n\n2# high\n#0 1 1\r10 #1\n1 0#0\n11 #", "a.pbm")
    assert ba.read(path, binarize=0).to_dense().tolist() == [[1, 0, 1], [0, 1, 1]]
    assert not ba.read(path, binarize=1).to_dense().any()
    path = file(b"P4\n# by hand\n3\n# 7\n2#8\n\xbf\x7f", "a.pbm")  # padding bits may have any value
    assert ba.read(path).to_dense().tolist() == [[1, 0, 1], [0, 1, 1]]


def test_what_an_image_cannot_store(tmp_path):
    named = Table(BitMatrix.from_dense(random_bits(0, 5, 4, 0.5)), columns=list("abcd"), picture=Picture((2, 2)))
    with pytest.warns(UserWarning, match=r"a\.pbm: an image cannot store names of rows and columns; \.npz and \.csv"):
        ba.write(named, tmp_path / "a.pbm")
    assert ba.read(tmp_path / "a.pbm") == Table(named.bits)  # the lines of the image, even if the rows are pictures
    for shape in ((0, 3), (3, 0)):
        with pytest.raises(ba.FileError, match=r"b\.pbm: a table of shape . x . has no pixels; write \.npz or \.csv"):
            ba.write(Table(BitMatrix.zeros(*shape)), tmp_path / "b.pbm")
    assert not (tmp_path / "b.pbm").exists()


BITS = random_bits(1, 9, 20, 0.5)
GOOD = raw(BITS)
HUGE = 10**12


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"who,milk\nann,1\n", "does not begin with P1 or P4"),
        (b"P5\n2 2\n255\nabcd", "this is a gray image (P5)"),
        (b"P4", "header is malformed or truncated"),
        (b"P420 9\n", "header is malformed"),
        (b"P4\n-2 9\n", "header is malformed"),
        (b"P4\n2 9.0\n", "header is malformed"),
        (b"P4\n2 \xff\n", "header is malformed"),
        (b"P4\n0 9\n", "there are no pixels"),
        (b"P4\n9 0\n", "there are no pixels"),
        (b"P4\n#" + bytes(1 << 17), "header is malformed"),
        (b"P4\n" + b"9" * 100 + b" 1\n", "header is malformed"),
        (GOOD[:-1], "truncated: 1 bytes are missing in an image of 9 x 20 pixels"),
        (GOOD + b"\n", "data follows the image of 9 x 20 pixels"),
        (GOOD + GOOD, "the file contains several images"),
        (b"P1 2 2 0110 P1 1 1 1", "the file contains several images"),
        (b"P1 2 2 01100", "data follows the image of 2 x 2 pixels"),
        (b"P1 2 2 0 1 1", "1 pixels are missing"),
        (b"P1 2 2 0120", "line 2 of the image, pixel 1: '2' is neither 0 nor 1"),
        (f"P4 {HUGE} {HUGE}\n".encode(), "missing in an image of"),
        (gzip.compress(f"P4 {HUGE} {HUGE}\n".encode(), mtime=0), "missing in an image of"),
        (gzip.compress(GOOD, mtime=0)[:-4] + b"\1\2\3\4", "the compressed data is corrupt or truncated"),
        (gzip.compress(GOOD[:-5], mtime=0), "5 bytes are missing"),
    ],
)
def test_malformed_files_are_errors(file, content, part):
    assert_read_error(file(content, "bad.pbm"), part)
    assert_read_error(file(content, "bad.pbm"), part, blocks=(4, 4))


@pytest.mark.parametrize("blocks", [4, (0, 4), (4, -1), (1, 2, 3)])
def test_blocks_must_be_a_pair_of_positive_integers(file, blocks):
    path = file(GOOD, "small.pbm")
    with pytest.raises(ValueError, match="blocks"):
        ba.read(path, blocks=blocks)
    assert_read_error(path, "of memory are available", blocks=(10**9, 10**9))


def test_peak_memory_of_a_compressed_file_of_blanks(file):
    """The text is a thousand times as long as the file, nearly all of it blanks."""
    path = file(gzip.compress(b"P1 2 1 " + b" " * (1 << 25) + b"01", mtime=0), "bomb.pbm.gz")
    table, peak = read_with_peak(path)
    assert table.to_dense().tolist() == [[0, 1]]
    assert peak < 5e6
