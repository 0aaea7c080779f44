"""Columns of new rows are matched to those of the model by name, in every method and for every type of table."""

import numpy as np
import pandas as pd
import pytest

import bitatoms as ba
from bitatoms.errors import InputWarning
from bitatoms.report import report_data

pytestmark = pytest.mark.usefixtures("few_trials")

M = 20
NAMES = [f"item {j}" for j in range(M)]
X = ba.datasets.planted(90, M, 2, noise=0.02, random_state=0).X
FRAME = pd.DataFrame(X, columns=NAMES)
TURNED = FRAME[NAMES[::-1]]
MORE = TURNED.assign(day="monday", **{"item 20": 1})  # columns of text and of bits that the model does not know
FEWER = TURNED.drop(columns=NAMES[:3])
ZEROS = X * (np.arange(M) >= 3)
IGNORED = "ignored 2 columns that the model was not fitted on: 'day', 'item 20'"
LACKS = "lacks columns that the model was fitted on: 'item 0', 'item 1', 'item 2'; add them, or pass absent=\"zero\""


@pytest.fixture(scope="module")
def model():
    return ba.BinaryDictionaryLearning(2, search="paper", random_state=0).fit(FRAME)


def as_library(frame, library):
    """Return a data frame of a library."""
    module = pytest.importorskip(library)
    return frame if library == "pandas" else getattr(module, "Table", module).from_pandas(frame)


def assert_same_codes(model, given, expected):
    codes = model.transform(expected)
    assert np.any(codes)
    np.testing.assert_array_equal(model.transform(given), codes)
    np.testing.assert_array_equal(model.score_samples(given), model.score_samples(expected))
    np.testing.assert_array_equal(model.decision_function(given), model.decision_function(expected))
    assert model.score(given) == model.score(expected)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_data_frames(model, library, tmp_path):
    turned, more, fewer = (as_library(frame, library) for frame in (TURNED, MORE, FEWER))
    assert_same_codes(model, turned, FRAME)
    with pytest.warns(InputWarning, match=f"X: {IGNORED}") as caught:
        codes = model.transform(more)
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(codes, model.transform(FRAME))
    with pytest.raises(ValueError, match=f"X {LACKS}"):
        model.transform(fewer)
    with pytest.raises(ValueError, match="no column that the model was fitted on"):
        model.transform(as_library(TURNED.rename(columns=str.upper), library))
    model.save(tmp_path / "model.npz")
    lenient = ba.load(tmp_path / "model.npz").set_params(absent="zero")
    with pytest.warns(InputWarning, match="^X: 3 absent columns are read as 0: 'item 0', 'item 1', 'item 2'$"):
        assert_same_codes(lenient, fewer, pd.DataFrame(ZEROS, columns=NAMES))


def test_tables_and_anndata(model):
    assert_same_codes(model, ba.Table.from_any(TURNED), FRAME)
    anndata = pytest.importorskip("anndata")
    cells = MORE.drop(columns="day").astype(np.float32)
    genes = anndata.AnnData(cells.to_numpy(), var=pd.DataFrame(index=cells.columns))
    with pytest.warns(InputWarning, match="ignored 1 column that the model was not fitted on: 'item 20'"):
        codes = model.transform(genes)
    np.testing.assert_array_equal(codes, model.transform(FRAME))
    with pytest.warns(InputWarning, match="ignored 1 column"):
        ba.annotate(genes, model)
    np.testing.assert_array_equal(genes.obsm["X_bitatoms"], codes)
    np.testing.assert_array_equal(genes.varm["bitatoms_atoms"][:M], model.components_.T[::-1])
    assert not genes.varm["bitatoms_atoms"][M].any()


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz", "zarr", "h5ad"])
def test_files(model, tmp_path, ending):
    path = tmp_path / f"new.{ending}"
    ba.write(ba.Table.from_any(MORE.drop(columns="day")), path)
    if ending == "csv":
        MORE.to_csv(path, index=False)
    elif ending == "parquet":
        MORE.assign(day=pd.Timestamp(2024, 1, 1)).to_parquet(path)  # neither numbers nor text
    ignored = IGNORED if ending in ("csv", "parquet") else "ignored 1 column .*: 'item 20'"
    with pytest.warns(InputWarning, match=ignored):
        codes = model.transform(path)
    np.testing.assert_array_equal(codes, model.transform(FRAME))
    ba.write(ba.Table.from_any(FEWER), path)
    with pytest.raises(ValueError, match=rf"new\.{ending} {LACKS}"):
        model.transform(path)


