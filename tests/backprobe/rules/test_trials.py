"""The verdict on a fix: from hand-made findings of two runs, and from programs that ran without and with it."""

from __future__ import annotations

import math

import pytest

from backprobe.rules import Edit, Finding, Region, judge
from backprobe.rules.edits.text_edits import edited
from backprobe.rules.framework.finding import Consequence, Location, RuleName
from backprobe.rules.trials import Failure, LineMap, Shown, compared, shown

TEXT = "a\nb\nc\nd\n"


def edit(start, end, text, path="t.py"):
    return Edit(
        path=path, region=Region(start_line=start[0], start_col=start[1], end_line=end[0], end_col=end[1]), text=text
    )


INSERTED = edit((2, 1), (2, 1), "new\nmore\n")
REPLACED = edit((2, 1), (2, 2), "B")
DELETED = edit((2, 1), (3, 1), "")
SPLIT = edit((2, 1), (2, 2), "B1\nB2")


def place(line, path="t.py"):
    return Location(path=path, region=Region(start_line=line, start_col=1, end_line=line, end_col=2))


def build_finding(code, line, *, level="warning", binding="x", path="t.py", consequences=()):
    rule = RuleName(code=code, name=f"rule-{code.lower()}", url="")
    return Finding(
        rule=rule, level=level, confidence="proven", message="", location=place(line, path),
        evidence={"binding": binding}, consequences=consequences, fingerprint=f"{code}{line}{binding}",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("edits", "lines"),
    [
        ([], [[1], [2], [3], [4]]),
        ([INSERTED], [[1], [2], [2], [2], [3], [4]]),
        ([REPLACED], [[1], [2], [3], [4]]),
        ([DELETED], [[1], [3], [4]]),
        ([SPLIT], [[1], [2], [2], [3], [4]]),
        ([DELETED, edit((4, 1), (4, 1), "b\n")], [[1], [3], [4], [4]]),  # a line that moves
        ([edit((2, 1), (2, 1), "other\n", path="o.py")], [[1], [2], [3], [4]]),
    ],
)
def test_a_line_is_followed_back_through_edits(edits, lines):
    ours = [row for row in edits if row.path == "t.py"]
    made = edited(TEXT, ours).split("\n")
    assert [list(LineMap(edits).before("t.py", number)) for number in range(1, len(made))] == lines
    for number, back in enumerate(lines, 1):
        kept = made[number - 1]
        if kept in "abcd" and not (kept == "b" and len(ours) > 1):
            assert TEXT.split("\n")[back[0] - 1] == kept


ONE = build_finding("BP1", 2)
NOTE = build_finding("BP9", 4, level="note")


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (Shown(findings=(ONE,)), Shown(findings=()), "confirmed"),
        (Shown(findings=(ONE,), loss=2.0), Shown(findings=(), loss=2.0 * (1 + 5e-6)), "confirmed"),
        (Shown(findings=(ONE,), loss=math.nan), Shown(findings=(), loss=math.nan), "confirmed"),
        (Shown(findings=(ONE,), loss=2.0), Shown(findings=(), loss=2.001), "changes-values"),
        (Shown(findings=(ONE,), loss=2.0), Shown(findings=(), loss=math.nan), "changes-values"),
        (Shown(findings=(ONE,), loss=2.0), Shown(findings=()), "confirmed"),
        (Shown(findings=(ONE,), loss=2.0, later=(3.0, 4.0)), Shown(findings=(), loss=5.0), "confirmed"),
        (Shown(findings=(ONE,), loss=2.0, later=(3.0, 4.0)), Shown(findings=(), loss=9.0), "confirmed"),
        (Shown(findings=(ONE,), loss=2.0, later=(3.0, 4.0)), Shown(findings=(), loss=6.0), "changes-values"),
        (Shown(findings=(ONE,), loss=2.0, later=(3.0,)), Shown(findings=(), loss=3.0), "changes-values"),
        (Shown(findings=(ONE,)), Shown(findings=(build_finding("BP1", 2),)), "insufficient"),
        (Shown(findings=(ONE,)), Shown(findings=(build_finding("BP1", 2, binding="y"),)), "insufficient"),
        (
            Shown(findings=(ONE,)),
            Shown(findings=(build_finding("BP1", 4),)),
            "insufficient",
        ),  # it moved inside its function
        (Shown(findings=(ONE,)), Shown(findings=(build_finding("BP2", 3),)), "breaks"),
        (Shown(findings=(ONE,)), Shown(findings=(build_finding("BP2", 2),)), "insufficient"),
        (Shown(findings=(ONE,)), Shown(findings=(NOTE,)), "confirmed"),
        (Shown(findings=(ONE,)), Shown(findings=(build_finding("BP1", 2, path="o.py"),)), "breaks"),
        (Shown(findings=(ONE, build_finding("BP1", 4))), Shown(findings=(build_finding("BP1", 4),)), "confirmed"),
        (Shown(findings=(ONE,)), Shown(findings=(), failure=Failure(what="E", path="t.py", line=3)), "breaks"),
        (
            Shown(findings=(ONE,), failure=Failure(what="E", path="t.py", line=2)),
            Shown(findings=(), failure=Failure(what="E", path="t.py", line=2)),
            "insufficient",
        ),
        (
            Shown(findings=(ONE,), failure=Failure(what="E", path="t.py", line=2)),
            Shown(findings=(build_finding("BP2", 4),), failure=Failure(what="E", path="t.py", line=4)),
            "confirmed",  # it goes on where it had failed, and what is there was never reached
        ),
    ],
)
def test_a_verdict_follows_from_what_two_runs_show(before, after, verdict):
    assert compared(ONE, (REPLACED,), before, after).verdict == verdict


