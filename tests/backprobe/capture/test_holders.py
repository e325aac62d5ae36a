"""What keeps a graph alive is named by the path that a person would look for."""

from __future__ import annotations

import gc
import sys
import weakref

import pytest
import torch

from backprobe.capture.torch_access.frame_slots import can_read, variables_of
from backprobe.capture.tracking.graph.holders import LEVELS, Finder
from tests.backprobe.capture.in_process import recorded

HEAD = """\
import collections, functools, torch
w = torch.ones(3, requires_grad=True)
def made():
    return w.exp().sum()
class Trainer:
    def __init__(self):
        self.log = {}
    def step(self):
        return 1
class Slotted:
    __slots__ = ("kept",)
"""

FAILS = """\
def fail(self):
    loss = made()
    raise ValueError(1)
fail.__code__ = fail.__code__.replace(co_qualname="Trainer.fail")
Trainer.fail = fail
"""

HELD = {
    "global losses[1]": "losses = [1, made()]",
    "global kept": "kept = made()",
    "global trainer.log['loss']": "trainer = Trainer(); trainer.log['loss'] = made()",
    "global trainer.history[0]": "trainer = Trainer(); trainer.history = [made()]",
    "Trainer.shared['loss']": "Trainer.shared = {'loss': made()}",
    "global slotted.kept": "slotted = Slotted(); slotted.kept = made()",
    "global later.args[0]": "later = functools.partial(print, made())",
    "global later.keywords['x']": "later = functools.partial(print, x=made())",
    "global bound.log[0]": "t = Trainer(); t.log[0] = made(); bound = t.step; del t",
    "global recent[0]": "recent = collections.deque([made()])",
    "global pair.loss": "Pair = collections.namedtuple('Pair', 'loss n'); pair = Pair(made(), 1)",
    "global f -> cell of maker.<locals>.inner: loss": "def maker():\n    loss = made()\n    def inner(): return loss\n    return inner\n"
    "f = maker()",
    "function late: default[0]": "def late(x=made()): return x",
    "global g -> generator steps: loss": "def steps():\n    loss = made()\n    yield 1\n    print(loss)\ng = steps(); next(g)",
    "global g -> generator steps: kept[0]": "def steps():\n    kept = [made()]\n    yield 1\n    print(kept)\ng = steps(); next(g)",
    "global failures[0][1].__traceback__ -> frame Trainer.fail: loss": FAILS
    + "failures = []\ntry:\n    Trainer().fail()\n"
    "except ValueError as error:\n    failures.append((0, error))\n",
    "global failures[0].__cause__.__traceback__ -> frame Trainer.fail: loss": FAILS + "failures = []\ntry:\n"
    "    try:\n        Trainer().fail()\n    except ValueError as error:\n        raise KeyError(1) from error\n"
    "except KeyError as error:\n    failures.append(error.with_traceback(None))\n    failures[0].__context__ = None\n",
    "global trainer.lines[0] -> cell of defer.<locals>.<lambda>: loss": "def defer(self, loss):\n"
    "    self.lines = [lambda: loss]\nTrainer.defer = defer\n"
    "trainer = Trainer(); trainer.defer(made())",
    "global torch.kept_for_test": "torch.kept_for_test = made()",
}


@pytest.mark.parametrize("name", HELD)
def test_a_held_graph_is_found_by_the_name_that_keeps_it(name: str) -> None:
    record = recorded(HEAD + HELD[name] + "\n")
    torch.__dict__.pop("kept_for_test", None)
    (row,) = [row for row in record.retentions if row.state == "held"]
    assert row.holders == (name,)
    assert row.holder_search == "done"


def test_a_tensor_inside_the_graph_of_another_is_no_root_of_its_own_at_the_end() -> None:
    record = recorded(HEAD + "h = w.exp()\nloss = h.sum()\nother = w.sin()\n")
    assert sorted(row.name or "" for row in record.retentions if row.call is None) == ["loss", "other"]


def test_a_running_function_is_named_with_its_variable() -> None:
    record = recorded(
        HEAD + "def train():\n    history = []\n    for step in range(6):\n        loss = made()\n"
        "        history.append(loss)\n        loss.backward(retain_graph=True)\n        del loss\ntrain()\n"
    )
    found = {name for row in record.retentions for name in row.holders}
    assert "frame train: history[0]" in found
    assert not any(name.startswith("global") for name in found)


def test_a_gradient_with_a_graph_is_told_as_the_cycle_that_it_is() -> None:
    record = recorded(HEAD + "made().backward(create_graph=True)\n")
    assert "w.grad.grad_fn (create_graph cycle)" in {name for row in record.retentions for name in row.holders}


def test_nothing_is_asked_of_a_graph_that_was_freed() -> None:
    record = recorded(HEAD + "loss = made()\nloss.backward()\n")
    assert [(row.state, row.holder_search) for row in record.retentions if row.call is None] == [("freed", "not-asked")]


HOLDING: list[object] = []


class Loud:
    """Says when the program's own code runs."""

    touched: list[str] = []

    def __init__(self, kept: object) -> None:
        self.__dict__["kept"] = kept

    def __getattr__(self, name: str) -> object:
        Loud.touched.append(name)
        raise AttributeError(name)

    def __eq__(self, other: object) -> bool:
        Loud.touched.append("==")
        return True

    def __hash__(self) -> int:
        Loud.touched.append("hash")
        return 1

    def __repr__(self) -> str:
        Loud.touched.append("repr")
        return "Loud"


def test_a_search_runs_nothing_of_the_program_and_keeps_nothing_alive() -> None:
    kept = torch.ones(2)
    alive = weakref.ref(kept)
    HOLDING.append({Loud(kept): Loud([kept])})
    Loud.touched.clear()
    (found,) = Finder(lambda _: False, sys.modules[__name__]).find([kept])
    assert found.paths == ("global HOLDING[0] (a key).kept",)
    assert Loud.touched == []
    HOLDING.clear()
    del kept, found
    gc.collect()
    assert alive() is None


def test_a_search_leaves_no_variables_behind_in_a_running_frame() -> None:
    def running() -> weakref.ref[torch.Tensor]:
        local = torch.ones(1)
        alive = weakref.ref(local)
        assert "local" in variables_of(sys._getframe()).values()
        Finder(lambda name: name == __file__, None).find([local])
        del local
        return alive

    assert can_read()
    assert running()() is None


def test_more_referrers_than_are_looked_at_are_a_truncated_search() -> None:
    kept = torch.ones(1)
    deep: object = kept
    for _ in range(LEVELS + 1):
        deep = [deep]
    (found,) = Finder(lambda _: False, None).find([kept])
    assert found.search == "truncated"
    assert deep
