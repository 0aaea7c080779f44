"""What the paper says of forward selection, beside what its curves show here."""

from __future__ import annotations

import numpy as np

from .experiment import Claim, Verdict, judged
from .paths import Path, count_valleys, exponential, growth_of
from .runs import learned, starting_atoms
from .subjects import Subject

_LIKE = 0.02  # minima that differ by less are close
_STRAIGHT = 0.8  # R² of a line that is taken for one
_CONSTANT = 2.0  # a step that takes less than this many times as long at the end is as good as constant
_MOSTLY = 0.9  # of the steps


def claims_of_the_paper(subject: Subject, paths: dict[str, Path], seed: int) -> tuple[Claim, ...]:
    """What the paper says of forward selection on its picture."""
    mob, kprox = paths["mob"], paths["k-prox"]
    lowest = {update: path.bits.min() for update, path in paths.items()}
    apart = abs(lowest["mob"] - lowest["k-prox"]) / min(lowest.values())
    straight = {update: exponential(path) for update, path in paths.items()}
    taken = {update: path.run.seconds for update, path in paths.items()}
    slower = taken["k-prox"] / taken["mob"]
    medians = {update: 1000 * np.median(path.steps) for update, path in paths.items()}
    growth = {update: growth_of(path.steps) for update, path in paths.items()}
    more = mob.atoms[-len(mob.atoms) // 6] / mob.atoms[len(mob.atoms) // 6]
    growing = growth["k-prox"] >= _CONSTANT
    scratch = {update: _from_scratch(subject, path, seed) for update, path in paths.items()}
    times = {update: 1000 * scratch[update] / medians[update] for update in paths}
    models = sum(len(path.rounds) for path in paths.values())
    return (
        Claim(
            "Forward selection converges exponentially to a local minimum, very close for both methods.",
            f"The minima are {lowest['mob']:.1f} (MOB) and {lowest['k-prox']:.1f} (K-PROX) bits a sample, {apart:.1%} "
            f"apart. What is left to gain falls like an exponential: the logarithm is a straight line to "
            f"R² = {straight['mob']:.2f} and {straight['k-prox']:.2f}.",
            judged(apart < _LIKE and min(straight.values()) > _STRAIGHT, Verdict.PARTLY),
        ),
        typical_curves(paths),
        Claim(
            "K-PROX takes more time than MOB: 14 s and 4 s.",
            f"{taken['k-prox']:.2f} s to {kprox.atoms[-1]} atoms and {taken['mob']:.2f} s to {mob.atoms[-1]}: "
            f"{slower:.1f} times as long.",
            judged(slower > 1),
        ),
        Claim(
            "A step is cheap (0.11 s for MOB and 0.03 s for K-PROX) and nearly constant, however many atoms there are.",
            f"The median step takes {medians['mob']:.2f} ms (MOB) and {medians['k-prox']:.2f} ms (K-PROX). From the "
            f"first third of the steps to the last, where there are about {more:.0f} times as many atoms, it grows "
            f"{growth['mob']:.1f}-fold and {growth['k-prox']:.1f}-fold.",
            judged(max(growth.values()) < _CONSTANT, Verdict.PARTLY if growth["mob"] < _CONSTANT else Verdict.DIFFERS),
            "The caption has the two numbers the wrong way round: 4 s and 14 s in all are about 130 steps of 0.03 s "
            "and of 0.11 s."
            + (" K-PROX goes over all samples for each atom: its steps grow with them." if growing else ""),
        ),
        Claim(
            "Warm restarts are crucial for searching through the model sizes.",
            f"Learning as many atoms as the minimum has from scratch takes {times['mob']:.0f} (MOB) and "
            f"{times['k-prox']:.0f} (K-PROX) times as long as a step.",
            judged(bool(min(times.values()) > 1)),
        ),
        Claim(
            "Hundreds of candidate models can be searched in as little as 4 seconds.",
            f"{models} models in {sum(taken.values()):.1f} s, on one thread.",
            judged(models > 100 and sum(taken.values()) / models < 4 / 100),
        ),
    )


def typical_curves(paths: dict[str, Path]) -> Claim:
    """Whether errors fall and the model grows."""
    falls, grows = [], []
    for path in paths.values():
        errors = np.array([row.bits_errors for row in path.rounds])
        model = np.array([row.bits_codes + row.bits_atoms for row in path.rounds])
        falls.append(float((np.diff(errors) < 0).mean()))
        grows.append(float((np.diff(model) > 0).mean()))
    return Claim(
        "The parts show typical MDL curves: L(E) falls as p grows, L(A) + L(D) rises.",
        f"L(E) falls in {falls[0]:.0%} (MOB) and {falls[1]:.0%} (K-PROX) of the steps, L(A) + L(D) rises in "
        f"{grows[0]:.0%} and {grows[1]:.0%}.",
        judged(min(falls + grows) > _MOSTLY, Verdict.PARTLY),
    )


def smooth_curves(paths: dict[str, list[Path]]) -> Claim:
    """Whether the curves are smooth and have one minimum region."""
    curves = [path.bits for several in paths.values() for path in several]
    valleys = [count_valleys(bits) for bits in curves]
    bump = max(float(max((np.diff(bits[: bits.argmin() + 1]) / bits.min()).max(initial=0), 0)) for bits in curves)
    dip = max(float(max((-np.diff(bits[bits.argmin() :]) / bits.min()).max(initial=0), 0)) for bits in curves)
    return Claim(
        "The codelength has one minimum (but by the author's program, which miscounts beyond 64 atoms).",
        f"{sum(valleys)} minimum regions in {len(curves)} curves. No step against the way the curve goes is "
        f"larger than {max(bump, dip):.2%}.",
        judged(all(count == 1 for count in valleys)),
        "" if all(count == 1 for count in valleys) else "The table is small, and an atom more or less makes a bump.",
    )


def _from_scratch(subject: Subject, path: Path, seed: int) -> float:
    """Seconds to learn as many atoms as the minimum has from random samples."""
    start = starting_atoms("samples", subject.data, path.best.atoms, seed)
    return learned(subject.data, start, path.run.update).seconds
