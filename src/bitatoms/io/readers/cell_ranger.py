"""Single-cell matrices of 10x Genomics: names of features and cells in text files beside the matrix.

Cell Ranger writes ``matrix.mtx.gz`` with one row per feature and one column per cell, ``features.tsv.gz``
(``genes.tsv`` in version 2) and ``barcodes.tsv.gz``. Archives put the same prefix before the three names.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ...errors import Parameter, warn
from ..stream import Source
from ..text_lines import read_lines

COMMENT = "%metadata_json:"  # in the header of the matrix
_MATRIX = re.compile(r"(?P<prefix>.*)matrix\.mtx(\.gz)?", re.IGNORECASE)


class FeatureMatrix(NamedTuple):
    """The names of rows and columns of a matrix, and whether its rows are features."""

    rows: Sequence[str] | None = None
    columns: Sequence[str] | None = None
    rows_are_features: bool = False


def read_names(source: Source, shape: tuple[int, int]) -> FeatureMatrix:
    """Read the names of a matrix from the files beside it, if they fit its shape."""
    found = _MATRIX.fullmatch(source.path.name)
    if found is None:
        return FeatureMatrix()
    features, barcodes = (
        next((path for kind in kinds if (path := _sibling(source.path, f"{found['prefix']}{kind}.tsv"))), None)
        for kinds in (("features", "genes"), ("barcodes",))
    )
    if features is None or barcodes is None:
        return FeatureMatrix()
    names = _feature_names(_read_fields(features, max(shape))), [row[0] for row in _read_fields(barcodes, max(shape))]
    sizes = len(names[0]), len(names[1])
    if sizes == shape:
        return FeatureMatrix(*names, rows_are_features=True)
    if sizes == shape[::-1]:
        return FeatureMatrix(*names[::-1])
    warn(
        f"{source.name}: the names in {features.name} and {barcodes.name} are ignored, because they do not fit its "
        f"{shape[0]} rows and {shape[1]} columns"
    )
    return FeatureMatrix()


def warn_about_features(source: Source, transpose: bool) -> None:
    """Warn that the rows of a matrix are features, unless they become columns."""
    if not transpose:
        advice = "; for one row per cell, pass ", Parameter("transpose", True)
        warn(f"{source.name}: its rows are features (genes) and its columns are cells", *advice)


def _sibling(path: Path, name: str) -> Path | None:
    """Return the file of this name beside another, compressed or not, or None."""
    return next((file for file in (path.with_name(f"{name}.gz"), path.with_name(name)) if file.is_file()), None)


def _read_fields(path: Path, n_lines: int) -> list[list[str]]:
    """Return the fields of the lines of a file, of at most one line more than given."""
    lines = itertools.islice(read_lines(Source(path, "tsv", str(path))), n_lines + 1)
    return [[field.strip() for field in line.split("\t")] for line in lines]


def _feature_names(lines: Sequence[Sequence[str]]) -> list[str]:
    """Return the name of each feature (second field); its identifier (first field) if another has the same name."""
    names = [fields[1] if len(fields) > 1 else fields[0] for fields in lines]
    counts = Counter(names)
    return [name if counts[name] == 1 else fields[0] for name, fields in zip(names, lines, strict=True)]
