"""Genotypes in Zarr stores as bio2zarr writes them (VCF Zarr): arrays of the records and samples of a VCF file.

A record with several alternative alleles becomes one variant for each of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ...limits import CHUNK_GENOTYPES
from ...options import ReadOptions
from ...stream import Source, TableStream
from ...zarr_reader import ZarrReader
from ..single_cell.anndata_elements import is_array, open_array, read_array, read_texts
from .genotype_file import ABSENT, AlleleChunk, GenotypeFile, Indices, Records, open_genotypes, split_records

_GENOTYPES, _PHASED = "call_genotype", "call_genotype_phased"
_CONTIGS, _POSITIONS, _ALLELES, _SAMPLES = "variant_contig", "variant_position", "variant_allele", "sample_id"


def is_vcf_zarr(store: ZarrReader) -> bool:
    """Return whether a store contains genotypes."""
    return not is_array(store.root) and {_GENOTYPES, _POSITIONS, _ALLELES} <= set(store.children(store.root))


def read_vcf_zarr(source: Source, options: ReadOptions, store: ZarrReader) -> TableStream:
    """Open a store: one row per sample and two columns per variant, or two rows and one column."""
    genotypes = open_array(source, store, store.root, _GENOTYPES, "i", None, None, None)
    n_records, n_samples, n_alleles = genotypes.shape
    if n_alleles not in (1, 2):
        raise source.error(f"genotypes have {n_alleles} alleles; only haploid and diploid ones are supported")
    records = _records(source, store, n_records)
    phase = None
    if options.phased and _PHASED in store.children(store.root):
        phase = open_array(source, store, store.root, _PHASED, "b", n_records, n_samples)

    def read(kept: Indices, selected: Indices) -> Iterator[AlleleChunk]:
        with source.catch_library_errors():
            yield from _chunks(source, store, (genotypes, phase), records, (kept, selected))

    samples = tuple(read_texts(source, store, store.root, _SAMPLES, n_samples))
    return open_genotypes(source, options, GenotypeFile(samples, None, records, read))


def _records(source: Source, store: ZarrReader, n_records: int) -> Records:
    """Return the variants of the store."""
    texts = partial(read_texts, source, store, store.root)
    numbers = partial(read_array, source, store, store.root)
    names = store.children(store.root)
    contigs, chromosomes = texts("contig_id"), numbers(_CONTIGS, "iu", n_records)
    if n_records and not 0 <= chromosomes.min() <= chromosomes.max() < len(contigs):
        raise source.error(f"its array {_CONTIGS!r} has numbers without a name in 'contig_id': corrupt")
    alleles = [list(map(str, each)) for each in numbers(_ALLELES, "OTU", n_records, None).tolist()]
    ids = texts("variant_id", n_records) if "variant_id" in names else ["."] * n_records
    fields = {
        "chromosome": [contigs[number] for number in chromosomes.tolist()],
        "position": numbers(_POSITIONS, "iu", n_records).astype(np.int64),
        "id": [None if name in ("", ".") else name for name in ids],
        "other": [each[0] for each in alleles],
    }
    if "variant_quality" in names:
        fields["quality"] = numbers("variant_quality", "f", n_records)
    if "variant_filter" in names and "filter_id" in names:
        filters = np.array(texts("filter_id"), object)
        applied = numbers("variant_filter", "b", n_records, len(filters))
        fields["filter"] = [";".join(filters[row]) or None for row in applied]
    return split_records(fields, [[allele for allele in each[1:] if allele] for each in alleles])


def _chunks(
    source: Source,
    store: ZarrReader,
    arrays: tuple[Any, Any | None],
    records: Records,
    selection: tuple[Indices, Indices],
) -> Iterator[AlleleChunk]:
    """Yield the alleles of the selected variants."""
    (genotypes, phase), (kept, selected) = arrays, selection
    if not len(kept):
        yield AlleleChunk(np.empty((len(selected), 0, 2), np.int16), np.empty((len(selected), 0), bool))
        return
    first, end = int(kept[0]), int(kept[-1]) + 1
    step = min(max(1, CHUNK_GENOTYPES // (end - first)), max(1, (genotypes.shards or genotypes.chunks)[0]))
    indices = records.indices[selected]
    for start in range(0, genotypes.shape[0], step):
        low, high = np.searchsorted(indices, (start, start + step))
        chunk, rows = selected[low:high], slice(start, min(start + step, genotypes.shape[0]))
        # The variants of a record are read together, of which one may have dozens of alleles.
        for begin in range(0, len(chunk), step):
            part = chunk[begin : begin + step]
            if not begin:
                known = store.read(genotypes, rows, slice(first, end), slice(0, genotypes.shape[2]))
                is_phased = None if phase is None else store.read(phase, rows, slice(first, end))
            at = np.ix_(records.indices[part] - start, kept - first)
            alleles = np.full((len(part), len(kept), 2), ABSENT, np.promote_types(known.dtype, np.int16))
            alleles[:, :, : known.shape[2]] = known[at]
            in_order = np.zeros(alleles.shape[:2], bool) if is_phased is None else is_phased[at]
            yield AlleleChunk(alleles, in_order)