def test_items_of_transactions(tmp_path):
    """Rows that a model was fitted on, in a file of other rows with other items."""
    ba.write(FRAME, tmp_path / "all.basket")
    model = ba.BinaryDictionaryLearning(2, search="paper", random_state=0).fit(tmp_path / "all.basket")
    first = [i for i in range(90) if X[i, 5:].sum() == 0 and X[i].any()]
    assert first
    lists = [[*(NAMES[j] for j in np.flatnonzero(X[i])), "new"] for i in first]
    (tmp_path / "some.basket").write_text("".join(f"{','.join(items)}\n" for items in lists))
    with pytest.warns(InputWarning, match="ignored 1 column that .* fitted on: 'new'; 17 absent columns are"):
        codes = model.transform(tmp_path / "some.basket")
    np.testing.assert_array_equal(codes, model.transform(tmp_path / "all.basket")[first])
    store = ba.pack(tmp_path / "some.basket", tmp_path / "some.zarr")
    with pytest.warns(InputWarning, match="'new'"):
        np.testing.assert_array_equal(model.transform(store), codes)
    (tmp_path / "empty.basket").write_text("\n\n")
    assert model.transform(tmp_path / "empty.basket").shape == (2, 2)


def test_item_numbers(tmp_path):
    """Transactions of issue 14: no row of b.dat has an item of a.dat."""
    for name, text in {"a": "0 1 2\n3 4\n" * 200, "b": "5 6 7\n8 9\n" * 200, "c": "3 4 8\n\n0 1 2\n"}.items():
        (tmp_path / f"{name}.dat").write_text(text)
    for rows in (tmp_path / "a.dat", ba.read(tmp_path / "a.dat").to_dense()):  # with names, and without
        model = ba.BinaryDictionaryLearning(2, search="paper", random_state=0).fit(rows)
        with pytest.raises(ValueError, match=r"b\.dat has no column that the model was fitted on: it has '5', '6'"):
            model.transform(tmp_path / "b.dat")
        with pytest.warns(InputWarning, match="ignored 1 column .*: '8'"):
            codes = model.transform(tmp_path / "c.dat")
        assert model.inverse_transform(codes).tolist() == [[0, 0, 0, 1, 1], [0, 0, 0, 0, 0], [1, 1, 1, 0, 0]]


def test_batches_are_matched_to_the_first():
    first, second = (
        ba.BinaryDictionaryLearning(2, algebra="xor", random_state=0).partial_fit(FRAME[:40]) for _ in range(2)
    )
    first.partial_fit(FRAME[40:])
    with pytest.warns(InputWarning, match=IGNORED):
        second.partial_fit(MORE[40:])
    np.testing.assert_array_equal(second.components_, first.components_)
    assert second.codelength_ == first.codelength_
    with pytest.raises(ValueError, match=LACKS):
        second.partial_fit(FEWER)


@pytest.mark.parametrize("as_pair", [False, True])
@pytest.mark.filterwarnings("ignore:max_iter ended")
def test_initial_atoms_are_matched_to_the_columns_of_the_table(model, as_pair):
    turned = pd.DataFrame(model.components_, columns=NAMES)[NAMES[::-1]]
    params = {"n_components": 2, "search": "paper", "max_iter": 1, "random_state": 0}
    init = (turned, None) if as_pair else turned
    expected, found = (
        ba.BinaryDictionaryLearning(init=each, **params).fit(FRAME).components_ for each in (model.components_, init)
    )
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(ba.factorize(FRAME, init=init, **params).atoms.to_dense(), expected)
    with pytest.raises(ValueError, match="init lacks columns that the model was fitted on: 'item 0'; add them"):
        ba.factorize(FRAME, init=turned.drop(columns="item 0"), **params)


def test_positions_without_names_report_and_baselines(model):
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.transform(X)
    with pytest.warns(InputWarning, match="the columns of X have no names, but .* was fitted with names"):
        model.transform(ba.Table(ba.BitMatrix.from_dense(X)))
    with pytest.raises(ValueError, match="X has 3 columns, but the model was learned from 20"):
        model.transform(ba.Table(ba.BitMatrix.from_dense(X[:, :3])))
    with pytest.warns(InputWarning, match=f"the table: {IGNORED}"):
        assert report_data(model, MORE).codes == report_data(model, FRAME).codes
    asso = ba.baselines.Asso(2).fit(FRAME)
    np.testing.assert_array_equal(asso.transform(TURNED), asso.transform(FRAME))
    with pytest.raises(ValueError, match=r"X lacks columns .* 'item 0', 'item 1', 'item 2'; add them$"):
        asso.transform(FEWER)
