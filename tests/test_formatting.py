"""Numbers as text."""

import pytest

from bitatoms.formatting import percent, times


@pytest.mark.parametrize(
    ("part", "total", "expected"),
    [
        (0, 10, "0%"),
        (0, 0, "0%"),
        (10, 10, "100%"),
        (1, 8, "12.5%"),
        (1, 80, "1.2%"),
        (1, 10**6, "less than 0.01%"),
        (99_995, 10**5, "more than 99.99%"),
        (995, 1000, "99.50%"),
        (34, 10**4, "0.34%"),
        (33, 2000, "1.6%"),
    ],
)
def test_percent_is_never_rounded_to_none_or_all(part, total, expected):
    assert percent(part, total) == expected


@pytest.mark.parametrize(
    ("lift", "text"),
    [
        (None, "–"),
        (0.0, "–"),
        (0.004, "×0.004"),
        (2.0, "×2"),
        (1238.4, "×1,238"),
        (1.23e7, "×1.2e+7"),
        (1.2e25, "×1.2e+25"),
    ],
)
def test_what_never_occurs_has_no_lift(lift, text):
    assert times(lift) == text
