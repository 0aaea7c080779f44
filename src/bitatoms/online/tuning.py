"""The constants that tune learning from a stream."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StreamTuning:
    """How many rows a stream keeps, and how often its atoms are replaced and refined."""

    max_sample_rows: int = 1 << 12  # kept as a sample, unless they have more than ``max_sample_bits``
    min_sample_rows: int = 1 << 10
    max_sample_bits: int = 1 << 26
    recent_rows: int = 1024  # the last rows, from which new atoms are grown
    rows_per_replacement: int = 512  # unused atoms are replaced whenever this many rows have come
    seeds_per_atom: int = 32  # a new atom grows from the best of this many rows
    min_new_atoms: int = 8  # a replacement may add this many atoms,
    new_atoms_share: float = 0.1  # or this share of the atoms there are
    scratch_rows: int = 512  # up to this many rows, every search starts from scratch, in all algebras allowed
    growth_per_search: float = 0.5  # the sample is searched again after this many rows per row at the last search;
    growth_per_search_of_all: float = 0.12  # the same while the sample holds all rows;
    min_rows_per_search: int = 256  # but not before this many rows, or as many as there were
    max_history: int = 1000  # rounds

    def sample_rows(self, n_features: int) -> int:
        """Return the maximum number of rows of a stream to keep."""
        return min(self.max_sample_rows, max(self.min_sample_rows, self.max_sample_bits // max(1, n_features)))
