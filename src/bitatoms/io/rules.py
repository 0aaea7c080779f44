"""Write rules as a table to read: CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..model.rules import Rule
from .atomic import atomic_write
from .errors import FileError
from .name_lists import join_names
from .text_lines import open_text_writer

_MEASURES = ("support", "confidence", "lift", "leverage")


def write_rules(rules: Sequence[Rule], path: Path, format: str) -> None:
    """Write rules to a file as "csv" or "json"."""
    with atomic_write(path) as temporary, open_text_writer(temporary) as file:
        file.write(format_rules(rules, format))


def rules_format(path: Path) -> str:
    """Return the format that an extension selects."""
    format = {".csv": "csv", ".json": "json"}.get(path.suffix.lower())
    if format is None:
        raise FileError(f"{path}: rules are written as .csv or .json; use one of these extensions")
    return format


def format_rules(rules: Sequence[Rule], format: str) -> str:
    """Return rules as text in "csv" or "json"."""
    if format == "json":
        return json.dumps([rule_json(rule) for rule in rules], ensure_ascii=False, indent=1) + "\n"
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow((*Rule._fields, *_MEASURES))
    for rule in rules:
        values = rule._replace(antecedent=join_names(rule.antecedent), consequent_share=f"{rule.consequent_share:.6g}")  # type: ignore[arg-type]
        lines.writerow((*values, *(f"{getattr(rule, name):.6g}" for name in _MEASURES)))
    return text.getvalue()


def rule_json(rule: Rule) -> dict[str, Any]:
    """Return a rule as JSON values."""
    return rule._asdict() | {name: getattr(rule, name) for name in _MEASURES}
