"""What the paper says of its models, beside what these show."""

from __future__ import annotations

from math import lgamma, log

import numpy as np
from numpy.typing import NDArray

from ...core.result import Round
from ..datasets import Subject
from ..experiment import Claim, Verdict, judged
from ..runs import FAILURES, UPDATES, Run, selected, shortest, stops_at
from ..similarity import likeness

_IN_THE_PAPER = 79  # atoms of its model of MNIST
_FAR = 240  # atoms, past the end of selection by either codelength
_USED = 20  # samples that use an atom, at least, for it to say anything of them
_PURE = 0.6  # of them show the same digit: the correspondence is clear
_LIKE = {"codelength": 0.02, "wrong pixels": 0.1, "number of atoms": 0.25}  # apart at most, to be very similar


def claims_of_the_paper(subject: Subject, run: Run, other: Run, seed: int) -> tuple[Claim, ...]:
    """The claims on a model that the paper shows; ``other`` is that of the other method, in its supplement."""
    claims = (_about_atoms(subject, run), _about_other(run, other))
    if subject.of_the_paper == "Einstein":
        return claims
    return (_about_size(subject, run, seed), *claims, _about_codes(subject, run))


def _about_size(subject: Subject, run: Run, seed: int) -> Claim:
    """How many atoms there are."""
    n_rows, n_cols = subject.data.shape
    forced = selected(subject.data, run.update, seed, until=_FAR).history

    def bits(row: Round) -> float:
        return row.bits_codes + row.bits_atoms + _one_string(n_rows * n_cols, row.wrong_bits)

    theirs = stops_at(forced, FAILURES, bits)
    return Claim(
        f"The model of MNIST has {_IN_THE_PAPER} atoms.",
        f"{run.atoms.n_rows} atoms, by the codelength that the paper prints. With all errors coded as one string, as "
        f"the author's program does, selection ends with {theirs.atoms}.",
        Verdict.NOT_SEEN if subject.stands_in else judged(_IN_THE_PAPER in (run.atoms.n_rows, theirs.atoms)),
        "The author's program chose the number by another codelength than the printed one, which codes the errors of "
        "each pixel apart and leaves less for atoms to save. That of the paper comes out by neither: it also depends "
        "on the samples drawn, and on how the digits were made small.",
    )


def _one_string(length: int, ones: int) -> float:
    """Bits of a string with so many ones, without ceilings."""
    ways = lgamma(length + 1) - lgamma(ones + 1) - lgamma(length - ones + 1)
    return float(np.log2(max(1, length))) + ways / log(2)


def _about_atoms(subject: Subject, run: Run) -> Claim:
    """Whether atoms look like samples, other than those they began as."""
    order = np.argsort(-_mended(run), kind="stable")
    used = order[run.uses[order] > 0]
    some = np.split(used, [-(-len(used) // 4)])
    first, rest = (likeness(run.atoms[atoms], subject.data, run.start) for atoms in some)
    what = "digit" if subject.picture is None else "block"
    says = (
        "Many atoms look like numbers; others have number-like silhouettes."
        if subject.picture is None
        else "The atoms are clearly interpretable as halftone patterns that can be seen in the picture."
    )
    found = (
        f"Of the pixels that are black in an atom or in the {what} most like it, {first.share:.0%} are black in both, "
        f"in the quarter of the atoms that mend most pixels ({first.shuffled:.0%} were the atom's pixels shuffled); "
        f"{rest.share:.0%} in the others ({rest.shuffled:.0%}). The {what}s that atoms began as do not count."
    )
    alike = first.clearly, rest.clearly
    why = "" if all(alike) else "Atoms that come late correct few pixels, and are sparse." if alike[0] else ""
    return Claim(says, found, judged(all(alike), Verdict.PARTLY if alike[0] else Verdict.DIFFERS), why)


def _mended(run: Run) -> NDArray:
    """How many more pixels would be wrong without each atom, all others as they are."""
    errors, codes, atoms = (table.to_dense().astype(np.float32) for table in (run.errors, run.codes, run.atoms))
    # where a user of the atom is wrong on its pixels, it would be right without it, and the other way round
    wrong = ((codes.T @ errors) * atoms).sum(axis=1)
    return run.uses * run.atoms.row_weights() - 2 * wrong


def _about_codes(subject: Subject, run: Run) -> Claim:
    """Whether samples that use the same atom show the same digit, where it is known which they show."""
    says = "In general, coefficients are not easy to interpret; in some cases the correspondence with a digit is clear."
    if subject.labels is None:
        found = "It is not known here which digit a sample shows; look at the coloured bands."
        return Claim(says, found, Verdict.NOT_SEEN, "With --mnist openml it is known.")
    codes = run.codes.to_dense().astype(bool)
    purest = {atom: _commonest(subject.labels[codes[:, atom]]) for atom in np.flatnonzero(run.uses >= _USED)}
    order = sorted(purest, key=lambda atom: -purest[atom][1])
    told = ", ".join(f"atom {atom + 1} ({purest[atom][1]:.0%} a {purest[atom][0]})" for atom in order[:3])
    clear = sum(share >= _PURE for _, share in purest.values())
    found = (
        f"Of {len(purest)} atoms that at least {_USED} samples use, {clear} are used by samples of which {_PURE:.0%} "
        f"or more show the same digit. The clearest: {told}."
    )
    return Claim(says, found, judged(0 < clear < len(purest), Verdict.PARTLY if clear else Verdict.DIFFERS))


def _commonest(labels: NDArray) -> tuple[int, float]:
    """The digit that most of these are, and their share."""
    digits, counts = np.unique(labels, return_counts=True)
    return int(digits[counts.argmax()]), float(counts.max() / counts.sum())


def _about_other(run: Run, other: Run) -> Claim:
    """How like the two methods' models are."""
    mine, theirs = (shortest(each.history) for each in (run, other))
    pairs = {
        "codelength": (mine.bits, theirs.bits),
        "wrong pixels": (mine.wrong_bits, theirs.wrong_bits),
        "number of atoms": (mine.atoms, theirs.atoms),
    }
    apart = {what: abs(one - another) / max(one, another, 1) for what, (one, another) in pairs.items()}
    told = ", ".join(f"{what} {share:.1%}" for what, share in apart.items())
    return Claim(
        f"The results of {UPDATES[other.update]} are very similar in all aspects.",
        f"{UPDATES[other.update]} ends with {theirs.atoms} atoms beside {mine.atoms}. The two are apart in: {told}.",
        judged(all(apart[what] < most for what, most in _LIKE.items()), Verdict.PARTLY),
    )
