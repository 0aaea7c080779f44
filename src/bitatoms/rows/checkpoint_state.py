"""The state of the passes as JSON and arrays, and back.

The names in the file are part of its format: a spec is an "order" there. All sizes and values are checked on reading,
because kernels check none.
"""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..engine.block import lanes_of
from ..engine.coding import CODERS
from ..engine.counts import Counts
from ..engine.members import MemberCounts
from ..engine.objective import MAX_COSTLY_PRICE
from ..engine.pass_spec import PassSpec, RowCounts
from ..engine.voted_bits import cells_of, voted_bits
from ..io.npz import NpzReader, check_metadata_hash, check_metadata_int, sparse_arrays
from ..kernels.structs import MAX_PRICE, Prices, Rule, covering
from ..sparse_bits import Bits, SparseBits
from .checkpoint_file import Arrays, history_from_json, history_to_json
from .passes import PassState
from .source import PartialPass

_CODERS = (*CODERS, "mend")
_AXES = {
    "known": "m",
    "uses": "p",
    "wrong": "m",
    "free": "pm",
    "bad": "pm",
    "pairs": "pp",
    "ones": "m",
    "missed": "m",
}  # axes of the arrays of Counts


def state_to_json(state: PassState) -> tuple[dict[str, Any], Arrays]:
    """Return a state as JSON values, and its arrays by name."""
    arrays: Arrays = {}
    entries = {
        "algebra": state.algebra,
        "ended": state.ended,
        "compared": dict(state.compared),
        "best": state.best,
        "finished": state.finished,
        "orders": [_spec_to_json(spec, f"order {i}", arrays) for i, spec in enumerate(state.specs)],
        "counts": None if state.counts is None else _counts_to_json(state.counts, "counts", arrays),
        "partial": None,
        **history_to_json(state.history),
    }
    if state.partial is not None:
        counts = _counts_to_json(state.partial.counts, "partial", arrays)
        entries["partial"] = {"next_row": state.partial.next_row, "counts": counts}
    return entries, arrays


def state_from_file(file: NpzReader, entries: dict[str, Any], shape: tuple[int, int]) -> PassState:
    """Return the state in a file, for a table of this shape; raise ValueError, KeyError etc. if it is corrupt."""
    specs: list[PassSpec] = []
    for i, entry in enumerate(entries["orders"]):
        specs.append(_spec_from_file(file, entry, f"order {i}", shape[1], specs[-1] if specs else None))
    finished, best, counts = entries["finished"], index(entries["best"]), None
    n_done = len(specs) - (not finished)
    if type(finished) is not bool or not 0 <= best <= n_done or n_done < finished:
        raise ValueError(f"pass {str(best)[:20]} cannot be the best of {n_done}")
    if entries["algebra"] not in ("xor", "or") or any(
        spec.rule.covers is not covering(entries["algebra"]) for spec in specs
    ):
        raise ValueError("its algebra is not that of its passes")
    if best:
        counts = _counts_from_file(file, entries["counts"], "counts", specs[best - 1], shape)
    partial = entries["partial"]
    if partial is not None:
        next_row = check_metadata_int(partial, "next_row", most=shape[0])
        partial = PartialPass(next_row, _counts_from_file(file, partial["counts"], "partial", specs[-1], shape))
    compared = {str(algebra): index(cost) for algebra, cost in entries.get("compared", {}).items()}
    return PassState(
        algebra=entries["algebra"],
        ended=str(entries["ended"]),
        compared=compared,
        specs=tuple(specs),
        history=history_from_json(entries),
        partial=partial,
        best=best,
        counts=counts,
        finished=finished,
    )


