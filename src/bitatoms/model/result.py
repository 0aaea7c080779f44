"""Results as plain data: a factorization, the rounds that led to it, and an interrupted search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..engine.block import reconstruct
from ..engine.codelength import Codelength
from ..engine.prices import ErrorCosts
from ..formatting import counted, have, percent, verb
from ..sparse_bits import Bits, sparse

THOROUGH_WINDOW = "thorough window"  # a move: the thorough search of a window of the columns
_SMALL_SAVING = 0.02  # of the bits
_ENDINGS = {  # of searches that did not converge, as the summary states them
    "interrupted": "was interrupted: with more time it may find more",
    "max_time": "ended at its time limit: with more time it may find more",
    "max_iter": "ended at its limit of rounds: with more rounds it may find more",
    "callback": "was ended by a callback: without it, it may find more",
    "max_memory": "was cut short because memory ran out",
}


class Round(NamedTuple):
    """One entry of the history: a move of the search.

    In the paper's search it is a step of learning or, in forward selection, all steps with one number of atoms.

    Attributes
    ----------
    round : int
        Number of the entry, from 1.
    move : str
        Name of the move; docs/how-it-works/search.md explains each.
    atoms : int
        Number of atoms.
    bits, bits_errors, bits_codes, bits_atoms : int
        The codelength, and its three parts.
    wrong_bits : int
        Number of wrong cells.
    codes_changed, atoms_changed, errors_changed : int
        Number of bits that this round flipped in each.
    iterations : int
        Steps of learning in this round.
    start : int
        Number of the start, from 1.
    algebra : {"xor", "or"}
        The algebra of this start.
    rows : int
        Number of rows that the figures refer to: a sample, or all.
    seconds : float
        Seconds since that start.
    """

    round: int
    move: str
    atoms: int
    bits: int
    bits_errors: int
    bits_codes: int
    bits_atoms: int
    wrong_bits: int
    codes_changed: int
    atoms_changed: int
    errors_changed: int
    iterations: int
    start: int
    algebra: str
    rows: int
    seconds: float


class OtherAlgebra(NamedTuple):
    """The algebra that was tried and not kept."""

    algebra: str
    cost: int
    kept_cost: int  # of the algebra that was kept
    unit: str  # "bit" or "wrong cell"
    is_estimated: bool  # for all rows, from a sample


@dataclass(frozen=True, eq=False, kw_only=True)
class ResultBase:
    """What a Factorization and a Model share: everything but the codes."""

    atoms: Bits
    bias: NDArray[np.uint8] = field(repr=False)
    algebra: str
    codelength: Codelength
    history: tuple[Round, ...] = field(repr=False)
    wrong: NDArray[np.int64] = field(repr=False)
    ended: str = "converged"
    coder: str = "greedy"
    objective: str = "codelength"
    codelengths: Mapping[str, int] = field(default_factory=dict, repr=False)
    compared: Mapping[str, int] = field(default_factory=dict, repr=False)
    bits_without: int | None = field(default=None, repr=False)
    saved: NDArray[np.int64] | None = field(default=None, repr=False)
    ones: NDArray[np.int64] | None = field(default=None, repr=False)
    missed: NDArray[np.int64] | None = field(default=None, repr=False)
    known: NDArray[np.int64] | None = field(default=None, repr=False)
    complete: NDArray[np.int64] | None = field(default=None, repr=False)
    lacking: NDArray[np.int64] | None = field(default=None, repr=False)
    atom_known: NDArray[np.int64] | None = field(default=None, repr=False)
    rows_hash: int | None = field(default=None, repr=False)
    remembered: BitMatrix | None = field(default=None, repr=False)
    beyond_chance: int | None = field(default=None, repr=False)
    costs: ErrorCosts | None = field(default=None, repr=False)
    has_bias: bool = field(default=True, repr=False)

    if TYPE_CHECKING:

        @property
        def n_samples(self) -> int:
            """Number of samples learned from."""

        @property
        def uses(self) -> NDArray[np.int64]:
            """Number of samples that use each atom, of shape (n_atoms,)."""

    @property
    def n_known(self) -> NDArray[np.int64]:
        """Number of samples in which each feature is known, of shape (n_features,)."""
        return np.full(self.atoms.n_cols, self.n_samples, np.int64) if self.known is None else self.known

    @property
    def n_known_cells(self) -> int:
        """Number of known cells."""
        return int(self.n_known.sum())

    @property
    def converged(self) -> bool:
        """Whether the search ended by itself, not at a limit."""
        return self.ended == "converged"

    @property
    def wrong_bits(self) -> int:
        """Number of bits in which data and product differ."""
        return int(self.wrong.sum())

    @property
    def n_iter(self) -> int:
        """Number of steps of learning, at least one."""
        return max(1, sum(row.iterations for row in self.history))

    @property
    def n_unused(self) -> int:
        """Number of atoms that no sample uses."""
        return int((self.uses == 0).sum())

    @property
    def n_duplicate(self) -> int:
        """Number of atoms that repeat an earlier one, not counting atoms without ones."""
        atoms = sparse(self.atoms)
        distinct = {columns.tobytes() for columns in np.split(atoms.indices, atoms.indptr[1:-1])} - {b""}
        return atoms.n_rows - self.n_zero - len(distinct)

    @property
    def n_zero(self) -> int:
        """Number of atoms without ones."""
        return int((self.atoms.row_weights() == 0).sum())

    def summary(self) -> str:
        """Return a description of the result in a few sentences."""
        n, m, bits = self.n_samples, self.atoms.n_cols, self.codelength.total
        n_atoms = self.atoms.n_rows
        algebra = f" ({self.algebra.upper()})" if n_atoms else ""
        used = f"{counted(n_atoms, 'atom')}{algebra} {verb(n_atoms, 'describe')}"
        lines = [f"{used} {counted(n, 'sample')} of {counted(m, 'feature')} in {counted(bits, 'bit')}"]
        if self.bits_without:
            saved = self.bits_without - bits
            fewer = f"{percent(saved, self.bits_without)} fewer" if saved > 0 else "no fewer"
            lines[0] += f", {fewer} than without atoms"
        if self.saves_little:
            lines += self._verdict_lines()
        lines += self._fit_lines()
        if self.bias.any():
            ones = int(self.bias.sum())
            are = "is a one" if ones == 1 else "are ones"
            lines.append(f"{counted(ones, 'feature')} {are} unless an atom changes that (the bias)")
        if self.ended in _ENDINGS:
            lines.append(f"The search {_ENDINGS[self.ended]}")
        lines += self._comparison_lines()
        return ".\n".join(lines) + "."

    @property
    def saves_little(self) -> bool:
        """Whether there are no atoms, or they save so few bits that the summary says what that means.

        Where errors have costs, other things matter than bits.
        """
        if self.costs is not None:
            return False
        if not self.atoms.n_rows or not self.bits_without:
            return not self.atoms.n_rows
        return is_small_saving(self.bits_without - self.codelength.total, self.bits_without)

    def _verdict_lines(self) -> list[str]:
        """Return sentences on what it means that little is saved, or nothing."""
        n_atoms, n_beyond = self.atoms.n_rows, self.beyond_chance
        if n_atoms and self.bits_without is not None and self.codelength.total >= self.bits_without:
            chosen = ": the fewest wrong cells were sought" if self.objective == "errors" else ""
            return [f"These atoms save no bits{chosen}"]
        more, other = "occur together more or less often than", "the numbers of ones per sample and feature explain"
        if not self.converged:
            few = "That is a small saving" if n_atoms else "No atom was found that makes the description shorter"
            return [f"{few}. The search was cut short: how much structure the table has is not known"]
        if n_atoms:
            if n_beyond is None:
                return [f"That is a small saving; {_alternatives(self.untried)} may save more"]
            if not n_beyond:
                return [f"That is a small saving, and chance may be the reason: no features of an atom {more} {other}"]
            these = f"{n_beyond} of the {n_atoms} atoms" if n_atoms > 1 else "the atom"
            verdict = (
                f"That is a small saving, but more than chance: {these} {have(n_beyond)} features that {more} {other}"
            )
            return [f"{verdict}. Most of the table has no such structure, or {_alternatives(self.untried)} may find it"]
        none = "No atom makes the description shorter"
        if n_beyond is None:
            return [f"{none}: there is none in the table, or none was found or allowed"]
        if not n_beyond:
            return [f"{none}, and no two features {more} {other}"]
        pairs = f"{counted(n_beyond, 'pair')} of features {more.replace('occur', verb(n_beyond, 'occur'))}"
        return [f"{none}, although {pairs} {other}; {_alternatives(self.untried)} may find one"]

    @property
    def untried(self) -> tuple[str, ...]:
        """What may give a shorter description and was not tried: "thorough", "xor" or "or", and "rows"."""
        tried = {self.algebra, *self.codelengths, *self.compared}
        thorough = () if any(row.move in ("perturb", THOROUGH_WINDOW) for row in self.history) else ("thorough",)
        return (*thorough, *(algebra for algebra in ("xor", "or") if algebra not in tried), "rows")

    @property
    def other_algebra(self) -> OtherAlgebra | None:
        """The algebra that was tried and not kept, with what it costs; None if there is none, or it had less time."""
        costs = self.compared or self.codelengths
        others = [algebra for algebra in costs if algebra != self.algebra]
        if not others or self.algebra not in costs or self.ended in ("interrupted", "max_memory"):
            return None
        by_errors = bool(self.compared) and self.objective == "errors"
        unit, own_cost = ("wrong cell", self.wrong_bits) if by_errors else ("bit", self.codelength.total)
        is_estimated = costs[self.algebra] != own_cost
        return OtherAlgebra(others[0], costs[others[0]], costs[self.algebra], unit, is_estimated)

    def _comparison_lines(self) -> list[str]:
        """Return a sentence on the other algebra, if it was tried."""
        other = self.other_algebra
        if other is None:
            return []
        name, difference = other.algebra.upper(), abs(other.cost - other.kept_cost)
        verb = "need" if other.unit == "bit" else "leave"
        verb = f"would {verb} about" if other.is_estimated else f"{verb}s"
        line = f"{name} {verb} {counted(other.cost, other.unit)}"
        if not difference:
            line += ", as many"
        elif other.cost > other.kept_cost:
            line += f", {difference} more"
        else:
            fewer = f"{percent(difference, other.kept_cost)} fewer"
            line += f", {fewer}: too few to give up {self.algebra.upper()}, which is easier to read"
        return [line if self.converged else f"{line}. This comparison is not final: the search was cut short"]

    def _fit_lines(self) -> list[str]:
        """Return sentences on how much of the data the product explains, and how many atoms a sample uses."""
        n_known, cells = self.n_known_cells, "cells" if self.known is None else "known cells"
        lines = [f"{percent(self.wrong_bits, n_known)} of the {cells} are wrong"]
        if self.atoms.n_rows:
            per_sample = self.uses.sum() / max(1, self.n_samples)
            lines[0] += f"; a sample uses {per_sample:.{1 if per_sample >= 1 else 2}f} atoms"
        elif not self.bias.any():
            lines = []
        if self.ones is not None and self.missed is not None and (self.atoms.n_rows or self.bias.any()):
            ones, missed = int(self.ones.sum()), int(self.missed.sum())
            right = percent(ones - missed, ones) if ones else "100%"
            invented = percent(self.wrong_bits - missed, n_known - ones)
            lines.append(f"{right} of the ones are accounted for, {invented} of the zeros are taken for ones")
            if self.costs is not None:
                added = self.wrong_bits - missed
                lines.append(
                    f"{counted(missed, 'one')} are missed at a cost of {_range(self.costs.missed)}, "
                    f"{added} added at a cost of {_range(self.costs.added)}"
                )
        return lines


def is_small_saving(saved: int, without: int) -> bool:
    """Return whether so few of the bits without atoms are saved that a summary says what that means."""
    return saved < _SMALL_SAVING * without


_UNTRIED = {"thorough": "a thorough search", "xor": "XOR", "or": "OR", "rows": "more rows"}


def _alternatives(untried: tuple[str, ...]) -> str:
    """Return what was not tried as the subject of a sentence."""
    *others, last = (_UNTRIED[word] for word in untried)
    return f"{', '.join(others)} or {last}" if others else last


def _range(costs: NDArray[np.float64]) -> str:
    """Return the lowest and the highest cost as text."""
    low, high = (f"{cost:g}" for cost in (costs.min(), costs.max()))
    return low if low == high else f"{low} to {high}"


@dataclass(frozen=True, eq=False, kw_only=True)
class Factorization(ResultBase):
    """Atoms, codes and their codelength: data = bias + codes * atoms + errors, in the algebra.

    Attributes
    ----------
    atoms : BitMatrix or SparseBits of shape (n_atoms, n_features)
        The patterns, the one that saves most bits first. Where features are many and the ones of the atoms few, only
        the ones are stored; both types have the same methods.
    codes : BitMatrix of shape (n_samples, n_atoms)
        The atoms that each sample uses. With ``sample_weight``, one row per sample that was passed.
    bias : ndarray of shape (n_features,), uint8
        Added to every sample. All zeros, unless ``search`` is "fast" or "thorough", the objective is the codelength,
        and a bias shortens it.
    algebra : {"xor", "or"}
        How the atoms of a sample are combined.
    codelength : Codelength
        Bits that describe the data, in three parts.
    history : tuple of Round
        One row per move.
    wrong : ndarray of shape (n_features,), int64
        Number of samples in which each feature is wrong.
    ended : {"converged", "max_iter", "max_time", "max_memory", "callback", "interrupted"}
        Why the search ended.
    coder : str
        Name of the coder for samples.
    objective : {"codelength", "errors"}
        What the search minimized, and coding minimizes.
    codelengths : dict
        The shortest codelength found in each algebra that was tried, in bits.
    compared : dict
        The costs by which the algebras were compared, if these are not ``codelengths``: the wrong cells, with
        "auto" and the objective "errors"; the costs estimated for all rows, if only a sample was searched.
    bits_without : int
        Bits that describe the data without any atom.
    saved : ndarray of shape (n_atoms,), int64, or None
        By how many bits the codelength would be longer without each atom, the other codes left as they are; the bias
        takes the columns that would be wrong in most samples, if it takes such columns in this search. With
        ``bias=False`` or costs of errors, it is the rise of the objective. It can be 0 or negative only if the
        number of atoms was given, with ``search="paper"``, in a stream, if the search was cut short, or, rarely, if
        only a sample of the rows was searched.
    ones, missed : ndarray of shape (n_features,), int64, or None
        Number of samples in which each feature is one, and in how many of these the product is zero.
    known : ndarray of shape (n_features,), int64, or None
        Number of samples in which each feature is known; None if all cells are.
    complete : ndarray of shape (n_atoms,), int64, or None
        Number of samples in which each atom is complete: they have all its features and, where the bias sets a feature
        of the atom, do not have that one. Whether they use the atom does not matter.
    lacking : ndarray of shape (n_ones,), int64, or None
        For each one of the atoms, atom by atom in the order of the features, the number of samples that are known
        to have all other features of the atom, and not this one.
    atom_known : ndarray of shape (n_atoms,), int64, or None
        Number of samples in which all features of each atom are known; None if all cells are, or if it was not counted.
    rows_hash : int or None
        A hash of the samples, whatever their order, by which a report recognizes them.
    remembered : BitMatrix of shape (n_remembered, n_atoms), or None
        Codes of samples that coding from scratch does not find, which new samples start from.
    beyond_chance : int or None
        Number of atoms with features that occur together more often, under XOR also less often, than the numbers of
        ones per sample and feature explain; without atoms, the number of pairs of features that do. None if this was
        not counted: only where little is saved, by a search of all samples for the codelength that was not cut short.
    costs : ErrorCosts or None
        The costs of missed and of added ones, if any were passed.
    has_bias : bool
        Whether the search may use a bias.
    sample_weight : ndarray of shape (n_samples,), int64, or None
        The weights of the samples, if these were passed. All numbers then count repetitions: ``n_samples`` is the sum
        of the weights.
    weighted_uses : ndarray of shape (n_atoms,), int64, or None
        With weights, ``uses``. Repetitions of a sample may use different atoms; ``codes`` are those of the first.
    """

    codes: BitMatrix
    sample_weight: NDArray[np.int64] | None = field(default=None, repr=False)
    weighted_uses: NDArray[np.int64] | None = field(default=None, repr=False)

    @property
    def n_samples(self) -> int:
        """Number of samples learned from."""
        return self.codes.n_rows if self.sample_weight is None else int(self.sample_weight.sum())

    @property
    def uses(self) -> NDArray[np.int64]:
        """Number of samples that use each atom, of shape (n_atoms,)."""
        return self.codes.column_weights() if self.weighted_uses is None else self.weighted_uses

    def reconstruct(self) -> BitMatrix:
        """Return the product of codes and atoms, with the bias."""
        return reconstruct(self.codes, self.atoms, self.bias, self.algebra)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a search; ``result`` is the best factorization, or cover, so far, or None if there is none yet."""

    def __init__(self, result: Any) -> None:
        found = "nothing was learned yet" if result is None else "the best result so far is in .result"
        super().__init__(f"the search was interrupted; {found}")
        self.result = result
