"""Model files: arrays, and JSON under the key ``bitatoms``, in one .npz file; no pickles, and the version in it."""

from __future__ import annotations

import math
import os
from dataclasses import asdict
from operator import index
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import validation
from .._version import __version__
from ..bits import BitMatrix
from ..core.coding import CODERS
from ..core.model import Model
from ..core.result import Round
from ..mdl import Codelength
from ..table import fitting_picture
from .atomic import atomic_write
from .formats import sniff_format
from .npz import METADATA_KEY, NpzReader, check_metadata_int, encode_metadata, open_npz, write_npz
from .stream import Source

MODEL_FORMAT = "bitatoms model"
VERSION = 1
_COUNTS = ("saved", "ones", "missed")
_KNOWN = {"algebra": ("xor", "or"), "coder": tuple(CODERS), "objective": ("codelength", "errors")}
# Options of reading that say what the cells mean, and so hold for all data of a model.
CELL_OPTIONS = ("binarize", "missing", "duplicates", "layer", "blocks")
_CHOICES = {"missing": ("refuse", "zero"), "duplicates": ("refuse", "number")}
_KEPT = tuple(name for name in Round._fields if name != "seconds")  # the same seed gives the same file


class LoadedModel(NamedTuple):
    """What a model file holds."""

    model: Model
    parameters: dict[str, Any]  # that it was learned with
    reading: dict[str, Any]  # options of `bitatoms.read` that the data were read with


