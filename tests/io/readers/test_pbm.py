"""Pictures in and out: raw and as text, as lines of pixels or as blocks."""

import gzip
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bitatoms as ba
from bitatoms import BitMatrix, Table
from bitatoms.io.readers import pbm
from bitatoms.table import Picture
from support.files import assert_refused, outcome, tables
from support.strategies import random_bits

SIDES = st.integers(1, 40)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("pictures") / "picture.pbm"


@pytest.fixture(params=[pbm.CHUNK_BITS, 300], ids=["at once", "in pieces"])
def pieces(request, monkeypatch):
    """A picture that fits into memory unpacked, and one that does not."""
    monkeypatch.setattr(pbm, "CHUNK_BITS", request.param)


def raw(bits):
    """A picture as P4."""
    return f"P4\n{bits.shape[1]} {bits.shape[0]}\n".encode() + np.packbits(bits, axis=1).tobytes()


def plain(bits, between=""):
    """A picture as P1."""
    return f"P1\n{bits.shape[1]} {bits.shape[0]}\n" + "\n".join(between.join(map(str, row)) for row in bits.tolist())


@given(table=tables(rows=st.just(False), columns=st.just(False)))
@settings(max_examples=25)
def test_a_table_without_names_comes_back(path, table):
    ba.write(table, path)
    assert ba.read(path) == table
    assert path.read_bytes() == raw(table.to_dense())


@given(st.integers(0, 99), SIDES, SIDES, SIDES, SIDES, st.sampled_from((pbm.CHUNK_BITS, 300)))
@settings(max_examples=60)
def test_blocks_are_those_of_cut_blocks_and_come_back_as_the_picture(path, seed, height, width, tall, wide, rows_bits):
    bits = random_bits(seed, height, width, 0.5)
    path.write_bytes(raw(bits))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pbm, "CHUNK_BITS", rows_bits)
        table = ba.read(path, blocks=(tall, wide))
        assert np.array_equal(table.to_dense(), ba.datasets.cut_blocks(bits, (tall, wide)))
        assert table.picture == Picture((tall, wide), (height, width))
        assert np.array_equal(ba.read(path).to_dense(), bits)
        ba.write(table, path)
        assert path.read_bytes() == raw(bits)
        assert ba.read(path, blocks=(tall, wide)) == table


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("between", ["", " ", "\t\n"])
def test_pictures_of_text_are_read_with_or_without_blanks(tmp_path, between):
    bits = random_bits(0, 30, 70, 0.5)
    path = tmp_path / "text.pbm"
    path.write_text(plain(bits, between))
    assert np.array_equal(ba.read(path).to_dense(), bits)
    assert np.array_equal(ba.read(path, blocks=(7, 9)).to_dense(), ba.datasets.cut_blocks(bits, (7, 9)))


