"""bitatoms roles and roles-diff."""

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


def test_users_without_a_fixed_role_get_others(bitatoms, folder):
    """No user has the fixed role, which has one of three equal columns, and a column without ones."""
    (folder / "equal.csv").write_text(",a,b,c,d\nann,1,1,1,0\n")
    (folder / "unused.csv").write_text(",c,d\nmail,1,1\n")
    code, out, _ = bitatoms("roles", "equal.csv", "--fixed", "unused.csv", "-o", "kept.csv", "--codes", "held.csv")
    assert code == 0
    assert "The number of roles is 2, the lowest possible with these fixed roles and limits." in out
    assert ba.read(folder / "kept.csv").to_dense().tolist() == [[0, 0, 1, 1], [1, 1, 1, 0]]
    assert ba.read(folder / "held.csv").to_dense().tolist() == [[0, 1]]


def test_direct_grants_that_are_not_written_are_noted(bitatoms):
    how = ("roles", "users.csv", "--objective", "assignments", "--direct-weight", 0.1, "--max-iter", 1)
    note = "Direct grants were not written; --direct FILE keeps them."
    assert bitatoms(*how)[1].splitlines()[-1] == note
    assert note not in bitatoms(*how, "--direct", "granted.csv")[1]


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


def test_known_roles_and_limits(bitatoms, folder):
    (folder / "fixed.csv").write_text(",mail,intranet\nonline,1,1\n")
    how = (
        "--fixed",
        "fixed.csv",
        "--apart",
        "mail,calendar",
        "--apart",
        "wiki, source code",
        "--max-features-per-atom",
        3,
    )
    code, _, _ = bitatoms("roles", "users.csv", "-o", "limited.csv", "--report", "limited.html", *how, "--max-iter", 1)
    assert code == 0
    roles = ba.read(folder / "limited.csv").to_pandas()
    assert roles.index[:2].tolist() == ["online", "role 2"]
    assert roles.columns[roles.loc["online"] == 1].tolist() == ["intranet", "mail"]
    assert (roles.sum(axis=1) <= 3).all()
    assert (roles[["mail", "calendar"]].sum(axis=1) <= 1).all()
    assert (roles[["wiki", "source code"]].sum(axis=1) <= 1).all()
    assert "online" in (folder / "limited.html").read_text(encoding="utf-8")


def test_known_roles_keep_their_names(bitatoms, folder):
    (folder / "fixed.csv").write_text(",mail,intranet,wiki\nonline,1,1,0\nrole 3,0,0,1\n")
    how = ("--fixed", "fixed.csv", "-o", "named.csv", "--max-iter", 1, "--top", 99)
    code, out, _ = bitatoms("roles", "users.csv", *how)
    assert code == 0
    roles = ba.read(folder / "named.csv")
    assert roles.row_names[:4] == ("online", "role 3", "role 4", "role 5")
    shown = out[out.index("The largest roles:") :].splitlines()[2:]
    assert any(line.startswith("online ") and "intranet, mail" in line for line in shown)
    code, out, _ = bitatoms("roles", "users.csv", *how, "--json")
    largest = json.loads(out)["largest"]
    assert sorted(role["name"] for role in largest) == sorted(roles.row_names)
    covered = [role["users"] * len(role["permissions"]) for role in largest]
    assert covered == sorted(covered, reverse=True)
    assert all(roles.row_names[role["role"] - 1] == role["name"] for role in largest)


def test_names_with_commas_are_quoted(bitatoms, folder):
    (folder / "commas.csv").write_text('user,"pay, cash",approve\nu1,1,1\nu2,0,1\n')
    code, _, _ = bitatoms("roles", "commas.csv", "-o", "r.csv", "--apart", 'approve, "pay, cash"')
    assert code == 0
    assert ba.read(folder / "r.csv").bits.row_weights().tolist() == [1, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--apart", '"mail,wiki'), "is not a list of names separated by commas: unexpected end of data"),
        (("--min-share", 0.8), "--min-share requires --report"),
        (("--min-peers", 3), "--min-peers requires --report"),
        (("--roles", "other.csv"), "the roles have no column of the users: they have 'fly', and the users '"),
        (("--together", "mail,wiki"), "--together cannot be kept: 'user 2' has 'mail', but not 'wiki'"),
        (("--apart", "mail"), "--apart has the set ['mail']; a set needs at least two features"),
        (("--apart", "mail,male"), "--apart names 'male', which is not a column of the table"),
        (("--fixed", "absent.csv"), "absent.csv: there is no such file"),
        (("--roles", "users.csv", "--fixed", "users.csv"), "--fixed is for a search"),
    ],
)
def test_errors_of_limits_are_one_line(bitatoms, folder, arguments, message):
    (folder / "other.csv").write_text(",fly\npilot,1\n")
    code, _, err = bitatoms("roles", "users.csv", *arguments)
    assert code == 2
    assert message in " ".join(err.replace("│", "").split())


# --- report


@pytest.fixture(scope="module")
def known(folder):
    """Write roles of other users, without one role and one permission, and with one more of each."""
    table = ba.datasets.permissions(60, 3)
    found = ba.cover(table, random_state=0, max_iter=1)
    ba.write(ba.Table(found.atoms, None, table.columns), folder / "old.csv")
    frame = ba.Table(found.atoms, None, table.columns).to_pandas().iloc[1:].drop(columns="wiki").assign(fly=0)
    frame.loc["pilot"] = [0] * (frame.shape[1] - 1) + [1]
    frame.index = [f"r{number}" for number in range(len(frame) - 1)] + ["pilot \x1b[31m"]
    ba.write(ba.Table.from_any(frame), folder / "known.csv")


