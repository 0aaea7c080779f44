"""Synthetic genotypes: three populations, and SNPs that are inherited together in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..bits import BitMatrix
from ..columns.annotations import Annotations, Labels
from ..columns.table import Table
from ..columns.variants import column_data, column_names
from ..validation import as_generator, check_int

POPULATIONS = ("north", "south", "island")
# Kinds of SNPs: which of the four haplotypes of a block have the minor allele. The first, common haplotype has none;
# the last kind arose in a common ancestor of two haplotypes.
_SNP_KINDS = np.array([[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 1, 1, 0]], np.uint8)
_COMMON_WEIGHT = 4.0  # of the common haplotype; the others have weights between 0 and 1 per population
_MUTATION_RATE = 0.003  # share of alleles that differ from those of their haplotype
_MIN_BLOCK, _MAX_BLOCK = 12, 24  # SNPs per block
_DISTANCE = 10_000  # between neighbouring SNPs
_OTHER_ALLELES = {"A": "G", "G": "A", "C": "T", "T": "C"}


def genotypes(n_samples: int = 600, n_snps: int = 300, random_state: Any = 0) -> Table:
    """Generate synthetic genotypes of three populations with linked neighbouring SNPs.

    The SNPs form blocks of 12 to 24 (the last may be longer) that are inherited together. Each block has four
    haplotypes, whose frequencies depend on the population. A person has two of them, with a few mutations. The atoms
    that a search finds are haplotypes: runs of neighbouring SNPs.

    Parameters
    ----------
    n_samples : int, default=600
        Number of persons, a third from each population.
    n_snps : int, default=300
        Number of SNPs. Each has two columns: "rs1001:A", whether the person carries the allele A, and "rs1001:AA",
        whether the person carries it twice, as `bitatoms.read` returns for a PLINK .bed file.
    random_state : int, Generator, RandomState or None, default=0
        The same seed gives the same genotypes.

    Returns
    -------
    Table of n_samples rows and 2 * n_snps columns
        One row per person, named by population and number. ``row_data`` has the populations, ``column_data`` positions
        and alleles.

    Examples
    --------
    >>> import bitatoms as ba
    >>> table = ba.datasets.genotypes()
    >>> table
    Table(600 x 600, density 0.0845, rows 'north 1' ... 'island 200', columns 'rs1001:A' ... 'rs1300:AA')
    >>> result = ba.factorize(table, algebra="or", random_state=0)
    >>> print(*table.names_of(result.atoms[1].nonzero()[0]))
    rs1129:C rs1130:T rs1131:C rs1134:G rs1135:C rs1136:G rs1137:G rs1138:C rs1139:A rs1140:T rs1141:C rs1142:A rs1143:A
    """
    n_samples, n_snps = check_int("n_samples", n_samples, 0), check_int("n_snps", n_snps, 0)
    rng = as_generator(random_state)
    population = np.arange(n_samples) * len(POPULATIONS) // max(1, n_samples)
    copies = np.zeros((n_samples, n_snps), np.uint8)
    for block in _blocks(rng, n_snps):
        haplotypes = _SNP_KINDS[(len(_SNP_KINDS) * rng.random(block.stop - block.start)).astype(int)].T
        weights = np.full((len(POPULATIONS), len(haplotypes)), _COMMON_WEIGHT)
        weights[:, 1:] = rng.random((len(POPULATIONS), len(haplotypes) - 1)) ** 2
        below = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)[:, :-1]
        for _ in ("mother", "father"):
            inherited = (rng.random((n_samples, 1)) > below[population]).sum(axis=1)
            alleles = haplotypes[inherited]
            copies[:, block] += alleles ^ (rng.random(alleles.shape) < _MUTATION_RATE)
    letters = ["ACGT"[int(4 * chance)] for chance in rng.random(n_snps)]
    number = 1 + np.arange(n_samples) - np.searchsorted(population, population)  # within the population
    names = [f"rs{1001 + snp}" for snp in range(n_snps)]
    about: dict[str, Any] = {
        "chromosome": ["1"] * n_snps,
        "position": _DISTANCE * np.arange(1, n_snps + 1),
        "id": names,
        "allele": letters,
        "other": [_OTHER_ALLELES[letter] for letter in letters],
    }
    return Table(
        BitMatrix.from_dense(np.stack([copies >= 1, copies == 2], axis=2).reshape(n_samples, 2 * n_snps)),
        tuple(f"{POPULATIONS[index]} {person}" for index, person in zip(population, number, strict=True)),
        column_names(names, letters, 2),
        row_data={"population": Labels(population.astype(np.int32), POPULATIONS, is_categorical=True)},
        column_data=column_data(Annotations(about, n_snps), 2),
    )


def _blocks(rng: np.random.Generator, n_snps: int) -> Iterator[slice]:
    """Yield consecutive blocks of SNPs."""
    start = 0
    while start < n_snps:
        stop = start + _MIN_BLOCK + int((_MAX_BLOCK - _MIN_BLOCK + 1) * rng.random())
        if n_snps - stop < _MIN_BLOCK:  # too few are left for another block
            stop = n_snps
        yield slice(start, stop)
        start = stop
