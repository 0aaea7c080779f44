"""The models (the paper's second and third figure, and its supplement): atoms, residuals and codes, both methods."""

from __future__ import annotations

from math import lgamma, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..algorithms.result import Round
from ..bits import BitMatrix
from ..report.figures import Figure, pixels
from ..report.numbers import Numbers
from ..report.words import many
from .experiment import Claim, Experiment, Panel, Verdict, judged
from .mosaics import BLUE, GREEN, PALETTE, RED, coded_samples, mosaic
from .panel import shown_samples
from .runs import FAILURES, UPDATES, Run, selected, shortest, stops_at
from .subjects import Subject

_IN_THE_PAPER = 79  # atoms of its model of MNIST
_FAR = 240  # atoms, past the end of selection by either codelength
_ACROSS = 16  # atoms
_SAMPLES_ACROSS = 20
_BLOCKS_ACROSS = 28
_COLOURS = {"red": RED, "green": GREEN, "blue": BLUE}
_MORE = 0.15  # in common than shuffled pixels have: alike
_LIKE = 0.05  # codelengths that differ by less are taken for similar


class Alike(NamedTuple):
    """How like samples atoms are: what the typical one shares with the sample that it is most like."""

    share: float  # of all pixels that are black in either, those that are in both
    shuffled: float  # the same for atoms whose pixels are shuffled


def models(digits: Subject, halftone: Subject, seed: int) -> Experiment:
    """Forward selection with both methods on both sets."""
    runs = {
        (subject.name, update): selected(subject.data, update, seed, patience=FAILURES)
        for subject in (digits, halftone)
        for update in UPDATES
    }
    panels = [
        _panel(subject, runs[subject.name, update], runs[subject.name, other], seed, first)
        for subject, (update, other) in ((digits, ("mob", "k-prox")), (halftone, ("k-prox", "mob")))
        for update, other, first in ((update, other, True), (other, update, False))
    ]
    about = (
        "Forward selection from 16 random samples, atoms learned by matching pursuit and one of the two updates after "
        f"each that is added. It ends, as the author's program does, after {FAILURES} atoms in a row that bring "
        "nothing, and the best model is kept. Atoms are in the order in which they came; the first 16 began as samples."
    )
    return Experiment("models", "Models", "The models, and what can be read in them", about, tuple(panels))


def _panel(subject: Subject, run: Run, other: Run, seed: int, in_paper: bool) -> Panel:
    """One model: its atoms, and some samples with their residuals and codes."""
    method = UPDATES[run.update]
    best, n_rows = shortest(run.history), subject.data.n_rows
    where = "in the paper" if in_paper else "in the paper's supplement"
    about = (
        f"{run.atoms.n_rows} atoms describe a sample in {best.bits / n_rows:.1f} bits; a sample uses "
        f"{run.uses.sum() / n_rows:.1f} of them, and {best.wrong_bits / (n_rows * subject.data.n_cols):.1%} of the "
        f"pixels are wrong. This model is {where}."
    )
    claims: tuple[Claim, ...] = ()
    if in_paper:
        claims = (_about_atoms(subject, run), _about_codes(subject, run, seed), _about_other(run, other))
        claims = (*_about_size(subject, run, seed), *claims)
    return Panel(f"{subject.name} by {method}", about, _figures(subject, run, seed), claims, "wide")


