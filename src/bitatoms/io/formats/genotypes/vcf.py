"""Genotypes in VCF and BCF files.

A record with several alternative alleles becomes one variant for each of them. The file is read twice: first the
records without genotypes, then the genotypes in chunks. INFO and FORMAT fields other than GT are ignored.

htslib (cyvcf2) ends the process, or crashes, on some malformed files. So text is read here, and a BCF file is first
converted to VCF in another process.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from ....columns.table import Names, Table, first_duplicate
from ....errors import warn
from ....formatting import quoted
from ...errors import FileError
from ...options import ReadOptions
from ...stream import Source, TableStream
from ...text import open_decompressed, read_lines
from .genotype_file import (
    ABSENT,
    UNKNOWN,
    UNKNOWN_ALTERNATIVE,
    UNKNOWN_REFERENCE,
    AlleleChunk,
    GenotypeFile,
    Indices,
    Records,
    open_genotypes,
    parse_records,
    split_variants,
)
from .genotype_table import FIELD, GenotypeTable, quality_text

_BGZF_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")  # the last block, empty
_SAMPLE = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff\ufeff]+")
_CONTIG = re.compile(r"[^\s\x00-\x1f\x7f\ud800-\udfff\ufeff<>,\"]+")
_ALLELE = re.compile(r"[^\s\x00-\x1f\x7f\ud800-\udfff\ufeff,]+")
_COLUMNS = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO"]
_GENOTYPE = re.compile(r"[/|]?(\d{1,9}|\.)(?:([/|])(\d{1,9}|\.))?", re.ASCII)
_NO_ALLELE = -9  # what is neither a digit nor missing
_ALLELE_OF = np.full(256, _NO_ALLELE, np.int16)  # by character
_ALLELE_OF[ord("0") : ord("9") + 1] = np.arange(10)
_ALLELE_OF[ord(".")] = UNKNOWN
_IS_END = np.isin(np.arange(256), [ord("\t"), ord(":")])  # what may follow a genotype
_COPIES = np.frombuffer(b"\t./.\t0/0\t0/1\t1/1", "V4")
_HAPLOTYPES = np.frombuffer(b"".join(b"\t%c|%c" % (a, b) for a in b".01" for b in b".01"), "V4")
_CONVERT = """
import sys
from cyvcf2 import VCF, Writer
from cyvcf2.cyvcf2 import set_htslib_log_level
set_htslib_log_level(0)
given = VCF(sys.argv[1])
converted = Writer(sys.argv[2], given, "wz1")
converted.write_header()
for record in given:
    converted.write_record(record)
