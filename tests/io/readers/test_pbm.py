"""PBM files: raw and text pictures, as lines of pixels and as blocks."""

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bitatoms as ba
from bitatoms import BitMatrix, Table
from bitatoms.io.readers import pbm
from bitatoms.table import Picture
from support.files import assert_read_error
from support.memory import read_with_peak
from support.strategies import random_bits

SIDES = st.integers(1, 40)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("pictures") / "picture.pbm"


@pytest.fixture(params=[pbm.CHUNK_BITS, 300], ids=["one chunk", "several chunks"])
def chunk_bits(request, monkeypatch):
    """Read pictures as one chunk, and as several."""
    monkeypatch.setattr(pbm, "CHUNK_BITS", request.param)


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


@pytest.mark.usefixtures("chunk_bits")
@pytest.mark.parametrize("separator", ["", " ", "\t\n"])
def test_reads_text_pictures_with_and_without_blanks(tmp_path, separator):
    bits = random_bits(0, 30, 70, 0.5)
    path = tmp_path / "text.pbm"
    path.write_text(plain(bits, separator))
    assert np.array_equal(ba.read(path).to_dense(), bits)
    assert np.array_equal(ba.read(path, blocks=(7, 9)).to_dense(), ba.datasets.cut_blocks(bits, (7, 9)))


