"""What a finding calls things that have no name of the user's."""

import pytest

from backprobe.rules.analysis.source.naming import without_marks


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("The graph of `the root` is retained", "The graph of the root is retained"),
        ("`this value` and `a tensor` are NaN", "this value and a tensor are NaN"),
        ("`the_root` is retained", "`the_root` is retained"),
        ("`a @ b`, `a`, `this.loss` and `the [0]`", "`a @ b`, `a`, `this.loss` and `the [0]`"),
    ],
)
def test_only_a_users_expression_is_marked(text: str, plain: str) -> None:
    assert without_marks(text) == plain