converted.close()
"""


def read(source: Source, options: ReadOptions) -> TableStream:
    """Open a VCF or BCF file: one row per sample and two columns per variant, or two rows and one column."""
    _check_file(source)
    with open_decompressed(source) as file:
        is_bcf = file.read(3) == b"BCF"
    with ExitStack() as stack:
        text = source
        if is_bcf:
            folder = TemporaryDirectory(dir=None if source.scratch is None else source.scratch.folder)
            text = _converted(source, Path(stack.enter_context(folder)))
        with source.catch_library_errors():
            samples, records = _read_records(text)

        def genotypes(kept: Indices, selected: Indices) -> Iterator[AlleleChunk]:
            yield from _read_alleles(text, records, kept, selected, len(samples))

        contents = GenotypeFile(samples, None, records, genotypes)
        stream = open_genotypes(source, options, contents)
        finalize(genotypes, stack.pop_all().close)  # removes the folder once nothing can read from it
    return stream


def _check_file(source: Source) -> None:
    """Raise FileError if a file is empty, or is compressed in blocks (BGZF) of which the last one is missing."""
    with open(source.path, "rb") as file:
        beginning = file.read(18)
        if not beginning:
            raise source.error("the file is empty")
        if beginning[:4] == _BGZF_END[:4] and beginning[12:14] == b"BC":
            file.seek(-min(len(_BGZF_END), source.path.stat().st_size), os.SEEK_END)
            if file.read() != _BGZF_END:
                raise source.error("truncated: the block that ends a compressed file is missing; copy it again")


def _converted(source: Source, folder: Path) -> Source:
    """Return a VCF file in a folder with the records of a BCF file."""
    path = folder / "converted.vcf.gz"
    command = [sys.executable, "-c", _CONVERT, os.path.abspath(source.path), str(path)]
    if subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode:
        raise source.error("corrupt or truncated; check the file with 'bcftools view'")
    return source._replace(path=path)


def _read_records(source: Source) -> tuple[Names, Records]:
    """Return the names of the samples and the variants of a VCF file."""
    lines = enumerate(read_lines(source), 1)
    header = next((line for _, line in lines if not line.startswith("##")), "").rstrip("\r\n").split("\t")
    if header[:8] != _COLUMNS or (len(header) > 8 and header[8] != "FORMAT"):
        raise source.error("not a VCF file: its header has no line of column names, from #CHROM to INFO")
    if (duplicate := first_duplicate(header[9:])) is not None:
        raise source.error(f"two samples have the name {quoted(duplicate)}; rename one")
    n_fields = min(len(header), 10)
    rows = []
    for number, line in lines:
        fields = line.rstrip("\r\n").split("\t", 9)
        if len(fields) != n_fields:
            raise source.error(f"line {number} has {len(fields)} fields; expected at least {n_fields}")
        if not (_CONTIG.fullmatch(fields[0]) and fields[1].isascii() and fields[1].isdigit() and fields[3]):
            raise source.error(
                f"line {number}: '{' '.join(fields[:4])[:40]}' is not a chromosome, a position, an id and an allele"
            )
        rows.append(fields[:7])
    names = ("CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER")
    columns = {name: [fields[column] for fields in rows] for column, name in enumerate(names)}
    return tuple(header[9:]), parse_records(source, columns)


def _read_alleles(
    source: Source, records: Records, kept: Indices, selected: Indices, n_samples: int
) -> Iterator[AlleleChunk]:
    """Yield the alleles of the selected variants."""
    chosen = np.s_[:] if len(kept) == n_samples else kept
    lines = enumerate(line for line in read_lines(source) if not line.startswith("#"))
    index, found, phase = -1, np.empty((n_samples, 2), np.int16), np.empty(n_samples, bool)
    for chunk in split_variants(selected, n_samples):
        alleles = np.empty((len(chunk), len(kept), 2), np.int16)
        is_phased = np.empty((len(chunk), len(kept)), bool)
        for number, wanted in enumerate(records.indices[chunk].tolist()):
            if wanted != index:
                index, line = next((each for each in lines if each[0] == wanted), (wanted, None))
                if line is None:
                    raise source.error("the file was replaced while it was read; read it again")
                found, phase = _genotypes_of(source, line, n_samples)
            alleles[number], is_phased[number] = found[chosen], phase[chosen]
        yield AlleleChunk(alleles, is_phased)


def _allele_number(text: str | None) -> int:
    """Return the number of an allele of a genotype."""
    return ABSENT if text is None else UNKNOWN if text == "." else min(int(text), np.iinfo(np.int16).max)


def _genotypes_of(source: Source, line: str, n_samples: int) -> tuple[NDArray[np.int16], NDArray[np.bool_]]:
    """Return the two alleles of each genotype of a record, and whether it is phased."""
    *about, fields, cells = [*line.rstrip("\r\n").split("\t", 9), "", ""][:10]
    n_found, names = cells.count("\t") + 1 if n_samples else 0, fields.split(":")
    if n_found != n_samples:
        raise source.error(f"{about[0]}:{about[1]}: there are {n_found} genotypes; expected {n_samples}: truncated")
    if "GT" not in names or not n_samples:
        return np.full((n_samples, 2), UNKNOWN, np.int16), np.ones(n_samples, bool)
    if names[0] != "GT":
        cells = "\t".join([*cell.split(":"), *"." * len(names)][names.index("GT")] for cell in cells.split("\t"))
    text = np.frombuffer(f"{cells}\t\t\t\t".encode(), np.uint8)
    ends = np.flatnonzero(text == ord("\t"))[:n_samples]
    starts = np.concatenate(([0], ends[:-1] + 1))
    # Nearly all genotypes are one digit, or two digits with a character between them.
    first, between, second, after = (text[starts + offset] for offset in range(4))
    is_haploid, is_phased = _IS_END[between], between == ord("|")
    alleles = np.stack((_ALLELE_OF[first], np.where(is_haploid, ABSENT, _ALLELE_OF[second])), axis=1)
    is_short = is_haploid | ((is_phased | (between == ord("/"))) & _IS_END[after])
    for sample in np.flatnonzero(~is_short | (alleles == _NO_ALLELE).any(axis=1)).tolist():
        genotype = bytes(text[starts[sample] : ends[sample]]).decode().split(":")[0]
        parsed = _GENOTYPE.fullmatch(genotype)
        if parsed is None:
            raise source.error(
                f"{about[0]}:{about[1]}: {quoted(genotype)} is not a genotype of one or two alleles, such as 0/1"
            )
        alleles[sample] = [_allele_number(number) for number in parsed.group(1, 3)]
        is_phased[sample] = parsed[2] == "|"
    return alleles, is_phased


def write(table: Table, path: Path, format: str) -> None:
    """Write a table of genotypes or haplotypes as VCF, compressed in blocks if the name ends in .gz, or as BCF."""
    genotypes = GenotypeTable.of(table, path)
    header = _header(genotypes, path)
    lines = _lines(genotypes, path)
    genotypes.warn_not_stored(path, ("quality", "filter"), ())
    if (blank := next((name for name in genotypes.samples if " " in name), None)) is not None:
        warn(f"{path.name}: a row name contains a blank ({quoted(blank)}); PLINK would read only what precedes it")
    if format == "vcf" and not path.name.lower().endswith(".gz"):
        with open(path, "wb") as file:
            file.write(header.encode())
            file.writelines(lines)
        return
    from cyvcf2 import Writer
    from cyvcf2.cyvcf2 import set_htslib_log_level

    set_htslib_log_level(0)
    with closing(Writer.from_string(os.path.abspath(path), header, "wb" if format == "bcf" else "wz")) as writer:
        writer.write_header()
        for line in lines:
            writer.write_record(writer.variant_from_string(line.decode().rstrip("\n")))


def _header(genotypes: GenotypeTable, path: Path) -> str:
    """Return the header of a file."""
    for name in genotypes.samples:
        if not _SAMPLE.fullmatch(name):
            raise FileError(f"{path.name}: a VCF file cannot store the row name {name!r}; rename it")
    if (duplicate := first_duplicate(genotypes.samples)) is not None:
        raise FileError(f"{path.name}: two rows have the name {duplicate!r}, which VCF forbids; rename one of them")
    filters = {name for joined in set(genotypes.field("filter", "PASS")) for name in joined.split(";")} - {"PASS"}
    lines = [
        "##fileformat=VCFv4.2",
        '##FILTER=<ID=PASS,Description="All filters passed">',
        *(f'##FILTER=<ID={name},Description="Filter {name}">' for name in sorted(filters)),
        '##ALT=<ID=*,Description="Any allele, not known">',
        '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">',
        *(f"##contig=<ID={name}>" for name in dict.fromkeys(genotypes.field("chromosome", "0"))),
    ]
    columns = [*_COLUMNS, "FORMAT", *genotypes.samples] if genotypes.samples else _COLUMNS
    return "\n".join([*lines, "\t".join(columns)]) + "\n"


def _lines(genotypes: GenotypeTable, path: Path) -> Iterator[bytes]:
    """Yield the records as lines of text."""
    chromosomes, positions = genotypes.field("chromosome", "0"), genotypes.field("position", 0)
    ids, references = genotypes.field("id", "."), genotypes.field("other", UNKNOWN_REFERENCE)
    alleles, filters = genotypes.field("allele", ""), genotypes.field("filter", ".")
    qualities = [quality_text(value) for value in genotypes.field("quality", np.nan)]
    records = list(zip(chromosomes, positions, ids, references, alleles, qualities, filters, strict=True))
    for chromosome, position, name, reference, allele, _, filter in records:
        checks = (_CONTIG, chromosome), (FIELD, name), (_ALLELE, reference), (_ALLELE, allele or "."), (_CONTIG, filter)
        wrong = [text for pattern, text in checks if not pattern.fullmatch(text)]
        if wrong or position < 0:
            raise FileError(
                f"{path.name}: a VCF file cannot store {wrong[0] if wrong else position!r} of the variant "
                f"{quoted(name)}; rename it"
            )

    def generate() -> Iterator[bytes]:
        start = 0
        for chunk in genotypes.genotypes(path):
            for fields, values in zip(records[start : start + len(chunk)], chunk, strict=True):
                chromosome, position, name, reference, allele, quality, filter = fields
                allele = allele or (UNKNOWN_ALTERNATIVE if values.max(initial=0) > 0 else ".")
                about = "\t".join((chromosome, str(position), name, reference, allele, quality, filter, "."))
                yield about.encode() + _genotype_text(values, genotypes.phased) + b"\n"
            start += len(chunk)

    return generate()


def _genotype_text(values: NDArray[np.int8], phased: bool) -> bytes:
    """Return the genotypes of a record, and what they contain, as text."""
    if not len(values):
        return b""
    if phased:
        first, second = values[0::2] + np.int8(1), values[1::2] + np.int8(1)
        return b"\tGT" + _HAPLOTYPES[3 * first + second].tobytes()
    return b"\tGT" + _COPIES[values + np.int8(1)].tobytes()
