"""Missing values of samples are unknown cells: they have no influence, and cost nothing."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.model_selection import StratifiedKFold, cross_val_score, cross_validate, train_test_split
from sklearn.utils import get_tags

import bitatoms as ba
import naive
from bitatoms import BinaryDictionaryLearning, BitMatrix, Table, baselines
from bitatoms.parallel import Workers
from support.strategies import random_bits

X = ba.datasets.planted(160, 20, 4, code_density=0.4, noise=0.02, random_state=0).X
MASK = random_bits(3, *X.shape, 0.2) == 1
INCOMPLETE = np.where(MASK, np.nan, X)
BITS = BitMatrix.from_dense(X).with_unknown(BitMatrix.from_dense(MASK))


pytestmark = pytest.mark.usefixtures("few_trials")


def polars_frame():
    polars = pytest.importorskip("polars")
    return polars.DataFrame(INCOMPLETE, schema=[f"x{j}" for j in range(20)]).fill_nan(None)


KINDS = {
    "objects": lambda: np.where(MASK, None, X),
    "masked": lambda: np.ma.masked_array(X, MASK),
    "pandas nullable integers": lambda: pd.DataFrame(INCOMPLETE).astype("UInt8"),
    "polars": polars_frame,
    "sparse": lambda: csr_array(INCOMPLETE),
    "AnnData": lambda: pytest.importorskip("anndata").AnnData(INCOMPLETE.astype(np.float32)),
}


def results(model, table):
    """Return what is learned from a table, and what it makes of the table."""
    counts = model.as_model()
    arrays = counts.wrong, counts.uses, counts.known, model.transform(table), model.score_samples(table)
    return [model.components_, model.bias_, *arrays, model.score(table)]


def assert_same(one, other):
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.fixture(scope="module")
def expected():
    return results(BinaryDictionaryLearning(4, algebra="xor", random_state=0).fit(BITS), BITS)


@pytest.mark.parametrize("kind", KINDS)
def test_missing_values_of_any_type_are_unknown_cells(expected, kind):
    table = KINDS[kind]()
    model = BinaryDictionaryLearning(4, algebra="xor", random_state=0).fit(table)
    assert_same(results(model, table), expected)
    assert model.n_features_in_ == 20
    np.testing.assert_array_equal(model.as_model().known, (~MASK).sum(axis=0))
    assert "of the known cells are wrong" in model.summary_


@pytest.mark.parametrize("name", ["table", "table.csv", "packed.zarr"])
@pytest.mark.filterwarnings("ignore:.* missing values are read as unknown cells")
def test_tables_and_files_with_unknown_cells(expected, tmp_path, name):
    """Methods take the path of a file, too."""
    table, names = tmp_path / name, [f"x{j}" for j in range(20)]
    if name == "table":
        table = Table(BITS, columns=names)
    elif name == "packed.zarr":
        table = ba.pack((INCOMPLETE[start : start + 50] for start in range(0, 160, 50)), table)
        assert table.has_unknown
    else:
        ba.write(Table(BITS, columns=names), table)
    model = BinaryDictionaryLearning(4, algebra="xor", random_state=0).fit(table)
    assert_same(results(model, table), expected)
    assert name == "packed.zarr" or model.feature_names_in_.tolist() == names
    if name == "table.csv":
        first, second = (
            BinaryDictionaryLearning(4, algebra="xor", random_state=0).partial_fit(each) for each in (BITS, table)
        )
        np.testing.assert_array_equal(second.components_, first.components_)


def test_a_threshold_applies_once_to_a_file(tmp_path):
    counts = np.random.default_rng(0).poisson(2, (60, 8))
    np.save(tmp_path / "counts.npy", counts)
    model, expected = (BinaryDictionaryLearning(2, binarize=2, algebra="xor", random_state=0) for _ in range(2))
    np.testing.assert_array_equal(model.fit(tmp_path / "counts.npy").components_, expected.fit(counts).components_)
    for name in ("none.csv", "none.zarr"):
        with pytest.raises(ba.FileError, match=name):
            model.fit(tmp_path / name)


@pytest.mark.parametrize("algebra", ["xor", "or"])
def test_unknown_cells_cost_nothing(algebra):
    model = BinaryDictionaryLearning(4, algebra=algebra, random_state=0).fit(INCOMPLETE)
    codes, counts = model.transform(INCOMPLETE), model.as_model()
    table = np.where(MASK, 2, X).astype(np.uint8)
    errors = naive.errors(table, model.components_, codes, algebra, model.bias_)
    bits = 0
    for values, ones, n, costs in (
        (errors, counts.wrong, counts.known, ~MASK),
        (codes, counts.uses, 160, np.ones_like(codes, bool)),
    ):
        share = (ones + 0.5) / (n + 1)
        bits = bits + np.where(costs, np.where(values, -np.log2(share), -np.log2(1 - share)), 0).sum(axis=1)
    data, packed = ba.Table.from_any(INCOMPLETE).bits, ba.BitMatrix.from_dense(codes)
    np.testing.assert_allclose(counts.row_bits(data, packed, Workers(1)), bits)
    nothing_known = np.full((1, 20), np.nan)
    assert not model.transform(nothing_known).any()
    assert model.score(nothing_known) == pytest.approx(0)


def test_scikit_learn_divides_tables_with_names_and_unknown_cells():
    """Folds and scores are those of an array; folds have the names of their rows and columns."""
    names, labels = [f"x{j}" for j in range(20)], X[:, 0]
    table = Table(BITS, [f"row {i}" for i in range(160)], names, row_data={"label": labels})
    train, test, *classes = train_test_split(table, labels, stratify=labels, random_state=0)
    for part, own in zip((train, test), classes, strict=True):
        rows = [int(name.split()[1]) for name in part.row_names]
        np.testing.assert_array_equal(np.asarray(part), INCOMPLETE[rows])
        assert part.row_data["label"].tolist() == own.tolist() == labels[rows].tolist()
    model = BinaryDictionaryLearning(2, search="paper", random_state=0)
    np.testing.assert_array_equal(
        *(cross_val_score(model, each, cv=2, error_score="raise") for each in (table, INCOMPLETE))
    )
    classifier = ba.BinaryDictionaryClassifier(1, search="paper", random_state=0)
    found = cross_validate(classifier, table, labels, cv=StratifiedKFold(2), return_estimator=True, error_score="raise")
    assert all(each.feature_names_in_.tolist() == names for each in found["estimator"])


@pytest.mark.parametrize("kind", ["objects", "masked", "sparse", "bits", "table"])
def test_baselines_refuse_missing_values(kind):
    table = {"bits": BITS, "table": Table(BITS)}.get(kind) or KINDS[kind]()
    for use in (baselines.GreConD(3).fit, baselines.GreConD(3).fit(X).transform):
        with pytest.raises(ValueError, match=r"(a missing|an unknown) value.* at row 0, column \d+ \(\d+ in all"):
            use(table)
    assert get_tags(BinaryDictionaryLearning()).input_tags.allow_nan
    for name in baselines.__all__:
        assert name == "dude" or not get_tags(getattr(baselines, name)(3)).input_tags.allow_nan
