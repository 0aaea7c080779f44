"""The search of a sample of rows that goes on from atoms and codes: what `Online` does every now and then."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.tables import covering
from ..parallel import Workers
from .block import Block
from .coding import MOST_EXACT_ATOMS
from .descent import explore
from .fixed import fewest_errors
from .held_out import HeldOut
from .learning import Snapshot, Watch
from .pricing import Aim
from .settings import Settings

_TRIALS = 16  # with other atoms in the place of some, of a search for the fewest errors
_HELD_OUT = 9  # one row of so many says when a search for more atoms must stop


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows that stand for more, with the atoms and codes there are."""

    rows: BitMatrix
    n_all: float  # rows that these stand for
    algebra: str
    atoms: BitMatrix
    codes: BitMatrix
    bias: BitMatrix

    @property
    def is_whole(self) -> bool:
        """Whether these are all."""
        return len(self.rows) >= int(self.n_all)


def parted(
    rows: BitMatrix, n_all: float, settings: Settings, random: np.random.Generator, workers: Workers
) -> tuple[NDArray[np.intp], HeldOut | None]:
    """The rows of a sample to search; and those that are held out, where the number of atoms is open and atoms could
    fit a sample row by row."""
    if len(rows) >= int(n_all) or settings.n_components != "mdl":
        return np.arange(len(rows)), None
    drawn, apart = random.permutation(len(rows)), max(1, len(rows) // _HELD_OUT)
    return np.sort(drawn[apart:]), HeldOut(rows[np.sort(drawn[:apart])], int(n_all), workers)


def search_again(
    sample: Sample, settings: Settings, from_scratch: bool, workers: Workers, random: np.random.Generator
) -> Snapshot | None:
    """The best that a search of a sample finds, from the atoms and codes there are; from scratch as well, if so asked.

    That for the codelength has other starts of its own, whatever was asked.
    """
    seen, held_out = parted(sample.rows, sample.n_all, settings, random, workers)
    rows, algebra = sample.rows[seen], sample.algebra
    part = len(seen) / sample.n_all if settings.by_codelength else 1.0
    aim = Aim.of(settings, algebra, part)
    errors = replace(aim, by_codelength=False, share=1.0)
    plan = settings.plan
    watch = Watch(
        settings.by_codelength,
        settings.deadline(),
        algebra=algebra,
        fewest=plan.fewest,
        most=plan.most,
        judged=held_out is not None,
    )
    block = Block(rows, sample.atoms, sample.codes[seen], covering(algebra), workers, sample.bias)
    if not settings.by_codelength:
        _mend(rows, block, settings, errors, watch, workers, random)
        if from_scratch:
            fewest_errors(rows, None, plan.fewest, errors, 1, settings.max_iter, watch, workers, random)
        return watch.best
    if settings.n_components != "mdl" and sample.is_whole and not sample.bias.count():
        block = min(block, _mend(rows, block, settings, errors, watch, workers, random), key=aim.cost)
    explore(rows, None, block, aim, plan, watch, workers, random, held_out)
    return watch.best


def _mend(
    rows: BitMatrix,
    block: Block,
    settings: Settings,
    aim: Aim,
    watch: Watch,
    workers: Workers,
    random: np.random.Generator,
) -> Block:
    """Fewer errors by a few trials, then by the coders that take longer."""
    wanted, most = settings.plan.fewest, min(_TRIALS, settings.max_iter)
    few = fewest_errors(rows, block.factors(), wanted, aim, 1, most, watch, workers, random)
    if wanted > MOST_EXACT_ATOMS and watch.cut_by == "max_iter":  # which has ended more than the trials
        watch.cut_by = None
        few = fewest_errors(rows, few.factors(), wanted, aim, 0, 1, watch, workers, random)
    watch.cut_by = None  # if the time is up, that is seen again
    return few
