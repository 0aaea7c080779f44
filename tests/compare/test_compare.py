"""`bitatoms.compare`: scores equal those of the oracle; failures, rankings, summaries, files and figures."""

import csv
import io
import re

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import bitatoms as ba
import naive
from bitatoms.compare import BUNDLED, Factors, Method, all_methods, compare
from bitatoms.compare.comparison import COLUMNS, overview
from bitatoms.compare.figures import draw_figures, file_slugs
from bitatoms.compare.inputs import default_ranks
from bitatoms.compare.rankings import rank_by_bits, rank_by_wrong_cells, summarize
from bitatoms.compare.runner import score_factors
from bitatoms.html.tables import escape_markdown

HOSTILE = "<script>window.hurt=1</script>|*b* `c` [d](e) &amp; _f_"
SECONDS = slice(COLUMNS.index("CPU seconds"), COLUMNS.index("wall seconds") + 1)


pytestmark = pytest.mark.usefixtures("few_trials")


def table(n_rows=90, n_cols=20, algebra="or", seed=0):
    return ba.datasets.planted(n_rows, n_cols, 2, algebra=algebra, noise=0.05, random_state=seed).X


def wrong_ranking(comparison, dataset=None):
    """Return the ranking by wrong cells on a table, by default the first."""
    dataset = dataset or comparison.tables[0]
    return rank_by_wrong_cells(dataset, comparison.results(dataset))


def fake_method(run, key="mine", **more):
    """Return a method for a test."""
    given = {"name": key, "algebra": "or", "minimizes": "wrong cells", "about": "a test"} | more
    return Method(key=key, run=run, **given)


def first_rows(task):
    """Return the first rows as atoms, each used by its own row."""
    rank = min(task.rank or 3, task.data.n_rows)
    codes = np.zeros((task.data.n_rows, rank), np.uint8)
    codes[np.arange(rank), np.arange(rank)] = 1
    return Factors(task.data.to_dense()[:rank], codes)


@pytest.fixture(scope="module")
def found():
    """Compare a few methods of both algebras on two tables with two seeds."""
    tables = {"planted": table(), HOSTILE: table(70, 65, "xor", 1)}
    only = ["bitatoms-or", "bitatoms-xor-mdl", "mob", "proximus", "grecond"]
    return compare(tables, [1, 2], only=only, seeds=2, random_state=3)


# --- scores


@pytest.mark.parametrize(
    ("algebra", "n_cols", "n_atoms"), [("or", 1, 1), ("xor", 64, 0), ("or", 65, 5), ("xor", 130, 5)]
)
def test_scores_equal_those_of_the_oracle_for_factors_in_any_form(algebra, n_cols, n_atoms):
    rng = np.random.default_rng(n_cols)
    shapes = ((30, n_cols), (n_atoms, n_cols), (30, n_atoms), n_cols)
    X, atoms, codes, bias = (rng.integers(0, 2, shape, np.uint8) for shape in shapes)
    for form, own in ((np.asarray, None), (lambda part: part.astype(bool), bias), (ba.BitMatrix.from_dense, bias)):
        counted = score_factors(ba.BitMatrix.from_dense(X), Factors(form(atoms), form(codes), own), algebra)
        assert counted[:2] == (n_atoms, naive.errors(X, atoms, codes, algebra, own).sum())
        bits = counted[2]
        assert (bits.errors, bits.codes, bits.atoms) == naive.codelength(X, atoms, codes, algebra, own)


def test_all_methods_run():
    everyone = all_methods()
    assert len({each.key for each in everyone}) == len(everyone)
    assert {each.algebra for each in everyone} == {"or", "xor"}
    assert sum(each.is_bitatoms for each in everyone) == 6
    runs = compare({"x": table(60, 16)}, [2]).runs
    assert {run.method.key: run.why_not for run in runs if not run.done} == {}
    assert all(run.atoms <= 2 for run in runs if not run.method.chooses_rank)


def test_methods_run_once_per_seed_and_give_the_same_numbers_again(found):
    seeds = {}
    for run in found.runs:
        seeds.setdefault((run.data, run.method.key, run.asked), []).append(run.seed)
    assert seeds["planted", "bitatoms-or", 1] == [3, 4]
    assert seeds["planted", "grecond", 2] == [None]
    assert seeds["planted", "bitatoms-xor-mdl", None] == [3, 4]
    assert all(run.done and run.cpu >= 0 and run.wall >= 0 for run in found.runs)
    calls = []
    only = ["bitatoms-or", "mob"]
    again = compare(
        {"planted": table()}, [2, 1, 2], only=only, seeds=2, random_state=3, callback=lambda *c: calls.append(c)
    )
    assert [(done, count, run.asked) for done, count, run in calls][:3] == [(0, 8, 1), (1, 8, 1), (2, 8, 2)]
    before = [row for row in found.numbers().rows if row[0] == "planted" and row[1] in only]
    rows = [[row[: SECONDS.start] + row[SECONDS.stop :] for row in each] for each in (before, again.numbers().rows)]
    assert rows[0] == rows[1]


