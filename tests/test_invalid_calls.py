"""Invalid calls raise an error that states what is wrong: a table, called through `factorize`.

Estimators and the command line check the same declarations; one test each shows that their calls get there.
"""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError

import bitatoms as ba
from bitatoms import InputError, factorize
from bitatoms.baselines import Asso, GreConD, MessagePassing, PandaPlus, PenalizedNMF, Proximus, ThresholdedNMF
from bitatoms.rows.budget import MemoryLimitError
from support.commands import runner
from support.parameters import nested
from support.zoo import specimen

pytestmark = pytest.mark.usefixtures("few_trials")

NAN, INF = float("nan"), float("inf")
TINY = [[1, 0, 1], [0, 1, 1]]
NAMED = pd.DataFrame(TINY, columns=["a", "b", "c"])
PAPER = {"search": "paper"}
OR = {"algebra": "or"}
BASELINES = (Asso, GreConD, MessagePassing, PandaPlus, PenalizedNMF, Proximus, ThresholdedNMF)
INTEGERS = {  # the smallest value of each
    **dict.fromkeys(("n_components", "max_features_per_atom", "min_samples_per_atom", "n_init"), 1),
    **dict.fromkeys(("max_atoms_per_sample", "max_iter"), 1),
    "max_components": 0,
    "search_rows": 2,
}
PAPER_INTEGERS = {"patience": 1, "start_components": 0, "residual_limit": 0}
PAPER_CHOICES = {
    "update": "'mob', 'k-prox'",
    "coder": "'bmp', 'greedy', 'exact'",
    "start_components": "'auto' or an integer",
}
CHOICES = {
    "algebra": "'auto', 'or', 'xor'",
    "search": "'fast', 'thorough', 'anytime', 'paper' or PaperSearch(...)",
    "objective": "'auto', 'codelength', 'errors'",
    "coder": "'auto', 'mdl', 'beam', 'greedy', 'exact'",
    "init": "'auto', 'samples', 'bernoulli', 'spread', 'greedy' or atoms, or a pair (atoms, codes)",
    "device": "'cpu', 'cuda', 'auto'",
    "n_components": "'mdl' or an integer",
    **dict.fromkeys(("n_init", "search_rows"), "'auto' or an integer"),
}
SEED = "random_state must be None, a non-negative integer, a Generator or a RandomState, not "
COSTS = " must be 1 or more, a number or one per feature, not "
SETS = ' must be sets of features, such as [["a", "b"]], not '
CODED_BY = " for the codelength uses the coder "
LEARNS_ALL = 'search="paper" learns all atoms, without limits, as published; use search="fast" with '


def shown(value):
    """Return a part of the name of a test: parameters, or the name of what is called."""
    if isinstance(value, dict):
        return " ".join(f"{name}={str(each)[:12]}" for name, each in value.items()).replace("\n", "")
    return value.__qualname__.partition(".")[0] if callable(value) else value[:12]


