"""The README and the docs pages: their code and commands run, and the files and make targets they name exist."""

import re
from functools import partial
from pathlib import Path

import pytest

import bitatoms as ba
from bitatoms import reproduce

pytestmark = pytest.mark.usefixtures("few_trials", "few_exchanges")

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = ["README.md", *(f"docs/{page.name}" for page in sorted((ROOT / "docs").glob("*.md")))]
WITH_CODE = [
    "README.md",
    "docs/baskets.md",
    "docs/cells.md",
    "docs/classification.md",
    "docs/files.md",
    "docs/genomes.md",
    "docs/given-atoms.md",
    "docs/gpu.md",
    "docs/images.md",
    "docs/missing.md",
    "docs/report.md",
    "docs/roles.md",
    "docs/scale.md",
    "docs/search.md",
    "docs/stability.md",
    "docs/tables-of-categories.md",
]
WITH_COMMANDS = [
    "README.md",
    "docs/baskets.md",
    "docs/files.md",
    "docs/genomes.md",
    "docs/gpu.md",
    "docs/how-good.md",
    "docs/report.md",
    "docs/roles.md",
    "docs/scale.md",
    "docs/tables-of-categories.md",
    "docs/the-paper.md",
]


@pytest.mark.parametrize("page", WITH_CODE)
def test_the_code_runs(page, monkeypatch, tmp_path):
    """Run the code with smaller tables, and with workers of a cluster as threads (tests/rows/ has processes)."""
    blocks = code_of(page)
    assert blocks
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ba.datasets, "baskets", partial(ba.datasets.baskets, 200))
    monkeypatch.setattr(ba.datasets, "customers", partial(ba.datasets.customers, 120))
    monkeypatch.setattr(ba.datasets, "permissions", partial(ba.datasets.permissions, 60))
    monkeypatch.setattr(ba.datasets, "genotypes", partial(ba.datasets.genotypes, 60, 40))
    planted, (X, labels) = ba.datasets.planted, ba.datasets.digits()
    monkeypatch.setattr(ba.datasets, "planted", lambda n, *shape, **how: planted(min(n, 220), *shape, **how))
    monkeypatch.setattr(ba.datasets, "digits", lambda: (X[labels < 4], labels[labels < 4]))
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(distributed, "LocalCluster", partial(distributed.LocalCluster, processes=False))
    names = {"__name__": "page"}
    for number, block in enumerate(blocks, start=1):
        exec(compile(block, f"{page}, block {number}", "exec"), names)


def test_the_code_for_scanpy_runs(monkeypatch, tmp_path):
    """In `make test-formats`, which installs scanpy."""
    pytest.importorskip("scanpy", reason="make test-formats installs scanpy")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page", "ba": ba}
    for block in code_of("docs/cells.md", "python scanpy"):
        exec(compile(block, "docs/cells.md, scanpy", "exec"), names)
    assert names["adata"].obs["atoms"].nunique() > 2


def test_all_pages_with_code_are_tested():
    assert [page for page in PAGES if code_of(page)] == WITH_CODE


@pytest.fixture
def small_tables(monkeypatch):
    """Let commands use smaller generated tables, parts of the bundled pictures, and some of the experiments."""
    pytest.importorskip("typer")
    from bitatoms.cli import demo

    experiments = [*reproduce._EXPERIMENTS.items()]  # test_reproduce.py runs all of them
    monkeypatch.setattr(reproduce, "_EXPERIMENTS", dict(experiments[:1] + experiments[-1:]))
    tables = {
        "baskets": ba.datasets.baskets(300),
        "customers": ba.datasets.customers(100),
        "genotypes": ba.datasets.genotypes(60, 40),
    }
    for name, table in tables.items():
        monkeypatch.setitem(demo._ALL, name, demo._ALL[name]._replace(data=lambda table=table: table))
    picture, (X, labels) = ba.datasets.halftone()[100:164, 200:296], ba.datasets.digits()
    monkeypatch.setattr(ba.datasets, "halftone", lambda: picture)
    monkeypatch.setattr(ba.datasets, "digits", lambda: (X[:80], labels[:80]))


@pytest.mark.usefixtures("small_tables")
@pytest.mark.filterwarnings("always::bitatoms.errors.InputWarning")  # the command line prints them
@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_the_commands_run(page, monkeypatch, tmp_path, capsys):
    """Run the commands of a page in order in an empty folder."""
    from bitatoms.cli.app import run

    monkeypatch.chdir(tmp_path)
    if page == "docs/roles.md":
        ba.write(ba.datasets.permissions(60), "users.csv")
    commands = [line.partition("#")[0].split() for block in code_of(page, "sh") for line in block.splitlines()]
    assert commands
    for name, *arguments in commands:
        assert name == "bitatoms"
        with pytest.raises(SystemExit) as ended:
            run(arguments)
        assert not ended.value.code, f"bitatoms {' '.join(arguments)}\n{capsys.readouterr().err}"


def test_all_pages_with_commands_are_tested():
    assert [page for page in PAGES if code_of(page, "sh")] == WITH_COMMANDS


def code_of(page, language="python"):
    """Return the code blocks of a page in this language."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_the_make_targets_exist():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    named = set(re.findall(r"^make ([a-z]+)|`make ([a-z]+)", README, flags=re.MULTILINE))
    assert {"demo", "test"} <= {one or other for one, other in named} <= targets


@pytest.mark.parametrize("package", ["core", "search", "covers", "roles", "rows", "online", "io", "images"])
def test_the_architecture_page_lists_all_modules(package):
    """The section of a package has a table row for each of its modules and subpackages."""
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    section = re.search(rf"^### {package}:.*?(?=^#|\Z)", page, re.MULTILINE | re.DOTALL)[0]
    rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    listed = {name.rstrip("/") for row in rows for name in re.findall(r"`([^`]+)`", row)}
    folder = ROOT / "src/bitatoms" / package
    modules = {path.name for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert listed == modules - {"__init__.py"}


def test_the_architecture_page_names_modules_that_exist():
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", page))
    roots = (ROOT, ROOT / "src/bitatoms")
    assert named
    assert [name for name in sorted(named) if not any((root / name).exists() for root in roots)] == []


@pytest.mark.parametrize("page", PAGES)
def test_the_files_exist(page):
    links = re.findall(r"\]\(([^)#]+)\)|src=\"([^\"]+)\"", (ROOT / page).read_text(encoding="utf-8"))
    files = [one or other for one, other in links if "://" not in (one or other)]
    assert page != "README.md" or {"LICENSE", "docs/search.md"} <= set(files)
    assert [file for file in files if not ((ROOT / page).parent / file).exists()] == []


def test_every_move_is_explained():
    """docs/search.md has a table row for each move that a history names."""
    page = (ROOT / "docs/search.md").read_text(encoding="utf-8")
    explained = {
        move for row in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE) for move in re.findall(r"`([^`]+)`", row)
    }
    X = ba.datasets.digits()[0][:150]
    runs = [
        ba.factorize(X, search="thorough", random_state=0),
        ba.factorize(X, search="fast", algebra="or", max_components=20, random_state=0),
        ba.factorize(X, 4, random_state=0),
        ba.factorize(X, 20, random_state=0),
        ba.factorize(X, 4, search_rows=50, random_state=0),
    ]
    assert {re.sub(r"\d+", "N", row.move) for run in runs for row in run.history} <= explained
