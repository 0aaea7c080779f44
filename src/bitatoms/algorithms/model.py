"""What is learned, as plain data: a factorisation, the rounds that led to it, and an interrupted one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.cpu import words
from ..kernels.tables import covering
from ..mdl import Codelength


class Round(NamedTuple):
    """One row of the history: a move of the search. With the paper's, a step of learning, or, in forward selection, all
    steps with one number of atoms."""

    round: int
    move: str  # what was done
    atoms: int
    bits: int  # the codelength, and its three parts
    bits_errors: int
    bits_codes: int
    bits_atoms: int
    wrong_bits: int
    codes_changed: int  # bits that this round flipped
    atoms_changed: int
    errors_changed: int
    iterations: int  # steps of learning in this round
    start: int  # the start it belongs to, from 1 on
    algebra: str
    seconds: float  # since that start


@dataclass(frozen=True, eq=False)
class Factorization:
    """Atoms, codes and what they cost: data = bias + codes * atoms + errors, in the algebra.

    Attributes
    ----------
    atoms : BitMatrix of shape (n_atoms, n_features)
        The patterns, the one that saves most bits first.
    codes : BitMatrix of shape (n_samples, n_atoms)
        The atoms that each sample uses.
    bias : ndarray of shape (n_features,), uint8
        Added to every sample. All zeros, unless ``search`` is "fast" or "thorough", the codelength is what is made
        small, and a bias makes it smaller.
    algebra : {"xor", "or"}
        How the atoms of a sample are put together.
    codelength : Codelength
        Bits that describe the data, in three parts.
    history : tuple of Round
        One row a move.
    wrong : ndarray of shape (n_features,), int64
        In how many samples each feature is wrong.
    ended : {"converged", "max_iter", "max_time", "callback", "interrupted"}
        What ended the search.
    coder : str
        How samples are coded with these atoms, by name.
    codelengths : dict
        The shortest codelength found, in bits, in each algebra that was tried.
    bits_without : int
        Bits that describe the data without any atom.
    """

    atoms: BitMatrix
    codes: BitMatrix
    bias: NDArray[np.uint8] = field(repr=False)
    algebra: str
    codelength: Codelength
    history: tuple[Round, ...] = field(repr=False)
    wrong: NDArray[np.int64] = field(repr=False)
    ended: str = "converged"
    coder: str = "greedy"
    codelengths: Mapping[str, int] = field(default_factory=dict, repr=False)
    bits_without: int | None = field(default=None, repr=False)

    @property
    def converged(self) -> bool:
        """Whether the search came to its own end."""
        return self.ended == "converged"

    @property
    def wrong_bits(self) -> int:
        """Bits of the data that the product gets wrong."""
        return int(self.wrong.sum())

    @property
    def n_iter(self) -> int:
        """Steps of learning that were taken, at least one."""
        return max(1, sum(row.iterations for row in self.history))

    @property
    def n_unused(self) -> int:
        """Atoms that no sample uses."""
        return int((self.codes.column_weights() == 0).sum())

    @property
    def n_duplicate(self) -> int:
        """Atoms, all zeros aside, that repeat an earlier one."""
        patterns = [row.tobytes() for row in self.atoms.words if row.any()]
        return len(patterns) - len(set(patterns))

    @property
    def n_zero(self) -> int:
        """Atoms without a single one."""
        return int((~self.atoms.words.any(axis=1)).sum())

    def summary(self) -> str:
        """What was found, in words."""
        n, m, bits = self.codes.n_rows, self.atoms.n_cols, self.codelength.total
        used = f"{self.atoms.n_rows} atoms" if self.atoms.n_rows != 1 else "1 atom"
        lines = [f"{used} ({self.algebra.upper()}) describe {n} samples of {m} features in {bits} bits"]
        if self.bits_without:
            share = 1 - bits / self.bits_without
            lines[0] += f", {share:.1%} fewer than without atoms" if share > 0 else ", no fewer than without atoms"
        wrong = self.wrong_bits / max(1, n * m)
        lines.append(f"{wrong:.2%} of the cells are wrong; a sample uses {self.codes.count() / max(1, n):.1f} atoms")
        if self.bias.any():
            lines.append(f"{int(self.bias.sum())} features are ones unless an atom says otherwise (the bias)")
        for algebra, others in self.codelengths.items():
            if algebra != self.algebra:
                lines.append(f"{algebra.upper()} needs {others} bits, {others - bits} more")
        return ".\n".join(lines) + "."

    def reconstruct(self) -> BitMatrix:
        """The product of codes and atoms, with the bias."""
        return reconstruct(self.codes, self.atoms, self.bias, self.algebra)


def reconstruct(codes: BitMatrix, atoms: BitMatrix, bias: NDArray[np.uint8], algebra: str) -> BitMatrix:
    """Bias plus the product of codes and atoms, in the algebra."""
    product = np.repeat(BitMatrix.from_dense(bias[np.newaxis]).words, codes.n_rows, axis=0)
    # Copies, for numba compiles a kernel anew for arrays that are read-only.
    row = np.empty(product.shape[1], np.uint64)
    words.add_product(codes.words.copy(), atoms.words.copy(), covering(algebra), 0, codes.n_rows, row, product)
    return BitMatrix.trusted(product, atoms.n_cols)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C in a search; ``result`` is the best factorisation so far, or None when there is none yet."""

    def __init__(self, result: Factorization | None) -> None:
        found = "nothing was learned yet" if result is None else "the best factorisation so far is in .result"
        super().__init__(f"the search was interrupted; {found}")
        self.result = result
