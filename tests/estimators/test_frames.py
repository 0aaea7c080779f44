"""Patterns as data frames: `to_frame` of estimators and models, with the names of pattern files and --json."""

from dataclasses import replace

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.model.patterns import Recurrence
from support.zoo import specimen

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.usefixtures("few_exchanges")

COLUMNS = [
    "atom", "features", "size", "rows", "share", "bits_saved", "complete", "expected", "lift", "member_lifts",
    "recurs", "span",
]  # fmt: skip


@pytest.fixture(scope="module")
def model():
    return specimen("or").model


def test_one_row_per_atom_with_the_values_of_patterns_and_counts_of_the_table():
    model, table = specimen("or")
    frame, patterns, X = model.to_frame(), model.patterns(), table.to_dense().astype(bool)
    assert list(frame.columns) == COLUMNS
    assert len(frame) == len(patterns) == model.n_components_ > 3
    for row, pattern, atom in zip(frame.itertuples(), patterns, model.components_ == 1, strict=True):
        assert all(getattr(row, name) == getattr(pattern, name) for name in COLUMNS[:-2])
        complete, expected = X[:, atom].all(axis=1).sum(), len(X) * X[:, atom].mean(axis=0).prod()
        assert (row.complete, row.size) == (complete, atom.sum())
        assert (row.expected, row.lift) == pytest.approx((expected, complete / expected))
    assert frame[["recurs", "span"]].isna().all(axis=None)
    types = {"atom": "int64", "rows": "int64", "complete": "Int64", "lift": "float64", "recurs": "float64"}
    assert {name: str(frame[name].dtype) for name in types} == types


def test_what_is_unknown_is_missing(model):
    learned = model.as_model()
    older = replace(learned, complete=None, lacking=None).to_frame()
    assert older[["complete", "expected", "lift", "member_lifts"]].isna().all(axis=None)
    assert str(older["complete"].dtype) == "Int64"
    counts = np.arange(model.n_components_)
    counted = replace(learned, recurrence=Recurrence(counts, 20, 0.5, 0.8))
    np.testing.assert_array_equal(counted.to_frame()["recurs"], counts / 20)


def test_a_model_without_atoms_has_the_columns_and_genotypes_have_a_span():
    frame = (
        ba.BinaryDictionaryLearning(constraints=ba.Constraints(max_components=0), algebra="xor")
        .fit([[1, 0], [0, 1]])
        .to_frame()
    )
    assert (list(frame.columns), len(frame)) == (COLUMNS, 0)
    model = specimen("genotypes").model
    assert model.to_frame()["span"].tolist() == [pattern.span for pattern in model.patterns()]
    assert model.to_frame()["span"].notna().all()


def test_roles_of_a_cover():
    users = ba.datasets.permissions(60)
    miner = ba.CoverMiner(random_state=0, max_iter=1).fit(users)
    frame, X = miner.to_frame(), users.to_dense().astype(bool)
    assert list(frame.columns) == [name for name in COLUMNS if name not in ("bits_saved", "recurs", "span")]
    assert frame["atom"].tolist() == list(range(1, miner.n_components_ + 1))
    for row, role in zip(frame.itertuples(), miner.components_.astype(bool), strict=True):
        columns = np.flatnonzero(role)
        assert row.features == tuple(users.columns[column] for column in columns)
        assert row.complete == X[:, role].all(axis=1).sum() >= row.rows
        others = [X[:, np.setdiff1d(columns, column)].all(axis=1) for column in columns]
        lifts = [X[rows, column].mean() / X[:, column].mean() for rows, column in zip(others, columns, strict=True)]
        assert row.member_lifts == pytest.approx(lifts)
    np.testing.assert_array_equal(frame["rows"], miner.cover_.codes.column_weights())
    plain = ba.CoverMiner(random_state=0, max_iter=1).fit(users.to_dense()).to_frame()
    assert plain["features"][0] == tuple(f"x{column}" for column in np.flatnonzero(miner.components_[0]))


def test_atoms_of_classes():
    X, y = ba.datasets.digits()
    X, y = pd.DataFrame(X[y < 2]).rename(columns="pixel {}".format), np.array(["zero", "one"])[y[y < 2]]
    classifier = ba.BinaryDictionaryClassifier(2, n_models=2, search="paper", random_state=0).fit(X[:80], y[:80])
    frame = classifier.to_frame()
    assert list(frame.columns) == ["class", "model", *COLUMNS]
    assert frame["class"].tolist() == ["one"] * 4 + ["zero"] * 4
    assert frame["model"].tolist() == [1, 1, 2, 2] * 2
    assert frame["atom"].tolist() == [1, 2] * 4
    assert all(name.startswith("pixel ") for features in frame["features"] for name in features)
