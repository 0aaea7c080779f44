"""Learn from the rows of any source with the parameters of `factorize`."""

import numpy as np
import pytest

from bitatoms.api import with_columns_of
from bitatoms.columns.table import Header
from bitatoms.io.store.packed_store import PackedStoreWriter
from bitatoms.io.stream import RowChunk
from bitatoms.parallel import Workers
from bitatoms.rows.passes import PassResult
from bitatoms.rows.source import RowSource
from bitatoms.rows.store import Store
from bitatoms.rows.subsample import learn
from bitatoms.search.params import SearchParams
from bitatoms.validation import as_generator
from support.parameters import resolved


def params_for(**given) -> SearchParams:
    """Return the search parameters of a call of `factorize` with these arguments, under XOR unless they name OR."""
    return resolved(**{"algebra": "xor", **given})


def learned(rows: RowSource, seed: int = 0, journal=None, workers: Workers = Workers(1), **given):  # noqa: B008
    """Return the result of learning from rows with these arguments of `factorize`."""
    params = with_columns_of(params_for(**given), Header(rows.n_features))
    found = learn(rows, params, workers, as_generator(seed), journal)
    return found.result if isinstance(found, PassResult) else found


def assert_same(one, other) -> None:
    """Assert that two results have the same atoms, bias, counts, codelength and remembered codes."""
    assert one.atoms == other.atoms
    assert one.codelength == other.codelength
    assert one.algebra == other.algebra
    counts = ("bias", "wrong", "uses", "saved", "ones", "missed", "known", "complete", "lacking", "atom_known")
    for name in (*counts, "rows_hash"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert getattr(one, "remembered", None) == getattr(other, "remembered", None)


def assert_same_counts(one, other) -> None:
    """Assert that two `Counts` are equal."""
    assert one.voted == other.voted
    for name in set(one.__dataclass_fields__) - {"voted"}:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def write_store(path, bits, names=None, columns=None, chunk_bytes=None, by_ones=None) -> Store:
    """Write rows to a packed store with chunks of this size, by their ones or not, and open it."""
    with pytest.MonkeyPatch.context() as patch:
        if by_ones is not None:
            patch.setattr("bitatoms.io.store.packed_store.is_smaller_sparse", lambda *_: by_ones)
        with PackedStoreWriter(path, bits.n_cols, columns, chunk_bytes=chunk_bytes) as writer:
            writer.append(RowChunk(bits, names))
    return Store(path)
