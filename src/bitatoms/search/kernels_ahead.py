"""Which kernels a search is about to call: on a machine that has not compiled them, several processes do so."""

from __future__ import annotations

from ..kernels.ahead import ahead
from ..memory import memory_limit
from ..parallel import count_processors
from ..sparse_bits import Bits, SparseBits
from .params import SearchParams
from .windows import is_wide

_MAX_PROCESSES = 4  # the largest kernel takes a quarter of the time that all take
_MEMORY = 1 << 30  # bytes for each of them; it takes a quarter of that


def expect_kernels(data: Bits, params: SearchParams) -> None:
    """Expect the kernels of a search, in each of its algebras."""
    kind = "search"
    if params.search == "paper":
        kind = "k-prox" if params.update == "k-prox" else f"paper, {params.coder}"
    elif isinstance(data, SparseBits):
        kind = "sparse table"
    elif data.n_unknown:
        kind = "unknown cells"
    elif is_wide(data.n_cols, params):
        kind = "wide table"
    elif params.n_components != "mdl":
        kind = "a given number of atoms"
    elif params.search == "thorough":
        kind = "thorough search"
    n_processes = min(_MAX_PROCESSES, count_processors(), memory_limit() // _MEMORY)
    ahead.expect([f"{kind}, {algebra}" for algebra in params.algebras], n_processes)
