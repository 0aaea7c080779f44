"""Compare bitatoms with other methods on the same data: wrong cells, codelength and time per number of atoms."""

from __future__ import annotations

from ..baselines.baseline import Factors
from .comparison import Comparison
from .inputs import BUNDLED
from .methods import Method, Task, all_methods
from .results import Dataset, Result, Run
from .runner import compare

__all__ = [
    "BUNDLED",
    "Comparison",
    "Dataset",
    "Factors",
    "Method",
    "Result",
    "Run",
    "Task",
    "all_methods",
    "compare",
]
