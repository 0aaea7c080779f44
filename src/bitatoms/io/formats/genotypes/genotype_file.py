"""Genotypes in files: which samples and variants of a file are read, and how their genotypes become bits and back.

All files of genotypes are ordered by variant. Their readers return a `GenotypeFile`; `open_genotypes` makes a table of
it: one row per sample and two columns per variant (carries the allele, carries two copies), or, if haplotypes are
phased, two rows per sample and one column per variant.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....bits import BitMatrix
from ....columns.annotations import Annotations, Labels
from ....columns.table import Names, first_duplicate
from ....columns.variants import (
    chromosomes_of,
    column_data,
    column_names,
    plain_chromosomes,
)
from ....errors import Parameter, warn
from ....formatting import quoted
from ...cells import MISSING_CELL, Cells
from ...limits import CHUNK_GENOTYPES
from ...options import ReadOptions
from ...out_of_core.transposing import rows_of_columns
from ...stream import RowChunk, Source, TableStream, named_chunks, unique_columns
from ...text import read_lines

_MISSING_ALLELES = ("", "0", ".")  # how files write an allele that is not known
UNKNOWN_REFERENCE, UNKNOWN_ALTERNATIVE = "N", "<*>"  # how VCF writes them
_UNKNOWN_REFERENCES = (*_MISSING_ALLELES, UNKNOWN_REFERENCE)
_UNKNOWN_ALTERNATIVES = (*_MISSING_ALLELES, UNKNOWN_ALTERNATIVE, "<NON_REF>")
UNKNOWN, ABSENT = -1, -2  # alleles of a genotype: one that is missing, and the second one of a haploid genotype
_BYTES_PER_COLUMN = 350  # of its names and annotations, also while they are written
HAPLOTYPE = "haplotype"  # the field of `Table.row_data` that numbers the haplotypes of a sample, 1 and 2
_REGION = re.compile(r"([^:]+)(?::([0-9,]+)(-)?([0-9,]*))?")

Indices = NDArray[np.intp]


class AlleleChunk(NamedTuple):
    """The genotypes of some variants as numbers of alleles.

    Attributes
    ----------
    alleles : ndarray of shape (variants, samples, 2)
        The two alleles, by number; `UNKNOWN` if one is missing, `ABSENT` for the second one of a haploid genotype.
    is_phased : ndarray of bool of shape (variants, samples)
        Whether the order of the alleles is that of the haplotypes.
    """

    alleles: NDArray[np.signedinteger]
    is_phased: NDArray[np.bool_]


@dataclass(frozen=True)
class GenotypeFile:
    """The contents of a file of genotypes, of which only what its samples and variants are has been read.

    Attributes
    ----------
    samples : tuple of str
        The names of the samples.
    sample_data : Annotations or None
        What else is known about them.
    variants : Records
        The variants.
    read : callable
        Called with the indices of samples and of variants, both ascending, it yields the genotypes of these variants in
        chunks (see `split_variants`): int8 arrays of shape (variants, samples) with the number of copies of the allele,
        -1 if it is missing, or an `AlleleChunk`.
    """

    samples: Names
    sample_data: Annotations | None
    variants: Records
    read: Callable[[Indices, Indices], Iterator[NDArray[np.int8] | AlleleChunk]]


def open_genotypes(source: Source, options: ReadOptions, file: GenotypeFile) -> TableStream:
    """Open the selected samples and variants of a file as a table."""
    if options.binarize is not None:
        raise source.error(
            "genotypes cannot be thresholded: each variant becomes two columns (carries the allele, carries two "
            "copies); omit ",
            Parameter("binarize"),
        )
    kept = _kept_samples(source, options, file)
    selected = _selected_variants(source, options, file, kept)
    n_copies = 1 if options.phased else 2
    variants = file.variants.data.take(selected)
    found = [file.variants.names[index] for index in selected.tolist()]
    names = _distinct_names(source, options, found, variants)
    columns = unique_columns(source, column_names(names, variants["allele"], n_copies), "number")
    rows, row_data = _rows(file, kept, options.phased)
    shape = len(rows), len(columns)
    source.check_size(*shape, streamable=True)
    source.check_size(*shape[::-1], streamable=True)
    source = source.reserving(_BYTES_PER_COLUMN * len(columns))
    chunks = _chunks(source, options, file, (kept, selected), (rows, names))
    data = column_data(variants, n_copies)
    return TableStream(len(columns), chunks, columns, row_data=row_data, column_data=data)


class Records(NamedTuple):
    """The variants of a file whose records may have several alternative alleles: one variant for each of these.

    Attributes
    ----------
    names : list of str
        The names of the variants: their ids, or chromosome and position.
    data : Annotations
        One value per variant of the fields of `bitatoms.columns.variants.FIELDS` but ``copies``, and of others.
    indices : ndarray
        For each variant, the index of its record.
    numbers : ndarray of int16
        For each variant, the number of its allele, counted from 1.
    n_alternatives : ndarray
        For each variant, how many alternative alleles its record has.
    """

    names: list[str]
    data: Annotations
    indices: Indices
    numbers: NDArray[np.int16]
    n_alternatives: NDArray[np.intp]

    def check_alleles(self, source: Source, chosen: Indices, alleles: NDArray[np.signedinteger]) -> None:
        """Raise FileError if a genotype of one of the chosen variants has an allele that its record does not list."""
        lowest, highest = alleles.min(axis=(1, 2), initial=0), alleles.max(axis=(1, 2), initial=0)
        invalid = (lowest < ABSENT) | (highest > self.n_alternatives[chosen])
        if invalid.any():
            first = int(np.argmax(invalid))
            variant, allele = int(chosen[first]), int(lowest[first] if lowest[first] < ABSENT else highest[first])
            raise source.error(
                f"variant {quoted(self.names[variant])}: a genotype has the allele {allele}, but the record lists "
                f"{self.n_alternatives[variant]} alternative alleles: corrupt"
            )


def parse_records(source: Source, columns: Mapping[str, Sequence[str]], has_lists: bool = True) -> Records:
    """Return the variants of records that are written as in VCF files, given by the names of their columns there.

    CM, QUAL and FILTER may be absent. ``has_lists`` is whether a record may have several alternative alleles. Raises
    FileError if something that must be a number is not.
    """

    def known(name: str, missing: Any = None) -> list[Any]:
        return [missing if text == "." else text for text in columns[name]]

    def numbers(texts: Sequence[str], dtype: Any, what: str = "position") -> NDArray[Any]:
        try:
            return np.array(texts, dtype)
        except (ValueError, OverflowError) as error:
            reason = " ".join(str(error).split())[:80]
            raise source.error(f"a {what} is not a number: {reason}") from error

    fields = {
        "chromosome": columns["CHROM"],
        "position": numbers(columns["POS"], np.int64),
        "id": known("ID"),
        "other": columns["REF"],
    }
    if "CM" in columns:
        fields["distance"] = numbers(known("CM", "nan"), np.float64)
    if "QUAL" in columns:
        fields["quality"] = numbers(known("QUAL", "nan"), np.float32, "quality")
    if "FILTER" in columns:
        fields["filter"] = known("FILTER")
    alleles = columns["ALT"]
    if has_lists:
        return split_records(fields, [[] if text == "." else text.split(",") for text in alleles])
    return split_records(fields, [[allele] for allele in alleles])


def split_variants(selected: Indices, n_samples: int) -> Iterator[Indices]:
    """Yield the indices of variants in chunks whose genotypes are read together."""
    step = max(1, CHUNK_GENOTYPES // max(1, n_samples))
    for start in range(0, len(selected), step):
        yield selected[start : start + step]


def split_records(fields: Mapping[str, Any], alternatives: Sequence[Sequence[str]]) -> Records:
    """Return the variants of records.

    ``fields`` has one value per record of the fields of variants, except the allele and copies, and of others. Alleles
    are given as files write them. A record without alternative alleles is a variant whose allele is not known.
    """
    other = [None if base in _UNKNOWN_REFERENCES else base for base in fields["other"]]
    given = Annotations({**fields, "other": other}, len(alternatives))
    n_alternatives = np.array([len(alleles) for alleles in alternatives], np.intp)
    n_variants = np.maximum(n_alternatives, 1)
    indices = np.repeat(np.arange(len(alternatives)), n_variants)
    numbers = np.arange(len(indices)) - np.repeat(np.cumsum(n_variants) - n_variants, n_variants) + 1
    listed = [allele for record in alternatives for allele in record or [""]]
    alleles = Labels.of([None if allele in _UNKNOWN_ALTERNATIVES else allele for allele in listed])
    order = ("chromosome", "position", "id", "allele", "other")
    others = [name for name in given if name not in order]
    repeated = given.take(indices).updated(allele=alleles)
    variants = Annotations({name: repeated.values_of(name) for name in (*order, *others)}, len(indices))
    places = zip(variants["id"], variants["chromosome"], variants["position"].tolist(), strict=True)
    names = [name or f"{chromosome}:{position}" for name, chromosome, position in places]
    return Records(names, variants, indices, numbers.astype(np.int16), n_alternatives[indices])


def _genotypes(
    source: Source, file: GenotypeFile, phased: bool, kept: Indices, selected: Indices
) -> Iterator[NDArray[np.int8]]:
    """Yield numbers of copies of the allele, or the haplotypes of each sample side by side; -1 is missing.

    A haploid genotype counts as two copies, as in PLINK; of haplotypes, the second one is missing. Raises FileError
    after the last chunk if haplotypes are read and genotypes that carry the allele once have no phase.
    """
    start = n_unphased = 0
    first = ""
    for chunk in file.read(kept, selected):
        if not isinstance(chunk, AlleleChunk):
            yield chunk
            continue
        chosen = selected[start : start + len(chunk.alleles)]
        start += len(chosen)
        file.variants.check_alleles(source, chosen, chunk.alleles)
        counted_alleles = file.variants.numbers[chosen]
        if not phased:
            yield _copies(chunk.alleles, counted_alleles[:, None])
            continue
        haplotypes = np.where(chunk.alleles < 0, np.int8(-1), chunk.alleles == counted_alleles[:, None, None])
        if not chunk.is_phased.all():
            differ = (haplotypes[:, :, 0] != haplotypes[:, :, 1]) & ~chunk.is_phased
            half_known = differ & (haplotypes.min(axis=2) < 0)
            # Nobody knows which of the two haplotypes has the known allele, unless there is only one.
            haplotypes[half_known & (chunk.alleles[:, :, 1] != ABSENT)] = -1
            ambiguous = differ & ~half_known
            if ambiguous.any() and not n_unphased:
                variant, sample = np.argwhere(ambiguous)[0].tolist()
                first = (
                    f"variant {quoted(file.variants.names[chosen[variant]])} of {quoted(file.samples[kept[sample]])}"
                )
            n_unphased += int(ambiguous.sum())
        yield haplotypes.reshape(len(haplotypes), -1)
    if n_unphased:
        problem = "genotype is" if n_unphased == 1 else "genotypes are"
        where = "at" if n_unphased == 1 else "the first at"
        raise source.error(
            f"{n_unphased} heterozygous {problem} not phased, {where} {first}; phase the file with another program, or "
            "omit ",
            Parameter("phased"),
        )


def _copies(alleles: NDArray[np.signedinteger], counted: NDArray[np.int16]) -> NDArray[np.int8]:
    """Return the number of copies of the counted allele in each genotype, -1 if an allele is missing."""
    first, second = alleles[:, :, 0], alleles[:, :, 1]
    copies = (first == counted).astype(np.int8)
    copies += np.where(second == ABSENT, first, second) == counted
    copies[(first < 0) | (second == UNKNOWN)] = -1
    return copies


def sample_name(family: str, individual: str) -> str:
    """Return the name of the individual, preceded by that of the family if it has its own."""
    return individual if family in ("", "0", individual) else f"{family} {individual}"


def _rows(file: GenotypeFile, kept: Indices, phased: bool) -> tuple[list[str], Annotations | None]:
    """Return the names and the annotations of the rows: samples, or their haplotypes."""
    names = [file.samples[index] for index in kept.tolist()]
    if not phased:
        return names, file.sample_data and file.sample_data.take(kept)
    data = (file.sample_data or Annotations({}, len(file.samples))).take(np.repeat(kept, 2))
    number = np.tile(np.array([1, 2], np.int8), len(kept))
    return [f"{name}/{haplotype}" for name in names for haplotype in (1, 2)], data.updated(**{HAPLOTYPE: number})


def _distinct_names(source: Source, options: ReadOptions, names: Sequence[str], variants: Annotations) -> Sequence[str]:
    """Return the names of variants; those with the same name and allele are numbered, or an error."""
    keys = [f"{name}\n{allele}" for name, allele in zip(names, variants["allele"], strict=True)]
    duplicate = first_duplicate(keys)
    if duplicate is None:
        return names
    if options.duplicates == "refuse":
        first, second = [number for number, key in enumerate(keys, 1) if key == duplicate][:2]
        raise source.error(
            f"variants {first} and {second} have the same name {quoted(duplicate.split()[0])} and the same allele; "
            "rename one, or pass ",
            Parameter("duplicates", "number"),
            " to number them",
        )
    return unique_columns(source, names, options.duplicates)


def _chunks(
    source: Source,
    options: ReadOptions,
    file: GenotypeFile,
    selection: tuple[Indices, Indices],
    names: tuple[list[str], Sequence[str]],
) -> Iterator[RowChunk]:
    """Yield the rows; the file is ordered by variant, so all of it is read before the first row."""
    rows, variants = names
    cells = Cells(source, options, lambda variant, row: f"variant {quoted(variants[variant])} of {quoted(rows[row])}")

    def columns() -> Iterator[BitMatrix]:
        start = 0
        for genotypes in _genotypes(source, file, options.phased, *selection):
            is_missing = genotypes < 0
            if is_missing.any():
                variant, row = np.argwhere(is_missing)[0].tolist()
                cells.missing.add(int(is_missing.sum()), start + variant, row)
            yield cells.pack(_states(genotypes, is_missing, options.phased))
            start += len(genotypes)

    shape = len(rows), len(variants) * (1 if options.phased else 2)
    yield from named_chunks(rows_of_columns(source, columns(), shape, cells.check_missing), rows)


def _states(genotypes: NDArray[np.int8], is_missing: NDArray[np.bool_], phased: bool) -> NDArray[np.uint8]:
    """Return the columns of variants as rows of zeros, ones and missing cells."""
    if phased:
        return np.where(is_missing, MISSING_CELL, genotypes).astype(np.uint8)
    states = np.empty((len(genotypes), 2, genotypes.shape[1]), np.uint8)
    np.greater_equal(genotypes, 1, out=states[:, 0], casting="unsafe")
    np.equal(genotypes, 2, out=states[:, 1], casting="unsafe")
    states.swapaxes(1, 2)[is_missing] = MISSING_CELL
    return states.reshape(2 * len(genotypes), -1)


def _kept_samples(source: Source, options: ReadOptions, file: GenotypeFile) -> Indices:
    """Return the indices of the samples to read."""
    if options.keep is None:
        return np.arange(len(file.samples))
    listed = _listed(source, options.keep, "keep")
    # A name alone is that of a sample in any family; a family and a sample are one sample.
    exact = {fields[0] if len(fields) == 1 else sample_name(*fields[:2]) for fields in listed}
    alone = {fields[0] for fields in listed if len(fields) == 1}
    kept = [index for index, name in enumerate(file.samples) if name in exact or name.rpartition(" ")[2] in alone]
    found = {name for index in kept for name in (file.samples[index], file.samples[index].rpartition(" ")[2])}
    _check_selection(source, "keep", "sample", len(exact), len(exact & found))
    return np.array(kept, np.intp)


def _listed(source: Source, given: str | os.PathLike[str] | Sequence[str], option: str) -> list[list[str]]:
    """Return the fields of the lines of a file of names, or of the names themselves; comments are left out."""
    if not isinstance(given, (str, os.PathLike)):
        return [[name] for name in given]
    path = Path(given)
    if not path.is_file():
        raise source.error(Parameter(option, given), ": there is no such file")
    lines = (line.split() for line in read_lines(Source(path, source.format, str(path))))
    return [fields for fields in lines if fields and not fields[0].startswith("#")]


def _check_selection(source: Source, option: str, what: str, n_listed: int, n_found: int) -> None:
    """Raise FileError if nothing that a user listed is in the file; warn if some are not."""
    if not n_found:
        raise source.error(f"none of the {n_listed} {what}s of ", Parameter(option), " is in the file; check the names")
    if n_found < n_listed:
        warn(f"{source.name}: {n_listed - n_found} of the {n_listed} {what}s of ", Parameter(option), " are not in it")


def _selected_variants(source: Source, options: ReadOptions, file: GenotypeFile, kept: Indices) -> Indices:
    """Return the indices of the variants to read."""
    names = file.variants.names
    is_selected = np.ones(len(names), bool)
    if options.region is not None:
        is_selected &= in_regions(source, options.region, file.variants.data)
        if names and not is_selected.any():
            raise source.error("there is no variant in ", Parameter("region", options.region))
    if options.extract is not None:
        listed = {fields[0] for fields in _listed(source, options.extract, "extract")}
        _check_selection(source, "extract", "variant", len(listed), len(listed.intersection(names)))
        is_selected &= np.fromiter((name in listed for name in names), bool, len(names))
    selected = np.flatnonzero(is_selected)
    if options.maf is None:
        return selected
    return selected[_minor_frequencies(source, options, file, kept, selected) >= options.maf]


def in_regions(source: Source, regions: str, variants: Annotations) -> NDArray[np.bool_]:
    """Return which variants are in one of the regions, written as in ``20:1000-2000,X``."""
    chromosomes = chromosomes_of(variants)
    position, found = np.asarray(variants["position"]), np.zeros(variants.n, bool)
    for region in re.split(r",(?![0-9]{3}(?![0-9]))", regions):  # not within a number such as 1,000,000
        parsed = _REGION.fullmatch(region.strip())
        if parsed is None:
            raise source.error(
                Parameter("region", regions), ": not a region; write it as chromosome:first-last, such as 20:1000-2000"
            )
        name, first, dash, last = parsed.groups()
        wanted, *plain = plain_chromosomes([name, *chromosomes.categories])
        same = [each == wanted for each in plain]
        is_inside = np.array([*same, False])[chromosomes.codes]
        if first is not None:
            end = last if last else (first if dash is None else np.iinfo(np.int64).max)
            first, end = (int(str(number).replace(",", "")) for number in (first, end))
            is_inside &= (position >= first) & (position <= end)
        found |= is_inside
    return found


def _minor_frequencies(
    source: Source, options: ReadOptions, file: GenotypeFile, kept: Indices, selected: Indices
) -> NDArray[np.float64]:
    """Return the frequency of the rarer allele of each selected variant among the known alleles; 0 if none is."""
    ploidy, frequencies = 1 if options.phased else 2, [np.zeros(0)]
    for genotypes in _genotypes(source, file, options.phased, kept, selected):
        n_known = ploidy * (genotypes >= 0).sum(axis=1)
        frequency = np.maximum(genotypes, 0).sum(axis=1, dtype=np.int64) / np.maximum(n_known, 1)
        frequencies.append(np.minimum(frequency, 1 - frequency) * (n_known > 0))
    return np.concatenate(frequencies)
