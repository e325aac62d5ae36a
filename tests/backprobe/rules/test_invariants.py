"""Each invariant says of a run that it holds, that it is broken, or why that cannot be known; and never two things at once."""

import msgspec
import pytest

from backprobe.record import Record
from backprobe.rules import RULES, WHY_NO_TIME, judge, unjudged
from backprobe.rules.analysis.invariants.checks import Check, is_invariant
from backprobe.rules.framework.finding import Subject
from backprobe.rules.testing import example, pages
from backprobe.show.check_lines import checks_line

INVARIANTS = [module for module in RULES if is_invariant(module)]
NAMES = ["retention", "ledger", "coverage", "dependence", "integrity", "finite", "mode", "leaf"]


JUDGE_BEFORE_STEP = """\
import torch
from torch import nn

maker, judge = nn.Linear(2, 3), nn.Linear(3, 1)
opt_maker = torch.optim.SGD(maker.parameters(), lr=0.01)
opt_judge = torch.optim.SGD(judge.parameters(), lr=0.01)
for _ in range(4):
    made = maker(torch.randn(8, 2))
    score = judge(made)
    made_loss, judge_loss = -score.mean(), judge(torch.randn(8, 3)).relu().mean() + (2 * score + 1).relu().mean()
    opt_maker.zero_grad()
    made_loss.backward(retain_graph=True)
    opt_judge.zero_grad()
    judge_loss.backward()
    opt_maker.step()
    opt_judge.step()
"""
SHARED_ENCODER = """\
import torch
from torch import nn

encoder, first, second = nn.Linear(2, 3), nn.Linear(3, 1), nn.Linear(3, 1)
opt_encoder = torch.optim.SGD(encoder.parameters(), lr=0.01)
opt_first, opt_second = (torch.optim.SGD(head.parameters(), lr=0.01) for head in (first, second))
for _ in range(4):
    features = encoder(torch.randn(8, 2))
    for optimizer in (opt_encoder, opt_first, opt_second):
        optimizer.zero_grad()
    first(features).square().mean().backward(retain_graph=True)
    second(features).square().mean().backward()
    for optimizer in (opt_encoder, opt_first, opt_second):
        optimizer.step()
"""


TWO_HEADS = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 1), nn.Linear(4, 1)

    def forward(self, x):
        h = self.body(x).tanh()
        return {"first": self.first(h), "second": self.second(h)}


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(4, 8, 4):
    out = net(x)
    loss = out["first"].pow(2).mean() + (out["first"] - 1).pow(2).mean()
    shown = loss.item()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_what_another_head_gives_cuts_nothing_off(captured) -> None:
    (finding,) = judge(captured(TWO_HEADS)).findings
    assert (finding.rule.code, finding.location.region.start_line) == ("BP953", 12)


DEFERRED = """\
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
lines = []


def train_on(batch, step):
    optimizer.zero_grad()
    loss = model(batch).pow(2).mean()
    loss.backward()
    optimizer.step()
    lines.append(lambda: f"{step}: {loss.item()}")


for step in range(12):
    train_on(torch.randn(8, 4), step)
"""


def test_the_closure_that_keeps_graphs_is_named(captured) -> None:
    (finding,) = judge(captured(DEFERRED)).findings
    assert (finding.rule.code, finding.location.region.start_line) == ("BP951", 15)
    assert (
        judge(
            captured(
                DEFERRED.replace("loss.item()}", "number}").replace("    lines", "    number = loss.item()\n    lines")
            )
        ).findings
        == ()
    )


def check_of(record: Record, name: str) -> Check:
    return next(check for check in judge(record).checks if check.name == name)


def test_there_are_eight_in_order_of_code() -> None:
    assert [module.RULE.name for module in INVARIANTS] == [f"{name}-broken" for name in NAMES]


@pytest.mark.parametrize("module", INVARIANTS, ids=lambda module: module.RULE.name)
def test_the_example_breaks_it_and_its_repair_does_not(module, captured) -> None:
    name = module.RULE.name.removesuffix("-broken")
    broken = check_of(captured(example(module)[0]), name)
    assert (broken.state, broken.findings, broken.why) == ("broken", (module.RULE.code,), "")
    for section in pages(module).sections:
        if section.title in {"Use instead", "Near miss"}:
            check = check_of(captured(section.text), name)
            assert check.state != "broken", section.text
            assert (check.state == "unknown") == bool(check.why)
            assert check.checked <= check.total


def judged_beside(record, module, level, subject=None):
    """Judge a record with one more rule, of a family that explains the breach: it finds the same at this level."""
    own = next(finding for finding in judge(record).findings if finding.rule.code == module.RULE.code)
    code = f"{module.EXPLAINED_BY[0]}99"
    named = msgspec.structs.replace(own.rule, code=code, name="stand-in")
    rule = module.RULE.__class__(
        name="stand-in", code=code, since="0", severity="warning", confidence="likely", fix="manual", needs=()
    )

    class StandIn:
        RULE = rule

        @staticmethod
        def check(_record):
            yield msgspec.structs.replace(own, rule=named, level=level, subject=subject or own.subject)

    judged = judge(record, rules=[*RULES, StandIn])
    assert code in {finding.rule.code for finding in judged.findings}
    check = next(check for check in judged.checks if check.code == module.RULE.code)
    assert check.state == "broken"
    is_shown = module.RULE.code in {finding.rule.code for finding in judged.findings}
    assert check.findings == ((module.RULE.code,) if is_shown else (code,))
    return is_shown