def _figures(subject: Subject, run: Run, seed: int) -> tuple[Figure, Figure]:
    """The mosaic of atoms, and the samples with residuals and codes."""
    name, method = f"{subject.name}-{run.update}".lower(), UPDATES[run.update]
    rows = shown_samples(subject, seed)
    marked = marked_atoms(subject.data[rows], run.atoms, run.codes[rows])
    colours = {atom: _COLOURS[colour] for colour, atom in marked.items()}
    weights, uses = run.atoms.row_weights(), run.uses
    atoms = pixels(
        f"{name}-atoms",
        f"{subject.name}, {method}: the {run.atoms.n_rows} atoms",
        f"A mosaic of {run.atoms.n_rows} atoms of {subject.name}",
        mosaic(run.atoms, subject.tile, _ACROSS, colours),
        PALETTE,
        times=2,
        numbers=Numbers.of(
            ("atom", "black pixels", "samples that use it"),
            [(atom + 1, int(weights[atom]), int(uses[atom])) for atom in range(run.atoms.n_rows)],
        ),
    )
    data, errors, codes = subject.data[rows], run.errors[rows], run.codes[rows]
    across = _SAMPLES_ACROSS if subject.picture is None else _BLOCKS_ACROSS
    what = "samples" if subject.picture is None else "blocks of the stripe"
    used = codes.to_dense()
    samples = pixels(
        f"{name}-codes",
        f"{len(rows)} {what} (top), what the atoms leave of them (middle), and a band for each atom used (bottom)",
        f"{len(rows)} {what} of {subject.name} with their residuals and codes",
        coded_samples(data, errors, codes, subject.tile, across, colours),
        PALETTE,
        times=2,
        numbers=Numbers.of(
            ("sample", "black pixels", "wrong pixels", "atoms used"),
            [
                (int(row), int(ones), int(wrong), " ".join(map(str, np.flatnonzero(uses) + 1)))
                for row, ones, wrong, uses in zip(rows, data.row_weights(), errors.row_weights(), used, strict=True)
            ],
        ),
    )
    return atoms, samples


