"""What the paper says of forward selection, beside what its curves show here."""

from __future__ import annotations

import numpy as np

from ..datasets import Subject
from ..experiment import Claim, Verdict, judged
from ..runs import learned, starting_atoms
from ..selection_curve import Path, count_valleys, growth_of, law_of

_LIKE = 0.02  # minima that differ by less are close
_STRAIGHT = 0.9  # R² of a line that is taken for one
_CONSTANT = 2.0  # a step that takes less than this many times as long at the end is as good as constant
_MOSTLY = 0.9  # of the steps
_CRUCIAL = 3.0  # times as long from scratch


def claims_of_the_paper(subject: Subject, paths: dict[str, Path], seed: int) -> tuple[Claim, ...]:
    """What the paper says of forward selection on its picture."""
    return (
        _minima(paths),
        typical_curves(paths),
        _total_time(paths),
        _step_cost(paths),
        _warm_restarts(subject, paths, seed),
    )


def _minima(paths: dict[str, Path]) -> Claim:
    """Where the two methods end, and how they come there."""
    lowest = {update: path.bits.min() for update, path in paths.items()}
    apart = abs(lowest["mob"] - lowest["k-prox"]) / min(lowest.values())
    laws = [law_of(path) for path in paths.values()]
    fits = [fit for fit in laws if fit is not None]
    told = "there are too few steps to tell how"
    if len(fits) == len(laws):
        told = (
            f"the logarithm of what is left to gain is a straight line in the number of atoms to R² = "
            f"{fits[0].exponential:.2f} and {fits[1].exponential:.2f} (were it a power of that number, "
            f"{fits[0].power:.2f} and {fits[1].power:.2f})"
        )
    so = len(fits) == len(laws) and all(fit.exponential > max(_STRAIGHT, fit.power) for fit in fits)
    return Claim(
        "Forward selection converges exponentially to a local minimum, very close for both methods.",
        f"The minima are {lowest['mob']:.1f} (MOB) and {lowest['k-prox']:.1f} (K-PROX) bits a sample, {apart:.1%} "
        f"apart; {told}.",
        judged(bool(apart < _LIKE and so), Verdict.PARTLY),
        "" if so else "What is gained last comes more slowly than an exponential has it.",
    )


def _total_time(paths: dict[str, Path]) -> Claim:
    """How long both take, to the same number of atoms."""
    n_atoms = min(int(path.atoms[-1]) for path in paths.values())
    taken = {update: path.seconds_to(n_atoms) for update, path in paths.items()}
    models = sum(len(path.rounds) for path in paths.values())
    total = sum(path.run.seconds for path in paths.values())
    return Claim(
        "K-PROX takes more time than MOB, 14 s and 4 s; hundreds of models can be searched in as little as 4 s.",
        f"To {n_atoms} atoms {taken['k-prox']:.2f} s and {taken['mob']:.2f} s; {models} models in {total:.1f} s in "
        "all, on one thread.",
        judged(taken["k-prox"] > taken["mob"] and models > 100 * total / 4, Verdict.PARTLY),
    )


def _step_cost(paths: dict[str, Path]) -> Claim:
    """Whether a step is cheap, and as cheap with many atoms."""
    mob = paths["mob"]
    medians = {update: 1000 * np.median(path.steps) for update, path in paths.items()}
    growth = {update: growth_of(path.steps) for update, path in paths.items()}
    more = mob.atoms[-len(mob.atoms) // 6] / mob.atoms[len(mob.atoms) // 6]
    growing = growth["k-prox"] >= _CONSTANT
    return Claim(
        "A step is cheap (0.11 s for MOB and 0.03 s for K-PROX) and nearly constant, however many atoms there are.",
        f"The median step takes {medians['mob']:.2f} ms (MOB) and {medians['k-prox']:.2f} ms (K-PROX). From the first "
        f"third of the steps to the last, where there are about {more:.0f} times as many atoms, it grows "
        f"{growth['mob']:.1f}-fold and {growth['k-prox']:.1f}-fold.",
        judged(max(growth.values()) < _CONSTANT, Verdict.PARTLY if growth["mob"] < _CONSTANT else Verdict.DIFFERS),
        "The caption has the two numbers the wrong way round: 4 s and 14 s in all are about 130 steps of 0.03 s and of "
        "0.11 s." + (" K-PROX goes over all samples for each atom: its steps grow with them." if growing else ""),
    )


def _warm_restarts(subject: Subject, paths: dict[str, Path], seed: int) -> Claim:
    """What a step would cost from scratch."""
    times = {
        update: _from_scratch(subject, path, seed) / float(np.median(path.steps)) for update, path in paths.items()
    }
    return Claim(
        "Warm restarts are crucial for searching through the model sizes.",
        f"Learning as many atoms as the minimum has from scratch takes {times['mob']:.0f} (MOB) and "
        f"{times['k-prox']:.0f} (K-PROX) times as long as a step.",
        judged(min(times.values()) > _CRUCIAL, Verdict.PARTLY if min(times.values()) > 1 else Verdict.DIFFERS),
    )


def typical_curves(paths: dict[str, Path], of_paper: bool = True) -> Claim:
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
        of_paper=of_paper,
    )


def smooth_curves(paths: dict[str, list[Path]]) -> Claim:
    """Whether the curves are smooth and have one minimum region."""
    curves = [path.bits for several in paths.values() for path in several]
    valleys = [count_valleys(bits) for bits in curves]
    bump = max(float(max((np.diff(bits[: bits.argmin() + 1]) / bits.min()).max(initial=0), 0)) for bits in curves)
    dip = max(float(max((-np.diff(bits[bits.argmin() :]) / bits.min()).max(initial=0), 0)) for bits in curves)
    one = all(count == 1 for count in valleys)
    return Claim(
        "The curves of the codelength are smooth, and each has one minimum region.",
        f"{sum(valleys)} minimum regions in {len(curves)} curves. No step against the way the curve goes is "
        f"larger than {max(bump, dip):.2%}.",
        judged(one),
        "The author's program miscounts beyond 64 atoms, and its curves go astray there."
        if one
        else "The table is small, and an atom more or less makes a bump.",
        of_paper=False,
    )


def _from_scratch(subject: Subject, path: Path, seed: int) -> float:
    """Seconds to learn as many atoms as the minimum has from random samples."""
    start = starting_atoms("samples", subject.data, path.best.atoms, seed)
    return learned(subject.data, start, path.run.update).seconds
