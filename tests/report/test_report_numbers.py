"""The numbers that a page shows, parsed from it, against those recomputed from the table, the atoms and the codes."""

import re
import tempfile
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

import bitatoms as ba
import naive
from bitatoms.formatting import few, percent, times
from bitatoms.report import report_html
from support.pages import Outline
from support.scripts import bits_of, data_of, numbers_of, run_script

pytestmark = pytest.mark.usefixtures("few_trials")
UNKNOWN = 2  # as in naive.py


class Case(NamedTuple):
    """A model and a table; the codes that counts are about, if the page shows others; the rows and codes of the fit."""

    model: object
    table: object
    codes: np.ndarray | None
    training: tuple[np.ndarray, np.ndarray]


def planted(algebra, seed=0):
    """Return a small table of bits with three atoms."""
    how = {"algebra": algebra, "code_density": 0.4, "noise": 0.04, "random_state": seed}
    return ba.datasets.planted(90, 14, 3, **how).X


def with_unknown(X):
    """Return the table with some unknown cells."""
    return np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X.astype(float))


def categories():
    """Return the encoded table of colors, sizes and shapes, some of them missing."""
    random = np.random.default_rng(0)
    kinds = random.integers(0, 3, 90)
    colors = np.array(["red", "green", "blue"])[kinds].astype(object)
    colors[random.random(90) < 0.1] = None
    sizes = np.where(kinds == 1, 10.0, 20.0) + random.normal(size=90)
    shapes = np.where(kinds == 2, "round", "square")
    return ba.encode(pd.DataFrame({"color": colors, "size": sizes, "shape": shapes, "sold": random.random(90) < 0.5}))


def dense(X):
    """Return a table as integers."""
    rows = ba.BitMatrix.from_any(X.bits if isinstance(X, ba.Table) else X, missing="unknown").to_dense(float)
    return np.where(np.isnan(rows), UNKNOWN, rows).astype(np.uint8)


def fitted(X, n_components="mdl", sample_weight=None, **params):
    """Return a model of a table, and the table."""
    found = ba.factorize(X, n_components, sample_weight=sample_weight, random_state=0, **params)
    model = ba.BinaryDictionaryLearning(n_components, random_state=0, **params).fit(X, sample_weight=sample_weight)
    repeats = 1 if sample_weight is None else sample_weight
    return Case(model, X, None, tuple(np.repeat(rows, repeats, axis=0) for rows in (dense(X), found.codes.to_dense())))


def loaded():
    """Return a model read from a file, without the codes of the fit: the page shows rows that are coded again."""
    case = fitted(ba.datasets.planted(300, 40, 12, code_density=0.3, noise=0.15, random_state=2).X, algebra="xor")
    with tempfile.TemporaryDirectory() as folder:
        case.model.save(f"{folder}/model.npz")
        return case._replace(model=ba.load(f"{folder}/model.npz"), codes=case.training[1])


CASES = {
    "or": lambda: fitted(planted("or"), algebra="or"),
    "xor": lambda: fitted(planted("xor", 1), algebra="xor"),
    "bias": lambda: fitted(1 - planted("or"), algebra="or"),
    "unknown": lambda: fitted(with_unknown(planted("or")), algebra="or"),
    "unknown and bias": lambda: fitted(with_unknown(1 - planted("or")), algebra="or"),
    "too many atoms": lambda: fitted(planted("or", 2), 9, algebra="or"),
    "costs": lambda: fitted(planted("or"), algebra="or", false_positive_cost=4.0),
    "weights": lambda: fitted(planted("or"), algebra="or", sample_weight=np.arange(90) % 3),
    "categories": lambda: fitted(categories(), algebra="xor"),
    "from a file": loaded,
    "other rows": lambda: fitted(planted("or"), algebra="or")._replace(table=planted("or")[20:50]),
}


