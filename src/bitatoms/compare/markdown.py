"""A comparison as Markdown."""

from __future__ import annotations

import re

from .environment import COMMAND
from .rankings import Ranking, escape_markdown, overview, rank_by_bits, rank_by_wrong_cells
from .results import ComparisonData, Dataset
from .summary import summarize

_FENCE = re.compile("`{3,}")


def to_markdown(comparison: ComparisonData) -> str:
    """Return the overview, a section per table, and how the comparison was run."""
    sections = ["# Comparison\n"]
    if comparison.interrupted:
        sections.append(f"{escape_markdown(comparison.interruption_note)}\n")
    if len(comparison.tables) > 1:
        sections.append(overview(comparison).to_markdown())
    sections += [table_section(comparison, table) for table in comparison.tables]
    sections.append("## How it was run\n")
    how = dict(comparison.how)
    command = how.pop(COMMAND, None)
    items = (f"- {escape_markdown(name)}: {escape_markdown(value)}\n" for name, value in how.items())
    sections.append("".join(items))
    if command is not None:
        sections.append(f"{COMMAND}:\n\n{_code_block(command)}")
    return "\n".join(sections)


def _code_block(command: str) -> str:
    """Return a command in a fenced code block, whatever backticks it contains."""
    fence = "`" * max(3, 1 + max(map(len, _FENCE.findall(command)), default=0))
    return f"{fence}sh\n{command}\n{fence}\n"


def table_section(comparison: ComparisonData, table: Dataset) -> str:
    """Return the section on one table."""
    about = f"{escape_markdown(table.about)}; " if table.about else ""
    size = f"{about}{table.shape[0]:,} × {table.shape[1]:,}, {table.density:.1%} ones."
    lines = [f"## {escape_markdown(table.name)}\n", f"{size[0].upper()}{size[1:]}\n"]
    lines.append("".join(f"- {escape_markdown(sentence)}\n" for sentence in summarize(comparison, table)))
    lines += [_ranking(rank(comparison, table)) for rank in (rank_by_wrong_cells, rank_by_bits)]
    return "\n".join(lines)


def _ranking(ranking: Ranking) -> str:
    """Return a ranking with its heading and notes."""
    notes = "".join(f"\n{escape_markdown(note)}\n" for note in ranking.notes)
    return f"### {ranking.heading}\n\n{ranking.to_markdown()}{notes}"
