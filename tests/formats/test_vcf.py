"""VCF and BCF: known text, round trips, phase, malformed files."""

import gzip

import numpy as np
import pytest

import bitatoms as ba
from bitatoms import BitMatrix, Table
from bitatoms.columns.annotations import Annotations
from bitatoms.errors import InputWarning
from support.files import assert_read_error, outcome
from support.genotypes import copies_table, random_alleles

pytest.importorskip("cyvcf2", reason="cyvcf2 is not installed; make test-formats runs this test")

pytestmark = pytest.mark.filterwarnings("ignore:.*missing value")
NAMES = ("x.vcf", "x.vcf.gz", "x.bcf")
HEADER = """##fileformat=VCFv4.2
##FILTER=<ID=q10,Description="low">
##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">
##FORMAT=<ID=DP,Number=1,Type=Integer,Description="Depth">
##contig=<ID=1>
##contig=<ID=X>
#CHROM	POS	ID	REF	ALT	QUAL	FILTER	INFO	FORMAT	ann	bob	cat
"""
RECORDS = """1	5	rs1	G	A	29.13	PASS	.	GT:DP	0/1:3	1|1:4	./.:.
1	7	.	G	A,T	.	.	.	GT	1|2	.|1	0|2
1	8	rs3	G	.	3	q10	.	GT	0/0	0/0	.
X	9	rs4	N	<DEL>	.	q10	.	GT	0	1|0	1
X	10	rs6	G	<*>	.	.	.	GT	0	1	.
2	10	rs7	G	C	.	.	.	DP	0	1	.
"""
NAN = np.nan


def file(folder, records=RECORDS, header=HEADER, name="some.vcf"):
    """Write a file; return the path."""
    path = folder / name
    text = (header + records).encode()
    path.write_bytes(gzip.compress(text, mtime=0) if name.endswith(".gz") else text)
    return path


@pytest.mark.parametrize("name", ["some.vcf", "some.vcf.gz"])
def test_reads_known_text(tmp_path, name):
    table = ba.read(file(tmp_path, name=name))
    assert table.row_names == ("ann", "bob", "cat")
    assert table.columns[:6] == ("rs1:A", "rs1:AA", "1:7:A", "1:7:AA", "1:7:T", "1:7:TT")
    assert table.columns[6:] == ("rs3:0", "rs3:00", "rs4:<DEL>", "rs4:<DEL><DEL>", "rs6:0", "rs6:00", "rs7:C", "rs7:CC")
    expected = [
        [1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, NAN, NAN],
        [1, 1, NAN, NAN, NAN, NAN, 0, 0, 1, 0, 1, 1, NAN, NAN],
        [NAN, NAN, 0, 0, 1, 0, NAN, NAN, 1, 1, NAN, NAN, NAN, NAN],
    ]
    np.testing.assert_array_equal(table.to_dense(float), expected)
    about = table.column_data.take(np.arange(0, 14, 2))
    assert about["chromosome"].tolist() == ["1", "1", "1", "1", "X", "X", "2"]
    assert about["position"].tolist() == [5, 7, 7, 8, 9, 10, 10]
    assert about["id"].tolist() == ["rs1", None, None, "rs3", "rs4", "rs6", "rs7"]
    assert about["allele"].tolist() == ["A", "A", "T", None, "<DEL>", None, "C"]
    assert about["other"].tolist() == ["G", "G", "G", "G", None, "G", "G"]
    assert about["filter"].tolist() == ["PASS", None, None, "q10", "q10", None, None]
    np.testing.assert_array_equal(about["quality"], np.array([29.13, NAN, NAN, 3, NAN, NAN, NAN], np.float32))


def test_numbers_of_two_digits_and_genotypes_that_are_not_the_first_field(tmp_path):
    alternatives = ",".join("A" * length for length in range(1, 12))
    records = f"1\t5\trs1\tG\t{alternatives}\t.\t.\t.\tDP:GT\t3:10/2\t:/11|0\t4\n"
    table = ba.read(file(tmp_path, records))
    expected = np.zeros((3, 11))
    expected[0, [1, 9]], expected[1, 10], expected[2] = 1, 1, NAN
    np.testing.assert_array_equal(table.to_dense(float)[:, ::2], expected)


