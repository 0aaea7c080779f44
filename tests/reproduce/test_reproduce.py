"""The paper's experiments: run as the public functions would, drawn to the pixel, judged by what is counted."""

import csv
import gzip
import re
import struct

import numpy as np
import pytest
from test_mnist import GRAY, idx

import bitatoms as ba
from bitatoms import BitMatrix, datasets, factorize
from bitatoms.io.errors import FileError
from bitatoms.reproduce import Claim, Experiment, Panel, Verdict, reproduce, write
from bitatoms.reproduce import runs as paper_runs
from bitatoms.reproduce.datasets import Subject, halftone, handwriting
from bitatoms.reproduce.experiment import counted
from bitatoms.reproduce.experiments.data_sets import shown_samples, stripe
from bitatoms.reproduce.experiments.initialisation import initialisation
from bitatoms.reproduce.experiments.model_claims import claims_of_the_paper
from bitatoms.reproduce.experiments.models import marked_atoms
from bitatoms.reproduce.mosaics import GAP, RED, coded_samples, mosaic, with_blocks, with_stripe
from bitatoms.reproduce.runs import UPDATES, learned, selected, shortest, starting_atoms, stops_at
from bitatoms.reproduce.selection_curve import Path, count_valleys, law_of, running_median
from bitatoms.reproduce.similarity import likeness
from bitatoms.table import Picture, Table
from support.strategies import random_bits


