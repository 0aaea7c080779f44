"""PLINK 1 genotypes: a .bed file with its .bim and .fam files.

Each SNP becomes two columns: whether an individual carries the allele, and whether it carries two copies. Both are
unknown if the genotype is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix
from ...errors import Parameter, warn
from ...table import Table, first_duplicate
from ..cells import MISSING, Cells
from ..errors import FileError
from ..stream import CHUNK_BITS, ReadOptions, RowChunk, Source, TableStream, named_chunks, unique_columns
from ..text_lines import open_text_writer, read_lines
from ..transposing import rows_of_columns

_MAGIC = b"\x6c\x1b"
_SNP_MAJOR = b"\x01"
_MISSING = -127  # in the arrays of bed-reader
_CHUNK_CELLS = CHUNK_BITS // 2  # cells read together; each takes about four bytes until it is a bit
_FIELD = re.compile(r"[^\s\x00-\x1f\x7f\ud800-\udfff\ufeff]+")  # no blanks and no invisible characters
_NO_GENOTYPES = (
    "it is not a table of genotypes; a .bed file has two columns per SNP, such as 'rs1:A' (carries the allele A) "
    "and 'rs1:AA' (carries two copies); write .npz or .csv"
)


class Snp(NamedTuple):
    """A SNP, and the allele whose copies are counted (the first one in the .bim file)."""

    name: str
    allele: str

    @property
    def columns(self) -> tuple[str, str]:
        """The names of its two columns: carries the allele, carries two copies."""
        return f"{self.name}:{self.allele}", f"{self.name}:{self.allele}{self.allele}"


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
    if options.binarize is not None:
        raise source.error(
            "genotypes cannot be thresholded: each SNP becomes two columns (carries the allele, carries two copies); "
            "omit ",
            Parameter("binarize"),
        )
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
    names = [_row_name(*fields[:2]) for fields in _read_fields(source, "fam")]
    snps = _read_snps(source, options)
    _check_length(source, len(names), len(snps))
    source.check_size(len(names), 2 * len(snps), streamable=True)
    source.check_size(2 * len(snps), len(names), streamable=True)
    columns = [column for snp in snps for column in snp.columns]
    return TableStream(len(columns), _chunks(source, options, names, columns), columns)


def _row_name(family: str, individual: str) -> str:
    """Return the name of the individual, preceded by that of the family if it has its own."""
    return individual if family in ("0", individual) else f"{family} {individual}"


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


def _read_snps(source: Source, options: ReadOptions) -> list[Snp]:
    """Return the SNPs of the .bim file, with distinct names."""
    snps = [Snp(fields[1], fields[4]) for fields in _read_fields(source, "bim")]
    names: Sequence[str] = [snp.name for snp in snps]
    duplicate = first_duplicate(names)
    if duplicate is None:
        return snps
    if options.duplicates == "refuse":
        first, second = [number for number, name in enumerate(names, 1) if name == duplicate][:2]
        raise source.error(
            f"SNPs {first} and {second} have the same name {duplicate[:40]!r}; rename one, or pass ",
            Parameter("duplicates", "number"),
            " to number them",
        )
    names = unique_columns(source, names, options.duplicates)
    return [snp._replace(name=name) for snp, name in zip(snps, names, strict=True)]


def _check_length(source: Source, n_individuals: int, n_snps: int) -> None:
    """Raise FileError unless the .bed file has the size for its SNPs and individuals."""
    size, expected = source.path.stat().st_size, 3 + n_snps * -(-n_individuals // 4)
    if size != expected:
        raise source.error(
            f"it has {size} bytes; expected {expected} for the {n_snps} SNPs of its .bim file and the {n_individuals} "
            f"individuals of its .fam file: {'truncated' if size < expected else 'too long'}, or its .bim and .fam are "
            "those of another file"
        )


def _chunks(source: Source, options: ReadOptions, names: list[str], columns: list[str]) -> Iterator[RowChunk]:
    """Yield the rows; the file is ordered by SNP, so all of it is read before the first row."""
    cells = Cells(source, options)
    packed = _column_chunks(source, cells, names, columns)
    yield from named_chunks(rows_of_columns(source, packed, (len(names), len(columns)), cells.check_missing), names)


def _column_chunks(source: Source, cells: Cells, names: list[str], columns: list[str]) -> Iterator[BitMatrix]:
    """Yield the columns of the table as rows of packed bits."""
    from bed_reader import open_bed

    n_rows, n_snps = len(names), len(columns) // 2
    chunk_snps = max(1, _CHUNK_CELLS // max(1, 2 * n_rows))
    with (
        source.catch_library_errors(),
        # With both counts given, bed-reader opens no other file.
        open_bed(source.path, iid_count=n_rows, sid_count=n_snps, num_threads=1) as bed,
    ):
        for start in range(0, n_snps, chunk_snps):
            copies = bed.read(np.s_[:, start : min(start + chunk_snps, n_snps)], dtype="int8", order="F").T
            pairs = np.empty((len(copies), 2, n_rows), np.uint8)
            np.greater_equal(copies, 1, out=pairs[:, 0])
            np.equal(copies, 2, out=pairs[:, 1])
            missing = np.flatnonzero(copies == _MISSING)
            if len(missing):
                snp, row = divmod(int(missing[0]), n_rows)
                name = _snp_of_columns(*columns[2 * (start + snp) : 2 * (start + snp) + 2]).name
                position = f"SNP {name[:40]!r} of individual {names[row][:40]!r}"
                cells.add_missing(len(missing), position)
                pairs.swapaxes(1, 2)[np.divmod(missing, n_rows)] = MISSING
            yield cells.pack(pairs.reshape(2 * len(copies), n_rows))


def write(table: Table, path: Path, format: str) -> None:
    """Write a table of genotypes as .bed, .bim and .fam files; fields that the table does not contain are 0.

    A genotype of which a bit is unknown is written as missing; a warning counts those of which the other bit is known.
    """
    snps = _snps_of_columns(table, path)
    individuals = _individuals_of_rows(table, path)
    with open_text_writer(_companion(path, "bim")) as file:
        file.writelines(f"0\t{snp.name}\t0\t0\t{snp.allele}\t0\n" for snp in snps)
    with open_text_writer(_companion(path, "fam")) as file:
        file.writelines(f"{family} {individual} 0 0 0 0\n" for family, individual in individuals)
    columns = table.bits.transpose()
    chunk_snps = max(1, CHUNK_BITS // max(1, 2 * len(table)))
    n_half_known = 0
    with open(path, "wb") as bed:
        bed.write(_MAGIC + _SNP_MAJOR)
        for start in range(0, len(snps), chunk_snps):
            chunk = columns[2 * start : 2 * (start + chunk_snps)]
            pairs = chunk.filled().to_dense(bool)
            carries, carries_two = pairs[0::2], pairs[1::2]
            missing = np.zeros_like(carries)
            if chunk.unknown is not None:
                unknown = chunk.unknown.to_dense(bool)
                missing = unknown[0::2] | unknown[1::2]
                n_half_known += int((unknown[0::2] != unknown[1::2]).sum())
            impossible = carries_two & ~carries & ~missing
            if impossible.any():
                snp, row = np.argwhere(impossible)[0]
                raise FileError(
                    f"{path.name}: {table.row_name(int(row))!r} carries two copies of the allele of "
                    f"{snps[start + snp].name!r} but not one, so {_NO_GENOTYPES}"
                )
            # The code of a missing genotype would be that of two copies without one.
            bed.write(_encode(carries & ~missing, carries_two | missing).tobytes())
    if n_half_known:
        genotypes = "1 genotype is" if n_half_known == 1 else f"{n_half_known} genotypes are"
        warn(f"{path.name}: {genotypes} written as missing because one of the two cells is unknown")


def _encode(carries: NDArray[np.bool_], carries_two: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Return genotypes as in a .bed file: two bits per individual, both inverted."""
    return np.packbits(np.stack([~carries, ~carries_two], axis=2).reshape(len(carries), -1), axis=1, bitorder="little")