def test_medians_and_ranges():
    made = fake_method(lambda task: Factors(np.arange(8)[np.newaxis] < (8, 2, 4)[task.seed], np.eye(10, 1)))
    result = compare({"zeros": np.zeros((10, 8), np.uint8)}, [1], only=[made], seeds=3)
    (only,) = result.results(result.tables[0])
    assert tuple(only.wrong) == (4, 2, 8)
    assert wrong_ranking(result).rows[0][2] == "5.00 (2.50–10.00)"


# --- failures, interruptions and arguments


def test_failed_run_reports_the_reason():
    def fails(task):
        raise RuntimeError("no licence\nfor this " + "x" * 500)

    mad = fake_method(lambda task: Factors([[1]], [[1]]), "mad")
    result = compare({"x": table()}, [1, 2], only=[fake_method(fails, "broken"), mad, fake_method(first_rows)])
    broken, _, mad, _, *mine = result.runs
    assert broken.why_not.startswith("failed: no licence for this xx")
    assert len(broken.why_not) < 220
    assert "atoms have 1 features, but X has 20" in mad.why_not
    assert [run.done for run in mine] == [True, True]
    ranking = wrong_ranking(result)
    assert {row[0]: row[2:] for row in ranking.rows}["broken"] == ("failed", "failed", "–")
    assert "broken (OR), 1 atom: failed: no licence" in ranking.notes[0]


def test_slow_method_is_not_run_again_on_the_same_table(monkeypatch):
    from bitatoms.compare import runner

    clock = iter(np.arange(0, 1e6, 7.0))  # each call is seven seconds after the last
    monkeypatch.setattr(runner.time, "perf_counter", lambda: float(next(clock)))
    result = compare({"x": table(), "y": table()}, [1, 2], only=[fake_method(first_rows)], seeds=2, max_time=5)
    assert [(run.data, run.done) for run in result.runs] == [(data, first) for data in "xy" for first in (1, 0, 0, 0)]
    assert result.runs[1].why_not == "not run: 1 atom took 7 s, more than the limit of 5 s"
    assert wrong_ranking(result).rows[0][3] == "not run"
    slower = compare({"x": table()}, [1, 2], only=[fake_method(first_rows)], max_time=8)
    assert all(run.done for run in slower.runs)


@pytest.mark.parametrize(("n_done", "done", "not_reached"), [(0, [], ("a", HOSTILE)), (3, ["a", "a", HOSTILE], ())])
def test_ctrl_c_keeps_finished_runs_and_tables_not_reached_are_named(n_done, done, not_reached):
    def stop(number, count, run):
        if number == n_done:
            raise KeyboardInterrupt

    made = [fake_method(first_rows), fake_method(first_rows, "other")]
    result = compare({"a": table(), HOSTILE: table()}, [1], only=made, callback=stop)
    assert (result.interrupted, result.not_reached, [run.data for run in result.runs]) == (True, not_reached, done)
    text = result.to_markdown()
    assert "was interrupted" in text
    assert (f"Not reached: {escape_markdown(', '.join(not_reached))}." in text) == bool(not_reached)


def test_single_table_rank_and_method():
    X = table()
    for form in (X, csr_array(X), pd.DataFrame(X), ba.BitMatrix.from_dense(X), ba.Table.from_any(X), X.tolist()):
        result = compare(form, 2, only="grecond")
        assert [(run.data, run.method.key, run.asked) for run in result.runs] == [("table", "grecond", 2)]
        assert result.tables[0].shape == X.shape
    for ranks, asked in ((range(1, 3), [1, 2]), (np.int64(1), [1])):
        assert [run.asked for run in compare(X, ranks, only=fake_method(first_rows)).runs] == asked
    (run,) = compare(X, [1], only=["asso", "grecond"], leave_out="asso").runs
    assert run.method.key == "grecond"


