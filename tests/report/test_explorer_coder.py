"""The coder in the script of a report, and the rows it reads, against Python."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import bitatoms as ba
import naive
from bitatoms.bits import BitMatrix
from bitatoms.columns.table import Table
from bitatoms.engine.prices import ErrorCosts
from bitatoms.formatting import few, percent, times
from bitatoms.model.model import Model
from bitatoms.parallel import Workers
from bitatoms.report import report_html
from support.scripts import data_of, run_script
from support.strategies import random_bits
from support.zoo import specimen

pytestmark = pytest.mark.usefixtures("few_trials")

CODE = "const data = openData(input.data); return input.rows.map((row) => codeRow(data.model, Uint8Array.from(row)));"


def random_rows(seed, n_rows, model, unknown):
    """Return rows that are partly sums of atoms, partly noise; 2 is unknown."""
    rng = np.random.default_rng(seed)
    codes = BitMatrix.from_dense((rng.random((n_rows, model.atoms.n_rows)) < 0.2).astype(np.uint8))
    flips = rng.random((n_rows, model.atoms.n_cols)) < rng.choice([0.02, 0.1, 0.5], (n_rows, 1))
    rows = model.reconstruct(codes).to_dense() ^ flips.astype(np.uint8)
    rows[rng.random(rows.shape) < unknown] = 2
    return rows


def as_bits(rows):
    """Return rows of 0, 1 and 2 (unknown) as bits."""
    return BitMatrix.from_dense((rows == 1).astype(np.uint8)).with_unknown(BitMatrix.from_dense(rows == 2))


def codes_of_script(model, rows, table=None):
    """Return the codes that the script of a page finds, as an array of 0 and 1."""
    page = report_html(model, as_bits(rows[:3] % 2) if table is None else table)
    found = run_script(CODE, {"data": data_of(page), "rows": rows.tolist()})
    codes = np.zeros((len(rows), model.atoms.n_rows), np.uint8)
    for row, atoms in enumerate(found):
        codes[row, atoms] = 1
    return codes


@cache
def models():
    """Return three models, each of which can be used in both algebras."""
    rng = np.random.default_rng(0)
    random = replace(
        specimen("or").model.as_model(),
        atoms=BitMatrix.from_dense(random_bits(1, 40, 130, 0.1)),
        bias=np.zeros(130, np.uint8),
        wrong=rng.integers(0, 140, 130),
        uses=rng.integers(0, 100, 40),
        **dict.fromkeys(("remembered", "columns", "rows_hash", "complete", "lacking", "ones", "missed", "saved")),
    )
    return {"baskets": specimen("or").model.as_model(), "digits": specimen("xor").model.as_model(), "random": random}


def costs(added):
    """Return costs of the errors in 130 columns."""
    return ErrorCosts.of_columns(np.linspace(1, 3, 130), np.where(np.arange(130) % 3, 1.5, added), 130)


CODERS = [  # a model, and what is changed in it
    ("baskets", {"algebra": "or"}),
    ("digits", {"algebra": "xor"}),
    ("random", {"algebra": "or"}),
    ("random", {"algebra": "xor"}),
    ("random", {"algebra": "or", "max_atoms_per_sample": 2}),
    ("random", {"algebra": "xor", "residual_limit": 8}),
    ("random", {"algebra": "or", "objective": "errors"}),
    ("random", {"algebra": "or", "costs": costs(4.0)}),
    ("random", {"algebra": "or", "costs": costs(np.inf)}),
]


@pytest.mark.parametrize(("name", "changes"), CODERS)
def test_script_codes_rows_as_python_does(name, changes):
    """200 rows without unknown cells, and 200 with some."""
    model = replace(models()[name], remembered=None, **changes)
    rows = np.vstack([random_rows(7, 200, model, 0), random_rows(8, 200, model, 0.2)])
    expected = model.greedy_codes(as_bits(rows), Workers()).to_dense()
    assert 0.3 < expected.sum(axis=1).mean() < model.atoms.n_rows
    assert np.array_equal(codes_of_script(model, rows), expected)


@pytest.mark.parametrize("algebra", ["or", "xor"])
def test_greedy_codes_are_those_of_the_coder_mdl_from_empty_codes(algebra):
    model = replace(models()["random"], algebra=algebra)
    rows = random_rows(10, 40, model, 0.1)
    prices = model.prices.bits.astype(int), model.prices.uses[:40].astype(int)
    atoms, empty = model.atoms.to_dense(), np.zeros((40, 40), np.uint8)
    expected = naive.priced_code(rows, atoms, empty, algebra, prices)
    assert np.array_equal(model.greedy_codes(as_bits(rows), Workers()).to_dense(), expected)


def test_greedy_codes_of_an_empty_model():
    model = ba.BinaryDictionaryLearning(algebra="xor", random_state=0).fit(np.zeros((4, 3), np.uint8)).as_model()
    assert model.greedy_codes(BitMatrix.zeros(2, 3), Workers()).shape == (2, 0)
    assert codes_of_script(model, np.eye(3, dtype=np.uint8)).shape == (3, 0)


BITS = """const data = openData(input.data);
return Array.from({ length: data.nRows }, (_, row) => {
  const states = rowStates(data, row);
  const nWrong = withState(states, MISSED).length + withState(states, INVENTED).length;
  return [rowBits(data, states, onesOf(data.codes, row)), data.tenths[row] / 10, nWrong];
});"""


@pytest.mark.parametrize("name", ["or", "xor"])
def test_script_computes_the_bits_and_errors_of_rows(name):
    model, table = specimen(name)
    hidden = BitMatrix.from_dense(random_bits(3, *table.shape, 0.1))
    table = Table(table.bits.with_unknown(hidden), table.row_names, table.columns, table.picture)
    data = ba.report.report_data(model, table)
    found = np.array(run_script(BITS, {"data": data_of(report_html(model, table))}))
    assert np.allclose(found[:, 0], data.row_bits, rtol=1e-9)
    assert np.abs(found[:, 1] - data.row_bits).max() <= 0.05 + 1e-9
    assert np.array_equal(found[:, 2], data.errors.row_weights())


# --- rows that are typed or pasted

NAMES = ("milk", "Bread, brown", "tea", "?", "x;y", "10", "=1+1", '5" a\tb')
PARSE = """const data = openData(input.data);
return input.texts.map((text) => { const row = parseRow(data, text); return { ...row, cells: [...row.cells] }; });"""


@cache
def data_with_columns(names):
    """Return the data of a page on a table with these columns."""
    X = random_bits(0, 20, len(names), 0.3)
    model = Model.from_factorization(ba.factorize(X, algebra="xor", random_state=0))
    return data_of(report_html(model, Table(BitMatrix.from_dense(X), columns=names)))


def parsed(*texts, names=NAMES):
    """Return what the script reads in texts, for a table with these columns."""
    return run_script(PARSE, {"data": data_with_columns(names), "texts": texts})


READ = {
    "": [0] * 8,
    "milk": [1, 0, 0, 0, 0, 0, 0, 0],
    " MILK ;tea": [1, 0, 1, 0, 0, 0, 0, 0],
    'tea, "bread, brown", milk': [1, 1, 1, 0, 0, 0, 0, 0],
    "x;y\nmilk": [1, 0, 0, 0, 1, 0, 0, 0],
    "?milk, tea": [2, 0, 1, 0, 0, 0, 0, 0],
    "?": [0, 0, 0, 1, 0, 0, 0, 0],
    "??": [0, 0, 0, 2, 0, 0, 0, 0],
    "10": [0, 0, 0, 0, 0, 1, 0, 0],
    "=1+1": [0, 0, 0, 0, 0, 0, 1, 0],
    '"bread, brown","tea";"5"" a\tb"': [0, 1, 1, 0, 0, 0, 0, 1],
    '"5"" a\tb", ?"Bread, brown",\n"?milk" ,"x;y"': [2, 2, 0, 0, 1, 0, 0, 1],
    '"0","1","1","0","?","1","","0"': [0, 1, 1, 0, 2, 1, 2, 0],
    "0110?1.0": [0, 1, 1, 0, 2, 1, 2, 0],
    "0 1 1 0\n? 1 . 0": [0, 1, 1, 0, 2, 1, 2, 0],
    "0,1,1,0,NA,1,nan,": [0, 1, 1, 0, 2, 1, 2, 2],
    "0\t1\t1\t0\t\t1\t0\t0": [0, 1, 1, 0, 2, 1, 0, 0],
}


def test_script_reads_rows():
    found = parsed(*READ)
    assert dict(zip(READ, (row["cells"] for row in found), strict=True)) == READ
    assert not any(row["missing"] or row["error"] for row in found)


def test_script_reports_what_it_cannot_read():
    short, *others = found = parsed("0110", "milk, honey; jam", "0,1,x", '"milk, tea", "tea')
    assert short["error"] == "There are 4 values, but the table has 8 columns."
    assert [row["missing"] for row in others] == [["honey", "jam"], ["0", "1", "x"], ["milk, tea", '"tea']]
    assert others[0]["cells"][0] == 1
    assert [row["nFound"] for row in found] == [0, 1, 0, 0]


def test_script_reads_names_that_the_page_cuts():
    long, many = "a very long name " * 10, "many, " * 13 + "12"
    cells = {f"{long}, milk": [1, 1, 0], f"?{long};milk": [1, 2, 0], f'"{many}",milk': [1, 0, 1]}
    rows = parsed(*cells, f"{long[:81]},milk", names=("milk", long, many))
    assert [row["cells"] for row in rows] == [*cells.values(), [1, 1, 0]]
    assert not any(row["missing"] for row in rows)


def test_script_writes_csv_without_formulas():
    cells = ["=1+1", "+1", "-1", "@sum", "\tx", "\rx", 'a "b"', "a,b", "a\nb", " a", "plain", "", -1, 0.5]
    text = '\'=1+1,\'+1,\'-1,\'@sum,\'\tx,"\'\rx","a ""b""","a,b","a\nb"," a",plain,,-1,0.5\n'
    assert run_script("return csvText([input]);", cells) == text


def test_script_writes_lifts_and_percentages_as_the_rest_of_the_page_does():
    lifts = [None, 0, 0.004, 0.02, 0.25, 0.55, 0.999, 1, 1.25, 1.35, 2, 2.25]
    lifts += [9.94, 9.95, 9.96, 10.5, 11.5, 1238.4, 9.9e6, 1e9, 1.234e25]
    shares = [(part, n) for n in (1, 7, 16, 80, 200, 400, 2000, 40000) for part in range(0, n + 1, 1 + n // 400)]
    shares += [(1, 10_001), (10_000, 10_001), (2, 201), (5, 0)]
    counts = [0, 0.01, 0.05, 0.25, 1, 9.94, 9.95, 10.5, 1234.5, 1e7]
    shown = "input[0].map(liftText), input[1].map(([part, total]) => percentText(part, total)), input[2].map(fewText)"
    expected = [[times(lift) for lift in lifts], [percent(part, total) for part, total in shares], [*map(few, counts)]]
    assert run_script(f"return [{shown}];", [lifts, shares, counts]) == expected
