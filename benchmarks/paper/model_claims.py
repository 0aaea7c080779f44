"""The claims of the paper about its models, checked on the models learned here."""

from __future__ import annotations

from math import lgamma, log

import numpy as np
from numpy.typing import NDArray

from bitatoms.model.result import Round

from .datasets import PaperDataset
from .experiment import Claim, Verdict, verdict_if
from .runs import PATIENCE, UPDATES, MethodRun, best_round, run_selection, stopping_round
from .similarity import sample_similarity

_PAPER_ATOMS = 79  # of the paper's model of MNIST
_MAX_ATOMS = 240  # well past the end of selection by either codelength
_MIN_USERS = 20  # of an atom, to compare it with the digits that its users show
_MIN_PURITY = 0.6  # fraction of an atom's users that show the same digit: a clear correspondence
_MAX_DIFFERENCES = {"codelength": 0.02, "wrong pixels": 0.1, "number of atoms": 0.25}  # of very similar models


def model_claims(dataset: PaperDataset, run: MethodRun, other: MethodRun, seed: int) -> tuple[Claim, ...]:
    """Return the claims about a model in the paper; ``other`` is the model of the other method, in its supplement."""
    claims = (_interpretation_claim(dataset, run), _similar_methods_claim(run, other))
    if dataset.paper_name == "Einstein":
        return claims
    return (_size_claim(dataset, run, seed), *claims, _codes_claim(dataset, run))


def _size_claim(dataset: PaperDataset, run: MethodRun, seed: int) -> Claim:
    """Compare the number of atoms."""
    n_rows, n_cols = dataset.data.shape
    history = run_selection(dataset.data, run.update, seed, until=_MAX_ATOMS).history

    def authors_bits(row: Round) -> float:
        return row.bits_codes + row.bits_atoms + _string_bits(n_rows * n_cols, row.wrong_bits)

    authors_round = stopping_round(history, PATIENCE, authors_bits)
    return Claim(
        f"The model of MNIST has {_PAPER_ATOMS} atoms.",
        f"With the codelength printed in the paper, the model has {run.atoms.n_rows} atoms. If all errors are coded as "
        f"one string, as in the author's program, it has {authors_round.atoms}.",
        Verdict.NOT_SEEN
        if dataset.is_substitute
        else verdict_if(_PAPER_ATOMS in (run.atoms.n_rows, authors_round.atoms)),
        "The author's program does not use the printed codelength. The printed one codes the errors of each pixel "
        "separately, so that atoms save less. Neither gives the number in the paper, which also depends on the initial "
        "samples and on how the digits were reduced.",
    )


def _string_bits(length: int, n_ones: int) -> float:
    """Return the bits of a string with this many ones, not rounded up."""
    log_combinations = lgamma(length + 1) - lgamma(n_ones + 1) - lgamma(length - n_ones + 1)
    return float(np.log2(max(1, length))) + log_combinations / log(2)


def _interpretation_claim(dataset: PaperDataset, run: MethodRun) -> Claim:
    """Check whether atoms look like samples other than those they started as."""
    order = np.argsort(-_corrected_pixels(run), kind="stable")
    used = order[run.uses[order] > 0]
    quarters = np.split(used, [-(-len(used) // 4)])
    best, rest = (sample_similarity(run.atoms[atoms], dataset.data, run.start) for atoms in quarters)
    noun = "digit" if dataset.picture is None else "block"
    statement = (
        "Many atoms look like numbers; others have number-like silhouettes."
        if dataset.picture is None
        else "The atoms are clearly interpretable as halftone patterns that can be seen in the picture."
    )
    finding = (
        f"The median Jaccard index between an atom and the most similar {noun} is {best.jaccard:.0%} for the quarter "
        f"of the atoms that correct most pixels ({best.shuffled:.0%} with shuffled pixels) and {rest.jaccard:.0%} for "
        f"the others ({rest.shuffled:.0%}). The {noun}s that atoms started as are excluded."
    )
    explanation = "" if rest.is_clear or not best.is_clear else "Atoms added late are sparse and correct few pixels."
    otherwise = Verdict.PARTLY if best.is_clear else Verdict.DIFFERS
    return Claim(statement, finding, verdict_if(best.is_clear and rest.is_clear, otherwise), explanation)


def _corrected_pixels(run: MethodRun) -> NDArray:
    """Return for each atom how many more pixels would be wrong without it, the others unchanged."""
    errors, codes, atoms = (bits.to_dense().astype(np.float32) for bits in (run.errors, run.codes, run.atoms))
    # without the atom, the pixels of its users that are wrong would be correct, and the reverse
    n_wrong = ((codes.T @ errors) * atoms).sum(axis=1)
    return run.uses * run.atoms.row_weights() - 2 * n_wrong


def _codes_claim(dataset: PaperDataset, run: MethodRun) -> Claim:
    """Check whether samples that use the same atom show the same digit, if the labels are known."""
    statement = (
        "In general, coefficients are not easy to interpret; in some cases the correspondence with a digit is clear."
    )
    if dataset.labels is None:
        finding = "The labels of these samples are not known; see the coloured bars in the figure."
        return Claim(statement, finding, Verdict.NOT_SEEN, "With --mnist openml they are known.")
    codes = run.codes.to_dense().astype(bool)
    purity = {atom: _most_common(dataset.labels[codes[:, atom]]) for atom in np.flatnonzero(run.uses >= _MIN_USERS)}
    order = sorted(purity, key=lambda atom: -purity[atom][1])
    clearest = ", ".join(f"atom {atom + 1} ({purity[atom][1]:.0%} a {purity[atom][0]})" for atom in order[:3])
    n_clear = sum(fraction >= _MIN_PURITY for _, fraction in purity.values())
    finding = (
        f"{len(purity)} atoms are used by at least {_MIN_USERS} samples. For {n_clear} of them, {_MIN_PURITY:.0%} or "
        f"more of these samples show the same digit. The clearest: {clearest}."
    )
    otherwise = Verdict.PARTLY if n_clear else Verdict.DIFFERS
    return Claim(statement, finding, verdict_if(0 < n_clear < len(purity), otherwise))


def _most_common(labels: NDArray) -> tuple[int, float]:
    """Return the most common digit and its fraction."""
    digits, counts = np.unique(labels, return_counts=True)
    return int(digits[counts.argmax()]), float(counts.max() / counts.sum())


def _similar_methods_claim(run: MethodRun, other: MethodRun) -> Claim:
    """Compare the models of the two methods."""
    mine, theirs = (best_round(each.history) for each in (run, other))
    values = {
        "codelength": (mine.bits, theirs.bits),
        "wrong pixels": (mine.wrong_bits, theirs.wrong_bits),
        "number of atoms": (mine.atoms, theirs.atoms),
    }
    differences = {name: abs(one - another) / max(one, another, 1) for name, (one, another) in values.items()}
    text = ", ".join(f"{name} {difference:.1%}" for name, difference in differences.items())
    return Claim(
        f"The results of {UPDATES[other.update]} are very similar in all aspects.",
        f"{UPDATES[other.update]} ends with {theirs.atoms} atoms, {UPDATES[run.update]} with {mine.atoms}. Relative "
        f"differences: {text}.",
        verdict_if(all(differences[name] < limit for name, limit in _MAX_DIFFERENCES.items()), Verdict.PARTLY),
    )