INVALID = [
    ({"only": ["assso"]}, "there is no method 'assso'; choose from bitatoms-or, "),
    ({"only": ["asso"], "leave_out": ["asso"]}, "no method is left"),
    ({"only": 3}, "only is 3; pass the key of a method, such as 'asso', or a list of keys"),
    ({"ranks": [0]}, "ranks must be at least 1, not 0"),
    ({"ranks": [True]}, "^ranks (is|must be) "),
    ({"ranks": "2,4"}, "ranks is '2,4'; pass a number of atoms, or several"),
    ({"seeds": 0}, "seeds must be at least 1"),
    ({"max_time": 0}, "max_time must be a number of seconds greater than 0, not 0"),
    ({"data": []}, "data is empty; pass a table, or the name of a bundled data set"),
    ({"data": 3}, "data is or contains an object of type int; pass one table, a mapping .* to tables, or names from"),
    ({"data": ["digit"]}, "there is no data set 'digit'; choose from digits, halftone"),
    ({"data": {"empty": np.zeros((0, 3))}}, "empty: the table has no rows"),
    ({"data": {"wrong": [[2, 0]]}}, "values other than 0 and 1"),
]


@pytest.mark.parametrize(("arguments", "message"), INVALID)
def test_invalid_arguments_raise(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        compare(**({"data": {"x": table()}, "ranks": [1]} | arguments))


# --- rankings and summaries


def test_best_of_each_algebra_is_marked(found):
    ranking = wrong_ranking(found)
    for column in (2, 3):
        for algebra in ("OR", "XOR"):
            shares = {i: float(row[column].split()[0]) for i, row in enumerate(ranking.rows) if row[1] == algebra}
            marked = {i for i, j in ranking.best if j == column and i in shares}
            assert marked == {i for i, share in shares.items() if share == min(shares.values())}
    assert [row[1] for row in ranking.rows] == sorted(row[1] for row in ranking.rows)


def test_method_with_one_atom_per_row_is_ranked_in_both_algebras(found):
    (proximus,) = [each for each in all_methods() if each.both_algebras]
    assert (proximus.key, proximus.label) == ("proximus", "Proximus (OR/XOR)")
    for each in found.tables:
        rows = [row for row in wrong_ranking(found, each).rows if row[0] == "Proximus"]
        assert [row[1] for row in rows] == ["OR", "XOR"]
        assert rows[0][2:] == rows[1][2:]
        assert [row[1] for row in rank_by_bits(each, found.results(each)).rows if row[0] == "Proximus"] == ["OR/XOR"]


def test_bits_are_ranked_over_all_numbers_of_atoms(found):
    first = found.tables[0]
    ranking = rank_by_bits(first, found.results(first))
    least = {}
    for result in found.results(found.tables[0]):
        least[result.method.name] = min(least.get(result.method.name, 1 << 60), result.bits.median)
    assert {row[0]: int(row[2].split()[0].replace(",", "")) for row in ranking.rows} == least
    bits = [int(row[2].split()[0].replace(",", "")) for row in ranking.rows]
    assert bits == sorted(bits)
    assert (0, 2) in ranking.best


def wrong_cells(number, key, ours=False):
    """Return a method with this many wrong cells on a table of zeros."""
    factors = Factors(np.arange(50)[np.newaxis] < number, np.eye(20, 1))
    return fake_method(lambda task: factors, key, is_bitatoms=ours)


SUMMARIES = {  # by the wrong cells of bitatoms and of another method
    (1, 2): "bitatoms, 0.10 %; the best other method: other, 0.20 %.",
    (2, 2): "bitatoms, 0.20 % (also other).",
    (3, 2): "other, 0.20 %; the best of bitatoms: bitatoms, 0.30 %.",
}


def test_summary_names_the_best_method():
    for (mine, theirs), expected in SUMMARIES.items():
        made = [wrong_cells(theirs, "other"), wrong_cells(mine, "bitatoms", ours=True)]
        result = compare({"zeros": np.zeros((20, 50), np.uint8)}, [1], only=made)
        first, last = summarize(result.tables[0], result.results(result.tables[0]))
        assert first == f"Fewest wrong cells with 1 atom, OR: {expected}"
        assert last.startswith(f"Fewest bits, any number of atoms: {'other' if mine == 3 else 'bitatoms'} (OR), ")


def test_sentences_and_headings_mention_medians_with_several_seeds(found, small):
    first = found.tables[0]
    *lines, note = summarize(first, found.results(first))
    assert len(lines) == 3
    assert all(" in the median: " in each for each in lines)
    assert note.startswith("Values are medians over 2 seeds (the lower of the two middle values), ")
    rows = overview(found).splitlines()
    assert "| fewest wrong cells, OR (medians) |" in rows[0]
    assert [row.split(" | ")[0] for row in rows[2:]] == ["| planted", f"| {escape_markdown(HOSTILE)}"]
    assert wrong_ranking(found).heading == "Wrong cells in percent: median (range)"
    assert "median" not in small.to_markdown()


def test_csv_contains_every_run(found):
    rows = list(csv.DictReader(io.StringIO(found.numbers().to_csv())))
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == len(found.runs)
    for row, run in zip(rows, found.runs, strict=True):
        assert (row["data"], row["contender"]) == (run.data, run.method.key)
        assert int(row["bits"]) == sum(int(row[f"bits of {part}"]) for part in ("errors", "codes", "atoms"))
        cells = 90 * 20 if run.data == "planted" else 70 * 65
        assert float(row["wrong share"]) == int(row["wrong cells"]) / cells


def test_markdown_escapes_hostile_names(found):
    text = found.to_markdown()
    assert "<script>" not in text
    blocks = re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    assert len(blocks) == 1 + 2 * len(found.tables)
    for block in blocks:
        cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in block.splitlines()]
        assert len({len(line) for line in cells}) == 1
        assert all(re.fullmatch(r" -+:? ", cell) for cell in cells[1])
    assert re.sub(r"\\(.)", r"\1", re.findall(r"^## (.*)$", text, re.MULTILINE)[1]) == HOSTILE
    assert escape_markdown("a\nb|c") == "a b\\|c"
    text = compare(table(), 1, only=fake_method(first_rows), command="compare '```' 'a\nb'").to_markdown()
    assert text.endswith("To repeat it:\n\n    compare '```' 'a\n    b'\n")


