"""Print a hash of what each kind of search, fit, file and stream gives, to compare before and after a change.

Run ``python benchmarks/hashes.py > before.txt``, change the code, then run it with ``--compare before.txt``: it exits
with 1 when a line differs. A change that alters results on purpose shows both lines in its commit message.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import bitatoms as ba

_TEXT = ("table.csv", "table.tsv", "table.basket", "table.mtx")  # formats whose bytes no library decides
_BINARY = ("table.npz", "table.npy", "table.parquet", "table.feather", "table.h5ad", "table.zarr")


def digest(*parts: Any) -> str:
    """Return a short hash of arrays, bit matrices and values that JSON can hold."""
    state = hashlib.blake2b(digest_size=10)
    for part in parts:
        if isinstance(part, ba.BitMatrix):
            part = part.to_dense()
        if isinstance(part, np.ndarray):
            state.update(f"{part.dtype} {part.shape}".encode() + np.ascontiguousarray(part).tobytes())
        elif isinstance(part, bytes):
            state.update(part)
        else:
            state.update(json.dumps(part, default=str).encode())
    return state.hexdigest()


def of_model(model: Any) -> str:
    """Return the hash of a factorization or a model: its bits, counts and history, without seconds."""
    length = model.codelength
    history = [tuple(row)[:-1] for row in model.history]
    codes = getattr(model, "codes", None)
    arrays = (model.atoms, model.bias, model.wrong, model.uses if codes is None else codes)
    counts = [None if part is None else part.tolist() for part in (model.saved, model.ones, model.missed)]
    words = (model.algebra, model.ended, model.coder, model.objective, dict(model.codelengths), model.bits_without)
    return digest(*arrays, counts, words, (length.errors, length.codes, length.atoms), history)


def of_files(folder: Path) -> str:
    """Return the hash of the tables that files of several formats give back, and of the bytes of the plain ones."""
    bits = ba.datasets.planted(70, 65, 3, noise=0.05, random_state=1).X
    table = ba.Table(ba.BitMatrix.from_dense(bits), columns=tuple(f"c{i}" for i in range(65)))
    parts: list[Any] = []
    for name in _TEXT + _BINARY:
        ba.write(table, folder / name)
        back = ba.read(folder / name)
        parts += [back.bits, back.columns, (folder / name).read_bytes() if name in _TEXT else b""]
    return digest(*parts)


def of_model_file(model: ba.BinaryDictionaryLearning, folder: Path) -> str:
    """Return the hash of a model file: arrays and JSON but the parameters, whose names may change, and newer fields."""
    model.save(folder / "model.npz")
    with np.load(folder / "model.npz") as file:
        arrays = {name: file[name] for name in file.files}
    about = json.loads(arrays.pop("bitatoms").tobytes())
    for name in ("parameters", "bitatoms", "compared", "rows_hash"):
        about.pop(name, None)
    arrays.pop("complete", None)
    return digest(sorted(about.items()), *(arrays[name] for name in sorted(arrays)))


def of_checkpoint(folder: Path) -> str:
    """Return the hash of the arrays that a checkpoint holds after a search by sample."""
    X = ba.datasets.planted(3000, 70, 5, noise=0.03, random_state=5).X
    ba.factorize(X, search_rows=600, checkpoint=folder / "checkpoint", random_state=0)
    with np.load(folder / "checkpoint" / "state.npz") as file:
        names = [name for name in sorted(file.files) if name != "bitatoms" and not name.endswith(" complete")]
        return digest(*(file[name] for name in names))


def cases() -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield a name and what to compute for each case."""
    planted = ba.datasets.planted
    xor = planted(400, 70, 5, code_density=0.3, noise=0.03, random_state=0).X
    large = planted(5000, 70, 5, code_density=0.3, noise=0.03, random_state=1).X
    overlaid = planted(400, 130, 6, algebra="or", noise=0.03, random_state=2).X
    digits, baskets = ba.datasets.digits()[0][:600], ba.datasets.baskets(1500, random_state=0)
    dense = 1 - planted(300, 64, 3, algebra="or", noise=0.02, random_state=3).X

    def search(X: Any, n_components: Any = "mdl", **settings: Any) -> Callable[[], str]:
        return lambda: of_model(ba.factorize(X, n_components, random_state=0, **settings))

    for algebra in ("xor", "or", "auto"):
        yield f"fast mdl {algebra}, digits", search(digits, algebra=algebra)
    yield "fast mdl xor, planted", search(xor)
    yield "fast mdl or, planted, 2 threads", search(overlaid, algebra="or", n_jobs=2)
    yield "fast mdl or, baskets", search(baskets, algebra="or")
    yield "fast mdl xor, mostly ones", search(dense)
    yield "fast mdl xor, n_init=2, limits", search(xor, n_init=2, max_atoms_per_sample=3, residual_limit=2)
    yield "fast mdl xor, beam", search(xor, coder="beam")
    yield "fast mdl xor, max_iter=3", search(xor, max_iter=3)
    yield "fast mdl xor, max_components=3", search(digits, max_components=3)
    for init in ("samples", "bernoulli", "spread", "greedy"):
        yield f"fast mdl xor, init={init}", search(xor, init=init)
    yield "fast mdl xor, init=array", search(xor, init=xor[:6])
    for k in (5, 12, 24):
        yield f"fast k={k} xor, digits", search(digits, k)
        yield f"fast k={k} or, baskets", search(baskets, k, algebra="or")
    yield "fast k=6 or, codelength", search(overlaid, 6, algebra="or", objective="codelength")
    yield "fast k=20 xor, 5000 rows", search(large, 20)
    yield "thorough mdl xor, planted", search(xor, search="thorough")
    yield "thorough mdl or, planted", search(overlaid, search="thorough", algebra="or")
    yield "thorough k=18 or, digits", search(digits, 18, search="thorough", algebra="or")
    for update in ("mob", "k-prox"):
        yield f"paper mdl {update}, digits", search(digits, search="paper", update=update)
        yield f"paper k=9 {update} or, planted", search(overlaid, 9, search="paper", update=update, algebra="or")
    yield "paper k=6 greedy, bernoulli", search(xor, 6, search="paper", coder="greedy", init="bernoulli")
    yield "paper k=5 exact", search(xor, 5, search="paper", coder="exact")
    yield "sample mdl xor", search(large, search_rows=700)
    yield "sample mdl or, thorough", search(large, search_rows=700, search="thorough", algebra="or")
    yield "sample k=6 xor", search(large, 6, search_rows=700)
    yield "sample k=20 or", search(large, 20, search_rows=700, algebra="or")
    yield "proximus", lambda: of_model(ba.proximus(xor, radius=6, random_state=0))

    def estimator(n_components: Any = "mdl", **settings: Any) -> ba.BinaryDictionaryLearning:
        return ba.BinaryDictionaryLearning(n_components, random_state=0, **settings)

    def stream(n_components: Any, **settings: Any) -> str:
        model = estimator(n_components, **settings)
        for start in range(0, 5000, 400):
            model.partial_fit(large[start : start + 400])
        return of_model(model.as_model())

    yield "stream mdl xor", lambda: stream("mdl")
    yield "stream mdl or, forget", lambda: stream("mdl", algebra="or", forget=1e-3)
    yield "stream k=6 xor", lambda: stream(6)
    yield "stream k=20 or, codelength", lambda: stream(20, algebra="or", objective="codelength")

    def coded(model: ba.BinaryDictionaryLearning, X: Any) -> str:
        return digest(np.asarray(model.transform(X)), np.asarray(model.score_samples(X)))

    yield "fit, transform, score_samples", lambda: coded(estimator(algebra="or").fit(baskets), baskets)

    def store() -> str:
        with tempfile.TemporaryDirectory() as folder:
            packed = ba.pack(large, Path(folder) / "large.zarr")
            model = estimator(search_rows=700, max_memory="64 MiB").fit(packed)
            return of_model(model.as_model()) + coded(model, packed)

    def dask() -> str:
        import dask
        import dask.array as da

        X = da.from_array(large, chunks=(900, 70))
        with dask.config.set(scheduler="synchronous"):
            model = estimator(search_rows=700).fit(X)
            return of_model(model.as_model()) + coded(model, X)

    def with_folder(task: Callable[[Path], str]) -> Callable[[], str]:
        def run() -> str:
            with tempfile.TemporaryDirectory() as folder:
                return task(Path(folder))

        return run

    yield "store", store
    yield "dask", dask
    yield "files", with_folder(of_files)
    yield "model file", with_folder(lambda folder: of_model_file(estimator().fit(baskets), folder))
    yield "checkpoint", with_folder(of_checkpoint)
    for name in ba.baselines.__all__:
        method = getattr(ba.baselines, name)
        if not isinstance(method, type):  # dude is a function of a picture
            continue
        settings = {"random_state": 0} if "random_state" in method().get_params() else {}
        yield (
            f"baseline {name}",
            lambda method=method, settings=settings: digest(
                method(n_components=5, **settings).fit(overlaid).components_, method(5, **settings).fit_transform(xor)
            ),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compare", type=Path, help="the output of an earlier run")
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    arguments = parser.parse_args()
    before = None
    if arguments.compare:
        before = dict(line.rsplit("  ", 1) for line in arguments.compare.read_text().splitlines())
    different = []
    for name, compute in cases():
        if arguments.only not in name:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = compute()
        if before is not None and before.get(name) != found:
            different.append(name)
            print(f"{name}  {before.get(name)} -> {found}", flush=True)
        elif before is None:
            print(f"{name}  {found}", flush=True)
    if before is not None:
        print(f"{len(different)} of {len(before)} cases differ")
        sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
