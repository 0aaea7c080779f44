"""PLINK 2 genotypes: a .pgen file with its .pvar and .psam files.

A variant with several alternative alleles becomes one variant for each of them. Dosages of imputed genotypes are
ignored: the genotypes that PLINK 2 calls from them are read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....columns.table import Table
from ....errors import warn
from ....formatting import be, counted
from ...errors import FileError
from ...options import ReadOptions
from ...stream import Source, TableStream
from . import plink_tables
from .genotype_file import AlleleChunk, GenotypeFile, Indices, Records, open_genotypes, split_variants
from .genotype_table import GenotypeTable

_MAGIC = b"\x6c\x1b"
_PLINK_1 = b"\x01"
_MISSING = -9

companions = partial(plink_tables.companions, format="pgen")


def read(source: Source, options: ReadOptions) -> TableStream:
    """Open a .pgen file: one row per sample and two columns per variant, or two rows and one column."""
    with open(source.path, "rb") as file:
        start = file.read(3)
    if start[:2] != _MAGIC or start[2:] == _PLINK_1:
        raise source.error("not a PLINK 2 .pgen file: it begins with other bytes" if start else "the file is empty")
    samples, sample_data = plink_tables.read_samples(source, "psam")
    records = plink_tables.read_variants(source, "pvar")

    def genotypes(kept: Indices, selected: Indices) -> Iterator[NDArray[np.int8] | AlleleChunk]:
        has_alleles = options.phased or bool((records.n_alternatives[selected] > 1).any())
        with source.catch_library_errors(), _open(source, records, len(samples), kept) as pgen:
            for chunk in split_variants(selected, len(kept)):
                indices = records.indices[chunk].astype(np.uint32)
                yield (_read_alleles if has_alleles else _read_copies)(pgen, indices, len(kept))

    # Opening the file raises an error if it has another number of samples or variants.
    with source.catch_library_errors(), _open(source, records, len(samples), np.arange(len(samples))):
        contents = GenotypeFile(samples, sample_data, records, genotypes)
    return open_genotypes(source, options, contents)


def _open(source: Source, records: Records, n_samples: int, kept: Indices) -> Any:
    """Open the file with pgenlib."""
    from pgenlib import PgenReader

    n_alleles = np.maximum(records.n_alternatives[records.numbers == 1], 1) + 1
    offsets = np.concatenate([[0], np.cumsum(n_alleles)]).astype(np.uintp)
    return PgenReader(
        os.fsencode(os.path.abspath(source.path)),
        raw_sample_ct=n_samples,
        variant_ct=len(n_alleles),
        sample_subset=None if len(kept) == n_samples else kept.astype(np.uint32),
        allele_idx_offsets=offsets if (n_alleles > 2).any() else None,
    )


def _read_copies(pgen: Any, indices: NDArray[np.uint32], n_kept: int) -> NDArray[np.int8]:
    """Return the number of copies of the allele of each variant, -1 if it is missing."""
    copies = np.empty((len(indices), n_kept), np.int8)
    pgen.read_list(indices, copies)
    return np.maximum(copies, -1, out=copies)


def _read_alleles(pgen: Any, indices: NDArray[np.uint32], n_kept: int) -> AlleleChunk:
    """Return the alleles of the genotypes of each variant."""
    alleles = np.empty((len(indices), 2 * n_kept), np.int32)
    is_phased = np.empty((len(indices), n_kept), bool)
    pgen.read_alleles_and_phasepresent_list(indices, alleles, is_phased)
    known = np.maximum(alleles, -1).astype(np.int16)
    return AlleleChunk(known.reshape(len(indices), n_kept, 2), is_phased)


def write(table: Table, path: Path, format: str) -> None:
    """Write a table of genotypes or haplotypes as .pgen, .pvar and .psam files."""
    from pgenlib import PgenWriter

    genotypes = GenotypeTable.of(table, path)
    n_samples, n_variants = len(genotypes.samples), genotypes.variants.n
    if not (n_samples and n_variants):
        raise FileError(f"{path.name}: a .pgen file needs at least one sample and one variant; write .bed or .npz")
    genotypes.warn_not_stored(path, ("distance", "quality", "filter"), plink_tables.PEDIGREE)
    plink_tables.write_samples(genotypes, path, "psam")
    plink_tables.write_variants(genotypes, path, "pvar")
    # The other allele of a .bed file need not be the reference allele.
    writer = PgenWriter(os.fsencode(path), n_samples, n_variants, True, hardcall_phase_present=genotypes.phased)
    n_half_known = 0
    try:
        for chunk in genotypes.genotypes(path):
            if genotypes.phased:
                pairs = chunk.reshape(len(chunk), n_samples, 2).astype(np.int32)
                n_missing = (pairs < 0).sum(axis=2)
                n_half_known += int((n_missing == 1).sum())
                pairs[n_missing > 0] = _MISSING
                writer.append_alleles_batch(pairs.reshape(chunk.shape), True)
            else:
                writer.append_biallelic_batch(np.where(chunk < 0, np.int8(_MISSING), chunk))
    finally:
        writer.close()
    if n_half_known:
        written = f"{counted(n_half_known, 'genotype')} {be(n_half_known)}"
        warn(f"{path.name}: {written} written as missing because one of the two haplotypes is unknown")
