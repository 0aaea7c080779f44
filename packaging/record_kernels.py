"""Record which kernels fits of each kind call, for `bitatoms.kernels.signatures`: ``make kernels``."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from kernel_jobs import JOBS

from bitatoms.kernels import cpu
from bitatoms.kernels.ahead import ahead
from bitatoms.kernels.jit import KernelCache
from bitatoms.kernels.signatures import FILE, Variant, all_variants, encoded
from bitatoms.parameters import Algebra

ALGEBRAS: tuple[Algebra, ...] = ("xor", "or")


def all_kernels() -> Iterator[Any]:
    """Yield all kernels."""
    for module in iter_modules(cpu.__path__, f"{cpu.__name__}."):
        for value in vars(import_module(module.name)).values():
            if hasattr(value, "overloads") and getattr(value, "__module__", "") == module.name:
                yield value


def recorded() -> list[Variant]:
    """Run all jobs; return the kernels that they call, in this order, with the time to compile those not cached."""
    found: dict[tuple[str, str], tuple[float, list[str]]] = {}
    loaded: dict[tuple[str, str], Any] = {}
    load, save = KernelCache.load_overload, KernelCache.save_overload
    job, begin = "", 0.0

    def name(cache: Any, sig: Any) -> tuple[str, str]:
        return f"{cache._py_func.__module__.rpartition('.')[2]}.{cache._py_func.__name__}", encoded(sig)

    def load_and_record(cache: Any, sig: Any, context: Any) -> Any:
        nonlocal begin
        key = name(cache, sig)
        _, jobs = found.setdefault(key, (0.0, []))
        jobs.append(job)
        if loaded.get(key) is None:
            loaded[key] = load(cache, sig, context)
        begin = time.process_time()
        return loaded[key]

    def save_and_record(cache: Any, sig: Any, data: Any) -> None:
        key = name(cache, sig)
        found[key] = (round(time.process_time() - begin, 1), found[key][1])
        save(cache, sig, data)

    expect = ahead.expect
    KernelCache.load_overload, KernelCache.save_overload = load_and_record, save_and_record
    ahead.expect = lambda *_: None  # compile here
    try:
        kernels = list(all_kernels())
        for algebra in ALGEBRAS:
            for kind, run in JOBS.items():
                for kernel in kernels:
                    kernel._reset_overloads()
                job = f"{kind}, {algebra}"
                run(algebra)
    finally:
        KernelCache.load_overload, KernelCache.save_overload, ahead.expect = load, save, expect
    return [Variant(*key, seconds, tuple(dict.fromkeys(jobs))) for key, (seconds, jobs) in found.items()]


def main() -> None:
    """Write the list; kernels that are in the cache keep the time that was measured before."""
    before = {variant[:2]: variant.seconds for variant in all_variants()}
    variants = [found._replace(seconds=found.seconds or before.get(found[:2], 0.1)) for found in recorded()]
    lines = (
        json.dumps({"kernel": kernel, "jobs": jobs, "seconds": seconds, "types": json.loads(signature)})
        for kernel, signature, seconds, jobs in variants
    )
    FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n", "utf-8")
    seconds = sum(variant.seconds for variant in variants)
    print(f"{len(variants)} kernels, {seconds:.0f} s of CPU time to compile, in {FILE}")


if __name__ == "__main__":
    main()
