"""Phased haplotypes as SHAPEIT and IMPUTE2 write them: a .haps file with its .sample file.

A line of the .haps file is a variant: chromosome, id, position, the alleles 0 and 1, and the two haplotypes of each
sample. The allele 1 is counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...columns.annotations import Annotations, Labels
from ...columns.table import Names, Table
from ...errors import Parameter
from ..errors import FileError
from ..genotypes import (
    ABSENT,
    PEDIGREE,
    UNKNOWN,
    AlleleChunk,
    GenotypeFile,
    GenotypeTable,
    Indices,
    alleles_of,
    as_numbers,
    check_not_binarized,
    count_copies,
    open_genotypes,
    sample_name,
    text_fields,
    variant_name,
)
from ..options import ReadOptions
from ..stream import CHUNK_BITS, Source, TableStream
from ..text_lines import open_text_writer, read_lines

_CHUNK_ALLELES = CHUNK_BITS // 4  # alleles read together; each takes about four bytes until it is a bit
_ALLELE_OF = {"0": 0, "1": 1, "?": UNKNOWN, "-": ABSENT}
_INVALID = 127
_ALLELE_OF_BYTE = np.full(256, _INVALID, np.int8)
for _text, _allele in _ALLELE_OF.items():
    _ALLELE_OF_BYTE[ord(_text)] = _allele
_NAMED = re.compile(r"([^:]+):[0-9]+_[^_]+_[^_]+.*")  # how bcftools writes the chromosome of a variant
_PHENOTYPES = ("plink_pheno", "pheno", "phenotype")


def companions(path: Path) -> tuple[str, ...]:
    """Return the name of the .sample file of a .haps file."""
    return (_sample_path(path).name,)


def _sample_path(path: Path) -> Path:
    """Return the path of the file that lists the samples of a .haps file."""
    plain = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    suffix = ".SAMPLE" if plain.suffix.isupper() else ".sample"
    if plain.suffix == suffix:
        raise FileError(f"{path}: this is the .sample file that belongs to a .haps file; pass the .haps file")
    return plain.with_suffix(suffix)


def read(source: Source, options: ReadOptions) -> TableStream:
    """Open a .haps file: one row per sample and two columns per variant, or two rows and one column."""
    check_not_binarized(source, options)
    samples, sample_data = _read_samples(source)
    names, variants = _read_variants(source, len(samples))

    def genotypes(kept: Indices, selected: Indices) -> Iterator[NDArray[np.int8]]:
        labels = [samples[index] for index in kept.tolist()], [names[index] for index in selected.tolist()]
        chunks = _read_alleles(source, len(samples), kept, selected)
        yield from count_copies(source, options.phased, labels, chunks)

    return open_genotypes(source, options, GenotypeFile(samples, sample_data, variants, names, genotypes))


def _read_samples(source: Source) -> tuple[Names, Annotations]:
    """Return the names of the samples of the .sample file, and what else it contains about them."""
    path = _sample_path(source.path)
    if not path.is_file():
        raise source.error(f"{path.name}, which lists the samples, is missing; a .haps file needs its .sample file")
    text = read_lines(Source(path, source.format, f"{source.name}: {path.name}"))
    lines = [(number, fields) for number, line in enumerate(text, 1) if (fields := line.split())]
    header = [name for _, fields in lines[:1] for name in fields]
    if len(header) < 2 or len(lines) < 2 or lines[1][1][:2] != ["0", "0"]:
        raise source.error(
            f"{path.name}: a .sample file begins with two lines: names of columns (ID_1 ID_2 missing ...), and their "
            "types (0 0 0 ...)"
        )
    for number, fields in lines:
        if len(fields) != len(header):
            raise source.error(f"{path.name}: line {number} has {len(fields)} fields; expected {len(header)}")
    rows = [fields for _, fields in lines[2:]]
    names = ["phenotype" if name.lower() in _PHENOTYPES else name for name in header]
    columns = {name: [fields[column] for fields in rows] for column, name in enumerate(names) if column > 2}
    families = {"family": [fields[0] for fields in rows]}
    return tuple(sample_name(*fields[:2]) for fields in rows), Annotations({**families, **columns}, len(rows))


def _lines(source: Source) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each line that is not blank, its first five fields, and its alleles, if there are any."""
    for number, line in enumerate(read_lines(source), 1):
        if fields := line.split(None, 5):
            yield number, fields


