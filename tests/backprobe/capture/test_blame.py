"""Every change, name and parent is put down to the statement that made it."""

from __future__ import annotations

import textwrap
import warnings

import pytest

from backprobe.capture import run_source
from backprobe.record import Record, check


def run(source: str) -> Record:
    """The record of a program, without an error of ours."""
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("default")
        record = run_source(textwrap.dedent(source))
    assert record.end is not None
    assert record.end.own_errors == 0, record.end.own_error
    check(record)
    return record


def text_at(record: Record, site: int | None) -> str:
    """The first line of a site's source text."""
    assert site is not None
    row = record.sites[site]
    return record.sources[row.source].text.split("\n")[row.line - 1].strip()


def changes(record: Record) -> list[tuple[str, str]]:
    """Each in-place change: who did it, and the line."""
    return [(row.done_by, text_at(record, row.site)) for row in record.inplace_events]


@pytest.mark.parametrize(
    ("program", "line"),
    [
        (
            """\
            import torch
            def tail(t):
                return torch.relu_(t).sum()
            x = torch.randn(3, requires_grad=True)
            h = x * 2
            k = h.sigmoid()
            tail(k).backward()
            """,
            "return torch.relu_(t).sum()",
        ),
        (
            """\
            import torch
            class Net(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.inplace_relu = torch.nn.ReLU(inplace=True)
                def forward(self, h, k):
                    return self.inplace_relu(h) + k
            x = torch.ones(3, requires_grad=True)
            h = x.exp()
            out = Net()(h, 1.0)
            """,
            "return self.inplace_relu(h) + k",
        ),
        (
            """\
            import torch
            def f(x):
                h = x.exp(); return h.add_(1) * 2
            out = f(torch.ones(3, requires_grad=True))
            """,
            "h = x.exp(); return h.add_(1) * 2",
        ),
        (
            """\
            import torch
            def f(t):
                return t.add_(1).sum().item()
            x = torch.ones(3)
            out = f(x) + 1
            """,
            "return t.add_(1).sum().item()",
        ),
        (
            """\
            import torch
            x = torch.ones(3)
            if x.add_(1).sum() > 0:
                y = 3
            """,
            "if x.add_(1).sum() > 0:",
        ),
    ],
)
def test_a_change_inside_a_return_or_a_test_belongs_to_its_line(program: str, line: str) -> None:
    assert changes(run(program)) == [("statement", line)]


def test_what_an_optimizer_changed_before_its_closure_is_the_optimizers() -> None:
    record = run(
        """\
        import torch
        w = torch.tensor([3.0, -2.0], requires_grad=True)
        opt = torch.optim.LBFGS([w], lr=0.5, max_iter=4)
        def closure():
            opt.zero_grad()
            loss = (w * w).sum()
            loss.backward()
            return loss
        opt.step(closure)
        """
    )
    told = changes(record)
    assert len(told) >= 2
    assert set(told) == {("optimizer", "opt.step(closure)")}
    assert {text_at(record, row.site) for row in record.leaf_grads if row.kind == "set-none"} == {"opt.zero_grad()"}


def test_a_step_that_raised_is_not_open_any_more() -> None:
    record = run(
        """\
        import contextlib
        import torch
        w = torch.tensor([3.0, -2.0], requires_grad=True)
        opt = torch.optim.SGD([w], lr=0.5)
        def closure():
            raise ValueError
        with contextlib.suppress(ValueError):
            opt.step(closure)
        def work(t):
            return t * 2
        with torch.no_grad():
            y = work(w.add_(1))
        """
    )
    assert [row[0] for row in changes(record)] == ["statement"]
