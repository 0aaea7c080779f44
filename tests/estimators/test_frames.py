"""Patterns as data frames: `to_frame` of estimators and models, with the names of pattern files and --json."""

import csv
import json
import sys
from dataclasses import replace

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.core.recurrence import Recurrence
from bitatoms.io.patterns import write_patterns
from bitatoms.libraries import MissingLibrary
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


def test_one_row_per_atom_with_the_values_of_patterns(model):
    frame, patterns = model.to_frame(), model.patterns()
    assert list(frame.columns) == COLUMNS
    assert len(frame) == len(patterns) == model.n_components_ > 3
    for row, pattern in zip(frame.itertuples(), patterns, strict=True):
        for name in COLUMNS[:-2]:
            assert getattr(row, name) == getattr(pattern, name)
    assert (frame["size"] == model.components_.sum(axis=1)).all()
    assert frame[["recurs", "span"]].isna().all(axis=None)
    types = {"atom": "int64", "rows": "int64", "complete": "Int64", "lift": "float64", "recurs": "float64"}
    assert {name: str(frame[name].dtype) for name in types} == types


def test_counts_are_those_of_the_table():
    model, table = specimen("or")
    frame, X = model.to_frame(), table.to_dense().astype(bool)
    for row in frame.itertuples():
        own = [table.columns.index(name) for name in row.features]
        complete, expected = X[:, own].all(axis=1).sum(), len(X) * X[:, own].mean(axis=0).prod()
        assert row.complete == complete
        assert row.expected == pytest.approx(expected)
        assert row.lift == pytest.approx(complete / expected)


def test_files_and_json_have_the_same_names(model, tmp_path):
    write_patterns(model.as_model(), tmp_path / "patterns.csv")
    write_patterns(model.as_model(), tmp_path / "patterns.json")
    with open(tmp_path / "patterns.csv", newline="") as file:
        assert next(csv.reader(file)) == COLUMNS[:-2]
    values = json.loads((tmp_path / "patterns.json").read_text(encoding="utf-8"))
    assert set(values[0]) == set(COLUMNS) - {"span"}
    assert [value["size"] for value in values] == model.to_frame()["size"].tolist()


def test_what_is_unknown_is_missing(model):
    learned = model.as_model()
    older = replace(learned, complete=None, lacking=None).to_frame()
    assert older[["complete", "expected", "lift", "member_lifts"]].isna().all(axis=None)
    assert str(older["complete"].dtype) == "Int64"
    counts = np.arange(model.n_components_)
    counted = replace(learned, recurrence=Recurrence(counts, 20, 0.5, 0.8))
    np.testing.assert_array_equal(counted.to_frame()["recurs"], counts / 20)


def test_a_model_without_atoms_has_the_columns():
    frame = ba.BinaryDictionaryLearning(max_components=0).fit([[1, 0], [0, 1]]).to_frame()
    assert (list(frame.columns), len(frame)) == (COLUMNS, 0)


def test_genotypes_have_a_span():
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
        assert row.features == tuple(np.array(users.columns)[role])
        assert row.complete == X[:, role].all(axis=1).sum() >= row.rows
        for column, lift in zip(np.flatnonzero(role), row.member_lifts, strict=True):
            others = np.delete(X[:, role], np.flatnonzero(role).tolist().index(column), axis=1).all(axis=1)
            assert lift == pytest.approx(X[others, column].mean() / X[:, column].mean())
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


def test_without_pandas(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingLibrary, match=r'pip install "bitatoms\[pandas\]"'):
        model.to_frame()
    assert model.patterns()
