"""PaNDa+: greedy mining of noisy patterns, each a dense core extended while the cost does not rise."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from ..bits import BitMatrix
from ..validation import check_choice, check_fraction, check_int
from .baseline import Baseline, Factors

_TOLERANCE = 1e-9  # for comparing shares of integers as floats


class PandaPlus(Baseline):
    """PaNDa+, the greedy top-k pattern miner of Lucchese, Orlando and Perego.

    A pattern is a set of items (columns) and a set of samples. It starts as a core, a full rectangle of uncovered ones:
    items are visited in an order, and an item is added, and the samples without it are removed, if this does not raise
    the cost. The core is then extended by samples and by other items, including zeros, if this does not raise the cost.
    Patterns are added while the cost falls, so the method chooses their number.

    Parameters
    ----------
    n_components : int or None, default=None
        Maximum number of patterns. None: as many as lower the cost.
    cost : {"mdl", "patterns"}, default="mdl"
        The objective. With n samples, m features, patterns p of i items and s samples, c covered cells of which f are
        zeros, and u uncovered ones:

        - "mdl": the typed-XOR description of Miettinen and Vreeken (J_E in the framework),
          sum over p of bits(n, s) + bits(m, i), plus bits(c, f) + bits(nm - c, u), where a string of length a with b
          ones takes bits(a, b) = log2(a + 1) + log2 C(a, b).
        - "patterns": the cost of PaNDa (J_P), f + u + ``pattern_weight`` * (sum over p of i + s).
    pattern_weight : float, default=1.0
        The weight (rho) of patterns in the cost "patterns"; 0 counts only wrong cells. Ignored with "mdl".
    row_tolerance : float, default=0.4
        Maximum share of a pattern's items that one of its samples may lack (epsilon_r). 1: no limit.
    column_tolerance : float, default=0.4
        Maximum share of a pattern's samples that may lack one of its items (epsilon_c). 1: no limit.
    order : {"pairs", "frequency", "correlation"}, default="pairs"
        The order of the items, by uncovered ones: the number of ones of an item ("frequency"), the total number of ones
        of the samples that have it ("pairs"), or the first item by "pairs" and then always the item that the most
        samples of the core have ("correlation").
    n_orders : int, default=20
        Number of orders tried per pattern; the pattern with the lowest cost is kept. The first is the order as given.
        The others are random: each item's sort key is multiplied by a random number between 0 and 1.
    binarize : float or None, default=None
        Threshold: values above it are ones. None requires X to hold only 0 and 1.
    random_state : int, Generator, RandomState or None, default=None
        The same seed gives the same result.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features), uint8
        The items of each pattern.
    codes_ : ndarray of shape (n_samples, n_components_), uint8
        The samples of each pattern.
    codelength_ : Codelength
    n_components_ : int

    Notes
    -----
    It differs from the papers as follows. Candidate samples are tried best first, not in the order of the table; this
    changes nothing with the cost "patterns" and ``column_tolerance=1``. Samples are also tried before the first item.
    Two of the costs and three of the orders of the framework are implemented. The distribution of random orders is our
    choice.

    The cost "mdl" needs the tolerances. Covered zeros are cheap once there are many, so without limits patterns grow
    over half the table, and on the digits 22 % of the cells are wrong instead of 12 %.

    References
    ----------
    C. Lucchese, S. Orlando, R. Perego, "Mining top-k patterns from binary datasets in presence of noise", SIAM
    International Conference on Data Mining, 2010.
    C. Lucchese, S. Orlando, R. Perego, "A unifying framework for mining approximate top-k binary patterns", IEEE
    Transactions on Knowledge and Data Engineering 26(12), 2014.
    P. Miettinen, J. Vreeken, "MDL4BMF: minimum description length for Boolean matrix factorization", ACM Transactions
    on Knowledge Discovery from Data 8(4), 2014.

    Examples
    --------
    >>> from bitatoms.baselines import PandaPlus
    >>> from bitatoms.datasets import planted
    >>> data = planted(200, 60, 3, algebra="or", noise=0.02, random_state=0)
    >>> model = PandaPlus(random_state=0).fit(data.X)
    >>> model.n_components_
    3
    """

    algebra: ClassVar[str] = "or"

    def __init__(
        self,
        n_components: int | None = None,
        *,
        cost: str = "mdl",
        pattern_weight: float = 1.0,
        row_tolerance: float = 0.4,
        column_tolerance: float = 0.4,
        order: str = "pairs",
        n_orders: int = 20,
        binarize: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.cost = cost
        self.pattern_weight = pattern_weight
        self.row_tolerance = row_tolerance
        self.column_tolerance = column_tolerance
        self.order = order
        self.n_orders = n_orders
        self.binarize = binarize
        self.random_state = random_state

    def _factorize(self, data: BitMatrix, random: np.random.Generator) -> Factors:
        check_choice("cost", self.cost, ("mdl", "patterns"))
        check_choice("order", self.order, ("pairs", "frequency", "correlation"))
        weight = _check_weight("pattern_weight", self.pattern_weight)
        limits = _Limits(
            check_fraction("row_tolerance", self.row_tolerance),
            check_fraction("column_tolerance", self.column_tolerance),
        )
        n_orders = check_int("n_orders", self.n_orders, 1)
        cells = _CellSets.of(data)
        cost = _Cost(data.shape, data.count(), None if self.cost == "mdl" else weight)
        patterns: list[_Pattern] = []
        while self.n_components is None or len(patterns) < self.n_components:
            scores = _item_scores(cells, self.order)
            if not scores.any():  # every one is covered
                break
            candidates = []
            for turn in range(n_orders):
                order = np.argsort(-(scores if turn == 0 else scores * random.random(len(scores))), kind="stable")
                core, others = _find_core(cells, cost, order, resort=self.order == "correlation")
                candidates.append(_extended(core, others, cells, cost, limits))
            best = min(candidates, key=lambda pattern: cost.with_pattern(pattern.counts))  # ties: the first
            if cost.with_pattern(best.counts) >= cost.total:
                break
            patterns.append(best)
            cost.add(best.counts)
            cells = cells.without(best)
        return Factors(
            np.array([pattern.items for pattern in patterns], bool).reshape(len(patterns), data.n_cols),
            np.array([pattern.rows for pattern in patterns], bool).reshape(len(patterns), data.n_rows).T,
        )


class _PatternCounts(NamedTuple):
    """The numbers that the cost of a pattern depends on; arrays for several patterns."""

    items: Any
    rows: Any
    ones: Any  # covered by no other pattern
    zeros: Any  # covered by no other pattern


class _Pattern(NamedTuple):
    """Items and samples, as masks."""

    items: NDArray[np.bool_]
    rows: NDArray[np.bool_]
    counts: _PatternCounts


class _Limits(NamedTuple):
    """Maximum shares of zeros in a pattern."""

    per_row: float
    per_column: float


@dataclass(frozen=True, slots=True)
class _CellSets:
    """The uncovered ones, the uncovered zeros, and all ones, each with its transpose."""

    ones: BitMatrix
    ones_by_item: BitMatrix
    zeros: BitMatrix
    zeros_by_item: BitMatrix
    data: BitMatrix
    data_by_item: BitMatrix

    @classmethod
    def of(cls, data: BitMatrix) -> _CellSets:
        """Return the cells of a table, none of them covered."""
        zeros = data ^ BitMatrix.from_dense(np.ones((1, data.n_cols), np.uint8))[np.zeros(data.n_rows, np.int64)]
        return cls(data, data.T, zeros, zeros.T, data, data.T)

    def without(self, pattern: _Pattern) -> _CellSets:
        """Return the cells that are uncovered after a pattern is added."""

        def cleared(table: BitMatrix, which: NDArray[np.bool_], bits: NDArray[np.bool_]) -> BitMatrix:
            words = table.words.copy()
            words[which] &= ~_packed(bits)
            return BitMatrix.from_words(words, table.n_cols, check=False)

        items, rows = pattern.items, pattern.rows
        return _CellSets(
            cleared(self.ones, rows, items),
            cleared(self.ones_by_item, items, rows),
            cleared(self.zeros, rows, items),
            cleared(self.zeros_by_item, items, rows),
            self.data,
            self.data_by_item,
        )


class _Cost:
    """The cost of the patterns found so far, and of these with one more."""

    def __init__(self, shape: tuple[int, int], n_ones: int, weight: float | None) -> None:
        self._shape = shape
        self._weight = weight  # of patterns relative to wrong cells; None: the cost is in bits
        self._patterns = 0.0
        self._ones, self._zeros, self._uncovered = 0, 0, n_ones
        self.total = float(self.with_pattern(None))

    def with_pattern(self, counts: _PatternCounts | None) -> Any:
        """Return the cost with one more pattern, or an array of costs for several candidates; None adds none."""
        n_rows, n_items = self._shape
        patterns, ones, zeros = self._patterns, self._ones, self._zeros
        if counts is not None:
            patterns = patterns + self._pattern_cost(counts)
            ones, zeros = ones + counts.ones, zeros + counts.zeros
        uncovered = self._uncovered + self._ones - ones
        if self._weight is not None:
            return patterns + zeros + uncovered
        covered = ones + zeros
        return patterns + _string_bits(covered, zeros) + _string_bits(n_rows * n_items - covered, uncovered)

    def add(self, counts: _PatternCounts) -> None:
        """Add a pattern to those found so far."""
        self.total = float(self.with_pattern(counts))
        self._patterns += float(self._pattern_cost(counts))
        self._ones += counts.ones
        self._zeros += counts.zeros
        self._uncovered -= counts.ones

    def _pattern_cost(self, counts: _PatternCounts) -> Any:
        """Return the cost of the lists of items and samples."""
        if self._weight is not None:
            return self._weight * (counts.items + counts.rows)
        return _string_bits(self._shape[0], counts.rows) + _string_bits(self._shape[1], counts.items)


def _string_bits(length: Any, ones: Any) -> Any:
    """Return log2(length + 1) + log2 C(length, ones): the bits of a string with this many ones."""
    choices = gammaln(length + 1.0) - gammaln(ones + 1.0) - gammaln(length - ones + 1.0)
    return (np.log(length + 1.0) + choices) / np.log(2)


def _item_scores(cells: _CellSets, order: str) -> NDArray[np.int64]:
    """Return the sort key of each item: its uncovered ones, or those of the samples that have it."""
    if order == "frequency":
        return cells.ones_by_item.row_weights()
    weights, columns = cells.ones.row_weights(), cells.ones_by_item.words
    # bit plane by bit plane of the weights, so that nothing is unpacked
    bits = range(int(weights.max()).bit_length())
    return sum((_shared(columns, _packed((weights >> bit & 1) > 0)) << bit for bit in bits), np.zeros(1, np.int64))


def _find_core(
    cells: _CellSets, cost: _Cost, order: NDArray[np.int64], resort: bool
) -> tuple[_Pattern, NDArray[np.int64]]:
    """Return a full rectangle of uncovered ones, and the other items in the order in which they were visited.

    The core starts with the first item and all its samples. An item is added, and the samples without it are removed,
    if the cost does not rise. With ``resort``, the next item is always the one that the most samples of the core have.
    """
    columns = cells.ones_by_item.words
    items, others = [int(order[0])], order[1:]
    rows = columns[order[0]]
    skipped: list[NDArray[np.int64]] = []
    n_rows = int(np.bitwise_count(rows).sum())
    lowest = cost.with_pattern(_PatternCounts(1, n_rows, n_rows, 0))
    while len(others):
        shared = _shared(columns[others], rows)
        if resort:
            ranks = np.argsort(-shared, kind="stable")
            others, shared = others[ranks], shared[ranks]
        n_items = len(items) + 1
        costs = cost.with_pattern(_PatternCounts(n_items, shared, n_items * shared, 0))
        acceptable = np.flatnonzero((costs <= lowest) & (shared > 0))
        if len(acceptable) == 0:
            break
        first = acceptable[0]
        items.append(int(others[first]))
        rows, lowest = rows & columns[others[first]], costs[first]
        skipped.append(others[:first])
        others = others[first + 1 :]
    mask = np.zeros(len(order), bool)
    mask[items] = True
    row_mask = _unpacked(rows, cells.ones.n_rows)
    n_rows = int(row_mask.sum())
    core = _Pattern(mask, row_mask, _PatternCounts(len(items), n_rows, len(items) * n_rows, 0))
    return core, np.concatenate([*skipped, others])


def _extended(core: _Pattern, others: NDArray[np.int64], cells: _CellSets, cost: _Cost, limits: _Limits) -> _Pattern:
    """Return the core with samples and items added that do not raise the cost; samples are tried after each item."""
    pattern = _with_rows(core, cells, cost, limits)
    while len(others):
        rows, counts = _packed(pattern.rows), pattern.counts
        ones = _shared(cells.ones_by_item.words[others], rows)
        zeros = _shared(cells.zeros_by_item.words[others], rows)
        grown = _PatternCounts(counts.items + 1, counts.rows, counts.ones + ones, counts.zeros + zeros)
        acceptable = (cost.with_pattern(grown) <= cost.with_pattern(counts)) & (ones > 0)
        acceptable &= _within_limits(pattern, others, cells, limits)
        indices = np.flatnonzero(acceptable)
        if len(indices) == 0:
            break
        first = indices[0]
        items = pattern.items.copy()
        items[others[first]] = True
        counts = _PatternCounts(grown.items, grown.rows, int(grown.ones[first]), int(grown.zeros[first]))
        pattern = _with_rows(_Pattern(items, pattern.rows, counts), cells, cost, limits)
        others = others[first + 1 :]
    return pattern


def _within_limits(
    pattern: _Pattern, others: NDArray[np.int64], cells: _CellSets, limits: _Limits
) -> NDArray[np.bool_] | np.bool_:
    """Return which of the other items can be added without exceeding the limits of any sample or of the item."""
    if limits == (1.0, 1.0):
        return np.bool_(True)
    columns, n_rows = cells.data_by_item.words[others], pattern.counts.rows
    zeros_per_item = n_rows - _shared(columns, _packed(pattern.rows))
    zeros_per_row = pattern.counts.items - _shared(cells.data.words, _packed(pattern.items))
    # a sample at its limit must have the item
    at_limit = pattern.rows & (zeros_per_row + 1 > limits.per_row * (pattern.counts.items + 1) + _TOLERANCE)
    has_all = _shared(columns, _packed(at_limit)) == at_limit.sum()
    return (zeros_per_item <= limits.per_column * n_rows + _TOLERANCE) & has_all


def _with_rows(pattern: _Pattern, cells: _CellSets, cost: _Cost, limits: _Limits) -> _Pattern:
    """Return the pattern with other samples added, best first, that do not raise the cost."""
    bits, counts = _packed(pattern.items), pattern.counts
    ones, zeros = _shared(cells.ones.words, bits), _shared(cells.zeros.words, bits)
    acceptable = ~pattern.rows & (ones > 0)
    if limits.per_row < 1:
        zeros_per_row = counts.items - _shared(cells.data.words, bits)
        acceptable &= zeros_per_row <= limits.per_row * counts.items + _TOLERANCE
    rows = np.flatnonzero(acceptable)
    rows = rows[np.argsort(zeros[rows] - ones[rows], kind="stable")]
    rows = rows[: _count_not_rising(rows, counts, ones, zeros, cost)]
    if limits.per_column < 1 and len(rows):
        rows = _within_column_limits(rows, pattern, cells, limits)
        rows = rows[: _count_not_rising(rows, counts, ones, zeros, cost)]
    row_mask = pattern.rows.copy()
    row_mask[rows] = True
    grown = _PatternCounts(
        counts.items,
        counts.rows + len(rows),
        counts.ones + int(ones[rows].sum()),
        counts.zeros + int(zeros[rows].sum()),
    )
    return _Pattern(pattern.items, row_mask, grown)


def _count_not_rising(rows: NDArray, counts: _PatternCounts, ones: NDArray, zeros: NDArray, cost: _Cost) -> int:
    """Return how many of the rows can be added one after another before one raises the cost."""
    costs = cost.with_pattern(
        _PatternCounts(
            counts.items,
            counts.rows + np.arange(len(rows) + 1),
            counts.ones + np.concatenate([[0], np.cumsum(ones[rows])]),
            counts.zeros + np.concatenate([[0], np.cumsum(zeros[rows])]),
        )
    )
    rises = np.flatnonzero(np.diff(costs) > 0)
    return int(rises[0]) if len(rises) else len(rows)


def _within_column_limits(rows: NDArray, pattern: _Pattern, cells: _CellSets, limits: _Limits) -> NDArray:
    """Return the rows that can be added one after another without exceeding the limit of any item."""
    is_zero = ~cells.data[rows].to_dense(bool)[:, pattern.items]
    n_zeros = pattern.counts.rows - _shared(cells.data_by_item.words[pattern.items], _packed(pattern.rows))
    max_zeros = limits.per_column * pattern.counts.rows + _TOLERANCE
    kept = []
    for row, added in zip(rows, is_zero, strict=True):
        if (n_zeros + added <= max_zeros + limits.per_column).all():
            kept.append(row)
            n_zeros, max_zeros = n_zeros + added, max_zeros + limits.per_column
    return np.array(kept, np.int64)


def _shared(words: NDArray, bits: NDArray) -> NDArray[np.int64]:
    """Return the number of ones that each row of words shares with the bits."""
    return np.bitwise_count(words & bits).sum(axis=1, dtype=np.int64)


def _packed(mask: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Return a mask as words."""
    return BitMatrix.from_dense(mask[None]).words[0]


def _unpacked(words: NDArray[np.uint64], length: int) -> NDArray[np.bool_]:
    """Return words as a mask."""
    return BitMatrix.from_words(words[None], length, check=False).to_dense(bool)[0]


def _check_weight(name: str, value: Any) -> float:
    """Check and return a non-negative number."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= float(value) < np.inf:
        raise ValueError(f"{name} must be a non-negative number, not {value!r}")
    return float(value)
