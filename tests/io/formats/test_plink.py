"""PLINK genotypes: round trips, exchange with bed-reader, known bytes, malformed files."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bitatoms as ba
from bitatoms import BitMatrix, Table
from bitatoms.io.formats.genotypes import genotype_file
from support.files import assert_read_error

bed_reader = pytest.importorskip("bed_reader")
BIM = "1\trs1\t0\t5\tA\tG\n1\trs2\t0\t7\tC\tT\n"
FAM = "f1 ann 0 0 2 -9\nf1 bob 0 0 1 -9\n0 cat 0 0 0 -9\ndan dan 0 0 0 -9\n0 eve 0 0 0 0\n"
# Two bits per individual, from the lowest: 00 two copies, 10 one copy, 11 none, 01 missing. Five individuals, two SNPs.
BED = bytes([0x6C, 0x1B, 0x01, 0b11_10_00_11, 0b10, 0b00_00_11_10, 0b11])
COPIES = [[0, 1], [2, 0], [1, 2], [0, 2], [1, 0]]
PAIR = ("rs1:A", "rs1:AA")


def trio(folder, bed=BED, bim=BIM, fam=FAM, name="trio.bed"):
    """Write a .bed file and its .bim and .fam files, unless they are None; return the path."""
    path = folder / name
    for ending, content in ((".bed", bed), (".bim", bim), (".fam", fam)):
        if content is not None:
            path.with_suffix(ending).write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def pairs(copies):
    """Return numbers of copies as two bits each."""
    copies = np.asarray(copies)
    return np.stack([copies >= 1, copies == 2], axis=2).reshape(len(copies), -1).astype(np.uint8)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("genotypes") / "trio.bed"


@given(st.integers(0, 99), st.integers(1, 9), st.integers(1, 9), st.sampled_from((genotype_file.CHUNK_GENOTYPES, 10)))
@settings(max_examples=25)
def test_exchange_with_bed_reader(path, seed, n_rows, n_snps, chunk_bits):
    copies = np.random.default_rng(seed).choice(np.array([0, 0, 1, 1, 2, -127], np.int8), (n_rows, n_snps))
    bed_reader.to_bed(path, copies, num_threads=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(genotype_file, "CHUNK_GENOTYPES", chunk_bits)
        table = ba.read(path, missing="zero")
        assert np.array_equal(table.to_dense(), pairs(copies))
        assert table.row_names == tuple(f"iid{row + 1}" for row in range(n_rows))
        assert table.columns[:2] == ("sid1:A1", "sid1:A1A1")
        ba.write(table, path)
    with bed_reader.open_bed(path, num_threads=1) as bed:
        assert np.array_equal(bed.read(dtype="int8"), np.maximum(copies, 0))
        assert list(bed.iid) == list(table.row_names)
        assert list(bed.sid) == [f"sid{snp + 1}" for snp in range(n_snps)]
        assert set(bed.allele_1) == {"A1"}
        assert set(bed.chromosome) == {"0"}


def test_reads_known_bytes(tmp_path):
    table = ba.read(trio(tmp_path))
    assert table.to_dense().tolist() == pairs(COPIES).tolist()
    assert table.columns == ("rs1:A", "rs1:AA", "rs2:C", "rs2:CC")
    assert table.row_names == ("f1 ann", "f1 bob", "cat", "dan", "eve")
    ba.write(table, tmp_path / "COPY.BED")
    assert (tmp_path / "COPY.BED").read_bytes() == BED
    assert ba.read(tmp_path / "COPY.BED") == table
    files = {"trio.bed", "trio.bim", "trio.fam", "COPY.BED", "COPY.BIM", "COPY.FAM"}
    assert {file.name for file in tmp_path.iterdir()} == files
    bim, fam = BIM.replace("\t", "  ").replace("\n", "\r\n") + "\r\n\n", FAM.replace(" ", "\t") + "\n"
    assert ba.read(trio(tmp_path, bim=bim, fam=fam)) == table
    missing = BED[:3] + bytes([0b11_10_01_11, 0b10, 0b00_00_11_10, 0b01])
    problem = "2 values are missing, the first at variant 'rs1' of 'f1 bob'"
    assert_read_error(trio(tmp_path, missing), problem, 'missing="zero"', missing="refuse")


def test_names_of_snps(tmp_path):
    path = trio(tmp_path, bim=BIM.replace("rs2", "rs1").replace("C", "A"))
    assert_read_error(path, "variants 1 and 2 have the same name 'rs1' and the same allele", 'pass duplicates="number"')
    table = ba.read(path, duplicates="number")
    assert table.columns == ("rs1:A", "rs1:AA", "rs1.2:A", "rs1.2:AA")
    ba.write(table, path)
    assert ba.read(path, duplicates="number") == table
    path = trio(tmp_path, bim=BIM.replace("rs2", "rs1"))  # two alleles of one SNP
    assert ba.read(path).columns == ("rs1:A", "rs1:AA", "rs1:C", "rs1:CC")
    path = trio(tmp_path, bim=BIM.replace("rs1", ".").replace("rs2", "."))
    table = ba.read(path)
    assert table.columns == ("1:5:A", "1:5:AA", "1:7:C", "1:7:CC")
    ba.write(table, tmp_path / "copy.bed")
    assert (tmp_path / "copy.bim").read_bytes() == path.with_suffix(".bim").read_bytes()


def test_positions_alleles_and_pedigree_are_kept(tmp_path):
    path = trio(tmp_path)
    table = ba.read(path)
    assert table.column_data["position"].tolist() == [5, 5, 7, 7]
    assert table.column_data["other"].tolist() == ["G", "G", "T", "T"]
    assert table.row_data["sex"].tolist() == ["2", "1", "0", "0", "0"]
    for name in ("copy.bed", "copy.npz", "copy.zarr"):
        ba.write(table, tmp_path / name)
        copy = ba.read(tmp_path / name)
        assert (copy, copy.row_data, copy.column_data) == (table, table.row_data, table.column_data)
    for kind in ("bim", "fam"):
        assert (tmp_path / f"copy.{kind}").read_text() == path.with_suffix(f".{kind}").read_text()


def test_samples_and_variants_are_selected(tmp_path):
    path, table = trio(tmp_path), ba.read(trio(tmp_path))
    (tmp_path / "people.txt").write_text("#FID IID\nf1 bob\n0 eve\n")
    for keep in (tmp_path / "people.txt", ["bob", "eve"], ["f1 bob", "eve"]):
        some = ba.read(path, keep=keep)
        assert some == table[[1, 4]]
        assert some.row_data == table.row_data.take([1, 4])
    second = Table(table.bits.take_columns([2, 3]), table.row_names, table.columns[2:])
    (tmp_path / "snps.txt").write_text("rs2\n")
    regions = [{"region": region} for region in ("chr1:6-7", "1:7,2", "1:6-", "1:6-1,000,000,2")]
    for how in (*regions, {"extract": tmp_path / "snps.txt"}, {"maf": 0.45}):
        some = ba.read(path, **how)
        assert some == second
        assert some.column_data == table.column_data.take([2, 3])
    assert ba.read(path, maf=0.5, keep=["bob", "cat"]).columns == ("rs2:C", "rs2:CC")
    with pytest.warns(UserWarning, match="1 of the 2 variants of extract are not in it"):
        assert ba.read(path, extract=["rs2", "rs3"]).shape == (5, 2)
    fam = "".join(f"{name} 0 0 0 0\n" for name in ("F1 1", "F2 1", "F3 1", "F1 2", "F2 2"))
    families = trio(tmp_path, fam=fam, name="f.bed")
    (tmp_path / "people.txt").write_text("F1 1 2\n")
    assert ba.read(families, keep=tmp_path / "people.txt").row_names == ("F1 1",)
    assert ba.read(families, keep=["1"]).row_names == ("F1 1", "F2 1", "F3 1")
    assert_read_error(path, "none of the 1 samples of keep is in the file", keep=["zoe"])
    assert_read_error(path, 'there is no variant in region="2"', region="2")
    assert_read_error(path, "not a region", region="1:x")
    assert_read_error(path, "there is no such file", keep=str(tmp_path / "nobody.txt"))
    assert_read_error(path, "a .bed file has no phase", phased=True)
    assert_read_error(path, "genotypes cannot be thresholded", "omit binarize", binarize=0.5)


@pytest.mark.parametrize(
    ("files", "part"),
    [
        ({"bed": b"l"}, "not a PLINK .bed file"),
        ({"bed": b"chr1\t100\t200\n"}, "lists of genome intervals are also called .bed"),
        ({"bed": BED[:2] + b"\2" + BED[3:]}, "the third byte"),
        ({"bed": BED[:2] + b"\0" + BED[3:]}, "individual-major order"),
        ({"bed": BED[:-1]}, "it has 6 bytes; expected 7 for the 2 SNPs"),
        ({"bed": BED + b"\0"}, "too long, or its .bim and .fam are those of another"),
        ({"bim": BIM[: len(BIM) // 2]}, "it has 7 bytes; expected 5 for the 1 SNPs"),
        ({"fam": FAM[: len(FAM) // 2]}, "fields; expected 6"),
        ({"bim": None}, "trio.bim, which lists the variants, is missing"),
        ({"fam": None}, "trio.fam, which lists the samples, is missing"),
        ({"bim": BIM + "1 rs3\n"}, "trio.bim: line 3 has 2 fields"),
        ({"fam": b"\xff" + FAM.encode()}, "trio.fam: line 1 is not UTF-8"),
        ({"bim": b"\0" + BIM.encode()}, "trio.bim: line 1 contains a zero byte"),
    ],
)
def test_malformed_files_are_errors(tmp_path, files, part):
    assert_read_error(trio(tmp_path, **files), part)


def test_bim_path_is_an_error(tmp_path):
    path = trio(tmp_path).with_suffix(".bim")
    path.write_bytes(BED)
    assert_read_error(path, "pass the .bed file", format="bed")
    with pytest.raises(ba.FileError, match=r"pass the \.bed file"):
        ba.write(Table(BitMatrix.zeros(1, 2), columns=("rs1:A", "rs1:AA")), path, format="bed")


@pytest.mark.parametrize(
    ("rows", "columns", "message"),
    [
        (None, None, "has no column names, so it is not a table of genotypes; such a table has two columns per"),
        (None, ("rs1:A", "rs1:AA", "rs2:C"), "has an odd number of columns"),
        (None, ("milk", "bread"), "the columns 'milk' and 'bread' are not those of a variant"),
        (None, ("rs1:A", "rs1:A2"), "are not those of a variant"),
        (None, ("rs1:", "rs1::"), "are not those of a variant"),
        (None, ("rs 1:A", "rs 1:AA"), "a .bim file cannot store the variant 'rs 1'; rename it"),
        (("a b c", "d"), PAIR, "a .fam file cannot store the row name 'a b c'"),
        (("", "d"), PAIR, "cannot store the row name ''"),
        (("0", "d"), PAIR, "cannot store the row name '0'"),
        (("0 d", "d"), PAIR, "cannot store the row name '0 d'"),
        (("d", "d"), PAIR, "two rows have the name 'd', which PLINK forbids"),
        (("ann", "bob"), PAIR, "'bob' carries two copies of the allele 'rs1:A' but not one"),
    ],
)
def test_writing_other_tables_is_an_error(tmp_path, rows, columns, message):
    bits = np.zeros((2, 4 if columns is None else len(columns)))
    bits[1, 1] = "two copies" in message
    with pytest.raises(ba.FileError) as caught:
        ba.write(Table(BitMatrix.from_dense(bits), rows, columns), tmp_path / "other.bed")
    assert str(caught.value).startswith("other.bed: ")
    assert message in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_tables_without_names_rows_or_columns(tmp_path):
    for shape, columns in (((0, 2), PAIR), ((3, 0), ()), ((2, 2), PAIR)):
        ba.write(Table(BitMatrix.zeros(*shape), columns=columns), tmp_path / "a.bed")
        assert ba.read(tmp_path / "a.bed").shape == shape
    assert ba.read(tmp_path / "a.bed").row_names == ("1", "2")
