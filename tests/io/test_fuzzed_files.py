"""Files with changed bytes: an error, or exactly the table that another parser finds in them.

Formats with checksums give the original table or an error. The others are read again by the library whose format it is.
"""

import io

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import feather, parquet

import bitatoms as ba
from bitatoms.columns.table import Table
from support.files import outcome
from support.formats import names, sparse
from support.npz import npz
from support.strategies import random_bits

X = random_bits(13, 6, 10, 0.5)
TABLE = Table(ba.BitMatrix.from_dense(X), names("r", 6), names("c", 10))
MANY = settings(max_examples=30)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return one folder for all examples of hypothesis."""
    return tmp_path_factory.mktemp("fuzzed")


@st.composite
def mutations(draw):
    """Draw a function that changes up to four bytes, and may cut the end off."""
    changes = draw(st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=4))
    kept = draw(st.just(1.0) | st.just(1.0) | st.floats(0, 1))

    def mutate(content):
        content = bytearray(content)
        for share, byte in changes:
            content[int(share * len(content))] = byte
        return bytes(content[: int(kept * len(content))])

    return mutate


def cells_of(path, **options):
    """Return the cells that are read from a file, or None after an error."""
    table = outcome(lambda path: ba.read(path, duplicates="number", **options), path)
    return None if table is None else table.to_dense(float).tolist()


# Checksums


@pytest.mark.parametrize("kind", ["table.npz", "csr.npz", "table.png", "table.xlsx", "table.csv.gz"])
@MANY
@given(mutate=mutations())
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_files_with_checksums_give_the_original_table_or_an_error(folder, kind, mutate):
    path = folder / kind
    if kind == "csr.npz":
        sp.save_npz(path, sparse(TABLE, "csr"))
    else:
        ba.write(TABLE if kind != "table.png" else TABLE.bits, path)
    path.write_bytes(mutate(path.read_bytes()))
    table = outcome(ba.read, path)
    assert table is None or table.bits == TABLE.bits


# The libraries of a format


ARROW = pa.table({f"c{column}": X[:, column].astype(float) for column in range(10)})
LIBRARIES = {  # a file, how it is written, and read again
    "npy": ("x.npy", lambda path: np.save(path, X.astype("<i2")), np.load),
    "npy, Fortran order": ("x.npy", lambda path: np.save(path, np.asfortranarray(X)), np.load),
    "parquet": ("x.parquet", lambda path: parquet.write_table(ARROW, path), parquet.read_table),
    "feather": ("x.feather", lambda path: feather.write_feather(ARROW, path), feather.read_table),
}


@pytest.mark.parametrize("kind", LIBRARIES)
@MANY
@given(mutate=mutations())
def test_what_is_read_is_what_the_library_of_the_format_reads(folder, kind, mutate):
    name, write, reference = LIBRARIES[kind]
    path = folder / name
    write(path)
    path.write_bytes(mutate(path.read_bytes()))
    found = cells_of(path)
    if found is not None:
        table = reference(path)
        columns = table.T if isinstance(table, np.ndarray) else [column.to_numpy() for column in table.columns]
        assert found == np.stack(columns, axis=1).astype(float).tolist()


@MANY
@given(format=st.sampled_from(("csr", "csc", "coo", "bsr", "dia")), data=st.data())
def test_changed_arrays_of_a_sparse_matrix_are_read_as_scipy_reads_them(folder, format, data):
    file = io.BytesIO()
    sp.save_npz(file, sparse(TABLE, format))
    parts = dict(np.load(io.BytesIO(file.getvalue())))
    name = data.draw(st.sampled_from(sorted(set(parts) - {"format", "_is_array"})))
    array, far = parts[name], st.sampled_from((2**31, 2**62, -(2**62)))
    match data.draw(st.sampled_from(("values", "type", "shorter", "shape", "gone"))):
        case "values" if array.dtype.kind in "iu":
            array = array.astype(np.int64)
            drawn = st.integers(-3, 200) if name == "shape" else st.integers(-3, 30) | far
            for index in data.draw(st.lists(st.integers(0, array.size - 1), max_size=5)):
                array.flat[index] = data.draw(drawn)
        case "type":
            array = array.astype(data.draw(st.sampled_from(("?", "u1", "i8", "f8", "S3"))))
        case "shorter":
            array = array[: data.draw(st.integers(0, len(array)))]
        case "shape":
            array = array[np.newaxis]
        case "gone":
            array = None
    path = folder / "x.npz"
    path.write_bytes(npz(**{key: value for key, value in (parts | {name: array}).items() if value is not None}))
    found = cells_of(path)
    if found is not None:
        assert found == sp.load_npz(path).toarray().astype(float).tolist()
