"""Several names in one cell: what is joined is split into the same names."""

from hypothesis import given
from hypothesis import strategies as st

from bitatoms.io.name_lists import join_names, split_names


@given(st.lists(st.text(st.sampled_from('ab; "\n,\r'), min_size=1).map(str.strip).filter(bool), max_size=4))
def test_round_trip(names):
    assert split_names(join_names(names)) == tuple(names)


def test_only_names_that_would_be_ambiguous_are_quoted():
    assert (
        join_names(["milk, fat", 'a 3" pipe', "tea;green", '"x" y']) == 'milk, fat; a 3" pipe; "tea;green"; """x"" y"'
    )
    assert split_names(" tea ;; jam; ") == ("tea", "jam")
    assert split_names(" ") == ()
