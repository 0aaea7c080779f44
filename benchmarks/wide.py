"""Wide and sparse tables: codelength, what was planted and found, seconds and memory.

``python benchmarks/wide.py [FOLDER] [--only NAME,...] [--seeds N] [--jobs N]`` fits generated tables, and those of a
folder with ``kg_chr20_hap600.npz``, ``retail.sparse.npz`` and ``groceries.npz``. Each fit runs in a process of its own.
The parts:

haplotypes : kg_chr20_hap600 (600 x 24 990), both algebras
mosaic : 1000 rows of 57 000 columns, mosaics of those haplotypes
founders : 5000 x 1 000 000, blocks of 100 SNPs with two bits each and six founder haplotypes (``--scale .02`` by
    default: 20 000 columns)
retail, groceries : baskets; and groceries with shuffled columns, of which nothing should be found
bundles : 300 000 x 50 000, 10 ones per row, 200 bundles of 4 to 8 columns in 200 rows each; ``many-bundles`` is
    2.7 M x 354 000 with 300 bundles in 500 rows each
cells : 20 000 x 100 000 like single-cell data, 12 programs of 2000 columns (``--scale``)
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array, csr_array

import bitatoms as ba
from bitatoms.engine.codelength import string_bits


class Planted(NamedTuple):
    """A table, the bits of its true model (None if unknown), and the sets of columns that were planted."""

    table: Any
    true_bits: int | None = None
    sets: tuple[NDArray[np.intp], ...] = ()


def haplotypes(folder: Path) -> ba.BitMatrix:
    """Return the haplotypes of a folder."""
    with np.load(folder / "kg_chr20_hap600.npz") as stored:
        n, m = stored["shape"]
        return ba.BitMatrix.from_dense(np.unpackbits(stored["X"], axis=1)[:n, :m])


def mosaic(folder: Path, seed: int, n_rows: int = 1000, n_cols: int = 57_000) -> Planted:
    """Return mosaics of haplotypes, which switch every 500 columns on average; .2 % of the cells are flipped."""
    random = np.random.default_rng(seed)
    source = haplotypes(folder).to_dense()
    tiled = np.tile(source, (1, -(-n_cols // source.shape[1])))[:, :n_cols]
    switches = random.random((n_rows, n_cols)) < 1 / 500
    X = np.empty((n_rows, n_cols), np.uint8)
    for i in range(n_rows):
        stretch = np.cumsum(switches[i])
        X[i] = tiled[random.integers(len(source), size=stretch[-1] + 1)[stretch], np.arange(n_cols)]
    X ^= random.random(X.shape) < 0.002
    # True model: the haplotypes, the place of each switch, the haplotype of each stretch, and the flipped cells.
    n_switches = int(switches.sum())
    length = n_switches * (np.log2(n_cols) + np.log2(len(source))) + n_rows * np.log2(len(source))
    length += ba.codelength(source).total + n_rows * n_cols * 0.0208  # the entropy of .2 %
    return Planted(ba.BitMatrix.from_dense(X), int(length))


def founders(scale: float, seed: int, n_rows: int = 5000) -> Planted:
    """Return blocks of 100 SNPs, 200 columns, of six founder haplotypes with random frequencies; .1 % are flipped."""
    random = np.random.default_rng(seed)
    n_blocks, m = int(5000 * scale), 200
    words, bits = [], 0.0
    for _ in range(n_blocks):
        alleles = random.random((6, 100)) < random.random(100)
        frequencies = random.dirichlet(np.ones(6))
        pair = random.choice(6, size=(n_rows, 2), p=frequencies)
        dosage = alleles[pair[:, 0]].astype(np.uint8) + alleles[pair[:, 1]]
        X = np.stack([dosage >= 1, dosage >= 2], axis=2).reshape(n_rows, m)
        words.append(np.packbits(X ^ (random.random(X.shape) < 0.001), axis=1, bitorder="little"))
        bits += n_rows * -2 * (frequencies * np.log2(frequencies)).sum() + 600 + n_rows * m * 0.0114
    width = -(-n_blocks * m // 64) * 8
    packed = np.zeros((n_rows, width), np.uint8)
    packed[:, : n_blocks * m // 8] = np.concatenate(words, axis=1)
    return Planted(ba.BitMatrix.from_words(packed.view(np.uint64), n_blocks * m), int(bits))


def bundles(n_rows: int, n_cols: int, n_bundles: int, n_uses: int, seed: int) -> Planted:
    """Return 10 ones per row, Zipf-distributed, and bundles of 4 to 8 columns in random rows, 90 % of each there."""
    random = np.random.default_rng(seed)
    shares = 1 / np.arange(1, n_cols + 1)
    columns = random.choice(n_cols, size=10 * n_rows, p=shares / shares.sum())
    rows = np.repeat(np.arange(n_rows), 10)
    parts, sets = [(rows, columns)], []
    for _ in range(n_bundles):
        own = np.sort(random.choice(n_cols, random.integers(4, 9), replace=False))
        users = random.choice(n_rows, n_uses, replace=False)
        kept = random.random((n_uses, len(own))) < 0.9
        parts.append((np.repeat(users, kept.sum(axis=1)), own[np.nonzero(kept)[1]]))
        sets.append(own)
    row_of, column_of = (np.concatenate(values) for values in zip(*parts, strict=True))
    table = csr_array(coo_array((np.ones(len(row_of), np.uint8), (row_of, column_of)), shape=(n_rows, n_cols)))
    table.data[:] = 1
    return Planted(table, None, tuple(sets))


def cells(scale: float, seed: int, inside: float = 0.7, outside: float = 0.02) -> Planted:
    """Return 12 groups of cells, each with 2000 peaks that are open in 70 % of the group and in 2 % of other cells."""
    random = np.random.default_rng(seed)
    n_rows, n_cols, n_peaks = 20_000, int(100_000 * scale), int(2000 * scale)
    group, order = random.integers(12, size=n_rows), random.permutation(n_cols)
    program_of = np.full(n_cols, -1)
    program_of[order[: 12 * n_peaks]] = np.repeat(np.arange(12), n_peaks)
    columns = []
    for column in range(n_cols):
        share = np.where(group == program_of[column], inside, outside)
        columns.append(np.flatnonzero(random.random(n_rows) < share).astype(np.int32))
    indptr = np.concatenate(([0], np.cumsum([len(rows) for rows in columns])))
    ones = np.ones(indptr[-1], np.uint8)
    table = csr_array(csc_array((ones, np.concatenate(columns), indptr), shape=(n_rows, n_cols)))
    return Planted(table, None, tuple(np.flatnonzero(program_of == program) for program in range(12)))


def baskets(folder: Path, name: str) -> csr_array:
    """Return retail or groceries."""
    with np.load(folder / f"{name}.npz") as stored:
        if "indices" in stored:
            ones = np.ones(len(stored["indices"]), np.uint8)
            return csr_array((ones, stored["indices"], stored["indptr"]), shape=tuple(stored["shape"]))
        n, m = stored["shape"]
        return csr_array(np.unpackbits(stored["X"], axis=1)[:n, :m])


def with_shuffled_columns(X: csr_array, seed: int) -> csr_array:
    """Return a table with the same ones per column and about the same per row, without any other structure.

    Pairs of rows exchange ones that only one of them has, many times.
    """
    random = np.random.default_rng(seed)
    dense = X.toarray().astype(bool)
    for _ in range(200):
        order = random.permutation(len(dense))
        one, other = dense[order[: len(order) // 2]], dense[order[len(order) // 2 : len(order) // 2 * 2]]
        differ = one ^ other
        swap = np.zeros_like(differ)
        for i in range(len(one)):  # as many in each direction
            mine, theirs = np.flatnonzero(differ[i] & one[i]), np.flatnonzero(differ[i] & other[i])
            k = random.integers(min(len(mine), len(theirs)) + 1)
            swap[i, random.permutation(mine)[:k]] = swap[i, random.permutation(theirs)[:k]] = True
        dense[order[: len(one)]] ^= swap
        dense[order[len(one) : 2 * len(one)]] ^= swap
    return csr_array(dense.astype(np.uint8))


def table_of(part: str, folder: Path | None, scale: float, seed: int) -> Planted:
    """Return the table of a part."""
    if part == "bundles":
        return bundles(300_000, 50_000, 200, 200, seed)
    if part == "many-bundles":
        return bundles(2_700_000, 354_000, 300, 500, seed)
    if part == "founders":
        return founders(scale, seed)
    if part == "cells":
        return cells(scale, seed)
    if folder is None:
        raise SystemExit(f"{part} needs the folder of its data")
    if part == "mosaic":
        return mosaic(folder, seed)
    if part == "haplotypes":
        return Planted(haplotypes(folder))
    X = baskets(folder, "retail.sparse" if part == "retail" else "groceries")
    return Planted(with_shuffled_columns(X, seed) if part == "shuffled" else X)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Fit one table; return figures of the fit. The codelength is that of the factors returned."""
    import resource

    part, algebra, seed = options.measure.split(",")
    seed, n_jobs = int(seed), options.jobs
    small = ba.datasets.planted(200, 2100, 3, noise=0.02, random_state=0).X
    for how in ({}, {"n_jobs": n_jobs}):
        ba.factorize(small, algebra=algebra, random_state=0, **how)  # compiles the kernels
    planted = table_of(part, options.folder, options.scale, seed)
    if options.rows is not None:
        planted = planted._replace(table=planted.table[: options.rows], true_bits=None)
    unit = 1 if sys.platform == "darwin" else 1024
    memory, cpu, wall = (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit, time.process_time(), time.perf_counter()
    )  # fmt: skip
    result = ba.factorize(planted.table, algebra=algebra, random_state=seed, n_jobs=n_jobs)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    atoms = result.atoms.to_sparse()
    found = {tuple(atoms.indices[start:stop]) for start, stop in zip(atoms.indptr, atoms.indptr[1:], strict=False)}
    exact = sum(tuple(columns) in found for columns in planted.sets)
    return {
        "part": part, "algebra": algebra, "seed": seed, "rows": result.n_samples, "columns": result.atoms.n_cols,
        "atoms": result.atoms.n_rows, "bits": rescored(planted.table, result), "without": result.bits_without,
        "true": planted.true_bits, "exact": exact, "planted": len(planted.sets),
        "close": sum(best_overlap(columns, found) > 0.8 for columns in planted.sets), "cpu": round(cpu, 1),
        "wall": round(wall, 1), "peak_mb": peak >> 20, "before_mb": memory >> 20, "ended": result.ended,
    }  # fmt: skip