NEEDS_PAPER = '; coder="{value}" requires search=PaperSearch(coder="{value}")'
PER_FEATURE = ("false_negative_cost", "false_positive_cost")
EACH = [  # parameters, values that each of them refuses, other parameters, exception, message
    (INTEGERS, [2.0, True, [2]], {}, TypeError, "{name} must be an integer, not "),
    (PAPER_INTEGERS, [2.0, True, [2]], PAPER, TypeError, "{name} must be an integer, not "),
    (["n_init"], [np.True_], {}, TypeError, "{name} must be an integer, not "),
    (["max_time"], [0, -1.5, NAN, "1"], {}, InputError, "must be a positive number of seconds or None, not {value!r}"),
    (["init_density"], [1.5, -0.1, NAN, None, "half"], PAPER, InputError, "{name} must be between 0 and 1, not "),
    (["binarize"], ["yes", NAN], {}, InputError, "{name} must be None or a finite number, not {value!r}"),
    (["bias"], ["no", 1], {}, InputError, "{name} must be True or False, not {value!r}"),
    (["callbacks"], [3, "abc"], {}, TypeError, "{name} must be callable, or a list of callables, not {value!r}"),
    (["random_state"], [-1, 1.5, "seed", {}], {}, ValueError, SEED + "{value!r}"),
    (["apart", "together"], ["a", 3, [[0, 1], 2.5]], {}, InputError, "{name}" + SETS + "{value!r}"),
    (PER_FEATURE, [0.5, "high", True, NAN, [[1, 1, 1]]], OR, InputError, "{name}" + COSTS + "{value!r}"),
    (PER_FEATURE, [2], {"algebra": "xor"}, InputError, '{name} requires algebra="or"'),
    (["coder"], ["greedy", "exact"], {"search": "fast"}, InputError, CODED_BY + "'mdl' or 'beam'" + NEEDS_PAPER),
    (["coder"], ["greedy", "exact"], {"search": "thorough"}, InputError, CODED_BY + "'beam' or 'mdl'" + NEEDS_PAPER),
]  # fmt: skip
CALLS = [
    # one parameter: its type and its limits
    *[
        ({name: value, **others}, error, message.format(name=name, value=value))
        for names, values, others, error, message in EACH for name in names for value in values
    ],
    *[
        ({name: least - 1, **how}, InputError, f"{name} must be at least {least}, not {least - 1}")
        for integers, how in ((INTEGERS, {}), (PAPER_INTEGERS, PAPER)) for name, least in integers.items()
    ],
    *[
        ({**how, name: "no"}, InputError, f"{name}='no' is not available; choose from {words}")
        for choices, how in ((CHOICES, {}), (PAPER_CHOICES, PAPER)) for name, words in choices.items()
    ],
    ({"algebra": None}, InputError, f"algebra=None is not available; choose from {CHOICES['algebra']}"),
    ({"algebra": "prefer-or"}, InputError, 'algebra="prefer-or" is now the default, algebra="auto"; omit it'),
    ({"coder": ["bmp"]}, InputError, "coder=['bmp'] is not available"),
    ({"coder": "bmp"}, InputError, "coder='bmp' is not available; choose from 'auto', 'mdl', 'beam', 'greedy', 'exac"),
    ({"coder": "bmp"}, InputError, "'exact' or search=bitatoms.PaperSearch(coder=\"bmp\")"),
    ({"search": ba.PaperSearch}, InputError, "search must be PaperSearch(...), not the class PaperSearch"),
    ({"update": "exact", **PAPER}, InputError, "update='exact' is not available"),
    ({"max_iter": None}, TypeError, "max_iter must be an integer, not None"),
    ({"callbacks": [print, 3]}, TypeError, "callbacks must be callable, or a list of callables, not 3"),
    ({"callbacks": [None]}, TypeError, "callbacks must be callable, or a list of callables, not None"),
    ({"n_jobs": 0}, InputError, "n_jobs must not be 0; pass 1 for one thread, -1 for all processors"),
    ({"n_jobs": "2"}, TypeError, "n_jobs must be an integer or None, not '2'"),
    ({"max_memory": 0}, InputError, "max_memory must be a positive number of bytes, not 0"),
    ({"max_memory": "much"}, InputError, "max_memory must be an amount such as '500 MB', '2 GiB'"),
    ({"max_memory": []}, TypeError, "max_memory must be a number of bytes, text such as '500 MB', or None, not []"),
    ({"resume": True}, InputError, "resume=True requires checkpoint, the folder to resume from"),
    ({"n_rows": 3}, TypeError, "got an unexpected keyword argument 'n_rows'"),
    ({"sample_rows": 5}, TypeError, "got an unexpected keyword argument 'sample_rows'"),
    # the table, its mask and its weights
    ({"X": [[1, 0, 1], [0, 2, 1]]}, ValueError, "X contains values other than 0 and 1 (first: 2 at row 1, column 1)"),
    ({"X": [[1, 0.5]]}, ValueError, "(first: 0.5 at row 0, column 1); pass binarize=0 to read values above 0 as 1"),
    ({"X": csr_array([[0, 0, 3]])}, ValueError, "X contains values other than 0 and 1 (first: 3 at row 0, column 2)"),
    ({"X": [[1, INF]], "binarize": 0.5}, ValueError, "X contains an infinite value (inf) at row 0, column 1 (1 in all"),
    ({"X": [["yes", "no"]]}, ValueError, "convert it to 0 and 1 first"),
    ({"X": pd.DataFrame({"a": ["yes"]})}, ValueError, "X contains text ('yes') at row 0, column 0"),
    ({"X": [[1j]]}, ValueError, "Complex data not supported"),
    ({"X": [1, 0, 1]}, ValueError, "Expected 2D array, got 1D array instead: X has shape (3,)"),
    ({"X": np.zeros((2, 2, 2))}, ValueError, "Expected 2D array, got 3D array instead"),
    ({"X": 3}, ValueError, "Expected 2D array, got scalar array instead"),
    ({"X": [[1, 0], [1]]}, ValueError, "X is not a table: "),
    ({"X": "none at all", "search": "slow"}, InputError, "search='slow' is not available"),  # parameters come first
    ({"mask": np.zeros((3, 2), bool)}, ValueError, "mask has shape (3, 2), but X has shape (2, 3); pass one boolean p"),
    ({"mask": np.zeros((2, 3), int)}, TypeError, "mask must consist of booleans, True where a cell of X is unknown, b"),
    ({"mask": np.zeros(6, bool)}, ValueError, "Expected 2D array, got 1D array instead: mask has shape (6,)"),
    ({"sample_weight": [1, 2, 3]}, InputError, "sample_weight has shape (3,), but X has 2 rows; pass one weight per r"),
    ({"sample_weight": [[1, 2]]}, InputError, "sample_weight has shape (1, 2), but X has 2 rows"),
    ({"sample_weight": [1, 0.5]}, InputError, "the weight of row 1 is 0.5 (1 in all); multiply all weights by a numbe"),
    ({"sample_weight": [-1, 1]}, InputError, "the weight of row 0 is -1 (1 in all); pass 0 to leave a row out"),
    ({"sample_weight": [1, NAN]}, InputError, "the weight of row 1 is missing (1 in all)"),
    ({"sample_weight": ["1", "x"]}, InputError, "sample_weight must consist of whole numbers, but its dtype is <U1"),
    ({"sample_weight": [0, 0]}, InputError, "zero for every row"),
    ({"sample_weight": [1, 2.0**62]}, InputError, "a weight is how often a row counts, and below 2**62"),
    ({"sample_weight": [1, 10**9], "max_memory": 10**6}, MemoryLimitError, "the sum of sample_weight is 1e+09"),
    # atoms to start from, atoms that are known, and limits of atoms
    ({"init": [[1, 0]]}, InputError, "the atoms in init have 2 features, but X has 3"),
    ({"init": [[1, 0, 2]]}, ValueError, "init (atoms) contains values other than 0 and 1 (first: 2 at row 0, column 2"),
    ({"init": ([[1, 0, 1]],)}, InputError, "init must be a pair (atoms, codes), not a tuple of length 1"),
    ({"init": ([[1, 0, 1]], [[1]])}, InputError, "the codes in init have shape (1, 1); 2 samples and 1 atoms need (2"),
    ({"init": ([[1, 0, 1]], [[3], [0]])}, ValueError, "init (codes) contains values other than 0 and 1"),
    ({"init": np.ones((3, 3)), "n_components": 2}, InputError, "init has 3 atoms, more than n_components=2"),
    ({"init": np.ones((3, 3)), "max_components": 2}, InputError, "init has 3 atoms, more than max_components=2"),
    ({"init": 5}, InputError, "init=5 is not available"),
    (
        {"init": (np.ones((2, 3)), np.ones((2, 2))), "max_atoms_per_sample": 1},
        InputError,
        "the codes in init use 2 atoms in row 0, more than max_atoms_per_sample=1",
    ),
    ({"init": ([[1, 0, 1]], [[1]]), "sample_weight": [1, 2]}, InputError, "the codes in init have 1 rows, but X has 2"),
    ({"n_components": 10**12, "init": "bernoulli"}, InputError, 'init="bernoulli" draws at most 65536 atoms, not 1000'),
    ({"start_components": 1 << 17, "init": "bernoulli", **PAPER}, InputError, "; pass a smaller start_components"),
    ({"fixed_atoms": "greedy"}, InputError, "fixed_atoms must be an array or a table of atoms, or None, not 'greedy'"),
    ({"fixed_atoms": [[1, 0]]}, InputError, "fixed_atoms have 2 columns, and the table 3; pass tables whose columns h"),
    ({"fixed_atoms": TINY, "n_components": 1}, InputError, "fixed_atoms are 2 atoms, more than n_components=1"),
    ({"fixed_atoms": TINY, "init": TINY, "max_components": 3}, InputError, "fixed_atoms are 2 atoms and init 2, more"),
    ({"apart": [[0, 1.5]]}, InputError, "apart has 1.5, which is neither a name nor an index"),
    ({"apart": [[0, True]]}, InputError, "apart has True, which is neither a name nor an index"),
    ({"together": [[1, 1]]}, InputError, "together has the set [1]; a set needs at least two features"),
    ({"apart": ["a", "b"]}, InputError, "apart names 'a', but the columns have no names; pass indices"),
    ({"X": NAMED, "apart": ["a", "z"]}, InputError, "apart names 'z', which is not a column of the table"),
    ({"together": [[0, 3]]}, InputError, "together has the index 3, but the table has 3 columns"),
    ({"together": [[0, -4]]}, InputError, "together has the index -4, but the table has 3 columns"),
    ({"together": [[0, 1], [1, 2]], "max_features_per_atom": 2}, InputError, "together has 3 features that belong tog"),
    ({"X": NAMED, "together": ["a", "b"], "apart": ["b", "a"]}, InputError, "are in a set of apart and belong togethe"),
    # costs of errors
    ({"false_negative_cost": {0: 0.5}, **OR}, InputError, "false_negative_cost" + COSTS),
    ({"false_positive_cost": 2, **OR, **PAPER}, InputError, 'requires the codelength as objective; search="paper" doe'),
    ({"false_positive_cost": 2, **OR, "n_components": 2, "objective": "errors"}, InputError, 'objective="errors" does'),
    ({"false_positive_cost": [2, 2], **OR}, InputError, "false_positive_cost has 2 costs, but the table has 3 columns"),
    ({"false_positive_cost": {"a": 2}, **OR}, InputError, "has a cost for 'a', but columns without names are given by"),
    ({"X": NAMED, "false_positive_cost": {"z": 2}, **OR}, InputError, "has a cost for 'z', but the table has no such"),
    *[
        ({"false_negative_cost": cost, **OR}, InputError, "false_negative_cost must be finite: ")
        for cost in (INF, [1, INF, 1], {2: INF})
    ],
    ({"false_negative_cost": INF}, InputError, "; use bitatoms.cover for an exact cover, or pass a large finite cost"),
    # parameters that exclude each other
    ({"objective": "errors"}, InputError, 'objective="errors" requires a number as n_components: "mdl" chooses'),
    (
        {"objective": "codelength", "n_components": 2, **PAPER},
        InputError,
        'search="paper" with a fixed n_components minimizes the number of wrong cells; use search="fast", '
        'n_components="mdl" or objective="errors"',
    ),
    ({"patience": None, **PAPER}, InputError, "patience=None continues to max_components; set max_components"),
    ({"start_components": 3, "max_components": 2, **PAPER}, InputError, "start_components=3 is greater than max_comp"),
    ({"start_components": 17, "coder": "exact", **PAPER}, InputError, "start_components=17 is greater than max_compon"),
    *[
        ({"search": search, "coder": "greedy"}, InputError, "has its own coders; pass search=PaperSearch(coder=...)")
        for search in (ba.PaperSearch(), ba.PaperSearch(update="k-prox"))
    ],
    ({"constraints": {"max_components": 3}}, InputError, "constraints must be Constraints(...) or None, not {'max_com"),
    ({"resources": "1GB"}, InputError, "resources must be Resources(...) or None, not '1GB'"),
    ({"max_component": 3}, TypeError, "unexpected keyword argument 'max_component'"),
    ({"n_components": 5, "coder": "greedy"}, InputError, "for the fewest errors of 5 atoms uses the coder 'exact'; co"),
    ({"n_components": 17, "coder": "exact"}, InputError, "for the fewest errors of 17 atoms uses the coder 'greedy'"),
    ({"n_components": 1, "coder": "mdl"}, InputError, 'coder="mdl" requires search="fast" and the codelength as objec'),
    ({"n_components": 17, "coder": "exact", **PAPER}, InputError, 'coder="exact" tries all 2**p codes and supports at'),
    *[
        ({name: value, **PAPER}, InputError, LEARNS_ALL + name)
        for name, value in {
            "fixed_atoms": TINY, "max_features_per_atom": 2, "min_samples_per_atom": 2, "apart": [[0, 1]],
            "together": [[0, 1]],
        }.items()
    ],
]  # fmt: skip


