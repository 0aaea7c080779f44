"""Compare the codelengths of both algebras: the table of docs/how-it-works/xor-and-or.md.

``python benchmarks/algebras.py FOLDER [--sets digits_8x8,bmf_zoo]``: all tables of the folder by default.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from tables import Row, Table, log_row, show

import bitatoms as ba
from datasets import load

LEAST_GAIN = 0.05  # of XOR, with which "auto" keeps it


def compared(name: str, folder: Path) -> Row:
    """Return the codelengths of a table under OR and XOR, and how many atoms are complete in no row."""
    with np.load(folder / f"{name}.npz") as stored:
        packed = stored.get("known")
        unknown = None if packed is None else np.unpackbits(packed, axis=1, count=int(stored["shape"][1])) == 0
    X = load(folder, name)
    begin, found = time.process_time(), {}
    for algebra in ("or", "xor"):
        found[algebra] = ba.factorize(X, algebra=algebra, random_state=0, mask=unknown)
    of_or, of_xor = (found[algebra].codelength.total for algebra in ("or", "xor"))
    nowhere = [f"{(result.complete == 0).sum()} of {result.atoms.n_rows}" for result in found.values()]
    return {
        "table": f"{name}, {X.shape[0]} x {X.shape[1]}",
        "OR": of_or,
        "XOR": of_xor,
        "XOR, %": 100 * (of_xor / of_or - 1),
        "complete in no row, OR": nowhere[0],
        "XOR ": nowhere[1],
        "kept": "XOR" if of_xor < (1 - LEAST_GAIN) * of_or else "OR",
        "CPU s": time.process_time() - begin,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", help="tables, by default all of the folder")
    options = parser.parse_args()
    names = options.sets.split(",") if options.sets else sorted(path.stem for path in options.folder.glob("*.npz"))
    rows = [log_row(compared(name, options.folder)) for name in names]
    show(Table("codelengths of both algebras", rows, "one seed"))


if __name__ == "__main__":
    main()
