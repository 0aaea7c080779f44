"""The effect of where learning starts (the paper's fourth and fifth figure): two sets, two methods, two starts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix
from ...mdl import codelength_from_counts
from ...report.html.figures import Figure
from ...report.html.tables import DataTable
from ..atoms import figure_of_atoms
from ..datasets import Subject
from ..experiment import Claim, Experiment, Panel, Verdict, judged
from ..runs import STARTS, UPDATES, Run, learned, starting_atoms
from ..similarity import most_shared

N_ATOMS = 36
_ACROSS = 6
_SEEDS = 5  # for the figures in words; the pictures are of the first
_OF_USE = 0.85  # of the bits without atoms: a start that leads below is of use
_AS_WELL = 0.15  # more bits than from the other start: as good as it
_ALIKE = 0.6  # of black pixels in common: an atom that resembles a block
_SOME = 0.1  # of the atoms


@dataclass(frozen=True)
class Trial:
    """What one start came to, at one seed."""

    start: str
    update: str
    seed: int
    run: Run

    @property
    def bits(self) -> float:
        """The codelength a sample."""
        return self.run.history[-1].bits / self.run.codes.n_rows

    @property
    def used(self) -> int:
        """Atoms that a sample uses."""
        return int((self.run.uses > 0).sum())

    @property
    def unchanged(self) -> int:
        """Atoms that are what they were at the start."""
        return int(self.same.sum())

    @property
    def unchanged_and_unused(self) -> int:
        """Of those, atoms that no sample uses."""
        return int((self.same & (self.run.uses == 0)).sum())

    @property
    def same(self) -> NDArray[np.bool_]:
        """Whether each atom is what it was at the start."""
        return (self.run.start.words == self.run.atoms.words).all(axis=1)


def initialisation(digits: Subject, halftone: Subject, seed: int) -> Experiment:
    """Learn 36 atoms from each start with each method, on each set, at several seeds."""
    panels = tuple(_panel(subject, seed) for subject in (halftone, digits))
    about = (
        f"{N_ATOMS} atoms, learned from atoms whose pixels are black with probability one half, or from samples drawn "
        f"at random. The pictures are of one seed, the numbers of {_SEEDS}. The paper itself asks to take this with a "
        "grain of salt: it only shows how starts can work or fail."
    )
    return Experiment("start", "Initialisation", "Where learning starts", about, panels)


def _panel(subject: Subject, seed: int) -> Panel:
    """One set: for each start, the atoms before and after."""
    trials = [
        Trial(start, update, each, learned(subject.data, starting_atoms(start, subject.data, N_ATOMS, each), update))
        for start in STARTS
        for update in UPDATES
        for each in range(seed, seed + _SEEDS)
    ]
    shown = {(trial.start, trial.update): trial.run for trial in trials if trial.seed == seed}
    figures: list[Figure] = []
    for start, called in STARTS.items():
        before = shown[start, "mob"].start
        figures.append(_mosaic(subject, before, None, f"start-{start}", f"before: {called}"))
        for update, method in UPDATES.items():
            run = shown[start, update]
            figures.append(_mosaic(subject, run.atoms, run.uses, f"{update}-{start}", f"after {method}"))
    without = _bits_without(subject.data)
    is_mnist = subject.of_the_paper == "MNIST"
    claims = _of_mnist(subject, trials, without) if is_mnist else _of_einstein(subject, trials, without)
    about = f"Without atoms a sample takes {without:.1f} bits. " + _in_words(trials)
    return Panel(subject.name, about, tuple(figures), claims, "triples", _numbers(trials))


def _mosaic(subject: Subject, atoms: BitMatrix, uses: NDArray[np.int64] | None, name: str, title: str) -> Figure:
    times = 3 if subject.tile[1] > 8 else 5
    return figure_of_atoms(f"{subject.name.lower()}-{name}", title, atoms, uses, subject.tile, _ACROSS, times)


def _numbers(trials: list[Trial]) -> DataTable:
    """What each trial came to."""
    columns = ("start", "method", "seed", "steps", "atoms used", "atoms unchanged", "wrong pixels", "bits a sample")
    rows = [
        (
            STARTS[trial.start],
            UPDATES[trial.update],
            trial.seed,
            len(trial.run.history),
            trial.used,
            trial.unchanged,
            trial.run.history[-1].wrong_bits,
            round(trial.bits, 2),
        )
        for trial in trials
    ]
    return DataTable.of(columns, rows)


def _in_words(trials: list[Trial]) -> str:
    """The codelengths that each start leads to."""
    said = []
    for start, called in STARTS.items():
        each = {
            method: [trial.bits for trial in trials if (trial.start, trial.update) == (start, update)]
            for update, method in UPDATES.items()
        }
        spans = " and ".join(f"{_span(bits)} with {method}" for method, bits in each.items())
        said.append(f"From {called}: {spans}.")
    return " ".join(said)


def _span(bits: list[float]) -> str:
    """From the least to the most."""
    least, most = f"{min(bits):.1f}", f"{max(bits):.1f}"
    return least if least == most else f"{least} to {most}"


def _mean(trials: list[Trial], start: str, update: str) -> float:
    """The mean codelength a sample that a start leads to."""
    return float(np.mean([trial.bits for trial in trials if (trial.start, trial.update) == (start, update)]))


def _of_einstein(subject: Subject, trials: list[Trial], without: float) -> tuple[Claim, ...]:
    """What the paper says of the halftone."""
    worst = max(trial.bits for trial in trials)
    longer = {update: _mean(trials, "bernoulli", update) / _mean(trials, "samples", update) - 1 for update in UPDATES}
    fine = worst < _OF_USE * without
    unchanged, unused = (
        sum(counts) for counts in zip(*((t.unchanged, t.unchanged_and_unused) for t in trials), strict=True)
    )
    drawn = sum(trial.unchanged for trial in trials if trial.start == "bernoulli")
    like = [_patterns(subject, trial) for trial in trials]
    return (
        Claim(
            "Both starts work well, with both methods.",
            f"All lead from {without:.0f} bits a sample to {worst:.0f} or fewer. From the Bernoulli start they are "
            f"{longer['mob']:.0%} (MOB) and {longer['k-prox']:.0%} (K-PROX) more than from samples.",
            judged(fine and max(longer.values()) < _AS_WELL, Verdict.PARTLY if fine else Verdict.DIFFERS),
            "" if max(longer.values()) < _AS_WELL else "Many atoms of the Bernoulli start stay noise.",
        ),
        Claim(
            "In all cases some atoms come to resemble halftone patterns.",
            f"In each of {len(trials)} runs at least {min(like)} of {N_ATOMS} atoms have changed and share "
            f"{_ALIKE:.0%} of their black pixels, or more, with a block.",
            judged(min(like) > 0),
        ),
        Claim(
            "Other atoms were not changed, which shows that they were never used.",
            f"Of {N_ATOMS * len(trials)} atoms, {unchanged} are as they were at the start, {drawn} of them from the "
            f"Bernoulli start; no sample uses {unused} of these.",
            judged(unchanged > 0 and unused == unchanged, Verdict.PARTLY if unused else Verdict.DIFFERS),
            "" if unused == unchanged else "An atom also stays as it is where most of its users agree with it.",
        ),
    )


def _patterns(subject: Subject, trial: Trial) -> int:
    """How many atoms have changed and are like a block."""
    shares = most_shared(trial.run.atoms, subject.data, trial.run.start)
    return int(((shares >= _ALIKE) & ~trial.same).sum())


def _of_mnist(subject: Subject, trials: list[Trial], without: float) -> tuple[Claim, ...]:
    """What the paper says of the digits."""
    drawn, held = ([trial for trial in trials if trial.start == start] for start in STARTS)
    steps, used = max(len(t.run.history) for t in drawn), max(t.used for t in drawn)
    changed = sum(N_ATOMS - t.unchanged for t in held) / (N_ATOMS * len(held))
    first, last = (np.mean([t.run.history[place].bits / t.run.codes.n_rows for t in held]) for place in (0, -1))
    fails = used == 0 and steps == 1
    worst = max(trial.bits for trial in held)
    found = "No atom is ever used, at any seed, and both methods stop at the first step."
    if not fails:
        found = (
            f"At most {used} of {N_ATOMS} atoms are used, and learning ends after at most {steps} steps, with "
            f"{np.mean([t.bits for t in drawn]):.1f} bits a sample; from samples, {last:.1f}."
        )
    return (
        Claim(
            "The Bernoulli start does not work: no atom is ever used, and both methods stop at the first step.",
            found,
            judged(fails, Verdict.NOT_SEEN if subject.stands_in else Verdict.DIFFERS),
            ""
            if fails
            else f"Here {subject.density:.0%} of the pixels are black, in MNIST 13%, and there are fewer of them: an "
            "atom drawn at random more often has most of its pixels in common with a sample.",
        ),
        Claim(
            "The random samples do a good job as a start in both cases.",
            f"They lead from {without:.1f} bits a sample to {worst:.1f} or fewer on {subject.name}; for the other set "
            "see above.",
            judged(worst < without),
        ),
        Claim(
            "From random samples, both final models show some adaptation.",
            f"{changed:.0%} of the atoms change. The first step leaves {first:.1f} bits a sample, the last {last:.1f}.",
            judged(changed > _SOME),
        ),
    )


def _bits_without(data: BitMatrix) -> float:
    """The codelength a sample without atoms."""
    none = np.zeros(0, np.int64)
    return codelength_from_counts(data.n_rows, data.n_cols, data.column_weights(), none, none, 0).total / data.n_rows
