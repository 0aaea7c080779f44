"""Break the package on purpose, in one place at a time, and count how many of the breaks the tests find.

    python benchmarks/mutants.py map map.json                  # which tests execute which lines; needs pytest-cov
    python benchmarks/mutants.py draw --seed 1 mutants.json    # 300 changes of the current source
    python benchmarks/mutants.py run mutants.json map.json --jobs 2 results.json

``map`` runs all tests once. ``run`` applies each change to a copy of the project, and runs the tests that execute the
changed line until one fails. Compiled kernels are not traced: their changes are run against the tests of ``FIRST``,
then against all others, with kernels compiled anew. A change that no test finds survives, and is printed.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "src/bitatoms"

# Areas: how many changes are drawn of 300, and the modules and packages of the area.
AREAS: dict[str, tuple[int, tuple[str, ...]]] = {
    "kernels": (45, ("kernels/cpu",)),
    "core": (75, ("core", "covers", "bits", "sparse_bits", "mdl", "parallel")),
    "search": (80, ("search",)),
    "rows and io": (
        60,
        ("rows", "online", "io", "table", "matching", "encoding", "variables", "variants", "annotations"),
    ),
    "interfaces": (
        40,
        ("api", "base", "validation", "checks", "estimators", "cli", "report", "roles", "images", "baselines", "plots"),
    ),
}
TESTS = ("-m", "not slow", "--ignore=tests/browser", "-p", "no:cacheprovider")  # those of `make test`
ELSEWHERE = ("pgen", "vcf", "bcf", "mudata", "device_rows")  # tested by `make test-formats` and `make test-gpu`
GOLDEN = "tests/test_golden_hashes.py"  # finds most changes of the search
FIRST = ("tests/kernels", "tests/engine", "tests/model", "tests/covers", "tests/test_bits.py", "tests/search")
N_FIRST = 5  # modules of tests that are run before the others of a mutant

_COMPARISONS: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_OPERATORS: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum"}
_NO_CHANGE = (None, "dtype", "copy", "order", "digest_size")  # arguments without which most results are the same
_CHECKS = ("check=False", "strict=True")  # arguments that check what always holds, or do not
_TEXT = ("logger", "warnings", "log")  # calls whose arguments are text for people


@dataclass(frozen=True)
class Mutant:
    """A change of one expression or statement, which begins and ends at these lines and columns (in bytes)."""

    area: str
    path: str
    kind: str
    start: tuple[int, int]
    end: tuple[int, int]
    before: str
    after: str

    def applied(self, source: str) -> str:
        """Return the source with the change."""
        lines = [line.encode() for line in source.splitlines(keepends=True)]
        (first, begin), (last, end) = self.start, self.end
        changed = lines[first - 1][:begin] + self.after.encode() + lines[last - 1][end:]
        return b"".join([*lines[: first - 1], changed, *lines[last:]]).decode()

    def __str__(self) -> str:
        return f"{self.path}:{self.start[0]}  {self.kind}: {self.before!r} -> {self.after!r}"


# Drawing.


def draw(seed: int, n_mutants: int) -> list[Mutant]:
    """Return changes of the current source, in each area at most one per line and in proportion to `AREAS`.

    Lines are chosen by hashes of their text: where the source changes, the other lines that are drawn stay the same.
    """
    total = sum(share for share, _ in AREAS.values())
    chosen: list[Mutant] = []
    for area, (share, names) in AREAS.items():
        lines: dict[tuple[str, int], list[Mutant]] = defaultdict(list)
        for path in sorted(path for name in names for path in _modules(name)):
            for mutant in _mutants(area, path):
                lines[path, mutant.start[0]].append(mutant)
        drawn = [random.Random(f"{seed} {path} {found[0].before}").choice(found) for (path, _), found in lines.items()]
        drawn.sort(key=lambda mutant: random.Random(f"{seed} {mutant.path} {mutant.before} {mutant.after}").random())
        chosen += drawn[: round(n_mutants * share / total)]
    return chosen


def _modules(name: str) -> Iterator[str]:
    """Yield the paths of a module, or of all modules of a package."""
    path = ROOT / PACKAGE / name
    for file in sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]:
        if file.stem not in ELSEWHERE:
            yield file.relative_to(ROOT).as_posix()


def _mutants(area: str, path: str) -> Iterator[Mutant]:
    """Yield all changes of a module."""
    source = (ROOT / path).read_text()
    for node in _code(ast.parse(source)):
        for kind, after in _changes(node):
            start, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
            yield Mutant(area, path, kind, start, end, ast.unparse(node), after)


def _code(node: ast.AST) -> Iterator[Any]:
    """Yield the nodes that change what is computed: no annotations, decorators, docstrings and messages."""
    if isinstance(node, ast.stmt | ast.expr):
        yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params", "format_spec"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_without_effect(child):
                yield from _code(child)


def _is_without_effect(node: ast.AST) -> bool:
    """Return whether changes of a node change no result: texts, sizes of chunks and arrays, checks, types."""
    match node:
        case ast.Expr(value=ast.Call() as call):
            return _is_without_effect(call)
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant() | ast.BinOp()):
            return name.isupper()  # sizes and limits, on which no result depends
        case ast.Raise() | ast.Assert() | ast.JoinedStr() | ast.Import() | ast.ImportFrom():
            return True
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np"), attr="empty")):
            return True
        case ast.keyword(value=ast.Constant()):
            return ast.unparse(node) in _CHECKS
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name))) | ast.Call(func=ast.Name(id=name)):
            return name in _TEXT
        case ast.FunctionDef(name=name):
            return name in ("__repr__", "__str__")
        case _:
            return False


def _changes(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the kind and the source of each change of a node."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=comparators) if type(op) in _COMPARISONS:
            yield "comparison", _unparse(ast.Compare(left, [_COMPARISONS[type(op)]()], comparators))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS and not _has_string(node):
            yield "operator", _unparse(ast.BinOp(left, _OPERATORS[type(op)](), right))
        case ast.BoolOp(op=op, values=values):
            other = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield "and/or", _unparse(ast.BoolOp(other, values))
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
            yield "operator removed", _unparse(operand)
        case ast.Constant(value=bool(value)):
            yield "constant", str(not value)
        case ast.Constant(value=int(value)):
            yield "constant", str(value + 1)
        case ast.Constant(value=float(value)):
            yield "constant", repr(2 * value + (value == 0))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield "condition negated", _unparse(ast.IfExp(test, orelse, body))
        case ast.Slice(lower=lower, upper=upper, step=None) if lower is None or upper is None:
            shifted = ast.Constant(1) if lower is None else ast.BinOp(lower, ast.Add(), ast.Constant(1))
            yield "slice", ast.unparse(ast.Slice(shifted, upper))
        case ast.AugAssign():
            yield "statement removed", "pass"
            if type(node.op) in _OPERATORS and not _has_string(node):
                yield "operator", ast.unparse(ast.AugAssign(node.target, _OPERATORS[type(node.op)](), node.value))
        case ast.Expr(value=ast.Call()):
            yield "statement removed", "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "statement removed", "pass"
        case ast.Break():
            yield "break", "continue"
        case ast.Continue():
            yield "continue", "break"
        case ast.Call(func=function, args=args, keywords=keywords):
            if isinstance(function, ast.Name | ast.Attribute):
                name = function.id if isinstance(function, ast.Name) else function.attr
                if name in _FUNCTIONS:
                    other_function = ast.parse(_FUNCTIONS[name].join(ast.unparse(function).rsplit(name, 1)))
                    yield "function", ast.unparse(ast.Call(other_function.body[0].value, args, keywords))  # type: ignore[attr-defined]
            for i, keyword in enumerate(keywords):
                if keyword.arg not in _NO_CHANGE and not _is_without_effect(keyword):
                    yield "argument dropped", ast.unparse(ast.Call(function, args, keywords[:i] + keywords[i + 1 :]))


def _unparse(expression: ast.expr) -> str:
    """Return the source of an expression in brackets, so that it may stand anywhere."""
    return f"({ast.unparse(expression)})"


def _has_string(node: ast.AST) -> bool:
    """Return whether an expression may join strings."""
    return any(
        isinstance(part, ast.JoinedStr) or (isinstance(part, ast.Constant) and isinstance(part.value, str))
        for part in ast.walk(node)
    )


# Which tests execute a line.


def record_map(output: Path, jobs: int) -> None:
    """Run all tests with coverage, and write the tests of each line, and the seconds of each test."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data, report, config = folder / "coverage", folder / "report.xml", folder / "coveragerc"
        config.write_text(f"[run]\nbranch = True\nsource = bitatoms\ndata_file = {data}\n")
        how = [*TESTS, "-n", str(jobs), "--dist", "loadfile", "--no-loadscope-reorder", "-q"]
        traced = ["--cov", f"--cov-config={config}", "--cov-context=test", "--cov-report=", f"--junitxml={report}"]
        subprocess.run([sys.executable, "-m", "pytest", *how, *traced], cwd=ROOT, env=_environment(ROOT), check=False)
        shown = ["report", f"--data-file={data}", f"--rcfile={config}", "--precision=2"]
        subprocess.run([sys.executable, "-m", "coverage", *shown], cwd=ROOT, check=True)
        output.write_text(json.dumps(read_map(data, report)))


