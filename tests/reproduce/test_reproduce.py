"""The full reproduction on small data: experiments, figures, page and files."""

import csv
import re
import struct

import pytest

import bitatoms as ba
from bitatoms import BitMatrix, datasets
from bitatoms.reproduce import Claim, Experiment, Panel, Verdict, reproduce, write_results
from bitatoms.reproduce.datasets import load_digits, load_halftone
from bitatoms.table import Table

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
    folder = tmp_path_factory.mktemp("paper") / "new" / "folder"
    steps = []
    experiments = reproduce(
        folder, einstein=files / "picture.pbm", mnist=files / "digits.npz", random_state=3, callback=steps.append
    )
    return folder, experiments, steps


def test_all_experiments_are_run(reproduced):
    _, experiments, steps = reproduced
    assert [experiment.anchor for experiment in experiments] == [
        "data", "models", "start", "selection", "convergence", "today",
    ]  # fmt: skip
    titles = [panel.title for panel in experiments[1].panels]
    assert titles == ["digits by MOB", "digits by K-PROX", "halftone by K-PROX", "halftone by MOB"]
    assert [len(panel.figures) for panel in experiments[2].panels] == [6, 6]
    assert steps[0] == "Reading the data"
    assert steps[-1] == "Writing the page"


def test_every_figure_is_written_as_png_and_csv(reproduced):
    folder, experiments, _ = reproduced
    figures = [figure for each in experiments for panel in each.panels for figure in panel.figures]
    assert len({figure.name for figure in figures}) == len(figures)
    for figure in figures:
        png = (folder / "figures" / f"{figure.name}.png").read_bytes()
        assert png == figure.png
        width, height = struct.unpack(">II", png[16:24])
        assert width / height == pytest.approx(figure.size[1] / figure.size[0], rel=0.02)
    tables = {figure.name: figure.table for figure in figures if figure.table is not None}
    assert {figure.name for figure in figures} - set(tables) == {"picture", "blocks"}
    for each in experiments:
        tables |= {f"{each.anchor}-{panel.title}-runs": panel.runs for panel in each.panels if panel.runs}
    for name, numbers in tables.items():
        text = (folder / "figures" / f"{name}.csv").read_text(encoding="utf-8")
        rows = list(csv.reader(text.splitlines()))
        assert tuple(rows[0]) == numbers.columns
        assert len(rows) == len(numbers.rows) + 1
    written = {path.stem for path in (folder / "figures").iterdir()}
    assert written == {figure.name for figure in figures} | set(tables)


def test_tables_of_mosaics_contain_the_atoms(reproduced):
    panel = reproduced[1][1].panels[0]
    rows = panel.figures[0].table.rows
    assert all(len(row[-1]) == 64 and row[-1].count("1") == row[1] for row in rows)


def test_page_has_all_figures_and_claims_and_makes_no_requests(reproduced):
    folder, experiments, _ = reproduced
    page = (folder / "index.html").read_text(encoding="utf-8")
    for experiment in experiments:
        assert f'<section id="{experiment.anchor}">' in page
        for panel in experiment.panels:
            assert all(f'<figure id="{figure.name}">' in page for figure in panel.figures)
    claims = [claim for experiment in experiments for claim in experiment.claims]
    assert page.count('class="verdict') == len(claims) + sum(claim.in_paper for claim in claims)
    rows = list(csv.reader((folder / "claims.csv").read_text(encoding="utf-8").splitlines()))
    assert [(row[2], row[3]) for row in rows[1:]] == [
        ("yes" if each.in_paper else "no", each.statement) for each in claims
    ]
    assert len({(row[1], row[3]) for row in rows[1:]}) == len(claims)  # statements are unique per panel
    assert not re.findall(r"(?:src|href)=\"(?!#|data:)", page)
    assert "<script" not in page


def test_convergence_is_exact_in_all_runs(reproduced):
    claims = [claim for claim in reproduced[1][4].claims if claim.statement.startswith("Convergence is exact")]
    assert [claim.verdict for claim in claims] == [Verdict.AGREES]
    assert claims[0].finding.startswith("In 24 of 24 runs")


def test_equal_seeds_give_equal_figures(reproduced, files):
    from bitatoms.reproduce.experiments.models import models

    paper_data = load_digits(files / "digits.npz"), load_halftone(files / "picture.pbm")
    again = models(*paper_data, 3)
    for panel, other in zip(reproduced[1][1].panels, again.panels, strict=True):
        assert panel.description == other.description
        assert panel.claims == other.claims
        assert [figure.png for figure in panel.figures] == [figure.png for figure in other.figures]


def test_texts_are_escaped(tmp_path):
    hostile = "<script>alert(1)</script>"
    claim = Claim(hostile, hostile, Verdict.DIFFERS, hostile)
    experiment = Experiment("here", "Here", hostile, hostile, (Panel(hostile, hostile, (), (claim,)),))
    write_results([experiment], tmp_path, hostile)
    assert "<script" not in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_interrupted_run_writes_nothing(tmp_path, files, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setitem(reproduce.__globals__["_EXPERIMENTS"], "Learning the four models", stop)
    with pytest.raises(KeyboardInterrupt):
        reproduce(tmp_path / "paper", einstein=files / "picture.pbm", mnist=files / "digits.npz")
    assert not (tmp_path / "paper").exists()