@pytest.mark.parametrize(("parameters", "error", "fragment"), CALLS, ids=shown)
def test_an_invalid_call_states_what_is_wrong(parameters, error, fragment):
    with pytest.raises(error) as caught:
        factorize(**nested(**{"X": TINY, **parameters}))
    assert fragment in str(caught.value)


VALID = [
    *[{name: least} for name, least in INTEGERS.items()],
    *[{name: least, **PAPER} for name, least in PAPER_INTEGERS.items()],
    {"search_rows": None},
    {"max_time": 1e-9},
    {"init_density": 0, "init": "bernoulli", **PAPER},
    {"init_density": 1.0, "init": "bernoulli", **PAPER},
    {"false_negative_cost": 1, "false_positive_cost": {}},
    {"apart": [0, 1]},  # a single set
    {"apart": ()},
    {"together": [[0, -1]]},
    {"together": [[0, 1], [1, 2]], "max_features_per_atom": 3},
    {"n_jobs": -1},
    {"callbacks": [print, print][:0]},
    {"n_components": 16, "coder": "exact", **PAPER, "init": "bernoulli"},
    {"start_components": 2, "max_components": 2, **PAPER},
    {"init": np.ones((2, 3)), "max_components": 2},
    {"init": TINY, "n_components": 2},
    {"init": (np.ones((2, 3)), np.ones((2, 2))), "max_atoms_per_sample": 2},
    {"fixed_atoms": TINY[:1], "init": TINY[1:], "max_components": 2},
    {"patience": None, "max_components": 2, **PAPER},
    {"false_positive_cost": [2, 2, 2], **OR},
    {"X": NAMED, "false_positive_cost": {"a": 2, 1: 3}, **OR},
    {"false_negative_cost": 1e300, **OR},
    {"false_positive_cost": INF, **OR},
    {"search": ba.PaperSearch()},
    {"constraints": ba.Constraints(), "resources": ba.Resources()},
    {"random_state": 0},
    {"random_state": [1, 2]},
    {"X": [[1, NAN]]},
    {"sample_weight": [True, False]},
]


