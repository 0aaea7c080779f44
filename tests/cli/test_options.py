"""Every option of a command arrives, with its value and its default, at the function of the library that it is for."""

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import bitatoms as ba

pytest.importorskip("click")

import click

from bitatoms.cli import options
from bitatoms.cli.app import COMMANDS, app
from bitatoms.cli.output import as_arguments, as_option, describe
from bitatoms.errors import Parameter
from bitatoms.io.options import ReadOptions
from bitatoms.parameters import option
from bitatoms.search.options import FitOptions

LIBRARY = {  # what is recorded, for each command
    "fit": "bitatoms.estimators.BinaryDictionaryLearning.fit",
    "convert": "bitatoms.cli.files.read",
    "pack": "bitatoms.rows.store.pack",
    "crossvalidate": "bitatoms.estimators.cell_validation.cross_validate_cells",
    "stability": "bitatoms.estimators.atom_stability.stability",
    "roles": "bitatoms.api.cover",
    "roles-diff": "bitatoms.roles.diff.role_diff",
    "rules": "bitatoms.model.rules.find_rules",
    "report": "bitatoms.report.write_report",
    "denoise": "bitatoms.images.denoise",
    "inpaint": "bitatoms.images.inpaint",
    "compare": "bitatoms.compare.compare",
}
READING = {name: value for name, value in ReadOptions().get_params().items() if name != "format"}
DEVICE = {"n_jobs": -1, "device": "cpu"}
SEARCH = {"algebra": "auto", "search": "fast", "max_time": None}
PICTURES = SEARCH | {"block_sizes": (6, 8), "stride": 2, "random_state": 0}
COVER = {
    "objective": "roles", "weights": (1, 1, 1), "direct_weight": None, "fixed_atoms": None,
    "max_features_per_atom": None, "apart": (), "together": (), "max_iter": 100, "max_time": None,
    "random_state": 0,
}  # fmt: skip
RESAMPLING = {
    "n_resamples": 20, "share": 0.5, "threshold": 0.8, "random_state": 0, "max_memory": None, "checkpoint": None,
    "resume": False,
}  # fmt: skip
COMPARISON = {
    "ranks": None, "only": None, "leave_out": [], "seeds": 1, "random_state": 0, "max_time": 60.0, "n_jobs": 1
}  # fmt: skip
REPORT = {"title": "table.csv", "rows": (), "groups": None, "max_rows": None} | DEVICE
FIT = SEARCH | DEVICE | {
    "n_components": "mdl", "max_components": None, "false_negative_cost": 1.0, "false_positive_cost": 1.0,
    "fixed_atoms": None, "bias": True, "max_features_per_atom": None, "min_samples_per_atom": None, "apart": (),
    "together": (), "random_state": 0, "search_rows": "auto", "checkpoint": None, "resume": False,
    "max_memory": None,
}  # fmt: skip

GROUPS = {"constraints": ba.Constraints, "resources": ba.Resources}

