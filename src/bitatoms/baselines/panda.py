"""PaNDa+: one noisy pattern after another, each a dense core grown while the cost of the description falls."""

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

_LEEWAY = 1e-9  # shares of whole numbers are compared as floats


class PandaPlus(Baseline):
    """PaNDa+, the greedy miner of top-k patterns of Lucchese, Orlando and Perego: one noisy pattern after another.

    A pattern is a set of items (columns) and a set of samples. Each begins as a core, a full rectangle of ones that no
    pattern covers yet: items are seen in an order, and one joins, while samples that lack it leave, where this does
    not raise the cost. Then the core is extended: samples and the other items join, noise and all, where that does not
    raise the cost. Patterns are accepted while the cost falls, so the method stops by itself.

    Parameters
    ----------
    n_components : int or None, default=None
        The most patterns. None: as many as lower the cost.
    cost : {"mdl", "patterns"}, default="mdl"
        What is made small. With n samples, m features, patterns p of i items and s samples, c covered cells of which f
        are zeros, and u ones left uncovered:

        - "mdl": the typed-XOR description of Miettinen and Vreeken (J_E in the framework),
          sum over p of bits(n, s) + bits(m, i), plus bits(c, f) + bits(nm - c, u), where a string of a bits with b ones
          takes bits(a, b) = log2(a + 1) + log2 C(a, b).
        - "patterns": the cost of PaNDa (J_P), f + u + ``pattern_weight`` * (sum over p of i + s).
    pattern_weight : float, default=1.0
        The weight (rho) of patterns in the cost "patterns"; 0 counts wrong cells alone. "mdl" does not look at it.
    row_tolerance : float, default=0.4
        Of the items of a pattern, the share that a sample of it may lack (epsilon_r). 1: as the cost allows.
    column_tolerance : float, default=0.4
        Of the samples of a pattern, the share that may lack an item of it (epsilon_c). 1: as the cost allows.
    order : {"pairs", "frequency", "correlation"}, default="pairs"
        The order in which items are looked at, by the ones that are not covered yet: how many an item has
        ("frequency"), how many the samples that have it have in all ("pairs"), or the first by "pairs" and then always
        the item that most samples of the core have ("correlation").
    n_orders : int, default=20
        Patterns that are made for each one that is kept, which is that of the lowest cost. The first goes by the order
        as it is, the others by orders drawn at random: what items are ordered by is multiplied by a number between 0
        and 1, drawn for each.
    binarize : float or None, default=None
        None: X holds 0 and 1. A number: what is above it is a one.
    random_state : int, Generator, RandomState or None, default=None
        The same number gives the same result.

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
    Different from the papers: the samples that may join are tried best first, not as they stand in the table, which
    changes nothing with the cost "patterns" and no tolerance of columns; samples are also tried before the first item
    is; of the costs and the orders of the framework two and three are here; and how orders are drawn is decided here.

    With the cost "mdl" the tolerances are needed: zeros that a pattern covers are cheap once there are many, so without
    limits patterns grow over half the table, and on the digits .22 of the cells are wrong instead of .12.

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
        weight = _weight("pattern_weight", self.pattern_weight)
        limits = _Limits(
            check_fraction("row_tolerance", self.row_tolerance),
            check_fraction("column_tolerance", self.column_tolerance),
        )
        n_orders = check_int("n_orders", self.n_orders, 1)
        cells = _Cells.of(data)
        cost = _Cost(data.shape, data.count(), None if self.cost == "mdl" else weight)
        found: list[_Pattern] = []
        while self.n_components is None or len(found) < self.n_components:
            scores = _scores(cells, self.order)
            if not scores.any():  # every one is covered
                break
            tried = []
            for turn in range(n_orders):
                order = np.argsort(-(scores if turn == 0 else scores * random.random(len(scores))), kind="stable")
                core, others = _core(cells, cost, order, resort=self.order == "correlation")
                tried.append(_extended(core, others, cells, cost, limits))
            best = min(tried, key=lambda pattern: cost.adding(pattern.sizes))  # the first of equals
            if cost.adding(best.sizes) >= cost.now:
                break
            found.append(best)
            cost.add(best.sizes)
            cells = cells.without(best)
        return Factors(
            np.array([pattern.items for pattern in found], bool).reshape(len(found), data.n_cols),
            np.array([pattern.rows for pattern in found], bool).reshape(len(found), data.n_rows).T,
        )


class _Sizes(NamedTuple):
    """What the cost wants to know of a pattern, or of several, as arrays."""

    items: Any
    rows: Any
    mended: Any  # ones that it is the first to cover
    spoiled: Any  # zeros that it is the first to cover


class _Pattern(NamedTuple):
    """Items and samples, as masks."""

    items: NDArray[np.bool_]
    rows: NDArray[np.bool_]
    sizes: _Sizes


class _Limits(NamedTuple):
    """How noisy a pattern may be: shares of zeros."""

    in_row: float
    in_column: float


@dataclass(frozen=True, slots=True)
class _Cells:
    """The cells that patterns do not cover yet, by kind, and all ones, each row by row and item by item."""

    ones: BitMatrix
    ones_by_item: BitMatrix
    zeros: BitMatrix
    zeros_by_item: BitMatrix
    data: BitMatrix
    data_by_item: BitMatrix

    @classmethod
    def of(cls, data: BitMatrix) -> _Cells:
        """All cells of a table."""
        zeros = data ^ BitMatrix.from_dense(np.ones((1, data.n_cols), np.uint8))[np.zeros(data.n_rows, np.int64)]
        return cls(data, data.T, zeros, zeros.T, data, data.T)

    def without(self, pattern: _Pattern) -> _Cells:
        """What is left when a pattern covers its cells."""

        def left(table: BitMatrix, which: NDArray[np.bool_], bits: NDArray[np.bool_]) -> BitMatrix:
            words = table.words.copy()
            words[which] &= ~_packed(bits)
            return BitMatrix.from_words(words, table.n_cols, check=False)

        items, rows = pattern.items, pattern.rows
        return _Cells(
            left(self.ones, rows, items),
            left(self.ones_by_item, items, rows),
            left(self.zeros, rows, items),
            left(self.zeros_by_item, items, rows),
            self.data,
            self.data_by_item,
        )


class _Cost:
    """What the patterns so far cost, and what they would with one more."""

    def __init__(self, shape: tuple[int, int], n_ones: int, weight: float | None) -> None:
        self._shape = shape
        self._weight = weight  # of patterns among wrong cells; None counts bits
        self._patterns = 0.0
        self._mended, self._spoiled, self._left = 0, 0, n_ones
        self.now = float(self.adding(None))

    def adding(self, sizes: _Sizes | None) -> Any:
        """The cost with one more pattern of these sizes, each; None: without."""
        n_rows, n_items = self._shape
        patterns, mended, spoiled = self._patterns, self._mended, self._spoiled
        if sizes is not None:
            patterns = patterns + self._pattern(sizes)
            mended, spoiled = mended + sizes.mended, spoiled + sizes.spoiled
        left = self._left + self._mended - mended
        if self._weight is not None:
            return patterns + spoiled + left
        covered = mended + spoiled
        return patterns + _bits(covered, spoiled) + _bits(n_rows * n_items - covered, left)

    def add(self, sizes: _Sizes) -> None:
        """Count a pattern among those so far."""
        self.now = float(self.adding(sizes))
        self._patterns += float(self._pattern(sizes))
        self._mended += sizes.mended
        self._spoiled += sizes.spoiled
        self._left -= sizes.mended

    def _pattern(self, sizes: _Sizes) -> Any:
        """What the lists of items and samples cost."""
        if self._weight is not None:
            return self._weight * (sizes.items + sizes.rows)
        return _bits(self._shape[0], sizes.rows) + _bits(self._shape[1], sizes.items)


def _bits(length: Any, ones: Any) -> Any:
    """log2(length + 1) bits for how many ones a string has, and log2 C(length, ones) for which they are."""
    ways = gammaln(length + 1.0) - gammaln(ones + 1.0) - gammaln(length - ones + 1.0)
    return (np.log(length + 1.0) + ways) / np.log(2)


def _scores(cells: _Cells, order: str) -> NDArray[np.int64]:
    """What items are ordered by, most first: uncovered ones of the item, or of the samples that have it."""
    if order == "frequency":
        return cells.ones_by_item.row_weights()
    weights, columns = cells.ones.row_weights(), cells.ones_by_item.words
    # bit by bit of the weights, so that nothing is unpacked
    bits = range(int(weights.max()).bit_length())
    return sum((_counts(columns, _packed((weights >> bit & 1) > 0)) << bit for bit in bits), np.zeros(1, np.int64))


def _core(cells: _Cells, cost: _Cost, order: NDArray[np.int64], resort: bool) -> tuple[_Pattern, NDArray[np.int64]]:
    """A full rectangle of uncovered ones, and the items outside, in the order in which they were looked at.

    The first item opens it with all its samples. An item joins, and the samples that lack it leave, where the cost does
    not rise. With ``resort`` the next to be looked at is always the item that most samples of the core have.
    """
    columns = cells.ones_by_item.words
    items, others = [int(order[0])], order[1:]
    rows = columns[order[0]]
    passed: list[NDArray[np.int64]] = []
    n_rows = int(np.bitwise_count(rows).sum())
    lowest = cost.adding(_Sizes(1, n_rows, n_rows, 0))
    while len(others):
        shared = _counts(columns[others], rows)
        if resort:
            ranks = np.argsort(-shared, kind="stable")
            others, shared = others[ranks], shared[ranks]
        width = len(items) + 1
        costs = cost.adding(_Sizes(width, shared, width * shared, 0))
        able = np.flatnonzero((costs <= lowest) & (shared > 0))
        if len(able) == 0:
            break
        first = able[0]
        items.append(int(others[first]))
        rows, lowest = rows & columns[others[first]], costs[first]
        passed.append(others[:first])
        others = others[first + 1 :]
    mask = np.zeros(len(order), bool)
    mask[items] = True
    of_core = _unpacked(rows, cells.ones.n_rows)
    n_rows = int(of_core.sum())
    core = _Pattern(mask, of_core, _Sizes(len(items), n_rows, len(items) * n_rows, 0))
    return core, np.concatenate([*passed, others])


def _extended(core: _Pattern, others: NDArray[np.int64], cells: _Cells, cost: _Cost, limits: _Limits) -> _Pattern:
    """The core with samples that do not raise the cost, then, one by one, such items, and samples again after each."""
    pattern = _with_rows(core, cells, cost, limits)
    while len(others):
        rows, sizes = _packed(pattern.rows), pattern.sizes
        mended = _counts(cells.ones_by_item.words[others], rows)
        spoiled = _counts(cells.zeros_by_item.words[others], rows)
        grown = _Sizes(sizes.items + 1, sizes.rows, sizes.mended + mended, sizes.spoiled + spoiled)
        joins = (cost.adding(grown) <= cost.adding(sizes)) & (mended > 0)
        joins &= _tolerated(pattern, others, cells, limits)
        able = np.flatnonzero(joins)
        if len(able) == 0:
            break
        first = able[0]
        items = pattern.items.copy()
        items[others[first]] = True
        sizes = _Sizes(grown.items, grown.rows, int(grown.mended[first]), int(grown.spoiled[first]))
        pattern = _with_rows(_Pattern(items, pattern.rows, sizes), cells, cost, limits)
        others = others[first + 1 :]
    return pattern


def _tolerated(
    pattern: _Pattern, others: NDArray[np.int64], cells: _Cells, limits: _Limits
) -> NDArray[np.bool_] | np.bool_:
    """Which of the other items leave the pattern, and are themselves in it, no noisier than the limits allow."""
    if limits == (1.0, 1.0):
        return np.bool_(True)
    columns, n_rows = cells.data_by_item.words[others], pattern.sizes.rows
    lacking = n_rows - _counts(columns, _packed(pattern.rows))
    lacks = pattern.sizes.items - _counts(cells.data.words, _packed(pattern.items))
    # a sample at its limit must have the item
    full = pattern.rows & (lacks + 1 > limits.in_row * (pattern.sizes.items + 1) + _LEEWAY)
    return (lacking <= limits.in_column * n_rows + _LEEWAY) & (_counts(columns, _packed(full)) == full.sum())


def _with_rows(pattern: _Pattern, cells: _Cells, cost: _Cost, limits: _Limits) -> _Pattern:
    """The pattern with the samples outside that do not raise the cost, tried best first."""
    bits, sizes = _packed(pattern.items), pattern.sizes
    mended, spoiled = _counts(cells.ones.words, bits), _counts(cells.zeros.words, bits)
    able = ~pattern.rows & (mended > 0)
    if limits.in_row < 1:
        lacks = sizes.items - _counts(cells.data.words, bits)
        able &= lacks <= limits.in_row * sizes.items + _LEEWAY
    rows = np.flatnonzero(able)
    rows = rows[np.argsort(spoiled[rows] - mended[rows], kind="stable")]
    rows = rows[: _falling(rows, sizes, mended, spoiled, cost)]
    if limits.in_column < 1 and len(rows):
        rows = _column_wise(rows, pattern, cells, limits)
        rows = rows[: _falling(rows, sizes, mended, spoiled, cost)]
    joined = pattern.rows.copy()
    joined[rows] = True
    grown = _Sizes(
        sizes.items,
        sizes.rows + len(rows),
        sizes.mended + int(mended[rows].sum()),
        sizes.spoiled + int(spoiled[rows].sum()),
    )
    return _Pattern(pattern.items, joined, grown)


def _falling(rows: NDArray, sizes: _Sizes, mended: NDArray, spoiled: NDArray, cost: _Cost) -> int:
    """How many of these rows, one after another, join before one raises the cost."""
    counts = np.arange(len(rows) + 1)
    costs = cost.adding(
        _Sizes(
            sizes.items,
            sizes.rows + counts,
            sizes.mended + np.concatenate([[0], np.cumsum(mended[rows])]),
            sizes.spoiled + np.concatenate([[0], np.cumsum(spoiled[rows])]),
        )
    )
    rises = np.flatnonzero(np.diff(costs) > 0)
    return int(rises[0]) if len(rises) else len(rows)


def _column_wise(rows: NDArray, pattern: _Pattern, cells: _Cells, limits: _Limits) -> NDArray:
    """Those of the rows that, one after another, can join with no item lacking in too many of the samples."""
    lacks = ~cells.data[rows].to_dense(bool)[:, pattern.items]
    lacking = pattern.sizes.rows - _counts(cells.data_by_item.words[pattern.items], _packed(pattern.rows))
    most = limits.in_column * pattern.sizes.rows + _LEEWAY
    kept = []
    for row, lack in zip(rows, lacks, strict=True):
        if (lacking + lack <= most + limits.in_column).all():
            kept.append(row)
            lacking, most = lacking + lack, most + limits.in_column
    return np.array(kept, np.int64)


def _counts(words: NDArray, bits: NDArray) -> NDArray[np.int64]:
    """How many ones each row of words shares with these bits."""
    return np.bitwise_count(words & bits).sum(axis=1, dtype=np.int64)


def _packed(mask: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """A mask as words."""
    return BitMatrix.from_dense(mask[None]).words[0]


def _unpacked(words: NDArray[np.uint64], length: int) -> NDArray[np.bool_]:
    """Words as a mask."""
    return BitMatrix.from_words(words[None], length, check=False).to_dense(bool)[0]


def _weight(name: str, value: Any) -> float:
    """A number that is not negative."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= float(value) < np.inf:
        raise ValueError(f"{name} must be a number that is not negative, not {value!r}")
    return float(value)
