"""Tables as files of genotypes hold them: samples, variants, and how the bits become genotypes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....bits import BitMatrix
from ....columns.annotations import Annotations, Labels
from ....columns.table import Names, Table, first_duplicate
from ....columns.variants import FIELDS, are_variants, column_data, from_names, variants_of
from ....errors import warn
from ....formatting import be, counted
from ...errors import FileError
from ...limits import CHUNK_BITS
from .genotype_file import HAPLOTYPE, Indices, sample_name

_NO_GENOTYPES = (
    "it is not a table of genotypes; such a table has two columns per variant, such as 'rs1:A' (carries the allele A) "
    "and 'rs1:AA' (carries two copies); write .npz or .csv"
)
FIELD = re.compile(r"[^\s\x00-\x1f\x7f\ud800-\udfff\ufeff]+")  # no blanks and no invisible characters
_NO_INFORMATION = (None, "", "0", "-9", "NA", "nan", ".", "PASS")  # values that need not be stored


@dataclass(frozen=True)
class GenotypeTable:
    """A table as a file of genotypes holds it.

    Attributes
    ----------
    samples : tuple of str
        The names of the samples; they are numbered from 1 if rows have none.
    sample_data : Annotations or None
        What else is known about them.
    variants : Annotations
        One value per variant.
    phased : bool
        Whether two rows of the table are the haplotypes of a sample.
    """

    samples: Names
    sample_data: Annotations | None
    variants: Annotations
    phased: bool
    _table: Table
    _columns: Indices

    @classmethod
    def of(cls, table: Table, path: Path) -> GenotypeTable:
        """Return the samples and variants of a table; raise FileError if it is not one of genotypes."""
        if table.columns is None and not are_variants(table.column_data):
            raise FileError(f"{path.name}: the table has no column names, so {_NO_GENOTYPES}")
        data = table.column_data if are_variants(table.column_data) else from_names(table.columns or ())
        if data is None and table.shape[1]:
            raise FileError(f"{path.name}: {_problem(table.columns or ())}, so {_NO_GENOTYPES}")
        variants, columns = variants_of(data or column_data(_no_variants(), 2))
        names = table.row_names or tuple(str(row + 1) for row in range(len(table)))
        numbers = None if table.row_data is None else table.row_data.get(HAPLOTYPE)
        phased = numbers is not None and len(names) % 2 == 0 and (numbers == np.tile([1, 2], len(names) // 2)).all()
        absent = columns[:, :1] < 0 if phased else columns < 0
        if absent.any():
            variant, which = np.argwhere(absent)[0].tolist()
            name = table.names_of([int(columns[variant].max())])[0]
            raise FileError(
                f"{path.name}: the column {name!r} has no {('first', 'second')[which]} one, so {_NO_GENOTYPES}"
            )
        row_data = table.row_data
        if phased:
            names = tuple(name.removesuffix("/1") for name in names[0::2])
            others = (
                {name: row_data.values_of(name) for name in row_data or () if name != HAPLOTYPE} if row_data else {}
            )
            row_data = Annotations(others, len(table)).take(np.arange(0, len(table), 2))
        return cls(names, row_data, variants, phased, table, columns)

    def genotypes(self, path: Path) -> Iterator[NDArray[np.int8]]:
        """Yield the genotypes as `GenotypeFile.read` does; raise FileError for one that is impossible.

        A genotype of which a bit is unknown is missing; a warning counts those of which the other bit is known.
        """
        table, n_half_known = self._table, 0
        by_column = table.bits.transpose()
        chunk_variants = max(1, CHUNK_BITS // max(1, 2 * len(table)))
        for start in range(0, len(self._columns), chunk_variants):
            first, second = self._columns[start : start + chunk_variants].T
            carries, unknown = _dense(by_column[first])
            if self.phased:
                yield np.where(unknown, -1, carries).astype(np.int8)
                continue
            carries_two, unknown_two = _dense(by_column[second])
            missing = unknown | unknown_two
            n_half_known += int((unknown != unknown_two).sum())
            impossible = carries_two & ~carries & ~missing
            if impossible.any():
                variant, row = np.argwhere(impossible)[0].tolist()
                name = table.names_of([int(first[variant])])[0]
                raise FileError(
                    f"{path.name}: {table.row_name(row)!r} carries two copies of the allele {name!r} but not one, so "
                    f"{_NO_GENOTYPES}"
                )
            yield np.where(missing, -1, carries.astype(np.int8) + carries_two).astype(np.int8)
        if n_half_known:
            genotypes = f"{counted(n_half_known, 'genotype')} {be(n_half_known)}"
            warn(f"{path.name}: {genotypes} written as missing because one of the two cells is unknown")

    def individuals(self, path: Path, kind: str) -> list[tuple[str, str]]:
        """Return the family and the name of each sample, as PLINK stores them; raise FileError if it cannot.

        ``kind`` is the extension of the file that lists them.
        """
        individuals = []
        for name, given in zip(self.samples, self.sample_field("family", ""), strict=True):
            family, _, individual = name.rpartition(" ")
            # The name of a row does not tell an individual without a family from one whose family has its name.
            family = given if given and sample_name(given, individual) == name else family or "0"
            is_valid = FIELD.fullmatch(family) and FIELD.fullmatch(individual) and individual != "0"
            if not is_valid or sample_name(family, individual) != name:
                raise FileError(
                    f"{path.name}: a {kind} file cannot store the row name {name!r}: it must be an individual, or a "
                    "family and an individual separated by a blank, and the individual must not be 0; rename it"
                )
            individuals.append((family, individual))
        if (duplicate := first_duplicate(self.samples)) is not None:
            raise FileError(
                f"{path.name}: two rows have the name {duplicate!r}, which PLINK forbids; rename one of them"
            )
        return individuals

    def warn_not_stored(self, path: Path, of_variants: Sequence[str], of_samples: Sequence[str]) -> None:
        """Warn which fields of variants and samples are not among those that a format stores."""
        known = (*(FIELDS), *of_variants), ("family", *of_samples)
        lost = [
            f"{name} of {what}"
            for data, stored, what in ((self.variants, known[0], "variants"), (self.sample_data, known[1], "samples"))
            for name in data or ()
            if name not in stored and _is_informative(data[name])  # type: ignore[index]
        ]
        if lost:
            warn(f"{path.name}: this format does not store {', '.join(lost)}")

    def field(self, name: str, default: Any) -> list[Any]:
        """Return the values of a field of the variants, with the default where they are missing."""
        return _values(self.variants, name, default)

    def sample_field(self, name: str, default: Any) -> list[Any]:
        """Return the values of a field of the samples, with the default where they are missing."""
        if self.sample_data is None:
            return [default] * len(self.samples)
        return _values(self.sample_data, name, default)


def _is_informative(values: NDArray[Any]) -> bool:
    """Return whether a field has values other than those that stand for no value."""
    if values.dtype.kind in "biuf":
        known = np.ma.compressed(values)
        return bool((known[known == known] != 0).any())
    return any(value not in _NO_INFORMATION for value in set(values.tolist()))


def _values(data: Annotations, name: str, default: Any) -> list[Any]:
    """Return the values of a field, with the default where they are missing."""
    values = data[name].tolist() if name in data else [None] * data.n
    return [default if value is None or value != value else value for value in values]


def _dense(columns: BitMatrix) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the bits of columns, and which of them are unknown."""
    bits = columns.filled().to_dense(bool)
    return bits, np.zeros_like(bits) if columns.unknown is None else columns.unknown.to_dense(bool)


def _no_variants() -> Annotations:
    nothing = Labels.of([])
    numbers = np.zeros(0, np.int64)
    return Annotations(
        {"chromosome": nothing, "position": numbers, "id": nothing, "allele": nothing, "other": nothing}, 0
    )


def _problem(columns: Sequence[str]) -> str:
    """Return why columns are not those of genotypes."""
    if len(columns) % 2:
        return "the table has an odd number of columns"
    pairs = zip(columns[0::2], columns[1::2], strict=True)
    first, second = next(pair for pair in pairs if from_names(pair) is None)
    return f"the columns {first!r} and {second!r} are not those of a variant"


def quality_text(value: float) -> str:
    """Return a quality as the shortest text of a number of 32 bits, "." if it is missing."""
    return "." if value != value else np.format_float_positional(np.float32(value), trim="-")