# The command with its arguments and options, and what the library gets of them: keyword arguments, or parameters.
CALLS = [
    ("fit table.csv", FIT),
    (
        "fit table.csv -k 3 --algebra or --search thorough --max-atoms 9 --false-negative-cost 1.5 "
        "--false-positive-cost inf --no-bias --max-features-per-atom 4 --min-samples-per-atom 2 --max-time 7 --seed 5 "
        "--search-rows 100 --checkpoint kept --resume --max-memory 2GB --jobs 2 --device auto "
        "--apart 'item 1,item 2' --together 'item 3, \"item 4\"' --together 'item 5,item 6'",
        FIT | {
            "n_components": 3, "algebra": "or", "search": "thorough", "max_components": 9, "false_negative_cost": 1.5,
            "false_positive_cost": np.inf, "bias": False, "max_features_per_atom": 4, "min_samples_per_atom": 2,
            "max_time": 7.0, "random_state": 5, "search_rows": 100, "checkpoint": Path("kept"), "resume": True,
            "max_memory": "2GB", "n_jobs": 2, "device": "auto", "apart": (("item 1", "item 2"),),
            "together": (("item 3", "item 4"), ("item 5", "item 6")),
        },
    ),
    ("fit table.csv --search-rows all", FIT | {"search_rows": None}),
    ("convert table.csv x.npz", READING | {"format": None}),
    (
        "convert table.csv x.npz --format tsv --binarize 2 --missing zero --duplicates number --no-header --row-names "
        "--separator '\\t' --sheet s --long a,b --categories --as-category a --as-category b --as-number c --bins 3 "
        "--names n.txt --layer l --modality rna --blocks 16x8 --transpose --without x --without y --dosage --phased "
        "--region 1:2-3 --maf 0.1 --keep k.txt --extract e.txt",
        {
            "format": "tsv", "binarize": 2.0, "missing": "zero", "duplicates": "number", "header": False,
            "row_names": True, "separator": "\t", "sheet": "s", "long": ("a", "b"), "categories": True,
            "as_category": ("a", "b"), "as_number": ("c",), "bins": 3, "names": "n.txt", "layer": "l",
            "modality": "rna", "blocks": (16, 8), "transpose": True, "without": ("x", "y"), "dosage": True,
            "phased": True, "region": "1:2-3", "maf": 0.1, "keep": "k.txt", "extract": "e.txt",
        },
    ),
    ("pack table.csv -o x.zarr", READING | {"format": None, "max_memory": None}),
    ("pack table.csv -o x.zarr --max-memory 1GB -f csv", READING | {"format": "csv", "max_memory": "1GB"}),
    ("crossvalidate table.csv", SEARCH | DEVICE | {"n_folds": 5, "share": 0.1, "random_state": 0}),
    (
        "crossvalidate table.csv --algebra or --search paper --max-time 3 --seed 4 --folds 2 --share 0.3 -j 2 "
        "--device auto",
        {
            "algebra": "or", "search": "paper", "max_time": 3.0, "n_folds": 2, "share": 0.3, "random_state": 4,
            "n_jobs": 2, "device": "auto",
        },
    ),
    ("stability table.csv", RESAMPLING | SEARCH | DEVICE | {"n_components": "mdl"}),
    (
        "stability table.csv -k 2 --algebra or --search paper --max-time 3 --seed 4 --resamples 5 --share 0.7 "
        "--threshold 0.6 --max-memory 1GB -j 2 --device auto",
        RESAMPLING | {
            "n_components": 2, "algebra": "or", "search": "paper", "max_time": 3.0, "random_state": 4, "share": 0.7,
            "n_resamples": 5, "threshold": 0.6, "max_memory": "1GB", "n_jobs": 2, "device": "auto",
        },
    ),
    ("stability table.csv model.npz", RESAMPLING | DEVICE),
    ("roles table.csv", COVER),
    (
        "roles table.csv --objective assignments --weights 2,1,0.5 --direct-weight 1.5 --max-features-per-atom 3 "
        "--apart 'item 1,item 2' --together 'item 3,item 4' --max-iter 7 --max-time 9 --random-state 4",
        COVER | {
            "objective": "assignments", "weights": (2, 1, 0.5), "direct_weight": 1.5, "max_features_per_atom": 3,
            "apart": (("item 1", "item 2"),), "together": (("item 3", "item 4"),), "max_iter": 7, "max_time": 9.0,
            "random_state": 4,
        },
    ),
    ("roles-diff table.csv table.csv", {"threshold": 0.5}),
    ("roles-diff table.csv table.csv --threshold 0.7", {"threshold": 0.7}),
    ("rules model.npz", {"min_support": 0.001, "min_confidence": 0.2, "min_lift": 1.5}),
    (
        "rules model.npz --min-support 0.1 --min-confidence 0.5 --min-lift 2",
        {"min_support": 0.1, "min_confidence": 0.5, "min_lift": 2.0},
    ),
    ("report model.npz table.csv", REPORT),
    (
        "report model.npz table.csv --title T --row a --row 3 --groups g --max-rows 7 -j 2 --device auto",
        REPORT | {"title": "T", "rows": ("a", "3"), "groups": "g", "max_rows": 7, "n_jobs": 2, "device": "auto"},
    ),
    ("denoise picture.pbm -o x.pbm", PICTURES | DEVICE | {"noise": None}),
    (
        "denoise picture.pbm -o x.pbm --noise 0.1 --block-sizes 4,5 --stride 3 --algebra or --search paper "
        "--max-time 3 --seed 4 -j 2 --device auto",
        {
            "noise": 0.1, "block_sizes": (4, 5), "stride": 3, "algebra": "or", "search": "paper", "max_time": 3.0,
            "random_state": 4, "n_jobs": 2, "device": "auto",
        },
    ),
    ("inpaint picture.pbm --mask picture.pbm -o x.pbm", PICTURES | DEVICE),
    (
        "inpaint picture.pbm --mask picture.pbm -o x.pbm --block-sizes 4 --stride 3 --algebra or --search paper "
        "--max-time 3 --seed 4 -j 2 --device auto",
        {
            "block_sizes": (4,), "stride": 3, "algebra": "or", "search": "paper", "max_time": 3.0, "random_state": 4,
            "n_jobs": 2, "device": "auto",
        },
    ),
    ("compare table.csv", COMPARISON),
    (
        "compare table.csv --atoms 2,4 --only mob,asso --leave-out asso --seeds 3 --seed 4 --max-time 5 -j 2",
        {
            "ranks": [2, 4], "only": ["mob", "asso"], "leave_out": ["asso"], "seeds": 3, "random_state": 4,
            "max_time": 5.0, "n_jobs": 2,
        },
    ),
]  # fmt: skip


