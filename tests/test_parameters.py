"""Declarations of parameters: signatures, documentation and checks follow from them."""

import inspect

import pytest

import bitatoms as ba
from bitatoms.core.coding import CODERS
from bitatoms.parameters import (
    CoverKwargs,
    EstimatorKwargs,
    FactorizeKwargs,
    NComponents,
    Param,
    ReadKwargs,
    SearchKwargs,
    choices,
    declaration,
    declarations,
    documented,
    with_defaults,
)

KINDS = (SearchKwargs, FactorizeKwargs, EstimatorKwargs, ReadKwargs, CoverKwargs)


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_is_declared(kind):
    for annotation, param in declarations(kind).values():
        assert isinstance(param, Param)
        assert param.help.endswith(".")
        assert not param.help.endswith("..")
        words = choices(annotation)
        assert not words or param.default is None or param.default in words or isinstance(param.default, int)


def test_choices_are_those_of_the_algorithms():
    assert choices(declaration("coder")[0]) == ("auto", *CODERS)


@pytest.mark.parametrize("function", [ba.factorize, ba.BinaryDictionaryLearning])
def test_signature_and_documentation(function):
    kind = FactorizeKwargs if function is ba.factorize else EstimatorKwargs
    shown = inspect.signature(function).parameters
    own = ("X", "n_components", "mask", "sample_weight")
    assert [name for name in shown if name not in own] == list(declarations(kind))
    for name, (annotation, param) in declarations(kind).items():
        assert (shown[name].default, shown[name].annotation) == (param.default, annotation)
        assert shown[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert f"\n{name} : " in function.__doc__
        assert param.help.split()[0] in function.__doc__
    assert shown["n_components"].default == NComponents.__metadata__[0].default == "mdl"
    assert '\nalgebra : {"xor", "or", "auto", "prefer-or"}, default="xor"\n' in function.__doc__
    assert '\nn_components : int or "mdl", default="mdl"\n' in function.__doc__
    assert '\npatience : int, "auto" or None, default="auto"\n' in function.__doc__
    assert "\ncheckpoint : str or path-like, optional\n" in function.__doc__


def test_unknown_parameters_are_reported():
    for function in (lambda: ba.factorize([[1, 0]], n_rows=3), lambda: ba.BinaryDictionaryLearning(n_rows=3)):
        with pytest.raises(TypeError, match="got an unexpected keyword argument 'n_rows'"):
            function()


def test_defaults_are_filled_in():
    assert with_defaults(SearchKwargs, {"search": "paper"}) == {
        name: "paper" if name == "search" else param.default for name, (_, param) in declarations(SearchKwargs).items()
    }


def test_a_function_without_docstring_gets_a_signature():
    def function(**parameters):
        return parameters

    assert list(inspect.signature(documented(ReadKwargs)(function)).parameters) == list(declarations(ReadKwargs))
    assert function.__doc__ is None


@pytest.mark.parametrize("name", ["n_init", "start_components", "patience", "search_rows"])
def test_unknown_words_are_reported_with_the_choices(name):
    with pytest.raises(ValueError, match=f"{name}='many' is not available; choose from 'auto' or an integer"):
        ba.factorize([[1, 0]], **{name: "many"})
