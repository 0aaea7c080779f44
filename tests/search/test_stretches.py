"""Wide tables with positions: atoms are described by stretches, in every kind of fit."""

import json

import numpy as np
import pytest

import bitatoms as ba
import naive
from bitatoms.columns.annotations import Annotations
from bitatoms.columns.variants import column_data
from bitatoms.html.model_tables import pattern_table
from bitatoms.report import report_data
from bitatoms.search.windows import driver as windows
from support.commands import rows_of
from support.parameters import nested
from support.plans import use_small_budget, use_windows
from support.results import assert_matches_oracle

N_COLUMNS = 2100


@pytest.fixture(autouse=True, scope="module")
def small_budget():
    with pytest.MonkeyPatch.context() as patch:
        use_small_budget(patch)
        use_windows(patch, max_cells=0)  # after windows are joined, no search of the whole table follows
        yield


def haplotypes(n_rows, random):
    """Return haplotypes with 14 blocks of 30 columns, shuffled, on three chromosomes; and the order of columns."""
    X = random.random((n_rows, N_COLUMNS)) < 0.02
    for start in range(60, N_COLUMNS, 150):
        block = random.random((4, 30)) < 0.2
        X[:, start : start + 30] ^= block[random.integers(4, size=n_rows)]
    place = np.arange(N_COLUMNS)
    chromosome = np.array(["1", "2", "10"])[place // 900]
    shuffled = random.permutation(N_COLUMNS)
    fields = {"chromosome": chromosome, "position": 5 + 3 * place, "id": [f"s{i}" for i in place]}
    variants = Annotations({**fields, "allele": ["A"] * N_COLUMNS, "other": ["C"] * N_COLUMNS}, N_COLUMNS)
    data = column_data(variants.take(shuffled), 1)
    return ba.Table(ba.BitMatrix.from_dense(X[:, shuffled]), column_data=data), np.argsort(shuffled)


@pytest.fixture(scope="module")
def table():
    return haplotypes(50, np.random.default_rng(0))


@pytest.fixture(scope="module")
def fit(table):
    return ba.factorize(table[0], algebra="or", random_state=0)


@pytest.fixture(scope="module")
def model(table):
    return ba.BinaryDictionaryLearning(algebra="or", random_state=0).fit(table[0])


def cells(table):
    return table.bits.to_dense(np.uint8)


def test_a_fit(table, fit):
    (table, order), result, algebra = table, fit, "or"
    assert_matches_oracle(result, cells(table), order)
    assert result.codelength == ba.codelength(table, result.atoms, result.codes, result.bias, algebra)
    bits = [row.bits for row in result.history]
    assert bits == sorted(bits, reverse=True)
    assert bits[-1] == result.codelength.total == result.codelengths[algebra]
    assert {"window", "join"} <= {row.move for row in result.history}
    plain = ba.factorize(table.bits, algebra=algebra, random_state=0)
    assert_matches_oracle(plain, cells(table))
    by_stretches = ba.codelength(table, plain.atoms, plain.codes, plain.bias, algebra).total
    assert result.codelength.total <= by_stretches < plain.codelength.total
    few = order[:2047]
    narrow, atoms = table.column_data.take(few), result.atoms.take_columns(few)
    length = ba.codelength(ba.Table(table.bits.take_columns(few), column_data=narrow), atoms, result.codes)
    assert length.atoms == sum(naive.string_bits(2047, int(ones)) for ones in atoms.row_weights())


def test_a_sparse_table():
    random = np.random.default_rng(0)
    table, order = haplotypes(300, random)
    X = np.zeros((300, N_COLUMNS), np.uint8)
    for columns in (order[100:108], order[[5, 900, 2000]]):
        X[np.ix_(random.random(300) < 0.2, columns)] = 1
    table = ba.Table(ba.BitMatrix.from_dense(X), column_data=table.column_data)
    result = ba.factorize(table, algebra="or", random_state=0)
    assert_matches_oracle(result, X, order)
    assert sorted(result.atoms.row_weights().tolist()) == [3, 8]


def test_a_model_its_file_and_its_report(table, model, tmp_path):
    table, order = table
    factors = model.components_.astype(np.uint8), model.transform(table).astype(np.uint8)
    assert model.codelength_.atoms == naive.codelength(cells(table), *factors, "or", model.bias_, order)[2]
    model.save(tmp_path / "model.npz")
    loaded = ba.load(tmp_path / "model.npz")
    assert loaded.codelength_ == model.codelength_
    assert loaded.patterns() == model.patterns()
    other = ba.Table(table.bits[::2], column_data=table.column_data)  # its rows are coded
    assert report_data(loaded, other).codelength.atoms == model.codelength_.atoms
    assert report_data(loaded, table).codelength == model.codelength_


def test_patterns_show_where_atoms_are(table, model, tmp_path):
    table, _ = table
    positions, chromosomes = table.column_data["position"], table.column_data["chromosome"]
    for pattern, atom in zip(model.patterns(), model.components_, strict=True):
        places = {}
        for column in np.flatnonzero(atom):
            places.setdefault(str(chromosomes[column]), []).append(int(positions[column]))
        stretches = pattern.span.split(",")
        assert len(stretches) == len(places)
        for stretch in stretches:
            name, _, ends = stretch.partition(":")
            found = [int(end) for end in ends.split("-")]
            assert found == sorted({min(places[name]), max(places[name])})
    for name in ("patterns.csv", "patterns.json"):
        pattern_table(model.patterns()).write(tmp_path / name)
    for stored in (json.loads((tmp_path / "patterns.json").read_text()), rows_of(tmp_path / "patterns.csv")):
        assert [row["span"] for row in stored] == [pattern.span for pattern in model.patterns()]
    plain = ba.BinaryDictionaryLearning(2, algebra="or", random_state=0).fit(cells(table)[:, :40])
    assert {pattern.span for pattern in plain.patterns()} == {None}


def test_a_sample_and_passes_in_memory_and_in_a_store(tmp_path, monkeypatch):
    monkeypatch.setattr(windows, "column_groups", None)  # windows follow the positions
    table, order = haplotypes(120, np.random.default_rng(1))
    result = ba.factorize(table, algebra="or", random_state=0, search_rows=60)
    assert_matches_oracle(result, cells(table), order)
    assert result.history[-1].move.startswith("pass")
    best = min(row.bits for row in result.history if row.move.startswith("pass"))
    assert result.codelength.total <= best
    ba.pack(table, tmp_path / "rows.zarr")
    model = ba.BinaryDictionaryLearning(algebra="or", random_state=0, search_rows=60).fit(tmp_path / "rows.zarr")
    assert model.codelength_ == result.codelength


def test_a_fit_is_not_resumed_with_other_positions(table, tmp_path):
    table, _ = table
    how = {"algebra": "or", "callbacks": [lambda row: True], "random_state": 0, "checkpoint": tmp_path / "checkpoint"}
    ba.factorize(table, **nested(**how))
    elsewhere = table.column_data.updated(position=table.column_data["position"][::-1])
    with pytest.raises(ba.FileError, match=r"different call: .*regions"):
        ba.factorize(ba.Table(table.bits, column_data=elsewhere), **nested(**how, resume=True))


def test_a_stream(table):
    table, order = table
    model = ba.BinaryDictionaryLearning(algebra="or", random_state=0).partial_fit(table)
    atoms = model.components_.astype(np.uint8)
    bias = int(model.bias_.sum())
    expected = sum(naive.stretch_bits(atom, order) for atom in atoms)
    assert model.codelength_.atoms == expected + (naive.string_bits(N_COLUMNS, bias) if bias else 0)
