"""Tables larger than the memory limit whose cells are not stored row by row: the same bits as in memory."""

import re
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.bits import BitMatrix, stack_rows
from bitatoms.io.api import open_table
from bitatoms.io.options import ReadOptions
from bitatoms.io.out_of_core.entries import EntriesBuilder
from bitatoms.io.out_of_core.transposing import Transposer, transpose
from bitatoms.io.scratch import Scratch
from bitatoms.io.stream import Source, collect
from bitatoms.sparse_bits import SparseBits, packed
from support.strategies import random_bits

SHAPES = [(0, 5), (5, 0), (1, 1), (7, 1), (1, 70), (63, 2), (65, 64), (130, 127), (200, 67)]
LIMIT = 3 * 5 * 64 * 8 * 3  # three chunks of 64 rows of at most 64 columns, or one of 192


@pytest.fixture
def scratch(tmp_path):
    (tmp_path / "scratch").mkdir()
    return Scratch(tmp_path / "scratch", tmp_path / "rows.zarr", LIMIT)


def table_of(shape, unknown=0.05):
    """Return a table of random bits with unknown cells in all but the first column."""
    bits = BitMatrix.from_dense(random_bits(1, *shape, 0.4))
    cells = random_bits(2, *shape, unknown)
    cells[:, :1] = 0
    return bits.with_unknown(BitMatrix.from_dense(cells))


