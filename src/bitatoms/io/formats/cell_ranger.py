"""Single-cell matrices of 10x Genomics: names of features and cells in text files beside the matrix.

Cell Ranger writes ``matrix.mtx.gz`` with one row per feature and one column per cell, ``features.tsv.gz``
(``genes.tsv`` in version 2) and ``barcodes.tsv.gz``. Archives put the same prefix before the three names.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...columns.annotations import Annotations
from ...errors import Parameter, warn
from ..stream import Source
from ..text import read_lines
from .registry import FEATURE_MATRIX

COMMENT = "%metadata_json:"  # in the header of the matrix


class FeatureMatrix(NamedTuple):
    """The cells and features of a matrix, and whether its rows are features."""

    cells: Sequence[str] | None = None
    features: Annotations | None = None
    rows_are_features: bool = False


def read_names(source: Source, shape: tuple[int, int]) -> FeatureMatrix:
    """Read the names of a matrix from the files beside it, if they fit its shape."""
    found = FEATURE_MATRIX.fullmatch(source.path.name)
    if found is None:
        return FeatureMatrix()
    features, barcodes = (
        next((path for kind in kinds if (path := _sibling(source.path, f"{found['prefix']}{kind}.tsv"))), None)
        for kinds in (("features", "genes"), ("barcodes",))
    )
    if features is None or barcodes is None:
        return FeatureMatrix()
    lines, cells = _read_fields(features, max(shape)), [row[0] for row in _read_fields(barcodes, max(shape))]
    if (len(lines), len(cells)) in (shape, shape[::-1]):
        return FeatureMatrix(cells, _feature_data(lines), (len(lines), len(cells)) == shape)
    warn(
        f"{source.name}: the names in {features.name} and {barcodes.name} are ignored, because they do not fit its "
        f"{shape[0]} rows and {shape[1]} columns"
    )
    return FeatureMatrix()


def warn_exchanged(source: Source) -> None:
    """Warn that the rows of a matrix are features, and become columns."""
    advice = "; for one row per feature, pass ", Parameter("transpose", False)
    warn(f"{source.name}: its rows are features (genes) and are read as columns: one row per cell", *advice)


def _sibling(path: Path, name: str) -> Path | None:
    """Return the file of this name beside another, compressed or not, or None."""
    return next((file for file in (path.with_name(f"{name}.gz"), path.with_name(name)) if file.is_file()), None)


def _read_fields(path: Path, n_lines: int) -> list[list[str]]:
    """Return the fields of the lines of a file, of at most one line more than given."""
    lines = itertools.islice(read_lines(Source(path, "tsv", str(path))), n_lines + 1)
    return [[field.strip() for field in line.split("\t")] for line in lines]


def _feature_data(lines: Sequence[Sequence[str]]) -> Annotations:
    """Return what the lines of a file state about features: identifier, name and type."""
    types = [fields[2] if len(fields) > 2 else None for fields in lines]
    return feature_data(
        [fields[0] for fields in lines],
        [fields[1] if len(fields) > 1 else fields[0] for fields in lines],
        **({"feature_types": types} if any(types) else {}),
    )


def feature_data(ids: Sequence[str], names: Sequence[str], **others: Any) -> Annotations:
    """Return what is known about features, under the names that scanpy gives to it."""
    return Annotations({"gene_ids": ids, "gene_symbols": names, **others}, len(ids))


def feature_names(features: Annotations) -> list[str]:
    """Return the name of each feature; its identifier if another has the same name."""
    names, ids = features["gene_symbols"].tolist(), features["gene_ids"].tolist()
    counts = Counter(names)
    return [name if counts[name] == 1 else identifier for name, identifier in zip(names, ids, strict=True)]