def test_a_report_on_roles_that_are_found(bitatoms, folder):
    code, out, _ = bitatoms("roles", "users.csv", "-o", "r.csv", "--report", "r.html", "--max-iter", 1)
    assert code == 0
    assert out.splitlines()[-1] == "Written: r.csv, r.html"
    html = (folder / "r.html").read_text(encoding="utf-8")
    assert "<h1>users.csv</h1>" in html
    assert "10 roles give 100 users" in html
    code, out, _ = bitatoms("roles", "users.csv", "--report", "r.html", "--json", "--max-iter", 1, "--min-peers", 2)
    assert code == 0
    report = json.loads(out)["report"]
    assert (len(report["roles"]), report["n_direct"], report["min_peers"]) == (10, 0, 2)


def test_a_report_on_roles_that_are_given(bitatoms, folder, known):
    how = ("--codes", "given.csv", "--direct", "exceptions.csv", "--report", "given.html")
    code, out, _ = bitatoms("roles", "users.csv", "--roles", "known.csv", *how, "--top", 2)
    assert code == 0
    expected = ba.role_report(ba.read(folder / "users.csv"), ba.read(folder / "known.csv"))
    assert expected.summary() in out
    assert "Permissions that come from no role:" in out
    n_more = sum(bool(user.direct) for user in expected.users) - 2
    assert f"and {n_more} more (--top {n_more + 2} shows all)" in out
    assert out.splitlines()[-1] == "Written: given.csv, exceptions.csv, given.html"
    assert ba.read(folder / "given.csv").bits == expected.codes.bits
    assert ba.read(folder / "exceptions.csv").bits == expected.direct.bits
    code, out, _ = bitatoms("roles", "users.csv", "--roles", "known.csv", "--json")
    assert json.loads(out)["report"] == json.loads(json.dumps(expected.to_dict()))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "x.csv"), "x.csv: --roles known.csv already gives the roles; omit --output"),
        (("--objective", "assignments"), "--objective is for a search, but --roles known.csv gives the roles"),
        (("--seed", 3), "--seed is for a search, but --roles known.csv gives the roles"),
        (("--min-share", 2), "--min-share must be between 0 and 1"),
        (("--report", "known.csv"), "known.csv: this command already reads or writes this file"),
        (("--report", "page.txt"), "page.txt: a report is an HTML page"),
        (("--report", "-", "--json"), "--json already writes to it"),
    ],
)
def test_errors_of_reports_are_one_line(bitatoms, known, arguments, message):
    code, _, err = bitatoms("roles", "users.csv", "--roles", "known.csv", *arguments)
    assert code == 2
    assert message in " ".join(err.split())


# --- roles-diff


def test_the_difference_of_two_sets_of_roles(bitatoms, folder, known):
    old, new, users = (ba.read(folder / name) for name in ("old.csv", "known.csv", "users.csv"))
    code, out, _ = bitatoms("roles-diff", "old.csv", "known.csv")
    assert code == 0
    assert out.startswith(ba.role_diff(old, new).summary())
    assert "\x1b" not in out
    assert "  pilot \\x1b[31m: fly" in out
    how = ("--users", "users.csv", "--report", "diff.html", "--top", 1, "--min-peers", 3)
    code, out, _ = bitatoms("roles-diff", "old.csv", "known.csv", *how)
    expected = ba.role_diff(old, new, users)
    assert expected.summary() in out
    assert f"and {len(expected.users) - 1} more (--top {len(expected.users)} shows all)" in out
    assert out.splitlines()[-1] == "Written: diff.html"
    assert "<h2>Changes</h2>" in (folder / "diff.html").read_text(encoding="utf-8")
    code, out, _ = bitatoms("roles-diff", "old.csv", "known.csv", "--users", "users.csv", "--json")
    assert json.loads(out) == json.loads(json.dumps(expected.to_dict()))


def test_equal_roles_have_no_difference(bitatoms, known):
    code, out, _ = bitatoms("roles-diff", "old.csv", "old.csv")
    assert (code, len(out.splitlines())) == (0, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("old.csv", "absent.csv"), "absent.csv: there is no such file"),
        (("old.csv", "twice.csv"), "twice.csv: two roles have the name 'a'; rename one of them"),
        (("old.csv", "old.csv", "--min-share", 0.8), "--min-share requires --report"),
        (
            ("old.csv", "other.csv"),
            "the new roles have no column of the old roles: they have 'fly', and the old roles ",
        ),
        (("old.csv", "old.csv", "--threshold", 2), "--threshold must be between 0 and 1"),
        (
            ("old.csv", "old.csv", "--report", "x.html"),
            "x.html: the report is about users and their roles; pass --users",
        ),
    ],
)
def test_errors_of_differences_are_one_line(bitatoms, folder, known, arguments, message):
    (folder / "other.csv").write_text(",fly\npilot,1\n")
    (folder / "twice.csv").write_text(",read,pay\na,1,0\na,0,1\n")
    code, _, err = bitatoms("roles-diff", *arguments)
    assert code == 2
    assert message in " ".join(err.split())