@pytest.mark.parametrize(("shape", "step"), [*zip(SHAPES, [40, 1, 3] * 3, strict=True), ((130, 127), 40)])
def test_columns_become_rows(scratch, shape, step):
    table = table_of(shape)
    columns = table.transpose()
    transposer = Transposer(scratch, shape[0])
    for start in range(0, shape[1], step):
        transposer.add(columns[start : start + step])
    exceeds_the_buffer = shape[0] * shape[1] > 8000
    assert [file.stat().st_size % 8 for file in scratch.folder.iterdir()] == ([0] if exceeds_the_buffer else [])
    assert transposer.n_cols == shape[1]
    chunks = list(transposer.rows())
    assert stack_rows(chunks, shape[1]) == table
    assert len(chunks) == -(-shape[0] // 64) or shape[1] <= 64
    assert list(scratch.folder.iterdir()) == []


@pytest.mark.parametrize("unknown", [0.0, 0.001])
@pytest.mark.parametrize("step", [1, 700])
def test_sparse_columns_become_rows(scratch, monkeypatch, unknown, step):
    """Rows with many ones, or with unknown cells, are packed."""
    monkeypatch.setattr("bitatoms.io.out_of_core.sparse_transposing.CHUNK_ENTRIES", 100)
    monkeypatch.setattr("bitatoms.io.out_of_core.sparse_transposing._MAX_CHUNKS", 30)
    X, lacking = random_bits(1, 130, 2100, 0.003), random_bits(3, 130, 2100, unknown)
    X[77] = random_bits(2, 1, 2100, 0.7)
    lacking[:, :50] = lacking[:40] = 0
    table = BitMatrix.from_dense(X).with_unknown(BitMatrix.from_dense(lacking))
    columns = table.transpose()
    chunks = [columns[start : start + step] for start in range(0, 2100, step)]
    chunks = [chunk if chunk.n_unknown else SparseBits.from_bits(chunk.filled()) for chunk in chunks]
    if unknown:
        chunks.insert(0, SparseBits.from_bits(columns[:0].filled()))
    transposer = transpose(scratch, chunks, 130)
    assert transposer.n_cols == 2100
    rows = list(transposer.rows())
    assert stack_rows(map(packed, rows), 2100) == table
    n_sparse = sum(len(chunk) for chunk in rows if isinstance(chunk, SparseBits))
    assert n_sparse >= 40 if unknown else n_sparse == 125
    assert list(scratch.folder.iterdir()) == []


def test_rows_that_exceed_the_limit_are_an_error_before_the_file_is_read(tmp_path, scratch):
    np.save(tmp_path / "wide.npy", np.asfortranarray(np.full((2, 200), 7.0)))
    source = Source(tmp_path / "wide.npy", "npy", "wide.npy", scratch, keeps_rows=False)
    with pytest.raises(ba.errors.InputError) as error:
        collect(open_table(source, ReadOptions()))
    limit = f"max_memory={LIMIT} is too small for rows of 200 columns; pass at least 30720 bytes"
    assert str(error.value).startswith(limit)


@pytest.mark.filterwarnings("ignore::bitatoms.errors.InputWarning")  # missing values are read as unknown cells
@pytest.mark.parametrize("shape", [(1, 1), (65, 64), (900, 67)])
@pytest.mark.parametrize(("binarize", "missing"), [(None, "unknown"), (0.5, "zero"), (0, "unknown"), (-1, "zero")])
def test_entries_in_any_order(tmp_path, scratch, shape, binarize, missing):
    random = np.random.default_rng(3)
    cells = np.flatnonzero(random.random(shape[0] * shape[1]) < 0.3)
    random.shuffle(cells)
    values = random.choice([0.0, 1.0, np.nan] if binarize is None else [-2.0, 0, 0.2, 3, np.nan], len(cells))
    options = ReadOptions(binarize=binarize, missing=missing)
    built = []
    for each in (None, scratch):
        builder = EntriesBuilder(Source(tmp_path, "mtx", "x.mtx", each), options, shape)
        for start in range(0, len(cells), 50):
            rows, columns = np.divmod(cells[start : start + 50], shape[1])
            builder.add(rows, columns, values[start : start + 50])
        built.append(list(builder.chunks()))
    whole, chunks = built
    assert len(whole) == 1
    assert len(chunks) > 1 or shape[0] < 900
    assert stack_rows(chunks, shape[1]) == whole[0]
    assert list(scratch.folder.iterdir()) == []


def add_columns(scratch, shape):
    """Return the rows of a table that is given by columns, half of them with an unknown cell."""
    transposer = Transposer(scratch, shape[0])
    for start in range(0, shape[1], 256):
        columns = BitMatrix.zeros(256, shape[0])
        unknown = BitMatrix.from_words(np.eye(256, columns.words.shape[1], dtype=np.uint64), shape[0])
        transposer.add(columns.with_unknown(unknown) if start % 512 else columns)
    return transposer.rows()


def add_entries(scratch, shape):
    """Return the rows of a table that is given by entries, column by column, one of them unknown."""
    builder = EntriesBuilder(Source(scratch.folder, "mtx", "x.mtx", scratch), ReadOptions(binarize=0), shape)
    for column in range(0, shape[1], 256):
        values = np.ones(shape[0])
        values[0] = np.nan if column == 256 else 1
        builder.add(np.arange(shape[0]), np.full(shape[0], column), values)
    return builder.chunks()


@pytest.mark.filterwarnings("ignore::bitatoms.errors.InputWarning")
@pytest.mark.parametrize("add", [add_columns, add_entries])
def test_memory_is_within_the_limit(scratch, add):
    shape = 8192, 32_768  # 32 MiB packed
    limit = 12 << 20
    n_unknown = 0
    add(replace(scratch, limit=limit), (64, 512))  # compile kernels first
    tracemalloc.start()
    try:
        for bits in add(replace(scratch, limit=limit), shape):
            n_unknown += bits.n_unknown
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert n_unknown == {add_columns: 64 * 128, add_entries: 1}[add]
    assert limit / 8 < peak < limit


@pytest.mark.parametrize(
    ("binarize", "values", "message"),
    [
        (None, (1, 1), "x.mtx: row 851, column 3, which has two entries: 2 is neither 0 nor 1"),
        (0.5, (1, 1), "x.mtx: row 851, column 3 has several entries; sum duplicate entries first"),
        (0, (2, -1), "x.mtx: row 851, column 3 has several entries; sum duplicate entries first"),
        (0, (2, 1), None),
        (None, (True, True), None),
    ],
)
def test_duplicate_entries(tmp_path, scratch, binarize, values, message):
    def build(scratch):
        source = Source(tmp_path, "mtx", "x.mtx", scratch)
        builder = EntriesBuilder(source, ReadOptions(binarize=binarize), (900, 67), 1)
        for value in values:
            builder.add(np.array([850]), np.array([2]), np.array([value]))
        return stack_rows(builder.chunks(), 67)

    for each in (None, scratch):
        if message is None:
            assert np.argwhere(build(each).to_dense()).tolist() == [[850, 2]]
        else:
            with pytest.raises(ba.FileError, match=re.escape(message)):
                build(each)
