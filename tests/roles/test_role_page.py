"""The page of a role report: complete, cut where lists are long, and safe."""

from dataclasses import replace

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.roles.page import role_report_html
from support.pages import Outline

HOSTILE = '<script>alert("x")</script>'


def page(report, **how):
    return Outline(role_report_html(report, **how))


@pytest.fixture(scope="module")
def report():
    users = ba.Table(
        ba.BitMatrix.from_dense([[1, 1, 0], [1, 1, 0], [0, 0, 1], [0, 0, 0], [1, 0, 0]]),
        [HOSTILE, "bob", "cat", "dan", "eve"],
        ["read", f"write {HOSTILE}", "vote"],
    )
    roles = ba.Table(ba.BitMatrix.from_dense([[1, 1, 0], [0, 0, 1]]), [f"clerk {HOSTILE}", "voter"], users.columns)
    return ba.role_report(users, roles)


def test_the_page_has_all_sections_and_balanced_tags(report):
    outline = page(report, title="Rights & roles")
    sections = ["exceptions", "unfitting", "roles", "permissions", "users", "overlaps", "words"]
    links = {attributes["href"] for attributes in outline.find_all("a")}
    assert links == {f"#{name}" for name in (*sections, "role-1", "role-2")}
    assert {attributes["id"] for attributes in outline.find_all("section")} == {"summary", *sections}
    for text in (
        "2 roles give 5 users 5 of 6 (83.3%) of the permissions they have",
        "Permissions that come from no role",
        "Only roles of their own",
        "Held by a single user",
        "No two roles have common permissions",
    ):
        assert text in outline.text
    assert {f"role-{number}" for number in (1, 2)} == {each["id"] for each in outline.find_all("li", class_="card")}


def test_names_are_escaped(report):
    html = role_report_html(report, title=HOSTILE)
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert" in html


def test_equal_reports_give_equal_pages_and_files(report, tmp_path):
    ba.write_role_report(report, tmp_path / "roles.html", title="t")
    assert (tmp_path / "roles.html").read_text(encoding="utf-8") == role_report_html(report, title="t")


def test_the_bound_of_a_cover_is_shown():
    X = [[1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 1, 1]]
    outline = page(ba.role_report(X, ba.cover(X, max_iter=1)))
    assert "Roles of 3 users and 4 permissions" in outline.text
    assert "2 roles give 3 users exactly the permissions they have, 8 in all." in outline.text
    assert "The number of roles is 2, the lowest possible." in outline.text


def test_changes_are_shown():
    old, new, users = [[1, 1, 0], [0, 0, 1]], [[1, 1, 1], [1, 0, 0]], [[1, 1, 1], [1, 0, 0]]
    outline = page(ba.role_report(users, new), diff=ba.role_diff(old, new, users))
    assert "2 roles before and 2 after: 1 changed, 1 new, 1 gone." in outline.text
    assert outline.find_all("li", class_="added")
    assert outline.find_all("li", class_="removed")


def test_the_number_of_all_overlaps_is_shown():
    report = ba.role_report([[1, 1, 1]] * 2, [[1, 1, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]])
    assert "pairs of roles overlap" not in page(report).text
    cut = page(replace(report, overlaps=report.overlaps[:2]))
    assert "4 pairs of roles overlap. These are the 2 that overlap most." in cut.text


def test_long_lists_are_cut():
    n = 700
    users = np.eye(n, dtype=int)
    users[:, 0] = 1
    outline = page(ba.role_report(users, np.eye(n, dtype=int)[: n - 1]))
    assert "and 200 more" in outline.text  # users of the table
    assert "and 199 more" in outline.text  # cards of roles
    assert "and 500 more" in outline.text  # names of the users of the first role
    assert len(outline.find_all("li", class_="card")) == 500


@pytest.mark.parametrize("shape", [(0, 0, 0), (0, 3, 2), (3, 3, 0), (2, 1, 1)])
def test_awkward_tables_have_pages(shape):
    n, m, k = shape
    outline = page(ba.role_report(np.zeros((n, m), int), np.zeros((k, m), int)))
    assert "Exceptions" in outline.text
