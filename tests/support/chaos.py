"""A scheduler that divides and orders work at random, and the kinds of fits: no result may depend on what it draws."""

import sys
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest

from bitatoms import factorize, parallel
from bitatoms.datasets import planted
from bitatoms.parallel import Workers
from bitatoms.search import monitor
from support.parameters import nested
from support.plans import use_windows
from support.strategies import random_bits

SPLIT = 0.3  # how many of the jobs are divided into chunks, however small they are


@contextmanager
def chaos(seed):
    """Draw the sizes of chunks, the order of chunks and tasks, and which threads help; yield ``n_jobs`` for a fit.

    Every third seed has one thread, whose jobs are divided. Every other third has several, but the calling thread does
    all of their work, so that a failure is repeated by its seed. The last third has two or three real threads.
    """
    random = Random(seed)
    n_jobs = 1 if seed % 3 == 0 else random.choice((2, 3))
    start, run_in_threads = parallel._Crew.start, Workers._run_in_threads

    def edges_of_chunks(workers, n_rows, cost, n_threads, multiple=64):
        cuts = range(multiple, n_rows, multiple)
        chosen = random.sample(cuts, min(len(cuts), random.randint(1, 4))) if random.random() < SPLIT else []
        edges = [0, *sorted(chosen), n_rows]
        return [*pairwise(edges)]

    def run_chunks_in_any_order(workers, run, n_chunks, n_threads):
        order = random.sample(range(n_chunks), n_chunks)
        results = run_in_threads(workers, lambda number: run(order[number]), n_chunks, n_threads)
        return [result for _, result in sorted(zip(order, results, strict=True), key=lambda each: each[0])]

    def start_some_threads(crew, job, most, is_short):
        return 0 if seed % 3 == 1 else start(crew, job, random.randint(0, max(0, most)), is_short)

    class AnyOrder(deque):
        """Tasks that wait, of which any may be the next."""

        def popleft(self):
            self.rotate(random.randrange(len(self)))
            return super().popleft()

    class Batch(parallel._Batch):
        def __init__(self, *crew):
            super().__init__(*crew)
            self._waiting = AnyOrder()

    interval = sys.getswitchinterval()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(monitor, "_MIN_CELLS", 0)  # several steps at once, however small the table is
        patch.setattr(Workers, "_most_threads", lambda workers, cost: workers.n_threads)
        patch.setattr(Workers, "_edges", edges_of_chunks)
        patch.setattr(Workers, "_run_in_threads", run_chunks_in_any_order)
        patch.setattr(parallel._Crew, "start", start_some_threads)
        patch.setattr(parallel, "_Batch", Batch)
        sys.setswitchinterval(1e-4)
        try:
            yield n_jobs
        finally:
            sys.setswitchinterval(interval)


@dataclass(frozen=True)
class Kind:
    """A kind of fit: what `factorize` gets, and the widths of windows, if the table is searched by windows."""

    parameters: dict[str, Any]
    n_components: int | str = "mdl"
    algebra: str = "xor"  # of the planted table; the fit has another one only if its parameters have
    unknown: float = 0.0  # the share of unknown cells
    weighted: bool = False
    windows: dict[str, int] = field(default_factory=dict)

    @property
    def table(self):
        """Planted factors in noise, of more rows than a word has bits; windows have factors of their own."""
        shape, density = (200, 30, 4), {"atom_density": 0.3, "code_density": 0.3, "noise": 0.05}
        seeds = range(4 if self.windows else 1)
        X = np.hstack([planted(*shape, algebra=self.algebra, random_state=seed, **density).X for seed in seeds])
        return np.where(random_bits(9, *X.shape, self.unknown) == 1, np.nan, X) if self.unknown else X

    def fit(self, X=None, **how):
        """Return the result for its table, or another form of it."""
        X = self.table if X is None else X
        weights = {"sample_weight": np.arange(len(X)) % 3} if self.weighted else {}
        how = {"algebra": self.algebra, "random_state": 3, **self.parameters, **weights, **how}
        with pytest.MonkeyPatch.context() as patch:
            use_windows(patch, **self.windows)
            return factorize(X, self.n_components, **nested(**how))


FIXED = np.eye(1, 30, 3, dtype=np.uint8) | np.eye(1, 30, 4, dtype=np.uint8)
KINDS = {
    "fast xor": Kind({}),
    "thorough or": Kind({"search": "thorough"}, algebra="or"),
    "both algebras, two starts": Kind({"algebra": "auto", "n_init": 2}),
    "a sample of rows": Kind({"search_rows": 130}, algebra="or"),
    "5 atoms, fewest errors": Kind({}, 5),
    "20 atoms, thorough": Kind({"search": "thorough"}, 20, "or"),
    "4 atoms, codelength": Kind({"objective": "codelength", "algebra": "auto"}, 4),
    "paper": Kind({"search": "paper", "n_init": 2}),
    "paper, 5 atoms by k-prox": Kind({"search": "paper", "update": "k-prox"}, 5, "or"),
    "anytime": Kind({"search": "anytime", "max_iter": 12}),
    "anytime, 5 atoms": Kind({"search": "anytime", "max_iter": 12}, 5, "or"),
    "unknown cells": Kind({}, algebra="or", unknown=0.1),
    "unknown cells, 5 atoms": Kind({}, 5, unknown=0.1),
    "weights": Kind({}, weighted=True),
    "constraints": Kind({"fixed_atoms": FIXED, "max_features_per_atom": 6, "min_samples_per_atom": 9}, algebra="or"),
    "limits of rows": Kind({"max_atoms_per_sample": 2}),
    "costs of errors": Kind({"false_positive_cost": 3.0}, algebra="or"),
    "given start": Kind({"init": (random_bits(1, 4, 30, 0.3), random_bits(2, 200, 4, 0.3))}),
    "windows xor": Kind({}, windows={"min_features": 60, "width": 30, "max_cells": 0}),
    "windows or": Kind({"search_rows": 130}, algebra="or", windows={"min_features": 60, "width": 30}),
    "few rounds": Kind({"max_iter": 9}),
}
