"""Fixtures of the tests of stores: a planted table in stores with chunks of several sizes, and a model of it."""

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.model.model import Model
from bitatoms.parallel import Workers
from bitatoms.rows import source
from bitatoms.rows.source import MemoryRows
from bitatoms.search.plan import NmfBudget
from support.plans import use_budget, use_small_budget
from support.sources import learned, write_store

N_ROWS, N_COLS = 3001, 70


@pytest.fixture(autouse=True, scope="module")
def enough_trials():
    """Search with few trials, but enough to use all atoms, and to leave some work to passes over all rows."""
    with pytest.MonkeyPatch.context() as patch:
        use_small_budget(patch)
        use_budget(patch, max_trials=100, nmf=NmfBudget(max_starts=2))
        yield


@pytest.fixture(scope="session")
def bits():
    """The planted rows, 3001 x 70."""
    X = ba.datasets.planted(N_ROWS, N_COLS, 7, code_density=0.3, noise=0.02, random_state=3).X
    return ba.BitMatrix.from_any(X)


@pytest.fixture(scope="session", params=["all known", "some unknown", "by ones"])
def form(request):
    """The form of a store: packed rows, with unknown cells or without, or rows stored by their ones."""
    return request.param


@pytest.fixture(scope="session")
def any_bits(form, bits):
    """The planted rows, complete, and with unknown cells in the first and the last thousand rows."""
    if form != "some unknown":
        return bits
    mask = np.random.default_rng(0).random(bits.shape) < 0.15
    mask[1000:2000] = False
    return bits.with_unknown(ba.BitMatrix.from_dense(mask))


@pytest.fixture(scope="session")
def any_stores(form, any_bits, tmp_path_factory):
    """The planted rows in two stores, whose chunks are not multiples of 64 rows."""
    return stores_of(any_bits, tmp_path_factory, form == "by ones")


@pytest.fixture(scope="session")
def row_names():
    return tuple(f"row {row}" for row in range(N_ROWS))


@pytest.fixture(scope="session")
def stores(bits, tmp_path_factory):
    """The planted rows, complete, in two stores, whose chunks are not multiples of 64 rows."""
    return stores_of(bits, tmp_path_factory)


def stores_of(bits, tmp_path_factory, by_ones=False):
    folder = tmp_path_factory.mktemp("stores")
    sizes = (14_000, 100_000) if by_ones else (9 * 100, 9 * 1333)
    return [write_store(folder / f"{size}.zarr", bits, chunk_bytes=size, by_ones=by_ones) for size in sizes]


@pytest.fixture(scope="session")
def model(bits):
    """A model of the planted rows."""
    return Model.from_factorization(learned(MemoryRows(bits, Workers()), search_rows=300, n_components=7))


@pytest.fixture(scope="session")
def passes(bits):
    """The first two passes of a fit: spec, codes and counts of each."""
    rows = MemoryRows(bits, Workers())
    seen, run_pass = [], rows.run_pass
    rows.run_pass = lambda spec, *more: seen.append((spec, *run_pass(spec, *more))) or seen[-1][1:]
    learned(rows, n_components=12, search_rows=200)
    assert len(seen) >= 2
    return seen[:2]


@pytest.fixture
def chunk_sizes(monkeypatch):
    """The numbers of rows of the chunks that passes over rows in memory or in a store have processed."""
    sizes, run_pass = [], source.run_pass
    monkeypatch.setattr(source, "run_pass", lambda data, *more: sizes.append(len(data)) or run_pass(data, *more))
    return sizes
