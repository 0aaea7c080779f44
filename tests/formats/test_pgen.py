"""PLINK 2 files: round trips, exchange with pgenlib, phase, malformed files."""

import numpy as np
import pytest

import bitatoms as ba
from bitatoms import BitMatrix, Table
from bitatoms.columns.annotations import Annotations
from support.files import assert_read_error
from support.genotypes import assert_same_genotypes, copies_table, haplotype_table, random_alleles

pgenlib = pytest.importorskip("pgenlib", reason="pgenlib is not installed; make test-formats runs this test")
pytestmark = pytest.mark.filterwarnings("ignore:.*missing value")
PVAR = "##source=x\n#CHROM\tPOS\tID\tREF\tALT\n1\t5\trs1\tG\tA\n1\t7\t.\tT\tC,A\n"
PSAM = "#FID\tIID\tSEX\tPHENO1\tsize\nf1\tann\t2\tNA\t3\n0\tbob\tNA\t1\t4\n0\tcat\t1\t2\t5\n"
NAN = np.nan


def trio(folder, pvar=PVAR, psam=PSAM, alleles=((0, 1, 1, 1, -9, -9), (1, 2, 0, 2, 2, 2)), phased=True):
    """Write .pgen, .pvar and .psam files; return the path of the first."""
    path = folder / "some.pgen"
    writer = pgenlib.PgenWriter(
        str(path).encode(), 3, variant_ct=2, nonref_flags=False, allele_ct_limit=3, hardcall_phase_present=True
    )
    for number, codes in enumerate(alleles):
        writer.append_alleles(np.array(codes, np.int32), all_phased=phased, allele_ct=2 + number)
    writer.close()
    for ending, text in ((".pvar", pvar), (".psam", psam)):
        if text is not None:
            path.with_suffix(ending).write_text(text)
    return path


def test_reads_what_pgenlib_writes(tmp_path):
    path = trio(tmp_path)
    table = ba.read(path)
    assert table.row_names == ("f1 ann", "bob", "cat")
    assert table.columns == ("rs1:A", "rs1:AA", "1:7:C", "1:7:CC", "1:7:A", "1:7:AA")
    expected = [[1, 0, 1, 0, 1, 0], [1, 1, 0, 0, 1, 0], [NAN, NAN, 0, 0, 1, 1]]
    np.testing.assert_array_equal(table.to_dense(float), expected)
    assert table.row_data["sex"].tolist() == ["2", "0", "1"]
    assert table.row_data["phenotype"].tolist() == ["NA", "1", "2"]
    assert table.row_data["size"].tolist() == ["3", "4", "5"]
    expected = [[0, 1, 0], [1, 0, 1], [1, 0, 0], [1, 0, 1], [NAN, 0, 1], [NAN, 0, 1]]
    np.testing.assert_array_equal(ba.read(path, phased=True).to_dense(float), expected)
    assert ba.read(path, region="1:5").columns == ("rs1:A", "rs1:AA")


def test_heterozygous_genotypes_without_phase_are_errors(tmp_path):
    path = trio(tmp_path, phased=False)
    assert_read_error(
        path, "4 heterozygous genotypes are not phased, the first at variant 'rs1' of 'f1 ann'", phased=True
    )
    assert ba.read(path, phased=True, keep=["cat"]).shape == (2, 3)


def test_files_without_header_are_those_of_plink_1(tmp_path):
    pvar, psam = "1 rs1 0 5 A G\n1 rs2 0.5 7 C,A T\n", "f1 ann 0 0 2 -9\n0 bob 0 0 0 -9\n0 cat ann 0 1 -9\n"
    table = ba.read(trio(tmp_path, pvar, psam))
    assert table.row_names == ("f1 ann", "bob", "cat")
    assert table.row_data["father"].tolist() == ["0", "0", "ann"]
    assert table.columns == ("rs1:A", "rs1:AA", "rs2:C", "rs2:CC", "rs2:A", "rs2:AA")
    assert table.column_data["distance"].tolist() == [0, 0, 0.5, 0.5, 0.5, 0.5]