@pytest.fixture(scope="module")
def blocks():
    """Some blocks of the bundled halftone."""
    return BitMatrix.from_dense(datasets.cut_blocks(datasets.halftone()[:160, :320]))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A small halftone and some digits of their own."""
    folder = tmp_path_factory.mktemp("data")
    ba.write(Table(BitMatrix.from_dense(datasets.halftone()[100:260, 200:520])), folder / "picture.pbm")
    ba.write(Table(BitMatrix.from_dense(datasets.digits()[0][:200])), folder / "digits.npz")
    return folder


@pytest.fixture(scope="module")
def reproduced(files, tmp_path_factory):
    """All of it, on small data."""
    folder = tmp_path_factory.mktemp("paper") / "new" / "folder"
    told = []
    experiments = reproduce(
        folder, einstein=files / "picture.pbm", mnist=files / "digits.npz", random_state=3, callback=told.append
    )
    return folder, experiments, told


# --- the runs


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("start", ["samples", "bernoulli"])
def test_learning_is_that_of_the_public_function(blocks, update, start):
    atoms = starting_atoms(start, blocks, 9, 0)
    run = learned(blocks, atoms, update)
    public = factorize(blocks, 9, search="paper", update=update, init=atoms)
    assert [row[1:-1] for row in run.history] == [row[1:-1] for row in public.history]
    assert sorted(map(bytes, run.atoms.words)) == sorted(map(bytes, public.atoms.words))
    product = run.codes.to_dense() @ run.atoms.to_dense() % 2
    assert (run.errors.to_dense() == blocks.to_dense() ^ product).all()
    assert run.converged


def test_selection_keeps_the_best_when_patience_ends_and_the_last_when_forced(blocks):
    patient = selected(blocks, "mob", 0, patience=10)
    forced = selected(blocks, "mob", 0, until=patient.history[-1].atoms + 5)
    assert forced.atoms.n_rows == forced.history[-1].atoms == patient.history[-1].atoms + 5
    shared = forced.history[: len(patient.history)]
    assert [row[:-1] for row in shared] == [row[:-1] for row in patient.history]
    assert patient.atoms.n_rows == stops_at(forced.history, 10).atoms == shortest(patient.history).atoms
    length = ba.codelength(blocks, patient.atoms, patient.codes)
    assert length.total == shortest(patient.history).bits


def test_selection_begins_with_distinct_samples(blocks):
    rows = set(map(bytes, blocks.words))
    run = selected(blocks, "k-prox", 5, until=20)
    assert run.start.n_rows == 16
    assert set(map(bytes, run.start.words)) <= rows
    assert [row.atoms for row in run.history] == [16, 17, 18, 19, 20]


def naive_stop(costs, failures):
    """The place of the cheapest before the first so many in a row that are no cheaper than one before them."""
    for end in range(failures, len(costs)):
        if all(costs[place] >= min(costs[: end - failures + 1]) for place in range(end - failures + 1, end + 1)):
            return costs.index(min(costs[: end + 1]))
    return costs.index(min(costs))


@pytest.mark.parametrize("failures", [1, 2, 3, 5])
def test_selection_stops_where_the_rule_says(failures):
    random = np.random.default_rng(failures)
    for _ in range(50):
        costs = random.integers(0, 12, random.integers(1, 15)).tolist()
        rounds = [paper_runs.Round(*([0] * 16))._replace(round=n, bits=bits) for n, bits in enumerate(costs)]
        assert stops_at(rounds, failures).round == naive_stop(costs, failures)


@pytest.mark.parametrize(
    ("curve", "valleys"),
    [
        ([10.0], 1),
        ([10, 9, 8, 8.5, 9], 1),
        ([10, 8, 9, 7, 9], 2),
        ([10, 8, 8.01, 7.99, 9], 1),
        ([5, 6, 7, 6, 5, 9], 2),
        ([9, 8, 7, 6], 1),
    ],
)
def test_minimum_regions_are_told_apart_by_the_rise_between_them(curve, valleys):
    assert count_valleys(np.array(curve, float)) == valleys


def test_a_running_median_is_that_of_the_values_around():
    values = np.random.default_rng(0).random(30)
    expected = [np.median(values[max(0, at - 2) : at + 3]) for at in range(30)]
    assert (running_median(values, reach=2) == expected).all()


# --- the pictures


@pytest.mark.parametrize(("n_atoms", "across"), [(1, 4), (5, 2), (6, 3), (7, 16)])
def test_each_atom_stands_at_its_place_in_the_mosaic(n_atoms, across):
    atoms = random_bits(n_atoms, n_atoms, 12, 0.4)
    sheet = mosaic(BitMatrix.from_dense(atoms), (3, 4), across)
    wide = min(across, n_atoms)
    assert sheet.shape == (-(-n_atoms // wide) * 4 + 1, wide * 5 + 1)
    for place in range(n_atoms):
        top, left = 1 + place // wide * 4, 1 + place % wide * 5
        assert (sheet[top : top + 3, left : left + 4] == atoms[place].reshape(3, 4)).all()
    assert (sheet == GAP).sum() == sheet.size - atoms.size


def test_an_atom_in_a_frame_has_its_colour_around_it():
    atoms = BitMatrix.from_dense(random_bits(0, 4, 9, 0.4))
    sheet = mosaic(atoms, (3, 3), 2, {3: RED})
    assert (sheet[5:12, 5:12] == RED).sum() == 7 * 7 - 9
    assert (sheet[7:10, 7:10] == atoms.to_dense()[3].reshape(3, 3)).all()


def test_samples_stand_above_residuals_above_codes():
    data, errors = (random_bits(seed, 5, 6, 0.4) for seed in (0, 1))
    codes = random_bits(2, 5, 4, 0.4)
    sheet = coded_samples(*map(BitMatrix.from_dense, (data, errors, codes)), (2, 3), 3, {1: RED})
    band = 3  # nine pixels for four atoms, rounded up
    line = 2 * 3 + 4 * band + 2
    assert len(sheet) == 2 * line + 6
    for row in range(5):
        top, left = row // 3 * (line + 6), 1 + row % 3 * 4
        assert (sheet[top + 1 : top + 3, left : left + 3] == data[row].reshape(2, 3)).all()
        assert (sheet[top + 4 : top + 6, left : left + 3] == errors[row].reshape(2, 3)).all()
        shown = sheet[top + 7 : top + 7 + 4 * band : band, left]
        assert shown.tolist() == [code * (RED if atom == 1 else 1) for atom, code in enumerate(codes[row])]


def test_a_picture_in_blocks_is_the_picture_with_lines_between():
    picture = random_bits(0, 6, 8, 0.4)
    framed = with_blocks(picture, (3, 4))
    assert framed.shape == (7, 9)
    assert (framed[3] == GAP).all()
    assert (framed[:, 4] == GAP).all()
    assert (np.delete(np.delete(framed, 3, 0), 4, 1) == picture).all()


def test_the_stripe_is_framed_and_the_rest_left_alone():
    picture = random_bits(0, 40, 50, 0.4)
    shown = with_stripe(picture, 16, 16)
    assert (shown[:14] == picture[:14]).all()
    assert (shown[20:28, 4:-4] == picture[20:28, 4:-4]).all()
    assert set(np.unique(shown[15:17])) == {6}


def test_marked_atoms_are_used_by_some_samples_but_not_most():
    data = np.repeat(random_bits(0, 3, 30, 0.4), 4, axis=0)
    atoms = np.concatenate([data[::4], random_bits(9, 1, 30, 0.4)])
    codes = np.zeros((12, 4), np.uint8)
    codes[np.arange(8), np.arange(8) // 4] = 1  # the third pattern is not used
    codes[:, 3] = 1  # by most
    marked = marked_atoms(*map(BitMatrix.from_dense, (data, atoms, codes)))
    assert set(marked.values()) == {0, 1}
    assert next(iter(marked)) == "red"


def test_digits_are_like_other_digits_and_noise_like_no_other_noise():
    noise = BitMatrix.from_dense(random_bits(0, 300, 64, 0.3))
    assert not likeness(noise[:16], noise, noise[:16]).clearly
    digits = BitMatrix.from_dense(datasets.digits()[0][:300])
    assert likeness(digits[:16], digits, digits[:16]).clearly
    assert likeness(digits[:16], digits, digits[:0]).share == 1


def test_noise_is_not_taken_for_interpretable_atoms():
    noise = BitMatrix.from_dense(random_bits(1, 300, 100, 0.3))
    subject = Subject("noise", "Einstein", "", True, noise, (10, 10), picture=np.zeros((10, 10), np.uint8))
    runs = [selected(noise, update, 0, patience=2) for update in UPDATES]
    claim = claims_of_the_paper(subject, *runs, 0)[0]
    assert claim.says.startswith("The atoms are clearly interpretable")
    assert claim.verdict is Verdict.DIFFERS


def test_an_atom_that_one_digit_uses_is_a_clear_correspondence():
    X, y = datasets.digits()
    chosen = np.flatnonzero(y < 2)
    data = BitMatrix.from_dense(X[chosen])
    run = selected(data, "mob", 0, patience=2)
    for labels, verdict in ((y[chosen], Verdict.AGREES), (None, Verdict.NOT_SEEN)):
        subject = Subject("digits", "MNIST", "", True, data, (8, 8), labels=labels)
        claim = claims_of_the_paper(subject, run, run, 0)[-1]
        assert "correspondence" in claim.says
        assert claim.verdict in (verdict, Verdict.PARTLY if labels is not None else verdict)


class Falls(Path):
    """A path whose codelengths are given."""

    def __init__(self, bits):
        object.__setattr__(self, "given", np.asarray(bits, float))

    atoms = property(lambda self: 16 + np.arange(len(self.given)))
    bits = property(lambda self: self.given)


def test_an_exponential_is_told_from_a_power():
    atoms = 16 + np.arange(120)
    fast = law_of(Falls(50 + 100 * np.exp(-atoms / 15) - 100 * np.exp(-atoms[-1] / 15)))
    slow = law_of(Falls(50 + 1e5 * atoms**-2.0))
    assert fast.exponential > max(0.99, fast.power)
    assert slow.power > slow.exponential
    assert law_of(Falls([10, 5, 1, 1, 1])) is None


# --- the data


def test_the_stripe_is_a_row_of_blocks():
    subject = halftone(None)
    rows = shown_samples(subject, 0)
    top = stripe(subject) * 16
    again = datasets.stitch_blocks(subject.data[rows], (16, subject.picture.shape[1]), (16, 16))
    assert (again == subject.picture[top : top + 16]).all()


def test_bundled_data_stand_in_and_say_so():
    for subject in (handwriting(None), halftone(None)):
        assert subject.stands_in
        assert "scikit-learn" in subject.about


def test_a_picture_may_come_cut_in_blocks_or_whole(tmp_path):
    picture = datasets.halftone()[:150, :170]
    cut = Table(BitMatrix.from_dense(datasets.cut_blocks(picture)), picture=Picture((16, 16), picture.shape))
    ba.write(Table(BitMatrix.from_dense(picture)), tmp_path / "whole.pbm")
    ba.write(cut, tmp_path / "blocks.npz")
    whole, blocks = (halftone(tmp_path / name) for name in ("whole.pbm", "blocks.npz"))
    assert (whole.picture == picture).all()
    assert (blocks.picture == picture).all()
    assert whole.data == blocks.data
    assert (whole.name, whole.stands_in) == ("halftone", True)  # it has not the size of the paper's


def test_a_picture_of_the_size_of_the_papers_is_taken_for_it(tmp_path):
    ba.write(
        Table(BitMatrix.from_dense(np.tile(datasets.halftone()[:580], (2, 1))[:, :896])), tmp_path / "einstein.pbm"
    )
    subject = halftone(tmp_path / "einstein.pbm")
    assert (subject.name, subject.stands_in, subject.data.shape) == ("Einstein", False, (4088, 256))


def test_digits_come_as_published_or_as_a_table(tmp_path):
    pictures = np.tile(GRAY, (25, 1, 1))
    (tmp_path / "t10k").write_bytes(gzip.compress(idx(pictures)))
    ba.write(Table(BitMatrix.from_dense((pictures >= 128).reshape(75, -1))), tmp_path / "large.npz")
    ba.write(Table(BitMatrix.from_dense(random_bits(0, 75, 289, 0.4))), tmp_path / "small.npz")
    published, large, small = (handwriting(tmp_path / name) for name in ("t10k", "large.npz", "small.npz"))
    assert (published.data.to_dense() == datasets.mnist(tmp_path / "t10k").X).all()
    assert large.data.shape == small.data.shape == (75, 289)
    assert (small.data.to_dense() == random_bits(0, 75, 289, 0.4)).all()
    assert "17 × 17" in published.about
    assert not published.stands_in


def test_what_is_no_table_is_refused_with_what_to_give(tmp_path):
    (tmp_path / "digits").write_bytes(b"something else")
    with pytest.raises(FileError, match="its ending tells no format of tables; give digits, such as t10k"):
        handwriting(tmp_path / "digits")
    with pytest.raises(ValueError, match="random_state must be at least 0"):
        reproduce(tmp_path / "paper", random_state=-1)


@pytest.mark.parametrize(
    ("shape", "message"), [((100, 300), "make no square"), ((63, 289), "63 samples are too few to learn from")]
)
def test_tables_that_are_no_digits_are_refused_by_name(tmp_path, shape, message):
    ba.write(Table(BitMatrix.from_dense(random_bits(0, *shape, 0.4))), tmp_path / "table.npz")
    with pytest.raises(FileError, match=message) as refused:
        handwriting(tmp_path / "table.npz")
    assert "table.npz" in str(refused.value)


def test_a_picture_of_few_blocks_is_refused(tmp_path):
    ba.write(Table(BitMatrix.from_dense(random_bits(0, 40, 40, 0.4))), tmp_path / "small.pbm")
    with pytest.raises(FileError, match="9 samples are too few"):
        halftone(tmp_path / "small.pbm")


# --- the claims


def test_a_bernoulli_start_fails_on_sparse_data_and_not_on_a_halftone():
    sparse = Subject("few", "MNIST", "", False, BitMatrix.from_dense(np.eye(289, dtype=np.uint8)[:150]), (17, 17))
    experiment = initialisation(sparse, halftone(None), 0)
    claims = {claim.says: claim for claim in experiment.claims}
    fails = next(claim for says, claim in claims.items() if says.startswith("The Bernoulli start does not work"))
    assert fails.verdict is Verdict.AGREES
    assert fails.found.startswith("No atom is ever used, at any seed")
    assert claims["Both starts work well, with both methods."].verdict is not Verdict.DIFFERS
    assert claims["In all cases some atoms come to resemble halftone patterns."].verdict is Verdict.AGREES


def test_claims_are_counted_in_a_sentence():
    claims = [Claim("a", "b", verdict) for verdict in (Verdict.AGREES, Verdict.AGREES, Verdict.DIFFERS)]
    claims.append(Claim("ours", "b", Verdict.AGREES, of_paper=False))
    assert counted(claims) == "3 claims of the paper were looked at: 2 agree with what was found, 1 not."


# --- all of it


def test_every_experiment_of_the_paper_is_there(reproduced):
    _, experiments, told = reproduced
    assert [experiment.place for experiment in experiments] == [
        "data", "models", "start", "selection", "convergence", "today",
    ]  # fmt: skip
    titles = [panel.title for panel in experiments[1].panels]
    assert titles == ["digits by MOB", "digits by K-PROX", "halftone by K-PROX", "halftone by MOB"]
    assert [len(panel.figures) for panel in experiments[2].panels] == [6, 6]
    assert told[0] == "Reading the data"
    assert told[-1] == "Writing the page"


def test_every_figure_is_a_picture_and_its_numbers_are_a_table(reproduced):
    folder, experiments, _ = reproduced
    figures = [figure for each in experiments for panel in each.panels for figure in panel.figures]
    assert len({figure.name for figure in figures}) == len(figures)
    for figure in figures:
        png = (folder / "figures" / f"{figure.name}.png").read_bytes()
        assert png == figure.png
        width, height = struct.unpack(">II", png[16:24])
        assert width / height == pytest.approx(figure.size[1] / figure.size[0], rel=0.02)
    tables = {figure.name: figure.numbers for figure in figures if figure.numbers is not None}
    assert {figure.name for figure in figures} - set(tables) == {"picture", "blocks"}
    for each in experiments:
        tables |= {f"{each.place}-{panel.title}-runs": panel.numbers for panel in each.panels if panel.numbers}
    for name, numbers in tables.items():
        text = (folder / "figures" / f"{name}.csv").read_text(encoding="utf-8")
        rows = list(csv.reader(text.splitlines()))
        assert tuple(rows[0]) == numbers.columns
        assert len(rows) == len(numbers.rows) + 1
    written = {path.stem for path in (folder / "figures").iterdir()}
    assert written == {figure.name for figure in figures} | set(tables)


def test_the_atoms_themselves_are_in_the_numbers(reproduced):
    panel = reproduced[1][1].panels[0]
    rows = panel.figures[0].numbers.rows
    assert all(len(row[-1]) == 64 and row[-1].count("1") == row[1] for row in rows)


def test_the_page_has_every_figure_and_claim_and_nothing_from_elsewhere(reproduced):
    folder, experiments, _ = reproduced
    page = (folder / "index.html").read_text(encoding="utf-8")
    for experiment in experiments:
        assert f'<section id="{experiment.place}">' in page
        for panel in experiment.panels:
            assert all(f'<figure id="{figure.name}">' in page for figure in panel.figures)
    claims = [claim for experiment in experiments for claim in experiment.claims]
    assert page.count('class="verdict') == len(claims) + sum(claim.of_paper for claim in claims)
    rows = list(csv.reader((folder / "claims.csv").read_text(encoding="utf-8").splitlines()))
    assert [(row[2], row[3]) for row in rows[1:]] == [("yes" if each.of_paper else "no", each.says) for each in claims]
    assert len({(row[1], row[3]) for row in rows[1:]}) == len(claims)  # each can be told apart from the others
    assert not re.findall(r"(?:src|href)=\"(?!#|data:)", page)
    assert "<script" not in page


def test_convergence_is_exact_in_every_run(reproduced):
    claims = [claim for claim in reproduced[1][4].claims if claim.says.startswith("Convergence is exact")]
    assert [claim.verdict for claim in claims] == [Verdict.AGREES]
    assert claims[0].found.startswith("In 24 of 24 runs")


def test_the_same_seed_gives_the_same_figures_but_for_times(reproduced, files):
    from bitatoms.reproduce.experiments.models import models

    subjects = handwriting(files / "digits.npz"), halftone(files / "picture.pbm")
    again = models(*subjects, 3)
    for panel, other in zip(reproduced[1][1].panels, again.panels, strict=True):
        assert panel.about == other.about
        assert panel.claims == other.claims
        assert [figure.png for figure in panel.figures] == [figure.png for figure in other.figures]


def test_what_is_said_is_escaped(tmp_path):
    hostile = "<script>alert(1)</script>"
    claim = Claim(hostile, hostile, Verdict.DIFFERS, hostile)
    experiment = Experiment("here", "Here", hostile, hostile, (Panel(hostile, hostile, (), (claim,)),))
    write([experiment], tmp_path, hostile)
    assert "<script" not in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_an_interrupted_run_leaves_no_page(tmp_path, files, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setitem(reproduce.__globals__["_EXPERIMENTS"], "Learning the four models", stop)
    with pytest.raises(KeyboardInterrupt):
        reproduce(tmp_path / "paper", einstein=files / "picture.pbm", mnist=files / "digits.npz")
    assert not (tmp_path / "paper").exists()