@pytest.mark.parametrize("parameters", VALID, ids=str)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_nearest_valid_call_is_accepted(parameters):
    result = factorize(**nested(**{"X": TINY, "max_iter": 1, **parameters}))
    assert result.reconstruct().shape == np.shape(parameters.get("X", TINY))


@pytest.mark.parametrize("search", ["fast", "thorough"])
def test_coders_that_a_search_can_use_are_used(search):
    X = np.random.default_rng(0).integers(0, 2, (30, 20))
    how = {"search": search, "max_iter": 1, "random_state": 0}
    for coder, n, objective in (
        ("beam", 3, "codelength"),
        ("mdl", 3, "codelength"),
        ("exact", 3, "auto"),
        ("greedy", 17, "auto"),
    ):
        assert factorize(X, n, coder=coder, objective=objective, **how).coder == coder


# --- what other functions and estimators check beside the parameters of `factorize`


def fit(estimator):
    """Return a function that fits the estimator with these parameters to a table (and labels) of these rows."""

    def call(X=((1, 0), (0, 1), (1, 1)), y=None, sample_weight=None, **parameters):
        model = estimator(**parameters)
        return model.fit(X, y) if sample_weight is None else model.fit(X, y, sample_weight=sample_weight)

    return call


def of_codes(**changed):
    """Return the codelength of a small factorization with some arguments replaced."""
    return ba.codelength(**{"X": TINY, "atoms": [[1, 0, 1]], "codes": [[1], [0]], **changed})


