"""Codes of new rows by a model, hard and soft, their bits, completion of unknown cells, and models side by side."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bitatoms as ba
import naive
from bitatoms import BinaryDictionaryLearning, BitMatrix, factorize
from bitatoms.datasets import planted
from bitatoms.engine.passes import row_codes
from bitatoms.model.complete_rows import describe_rows, with_members
from bitatoms.model.join_columns import ColumnFactors, join_columns
from bitatoms.model.model import Model
from bitatoms.parallel import Workers
from bitatoms.sparse_bits import SparseBits
from support.blocks import bits_of
from support.results import assert_matches_oracle
from support.strategies import SEEDS, factorisations, matrices, random_bits

pytestmark = pytest.mark.usefixtures("few_trials")

SINGLE = Workers(1)


@settings(max_examples=5)
@given(matrices(n_rows=st.sampled_from((1, 5, 65))), st.sampled_from((0.0, 0.3, 1.0)), SEEDS)
def test_known_cells_stay_and_others_get_the_more_probable_value(X, share, seed):
    mask = random_bits(seed, *X.shape, share)
    data = BitMatrix.from_dense(X).with_unknown(BitMatrix.from_dense(mask))
    model = Model.from_factorization(
        factorize(data, constraints=ba.Constraints(max_components=3), algebra="xor", random_state=0)
    )
    predictors = model.predictors
    completed, probabilities = predictors.completed(data, SINGLE), predictors.cell_probabilities(data, SINGLE)
    assert completed.unknown is None
    np.testing.assert_array_equal(completed.to_dense(), np.where(mask, probabilities > 0.5, X))
    assert ((probabilities > 0) & (probabilities < 1)).all()


@settings(max_examples=30)
@given(
    st.sampled_from(("xor", "or")), st.sampled_from((65, 200)), st.sampled_from((0.0, 0.1)), st.integers(1, 4),
    st.booleans(), SEEDS,
)  # fmt: skip
def test_codes_and_bits_of_rows_by_groups_of_atoms(algebra, n_cols, unknown, n_groups, has_bias, seed):
    """Columns that no atom has are left out, and groups are coded on their own: codes and bits are the same."""
    random = np.random.default_rng(seed)
    atoms = random_bits(seed, 5, n_cols, 0.3) * (random.random(n_cols) < 0.4).astype(np.uint8)
    atoms *= random.integers(n_groups, size=(5, 1)) == random.integers(n_groups, size=n_cols)
    cells, bias = random_bits(seed + 1, 70, n_cols, 0.3), random_bits(seed + 3, 1, n_cols, 0.1 * has_bias)[0]
    how = {"n_components": 5, "search": ba.PaperSearch(coder="greedy", update="mob"), "algebra": algebra}
    model = Model.from_factorization(factorize(cells, init=atoms, **how))
    model = replace(model, atoms=BitMatrix.from_dense(atoms), bias=bias)
    wrong, used = ((counts + 0.5) / (len(cells) + 1) for counts in (model.wrong, model.uses))
    cells[random_bits(seed + 2, 70, n_cols, unknown) == 1] = 2
    expected = naive.code(np.where(cells > 1, 2, cells ^ bias), atoms, np.zeros((70, 5), np.uint8), "greedy", algebra)
    predicted = naive.product(expected, atoms, algebra) ^ bias
    wrong_cells = (cells != predicted) & (cells < 2)
    bits = (-np.log2(np.where(wrong_cells, wrong, 1 - wrong)) * (cells < 2)).sum(axis=1)
    bits -= np.log2(np.where(expected, used, 1 - used)).sum(axis=1)
    data = bits_of(cells)
    for rows in (data, *([SparseBits.from_bits(data)] if data.unknown is None else [])):
        with mock.patch.multiple("bitatoms.engine.passes", _MIN_SPLIT=1, _GROUP_COLUMNS=seed % 30 + 1):
            codes = model.codes(rows, SINGLE)
            np.testing.assert_array_equal(codes.to_dense(), expected)
            np.testing.assert_array_equal(model.errors(rows, codes, SINGLE).filled().to_dense(), wrong_cells)
            np.testing.assert_allclose(model.row_bits(rows, codes, SINGLE), bits)


@pytest.mark.parametrize("bias", [0, 1])
def test_rows_without_ones_in_the_columns_of_atoms_are_coded_once_at_most(bias, monkeypatch):
    rows = np.zeros((400, 20), np.uint8)
    rows[::4, :5] = rows[1::4, 7] = 1
    model = Model.from_factorization(factorize(rows, algebra="or", random_state=0))
    assert model.atoms.column_weights()[:5].all()
    model = replace(model, bias=np.where(rows[0], bias, 0).astype(bool))
    expected, coded = model.codes(BitMatrix.from_dense(rows), SINGLE), []

    def recorded(data, *others):
        coded.append(len(data))
        return row_codes(data, *others)

    monkeypatch.setattr("bitatoms.engine.passes.row_codes", recorded)
    assert model.codes(SparseBits.from_bits(BitMatrix.from_dense(rows)), SINGLE) == expected
    assert sum(coded) == 100 + bias  # without a bias, such a row uses no atom
    coded.clear()
    assert model.codes(SparseBits.from_bits(BitMatrix.from_dense(rows[:1])), SINGLE) == expected[:1]
    assert model.codes(SparseBits.from_bits(BitMatrix.from_dense(rows[:0])), SINGLE) == expected[:0]


def test_columns_without_atoms_count_towards_the_residual_limit():
    atoms, rows = np.array([[1, 1, 0, 0]], np.uint8), np.array([[1, 1, 0, 0], [1, 1, 1, 1]], np.uint8)
    model = Model.from_factorization(factorize(rows, init=atoms, n_components=1, search=ba.PaperSearch(coder="greedy")))
    model = replace(model, atoms=BitMatrix.from_dense(atoms), residual_limit=3)
    assert model.codes(BitMatrix.from_dense(rows), SINGLE).to_dense().tolist() == [[0], [1]]


def test_codes_by_a_model_without_errors_do_not_depend_on_the_rows_coded_with_them():
    """The mean cost of its rows is 0, and must not be replaced by that of the rows at hand."""
    made = planted(200, 40, 20, code_density=0.3, noise=0, random_state=0)
    model = (
        BinaryDictionaryLearning(20, init=(made.atoms, made.codes), algebra="xor", random_state=0)
        .fit(made.X)
        .as_model()
    )
    assert model.wrong_bits == 0
    rows = BitMatrix.from_dense(made.X ^ random_bits(1, 200, 40, 0.12))
    codes = model.codes(rows, Workers())
    for max_rows in (7, 64):
        assert model.codes(rows, Workers(), max_rows) == codes


# --- soft codes, compared with the bits of each row with and without each atom


ALGEBRAS = st.sampled_from(("xor", "or"))
ROWS, WIDTHS = st.sampled_from((0, 1, 5, 12)), st.sampled_from((1, 63, 64, 65, 130))


def model_of(atoms, algebra, bias, counts):
    """Return a model with these atoms, which counted right and wrong cells and rows without and with each atom."""
    cells, uses = counts
    found = factorize(
        np.zeros((1, atoms.shape[1]), np.uint8), search="paper", constraints=ba.Constraints(max_components=0)
    )
    n_samples = int(uses[:, 0].sum()) if len(atoms) else 9
    counted = {"wrong": cells[1], "known": cells.sum(axis=0), "uses": uses[1], "n_samples": n_samples}
    model = Model.from_factorization(found)
    return replace(model, atoms=BitMatrix.from_dense(atoms), bias=bias, algebra=algebra, coder="greedy", **counted)


def random_counts(seed, n_cols, n_atoms, n_samples=20):
    """Return counts of right and wrong cells and of rows without and with each atom."""
    random = np.random.default_rng(seed)
    known, used = random.integers(1, n_samples + 1, n_cols), random.integers(0, n_samples + 1, n_atoms)
    wrong = random.integers(0, known + 1)
    return np.array([known - wrong, wrong]), np.array([n_samples - used, used])


@settings(max_examples=40)
@given(factorisations(ROWS, WIDTHS), ALGEBRAS, st.sampled_from((0.0, 0.3)), st.integers(0, 4), SEEDS)
def test_soft_codes_are_differences_of_bits_with_and_without_an_atom(factors, algebra, bias_density, n_groups, seed):
    """Also by groups of atoms that share no columns, in chunks of rows, and for the ones of a table."""
    (X, atoms, codes), random = factors, np.random.default_rng(seed)
    if n_groups:
        atoms *= random.integers(n_groups, size=(len(atoms), 1)) == random.integers(n_groups, size=X.shape[1])
    bias = random_bits(seed, 1, X.shape[1], bias_density)[0]
    counts = random_counts(seed, X.shape[1], len(atoms))
    expected = naive.soft_codes(X, atoms, codes, algebra, bias, *counts)
    sizes = {"_MIN_SPLIT": 1, "_GROUP_COLUMNS": seed % 30 + 1} if n_groups else {"_MIN_SPLIT": 1 << 11}
    with (
        mock.patch.multiple("bitatoms.engine.passes", **sizes),
        mock.patch("bitatoms.model.model._CHUNK_CELLS", 700),
    ):
        model, data = model_of(atoms, algebra, bias, counts), bits_of(X)
        for rows in (data, *([SparseBits.from_bits(data)] if data.unknown is None else [])):
            found = model.soft_codes(rows, BitMatrix.from_dense(codes), SINGLE)
            assert (found.shape, found.dtype) == (codes.shape, np.float64)
            np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("has_ones", [False, True])
def test_an_atom_without_ones_costs_its_use(has_ones):
    atoms = np.zeros((2, 65), np.uint8)
    atoms[1, :9] = has_ones
    counts = random_counts(0, 65, 2)
    with mock.patch("bitatoms.engine.passes._MIN_SPLIT", 1 - has_ones):
        model = model_of(atoms, "or", np.zeros(65, np.uint8), counts)
        found = model.soft_codes(BitMatrix.zeros(3, 65), BitMatrix.zeros(3, 2), SINGLE)
    unused, used = counts[1][:, 0] + 0.5
    np.testing.assert_allclose(found[:, 0], np.log2(used / unused))


# --- factorizations of groups of columns, put side by side


def wide_table(with_unknown):
    X = np.hstack([ba.datasets.planted(130, m, 3, noise=0.02, random_state=m).X for m in (30, 65, 1, 20)])
    where = {"none": 0, "some columns": np.arange(X.shape[1]) < 20, "all columns": 1}[with_unknown]
    return np.where(random_bits(1, *X.shape, 0.1) & where, 2, X).astype(np.uint8)


@pytest.mark.parametrize(
    ("algebra", "with_unknown"), [("xor", "none"), ("or", "none"), ("or", "some columns"), ("xor", "all columns")]
)
def test_the_parts_make_the_whole(algebra, with_unknown):
    X = wide_table(with_unknown)
    columns = np.split(np.random.default_rng(0).permutation(X.shape[1]), [30, 95, 96])
    if with_unknown == "some columns":
        columns = np.split(np.arange(X.shape[1])[::-1], [30, 95, 96])  # all unknown cells are in the last part
    columns = [np.sort(part) if number % 2 else part for number, part in enumerate(columns)]
    results = [ba.factorize(bits_of(X[:, part]), algebra=algebra, random_state=0) for part in columns]
    whole = join_columns([ColumnFactors(*part) for part in zip(columns, results, strict=True)], *X.shape)
    bias = BitMatrix.from_dense(whole.bias[np.newaxis])
    whole = with_members(whole, describe_rows(bits_of(X), whole.atoms, SINGLE, bias))
    assert whole.atoms.n_rows == sum(result.atoms.n_rows for result in results)
    assert (np.diff(whole.saved) <= 0).all()
    if with_unknown == "none":
        assert_matches_oracle(whole, X)
    known = X < 2
    np.testing.assert_array_equal(whole.ones, ((X == 1) & known).sum(axis=0))
    np.testing.assert_array_equal(whole.wrong, ((whole.reconstruct().to_dense() != X) & known).sum(axis=0))
    missed = (X == 1) & (whole.reconstruct().to_dense() == 0)
    np.testing.assert_array_equal(whole.missed, missed.sum(axis=0))
    if with_unknown != "none":
        np.testing.assert_array_equal(whole.known, known.sum(axis=0))
    errors = sum(result.codelength.errors for result in results)
    assert (whole.codelength.errors, whole.uses.sum()) == (errors, sum(result.uses.sum() for result in results))
    for part, result in zip(columns, results, strict=True):  # an atom has the same columns, users and figures
        for k in range(result.atoms.n_rows):
            wanted = np.zeros(X.shape[1], np.uint8)
            wanted[part] = result.atoms.to_dense()[k]
            same = np.flatnonzero((whole.atoms.to_dense() == wanted).all(axis=1))
            users = result.codes.to_dense()[:, k]
            (same,) = [i for i in same if (whole.codes.to_dense()[:, i] == users).all()]
            assert (whole.saved[same], whole.complete[same]) == (result.saved[k], result.complete[k])


def test_remembered_codes_of_each_part_are_kept():
    X = wide_table("none")
    halves = np.arange(30), np.arange(30, X.shape[1])
    results = [ba.factorize(X[:, part], algebra="xor", random_state=0) for part in halves]
    sizes = [result.atoms.n_rows for result in results]
    remembered = random_bits(0, 3, sizes[0], 0.5), random_bits(1, 5, sizes[1], 0.5)
    results = [replace(result, remembered=bits_of(codes)) for result, codes in zip(results, remembered, strict=True)]
    whole = join_columns([ColumnFactors(*part) for part in zip(halves, results, strict=True)], *X.shape)
    order = np.argsort(-np.concatenate([result.saved for result in results]), kind="stable")
    expected = np.hstack([np.pad(remembered[0], ((0, 2), (0, 0))), remembered[1]])[:, order]
    np.testing.assert_array_equal(whole.remembered.to_dense(), expected)
    none = join_columns(
        [ColumnFactors(part, replace(result, remembered=None)) for part, result in zip(halves, results, strict=True)],
        *X.shape,
    )
    assert none.remembered is None