def _snp_of_columns(first: str, second: str) -> Snp:
    """Return the SNP whose columns these are, if they are those of a SNP."""
    allele = second[len(first) :]
    return Snp(first[: max(0, len(first) - len(allele) - 1)], allele)


def _snps_of_columns(table: Table, path: Path) -> list[Snp]:
    """Return the SNP of each pair of columns."""
    columns = table.columns
    if columns is None or len(columns) % 2:
        problem = "has no column names" if columns is None else "has an odd number of columns"
        raise FileError(f"{path.name}: the table {problem}, so {_NO_GENOTYPES}")
    snps = []
    for first, second in zip(columns[0::2], columns[1::2], strict=True):
        snp = _snp_of_columns(first, second)
        if not all(snp) or snp.columns != (first, second):
            raise FileError(
                f"{path.name}: the columns {first!r} and {second!r} are not those of a SNP, so {_NO_GENOTYPES}"
            )
        if not all(map(_FIELD.fullmatch, snp)):
            raise FileError(
                f"{path.name}: a .bim file cannot store the name {first!r}, which contains blanks; rename it"
            )
        snps.append(snp)
    if (duplicate := first_duplicate([snp.name for snp in snps])) is not None:
        raise FileError(f"{path.name}: two SNPs have the name {duplicate!r}; rename one of them")
    return snps


def _individuals_of_rows(table: Table, path: Path) -> list[tuple[str, str]]:
    """Return the family and the individual of each row; rows without names are numbered from 1."""
    names = table.row_names if table.row_names is not None else [str(row + 1) for row in range(len(table))]
    individuals = []
    for name in names:
        family, _, individual = name.rpartition(" ")
        family = family or "0"
        is_valid = _FIELD.fullmatch(family) and _FIELD.fullmatch(individual) and individual != "0"
        if not is_valid or _row_name(family, individual) != name:
            raise FileError(
                f"{path.name}: a .fam file cannot store the row name {name!r}: it must be an individual, or a family "
                "and an individual separated by a blank, and the individual must not be 0; rename it"
            )
        individuals.append((family, individual))
    if (duplicate := first_duplicate(names)) is not None:
        raise FileError(f"{path.name}: two rows have the name {duplicate!r}, which PLINK forbids; rename one of them")
    return individuals
