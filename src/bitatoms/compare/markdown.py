"""A comparison as Markdown."""

from __future__ import annotations

import re

from .comparison import Comparison, Dataset
from .environment import COMMAND
from .standings import Standings, fewest_bits, fewest_wrong, overview, plain
from .verdict import verdicts

_FENCE = re.compile("`{3,}")


def written(comparison: Comparison) -> str:
    """The whole: a part for each table, and how it was run."""
    parts = ["# A comparison\n"]
    if comparison.interrupted:
        parts.append(f"{plain(comparison.ended)}\n")
    if len(comparison.tables) > 1:
        parts.append(overview(comparison).to_markdown())
    parts += [part_of(comparison, table) for table in comparison.tables]
    parts.append("## How it was run\n")
    how = dict(comparison.how)
    command = how.pop(COMMAND, None)
    parts.append("".join(f"- {plain(what)}: {plain(value)}\n" for what, value in how.items()))
    if command is not None:
        parts.append(f"{COMMAND}:\n\n{_as_it_is(command)}")
    return "\n".join(parts)


def _as_it_is(command: str) -> str:
    """A command in a block of code, so that it can be copied from the text and from the page made of it alike."""
    fence = "`" * max(3, 1 + max(map(len, _FENCE.findall(command)), default=0))
    return f"{fence}sh\n{command}\n{fence}\n"


def part_of(comparison: Comparison, table: Dataset) -> str:
    """The part on one table."""
    about = f"{plain(table.about)}; " if table.about else ""
    size = f"{about}{table.shape[0]:,} × {table.shape[1]:,}, {table.density:.1%} ones."
    lines = [f"## {plain(table.name)}\n", f"{size[0].upper()}{size[1:]}\n"]
    lines.append("".join(f"- {plain(said)}\n" for said in verdicts(comparison, table)))
    lines += [_table(standings) for standings in (fewest_wrong(comparison, table), fewest_bits(comparison, table))]
    return "\n".join(lines)


def _table(standings: Standings) -> str:
    """A table with its heading and its notes."""
    notes = "".join(f"\n{plain(note)}\n" for note in standings.notes)
    return f"### {standings.heading}\n\n{standings.to_markdown()}{notes}"