class Numbers:
    """The numbers of a page, from the table, the atoms and the codes."""

    def __init__(self, X, model, codes):
        self.X, self.codes = X, codes
        self.atoms, self.bias, self.algebra = model.components_, model.bias_, model.algebra_
        made = naive.product(codes, self.atoms, self.algebra) ^ self.bias
        self.ones, self.known = (X == 1).sum(axis=0), (X <= 1).sum(axis=0)
        self.missed, self.invented = ((X == 1) & (made == 0)).sum(axis=0), ((X == 0) & (made == 1)).sum(axis=0)
        self.wrong = self.missed + self.invented
        self.parts = naive.codelength(X, self.atoms, codes, self.algebra, self.bias)
        self.without = sum(naive.codelength(X, self.atoms[:0], codes[:, :0], self.algebra))
        self.uses = codes.sum(axis=0, dtype=int)
        self.complete = naive.complete(X, self.atoms, self.bias).sum(axis=0, dtype=int)

    def lifts(self, atom):
        """Return the expected number of complete rows, the lift, and the lift of each feature of an atom."""
        columns, wanted, members = np.flatnonzero(self.atoms[atom]), 1 - self.bias, []
        shares = [(self.X[:, i] == wanted[i]).sum() / self.known[i] for i in columns]
        expected = (self.X[:, columns] <= 1).all(axis=1).sum() * np.prod(shares)
        for number, column in enumerate(columns):
            others = np.delete(columns, number)
            rest = self.X[(self.X[:, others] == wanted[others]).all(axis=1), column]
            n_known = (rest <= 1).sum()
            members.append((rest == wanted[column]).sum() / n_known / shares[number] if n_known else None)
        return expected, self.complete[atom] / expected, members

    def saved(self, atom):
        """Return how much longer the description is without an atom, and with the bias that is then better."""
        atoms, codes = np.delete(self.atoms, atom, axis=0), np.delete(self.codes, atom, axis=1)
        bias = naive.settled_bias(self.X, atoms, codes, self.algebra, self.bias)
        return sum(naive.codelength(self.X, atoms, codes, self.algebra, bias)) - sum(self.parts)


class Page:
    """The sections and tables of a page as text, and the data for its script."""

    def __init__(self, html):
        self.html, self.data = html, data_of(html)
        self.n_rows, self.n_features, self.n_atoms = self.data["shape"]
        rows = self.data["rows"]
        self.codes, self.X = self._bits(rows["codes"], self.n_atoms), self._bits(rows["bits"], self.n_features)
        if rows["unknown"] is not None:
            self.X[self._bits(rows["unknown"], self.n_features) == 1] = UNKNOWN

    def _bits(self, text, n_cols):
        return bits_of(text, self.n_rows, n_cols)

    def cells(self, numbers, kind):
        """Return the cells that the codes of the page miss or invent."""
        made = naive.product(self.codes, numbers.atoms, numbers.algebra) ^ numbers.bias
        return (self.X == 1) & (made == 0) if kind == "missed" else (self.X == 0) & (made == 1)

    def source(self, section):
        return re.search(rf'<section id="{section}">.*?</section>', self.html, re.DOTALL)[0]

    def text(self, section):
        return Outline(self.source(section)).text

    def tables(self, section):
        """Return the text of the cells of each row of the tables of a section."""
        rows = re.findall(r"<tr[^>]*>.*?</tr>", self.source(section), re.DOTALL)
        return [[Outline(cell).text for cell in re.findall(r"<t[hd][ >].*?</t[hd]>", row, re.DOTALL)] for row in rows]


def rows_of(number):
    return "1 row" if number == 1 else f"{number:,} rows"


@cache
def page_and_numbers(name):
    """Return the page of a model and a table, and its numbers recomputed; once, in any order of the tests."""
    model, table, codes_of_fit, (rows, codes) = CASES[name]()
    page = Page(report_html(model, table))
    np.testing.assert_array_equal(page.X, dense(table))
    numbers = Numbers(page.X, model, page.codes if codes_of_fit is None else codes_of_fit)
    return page, numbers, Numbers(rows, model, codes)


@pytest.fixture(params=CASES)
def case(request):
    return page_and_numbers(request.param)


