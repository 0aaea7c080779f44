"""Tables of numbers of copies of an allele, in files that are not of genotypes: two columns per variant.

Their readers yield two bits per cell (see `bitatoms.io.cells`), while ``columns`` and ``n_cols`` are those of the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..columns.table import feature_names
from ..columns.variants import dosage_columns, interleaved
from ..sparse_bits import packed
from .stream import RowChunk, Source, TableStream, unique_columns


def with_paired_columns(stream: TableStream) -> TableStream:
    """Return a stream whose rows have two bits per cell with the names of these: one copy or more, two copies."""
    columns, data = dosage_columns(feature_names(stream.columns, range(stream.n_cols)))
    return replace(stream, n_cols=len(columns), columns=columns, column_data=data)


class PairedRows:
    """The lines of a file that has one line per variant, two rows each: one copy or more, two copies.

    ``stream`` has them, to be transposed, and `with_names` names the columns of the result.
    """

    def __init__(self, stream: TableStream) -> None:
        self._names: list[str] = []
        self.stream = replace(stream, chunks=self._chunks(stream))

    def _chunks(self, stream: TableStream) -> Iterator[RowChunk]:
        columns = np.arange(2 * stream.n_cols)
        for chunk in stream.chunks:
            self._names.extend(chunk.names or ())
            bits = packed(chunk.bits)
            yield RowChunk(interleaved(*(bits.take_columns(columns[first::2]) for first in (0, 1))))

    def with_names(self, source: Source, transposed: TableStream, duplicates: str) -> TableStream:
        """Return the stream of samples, after all lines of the file were read, with the names of its columns."""
        names = unique_columns(source, self._names, duplicates) if self._names else None
        columns, data = dosage_columns(feature_names(names, range(transposed.n_cols // 2)))
        return replace(transposed, columns=columns, column_data=data)
