"""A cursor is opaque, signed and bound to its list."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.problems.errors import Problem
from service.web.cursors import Cursors

CURSORS = Cursors(b"s" * 32)
KEYS = st.lists(st.one_of(st.integers(-(2**63), 2**63 - 1), st.text(max_size=20), st.none()), min_size=1, max_size=3)


@settings(suppress_health_check=[HealthCheck.too_slow])  # on a loaded machine a first draw takes seconds
@given(key=KEYS)
def test_what_was_signed_is_read_back(key):
    assert CURSORS.read("runs", {"queue": "cpu"}, CURSORS.sign("runs", {"queue": "cpu"}, key)) == key


@given(key=KEYS, at=st.integers(0, 200), letter=st.sampled_from("ABCxyz019-_ =\u00e9"))
def test_a_cursor_with_one_letter_changed_is_refused(key, at, letter):
    cursor = CURSORS.sign("runs", {}, key)
    at %= len(cursor)
    changed = cursor[:at] + letter + cursor[at + 1 :]
    if changed != cursor:
        with pytest.raises(Problem) as refused:
            CURSORS.read("runs", {}, changed)
        assert refused.value.code == "bad-cursor"


@given(cursor=st.text(max_size=100))
def test_a_made_up_cursor_is_refused(cursor):
    with pytest.raises(Problem):
        CURSORS.read("runs", {}, cursor)


@pytest.mark.parametrize(
    ("listing", "filters"),
    [("run_2 tensors", {}), ("runs", {"queue": "gpu"}), ("runs", {}), ("runs", {"status": ["lost"]})],
)
def test_a_cursor_of_another_list_or_other_filters_is_refused(listing, filters):
    cursor = CURSORS.sign("runs", {"queue": "cpu"}, [5])
    with pytest.raises(Problem):
        CURSORS.read(listing, filters, cursor)


def test_a_cursor_of_another_server_is_refused():
    with pytest.raises(Problem):
        CURSORS.read("runs", {}, Cursors(b"t" * 32).sign("runs", {}, [5]))
