"""PLINK 1 genotypes: a .bed file with its .bim and .fam files.

Missing genotypes are unknown. The .bim file gives chromosomes, positions and alleles, the .fam file the pedigree; both
are written back.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ....columns.table import Table
from ....errors import Parameter
from ...errors import FileError
from ...options import ReadOptions
from ...stream import Source, TableStream
from . import plink_tables
from .genotype_file import GenotypeFile, Indices, open_genotypes, split_variants
from .genotype_table import GenotypeTable

_MAGIC = b"\x6c\x1b"
_SNP_MAJOR = b"\x01"

companions = partial(plink_tables.companions, format="bed")


def read(source: Source, options: ReadOptions) -> TableStream:
    """Open a .bed file: one row per individual, two columns per SNP."""
    if options.phased:
        raise source.error("a .bed file has no phase; read a VCF or .pgen file, or omit ", Parameter("phased"))
    with open(source.path, "rb") as file:
        start = file.read(3)
    if start[:2] != _MAGIC:
        raise source.error(
            "not a PLINK .bed file: it begins with other bytes (lists of genome intervals are also called .bed)"
            if start
            else "the file is empty"
        )
    if start[2:] != _SNP_MAJOR:
        raise source.error(
            "the genotypes are in individual-major order, from before PLINK 1; convert the file with "
            "'plink --bfile NAME --make-bed'"
            if start[2:] == b"\0"
            else "corrupt: the third byte is not a known order of genotypes"
        )
    samples, pedigree = plink_tables.read_samples(source, "fam")
    variants = plink_tables.read_variants(source, "bim")
    shape = len(samples), len(variants.names)
    _check_length(source, *shape)
    genotypes = partial(_read_genotypes, source, shape)
    return open_genotypes(source, options, GenotypeFile(samples, pedigree, variants, genotypes))


def _check_length(source: Source, n_individuals: int, n_snps: int) -> None:
    """Raise FileError unless the .bed file has the size for its SNPs and individuals."""
    size, expected = source.path.stat().st_size, 3 + n_snps * -(-n_individuals // 4)
    if size != expected:
        raise source.error(
            f"it has {size} bytes; expected {expected} for the {n_snps} SNPs of its .bim file and the {n_individuals} "
            f"individuals of its .fam file: {'truncated' if size < expected else 'too long'}, or its .bim and .fam are "
            "those of another file"
        )


def _read_genotypes(
    source: Source, shape: tuple[int, int], kept: Indices, selected: Indices
) -> Iterator[NDArray[np.int8]]:
    """Yield the number of copies of the allele of each SNP, -1 if it is missing."""
    from bed_reader import open_bed

    rows = np.s_[:] if len(kept) == shape[0] else kept
    with (
        source.catch_library_errors(),
        # With both counts given, bed-reader opens no other file.
        open_bed(source.path, iid_count=shape[0], sid_count=shape[1], num_threads=1) as bed,
    ):
        for chosen in split_variants(selected, shape[0]):
            is_run = chosen[-1] - chosen[0] + 1 == len(chosen)
            columns = np.s_[int(chosen[0]) : int(chosen[-1]) + 1] if is_run else chosen
            # Missing genotypes are -127.
            yield np.maximum(bed.read((rows, columns), dtype="int8", order="F").T, -1)


def write(table: Table, path: Path, format: str) -> None:
    """Write a table of genotypes as .bed, .bim and .fam files; fields that the table does not contain are 0."""
    genotypes = GenotypeTable.of(table, path)
    if genotypes.phased:
        raise FileError(f"{path.name}: a .bed file cannot store the phase of haplotypes; write .vcf")
    genotypes.warn_not_stored(path, ("distance",), plink_tables.PEDIGREE)
    plink_tables.write_samples(genotypes, path, "fam")
    plink_tables.write_variants(genotypes, path, "bim")
    with open(path, "wb") as bed:
        bed.write(_MAGIC + _SNP_MAJOR)
        for copies in genotypes.genotypes(path):
            bed.write(_encode(copies).tobytes())


def _encode(copies: NDArray[np.int8]) -> NDArray[np.uint8]:
    """Return genotypes as in a .bed file: two bits per individual, 00 two copies, 01 one, 11 none, 10 missing."""
    pairs = np.stack([(copies == 0) | (copies == -1), (copies == 0) | (copies == 1)], axis=2)
    return np.packbits(pairs.reshape(len(copies), -1), axis=1, bitorder="little")
