"""Commands match the columns of a table to those of the model by name, and note missing values."""

import io
import json

import numpy as np
import pytest

import bitatoms as ba

pytest.importorskip("click")

pytestmark = [
    pytest.mark.usefixtures("few_trials"),
    pytest.mark.filterwarnings("always::bitatoms.errors.InputWarning"),  # the command line prints them
]


@pytest.fixture(autouse=True)
def baskets(put):
    """The model and the table of the files model.npz and table.csv."""
    return put("or")


@pytest.fixture
def first(baskets, tmp_path):
    """The first baskets, also as lists of items, which lack some."""
    table = ba.Table(baskets.table.bits[:6], None, baskets.table.columns)
    lines = [",".join(table.names_of(np.flatnonzero(row))) for row in table.to_dense()]
    (tmp_path / "first.basket").write_text("".join(f"{line}\n" for line in lines))
    assert ba.read(tmp_path / "first.basket").shape[1] < 40
    return table


@pytest.fixture
def codes(baskets, first, tmp_path):
    """The codes of the first baskets as CSV, and what is printed beside them."""
    bits = ba.BitMatrix.from_dense(baskets.model.transform(first))
    ba.write(ba.Table(bits, None, baskets.model.as_model().atom_names), tmp_path / "expected.csv")
    status = f"standard output: codes of 6 rows by 5 atoms, {bits.count() / 6:.1f} atoms per row\n"
    return (tmp_path / "expected.csv").read_text(), status


def test_items_that_the_model_does_not_know(bitatoms, monkeypatch, tmp_path, first, codes):
    (tmp_path / "new.basket").write_text((tmp_path / "first.basket").read_text().replace("\n", ",caviar\n"))
    code, stdout, stderr = bitatoms("transform", "model.npz", "new.basket")
    assert (code, stdout) == (0, codes[0])
    assert stderr.startswith("Note: new.basket: ignored 1 column that the model was not fitted on: 'caviar'; ")
    assert bitatoms("transform", "model.npz", "new.basket", "--quiet") == (0, codes[0], "")
    message = "bitatoms: standard input has no column that the model was fitted on: it has 'caviar', 'oysters', and the"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"caviar,oysters\n")))
    code, stdout, stderr = bitatoms("transform", "model.npz", "-", "--format", "baskets")
    assert (code, stdout) == (2, "")
    assert stderr.startswith(message)
    ba.write(ba.Table(first.bits.T, first.columns, list("abcdef")), "exchanged.csv")
    stderr = bitatoms("transform", "model.npz", "exchanged.csv")[2]
    assert stderr.startswith("bitatoms: exchanged.csv: its rows are the columns of the model, such as '")
    assert stderr.endswith("'; read it with --transpose\n")


def test_columns_in_another_order_and_absent_ones(bitatoms, first, codes):
    name, order = "turned.csv", [*range(40)][::-1]
    ba.write(ba.Table(first.bits.take_columns([*order, 0]), None, [*first.columns[::-1], "caviar"]), name)
    note = f"Note: {name}: ignored 1 column that the model was not fitted on: 'caviar'\n"
    assert bitatoms("transform", "model.npz", name) == (0, codes[0], note + codes[1])
    weights = first.bits.column_weights()
    kept, absent = [j for j in order if weights[j]], [f"item {j}" for j in range(40) if not weights[j]]
    listed = f"{str(absent[:5])[1:-1]} and {len(absent) - 5} more"
    ba.write(ba.Table(first.bits.take_columns(kept), None, [first.columns[j] for j in kept]), name)
    code, stdout, stderr = bitatoms("transform", "model.npz", name)
    assert (code, stdout) == (2, "")
    assert f"{name} lacks columns that the model was fitted on: {listed}; add them, or pass --absent zero" in stderr
    code, stdout, stderr = bitatoms("transform", "model.npz", name, "--absent", "zero")
    assert (code, stdout) == (0, codes[0])
    note = f"Note: {name}: {len(absent)} absent columns are read as 0: {listed}\n{codes[1]}"
    assert " ".join(stderr.split()) == " ".join(note.split())
    note = f"Note: {name}: {len(absent)} absent columns are unknown: "
    assert note in bitatoms("transform", "model.npz", name, "--absent", "unknown")[2]
    assert bitatoms("reconstruct", "model.npz", name, "--absent", "zero", "-o", "clean.npz")[0] == 0
    assert ba.read("clean.npz").columns == first.columns
    assert bitatoms("report", "model.npz", name, "--absent", "zero", "-o", "report.html")[0] == 0


def test_atoms_in_an_annotated_file_follow_its_columns(bitatoms, baskets):
    anndata = pytest.importorskip("anndata")
    bits = baskets.table.bits.take_columns([-1, *range(40)[:2:-1]])
    ba.write(ba.Table(bits, None, ["caviar", *baskets.table.columns[:2:-1]]), "cells.h5ad")
    assert bitatoms("transform", "model.npz", "cells.h5ad", "-o", "coded.h5ad")[0] == 2
    assert bitatoms("transform", "model.npz", "cells.h5ad", "-o", "coded.h5ad", "--absent", "zero")[0] == 0
    atoms = anndata.read_h5ad("coded.h5ad").varm["bitatoms_atoms"]
    np.testing.assert_array_equal(atoms[1:].T, baskets.model.components_[:, :2:-1])


