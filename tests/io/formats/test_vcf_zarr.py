"""Genotypes in Zarr stores, with the arrays of the VCF Zarr specification; files of bio2zarr are in tests/formats."""

import shutil

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.io.formats.genotypes import vcf_zarr
from support.files import assert_read_error
from support.genotypes import (
    assert_same_genotypes,
    copies_table,
    haplotype_table,
    random_alleles,
    sample_names,
    variants,
)

zarr = pytest.importorskip("zarr")
pytestmark = pytest.mark.filterwarnings("ignore:.*missing value")


def text_array(values):
    """Return an array of text of variable length."""
    return np.array(values, dtype=np.dtypes.StringDType())


def arrays_of(alleles):
    """Return the arrays of a store."""
    about = variants(len(alleles))
    contigs = ["1", "X"]
    return {
        "call_genotype": alleles,
        "call_genotype_phased": np.ones(alleles.shape[:2], bool),
        "contig_id": text_array(contigs),
        "filter_id": text_array(["PASS", "q10"]),
        "sample_id": text_array(sample_names(alleles.shape[1])),
        "variant_allele": text_array(list(zip(about["other"], about["allele"], strict=True))),
        "variant_contig": np.array([contigs.index(name) for name in about["chromosome"]], np.int8),
        "variant_filter": np.tile([True, False], (len(alleles), 1)),
        "variant_id": text_array([name or "." for name in about["id"]]),
        "variant_position": about["position"].astype(np.int32),
        "variant_quality": np.full(len(alleles), 7.5, np.float32),
    }


def write_store(path, arrays, zarr_format=3, **chunks):
    """Write a store with these arrays."""
    shutil.rmtree(path, ignore_errors=True)
    group = zarr.open_group(path, mode="w", zarr_format=zarr_format, attributes={"vcf_zarr_version": "0.4"})
    for name, values in arrays.items():
        shape = tuple(max(1, length) for length in values.shape)
        group.create_array(name, data=values, chunks=chunks.get(name, shape))
    return path


@pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning")
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(("n_samples", "n_variants"), [(1, 1), (33, 65)])
def test_genotypes_are_read(tmp_path, monkeypatch, n_samples, n_variants, zarr_format):
    monkeypatch.setattr(vcf_zarr, "CHUNK_GENOTYPES", 300)
    alleles = random_alleles(n_samples, n_variants, missing=0.1)
    chunks = {"call_genotype": (20, 10, 2), "call_genotype_phased": (20, 10)}
    path = write_store(tmp_path / "g.zarr", arrays_of(alleles), zarr_format, **chunks)
    table = ba.read(path)
    assert_same_genotypes(table, copies_table(alleles))
    assert set(table.column_data["filter"]) == {"PASS"}
    assert set(table.column_data["quality"]) == {7.5}
    assert_same_genotypes(ba.read(path, phased=True), haplotype_table(alleles))
    ba.pack(path, tmp_path / "packed.zarr", max_memory="48MiB")
    assert_same_genotypes(ba.read(tmp_path / "packed.zarr"), copies_table(alleles))


@pytest.mark.parametrize("dtype", [np.int8, np.int64])
@pytest.mark.parametrize("ploidy", [1, 2])
def test_genotypes_of_any_number_of_alleles_equal_those_written(tmp_path, dtype, ploidy):
    """Records with none to three alternative alleles; genotypes that are missing, half missing, haploid or absent."""
    random, n_records, n_samples = np.random.default_rng(ploidy), 12, 40
    n_alleles = random.integers(1, 5, n_records)
    alleles = [[base if number < count else "" for number, base in enumerate("ACGT")] for count in n_alleles]
    genotypes = random.integers(0, n_alleles[:, None, None], (n_records, n_samples, ploidy)).astype(dtype)
    genotypes[random.random(genotypes.shape) < 0.1] = -1
    if ploidy == 2:
        genotypes[..., 1][random.random((n_records, n_samples)) < 0.2] = -2
        genotypes[0, :9] = -2
    arrays = arrays_of(genotypes) | {"variant_allele": text_array(alleles)}
    expected, haplotypes, named = [], [], []
    for record, listed, position in zip(genotypes, alleles, arrays["variant_position"].tolist(), strict=True):
        for counted in [number for number in (1, 2, 3) if listed[number]] or [None]:
            calls = [[allele for allele in call if allele != -2] for call in record.tolist()]
            shares = [np.nan if not call or -1 in call else call.count(counted) / len(call) for call in calls]
            expected += [[share if np.isnan(share) else share >= least for share in shares] for least in (0.5, 1)]
            cells = [np.nan if allele < 0 else allele == counted for allele in record.ravel().tolist()]
            haplotypes.append(cells)
            named += [(position, listed[counted] if counted else None, copies) for copies in (1, 2)]
    path = write_store(tmp_path / "g.zarr", arrays, call_genotype=(5, 7, 1))
    table = ba.read(path)
    np.testing.assert_array_equal(table.to_dense(float), np.transpose(expected))
    assert table.row_names == tuple(sample_names(n_samples))
    assert list(zip(*(table.column_data[name] for name in ("position", "allele", "copies")), strict=True)) == named
    if ploidy == 2:
        np.testing.assert_array_equal(ba.read(path, phased=True).to_dense(float), np.transpose(haplotypes))


