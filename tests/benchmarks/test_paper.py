"""The reproduction of the paper on small data (benchmarks/paper)."""

import csv
import gzip
import re

import numpy as np
import pytest
from benchmarks.paper import Verdict, reproduce
from benchmarks.paper.__main__ import print_claims
from benchmarks.paper.datasets import load_digits, load_halftone
from benchmarks.paper.runs import stopping_round
from benchmarks.paper.selection_curve import count_minima, running_median

import bitatoms as ba
from bitatoms import BitMatrix, datasets
from bitatoms.columns.table import Picture, Table
from bitatoms.model.result import Round
from support.mnist import idx
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


def test_figures_tables_and_claims_are_in_files_and_in_the_page(reproduced, capsys):
    folder, experiments, _ = reproduced
    page = (folder / "index.html").read_text(encoding="utf-8")
    for figure in (figure for each in experiments for panel in each.panels for figure in panel.figures):
        assert f'<figure id="{figure.name}">' in page
        assert (folder / "figures" / f"{figure.name}.png").read_bytes() == figure.png
        assert figure.table is None or (folder / "figures" / f"{figure.name}.csv").exists()
    claims = [claim for experiment in experiments for claim in experiment.claims]
    assert (len(list((folder / "figures").glob("*.png"))), sum(each.in_paper for each in claims)) == (41, 22)
    rows = list(csv.reader((folder / "claims.csv").read_text(encoding="utf-8").splitlines()))
    assert [(row[2] == "yes", row[3]) for row in rows[1:]] == [(each.in_paper, each.statement) for each in claims]
    assert not re.findall(r"(?:src|href)=\"(?!#|data:)|<script", page)
    print_claims(experiments)
    printed = capsys.readouterr().out
    assert all(each.statement in printed for each in claims)
    assert f"{sum(each.in_paper for each in claims)} claims of the paper were checked" in printed


def test_the_data_of_the_paper_are_read_and_others_refused(tmp_path):
    picture, paths = datasets.halftone()[:150, :170], (tmp_path / "blocks.npz", tmp_path / "table.npz")
    blocks = BitMatrix.from_dense(datasets.cut_blocks(picture))
    ba.write(Table(blocks, picture=Picture((16, 16), picture.shape)), paths[0])
    halftone = load_halftone(paths[0])
    assert ((halftone.picture == picture).all(), halftone.data == blocks, halftone.is_substitute) == (True, True, True)
    digits = np.random.default_rng(0).integers(0, 256, (75, 28, 28), dtype=np.uint8)
    (tmp_path / "t10k").write_bytes(gzip.compress(idx(digits), mtime=0))
    assert (load_digits(tmp_path / "t10k").data.to_dense() == datasets.mnist(tmp_path / "t10k").X).all()
    refused = [(load_digits, (100, 300), "are not square"), (load_digits, (63, 289), "63 samples are too few")]
    for load, shape, message in [*refused, (load_halftone, (40, 40), "9 samples|blocks")]:
        ba.write(Table(BitMatrix.from_dense(random_bits(0, *shape, 0.4))), paths[1])
        with pytest.raises(ba.FileError, match=f"table.npz.*({message})"):
            load(paths[1])


def test_the_curve_of_selection():
    costs = [9, 7, 8, 7, 6, 6, 7, 5]
    rounds = [Round(*([0] * 16))._replace(round=number, bits=bits) for number, bits in enumerate(costs)]
    assert [stopping_round(rounds, patience).round for patience in (1, 2, 3)] == [1, 1, 7]
    minima = {(10.0,): 1, (10, 8, 9, 7, 9): 2, (10, 8, 8.01, 7.99, 9): 1, (5, 6, 7, 6, 5, 9): 2, (9, 8, 7): 1}
    assert {curve: count_minima(np.array(curve, float)) for curve in minima} == minima
    values = np.random.default_rng(0).random(30)
    expected = [np.median(values[max(0, at - 2) : at + 3]) for at in range(30)]
    assert (running_median(values, reach=2) == expected).all()