def _read_variants(source: Source, n_samples: int) -> tuple[list[str], Annotations]:
    """Return the names of the variants, and what the first five columns contain about them."""
    lines = []
    for number, fields in _lines(source):
        if len(fields) != 5 + bool(n_samples):
            raise source.error(
                f"line {number} has no alleles; expected chromosome, id, position, two alleles, and the haplotypes "
                f"of the {n_samples} samples of its .sample file"
            )
        lines.append(fields[:5])
    if not lines and source.path.stat().st_size == 0:
        raise source.error("the file is empty")
    chromosomes, ids, texts, others, alleles = ([line[k] for line in lines] for k in range(5))
    chromosomes = [named[1] if (named := _NAMED.fullmatch(text)) else text for text in chromosomes]
    positions = as_numbers(source, texts, np.int64)
    names = [variant_name(*each) for each in zip(ids, chromosomes, positions.tolist(), strict=True)]
    about = {
        "chromosome": Labels.of(chromosomes),
        "position": positions,
        "id": Labels.of([None if name == "." else name for name in ids]),
        "allele": alleles_of(alleles),
        "other": alleles_of(others),
    }
    return names, Annotations(about, len(lines))


def _read_alleles(source: Source, n_samples: int, kept: Indices, selected: Indices) -> Iterator[AlleleChunk]:
    """Yield the alleles of the selected variants."""
    chosen = iter(selected.tolist())
    wanted = next(chosen, None)
    chunk: list[NDArray[np.int8]] = []
    for index, (number, fields) in enumerate(_lines(source)):
        if wanted is None:
            break
        if index != wanted:
            continue
        alleles = _parse_alleles(source, number, fields[5] if n_samples else "", 2 * n_samples)
        chunk.append(alleles.reshape(-1, 2)[kept])
        wanted = next(chosen, None)
        if wanted is None or len(chunk) * 2 * n_samples >= _CHUNK_ALLELES:
            yield AlleleChunk(np.stack(chunk), np.ones(len(chunk), np.int8))
            chunk = []
    if wanted is not None:
        raise source.error("the file was replaced while it was read; read it again")


def _parse_alleles(source: Source, number: int, text: str, n_alleles: int) -> NDArray[np.int8]:
    """Return the alleles of a line: 0, 1, `UNKNOWN` or `ABSENT`."""
    data = np.frombuffer(text.strip().encode(), np.uint8)
    if len(data) == 2 * n_alleles - 1 and (data[1::2] <= ord(" ")).all():
        alleles = _ALLELE_OF_BYTE[data[::2]]
        if alleles.max() != _INVALID:
            return alleles
    words = text.split()
    if len(words) != n_alleles:
        raise source.error(
            f"line {number} has {len(words)} alleles; expected {n_alleles}, two for each of the {n_alleles // 2} "
            "samples of its .sample file"
        )
    # IMPUTE2 marks alleles whose phase is uncertain by an asterisk.
    found = [_ALLELE_OF.get(word.removesuffix("*"), _INVALID) for word in words]
    if _INVALID in found:
        raise source.error(
            f"line {number}: {words[found.index(_INVALID)][:40]!r} is not an allele; expected 0, 1, ? (missing) or - "
            "(no second haplotype)"
        )
    return np.array(found, np.int8)


def write(table: Table, path: Path, format: str) -> None:
    """Write a table of haplotypes as .haps and .sample files; fields that the table does not contain are 0."""
    genotypes = GenotypeTable.of(table, path)
    if not genotypes.phased:
        raise FileError(
            f"{path.name}: a .haps file stores haplotypes, but the rows of this table are samples; read them with ",
            Parameter("phased"),
            ", or write .vcf or .bed",
        )
    columns = [
        genotypes.field("chromosome", "0"),
        genotypes.field("id", "."),
        map(str, genotypes.field("position", 0)),
        genotypes.field("other", "0"),
        genotypes.field("allele", "0"),
    ]
    variants = text_fields(columns, path, ".haps")
    pedigree = [map(str, genotypes.sample_field(name, "0")) for name in PEDIGREE]
    samples = list(zip(genotypes.individuals(path, ".sample"), *pedigree, strict=True))
    genotypes.warn_not_stored(path, (), PEDIGREE)
    with open_text_writer(_sample_path(path)) as file:
        file.write(" ".join(("ID_1", "ID_2", "missing", *PEDIGREE)) + "\n0 0 0 D D D B\n")
        file.writelines(" ".join((*names, "0", *others)) + "\n" for names, *others in samples)
    characters = np.array(["?", "0", "1"])
    lines = chain.from_iterable(characters[haplotypes + 1].tolist() for haplotypes in genotypes.genotypes(path))
    with open_text_writer(path) as file:
        for about, haplotypes in zip(variants, lines, strict=True):
            file.write(" ".join((*about, *haplotypes)) + "\n")
