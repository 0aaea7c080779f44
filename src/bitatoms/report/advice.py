"""What it means that a table has few patterns, or none, and what to try for more: only what was not tried yet."""

from __future__ import annotations

from ..html.text import format_count, pluralize
from ..model.model import Model

_OTHER_ALGEBRA = "the shorter of both ways to combine patterns, OR and XOR (<code>bitatoms fit --algebra auto</code>)"
_ADVICE = {
    "rows": "more rows",
    "xor": _OTHER_ALGEBRA,
    "or": _OTHER_ALGEBRA,
    "thorough": "a longer search (<code>bitatoms fit --search thorough</code>)",
}


def verdict(model: Model) -> str:
    """Return sentences in HTML on what it means that patterns save few bits, or none."""
    n_beyond, n_atoms = model.beyond_chance, model.atoms.n_rows
    if not model.converged:
        return "The search was cut short, so it is not known how many patterns the table has."
    if n_beyond is None:
        return f"The table has few patterns, or the search did not find them. You can try {to_try(model)}."
    how = "more or less often than chance explains, given the number of ones in each row and column"
    if n_atoms and n_beyond:
        these = f"{pluralize(n_beyond, 'pattern')} of {format_count(n_atoms)}" if n_atoms > 1 else "The pattern"
        have = "has" if n_beyond == 1 else "have"
        return (
            f"But {these[0].lower()}{these[1:]} {have} columns that occur together {how}. You can try {to_try(model)}."
        )
    if n_atoms:
        return f"No columns of a pattern occur together {how}."
    if n_beyond:
        pairs = f"{pluralize(n_beyond, 'pair')} of columns {'occurs' if n_beyond == 1 else 'occur'}"
        return f"But {pairs} together {how}. You can try {to_try(model)}."
    return f"No two columns occur together {how}."


def to_try(model: Model) -> str:
    """Return what to try, as the object of a sentence in HTML."""
    *others, last = (advice for word, advice in _ADVICE.items() if word in model.untried)
    return f"{', '.join(others)} or {last}" if others else last