def flat(given):
    """Return arguments of a function, with the fields of constraints and resources in the place of these."""
    fields = {}
    for name, value in given.items():
        fields |= (value or GROUPS[name]()).get_params() if name in GROUPS else {name: value}
    return fields


@pytest.mark.parametrize(("command", "expected"), CALLS, ids=[command[:60] for command, _ in CALLS])
def test_options_arrive_with_their_values(bitatoms, put, monkeypatch, command, expected):
    put("or")
    ba.write(np.eye(8, dtype=np.uint8), "picture.pbm")
    name, *arguments = shlex.split(command)
    if name == "compare":
        pytest.importorskip("matplotlib")
    found = []

    def record(*given, **more):
        options = {"fit": 0, "rules": 1}  # the position of an object that has the options
        found.append(flat(given[options[name]].get_params(deep=False)) if name in options else flat(more))
        raise ba.InputError("recorded")

    monkeypatch.setattr(LIBRARY[name], record)
    code, _, stderr = bitatoms(name, *arguments)
    assert (code, stderr.splitlines()[-1]) == (2, "bitatoms: recorded")
    (given,) = found
    assert {key: value for key, value in given.items() if key in expected} == expected
    assert name == "fit" or given.keys() - expected.keys() <= {
        "callback",
        "callbacks",
        "command",
        "binarize",
        "verbose",
    }


def commands():
    """Return the commands by name."""
    return [(name, app.get_command(click.Context(app), name)) for group in COMMANDS.values() for name in group]


def test_every_command_has_json_and_options_with_names_of_their_own():
    for name, command in commands():
        flags = [flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)]
        assert "--json" in flags, name
        assert len(flags) == len(set(flags)), name
        assert not [flag for flag in flags if "none" in flag.lower()], name


