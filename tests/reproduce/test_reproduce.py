"""The paper's experiments: runs equal those of the public functions, images are exact, verdicts follow the counts."""

import csv
import gzip
import re
import struct

import numpy as np
import pytest

import bitatoms as ba
from bitatoms import BitMatrix, datasets, factorize
from bitatoms.core.result import Round
from bitatoms.io.errors import FileError
from bitatoms.reproduce import Claim, Experiment, Panel, Verdict, reproduce, write_results
from bitatoms.reproduce.datasets import PaperDataset, load_digits, load_halftone
from bitatoms.reproduce.experiment import summarize_verdicts
from bitatoms.reproduce.experiments.initialisation import initialisation
from bitatoms.reproduce.experiments.input_data import sample_indices, stripe_row
from bitatoms.reproduce.experiments.model_claims import model_claims
from bitatoms.reproduce.experiments.models import highlighted_atoms
from bitatoms.reproduce.mosaics import GAP, RED, coded_samples, mosaic, with_blocks, with_stripe
from bitatoms.reproduce.runs import (
    UPDATES,
    best_round,
    run_learning,
    run_selection,
    starting_atoms,
    stopping_round,
)
from bitatoms.reproduce.selection_curve import SelectionCurve, count_minima, fit_decay, running_median
from bitatoms.reproduce.similarity import sample_similarity
from bitatoms.table import Picture, Table
from support.mnist import idx
from support.strategies import random_bits


