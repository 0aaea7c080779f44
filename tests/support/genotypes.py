"""Tables of genotypes and of haplotypes, and what must be the same in all files of them."""

from __future__ import annotations

import numpy as np

import bitatoms as ba
from bitatoms.bits import BitMatrix
from bitatoms.columns.annotations import Annotations
from bitatoms.columns.variants import column_data, column_names


def random_alleles(n_samples, n_variants, seed=0, missing=0.0):
    """Return alleles of shape (variants, samples, 2): 0, 1, or -1 for both of a missing genotype."""
    random = np.random.default_rng(seed)
    frequencies = random.uniform(0.05, 0.95, n_variants)[:, None, None]
    alleles = (random.random((n_variants, n_samples, 2)) < frequencies).astype(np.int8)
    alleles[random.random((n_variants, n_samples)) < missing] = -1
    return alleles


def variants(n_variants):
    """Return variants on two chromosomes; every fifth one has no id."""
    numbers = range(n_variants)
    bases = [("A", "G"), ("C", "T"), ("GA", "G"), ("T", "TACG")]
    fields = {
        "chromosome": ["1" if number < n_variants // 2 else "X" for number in numbers],
        "position": np.array([100 + 7 * number for number in numbers], np.int64),
        "id": [None if number % 5 == 4 else f"rs{number}" for number in numbers],
        "allele": [bases[number % 4][1] for number in numbers],
        "other": [bases[number % 4][0] for number in numbers],
    }
    return Annotations(fields, n_variants)


def names_of(about):
    """Return the names of variants."""
    places = zip(about["id"], about["chromosome"], about["position"], strict=True)
    return [name or f"{chromosome}:{position}" for name, chromosome, position in places]


def sample_names(n_samples):
    """Return names of samples."""
    return [f"person{number}" for number in range(n_samples)]


def copies_table(alleles, samples=None, sample_data=None):
    """Return the table of samples: two columns per variant."""
    about = variants(len(alleles))
    copies = alleles.sum(axis=2).T.astype(float)
    pairs = np.stack([copies >= 1, copies == 2], axis=2).astype(float)
    pairs[(alleles < 0).any(axis=2).T] = np.nan
    bits = BitMatrix.from_any(pairs.reshape(len(pairs), -1), missing="unknown")
    columns = column_names(names_of(about), about["allele"], 2)
    names = samples or sample_names(alleles.shape[1])
    return ba.Table(bits, names, columns, row_data=sample_data, column_data=column_data(about, 2))


def haplotype_table(alleles, samples=None, sample_data=None):
    """Return the table of haplotypes: two rows per sample."""
    about = variants(len(alleles))
    n_samples = alleles.shape[1]
    haplotypes = alleles.reshape(len(alleles), -1).T.astype(float)
    bits = BitMatrix.from_any(np.where(haplotypes < 0, np.nan, haplotypes), missing="unknown")
    names = [f"{name}/{number}" for name in samples or sample_names(n_samples) for number in (1, 2)]
    data = (sample_data or Annotations({}, n_samples)).take(np.repeat(np.arange(n_samples), 2))
    data = data.updated(haplotype=np.tile(np.array([1, 2], np.int8), n_samples))
    columns = column_names(names_of(about), about["allele"], 1)
    return ba.Table(bits, names, columns, row_data=data, column_data=column_data(about, 1))


IDENTITY = ("chromosome", "position", "id", "allele", "other", "copies")


def assert_same_genotypes(found, expected):
    """Assert the same bits, names, and identities of variants."""
    assert found == expected
    for name in IDENTITY:
        assert found.column_data[name].tolist() == expected.column_data[name].tolist(), name
