"""Compute on a CUDA device and on all processors, and compare speed and bits.

    python benchmarks/gpu.py [coding] [passes] [fit] [transform] [memory] [digits --data FOLDER] [--rows N]
        [--max-time SECONDS]

Every part prints a line per case: seconds or rows per second on the processors and on the device, their ratio, and
whether the bits are the same. The device is warm: kernels were compiled in a smaller run before.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bitatoms as ba
from bitatoms import BitMatrix
from bitatoms.engine.block import Block
from bitatoms.engine.coding import code, coding_rule
from bitatoms.engine.passes import PassSpec
from bitatoms.engine.prices import codelength_prices
from bitatoms.kernels.gpu import device as device_module
from bitatoms.kernels.gpu.device import NoDeviceError, find_device, import_cupy
from bitatoms.kernels.structs import CodingRule
from bitatoms.parallel import Workers, count_processors
from bitatoms.rows.source import MemoryRows
from datasets import load

SIZES = ((256, 64), (256, 256), (784, 256), (1024, 512))
ATOMS_PER_ROW, DENSITY = 5, 0.12


def add_noise(words: NDArray[np.uint64], n_halvings: int, random: np.random.Generator) -> None:
    """Flip bits at random: half of them, halved again and again."""
    for start in range(0, len(words), 1 << 18):
        part = words[start : start + (1 << 18)]
        noise = np.full(part.shape, ~np.uint64(0))
        for _ in range(n_halvings):
            noise &= random.integers(1 << 64, size=part.shape, dtype=np.uint64)
        part ^= noise


def planted(n: int, m: int, p: int, seed: int = 0) -> tuple[BitMatrix, BitMatrix]:
    """Return rows that are sums of five random atoms, with 3 % of noise, and the atoms."""
    random = np.random.default_rng(seed)
    atoms = BitMatrix.from_dense((random.random((p, m)) < DENSITY).astype(np.uint8))
    words = np.zeros((n, atoms.words.shape[1]), np.uint64)
    for _ in range(ATOMS_PER_ROW):
        words ^= atoms.words[random.integers(p, size=n)]
    add_noise(words, 5, random)
    if m % 64:
        words[:, -1] &= np.uint64((1 << m % 64) - 1)
    return BitMatrix.from_words(words, m, check=False), atoms


def seconds(function: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """Return the least time of some calls, and what the last one returned."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - start)
    return best, result


def digest(*arrays: Any) -> str:
    """Return a hash of arrays."""
    digest = hashlib.blake2b(digest_size=8)
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def show(name: str, cpu: float, gpu: float, same: bool, unit: str = "s") -> None:
    """Print a line of results: times, or rates."""
    ratio = cpu / gpu if unit == "s" else gpu / cpu
    print(
        f"{name:40} {cpu:10.3g} {gpu:10.3g} {unit:8} x {ratio:5.1f} {'same bits' if same else 'OTHER BITS'}", flush=True
    )


def code_rows(
    data: BitMatrix, atoms: BitMatrix, rule: CodingRule, workers: Workers, with_copies: bool
) -> tuple[float, Any]:
    """Return the least time of coding from no atoms, with the copies between host and device or without, and codes."""
    best, device = float("inf"), workers.device
    for _ in range(4):
        if device is not None and with_copies:
            device.release()
        start = time.perf_counter()
        block = Block(data, atoms, None, None, workers)
        if device is not None:
            device.xp.cuda.Device().synchronize()
        if not with_copies:
            start = time.perf_counter()
        code(block, rule)
        codes = block.codes() if with_copies else None
        best = min(best, time.perf_counter() - start)
    return best, codes or block.codes()