@pytest.fixture(scope="module")
def blocks():
    """Blocks of the bundled halftone."""
    return BitMatrix.from_dense(datasets.cut_blocks(datasets.halftone()[:160, :320]))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Files with a small halftone and some digits."""
    folder = tmp_path_factory.mktemp("data")
    ba.write(Table(BitMatrix.from_dense(datasets.halftone()[100:260, 200:520])), folder / "picture.pbm")
    ba.write(Table(BitMatrix.from_dense(datasets.digits()[0][:200])), folder / "digits.npz")
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


# --- runs


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("start", ["samples", "bernoulli"])
def test_learning_equals_the_public_function(blocks, update, start):
    atoms = starting_atoms(start, blocks, 9, 0)
    run = run_learning(blocks, atoms, update)
    public = factorize(blocks, 9, search="paper", update=update, init=atoms)
    assert [row[1:-1] for row in run.history] == [row[1:-1] for row in public.history]
    assert sorted(map(bytes, run.atoms.words)) == sorted(map(bytes, public.atoms.words))
    product = run.codes.to_dense() @ run.atoms.to_dense() % 2
    assert (run.errors.to_dense() == blocks.to_dense() ^ product).all()
    assert run.converged


def test_selection_returns_the_best_round_with_patience_and_the_last_without(blocks):
    patient = run_selection(blocks, "mob", 0, patience=10)
    forced = run_selection(blocks, "mob", 0, until=patient.history[-1].atoms + 5)
    assert forced.atoms.n_rows == forced.history[-1].atoms == patient.history[-1].atoms + 5
    shared = forced.history[: len(patient.history)]
    assert [row[:-1] for row in shared] == [row[:-1] for row in patient.history]
    assert patient.atoms.n_rows == stopping_round(forced.history, 10).atoms == best_round(patient.history).atoms
    length = ba.codelength(blocks, patient.atoms, patient.codes)
    assert length.total == best_round(patient.history).bits


def test_selection_starts_from_distinct_samples(blocks):
    rows = set(map(bytes, blocks.words))
    run = run_selection(blocks, "k-prox", 5, until=20)
    assert run.start.n_rows == 16
    assert set(map(bytes, run.start.words)) <= rows
    assert [row.atoms for row in run.history] == [16, 17, 18, 19, 20]


def naive_stop(costs, patience):
    """Return the index of the lowest cost before the first run of ``patience`` costs that are no lower."""
    for end in range(patience, len(costs)):
        if all(costs[index] >= min(costs[: end - patience + 1]) for index in range(end - patience + 1, end + 1)):
            return costs.index(min(costs[: end + 1]))
    return costs.index(min(costs))


@pytest.mark.parametrize("patience", [1, 2, 3, 5])
def test_stopping_round_equals_a_naive_search(patience):
    random = np.random.default_rng(patience)
    for _ in range(50):
        costs = random.integers(0, 12, random.integers(1, 15)).tolist()
        rounds = [Round(*([0] * 16))._replace(round=n, bits=bits) for n, bits in enumerate(costs)]
        assert stopping_round(rounds, patience).round == naive_stop(costs, patience)


@pytest.mark.parametrize(
    ("curve", "n_minima"),
    [
        ([10.0], 1),
        ([10, 9, 8, 8.5, 9], 1),
        ([10, 8, 9, 7, 9], 2),
        ([10, 8, 8.01, 7.99, 9], 1),
        ([5, 6, 7, 6, 5, 9], 2),
        ([9, 8, 7, 6], 1),
    ],
)
def test_minima_are_separated_by_a_rise(curve, n_minima):
    assert count_minima(np.array(curve, float)) == n_minima


def test_running_median_is_the_median_of_a_window():
    values = np.random.default_rng(0).random(30)
    expected = [np.median(values[max(0, at - 2) : at + 3]) for at in range(30)]
    assert (running_median(values, reach=2) == expected).all()


# --- images and measures


@pytest.mark.parametrize(("n_atoms", "across"), [(1, 4), (5, 2), (6, 3), (7, 16)])
def test_mosaic_is_filled_row_by_row(n_atoms, across):
    atoms = random_bits(n_atoms, n_atoms, 12, 0.4)
    sheet = mosaic(BitMatrix.from_dense(atoms), (3, 4), across)
    wide = min(across, n_atoms)
    assert sheet.shape == (-(-n_atoms // wide) * 4 + 1, wide * 5 + 1)
    for atom in range(n_atoms):
        top, left = 1 + atom // wide * 4, 1 + atom % wide * 5
        assert (sheet[top : top + 3, left : left + 4] == atoms[atom].reshape(3, 4)).all()
    assert (sheet == GAP).sum() == sheet.size - atoms.size


def test_framed_atom_is_surrounded_by_its_colour():
    atoms = BitMatrix.from_dense(random_bits(0, 4, 9, 0.4))
    sheet = mosaic(atoms, (3, 3), 2, {3: RED})
    assert (sheet[5:12, 5:12] == RED).sum() == 7 * 7 - 9
    assert (sheet[7:10, 7:10] == atoms.to_dense()[3].reshape(3, 3)).all()


def test_samples_are_above_residuals_above_codes():
    data, errors = (random_bits(seed, 5, 6, 0.4) for seed in (0, 1))
    codes = random_bits(2, 5, 4, 0.4)
    sheet = coded_samples(*map(BitMatrix.from_dense, (data, errors, codes)), (2, 3), 3, {1: RED})
    bar = 3  # nine pixels for four atoms, rounded up
    line = 2 * 3 + 4 * bar + 2
    assert len(sheet) == 2 * line + 6
    for row in range(5):
        top, left = row // 3 * (line + 6), 1 + row % 3 * 4
        assert (sheet[top + 1 : top + 3, left : left + 3] == data[row].reshape(2, 3)).all()
        assert (sheet[top + 4 : top + 6, left : left + 3] == errors[row].reshape(2, 3)).all()
        shown = sheet[top + 7 : top + 7 + 4 * bar : bar, left]
        assert shown.tolist() == [code * (RED if atom == 1 else 1) for atom, code in enumerate(codes[row])]


def test_with_blocks_inserts_lines_between_blocks():
    picture = random_bits(0, 6, 8, 0.4)
    framed = with_blocks(picture, (3, 4))
    assert framed.shape == (7, 9)
    assert (framed[3] == GAP).all()
    assert (framed[:, 4] == GAP).all()
    assert (np.delete(np.delete(framed, 3, 0), 4, 1) == picture).all()


def test_with_stripe_frames_the_stripe_only():
    picture = random_bits(0, 40, 50, 0.4)
    shown = with_stripe(picture, 16, 16)
    assert (shown[:14] == picture[:14]).all()
    assert (shown[20:28, 4:-4] == picture[20:28, 4:-4]).all()
    assert set(np.unique(shown[15:17])) == {6}


def test_highlighted_atoms_are_used_by_some_samples_but_not_most():
    data = np.repeat(random_bits(0, 3, 30, 0.4), 4, axis=0)
    atoms = np.concatenate([data[::4], random_bits(9, 1, 30, 0.4)])
    codes = np.zeros((12, 4), np.uint8)
    codes[np.arange(8), np.arange(8) // 4] = 1  # no sample uses the third pattern
    codes[:, 3] = 1  # used by most
    marked = highlighted_atoms(*map(BitMatrix.from_dense, (data, atoms, codes)))
    assert set(marked.values()) == {0, 1}
    assert next(iter(marked)) == "red"


def test_digits_resemble_other_digits_and_noise_does_not():
    noise = BitMatrix.from_dense(random_bits(0, 300, 64, 0.3))
    assert not sample_similarity(noise[:16], noise, noise[:16]).is_clear
    digits = BitMatrix.from_dense(datasets.digits()[0][:300])
    assert sample_similarity(digits[:16], digits, digits[:16]).is_clear
    assert sample_similarity(digits[:16], digits, digits[:0]).jaccard == 1


def test_atoms_of_noise_are_not_interpretable():
    noise = BitMatrix.from_dense(random_bits(1, 300, 100, 0.3))
    dataset = PaperDataset("noise", "Einstein", "", True, noise, (10, 10), picture=np.zeros((10, 10), np.uint8))
    runs = [run_selection(noise, update, 0, patience=2) for update in UPDATES]
    claim = model_claims(dataset, *runs, 0)[0]
    assert claim.statement.startswith("The atoms are clearly interpretable")
    assert claim.verdict is Verdict.DIFFERS


def test_atoms_used_by_one_digit_correspond_clearly():
    X, y = datasets.digits()
    chosen = np.flatnonzero(y < 2)
    data = BitMatrix.from_dense(X[chosen])
    run = run_selection(data, "mob", 0, patience=2)
    for labels, verdict in ((y[chosen], Verdict.AGREES), (None, Verdict.NOT_SEEN)):
        dataset = PaperDataset("digits", "MNIST", "", True, data, (8, 8), labels=labels)
        claim = model_claims(dataset, run, run, 0)[-1]
        assert "correspondence" in claim.statement
        assert claim.verdict in (verdict, Verdict.PARTLY if labels is not None else verdict)


class GivenCurve(SelectionCurve):
    """A curve with given codelengths."""

    def __init__(self, bits):
        object.__setattr__(self, "given", np.asarray(bits, float))

    atoms = property(lambda self: 16 + np.arange(len(self.given)))
    bits = property(lambda self: self.given)


def test_fit_decay_distinguishes_an_exponential_from_a_power_law():
    atoms = 16 + np.arange(120)
    fast = fit_decay(GivenCurve(50 + 100 * np.exp(-atoms / 15) - 100 * np.exp(-atoms[-1] / 15)))
    slow = fit_decay(GivenCurve(50 + 1e5 * atoms**-2.0))
    assert fast.exponential > max(0.99, fast.power)
    assert slow.power > slow.exponential
    assert fit_decay(GivenCurve([10, 5, 1, 1, 1])) is None


# --- data sets


def test_stripe_is_a_row_of_blocks():
    dataset = load_halftone(None)
    rows = sample_indices(dataset, 0)
    top = stripe_row(dataset) * 16
    again = datasets.stitch_blocks(dataset.data[rows], (16, dataset.picture.shape[1]), (16, 16))
    assert (again == dataset.picture[top : top + 16]).all()


def test_bundled_data_are_marked_as_substitutes():
    for dataset in (load_digits(None), load_halftone(None)):
        assert dataset.is_substitute
        assert "scikit-learn" in dataset.description


def test_picture_is_read_in_blocks_or_in_full(tmp_path):
    picture = datasets.halftone()[:150, :170]
    cut = Table(BitMatrix.from_dense(datasets.cut_blocks(picture)), picture=Picture((16, 16), picture.shape))
    ba.write(Table(BitMatrix.from_dense(picture)), tmp_path / "whole.pbm")
    ba.write(cut, tmp_path / "blocks.npz")
    whole, blocks = (load_halftone(tmp_path / name) for name in ("whole.pbm", "blocks.npz"))
    assert (whole.picture == picture).all()
    assert (blocks.picture == picture).all()
    assert whole.data == blocks.data
    assert (whole.name, whole.is_substitute) == ("halftone", True)  # not the size of the paper's picture


def test_picture_of_the_papers_size_is_einstein(tmp_path):
    ba.write(
        Table(BitMatrix.from_dense(np.tile(datasets.halftone()[:580], (2, 1))[:, :896])), tmp_path / "einstein.pbm"
    )
    dataset = load_halftone(tmp_path / "einstein.pbm")
    assert (dataset.name, dataset.is_substitute, dataset.data.shape) == ("Einstein", False, (4088, 256))


def test_digits_are_read_from_the_mnist_format_or_a_table(tmp_path):
    pictures = np.tile(np.random.default_rng(0).integers(0, 256, (3, 28, 28), dtype=np.uint8), (25, 1, 1))
    (tmp_path / "t10k").write_bytes(gzip.compress(idx(pictures)))
    ba.write(Table(BitMatrix.from_dense((pictures >= 128).reshape(75, -1))), tmp_path / "large.npz")
    ba.write(Table(BitMatrix.from_dense(random_bits(0, 75, 289, 0.4))), tmp_path / "small.npz")
    published, large, small = (load_digits(tmp_path / name) for name in ("t10k", "large.npz", "small.npz"))
    assert (published.data.to_dense() == datasets.mnist(tmp_path / "t10k").X).all()
    assert large.data.shape == small.data.shape == (75, 289)
    assert (small.data.to_dense() == random_bits(0, 75, 289, 0.4)).all()
    assert "17 × 17" in published.description
    assert not published.is_substitute


def test_unknown_format_and_negative_seed_raise(tmp_path):
    (tmp_path / "digits").write_bytes(b"something else")
    with pytest.raises(FileError, match="not a known table format; pass digits, such as t10k"):
        load_digits(tmp_path / "digits")
    with pytest.raises(ValueError, match="random_state must be at least 0"):
        reproduce(tmp_path / "paper", random_state=-1)


@pytest.mark.parametrize(("shape", "message"), [((100, 300), "are not square"), ((63, 289), "63 samples are too few")])
def test_tables_that_are_not_digits_raise_with_the_path(tmp_path, shape, message):
    ba.write(Table(BitMatrix.from_dense(random_bits(0, *shape, 0.4))), tmp_path / "table.npz")
    with pytest.raises(FileError, match=message) as error:
        load_digits(tmp_path / "table.npz")
    assert "table.npz" in str(error.value)


def test_picture_of_few_blocks_raises(tmp_path):
    ba.write(Table(BitMatrix.from_dense(random_bits(0, 40, 40, 0.4))), tmp_path / "small.pbm")
    with pytest.raises(FileError, match="9 samples are too few"):
        load_halftone(tmp_path / "small.pbm")


# --- claims


def test_bernoulli_start_fails_on_sparse_data_only():
    sparse = PaperDataset("few", "MNIST", "", False, BitMatrix.from_dense(np.eye(289, dtype=np.uint8)[:150]), (17, 17))
    experiment = initialisation(sparse, load_halftone(None), 0)
    claims = {claim.statement: claim for claim in experiment.claims}
    fails = next(
        claim for statement, claim in claims.items() if statement.startswith("The Bernoulli start does not work")
    )
    assert fails.verdict is Verdict.AGREES
    assert fails.finding.startswith("No atom is ever used, with any seed")
    assert claims["Both starts work well, with both methods."].verdict is not Verdict.DIFFERS
    assert claims["In all cases some atoms come to resemble halftone patterns."].verdict is Verdict.AGREES


def test_verdicts_are_summarized_in_a_sentence():
    claims = [Claim("a", "b", verdict) for verdict in (Verdict.AGREES, Verdict.AGREES, Verdict.DIFFERS)]
    claims.append(Claim("ours", "b", Verdict.AGREES, in_paper=False))
    assert summarize_verdicts(claims) == "3 claims of the paper were checked: 2 agree with the results, 1 differ."


# --- the full reproduction


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


def test_renamed_attributes_still_work_with_a_warning():
    claim = Claim("a", "b", Verdict.AGREES, "c", in_paper=False)
    with pytest.warns(FutureWarning, match="Claim.says is renamed to statement"):
        assert claim.says == "a"
    with pytest.warns(FutureWarning, match="Claim.of_paper is renamed to in_paper"):
        assert claim.of_paper is False
    with pytest.raises(AttributeError, match="'Claim' object has no attribute 'nothing'"):
        claim.nothing  # noqa: B018