def rescored(table: Any, result: ba.Factorization) -> int:
    """Return the codelength of the factors, computed from the product of sparse matrices, in chunks of rows."""
    n, m = result.n_samples, result.atoms.n_cols
    wrong, atoms, size = np.zeros(m, np.int64), result.atoms.to_sparse().astype(np.int32), max(1, 10**9 // m)
    for start in range(0, n, size):
        rows = slice(start, min(n, start + size))
        data = table[rows] if isinstance(table, csr_array) else table[rows].to_sparse()
        product = result.codes[rows].to_sparse().astype(np.int32) @ atoms
        product.data = product.data % 2 if result.algebra == "xor" else np.minimum(product.data, 1)
        both = data.astype(np.int32).multiply(product)
        for part, sign in ((data, 1), (product, 1), (both, -2)):
            wrong += sign * np.asarray(part.sum(axis=0), np.int64).ravel()
    wrong = np.where(result.bias == 1, n - wrong, wrong)
    bits = string_bits(n, wrong).sum() + string_bits(n, result.uses).sum()
    bits += string_bits(m, result.atoms.row_weights()).sum()
    if result.bias.any():
        bits += string_bits(m, int(result.bias.sum())) + string_bits(n, 0)
    return int(bits)


def best_overlap(columns: NDArray[np.intp], found: set[tuple[int, ...]]) -> float:
    """Return the largest share of columns that an atom has in common with these (Jaccard index)."""
    own = set(columns.tolist())
    return max((len(own & set(atom)) / len(own | set(atom)) for atom in found), default=0.0)


PARTS = {
    "haplotypes": ("xor", "or"), "mosaic": ("or",), "founders": ("or",), "retail": ("or",), "groceries": ("or",),
    "shuffled": ("or",), "bundles": ("or",), "many-bundles": ("or",), "cells": ("or",),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="folder with the data sets")
    parser.add_argument("--only", default=",".join(part for part in PARTS if part != "many-bundles"))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="threads of a fit")
    parser.add_argument("--scale", type=float, default=0.02, help="size of founders and cells")
    parser.add_argument("--rows", type=int, help="use the first rows of each table only")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options)))
        return
    for part in options.only.split(","):
        for algebra in PARTS[part]:
            for seed in range(options.seeds):
                call = [sys.executable, __file__, *sys.argv[1:], "--measure", f"{part},{algebra},{seed}"]
                print(subprocess.run(call, check=True, stdout=subprocess.PIPE, text=True).stdout.strip(), flush=True)


if __name__ == "__main__":
    main()
