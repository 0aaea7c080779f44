"""Rows on a Dask cluster: each worker keeps its partitions as bits, and counts are summed on the cluster.

A pass sends the atoms once, as a task, and gets one sum of counts back; the codes stay with their rows. All tasks are
functions of their arguments, so Dask can recompute what a lost worker held.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from operator import add
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix, stack_rows
from ..device_choice import workers_for
from ..engine.counts import Counts
from ..engine.passes import PassSpec
from ..model.complete_rows import MemberCounts
from ..parallel import OutOfTime, Workers
from ..run_options import DeviceChoice
from ..sparse_bits import Bits, SparseBits, is_smaller_sparse, packed, sparse, stack_bits
from ..system.libraries import missing_library
from ..validation import check_threshold
from .budget import bytes_of
from .dask_transform import check_partitions, hash_positions, pack_partition, partitions, sent, shape_or_error
from .source import ONLY_PASS, MemoryRows, PassRun, RowSource

try:
    from dask import config
    from dask.base import compute, persist
    from dask.delayed import delayed
    from dask.sizeof import sizeof
except ModuleNotFoundError as error:
    raise missing_library("Dask arrays need", "dask") from error

AnyBits = TypeVar("AnyBits", BitMatrix, Bits)

_FAN_IN = 8  # counts that one task sums
_NO_SIZE_WARNING = {
    "distributed.admin.large-graph-warning-threshold": "1 TB"
}  # atoms are large, and sent once per pass


class DaskRows(RowSource):
    """The rows of a Dask array or data frame, packed on the workers.

    The codes of a pass are a list of tasks, one per partition.

    Parameters
    ----------
    X : dask array or data frame
    binarize : float, optional
        Values above this are 1.
    client : distributed.Client, optional
        The cluster, as in `bitatoms.dask.fit`.
    device : {"cpu", "cuda", "auto"}, default="cpu"
        Where each worker processes its rows, as in `bitatoms.factorize`.

    Examples
    --------
    >>> import dask.array, numpy as np
    >>> from bitatoms.rows.dask import DaskRows
    >>> rows = DaskRows(dask.array.from_array(np.eye(100, 5, dtype=bool), chunks=(30, 5)))
    >>> rows.take(np.array([4, 50])).to_dense()
    array([[0, 0, 0, 0, 1],
           [0, 0, 0, 0, 0]], dtype=uint8)
    """

    def __init__(self, X: Any, binarize: float | None = None, client: Any = None, device: DeviceChoice = "cpu") -> None:
        check_threshold(binarize)
        self._device = device
        self._tasks = _Tasks(client)
        packed = self._tasks.start([delayed(pack_partition)(partition, binarize) for partition in partitions(X)])
        with self._tasks.released_on_error(packed):
            n_rows, self.n_features = check_partitions(self._tasks.results(list(map(delayed(shape_or_error), packed))))
        self.n_rows = int(n_rows.sum())
        self._packed = [partition for partition, n in zip(packed, n_rows, strict=True) if n]
        self._edges = np.concatenate(([0], np.cumsum(n_rows[n_rows > 0])))
        self._groups = self._tasks.grouped_by_worker(self._packed)

    def ones(self) -> SparseBits | None:
        """Return all rows by their ones, or None if these are many, some cells are unknown, or the table is narrow."""
        shape = self.n_rows, self.n_features
        if not is_smaller_sparse(shape, 0):
            return None
        counts = self._tasks.results(list(map(delayed(_count_cells), self._packed)))
        n_ones, n_unknown = np.sum([(0, 0), *counts], axis=0)
        if n_unknown or not is_smaller_sparse(shape, n_ones):
            return None
        return stack_bits(self._tasks.results(list(map(delayed(sparse), self._packed))), self.n_features)

    def take(self, rows: NDArray[np.int64]) -> BitMatrix:
        """Return the rows with these indices, from the workers that hold them."""
        cuts = np.searchsorted(rows, self._edges)
        wanted = zip(self._packed, cuts[:-1], cuts[1:], self._edges[:-1], strict=True)
        take = delayed(_take)
        tasks = [take(packed, rows[first:last] - start) for packed, first, last, start in wanted if first < last]
        return stack_rows(self._tasks.results(tasks), self.n_features)

    def run_pass(
        self, spec: PassSpec, codes: list[Any] | None = None, run: PassRun = ONLY_PASS
    ) -> tuple[list[Any], Counts]:
        """Run a pass over all rows and return its codes, which stay on the workers, and its counts."""
        sent_spec = sent(spec)
        before = [None] * len(self._packed) if codes is None else codes
        code = delayed(_run_pass_on_partition)
        each = zip(self._packed, before, strict=True)
        done = [code(packed, previous, sent_spec, self._device) for packed, previous in each]
        after = [codes_and_counts[0] for codes_and_counts in done]
        totals = [_total([done[i] for i in group], [after[i] for i in group]) for group in self._groups]
        with config.set(_NO_SIZE_WARNING):
            started = self._tasks.start([*after, _tree_sum(totals)])
        with self._tasks.released_on_error(started):
            (total,) = self._tasks.fetch(started[-1:], run.deadline)
        return started[:-1], total

    def count_members(self, spec: PassSpec) -> MemberCounts:
        """Count the rows that have all features of the atoms of a pass, or all but one, and hash all rows."""
        sent_spec, describe = sent(spec), delayed(_describe_partition)
        with config.set(_NO_SIZE_WARNING):
            (total,) = self._tasks.results([_tree_sum([describe(packed, sent_spec) for packed in self._packed])])
        return total

    def fingerprint(self) -> str:
        """Return a hash of all rows in their order; it does not depend on the partitions."""
        hashes = self._tasks.results(list(map(delayed(hash_positions), self._packed, self._edges.tolist())))
        return f"all rows:{sum(hashes) % 2**64:016x}"


class _Tasks:
    """Runs tasks on the cluster of a client, or with Dask's local scheduler without one."""

    def __init__(self, client: Any) -> None:
        if client is None and config.get("scheduler", None) in (None, "distributed", "dask.distributed"):
            try:
                from distributed import get_client

                client = get_client()
            except (ImportError, ValueError):  # there is no client
                client = None
        if client is not None and client.asynchronous:
            raise TypeError("the client is asynchronous; pass one made with asynchronous=False")
        self._client = client

    def start(self, tasks: list[Any]) -> list[Any]:
        """Start tasks and return handles; the results stay on the workers as long as the handles exist."""
        return list(persist(*tasks) if self._client is None else self._client.persist(tasks))

    def fetch(self, started: list[Any], deadline: float = float("inf")) -> list[Any]:
        """Return the results of started tasks; raise OutOfTime if a cluster needs longer."""
        if self._client is None:
            return list(compute(*started))
        futures = _futures(started)
        if deadline != float("inf"):
            from distributed import TimeoutError, wait

            left = deadline - time.perf_counter()
            try:
                if left <= 0:
                    raise TimeoutError
                with self._client.as_current():
                    wait(futures, timeout=left)
            except TimeoutError as error:
                raise OutOfTime from error
        return list(self._client.gather(futures))

    def grouped_by_worker(self, started: list[Any]) -> list[list[int]]:
        """Return the indices of tasks whose results are on the same worker, so that sums need no transfer."""
        if self._client is None:
            return [list(range(len(started)))]
        holders = self._client.who_has(_futures(started))
        groups: dict[Any, list[int]] = {}
        for index, task in enumerate(started):
            groups.setdefault(tuple(holders.get(task.key, ()))[:1], []).append(index)
        return list(groups.values())

    def results(self, tasks: list[Any]) -> list[Any]:
        """Run tasks and return their results."""
        started = self.start(tasks)
        with self.released_on_error(started):
            return self.fetch(started)

    @contextmanager
    def released_on_error(self, started: list[Any]) -> Iterator[None]:
        """Release tasks on an error or Ctrl-C, so that the cluster stops working on them."""
        try:
            yield
        except BaseException:
            if self._client is not None:
                for future in _futures(started):  # not cancelled: the scheduler would drop its client
                    future.release()  # when a task has a dependent that was not requested by itself
            raise


