"""The atoms: a card each, with its rows, features and examples; and what a search needs to find them by feature."""

from __future__ import annotations

import base64
import json

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from .findings import Findings
from .html.text import chips, count, listed, many, name, share, shortened
from .pictures import tile

SHOWN = 12  # features of an atom that are seen at once; the others are folded away
_MOST_TEXT = 800_000  # characters of names over all cards
_CAPS = (10**9, 1000, 500, 200, 100, 50, SHOWN)  # names on a card: all of them, or fewer where that is too much
_FEW = 4  # names at most that say what an example has besides, or lacks
_SIDE, _SMALL = 96, 40  # pixels of the screen that an atom, and an example, takes
_MOST_EXAMPLE_PIXELS = 4_000_000  # over all cards; above that, examples are not drawn


_NONE = """<section id="patterns"><h2>The patterns</h2>
<p>There are none: no pattern saves as many bits as it takes to write it down. Either the columns have nothing to do
with each other, or the search did not find what they have in common. What may help: more rows; to try both ways of
putting patterns together, <code>bitatoms fit --algebra auto</code>; and a longer search,
<code>bitatoms fit --search thorough</code>.</p></section>"""


def patterns(found: Findings) -> str:
    """The section with all atoms."""
    if not found.n_atoms:
        return _NONE
    cap = _most_names(found)
    cards = "\n".join(_card(found, atom, cap) for atom in range(found.n_atoms))
    kind = "names" if found.picture is None else "pictures"
    return f"""<section id="patterns">
<h2>The patterns</h2>
<p>{_introduction(found)}</p>
{_bias(found)}
<form class="controls" id="find" role="search" aria-label="Patterns" hidden>
<label>Search <kbd aria-hidden="true">/</kbd>
<input id="search" type="search" placeholder="a feature, or a number" autocomplete="off"
spellcheck="false" aria-describedby="shown" aria-keyshortcuts="/"></label>
<label>Sort by <select id="order">{_orders(found)}</select></label>
<p id="shown" role="status"></p>
</form>
<ol class="cards {kind}" id="cards" role="list">
{cards}
</ol>
<p id="nothing" hidden>No pattern has that among its features or the rows shown with it.</p>
{_index(found)}
</section>"""


def _orders(found: Findings) -> str:
    """What the cards can be sorted by; they come sorted by the first."""
    rows, features, number = ("rows", "rows"), ("features", f"number of {_columns(found)}s"), ("atom", "number")
    by = (number, rows, features) if found.model.saved is None else (("saved", "bits saved"), rows, features, number)
    return "".join(f'<option value="{key}">{says}</option>' for key, says in by)


def _introduction(found: Findings) -> str:
    """What the cards show."""
    if found.picture is not None:
        what = "Each picture is what a row with this pattern alone looks like; below it are rows that use it."
    else:
        what = "A pattern is a set of features that come together. Below it are rows that use it, and little else."
    return what if found.model.saved is None else f"{what} The pattern that saves most bits comes first."


def _columns(found: Findings) -> str:
    """What a column is called."""
    return "feature" if found.picture is None else "pixel"


def _bias(found: Findings) -> str:
    """What every row begins with, where that is not nothing."""
    held = np.flatnonzero(found.model.bias)
    if not len(held):
        return ""
    if found.picture is not None:
        start = tile(found.model.bias, found.picture.tile, "what every row begins with", _SIDE)
        return (
            f'<figure class="bias">{start}<figcaption>Every row begins with these {count(len(held))} pixels, which are '
            "ones more often than not (the bias). A pattern changes pixels: its picture is drawn on top of this one."
            "</figcaption></figure>"
        )
    columns = "1 column is a one" if len(held) == 1 else f"{count(len(held))} columns are ones"
    return (
        f"<p>In every row {columns} unless a pattern says otherwise (the bias): {listed(found.names_of(held), SHOWN)}. "
        "“not” before a feature says that the pattern takes it away.</p>"
    )