def _spec_to_json(spec: PassSpec, name: str, arrays: Arrays) -> dict[str, Any]:
    """Return a spec as JSON values, and add its arrays to the others."""
    if isinstance(spec.atoms, SparseBits):
        arrays |= sparse_arrays(f"{name} atom", spec.atoms)
    else:
        arrays[f"{name} atoms"] = spec.atoms.words
    arrays[f"{name} bias"] = spec.bias.words
    if spec.priced_by is not None:
        arrays |= {f"{name} wrong": spec.priced_by.wrong, f"{name} uses": spec.priced_by.uses}
    if spec.kept is not None:
        arrays[f"{name} kept"] = spec.kept.astype(np.int64)
    if spec.remembered is not None:
        arrays[f"{name} remembered"] = spec.remembered.words
    rule = spec.rule
    if rule.prices is not None:
        arrays |= {f"{name} bit prices": rule.prices.bits, f"{name} use prices": rule.prices.uses}
        if rule.prices.own_costs():
            arrays |= {f"{name} added prices": rule.prices.added, f"{name} forbidden": rule.prices.forbidden}
    return {
        "coder": spec.coder,
        "covers": rule.covers is True,
        "by_ratio": bool(rule.by_ratio),
        "max_atoms": int(rule.max_atoms),
        "residual_limit": int(rule.residual_limit),
        "swaps": bool(rule.swaps),
        "typical": float(rule.typical).hex(),  # exact
        "priced": rule.prices is not None,
        "goes_on": spec.kept is not None,
        "remembers": spec.remembered is not None,
        "has_sparse_atoms": isinstance(spec.atoms, SparseBits),
        "n_priced_rows": None if spec.priced_by is None else int(spec.priced_by.n_rows),
    }


def _spec_from_file(
    file: NpzReader, entry: dict[str, Any], name: str, n_features: int, previous: PassSpec | None
) -> PassSpec:
    """Return a spec in a file."""
    atoms: Bits
    if entry.get("has_sparse_atoms") is True:
        atoms = file.read_sparse_bits(f"{name} atom", n_features)
    else:
        atoms = BitMatrix(file.read_array(f"{name} atoms").astype(np.uint64, casting="safe"), n_features)
    bias = BitMatrix(file.read_array(f"{name} bias").astype(np.uint64, casting="safe"), n_features)
    prices = kept = remembered = priced_by = None
    if entry["priced"]:
        prices = _prices_from_file(file, name, n_features, lanes_of(len(atoms)))
    if entry["goes_on"]:
        last = -1 if previous is None else len(previous.atoms) - 1
        kept = _int_array(file, f"{name} kept", (len(atoms),), (0, last)).astype(np.intp)
    if entry.get("remembers", f"{name} remembered" in file):  # version 0.1 does not say so
        remembered = BitMatrix(file.read_array(f"{name} remembered").astype(np.uint64, casting="safe"), len(atoms))
    if entry.get("n_priced_rows") is not None:
        n_rows = check_metadata_int(entry, "n_priced_rows")
        sizes = {"wrong": n_features, "uses": len(atoms)}
        counts = (_int_array(file, f"{name} {each}", (size,), (0, n_rows)) for each, size in sizes.items())
        priced_by = RowCounts(n_rows, *(array.astype(np.int64) for array in counts))
    coder = entry["coder"]
    if len(bias) != 1 or coder not in _CODERS or (kept is not None and (np.diff(kept) <= 0).any()):
        raise ValueError(f"its {name} is invalid")
    rule = Rule(
        covers=True if entry["covers"] else None,
        by_ratio=True if entry["by_ratio"] else None,
        max_atoms=index(entry["max_atoms"]),
        residual_limit=index(entry["residual_limit"]),
        prices=prices,
        swaps=bool(entry["swaps"]),
        typical=float.fromhex(entry["typical"]),
    )
    return PassSpec(atoms, bias, coder, rule, kept, remembered, voted_bits(atoms), priced_by)


