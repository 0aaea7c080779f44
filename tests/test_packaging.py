"""Wheel, sdist, conda recipe and workflows agree with pyproject.toml; `make dist` checks the files that it builds."""

import re
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

import bitatoms as ba

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, EXTRAS = PYPROJECT["project"], PYPROJECT["project"]["optional-dependencies"]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


spec = spec_from_file_location("check_dist", ROOT / "packaging/check_dist.py")
check_dist = module_from_spec(spec)
spec.loader.exec_module(check_dist)


def read_yaml(path):
    """Return the contents of a YAML file."""
    return pytest.importorskip("yaml").safe_load((ROOT / path).read_text(encoding="utf-8"))


def lower_bounds(*extras):
    """Return the lowest version of each library that the package, or some of its extras, require."""
    found = {}
    for requirement in PROJECT["dependencies"] if not extras else [each for name in extras for each in EXTRAS[name]]:
        name, own_extras, bound = re.fullmatch(r"([\w-]+)(?:\[([\w,]+)\])?(?:>=([\d.]+))?", requirement).groups()
        if name == "bitatoms":
            found |= lower_bounds(*own_extras.split(","))
        else:
            assert bound, requirement
            found[name.lower()] = bound
    return found


# --- versions of libraries


def test_oldest_versions_are_the_lower_bounds():
    lines = (ROOT / "packaging/oldest.txt").read_text(encoding="utf-8").splitlines()
    pinned = [tuple(line.split("==")) for line in lines if not line.startswith("#")]
    assert pinned == sorted(pinned)
    assert dict(pinned) == lower_bounds() | lower_bounds("test")


def test_the_recipe_is_that_of_the_package():
    recipe = read_yaml("recipe/recipe.yaml")
    assert recipe["context"]["version"] == ba.__version__
    assert f">={recipe['context']['python_min']}" == PROJECT["requires-python"]
    required = recipe["requirements"]
    assert required["host"][1:] == [*map(spaced, PYPROJECT["build-system"]["requires"]), "pip"]
    assert required["run"][1:] == [*map(spaced, PROJECT["dependencies"]), *map(spaced, EXTRAS["cli"])]
    conda_names = {"matplotlib": "matplotlib-base", "cupy-cuda12x": "cupy"}
    optional = lower_bounds("all", "cuda12", "pgen", "vcf").items() - lower_bounds("cli").items()
    expected = sorted(f"{conda_names.get(name, name)} >={bound}" for name, bound in optional)
    assert required["run_constraints"] == expected
    (entry_point,) = recipe["build"]["python"]["entry_points"]
    assert dict([entry_point.split(" = ")]) == PROJECT["scripts"]
    assert recipe["about"]["summary"] == PROJECT["description"]
    assert recipe["about"]["license"] == PROJECT["license"]


def spaced(requirement):
    """Return a requirement as conda writes it."""
    return requirement.replace(">=", " >=")


def test_the_changelog_and_the_citation_have_the_date_of_the_version():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.search(rf"^## \[{re.escape(ba.__version__)}\] - (\d{{4}}-\d\d-\d\d)$", changelog, re.MULTILINE)[1]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\ndate-released: {released}\n" in citation
    assert f"\nversion: {ba.__version__}\n" in citation


# --- workflows


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_and_permissions_are_stated(path):
    text = path.read_text(encoding="utf-8")
    used = [line for line in re.findall(r"uses: (.*)", text) if not line.startswith("./")]
    assert used
    assert [line for line in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+(\.\d+)*", line)] == []
    assert {*re.findall(r"^(permissions|concurrency):", text, re.MULTILINE)} == {"permissions", "concurrency"}


def test_ci_tests_the_python_versions_of_the_classifiers():
    jobs = read_yaml(".github/workflows/ci.yml")["jobs"]
    prefix = "Programming Language :: Python :: 3."
    assert jobs["test"]["strategy"]["matrix"]["python"] == [
        f"3.{name.removeprefix(prefix)}" for name in PROJECT["classifiers"] if name.startswith(prefix)
    ]
    assert f">={jobs['oldest']['steps'][1]['with']['python-version']}" == PROJECT["requires-python"]


def test_only_publishing_gets_a_token_and_it_publishes_what_ci_built():
    workflow = read_yaml(".github/workflows/release.yml")
    assert workflow["permissions"] == {}
    tokens = {name for name, job in workflow["jobs"].items() if "id-token" in job["permissions"]}
    assert tokens == {"publish"}
    publish = workflow["jobs"]["publish"]
    assert (publish["needs"], publish["environment"]) == ("ci", "pypi")
    assert not [step for step in publish["steps"] if "run" in step or "checkout" in step.get("uses", "")]


# --- built files


def test_the_sdist_includes_all_that_is_at_the_top():
    included = PYPROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert [path for path in included if not (ROOT / path[1:]).exists()] == []
    if not (ROOT / ".git").exists():
        pytest.skip("an unpacked sdist")
    always = {"pyproject.toml", "README.md", "LICENSE", ".gitignore"}
    tops = {name.partition("/")[0] for name in check_dist.tracked_files()}
    assert tops == {path[1:] for path in included} | always | {".ci"}


def test_files_beside_python_modules_are_packaged():
    """The wheel has the whole folder; `check_dist` looks for these kinds of files in it."""
    wheel = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel == {"packages": ["src/bitatoms"]}
    package = Path(ba.__file__).parent
    files = [path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    others = {path.name for path in files if path.suffix != ".py"}
    patterns = check_dist.DATA_FILES
    assert [name for name in others if not any(Path(name).match(pattern) for pattern in patterns)] == []
    assert [pattern for pattern in patterns if not any(Path(name).match(pattern) for name in others)] == []


def test_contents_are_compared():
    """`make dist` compares those of the wheel and the sdist."""
    check_dist.require_equal("the wheel", {"a", "b"}, {"b", "a"})
    for found, message in (({"a"}, "the wheel lacks b$"), ({"a", "b", "c"}, "has in addition c$")):
        with pytest.raises(check_dist.CheckFailed, match=message):
            check_dist.require_equal("the wheel", {"a", "b"}, found)
