"""PLINK 1 genotypes, a .bed file with its .bim and .fam: two bits a SNP, carries the allele and carries it twice."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix
from ...table import Table, first_duplicate
from ..cells import Cells
from ..errors import FileError
from ..stream import CHUNK_BITS, ReadOptions, RowChunk, Source, TableStream, unique_columns
from ..text_lines import open_text_writer, read_lines

_MAGIC = b"\x6c\x1b"
_BY_SNP = b"\x01"
_MISSING = -127  # as bed-reader gives it
_WORD = re.compile(r"[^\s\x00-\x1f\x7f\ud800-\udfff\ufeff]+")  # no blank, and nothing that is not seen
_NO_GENOTYPES = (
    "it is no table of genotypes; a .bed file holds two columns for each SNP, such as 'rs1:A' (carries the allele A) "
    "and 'rs1:AA' (carries it twice); write .npz or .csv"
)


class Snp(NamedTuple):
    """A SNP, and the allele of which the copies are counted (the first one of the .bim file)."""

    name: str
    allele: str

    @property
    def columns(self) -> tuple[str, str]:
        """The names of its columns: carries the allele, carries it twice."""
        return f"{self.name}:{self.allele}", f"{self.name}:{self.allele}{self.allele}"


def companions(path: Path) -> tuple[str, ...]:
    """The names of the files that lie beside a .bed file: the SNPs, and the individuals."""
    return tuple(_companion(path, what).name for what in ("bim", "fam"))


def _companion(path: Path, what: str) -> Path:
    """The file beside a .bed file that lists its SNPs ("bim") or its individuals ("fam")."""
    suffix = what.upper() if path.suffix.isupper() else what
    if path.suffix == f".{suffix}":
        raise FileError(
            f"{path}: this is the name of the .{what} file that lies beside a .bed file; name the .bed file"
        )
    return path.with_suffix(f".{suffix}")


def read(source: Source, options: ReadOptions) -> TableStream:
    """The individuals as rows, two columns a SNP."""
    if options.binarize is not None:
        raise source.error(
            "binarize is not for genotypes: each SNP becomes two columns, whether an individual carries the allele and "
            "whether twice; leave it out"
        )
    with open(source.path, "rb") as file:
        beginning = file.read(3)
    if beginning[:2] != _MAGIC:
        other = "no PLINK .bed file, for it begins with other bytes (a list of genome intervals is called .bed as well)"
        raise source.error(other if beginning else "the file is empty")
    if beginning[2:] != _BY_SNP:
        raise source.error(
            "its genotypes lie individual after individual, as files of before PLINK 1 do; "
            "'plink --bfile NAME --make-bed' turns them"
            if beginning[2:] == b"\0"
            else "corrupt: its third byte tells no order of the genotypes"
        )
    names = [_told(*fields[:2]) for fields in _records(source, "fam")]
    snps = _snps(source, options)
    _check_length(source, len(names), len(snps))
    source.check_size(len(names), 2 * len(snps))
    source.check_size(2 * len(snps), len(names))
    columns = [column for snp in snps for column in snp.columns]
    return TableStream(len(columns), _blocks(source, options, names, snps), columns)


def _told(family: str, individual: str) -> str:
    """The name of a row: the individual's, behind that of the family where it has one of its own."""
    return individual if family in ("0", individual) else f"{family} {individual}"


def _records(source: Source, what: str) -> Iterator[list[str]]:
    """The lines of a .bim or .fam file, each as its fields; they lie between blanks or tabs."""
    path = _companion(source.path, what)
    listed = "SNPs" if what == "bim" else "individuals"
    if not path.is_file():
        raise source.error(f"there is no {path.name} beside it, which lists the {listed}; a .bed file needs both")
    with open(path, "rb") as file:
        if file.read(2) == b"\x1f\x8b":
            raise source.error(f"{path.name}, which lists the {listed}, is compressed; unpack it")
    for number, line in enumerate(read_lines(Source(path, source.format, f"{source.name}: {path.name}")), 1):
        fields = re.findall(r"[^ \t\r\n]+", line)
        if not fields:
            continue
        if len(fields) != 6:
            raise source.error(f"{path.name}: line {number} has {len(fields)} fields where 6 were expected; mend it")
        yield fields


def _snps(source: Source, options: ReadOptions) -> list[Snp]:
    """The SNPs of the .bim file, with names that are all different."""
    found = [Snp(fields[1], fields[4]) for fields in _records(source, "bim")]
    names: Sequence[str] = [snp.name for snp in found]
    twice = first_duplicate(names)
    if twice is None:
        return found
    if options.duplicates == "refuse":
        first, second = [place for place, name in enumerate(names, 1) if name == twice][:2]
        raise source.error(
            f"its SNPs {first} and {second} have the same name {twice[:40]!r}; rename one, "
            'or pass duplicates="number" to have them numbered'
        )
    names = unique_columns(source, names, options.duplicates)
    return [snp._replace(name=name) for snp, name in zip(found, names, strict=True)]


