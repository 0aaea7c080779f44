"""Boolean matrix factorization by message passing (max-sum belief propagation)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..engine.block import reconstruct
from ..kernels.cpu.messages import MessageGraph, MessageScratch, exchange
from ..parallel import Workers
from ..rows.budget import parse_memory_limit
from ..validation import check_fraction, check_int
from .baseline import Baseline, Factors

_INITIAL_SCALE = 2.0  # standard deviation of the initial messages, in units of the evidence of a cell
_NANOSECONDS_PER_MESSAGE_PAIR = 6.0


class MessagePassing(Baseline):
    """Boolean factorization by message passing: the most probable factors under noise that flips cells.

    The method of Ravanbakhsh, Póczos and Greiner: max-sum belief propagation on the graph of all codes, atoms and
    cells. Each cell sends a message to the code and to the bit of each atom that may make it a one. All messages are
    updated together until they converge or ``max_iter`` is reached. Codes and bits with a positive belief become ones.

    It differs from the paper in two ways. The initial messages are as large as the evidence of a cell, which gives
    better results than small ones. There are several random starts.

    Parameters
    ----------
    n_components : int, default=8
        Number of atoms.
    flip : float, default=0.05
        Probability that a cell is flipped, between 0 and 0.5. It has an effect only if a prior is not 0.5.
    atom_prior, code_prior : float, default=0.5
        Probability that a bit of an atom, or of a code, is a one.
    damping : float, default=0.4
        The share of the old message in an update, at least 0 and less than 1.
    max_iter : int, default=200
        Maximum number of updates of the messages.
    tol : float, default=0.001
        The messages have converged when no belief changes by more than this, in units of the evidence of a cell.
    n_init : int, default=5
        Number of random starts. The most probable result is kept; with priors of 0.5, it is the one with the fewest
        wrong cells.
    max_memory : int or str, default="4 GiB"
        Limit for the messages, which take 8 bytes per sample, feature and atom. Larger problems raise a ValueError.
    binarize : float or None, default=None
        Threshold: values above it are ones. None requires X to hold only 0 and 1.
    random_state : int, Generator, RandomState or None, default=None
        The same seed gives the same result.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features), uint8
    codes_ : ndarray of shape (n_samples, n_components_), uint8
    codelength_ : Codelength
    n_components_ : int
    n_iter_ : int
        Number of updates of the messages in the kept start.

    References
    ----------
    S. Ravanbakhsh, B. Póczos, R. Greiner, "Boolean matrix factorization and noisy completion via message passing",
    ICML 2016.

    Examples
    --------
    >>> from bitatoms.baselines import MessagePassing
    >>> from bitatoms.datasets import planted
    >>> data = planted(100, 40, 3, algebra="or", noise=0.02, random_state=0)
    >>> model = MessagePassing(3, random_state=0).fit(data.X)
    >>> bool((model.inverse_transform(model.codes_) == data.clean).all())
    True
    """

    algebra: ClassVar[str] = "or"
    chooses_rank: ClassVar[bool] = False
    n_components: int

    def __init__(
        self,
        n_components: int = 8,
        *,
        flip: float = 0.05,
        atom_prior: float = 0.5,
        code_prior: float = 0.5,
        damping: float = 0.4,
        max_iter: int = 200,
        tol: float = 1e-3,
        n_init: int = 5,
        max_memory: int | str = "4 GiB",
        binarize: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.flip = flip
        self.atom_prior = atom_prior
        self.code_prior = code_prior
        self.damping = damping
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.max_memory = max_memory
        self.binarize = binarize
        self.random_state = random_state

    def _factorize(self, data: BitMatrix, random: np.random.Generator) -> Factors:
        n_init, max_iter = check_int("n_init", self.n_init, 1), check_int("max_iter", self.max_iter, 1)
        damping, tol = check_fraction("damping", self.damping), check_fraction("tol", self.tol)
        if damping == 1:
            raise ValueError("damping must be less than 1; at 1 no message changes")
        unit = -_log_odds("flip", self.flip)
        if unit <= 0:
            raise ValueError(f"flip must be less than 0.5, not {self.flip}; at 0.5 cells carry no information")
        # Everything is in units of the evidence of a cell: messages scale with it, so only the priors remain.
        atom_prior = _log_odds("atom_prior", self.atom_prior) / unit
        code_prior = _log_odds("code_prior", self.code_prior) / unit
        cells = data.to_dense()
        graph = _allocate_graph(cells, self.n_components, parse_memory_limit(self.max_memory))
        best, lowest = None, math.inf
        for _ in range(n_init):
            for messages in (graph.to_codes, graph.to_atoms):
                random.standard_normal(dtype=np.float32, out=messages)
                messages *= _INITIAL_SCALE
            beliefs = Beliefs(graph, code_prior, atom_prior)
            for n_iter in range(1, max_iter + 1):  # noqa: B007 - stored below
                if beliefs.update(1 - damping) < tol:
                    break
            codes, atoms = beliefs.codes > 0, beliefs.atoms > 0
            cost = _count_wrong(data, codes, atoms) - code_prior * int(codes.sum()) - atom_prior * int(atoms.sum())
            if cost < lowest:
                best, lowest, self.n_iter_ = Factors(atoms, codes), cost, n_iter
        assert best is not None
        return best


class Beliefs:
    """The log odds of codes and atoms: the prior plus all messages; positive where a one is more likely."""

    def __init__(self, graph: MessageGraph, code_prior: float, atom_prior: float) -> None:
        n_features = graph.cells.shape[1]
        self.graph = graph
        self.code_prior, self.atom_prior = np.float32(code_prior), np.float32(atom_prior)
        self.codes: NDArray[np.float32] = graph.to_codes.sum(axis=2) + self.code_prior  # (n_samples, n_atoms)
        self.atoms: NDArray[np.float32] = graph.to_atoms.sum(axis=0) + self.atom_prior  # (n_atoms, n_features)
        self._scratch = MessageScratch(np.empty_like(self.atoms), *(np.empty(n_features, np.float32) for _ in range(3)))

    def update(self, step: float) -> float:
        """Move all messages in place, by the fraction ``step``, and return the largest change of a belief."""
        before, after = self.atoms, np.full_like(self.atoms, self.atom_prior)

        def update_rows(start: int, stop: int) -> float:
            exchange(self.graph, start, stop, self.codes, before, np.float32(step), after, self._scratch)
            codes = self.graph.to_codes[start:stop].sum(axis=2) + self.code_prior
            change = float(np.abs(codes - self.codes[start:stop]).max())
            self.codes[start:stop] = codes
            return change

        # One thread, because the float sums over rows depend on their order; chunks, so that Ctrl-C is handled.
        changes = Workers().map_rows(update_rows, len(self.codes), _NANOSECONDS_PER_MESSAGE_PAIR * before.size)
        self.atoms = after
        return max(*changes, float(np.abs(after - before).max()))


def _allocate_graph(cells: NDArray[np.uint8], n_atoms: int, max_bytes: int) -> MessageGraph:
    """Allocate the messages, within a memory limit."""
    n_rows, n_features = cells.shape
    needed = 8 * n_rows * n_features * n_atoms
    if needed > max_bytes:
        raise ValueError(
            f"messages between {n_rows} samples, {n_features} features and {n_atoms} atoms take "
            f"{needed / 2**30:.3g} GiB, but max_memory allows {max_bytes / 2**30:.3g} GiB; "
            "use fewer samples or atoms, or a larger max_memory"
        )
    shape = n_rows, n_atoms, n_features
    return MessageGraph(cells, np.empty(shape, np.float32), np.empty(shape, np.float32))


def _count_wrong(data: BitMatrix, codes: NDArray[np.bool_], atoms: NDArray[np.bool_]) -> int:
    """Return the number of wrong cells of the product."""
    bias = np.zeros(data.n_cols, np.uint8)
    product = reconstruct(BitMatrix.from_dense(codes), BitMatrix.from_dense(atoms), bias, "or")
    return (data ^ product).count()


def _log_odds(name: str, value: Any) -> float:
    """Return the log odds of a probability other than 0 and 1."""
    probability = check_fraction(name, value)
    if probability in (0, 1):
        raise ValueError(f"{name} must be greater than 0 and less than 1, not {value!r}")
    return math.log(probability / (1 - probability))