def planted(**changed):
    return ba.datasets.planted(**{"n_samples": 4, "n_features": 5, "n_components": 2, **changed})


def classify(**parameters):
    return fit(ba.BinaryDictionaryClassifier)(**{"y": ["a", "b", "c"], "n_models": 1, **parameters})


def rules(**limits):
    return specimen("or").model.rules(**limits)


def recommend(n):
    return specimen("or").model.recommend(specimen("or").table, n)


def partial_fit(**parameters):
    return ba.BinaryDictionaryLearning(**nested(**parameters)).partial_fit(TINY)


PICTURE = np.zeros((72, 72), np.uint8)
TWO_VALUES = " contains values other than 0 and 1 (first: "
LEAST = [  # integers of each function, and their smallest value
    *[(fit(method), ["n_components"], 1) for method in BASELINES],
    *[(fit(method), ["n_init", "max_iter"], 1) for method in (MessagePassing, ThresholdedNMF)],
    (fit(PenalizedNMF), ["n_init", "n_updates"], 1),
    (fit(PandaPlus), ["n_orders"], 1),
    (fit(Proximus), ["radius"], 0),
    (fit(ba.BinaryImputer), ["n_profiles"], 1),
    (classify, ["n_models"], 1),
    (recommend, ["n"], 1),
    (ba.stability, ["n_resamples"], 1),
    (ba.cross_validate_cells, ["n_folds"], 1),
    (ba.denoise, ["stride"], 1),
    (planted, ["n_samples", "n_features", "n_components"], 0),
    (ba.datasets.baskets, ["n_samples"], 0),
    (ba.datasets.genotypes, ["n_samples", "n_snps"], 0),
    (ba.datasets.halftone, ["enlarge"], 1),
]
SHARES = [  # numbers between 0 and 1
    (partial_fit, ["forget"]),
    (rules, ["min_support", "min_confidence"]),
    (ba.stability, ["share", "threshold"]),
    (planted, ["noise", "atom_density", "code_density"]),
    (fit(Asso), ["threshold"]),
    (fit(MessagePassing), ["code_prior", "tol"]),
    (fit(PandaPlus), ["row_tolerance", "column_tolerance"]),
]
OTHER_CALLS = [
    *[
        (function, {name: value}, error, f"{name} must be {rule}, not {value}")
        for function, names, least in LEAST for name in names
        for value, error, rule in ((least - 1, InputError, f"at least {least}"), (2.5, TypeError, "an integer"))
    ],
    *[
        (function, {name: value}, InputError, f"{name} must be between 0 and 1, not {value}")
        for function, names in SHARES for name in names for value in (1.5, -0.1, NAN)
    ],
    (of_codes, {"algebra": "auto"}, InputError, "algebra='auto' is not available; choose from 'xor', 'or'"),
    (of_codes, {"atoms": [[1, 0]]}, ValueError, "atoms have 2 features, but X has 3"),
    (of_codes, {"codes": [[1]]}, ValueError, "codes have shape (1, 1), but 2 samples and 1 atoms need (2, 1)"),
    (of_codes, {"codes": [[1, 0], [0, 1]]}, ValueError, "codes have shape (2, 2), but 2 samples and 1 atoms need (2"),
    (of_codes, {"codes": None}, ValueError, "pass both atoms and codes, or neither"),
    (of_codes, {"bias": [1, 0]}, ValueError, "bias must have 3 values, one per feature"),
    (of_codes, {"bias": [[1, 0, 1]] * 2}, ValueError, "bias must have 3 values, one per feature"),
    (of_codes, {"bias": [1, 0, 2]}, ValueError, f"bias{TWO_VALUES}2 at row 0, column 2)"),
    (of_codes, {"X": [[1, 0, 1], [0, 3, 1]]}, ValueError, f"X{TWO_VALUES}3 at row 1, column 1)"),
    (of_codes, {"atoms": [[1, 0, 5]]}, ValueError, f"atoms{TWO_VALUES}5 at row 0, column 2)"),
    (of_codes, {"codes": [[1], [-1]]}, ValueError, f"codes{TWO_VALUES}-1 at row 1, column 0)"),
    (classify, {"absent": "one"}, InputError, "absent='one' is not available; choose from 'auto', 'refuse', 'zero', '"),
    (classify, {"forget": 0.1}, TypeError, "unexpected keyword argument 'forget'"),
    *[
        (classify, {"priors": priors}, InputError, f"3 probabilities that sum to 1, one per class, not {priors!r}")
        for priors in ([0.5, 0.5], [0.5, 0.6, 0.2], [1.2, -0.1, -0.1], [NAN, 0.5, 0.5], {"a": 1.0})
    ],
    (fit(ba.BinaryDictionaryLearning), {"absent": "nothing"}, InputError, "absent='nothing' is not available"),
    (rules, {"min_lift": NAN}, InputError, "min_lift must be a finite number of at least 0, not nan"),
    (rules, {"min_left": 1}, TypeError, "min_left"),
    (fit(ba.BinaryImputer), {"method": "mean"}, InputError, "choose from 'auto', 'atoms', 'neighbours', 'profiles'"),
    (fit(ba.CoverMiner), {"objective": "errors"}, InputError, "objective='errors' is not available; choose from 'role"),
    (fit(ba.CoverMiner), {"X": [[1, NAN]]}, ValueError, "contains a missing value (NaN) at row 0, column 1"),
    (fit(ba.CategoryEncoder), {"bin": 3}, TypeError, "unexpected keyword argument 'bin'"),
    (ba.stability, {"share": 0}, InputError, "share must be above 0, not 0"),
    (ba.stability, {"threshold": 0}, InputError, "threshold must be above 0, not 0"),
    (ba.stability, {"model": 3}, TypeError, "model must be a fitted BinaryDictionaryLearning, a Model"),
    (ba.stability, {"model": ba.BinaryDictionaryLearning()}, NotFittedError, "not fitted"),
    (ba.stability, {"model": "none.npz"}, ba.FileError, "there is no such file"),
    (ba.stability, {"rows": 3}, TypeError, "unexpected keyword argument 'rows'"),
    *[(ba.cross_validate_cells, {"share": share}, ValueError, "share must be above 0 and below 1") for share in (0, 1)],
    (ba.cross_validate_cells, {"models": [2, 2]}, ValueError, "two models have the name '2'"),
    (ba.cross_validate_cells, {"models": [None]}, TypeError, "a model is a number of atoms"),
    (ba.cross_validate_cells, {"X": [[NAN] * 3] * 3}, ValueError, "no cell was hidden: X has 0 known cells; raise sha"),
    (ba.denoise, {"block_sizes": ()}, InputError, "block_sizes is empty; pass at least one size"),
    (ba.denoise, {"block_sizes": (1,)}, InputError, "block_sizes must be at least 2, not 1"),
    (ba.denoise, {"noise": 1}, InputError, "noise must be at least 0 and below 0.5, not 1"),
    (ba.denoise, {"image": np.zeros((3, 3, 3))}, ValueError, "convert a color image to gray first"),
    (ba.denoise, {"blocks": 3}, TypeError, "unexpected keyword argument 'blocks'"),
    (ba.inpaint, {"mask": PICTURE + 1}, ValueError, "mask covers all pixels"),
    (ba.inpaint, {"mask": PICTURE[:3, :3]}, ValueError, "mask has shape (3, 3), but image has shape (72, 72)"),
    (ba.inpaint, {"mask": PICTURE[0]}, ValueError, "mask has 1 dimensions; pass a 2-D array"),
    (ba.inpaint, {"mask": PICTURE * NAN}, ValueError, f"mask{TWO_VALUES}nan at row 0, column 0)"),
    (ba.inpaint, {"image": PICTURE[:0], "mask": PICTURE[:0]}, ValueError, "image has shape (0, 72), and so no pixels"),
    (ba.inpaint, {"mask": np.eye(72), "stride": 7}, ValueError, "stride=7 leaves gaps between blocks of size 6; pass"),
    (ba.baselines.dude, {"n_neighbors": 25}, ValueError, "n_neighbors must be at most 24, not 25"),
    (ba.baselines.dude, {"noise": 0.5}, ValueError, "noise must be at least 0 and below 0.5, not 0.5"),
    (ba.baselines.dude, {"image": PICTURE[:0]}, ValueError, "image has shape (0, 72), and so no pixels"),
    (ba.baselines.dude, {"image": PICTURE + 2}, ValueError, f"image{TWO_VALUES}2 at row 0, column 0)"),
    (planted, {"algebra": "and"}, InputError, "algebra='and' is not available; choose from 'xor', 'or'"),
    (planted, {"random_state": -1}, ValueError, f"{SEED}-1"),
    *[(ba.datasets.mnist, {"side": side}, ValueError, "side must be ") for side in (0, 29)],
    (ba.datasets.mnist, {"side": 2.5}, TypeError, "side must be an integer, not 2.5"),
    (ba.datasets.mnist, {"labels": "t10k-labels-idx1-ubyte"}, ValueError, "pass both or neither"),
    (ba.datasets.dither, {"gray": np.zeros((4, 4, 3))}, ValueError, "gray has 3 dimensions; pass a 2-D array (convert"),
    (ba.datasets.dither, {"gray": [[0, 300]]}, ValueError, "outside 0 to 255 (first: 300 at row 0, column 1)"),
    (ba.datasets.dither, {"gray": [[0.5], [NAN]]}, ValueError, "outside 0 to 1 (first: nan at row 1, column 0)"),
    (ba.datasets.dither, {"gray": [[0.5, -0.1]]}, ValueError, "outside 0 to 1 (first: -0.1 at row 0, column 1)"),
    (ba.datasets.dither, {"gray": [[True, False]]}, TypeError, "gray has dtype bool; pass integers"),
    (ba.datasets.cut_blocks, {"image": np.zeros(4)}, ValueError, "image has 1 dimensions; pass a 2-D array"),
    (ba.datasets.cut_blocks, {"image": [[0, 1], [2, 0]]}, ValueError, "(first: 2 at row 1, column 0); threshold"),
    (ba.datasets.cut_blocks, {"block": 4}, ValueError, "block must be a pair (height, width), not 4"),
    (ba.datasets.cut_blocks, {"block": (0, 4)}, ValueError, "block height must be at least 1, not 0"),
    (ba.datasets.cut_blocks, {"block": (2, 1.5)}, TypeError, "block width must be an integer, not 1.5"),
    (ba.datasets.stitch_blocks, {"X": [[0.5] * 4], "shape": (2, 2), "block": (2, 2)}, ValueError, f"X{TWO_VALUES}0.5"),
    (
        ba.datasets.stitch_blocks,
        {"X": np.zeros((3, 4)), "shape": (4, 4), "block": (2, 2)},
        ValueError,
        "X is 3 × 4, but an image of 4 × 4 in blocks of 2 × 2 takes 4 × 4; pass the shape and block",
    ),
    (ba.datasets.stitch_blocks, {"X": np.zeros((1, 4)), "shape": (2, -2), "block": (2, 2)}, ValueError, "shape width"),
    (fit(Asso), {"threshold": 0}, ValueError, "threshold must be greater than 0 and at most 1"),
    (fit(Asso), {"threshold": [0.5, NAN]}, InputError, "threshold must be between 0 and 1, not nan"),
    (fit(Asso), {"threshold": []}, ValueError, "threshold must be greater than 0"),
    *[
        (fit(Asso), {"threshold": value}, ValueError, f'"sweep", a number or a sequence of numbers, not {value!r}')
        for value in ("all", None)
    ],
    (fit(Asso), {"reward": 0}, ValueError, "reward must be a number greater than 0, not 0"),
    (fit(Asso), {"penalty": INF}, ValueError, "penalty must be a number greater than 0, not inf"),
    (fit(Asso), {"penalty": "high"}, ValueError, "penalty must be a number greater than 0, not 'high'"),
    (fit(Asso), {"reward": 1e9}, ValueError, "reward=1000000000.0 and penalty=1.0 must differ by a factor of at most"),
    (fit(Proximus), {"radius": "small"}, InputError, "radius='small' is not available; choose from 'auto' or an integ"),
    (fit(MessagePassing), {"flip": 0.5}, ValueError, "flip must be less than 0.5, not 0.5"),
    (fit(MessagePassing), {"flip": 0}, ValueError, "flip must be greater than 0 and less than 1, not 0"),
    (fit(MessagePassing), {"atom_prior": 1.0}, ValueError, "atom_prior must be greater than 0 and less than 1"),
    (fit(MessagePassing), {"damping": 1}, ValueError, "damping must be less than 1; at 1 no message changes"),
    (fit(MessagePassing), {"max_memory": "100 B"}, ValueError, "3 samples, 2 features and 8 atoms take "),
    (fit(PandaPlus), {"cost": "bits"}, InputError, "cost='bits' is not available; choose from 'mdl', 'patterns'"),
    (fit(PandaPlus), {"order": "size"}, InputError, "order='size' is not available"),
    (fit(PandaPlus), {"pattern_weight": -1}, ValueError, "pattern_weight must be a finite number of at least 0, not"),
    (fit(PandaPlus), {"pattern_weight": "1"}, ValueError, "pattern_weight must be a finite number of at least 0, not"),
    *[
        (fit(method), {"n_components": None}, ValueError, "n_components is None, but ")
        for method in (MessagePassing, ThresholdedNMF, PenalizedNMF)
    ],
    *[
        (fit(method), {"X": [[0, 2]], "n_components": 1}, ValueError, f"X{TWO_VALUES}2 at row 0, column 1)")
        for method in BASELINES
    ],
    *[
        (fit(method), {"X": [[NAN, 1]], "n_components": 1}, ValueError, "a missing value (NaN) at row 0, column 0")
        for method in BASELINES
    ],
]  # fmt: skip
REQUIRED = {
    ba.stability: {"X": TINY},
    ba.cross_validate_cells: {"X": TINY},
    ba.denoise: {"image": PICTURE},
    ba.inpaint: {"image": PICTURE},
    ba.baselines.dude: {"image": PICTURE},
    ba.datasets.cut_blocks: {"image": [[0, 1]]},
}


