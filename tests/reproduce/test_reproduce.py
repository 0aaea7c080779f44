"""The reproduction of the paper on small data. The package is to move to the benchmarks: this shows that it works."""

import csv
import re

import numpy as np
import pytest

import bitatoms as ba
from bitatoms import BitMatrix, datasets
from bitatoms.core.result import Round
from bitatoms.reproduce import Claim, Experiment, Panel, Verdict, reproduce, write_results
from bitatoms.reproduce.datasets import PaperDataset, load_digits, load_halftone
from bitatoms.reproduce.experiment import summarize_verdicts
from bitatoms.reproduce.experiments.model_claims import model_claims
from bitatoms.reproduce.runs import run_learning, run_selection, starting_atoms, stopping_round
from bitatoms.reproduce.selection_curve import count_minima, running_median
from bitatoms.table import Picture, Table
from support.strategies import random_bits

pytestmark = pytest.mark.usefixtures("few_trials")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Files with a small halftone and some digits."""
    folder = tmp_path_factory.mktemp("data")
    ba.write(Table(BitMatrix.from_dense(datasets.halftone()[100:196, 200:392])), folder / "picture.pbm")
    ba.write(Table(BitMatrix.from_dense(datasets.digits()[0][:120])), folder / "digits.npz")
    return folder


@pytest.fixture(scope="module")
def reproduced(files, tmp_path_factory):
    """The full reproduction on small data: its folder, its experiments and the steps reported."""
    folder, steps = tmp_path_factory.mktemp("paper") / "new" / "folder", []
    given = {"einstein": files / "picture.pbm", "mnist": files / "digits.npz", "random_state": 3}
    return folder, reproduce(folder, **given, callback=steps.append), steps


def test_all_experiments_are_run(reproduced):
    _, experiments, steps = reproduced
    anchors = [experiment.anchor for experiment in experiments]
    assert anchors == ["data", "models", "start", "selection", "convergence", "today"]
    titles = [panel.title for panel in experiments[1].panels]
    assert titles == ["digits by MOB", "digits by K-PROX", "halftone by K-PROX", "halftone by MOB"]
    assert (steps[0], steps[-1]) == ("Reading the data", "Writing the page")
    (exact,) = [claim for claim in experiments[4].claims if claim.statement.startswith("Convergence is exact")]
    assert (exact.verdict, exact.finding[:16]) == (Verdict.AGREES, "In 24 of 24 runs")
    rows = experiments[1].panels[0].figures[0].table.rows
    assert all(len(row[-1]) == 64 and row[-1].count("1") == row[1] for row in rows)


def test_figures_tables_and_claims_are_in_files_and_in_the_page(reproduced):
    folder, experiments, _ = reproduced
    page = (folder / "index.html").read_text(encoding="utf-8")
    panels = [(each, panel) for each in experiments for panel in each.panels]
    figures = {figure.name: figure for _, panel in panels for figure in panel.figures}
    assert all(f'<figure id="{name}">' in page for name in figures)
    assert all((folder / "figures" / f"{name}.png").read_bytes() == figure.png for name, figure in figures.items())
    tables = {name: figure.table for name, figure in figures.items() if figure.table is not None}
    tables |= {f"{each.anchor}-{panel.title}-runs": panel.runs for each, panel in panels if panel.runs}
    for name, numbers in tables.items():
        rows = list(csv.reader((folder / "figures" / f"{name}.csv").read_text(encoding="utf-8").splitlines()))
        assert (tuple(rows[0]), len(rows)) == (numbers.columns, len(numbers.rows) + 1)
    assert {path.stem for path in (folder / "figures").iterdir()} == {*figures, *tables}
    claims = [claim for experiment in experiments for claim in experiment.claims]
    rows = list(csv.reader((folder / "claims.csv").read_text(encoding="utf-8").splitlines()))
    assert [(row[2] == "yes", row[3]) for row in rows[1:]] == [(each.in_paper, each.statement) for each in claims]
    assert page.count('class="verdict') == len(claims) + sum(claim.in_paper for claim in claims)
    assert not re.findall(r"(?:src|href)=\"(?!#|data:)|<script", page)


def test_texts_are_escaped_and_verdicts_summarized(tmp_path):
    hostile = "<script>alert(1)</script>"
    claims = [
        Claim(hostile, hostile, verdict, hostile) for verdict in (Verdict.AGREES, Verdict.AGREES, Verdict.DIFFERS)
    ]
    claims.append(Claim("ours", "b", Verdict.AGREES, in_paper=False))
    assert summarize_verdicts(claims) == "3 claims of the paper were checked: 2 agree with the results, 1 differ."
    experiment = Experiment("here", "Here", hostile, hostile, (Panel(hostile, hostile, (), tuple(claims)),))
    write_results([experiment], tmp_path, hostile)
    assert "<script" not in (tmp_path / "index.html").read_text(encoding="utf-8")


LABELS = [(6, "true", Verdict.AGREES), (3, "true", Verdict.PARTLY), (3, "shuffled", Verdict.DIFFERS)]


@pytest.mark.parametrize(("n_digits", "kind", "verdict"), [*LABELS, (3, "unknown", Verdict.NOT_SEEN)])
def test_codes_are_compared_with_the_labels(n_digits, kind, verdict):
    """Six digits are clear for some atoms, three for all."""
    X, y = datasets.digits()
    chosen = np.flatnonzero(y < n_digits)
    labels = {"true": y[chosen], "shuffled": np.random.default_rng(0).permutation(y[chosen]), "unknown": None}[kind]
    dataset = PaperDataset("digits", "MNIST", "", True, BitMatrix.from_dense(X[chosen]), (8, 8), labels=labels)
    run = run_selection(dataset.data, "mob", 0, patience=2)
    claim = model_claims(dataset, run, run, 0)[-1]
    assert ("correspondence" in claim.statement, claim.verdict) == (True, verdict)


def test_data_are_read_from_files(tmp_path):
    picture = datasets.halftone()[:150, :170]
    cut = Table(BitMatrix.from_dense(datasets.cut_blocks(picture)), picture=Picture((16, 16), picture.shape))
    ba.write(Table(BitMatrix.from_dense(picture)), tmp_path / "whole.pbm")
    ba.write(cut, tmp_path / "blocks.npz")
    whole, blocks = (load_halftone(tmp_path / name) for name in ("whole.pbm", "blocks.npz"))
    assert (whole.picture == picture).all()
    assert whole.data == blocks.data
    assert (whole.name, whole.is_substitute) == ("halftone", True)  # not the size of the paper's picture
    for shape, message in (((100, 300), "are not square"), ((63, 289), "63 samples are too few")):
        ba.write(Table(BitMatrix.from_dense(random_bits(0, *shape, 0.4))), tmp_path / "table.npz")
        with pytest.raises(ba.FileError, match=f"table.npz.*{message}"):
            load_digits(tmp_path / "table.npz")


@pytest.mark.parametrize(("update", "start"), [("mob", "samples"), ("k-prox", "bernoulli")])
def test_learning_equals_the_public_function(update, start):
    blocks = BitMatrix.from_dense(datasets.cut_blocks(datasets.halftone()[:160, :160]))
    atoms = starting_atoms(start, blocks, 9, 0)
    run = run_learning(blocks, atoms, update)
    public = ba.factorize(blocks, 9, search="paper", update=update, init=atoms)
    assert [row[1:-1] for row in run.history] == [row[1:-1] for row in public.history]
    assert sorted(map(bytes, run.atoms.words)) == sorted(map(bytes, public.atoms.words))
    product = run.codes.to_dense() @ run.atoms.to_dense() % 2
    assert (run.errors.to_dense() == blocks.to_dense() ^ product).all()


def test_the_curve_of_selection():
    costs = [9, 7, 8, 7, 6, 6, 7, 5]
    rounds = [Round(*([0] * 16))._replace(round=number, bits=bits) for number, bits in enumerate(costs)]
    assert [stopping_round(rounds, patience).round for patience in (1, 2, 3)] == [1, 1, 7]
    minima = {(10.0,): 1, (10, 8, 9, 7, 9): 2, (10, 8, 8.01, 7.99, 9): 1, (5, 6, 7, 6, 5, 9): 2, (9, 8, 7): 1}
    assert {curve: count_minima(np.array(curve, float)) for curve in minima} == minima
    values = np.random.default_rng(0).random(30)
    expected = [np.median(values[max(0, at - 2) : at + 3]) for at in range(30)]
    assert (running_median(values, reach=2) == expected).all()
