"""Sections of the report on groups of rows and on the genome."""

import re
from pathlib import Path

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.report import report_data, report_html
from support.zoo import specimen


@pytest.fixture
def genotypes():
    return specimen("genotypes").table


@pytest.fixture
def model():
    return specimen("genotypes").model


def section(html, name):
    """Return the text of a section, None if there is none."""
    found = re.search(f'<section id="{name}".*?</section>', html, re.DOTALL)
    return None if found is None else found.group()


def test_groups_may_be_a_file(genotypes, model, tmp_path):
    population = np.asarray(genotypes.row_data["population"])
    file = tmp_path / "groups.csv"
    lines = [f"{genotypes.row_name(row)},{name}" for row, name in enumerate(population)]
    file.write_text("\n".join(["sample,population", *reversed(lines)]), encoding="utf-8")
    expected = report_data(model, genotypes, groups=population).groups
    for groups in (file, str(file)):
        found = report_data(model, genotypes, groups=groups).groups
        assert found.names == expected.names
        assert np.array_equal(found.numbers, expected.numbers)


def test_groups_show_who_uses_each_pattern(genotypes, model):
    data = report_data(model, genotypes, groups="population")
    assert data.groups.names == ("north", "south", "island")
    html = section(report_html(model, genotypes, groups="population"), "groups")
    atoms = [int(atom) - 1 for atom in re.findall(r'<a href="#atom-(\d+)">', html)]
    codes, population = model.transform(genotypes), np.asarray(genotypes.row_data["population"])
    shares = np.array([codes[population == name].mean(axis=0) for name in ("north", "south", "island")])
    assert atoms == np.argsort(-np.ptp(shares, axis=0), kind="stable").tolist()
    drawn = np.array(re.findall(r"--share:([0-9.]+)", html), float).reshape(3, -1)
    np.testing.assert_allclose(drawn, shares[:, atoms], atol=0.001)


def test_the_genome_has_a_line_per_pattern_in_the_order_of_positions(genotypes, model):
    html = section(report_html(model, genotypes), "genome")
    atoms = [int(atom) - 1 for atom in re.findall(r'<a href="#atom-(\d+)"', html)]
    position = np.asarray(genotypes.column_data["position"])
    first = [int(position[model.components_[atom] > 0].min()) for atom in range(6)]
    assert atoms == sorted(range(6), key=first.__getitem__)
    last = [int(position[model.components_[atom] > 0].max()) for atom in range(6)]
    spans = re.findall(r'title="[0-9,]+ columns?, 1:([0-9,]+) to 1:([0-9,]+)"', html)
    numbers = [tuple(int(each.replace(",", "")) for each in span) for span in spans]
    assert numbers == [(first[atom], last[atom]) for atom in atoms]


def test_other_tables_have_neither_section():
    html = report_html(*specimen("or"))
    assert section(html, "genome") is section(html, "groups") is None


def test_groups_are_checked(genotypes, model):
    nothing = r'groups="country": there is no such file, and no such field of the rows \(fields: population\)'
    with pytest.raises(ValueError, match=nothing):
        report_data(model, genotypes, groups="country")
    with pytest.raises(ba.FileError, match=r"country.csv: there is no such file"):
        report_data(model, genotypes, groups=Path("country.csv"))
    with pytest.raises(ValueError, match="there are 2 groups for 60 rows"):
        report_data(model, genotypes, groups=["a", "b"])
