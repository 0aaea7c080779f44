"""`ReadOptions`: how a file is read. Each field is a parameter of `bitatoms.read`, and a command-line option.

A new option needs a field here, and the reader that uses it.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..columns.encode_options import EncodeOptions as EncodeOptions
from ..errors import InputError, Parameter
from ..parameters import check, declarations, option
from ..validation import check_pair, check_threshold

if TYPE_CHECKING:
    from .stream import Source

Missing = Literal["unknown", "zero", "refuse"]
Duplicates = Literal["refuse", "number"]

TEXT_FORMATS = ("csv", "tsv")
CELL_FORMATS = (*TEXT_FORMATS, "xlsx")  # of tables of any shape
DOSAGE_FORMATS = (*CELL_FORMATS, "parquet", "feather")  # of tables that may hold numbers of copies
# Their readers drop columns before converting cells.
DROPPING_FORMATS = (*DOSAGE_FORMATS, "pairs")
# A Zarr store may contain genotypes; its reader raises if it does not.
_GENOTYPES = ("bed", "pgen", "vcf", "bcf", "zarr")


def _check_text(name: str, value: Any) -> str | None:
    """Return a text, or None."""
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{name} must be a str or None, not {value!r}")
    return value


def _check_flag(name: str, value: Any) -> bool:
    """Return a boolean."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, not {value!r}")
    return value


def _check_long(name: str, given: Any) -> tuple[str, str] | None:
    """Return the names of two columns, which may be written as one text, separated by a comma."""
    if given is None:
        return None
    columns = next(csv.reader([given], skipinitialspace=True)) if isinstance(given, str) else list(given)
    if len(columns) != 2 or columns[0] == columns[1]:
        raise InputError(
            Parameter(name), f" must be two columns, that of the rows and that of the items, got {given!r}; pass ",
            Parameter(name, "order,item"),
        )  # fmt: skip
    return str(columns[0]), str(columns[1])


def _check_numbered_names(name: str, value: Any) -> str | dict[int, str] | None:
    """Return the path of a file of names, or the name of each number."""
    if isinstance(value, Mapping):
        return {int(number): str(each) for number, each in value.items()}
    return None if value is None else os.fspath(value)


def _check_listed(name: str, value: Any) -> str | tuple[str, ...] | None:
    """Return the path of a file of names, or the names."""
    if value is None or isinstance(value, (str, os.PathLike)):
        return None if value is None else os.fspath(value)
    return tuple(map(str, value))


def _check_blocks(name: str, value: Any) -> tuple[int, int] | None:
    """Return the height and the width of blocks."""
    return None if value is None else check_pair(name, value, least=1)