def save(
    model: Model,
    path: str | os.PathLike[str],
    parameters: dict[str, Any] | None = None,
    reading: dict[str, Any] | None = None,
) -> None:
    """Write a model, with the parameters it was learned with as far as they are plain values."""
    about = {
        "format": MODEL_FORMAT,
        "version": VERSION,
        "bitatoms": __version__,
        "n_samples": model.n_samples,
        "n_features": model.atoms.n_cols,
        "algebra": model.algebra,
        "coder": model.coder,
        "objective": model.objective,
        "ended": model.ended,
        "codelength": asdict(model.codelength),
        "codelengths": dict(model.codelengths),
        "bits_without": model.bits_without,
        "max_atoms_per_sample": model.max_atoms_per_sample,
        "residual_limit": model.residual_limit,
        "columns": model.columns,
        "picture": model.picture,
        "history_fields": _KEPT,
        "history": [[getattr(row, name) for name in _KEPT] for row in model.history],
        "parameters": {name: value for name, value in (parameters or {}).items() if is_json_scalar(value)},
        "reading": reading or {},
    }
    arrays: dict[str, NDArray[Any]] = {
        METADATA_KEY: encode_metadata(about),
        "atoms": np.frombuffer(model.atoms.to_bytes(), np.uint8).reshape(model.atoms.n_rows, -1)
        if model.atoms.n_rows
        else np.zeros((0, -(-model.atoms.n_cols // 8)), np.uint8),
        "bias": model.bias,
        "wrong": model.wrong,
        "uses": model.uses,
    }
    arrays |= {name: value for name in _COUNTS if (value := getattr(model, name)) is not None}
    with atomic_write(Path(path)) as made:
        write_npz(made, arrays)


def load(path: str | os.PathLike[str]) -> LoadedModel:
    """Read a model, the parameters it was learned with, and how the data were read."""
    source = Source(Path(path), "npz", os.fspath(path))
    if not source.path.exists():
        raise source.error("there is no such file")
    found = None if source.path.is_file() and not source.path.stat().st_size else sniff_format(source.path)
    if source.path.is_dir() or found != "npz":
        what = f"it looks like {found!r}" if found else "it is no .npz file"
        raise source.error(f"not a model ({what}); 'bitatoms fit DATA -o MODEL.npz' makes one")
    with open_npz(source) as file:
        about = file.read_metadata(MODEL_FORMAT, VERSION, "; 'bitatoms fit DATA -o MODEL.npz' makes a model")
        try:
            return LoadedModel(_model(source, file, about), dict(about["parameters"]), _reading(about["reading"]))
        except (KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError) as error:
            if isinstance(error, ValueError) and str(error).startswith(source.name):
                raise
            raise source.error(f"a corrupt model: {' '.join(str(error).split())[:200]}") from error


def is_json_scalar(value: Any) -> bool:
    """Whether JSON can hold a value and give it back."""
    return value is None or isinstance(value, (bool, int, float, str))


def _model(source: Source, file: NpzReader, about: dict[str, Any]) -> Model:
    """The model that the arrays and their description make, every size checked."""
    m, n = check_metadata_int(about, "n_features"), check_metadata_int(about, "n_samples")
    packed = file.read_array("atoms")
    if packed.ndim != 2:
        raise ValueError(f"its atoms have {packed.ndim} dimensions")
    p = len(packed)
    atoms = BitMatrix.from_bytes(packed.astype(np.uint8, casting="safe").tobytes(), p, m)
    bias = file.read_array("bias").astype(np.uint8, casting="safe")
    if bias.shape != (m,) or (bias > 1).any():
        raise ValueError("its bias does not fit its atoms")
    counts = {"wrong": m, "uses": p} | {name: p if name == "saved" else m for name in _COUNTS if name in file}
    arrays = {name: _counts(file, name, length, n if name != "saved" else None) for name, length in counts.items()}
    fields = tuple(about["history_fields"])
    unknown: dict[str, Any] = {"seconds": math.nan, "rows": n}
    history = tuple(Round(**unknown | dict(zip(fields, row, strict=True))) for row in about["history"])
    for name, known in _KNOWN.items():
        if about[name] not in known:
            raise ValueError(f"its {name} is {str(about[name])[:20]!r}")
    columns, picture = about["columns"], about["picture"]
    if columns is not None and (len(columns) != m or not all(isinstance(name, str) for name in columns)):
        raise ValueError("its names do not fit its atoms")
    limited = about["max_atoms_per_sample"] is not None
    return Model(
        atoms=atoms,
        bias=bias,
        algebra=about["algebra"],
        codelength=Codelength(**{part: int(bits) for part, bits in about["codelength"].items()}),
        history=history,
        ended=str(about["ended"]),
        coder=about["coder"],
        objective=about["objective"],
        codelengths={str(name): int(bits) for name, bits in about["codelengths"].items()},
        bits_without=None if about["bits_without"] is None else int(about["bits_without"]),
        n_samples=n,
        max_atoms_per_sample=check_metadata_int(about, "max_atoms_per_sample", 1) if limited else None,
        residual_limit=check_metadata_int(about, "residual_limit"),
        columns=None if columns is None else tuple(columns),
        picture=None if picture is None else fitting_picture((picture[0], None), (n, m)),
        **arrays,
    )


def _reading(reading: Any) -> dict[str, Any]:
    """How the data were read, every option of the kind that `bitatoms.read` takes; others are passed over."""
    known = {name: reading[name] for name in CELL_OPTIONS if name in reading}
    for name, value in known.items():
        if name == "blocks":
            known[name] = tall, wide = tuple(map(index, value))
            fits = min(tall, wide) > 0
        elif name == "binarize":
            fits = validation.checked_threshold(value) is not None
        else:
            fits = isinstance(value, str) and value in _CHOICES.get(name, (value,))
        if not fits:
            raise ValueError(f"it says that its data were read with {name}={str(value)[:20]}")
    return known


def _counts(file: NpzReader, name: str, length: int, most: int | None) -> NDArray[np.int64]:
    """Counts of one kind, of the length they must have; ``most`` is the number of samples."""
    counts = file.read_array(name).astype(np.int64, casting="safe")
    if counts.shape != (length,) or (most is not None and ((counts < 0) | (counts > most)).any()):
        raise ValueError(f"its {name} do not fit its atoms")
    return counts
