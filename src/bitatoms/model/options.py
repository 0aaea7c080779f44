"""Options of the rules of a model."""

from __future__ import annotations

from dataclasses import dataclass

from ..parameters import Options, option
from ..validation import check_fraction, check_not_negative


@dataclass(frozen=True, kw_only=True)
class RuleOptions(Options):
    """Which rules of a model are listed: those that reach all of these."""

    min_support: float = option(
        0.001,
        "Share of the rows that must have antecedent and consequent.",
        check=check_fraction,
        option="min-support",
        is_common=True,
    )
    min_confidence: float = option(
        0.2,
        "Share of the rows with the antecedent that must have the consequent.",
        check=check_fraction,
        option="min-confidence",
        is_common=True,
    )
    min_lift: float = option(
        1.5,
        "How many times as frequent the consequent must be in the rows with the antecedent as in all rows.",
        check=check_not_negative,
        option="min-lift",
        is_common=True,
    )
