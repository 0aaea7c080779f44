"""Haplotypes of SHAPEIT and IMPUTE2: known text, round trips, malformed files."""

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.columns.annotations import Annotations
from bitatoms.io.readers import haps
from support.files import assert_read_error
from support.genotypes import assert_same_genotypes, copies_table, haplotype_table, random_alleles

pytestmark = pytest.mark.usefixtures("few_trials")
SAMPLE = "ID_1 ID_2 missing sex\n0 0 0 D\nf1 ann 0 2\nbob bob 0 1\n0 cat 0 1\n"
HAPS = "20 rs1 5 G A 0 1 1 1 0 0\n20 . 7 T C 1 0 0 0 ? 1\nX rs3 9 A <DEL> 0* 1* 1 - 0 -\n"


def pair(folder, text=HAPS, sample=SAMPLE, name="some.haps"):
    """Write a .haps file and its .sample file, unless it is None; return the path."""
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    if sample is not None:
        (folder / f"{name.removesuffix('.gz').rpartition('.')[0]}.sample").write_text(sample)
    return path


@pytest.mark.filterwarnings("ignore:.*missing value")
def test_reads_known_text(tmp_path):
    path = pair(tmp_path)
    table = ba.read(path)
    assert table.row_names == ("f1 ann", "bob", "cat")
    assert table.columns == ("rs1:A", "rs1:AA", "20:7:C", "20:7:CC", "rs3:<DEL>", "rs3:<DEL><DEL>")
    nan = np.nan
    expected = [[1, 0, 1, 0, 1, 0], [1, 1, 0, 0, 1, 1], [0, 0, nan, nan, 0, 0]]  # a haploid genotype counts twice
    np.testing.assert_array_equal(table.to_dense(float), expected)
    assert table.column_data["other"].tolist() == ["G", "G", "T", "T", "A", "A"]
    haplotypes = ba.read(path, phased=True)
    assert haplotypes.row_names == ("f1 ann/1", "f1 ann/2", "bob/1", "bob/2", "cat/1", "cat/2")
    expected = [[0, 1, 0], [1, 0, 1], [1, 0, 1], [1, 0, nan], [0, nan, 0], [0, 1, nan]]
    np.testing.assert_array_equal(haplotypes.to_dense(float), expected)
    assert haplotypes.row_data["sex"].tolist() == ["2", "2", "1", "1", "1", "1"]
    path = pair(tmp_path, "20:5_G_A rs1 5 G A 0 1 1 1 0 0\n")  # as bcftools writes it
    assert ba.read(path, phased=True).column_data["chromosome"].tolist() == ["20"]


@pytest.mark.filterwarnings("ignore:.*missing value")
@pytest.mark.parametrize("name", ["copy.haps", "copy.haps.gz"])
def test_round_trip(tmp_path, monkeypatch, name):
    monkeypatch.setattr(haps, "_CHUNK_ALLELES", 500)
    alleles = random_alleles(33, 65, missing=0.1)
    pedigree = {"family": ["0"] * 33, "father": ["x"] * 33, "sex": ["1"] * 33}
    table = haplotype_table(alleles, sample_data=Annotations(pedigree, 33))
    ba.write(table, tmp_path / name)
    again = ba.read(tmp_path / name, phased=True)
    assert_same_genotypes(again, table)
    assert again.row_data["father"].tolist() == ["x"] * 66
    assert_same_genotypes(ba.read(tmp_path / name), copies_table(alleles))


@pytest.mark.parametrize(
    ("files", "part"),
    [
        ({"text": "20 rs1 5 G A 0 1\n"}, "line 1 has 2 alleles; expected 6, two for each of the 3 samples"),
        ({"text": HAPS.replace("0 1 1 1 0 0", "0 1 1  1 0 01")}, "line 1: '01' is not an allele"),
        ({"text": HAPS.replace(" 7 ", " x ")}, "a position is not a number"),
        ({"text": HAPS + HAPS}, "variants 1 and 4 have the same name 'rs1' and the same allele"),
        ({"sample": None}, "some.sample, which lists the samples, is missing"),
        ({"sample": SAMPLE.replace("0 0 0 D\n", "")}, "some.sample: a .sample file begins with two lines"),
        ({"sample": SAMPLE + "x\n"}, "some.sample: line 6 has 1 fields; expected 4"),
    ],
)
def test_malformed_files_are_errors(tmp_path, files, part):
    assert_read_error(pair(tmp_path, **files), part)


def test_only_haplotypes_are_written(tmp_path):
    for table, name, message in (
        (copies_table(random_alleles(3, 4)), "a.haps", r"a\.haps: a \.haps file stores haplotypes"),
        (haplotype_table(random_alleles(3, 4)), "a.bed", r"a \.bed file cannot store the phase"),
    ):
        with pytest.raises(ba.FileError, match=message):
            ba.write(table, tmp_path / name)
    assert not list(tmp_path.iterdir())