@pytest.mark.parametrize("chunk", [1, 2, 3, 1 << 20])
def test_comments_are_ignored(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(pbm, "_TEXT_CHUNK", chunk)
    path = tmp_path / "commented.pbm"
    path.write_bytes(b"P1#one\n# by hand 1 0\r3 #wide\n\n2# high\n#0 1 1\r10 #1\n1 0#0\n11 #")
    assert ba.read(path).to_dense().tolist() == [[1, 0, 1], [0, 1, 1]]
    path.write_bytes(b"P4\n# by hand\n3\n# 7\n2#8\n\xbf\x7f")  # padding bits may have any value
    assert ba.read(path).to_dense().tolist() == [[1, 0, 1], [0, 1, 1]]


def test_writing_names_warns(tmp_path):
    table = Table(BitMatrix.from_dense([[1, 0]]), columns=["milk", "bread"])
    with pytest.warns(
        UserWarning, match=r"a\.pbm: an image cannot store names of rows and columns; \.npz and \.csv files can"
    ):
        ba.write(table, tmp_path / "a.pbm")
    assert ba.read(tmp_path / "a.pbm") == Table(table.bits)


def test_rows_that_are_pictures_are_written_as_lines(tmp_path):
    X, _ = ba.datasets.digits()
    ba.write(Table(BitMatrix.from_dense(X), picture=Picture((8, 8))), tmp_path / "digits.pbm")
    assert np.array_equal(ba.read(tmp_path / "digits.pbm").to_dense(), X)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_writing_an_empty_table_is_an_error(tmp_path, shape):
    with pytest.raises(ba.FileError, match=r"a\.pbm: a table of shape . x . has no pixels; write \.npz or \.csv"):
        ba.write(Table(BitMatrix.zeros(*shape)), tmp_path / "a.pbm")
    assert not list(tmp_path.iterdir())


def test_binarize(tmp_path):
    path = tmp_path / "a.pbm"
    path.write_bytes(b"P1 2 1 01")
    assert ba.read(path, binarize=0).to_dense().tolist() == [[0, 1]]
    assert ba.read(path, binarize=1).to_dense().tolist() == [[0, 0]]


BITS = random_bits(1, 9, 20, 0.5)
GOOD = raw(BITS)
PLAIN = plain(BITS).encode()
HUGE = 10**12


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (b"", ["the file is empty"]),
        (b"x", ["does not begin with P1 or P4"]),
        (b"who,milk\nann,1\n", ["does not begin with P1 or P4"]),
        (b"P5\n2 2\n255\nabcd", ["this is a gray image (P5)", "convert it to .pbm"]),
        (b"P3\n1 1\n255\n1 2 3", ["this is a color image (P3)"]),
        (b"\x93NUMPY\x01\x00", ["it looks like 'npy'; pass format=\"npy\""]),
        (b"P4", ["ends within the header"]),
        (b"P4\n20 # 9", ["ends within the header"]),
        (b"P420 9\n", ["no blank follows P4"]),
        (b"P4\n-2 9\n", ["header is malformed: '-' in the width"]),
        (b"P4\n2 9.0\n", ["header is malformed: '.' in the height"]),
        (b"P4\n2 \xff\n", [r"header is malformed: '\xff' in the height"]),
        (b"P4\n0 9\n", ["a width of 0"]),
        (b"P4\n9 0\n", ["a height of 0"]),
        (b"P4\n#" + bytes(1 << 17), ["the header is longer than 64 KiB"]),
        (b"P4\n" + b"9" * 100 + b" 1\n", ["header is malformed"]),
        (GOOD[:-1], ["truncated: 1 bytes are missing in an image of 9 x 20 pixels"]),
        (GOOD[:-27], ["truncated: 27 bytes are missing"]),
        (GOOD + b"\n", ["data follows the image of 9 x 20 pixels"]),
        (GOOD + GOOD, ["the file contains several images"]),
        (b"P1 2 2 0110 P1 1 1 1", ["the file contains several images"]),
        (b"P1 2 2 01100", ["data follows the image of 2 x 2 pixels"]),
        (b"P1 2 2 0 1 1", ["1 pixels are missing"]),
        (b"P1 2 2 01", ["at least 2 pixels are missing"]),
        (b"P1 2 2 0120", ["line 2 of the image, pixel 1: '2' is neither 0 nor 1"]),
        (b"P1 2 2 01-0", ["line 2 of the image, pixel 1: '-' is neither 0 nor 1"]),
        (f"P4 {HUGE} {HUGE}\n".encode(), ["missing in an image of"]),
        (f"P1 {HUGE} 1\n".encode(), ["missing in an image of"]),
        (gzip.compress(f"P4 {HUGE} {HUGE}\n".encode(), mtime=0), ["more than a file of this size can hold"]),
        (gzip.compress(GOOD, mtime=0)[:-12], ["the compressed data is corrupt or truncated"]),
        (gzip.compress(GOOD, mtime=0)[:20], ["the compressed data is corrupt or truncated"]),
        (gzip.compress(GOOD, mtime=0)[:-4] + b"\1\2\3\4", ["the compressed data is corrupt or truncated"]),
        (gzip.compress(GOOD[:-5], mtime=0), ["5 bytes are missing"]),
        (b"\x1f\x8b" + b"junk" * 9, ["the compressed data is corrupt or truncated"]),
    ],
)
def test_malformed_files_are_errors(tmp_path, content, parts):
    path = tmp_path / "bad.pbm"
    path.write_bytes(content)
    assert_read_error(path, *parts)
    assert_read_error(path, *parts, blocks=(4, 4))


def test_blocks_that_do_not_fit_into_memory_are_errors(tmp_path):
    path = tmp_path / "small.pbm"
    path.write_bytes(GOOD)
    assert_read_error(path, "of memory are available", blocks=(10**9, 10**9))


@pytest.mark.parametrize("blocks", [4, (0, 4), (4, -1), (1, 2, 3)])
def test_blocks_must_be_a_pair_of_positive_integers(tmp_path, blocks):
    path = tmp_path / "small.pbm"
    path.write_bytes(GOOD)
    with pytest.raises(ValueError, match="blocks"):
        ba.read(path, blocks=blocks)


def test_peak_memory_of_a_compressed_file_of_blanks(tmp_path):
    """The text is a thousand times as long as the file, nearly all of it blanks."""
    path = tmp_path / "bomb.pbm.gz"
    path.write_bytes(gzip.compress(b"P1 2 1 " + b" " * (1 << 25) + b"01", mtime=0))
    table, peak = read_with_peak(path)
    assert table.to_dense().tolist() == [[0, 1]]
    assert peak < 5e6