@pytest.mark.parametrize(("function", "arguments", "error", "fragment"), OTHER_CALLS, ids=shown)
def test_an_invalid_call_of_another_function_states_what_is_wrong(function, arguments, error, fragment):
    with pytest.raises(error) as caught:
        function(**{**REQUIRED.get(function, {}), **arguments})
    assert fragment in str(caught.value)


# --- wiring


@pytest.mark.parametrize("estimator", [ba.BinaryDictionaryLearning, ba.BinaryDictionaryClassifier, ba.BinaryImputer])
@pytest.mark.parametrize(
    "name", ["algebra", "max_time", "n_jobs", "coder", "false_positive_cost", "binarize", "X", "sample_weight"]
)
def test_fit_of_every_estimator_makes_the_same_checks(estimator, name):
    """Nothing is checked before `fit`, and no model is left after an error."""
    wrong = {
        "algebra": 3, "max_time": 0, "n_jobs": 0, "coder": "bmp", "false_positive_cost": 0.5, "binarize": "half",
        "X": [[1, 0, 1], [0, 2, 1]], "sample_weight": [1, 0.5],
    }[name]  # fmt: skip
    with pytest.raises((ValueError, TypeError)) as expected:
        factorize(**nested(**{"X": TINY, name: wrong}))
    how, data = ({}, {name: wrong}) if name in ("X", "sample_weight") else ({name: wrong}, {})
    model = estimator(**how)
    assert all(model.get_params()[parameter] is value for parameter, value in how.items())
    with pytest.raises(type(expected.value)) as caught:
        model.fit(**{"X": TINY, "y": [0, 1], **data})
    assert str(caught.value) == str(expected.value)
    assert not [name for name in vars(model) if name.endswith("_") and not name.startswith(("n_features", "feature"))]


