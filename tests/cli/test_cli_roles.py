"""bitatoms roles and roles-diff."""

import json
import re

import pytest

import bitatoms as ba

pytest.importorskip("click")

pytestmark = pytest.mark.usefixtures("few_exchanges")


@pytest.fixture(autouse=True)
def users(put, tmp_path):
    """The users of the files users.csv; roles.csv has roles of a cover."""
    table = put("roles").table
    (tmp_path / "table.csv").replace(tmp_path / "users.csv")
    return table


def test_roles_and_the_roles_of_users_are_written(bitatoms, users):
    out = bitatoms.output("roles", "users.csv", "-o", "found.csv", "--codes", "codes.csv", "--max-iter", 1)
    roles, codes = ba.read("found.csv"), ba.read("codes.csv")
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
    assert lines[-1] == "Written: found.csv, codes.csv"
    code, out, err = bitatoms("roles", "users.csv", "-o", "-", "-q", "--max-iter", 1)
    assert (code, len(out.splitlines()), err) == (0, 11, "")


def test_the_result_as_json(bitatoms, users):
    how = ("--objective", "assignments", "--weights", "2,1,0.5", "--direct-weight", 1.5, "--max-iter", 1, "--seed", 4)
    out = bitatoms.output("roles", "users.csv", *how, "--direct", "direct.csv", "--json", "--top", 2)
    printed = json.loads(out)
    own = {"objective": "assignments", "weights": (2, 1, 0.5), "direct_weight": 1.5}
    expected = ba.cover(users, **own, max_iter=1, random_state=4)
    assert len(printed.pop("largest")) == 2
    assert printed == {
        "objective": "assignments", "cost": expected.cost, "lower_bound": expected.lower_bound,
        "is_optimal": expected.is_optimal, "roles": expected.n_roles, "direct_grants": expected.n_direct,
        "user_assignments": expected.codes.count(), "permission_assignments": expected.atoms.count(),
        "independent_ones": len(expected.independent), "users": 100, "permissions": 29, "ended": expected.ended,
    }  # fmt: skip
    assert ba.read("direct.csv").bits == expected.direct
    note = "Direct grants were not written; --direct FILE keeps them."
    assert bitatoms("roles", "users.csv", *how)[1].splitlines()[-1] == note
    assert note not in bitatoms("roles", "users.csv", *how, "--direct", "direct.csv")[1]


def test_an_interrupt_writes_the_best_roles(bitatoms, monkeypatch, users):
    def interrupt(self, move):
        raise KeyboardInterrupt

    monkeypatch.setattr("bitatoms.covers.monitor.CoverMonitor.record", interrupt)
    code, _, err = bitatoms("roles", "users.csv", "-o", "best.csv", "-q")
    assert (code, err) == (130, "bitatoms: interrupted; the best roles so far are in best.csv\n")
    assert ba.read("best.csv").columns == users.columns


def test_known_roles_keep_their_names_and_limits_are_kept(bitatoms, tmp_path):
    (tmp_path / "fixed.csv").write_text(",mail,intranet,wiki\nonline,1,1,0\nrole 3,0,0,1\n")
    how = ["--fixed", "fixed.csv", "-o", "named.csv", "--report", "named.html", "--max-iter", 1, "--top", 99]
    how += ["--max-features-per-atom", 3, "--apart", "mail,calendar", "--apart", "wiki, source code"]
    out = bitatoms.output("roles", "users.csv", *how)
    table = ba.read("named.csv")
    roles = table.to_pandas()
    assert table.row_names[:4] == ("online", "role 3", "role 4", "role 5")
    assert roles.columns[roles.loc["online"] == 1].tolist() == ["intranet", "mail"]
    assert (roles.sum(axis=1) <= 3).all()
    assert all((roles[apart].sum(axis=1) <= 1).all() for apart in (["mail", "calendar"], ["wiki", "source code"]))
    assert "online" in (tmp_path / "named.html").read_text(encoding="utf-8")
    assert re.search("^online .*intranet, mail", out[out.index("The largest roles:") :], re.MULTILINE)
    largest = json.loads(bitatoms("roles", "users.csv", *how, "--json")[1])["largest"]
    assert sorted(role["name"] for role in largest) == sorted(table.row_names)
    covered = [role["users"] * len(role["permissions"]) for role in largest]
    assert covered == sorted(covered, reverse=True)
    assert all(table.row_names[role["role"] - 1] == role["name"] for role in largest)