@pytest.mark.parametrize("chunk", [1, 2, 3, 1 << 20])
def test_comments_are_passed_over(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(pbm, "_TEXT_CHUNK", chunk)
    path = tmp_path / "commented.pbm"
    path.write_bytes(b"P1#one\n# by hand 1 0\r3 #wide\n\n2# high\n#0 1 1\r10 #1\n1 0#0\n11 #")
    assert ba.read(path).to_dense().tolist() == [[1, 0, 1], [0, 1, 1]]
    path.write_bytes(b"P4\n# by hand\n3\n# 7\n2#8\n\xbf\x7f")  # what lies beyond the width may be anything
    assert ba.read(path).to_dense().tolist() == [[1, 0, 1], [0, 1, 1]]


def test_a_compressed_picture_is_read_and_written_and_the_same_bytes_come_out_twice(tmp_path):
    table = Table(BitMatrix.from_dense(random_bits(0, 20, 30, 0.5)))
    first, second = tmp_path / "a.pbm.gz", tmp_path / "b.pbm.gz"
    ba.write(table, first)
    ba.write(table, second)
    assert first.read_bytes() == second.read_bytes()
    assert gzip.decompress(first.read_bytes()) == raw(table.to_dense())
    assert ba.read(first) == table
    first.write_bytes(gzip.compress(plain(table.to_dense()).encode()))
    assert ba.read(first) == table


def test_names_are_lost_with_a_warning(tmp_path):
    table = Table(BitMatrix.from_dense([[1, 0]]), columns=["milk", "bread"])
    with pytest.warns(
        UserWarning, match=r"a\.pbm: a picture cannot store names of rows and columns; \.npz and \.csv files can"
    ):
        ba.write(table, tmp_path / "a.pbm")
    assert ba.read(tmp_path / "a.pbm") == Table(table.bits)


def test_rows_that_are_small_pictures_are_lines_of_the_large_one(tmp_path):
    X, _ = ba.datasets.digits()
    ba.write(Table(BitMatrix.from_dense(X), picture=Picture((8, 8))), tmp_path / "digits.pbm")
    assert np.array_equal(ba.read(tmp_path / "digits.pbm").to_dense(), X)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_a_table_without_pixels_is_not_written(tmp_path, shape):
    with pytest.raises(ba.FileError, match=r"a\.pbm: a table of shape . x . has no pixels; write \.npz or \.csv"):
        ba.write(Table(BitMatrix.zeros(*shape)), tmp_path / "a.pbm")
    assert not list(tmp_path.iterdir())


def test_a_threshold_is_for_pixels_too(tmp_path):
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
        (b"P5\n2 2\n255\nabcd", ["this is a gray picture (P5)", "convert it to .pbm"]),
        (b"P3\n1 1\n255\n1 2 3", ["this is a color picture (P3)"]),
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
        (GOOD[:-1], ["truncated: 1 bytes are missing in a picture of 9 x 20 pixels"]),
        (GOOD[:-27], ["truncated: 27 bytes are missing"]),
        (GOOD + b"\n", ["data follows the picture of 9 x 20 pixels"]),
        (GOOD + GOOD, ["the file contains several pictures"]),
        (b"P1 2 2 0110 P1 1 1 1", ["the file contains several pictures"]),
        (b"P1 2 2 01100", ["data follows the picture of 2 x 2 pixels"]),
        (b"P1 2 2 0 1 1", ["1 pixels are missing"]),
        (b"P1 2 2 01", ["at least 2 pixels are missing"]),
        (b"P1 2 2 0120", ["line 2 of the picture, pixel 1: '2' is neither 0 nor 1"]),
        (b"P1 2 2 01-0", ["line 2 of the picture, pixel 1: '-' is neither 0 nor 1"]),
        (f"P4 {HUGE} {HUGE}\n".encode(), ["missing in a picture of"]),
        (f"P1 {HUGE} 1\n".encode(), ["missing in a picture of"]),
        (gzip.compress(f"P4 {HUGE} {HUGE}\n".encode()), ["more than a file of this size can hold"]),
        (gzip.compress(GOOD)[:-12], ["the compressed data is corrupt or truncated"]),
        (gzip.compress(GOOD)[:20], ["the compressed data is corrupt or truncated"]),
        (gzip.compress(GOOD)[:-4] + b"\1\2\3\4", ["the compressed data is corrupt or truncated"]),
        (gzip.compress(GOOD[:-5]), ["5 bytes are missing"]),
        (b"\x1f\x8b" + b"junk" * 9, ["the compressed data is corrupt or truncated"]),
    ],
)
def test_bad_pictures_are_refused_in_a_line_that_helps(tmp_path, content, parts):
    path = tmp_path / "bad.pbm"
    path.write_bytes(content)
    assert_refused(path, *parts)
    assert_refused(path, *parts, blocks=(4, 4))


def test_blocks_that_would_not_fit_into_memory_are_refused(tmp_path):
    path = tmp_path / "small.pbm"
    path.write_bytes(GOOD)
    assert_refused(path, "this machine has", blocks=(10**9, 10**9))


@pytest.mark.parametrize("blocks", [4, (0, 4), (4, -1), (1, 2, 3)])
def test_blocks_are_a_pair_of_numbers_from_1_on(tmp_path, blocks):
    path = tmp_path / "small.pbm"
    path.write_bytes(GOOD)
    with pytest.raises(ValueError, match="blocks"):
        ba.read(path, blocks=blocks)


@given(st.data(), st.sampled_from(("raw", "plain", "gzip")), st.sampled_from((None, (4, 4), (1, 30))))
@settings(max_examples=150)
def test_whatever_happens_to_a_file_it_is_read_or_refused(path, data, kind, blocks):
    good = {"raw": GOOD, "plain": PLAIN, "gzip": gzip.compress(GOOD, mtime=0)}[kind]
    spoilt = bytearray(good[: data.draw(st.integers(0, len(good)))])
    for place in data.draw(st.lists(st.integers(0, len(good) - 1), max_size=4)):
        if place < len(spoilt):
            spoilt[place] = data.draw(st.integers(0, 255))
    path.write_bytes(spoilt)
    table = outcome(lambda path: ba.read(path, blocks=blocks), path)
    assert table is None or isinstance(table, Table)


def peak_of_reading(path, **options):
    """The table, and the most bytes that were taken while it was read."""
    ba.read(path, **options)  # what is compiled and imported on the way is not counted
    tracemalloc.start()
    table = ba.read(path, **options)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return table, peak


@pytest.mark.parametrize("blocks", [None, (16, 16), (8000, 100)])
def test_memory_is_that_of_the_packed_table(tmp_path, blocks):
    """Sixty-four million pixels, eight megabytes packed."""
    path = tmp_path / "large.pbm"
    path.write_bytes(b"P4\n8000 8000\n" + bytes(range(250)) * 32000)
    table, peak = peak_of_reading(path, blocks=blocks)
    a_strip = 0 if blocks is None else 42e6  # unpacked, with the copies that are made as it is cut
    assert peak < 2.1 * table.bits.words.nbytes + a_strip


def test_a_bomb_takes_no_more_memory_than_its_picture(tmp_path):
    """Text that unpacks to a thousand times its size, nearly all of it blanks."""
    path = tmp_path / "bomb.pbm.gz"
    path.write_bytes(gzip.compress(b"P1 2 1 " + b" " * (1 << 25) + b"01"))
    table, peak = peak_of_reading(path)
    assert table.to_dense().tolist() == [[0, 1]]
    assert peak < 5e6