def test_convert_notes_annotations_that_a_format_does_not_store(bitatoms):
    ba.write(ba.Table(ba.BitMatrix.zeros(2, 2), column_data={"kind": ["a", "b"]}), "annotated.npz")
    note = "Note: plain.csv: the format csv does not store the annotations of columns ('kind')\n"
    assert bitatoms("convert", "annotated.npz", "plain.csv")[::2] == (0, note)
    assert bitatoms("convert", "annotated.npz", "again.npz")[::2] == (0, "")
    ba.write(ba.datasets.genotypes(n_samples=8, random_state=0), "genotypes.npz")
    status, printed, note = bitatoms("convert", "genotypes.npz", "plain.csv")
    assert status == 0
    assert "Encoded" not in printed
    assert "annotations of rows ('population') and columns ('chromosome', 'position'" in note


def test_codes_are_matched_to_atoms_by_name(bitatoms, tmp_path, codes):
    lines = [line.split(",")[::-1] for line in codes[0].splitlines()]
    texts = {"codes.csv": codes[0], "own-names.csv": codes[0].replace("atom", "pattern ")}
    texts["turned.csv"] = "".join(",".join(cells) + "\n" for cells in lines)
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    assert len({bitatoms.output("reconstruct", "model.npz", "--codes", name) for name in texts}) == 1


def test_numbers_that_are_read_as_row_names_are_noted_once(bitatoms, tmp_path):
    model = ba.BinaryDictionaryLearning(1, search="paper", random_state=0)
    model.fit(ba.Table(ba.BitMatrix.from_dense([[1, 0], [0, 1]]), None, ["b", "c"])).save("two.npz")
    (tmp_path / "counts.csv").write_text("a,b,c,d\n1e400,1,0,0\n1,,1,0\n")
    note = "one of them is '1e400'; --no-row-names reads it as a column of the table, and --row-names confirms"
    for command in (("convert", "counts.csv", "-"), ("transform", "two.npz", "counts.csv", "--binarize", "0")):
        code, _, stderr = bitatoms(*command)
        assert code == 0
        assert stderr.count(note) == stderr.count("row names") == 1


# --- missing values

NOTE = "Note: missing.csv: 10 missing values are read as unknown cells\n"
WHERE = "Most unknown cells are in the columns b (22.5%), a (2.5%), and in the rows row 3 (66.7%), row 0 (33.3%), row 5"


@pytest.fixture
def missing():
    """Write a table; cells of column b and row 3 are missing. Return what is printed about it with zeros for them."""
    values = np.tile([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]], (20, 1))
    values[::5, 1] = values[3, :2] = np.nan
    ba.write(ba.Table(ba.Table.from_any(values).bits, None, ["a", "b", "c"]), "missing.csv")
    return f"40 rows of 3 columns, {100 * np.nansum(values) / 120:.1f}% ones\n"


def test_missing_values_are_noted_and_described(bitatoms, missing):
    code, out, err = bitatoms("fit", "missing.csv", "-o", "m.npz", "--search", "paper", "--atoms", "1")
    assert (code, NOTE in err) == (0, True)
    shape, where, *_ = (out + err).replace(NOTE, "").splitlines()
    assert shape.startswith("missing.csv: 40 rows of 3 columns, ")
    assert " ones among the known cells, 8.3% unknown, columns have names" in shape
    assert where.startswith(WHERE)
    code, out, err = bitatoms("convert", "missing.csv", "copy.npz")
    assert (code, err) == (0, NOTE)
    assert WHERE in out
    assert bitatoms("convert", "copy.npz", "copy.pairs", "--missing", "zero")[:2] == (0, f"copy.pairs: {missing}")
    code, out, err = bitatoms("convert", "missing.csv", "copy.csv", "--missing", "refuse")
    assert (code, out) == (2, "")
    assert "10 values are missing, the first at line 2, column 'b'; fill them in, or pass --missing zero" in err


def test_the_cells_of_a_store_are_set_when_it_is_packed(bitatoms, missing):
    pytest.importorskip("zarr")
    for how, unknown in (((), True), (("--missing", "zero"), False)):
        assert bitatoms("pack", "missing.csv", "-o", "rows.zarr", *how)[0] == 0
        cells = ", some cells unknown" if unknown else ""
        assert f"40 rows of 3 columns, packed{cells}, columns have names" in bitatoms.output("show", "rows.zarr")
        shown = json.loads(bitatoms.output("show", "rows.zarr", "--json"))
        assert (shown["has_unknown"], shown["row_names"], shown["column_names"]) == (unknown, False, True)
        if how:
            assert ba.read("rows.zarr").bits == ba.read("missing.csv", missing="zero").bits
        else:
            code, out, err = bitatoms("fit", "rows.zarr", "--missing", "zero")
            assert (code, out) == (2, "")
            assert "rows.zarr: some of its cells are unknown, which only bitatoms pack can change; omit --mi" in err
