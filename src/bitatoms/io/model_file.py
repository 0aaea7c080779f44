"""Model files: arrays, and JSON metadata under the key ``bitatoms``, in one .npz file without pickles."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._version import __version__
from ..bits import BitMatrix
from ..columns.table import check_picture
from ..engine.codelength import Codelength
from ..engine.coding import CODERS, max_remembered
from ..engine.prices import ErrorCosts
from ..imputation.pool import UNFITTED, Pool
from ..imputation.regression import Regression
from ..model.model import Model
from ..model.patterns import Recurrence
from ..model.result import Round
from ..parameters import Param, check
from ..sparse_bits import Bits, SparseBits, packed
from ..validation import check_fraction
from .annotations import decode_annotations, encode_annotations
from .atomic import atomic_write
from .errors import FileError
from .formats.registry import sniff_format
from .npz import (
    METADATA_KEY,
    NpzReader,
    check_metadata_hash,
    check_metadata_int,
    check_metadata_names,
    encode_metadata,
    open_npz,
    packed_bytes,
    sparse_arrays,
    write_npz,
)
from .options import remembered
from .stream import Source

MODEL_FORMAT = "bitatoms model"
VERSION = 5  # the only one that is read
_FEATURE_SETS = ("constraints__apart", "constraints__together")  # lists of names or indices
_FIXED_ATOMS = "constraints__fixed_atoms"  # the first atoms of the model
_COSTS = ("false_negative_cost", "false_positive_cost")  # stored as arrays
_OPTIONAL_COUNTS = ("saved", "ones", "missed", "known", "complete", "lacking", "atom_known")
_COUNTS_PER_ATOM = ("uses", "saved", "complete", "atom_known")
_HISTORY_TEXTS = ("move", "algebra")
_HISTORY_FIELDS = tuple(name for name in Round._fields if name != "seconds")  # the same seed gives the same file


def _read_choice(metadata: dict[str, Any], name: str, choices: Collection[str]) -> str:
    """Return a text of the metadata that must be one of several."""
    if metadata[name] not in choices:
        raise ValueError(f"its {name} is {str(metadata[name])[:20]!r}")
    return str(metadata[name])


def _read_optional_int(metadata: dict[str, Any], name: str, least: int = 0) -> int | None:
    """Return an integer of the metadata, or None."""
    return None if metadata[name] is None else check_metadata_int(metadata, name, least)


def _read_ints(metadata: dict[str, Any], name: str) -> dict[str, int]:
    """Return integers of the metadata by name."""
    return {key: check_metadata_int(metadata[name], key) for key in metadata[name]}


_FIELDS: dict[str, Callable[[dict[str, Any], str], Any]] = {  # of a model, as JSON, and how they are read
    "n_samples": check_metadata_int,
    "algebra": partial(_read_choice, choices=("xor", "or")),
    "coder": partial(_read_choice, choices=tuple(CODERS)),
    "objective": partial(_read_choice, choices=("codelength", "errors")),
    "ended": lambda metadata, name: str(metadata[name]),
    "codelengths": _read_ints,
    "compared": _read_ints,
    "bits_without": _read_optional_int,
    "beyond_chance": _read_optional_int,
    "has_bias": lambda metadata, name: metadata[name] is not False,
    "max_atoms_per_sample": partial(_read_optional_int, least=1),
    "residual_limit": check_metadata_int,
}


class LoadedModel(NamedTuple):
    """The content of a model file."""

    model: Model
    parameters: dict[str, Any]  # of the estimator that learned it, by name as in ``get_params()``
    reading: dict[str, Any]  # options of `bitatoms.read` for its data


def save(
    model: Model,
    path: str | os.PathLike[str],
    parameters: dict[str, Any] | None = None,
    reading: dict[str, Any] | None = None,
) -> None:
    """Write a model, with those of its parameters that can be stored as JSON."""
    metadata = {
        "format": MODEL_FORMAT,
        "version": VERSION,
        "bitatoms": __version__,
        "n_features": model.atoms.n_cols,
        **{name: getattr(model, name) for name in _FIELDS},
        "codelength": asdict(model.codelength),
        "rows_hash": None if model.rows_hash is None else f"{model.rows_hash:x}",
        "columns": model.columns,
        "picture": model.picture,
        "column_data": encode_annotations(model.column_data),
        "history_fields": _HISTORY_FIELDS,
        "history": [[getattr(row, name) for name in _HISTORY_FIELDS] for row in model.history],
        "parameters": {
            name: value
            for name, value in (parameters or {}).items()
            if name not in _COSTS and (_is_json_scalar(value) or name in _FEATURE_SETS)
        },
        "reading": reading or {},
    }
    if (fixed := (parameters or {}).get(_FIXED_ATOMS)) is not None:
        metadata["n_fixed"] = fixed.shape[0] if hasattr(fixed, "shape") else len(fixed)  # they are the first atoms
    if model.pool is not None:
        metadata["pool"] = model.pool._asdict()
    if model.item_pool is not None:
        metadata["item_pool"] = model.item_pool._asdict()
    if model.recurrence is not None:
        metadata["recurrence"] = model.recurrence.settings  # the counts are the array ``recurs``
    arrays: dict[str, NDArray[Any]] = {
        METADATA_KEY: encode_metadata(metadata),
        **(
            sparse_arrays("atom", model.atoms)
            if isinstance(model.atoms, SparseBits)
            else {"atoms": packed_bytes(model.atoms)}
        ),
        "bias": model.bias,
        "wrong": model.wrong,
        "uses": model.uses,
    }
    arrays |= {name: value for name in _OPTIONAL_COUNTS if (value := getattr(model, name)) is not None}
    if model.costs is not None:
        arrays |= {"missed_costs": model.costs.missed, "added_costs": model.costs.added}
    if model.recurrence is not None:
        arrays["recurs"] = model.recurrence.counts
    if model.regression is not None:
        arrays |= {"regression_shares": model.regression.shares, "regression_weights": model.regression.weights}
    if model.remembered is not None:
        arrays["remembered"] = packed_bytes(model.remembered)
    with atomic_write(Path(path)) as temporary:
        write_npz(temporary, arrays)


def load(path: str | os.PathLike[str], declared: Mapping[str, tuple[Any, Param]] | None = None) -> LoadedModel:
    """Read a model file, and the parameters declared, if any; raise FileError if it is not one or is corrupt."""
    source = Source(Path(path), "npz", os.fspath(path))
    if not source.path.exists():
        raise source.error("there is no such file")
    found = None if source.path.is_file() and not source.path.stat().st_size else sniff_format(source.path)
    if source.path.is_dir() or found != "npz":
        problem = f"it looks like {found!r}" if found else "it is not an .npz file"
        raise source.error(f"not a model ({problem}); 'bitatoms fit DATA -o MODEL.npz' writes one")
    with open_npz(source) as file:
        hint = "; 'bitatoms fit DATA -o MODEL.npz' writes a model"
        metadata = file.read_metadata(MODEL_FORMAT, VERSION, "; fit it again", hint)
        try:
            model = _read_model(file, metadata)
            parameters = _read_parameters(metadata["parameters"], declared or {}) | _cost_parameters(model.costs)
            if "n_fixed" in metadata:
                n_fixed = min(check_metadata_int(metadata, "n_fixed"), model.atoms.n_rows)
                parameters[_FIXED_ATOMS] = packed(model.atoms[np.arange(n_fixed)])
            return LoadedModel(model, parameters, remembered(metadata["reading"]))
        except FileError:
            raise
        except KeyError as error:
            raise source.error(f"a corrupt model: it has no {str(error)[:40]}") from error
        except (IndexError, TypeError, AttributeError, ValueError, OverflowError) as error:
            raise source.error(f"a corrupt model: {' '.join(str(error).split())[:200]}") from error


def _is_json_scalar(value: Any) -> bool:
    """Return whether a value survives a round trip through JSON."""
    return value is None or isinstance(value, (bool, int, float, str))


def _read_model(file: NpzReader, metadata: dict[str, Any]) -> Model:
    """Return the model of the arrays and their metadata, after checking every size."""
    n_features, n_samples = check_metadata_int(metadata, "n_features"), check_metadata_int(metadata, "n_samples")
    file.source.check_memory(file.n_bytes, "its arrays")
    is_sparse = "atom_columns" in file
    atoms: Bits = file.read_sparse_bits("atom", n_features) if is_sparse else file.read_bits("atoms", n_features)
    n_atoms = atoms.n_rows
    bias = file.read_array("bias").astype(np.uint8, casting="safe", copy=False)
    if bias.shape != (n_features,) or (bias > 1).any():
        raise ValueError("its bias does not fit its atoms")
    lengths = dict.fromkeys(_COUNTS_PER_ATOM, n_atoms) | {"lacking": atoms.count()}
    counts = {
        name: _read_counts(file, name, lengths.get(name, n_features), n_samples)
        for name in ("wrong", "uses", *(name for name in _OPTIONAL_COUNTS if name in file))
    }
    known = counts.get("known", n_samples)
    for name in ("wrong", "ones"):
        if name in counts and (counts[name] > known).any():
            raise ValueError(f"its {name} are more than its known cells")
    others: dict[str, Any] = counts | {name: read(metadata, name) for name, read in _FIELDS.items()}
    picture, regression = metadata["picture"], _read_regression(file, n_features)
    bits = {field.name: check_metadata_int(metadata["codelength"], field.name) for field in fields(Codelength)}
    return Model(
        atoms=atoms,
        bias=bias,
        codelength=Codelength(**bits),
        history=_read_history(metadata),
        rows_hash=check_metadata_hash(metadata, "rows_hash"),
        columns=check_metadata_names(metadata, "columns", n_features),
        column_data=decode_annotations(metadata["column_data"], n_features, "column"),
        picture=None if picture is None else check_picture((picture[0], None), (n_samples, n_features)),
        recurrence=_read_recurrence(file, metadata, n_atoms),
        remembered=_read_remembered(file, atoms),
        costs=_read_costs(file, n_features),
        pool=_read_pool(metadata, "pool", 2),
        regression=regression,
        item_pool=_read_pool(metadata, "item_pool", 2 if regression is None else 3),
        **others,
    )


def _read_pool(metadata: dict[str, Any], name: str, n_weights: int) -> Pool | None:
    """Return how predictions are weighed, after checking every number; None if this is not stored."""
    if name not in metadata:
        return None
    pool = Pool(*(tuple(map(float, metadata[name][part])) for part in Pool._fields))
    lengths = n_weights, len(UNFITTED.curve)
    if tuple(map(len, pool)) != lengths or not np.isfinite(sum(pool, ())).all():
        raise ValueError(f"its {name} does not fit a model")
    return pool


def _read_regression(file: NpzReader, n_features: int) -> Regression | None:
    """Return what predicts cells beside the atoms, after checking every number; None if this is not stored."""
    if "regression_shares" not in file:
        return None
    names = "regression_shares", "regression_weights"
    shares, weights = (file.read_array(name).astype(np.float64, casting="safe", copy=False) for name in names)
    is_finite = np.isfinite(shares).all() and np.isfinite(weights).all()
    if shares.shape != (n_features,) or weights.shape != (n_features, n_features) or not is_finite:
        raise ValueError("its regression does not fit its atoms")
    return Regression(shares, weights)


def _read_costs(file: NpzReader, n_features: int) -> ErrorCosts | None:
    """Return the costs of errors, after checking them; None if none are stored."""
    if "missed_costs" not in file:
        return None
    costs = [file.read_array(name).astype(np.float64, casting="safe") for name in ("missed_costs", "added_costs")]
    if any(each.shape != (n_features,) or not (each >= 1).all() for each in costs):
        raise ValueError("its costs of errors do not fit its atoms")
    return ErrorCosts(*costs)


def _cost_parameters(costs: ErrorCosts | None) -> dict[str, Any]:
    """Return the costs of errors as parameters: one cost if it is the same in all columns."""
    if costs is None:
        return {}
    pairs = zip(_COSTS, (costs.missed, costs.added), strict=True)
    return {name: float(each[0]) if (each == each[:1]).all() and len(each) else each for name, each in pairs}


def _read_remembered(file: NpzReader, atoms: Bits) -> BitMatrix | None:
    """Return the remembered codes, not more than a fit remembers in a window of any width; None if none are stored."""
    if "remembered" not in file:
        return None
    remembered = file.read_bits("remembered", atoms.n_rows)
    if len(remembered) > max_remembered(1):
        raise ValueError(f"its {len(remembered)} remembered codes are too many")
    return remembered


def _read_recurrence(file: NpzReader, metadata: dict[str, Any], n_atoms: int) -> Recurrence | None:
    """Return how often each atom was found again, after checking every value; None if this is not stored."""
    if "recurs" not in file:
        return None
    settings = metadata["recurrence"]
    n_resamples = check_metadata_int(settings, "n_resamples", 1)
    shares = (check_fraction(f"recurrence {name}", settings[name]) for name in ("share", "threshold"))
    return Recurrence(_read_counts(file, "recurs", n_atoms, n_resamples), n_resamples, *shares)


def _read_history(metadata: dict[str, Any]) -> tuple[Round, ...]:
    """Return the history, after checking every value."""
    history = []
    for row in metadata["history"]:
        entry = dict(zip(metadata["history_fields"], row, strict=True))
        if not all(isinstance(entry[name], str) for name in _HISTORY_TEXTS):
            raise ValueError("its history is malformed")
        numbers = {name: check_metadata_int(entry, name) for name in entry.keys() - {*_HISTORY_TEXTS}}
        history.append(Round(**entry | numbers, seconds=math.nan))
    return tuple(history)


def _read_parameters(stored: dict[str, Any], declared: Mapping[str, tuple[Any, Param]]) -> dict[str, Any]:
    """Return the parameters that are declared, after checking their values; others in the file are ignored."""
    known = {name: value for name, value in stored.items() if name in declared}
    for name, value in known.items():
        check(name, value, declared[name])
    return known


def _read_counts(file: NpzReader, name: str, length: int, maximum: int) -> NDArray[np.int64]:
    """Return counts of the given length; all but the bits saved lie between 0 and the maximum."""
    counts = file.read_array(name).astype(np.int64, casting="safe", copy=False)
    if counts.shape != (length,) or (name != "saved" and ((counts < 0) | (counts > maximum)).any()):
        raise ValueError(f"its {name} do not fit its atoms")
    return counts
