"""Options of `cover` and `CoverMiner`: what a cover minimizes, its limits, and how it is searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import InputError, Parameter
from ..parameters import Options, declared_in, option
from ..run_options import RunOptions
from ..validation import check_callbacks, check_feature_sets, check_not_negative, check_seconds

CoverObjective = Literal["roles", "assignments", "codelength"]


def _check_weights(name: str, value: Any) -> tuple[float, ...]:
    """Return the weights of roles, user assignments and permission assignments."""
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 3:
        raise InputError(
            Parameter(name),
            f" must be three numbers, for roles, user assignments and permission assignments, not {value!r}",
        )
    try:
        weights = tuple(check_not_negative(name, weight) for weight in value)
    except InputError:
        raise InputError(
            Parameter(name), f" must be three finite numbers of at least 0, not {', '.join(map(repr, value))}"
        ) from None
    if not any(weights):
        raise InputError(Parameter(name), " are all 0; at least one of them must be positive")
    return weights


def has_atoms(fixed: Any) -> bool:
    """Return whether there are fixed roles, or other atoms: neither None nor an empty list."""
    return fixed is not None and not (isinstance(fixed, (list, tuple)) and not fixed)


@dataclass(frozen=True, kw_only=True)
class CoverOptions(Options):
    """Parameters of `bitatoms.cover` and `bitatoms.CoverMiner`."""

    objective: CoverObjective = option(
        "roles",
        "What is minimized: the number of roles, the weighted assignments, or the codelength.",
        '"roles": the fewest atoms and, among covers with as many, few assignments. "assignments": weighted '
        'structural complexity, the sum of roles, user assignments and permission assignments. "codelength": the '
        "bits that describe atoms and codes.",
        option="objective",
        is_common=True,
    )
    weights: Sequence[float] = option(
        (1, 1, 1),
        "Weights of a role, of a user assignment and of a permission assignment.",
        'For ``objective="assignments"``.',
        check=_check_weights,
        type="sequence of three numbers, default=(1, 1, 1)",
        option="weights",
        is_common=True,
    )
    direct_weight: float | None = option(
        None,
        "Weight of a permission granted to a user directly, outside of roles; not allowed by default.",
        'For ``objective="assignments"``.',
        check=lambda name, value: None if value is None else check_not_negative(name, value),
        option="direct-weight",
        is_common=True,
    )
    fixed_atoms: Any = option(
        None,
        "Roles that are known, as a table with one row per role: they are kept as they are, and come first.",
        "Columns that have names are matched by name. A row gets those of them all of whose ones it has, and "
        "few that cover as much as they can; other roles are found for the rest.",
        check=lambda name, value: value,  # checked when the table is known
        type="table of roles x features, optional",
        option="fixed",
        is_common=True,
    )
    max_features_per_atom: int | None = option(
        None, "Number of features that a role has at most.", minimum=1, option="max-features-per-atom"
    )
    apart: Any = option(
        None,
        "Sets of features, by name or index, of which a role has at most one.",
        "Separation of duties within a role; a user may still have several of them by different roles.",
        check=check_feature_sets,
        type="list of sets of str or int, optional",
        option="apart",
        is_common=True,
    )
    together: Any = option(
        None,
        "Sets of features, by name or index, of which a role has all or none.",
        "Every row must have all or none of them too.",
        check=check_feature_sets,
        type="list of sets of str or int, optional",
        option="together",
    )
    max_iter: int = option(
        100,
        "Maximum number of rounds of the search.",
        "A round takes about a quarter of a second, whatever the size of the table.",
        minimum=1,
        option="max-iter",
    )
    max_time: float | None = option(
        None,
        "Number of seconds after which the search returns the best result so far.",
        "The result then depends on the speed of the machine.",
        check=check_seconds,
        option="max-time",
        is_common=True,
    )
    callbacks: Any = option(
        None,
        "Called with each new entry of the history, a `CoverRound`; a callback that returns True ends the search.",
        check=check_callbacks,
        type="callable or list of callables, optional",
        is_run_setting=True,
    )
    verbose: int = declared_in(RunOptions, "verbose")
    binarize: float | None = declared_in(RunOptions, "binarize")
    random_state: Any = declared_in(RunOptions, "random_state")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("weights", "direct_weight"):
            if self.objective != "assignments" and getattr(self, name) != getattr(type(self), name):
                raise InputError(Parameter(name), " requires ", Parameter("objective", "assignments"))

    @property
    def has_limits(self) -> bool:
        """Whether there are fixed roles or limits of the others."""
        is_limited = self.max_features_per_atom is not None or bool(self.apart) or bool(self.together)
        return is_limited or has_atoms(self.fixed_atoms)
