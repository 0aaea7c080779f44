"""The effect of the initial atoms (Figures 4 and 5 of the paper): two data sets, two methods, two kinds of start."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitatoms.bits import BitMatrix
from bitatoms.engine.codelength import codelength_from_counts
from bitatoms.html.tables import DataTable

from .datasets import PaperDataset
from .experiment import BITS_PER_SAMPLE, Claim, Experiment, Panel, Verdict, verdict_if
from .figures import Figure
from .mosaics import mosaic_figure
from .runs import STARTS, UPDATES, MethodRun, run_learning, starting_atoms
from .similarity import max_jaccard

N_ATOMS = 36
_N_ACROSS = 6
_N_SEEDS = 5  # for the numbers; the mosaics show the first
_MAX_BITS = 0.85  # of the bits without atoms, for a start to work well
_MAX_EXCESS = 0.15  # over the bits of the other start, for both to work equally well
_MIN_JACCARD = 0.6  # with a block, for an atom to resemble it
_MIN_CHANGED = 0.1  # of the atoms, to show adaptation


@dataclass(frozen=True)
class InitTrial:
    """A run from one kind of start, with one method and one seed."""

    start: str
    update: str
    seed: int
    run: MethodRun

    @property
    def bits(self) -> float:
        """The codelength per sample."""
        return self.run.history[-1].bits / self.run.codes.n_rows

    @property
    def n_used(self) -> int:
        """The number of atoms that a sample uses."""
        return int((self.run.uses > 0).sum())

    @property
    def n_unchanged(self) -> int:
        """The number of atoms that are equal to their start."""
        return int(self.is_unchanged.sum())

    @property
    def n_unchanged_and_unused(self) -> int:
        """The number of unchanged atoms that no sample uses."""
        return int((self.is_unchanged & (self.run.uses == 0)).sum())

    @property
    def is_unchanged(self) -> NDArray[np.bool_]:
        """Whether each atom is equal to its start."""
        return (self.run.start.words == self.run.atoms.words).all(axis=1)


def initialisation(digits: PaperDataset, halftone: PaperDataset, seed: int) -> Experiment:
    """Learn 36 atoms from each kind of start with each method, on each data set, with several seeds."""
    panels = tuple(_panel(dataset, seed) for dataset in (halftone, digits))
    description = (
        f"{N_ATOMS} atoms are learned from random atoms, whose pixels are black with probability one half, or from "
        f"random samples. The mosaics show one seed, the numbers are from {_N_SEEDS}. The paper itself advises to take "
        "this experiment with a grain of salt: it only illustrates how initialization can work or fail."
    )
    return Experiment("start", "Initialization", "The effect of the initial atoms", description, panels)


def _panel(dataset: PaperDataset, seed: int) -> Panel:
    """Return the atoms before and after learning on one data set, for each kind of start."""
    trials = [
        InitTrial(
            start, update, each, run_learning(dataset.data, starting_atoms(start, dataset.data, N_ATOMS, each), update)
        )
        for start in STARTS
        for update in UPDATES
        for each in range(seed, seed + _N_SEEDS)
    ]
    shown = {(trial.start, trial.update): trial.run for trial in trials if trial.seed == seed}
    figures: list[Figure] = []
    for start, label in STARTS.items():
        before = shown[start, "mob"].start
        figures.append(_mosaic(dataset, before, None, f"start-{start}", f"before: {label}"))
        for update, method in UPDATES.items():
            run = shown[start, update]
            figures.append(_mosaic(dataset, run.atoms, run.uses, f"{update}-{start}", f"after {method}"))
    without = _bits_without_atoms(dataset.data)
    is_mnist = dataset.paper_name == "MNIST"
    claims = _mnist_claims(dataset, trials, without) if is_mnist else _einstein_claims(dataset, trials, without)
    description = f"Without atoms, {without:.1f} bits per sample. " + _bits_by_start(trials)
    return Panel(dataset.name, description, tuple(figures), claims, "triples", _runs_table(trials))


def _mosaic(dataset: PaperDataset, atoms: BitMatrix, uses: NDArray[np.int64] | None, name: str, title: str) -> Figure:
    scale = 3 if dataset.tile[1] > 8 else 5
    return mosaic_figure(f"{dataset.name.lower()}-{name}", title, atoms, uses, dataset.tile, _N_ACROSS, scale)


def _runs_table(trials: list[InitTrial]) -> DataTable:
    """Return the results of all trials."""
    columns = ("start", "method", "seed", "steps", "atoms used", "atoms unchanged", "wrong pixels", BITS_PER_SAMPLE)
    rows = [
        (
            STARTS[trial.start],
            UPDATES[trial.update],
            trial.seed,
            len(trial.run.history),
            trial.n_used,
            trial.n_unchanged,
            trial.run.history[-1].wrong_bits,
            round(trial.bits, 2),
        )
        for trial in trials
    ]
    return DataTable.from_rows(columns, rows)


def _bits_by_start(trials: list[InitTrial]) -> str:
    """Return the range of codelengths for each kind of start and method."""
    sentences = []
    for start, label in STARTS.items():
        bits_by_method = {
            method: [trial.bits for trial in trials if (trial.start, trial.update) == (start, update)]
            for update, method in UPDATES.items()
        }
        ranges = " and ".join(f"{_range_text(bits)} with {method}" for method, bits in bits_by_method.items())
        sentences.append(f"From {label}: {ranges}.")
    return " ".join(sentences)


def _range_text(bits: list[float]) -> str:
    """Return the minimum and maximum, or one number if they are equal."""
    lowest, highest = f"{min(bits):.1f}", f"{max(bits):.1f}"
    return lowest if lowest == highest else f"{lowest} to {highest}"


def _mean_bits(trials: list[InitTrial], start: str, update: str) -> float:
    """Return the mean codelength per sample from one kind of start."""
    return float(np.mean([trial.bits for trial in trials if (trial.start, trial.update) == (start, update)]))


def _einstein_claims(dataset: PaperDataset, trials: list[InitTrial], without: float) -> tuple[Claim, ...]:
    """Return the claims about the halftone."""
    worst = max(trial.bits for trial in trials)
    excess = {
        update: _mean_bits(trials, "bernoulli", update) / _mean_bits(trials, "samples", update) - 1
        for update in UPDATES
    }
    works, is_equal = worst < _MAX_BITS * without, max(excess.values()) < _MAX_EXCESS
    n_unchanged = sum(trial.n_unchanged for trial in trials)
    n_unused = sum(trial.n_unchanged_and_unused for trial in trials)
    n_bernoulli = sum(trial.n_unchanged for trial in trials if trial.start == "bernoulli")
    n_similar = min(_count_similar(dataset, trial) for trial in trials)
    return (
        Claim(
            "Both starts work well, with both methods.",
            f"All runs reduce {without:.0f} bits per sample to {worst:.0f} or fewer. The Bernoulli start takes "
            f"{excess['mob']:.0%} (MOB) and {excess['k-prox']:.0%} (K-PROX) more bits than random samples.",
            verdict_if(works and is_equal, Verdict.PARTLY if works else Verdict.DIFFERS),
            "" if is_equal else "Many atoms of the Bernoulli start remain noise.",
        ),
        Claim(
            "In all cases some atoms come to resemble halftone patterns.",
            f"In each of {len(trials)} runs at least {n_similar} of {N_ATOMS} atoms have changed and have a Jaccard "
            f"index of {_MIN_JACCARD:.0%} or more with a block.",
            verdict_if(n_similar > 0),
        ),
        Claim(
            "Other atoms were not changed, which shows that they were never used.",
            f"Of {N_ATOMS * len(trials)} atoms, {n_unchanged} are unchanged, {n_bernoulli} of them from the Bernoulli "
            f"start. No sample uses {n_unused} of the unchanged atoms.",
            verdict_if(n_unchanged > 0 and n_unused == n_unchanged, Verdict.PARTLY if n_unused else Verdict.DIFFERS),
            "" if n_unused == n_unchanged else "An atom also stays unchanged if most of its users agree with it.",
        ),
    )


def _count_similar(dataset: PaperDataset, trial: InitTrial) -> int:
    """Return the number of atoms that have changed and resemble a block."""
    jaccard = max_jaccard(trial.run.atoms, dataset.data, trial.run.start)
    return int(((jaccard >= _MIN_JACCARD) & ~trial.is_unchanged).sum())


def _mnist_claims(dataset: PaperDataset, trials: list[InitTrial], without: float) -> tuple[Claim, ...]:
    """Return the claims about the digits."""
    bernoulli, samples = ([trial for trial in trials if trial.start == start] for start in STARTS)
    n_steps, n_used = max(len(t.run.history) for t in bernoulli), max(t.n_used for t in bernoulli)
    changed = sum(N_ATOMS - t.n_unchanged for t in samples) / (N_ATOMS * len(samples))
    first, last = (np.mean([t.run.history[step].bits / t.run.codes.n_rows for t in samples]) for step in (0, -1))
    fails = n_used == 0 and n_steps == 1
    worst = max(trial.bits for trial in samples)
    finding = "No atom is ever used, with any seed, and both methods stop at the first step."
    if not fails:
        finding = (
            f"At most {n_used} of {N_ATOMS} atoms are used, and learning ends after at most {n_steps} steps with "
            f"{np.mean([t.bits for t in bernoulli]):.1f} bits per sample; from random samples, with {last:.1f}."
        )
    return (
        Claim(
            "The Bernoulli start does not work: no atom is ever used, and both methods stop at the first step.",
            finding,
            verdict_if(fails, Verdict.NOT_SEEN if dataset.is_substitute else Verdict.DIFFERS),
            ""
            if fails
            else f"Here {dataset.density:.0%} of the pixels are black, in MNIST 13%, and samples have fewer pixels. A "
            "random atom is more likely to have most of its pixels in common with a sample.",
        ),
        Claim(
            "The random samples do a good job as a start in both cases.",
            f"They reduce {without:.1f} bits per sample to {worst:.1f} or fewer on {dataset.name}; for the other data "
            "set see above.",
            verdict_if(worst < without),
        ),
        Claim(
            "From random samples, both final models show some adaptation.",
            f"{changed:.0%} of the atoms change. The codelength is {first:.1f} bits per sample after the first step "
            f"and {last:.1f} after the last.",
            verdict_if(changed > _MIN_CHANGED),
        ),
    )


def _bits_without_atoms(data: BitMatrix) -> float:
    """Return the codelength per sample without atoms."""
    none = np.zeros(0, np.int64)
    return codelength_from_counts(data.n_rows, data.n_cols, data.column_weights(), none, none, 0).total / data.n_rows
