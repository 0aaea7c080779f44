"""The README and the docs pages: their code and commands run, and the files and make targets they name exist."""

import re
import sys
from functools import cache, partial
from types import SimpleNamespace

import numpy as np
import pandas
import pytest
import sklearn.datasets
import sklearn.model_selection
import sklearn.utils

import bitatoms as ba
from support.documentation import ROOT, code_of
from support.plans import use_one_start

pytestmark = pytest.mark.usefixtures("few_trials", "few_exchanges")

README = (ROOT / "README.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "docs/contributing/architecture.md").read_text(encoding="utf-8")
PAGES = ["README.md", *(page.relative_to(ROOT).as_posix() for page in sorted((ROOT / "docs").rglob("*.md")))]
FIRST = ("README.md", "docs/index.md", "docs/start.md")


def pages_with(language):
    """Return the pages that have code in a language; those that a user does not read first run in the second tier."""
    pages = [page for page in PAGES if code_of(page, language)]
    return [page if page in FIRST else pytest.param(page, marks=pytest.mark.slow) for page in pages]


def run_blocks(page, language, names):
    """Run the code of a page in a namespace."""
    for number, block in enumerate(code_of(page, language), start=1):
        exec(compile(block, f"{page}, block {number}", "exec"), names)


COMMAND_LINE = ROOT / "docs/reference/command-line.md"  # its headings are made when the site is built
LONG_COMMAND = "bitatoms compare digits planted-or planted-xor planted-dense halftone baskets -o comparison"


@pytest.mark.filterwarnings("ignore:.* atoms were requested:bitatoms.errors.InputWarning")  # of tables with fewer rows
@pytest.mark.parametrize("page", pages_with("python"))
def test_the_code_runs(page, monkeypatch, tmp_path):
    """Run the code with smaller tables, and with workers of a cluster as threads (tests/rows/ has processes)."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    for name, *sizes in (("baskets", 200), ("customers", 120), ("permissions", 60), ("genotypes", 60, 40)):
        monkeypatch.setattr(ba.datasets, name, partial(getattr(ba.datasets, name), *sizes))
    planted, (X, labels) = ba.datasets.planted, ba.datasets.digits()
    monkeypatch.setattr(ba.datasets, "planted", lambda n, *shape, **how: planted(min(n, 220), *shape, **how))
    all_digits = page in {"docs/tutorials/number-of-atoms.md", "docs/tutorials/streams.md"}
    some = np.arange(len(X)) % 25 == 0 if all_digits else labels < 4
    monkeypatch.setattr(ba.datasets, "digits", lambda: (X[some], labels[some]))
    if page == "docs/tutorials/images.md":
        use_one_start(monkeypatch, 64)  # its picture has more atoms
    stability = ba.stability
    monkeypatch.setattr(ba, "stability", lambda *which, **how: stability(*which, **how | {"n_resamples": 2}))
    use_small_data(monkeypatch)
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(distributed, "LocalCluster", partial(distributed.LocalCluster, processes=False))
    monkeypatch.setitem(distributed.config, "temporary-directory", str(tmp_path))
    run_blocks(page, "python", {"__name__": "page"})


def use_small_data(monkeypatch):
    """Use fewer rows and folds of scikit-learn, and a survey of 60 respondents as that of statsmodels."""
    tumours, kinds = sklearn.datasets.load_breast_cancer(return_X_y=True, as_frame=True)
    monkeypatch.setattr(sklearn.datasets, "load_breast_cancer", lambda **how: (tumours.iloc[::9, 19:], kinds[::9]))
    folds = sklearn.model_selection.StratifiedKFold
    monkeypatch.setattr(sklearn.model_selection, "StratifiedKFold", lambda _, **how: folds(2, **how))
    shown = {"Isomap", "KMeans", "SVC"}
    estimators = [each for i, each in enumerate(sklearn.utils.all_estimators()) if i % 4 == 0 or each[0] in shown]
    monkeypatch.setattr(sklearn.utils, "all_estimators", lambda: estimators)
    random = np.random.default_rng(0)
    camp = random.integers(0, 2, 60)
    scales = {"PID": 6, "selfLR": 7, "ClinLR": 7, "DoleLR": 7, "educ": 7, "income": 24, "TVnews": 7}
    answers = {name: np.where(camp, 1, n) + camp * random.integers(0, 3, 60) for name, n in scales.items()}
    survey = pandas.DataFrame(answers | {"vote": camp, "age": random.integers(18, 92, 60)}, dtype=float)
    anes96 = SimpleNamespace(load_pandas=lambda: SimpleNamespace(data=survey))
    api = SimpleNamespace(datasets=SimpleNamespace(anes96=anes96))
    monkeypatch.setitem(sys.modules, "statsmodels", SimpleNamespace(api=api))
    monkeypatch.setitem(sys.modules, "statsmodels.api", api)


def test_the_pages_that_users_read_first_have_code():
    assert {*FIRST} <= {*PAGES}
    assert all(code_of(page) and code_of(page, "sh") for page in FIRST)
    assert len(pages_with("python")) > 20
    assert len(pages_with("sh")) > 15


def test_the_code_for_scanpy_runs(monkeypatch, tmp_path):
    """In `make test-formats`, which installs scanpy."""
    pytest.importorskip("scanpy", reason="make test-formats installs scanpy")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page", "ba": ba}
    run_blocks("docs/tutorials/cells.md", "python scanpy", names)
    assert names["adata"].obs["atoms"].nunique() > 2


@pytest.fixture
def small_tables(monkeypatch):
    """Let commands use smaller generated tables, and parts of the bundled pictures."""
    pytest.importorskip("click")
    from bitatoms.cli import demo

    tables = [("baskets", 300), ("customers", 100), ("genotypes", 60, 40)]
    for name, table in [(name, getattr(ba.datasets, name)(*sizes)) for name, *sizes in tables]:
        monkeypatch.setitem(demo._ALL, name, demo._ALL[name]._replace(data=lambda table=table: table))
    picture, (X, labels) = ba.datasets.halftone()[100:196, 200:392], ba.datasets.digits()
    monkeypatch.setattr(ba.datasets, "halftone", lambda: picture)
    monkeypatch.setattr(ba.datasets, "digits", lambda: (X[:120], labels[:120]))


def write_table():
    """Write a table with missing values, and a model of it."""
    X = ba.datasets.planted(80, 20, 3, random_state=0).X
    table = ba.Table.from_any(np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X))
    ba.write(table, "table.csv")
    ba.BinaryDictionaryLearning(algebra="xor", random_state=0).fit(table).save("model.npz")


def write_pictures():
    """Write a picture in three formats, with noise, and a picture with scratches."""
    Image = pytest.importorskip("PIL.Image")
    picture = ba.datasets.halftone()[:32, :48]
    noisy = picture ^ (np.random.default_rng(0).random(picture.shape) < 0.05)
    for name in ("scan.pbm", "scan.tif", "scratched.pbm"):
        ba.write(noisy, name)
    Image.fromarray((255 * (1 - noisy)).astype(np.uint8)).save("scan.png")
    ba.write((np.arange(32)[:, np.newaxis] // 2 == 5) & np.ones(48, bool), "scratches.pbm")


def write_baskets():
    """Write baskets, and a known atom."""
    baskets = ba.datasets.baskets(200)
    ba.write(baskets, "baskets.csv")
    known = ba.BitMatrix.from_dense(np.arange(baskets.shape[1])[np.newaxis] < 3)
    ba.write(ba.Table(known, None, baskets.columns), "known.csv")


def write_copies():
    """Write numbers of copies of alleles."""
    copies = ba.datasets.genotypes(30, 20).to_dense().reshape(30, 20, 2).sum(axis=2)
    np.savetxt("copies.csv", copies, "%d", ",", header=",".join("abcdefghijklmnopqrst"), comments="")


FILES = {  # what the commands of a page find in their folder
    "docs/index.md": write_baskets,
    "docs/tutorials/genomes.md": write_copies,
    "docs/tutorials/given-atoms.md": write_baskets,
    "docs/tutorials/images.md": write_pictures,
    "docs/tutorials/missing.md": write_table,
    "docs/tutorials/roles.md": lambda: ba.write(ba.datasets.permissions(60), "users.csv"),
    "docs/tutorials/stability.md": write_table,
}


@pytest.mark.usefixtures("small_tables")
@pytest.mark.filterwarnings("always::bitatoms.errors.InputWarning")  # the command line prints them
@pytest.mark.parametrize("page", pages_with("sh"))
def test_the_commands_run(page, monkeypatch, tmp_path, capsys):
    """Run the commands of a page in order in an empty folder."""
    from bitatoms.cli.app import run

    monkeypatch.chdir(tmp_path)
    FILES.get(page, lambda: None)()
    commands = [line.partition("#")[0].split() for block in code_of(page, "sh") for line in block.splitlines()]
    for name, *arguments in commands:
        assert name == "bitatoms"
        with pytest.raises(SystemExit) as ended:
            run(arguments)
        assert not ended.value.code, f"bitatoms {' '.join(arguments)}\n{capsys.readouterr().err}"


@pytest.mark.parametrize("page", [*PAGES, "CONTRIBUTING.md"])
def test_blocks_have_a_language_and_commands_run(page):
    """A block is code that runs (python, sh), text, or commands of other programs and long ones (console)."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    fences = [line for line in lines if line.startswith("```")]
    opened = {fence.removeprefix("```") for fence in fences[::2]}
    assert set(fences[1::2]) <= {"```"}
    known = {"python", "python cuda", "python scanpy", "sh", "text", "console"}
    assert {language for language in opened if not language.startswith("{")} <= known
    console = [line for block in code_of(page, "console") for line in block.splitlines()]
    commands = [line for line in console if line.startswith("bitatoms")]
    assert commands == [LONG_COMMAND] * (page == "docs/how-good/comparison.md")


def test_the_make_targets_exist():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z]+)", README, flags=re.MULTILINE))
    assert {"demo", "test"} <= named <= targets