def test_haplotypes(tmp_path):
    records = RECORDS.replace("0/1:3", "0|1:3")
    table = ba.read(file(tmp_path, records), phased=True)
    assert table.row_names == ("ann/1", "ann/2", "bob/1", "bob/2", "cat/1", "cat/2")
    expected = [
        [0, 1, 0, 0, 0, 0, NAN],
        [1, 0, 1, 0, NAN, NAN, NAN],
        [1, NAN, NAN, 0, 1, 1, NAN],
        [1, 1, 0, 0, 0, NAN, NAN],
        [NAN, 0, 0, NAN, 1, NAN, NAN],
        [NAN, 0, 1, NAN, NAN, NAN, NAN],
    ]
    np.testing.assert_array_equal(table.to_dense(float), expected)


def test_heterozygous_genotypes_without_phase_are_errors(tmp_path):
    path = file(tmp_path, RECORDS.replace("1|2", "1/2"))
    problem = "3 heterozygous genotypes are not phased, the first at variant 'rs1' of 'ann'"
    assert_read_error(path, problem, "omit phased", phased=True)
    assert_read_error(path, problem, phased=True, maf=0.1)
    assert ba.read(path, phased=True, region="X").shape == (6, 2)
    assert ba.read(path, phased=True, keep=["bob"]).shape == (2, 7)
    # Of a genotype that is half known and not phased, neither haplotype is known.
    half_known = ba.read(
        file(tmp_path, "1	5	rs1	G	A	.	.	.	GT	./1	0/0	1|.\n"), phased=True
    )
    np.testing.assert_array_equal(half_known.to_dense(float).ravel(), [NAN, NAN, 0, 0, 1, NAN])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("phased", [False, True])
def test_quality_filter_and_unknown_alleles_are_kept(tmp_path, name, phased):
    table = ba.read(file(tmp_path, RECORDS.replace("0/1:3", "0|1:3")), phased=phased)
    ba.write(table, tmp_path / name)
    again = ba.read(tmp_path / name, phased=phased)
    assert (again, again.column_data) == (table, table.column_data)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore:.*contains a blank")
def test_tables_without_annotations_and_empty_tables(tmp_path, name):
    table = ba.datasets.genotypes(20, 30)
    ba.write(Table(table.bits, table.row_names, table.columns), tmp_path / name)
    assert ba.read(tmp_path / name) == table
    ba.write(Table(BitMatrix.zeros(0, 2), columns=("rs1:A", "rs1:AA")), tmp_path / name)
    assert ba.read(tmp_path / name).shape == (0, 2)
    ba.write(Table(BitMatrix.zeros(3, 0), columns=()), tmp_path / name)
    assert ba.read(tmp_path / name).shape == (3, 0)


def test_pedigree_and_blanks_in_names_give_warnings(tmp_path):
    pedigree = Annotations({"family": ["f1", "f1"], "sex": ["1", "2"], "father": ["0", "0"]}, 2)
    table = copies_table(random_alleles(2, 3), ["f1 ann", "f1 bob"], pedigree)
    with pytest.warns(InputWarning) as warned:
        ba.write(table, tmp_path / "a.vcf.gz")
    messages = [str(each.message) for each in warned]
    assert messages[0] == "a.vcf.gz: this format does not store sex of samples"
    assert "a row name contains a blank ('f1 ann')" in messages[1]
    assert len(messages) == 2
    assert ba.read(tmp_path / "a.vcf.gz").row_names == ("f1 ann", "f1 bob")


