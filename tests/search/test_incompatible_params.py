"""Parameters that do not go together raise an error."""

import numpy as np
import pytest

from bitatoms import factorize
from support.results import every_search
from support.strategies import random_bits

pytestmark = pytest.mark.usefixtures("few_trials")


FEWEST = 'search="fast" for the fewest errors of '


@pytest.mark.parametrize(
    ("how", "message"),
    [
        *(
            (
                {"search": search, "coder": coder},
                f"for the codelength uses the coder {choices}; coder=.{coder}. requires",
            )
            for search, choices in (("fast", "'mdl' or 'beam'"), ("thorough", "'beam' or 'mdl'"))
            for coder in ("bmp", "greedy", "exact")
        ),
        (
            {"search": "paper", "coder": "mdl"},
            "coder 'bmp' or 'greedy' or 'exact'; coder=.mdl. requires search=\"fast\"",
        ),
        ({"search": "paper", "coder": "beam", "n_components": 3}, 'search="paper" for the fewest errors of 3 atoms'),
        ({"n_components": 5, "coder": "greedy"}, f"{FEWEST}5 atoms uses the coder 'exact';"),
        ({"n_components": 17, "coder": "exact"}, f"{FEWEST}17 atoms uses the coder 'greedy'; coder=.exact. requires"),
        ({"n_components": 1, "coder": "mdl"}, "coder=.mdl. requires search=.fast. and the codelength as objective$"),
        ({"coder": "svd"}, "coder='svd' is not available; choose from 'auto', 'bmp', 'greedy', 'exact', 'mdl', 'beam'"),
        ({"search": "slow"}, "search='slow' is not available; choose from 'fast', 'thorough', 'anytime', 'paper'$"),
        ({"update": "k-prox"}, 'requires search="paper"; search="fast" updates all atoms together$'),
        ({"search": "thorough", "update": "k-prox"}, 'search="thorough" updates all atoms together$'),
        ({"search": "paper", "n_components": 4, "objective": "codelength"}, "minimizes the number of wrong cells; use"),
        ({"objective": "errors"}, 'objective="errors" requires a number as n_components'),
        ({"start_components": 5, "max_components": 4}, "start_components=5 is greater than max_components=4"),
        ({"init": np.ones((3, 3)), "max_components": 2}, "init has 3 atoms, more than max_components=2"),
    ],
)
def test_incompatible_parameters_raise(how, message):
    with pytest.raises(ValueError, match=message):
        factorize([[1, 0, 1], [0, 1, 1]], **how)


@every_search
def test_compatible_parameters_are_accepted(search):
    X = random_bits(0, 30, 20, 0.4)
    assert factorize(X, 3, search=search, objective="codelength", coder="beam", random_state=0).coder == "beam"
    assert factorize(X, 3, search=search, coder="exact", random_state=0).coder == "exact"
    assert factorize(X, 17, search=search, coder="greedy", random_state=0).coder == "greedy"
    assert factorize(X, search=search, patience=None, max_iter=8, random_state=0).ended == "max_iter"
