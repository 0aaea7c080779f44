"""A comparison as Markdown."""

from __future__ import annotations

from .comparison import Comparison, Tried
from .standings import Standings, fewest_bits, fewest_wrong, overview, plain
from .verdict import verdicts

INTERRUPTED = "This comparison was interrupted: what had not been run by then is missing."


def written(comparison: Comparison) -> str:
    """The whole: a part for each table, and how it was run."""
    parts = ["# A comparison\n", f"{INTERRUPTED}\n"] if comparison.interrupted else ["# A comparison\n"]
    if len(comparison.tables) > 1:
        parts.append(overview(comparison).to_markdown())
    parts += [part_of(comparison, table) for table in comparison.tables]
    parts.append("## How it was run\n")
    parts.append("".join(f"- {plain(what)}: {plain(value)}\n" for what, value in comparison.how))
    return "\n".join(parts)


def part_of(comparison: Comparison, table: Tried) -> str:
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
