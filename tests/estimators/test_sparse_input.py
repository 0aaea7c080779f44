"""Wide sparse tables are fitted, coded and scored by their ones, with the results of packed tables."""

import re

import numpy as np
import pytest
from scipy.sparse import csr_array, save_npz

import bitatoms as ba
from bitatoms import BinaryDictionaryLearning, BitMatrix, Table
from support.bundles import N_COLS, table_with_bundles

pytestmark = pytest.mark.usefixtures("few_trials")

X = table_with_bundles()
NAMES = tuple(f"c{j}" for j in range(N_COLS))


def new_model():
    return BinaryDictionaryLearning(algebra="or", random_state=0)


@pytest.fixture(scope="module")
def fitted():
    return new_model().fit(BitMatrix.from_dense(X))


@pytest.fixture
def half_of_it_cannot_be_packed(monkeypatch):
    monkeypatch.setattr("bitatoms.engine.distinct_rows._HASHED_WORDS", 1 << 10)
    monkeypatch.setattr("bitatoms.model.model._CHUNK_BITS", 1 << 10)
    monkeypatch.setattr("bitatoms.model.model._MIN_CHUNK_ROWS", 100)
    monkeypatch.setattr("bitatoms.sparse_bits.memory_limit", lambda: X.size // 16)


@pytest.mark.usefixtures("half_of_it_cannot_be_packed")
@pytest.mark.parametrize("kind", ["coo", "pandas", "file", "Table", "AnnData", "store"])
def test_every_form_of_the_table(kind, fitted, tmp_path):
    given = csr_array(X)
    if kind == "pandas":
        given = pytest.importorskip("pandas").DataFrame.sparse.from_spmatrix(given)
    elif kind == "file":
        save_npz(tmp_path / "table.npz", given)
        given = tmp_path / "table.npz"
    elif kind == "Table":
        given = Table.from_any(given)
    elif kind == "store":
        pytest.importorskip("zarr")
        given = ba.pack(given, tmp_path / "rows.zarr")
        assert given.n_ones == X.sum()
    elif kind == "AnnData":
        given = pytest.importorskip("anndata").AnnData(given)
    else:
        given = given.asformat(kind)
    model = new_model().fit(given)
    np.testing.assert_array_equal(model.components_, fitted.components_)
    assert model.codelength_ == fitted.codelength_
    np.testing.assert_array_equal(model.transform(given), fitted.transform(X))
    np.testing.assert_array_equal(model.score_samples(given), fitted.score_samples(X))
    np.testing.assert_array_equal(model.decision_function(given), fitted.decision_function(X))


def test_columns_are_matched_by_name(fitted):
    model = new_model().fit(Table(BitMatrix.from_dense(X), columns=NAMES))
    order = np.random.default_rng(0).permutation(N_COLS)
    turned = Table(Table.from_any(csr_array(X[:, order])).data, columns=[NAMES[j] for j in order])
    np.testing.assert_array_equal(model.transform(turned), fitted.transform(X))
    fewer = Table(Table.from_any(csr_array(X[:, order[5:]])).data, columns=[NAMES[j] for j in order[5:]])
    for absent in ("zero", "unknown"):
        with pytest.warns(UserWarning, match="5 absent columns"):
            codes = model.set_params(absent=absent).transform(fewer)
        with pytest.warns(UserWarning, match="5 absent columns"):
            np.testing.assert_array_equal(codes, model.transform(Table(fewer.bits, columns=fewer.columns)))


def test_sparse_partitions_of_a_dask_array_are_not_packed(fitted, monkeypatch):
    array = pytest.importorskip("dask.array").from_array(X, chunks=(300, N_COLS)).map_blocks(csr_array)

    def never(*_):
        raise AssertionError("rows were packed")

    with monkeypatch.context() as patch:
        patch.setattr("bitatoms.bits.BitMatrix.from_sparse", never)
        model = new_model().fit(array)
    np.testing.assert_array_equal(model.components_, fitted.components_)
    assert model.codelength_ == fitted.codelength_
    np.testing.assert_array_equal(model.transform(array).compute(), fitted.transform(X))
    np.testing.assert_array_equal(model.score_samples(array).compute(), fitted.score_samples(X))
    sampled = [new_model().set_params(n_components=3, search_rows=100).fit(rows) for rows in (array, X)]  # with passes
    np.testing.assert_array_equal(sampled[0].components_, sampled[1].components_)


def test_a_memory_limit_that_the_ones_exceed(fitted, monkeypatch, tmp_path):
    """The error says how much would do."""
    monkeypatch.setattr("bitatoms.rows.budget._ONES_BYTES", 10 << 20)
    ones = (10 << 20) + 32 * int(X.sum()) + 16 * sum(X.shape)
    table = Table.from_any(csr_array(X))
    model = new_model().set_params(resources__max_memory=ones + 100_000).fit(table)
    np.testing.assert_array_equal(model.components_, fitted.components_)
    for rows in (table, ba.pack(table, tmp_path / "rows.zarr")):
        with pytest.raises(ValueError, match="is too small for a search of 1000 rows by their ones") as caught:
            new_model().set_params(resources__max_memory=ones - 1).fit(rows)
        least = int(re.search(r"at least (\d+) bytes", str(caught.value))[1])
        model = new_model().set_params(resources__max_memory=least).fit(rows)
        np.testing.assert_array_equal(model.components_, fitted.components_)


def test_comparing_a_sparse_table_does_not_pack_it():
    table = Table.from_any(csr_array(X))
    assert table == Table.from_any(X)
    np.testing.assert_array_equal(np.asarray(table), X)
    assert not isinstance(table.data, BitMatrix)


def test_the_atoms_are_an_array_only_when_asked_for():
    """They can be many, and an array of all their cells large."""
    model = new_model().fit(X[:300])
    model.transform(X[:300])
    assert not [name for name, value in vars(model).items() if np.shape(value) == (model.n_components_, N_COLS)]
    assert model.components_.sum() == model.as_model().atoms.count()
    model.components_ = model.components_[::-1]
    assert model.as_model().atoms.to_dense().tolist() == model.components_.tolist()
    assert model.fit(X[:300]).as_model().rows_hash is not None
