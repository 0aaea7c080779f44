"""bitatoms roles."""

import json

import pytest

import bitatoms as ba

pytest.importorskip("typer")

from support.commands import runner

pytestmark = pytest.mark.usefixtures("few_exchanges")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Create a folder with a table of users and permissions."""
    folder = tmp_path_factory.mktemp("roles")
    ba.write(ba.datasets.permissions(100), folder / "users.csv")
    (folder / "missing.csv").write_text("user,a,b\nu1,1,NA\nu2,0,1\n")
    (folder / "empty.csv").write_text("a,b\n")
    return folder


@pytest.fixture
def bitatoms(capsys, monkeypatch, folder):
    """Return a function that runs a command in the folder and returns exit code, stdout and stderr."""
    monkeypatch.chdir(folder)
    return runner(capsys)


def test_roles_and_the_roles_of_users_are_written(bitatoms, folder):
    code, out, _ = bitatoms("roles", "users.csv", "-o", "roles.csv", "--codes", "codes.csv", "--max-iter", 1)
    assert code == 0
    users, roles, codes = (ba.read(folder / name) for name in ("users.csv", "roles.csv", "codes.csv"))
    assert roles.columns == users.columns
    assert roles.row_names == codes.columns == tuple(f"role {number}" for number in range(1, 11))
    assert codes.row_names == users.row_names
    granted = codes.to_dense().astype(int) @ roles.to_dense() > 0
    assert (granted == users.to_dense()).all()
    lines = out.splitlines()
    assert lines[0] == "users.csv: 100 rows of 29 columns, 25.1% ones, rows and columns have names"
    assert lines[2].startswith("10 roles cover all ones of 100 rows exactly: ")
    assert lines[4] == "The number of roles is 10, the lowest possible."
    assert "The largest roles:" in lines
    assert lines[-3] == "and 5 more (--top 10 shows all)"
    assert lines[-1] == "Written: roles.csv, codes.csv"


def test_the_result_as_json(bitatoms, folder):
    how = ("--objective", "assignments", "--weights", "2,1,0.5", "--direct-weight", 1.5, "--direct", "direct.csv")
    code, out, _ = bitatoms("roles", "users.csv", *how, "--json", "--top", 2, "--max-iter", 1, "--random-state", 4)
    assert code == 0
    printed = json.loads(out)
    expected = ba.cover(
        ba.read(folder / "users.csv"),
        objective="assignments",
        weights=(2, 1, 0.5),
        direct_weight=1.5,
        max_iter=1,
        random_state=4,
    )
    assert printed["cost"] == expected.cost
    assert printed["lower_bound"] == expected.lower_bound
    assert printed["roles"] == expected.n_roles
    assert printed["direct_grants"] == expected.n_direct == ba.read(folder / "direct.csv").bits.count()
    assert len(printed["largest"]) == 2
    assert "mail" in printed["largest"][0]["permissions"]


def test_roles_go_to_the_standard_output(bitatoms):
    code, out, err = bitatoms("roles", "users.csv", "-o", "-", "-q", "--max-iter", 1)
    assert (code, err) == (0, "")
    assert len(out.splitlines()) == 11


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("missing.csv",), "missing.csv"),
        (("empty.csv",), "the table has no rows"),
        (("users.csv", "--weights", "1,x,1"), "--weights is '1,x,1'; pass three numbers separated by commas"),
        (("users.csv", "--objective", "assignments", "--weights", "1,1"), "--weights must be three numbers"),
        (("users.csv", "--direct-weight", "2"), "--direct-weight requires --objective assignments"),
        (
            ("users.csv", "--direct", "direct.csv"),
            "direct.csv: without --direct-weight no permission is granted directly",
        ),
        (
            ("users.csv", "--objective", "assignments", "--weights", "inf,1,1"),
            "must be three finite numbers of at least 0",
        ),
        (("absent.csv", "--max-time", "0"), "--max-time must be a positive number of seconds"),
        (("absent.csv", "--direct-weight", "2"), "--direct-weight requires --objective assignments"),
        (("users.csv", "-o", "users.csv"), "this command already reads or writes this file"),
        (("users.csv", "-o", "-", "--json"), "--json already writes to it"),
        (("users.csv", "-o", "roles.unknown"), "roles.unknown"),
    ],
)
def test_errors_are_one_line(bitatoms, arguments, message):
    code, _, err = bitatoms("roles", *arguments)
    assert code == 2
    assert message in " ".join(err.replace("│", "").split())


def test_an_interrupt_writes_the_best_roles(bitatoms, folder, monkeypatch):
    from bitatoms.covers import monitor

    def interrupt(self, move):
        raise KeyboardInterrupt

    monkeypatch.setattr(monitor.CoverMonitor, "record", interrupt)
    code, _, err = bitatoms("roles", "users.csv", "-o", "best.csv", "-q")
    assert code == 130
    assert "interrupted; the best roles so far are in best.csv" in err
    assert ba.read(folder / "best.csv").columns == ba.datasets.permissions(1).columns