@pytest.mark.parametrize(
    ("rows", "columns", "message"),
    [
        (("a\tb", "c"), ("rs1:A", "rs1:AA"), "cannot store the row name"),
        (("", "c"), ("rs1:A", "rs1:AA"), "cannot store the row name ''"),
        (("c", "c"), ("rs1:A", "rs1:AA"), "two rows have the name 'c'"),
        (None, ("rs 1:A", "rs 1:AA"), "cannot store 'rs 1' of the variant 'rs 1'"),
        (None, ("rs1:A,B", "rs1:A,BA,B"), "cannot store 'A,B' of the variant 'rs1'"),
        (None, ("milk", "bread"), "are not those of a variant"),
    ],
)
@pytest.mark.parametrize("name", ["x.vcf", "x.bcf"])
def test_tables_that_cannot_be_stored_are_errors(tmp_path, name, rows, columns, message):
    with pytest.raises(ba.FileError) as caught:
        ba.write(Table(BitMatrix.zeros(2, 2), rows, columns), tmp_path / name)
    assert message in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("records", "parts"),
    [
        (RECORDS.replace("0/1:3", "0/x:3"), ["1:5: '0/x' is not a genotype"]),
        (RECORDS.replace("1|2", "1|7"), ["variant '1:7': a genotype has the allele 7, but the record lists 2"]),
        (RECORDS.replace("1|2", "1/2/2"), ["1:7: '1/2/2' is not a genotype of one or two alleles"]),
        (RECORDS.replace("X	9", "X	here"), ["line 11: 'X here rs4 N' is not a chromosome, a position"]),
        (RECORDS.replace("29.13", "good"), ["a quality is not a number"]),
        (RECORDS + "1\t9\n", ["line 14 has 2 fields; expected at least 10"]),
        (RECORDS[:-4], ["2:10: there are 2 genotypes; expected 3"]),
        (RECORDS + RECORDS, ["variants 1 and 8 have the same name 'rs1' and the same allele"]),
    ],
)
def test_malformed_records_are_errors(tmp_path, capfd, records, parts):
    assert_read_error(file(tmp_path, records), *parts)
    assert capfd.readouterr() == ("", "")  # nor does htslib print


def test_malformed_headers_are_errors(tmp_path):
    for header, part in (
        ("", "not a VCF file: its header has no line of column names"),
        ("##fileformat=VCFv4.2\n", "not a VCF file: its header has no line"),
        (HEADER.replace("bob", "ann"), "two samples have the name 'ann'"),
    ):
        assert_read_error(file(tmp_path, header=header), part)
    assert_read_error(file(tmp_path), "genotypes cannot be thresholded", binarize=0.5)


def test_malformed_lines_of_chromosomes_that_the_header_does_not_list(tmp_path):
    for record in ("9\there\trs9\tA\tC\t.\t.\t.\tGT\t0\t0\t0\n", "9\n", "9\t5\trs9\t\tC\t.\t.\t.\tGT\t0\t0\t0\n"):
        assert_read_error(file(tmp_path, RECORDS + record), "line 14")
    assert_read_error(
        file(tmp_path, RECORDS + "9\t5\trs9\tA\tC\t.\t.\t.\tGT\t0\t0\n"), "9:5: there are 2 genotypes; expected 3"
    )


@pytest.mark.parametrize("kept", [30, 1 / 2, -28, -1])
@pytest.mark.parametrize("name", ["x.vcf.gz", "x.bcf"])
def test_truncated_compressed_files_are_errors(tmp_path, name, kept):
    ba.write(copies_table(random_alleles(500, 400)), tmp_path / name)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: int(kept * len(content)) if isinstance(kept, float) else kept])
    assert_read_error(tmp_path / name)


@pytest.mark.parametrize("seed", range(40))
def test_malformed_binary_records_are_errors_or_the_only_ones_that_change(tmp_path, seed):
    """On some of these, htslib crashes or ends the process. A byte belongs to one of the twelve records."""
    path, table = tmp_path / "x.bcf", copies_table(random_alleles(9, 12))
    ba.write(table, path)
    content, random = bytearray(gzip.decompress(path.read_bytes())), np.random.default_rng(seed)
    begin = content.index(b"\n", content.index(b"#CHROM")) + 2  # the header ends with a zero byte
    for index in random.integers(begin, len(content), 3):
        content[index] = random.choice([0, 1, 23, 255, random.integers(256)])
    path.write_bytes(content)  # which need not be compressed
    found = outcome(lambda path: ba.read(path, missing="zero", duplicates="number"), path)
    if found is not None:
        assert found.row_names == table.row_names
        before, after = (
            [cells[:, column : column + 2].tobytes() for column in range(0, cells.shape[1], 2)]
            for cells in (table.to_dense(), found.to_dense())
        )
        assert sum(variant in after for variant in before) >= 9
