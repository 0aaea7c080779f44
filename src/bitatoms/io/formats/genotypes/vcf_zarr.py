"""Genotypes in Zarr stores as bio2zarr writes them (VCF Zarr): arrays of the records and samples of a VCF file.

A record with several alternative alleles becomes one variant for each of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...limits import CHUNK_GENOTYPES
from ...options import ReadOptions
from ...stream import Source, TableStream
from ...zarr_reader import ZarrReader
from ..single_cell.anndata_elements import is_array, open_array
from .genotype_file import ABSENT, AlleleChunk, GenotypeFile, Indices, Records, open_genotypes, split_records

_GENOTYPES, _PHASED = "call_genotype", "call_genotype_phased"
_CONTIGS, _POSITIONS, _ALLELES, _SAMPLES = "variant_contig", "variant_position", "variant_allele", "sample_id"


def is_vcf_zarr(store: ZarrReader) -> bool:
    """Return whether a store contains genotypes."""
    return not is_array(store.root) and {_GENOTYPES, _POSITIONS, _ALLELES} <= set(store.children(store.root))


def read_vcf_zarr(source: Source, options: ReadOptions, store: ZarrReader) -> TableStream:
    """Open a store: one row per sample and two columns per variant, or two rows and one column."""
    arrays = _Arrays(source, store)
    genotypes = arrays.open(_GENOTYPES, "i", None, None, None)
    n_records, n_samples, n_alleles = genotypes.shape
    if n_alleles not in (1, 2):
        raise source.error(f"genotypes have {n_alleles} alleles; only haploid and diploid ones are supported")
    records = _records(source, arrays, n_records)
    has_phase = options.phased and _PHASED in arrays.names
    phase = arrays.open(_PHASED, "b", n_records, n_samples) if has_phase else None

    def read(kept: Indices, selected: Indices) -> Iterator[AlleleChunk]:
        with source.catch_library_errors():
            yield from _chunks(source, store, (genotypes, phase), records, (kept, selected))

    samples = tuple(arrays.text(_SAMPLES, n_samples))
    return open_genotypes(source, options, GenotypeFile(samples, None, records.variants, records.names, read))


class _Arrays:
    """The arrays of a store by name. The type and the shape of each are checked; None is any length."""

    def __init__(self, source: Source, store: ZarrReader) -> None:
        self._source, self._store = source, store
        self.names = set(store.children(store.root))

    def open(self, name: str, kinds: str, *shape: int | None) -> Any:
        """Return an array."""
        return open_array(self._source, self._store, self._store.root, name, kinds, *shape)

    def read(self, name: str, kinds: str, *shape: int | None) -> NDArray[Any]:
        """Return the values of an array."""
        array = self.open(name, kinds, *shape)
        return self._store.read(array, *(slice(0, length) for length in array.shape))

    def text(self, name: str, length: int | None = None) -> list[str]:
        """Return the values of an array of text."""
        return list(map(str, self.read(name, "OTU", length).tolist()))


def _records(source: Source, arrays: _Arrays, n_records: int) -> Records:
    """Return the variants of the store."""
    contigs, numbers = arrays.text("contig_id"), arrays.read(_CONTIGS, "iu", n_records)
    if n_records and not 0 <= numbers.min() <= numbers.max() < len(contigs):
        raise source.error(f"its array {_CONTIGS!r} has numbers without a name in 'contig_id': corrupt")
    alleles = [list(map(str, each)) for each in arrays.read(_ALLELES, "OTU", n_records, None).tolist()]
    ids = arrays.text("variant_id", n_records) if "variant_id" in arrays.names else ["."] * n_records
    fields = {
        "chromosome": [contigs[number] for number in numbers.tolist()],
        "position": arrays.read(_POSITIONS, "iu", n_records).astype(np.int64),
        "id": [None if name in ("", ".") else name for name in ids],
        "other": [each[0] for each in alleles],
    }
    if "variant_quality" in arrays.names:
        fields["quality"] = arrays.read("variant_quality", "f", n_records)
    if {"variant_filter", "filter_id"} <= arrays.names:
        names = np.array(arrays.text("filter_id"), object)
        applied = arrays.read("variant_filter", "b", n_records, len(names))
        fields["filter"] = [";".join(names[row]) or None for row in applied]
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
        nothing = np.empty((len(selected), 0, 2), np.int16)
        yield AlleleChunk(nothing, records.numbers[selected], np.empty(nothing.shape[:2], bool))
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
            records.check_alleles(source, part, alleles)
            in_order = np.zeros(alleles.shape[:2], bool) if is_phased is None else is_phased[at]
            yield AlleleChunk(alleles, records.numbers[part], in_order)
