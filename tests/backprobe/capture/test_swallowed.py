"""Exceptions that a program swallows, and warnings, are recorded with their cause's line and family."""

from __future__ import annotations

import pytest

from backprobe.record.families import FAMILIES, facts_in, family_of
from tests.backprobe.capture.in_process import line_of, recorded

HEAD = "import contextlib, torch\nw = torch.ones(3, requires_grad=True)\n"
FAILS = "y = w.exp()\n    y.mul_(2)\n    y.sum().backward()\n"

SWALLOWED = {
    "try": ("try:\n    " + FAILS + "except RuntimeError:\n    pass\n", "changed-in-place", 6),
    "suppress": ("with contextlib.suppress(RuntimeError):\n    " + FAILS, "changed-in-place", 6),
    "in a forward": ("try:\n    w.mul_(2)\nexcept RuntimeError:\n    pass\n", "leaf-changed", 4),
    "suppressed in a forward": ("with contextlib.suppress(RuntimeError):\n    w.mul_(2)\n", "leaf-changed", 4),
    "of an assignment": ("try:\n    w.grad = 3.0\nexcept TypeError:\n    pass\n", "grad-is-no-tensor", 4),
    "in a hook": (
        (
            "def bad(g):\n    raise RuntimeError('mine')\nw.register_hook(bad)\ntry:\n    w.sum().backward()\n"
            "except RuntimeError:\n    pass\n"
        ),
        None,
        4,
    ),
    "in a function": (
        "def loss():\n    return (w @ torch.ones(2)).sum()\nwith contextlib.suppress(RuntimeError):\n    loss()\n",
        None,
        4,
    ),
}


@pytest.mark.parametrize("how", SWALLOWED)
def test_a_swallowed_exception_is_told_with_the_line_of_its_cause(how: str) -> None:
    program, family, line = SWALLOWED[how]
    record = recorded(HEAD + program + "z = w * 2\n")
    (row,) = record.raised
    assert (row.family, line_of(record, row.site), row.caught) == (family, line, True)


def test_an_exception_that_no_one_expects_of_torch_is_not_told() -> None:
    record = recorded(
        HEAD + "try:\n    {}['a']\nexcept KeyError:\n    pass\nwith contextlib.suppress(OSError):\n    z = 1\n"
    )
    assert record.raised == ()


def test_suppress_lets_through_what_it_was_not_asked_for() -> None:
    record = recorded(HEAD + "with contextlib.suppress(KeyError):\n    w.mul_(2)\n")
    assert [row.caught for row in record.raised] == [False]
    assert record.end is not None
    assert record.end.ending == "raised"


MESSAGES = {
    "one of the variables needed for gradient computation has been modified by an inplace operation: [torch.FloatTensor "
    "[2, 1]], which is output 0 of AsStrided, is at version 2; expected version 1 instead. Hint: ...": (
        "changed-in-place",
        {"type": "torch.FloatTensor", "shape": "2, 1", "output": "0", "op": "AsStrided", "version": "2",
         "expected_version": "1"},
    ),
    "Function MBackward returned an invalid gradient at index 0 - got [2] but expected shape compatible with [3]": (
        "custom-gradient-shape", {"op": "MBackward", "index": "0", "shape": "2", "expected_shape": "3"},
    ),
    "expected m1 and m2 to have the same dtype, but got: float != double": (
        "dtypes-differ", {"dtype": "float", "expected_dtype": "double"},
    ),
    "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\nConsider using "
    "tensor.detach() first. (Triggered internally at /x/python_variable_methods.cpp:822.)": ("number-of-tracked", {}),
    "a text of the program's own": (None, {}),
}  # fmt: skip


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_has_a_family_and_facts(message: str) -> None:
    assert (family_of(message), facts_in(message)) == MESSAGES[message]


def test_a_family_is_named_once_and_its_message_is_its_own() -> None:
    names = [family for family, _ in FAMILIES]
    assert len(names) == len(set(names))


def test_a_warning_at_a_line_of_torch_is_told_with_the_programs_line() -> None:
    record = recorded(HEAD + "torch.nn.functional.mse_loss(w, torch.ones(3, 1))\nx = torch.tensor(w)\n")
    told = {row.family: line_of(record, row.site) for row in record.warned}
    assert told.get("loss-broadcasts", 3) == 3
    assert set(told.values()) <= {3, 4}
