"""A window of the columns of a wide table: its best state, and how windows are joined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_diag

from ...bits import BitMatrix, stack_rows
from ...engine.codelength import Codelength
from ..monitor import CONVERGED, Snapshot


@dataclass(frozen=True, eq=False)
class Window:
    """Some columns of the table, and the best state that was found of them."""

    columns: NDArray[np.intp]
    best: Snapshot
    cost: int
    random: np.random.Generator | None  # None for columns that are not searched
    ended: str = CONVERGED
    iterations: int = 0  # of what was done last
    groups: tuple[int, ...] = ()  # of the columns, as they were divided at first

    @cached_property
    def described(self) -> NDArray[np.bool_]:
        """Which of the columns the state describes, by an atom or by the bias."""
        return (self.best.atoms.column_weights() > 0) | (self.best.bias.to_dense()[0] == 1)


def joined(windows: Sequence[Window]) -> Window:
    """Return a window with the columns, atoms and codes of several; its random numbers are those of the first.

    Its columns are in increasing order, in whatever order windows were joined: a resumed search joins its first ones.
    """
    states = [window.best for window in windows]
    columns = np.concatenate([window.columns for window in windows])
    order, lengths = np.argsort(columns), [state.codelength for state in states]
    best = Snapshot(
        BitMatrix.from_sparse(block_diag([state.atoms.to_sparse() for state in states], "csr")).take_columns(order),
        stack_rows([state.codes.T for state in states], states[0].codes.n_rows).T,
        stack_rows([state.bias.T for state in states], 1).T.take_columns(order),
        Codelength(*(sum(getattr(length, part) for length in lengths) for part in ("errors", "codes", "atoms"))),
        np.concatenate([state.wrong for state in states])[order],
        np.concatenate([state.n_known for state in states])[order],
    )
    return Window(
        columns=columns[order],
        best=best,
        cost=sum(window.cost for window in windows),
        random=windows[0].random,
        ended=next((window.ended for window in windows if window.ended != CONVERGED), CONVERGED),
        groups=tuple(group for window in windows for group in window.groups),
    )


def divided(window: Window, without_model: Callable[[NDArray[np.intp]], Window]) -> tuple[Window, Window]:
    """Return a window with the columns that the state of another one describes, and one with the others."""
    best, length = window.best, window.best.codelength
    kept, rest = np.flatnonzero(window.described), without_model(window.columns[~window.described])
    state = Snapshot(
        best.atoms.take_columns(kept),
        best.codes,
        best.bias.take_columns(kept),
        replace(length, errors=length.errors - rest.best.codelength.errors),
        best.wrong[kept],
        best.n_known[kept],
    )
    return replace(window, columns=window.columns[kept], best=state, cost=window.cost - rest.cost), rest
