"""Numbers as text."""

from bitatoms.formatting import percent, times


def test_percent_is_never_rounded_to_none_or_all():
    shown = {
        (0, 10): "0%", (0, 0): "0%", (10, 10): "100%", (1, 8): "12.5%", (1, 80): "1.2%", (33, 2000): "1.6%",
        (1, 10**6): "less than 0.01%", (99_995, 10**5): "more than 99.99%", (995, 1000): "99.50%", (34, 10**4): "0.34%",
    }  # fmt: skip
    assert {share: percent(*share) for share in shown} == shown


def test_what_never_occurs_has_no_lift():
    shown = {None: "–", 0.0: "–", 0.004: "×0.004", 2.0: "×2", 1238.4: "×1,238", 1.23e7: "×1.2e+7", 1.2e25: "×1.2e+25"}
    assert {lift: times(lift) for lift in shown} == shown