# --- reports and differences


@pytest.fixture
def known(tmp_path):
    """Write old.csv, roles of other users, and known.csv, with another role and permission in place of one of each."""
    table = ba.datasets.permissions(60, 3)
    roles = ba.Table(ba.cover(table, random_state=0, max_iter=1).atoms, None, table.columns)
    ba.write(roles, tmp_path / "old.csv")
    frame = roles.to_pandas().iloc[1:].drop(columns="wiki").assign(fly=0)
    frame.loc["pilot"] = [0] * (frame.shape[1] - 1) + [1]
    frame.index = [f"r{number}" for number in range(len(frame) - 1)] + ["pilot \x1b[31m"]
    ba.write(ba.Table.from_any(frame), tmp_path / "known.csv")
    return ba.read(tmp_path / "old.csv"), ba.read(tmp_path / "known.csv")


def test_a_report_on_roles_that_are_found(bitatoms, tmp_path):
    how = ("roles", "users.csv", "--report", "r.html", "--max-iter", 1)
    code, out, _ = bitatoms(*how, "-o", "r.csv")
    assert (code, out.splitlines()[-1]) == (0, "Written: r.csv, r.html")
    html = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<h1>users.csv</h1>" in html
    assert "10 roles give 100 users" in html
    report = json.loads(bitatoms(*how, "--json", "--min-peers", 2, "--min-share", 0.7)[1])["report"]
    assert (len(report["roles"]), report["n_direct"], report["min_peers"], report["min_share"]) == (10, 0, 2, 0.7)


def test_a_report_on_roles_that_are_given(bitatoms, users, known):
    how = ("--codes", "given.csv", "--direct", "exceptions.csv", "--report", "given.html")
    out = bitatoms.output("roles", "users.csv", "--roles", "known.csv", *how, "--top", 2)
    expected = ba.role_report(users, known[1])
    assert expected.summary() in out
    assert "Permissions that come from no role:" in out
    n_more = sum(bool(user.direct) for user in expected.users) - 2
    assert f"and {n_more} more (--top {n_more + 2} shows all)" in out
    assert out.splitlines()[-1] == "Written: given.csv, exceptions.csv, given.html"
    assert ba.read("given.csv").bits == expected.codes.bits
    assert ba.read("exceptions.csv").bits == expected.direct.bits
    out = bitatoms("roles", "users.csv", "--roles", "known.csv", "--json")[1]
    assert json.loads(out)["report"] == json.loads(json.dumps(expected.to_dict()))


def test_the_difference_of_two_sets_of_roles(bitatoms, users, known, tmp_path):
    out = bitatoms.output("roles-diff", "old.csv", "known.csv")
    assert out.startswith(ba.role_diff(*known).summary())
    assert "\x1b" not in out
    assert "  pilot \\x1b[31m: fly" in out
    how = ("--users", "users.csv", "--report", "diff.html", "--top", 1, "--min-peers", 3)
    code, out, _ = bitatoms("roles-diff", "old.csv", "known.csv", *how)
    expected = ba.role_diff(*known, users)
    assert expected.summary() in out
    assert f"and {len(expected.users) - 1} more (--top {len(expected.users)} shows all)" in out
    assert out.splitlines()[-1] == "Written: diff.html"
    assert "<h2>Changes</h2>" in (tmp_path / "diff.html").read_text(encoding="utf-8")
    out = bitatoms("roles-diff", "old.csv", "known.csv", "--users", "users.csv", "--json")[1]
    assert json.loads(out) == json.loads(json.dumps(expected.to_dict()))
    code, out, _ = bitatoms("roles-diff", "old.csv", "old.csv")
    assert (code, len(out.splitlines())) == (0, 1)


def test_a_role_in_two_parts_changes_roles_and_not_permissions(bitatoms, tmp_path):
    texts = {"one": "both,1,1\n", "two": "first,1,0\nsecond,0,1\n", "staff": "ann,1,1\n"}
    for name, text in texts.items():
        (tmp_path / f"{name}.csv").write_text(f",read,write\n{text}")
    out = bitatoms.output("roles-diff", "one.csv", "two.csv", "--users", "staff.csv")
    assert out.splitlines()[-2:] == ["Users:", "  ann: +second"]
    assert "  first, formerly both (1 -> 1 users): -write" in out