def test_what_was_folded_under_a_finding_and_stays_is_not_new_and_not_mended():
    folded = build_finding("BP1", 2, consequences=(Consequence(rule="rule-bp2", location=place(4)),))
    trial = compared(folded, (DELETED,), Shown(findings=(folded,)), Shown(findings=(build_finding("BP2", 3),)))
    assert (trial.verdict, trial.why) == ("insufficient", "the finding is still there")
    other = build_finding("BP3", 1, consequences=(Consequence(rule="rule-bp2", location=place(4)),))
    before = Shown(findings=(ONE, other))
    assert compared(ONE, (DELETED,), before, Shown(findings=(build_finding("BP2", 3), other))).verdict == "confirmed"


def test_the_fault_that_the_line_has_is_named_and_no_other():
    trial = compared(
        ONE, (REPLACED,), Shown(findings=(ONE,)), Shown(findings=(build_finding("BP3", 1), build_finding("BP2", 2)))
    )
    assert (trial.verdict, trial.why) == ("insufficient", "the line has another fault: BP2 rule-bp2 at t.py:2")


LEAK = (
    "import torch\n"
    "w = torch.ones(3, requires_grad=True)\n"
    "opt = torch.optim.SGD([w], lr=0.1)\n"
    "kept = []\n"
    "for _ in range(8):\n"
    "    opt.zero_grad()\n"
    "    loss = (w * w).sum()\n"
    "    loss.backward()\n"
    "    opt.step()\n"
    "    kept.append(loss)\n"
)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (None, "confirmed"),
        ("kept.append(loss.clone())", "insufficient"),
        ("kept.append(loss.item() / 0)", "breaks"),
    ],
)
def test_a_program_that_ran_without_and_with_the_fix_gives_the_verdict(captured, text, verdict):
    record = captured(LEAK)
    judgement = judge(record)
    (finding,) = judgement.findings
    (fix,) = finding.fixes
    edits = fix.edits if text is None else (edit((10, 5), (10, 22), text, path=finding.location.path),)
    again = captured(edited(LEAK, edits))
    assert compared(finding, edits, shown(record, judgement), shown(again, judge(again))).verdict == verdict


def test_another_first_loss_is_told(captured):
    record, again = captured(LEAK), captured(edited(LEAK, [edit((2, 5), (2, 15), "torch.zeros")]))
    assert (shown(record, judge(record)).loss, shown(again, judge(again)).loss) == (3.0, 0.0)


TWICE = (
    "import torch\n"
    "w = torch.full((3,), 2.0, requires_grad=True)\n"
    "opt = torch.optim.SGD([w], lr=0.1)\n"
    "for _ in range(2):\n"
    "    opt.zero_grad()\n"
    "    trunk = w * w\n"
    "    first, second = trunk.sum(), (trunk * 2).sum()\n"
    "    first.backward({})\n"
    "    second.backward()\n"
    "    opt.step()\n"
)


def test_one_call_over_the_sum_of_two_losses_changes_no_value(captured):
    record = captured(TWICE.format(""))
    judgement = judge(record)
    (finding,) = judgement.findings
    (fix,) = finding.fixes
    again = captured(edited(TWICE.format(""), fix.edits))
    before, after = shown(record, judgement), shown(again, judge(again))
    assert (before.loss, before.later, after.loss, after.later) == (12.0, (24.0,), 36.0, ())
    assert compared(finding, fix.edits, before, after).verdict == "confirmed"


def test_losses_after_the_first_step_do_not_count(captured):
    record = captured(TWICE.format("retain_graph=True"))
    assert (shown(record, judge(record)).loss, shown(record, judge(record)).later) == (12.0, (24.0,))
