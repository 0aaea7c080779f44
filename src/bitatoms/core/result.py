"""What is learned, as plain data: a factorisation, the rounds that led to it, and an interrupted one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.cpu import words
from ..kernels.structs import covering
from ..mdl import Codelength

_HARDLY = 0.02  # a share of the bits saved below which it is said that it is little


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
    rows: int  # that the figures are of: a sample, or all
    seconds: float  # since that start


@dataclass(frozen=True, eq=False, kw_only=True)
class ResultBase:
    """What a search leaves, but for the codes: the part that a Factorization and a Model share."""

    atoms: BitMatrix
    bias: NDArray[np.uint8] = field(repr=False)
    algebra: str
    codelength: Codelength
    history: tuple[Round, ...] = field(repr=False)
    wrong: NDArray[np.int64] = field(repr=False)
    ended: str = "converged"
    coder: str = "greedy"
    objective: str = "codelength"
    codelengths: Mapping[str, int] = field(default_factory=dict, repr=False)
    bits_without: int | None = field(default=None, repr=False)
    saved: NDArray[np.int64] | None = field(default=None, repr=False)
    ones: NDArray[np.int64] | None = field(default=None, repr=False)
    missed: NDArray[np.int64] | None = field(default=None, repr=False)

    if TYPE_CHECKING:

        @property
        def n_samples(self) -> int:
            """Samples that were learned from."""

        @property
        def uses(self) -> NDArray[np.int64]:
            """How many of them use each atom, of shape (n_atoms,)."""

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
        return int((self.uses == 0).sum())

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
        n, m, bits = self.n_samples, self.atoms.n_cols, self.codelength.total
        n_atoms = self.atoms.n_rows
        used = "1 atom describes" if n_atoms == 1 else f"{n_atoms} atoms describe"
        lines = [f"{used} {_many(n, 'sample')} of {_many(m, 'feature')} in {_many(bits, 'bit')}"]
        if n_atoms:
            lines[0] = lines[0].replace(" describe", f" ({self.algebra.upper()}) describe", 1)
        if self.bits_without:
            share = 1 - bits / self.bits_without
            lines[0] += f", {share:.1%} fewer than without atoms" if share > 0 else ", no fewer than without atoms"
            if n_atoms and share < _HARDLY:
                lines.append("That is hardly shorter: there is little of such structure in this table")
        lines += self._how_well()
        if self.bias.any():
            ones = int(self.bias.sum())
            features = "1 feature is a one" if ones == 1 else f"{ones} features are ones"
            lines.append(f"{features} unless an atom says otherwise (the bias)")
        if self.ended == "interrupted":
            lines.append("The search was interrupted: with more time it may find more")
        for algebra, others in self.codelengths.items():
            if algebra != self.algebra and self.ended != "interrupted":  # it may have had less time
                more = f"{others} bits, {others - bits} more" if others > bits else "as many"
                lines.append(f"{algebra.upper()} needs {more}")
        return ".\n".join(lines) + "."

    def _how_well(self) -> list[str]:
        """How much of the data the product gets right, and how many atoms a sample uses."""
        if not self.atoms.n_rows and not self.bias.any():
            return ["No atom makes the description shorter: there is none in the table, or none was found or allowed"]
        n, m = self.n_samples, self.atoms.n_cols
        lines = [f"{self.wrong_bits / max(1, n * m):.2%} of the cells are wrong"]
        a_sample = self.uses.sum() / max(1, n)
        lines[0] += f"; a sample uses {a_sample:.{1 if a_sample >= 1 else 2}f} atoms"
        if self.ones is not None and self.missed is not None:
            ones, missed = int(self.ones.sum()), int(self.missed.sum())
            right = 1 - missed / max(1, ones)
            invented = (self.wrong_bits - missed) / max(1, n * m - ones)
            lines.append(f"{right:.1%} of the ones are accounted for, {invented:.2%} of the zeros are taken for ones")
        return lines


@dataclass(frozen=True, eq=False, kw_only=True)
class CountsResult(ResultBase):
    """What a search leaves of rows whose codes are not kept, but counted.

    Attributes
    ----------
    n_samples : int
        Samples that were learned from.
    uses : ndarray of shape (n_atoms,), int64
        How many of them use each atom.
    """

    n_samples: int
    uses: NDArray[np.int64] = field(repr=False)


def _many(number: int, what: str) -> str:
    """So many of something."""
    return f"1 {what}" if number == 1 else f"{number} {what}s"


@dataclass(frozen=True, eq=False, kw_only=True)
class Factorization(ResultBase):
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
    objective : {"codelength", "errors"}
        What the search made small, and coding makes small.
    codelengths : dict
        The shortest codelength found, in bits, in each algebra that was tried.
    bits_without : int
        Bits that describe the data without any atom.
    saved : ndarray of shape (n_atoms,), int64, or None
        How many bits longer the description would be without each atom, the codes of the others left as they are.
    ones, missed : ndarray of shape (n_features,), int64, or None
        In how many samples each feature is one, and in how many of these the product says zero.
    """

    codes: BitMatrix

    @property
    def n_samples(self) -> int:
        """Samples that were learned from."""
        return self.codes.n_rows

    @property
    def uses(self) -> NDArray[np.int64]:
        """How many samples use each atom, of shape (n_atoms,)."""
        return self.codes.column_weights()

    def reconstruct(self) -> BitMatrix:
        """The product of codes and atoms, with the bias."""
        return reconstruct(self.codes, self.atoms, self.bias, self.algebra)


def reconstruct(codes: BitMatrix, atoms: BitMatrix, bias: NDArray[np.uint8], algebra: str) -> BitMatrix:
    """Bias plus the product of codes and atoms, in the algebra."""
    product = np.repeat(BitMatrix.from_dense(bias[np.newaxis]).words, codes.n_rows, axis=0)
    # Copies, for numba compiles a kernel anew for arrays that are read-only.
    row = np.empty(product.shape[1], np.uint64)
    words.add_product(codes.words.copy(), atoms.words.copy(), covering(algebra), 0, codes.n_rows, row, product)
    return BitMatrix.from_words(product, atoms.n_cols, check=False)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C in a search; ``result`` is the best factorisation so far, or None when there is none yet."""

    def __init__(self, result: Factorization | CountsResult | None) -> None:
        found = "nothing was learned yet" if result is None else "the best factorisation so far is in .result"
        super().__init__(f"the search was interrupted; {found}")
        self.result = result