def test_pedigree_quality_and_filter_are_kept(tmp_path):
    names = ("family", "father", "mother", "sex", "phenotype")
    pedigree = Annotations({name: ["f1", "f2"] if name == "family" else ["1", "2"] for name in names}, 2)
    table = copies_table(random_alleles(2, 3), ["f1 ann", "f2 bob"], pedigree)
    quality = np.array([29.13, NAN, 3], np.float32).repeat(2)
    about = table.column_data.updated(quality=quality, filter=["PASS", "PASS", None, None, "q10", "q10"])
    table = Table(table.bits, table.row_names, table.columns, row_data=pedigree, column_data=about)
    ba.write(table, tmp_path / "x.pgen")
    again = ba.read(tmp_path / "x.pgen")
    assert_same_genotypes(again, table)
    assert again.row_data == pedigree
    assert again.column_data["filter"].tolist() == about["filter"].tolist()
    np.testing.assert_array_equal(again.column_data["quality"], quality)


def test_half_known_haplotypes_are_written_as_missing(tmp_path):
    table = haplotype_table(np.array([[[0, 1], [1, -1]]], np.int8))
    with pytest.warns(UserWarning, match="1 genotype is written as missing because one of the two haplotypes is"):
        ba.write(table, tmp_path / "x.pgen")
    expected = [0, 1, NAN, NAN]
    np.testing.assert_array_equal(ba.read(tmp_path / "x.pgen", phased=True).to_dense(float).ravel(), expected)


def test_compressed_variants(tmp_path):
    path = trio(tmp_path, pvar=None)
    compressed = path.with_suffix(".pvar.zst")
    compressed.write_bytes(b"nothing")
    try:
        import zstandard
    except ImportError:
        assert_read_error(path, "some.pvar.zst is compressed; decompress it with 'plink2 --zst-decompress")
        return
    assert_read_error(path, "some.pvar.zst: the compressed data is corrupt")
    compressed.write_bytes(zstandard.compress(PVAR.encode()))
    assert ba.read(path).shape == (3, 6)


@pytest.mark.parametrize(
    ("files", "parts"),
    [
        ({"pvar": None}, ["some.pvar, which lists the variants, is missing"]),
        ({"psam": None}, ["some.psam, which lists the samples, is missing"]),
        ({"pvar": PVAR.replace("\tREF", "\tREV")}, ["some.pvar: its columns are not those", "there is no REF"]),
        ({"pvar": PVAR.replace("\t7\t", "\tseven\t")}, ["some.pvar: a position is not a number"]),
        ({"pvar": PVAR + "1\t9\n"}, ["some.pvar: line 5 has 2 fields; expected 5"]),
        ({"psam": PSAM.replace("IID", "ID")}, ["some.psam: its columns are not those of a .psam file"]),
        ({"psam": PSAM + "0\tdan\t1\t2\t5\n"}, ["corrupt, or not a file of the format 'pgen'"]),
        ({"pvar": PVAR + "1\t9\trs9\tA\tC\n"}, ["corrupt, or not a file of the format 'pgen'"]),
    ],
)
def test_malformed_files_are_errors(tmp_path, files, parts):
    assert_read_error(trio(tmp_path, **files), *parts)


def test_companions_are_errors(tmp_path):
    path = trio(tmp_path)
    assert_read_error(path.with_suffix(".pvar"), "pass the .pgen file")
    assert_read_error(path.with_suffix(".psam"), "not a PLINK 2 .pgen file", format="pgen")


def test_empty_tables_are_not_written(tmp_path):
    with pytest.raises(ba.FileError, match=r"x\.pgen: a \.pgen file needs at least one sample and one variant"):
        ba.write(Table(BitMatrix.zeros(0, 2), columns=("rs1:A", "rs1:AA")), tmp_path / "x.pgen")
    assert not list(tmp_path.iterdir())
