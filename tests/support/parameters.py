"""Parameters of fits by flat names, as tests merge them, in the objects that hold them."""

import bitatoms as ba
from bitatoms.parameters import declarations
from bitatoms.search.options import SearchOptions
from bitatoms.search.params import resolve

_GROUPS = {"constraints": ba.Constraints, "resources": ba.Resources}


def nested(**parameters):
    """Return parameters as `factorize` and the estimators take them, from flat ones such as ``max_components=3``.

    With ``search="paper"``, the coder and the paper's other parameters become a `PaperSearch`.
    """
    groups = {**_GROUPS, "search": ba.PaperSearch} if parameters.get("search") == "paper" else _GROUPS
    for group, kind in groups.items():
        own = {name: parameters.pop(name) for name in declarations(kind) if name in parameters}
        if own:
            parameters[group] = kind(**own)
    return parameters


def resolved(n_components="mdl", **parameters):
    """Return the parameters of a search, from flat ones."""
    return resolve(SearchOptions(n_components, **nested(**parameters)))