@pytest.mark.parametrize(
    "method", ["transform", "score_samples", "decision_function", "score", "partial_fit", "complete"]
)
def test_every_method_checks_its_table(method):
    model = ba.BinaryDictionaryLearning(1, algebra="xor", random_state=0)
    model = model.partial_fit(TINY) if method == "partial_fit" else model.fit(TINY)
    calls = [
        ([[1, 0, 2]], f"X{TWO_VALUES}2 at row 0, column 2); for counts, pass binarize=0"),
        (csr_array([[0, 0, 2]]), f"X{TWO_VALUES}2 at row 0, column 2)"),
        ([[1, INF, 0]], "X contains an infinite value (inf) at row 0, column 1 (1 in all)"),
        (np.zeros((0, 3)), "0 sample"),
        (csr_array((0, 3)), "0 sample"),
        (ba.BitMatrix.zeros(0, 3), "0 sample"),
        ([[1, 0]], "X has 2 features, but BinaryDictionaryLearning is expecting 3 features as input"),
        (np.ma.masked_array([[1, 0]], [[1, 0]]), "X has 2 features, but BinaryDictionaryLearning is expecting 3"),
        ([1, 0, 1], "Expected 2D array, got 1D array"),
    ]
    for table, fragment in calls:
        with pytest.raises(ValueError) as caught:
            getattr(model, method)(table)
        assert fragment in str(caught.value)
    if method != "partial_fit":
        with pytest.raises(NotFittedError, match="This BinaryDictionaryLearning instance is not fitted yet"):
            getattr(ba.BinaryDictionaryLearning(), method)(TINY)


