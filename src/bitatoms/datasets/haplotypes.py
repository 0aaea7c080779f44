"""Made-up genotypes: three populations, and SNPs that are inherited together in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..bits import BitMatrix
from ..table import Table
from ..validation import as_generator, check_int

POPULATIONS = ("north", "south", "island")
# On which of the four haplotypes of a block a SNP has the rarer allele: the first, the common one, has none of them;
# some SNPs arose in an ancestor of two.
_BRANCHES = np.array([[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 1, 1, 0]], np.uint8)
_COMMON = 4.0  # weight of the common haplotype; each of the others has one between 0 and 1 in each population
_MUTATED = 0.003  # share of alleles that are not those of their haplotype
_SHORTEST, _LONGEST = 12, 24  # SNPs in a block


def genotypes(n_samples: int = 600, n_snps: int = 300, random_state: Any = 0) -> Table:
    """Make up genotypes of three populations, in which neighbouring SNPs are linked.

    No person ever had these. The SNPs lie in blocks of a dozen or two that are inherited as a whole: each has four
    haplotypes, more or less frequent by population, of which a person has two, with a mutation here and there. The
    atoms that a search finds are haplotypes: runs of neighbouring SNPs.

    Parameters
    ----------
    n_samples : int, default=600
        How many persons, a third of each population.
    n_snps : int, default=300
        How many SNPs, two columns each: "rs1001:A", whether the person carries the allele A, and "rs1001:AA", whether
        twice; as `bitatoms.read` makes them of a PLINK .bed file.
    random_state : int, Generator, RandomState or None, default=0
        The same number gives the same genotypes.

    Returns
    -------
    Table of n_samples rows and 2 * n_snps columns
        A person a row, named by population and number.

    Examples
    --------
    >>> import bitatoms as ba
    >>> table = ba.datasets.genotypes()
    >>> table
    Table(600 x 600, density 0.0845, rows 'north 1' ... 'island 200', columns 'rs1001:A' ... 'rs1300:AA')
    >>> result = ba.factorize(table, algebra="or", random_state=0)
    >>> print(*table.names_of(result.atoms[1].nonzero()[0]))
    rs1180:A rs1181:A rs1182:C rs1183:A rs1186:A rs1187:T rs1190:G rs1193:A rs1194:G rs1195:C
    """
    n_samples, n_snps = check_int("n_samples", n_samples, 0), check_int("n_snps", n_snps, 0)
    rng = as_generator(random_state)
    population = np.arange(n_samples) * len(POPULATIONS) // max(1, n_samples)
    copies = np.zeros((n_samples, n_snps), np.uint8)
    for block in _blocks(rng, n_snps):
        haplotypes = _BRANCHES[(len(_BRANCHES) * rng.random(block.stop - block.start)).astype(int)].T
        weights = np.full((len(POPULATIONS), len(haplotypes)), _COMMON)
        weights[:, 1:] = rng.random((len(POPULATIONS), len(haplotypes) - 1)) ** 2
        below = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)[:, :-1]
        for _ in ("mother", "father"):
            inherited = (rng.random((n_samples, 1)) > below[population]).sum(axis=1)
            alleles = haplotypes[inherited]
            copies[:, block] += alleles ^ (rng.random(alleles.shape) < _MUTATED)
    letters = ["ACGT"[int(4 * chance)] for chance in rng.random(n_snps)]
    number = 1 + np.arange(n_samples) - np.searchsorted(population, population)  # within the population
    return Table(
        BitMatrix.from_dense(np.stack([copies >= 1, copies == 2], axis=2).reshape(n_samples, 2 * n_snps)),
        tuple(f"{POPULATIONS[home]} {place}" for home, place in zip(population, number, strict=True)),
        tuple(f"rs{1001 + snp}:{letter * times}" for snp, letter in enumerate(letters) for times in (1, 2)),
    )


def _blocks(rng: np.random.Generator, n_snps: int) -> Iterator[slice]:
    """Blocks of SNPs, one beside the other."""
    start = 0
    while start < n_snps:
        stop = start + _SHORTEST + int((_LONGEST - _SHORTEST + 1) * rng.random())
        if n_snps - stop < _SHORTEST:  # what is left is no block
            stop = n_snps
        yield slice(start, stop)
        start = stop
