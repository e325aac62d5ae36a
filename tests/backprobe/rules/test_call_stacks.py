"""A finding in a function has the calls that led there; one whose caller is not certain has none."""

from __future__ import annotations

import msgspec
import pytest

from backprobe.rules import judge
from backprobe.rules.analysis.calls.call_stacks import with_call_stacks
from backprobe.rules.framework.finding import Finding, Subject
from backprobe.show.formats.finding_text import called_from
from tests.backprobe.capture.in_process import recorded

PROGRAM = """\
import torch
net = torch.nn.Linear(2, 1)
def fit(step):
    step()
def train():
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(4):
        net(torch.randn(3, 2)).sum().backward()
        optimizer.step()
{calls}
"""


def never_cleared(calls: str) -> Finding:
    found = judge(recorded(PROGRAM.format(calls=calls))).findings
    return next(finding for finding in found if finding.rule.name == "missing-zero-grad")


def test_a_finding_in_a_function_says_who_called_it() -> None:
    finding = never_cleared("fit(train)")
    (stack,) = finding.stacks
    assert stack.role == "call"
    assert [(frame.line, frame.function) for frame in stack.frames] == [(10, "<module>"), (4, "fit"), (8, "train")]
    path = finding.location.path
    assert called_from(finding) == f"called from {path}:4 in fit, {path}:10"


def test_a_finding_at_the_top_level_has_no_calls() -> None:
    record = recorded(
        "import torch\nw = torch.ones(2, requires_grad=True)\noptimizer = torch.optim.SGD([w], lr=0.1)\n"
        "for _ in range(4):\n    w.sum().backward()\n    optimizer.step()\n"
    )
    findings = judge(record).findings
    assert findings
    assert [(finding.stacks, called_from(finding)) for finding in findings] == [((), "")] * len(findings)


@pytest.mark.parametrize("calls", ["train()\ntrain()", "fit(train); train()"])
def test_of_two_callers_the_one_of_the_finding_is_told(calls: str) -> None:
    (stack,) = never_cleared(calls).stacks
    assert stack.frames[0].line == 10


def test_of_another_moment_the_calls_are_told_only_if_no_other_led_there() -> None:
    for calls, times in (("train()", 1), ("train()\ntrain()", 0)):
        record = recorded(PROGRAM.format(calls=calls))
        finding = next(found for found in judge(record).findings if found.rule.name == "missing-zero-grad")
        elsewhere = msgspec.structs.replace(finding, stacks=(), subject=Subject(moment=0))
        (found,) = with_call_stacks(record, [elsewhere])
        assert len(found.stacks) == times
