"""The state of a search as JSON and arrays, and back, every size checked: kernels look at none."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..core.block import lanes_of
from ..core.coding import CODERS
from ..core.counts import Counts
from ..core.pass_spec import PassSpec
from ..core.result import Round
from ..io.npz import NpzReader, check_metadata_int
from ..kernels.structs import MAX_PRICE, Prices, Rule, covering
from .passes import PassState
from .source import PartialPass

_CODERS = (*CODERS, "mend")
_AXES = {"uses": "p", "wrong": "m", "free": "pm", "bad": "pm", "pairs": "pp", "ones": "m", "missed": "m"}  # of Counts

Arrays = dict[str, NDArray[Any]]


def described(state: PassState) -> tuple[dict[str, Any], Arrays]:
    """A state as what JSON can hold, and arrays by name."""
    arrays: Arrays = {}
    about = {
        "algebra": state.algebra,
        "ended": state.ended,
        "best": state.best,
        "finished": state.finished,
        "orders": [_describe_order(order, f"order {i}", arrays) for i, order in enumerate(state.orders)],
        "counts": None if state.counts is None else _describe_counts(state.counts, "counts", arrays),
        "partial": None,
        "history_fields": Round._fields,
        "history": state.history,
    }
    if state.partial is not None:
        counts = _describe_counts(state.partial.counts, "partial", arrays)
        about["partial"] = {"next_row": state.partial.next_row, "counts": counts}
    return about, arrays


def restored(file: NpzReader, about: dict[str, Any], shape: tuple[int, int]) -> PassState:
    """The state of a search in a table of this shape."""
    orders: list[PassSpec] = []
    for i, entry in enumerate(about["orders"]):
        orders.append(_order(file, entry, f"order {i}", shape[1], orders[-1] if orders else None))
    finished, best, counts = about["finished"], index(about["best"]), None
    done = len(orders) - (not finished)
    if about["algebra"] not in ("xor", "or") or type(finished) is not bool or not 0 <= best <= done or done < finished:
        raise ValueError(f"it says that pass {str(best)[:20]} is the best of {done}")
    if any(order.rule.covers is not covering(about["algebra"]) for order in orders):
        raise ValueError("its algebra is not that of its passes")
    if best:
        counts = _counts(file, about["counts"], "counts", orders[best - 1], shape)
    partial = about["partial"]
    if partial is not None:
        next_row = check_metadata_int(partial, "next_row", most=shape[0])
        partial = PartialPass(next_row, _counts(file, partial["counts"], "partial", orders[-1], shape))
    fields = about["history_fields"]
    history = tuple(Round(**dict(zip(fields, row, strict=True))) for row in about["history"])
    return PassState(about["algebra"], str(about["ended"]), tuple(orders), history, partial, best, counts, finished)


def _describe_order(order: PassSpec, name: str, arrays: Arrays) -> dict[str, Any]:
    """An order as JSON; its arrays go to the others."""
    arrays |= {f"{name} atoms": order.atoms.words, f"{name} bias": order.bias.words}
    if order.kept is not None:
        arrays[f"{name} kept"] = order.kept.astype(np.int64)
    rule = order.rule
    if rule.prices is not None:
        arrays |= {f"{name} bit prices": rule.prices.bits, f"{name} use prices": rule.prices.uses}
    return {
        "coder": order.coder,
        "covers": rule.covers is True,
        "by_ratio": bool(rule.by_ratio),
        "max_atoms": int(rule.max_atoms),
        "residual_limit": int(rule.residual_limit),
        "swaps": bool(rule.swaps),
        "typical": float(rule.typical).hex(),  # to the last bit, whatever it is
        "priced": rule.prices is not None,
        "goes_on": order.kept is not None,
    }


def _order(file: NpzReader, about: dict[str, Any], name: str, n_features: int, before: PassSpec | None) -> PassSpec:
    """The order that was described."""
    atoms = BitMatrix(file.read_array(f"{name} atoms").astype(np.uint64, casting="safe"), n_features)
    bias = BitMatrix(file.read_array(f"{name} bias").astype(np.uint64, casting="safe"), n_features)
    prices = kept = None
    if about["priced"]:
        bits = _within(file, f"{name} bit prices", (n_features,), (1, MAX_PRICE)).astype(np.int32)
        uses = _within(file, f"{name} use prices", (lanes_of(len(atoms)),), (0, 2**31 - 1)).astype(np.int32)
        prices = Prices(bits, uses)
    if about["goes_on"]:
        most = -1 if before is None else len(before.atoms) - 1
        kept = _within(file, f"{name} kept", (len(atoms),), (0, most)).astype(np.intp)
    coder = about["coder"]
    if len(bias) != 1 or coder not in _CODERS or (kept is not None and (np.diff(kept) <= 0).any()):
        raise ValueError(f"its {name} is none")
    rule = Rule(
        covers=True if about["covers"] else None,
        by_ratio=bool(about["by_ratio"]),
        max_atoms=index(about["max_atoms"]),
        residual_limit=index(about["residual_limit"]),
        prices=prices,
        swaps=bool(about["swaps"]),
        typical=float.fromhex(about["typical"]),
    )
    return PassSpec(atoms, bias, coder, rule, kept)


def _describe_counts(counts: Counts, name: str, arrays: Arrays) -> dict[str, int]:
    """Counts as JSON; their arrays, as narrow as their values let them be, go to the others."""
    for field in _AXES:
        values = getattr(counts, field)
        arrays[f"{name} {field}"] = values.astype(np.min_scalar_type(values.max(initial=0)))
    return {"n_rows": counts.n_rows, "codes_changed": counts.codes_changed}


def _counts(file: NpzReader, about: dict[str, Any], name: str, order: PassSpec, shape: tuple[int, int]) -> Counts:
    """The counts that were described, of what was ordered."""
    sizes = {"p": len(order.atoms), "m": shape[1]}
    n_rows = check_metadata_int(about, "n_rows", most=shape[0])
    arrays = {
        field: _within(file, f"{name} {field}", tuple(sizes[axis] for axis in axes), (0, n_rows)).astype(np.int64)
        for field, axes in _AXES.items()
    }
    return Counts(
        n_rows=n_rows, codes_changed=check_metadata_int(about, "codes_changed", most=n_rows * sizes["p"]), **arrays
    )


def _within(file: NpzReader, name: str, shape: tuple[int, ...], limits: tuple[int, int]) -> NDArray[Any]:
    """An array of whole numbers, of the shape it must have and within limits."""
    values = file.read_array(name)
    if values.shape != shape or values.dtype.kind not in "iu":
        raise ValueError(f"its {name} is of shape {str(values.shape)[:40]} and type {values.dtype}, not {shape}")
    if values.size and not limits[0] <= values.min() <= values.max() <= limits[1]:
        raise ValueError(f"its {name} has values that cannot be")
    return values
