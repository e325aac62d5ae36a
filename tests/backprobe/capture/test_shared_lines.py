"""Statements that share a line are kept apart: what each does is put down to it, not to the first of them."""

from __future__ import annotations

import linecache

import backprobe
from backprobe.record import Record
from tests.backprobe.capture.in_process import recorded

TRAINING = """\
import torch
from torch import nn

é = nn.Linear(3, 1); opt = torch.optim.SGD(é.parameters(), lr=0.1)
for step in range(2):
    x = torch.ones(2, 3); y = é(x); loss = y.pow(2).mean(); opt.zero_grad(); loss.backward(); opt.step()
with torch.no_grad(): z = é(x); é.eval()
"""


def text_at(record: Record, site: int | None) -> str:
    """The source text of a site."""
    assert site is not None
    row = record.sites[site]
    line = record.sources[row.source].text.split("\n")[row.line - 1]
    return line[row.col - 1 : row.end_col - 1 if row.end_line == row.line else None]


def test_each_call_is_told_at_its_own_statement() -> None:
    record = recorded(TRAINING)
    assert {text_at(record, row.site) for row in record.backward_calls} == {"loss.backward()"}
    events = {(row.kind, text_at(record, row.site)) for row in record.optimizer_events}
    assert events == {("zero_grad", "opt.zero_grad()"), ("step", "opt.step()")}
    assert {text_at(record, row.site) for row in record.module_calls} == {"y = é(x)", "z = é(x)"}
    assert {text_at(record, row.site) for row in record.optimizers} == {"opt = torch.optim.SGD(é.parameters(), lr=0.1)"}
    assert [text_at(record, row.site) for row in record.modes if row.kind == "training"] == ["é.eval()"]


def test_an_exception_is_told_at_the_statement_that_raised() -> None:
    record = recorded(
        """\
        import torch
        w = torch.ones(3, requires_grad=True)
        loss = (w * w).sum(); loss.backward(); a = 1; loss.backward()
        """
    )
    (raised,) = record.raised
    assert text_at(record, raised.site) == "loss.backward()"
    assert raised.site == record.backward_calls[-1].site != record.backward_calls[0].site


def test_the_body_of_a_function_on_its_own_line_is_told_apart() -> None:
    record = recorded(
        """\
        import torch
        w = torch.ones(3, requires_grad=True)
        def step(w): loss = (w * w).sum(); loss.backward()
        step(w)
        """
    )
    (call,) = record.backward_calls
    assert text_at(record, call.site) == "loss.backward()"


def test_code_that_was_compiled_before_a_watch_is_told_apart_too(tmp_path) -> None:
    path = tmp_path / "train.py"
    path.write_text(
        "def train(net, opt, x):\n"
        "    for _ in range(2): opt.zero_grad(); loss = net(x).sum(); loss.backward(); opt.step()\n"
    )
    names: dict[str, object] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    linecache.checkcache(str(path))
    import torch

    net = torch.nn.Linear(3, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    with backprobe.watch(net, opt, report=False) as watching:
        names["train"](net, opt, torch.ones(2, 3))
    record = watching.record
    assert record is not None
    assert {text_at(record, row.site) for row in record.backward_calls} == {"loss.backward()"}
    assert {text_at(record, row.site) for row in record.optimizer_events} == {"opt.zero_grad()", "opt.step()"}


def test_two_files_with_one_text_are_told_apart(tmp_path) -> None:
    """Their code objects are equal: nothing of Backprobe is in them, and a file's name does not count."""
    import torch

    steps = []
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text("def step(net, x): loss = net(x).sum(); loss.backward()\n")
        names: dict[str, object] = {}
        exec(compile((tmp_path / name).read_text(), str(tmp_path / name), "exec"), names)
        steps.append(names["step"])
    net = torch.nn.Linear(3, 1)
    with backprobe.watch(net, report=False) as watching:
        for step in steps:
            step(net, torch.ones(2, 3))
    record = watching.record
    assert record is not None
    paths = [record.sources[record.sites[row.site or 0].source].path for row in record.backward_calls]
    assert paths == ["one.py", "two.py"]
