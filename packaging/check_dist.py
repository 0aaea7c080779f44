"""Check the wheel and the sdist that `make dist` built: their contents, and an installation without the source tree.

Usage: python packaging/check_dist.py FOLDER, from the root of the repository. Only the standard library is needed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
# What users run must contain these kinds of files besides Python modules.
DATA_FILES = {"*.css", "*.cu", "*.cuh", "*.js", "*.json", "py.typed"}
NOT_IN_SDIST = re.compile(r"\.ci/|\.gitattributes$")  # tracked files that only the repository needs
ADDED_TO_SDIST = {"PKG-INFO"}
SPEAKS_FOR_ITSELF = """
import numpy as np, bitatoms, sys
from importlib.util import find_spec
assert bitatoms.__file__.startswith(sys.prefix), bitatoms.__file__
present = [name for name in ("click", "rich", "pandas", "matplotlib", "dask", "zarr", "pytest") if find_spec(name)]
assert not present, f"the wheel requires optional libraries: {present}"
missing = [name for name in bitatoms.__all__ if not hasattr(bitatoms, name)]
assert not missing, missing
X = bitatoms.datasets.planted(60, 20, 2, noise=0, random_state=0).X
model = bitatoms.BinaryDictionaryLearning(2, random_state=0).fit(X)
assert (model.inverse_transform(model.transform(X)) == X).all()
model.save("model.npz")
assert (bitatoms.load("model.npz").components_ == model.components_).all()
"""


class CheckFailed(Exception):
    """A file is missing or superfluous, or a command failed."""


def main(folder: Path) -> None:
    """Check what is in the folder, and print sizes and times."""
    version = re.search(r'__version__ = "(.+)"', (ROOT / "src/bitatoms/_version.py").read_text(encoding="utf-8"))[1]
    wheel, sdist = folder / f"bitatoms-{version}-py3-none-any.whl", folder / f"bitatoms-{version}.tar.gz"
    require_equal("the files of the folder", {wheel.name, sdist.name}, {path.name for path in folder.iterdir()})
    for path in (wheel, sdist):
        print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB")
    check_wheel(wheel, version)
    check_sdist(sdist)
    with tempfile.TemporaryDirectory(prefix="bitatoms-dist-") as temporary:
        check_installation(wheel.resolve(), version, Path(temporary))


def check_wheel(path: Path, version: str) -> None:
    """Check that a wheel has all files of the package, its licence and its entry point, and nothing else."""
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
        entry_points = archive.read(f"bitatoms-{version}.dist-info/entry_points.txt").decode()
    metadata = {f"bitatoms-{version}.dist-info/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt")}
    licence = {f"bitatoms-{version}.dist-info/licenses/LICENSE"}
    package = {name.removeprefix("src/") for name in tracked_files() if name.startswith("src/bitatoms/")}
    require_equal("the wheel", package | metadata | licence, names)
    for pattern in DATA_FILES:
        if not any(Path(name).match(pattern) for name in names):
            raise CheckFailed(f"the wheel has no {pattern}")
    if "bitatoms = bitatoms.__main__:main" not in entry_points:
        raise CheckFailed("the wheel has no command")


def check_sdist(path: Path) -> None:
    """Check that an sdist has all tracked files, tests included, apart from those that only the repository needs."""
    with tarfile.open(path) as archive:
        names = {member.name.partition("/")[2] for member in archive if not member.isdir()}
    wanted = {name for name in tracked_files() if not NOT_IN_SDIST.match(name)}
    require_equal("the sdist", wanted, names - ADDED_TO_SDIST)


def tracked_files() -> set[str]:
    """Return the files that git tracks; in an unpacked sdist, its files."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        return {name for name in listed.splitlines() if (ROOT / name).exists()}
    ignored = {".venv-dist", "dist", "__pycache__"} | ADDED_TO_SDIST
    return {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*")
        if path.is_file() and not ignored & set(path.relative_to(ROOT).parts)
    }


def require_equal(what: str, expected: set[str], found: set[str]) -> None:
    """Raise an error that lists what is missing and what is superfluous."""
    problems = [
        f"{what} {verb} {', '.join(sorted(names)[:10])}" + (f" and {len(names) - 10} more" if len(names) > 10 else "")
        for verb, names in (("lacks", expected - found), ("has in addition", found - expected))
        if names
    ]
    if problems:
        raise CheckFailed("; ".join(problems))


def check_installation(wheel: Path, version: str, folder: Path) -> None:
    """Install the wheel, and run it, the command line and the demo in an empty folder."""
    environment, empty = folder / "venv", folder / "empty"
    empty.mkdir()
    venv.create(environment, with_pip=True)
    scripts = environment / ("Scripts" if os.name == "nt" else "bin")
    python, command = str(scripts / "python"), str(scripts / "bitatoms")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run("install the wheel", empty, *pip, str(wheel))
    run("import, fit, save and load with required libraries only", empty, python, "-c", SPEAKS_FOR_ITSELF)
    hint = run("the command without its extra", empty, command, "--version", code=1)
    if 'pip install "bitatoms[cli]"' not in hint:
        raise CheckFailed(f"the command does not name its extra: {hint}")
    run("install the extra cli", empty, *pip, f"{wheel}[cli]")
    described = run("bitatoms --version --verbose", empty, command, "--version", "--verbose")
    if not described.startswith(f"bitatoms {version}\n") or str(environment.resolve()) not in described:
        raise CheckFailed(f"this is not the wheel: {described}")
    run("bitatoms demo", empty, command, "demo")
    made = {path.name for path in (empty / "bitatoms-demo").iterdir()}
    require_equal("the folder of the demo", {"baskets.csv", "baskets-model.npz", "baskets.html"}, made)


def run(what: str, folder: Path, *command: str, code: int = 0) -> str:
    """Run a command in a folder, without the source tree on the path, and return what it prints."""
    own = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "NUMBA_CACHE_DIR"}
    environment = {name: value for name, value in os.environ.items() if name not in own}
    start = time.monotonic()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8")
    if done.returncode != code:
        raise CheckFailed(f"{what}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    print(f"{what}: {time.monotonic() - start:.1f} s")
    return done.stdout + done.stderr


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except CheckFailed as failure:
        sys.exit(f"check_dist: {failure}")
