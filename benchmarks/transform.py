"""Compare the codes of `transform` with those of the search: codelength and CPU seconds, with and without memory.

With a folder of data sets (NAME.npz with ``X``, rows from ``np.packbits``, and ``shape``) it runs on all of them that
have at most ``--max-cells`` cells; without one, on those that scikit-learn bundles.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from tables import Row, Table, log_row, show

import bitatoms as ba
from bitatoms.model.model import Model
from bitatoms.parallel import Workers
from datasets import bundled_sets, chosen, load

MAX_LONGER = 0.005  # target: codelength of transform's codes against those of the search
SINGLE_THREAD = Workers(1)


def recoded(model: Model, data: ba.BitMatrix) -> tuple[int, float]:
    """Return the codelength of rows as transform codes them, and the CPU seconds that it takes."""
    begin = time.process_time()
    block = model.code(data, SINGLE_THREAD)
    return block.codelength(block.wrong()).total, time.process_time() - begin


def transform_row(name: str, data: ba.BitMatrix, algebra: str, atoms: str) -> Row:
    """Search one data set, and code it again."""
    how: dict[str, Any] = {"n_components": atoms if atoms == "mdl" else int(atoms), "objective": "codelength"}
    begin = time.process_time()
    result = ba.factorize(data, algebra=algebra, **how, random_state=0)
    searched = time.process_time() - begin
    model, bits = Model.from_factorization(result), result.codelength.total
    again, seconds = recoded(model, data)
    scratch, scratch_seconds = recoded(replace(model, remembered=None), data)
    row: Row = {"data": name, "algebra": algebra, "atoms": atoms, "p": len(result.atoms)}
    row |= {"remembered": 0 if model.remembered is None else len(model.remembered)}
    row |= {"search L": bits, "transform L": again, "longer %": 100 * (again / bits - 1)}
    row |= {"met": "yes" if again <= (1 + MAX_LONGER) * bits else "no", "without memory %": 100 * (scratch / bits - 1)}
    return log_row(row | {"search CPU s": searched, "transform CPU s": seconds, "without": scratch_seconds})


def data_sets(options: argparse.Namespace) -> dict[str, np.ndarray]:
    """Return the data sets of the folder that are small enough, or the bundled ones."""
    if options.folder is None:
        return {name: X for name, X in bundled_sets().items() if chosen(options, name)}
    sets = {}
    for path in sorted(options.folder.glob("*.npz")):
        with np.load(path) as stored:
            is_table = {"X", "shape"} <= set(stored) and np.prod(stored["shape"]) <= options.max_cells
        if is_table and chosen(options, path.stem):
            sets[path.stem] = load(options.folder, path.stem)
    return sets


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="data sets as NAME.npz; bundled ones without it")
    parser.add_argument("--sets", help="names of data sets, separated by commas (default: all)")
    parser.add_argument("--atoms", default="mdl,32,64", help="separated by commas (default: %(default)s)")
    parser.add_argument("--algebras", default="xor,or", help="separated by commas (default: %(default)s)")
    parser.add_argument("--max-cells", type=float, default=3e6, help="of a table (default: %(default)s)")
    options = parser.parse_args(argv)
    rows = [
        transform_row(name, ba.BitMatrix.from_dense(X), algebra, atoms)
        for name, X in data_sets(options).items()
        for algebra in options.algebras.split(",")
        for atoms in options.atoms.split(",")
    ]
    note = (
        "The objective is the codelength. remembered: codes that the model remembers; longer: transform L against "
        f"search L; met: at most {MAX_LONGER:.1%} longer; without memory: the same from scratch only."
    )
    show(Table("Codes of transform, seed 0, n_jobs=1", rows, note))


if __name__ == "__main__":
    main()