def test_help_has_examples_and_choices(bitatoms, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    for name, command in commands():
        assert f"bitatoms {name}" in " ".join(command.examples)
        assert f"bitatoms {name}" in bitatoms.output(name, "--help").partition("Examples:")[2]
    stdout = bitatoms.output("transform", "--help")
    assert "bitatoms transform model.npz new.csv -o codes.csv" in stdout
    assert "auto|refuse|zero|unknown" not in stdout
    assert "cpu|cuda|auto" in bitatoms.output("transform", "--help-all")


def test_help_lists_all_commands_by_groups_with_the_first_words_of_their_help(bitatoms, monkeypatch):
    monkeypatch.setenv("COLUMNS", "150")
    stdout = bitatoms.output("--help")
    assert [line[:-1] for line in stdout.splitlines() if line[:-1] in COMMANDS] == [*COMMANDS]
    for group in COMMANDS.values():
        for name, (_, about) in group.items():
            command = app.get_command(click.Context(app), name)
            assert command.callback.__module__ == "bitatoms.cli.options"
            assert " ".join(command.help.split()).startswith(about.removesuffix(".")), name
            assert about in stdout


def test_help_describes_what_people_use_and_names_the_rest(bitatoms, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    lines = bitatoms.output("fit", "--help").splitlines()
    assert len(lines) <= 50
    assert max(map(len, lines)) <= 100
    described = [line.split()[0].strip(",") for line in lines if line.startswith("  --")]
    common = "--output --report --atoms --algebra --search --max-time --binarize --categories"
    assert described == common.split()
    for name, command in commands():
        text, everything = bitatoms.output(name, "--help"), bitatoms.output(name, "--help-all")
        for each in command.options():
            assert each.opts[0] in text
            assert f"  {each.opts[0]}" in everything
            assert " ".join(each.help.split()) in " ".join(everything.split())
        assert ("--help-all" in text) == command.hides


def test_an_option_needs_its_declaration_only():
    @dataclass(frozen=True, kw_only=True)
    class More(FitOptions):
        number: int = option(3, "A number.", minimum=2, option="number-of")
        path: str | os.PathLike[str] | None = option(None, "A file.", option="path")
        word: Literal["a", "b"] = option("a", "A word.", option="word", is_common=True)
        several: Sequence[str] = option((), "Names.", option="several")
        is_on: bool = option(True, "A switch.", option="switch")
        hidden: int = option(1, "No option.")

    declared = options.declared_options(More)
    added = {one.name: one for one in declared.parameters("search") if one.name in More.__annotations__}
    rows = [one.row() for one in added.values()]
    assert rows == [
        ("--number-of INTEGER", "A number.  [default: 3]"),
        ("--path FILE", "A file."),
        ("--word a|b", "A word.  [default: a]"),
        ("--several TEXT", "Names; may be repeated."),
        ("--switch / --no-switch", "A switch."),
    ]
    assert [name for name, one in added.items() if one.is_common] == ["word"]
    command = click.Command("more", params=declared.parameters("search"), callback=lambda **given: given)
    words = "--number-of 5 --path p --word b --several x --several y --no-switch --atoms 4 --max-atoms 7"
    more = declared.value("search", command.main(words.split(), standalone_mode=False))
    assert (more.number, more.path, more.word, more.several, more.is_on) == (5, "p", "b", ("x", "y"), False)
    assert (more.n_components, more.constraints.max_components, more.n_jobs) == (4, 7, -1)


SPELLED = {
    Parameter("missing", "zero"): "--missing zero", Parameter("binarize", 0.5): "--binarize 0.5",
    Parameter("blocks", (16, 8)): "--blocks 16x8", Parameter("format"): "--format",
    Parameter("n_components", -1): "--atoms -1", Parameter("max_components", 3): "--max-atoms 3",
    Parameter("max_time"): "--max-time", Parameter("n_jobs"): "--jobs", Parameter("random_state"): "--seed",
    Parameter("resume", True): "--resume", Parameter("header", False): "--no-header",
    Parameter("without", "a b"): "--without 'a b'", Parameter("search_rows"): "--search-rows",
    Parameter("false_positive_cost"): "--false-positive-cost", Parameter("bitatoms.cover"): "bitatoms roles",
    Parameter("coder", "greedy"): 'coder="greedy"',  # the command line has no such option
}  # fmt: skip


def test_messages_name_parameters_as_options_and_their_text_is_never_parsed():
    assert {parameter: as_option(parameter) for parameter in SPELLED} == SPELLED
    message = 'x_missing="zero".csv: pass missing="zero" or max_time=3'
    for error in (ValueError(message), ba.InputError(message), ba.FileError(message), UserWarning(message)):
        assert describe(error) == message
    assert describe(ba.FileError("a.csv: pass ", Parameter("missing", "zero"))) == "a.csv: pass --missing zero"
    given = {"binarize": 2.0, "header": True, "without": ("a", "b c"), "blocks": (8, 8)}
    assert as_arguments(given) == " --binarize 2.0 --header --without a --without 'b c' --blocks 8x8"
    with pytest.raises(AssertionError, match="coder is declared without an option"):
        options.declared(FitOptions, "coder")
