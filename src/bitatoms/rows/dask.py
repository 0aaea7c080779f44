"""Rows on a Dask cluster: each worker keeps its partitions packed, and what is counted of them is added up over there.

A pass sends the atoms once, as a task that the scheduler holds, and gets one sum of counts back; the codes stay with
their rows. All tasks are functions of their arguments, so that what a lost worker had is computed again.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..bits import BitMatrix
from ..core.counts import Counts
from ..core.pass_spec import PassSpec, run_pass
from ..io.errors import MissingLibrary
from ..parallel import Workers
from .dask_partitions import about, pack, partitions, sizes
from .memory import chunk_rows, fingerprint_of, joined
from .source import PartialPass

try:
    from dask import config
    from dask.base import compute, persist
    from dask.delayed import delayed
    from dask.sizeof import sizeof
except ImportError as error:
    raise MissingLibrary('a cluster needs Dask; get it with pip install "bitatoms[dask]"') from error

_FAN_IN = 8  # counts that are added up by one task
_ATOMS_MAY_BE_LARGE = {"distributed.admin.large-graph-warning-threshold": "1 TB"}  # they are sent once a pass


def rows_of(X: Any, binarize: float | None, client: Any = None) -> DaskRows:
    """The rows of a Dask array or data frame, packed on the workers."""
    return DaskRows(X, binarize, client)


class DaskRows:
    """The rows of a Dask array or data frame, packed on the workers. Their codes are a list of tasks, one a partition.

    Parameters
    ----------
    X, binarize, client
        As in :func:`fit`, and in the model.

    Examples
    --------
    >>> import dask.array, numpy as np
    >>> from bitatoms.rows.dask import DaskRows
    >>> rows = DaskRows(dask.array.from_array(np.eye(100, 5, dtype=bool), chunks=(30, 5)))
    >>> rows.take(np.array([4, 50])).to_dense()
    array([[0, 0, 0, 0, 1],
           [0, 0, 0, 0, 0]], dtype=uint8)
    """

    def __init__(self, X: Any, binarize: float | None = None, client: Any = None) -> None:
        validation.check_threshold(binarize)
        self._tasks = _Tasks(client)
        packed = self._tasks.started([delayed(pack)(part, binarize) for part in partitions(X)])
        with self._tasks.dropped_on_error(packed):
            n_rows, self.n_features = sizes(self._tasks.results(list(map(delayed(about), packed))))
        self.n_rows = int(n_rows.sum())
        self.whole: BitMatrix | None = None
        self._packed = [part for part, some in zip(packed, n_rows, strict=True) if some]
        self._edges = np.concatenate(([0], np.cumsum(n_rows[n_rows > 0])))
        self._together = self._tasks.places(self._packed)

    def take(self, rows: NDArray[np.int64]) -> BitMatrix:
        """These rows, from the workers that have them."""
        cuts = np.searchsorted(rows, self._edges)
        wanted = zip(self._packed, cuts[:-1], cuts[1:], self._edges[:-1], strict=True)
        take = delayed(_take)
        tasks = [take(part, rows[first:last] - start) for part, first, last, start in wanted if first < last]
        return joined(self._tasks.results(tasks), self.n_features)

    def run_pass(
        self, order: PassSpec, codes: Any, number: int, partial: PartialPass | None, keep: Callable[[PartialPass], None]
    ) -> tuple[list[Any], Counts]:
        """A pass over all rows: the codes that it leaves are on the workers, the counts here."""
        ordered = delayed(pickle.loads)(pickle.dumps(order))  # a task: other workers get it from one that has it
        before = [None] * len(self._packed) if codes is None else codes
        work_on = delayed(_work)
        done = [work_on(*rows, ordered) for rows in zip(self._packed, before, strict=True)]
        after = list(map(delayed(_codes_in), done))
        totals = [_total([done[i] for i in numbers], [after[i] for i in numbers]) for numbers in self._together]
        with config.set(_ATOMS_MAY_BE_LARGE):
            started = self._tasks.started([*after, _tree(totals)])
        with self._tasks.dropped_on_error(started):
            (total,) = self._tasks.fetched(started[-1:])
        return started[:-1], total

    def fingerprint(self) -> str:
        """Some letters that tell these rows from others, however they are cut: from the ones of each feature, and some
        rows."""
        ones = self._tasks.results(list(map(delayed(BitMatrix.column_weights), self._packed)))
        some = np.unique(np.linspace(0, self.n_rows - 1, 64).astype(np.int64))
        return fingerprint_of(np.sum(ones, axis=0), self.take(some).words)

    def codes_of(self, number: int) -> None:
        """They are not kept from one call to the next."""
        return None

    def forget(self, keep: set[int]) -> None:
        """The cluster drops what nobody holds."""


class _Tasks:
    """Where tasks are run: on the cluster of a client, or by what Dask has without one."""

    def __init__(self, client: Any) -> None:
        if client is None and config.get("scheduler", None) in (None, "distributed", "dask.distributed"):
            try:
                from distributed import get_client

                client = get_client()
            except (ImportError, ValueError):  # there is none
                client = None
        if client is not None and client.asynchronous:
            raise TypeError("the client is asynchronous; give one that is made with asynchronous=False")
        self._client = client

    def started(self, tasks: list[Any]) -> list[Any]:
        """The same tasks, begun; their results stay where they are until these are forgotten."""
        return list(persist(*tasks) if self._client is None else self._client.persist(tasks))

    def fetched(self, started: list[Any]) -> list[Any]:
        """The results of tasks that are begun, brought here."""
        if self._client is None:
            return list(compute(*started))
        return list(self._client.gather(_futures(started)))

    def places(self, started: list[Any]) -> list[list[int]]:
        """Which results are on the same worker, by their numbers: what is added up there need not travel."""
        if self._client is None:
            return [list(range(len(started)))]
        holders = self._client.who_has(_futures(started))
        together: dict[Any, list[int]] = {}
        for number, task in enumerate(started):
            together.setdefault(tuple(holders.get(task.key, ()))[:1], []).append(number)
        return list(together.values())

    def results(self, tasks: list[Any]) -> list[Any]:
        """The results of tasks, brought here."""
        started = self.started(tasks)
        with self.dropped_on_error(started):
            return self.fetched(started)

    @contextmanager
    def dropped_on_error(self, started: list[Any]) -> Iterator[None]:
        """At an error, and at Ctrl-C, nothing goes on for which nobody waits any more."""
        try:
            yield
        except BaseException:
            if self._client is not None:
                for future in _futures(started):  # not cancelled: a scheduler breaks off with its client at that,
                    future.release()  # where a task is followed by one that nobody has asked for by itself
            raise


def _futures(started: list[Any]) -> list[Any]:
    """What a client knows tasks by that are begun."""
    from distributed import futures_of

    return [futures_of(task)[0] for task in started]


def _total(done: list[Any], after: list[Any]) -> Any:
    """The counts of partitions that are together, added up.

    The sum of a few asks for their codes too, though it makes nothing of them: tasks that nothing follows come first
    in Dask's order, so that all codes would be made, and all counts held, before the first sum.
    """
    some = [slice(i, i + _FAN_IN) for i in range(0, len(done), _FAN_IN)]
    return _tree([delayed(_sum_of_done)(*done[few], after=after[few]) for few in some])


def _tree(counts: list[Any]) -> Any:
    """The sum of counts, so many at a time: no worker holds those of all partitions."""
    while len(counts) > 1:
        counts = [delayed(_sum)(*counts[i : i + _FAN_IN]) for i in range(0, len(counts), _FAN_IN)]
    return counts[0]


def _take(packed: BitMatrix, rows: NDArray[np.int64]) -> BitMatrix:
    """Rows of a partition, by their numbers in it."""
    chosen: BitMatrix = packed[rows]
    return chosen


def _work(packed: BitMatrix, codes: BitMatrix | None, order: PassSpec) -> tuple[BitMatrix, Counts]:
    """Do what is ordered with a partition, a piece at a time."""
    packed = _aligned(packed)
    codes = None if codes is None else _aligned(codes)
    size = chunk_rows(packed.n_cols)
    after: list[BitMatrix] = []
    total = Counts.none(order.atoms.n_rows, packed.n_cols)
    for start in range(0, len(packed), size):
        before = None if codes is None else codes[start : start + size]
        some, counts = run_pass(packed[start : start + size], before, order, Workers(1))
        after.append(some)
        total = total.add(counts)
    return joined(after, order.atoms.n_rows), total


def _aligned(bits: BitMatrix) -> BitMatrix:
    """Bits that may have come over a network to any address: numba would compile its kernels anew for them."""
    return BitMatrix.from_words(np.require(bits.words, requirements="A"), bits.n_cols, check=False)


def _codes_in(done: tuple[BitMatrix, Counts]) -> BitMatrix:
    return done[0]


def _sum_of_done(*done: tuple[BitMatrix, Counts], after: list[BitMatrix]) -> Counts:
    return _sum(*(counts for _, counts in done))


def _sum(*counts: Counts) -> Counts:
    return reduce(add, counts)


@sizeof.register(BitMatrix)
def _size_of_bits(bits: BitMatrix) -> int:
    """What Dask goes by when it says where a task is run."""
    return int(bits.words.nbytes)


@sizeof.register(Counts)
def _size_of_counts(counts: Counts) -> int:
    return sum(np.asarray(getattr(counts, field.name)).nbytes for field in fields(Counts))