@pytest.mark.parametrize("package", ["engine", "model", "search"])
def test_the_architecture_page_names_all_modules(package):
    """The row of a package names its modules and subpackages."""
    row = re.search(rf"^\| `{package}` \|.*$", ARCHITECTURE, re.MULTILINE)[0]
    folder = ROOT / "src/bitatoms" / package
    modules = {path.name for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert {name.rstrip("/") for name in re.findall(r"`([a-z_]+(?:\.py|/))`", row)} == modules - {"__init__.py"}


def test_the_architecture_page_is_short_and_has_all_packages():
    assert len(ARCHITECTURE.encode()) <= 12_000
    packages = {path.parent.name for path in (ROOT / "src/bitatoms").glob("*/__init__.py")}
    assert packages <= names_in_rows(ARCHITECTURE)


def names_in_rows(page):
    """Return the names at the beginning of the rows of the tables of a page."""
    rows = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


@pytest.mark.parametrize("page", ["architecture", "decisions", "extending"])
def test_pages_name_modules_that_exist(page):
    text = (ROOT / f"docs/contributing/{page}.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", text))
    assert named
    roots = (ROOT, ROOT / "src/bitatoms")
    assert [name for name in sorted(named) if not any((root / name).exists() for root in roots)] == []


@pytest.mark.parametrize("page", [*PAGES, "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_lead_somewhere(page):
    """The files and headings, as GitHub names them, exist; `make docs` checks the links of the site."""
    text = (ROOT / page).read_text(encoding="utf-8")
    links = [one or other for one, other in re.findall(r"\]\(([^)\s]+)\)|src=\"([^\"]+)\"", text)]
    targets = [link.partition("#") for link in links if "://" not in link]
    assert page != "README.md" or {"LICENSE", "docs/how-it-works/search.md"} <= {path for path, *_ in targets}
    files = {path: ((ROOT / page).parent / path).resolve() if path else ROOT / page for path, *_ in targets}
    assert [path for path, file in files.items() if not file.exists()] == []
    headings = [(path, heading) for path, _, heading in targets if heading and files[path] != COMMAND_LINE]
    assert [f"{path}#{heading}" for path, heading in headings if heading not in anchors(files[path])] == []


@cache
def anchors(file):
    """Return the anchors of the headings of a page, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", file.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.*)", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_move_is_explained():
    """docs/how-it-works/search.md has a table row for each move that a history names."""
    explained = names_in_rows((ROOT / "docs/how-it-works/search.md").read_text(encoding="utf-8"))
    X = ba.datasets.digits()[0][:150]
    calls = [
        {"search": "thorough"},
        {"algebra": "or", "constraints": ba.Constraints(max_components=20)},
        {"n_components": 4},
    ]
    calls += [{"n_components": 20}, {"n_components": 4, "search_rows": 50}]
    runs = [ba.factorize(X, random_state=0, **how) for how in calls]
    assert {re.sub(r"\d+", "N", row.move) for run in runs for row in run.history} <= explained
