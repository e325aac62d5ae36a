"""Tensors in the fields of a dataclass have rows and the fields' names; no code of the class runs for it."""

from __future__ import annotations

from tests.backprobe.capture.in_process import line_of, recorded

HEAD = """\
from dataclasses import dataclass, field
import torch
@dataclass{made}
class State:
    loss: torch.Tensor | None
    w: torch.Tensor
    note: str = ""
"""


def lines_of_names(record, function="<module>"):
    """The lines at which names were given to tensors."""
    return {row.name: line_of(record, row.site) for row in record.bindings if row.function == function}


def test_fields_have_rows_under_their_names_at_module_level_and_in_a_function():
    for made in ("", "(slots=True)", "(frozen=True)"):
        record = recorded(
            HEAD.replace("{made}", made)
            + """\
def make():
    local = State(loss=torch.zeros(()), w=torch.randn(3, requires_grad=True))
    return local
s = State(loss=torch.zeros(()), w=torch.randn(3, requires_grad=True))
made = make()
y = (s.w * 2).sum()
def use(given):
    return given.w + 1
use(s)
"""
        )
        assert lines_of_names(record) == {"s.loss": 11, "s.w": 11, "made.loss": 12, "made.w": 12, "y": 13}
        assert lines_of_names(record, "make") == {"local.loss": 9, "local.w": 9}
        assert set(lines_of_names(record, "use")) == {"given.loss", "given.w"}
        w = next(row.tensor for row in record.bindings if row.name == "s.w")
        assert next(row for row in record.tensors if row.tensor == w).shape == (3,)
        assert w in next(row.parents for row in record.bindings if row.name == "y")


def test_a_field_that_holds_no_tensor_any_more_is_no_parent():
    record = recorded(
        HEAD.replace("{made}", "")
        + """\
x = torch.ones(3, requires_grad=True)
s = State(loss=x * 2, w=x)
s = State(loss=None, w=x)
y = x + 1 if s.loss is None else s.loss
"""
    )
    (y,) = [row for row in record.bindings if row.name == "y"]
    lost = next(row.tensor for row in record.bindings if row.name == "s.loss")
    assert lost not in y.parents


def test_no_code_of_the_class_runs_and_no_other_object_is_looked_into():
    record = recorded(
        """\
from dataclasses import dataclass
import torch
told = []
class Meta(type):
    def __getattribute__(cls, name):
        told.append(name)
        return super().__getattribute__(name)
@dataclass
class State(metaclass=Meta):
    w: torch.Tensor
    def __getattribute__(self, name):
        told.append(name)
        return super().__getattribute__(name)
class Plain:
    def __getattr__(self, name):
        told.append(name)
        raise AttributeError(name)
def make():
    return Plain()
s = State(torch.randn(3))
told.clear()
t = s
p = make()
assert told == [], told
"""
    )
    assert set(lines_of_names(record)) == {"s.w", "t.w"}


def test_a_class_of_many_fields_and_a_deep_one_are_bounded():
    record = recorded(
        """\
from dataclasses import dataclass, make_dataclass
import torch
many = make_dataclass("Many", [(f"f{i}", object, None) for i in range(17)])
@dataclass
class Node:
    w: torch.Tensor
    next: object = None
large = many(torch.ones(1))
chain = Node(torch.ones(1), Node(torch.ones(2), Node(torch.ones(3))))
setattr(chain.next.next, "next", chain)
again = chain
"""
    )
    assert set(lines_of_names(record)) == {"chain.w", "chain.next.w", "again.w", "again.next.w"}
