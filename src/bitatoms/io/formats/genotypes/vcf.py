"""Genotypes in VCF and BCF files.

A record with several alternative alleles becomes one variant for each of them. The file is read twice: first the
records without genotypes, then the genotypes in chunks. INFO and FORMAT fields other than GT are ignored.

A BCF file is first converted to VCF by htslib, in another process, because htslib ends the process, or crashes, on some
malformed ones.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from ....columns.annotations import Labels
from ....columns.table import Names, Table, first_duplicate
from ....errors import warn
from ....formatting import quoted
from ...errors import FileError
from ...limits import CHUNK_BITS
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
    as_numbers,
    open_genotypes,
    split_records,
)
from .genotype_table import FIELD, GenotypeTable, quality_text

_CHUNK_GENOTYPES = CHUNK_BITS // 8  # read together; each takes about ten bytes until it is two bits
_BGZF_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")  # the last block, empty
_SAMPLE = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff\ufeff]+")
_CONTIG = re.compile(r"[^\s\x00-\x1f\x7f\ud800-\udfff\ufeff<>,\"]+")
_ALLELE = re.compile(r"[^\s\x00-\x1f\x7f\ud800-\udfff\ufeff,]+")
_COLUMNS = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO"]
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
            samples, records = _TextRows(text)

        def genotypes(kept: Indices, selected: Indices) -> Iterator[AlleleChunk]:
            yield from _read_alleles(text, records, kept, selected, len(samples))

        contents = GenotypeFile(samples, None, records.variants, records.names, genotypes)
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


def _TextRows(source: Source) -> tuple[Names, Records]:
    """Return the names of the samples and the variants of a VCF file.

    cyvcf2 crashes on malformed lines of chromosomes that the header does not list, so that all are checked here.
    """
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
    chromosomes, positions, ids, references, alternatives, qualities, filters = (
        [fields[column] for fields in rows] for column in range(7)
    )
    qualities = ["nan" if text == "." else text for text in qualities]
    fields_of = {
        "chromosome": chromosomes,
        "position": as_numbers(source, positions, np.int64),
        "id": [None if name == "." else name for name in ids],
        "other": references,
        "quality": as_numbers(source, qualities, np.float32, what="quality"),
        "filter": [None if name == "." else name for name in filters],
    }
    return tuple(header[9:]), split_records(
        fields_of, [[] if text == "." else text.split(",") for text in alternatives]
    )


def _read_alleles(
    source: Source, records: Records, kept: Indices, selected: Indices, n_samples: int
) -> Iterator[AlleleChunk]:
    """Yield the alleles of the selected variants."""
    step = max(1, _CHUNK_GENOTYPES // max(1, n_samples))
    chosen = np.s_[:] if len(kept) == n_samples else kept
    index = -1
    current = np.empty((n_samples, 3), np.int16)
    with source.catch_library_errors(), closing(_iterate(source, records, n_samples)) as iterator:
        for start in range(0, len(selected), step):
            chunk = selected[start : start + step]
            alleles = np.empty((len(chunk), len(kept), 2), np.int16)
            is_phased = np.empty((len(chunk), len(kept)), bool)
            for number, wanted in enumerate(records.indices[chunk].tolist()):
                while index < wanted:
                    record, index = next(iterator, None), index + 1
                    if record is None:
                        raise source.error("the file was replaced while it was read; read it again")
                    if index == wanted:
                        current = _alleles_of(source, record, n_samples)
                alleles[number], is_phased[number] = current[chosen, :2], current[chosen, 2]
            records.check_alleles(source, chunk, alleles)
            yield AlleleChunk(alleles, records.numbers[chunk], is_phased)


def _iterate(source: Source, records: Records, n_samples: int) -> Generator[Any, None, None]:
    """Yield the records of a file from cyvcf2; chromosomes that its header does not list are added to it."""
    from cyvcf2 import VCF
    from cyvcf2.cyvcf2 import set_htslib_log_level

    labels = records.variants.values_of("chromosome")
    assert isinstance(labels, Labels)
    set_htslib_log_level(0)  # it would print to the standard error; what is wrong with a file is raised
    vcf = VCF(os.path.abspath(source.path))  # a name such as - has no other meaning then
    last, number = "", 0
    with closing(vcf):
        if len(vcf.samples) != n_samples:
            raise source.error("the file was replaced while it was read; read it again")
        for name in set(labels.categories).difference(vcf.seqnames if labels.categories else ()):
            vcf.add_to_header(f"##contig=<ID={name}>")
        while True:
            try:
                record = next(vcf, None)
            except Exception as error:  # cyvcf2 raises Exception
                raise source.error(
                    f"record {number + 1}{last} is corrupt or truncated; check the file with 'bcftools view'"
                ) from error
            if record is None:
                return
            yield record
            last, number = f" (after {record.CHROM}:{record.POS})", number + 1


def _alleles_of(source: Source, record: Any, n_samples: int) -> NDArray[np.int16]:
    """Return the two alleles of each genotype of a record, and whether it is phased."""
    try:
        given: NDArray[np.int16] = record.genotype.array()
    except Exception:  # cyvcf2 raises Exception
        if "GT" in (record.FORMAT or ()):
            raise
        return np.tile(np.array([UNKNOWN, UNKNOWN, 1], np.int16), (n_samples, 1))
    if given.shape[1] == 3:
        return given
    alleles = np.full((n_samples, 3), ABSENT, np.int16)
    alleles[:, 2] = given[:, -1]
    alleles[:, : min(2, given.shape[1] - 1)] = given[:, : min(2, given.shape[1] - 1)]
    if given.shape[1] > 3 and (given[:, 2:-1] != ABSENT).any():
        raise source.error(
            f"{record.CHROM}:{record.POS}: a genotype has more than two alleles; only haploid and diploid ones are "
            "supported"
        )
    return alleles


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
