"""What went into each expression, and what came out, named or not; beside what torch itself says of it."""

from __future__ import annotations

import pytest

from backprobe.capture import Options, run_source
from backprobe.record import Record

HEAD = """\
import torch
from torch import nn
a = torch.tensor([1.0, 2.0], requires_grad=True)
b = torch.tensor([3.0, 4.0], requires_grad=True)
c = torch.tensor(5.0)
"""


def recorded(program: str, tier: str = "full") -> Record:
    record = run_source(HEAD + program, options=Options(tier=tier))
    assert record.end is not None
    assert (record.end.own_errors, record.end.own_error, record.end.ending) == (0, None, "ended")
    return record


def describe_operations(record: Record) -> list[str]:
    """Each operation behind the head: `function(operands and inner) -> result`, tensors by their last names."""
    names = {row.tensor: row.name for row in record.bindings}
    lines = []
    for row in record.operations:
        if row.line > HEAD.count("\n"):
            went = [*(names.get(operand, "?") for operand in row.operands), *(f"#{inner - 3}" for inner in row.inner)]
            came = row.result if row.tensor is None else names.get(row.tensor, "?")
            lines.append(f"{row.function}({' '.join(went)}) -> {came}{'' if row.complete else ' ...'}")
    return lines


def parents(record: Record, name: str) -> set[str]:
    names = {row.tensor: row.name for row in record.bindings}
    (*_, last) = [row for row in record.bindings if row.name == name]
    return {names.get(parent, "?") for parent in last.parents}


PROGRAMS = {
    "loss = (a.detach() * b).sum() + c.item()": [
        "a.detach(a) -> tensor", "*(b #0) -> tensor", ".sum(#1) -> tensor", "c.item(c) -> number", "+(#2 #3) -> loss",
    ],
    "kept = []\nkept.append(a.sum())\ntotal = sum(kept)": [
        "a.sum(a) -> tensor", "sum(#0) -> total",
    ],
    "pair = [a, b]\nd = torch.cat(pair)[1:]": ["torch.cat(pair[0] pair[1]) -> tensor", "[](#0) -> d"],
    "d = torch.stack([x * 2 for x in (a, b)])": [
        "*(a) -> tensor", "*(b) -> tensor", "torch.stack(#0 #1) -> d",
    ],
    "d = (a if c > 1 else b).exp()": [">(c) -> tensor", ".exp(a b) -> d"],
    "def f(x):\n    return x * a\nd = f(b + 1)": ["+(b) -> tensor", "*(x a) -> d", "f(#0) -> d"],
    "if (m := a * 2).sum() > 0:\n    d = -m": ["*(a) -> m", ".sum(m) -> tensor", ">(#1) -> tensor", "-(m) -> d"],
    "d = torch.zeros_like(a) + len(b) + b.shape[0]": ["torch.zeros_like() -> tensor", "+(#0) -> tensor", "+(#1) -> d"],
    "d = a.numpy(force=True)\ne = torch.tensor(d)": ["a.numpy(a) -> array", "torch.tensor() -> e"],
    "with torch.no_grad():\n    d = a.data.mean()": [".data(a) -> tensor", "a.data.mean(#0) -> d"],
    "d = f'{a.sum()}'": [],
    "d = (lambda x: x * 2)(a)": ["(a) -> d"],
}  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_goes_into_an_expression_and_comes_out_is_told(program):
    record = recorded(program)
    assert describe_operations(record) == PROGRAMS[program]


def test_the_result_has_the_flags_shape_and_dtype_that_torch_gives_it():
    record = recorded("d = (a.detach().double()[:1] * b[0]).sum()")
    rows = [row for row in record.operations if row.line == 6]
    assert [(row.function, row.requires_grad, row.shape, row.dtype) for row in rows] == [
        ("a.detach", False, (2,), "float32"), (".double", False, (2,), "float64"), ("[]", False, (1,), "float64"),
        ("[]", True, (), "float32"), ("*", True, (1,), "float64"), (".sum", True, (), "float64"),
    ]  # fmt: skip
    assert [(row.col, row.end_col, row.is_value) for row in rows][-1] == (5, 43, True)


MODULE = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.h = None
    def forward(self, x):
        self.h = x * self.w
        return self.head()
    def head(self):
        y = torch.tanh(self.h)
        return y
out = Net()(a)
"""


def test_an_attribute_is_known_in_every_method():
    record = recorded(MODULE)
    assert parents(record, "self.h") == {"x", "self.w"}
    assert parents(record, "y") == {"self.h"}


@pytest.mark.parametrize("tier", ["state", "grad", "full"])
def test_what_is_only_in_the_branch_that_was_not_taken_is_no_parent(tier):
    assert parents(recorded("d = a.exp() if c < 1 else b.exp()", tier), "d") == {"b"}


def test_an_expression_that_was_given_up_lends_nothing_to_the_next_one():
    program = """\
def f(x, fails):
    if fails:
        raise KeyError
    return x * 1
for fails in (True, False):
    try:
        d = f(a * 2 if fails else b, fails) + f(b, fails)
    except KeyError:
        pass
"""
    assert parents(recorded(program), "d") == {"?"}  # the two results of f


def test_an_operation_in_a_loop_is_thinned_out():
    record = recorded("for i in range(300):\n    d = a * 2")
    assert sum(row.function == "*" for row in record.operations) == 52


def test_nothing_is_kept_alive():
    program = """\
import gc, weakref
d = (a * 2).exp().sum()
seen = weakref.ref(d)
kept = [a * 3]
also = weakref.ref(kept[0])
del d
kept.clear()
print(seen() is None, also() is None)
assert seen() is None and also() is None
"""
    recorded(program)
