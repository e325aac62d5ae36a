"""The table of checked gradients."""

import pytest

from backprobe.record import GradientCheck
from backprobe.show.check_table import verdict_text
from tests.backprobe.show.records import two_leaves


@pytest.mark.parametrize(
    ("numeric", "used", "expected"),
    [
        (1.0, 1.000001, "agrees"),
        (0.0, 0.0, "agrees"),
        (0.0, None, "agrees"),
        (0.0, 1.6e12, "agrees: beside the loss, both are rounding"),
        (1e12, -1e12, "agrees: beside the loss, both are rounding"),
        (1.6e12, 1.6e12, "agrees"),
    ],
)
def test_numbers_that_differ_for_the_eye_agree_only_with_the_reason(
    numeric: float, used: float | None, expected: str
) -> None:
    tolerance = 1e13 if abs(used or 0.0) > 1e3 else 1e-3
    row = GradientCheck(n=0, tensor=0, verdict="agrees", numeric=numeric, used=used, tolerance=tolerance)
    assert verdict_text(two_leaves(), row) == expected
