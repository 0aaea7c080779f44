"""Options of the estimators: those of a fit, and what each of them adds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ..model.options import RuleOptions
from ..parameters import Param, declared_in, nested_declarations, option
from ..run_options import NewRowOptions, RunOptions
from ..search.options import Algebra, FitOptions, PaperSearch, SearchOptions
from ..validation import check_fraction

ImputationMethod = Literal["auto", "atoms", "neighbours", "profiles", "regression"]


@dataclass(frozen=True, kw_only=True)
class EstimatorOptions(NewRowOptions, FitOptions):
    """Parameters of `bitatoms.BinaryDictionaryLearning`: those of a fit, of new rows and of streams."""

    forget: float = option(
        0.0,
        "Fraction of their weight that earlier rows lose with every row that ``partial_fit`` learns from.",
        "1e-4 remembers about the last 10 000 rows; 0 forgets nothing.",
        check=check_fraction,
    )


@dataclass(frozen=True, kw_only=True)
class ClassifierOptions(NewRowOptions, RunOptions, SearchOptions):
    """Parameters of `bitatoms.BinaryDictionaryClassifier`: those of the search for each class, and of the classes."""

    algebra: Algebra = declared_in(SearchOptions, "algebra", default="or")
    n_models: int = option(
        8,
        "Largest number of models per class; the bits of a sample are a mean over them.",
        "Each is learned from a bootstrap sample of the samples of the class: as many, drawn with replacement, which "
        "in every second model count twice. Two are learned of each class at a time, until at most 2 % of the "
        "predictions of training samples change. With 1, a single model is learned from all samples of the class.",
        minimum=1,
    )
    priors: Any = option(
        None,
        "Probabilities of the classes, in the order of ``classes_``.",
        "By default the shares of the classes in ``fit``.",
        check=lambda name, value: value,  # checked when the classes are known
        type="array-like of shape (n_classes,), optional",
    )


@dataclass(frozen=True, kw_only=True)
class ImputerOptions(NewRowOptions, RunOptions, SearchOptions):
    """Parameters of `bitatoms.BinaryImputer`: those of the search for atoms, and of the profiles."""

    method: ImputationMethod = option(
        "auto",
        "What predicts unknown cells: atoms, similar rows (neighbours), profiles of similar rows, or a regression.",
        '"atoms": a model as that of `BinaryDictionaryLearning`. "neighbours": rows vote, similar ones with more '
        "weight; only the columns near a cell are compared if that predicts better, as along a genome. "
        '"profiles": groups of similar rows, each with the shares of the values of its variables. "regression": each '
        'variable from all others. "auto" hides a twentieth of the known cells, learns all four from the others, and '
        "weighs those that make the log loss of the hidden cells lower; with fewer than 5000 values hidden, it does so "
        "up to five times. With more than 1000 columns, it tries only atoms and neighbours. With more than 300 000 "
        "known cells, it uses atoms only if they lower a log loss above 0.1 by 5 % in a part of the table. Also of a "
        "method alone, what it states is fitted to the hidden cells, so that probabilities come true.",
    )
    n_profiles: int | Literal["auto"] = option(
        "auto", "Number of profiles.", '"auto" is one per 20 rows, at most 50.', minimum=1
    )


@dataclass(frozen=True)
class CountedRuleOptions(RuleOptions):
    """Parameters of `BinaryDictionaryLearning.rules`: the rows that rules are counted in, and which are listed."""

    X: Any = option(
        None,
        "The samples to count, usually the training table.",
        "It is needed for antecedents that are shorter than the rest of the pattern, and for models of streams.",
        check=lambda name, value: value,  # checked where it is read
        type="array-like, sparse matrix, data frame, Table, BitMatrix, AnnData, Store or path, optional",
    )


def result_parameters() -> dict[str, tuple[Any, Param]]:
    """Return the parameters of `BinaryDictionaryLearning` that decide the result, by name as in ``get_params()``.

    These are the parameters that model files hold. Run settings are not among them: a file may be untrusted, and must
    not decide how the next fit runs, such as the folder that it writes to.
    """
    declared = nested_declarations(EstimatorOptions).items()
    return {name: each for name, each in declared if not (each[1].is_run_setting or name == "constraints")}


def stored_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters to store in a model file, from those of ``get_params()``."""
    stored = {name: value for name, value in parameters.items() if name in result_parameters()}
    return stored | ({"search": "paper"} if isinstance(stored.get("search"), PaperSearch) else {})
