"""Commands match the columns of a table to those of the model by name."""

from io import BytesIO
from types import SimpleNamespace

import numpy as np
import pytest

import bitatoms as ba

pytest.importorskip("typer")

from support.commands import runner

pytestmark = [
    pytest.mark.usefixtures("few_trials"),
    pytest.mark.filterwarnings("always::bitatoms.errors.InputWarning"),  # the command line prints them
]
BASKETS = ba.datasets.baskets(400, random_state=0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Create a folder with baskets, a model of them, and the first baskets, which lack items."""
    folder = tmp_path_factory.mktemp("columns")
    ba.write(ba.Table(BASKETS.bits, None, BASKETS.columns), folder / "all.basket")
    ba.BinaryDictionaryLearning(random_state=0).fit(folder / "all.basket").save(folder / "model.npz")
    lines = (folder / "all.basket").read_text().splitlines()
    (folder / "first.basket").write_text("\n".join(lines[:20]) + "\n")
    assert ba.read(folder / "first.basket").shape[1] < len(BASKETS.columns)
    return folder


@pytest.fixture
def bitatoms(capsys, monkeypatch, folder):
    """Return a function that runs a command in the folder and returns exit code, stdout and stderr."""
    monkeypatch.chdir(folder)
    return runner(capsys)


@pytest.fixture(scope="module")
def codes(folder):
    """Return the codes of the first baskets as CSV."""
    model = ba.load(folder / "model.npz")
    bits = ba.BitMatrix.from_dense(model.transform(folder / "all.basket")[:20])
    table = ba.Table(bits, None, model.as_model().atom_names)
    ba.write(table, folder / "expected.csv")
    return (folder / "expected.csv").read_text()


STATUS = "standard output: codes of 20 rows by 12 atoms, 0.8 atoms per row\n"  # beside the codes


def test_fewer_items(bitatoms, codes):
    assert bitatoms("transform", "model.npz", "first.basket") == (0, codes, STATUS)
    assert bitatoms("pack", "first.basket", "-o", "first.zarr")[0] == 0
    assert bitatoms("transform", "model.npz", "first.zarr") == (0, codes, STATUS)
    assert bitatoms("convert", "first.basket", "first.npz")[0] == 0
    assert bitatoms("transform", "model.npz", "first.npz") == (0, codes, STATUS)
    assert bitatoms("report", "model.npz", "first.basket", "-o", "report.html")[0] == 0


def test_items_that_the_model_does_not_know(bitatoms, folder, codes):
    text = (folder / "first.basket").read_text().replace("\n", ",caviar\n")
    (folder / "new.basket").write_text(text)
    code, stdout, stderr = bitatoms("transform", "model.npz", "new.basket")
    assert (code, stdout) == (0, codes)
    assert "Note: new.basket: ignored 1 column that the model was not fitted on: 'caviar'" in stderr
    assert bitatoms("transform", "model.npz", "new.basket", "--quiet") == (0, codes, "")
    (folder / "other.basket").write_text("caviar,oysters\n")
    code, stdout, stderr = bitatoms("transform", "model.npz", "other.basket")
    assert (code, stdout) == (2, "")
    assert "other.basket has no column that the model was fitted on: it has 'caviar', 'oysters', and the" in stderr
    ba.write(ba.Table(BASKETS.bits[:5].T, BASKETS.columns, list("abcde")), "exchanged.csv")
    stderr = bitatoms("transform", "model.npz", "exchanged.csv")[2]
    assert stderr.startswith("bitatoms: exchanged.csv: its rows are the columns of the model, such as '")
    assert stderr.endswith("'; read it with --transpose\n")


@pytest.mark.parametrize("ending", ["csv", "parquet", "zarr"])
def test_tables(bitatoms, folder, codes, ending):
    bits, names = BASKETS.bits[:20], BASKETS.columns
    name = f"turned.{ending}"
    turned = ba.Table(bits.T[::-1].T, None, names[::-1])
    ba.write(ba.Table(bits.take_columns([*range(len(names))[::-1], -1]), None, [*names[::-1], "caviar"]), folder / name)
    code, stdout, stderr = bitatoms("transform", "model.npz", name)
    assert (code, stdout) == (0, codes)
    assert stderr == f"Note: {name}: ignored 1 column that the model was not fitted on: 'caviar'\n{STATUS}"
    empty = [j for j, weight in enumerate(turned.bits.column_weights()) if not weight]
    kept = [j for j in range(len(names)) if j not in empty]
    ba.write(ba.Table(turned.bits.take_columns(kept), None, [names[::-1][j] for j in kept]), folder / name)
    code, stdout, stderr = bitatoms("transform", "model.npz", name)
    assert (code, stdout) == (2, "")
    absent = [item for item in ba.load("model.npz").feature_names_in_ if names[::-1].index(item) in empty]
    listed = f"{str(absent[:5])[1:-1]} and {len(absent) - 5} more"
    assert f"{name} lacks columns that the model was fitted on: {listed}; add them" in stderr
    assert "add them, or pass --absent zero to read them as 0" in stderr
    code, stdout, stderr = bitatoms("transform", "model.npz", name, "--absent", "zero")
    assert (code, stdout) == (0, codes)
    note = f"Note: {name}: {len(absent)} absent columns are read as 0: {listed}\n{STATUS}"
    assert " ".join(stderr.split()) == " ".join(note.split())
    assert bitatoms("reconstruct", "model.npz", name, "--absent", "zero", "-o", "clean.npz")[0] == 0
    assert ba.read(folder / "clean.npz").columns == ba.read(folder / "all.basket").columns
    assert bitatoms("report", "model.npz", name, "--absent", "zero", "-o", "report.html")[0] == 0


def test_h5ad(bitatoms, folder):
    anndata = pytest.importorskip("anndata")
    table = ba.read(folder / "all.basket")
    bits = table.bits.take_columns([-1, *range(table.shape[1])[:2:-1]])
    ba.write(ba.Table(bits, None, ["caviar", *table.columns[:2:-1]]), folder / "cells.h5ad")
    assert bitatoms("transform", "model.npz", "cells.h5ad", "-o", "coded.h5ad")[0] == 2
    assert bitatoms("transform", "model.npz", "cells.h5ad", "-o", "coded.h5ad", "--absent", "zero")[0] == 0
    coded, atoms = anndata.read_h5ad(folder / "coded.h5ad"), ba.load(folder / "model.npz").components_
    np.testing.assert_array_equal(coded.varm["bitatoms_atoms"][1:].T, atoms[:, :2:-1])


def test_codes_are_matched_to_atoms_by_name(bitatoms, folder, codes):
    header, *lines = (line.split(",") for line in codes.splitlines())
    assert len(header) > 1
    turned = "".join(",".join(cells[::-1]) + "\n" for cells in (header, *lines))
    (folder / "turned-codes.csv").write_text(turned)
    (folder / "codes.csv").write_text(codes)
    (folder / "own-names.csv").write_text(codes.replace("atom", "pattern "))
    rows = {
        name: bitatoms("reconstruct", "model.npz", "--codes", name)[1]
        for name in ("codes.csv", "turned-codes.csv", "own-names.csv")
    }
    assert len(set(rows.values())) == 1
    (folder / "few.csv").write_text("atom1\n1\n")
    assert (
        "few.csv lacks columns that the model was fitted on: 'atom2'"
        in bitatoms("reconstruct", "model.npz", "--codes", "few.csv")[2]
    )


def test_numbers_that_are_read_as_row_names_are_noted_once(bitatoms, folder):
    model = ba.BinaryDictionaryLearning(1, search="paper", random_state=0)
    model.fit(ba.Table(ba.BitMatrix.from_dense([[1, 0], [0, 1]]), None, ["b", "c"])).save(folder / "two.npz")
    (folder / "counts.csv").write_text("a,b,c,d\n1e400,1,0,0\n1,,1,0\n")
    note = "Note: {}: column 'a' is read as row names, because its cells differ and one of them is '1e400'; "
    note += "--no-row-names reads it as a column of the table, and --row-names confirms that it names the rows\n"
    for command in (("convert", "counts.csv", "-"), ("transform", "two.npz", "counts.csv", "--binarize", "0")):
        code, _, stderr = bitatoms(*command)
        assert code == 0
        assert stderr.count(note.format("counts.csv")) == stderr.count("row names") == 1


def test_standard_input_is_named_in_errors(bitatoms, monkeypatch):
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=BytesIO(b"caviar,oysters\n")))
    code, _, stderr = bitatoms("transform", "model.npz", "-", "--format", "baskets")
    assert code == 2
    assert stderr.startswith("bitatoms: standard input has no column that the model was fitted on: it has 'caviar'")