def run_coding(workers: Workers, on_device: Workers, n: int) -> None:
    """Code rows from no atoms, at prices, without swaps."""
    for m, p in SIZES:
        n_rows = min(n, (1 << 29) // m)
        data, atoms = planted(n_rows, m, p)
        prices = codelength_prices(
            n_rows, np.full(m, n_rows), np.full(m, n_rows // 32), np.full(p, ATOMS_PER_ROW * n_rows // p)
        )
        rule = coding_rule("mdl", "xor", prices=prices)._replace(swaps=False)
        few = data[: n_rows // 4]
        for name, with_copies in (("rows on the device", False), ("with copies", True)):
            cpu, codes = code_rows(few, atoms, rule, workers, with_copies)
            gpu, found = code_rows(data, atoms, rule, on_device, with_copies)
            rates = len(few) / cpu / 1e6, n_rows / gpu / 1e6
            show(f"coding {m} x {p}, {name}", *rates, codes == found[: len(few)], "M rows/s")


def run_passes(workers: Workers, on_device: Workers, n: int) -> None:
    """Run whole passes with counts, from no codes and from those of a pass before."""
    m, p = 256, 64
    data, atoms = planted(n, m, p)
    prices = codelength_prices(n, np.full(m, n), np.full(m, n // 32), np.full(p, ATOMS_PER_ROW * n // p))
    rule = coding_rule("mdl", "xor", prices=prices)._replace(typical=1000.0)
    first = PassSpec(atoms, BitMatrix.zeros(1, m), "mdl", rule)
    for name, spec in (("from no codes", first), ("from codes", replace(first, kept=np.arange(p)))):
        times, digests = [], []
        for own in (workers, on_device):
            rows = MemoryRows(data, own)
            codes, _ = rows.run_pass(first)
            spent, (_, found) = seconds(partial(rows.run_pass, spec, codes), 3)
            times.append(spent)
            digests.append(digest(found.wrong, found.uses, found.free, found.bad, found.pairs))
        show(f"pass over {n} x {m}, {name}", *times, digests[0] == digests[1])


def run_fit(n: int, n_jobs: int, **params: Any) -> None:
    """Fit all rows on the processors and on the device."""
    data, _ = planted(n, 256, 64)
    times, results = [], []
    for device in ("cuda", "cpu"):
        ba.factorize(data[: 1 << 20], random_state=0, n_jobs=n_jobs, device=device, **params)  # compiles kernels
        spent, result = seconds(
            lambda device=device: ba.factorize(data, random_state=0, n_jobs=n_jobs, device=device, **params), 1
        )
        times.append(spent)
        results.append(digest(result.atoms, result.codes, result.wrong))
        print(f"{device}: {spent:.2f} s, {result.codelength.total} bits", flush=True)
    show(f"fit {n} x 256, {params}", times[1], times[0], results[0] == results[1])


def run_transform(n: int, n_jobs: int) -> None:
    """Code the rows of a packed store to codes on disk."""
    data, _ = planted(n, 256, 64)
    model = ba.BinaryDictionaryLearning(64, algebra="xor", random_state=0, n_jobs=n_jobs, device="cuda").fit(
        data[: 1 << 16]
    )
    with tempfile.TemporaryDirectory() as folder:
        store = ba.pack(data, Path(folder) / "rows.zarr")
        times, found = [], []
        for device in ("cpu", "cuda"):
            model.set_params(device=device)
            spent, codes = seconds(lambda device=device: model.transform(store, Path(folder) / f"{device}.zarr"), 1)
            times.append(spent)
            found.append(codes.fingerprint())
        reading, _ = seconds(lambda: sum(len(chunk) for chunk in store.chunks()), 1)
    show(f"transform {n} x 256", *times, found[0] == found[1])
    print(f"{n * 256 / times[1]:.3g} cells/s; reading the store alone takes {reading:.2f} s")


def run_memory(n_jobs: int) -> None:
    """Fit tables as large as the memory that the device may use, and larger; compare with a device without a limit.

    The smallest table is fitted on the processors, too.
    """
    pool = import_cupy().get_default_memory_pool()
    params: dict[str, Any] = {"n_components": 24, "algebra": "xor", "search_rows": 16384}
    for share in (0.5, 0.9, 3.0):
        data, _ = planted(int(share * (4 << 30) / 128), 1024, 32)
        for device, limit in (("cuda", 4 << 30), ("cuda", 0), ("cpu", 0))[: 3 if share == 0.5 else 2]:
            pool.set_limit(limit)
            device_module._found.cache_clear()  # a device asks for the limit once
            fit = partial(ba.factorize, data, random_state=0, n_jobs=n_jobs, device=device, **params)
            spent, result = seconds(fit, 1)
            bits = digest(result.atoms, result.codes, result.wrong)
            held = f"{pool.total_bytes() / 2**30:.2f} GiB in the pool"
            print(f"rows of {share:.0%} of 4 GiB, {device}, limit {limit}: {spent:.1f} s, {held}, {bits}", flush=True)
            pool.free_all_blocks()


def run_digits(folder: Path, n: int, n_jobs: int, max_time: float | None) -> None:
    """Fit digits, repeated with noise, by codelength: all rows searched on the device, a sample on the processors.

    With a time limit, the results depend on the machine.
    """
    words = BitMatrix.from_dense(load(folder, "mnist10k_28x28")).words
    random = np.random.default_rng(0)
    rows = words[np.arange(n) % len(words)]
    add_noise(rows, 7, random)
    rows[:, -1] &= np.uint64((1 << 784 % 64) - 1)
    data = BitMatrix.from_words(rows, 784, check=False)
    for device, search_rows in (("cuda", None), ("cpu", "auto")):
        spent, result = seconds(
            lambda device=device, search_rows=search_rows: ba.factorize(
                data, algebra="xor", random_state=0, n_jobs=n_jobs, device=device, search_rows=search_rows,
                max_time=max_time,
            ), 1,
        )  # fmt: skip
        print(f"digits {n} x 784, {device}, search_rows={search_rows}: {spent:.1f} s, {len(result.atoms)} atoms, "
              f"{result.codelength.total} bits, ended by {result.ended}, {digest(result.atoms, result.codes)}",
              flush=True)  # fmt: skip


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=("coding", "passes", "fit", "transform", "memory", "digits"))
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--data", type=Path, help="folder of mnist10k_28x28.npz")
    parser.add_argument("--max-time", type=float, help="seconds for each fit of digits")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    if options.verbose:
        logging.basicConfig(level=logging.INFO, format="%(relativeCreated)d %(message)s")
    n_jobs = count_processors()
    try:
        workers, on_device = Workers(n_jobs), Workers(n_jobs, device=find_device())
    except NoDeviceError as error:
        print(f"skipped: {error}")
        return
    print(f"{find_device().name} and {n_jobs} processors", flush=True)
    for part in options.parts:
        if part == "coding":
            run_coding(workers, on_device, min(options.rows, 1 << 21))
        elif part == "passes":
            run_passes(workers, on_device, options.rows)
        elif part == "fit":
            run_fit(options.rows, n_jobs, n_components=64, algebra="xor")
        elif part == "transform":
            run_transform(options.rows, n_jobs)
        elif part == "memory":
            run_memory(n_jobs)
        else:
            run_digits(options.data, options.rows, n_jobs, options.max_time)


if __name__ == "__main__":
    main()
