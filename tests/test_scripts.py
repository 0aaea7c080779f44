"""Scripts in benchmarks/ and examples/ find all names that they import, and each benchmark is part of a quick run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GALLERY = sorted((ROOT / "examples/gallery").glob("*.py"))  # each runs when it is imported; make docs runs them
SCRIPTS = sorted({*ROOT.glob("benchmarks/*.py"), *ROOT.glob("examples/**/*.py")} - {*GALLERY})
IMPORT_ALL = """
import json, sys, traceback
from importlib import import_module
from pathlib import Path

errors = {}
for path in map(Path, sys.argv[1:]):
    sys.path.insert(0, str(path.parent))
    try:
        import_module(path.stem)
    except BaseException:
        errors[path.name] = traceback.format_exc()
    sys.path.pop(0)
bench = sys.modules.get("bench")
listed = [*bench.SCRIPTS, *(f"{part.__module__}.py" for part in bench.PARTS.values())] if bench else []
print(json.dumps([errors, listed]))
"""


@pytest.fixture(scope="module")
def imported():
    """Import all scripts in one new process: their modules have names of others, and many import the same libraries."""
    run = subprocess.run([sys.executable, "-c", IMPORT_ALL, *SCRIPTS], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(run.stdout)


def test_scripts_can_be_imported(imported):
    assert imported[0] == {}


def test_each_benchmark_is_part_of_a_quick_run(imported):
    _, listed = imported
    benchmarks = {path.name: path for path in SCRIPTS if path.parent.name == "benchmarks"}
    assert set(listed) <= set(benchmarks)
    programs = {name for name, path in benchmarks.items() if "\ndef main(" in path.read_text(encoding="utf-8")}
    assert programs <= {"bench.py", *listed}, "add each script to SCRIPTS in benchmarks/bench.py"
