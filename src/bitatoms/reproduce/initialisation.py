"""The effect of where learning starts (the paper's fourth and fifth figure): two sets, two methods, two starts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..bits import BitMatrix
from ..mdl import codelength_from_counts
from ..report.figures import Figure, pixels
from ..report.numbers import Numbers
from .experiment import Claim, Experiment, Panel, Verdict, judged
from .mosaics import PALETTE, mosaic
from .runs import STARTS, UPDATES, Run, learned, starting_atoms
from .subjects import Subject

N_ATOMS = 36
_ACROSS = 6
_SEEDS = 5  # for the figures in words; the pictures are of the first
_OF_USE = 0.85  # of the bits without atoms: a start that leads below is of use


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
        return int(self._same().sum())

    @property
    def unchanged_and_unused(self) -> int:
        """Of those, atoms that no sample uses."""
        return int((self._same() & (self.run.uses == 0)).sum())

    def _same(self) -> np.ndarray:
        return (self.run.start.words == self.run.atoms.words).all(axis=1)


def initialisation(digits: Subject, halftone: Subject, seed: int) -> Experiment:
    """Learn 36 atoms from each start with each method, on each set, at several seeds."""
    panels = tuple(_panel(subject, seed) for subject in (halftone, digits))
    about = (
        f"{N_ATOMS} atoms, learned from atoms whose pixels are black with probability one half, or from samples drawn "
        f"at random. The pictures are of one seed, the numbers of {_SEEDS}."
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
    shown = {(trial.start, trial.update): trial for trial in trials if trial.seed == seed}
    figures: list[Figure] = []
    for start, called in STARTS.items():
        before = shown[start, "mob"].run.start
        figures.append(_mosaic(subject, before, f"start-{start}", f"before: {called}"))
        for update, method in UPDATES.items():
            figures.append(_mosaic(subject, shown[start, update].run.atoms, f"{update}-{start}", f"after {method}"))
    figures[0] = _with_numbers(figures[0], trials)
    without = _bits_without(subject.data)
    is_mnist = subject.of_the_paper == "MNIST"
    claims = _of_mnist(subject, trials) if is_mnist else _of_einstein(trials, without)
    about = f"Without atoms a sample takes {without:.1f} bits. " + _in_words(trials)
    return Panel(subject.name, about, tuple(figures), claims, "triples")


def _mosaic(subject: Subject, atoms: BitMatrix, name: str, title: str) -> Figure:
    return pixels(
        f"{subject.name.lower()}-{name}",
        title,
        f"A mosaic of {atoms.n_rows} atoms of {subject.name}, {title}",
        mosaic(atoms, subject.tile, _ACROSS),
        PALETTE,
        times=3 if subject.tile[1] > 8 else 5,
    )


def _with_numbers(figure: Figure, trials: list[Trial]) -> Figure:
    """The first figure carries the numbers of all trials."""
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
    return replace(figure, numbers=Numbers.of(columns, rows))


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


def _of_einstein(trials: list[Trial], without: float) -> tuple[Claim, ...]:
    """What the paper says of the halftone."""
    worst = max(trial.bits for trial in trials)
    held = [trial for trial in trials if trial.start == "samples"]
    drawn = [trial for trial in trials if trial.start == "bernoulli"]
    unchanged, unused = sum(t.unchanged for t in trials), sum(t.unchanged_and_unused for t in trials)
    better = sum(np.mean([t.bits for t in held if t.update == u]) < np.mean([t.bits for t in drawn if t.update == u])
                 for u in UPDATES)  # fmt: skip
    return (
        Claim(
            "Both starts work well, with both methods.",
            f"All lead from {without:.0f} bits a sample to {worst:.0f} or fewer. Random samples lead to shorter "
            f"codelengths with {'both methods' if better == 2 else 'one method' if better else 'neither method'}.",
            judged(worst < _OF_USE * without),
        ),
        Claim(
            "Some atoms were not changed, which shows that they were never used.",
            f"Of {N_ATOMS * len(trials)} atoms, {unchanged} are as they were at the start, "
            f"{sum(t.unchanged for t in drawn)} of them from the Bernoulli start; no sample uses {unused} of these.",
            judged(unchanged > 0 and unused == unchanged, Verdict.PARTLY if unused else Verdict.DIFFERS),
            "" if unused == unchanged else "An atom also stays as it is where most of its users agree with it.",
        ),
    )


def _of_mnist(subject: Subject, trials: list[Trial]) -> tuple[Claim, ...]:
    """What the paper says of the digits."""
    drawn = [trial for trial in trials if trial.start == "bernoulli"]
    held = [trial for trial in trials if trial.start == "samples"]
    steps, used = max(len(t.run.history) for t in drawn), max(t.used for t in drawn)
    changed = sum(N_ATOMS - t.unchanged for t in held) / (N_ATOMS * len(held))
    first, last = (np.mean([t.run.history[place].bits / t.run.codes.n_rows for t in held]) for place in (0, -1))
    fails = used == 0 and steps == 1
    return (
        Claim(
            "The Bernoulli start does not work: no atom is ever used, and both methods stop at the first step.",
            f"At most {used} of {N_ATOMS} atoms are used, and learning ends after at most {steps} steps."
            if not fails
            else "No atom is ever used, at any seed, and both methods stop at the first step.",
            judged(fails, Verdict.NOT_SEEN if subject.stands_in else Verdict.DIFFERS),
            ""
            if fails
            else f"Here {subject.density:.0%} of the pixels are black, in MNIST 13 %; and of few pixels an atom drawn "
            "at random more often has most in common with a sample. It still does worse than samples do.",
        ),
        Claim(
            "From random samples, both final models show some adaptation.",
            f"{changed:.0%} of the atoms change. The first step leaves {first:.1f} bits a sample, the last {last:.1f}.",
            judged(changed > 0),
        ),
    )


def _bits_without(data: BitMatrix) -> float:
    """The codelength a sample without atoms."""
    none = np.zeros(0, np.int64)
    return codelength_from_counts(data.n_rows, data.n_cols, data.column_weights(), none, none, 0).total / data.n_rows
