"""The README and the pages of the documentation."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def code_of(page, language="python"):
    """Return the code blocks of a page in this language."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
