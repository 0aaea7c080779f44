"""Errors and warnings name parameters as options on the command line, without any parsing of their text."""

import pytest

import bitatoms as ba

pytest.importorskip("typer")

from bitatoms.cli import options
from bitatoms.cli.spelling import as_arguments, as_option, describe
from bitatoms.errors import InputError, Parameter


@pytest.mark.parametrize(
    ("parameter", "option"),
    [
        (Parameter("missing", "zero"), "--missing zero"),
        (Parameter("binarize", 0.5), "--binarize 0.5"),
        (Parameter("blocks", (16, 8)), "--blocks 16x8"),
        (Parameter("format"), "--format"),
        (Parameter("n_components", -1), "--atoms -1"),
        (Parameter("max_components", 3), "--max-atoms 3"),
        (Parameter("max_time"), "--max-time"),
        (Parameter("n_jobs"), "--jobs"),
        (Parameter("random_state"), "--seed"),
        (Parameter("resume", True), "--resume"),
        (Parameter("header", False), "--no-header"),
        (Parameter("without", "a b"), "--without 'a b'"),
        (Parameter("sample_rows"), "--search-rows"),
        (Parameter("false_positive_cost"), "--false-positive-cost"),
        (Parameter("coder", "greedy"), 'coder="greedy"'),  # the command line has no such option
    ],
)
def test_option_of_a_parameter(parameter, option):
    assert as_option(parameter) == option


def test_message_text_is_never_parsed():
    message = 'x_missing="zero".csv: pass missing="zero" or max_time=3'
    for error in (ValueError(message), InputError(message), ba.FileError(message), UserWarning(message)):
        assert describe(error) == message
    assert describe(ba.FileError("a.csv: pass ", Parameter("missing", "zero"))) == "a.csv: pass --missing zero"


def test_arguments_of_several_options():
    options = {"binarize": 2.0, "header": True, "without": ("a", "b c"), "blocks": (8, 8)}
    assert as_arguments(options) == " --binarize 2.0 --header --without a --without 'b c' --blocks 8x8"


def test_a_parameter_without_an_option_gets_none():
    with pytest.raises(AssertionError, match="coder is declared without an option"):
        options.parameter("coder", panel="Search options")
