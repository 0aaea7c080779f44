"""The patterns and the rules of a model as tables to read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..model.patterns import PATTERN_COLUMNS, Pattern
from ..model.rules import Rule
from .tables import DataTable

_PATTERN_FORMATS = {"share": ".4f", "expected": ".6g", "lift": ".4g", "member_lifts": ".4g", "recurs": ".4f"}
_MEASURES = ("support", "confidence", "lift", "leverage")


def pattern_table(patterns: Sequence[Pattern]) -> DataTable:
    """Return a table of patterns, one per row: features, numbers of rows that use it and have it complete, bits saved.

    It has their lifts if complete rows were counted, how often they recur if `bitatoms.stability` has counted it, and
    where they are if features have positions.
    """
    has_spans = any(pattern.span is not None for pattern in patterns)
    columns = tuple(name for name in PATTERN_COLUMNS if name != "span" or has_spans)
    rows = tuple(tuple(getattr(pattern, name) for name in columns) for pattern in patterns)
    return DataTable(columns, rows, _PATTERN_FORMATS, frozenset({"expected", "lift", "member_lifts", "recurs"}))


def rule_table(rules: Iterable[Rule]) -> DataTable:
    """Return a table of rules, one per row, with their measures."""
    rows = tuple((*rule, *(getattr(rule, name) for name in _MEASURES)) for rule in rules)
    return DataTable((*Rule._fields, *_MEASURES), rows, dict.fromkeys(("consequent_share", *_MEASURES), ".6g"))
