"""The patterns of a model as a table that people read: CSV, JSON or Markdown."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

from ..core.model import Model, Pattern
from .atomic import atomic_write
from .errors import FileError
from .text_lines import open_text_writer

_MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;"} | {mark: f"\\{mark}" for mark in "\\|[`"})
EXTENSIONS = {".csv": "csv", ".json": "json", ".md": "markdown"}


def write_patterns(model: Model, path: str | os.PathLike[str]) -> None:
    """Write what each atom is: its features by name, how many rows use it, how many bits it saves.

    Parameters
    ----------
    model : Model
        What was learned; `BinaryDictionaryLearning.as_model` gives it.
    path : str or path-like
        The file; its ending, .csv, .json or .md, tells the format.
    """
    path = Path(path)
    check_patterns_path(path)
    with atomic_write(path) as made, open_text_writer(made) as file:
        file.write(format_patterns(model.patterns(), EXTENSIONS[path.suffix.lower()]))


def check_patterns_path(path: Path | None) -> None:
    """Refuse an ending that stands for no way to write patterns."""
    if path is not None and path.suffix.lower() not in EXTENSIONS:
        raise FileError(f"{path}: patterns are written as .csv, .json or .md; choose one of these endings")


def format_patterns(patterns: list[Pattern], format: str) -> str:
    """The patterns as text in "csv", "json" or "markdown"."""
    if format == "json":
        return json.dumps([pattern._asdict() for pattern in patterns], ensure_ascii=False, indent=1) + "\n"
    rows = [(p.atom, "; ".join(p.features), len(p.features), p.rows, f"{p.share:.4f}", p.bits_saved) for p in patterns]
    names = ("atom", "features", "size", "rows", "share", "bits_saved")
    if format == "csv":
        lines = _Lines()
        csv.writer(lines, lineterminator="\n").writerows([names, *rows])
        return "".join(lines)
    head = [_markdown(names), "|---:|---|---:|---:|---:|---:|"]
    return "\n".join(head + [_markdown(row) for row in rows]) + "\n"


class _Lines(list[str]):
    """Lines of text, to which the csv module writes."""

    write = list.append


def _markdown(cells: tuple[object, ...]) -> str:
    """One row of a Markdown table; what would be taken for markup is taken as it is."""
    text = " | ".join(str(cell).translate(_MARKUP) for cell in cells)
    return f"| {' '.join(text.splitlines())} |"
