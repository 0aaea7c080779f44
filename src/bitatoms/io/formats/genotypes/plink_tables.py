"""The text files beside PLINK genotypes, which list variants (.bim, .pvar) and samples (.fam, .psam)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from ....columns.annotations import Annotations
from ....columns.table import Names
from ...errors import FileError
from ...stream import Source
from ...text import open_text_writer, read_lines
from .genotype_file import Records, parse_records, sample_name
from .genotype_table import FIELD, GenotypeTable, quality_text

PEDIGREE = ("father", "mother", "sex", "phenotype")  # the last four columns of a .fam file
_OWNERS = {"bim": "bed", "fam": "bed", "pvar": "pgen", "psam": "pgen"}
_COMPANIONS = {"bed": ("bim", "fam"), "pgen": ("pvar", "psam")}
_AS_BIM = {6: ("CHROM", "ID", "CM", "POS", "ALT", "REF"), 5: ("CHROM", "ID", "POS", "ALT", "REF")}
_AS_FAM = ("FID", "IID", "PAT", "MAT", "SEX", "PHENO1")
_SAMPLE_FIELDS = {"FID": "family", "PAT": "father", "MAT": "mother", "SEX": "sex", "PHENO1": "phenotype"}
_SEXES = {"NA": "0", "M": "1", "F": "2", "m": "1", "f": "2"}
_BLANKS = re.compile(r"[ \t\r\n]+")
_LONG = 5  # characters of a field; shorter ones often repeat, and are in memory once


def companions(path: Path, format: str) -> tuple[str, ...]:
    """Return the names of the two files that belong to a .bed or .pgen file."""
    return tuple(companion(path, kind).name for kind in _COMPANIONS[format])


def companion(path: Path, kind: str) -> Path:
    """Return the path of the file of this kind that belongs to a .bed or .pgen file."""
    suffix = kind.upper() if path.suffix.isupper() else kind
    if path.suffix == f".{suffix}":
        owner = f".{_OWNERS[kind]} file"
        raise FileError(f"{path}: this is the .{kind} file that belongs to a {owner}; pass the {owner}")
    return path.with_suffix(f".{suffix}")


def read_samples(source: Source, kind: str) -> tuple[Names, Annotations]:
    """Return the names of the samples of a .fam or .psam file, and what else it contains about them."""
    file, columns = _read_columns(source, kind)
    if "IID" not in columns:
        raise source.error(f"{file}: its columns are not those of a .{kind} file: there must be an IID")
    if kind == "psam" and "SEX" in columns:
        columns["SEX"] = [_SEXES.get(sex, sex) for sex in columns["SEX"]]
    individuals = columns.pop("IID")
    families = columns.get("FID", ["0"] * len(individuals))
    fields = {_SAMPLE_FIELDS.get(name, name): values for name, values in columns.items()}
    return tuple(map(sample_name, families, individuals)), Annotations({"family": families, **fields}, len(individuals))


def read_variants(source: Source, kind: str) -> Records:
    """Return the variants of a .bim or .pvar file."""
    file, columns = _read_columns(source, kind)
    absent = [name for name in ("CHROM", "POS", "ID", "REF", "ALT") if name not in columns]
    if absent:
        raise source.error(f"{file}: its columns are not those of a .{kind} file: there is no {absent[0]}")
    return parse_records(source._replace(name=f"{source.name}: {file}"), columns, has_lists=kind == "pvar")


def _read_columns(source: Source, kind: str) -> tuple[str, dict[str, list[str]]]:
    """Return the name of a file and its columns, by their names in .pvar and .psam files.

    Files without a line of column names are as .bim and .fam files.
    """
    path, lines = _open_lines(source, kind)
    has_header = _OWNERS[kind] == "pgen"
    names = {"bim": _AS_BIM[6], "fam": _AS_FAM}.get(kind, ())
    columns: list[list[str]] = [[] for _ in names]
    seen: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        fields = _BLANKS.split(line.strip(" \t\r\n"))
        if fields == [""] or (has_header and line.startswith("##")):
            continue
        is_header = has_header and not names and line.startswith("#")
        if not names:
            without = _AS_BIM.get(len(fields), ()) if kind == "pvar" else _AS_FAM[: len(fields)]
            names = (fields[0][1:], *fields[1:]) if is_header else without
            columns = [[] for _ in names]
        if is_header:
            continue
        if len(fields) != len(names):
            raise source.error(f"{path.name}: line {number} has {len(fields)} fields; expected {len(names) or 6}")
        for column, field in zip(columns, fields, strict=True):
            column.append(field if len(field) >= _LONG else seen.setdefault(field, field))
    if not names:
        names = _AS_BIM[6] if kind == "pvar" else _AS_FAM
        columns = [[] for _ in names]
    return path.name, dict(zip(names, columns, strict=True))


def _open_lines(source: Source, kind: str) -> tuple[Path, Iterator[str]]:
    """Return the path and the lines of a file, which may be compressed by zstd beside a .pgen file."""
    path = companion(source.path, kind)
    compressed = path.with_suffix(f"{path.suffix}.zst")
    if path.is_file():
        return path, read_lines(Source(path, source.format, f"{source.name}: {path.name}"))
    if _OWNERS[kind] == "pgen" and compressed.is_file():
        return compressed, _decompressed_lines(source, compressed)
    contents = "variants" if kind in ("bim", "pvar") else "samples"
    first, second = _COMPANIONS[_OWNERS[kind]]
    raise source.error(
        f"{path.name}, which lists the {contents}, is missing; a .{_OWNERS[kind]} file needs its .{first} and .{second}"
    )


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


def write_variants(genotypes: GenotypeTable, path: Path, kind: str) -> None:
    """Write the .bim or .pvar file of a table."""
    unknown = "0" if kind == "bim" else "."
    columns = {
        "CHROM": genotypes.field("chromosome", "0"),
        "POS": [str(position) for position in genotypes.field("position", 0)],
        "ID": genotypes.field("id", "."),
        "REF": genotypes.field("other", unknown),
        "ALT": genotypes.field("allele", unknown),
    }
    if kind == "pvar" and "quality" in genotypes.variants:
        columns["QUAL"] = [quality_text(value) for value in genotypes.field("quality", np.nan)]
    if kind == "pvar" and "filter" in genotypes.variants:
        columns["FILTER"] = genotypes.field("filter", ".")
    if kind == "bim" or "distance" in genotypes.variants:
        columns["CM"] = [f"{value:.17g}" for value in genotypes.field("distance", 0.0)]
    if kind == "bim":
        columns = {name: columns[name] for name in _AS_BIM[6]}
    for name, *fields in zip(columns["ID"], *columns.values(), strict=True):
        if not all(map(FIELD.fullmatch, fields)) or (kind == "pvar" and "," in fields[4]):
            raise FileError(f"{path.name}: a .{kind} file cannot store the variant {name!r}; rename it")
    _write_columns(companion(path, kind), columns, "\t", has_header=kind == "pvar")


def write_samples(genotypes: GenotypeTable, path: Path, kind: str) -> None:
    """Write the .fam or .psam file of a table."""
    individuals = genotypes.individuals(path, f".{kind}")
    columns = {"FID": [family for family, _ in individuals], "IID": [individual for _, individual in individuals]}
    for column, name in list(_SAMPLE_FIELDS.items())[1:]:
        if kind == "fam" or (genotypes.sample_data is not None and name in genotypes.sample_data):
            columns[column] = [str(value) for value in genotypes.sample_field(name, "0")]
    _write_columns(companion(path, kind), columns, " " if kind == "fam" else "\t", has_header=kind == "psam")


def _write_columns(path: Path, columns: Mapping[str, Sequence[str]], separator: str, has_header: bool) -> None:
    """Write columns."""
    with open_text_writer(path) as file:
        if has_header:
            file.write("#" + separator.join(columns) + "\n")
        file.writelines(separator.join(fields) + "\n" for fields in zip(*columns.values(), strict=True))
