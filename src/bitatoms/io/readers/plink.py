"""PLINK 1 genotypes: a .bed file with its .bim and .fam files.

Missing genotypes are unknown. The .bim file gives chromosomes, positions and alleles, the .fam file the pedigree; both
are written back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...columns.annotations import Annotations, Labels
from ...columns.table import Names, Table
from ...errors import Parameter
from ..errors import FileError
from ..genotypes import (
    PEDIGREE,
    GenotypeFile,
    GenotypeTable,
    Indices,
    alleles_of,
    as_numbers,
    check_not_binarized,
    open_genotypes,
    sample_name,
    text_fields,
    variant_name,
)
from ..options import ReadOptions
from ..stream import CHUNK_BITS, Source, TableStream
from ..text_lines import open_text_writer, read_lines

_MAGIC = b"\x6c\x1b"
_SNP_MAJOR = b"\x01"
_CHUNK_CELLS = CHUNK_BITS // 2  # cells read together; each takes about four bytes until it is a bit


def companions(path: Path) -> tuple[str, ...]:
    """Return the names of the .bim and .fam files of a .bed file."""
    return tuple(_companion(path, kind).name for kind in ("bim", "fam"))


def _companion(path: Path, kind: str) -> Path:
    """Return the path of the file that lists the SNPs ("bim") or the individuals ("fam") of a .bed file."""
    suffix = kind.upper() if path.suffix.isupper() else kind
    if path.suffix == f".{suffix}":
        raise FileError(f"{path}: this is the .{kind} file that belongs to a .bed file; pass the .bed file")
    return path.with_suffix(f".{suffix}")


def read(source: Source, options: ReadOptions) -> TableStream:
    """Open a .bed file: one row per individual, two columns per SNP."""
    check_not_binarized(source, options)
    if options.phased:
        raise source.error("a .bed file has no phase; read a VCF, .pgen or .haps file, or omit ", Parameter("phased"))
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
    samples, pedigree = _read_individuals(source)
    names, variants = _read_snps(source)
    _check_length(source, len(samples), len(names))

    def genotypes(samples_kept: Indices, selected: Indices) -> Iterator[NDArray[np.int8]]:
        yield from _read_genotypes(source, (len(samples), len(names)), samples_kept, selected)

    return open_genotypes(source, options, GenotypeFile(samples, pedigree, variants, names, genotypes))


def _read_individuals(source: Source) -> tuple[Names, Annotations]:
    """Return the names of the individuals of the .fam file, and their families and pedigree."""
    lines = list(_read_fields(source, "fam"))
    fields = {name: [line[2 + column] for line in lines] for column, name in enumerate(PEDIGREE)}
    families = {"family": [line[0] for line in lines]}
    return tuple(sample_name(*line[:2]) for line in lines), Annotations({**families, **fields}, len(lines))


def _read_snps(source: Source) -> tuple[list[str], Annotations]:
    """Return the names of the SNPs of the .bim file, and what it contains about them."""
    seen: dict[str, str] = {}  # a field that is repeated is in memory once
    columns: tuple[list[str], ...] = ([], [], [], [], [], [])
    for line in _read_fields(source, "bim"):
        for column, field in zip(columns, line, strict=True):
            column.append(field if column is columns[1] or column is columns[3] else seen.setdefault(field, field))
    chromosomes, ids, distances, positions, alleles, others = columns
    name = _companion(source.path, "bim").name
    bases = as_numbers(source, positions, np.int64, name)
    names = [variant_name(*each) for each in zip(ids, chromosomes, bases.tolist(), strict=True)]
    fields = {
        "chromosome": Labels.of(chromosomes),
        "position": bases,
        "id": Labels.of([None if name == "." else name for name in ids]),
        "allele": alleles_of(alleles),
        "other": alleles_of(others),
        "distance": as_numbers(source, distances, np.float64, name),
    }
    return names, Annotations(fields, len(ids))


def _read_fields(source: Source, kind: str) -> Iterator[list[str]]:
    """Yield the fields of each line of the .bim or .fam file; they are separated by blanks or tabs."""
    path = _companion(source.path, kind)
    contents = "SNPs" if kind == "bim" else "individuals"
    if not path.is_file():
        raise source.error(f"{path.name}, which lists the {contents}, is missing; a .bed file needs its .bim and .fam")
    with open(path, "rb") as file:
        if file.read(2) == b"\x1f\x8b":
            raise source.error(f"{path.name}, which lists the {contents}, is compressed; decompress it")
    for number, line in enumerate(read_lines(Source(path, source.format, f"{source.name}: {path.name}")), 1):
        fields = re.findall(r"[^ \t\r\n]+", line)
        if not fields:
            continue
        if len(fields) != 6:
            raise source.error(f"{path.name}: line {number} has {len(fields)} fields; expected 6")
        yield fields


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

    chunk_snps = max(1, _CHUNK_CELLS // max(1, 2 * shape[0]))
    rows = np.s_[:] if len(kept) == shape[0] else kept
    with (
        source.catch_library_errors(),
        # With both counts given, bed-reader opens no other file.
        open_bed(source.path, iid_count=shape[0], sid_count=shape[1], num_threads=1) as bed,
    ):
        for start in range(0, len(selected), chunk_snps):
            chosen = selected[start : start + chunk_snps]
            is_run = chosen[-1] - chosen[0] + 1 == len(chosen)
            columns = np.s_[int(chosen[0]) : int(chosen[-1]) + 1] if is_run else chosen
            # Missing genotypes are -127.
            yield np.maximum(bed.read((rows, columns), dtype="int8", order="F").T, -1)


def write(table: Table, path: Path, format: str) -> None:
    """Write a table of genotypes as .bed, .bim and .fam files; fields that the table does not contain are 0."""
    genotypes = GenotypeTable.of(table, path)
    if genotypes.phased:
        raise FileError(f"{path.name}: a .bed file cannot store the phase of haplotypes; write .vcf")
    individuals = _individuals(genotypes, path)
    snps = _snps(genotypes, path)
    genotypes.warn_not_stored(path, ("distance",), PEDIGREE)
    with open_text_writer(_companion(path, "bim")) as file:
        file.writelines("\t".join(fields) + "\n" for fields in snps)
    with open_text_writer(_companion(path, "fam")) as file:
        file.writelines(" ".join(fields) + "\n" for fields in individuals)
    with open(path, "wb") as bed:
        bed.write(_MAGIC + _SNP_MAJOR)
        for copies in genotypes.genotypes(path):
            bed.write(_encode(copies).tobytes())


def _encode(copies: NDArray[np.int8]) -> NDArray[np.uint8]:
    """Return genotypes as in a .bed file: two bits per individual, 00 two copies, 01 one, 11 none, 10 missing."""
    pairs = np.stack([(copies == 0) | (copies == -1), (copies == 0) | (copies == 1)], axis=2)
    return np.packbits(pairs.reshape(len(copies), -1), axis=1, bitorder="little")


def _snps(genotypes: GenotypeTable, path: Path) -> list[tuple[str, ...]]:
    """Return the fields of the lines of the .bim file."""
    columns = [
        genotypes.field("chromosome", "0"),
        genotypes.field("id", "."),
        [f"{distance:.17g}" for distance in genotypes.field("distance", 0.0)],
        [str(position) for position in genotypes.field("position", 0)],
        genotypes.field("allele", "0"),
        genotypes.field("other", "0"),
    ]
    return text_fields(columns, path, ".bim")


def _individuals(genotypes: GenotypeTable, path: Path) -> list[tuple[str, ...]]:
    """Return the fields of the lines of the .fam file."""
    pedigree = [map(str, genotypes.sample_field(name, "0")) for name in PEDIGREE]
    return [(*names, *others) for names, *others in zip(genotypes.individuals(path, ".fam"), *pedigree, strict=True)]