def _prices_from_file(file: NpzReader, name: str, n_features: int, lanes: int) -> Prices:
    """Return the prices of a spec."""
    has_costs = f"{name} added prices" in file
    limits = 1, MAX_COSTLY_PRICE if has_costs else MAX_PRICE
    bits = _int_array(file, f"{name} bit prices", (n_features,), limits).astype(np.int32)
    uses = _int_array(file, f"{name} use prices", (lanes,), (0, 2**31 - 1)).astype(np.int32)
    if not has_costs:
        return Prices(bits, uses)
    added = _int_array(file, f"{name} added prices", (n_features,), limits).astype(np.int32)
    forbidden = file.read_array(f"{name} forbidden").astype(np.uint64, casting="safe")
    if forbidden.shape not in ((0,), (-(-n_features // 64),)):
        raise ValueError(f"its {name} is invalid")
    return Prices(bits, uses, added, (bits + added) // 2, forbidden)


def _counts_to_json(counts: Counts, name: str, arrays: Arrays) -> dict[str, Any]:
    """Return counts as JSON values, and add their arrays to the others in the smallest types that hold them."""
    all_known = bool((counts.known == counts.n_rows).all())
    for field in _AXES:
        if field != "known" or not all_known:
            values = getattr(counts, field)
            arrays[f"{name} {field}"] = values.astype(np.min_scalar_type(values.max(initial=0)))
    counted = [field for field in ("complete", *MemberCounts._fields) if getattr(counts, field) is not None]
    arrays |= {f"{name} {field}": getattr(counts, field) for field in counted}
    hashed = {} if counts.rows_hash is None else {"rows_hash": f"{counts.rows_hash:x}"}
    unknown = {} if all_known else {"has_unknown": True}
    return {
        "n_rows": counts.n_rows,
        "codes_changed": counts.codes_changed,
        **{f"has_{field}": field in counted for field in ("complete", *MemberCounts._fields)},
        **({} if counts.voted is None else {"lists_votes": True}),
        **hashed,
        **unknown,
    }


def _counts_from_file(
    file: NpzReader, entry: dict[str, Any], name: str, spec: PassSpec, shape: tuple[int, int]
) -> Counts:
    """Return the counts of a pass in a file."""
    sizes = {"p": len(spec.atoms), "m": shape[1]}
    n_rows = check_metadata_int(entry, "n_rows", most=shape[0])
    voted, is_listed = spec.voted, spec.voted is not None and entry.get("lists_votes") is True
    votes = (spec.n_listed or 0,)
    listed = {"free": votes, "bad": votes, "pairs": (0, 0)} if is_listed else {}
    arrays: Any = {
        field: _int_array(
            file, f"{name} {field}", listed.get(field, tuple(sizes[axis] for axis in axes)), (0, n_rows)
        ).astype(np.int64)
        for field, axes in _AXES.items()
        if field != "known" or entry.get("has_unknown")
    }
    if voted is not None and not is_listed:  # written when votes on all bits were counted
        _, cells = cells_of(voted, 0, sizes["p"])
        arrays |= {"free": arrays["free"][cells], "bad": arrays["bad"][cells], "pairs": np.zeros((0, 0), np.int64)}
    arrays.setdefault("known", np.full(sizes["m"], n_rows))
    lengths = {"complete": sizes["p"], "lacking": spec.atoms.count(), "atom_known": sizes["p"]}
    counted = {
        field: _int_array(file, f"{name} {field}", (length,), (0, n_rows)).astype(np.int64)
        for field, length in lengths.items()
        if entry.get(f"has_{field}", f"{name} {field}" in file)
    }
    return Counts(
        n_rows=n_rows,
        codes_changed=check_metadata_int(entry, "codes_changed", most=n_rows * sizes["p"]),
        rows_hash=check_metadata_hash(entry, "rows_hash"),
        voted=voted,
        **counted,
        **arrays,
    )


def _int_array(file: NpzReader, name: str, shape: tuple[int, ...], limits: tuple[int, int]) -> NDArray[Any]:
    """Return an array of integers after checking its shape and the range of its values."""
    values = file.read_array(name)
    if values.shape != shape or values.dtype.kind not in "iu":
        raise ValueError(f"its {name} has shape {str(values.shape)[:40]} and type {values.dtype}, not shape {shape}")
    if values.size and not limits[0] <= values.min() <= values.max() <= limits[1]:
        raise ValueError(f"its {name} has values out of range")
    return values