@dataclass(frozen=True)
class ReadOptions(EncodeOptions):
    """Parameters of `bitatoms.read` and `bitatoms.pack`."""

    format: str | None = option(
        None,
        "The format of the file, if its extension does not select it.",
        'One of "csv", "tsv", "xlsx", "npy", "npz", "parquet", "feather", "mtx", "fimi", "baskets", "pairs", "pbm", '
        '"png", "tiff", "h5ad", "h5mu", "10x", "bed", "pgen", "vcf", "bcf" and "zarr".',
        option="format",
    )
    _: KW_ONLY
    binarize: float | None = option(
        None,
        "Threshold: values above it become 1, all others 0.",
        "Without it, all values must be 0 or 1.",
        check=lambda name, value: check_threshold(value),
        option="binarize",
        is_common=True,
        is_remembered=True,
    )
    missing: Missing = option(
        "unknown",
        "Missing values (NaN, null, NA, ?): unknown cells, 0, or an error.",
        "Unknown cells have no influence on what is learned. In text, blank cells are 0 if the table contains no other "
        "zero, and missing otherwise. See docs/reference/files.md.",
        option="missing",
        is_remembered=True,
    )
    duplicates: Duplicates = option(
        "refuse",
        "Columns with the same name: report an error, or append numbers.",
        option="duplicates",
        is_remembered=True,
    )
    header: bool | None = option(
        None,
        "Whether the first line of a text file holds column names; detected by default.",
        option="header",
        formats=(*CELL_FORMATS, "pairs", "baskets"),
    )
    row_names: bool | None = option(
        None,
        "Whether the first column of a text file holds row names; detected by default.",
        option="row-names",
        formats=(*DOSAGE_FORMATS, "baskets"),
    )
    separator: str | None = option(
        None,
        "Cell separator of a text file; detected by default.",
        option="separator",
        formats=(*TEXT_FORMATS, "baskets", "pairs"),
    )
    sheet: str | int | None = option(
        None,
        "Sheet of an .xlsx file, by name or number (from 1); the first one by default.",
        option="sheet",
        formats=("xlsx",),
    )
    long: Sequence[str] | None = option(
        None,
        "Read a long table: the names of two columns, that of the rows and that of the items, such as order,item.",
        "Each line then names a row and one of its items. In a text file without column names, their numbers, counting "
        "from 1. An error about a file that looks like such a table has the columns to pass.",
        check=_check_long,
        type="str or pair of str, optional",
        option="long",
        formats=(*CELL_FORMATS, "pairs"),
    )
    categories: bool = option(
        False,
        "Read a table of categories and numbers: one column per value, and per bin of a number.",
        "See `bitatoms.encode`. A model stores the encoding and applies it to new rows.",
        option="categories",
        is_common=True,
        formats=CELL_FORMATS,
    )
    names: str | os.PathLike[str] | Mapping[int, str] | None = option(
        None,
        "Names of numbered columns or items: a file with a number and a name per line.",
        "Columns without names are numbered from 0 if the file lists a number 0, and otherwise from 1. A mapping of "
        "numbers to names may be passed instead.",
        check=_check_numbered_names,
        type="path or mapping of int to str, optional",
        option="names",
    )
    layer: str | None = option(
        None,
        "Layer of an .h5ad file, raw, or obsm/NAME; array of an .npz file or a Zarr store.",
        'The main one by default. "raw" is the ``raw`` of an AnnData, and "obsm/protein" the array "protein" of its '
        "``obsm``, if no layer has this name. In an .h5 file of Cell Ranger 2 it is the genome.",
        check=_check_text,
        option="layer",
        is_remembered=True,
        formats=("h5ad", "h5mu", "10x", "npz", "zarr"),
    )
    modality: str | None = option(
        None,
        "Modality of a MuData (.h5mu), or type of the features of 10x Genomics.",
        "It is required if a MuData has several. The features of 10x Genomics are all read by default.",
        check=_check_text,
        option="modality",
        is_remembered=True,
        formats=("h5mu", "10x", "zarr"),
    )
    blocks: tuple[int, int] | None = option(
        None,
        "Cut an image (.pbm, .png, .tiff) into blocks of this height and width; each block becomes a row.",
        "By default each line of pixels is a row.",
        check=_check_blocks,
        type="pair of int, optional",
        option="blocks",
        is_remembered=True,
        formats=("pbm", "png", "tiff"),
    )
    transpose: bool | None = option(
        None,
        "Exchange rows and columns.",
        "The columns of the file become rows. Both tables must fit into memory, packed. ``without`` still names "
        "columns of the file. By default only a matrix.mtx of 10x Genomics (genes x cells) is exchanged.",
        option="transpose",
    )
    dosage: bool = option(
        False,
        "Read a table of numbers of copies of an allele, 0, 1 and 2: two columns per variant.",
        "As in files of genotypes, these are: carries the allele, carries two copies. Other numbers are rounded. A "
        "model that has learned from such a table reads others without this option. See `Table.from_any`.",
        option="dosage",
        formats=DOSAGE_FORMATS,
    )
    phased: bool = option(
        False,
        "Genotypes: two rows per sample, one for each of its phased haplotypes.",
        "By default a sample is one row, and a variant two columns: carries the allele, carries two copies.",
        check=_check_flag,
        option="phased",
        is_remembered=True,
        formats=_GENOTYPES,
    )
    region: str | None = option(
        None,
        "Genotypes: only variants in these regions, such as 20:1000000-2000000 or X.",
        "Positions begin at 1, and both ends belong to the region. Several regions are separated by commas.",
        option="region",
        formats=_GENOTYPES,
    )
    maf: float | None = option(
        None,
        "Genotypes: only variants whose rarer allele has at least this frequency.",
        "The frequency is that among the known alleles of the samples that are read.",
        option="maf",
        formats=_GENOTYPES,
    )
    keep: str | os.PathLike[str] | Sequence[str] | None = option(
        None,
        "Genotypes: only the samples listed in this file, one per line, or two fields (family, sample).",
        "A sequence of names may be passed instead.",
        check=_check_listed,
        type="path or sequence of str, optional",
        option="keep",
        formats=_GENOTYPES,
    )
    extract: str | os.PathLike[str] | Sequence[str] | None = option(
        None,
        "Genotypes: only the variants listed in this file, one id per line.",
        "A sequence of ids may be passed instead.",
        check=_check_listed,
        type="path or sequence of str, optional",
        option="extract",
        formats=_GENOTYPES,
    )

    def given(self, format: str | None = None) -> dict[str, Any]:
        """Return the options that differ from their defaults; with a format, only those declared for it by name."""
        declared = {name: param for name, (_, param) in declarations(type(self)).items()}
        return {
            name: value
            for name, value in self.get_params().items()
            if value != declared[name].default and (format is None or format in declared[name].formats)
        }

    def check_format(self, source: Source) -> None:
        """Raise FileError if an option is given that does not apply to the format of the file."""
        for name in self.given():
            formats = declarations(type(self))[name][1].formats
            if formats and source.format not in formats:
                problem = f" applies to {', '.join(formats)}, not to {source.format!r}; omit it"
                raise source.error(Parameter(name), problem)


@dataclass(frozen=True)
class PackOptions(ReadOptions):
    """Parameters of `bitatoms.pack`."""

    _: KW_ONLY
    max_memory: int | str | None = option(
        None,
        "Memory limit for a file whose cells are not stored row by row, such as 500MB or 2GiB.",
        "A number of bytes, or text with a unit; None is 512 MiB. It does not change the result. Names of rows and "
        "columns are in memory in addition.",
    )
    callback: Callable[[int], object] | None = option(
        None, "Called repeatedly with the number of rows packed so far.", type="callable, optional"
    )


def remembered(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options among these that a model remembers, because they decide what cells mean, after a check.

    Others are ignored. A file that holds them may be untrusted: InputError, TypeError or ValueError tells that a value
    is not one that the option has.
    """
    declared = {name: each for name, each in declarations(ReadOptions).items() if each[1].is_remembered}
    return {name: check(name, options[name], declared[name]) for name in declared if name in options}