def _futures(started: list[Any]) -> list[Any]:
    """Return the futures of started tasks."""
    from distributed import futures_of

    return [futures_of(task)[0] for task in started]


def _total(done: list[Any], after: list[Any]) -> Any:
    """Return the sum of the counts of partitions on one worker.

    Each sum depends on the codes too, without using them: Dask runs tasks without dependents first, so otherwise it
    would compute all codes, and hold all counts, before the first sum.
    """
    slices = [slice(i, i + _FAN_IN) for i in range(0, len(done), _FAN_IN)]
    return _tree_sum([delayed(_sum_of_done)(*done[few], after=after[few]) for few in slices])


def _tree_sum(counts: list[Any]) -> Any:
    """Return the sum of counts as a tree of tasks, so that no worker holds the counts of all partitions."""
    while len(counts) > 1:
        counts = [delayed(_sum)(*counts[i : i + _FAN_IN]) for i in range(0, len(counts), _FAN_IN)]
    return counts[0]


def _take(partition: Bits, rows: NDArray[np.int64]) -> BitMatrix:
    """Return rows of a partition by their indices in it."""
    return packed(partition[rows])


def _run_pass_on_partition(
    partition: Bits, codes: BitMatrix | None, spec: PassSpec, device: DeviceChoice
) -> tuple[BitMatrix, Counts]:
    """Run a pass on a partition, one chunk at a time, on the device of the worker if there is one."""
    before = None if codes is None else _aligned(codes)
    return MemoryRows(_aligned(partition), workers_for(1, device)).run_pass(spec, before)


def _describe_partition(partition: Bits, spec: PassSpec) -> MemberCounts:
    """Count the members of atoms in a partition, one chunk at a time."""
    return MemoryRows(_aligned(partition), Workers()).count_members(spec)


def _aligned(bits: AnyBits) -> AnyBits:
    """Return aligned bits: data from the network may not be, and numba would compile its kernels again for it."""
    if isinstance(bits, SparseBits):
        return bits
    unknown = None if bits.unknown is None else _aligned(bits.unknown)
    return BitMatrix.from_words(np.require(bits.words, requirements="A"), bits.n_cols, False, unknown)


def _count_cells(partition: Bits) -> tuple[int, int]:
    """Return the number of ones and of unknown cells of a partition."""
    return partition.count(), partition.n_unknown


def _sum_of_done(*done: tuple[BitMatrix, Counts], after: list[BitMatrix]) -> Counts:
    return _sum(*(counts for _, counts in done))


def _sum(*counts: Any) -> Any:
    return reduce(add, counts)


sizeof.register((BitMatrix, SparseBits), bytes_of)  # by which Dask chooses the worker of a task


@sizeof.register(Counts)
def _size_of_counts(counts: Counts) -> int:
    arrays = (value for value in vars(counts).values() if isinstance(value, np.ndarray))
    return sum(array.nbytes for array in arrays) + (0 if counts.voted is None else bytes_of(counts.voted))
