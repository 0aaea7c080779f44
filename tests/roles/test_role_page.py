"""The page of a role report: complete, cut where lists are long, and safe."""

import re
from dataclasses import replace

import numpy as np
import pytest

import bitatoms as ba
import naive
from bitatoms.formatting import percent
from bitatoms.roles.page import role_report_html
from support.pages import Outline
from support.strategies import random_bits

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
    parts = ["2 roles give 5 users 5 of 6 (83.3%) of the permissions they have", "Permissions that come from no role"]
    parts += ["Only roles of their own", "Held by a single user", "No two roles have common permissions"]
    assert [part for part in parts if part not in outline.text] == []
    assert [each["id"] for each in outline.find_all("li", class_="card")] == ["role-1", "role-2"]


def test_names_are_escaped_in_the_page_and_its_file(report, tmp_path):
    html = role_report_html(report, title=HOSTILE)
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert" in html
    ba.write_role_report(report, tmp_path / "roles.html", title=HOSTILE)
    assert (tmp_path / "roles.html").read_text(encoding="utf-8") == html


def test_the_bound_of_a_cover_is_shown():
    X = [[1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 1, 1]]
    text = page(ba.role_report(X, ba.cover(X, max_iter=1))).text
    assert "Roles of 3 users and 4 permissions" in text
    assert "2 roles give 3 users exactly the permissions they have, 8 in all." in text
    assert "The number of roles is 2, the lowest possible." in text


def test_changes_are_shown():
    old, new, users = [[1, 1, 0], [0, 0, 1]], [[1, 1, 1], [1, 0, 0]], [[1, 1, 1], [1, 0, 0]]
    outline = page(ba.role_report(users, new), diff=ba.role_diff(old, new, users))
    assert "2 roles before and 2 after: 1 changed, 1 new, 1 gone." in outline.text
    assert all(outline.find_all("li", class_=kind) for kind in ("added", "removed"))


def test_the_number_of_all_overlaps_is_shown():
    report = ba.role_report([[1, 1, 1]] * 2, [[1, 1, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]])
    assert "pairs of roles overlap" not in page(report).text
    cut = page(replace(report, overlaps=report.overlaps[:2]))
    assert "4 pairs of roles overlap. These are the 2 that overlap most." in cut.text


def test_long_lists_are_cut():
    users = np.eye(700, dtype=int)
    users[:, 0] = 1
    outline = page(ba.role_report(users, np.eye(699, 700, dtype=int)))
    for number in (200, 199, 500):  # users of the table, cards of roles, names of the users of the first role
        assert f"and {number} more" in outline.text
    assert len(outline.find_all("li", class_="card")) == 500


@pytest.mark.parametrize("shape", [(0, 0, 0), (0, 3, 2), (3, 3, 0), (2, 1, 1)])
def test_awkward_tables_have_pages(shape):
    n, m, k = shape
    outline = page(ba.role_report(np.zeros((n, m), int), np.zeros((k, m), int)))
    assert "Exceptions" in outline.text


def cells_of(html, label):
    """Return the text of the cells of each row of the table with a label; nothing without such a table."""
    found = re.search(rf'aria-label="{label}".*?<tbody>(.*?)</tbody>', html, re.DOTALL)
    rows = re.findall(r"<tr>(.*?)</tr>", found[1], re.DOTALL) if found else ()
    return [[Outline(cell).text for cell in re.findall(r"<t[hd][ >].*?</t[hd]>", row, re.DOTALL)] for row in rows]


@pytest.mark.parametrize("seed", range(3))
def test_the_numbers_of_the_page_are_those_of_the_tables(seed):
    X, roles = random_bits(seed, 24, 9, 0.45), random_bits(seed + 9, 7, 9, 0.3)
    roles[:3] &= X[[0, 3, 5]]
    roles[6] = roles[5]  # the same permissions twice
    report = ba.role_report(X, roles, min_peers=2, min_share=0.6)
    html, codes = role_report_html(report), report.codes.to_dense()
    assert not naive.product(codes, roles, "or")[X == 0].any()
    said = naive.role_statements(X, roles, codes, 2, 0.6)
    n_given = int((naive.product(codes, roles, "or") & X).sum())
    text = Outline(html).text
    assert f"7 roles give 24 users {n_given} of {X.sum()} ({percent(n_given, X.sum())}) of the permissions" in text
    for label, number in (
        ("user assignments", codes.sum()),
        ("permission assignments", roles.sum()),
        ("permissions of users that come from no role", X.sum() - n_given),
    ):
        assert re.search(rf"{label}</dt><dd>(.*?)</dd>", html)[1] == str(number)
    fits = [user[3] for user in said["users"]]
    n_unfitting = sum(fit in ("own", "none") for fit in fits)
    assert f"{n_unfitting} user{'s fit' if n_unfitting > 1 else ' fits'} no role that others have" in text
    cards = re.findall(r'<li class="card".*?<dl>(.*?)</dl>', html, re.DOTALL)
    facts = [re.findall(r"<dd>(.*?)</dd>", card) for card in cards]
    assert facts == [
        [str(len(users)), str(len(gives)), f"{n_only} of {n_grants}", str(len(only))]
        for gives, users, _, only, n_grants, n_only in said["roles"]
    ]
    assert [row[1::2] for row in cells_of(html, "Permissions")] == [
        [str(len(users)), str(n_direct)] for _, users, n_direct in said["permissions"]
    ]
    assert [row[1:3] for row in cells_of(html, "Users")] == [
        [str(n_permissions), str(len(own))] for own, n_permissions, _, _ in said["users"]
    ]
    assert len(cells_of(html, "Permissions that come from no role")) == sum(
        bool(direct) for _, _, direct, _ in said["users"]
    )
    assert len(cells_of(html, "Only roles of their own")) == fits.count("own")
    assert len(cells_of(html, "No role")) == fits.count("none")
    assert len(cells_of(html, "Roles of a single user")) == sum(len(users) == 1 for _, users, *_ in said["roles"])
    sharing = [pair for pair in said["pairs"] if pair[2]]
    assert [row[1:] for row in cells_of(html, "Common permissions")] == [
        [str(n_common), percent(overlap, 1), str(n_users), percent(same, 1)]
        for _, _, n_common, overlap, n_users, same, _ in sharing
    ]
    for label, kind in (("Unusual permissions", "unusual"), ("Missing permissions", "missing")):
        found = {(i, r, n_with, n_peers) for i, _, r, n_peers, n_with, _ in said[kind]}
        assert {tuple(row[3:4]) for row in cells_of(html, label)} == {(f"{each[2]} of {each[3]}",) for each in found}
        sentence = f"{len(said[kind])} permission{'s are' if len(said[kind]) > 1 else ' is'} {kind} compared"
        assert (sentence in text) == bool(said[kind])