@pytest.mark.parametrize("module", INVARIANTS, ids=lambda module: module.RULE.name)
def test_a_finding_of_a_rule_that_explains_the_breach_takes_its_place(module, captured) -> None:
    assert not judged_beside(captured(example(module)[0]), module, "warning")


def test_a_note_takes_its_place_if_both_speak_of_one_tensor(captured) -> None:
    (module,) = [module for module in INVARIANTS if module.RULE.code == "BP953"]
    record = captured(example(module)[0])
    assert not judged_beside(record, module, "note")
    other = Subject(facts=(("tensor", 10_000),), moment=0)
    assert judged_beside(record, module, "note", other)


@pytest.mark.parametrize("part", ["check", "measure_coverage"])
@pytest.mark.parametrize("module", INVARIANTS, ids=lambda module: module.RULE.name)
def test_an_invariant_whose_code_raises_is_unknown_and_the_others_are_not(module, part, captured, monkeypatch) -> None:
    def fail(_record):
        raise KeyError("x")

    record = captured(example(module)[0])
    before = judge(record)
    monkeypatch.setattr(module, part, fail)
    checks = judge(record).checks
    assert [check.name for check in checks if check not in before.checks] == [module.RULE.name.removesuffix("-broken")]
    broken = next(check for check in checks if check.code == module.RULE.code)
    assert (broken.state, "broke" in broken.why) == ("unknown", True)


def test_what_there_was_no_time_for_is_unknown() -> None:
    checks = unjudged().checks
    assert [check.name for check in checks] == NAMES
    assert {(check.state, check.why) for check in checks} == {("unknown", WHY_NO_TIME)}


def test_steps_that_were_not_recorded_are_not_counted_as_checked(captured) -> None:
    source = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(40):
    optimizer.zero_grad()
    model(torch.randn(4, 3)).pow(2).mean().backward()
    optimizer.step()
"""
    record = captured(source)
    steps = tuple(msgspec.structs.replace(row, sampled=row.step < 10) for row in record.steps)
    for name in ("coverage", "ledger", "retention", "finite"):
        check = check_of(msgspec.structs.replace(record, steps=steps), name)
        assert check.state == "holds"
        assert 0 < check.checked <= 10 < check.total == 40, name


def test_a_program_that_trains_nothing_has_unknown_invariants_with_their_reasons(captured) -> None:
    checks = judge(captured("import torch\n\nprint(torch.ones(2).sum())\n")).checks
    assert {check.state for check in checks} == {"unknown"}
    assert all(check.why for check in checks)


def test_the_line_says_what_held_what_broke_and_what_was_not_checked() -> None:
    made = {"checked": 40, "total": 40, "unit": "steps"}
    line = checks_line([
        Check(name="coverage", code="BP953", state="holds", **made),
        Check(name="ledger", code="BP952", state="holds", **made),
        Check(name="finite", code="BP956", state="broken", findings=("BP501",), **made),
        Check(name="mode", code="BP957", state="unknown", why="no evaluation", **made),
    ])  # fmt: skip
    assert line == (
        "checked: coverage, ledger held in all 40 steps; finite is broken: BP501; not checked: mode (no evaluation)"
    )
    assert checks_line([]) == ""
    single = Check(name="dependence", code="BP954", state="holds", checked=1, total=1, unit="backward calls")
    assert checks_line([single]) == "checked: dependence held in the one backward call"


def test_the_line_does_not_read_as_a_failure_where_only_some_steps_were_checked() -> None:
    partly = Check(name="ledger", code="BP952", state="holds", checked=6, total=300, unit="steps")
    nothing = Check(
        name="mode", code="BP957", state="unknown", checked=0, total=0, unit="backward calls", why="no evaluation"
    )
    assert checks_line([partly]) == "checked: ledger held in all 6 that were checked of 300 steps"
    assert checks_line([nothing]) == "not checked: mode (no evaluation)"


def test_another_loss_between_a_call_and_its_step_breaks_the_ledger(captured) -> None:
    (finding,) = judge(captured(JUDGE_BEFORE_STEP)).findings
    assert (finding.rule.code, finding.location.text.strip()) == ("BP952", "judge_loss.backward()")
    assert finding.evidence["breach"] == "other-loss-before-step"
    in_order = JUDGE_BEFORE_STEP.replace("    opt_maker.step()\n", "").replace(
        "    opt_judge.zero_grad", "    opt_maker.step()\n    opt_judge.zero_grad"
    )
    for right in (SHARED_ENCODER, in_order):
        assert check_of(captured(right), "ledger").state == "holds"
