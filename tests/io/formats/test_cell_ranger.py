"""Matrices of 10x Genomics: names from the files beside them, and the note that rows are genes."""

import gzip

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.errors import InputWarning
from support.files import assert_read_error

COUNTS = np.array([[4, 0], [0, 7], [1, 0]])  # genes x cells
FEATURES = "ENSG01\tCD3E\tGene Expression\nENSG02\tMS4A1\tGene Expression\nENSG03\tLYZ\tGene Expression\n"
BARCODES = "AAAC-1\nAAAG-1\n"
CELLS = ba.Table(ba.BitMatrix.from_dense(COUNTS.T > 0), ["AAAC-1", "AAAG-1"], ["CD3E", "MS4A1", "LYZ"])
GENES = ba.Table(ba.BitMatrix.from_dense(COUNTS > 0), CELLS.columns, CELLS.row_names)
NOTE = r"its rows are features \(genes\) and are read as columns: one row per cell; for .* pass transpose=False$"
FIELDS = {
    "gene_ids": ["ENSG01", "ENSG02", "ENSG03"],
    "gene_symbols": ["CD3E", "MS4A1", "LYZ"],
    "feature_types": ["Gene Expression"] * 3,
}


def mtx_text(counts=COUNTS, comment=""):
    entries = "".join(f"{row + 1} {column + 1} {counts[row, column]}\n" for row, column in np.argwhere(counts))
    size = f"{counts.shape[0]} {counts.shape[1]} {np.count_nonzero(counts)}\n"
    return f"%%MatrixMarket matrix coordinate integer general\n{comment}{size}{entries}"


def write_files(folder, prefix="", ending=".gz", features="features", **changed):
    """Write the three files of a sample; return the path of the matrix."""
    texts = {"matrix.mtx": mtx_text(), f"{features}.tsv": FEATURES, "barcodes.tsv": BARCODES} | changed
    for name, text in texts.items():
        with (gzip.open if ending else open)(folder / f"{prefix}{name}{ending}", "wt") as file:
            file.write(text)
    return folder / f"{prefix}matrix.mtx{ending}"


@pytest.mark.filterwarnings("ignore:its rows are features|.*its rows are features")
@pytest.mark.parametrize(
    "names", [{}, {"ending": ""}, {"prefix": "GSM123_"}, {"features": "genes", "ending": ""}], ids=str
)
def test_names_are_read_from_the_files_beside_the_matrix(tmp_path, names):
    path = write_files(tmp_path, **names)
    for table in (ba.read(path, transpose=True, binarize=0), ba.read(tmp_path, binarize=0), ba.read(path, binarize=0)):
        assert table == CELLS
        assert {name: values.tolist() for name, values in table.column_data.items()} == FIELDS
        assert dict(table.row_data) == {}
    assert ba.read(path, binarize=0, transpose=False) == GENES
    assert ba.read(tmp_path, binarize=0, transpose=True) == GENES


def test_names_that_do_not_fit_are_ignored_with_a_warning(tmp_path):
    path = write_files(tmp_path, **{"barcodes.tsv": BARCODES * 2})
    with pytest.warns(InputWarning, match=r"names in features.tsv.gz and barcodes.tsv.gz are ignored, .* 3 rows and 2"):
        table = ba.read(path, transpose=True, binarize=0)
    assert table == ba.Table(CELLS.bits)
    write_files(tmp_path, **{"matrix.mtx": mtx_text(COUNTS.T)})  # of cells x genes, without a warning
    for table in (ba.read(path, binarize=0), ba.read(tmp_path, binarize=0)):
        assert table == CELLS
        assert list(table.column_data["gene_ids"]) == FIELDS["gene_ids"]
    ba.write(ba.Table(GENES.bits, list("abc"), list("de")), path)  # names in the matrix win
    assert ba.read(path) == ba.Table(GENES.bits, list("abc"), list("de"))


def test_other_matrices_have_no_names(tmp_path):
    path = write_files(tmp_path).rename(tmp_path / "counts.mtx.gz")
    assert ba.read(path, binarize=0) == ba.Table(GENES.bits)
    (tmp_path / "barcodes.tsv.gz").unlink()
    path = path.rename(tmp_path / "matrix.mtx.gz")
    assert ba.read(path, binarize=0) == ba.Table(GENES.bits)


def test_the_comment_of_cell_ranger_is_enough_for_the_note(tmp_path):
    comment = '%metadata_json: {"software_version": "cellranger-7", "format_version": 2}\n'
    (tmp_path / "counts.mtx").write_text(mtx_text(comment=comment))
    with pytest.warns(InputWarning, match=NOTE):
        assert ba.read(tmp_path / "counts.mtx", binarize=0) == ba.Table(CELLS.bits)
    assert ba.read(tmp_path / "counts.mtx", binarize=0, transpose=True) == ba.Table(CELLS.bits)


def test_positions_in_messages_are_those_of_the_file(tmp_path):
    path = write_files(tmp_path, ending="", **{"matrix.mtx": mtx_text(np.array([[1, 0], [0, 1], [5, 0]]))})
    assert_read_error(tmp_path, "row 3, column 1: 5 is neither 0 nor 1")
    path.write_text(mtx_text().replace("3 1 1", "4 1 1"))
    assert_read_error(tmp_path, "an entry in row 4, but only 3 rows")
    (tmp_path / "features.tsv").write_bytes(b"\xff\xfe\n" * 3)
    with pytest.raises(ba.FileError, match=r"features.tsv: line 1 is not UTF-8"):
        ba.read(path)


def test_folders_without_one_matrix(tmp_path):
    assert_read_error(tmp_path, "this is a folder, not a file")
    assert_read_error(tmp_path, "this folder has no matrix.mtx", format="10x")
    for prefix in ("a_", "b_"):
        write_files(tmp_path, prefix)
    assert_read_error(tmp_path, "several matrices ('a_matrix.mtx.gz', 'b_matrix.mtx.gz'); pass one of them")


def test_types_of_features(tmp_path):
    """A gene and a protein of the same name have it if only one of them is read."""
    write_files(tmp_path, **{"features.tsv": FEATURES.replace("LYZ\tGene Expression", "CD3E\tAntibody Capture")})
    types = "several types \\('Gene Expression', 'Antibody Capture'\\); .* pass modality=\"Gene Expression\""
    with pytest.warns(InputWarning, match=types):
        assert ba.read(tmp_path, binarize=0).columns == ("ENSG01", "MS4A1", "ENSG03")
    for modality, columns in (("Gene Expression", [0, 1]), ("Antibody Capture", [2])):
        table = ba.read(tmp_path, binarize=0, modality=modality)
        assert table.columns == tuple(("CD3E", "MS4A1", "CD3E")[column] for column in columns)
        assert table.bits == ba.BitMatrix.from_dense(COUNTS.T[:, columns] > 0)
        assert list(table.column_data["gene_ids"]) == [FIELDS["gene_ids"][column] for column in columns]
    assert_read_error(tmp_path, "no features of the type 'rna' (types: 'Gene Expression'", modality="rna", binarize=0)
