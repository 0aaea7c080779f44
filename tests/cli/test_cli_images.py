"""`bitatoms denoise` and `bitatoms inpaint`: files, what is printed, and errors."""

import json

import numpy as np
import pytest

import bitatoms as ba

pytest.importorskip("typer")

from support.commands import runner

pytestmark = pytest.mark.usefixtures("few_trials")

OPTIONS = ("--block-sizes", "6", "--jobs", "1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Create a folder with a noisy halftone."""
    place = tmp_path_factory.mktemp("pictures")
    picture = np.tile(ba.datasets.dither(np.full((6, 6), 0.6)), (10, 10))
    noisy = picture ^ (np.random.default_rng(0).random(picture.shape) < 0.05)
    ba.write(picture, place / "clean.pbm")
    ba.write(noisy, place / "noisy.pbm")
    ba.write(np.pad(np.ones((4, 30), bool), [(28, 28), (15, 15)]), place / "holes.pbm")
    return place


@pytest.fixture
def bitatoms(capsys, monkeypatch, folder):
    monkeypatch.chdir(folder)
    return runner(capsys)


def test_denoise_writes_the_picture_and_prints_what_it_estimated(bitatoms, tmp_path):
    code, out, err = bitatoms("denoise", "noisy.pbm", "-o", tmp_path / "made.pbm", *OPTIONS)
    noisy, expected = ba.read("noisy.pbm").to_dense(), ba.read("clean.pbm").to_dense()
    made = ba.read(tmp_path / "made.pbm").to_dense()
    assert (code, err) == (0, "")
    assert (made != expected).sum() < 0.2 * (noisy != expected).sum()
    n_changed = int((made != noisy).sum())
    assert f"made.pbm: 60 x 60 pixels, {n_changed} changed ({n_changed / 3600:.2%}); estimated noise" in out


def test_denoise_as_json_to_png(bitatoms, tmp_path):
    pytest.importorskip("PIL")
    code, out, _ = bitatoms("denoise", "noisy.pbm", "-o", tmp_path / "made.png", "--json", *OPTIONS)
    result = ba.denoise(ba.read("noisy.pbm").to_dense(), block_sizes=6, random_state=0)
    assert code == 0
    assert np.array_equal(ba.read(tmp_path / "made.png").to_dense(), result.image)
    figures = {"height": 60, "width": 60, "noise": result.noise, "changed": result.n_changed}
    assert json.loads(out) == figures | {"repetition": result.repetition, "atoms": list(result.n_atoms)}


def test_denoise_warns_about_a_picture_that_repeats_itself_little(bitatoms, tmp_path):
    ba.write(np.random.default_rng(0).random((40, 40)) < 0.5, tmp_path / "random.pbm")
    arguments = ("denoise", tmp_path / "random.pbm", "-o", tmp_path / "made.pbm", *OPTIONS)
    code, _, err = bitatoms(*arguments)
    assert code == 0
    assert "Note: random.pbm repeats itself little" in err
    assert bitatoms(*arguments, "--quiet") == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "noisy.pbm"), "noisy.pbm: this command already reads or writes this file"),
        (("-o", "made.jpg"), "made.jpg: unknown extension"),
        (
            ("-o", "made.pbm", "--blocks", "8x8"),
            "noisy.pbm: the picture is divided into blocks by itself; omit --blocks",
        ),
        (("-o", "made.pbm", "--noise", "0.7"), "--noise must be at least 0 and below 0.5, not 0.7"),
        (("-o", "made.pbm", "--block-sizes", "6;8"), "pass integers separated by commas"),
        (("-o", "-", "--json"), "standard output: --json already writes to it"),
    ],
)
def test_errors(bitatoms, folder, arguments, message):
    code, out, err = bitatoms("denoise", "noisy.pbm", *arguments)
    assert (code, out) == (2, "")
    assert message in " ".join(err.replace("│", " ").split())
    assert {path.name for path in folder.iterdir()} == {"clean.pbm", "holes.pbm", "noisy.pbm"}


def test_inpaint_fills_the_holes_and_nothing_else(bitatoms, tmp_path):
    clean, mask = ba.read("clean.pbm").to_dense(), ba.read("holes.pbm").to_dense()
    ba.write(clean & ~mask & 1, tmp_path / "scratched.pbm")
    arguments = ("inpaint", tmp_path / "scratched.pbm", "--mask", "holes.pbm", *OPTIONS)
    code, out, err = bitatoms(*arguments, "-o", tmp_path / "made.pbm")
    made = ba.read(tmp_path / "made.pbm").to_dense()
    assert (code, err) == (0, "")
    assert "made.pbm: 60 x 60 pixels, 120 filled; of known pixels, hidden as a test, 100.0% were predicted" in out
    assert np.array_equal(made, clean)
    figures = json.loads(bitatoms(*arguments, "-o", tmp_path / "made.pbm", "--json")[1])
    assert (figures["filled"], figures["accuracy"]) == (120, 1.0)


def test_inpaint_warns_and_reports_a_mask_of_another_size(bitatoms, tmp_path):
    ba.write(np.random.default_rng(0).random((40, 40)) < 0.5, tmp_path / "random.pbm")
    ba.write(np.eye(40, dtype=bool), tmp_path / "mask.pbm")
    arguments = ("inpaint", tmp_path / "random.pbm", "-o", tmp_path / "made.pbm", *OPTIONS, "--mask")
    code, _, err = bitatoms(*arguments, tmp_path / "mask.pbm")
    assert code == 0
    assert "Note: random.pbm repeats itself little" in err
    code, _, err = bitatoms(*arguments, "holes.pbm")
    assert code == 2
    assert "holes.pbm: the mask has 60 x 60 pixels, but random.pbm has 40 x 40" in " ".join(err.split())


@pytest.mark.filterwarnings("default")  # the reader notes the missing value
def test_a_mask_with_missing_pixels_is_an_error_that_names_it(bitatoms, tmp_path):
    np.save(tmp_path / "mask.npy", np.where(ba.read("holes.pbm").to_dense(), np.nan, 0))
    code, _, err = bitatoms(
        "inpaint", "clean.pbm", "--mask", tmp_path / "mask.npy", "-o", tmp_path / "made.pbm", *OPTIONS
    )
    assert code == 2
    expected = "mask.npy: 120 pixels are unknown; write 1 where the picture has a hole, and 0 elsewhere"
    assert expected in " ".join(err.split())
    assert not (tmp_path / "made.pbm").exists()


@pytest.mark.filterwarnings("default")  # the reader notes the missing value
def test_missing_pixels_are_holes(bitatoms, tmp_path):
    rows = [",".join(map(str, row)) for row in ba.read("clean.pbm").to_dense()]
    rows[7] = f",{rows[7][2:]}"  # the first pixel
    (tmp_path / "picture.csv").write_text("\n".join(rows) + "\n")
    arguments = (tmp_path / "picture.csv", "--missing", "unknown", "-o", tmp_path / "made.pbm", "--no-header", *OPTIONS)
    code, _, err = bitatoms("denoise", *arguments)
    assert code == 2
    assert "picture.csv: 1 pixel is unknown; fill the holes first with bitatoms inpaint" in " ".join(err.split())
    code, out, _ = bitatoms("inpaint", *arguments, "--mask", "holes.pbm")
    assert code == 0
    assert "121 filled" in out
    assert ba.read(tmp_path / "made.pbm") == ba.read("clean.pbm")
