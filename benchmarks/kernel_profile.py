"""Seconds of a fit by kernel, with one thread, and the share of what Python and NumPy do between kernels.

``python benchmarks/kernel_profile.py FOLDER [--jobs fast,auto] [--seeds 0,1]``; the jobs are those of ``threads.py``.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bitatoms.kernels import jit

spent: Counter[str] = Counter()
n_calls: Counter[str] = Counter()
_kernel = jit.kernel


def timed_kernel(function: Callable[..., Any]) -> Any:
    """Compile a kernel, and add up how long it runs."""
    run, name = _kernel(function), function.__name__

    def call(*arguments: Any) -> Any:
        begin = time.perf_counter()
        try:
            return run(*arguments)
        finally:
            spent[name] += time.perf_counter() - begin
            n_calls[name] += 1

    call.__wrapped__ = function  # type: ignore[attr-defined]  # for kernels that call this one
    return call


jit.kernel = timed_kernel  # before kernels are imported

from tables import Table, show  # noqa: E402
from threads import JOBS  # noqa: E402

import bitatoms as ba  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", default="fast,auto")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--rows", type=int, default=10**6, help="of many rows (default: %(default)s)")
    parser.add_argument("--kernels", type=int, default=12, help="that are listed (default: %(default)s)")
    options = parser.parse_args()
    for name in options.jobs.split(","):
        load_table, how = JOBS[name]
        data = load_table(options)
        ba.factorize(data[: min(2000, data.shape[0])], **how, random_state=0, max_time=20)  # compiles kernels
        for seed in map(int, options.seeds.split(",")):
            spent.clear(), n_calls.clear()
            begin = time.perf_counter()
            ba.factorize(data, **how, random_state=seed)
            total = time.perf_counter() - begin
            between = total - sum(spent.values())
            rows = [{"kernel": "(between kernels)", "s": between, "share": between / total, "calls": 0}]
            for kernel, seconds in spent.most_common(options.kernels):
                rows.append({"kernel": kernel, "s": seconds, "share": seconds / total, "calls": n_calls[kernel]})
            show(Table(f"Kernels, {name}, seed {seed}, {how}", rows, f"{total:.2f} s in all"))


if __name__ == "__main__":
    main()
