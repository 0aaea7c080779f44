"""PaNDa+: greedy mining of noisy patterns, each a dense core extended while the cost does not rise."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from ..bits import BitMatrix
from ..validation import check_choice, check_fraction, check_int, check_not_negative
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
        weight = check_not_negative("pattern_weight", self.pattern_weight)
        miner = _Miner(
            data,
            _Cost(data.shape, data.count(), None if self.cost == "mdl" else weight),
            check_fraction("row_tolerance", self.row_tolerance),
            check_fraction("column_tolerance", self.column_tolerance),
        )
        n_orders = check_int("n_orders", self.n_orders, 1)
        patterns: list[_Pattern] = []
        while self.n_components is None or len(patterns) < self.n_components:
            scores = miner.item_scores(self.order)
            if not scores.any():  # every one is covered
                break
            candidates = []
            for turn in range(n_orders):
                keys = scores if turn == 0 else scores * random.random(len(scores))
                order = np.argsort(-keys, kind="stable")
                candidates.append(miner.find_pattern(order, resort=self.order == "correlation"))
            best = min(candidates, key=lambda pattern: miner.cost.with_pattern(pattern.counts))  # ties: the first
            if miner.cost.with_pattern(best.counts) >= miner.cost.total:
                break
            patterns.append(best)
            miner.add(best)
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


class _Cells(NamedTuple):
    """A set of cells: the bits of each sample, and those of each item."""

    by_row: NDArray[np.uint64]
    by_item: NDArray[np.uint64]

    @classmethod
    def of(cls, table: BitMatrix) -> _Cells:
        """Return the cells that are one."""
        return cls(table.words, table.T.words)

    def without(self, pattern: _Pattern) -> _Cells:
        """Return the cells that a pattern does not cover."""
        by_row, by_item = self.by_row.copy(), self.by_item.copy()
        by_row[pattern.rows] &= ~_packed(pattern.items)
        by_item[pattern.items] &= ~_packed(pattern.rows)
        return _Cells(by_row, by_item)


class _Cost:
    """The cost of the patterns found so far, and with one more."""

    def __init__(self, shape: tuple[int, int], n_ones: int, weight: float | None) -> None:
        self._shape = shape
        self._n_ones = n_ones
        self._weight = weight  # of patterns relative to wrong cells; None: the cost is in bits
        self._patterns = 0.0
        self._ones = self._zeros = 0
        self.total = float(self._cost(0.0, 0, 0))

    def with_pattern(self, counts: _PatternCounts) -> Any:
        """Return the cost with one more pattern, or an array of costs for several candidates."""
        return self._cost(
            self._patterns + self._pattern_cost(counts), self._ones + counts.ones, self._zeros + counts.zeros
        )

    def add(self, counts: _PatternCounts) -> None:
        """Add a pattern to those found so far."""
        self.total = float(self.with_pattern(counts))
        self._patterns += float(self._pattern_cost(counts))
        self._ones += counts.ones
        self._zeros += counts.zeros

    def _cost(self, patterns: Any, ones: Any, zeros: Any) -> Any:
        """Return the cost of patterns that cover these numbers of ones and zeros."""
        uncovered = self._n_ones - ones
        if self._weight is not None:
            return patterns + zeros + uncovered
        covered = ones + zeros
        n_cells = self._shape[0] * self._shape[1]
        return patterns + _string_bits(covered, zeros) + _string_bits(n_cells - covered, uncovered)

    def _pattern_cost(self, counts: _PatternCounts) -> Any:
        """Return the cost of the lists of items and samples."""
        if self._weight is not None:
            return self._weight * (counts.items + counts.rows)
        return _string_bits(self._shape[0], counts.rows) + _string_bits(self._shape[1], counts.items)


class _Miner:
    """The table, the ones and zeros that no pattern covers yet, and the cost of the patterns found so far."""

    def __init__(self, data: BitMatrix, cost: _Cost, row_tolerance: float, column_tolerance: float) -> None:
        ones = BitMatrix.from_dense(np.ones((1, data.n_cols), np.uint8))[np.zeros(data.n_rows, np.int64)]
        self.table = data
        self.data = self.ones = _Cells.of(data)
        self.zeros = _Cells.of(data ^ ones)
        self.cost = cost
        self.row_tolerance, self.column_tolerance = row_tolerance, column_tolerance

    def add(self, pattern: _Pattern) -> None:
        """Cover the cells of a pattern."""
        self.cost.add(pattern.counts)
        self.ones, self.zeros = self.ones.without(pattern), self.zeros.without(pattern)

    def item_scores(self, order: str) -> NDArray[np.int64]:
        """Return the sort key of each item: its uncovered ones, or those of the samples that have it."""
        columns = self.ones.by_item
        if order == "frequency":
            return _weights(columns)
        weights = _weights(self.ones.by_row)
        # bit plane by bit plane of the weights, so that nothing is unpacked
        bits = range(int(weights.max()).bit_length())
        return sum((_shared(columns, (weights >> bit & 1) > 0) << bit for bit in bits), np.zeros(1, np.int64))

    def find_pattern(self, order: NDArray[np.int64], resort: bool) -> _Pattern:
        """Return a core, extended by samples and items that do not raise the cost; samples are tried after each item.

        With ``resort``, the next item of the core is always the one that the most samples of the core have.
        """
        core, others = self._find_core(order, resort)
        pattern = self._with_rows(core)
        while len(others):
            counts = pattern.counts
            ones = _shared(self.ones.by_item[others], pattern.rows)
            zeros = _shared(self.zeros.by_item[others], pattern.rows)
            grown = _PatternCounts(counts.items + 1, counts.rows, counts.ones + ones, counts.zeros + zeros)
            acceptable = (self.cost.with_pattern(grown) <= self.cost.with_pattern(counts)) & (ones > 0)
            indices = np.flatnonzero(acceptable & self._within_tolerances(pattern, others))
            if len(indices) == 0:
                break
            first = indices[0]
            items = pattern.items.copy()
            items[others[first]] = True
            counts = grown._replace(ones=int(grown.ones[first]), zeros=int(grown.zeros[first]))
            pattern = self._with_rows(_Pattern(items, pattern.rows, counts))
            others = others[first + 1 :]
        return pattern

    def _find_core(self, order: NDArray[np.int64], resort: bool) -> tuple[_Pattern, NDArray[np.int64]]:
        """Return a full rectangle of uncovered ones, and the other items in the order in which they were visited.

        The core starts with the first item and all its samples. An item is added, and the samples without it are
        removed, if the cost does not rise.
        """
        columns = self.ones.by_item
        items, others = [int(order[0])], order[1:]
        rows = columns[order[0]]
        skipped: list[NDArray[np.int64]] = []
        n_rows = int(_weights(rows))
        lowest = self.cost.with_pattern(_PatternCounts(1, n_rows, n_rows, 0))
        while len(others):
            shared = _weights(columns[others] & rows)
            if resort:
                ranks = np.argsort(-shared, kind="stable")
                others, shared = others[ranks], shared[ranks]
            n_items = len(items) + 1
            costs = self.cost.with_pattern(_PatternCounts(n_items, shared, n_items * shared, 0))
            acceptable = np.flatnonzero((costs <= lowest) & (shared > 0))
            if len(acceptable) == 0:
                break
            first = acceptable[0]
            items.append(int(others[first]))
            rows, lowest, n_rows = rows & columns[others[first]], costs[first], int(shared[first])
            skipped.append(others[:first])
            others = others[first + 1 :]
        item_mask = np.zeros(len(order), bool)
        item_mask[items] = True
        row_mask = BitMatrix.from_words(rows[None], self.table.n_rows, check=False).to_dense(bool)[0]
        core = _Pattern(item_mask, row_mask, _PatternCounts(len(items), n_rows, len(items) * n_rows, 0))
        return core, np.concatenate([*skipped, others])

    def _within_tolerances(self, pattern: _Pattern, others: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of the other items can be added without exceeding the limits of any sample or of the item."""
        columns, (n_items, n_rows, *_) = self.data.by_item[others], pattern.counts
        zeros_per_item = n_rows - _shared(columns, pattern.rows)
        zeros_per_row = n_items - _shared(self.data.by_row, pattern.items)
        # a sample at its limit must have the item
        at_limit = pattern.rows & (zeros_per_row + 1 > self.row_tolerance * (n_items + 1) + _TOLERANCE)
        has_all = _shared(columns, at_limit) == at_limit.sum()
        return (zeros_per_item <= self.column_tolerance * n_rows + _TOLERANCE) & has_all

    def _with_rows(self, pattern: _Pattern) -> _Pattern:
        """Return the pattern with other samples added, best first, that do not raise the cost."""
        n_items = pattern.counts.items
        ones, zeros = _shared(self.ones.by_row, pattern.items), _shared(self.zeros.by_row, pattern.items)
        zeros_per_row = n_items - _shared(self.data.by_row, pattern.items)
        is_within = zeros_per_row <= self.row_tolerance * n_items + _TOLERANCE
        rows = np.flatnonzero(~pattern.rows & (ones > 0) & is_within)
        rows = rows[np.argsort(zeros[rows] - ones[rows], kind="stable")]
        counts = self._counts_with_rows(pattern.counts, ones[rows], zeros[rows])
        if self.column_tolerance < 1 and len(counts.rows) > 1:
            rows = self._within_column_tolerance(rows[: len(counts.rows) - 1], pattern)
            counts = self._counts_with_rows(pattern.counts, ones[rows], zeros[rows])
        row_mask = pattern.rows.copy()
        row_mask[rows[: len(counts.rows) - 1]] = True
        n_rows, n_ones, n_zeros = (int(each[-1]) for each in counts[1:])
        return _Pattern(pattern.items, row_mask, _PatternCounts(n_items, n_rows, n_ones, n_zeros))

    def _counts_with_rows(self, counts: _PatternCounts, ones: NDArray, zeros: NDArray) -> _PatternCounts:
        """Return the counts after no sample, one, two and so on, up to the first that raises the cost."""
        n_rows = counts.rows + np.arange(len(ones) + 1)
        n_ones = counts.ones + np.concatenate([[0], np.cumsum(ones)])
        n_zeros = counts.zeros + np.concatenate([[0], np.cumsum(zeros)])
        costs = self.cost.with_pattern(_PatternCounts(counts.items, n_rows, n_ones, n_zeros))
        rises = np.flatnonzero(np.diff(costs) > 0)
        end = int(rises[0]) + 1 if len(rises) else len(n_rows)
        return _PatternCounts(counts.items, n_rows[:end], n_ones[:end], n_zeros[:end])

    def _within_column_tolerance(self, rows: NDArray, pattern: _Pattern) -> NDArray:
        """Return the samples that can be added one after another without exceeding the limit of any item."""
        is_zero = ~self.table[rows].to_dense(bool)[:, pattern.items]
        n_zeros = pattern.counts.rows - _shared(self.data.by_item[pattern.items], pattern.rows)
        max_zeros = self.column_tolerance * pattern.counts.rows + _TOLERANCE
        kept = []
        for row, added in zip(rows, is_zero, strict=True):
            if (n_zeros + added <= max_zeros + self.column_tolerance).all():
                kept.append(row)
                n_zeros, max_zeros = n_zeros + added, max_zeros + self.column_tolerance
        return np.array(kept, np.int64)


def _string_bits(length: Any, ones: Any) -> Any:
    """Return log2(length + 1) + log2 C(length, ones): the bits of a string with this many ones."""
    choices = gammaln(length + 1.0) - gammaln(ones + 1.0) - gammaln(length - ones + 1.0)
    return (np.log(length + 1.0) + choices) / np.log(2)


def _weights(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the number of ones of each row of words."""
    return np.bitwise_count(words).sum(axis=-1, dtype=np.int64)


def _shared(words: NDArray[np.uint64], mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the number of ones that each row of words shares with a mask."""
    return _weights(words & _packed(mask))


def _packed(mask: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Return a mask as words."""
    return BitMatrix.from_dense(mask[None]).words[0]