def test_the_summary(case):
    page, numbers, _ = case
    text, total, n_unknown = page.text("summary"), sum(numbers.parts), int((page.X == UNKNOWN).sum())
    n_ones, n_missed, n_invented = (int(counts.sum()) for counts in (numbers.ones, numbers.missed, numbers.invented))
    n_zeros = page.X.size - n_unknown - n_ones
    saving = f"{percent(numbers.without - total, numbers.without)} shorter: {total:,} bits instead of"
    none = f"no shorter: {total:,} bits, and {numbers.without:,} without."
    assert (f"{saving} {numbers.without:,}." if total < numbers.without else none) in text
    explained = f"account for {n_ones - n_missed:,} and miss {n_missed:,}"
    assert f"Of the {n_ones:,} ones in the table the patterns {explained}. They turn {n_invented:,} of" in text
    assert f"of the {n_zeros:,} zeros into ones" in text
    assert f"accounted for{percent(n_ones - n_missed, n_ones)}" in text
    assert f"turned into ones{percent(n_invented, n_zeros)}" in text
    assert f"on average{numbers.uses.sum() / page.n_rows:.1f}" in text
    used = page.codes.sum(axis=1)
    assert f"none uses more than {used.max()}." in text
    assert not (used == 0).any() or f"{rows_of((used == 0).sum())} ({percent((used == 0).sum(), page.n_rows)})" in text
    assert (f"{n_unknown:,} cells ({percent(n_unknown, page.X.size)}) are unknown" in text) == (n_unknown > 0)


def test_the_patterns(case):
    page, numbers, training = case
    (heads, *lines), shown = page.tables("patterns"), page.data["atoms"]
    saved = [training.saved(atom) for atom in range(page.n_atoms)]
    assert heads == ["pattern", "features", "used by", "complete in", "expected", "lift", "bits saved"]
    assert len(lines) == page.n_atoms == len(numbers.atoms)
    np.testing.assert_array_equal(bits_of(shown["bits"], page.n_atoms, page.n_features), numbers.atoms)
    assert numbers_of(shown["uses"]) == numbers.uses.tolist()
    assert numbers_of(shown["coded"]) == page.codes.sum(axis=0).tolist()
    assert numbers_of(shown["complete"]) == numbers.complete.tolist()
    assert shown["saved"] == saved
    member_lifts = iter(numbers_of(shown["memberLifts"]))
    for atom, (_, features, *facts) in enumerate(lines):
        expected, lift, lifts = numbers.lifts(atom)
        counts = [f"{rows_of(n)} ({percent(n, page.n_rows)})" for n in (numbers.uses[atom], numbers.complete[atom])]
        assert facts == [*counts, few(expected), times(lift), f"{saved[atom]:,}"]
        assert re.findall("×[^ ,]*|–", features) == [times(each) for each in lifts[:12] if len(lifts) > 1]
        assert shown["expected"][atom] == pytest.approx(expected, rel=1e-3)
        assert shown["lift"][atom] == pytest.approx(lift, abs=1e-4)
        for each in lifts:  # rounded to thousandths
            assert abs(next(member_lifts) - 1000 * (each or 0)) <= 0.5 + 1e-9


@pytest.mark.parametrize("case", ["too many atoms"], indirect=True)
def test_the_script_shows_the_bits_that_a_pattern_costs(case):
    page, _, training = case
    saved = [training.saved(atom) for atom in range(page.n_atoms)]
    assert max(saved) < 0
    assert run_script("return openData(input).atoms.saved;", page.data) == saved


def test_the_codelength(case):
    page, numbers, training = case
    total, rows = sum(numbers.parts), page.tables("bits")
    assert f"without patterns{numbers.without:,} bits with patterns{total:,} bits" in page.text("bits")
    parts = dict(zip(("exceptions", "uses", "patterns"), numbers.parts, strict=True))
    assert [row[0::2] + row[3:] for row in rows[1:4]] == [
        [name, f"{bits:,}", percent(bits, total)] for name, bits in parts.items()
    ]
    curve = {int(row[0]): [int(cell.replace(",", "")) for cell in row[1:]] for row in rows[5:]}
    coded = naive.codelength(page.X, numbers.atoms, page.codes, numbers.algebra, numbers.bias)
    assert curve[page.n_atoms] == [*coded, sum(coded)]
    none = naive.codelength(page.X, numbers.atoms[:0], page.codes[:, :0], numbers.algebra, numbers.bias)
    assert curve[0] == [*none, sum(none)]
    assert all(sum(bits[:3]) == bits[3] for bits in curve.values())
    assert ("The search ended with" in page.text("bits")) == (len(page.X) == len(training.X) and sum(coded) != total)


