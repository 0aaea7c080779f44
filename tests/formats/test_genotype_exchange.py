"""The same genotypes in all formats: as other programs write them, converted there and back, selected, and packed."""

import shutil
import subprocess

import pytest

import bitatoms as ba
from support.formats import use_small_chunks
from support.genotypes import IDENTITY, assert_same_genotypes, copies_table, haplotype_table, random_alleles

pytest.importorskip("cyvcf2", reason="cyvcf2 is not installed; make test-formats runs this test")
pytest.importorskip("pgenlib", reason="pgenlib is not installed; make test-formats runs this test")
pytest.importorskip("bed_reader")

pytestmark = pytest.mark.filterwarnings("ignore:.*missing value")
FILES = ("x.bed", "x.pgen", "x.vcf", "x.vcf.gz", "x.bcf", "x.zarr")
ALLELES = random_alleles(31, 40, missing=0.08)
PHASED = tuple(name for name in FILES if name != "x.bed")


def needs(program):
    """Skip a test if a program is not installed."""
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


def run(*command, cwd):
    subprocess.run(list(map(str, command)), check=True, capture_output=True, cwd=cwd, timeout=100)


def vcf_to_zarr(path, zarr_format=2):
    """Convert a VCF file to VCF Zarr with bio2zarr; return the path."""
    bio2zarr = pytest.importorskip("bio2zarr.vcf", reason="bio2zarr is not installed")
    out = path.with_name("x.zarr")
    bio2zarr.convert([path], out, worker_processes=0, zarr_format=zarr_format)
    return out


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """All files of the same genotypes."""
    folder = tmp_path_factory.mktemp("exchange")
    for name in PHASED[:-1]:
        ba.write(haplotype_table(ALLELES), folder / name)
    ba.write(copies_table(ALLELES), folder / "x.bed")
    if shutil.which("bcftools"):
        run("bcftools", "index", "x.vcf.gz", cwd=folder)
        vcf_to_zarr(folder / "x.vcf.gz")
    return folder


def existing(folder, name):
    """Return the path of a file; skip a test if bcftools, which it needs, is not installed."""
    if not (folder / name).exists():
        pytest.skip("bcftools is not installed")
    return folder / name


@pytest.mark.parametrize("name", FILES)
def test_same_genotypes(folder, name, monkeypatch):
    use_small_chunks(monkeypatch, 200)
    assert_same_genotypes(ba.read(existing(folder, name)), copies_table(ALLELES))


@pytest.mark.parametrize("name", PHASED)
def test_same_haplotypes(folder, name, monkeypatch):
    use_small_chunks(monkeypatch, 200)
    assert_same_genotypes(ba.read(existing(folder, name), phased=True), haplotype_table(ALLELES))


SELECTIONS = [
    {"region": "1:121-212,X"},
    {"region": "chrX:240", "missing": "zero"},
    {"keep": ["person2", "person30"]},
    {"extract": ["rs1", "rs38", "X:268"]},
    {"maf": 0.3},
    {"maf": 0.2, "keep": [f"person{number}" for number in range(0, 31, 3)], "region": "1", "missing": "zero"},
]


@pytest.mark.parametrize("phased", [False, True])
@pytest.mark.parametrize("options", SELECTIONS)
def test_same_selection(folder, options, phased):
    names = PHASED if phased else FILES
    first = ba.read(folder / "x.pgen", phased=phased, **options)
    assert 0 < first.bits.n_cols * len(first) < 31 * 40 * 2
    for name in names:
        if (folder / name).exists():
            assert_same_genotypes(ba.read(folder / name, phased=phased, **options), first)


@pytest.mark.parametrize("name", PHASED)
def test_haplotypes_packed_within_a_memory_limit(folder, tmp_path, name):
    path = existing(folder, name)
    ba.pack(path, tmp_path / "packed.zarr", max_memory="48MiB", phased=True)
    packed, table = ba.read(tmp_path / "packed.zarr"), ba.read(path, phased=True)
    assert (packed, packed.row_data, packed.column_data) == (table, table.row_data, table.column_data)


@needs("bcftools")
def test_exchange_with_bcftools(folder, tmp_path):
    for ending, kind in ((".vcf", "v"), (".vcf.gz", "z"), (".bcf", "b"), (".bcf", "u")):
        run("bcftools", "view", folder / "x.bcf", f"-O{kind}", "-o", f"made{ending}", cwd=tmp_path)
        assert_same_genotypes(ba.read(tmp_path / f"made{ending}", phased=True), haplotype_table(ALLELES))
    run("bcftools", "index", folder / "x.vcf.gz", "-o", tmp_path / "x.csi", cwd=tmp_path)
    run("bcftools", "view", folder / "x.vcf.gz", "-r", "X", "-Ov", "-o", "some.vcf", cwd=tmp_path)
    some = haplotype_table(ALLELES)
    assert ba.read(tmp_path / "some.vcf", phased=True).bits == some.bits.take_columns(range(20, 40))
    run("bcftools", "norm", "-m+any", folder / "x.vcf", "-o", "joined.vcf", cwd=tmp_path)
    assert_same_genotypes(ba.read(tmp_path / "joined.vcf", phased=True), haplotype_table(ALLELES))


@needs("plink2")
def test_exchange_with_plink2(folder, tmp_path):
    made = {"made.pgen": ["--make-pgen"], "made.bed": ["--make-bed"], "made.vcf.gz": ["--export", "vcf", "bgz"]}
    for option, name in (("--vcf", "x.vcf.gz"), ("--bcf", "x.bcf"), ("--pfile", "x"), ("--bfile", "x")):
        for file, how in made.items():
            run("plink2", option, folder / name, *how, "--out", "made", "--allow-extra-chr", cwd=tmp_path)
            assert_bits_of_samples(ba.read(tmp_path / file))
    run("plink2", "--pfile", folder / "x", "--export", "vcf", "--out", "made", cwd=tmp_path)
    assert ba.read(tmp_path / "made.vcf", phased=True).bits == haplotype_table(ALLELES).bits


def assert_bits_of_samples(table):
    """Assert the genotypes of all formats; PLINK may have renamed samples and variants."""
    expected = copies_table(ALLELES)
    assert table.bits == expected.bits
    for name in IDENTITY[3:]:
        assert table.column_data[name].tolist() == expected.column_data[name].tolist()