@pytest.mark.parametrize("kind", [np.asarray, csr_array, ba.BitMatrix.from_dense])
def test_tables_without_columns_or_rows_are_not_fitted(kind):
    for shape, fragment in (((5, 0), "0 feature"), ((0, 5), "0 sample")):
        with pytest.raises(ValueError, match=fragment):
            ba.BinaryDictionaryLearning().fit(kind(np.zeros(shape)))


@pytest.mark.parametrize("estimator", [ba.BinaryDictionaryLearning, ba.CoverMiner])
def test_invalid_codes_are_reported(estimator):
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        estimator().to_frame()
    model = estimator(random_state=0).fit([[1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1]] * 20)
    assert model.n_components_ == 2
    calls = [
        (np.zeros((3, 4)), "the codes have 4 columns, but the model has 2 atoms"),
        (np.full((3, 2), 2), f"the code matrix{TWO_VALUES}2 at row 0, column 0)"),
        (np.full((3, 2), NAN), "the code matrix contains a missing value (NaN)"),
        (np.zeros(2), "Expected 2D array, got 1D array instead"),
    ]
    for codes, fragment in calls:
        with pytest.raises(ValueError) as caught:
            model.inverse_transform(codes)
        assert fragment in str(caught.value)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--max-time", "0"], "bitatoms: --max-time must be a positive number of seconds or None, not 0.0"),
        (["--false-positive-cost", "2", "--algebra", "xor"], "bitatoms: --false-positive-cost requires --algebra or"),
    ],
)
def test_the_command_line_makes_the_same_checks(capsys, tmp_path, options, line):
    pytest.importorskip("click")
    ba.write(ba.BitMatrix.from_dense(TINY), tmp_path / "table.csv")
    code, _, printed = runner(capsys)("fit", tmp_path / "table.csv", *options)
    assert code == 2
    assert line in printed