def marked_atoms(data: BitMatrix, atoms: BitMatrix, codes: BitMatrix) -> dict[str, int]:
    """The atoms that explain most of these samples, of those that at least two use and not most: red, green, blue."""
    rows, patterns, used = (table.to_dense().astype(np.int64) for table in (data, atoms, codes))
    gains = (used * (2 * rows @ patterns.T - patterns.sum(axis=1))).sum(axis=0)
    users = used.sum(axis=0)
    fit = (users >= 2) & (users <= len(rows) // 2) & (gains > 0)
    order = [int(atom) for atom in np.argsort(-gains, kind="stable") if fit[atom]]
    return dict(zip(_COLOURS, order, strict=False))


def _about_size(subject: Subject, run: Run, seed: int) -> tuple[Claim, ...]:
    """How many atoms there are; the paper says it of one model."""
    if subject.of_the_paper != "MNIST" or run.update != "mob":
        return ()
    n_rows, n_cols = subject.data.shape
    forced = selected(subject.data, run.update, seed, until=_FAR).history

    def bits(row: Round) -> float:
        return row.bits_codes + row.bits_atoms + _one_string(n_rows * n_cols, row.wrong_bits)

    theirs = stops_at(forced, FAILURES, bits)
    return (
        Claim(
            f"The model of MNIST has {_IN_THE_PAPER} atoms.",
            f"{run.atoms.n_rows} atoms, by the codelength that the paper prints. With all errors coded as one string, "
            f"as the author's program does, selection ends with {theirs.atoms}.",
            Verdict.NOT_SEEN if subject.stands_in else judged(run.atoms.n_rows == _IN_THE_PAPER),
            "The printed codelength codes the errors of each pixel apart: those of rare pixels are cheap, and atoms "
            "have less to save. The author's program chose their number by another codelength.",
        ),
    )


def _one_string(length: int, ones: int) -> float:
    """Bits of a string with so many ones, without ceilings."""
    ways = lgamma(length + 1) - lgamma(ones + 1) - lgamma(length - ones + 1)
    return float(np.log2(max(1, length))) + ways / log(2)


def _about_atoms(subject: Subject, run: Run) -> Claim:
    """Whether atoms look like samples."""
    order = np.argsort(-_mended(run), kind="stable")
    used = order[run.uses[order] > 0]
    first, rest = (likeness(run.atoms[some], subject.data) for some in np.split(used, [-(-len(used) // 4)]))
    what = "digit" if subject.picture is None else "block"
    says = (
        "Many atoms look like numbers; others have number-like silhouettes."
        if subject.picture is None
        else "The atoms are clearly interpretable as halftone patterns that can be seen in the picture."
    )
    found = (
        f"Of the pixels that are black in an atom or in the {what} most like it, {first.share:.0%} are black in both, "
        f"in the quarter of the atoms that mend most pixels ({first.shuffled:.0%} were the atom's pixels shuffled); "
        f"{rest.share:.0%} in the others ({rest.shuffled:.0%})."
    )
    alike = [each.share > each.shuffled + _MORE for each in (first, rest)]
    why = "" if all(alike) else "Atoms that come late correct few pixels, and are sparse."
    return Claim(says, found, judged(all(alike), Verdict.PARTLY if alike[0] else Verdict.DIFFERS), why)


def _mended(run: Run) -> NDArray:
    """How many more pixels would be wrong without each atom, all others as they are."""
    errors, codes, atoms = (table.to_dense().astype(np.float32) for table in (run.errors, run.codes, run.atoms))
    # where a user of the atom is wrong on its pixels, it would be right without it, and the other way round
    wrong = ((codes.T @ errors) * atoms).sum(axis=1)
    return run.uses * run.atoms.row_weights() - 2 * wrong


def likeness(atoms: BitMatrix, data: BitMatrix) -> Alike:
    """How like samples atoms are, and how like they would be with their pixels shuffled."""
    patterns, rows = (table.to_dense().astype(np.float32) for table in (atoms, data))
    shuffled = patterns[:, np.random.default_rng(0).permutation(atoms.n_cols)]
    return Alike(*(float(np.median(_most_shared(each, rows))) if len(each) else 0.0 for each in (patterns, shuffled)))


def _most_shared(patterns: NDArray, rows: NDArray) -> NDArray:
    """For each pattern, the largest share of ones in both among ones in either (Jaccard), over all rows."""
    both = patterns @ rows.T
    either = patterns.sum(axis=1)[:, np.newaxis] + rows.sum(axis=1) - both
    return (both / np.maximum(either, 1)).max(axis=1)


def _about_codes(subject: Subject, run: Run, seed: int) -> Claim:
    """Whether samples that use the same atom are alike."""
    rows = shown_samples(subject, seed)
    marked = marked_atoms(subject.data[rows], run.atoms, run.codes[rows])
    used = run.codes[rows].to_dense()
    counts = ", ".join(f"{used[:, atom].sum()} use atom {atom + 1} ({colour})" for colour, atom in marked.items())
    data, codes = subject.data.to_dense(), run.codes.to_dense()
    alike = [_mean_shared(data[codes[:, atom] == 1]) for atom in marked.values()]
    typical, shared = _mean_shared(data), float(np.mean(alike)) if alike else 0.0
    found = (
        f"Of {many(len(rows), 'sample')} shown, {counts or 'no two use the same atom'}. Two samples that use the same "
        f"of these atoms share {shared:.0%} of their black pixels, any two {typical:.0%}."
    )
    says = "In general, coefficients are not easy to interpret; in some cases the correspondence is clear."
    return Claim(says, found, judged(shared > typical, Verdict.PARTLY))


def _mean_shared(rows: NDArray[np.uint8], most: int = 400) -> float:
    """The mean share of ones in both among ones in either, over pairs of rows, of the first so many."""
    some = rows[:most].astype(np.float32)
    if len(some) < 2:
        return 0.0
    both = some @ some.T
    either = some.sum(axis=1)[:, np.newaxis] + some.sum(axis=1) - both
    pairs = np.triu_indices(len(some), 1)
    return float((both / np.maximum(either, 1))[pairs].mean())


def _about_other(run: Run, other: Run) -> Claim:
    """How like the two methods' models are."""
    mine, theirs = (shortest(each.history).bits for each in (run, other))
    apart = abs(theirs - mine) / mine
    return Claim(
        f"The results of {UPDATES[other.update]} are very similar in all aspects.",
        f"{UPDATES[other.update]} ends with {other.atoms.n_rows} atoms beside {run.atoms.n_rows}; the codelengths are "
        f"{apart:.1%} apart.",
        judged(apart < _LIKE, Verdict.PARTLY),
    )
