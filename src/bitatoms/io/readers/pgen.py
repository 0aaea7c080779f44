"""PLINK 2 genotypes: a .pgen file with its .pvar and .psam files.

A variant with several alternative alleles becomes one variant for each of them. Dosages of imputed genotypes are
ignored: the genotypes that PLINK 2 calls from them are read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...columns.annotations import Annotations
from ...columns.table import Names, Table
from ...errors import warn
from ..errors import FileError
from ..genotypes import (
    FIELD,
    PEDIGREE,
    AlleleChunk,
    GenotypeFile,
    GenotypeTable,
    Indices,
    Records,
    as_numbers,
    check_not_binarized,
    count_copies,
    open_genotypes,
    quality_text,
    sample_name,
    split_records,
)
from ..options import ReadOptions
from ..stream import CHUNK_BITS, Source, TableStream
from ..text_lines import open_text_writer, read_lines

_MAGIC = b"\x6c\x1b"
_PLINK_1 = b"\x01"
_CHUNK_GENOTYPES = CHUNK_BITS // 8  # read together; phased ones take about twenty bytes each
_MISSING = -9
_PVAR_AS_BIM = {6: ("CHROM", "ID", "CM", "POS", "ALT", "REF"), 5: ("CHROM", "ID", "POS", "ALT", "REF")}
_PSAM_AS_FAM = ("FID", "IID", "PAT", "MAT", "SEX", "PHENO1")
_SAMPLE_FIELDS = {"FID": "family", "PAT": "father", "MAT": "mother", "SEX": "sex", "PHENO1": "phenotype"}
_SEXES = {"NA": "0", "M": "1", "F": "2", "m": "1", "f": "2"}


def companions(path: Path) -> tuple[str, ...]:
    """Return the names of the .pvar and .psam files of a .pgen file."""
    return tuple(_companion(path, kind).name for kind in ("pvar", "psam"))


def _companion(path: Path, kind: str) -> Path:
    """Return the path of the file that lists the variants ("pvar") or the samples ("psam") of a .pgen file."""
    suffix = kind.upper() if path.suffix.isupper() else kind
    if path.suffix == f".{suffix}":
        raise FileError(f"{path}: this is the .{kind} file that belongs to a .pgen file; pass the .pgen file")
    return path.with_suffix(f".{suffix}")


def read(source: Source, options: ReadOptions) -> TableStream:
    """Open a .pgen file: one row per sample and two columns per variant, or two rows and one column."""
    check_not_binarized(source, options)
    with open(source.path, "rb") as file:
        start = file.read(3)
    if start[:2] != _MAGIC or start[2:] == _PLINK_1:
        raise source.error("not a PLINK 2 .pgen file: it begins with other bytes" if start else "the file is empty")
    samples, sample_data = _read_samples(source)
    records = _read_variants(source)

    def genotypes(kept: Indices, selected: Indices) -> Iterator[NDArray[np.int8]]:
        labels = [samples[index] for index in kept.tolist()], [records.names[index] for index in selected.tolist()]
        with source.catch_library_errors(), _open(source, records, len(samples), kept) as pgen:
            if options.phased or (records.n_alternatives[selected] > 1).any():
                chunks = _read_alleles(pgen, records, len(kept), selected)
                yield from count_copies(source, options.phased, labels, chunks)
            else:
                yield from _read_copies(pgen, records, len(kept), selected)

    # Opening the file raises an error if it has another number of samples or variants.
    with source.catch_library_errors(), _open(source, records, len(samples), np.arange(len(samples))):
        contents = GenotypeFile(samples, sample_data, records.variants, records.names, genotypes)
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


def _read_copies(pgen: Any, records: Records, n_kept: int, selected: Indices) -> Iterator[NDArray[np.int8]]:
    """Yield the number of copies of the allele of each variant, -1 if it is missing."""
    for chunk in _chunks(selected, n_kept):
        copies = np.empty((len(chunk), n_kept), np.int8)
        pgen.read_list(records.indices[chunk].astype(np.uint32), copies)
        yield np.maximum(copies, -1, out=copies)


def _read_alleles(pgen: Any, records: Records, n_kept: int, selected: Indices) -> Iterator[AlleleChunk]:
    """Yield the alleles of the genotypes of each variant."""
    for chunk in _chunks(selected, n_kept):
        alleles = np.empty((len(chunk), 2 * n_kept), np.int32)
        is_phased = np.empty((len(chunk), n_kept), bool)
        pgen.read_alleles_and_phasepresent_list(records.indices[chunk].astype(np.uint32), alleles, is_phased)
        known = np.maximum(alleles, -1).astype(np.int16).reshape(len(chunk), n_kept, 2)
        yield AlleleChunk(known, records.numbers[chunk], is_phased)


def _chunks(selected: Indices, n_kept: int) -> Iterator[Indices]:
    """Yield the variants to read together."""
    step = max(1, _CHUNK_GENOTYPES // max(1, n_kept))
    for start in range(0, len(selected), step):
        yield selected[start : start + step]


def _read_table(source: Source, kind: str) -> tuple[Path, list[str] | None, list[list[str]]]:
    """Return the path of the .pvar or .psam file, the names of its columns, if it has them, and its lines."""
    path = _companion(source.path, kind)
    contents = "variants" if kind == "pvar" else "samples"
    compressed = path.with_suffix(f"{path.suffix}.zst")
    if not path.is_file() and not compressed.is_file():
        raise source.error(f"{path.name}, which lists the {contents}, is missing; a .pgen file needs .pvar and .psam")
    if path.is_file():
        lines = read_lines(Source(path, source.format, f"{source.name}: {path.name}"))
    else:
        path, lines = compressed, _decompressed_lines(source, compressed)
    header: list[str] | None = None
    rows: list[list[str]] = []
    for number, line in enumerate(lines, 1):
        if line.startswith("##") or not (fields := line.split()):
            continue
        if line.startswith("#") and header is None and not rows:
            header = [fields[0][1:], *fields[1:]]
            continue
        expected = len(header) if header is not None else len(rows[0]) if rows else len(fields)
        if len(fields) != expected:
            raise source.error(f"{path.name}: line {number} has {len(fields)} fields; expected {expected}")
        rows.append(fields)
    return path, header, rows


def _decompressed_lines(source: Source, path: Path) -> Iterator[str]:
    """Yield the lines of a file that is compressed by zstd."""
    if find_spec("zstandard") is None:
        raise source.error(
            f"{path.name} is compressed; decompress it with 'plink2 --zst-decompress {path.name} {path.stem}', or "
            "install zstandard with pip"
        )
    import zstandard

    try:
        with zstandard.open(path, "rt", encoding="utf-8") as file:
            yield from file
    except (zstandard.ZstdError, UnicodeDecodeError, EOFError) as error:
        raise source.error(f"{path.name}: the compressed data is corrupt or truncated: {error}") from error


def _read_samples(source: Source) -> tuple[Names, Annotations]:
    """Return the names of the samples of the .psam file, and what it contains about them."""
    path, header, rows = _read_table(source, "psam")
    if header is None:
        header = list(_PSAM_AS_FAM[: len(rows[0])]) if rows else list(_PSAM_AS_FAM)
    if "IID" not in header or (rows and len(rows[0]) != len(header)):
        raise source.error(f"{path.name}: its columns are not those of a .psam file: there must be an IID")
    columns = {name: [fields[column] for fields in rows] for column, name in enumerate(header)}
    if "SEX" in columns:
        columns["SEX"] = [_SEXES.get(sex, sex) for sex in columns["SEX"]]
    individuals = columns.pop("IID")
    families = columns.get("FID", ["0"] * len(rows))
    names = tuple(map(sample_name, families, individuals))
    fields = {_SAMPLE_FIELDS.get(name, name): values for name, values in columns.items()}
    return names, Annotations({"family": families, **fields}, len(rows))


def _read_variants(source: Source) -> Records:
    """Return the variants of the .pvar file."""
    path, header, rows = _read_table(source, "pvar")
    if header is None:
        header = list(_PVAR_AS_BIM.get(len(rows[0]) if rows else 6, ()))
    absent = [name for name in ("CHROM", "POS", "ID", "REF", "ALT") if name not in header]
    if absent:
        raise source.error(f"{path.name}: its columns are not those of a .pvar file: there is no {absent[0]}")
    columns = {name: [fields[column] for fields in rows] for column, name in enumerate(header)}
    fields = {
        "chromosome": columns["CHROM"],
        "position": as_numbers(source, columns["POS"], np.int64, path.name),
        "id": [_known(name) for name in columns["ID"]],
        "other": columns["REF"],
    }
    if "CM" in columns:
        distances = [_known(text) or "nan" for text in columns["CM"]]
        fields["distance"] = as_numbers(source, distances, np.float64, path.name)
    if "QUAL" in columns:
        qualities = [_known(text) or "nan" for text in columns["QUAL"]]
        fields["quality"] = as_numbers(source, qualities, np.float32, path.name, "quality")
    if "FILTER" in columns:
        fields["filter"] = [_known(text) for text in columns["FILTER"]]
    return split_records(fields, [[] if text == "." else text.split(",") for text in columns["ALT"]])


def _known(text: str) -> str | None:
    """Return text, None if it is missing."""
    return None if text == "." else text


def write(table: Table, path: Path, format: str) -> None:
    """Write a table of genotypes or haplotypes as .pgen, .pvar and .psam files."""
    from pgenlib import PgenWriter

    genotypes = GenotypeTable.of(table, path)
    n_samples, n_variants = len(genotypes.samples), genotypes.variants.n
    if not (n_samples and n_variants):
        raise FileError(f"{path.name}: a .pgen file needs at least one sample and one variant; write .bed or .npz")
    samples, variants = _sample_columns(genotypes, path), _variant_columns(genotypes, path)
    genotypes.warn_not_stored(path, ("distance", "quality", "filter"), PEDIGREE)
    for kind, columns in (("pvar", variants), ("psam", samples)):
        with open_text_writer(_companion(path, kind)) as file:
            file.write("#" + "\t".join(columns) + "\n")
            file.writelines("\t".join(fields) + "\n" for fields in zip(*columns.values(), strict=True))
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
        written = "1 genotype is" if n_half_known == 1 else f"{n_half_known} genotypes are"
        warn(f"{path.name}: {written} written as missing because one of the two haplotypes is unknown")


def _variant_columns(genotypes: GenotypeTable, path: Path) -> dict[str, list[str]]:
    """Return the columns of the .pvar file."""
    columns = {
        "CHROM": genotypes.field("chromosome", "0"),
        "POS": [str(position) for position in genotypes.field("position", 0)],
        "ID": genotypes.field("id", "."),
        "REF": genotypes.field("other", "."),
        "ALT": genotypes.field("allele", "."),
    }
    if "quality" in genotypes.variants:
        columns["QUAL"] = [quality_text(value) for value in genotypes.field("quality", np.nan)]
    if "filter" in genotypes.variants:
        columns["FILTER"] = genotypes.field("filter", ".")
    if "distance" in genotypes.variants:
        columns["CM"] = [f"{value:.17g}" for value in genotypes.field("distance", 0.0)]
    for fields in zip(*columns.values(), strict=True):
        if not all(map(FIELD.fullmatch, fields)) or "," in fields[4]:
            raise FileError(f"{path.name}: a .pvar file cannot store the variant {fields[2]!r}; rename it")
    return columns


def _sample_columns(genotypes: GenotypeTable, path: Path) -> dict[str, list[str]]:
    """Return the columns of the .psam file."""
    individuals = genotypes.individuals(path, ".psam")
    columns = {"FID": [family for family, _ in individuals], "IID": [individual for _, individual in individuals]}
    for column, name in list(_SAMPLE_FIELDS.items())[1:]:
        if genotypes.sample_data is not None and name in genotypes.sample_data:
            columns[column] = [str(value) for value in genotypes.sample_field(name, "0")]
    return columns