def _check_length(source: Source, n_individuals: int, n_snps: int) -> None:
    """Refuse a file that has not as many bytes as its SNPs and individuals take."""
    there, needed = source.path.stat().st_size, 3 + n_snps * -(-n_individuals // 4)
    if there != needed:
        raise source.error(
            f"it has {there} bytes where the {n_snps} SNPs of its .bim and the {n_individuals} individuals of its .fam "
            f"take {needed}: {'truncated' if there < needed else 'too long'}, or these are not its .bim and .fam"
        )


def _blocks(source: Source, options: ReadOptions, names: list[str], snps: list[Snp]) -> Iterator[RowChunk]:
    """All rows at once: the file goes SNP by SNP, so its packed columns are gathered, and turned at the end."""
    from bed_reader import open_bed

    cells = Cells(source, options)
    n_rows = len(names)
    words = np.zeros((2 * len(snps), -(-n_rows // 64)), np.uint64)
    at_a_time = max(1, CHUNK_BITS // max(1, 2 * n_rows))
    with (
        source.catch_library_errors(),
        # The numbers are told, so that it looks at no other file.
        open_bed(source.path, iid_count=n_rows, sid_count=len(snps), num_threads=1) as bed,
    ):
        for start in range(0, len(snps), at_a_time):
            some = slice(start, min(start + at_a_time, len(snps)))
            copies = bed.read(np.s_[:, some], dtype="int8", order="F").T

            missing = np.flatnonzero(copies == _MISSING)
            if len(missing):
                snp, row = divmod(int(missing[0]), n_rows)
                where = f"SNP {snps[start + snp].name[:40]!r} of individual {names[row][:40]!r}"
                cells.add_missing(len(missing), where)
            pairs = np.empty((len(copies), 2, n_rows), bool)
            np.greater_equal(copies, 1, out=pairs[:, 0])
            np.equal(copies, 2, out=pairs[:, 1])
            packed = BitMatrix.from_dense(pairs.reshape(2 * len(copies), n_rows))
            words[2 * some.start : 2 * some.stop] = packed.words
    cells.check_missing()
    yield RowChunk(BitMatrix.from_words(words, n_rows, check=False).transpose(), names)


def write(table: Table, path: Path, format: str) -> None:
    """Write a table of genotypes as .bed, .bim and .fam; what a table does not know of SNPs and individuals is 0."""
    snps = _paired(table, path)
    families = _families(table, path)
    with open_text_writer(_companion(path, "bim")) as file:
        file.writelines(f"0\t{snp.name}\t0\t0\t{snp.allele}\t0\n" for snp in snps)
    with open_text_writer(_companion(path, "fam")) as file:
        file.writelines(f"{family} {individual} 0 0 0 0\n" for family, individual in families)
    by_snp = table.bits.transpose()
    at_a_time = max(1, CHUNK_BITS // max(1, 2 * len(table)))
    with open(path, "wb") as bed:
        bed.write(_MAGIC + _BY_SNP)
        for start in range(0, len(snps), at_a_time):
            columns = by_snp[2 * start : 2 * (start + at_a_time)].to_dense(bool)
            carries, twice = columns[0::2], columns[1::2]
            if (twice > carries).any():
                snp, row = np.argwhere(twice > carries)[0]
                raise FileError(
                    f"{path.name}: {table.row_name(int(row))!r} carries the allele of {snps[start + snp].name!r} twice "
                    f"but not once, so {_NO_GENOTYPES}"
                )
            bed.write(_encoded(carries, twice).tobytes())


def _encoded(carries: NDArray[np.bool_], twice: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """SNPs as in a .bed file: two bits an individual, each of which says what is not so."""
    return np.packbits(np.stack([~carries, ~twice], axis=2).reshape(len(carries), -1), axis=1, bitorder="little")


def _paired(table: Table, path: Path) -> list[Snp]:
    """The SNPs that the columns of a table stand for, two columns each."""
    columns = table.columns
    if columns is None or len(columns) % 2:
        what = "has no names of columns" if columns is None else "has an odd number of columns"
        raise FileError(f"{path.name}: the table {what}, so {_NO_GENOTYPES}")
    snps = []
    for first, second in zip(columns[0::2], columns[1::2], strict=True):
        allele = second[len(first) :]
        snp = Snp(first[: max(0, len(first) - len(allele) - 1)], allele)
        if not all(snp) or snp.columns != (first, second):
            raise FileError(f"{path.name}: the columns {first!r} and {second!r} are no SNP, so {_NO_GENOTYPES}")
        if not all(map(_WORD.fullmatch, snp)):
            raise FileError(f"{path.name}: a .bim file cannot hold the name {first!r}: it takes no blanks; rename it")
        snps.append(snp)
    if (again := first_duplicate([snp.name for snp in snps])) is not None:
        raise FileError(f"{path.name}: two SNPs have the name {again!r}; rename one of them")
    return snps


def _families(table: Table, path: Path) -> list[tuple[str, str]]:
    """Family and individual of each row; rows without names are numbered from 1 on."""
    names = table.row_names if table.row_names is not None else [str(row + 1) for row in range(len(table))]
    found = []
    for name in names:
        family, _, individual = name.rpartition(" ")
        family = family or "0"
        is_fit = _WORD.fullmatch(family) and _WORD.fullmatch(individual) and individual != "0"
        if not is_fit or _told(family, individual) != name:
            raise FileError(
                f"{path.name}: a .fam file cannot hold the name {name!r} of a row: it takes one word, or two, the "
                "family's and the individual's, which is not 0; rename it"
            )
        found.append((family, individual))
    if (again := first_duplicate(names)) is not None:
        raise FileError(f"{path.name}: two rows have the name {again!r}, which PLINK forbids; rename one of them")
    return found