def _card(found: Findings, atom: int, cap: int) -> str:
    """One atom."""
    held = np.flatnonzero(found.model.atoms[atom])
    uses = int(found.uses[atom])
    saved = None if found.model.saved is None else int(found.model.saved[atom])
    what = _columns(found)
    facts = [(uses, f"{'row' if uses == 1 else 'rows'}, {share(uses, found.n_rows)}")]
    facts += [(len(held), what if len(held) == 1 else f"{what}s")]
    facts += [] if saved is None else [(saved, "bit saved" if saved == 1 else "bits saved")]
    told = "".join(f"<div><dt>{says}</dt><dd>{count(number)}</dd></div>" for number, says in facts)
    if found.picture is None:
        body = f"<dl>{told}</dl>{_names(found, held, cap)}"
    else:
        image = tile(found.drawn_atoms[atom], found.picture.tile, f"pattern {atom + 1}", _SIDE)
        body = f'<div class="tile">{image}<dl>{told}</dl></div>'
    return (
        f'<li class="card" id="atom-{atom + 1}" data-atom="{atom + 1}" data-saved="{saved or 0}" data-rows="{uses}" '
        f'data-features="{len(held)}"><h3>Pattern {atom + 1}</h3>{body}'
        f'<p class="hits" hidden></p>{_examples(found, atom)}</li>'
    )


def _names(found: Findings, held: NDArray[np.intp], cap: int) -> str:
    """The features of an atom by name, as many as there is room for."""
    names = [
        f"not {called}" if found.model.bias[feature] else called
        for feature, called in zip(held[:cap], found.names_of(held[:cap]), strict=True)
    ]
    body = f'<ul class="chips">{chips(names[:SHOWN])}</ul>'
    if len(held) <= SHOWN:
        return body
    more = f'<ul class="chips">{chips(names[SHOWN:])}</ul>' if len(names) > SHOWN else ""
    left = "" if len(held) <= cap else f'<p class="note">and {count(len(held) - cap)} that there is no room for</p>'
    return f"{body}<details><summary>{count(len(held) - SHOWN)} more</summary>{more}{left}</details>"


def _most_names(found: Findings) -> int:
    """How many names a card may hold, so that all of them together stay readable and quick."""
    if found.picture is not None:
        return 0
    weights = found.model.atoms.row_weights()
    names = found.names_of(range(min(found.n_features, 1000)))
    each = 20 + sum(len(shortened(called)) for called in names) / len(names)
    return next(cap for cap in _CAPS if cap == SHOWN or np.minimum(weights, cap).sum() * each <= _MOST_TEXT)


def _examples(found: Findings, atom: int) -> str:
    """Rows that use the atom and little else."""
    rows = [int(row) for row in found.examples[atom] if row >= 0]
    if not rows:
        return '<p class="note">No row of this table uses it.</p>'
    if found.picture is None:
        items = _examples_in_words(found, atom, rows)
    else:
        drawn = found.examples.size * found.n_features <= _MOST_EXAMPLE_PIXELS
        items = "".join(_example_as_picture(found, row, drawn) for row in rows)
    return f'<ul class="examples">{items}</ul>'


def _examples_in_words(found: Findings, atom: int, rows: list[int]) -> str:
    """Rows, and how they differ from the atom alone; those that differ alike together."""
    alone = found.drawn_atoms[atom]
    alike: dict[str, list[str]] = {}
    for number in rows:
        row = found.table.bits[number]
        both = (("also", np.flatnonzero(row > alone)), ("lacks", np.flatnonzero(row < alone)))
        told = "; ".join(f"{word} {_some(found, some)}" for word, some in both if len(some))
        alike.setdefault(told or "nothing else", []).append(f'<b class="row">{name(found.table.row_name(number))}</b>')
    return "".join(f"<li>{', '.join(called)}: {told}</li>" for told, called in alike.items())


def _some(found: Findings, features: NDArray[np.intp]) -> str:
    """A few features by name; many by their number."""
    return many(len(features), "feature") if len(features) > _FEW else listed(found.names_of(features), _FEW)


def _example_as_picture(found: Findings, number: int, drawn: bool) -> str:
    """A row as a picture, with its name."""
    called = found.table.row_name(number)
    assert found.picture is not None
    image = tile(found.table.bits[number], found.picture.tile, "", _SMALL) if drawn else ""
    return f'<li>{image}<span class="row">{name(called)}</span></li>'


def _index(found: Findings) -> str:
    """The names of the features that atoms hold, and which atom holds which, for the search."""
    held = np.flatnonzero(found.model.atoms.to_dense().any(axis=0))
    names = [shortened(called) for called in found.names_of(held)]
    bits = BitMatrix.from_dense(found.model.atoms.to_dense()[:, held])
    each = [base64.b64encode(bits[atom : atom + 1].to_bytes()).decode("ascii") for atom in range(found.n_atoms)]
    return f'<script type="application/json" id="index">{as_json({"features": names, "atoms": each})}</script>'


def as_json(value: object) -> str:
    """JSON that can stand in a script element: no sign in it begins a tag."""
    return (
        json.dumps(value, separators=(",", ":")).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    )
