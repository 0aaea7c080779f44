"""Advice on what to try for more patterns: only what was not tried yet."""

from __future__ import annotations

from ..core.model import Model

_OTHER_ALGEBRA = "the shorter of both ways to combine patterns, OR and XOR (<code>bitatoms fit --algebra auto</code>)"
_ADVICE = {
    "rows": "more rows",
    "xor": _OTHER_ALGEBRA,
    "or": _OTHER_ALGEBRA,
    "thorough": "a longer search (<code>bitatoms fit --search thorough</code>)",
}


def to_try(model: Model) -> str:
    """Return what to try, as the object of a sentence in HTML."""
    *others, last = (advice for word, advice in _ADVICE.items() if word in model.untried)
    return f"{', '.join(others)} or {last}" if others else last
