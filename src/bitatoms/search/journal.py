"""The journal of a search: what its finished steps left, so that a search that was killed resumes where it was.

With the same table, parameters and random numbers, a search makes the same steps in the same order. A step returns
states, and apart from them it changes only random generators, the rounds that are left, and the history and the best
state of the monitor. A journal keeps that (`StepRecord`). A resumed search makes its steps in the same order, and those
that are in the journal are taken from there. Steps can contain others: what these left is dropped once the outer one is
finished. A loop is a step whose record is replaced from time to time, after an iteration.

Steps that end because the search must stop, by a deadline or a callback, are not kept: a resumed search makes them
again. Its best state is kept, so that the resumed search does not end with a worse one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ..engine.block import Block
from ..model.result import Round
from .monitor import CostedState, SearchMonitor, Snapshot

if TYPE_CHECKING:
    from .context import SearchContext
    from .monitor import StoppingRule

_MAX_SPAWNED = 1 << 20  # generators made from one


class RandomState(NamedTuple):
    """The state of a random generator, and how many generators were spawned from it."""

    state: dict[str, Any]
    n_spawned: int


class BestState(NamedTuple):
    """The best state of a monitor, and the rank by which it is the best."""

    state: CostedState
    rank: tuple[int, int, int]
    by_holdout: bool


@dataclass(frozen=True, eq=False)
class StepRecord:
    """What a step left."""

    states: tuple[CostedState, ...] = ()
    numbers: tuple[int, ...] = ()
    randoms: tuple[RandomState, ...] = ()
    rounds: int = 0  # that it made, of those that are allowed
    history: tuple[Round, ...] = ()
    best: BestState | None = None  # if the step changed it


class StepStore(Protocol):
    """Keeps what steps left, by name; several threads may use it."""

    def load(
        self, name: str, shape: tuple[int, int] | None, restore: Callable[[StepRecord], object]
    ) -> StepRecord | None:
        """Return the record of a step after restoring from it, or None.

        If the record cannot be restored from, it is corrupt, and so it is if its states are not of this shape.
        """
        ...

    def save(self, name: str, record: StepRecord) -> None:
        """Keep a record, now or when the next one is due, instead of an earlier one of the same name."""
        ...

    def drop(self, prefix: str) -> None:
        """Forget all records whose names start like this."""
        ...

    def is_due(self) -> bool:
        """Return whether enough time has passed to keep the progress of a loop."""
        ...


class _Mark(NamedTuple):
    """How far a search was before a step."""

    n_moves: int | None  # in its history; None if these are not kept
    best: Snapshot | None
    n_rounds: int = 0  # made, of those that are allowed


class Progress(NamedTuple):
    """What a step returns, or how far a loop is: states, and a few numbers."""

    states: Sequence[CostedState]
    numbers: tuple[int, ...] = ()


class Scope(NamedTuple):
    """What steps change: random generators, and the rounds left; and the shape of the data of their states."""

    shape: tuple[int, int]
    randoms: tuple[np.random.Generator, ...] = ()
    stopping: StoppingRule | None = None


class Loop:
    """A loop in progress.

    Parameters
    ----------
    resumed : Progress or None
        From which to continue, if a search is resumed within the loop.
    save : callable, optional
        Keeps the progress after an iteration.
    """

    def __init__(
        self, resumed: Progress | None = None, save: Callable[[Callable[[], Progress]], None] | None = None
    ) -> None:
        self.resumed, self._save = resumed, save

    def save(self, progress: Callable[[], Progress]) -> None:
        """Keep the progress after an iteration, if that is due."""
        if self._save is not None:
            self._save(progress)


NO_LOOP = Loop()


class StartJournal:
    """The journal of one start of a search. Without a store, it keeps nothing.

    Parameters
    ----------
    store : StepStore, optional
    name : str
        Of the start.
    context : SearchContext
        Of the start, with its monitor and all its rows.
    """

    def __init__(self, store: StepStore | None = None, name: str = "", context: SearchContext | None = None) -> None:
        self._store, self._name, self._context = store, name, context
        self._position = [0]  # numbers of the step, and of the steps that contain it

    @property
    def keeps_steps(self) -> bool:
        """Whether finished steps are kept."""
        return self._store is not None

    def reserve(self) -> list[int]:
        """Return the position of the next step, which a branch makes, and go on to the one after it."""
        position = self._position.copy()
        self._position[-1] += 1
        return position

    def branch(self, position: Sequence[int]) -> StartJournal:
        """Return the journal of a branch, which makes the step at a position."""
        own = StartJournal(self._store, self._name, self._context)
        own._position = [*position]
        return own

    def step(self, make: Callable[[], Progress], scope: Scope) -> Progress:
        """Make a step, or return what it left."""
        store = self._store
        if store is None:
            return make()
        name = self._next_name()
        record = store.load(name, scope.shape, lambda record: self._restore(record, scope))
        if record is not None:
            return Progress(record.states, record.numbers)
        before = self._mark(scope)
        self._position.append(0)
        try:
            found = make()
        finally:
            self._position.pop()
        if not self._monitor.should_stop():
            store.drop(f"{name}.")
            store.save(name, self._record(found, scope, before))
        return found

    def block_step(
        self, make: Callable[[], tuple[Block, int]], block_of: Callable[..., Block], scope: Scope
    ) -> tuple[Block, int]:
        """Make a step that returns a block and a number; ``block_of`` makes a block from atoms, codes and bias."""
        if self._store is None:
            return make()
        made: list[Block] = []

        def make_state() -> Progress:
            block, number = make()
            made.append(block)
            return Progress([state_of_block(block)], (number,))

        found = self.step(make_state, scope)
        return made[0] if made else block_of(*found.states[0][1:]), found.numbers[0]

    @contextmanager
    def loop(self, scope: Scope) -> Iterator[Loop]:
        """Run a loop; its iterations may contain steps."""
        store = self._store
        if store is None:
            yield NO_LOOP
            return
        name = self._next_name()
        before = self._mark(scope)
        record = store.load(name, scope.shape, lambda record: self._restore(record, scope))
        resumed = None if record is None else Progress(record.states, record.numbers[1:])

        def save(progress: Callable[[], Progress]) -> None:
            self._position[-2:] = [self._position[-2] + 1, 0]
            if store.is_due() and not self._monitor.should_stop():
                states, numbers = progress()
                found = Progress(states, (self._position[-2], *numbers))
                store.drop(f"{name}.")
                store.save(name, self._record(found, scope, before))

        self._position += [0 if record is None else record.numbers[0], 0]
        try:
            yield Loop(resumed, save)
        finally:
            del self._position[-2:]

    def restore_best(self) -> None:
        """Begin with the best state that was kept when the search had to stop."""
        if self._store is not None:
            scope = Scope(self._known_context.data.shape)
            self._store.load(self._name_of_best, scope.shape, lambda record: self._restore(record, scope))

    def keep_best(self) -> None:
        """Keep the best state of a search that must stop, which may be later than the last step."""
        if self._store is not None and self._monitor.best is not None:
            self._store.save(self._name_of_best, self._record(Progress([]), Scope((0, 0)), _Mark(None, None)))

    # Records.

    def _next_name(self) -> str:
        """Return the name of the next step."""
        self._position[-1] += 1
        return f"{self._name} {'.'.join(map(str, self._position))}"

    @property
    def _name_of_best(self) -> str:
        """The name of the best state: as if it were a step of the first one, which is the whole start."""
        return f"{self._name} 1.best"

    @property
    def _known_context(self) -> SearchContext:
        assert self._context is not None
        return self._context

    @property
    def _monitor(self) -> SearchMonitor:
        return self._known_context.monitor

    def _mark(self, scope: Scope) -> _Mark:
        """Return how far the search was before a step."""
        n_rounds = 0 if scope.stopping is None else scope.stopping.n_rounds
        return _Mark(len(self._monitor.history), self._monitor.best, n_rounds)

    def _record(self, found: Progress, scope: Scope, before: _Mark) -> StepRecord:
        """Return what a step left, from what it returned and what was before it."""
        monitor = self._monitor
        return StepRecord(
            states=tuple(found.states),
            numbers=found.numbers,
            randoms=tuple(map(random_state, scope.randoms)),
            rounds=0 if scope.stopping is None else scope.stopping.n_rounds - before.n_rounds,
            history=() if before.n_moves is None else tuple(monitor.history[before.n_moves :]),
            best=None if monitor.best is before.best else _best_state(monitor),
        )

    def _restore(self, record: StepRecord, scope: Scope) -> None:
        """Let generators, rounds left and monitor be as the step left them."""
        restore_randoms(scope.randoms, record.randoms)
        if scope.stopping is not None:
            scope.stopping.take_rounds(record.rounds)
        self._monitor.add_rounds(record.history)
        if record.best is not None:
            state, rank, by_holdout = record.best
            self._monitor.keep_earlier(snapshot_of(self._known_context, state), rank, by_holdout)


NO_JOURNAL = StartJournal()


def _best_state(monitor: SearchMonitor) -> BestState | None:
    """Return the best state of a monitor."""
    best = monitor.best
    if best is None:
        return None
    state = CostedState(monitor.best_cost, best.atoms, best.codes, best.bias)
    return BestState(state, monitor.best_rank, monitor.has_holdout_cost)


def state_of_block(block: Block) -> CostedState:
    """Return the factors of a block with its own bias; their cost is not known."""
    return CostedState(0, *block.factors(), block.bias)


def snapshot_of(context: SearchContext, state: CostedState) -> Snapshot:
    """Return a state with its errors and its codelength."""
    if (state.codes.n_rows, state.atoms.n_cols) != context.data.shape:
        raise ValueError("a state is not of this table")
    block = context.block(state.atoms, state.codes, state.bias)
    wrong = block.wrong()
    length = context.monitor.codelength(block, wrong, state.bias)
    return Snapshot(state.atoms, state.codes, state.bias, length, wrong, block.n_known)


def random_state(generator: np.random.Generator) -> RandomState:
    """Return the state of a generator."""
    bits = generator.bit_generator
    return RandomState(dict(bits.state), bits.seed_seq.n_children_spawned)  # type: ignore[attr-defined]


def restore_randoms(generators: Sequence[np.random.Generator], states: Sequence[RandomState]) -> None:
    """Set generators to earlier or later states of the same generators."""
    for generator, state in zip(generators, states, strict=True):
        bits = generator.bit_generator
        n_new = state.n_spawned - bits.seed_seq.n_children_spawned  # type: ignore[attr-defined]
        if not 0 <= n_new <= _MAX_SPAWNED:
            raise ValueError(f"{state.n_spawned} generators cannot have been spawned")
        bits.state = state.state
        bits.seed_seq.spawn(n_new)  # type: ignore[attr-defined]