@pytest.fixture(scope="module")
def small():
    """Compare two methods on two tables."""
    return compare({"planted": table(), HOSTILE: table(70, 65)}, [1, 2], only=["mob", "k-prox"])


@pytest.fixture(scope="module")
def written(small, tmp_path_factory):
    """Write a comparison and return its files."""
    pytest.importorskip("matplotlib")
    return small.write(tmp_path_factory.mktemp("compare") / "new" / "folder")


def test_write_creates_tables_and_figures(written, small):
    texts = {path.name: path.read_text(encoding="utf-8") for path in written if path.suffix != ".png"}
    assert texts == {"compare.md": small.to_markdown(), "compare.csv": small.numbers().to_csv()}
    pictures = [path for path in written if path.suffix == ".png"]
    assert [picture.name[-8:] for picture in pictures] == ["-xor.png"] * 2
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)


def test_figures_have_both_algebras_and_all_methods(monkeypatch):
    matplotlib = pytest.importorskip("matplotlib.figure")
    drawn = []
    monkeypatch.setattr(matplotlib.Figure, "savefig", lambda figure, *given, **more: drawn.append(figure))
    found = compare(table(), [1, 3], only=["bitatoms-or", "bitatoms-or-mdl", "mob", "proximus"])
    assert list(draw_figures(found.tables[0], found.results(found.tables[0]))) == ["or", "xor"]
    names = [[text.get_text() for text in figure.legends[0].get_texts()] for figure in drawn]
    assert names == [["bitatoms", "bitatoms mdl", "Proximus"], ["Proximus", "MOB"]]
    by_atoms = drawn[0].axes[0].get_lines()
    assert [list(line.get_xdata()) for line in by_atoms[::2]] == [[1, 3], [1, 3]]
    shares = [100 * result.wrong.median / found.tables[0].n_cells for result in found.results(found.tables[0])[:2]]
    assert list(by_atoms[0].get_ydata()) == shares
    assert drawn[0].axes[0].get_ylim() == drawn[1].axes[0].get_ylim()


def test_file_slugs_are_distinct():
    slugs = ["a-b-csv", "a-b-csv-2", "table", "table-2", "x" * 60]
    assert file_slugs(["A b.csv", "a-b.CSV", "…", "/", "x" * 99]) == slugs


@pytest.mark.parametrize("name", [name for name in BUNDLED if name != "halftone"])
def test_bundled_tables_are_reproducible(name):
    bits = BUNDLED[name].make()
    assert (bits.n_rows >= 500, bits == BUNDLED[name].make(), bool(BUNDLED[name].about)) == (True, True, True)


def test_default_ranks_depend_on_the_shape():
    ranks = {(1797, 64): [2, 4, 8, 16], (500, 17): [2, 4, 8], (5, 900): [2], (1, 1): [1]}
    assert {shape: default_ranks(shape) for shape in ranks} == ranks
