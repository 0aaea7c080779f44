"""Record which kernels fits of each kind call, for `bitatoms.kernels.compilation`: ``make kernels``."""

from __future__ import annotations

import json
import sys
import threading
import time
from types import FrameType
from typing import Any

import numpy as np
from kernel_jobs import JOBS
from numba.core import event

from bitatoms.kernels import compilation, jit
from bitatoms.kernels.compilation import FILE, listed_kernels
from bitatoms.search.options import Algebra

ALGEBRAS: tuple[Algebra, ...] = ("xor", "or")


def described(argument: Any) -> Any:
    """Return what an argument is, as `bitatoms.kernels.compilation.example` reads it."""
    if isinstance(argument, np.ndarray):
        assert argument.flags.c_contiguous
        return f"{argument.dtype} {argument.ndim}" + ("" if argument.flags.writeable else " const")
    if isinstance(argument, tuple):
        fields = [described(field) for field in argument]
        kind = type(argument)
        module = kind.__module__.removeprefix("bitatoms.kernels.")
        return {f"{module}.{kind.__name__}": fields} if hasattr(kind, "_fields") else fields
    if argument is None:
        return "none"
    return str(np.asarray(argument).dtype)


class Recorder(event.Listener):
    """Which kernels are called, by which jobs and with what, and the CPU time to compile those not cached."""

    def __init__(self) -> None:
        self.job = ""
        self.jobs: dict[str, list[str]] = {}
        self.arguments: dict[str, list[Any]] = {}  # different ones, by their first calls
        self.seconds: dict[str, float] = {}
        self._begun: list[float] = []  # a kernel compiles the functions that it calls first

    def profile(self, frame: FrameType, kind: str, _: Any) -> None:
        """Take note of a call of a kernel."""
        if kind == "call" and frame.f_code.co_name == "call" and frame.f_code.co_filename == jit.__file__:
            name = _name(frame.f_locals["run"])
            jobs = self.jobs.setdefault(name, [])
            if self.job not in jobs:
                jobs.append(self.job)
            found = [described(argument) for argument in frame.f_locals["arguments"]]
            if found not in self.arguments.setdefault(name, []):
                self.arguments[name].append(found)

    def on_start(self, event: Any) -> None:
        """Take note of the time at which the compilation of a function begins."""
        self._begun.append(time.process_time())

    def on_end(self, event: Any) -> None:
        """Take note of how long it took."""
        self.seconds[_name(event.data["dispatcher"])] = round(time.process_time() - self._begun.pop(), 1)

    def run(self) -> None:
        """Run all jobs; all kernels are compiled in this process."""
        can_start_processes, compilation.can_start_processes = compilation.can_start_processes, lambda: False
        threading.setprofile(self.profile)
        sys.setprofile(self.profile)
        try:
            with event.install_listener("numba:compile", self):
                for kind, run in JOBS.items():
                    for algebra in ALGEBRAS:
                        self.job = f"{kind}, {algebra}"
                        run(algebra)
        finally:
            compilation.can_start_processes = can_start_processes
            sys.setprofile(None)
            threading.setprofile(None)


def _name(dispatcher: Any) -> str:
    return f"{dispatcher.py_func.__module__.rpartition('.')[2]}.{dispatcher.py_func.__name__}"


def main() -> None:
    """Write the list; kernels that are in the cache keep the time that was measured before."""
    before = {kernel.name: kernel.seconds for kernel in listed_kernels()} if FILE.exists() else {}
    recorder = Recorder()
    recorder.run()
    for name, found in recorder.arguments.items():
        if len(found) > 1:
            print(f"{name} is called with {len(found)} kinds of arguments: {found}")
    lines = [
        json.dumps(
            {
                "kernel": name,
                "jobs": jobs,
                "seconds": recorder.seconds.get(name) or before.get(name, 0.1),
                "arguments": recorder.arguments[name][0],
            }
        )
        for name, jobs in recorder.jobs.items()
    ]
    FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n", "utf-8")
    print(f"{len(lines)} kernels in {FILE}")


if __name__ == "__main__":
    main()