def read_map(data: Path, report: Path) -> dict[str, Any]:
    """Return the tests of each line and the seconds of each test, without the tests that fail."""
    seconds: dict[str, float] = defaultdict(float)
    unusable = set()
    for case in ElementTree.parse(report).iter("testcase"):
        test = f"{case.get('classname', '').replace('.', '/')}.py::{_function(case.get('name', ''))}"
        seconds[test] += float(case.get("time", "0"))
        if any(child.tag in ("failure", "error") for child in case):
            unusable.add(test)
    tests = sorted(test for test in seconds if test.startswith("tests/") and test not in unusable)
    index = {test: i for i, test in enumerate(tests)}
    lines: dict[str, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    base = sqlite3.connect(data)
    files = dict(base.execute("SELECT id, path FROM file"))
    contexts = {
        i: index.get(_function(name.split("|")[0])) for i, name in base.execute("SELECT id, context FROM context")
    }
    for file, context, *jump in base.execute("SELECT file_id, context_id, fromno, tono FROM arc"):
        if contexts[context] is not None:
            path = PACKAGE + files[file].rpartition(PACKAGE)[2]
            for number in jump:
                lines[path][abs(number)].add(contexts[context])
    return {
        "tests": tests,
        "seconds": [round(seconds[test], 3) for test in tests],
        "lines": {path: {n: sorted(who) for n, who in found.items()} for path, found in lines.items()},
    }


def _function(test: str) -> str:
    """Return the name of a test without its parameters."""
    return test.partition("[")[0]


def tests_of(mutant: Mutant, tested: dict[str, Any]) -> list[str]:
    """Return the tests that execute a changed line, by module: those of the same name first, then the fastest.

    Lines that only an import executes, and all lines of compiled kernels, have the tests of the whole module or all.
    """
    tests, seconds = tested["tests"], tested["seconds"]
    compiled = mutant.area == "kernels"
    lines = tested["lines"].get(mutant.path, {})
    chosen = {i for n in range(mutant.start[0], mutant.end[0] + 1) for i in lines.get(str(n), [])}
    if not chosen:
        chosen = {i for found in lines.values() for i in found}
    if compiled or not chosen:
        chosen = set(range(len(tests)))
    modules: dict[str, list[int]] = defaultdict(list)
    for i in sorted(chosen):
        modules[_module(tests[i])].append(i)

    def rank(module: str) -> tuple[bool, int, bool, float]:
        folder = next((i for i, name in enumerate(FIRST) if module.startswith(name)), len(FIRST)) if compiled else 0
        same_name = Path(mutant.path).stem in Path(module).stem
        return not same_name, folder, module != GOLDEN, sum(seconds[i] for i in modules[module])

    return [tests[i] for module in sorted(modules, key=rank) for i in modules[module]]


# Running.


def run(mutants: list[Mutant], tested: dict[str, Any], output: Path, jobs: int, limit: float) -> list[dict[str, Any]]:
    """Run the tests of each change in copies of the project, and write the results one by one."""
    copies: SimpleQueue[Path] = SimpleQueue()
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(jobs) as pool:
        for i in range(jobs):
            copies.put(_copied_project(Path(name) / str(i)))
        _check_collected(tested["tests"], Path(name))

        def judge(mutant: Mutant) -> None:
            copy = copies.get()
            start = time.perf_counter()
            outcome, killer = _outcome(mutant, tests_of(mutant, tested), copy, limit)
            copies.put(copy)
            took = round(time.perf_counter() - start, 1)
            results.append({**asdict(mutant), "outcome": outcome, "killer": killer, "seconds": took})
            print(f"{len(results):4d} {outcome:8s} {took:6.1f} s  {mutant}  {killer}", flush=True)
            output.write_text(json.dumps(results, indent=1))

        list(pool.map(judge, mutants))
    return results


def _copied_project(copy: Path) -> Path:
    """Copy the project with its compiled kernels, but not its environments and build outputs."""
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv*", "build", "dist", ".*_cache"))
    return copy


def _check_collected(tests: list[str], folder: Path) -> None:
    """Stop if pytest does not find all tests of the map, because each change would then seem to be found."""
    names = folder / "tests"
    names.write_text("\n".join(tests))
    command = [sys.executable, "-m", "pytest", *TESTS, "--collect-only", "-q", f"@{names}"]
    done = subprocess.run(command, cwd=ROOT, env=_environment(ROOT), capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"the tests of the map cannot be run:\n{done.stdout[-1000:]}{done.stderr}")


def _environment(root: Path) -> dict[str, str]:
    """Return the environment of tests of a copy of the project."""
    kept = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{kept}", "OMP_NUM_THREADS": "1"}


def _outcome(mutant: Mutant, tests: list[str], copy: Path, limit: float) -> tuple[str, str]:
    """Return what became of a change, and the first test that failed.

    The first tests are run alone, because reading all modules of tests takes longer than most of them.
    """
    file = copy / mutant.path
    source = file.read_text()
    first = list(dict.fromkeys(map(_module, tests)))[:N_FIRST]
    parts = ([test for test in tests if (_module(test) in first) is is_first] for is_first in (True, False))
    deadline = time.perf_counter() + limit
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        environment = _environment(copy) | {"TEST_ORDER": "given", "TMPDIR": folder}
        if mutant.area == "kernels":
            environment["NUMBA_CACHE_DIR"] = f"{folder}/kernels"
        file.write_text(mutant.applied(source))
        try:
            for part in filter(None, parts):  # without names, pytest would run all tests
                names = Path(folder) / "tests"
                names.write_text("\n".join(part))
                how = [*TESTS, "-x", "-q", "--no-header", "--tb=no"]
                hangs = ["-o", "faulthandler_timeout=120", "-o", "faulthandler_exit_on_timeout=true"]
                command = [sys.executable, "-m", "pytest", *how, *hangs, f"@{names}"]
                left = max(1.0, deadline - time.perf_counter())
                done = subprocess.run(command, cwd=copy, env=environment, timeout=left, capture_output=True, text=True)
                if done.returncode:
                    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
                    return "killed", failed[1] if failed else f"exit {done.returncode}"
        except subprocess.TimeoutExpired:
            return "limit", ""
        finally:
            file.write_text(source)
    return "survived", ""


def _module(test: str) -> str:
    """Return the path of the module of a test."""
    return test.partition("::")[0]


def summarize(results: list[dict[str, Any]]) -> None:
    """Print how many changes of each area were found, and those that were not."""
    drawn = Counter(result["area"] for result in results)
    killed = Counter(result["area"] for result in results if result["outcome"] == "killed")
    for area, n in drawn.items():
        print(f"{area:12s} {killed[area]:4d} of {n:4d} killed")
    print(f"{'all':12s} {killed.total():4d} of {drawn.total():4d} killed ({killed.total() / drawn.total():.1%})")
    for result in results:
        if result["outcome"] != "killed":
            print(f"  {result['outcome']}: {_mutant(result)}")


def _mutant(stored: dict[str, Any]) -> Mutant:
    """Return a change that was read from a file."""
    fields = {name: stored[name] for name in Mutant.__dataclass_fields__}
    return Mutant(**{**fields, "start": tuple(fields["start"]), "end": tuple(fields["end"])})


def main() -> None:
    """Map the tests, draw changes, or run them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    mapping = actions.add_parser("map", help="run all tests with coverage, and write which lines each of them executes")
    mapping.add_argument("output", type=Path)
    drawing = actions.add_parser("draw", help="draw changes of the current source")
    drawing.add_argument("output", type=Path)
    drawing.add_argument("--seed", type=int, default=1)
    drawing.add_argument("--number", type=int, default=300)
    running = actions.add_parser("run", help="run the tests of each change until one fails")
    running.add_argument("mutants", type=Path)
    running.add_argument("map", type=Path)
    running.add_argument("output", type=Path)
    running.add_argument("--limit", type=float, default=900, help="seconds for one change (default: 900)")
    running.add_argument("--only", default="", help="only changes of paths that contain this text")
    for action in (mapping, running):
        action.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    if given.action == "map":
        record_map(given.output, given.jobs)
    elif given.action == "draw":
        given.output.write_text(json.dumps([asdict(mutant) for mutant in draw(given.seed, given.number)], indent=1))
    else:
        mutants = [_mutant(stored) for stored in json.loads(given.mutants.read_text()) if given.only in stored["path"]]
        summarize(run(mutants, json.loads(given.map.read_text()), given.output, given.jobs, given.limit))


if __name__ == "__main__":
    main()