def test_samples_and_variants_are_selected(tmp_path):
    alleles = random_alleles(20, 30)
    path = write_store(tmp_path / "g.zarr", arrays_of(alleles), call_genotype=(7, 6, 2))
    expected = copies_table(alleles).to_dense()
    some = ba.read(path, keep=["person5", "person17"], region="X:212-")
    assert some.to_dense().tolist() == expected[[5, 17], 32:].tolist()
    assert ba.read(path, extract=["rs2", "rs3"], maf=0.01).to_dense().tolist() == expected[:, 4:8].tolist()


def test_genotypes_without_phase(tmp_path):
    arrays = arrays_of(np.array([[[0, 1], [1, 1]], [[1, 0], [-1, 1]]], np.int8))
    arrays["call_genotype_phased"][:] = False
    path = write_store(tmp_path / "g.zarr", arrays)
    problem = "2 heterozygous genotypes are not phased, the first at variant 'rs0' of 'person0'"
    assert_read_error(path, problem, "omit phased", phased=True)
    del arrays["call_genotype_phased"]
    assert_read_error(write_store(path, arrays), problem, phased=True)
    arrays["call_genotype"][:, 0] = 1
    haplotypes = ba.read(write_store(path, arrays), phased=True).to_dense(float)
    np.testing.assert_array_equal(haplotypes, [[1, 1], [1, 1], [1, np.nan], [1, np.nan]])


def test_options_of_genotypes_do_not_apply_to_other_stores(tmp_path):
    ba.write(copies_table(random_alleles(3, 4)), tmp_path / "packed.zarr")
    for options in ({"phased": True}, {"region": "1"}, {"maf": 0.1}, {"keep": ["person1"]}, {"extract": ["rs1"]}):
        assert_read_error(tmp_path / "packed.zarr", "applies to stores with genotypes", "omit it", **options)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"call_genotype": np.zeros((4, 3), np.int8)}, "no valid 'call_genotype': shape (4, 3)"),
        ({"call_genotype": np.zeros((4, 3, 4), np.int8)}, "genotypes have 4 alleles"),
        ({"call_genotype": np.full((4, 3, 2), 2, np.int8)}, "a genotype has the allele 2, but the record lists 1"),
        ({"call_genotype": np.full((4, 3, 2), -5, np.int8)}, "a genotype has the allele -5"),
        ({"call_genotype": np.full((4, 3, 2), 65537, np.int32)}, "a genotype has the allele 65537"),
        ({"sample_id": text_array(["a"])}, "no valid 'sample_id': shape (1,)"),
        ({"sample_id": None}, "has no array 'sample_id'"),
        ({"variant_position": np.zeros(4)}, "no valid 'variant_position': shape (4,), type float64"),
        ({"variant_contig": np.full(4, 7)}, "numbers without a name in 'contig_id'"),
        ({"variant_filter": np.zeros((4, 1), bool)}, "no valid 'variant_filter': shape (4, 1)"),
    ],
)
def test_malformed_stores_are_errors(tmp_path, changes, part):
    arrays = {
        name: values for name, values in (arrays_of(random_alleles(3, 4)) | changes).items() if values is not None
    }
    assert_read_error(write_store(tmp_path / "g.zarr", arrays), part)
