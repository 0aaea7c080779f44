"""Genotypes in Zarr stores as bio2zarr writes them (VCF Zarr): arrays of the records and samples of a VCF file.

A record with several alternative alleles becomes one variant for each of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...limits import CHUNK_BITS
from ...options import ReadOptions
from ...stream import Source, TableStream
from ...zarr_reader import ZarrReader
from ..single_cell.anndata_elements import is_array
from .genotype_file import ABSENT, AlleleChunk, GenotypeFile, Indices, Records, open_genotypes, split_records

_GENOTYPES, _PHASED = "call_genotype", "call_genotype_phased"
_CONTIGS, _POSITIONS, _ALLELES, _SAMPLES = "variant_contig", "variant_position", "variant_allele", "sample_id"
_CHUNK_GENOTYPES = CHUNK_BITS // 4  # read together; each takes about eight bytes until it is two bits


def is_vcf_zarr(store: ZarrReader) -> bool:
    """Return whether a store contains genotypes."""
    return not is_array(store.root) and {_GENOTYPES, _POSITIONS, _ALLELES} <= set(store.children(store.root))


def read_vcf_zarr(source: Source, options: ReadOptions, store: ZarrReader) -> TableStream:
    """Open a store: one row per sample and two columns per variant, or two rows and one column."""
    genotypes, n_records = _genotypes(source, store)
    samples = tuple(_text(source, store, _SAMPLES, genotypes.shape[1]))
    records = _records(source, store, n_records)
    has_phase = _PHASED in store.children(store.root)
    phase = store.child(store.root, _PHASED) if has_phase and options.phased else None
    if phase is not None and (phase.shape != genotypes.shape[:2] or phase.dtype != np.bool_):
        raise source.error(f"its array {_PHASED!r} must contain one boolean per genotype")

    def read(kept: Indices, selected: Indices) -> Iterator[AlleleChunk]:
        with source.catch_library_errors():
            yield from _chunks(source, store, (genotypes, phase), records, (kept, selected))

    return open_genotypes(source, options, GenotypeFile(samples, None, records.variants, records.names, read))


def _genotypes(source: Source, store: ZarrReader) -> tuple[Any, int]:
    """Return the array of genotypes and the number of records."""
    array = store.child(store.root, _GENOTYPES)
    shape: tuple[int, ...] = getattr(array, "shape", ())
    if array is None or len(shape) != 3 or array.dtype.kind != "i":
        raise source.error(f"its array {_GENOTYPES!r} must contain integers in three dimensions: corrupt")
    if shape[2] not in (1, 2):
        raise source.error(f"genotypes have {shape[2]} alleles; only haploid and diploid ones are supported")
    return array, shape[0]


def _array(source: Source, store: ZarrReader, name: str, kinds: str, length: int | None, n_axes: int = 1) -> NDArray:
    """Return an array, after checking its type and its length."""
    array = store.child(store.root, name)
    if array is None or not is_array(array):
        raise source.error(f"there is no array {name!r}, so this is not a complete VCF Zarr store")
    if len(array.shape) != n_axes or length not in (None, array.shape[0]) or array.dtype.kind not in kinds:
        expected = "" if length is None else f"{length} values along the first of "
        raise source.error(
            f"its array {name!r} has the shape {array.shape} and the type {array.dtype}; expected {expected}{n_axes} "
            "axes: corrupt"
        )
    return store.read(array, *(slice(0, size) for size in array.shape))


def _text(source: Source, store: ZarrReader, name: str, length: int | None) -> list[str]:
    """Return an array of text."""
    return [str(text) for text in _array(source, store, name, "OTU", length).tolist()]


def _records(source: Source, store: ZarrReader, n_records: int) -> Records:
    """Return the variants of the store."""
    present = set(store.children(store.root))
    contigs = _text(source, store, "contig_id", None)
    numbers = _array(source, store, _CONTIGS, "iu", n_records)
    if n_records and not 0 <= numbers.min() <= numbers.max() < len(contigs):
        raise source.error(f"its array {_CONTIGS!r} has numbers without a name in 'contig_id': corrupt")
    stored = _array(source, store, _ALLELES, "OTU", n_records, 2)
    if not stored.shape[1]:
        raise source.error(f"its array {_ALLELES!r} has no alleles: corrupt")
    alleles = [list(map(str, each)) for each in stored.tolist()]
    ids = _text(source, store, "variant_id", n_records) if "variant_id" in present else ["."] * n_records
    fields = {
        "chromosome": [contigs[number] for number in numbers.tolist()],
        "position": _array(source, store, _POSITIONS, "iu", n_records).astype(np.int64),
        "id": [None if name in ("", ".") else name for name in ids],
        "other": [each[0] for each in alleles],
    }
    if "variant_quality" in present:
        fields["quality"] = _array(source, store, "variant_quality", "f", n_records)
    if {"variant_filter", "filter_id"} <= present:
        names = np.array(_text(source, store, "filter_id", None), object)
        applied = _array(source, store, "variant_filter", "b", n_records, 2)
        if applied.shape[1] != len(names):
            raise source.error("its array 'variant_filter' does not fit 'filter_id': corrupt")
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
    step = min(max(1, _CHUNK_GENOTYPES // (end - first)), max(1, (genotypes.shards or genotypes.chunks)[0]))
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
