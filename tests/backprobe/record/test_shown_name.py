"""What a tensor is called, of all the names it had."""

from __future__ import annotations

import pytest

from backprobe.record import Binding
from backprobe.record.state import shown_name


def bound(*names: str) -> list[Binding]:
    """Bindings of one tensor, each written `function.name`."""
    return [
        Binding(binding=n, tensor=0, name=name.split(".")[1], site=0, moment=n, function=name.split(".")[0])
        for n, name in enumerate(names)
    ]


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        ((), None),
        (("<module>.x", "<module>.y"), "y"),
        (("<module>.x", "forward.b"), "x"),  # a callee's parameter
        (("make.out", "<module>.x"), "x"),  # made in a function, returned
        (("main.x", "step.t"), "x"),
    ],
)
def test_a_callees_word_for_a_tensor_is_not_its_name(names: tuple[str, ...], shown: str | None) -> None:
    assert shown_name(bound(*names)) == shown
