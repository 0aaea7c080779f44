"""Compare learning from a stream of batches with a search of all rows: codelength, errors on new rows, CPU seconds.

With a folder of data sets (NAME.npz with ``X``, rows from ``np.packbits``, and ``shape``) it runs on those of the paper
and on digits; without one, on the digits that scikit-learn bundles.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tables import Row, Table, log_row, show

import bitatoms as ba
from bitatoms.model.model import Model
from bitatoms.online.stream import StreamLearner
from bitatoms.parallel import Workers
from bitatoms.search.options import SearchOptions
from bitatoms.search.params import resolve
from bitatoms.validation import as_generator
from datasets import EINSTEIN, MNIST, load

SETS = ("digits_8x8", EINSTEIN, MNIST)
OBJECTIVES = ("errors", "codelength")
MAX_LONGER, MAX_WORSE = 0.015, 0.02  # targets: codelength of the stream, and its errors on new rows
HOLDOUT_EVERY = 10  # one in this many rows is held out
SINGLE_THREAD = Workers(1)


def from_stream(rows: ba.BitMatrix, size: int, seed: int, **how: Any) -> tuple[Model, list[float]]:
    """Return the model learned from rows in batches, and the CPU seconds of each batch."""
    online, seconds = StreamLearner(resolve(SearchOptions(**how)), 0.0, as_generator(seed)), []
    for start in range(0, len(rows), size):
        begin = time.process_time()
        online.partial_fit(rows[start : start + size], SINGLE_THREAD)
        seconds.append(time.process_time() - begin)
    return Model.from_factorization(online.as_result()), seconds


def cost(model: Model, rows: ba.BitMatrix) -> tuple[int, int]:
    """Return the codelength of rows coded with a model, and their wrong bits."""
    block = model.code(rows, SINGLE_THREAD)
    wrong = block.wrong()
    return block.codelength(wrong).total, int(wrong.sum())


def one_seed(data: ba.BitMatrix, seed: int, size: int, shuffled: bool, how: Row) -> Row:
    """Run both methods on all rows, and on all but the held-out ones."""
    order = np.random.default_rng(seed).permutation(len(data))
    held_out, others = (
        data[np.sort(order[: len(data) // HOLDOUT_EVERY])],
        np.sort(order[len(data) // HOLDOUT_EVERY :]),
    )
    stream = order if shuffled else np.arange(len(data))
    begin = time.process_time()
    whole = ba.factorize(data, **how, random_state=seed)
    taken = time.process_time() - begin
    model, seconds = from_stream(data[stream], size, seed, **how)
    part = Model.from_factorization(ba.factorize(data[others], **how, random_state=seed))
    part_online, _ = from_stream(data[stream[np.isin(stream, others)]], size, seed, **how)
    return {
        "batch L": whole.codelength.total,
        "recoded L": cost(Model.from_factorization(whole), data)[0],
        "online L": cost(model, data)[0],
        "batch new": cost(part, held_out)[1],
        "online new": cost(part_online, held_out)[1],
        "batch CPU s": taken,
        "online CPU s": sum(seconds),
        "ms per batch": 1000 * float(np.median(seconds)),
        "longest": 1000 * max(seconds),
    }


def compared(name: str, data: ba.BitMatrix, k: int, objective: str, options: argparse.Namespace) -> Row:
    """Return the means over seeds, for one data set and one number of atoms."""
    how = {"n_components": k, "objective": objective, "algebra": "xor"}
    runs = [one_seed(data, seed, options.batch, not options.in_order, how) for seed in range(options.seeds)]
    mean = {column: float(np.mean([run[column] for run in runs])) for column in runs[0]}
    longer = mean["online L"] / mean["batch L"] - 1
    worse = mean["online new"] / max(1.0, mean["batch new"]) - 1
    row: Row = {"data": name, "k": k, "objective": objective}
    row |= {column: int(mean[column]) for column in ("batch L", "recoded L", "online L")}
    row |= {"longer %": 100 * longer, "than recoded %": 100 * (mean["online L"] / mean["recoded L"] - 1)}
    row |= {"met": "yes" if longer <= MAX_LONGER else "no"}
    row |= {column: int(mean[column]) for column in ("batch new", "online new")}
    row |= {"worse %": 100 * worse, "met too": "yes" if worse <= MAX_WORSE else "no"}
    row |= {column: mean[column] for column in ("batch CPU s", "online CPU s")}
    return log_row(row | {column: int(mean[column]) for column in ("ms per batch", "longest")})


def online(options: argparse.Namespace) -> list[Table]:
    """Return the table of all data sets for `make bench`."""
    chosen = {"folder": options.folder, "sets": options.sets, "seeds": min(3, options.seeds)}
    return streams(
        argparse.Namespace(atoms="32,64", objectives=",".join(OBJECTIVES), batch=512, in_order=False, **chosen)
    )


def streams(options: argparse.Namespace) -> list[Table]:
    """Return the table of all data sets."""
    if options.folder is None:
        sets = {"digits_8x8": ba.datasets.digits()[0]}
    else:
        sets = {name: load(options.folder, name) for name in SETS if (options.folder / f"{name}.npz").exists()}
    if options.sets:
        sets = {name: X for name, X in sets.items() if name in options.sets.split(",")}
    rows = [
        compared(name, ba.BitMatrix.from_dense(X), k, objective, options)
        for name, X in sets.items()
        for k in map(int, options.atoms.split(","))
        for objective in options.objectives.split(",")
    ]
    order = "in the order of the file" if options.in_order else "shuffled"
    note = (
        "batch L: of the search; recoded L: of its model, as transform codes; online L: likewise. new: wrong bits in "
        f"held-out rows. met: at most {MAX_LONGER:.1%} longer; met too: at most {MAX_WORSE:.0%} worse. "
        "ms per batch: median CPU time; longest: of a batch with a search."
    )
    title = f"One pass in batches of {options.batch}, rows {order}, mean of {options.seeds} seeds"
    return [Table(title, rows, note)] if rows else []


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="data sets as NAME.npz; bundled digits without it")
    parser.add_argument("--sets", help="names of data sets, separated by commas (default: all)")
    parser.add_argument("--atoms", default="16,32,64", help="separated by commas (default: %(default)s)")
    parser.add_argument("--objectives", default=",".join(OBJECTIVES), help="separated by commas (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--batch", type=int, default=512, help="rows per batch (default: %(default)s)")
    parser.add_argument("--in-order", action="store_true", help="do not shuffle the rows")
    for table in streams(parser.parse_args(argv)):
        show(table)


if __name__ == "__main__":
    main()