def test_the_features(case):
    page, numbers, _ = case
    features = page.data["features"]
    indices = numbers_of(features["indices"])
    for name in ("ones", "known", "missed", "invented"):
        assert numbers_of(features[name]) == getattr(numbers, name)[indices].tolist()
    n_wrong, n_known = numbers.wrong.sum(), numbers.known.sum()
    assert f"{n_wrong:,} cells of {n_known:,} ({percent(n_wrong, n_known)}) are wrong, in" in page.text("summary")


def test_the_cells_of_patterns(case):
    page, numbers, _ = case
    users = [page.codes[:, atom] == 1 for atom in range(page.n_atoms)]
    for name in ("missed", "invented", "unknown"):
        cells = page.X == UNKNOWN if name == "unknown" else page.cells(numbers, name)
        counts = [cells[rows][:, atom == 1].sum(axis=0) for rows, atom in zip(users, numbers.atoms, strict=True)]
        text = page.data["cells"][name]
        found = [0] * sum(map(len, counts)) if text is None else numbers_of(text)
        assert found == np.concatenate(counts).tolist()
    together = page.codes.T.astype(int) @ page.codes
    assert numbers_of(page.data["together"]) == together[np.triu_indices(page.n_atoms, 1)].tolist()


def test_the_rows(case):
    page, numbers, training = case
    wrong = page.cells(numbers, "missed") | page.cells(numbers, "invented")
    n_wrong, is_known = wrong.sum(axis=1), np.hstack([page.X != UNKNOWN, np.ones_like(page.codes)])
    counted = [*zip(training.known, training.wrong, strict=True), *((len(training.X), n) for n in training.uses)]
    prices = np.array([[naive.bits_of_outcome((n - ones, ones), outcome) for outcome in (0, 1)] for n, ones in counted])
    prices = np.where(np.hstack([wrong, page.codes]), prices[:, 1], prices[:, 0])
    bits = np.where(is_known, prices, 0).sum(axis=1)
    assert numbers_of(page.data["rows"]["wrong"]) == n_wrong.tolist()
    np.testing.assert_allclose(numbers_of(page.data["rows"]["tenths"]), 10 * bits, atol=0.51)
    assert f"The median row takes {np.median(bits):,.0f} bits." in page.text("worst")
    worst = [int(row) for row in re.findall(r'<span data-row="(\d+)"', page.source("worst"))]
    assert bits[worst].tolist() == pytest.approx(np.sort(bits)[::-1][:15].tolist())
    for row, cells in zip(worst, page.tables("worst")[1:], strict=True):
        used = ", ".join(str(atom + 1) for atom in np.flatnonzero(page.codes[row])) or "–"
        assert cells[1:3] == [f"{bits[row]:,.0f}", used]
    described = re.findall(r"<li data-row='(\d+)'>.*?(<p class='facts'>.*?</p>)", page.source("rows"), re.DOTALL)
    ranks = [round(quantile * (page.n_rows - 1)) for quantile in (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)]
    assert bits[[int(row) for row, _ in described]].tolist() == pytest.approx(np.sort(bits)[ranks].tolist())
    for row, facts in ((int(row), Outline(facts).text) for row, facts in described):
        cells = f"{n_wrong[row]} cell{'s' if n_wrong[row] > 1 else ''} wrong" if n_wrong[row] else "no cell wrong"
        assert facts.startswith(f"{bits[row]:,.0f} bit")
        assert cells in facts
        better, worse = (bits > bits[row] + 1e-9).mean(), (bits < bits[row] - 1e-9).mean()
        compared = re.search(r"fits (better|worse) than (.*?) of the rows", facts)
        assert compared is None or compared[2] == percent(better if compared[1] == "better" else worse, 1)


def test_the_unknown_cells(case):
    page, _, _ = case
    unknown = page.X == UNKNOWN
    if not unknown.any():
        assert 'id="unknown"' not in page.html
        return
    shown = [row[1:] for row in page.tables("unknown") if row[1] != "unknown cells"]
    expected, further = [], []
    for number, (axis, total) in enumerate((("column", page.n_rows), ("row", page.n_features))):
        counts = unknown.sum(axis=number)
        expected += [[str(count), percent(count, total)] for count in np.sort(counts)[::-1][:15] if count]
        others = np.count_nonzero(counts) - 15
        if others > 0:
            further.append(f"and {others} further {axis}{'s' if others > 1 else ''} with unknown cells")
    assert shown == expected
    assert re.findall(r"and \d+ further .*? with unknown cells", page.text("unknown")) == further
