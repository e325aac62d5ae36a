"""Custom Functions made by chance: a slip in a backward is found and named, and a right one is left alone."""

import pytest

from backprobe.rules.manual_programs import programs
from tests.corpus.functions import made


@pytest.mark.parametrize("seed", range(8))
def test_a_slip_is_named_and_a_right_one_agrees(seed: int) -> None:
    one = made(seed)
    rows = programs().captured(one.source, check=True).gradient_checks
    assert len(rows) == 2
    if one.is_wrong:
        named = [row for row in rows if row.cause == "backward"]
        assert named, [(row.verdict, row.numeric, row.used) for row in rows]
        assert {row.function for row in named} == {"Made"}
    else:
        assert {row.verdict for row in rows} == {"agrees"}
