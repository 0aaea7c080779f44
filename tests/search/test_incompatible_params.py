"""Parameters that do not go together raise an error."""

import numpy as np
import pytest

from bitatoms import factorize
from support.results import (
    SEARCHES,
    every_search,
)
from support.strategies import random_bits

pytestmark = pytest.mark.usefixtures("few_trials")


@pytest.mark.parametrize(
    ("how", "message"),
    [
        *(
            (
                {"search": search, "coder": coder},
                f'search="{search}" for the codelength uses the coder {choices}; '
                f"coder=.{coder}. requires search=.paper.$",
            )
            for search, choices in (("fast", "'mdl' or 'beam'"), ("thorough", "'beam' or 'mdl'"))
            for coder in ("bmp", "greedy", "exact")
        ),
        (
            {"search": "paper", "coder": "mdl"},
            "search=\"paper\" for the codelength uses the coder 'bmp' or 'greedy' or 'exact'; coder=.mdl. requires "
            'search="fast" and the codelength as objective$',
        ),
        ({"search": "paper", "coder": "beam", "n_components": 3}, 'search="paper" for the fewest errors of 3 atoms'),
        (
            {"n_components": 5, "coder": "greedy"},
            "search=\"fast\" for the fewest errors of 5 atoms uses the coder 'exact';",
        ),
        (
            {"n_components": 17, "coder": "exact"},
            "search=\"fast\" for the fewest errors of 17 atoms uses the coder 'greedy'; coder=.exact. requires",
        ),
        (
            {"n_components": 17, "coder": "mdl"},
            "search=\"fast\" for the fewest errors of 17 atoms uses the coder 'greedy'",
        ),
        ({"coder": "svd"}, "coder='svd' is not available; choose from 'auto', 'bmp', 'greedy', 'exact', 'mdl', 'beam'"),
        ({"search": "slow"}, "search='slow' is not available; choose from 'fast', 'thorough', 'anytime', 'paper'$"),
        *(
            (
                {"search": search, "update": "k-prox"},
                f'update="k-prox" requires search="paper"; search="{search}" updates all atoms together$',
            )
            for search in SEARCHES
        ),
        (
            {"search": "paper", "n_components": 4, "objective": "codelength"},
            'search="paper" with a fixed n_components minimizes the number of wrong cells; use search="fast", '
            'n_components="mdl" or objective="errors"$',
        ),
        ({"objective": "errors"}, 'objective="errors" requires a number as n_components'),
        ({"start_components": 5, "max_components": 4}, "start_components=5 is greater than max_components=4"),
        ({"init": np.ones((3, 3)), "max_components": 2}, "init has 3 atoms, more than max_components=2"),
        ({"init": np.ones((3, 3)), "n_components": 2}, "init has 3 atoms, more than n_components=2"),
        (
            {"init": (np.ones((2, 3)), np.ones((2, 2))), "max_atoms_per_sample": 1},
            "the codes in init use 2 atoms in row 0, more than max_atoms_per_sample=1",
        ),
    ],
)
def test_incompatible_parameters_raise(how, message):
    with pytest.raises(ValueError, match=message):
        factorize([[1, 0, 1], [0, 1, 1]], **how)


def test_the_error_of_a_coder_names_the_search_it_goes_with():
    with pytest.raises(ValueError, match=r"coder=.mdl. requires search=.fast. and the codelength as objective$"):
        factorize([[1, 0, 1], [0, 1, 1]], 1, search="fast", coder="mdl")


@every_search
def test_compatible_parameters_are_accepted(search):
    X = random_bits(0, 30, 20, 0.4)
    assert factorize(X, 3, search=search, objective="codelength", coder="beam", random_state=0).coder == "beam"
    assert factorize(X, 3, search=search, coder="exact", random_state=0).coder == "exact"
    assert factorize(X, 17, search=search, coder="greedy", random_state=0).coder == "greedy"
    assert factorize(X, search=search, patience=None, max_iter=8, random_state=0).ended == "max_iter"
