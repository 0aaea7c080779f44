"""`bitatoms warmup`: compile the kernels of all common calls now."""

from __future__ import annotations

from ..run_options import DeviceChoice
from ..warmup import warm_up
from .console import Display, print_result
from .progress import ProgressLine, show_status


def run(n_jobs: int, device: DeviceChoice, display: Display) -> None:
    """Compile the kernels, show how far that is, and print where they are stored."""
    with show_status("compiling kernels", display.is_silent) as status:
        progress = ProgressLine(display.is_silent, status)

        def show(name: str, n_done: int, n_all: int) -> None:
            progress.update(f"compiling kernels: {n_done} of {n_all}, {progress.seconds}", f" (done: {name})")

        folder = warm_up(n_jobs, show, device=device)
    line = f"Kernels for this kind of processor are compiled and stored in {folder}."
    if device == "cuda":
        line += " Those for this kind of GPU are in the cache of CuPy."
    print_result({"kernels": str(folder)}, display, line)
