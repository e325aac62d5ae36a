"""What the check measured of a cut, or of a hook, that a rule calls a mistake."""

import pytest

from backprobe.record import Record
from backprobe.rules import judge
from backprobe.rules.analysis.gradients.measured_cuts import checked_rows
from backprobe.rules.manual_programs import programs
from backprobe.show.check_table import gradient_check_lines
from backprobe.show.terminal_style import Ink
from tests.backprobe.capture.gradient_check.test_verdicts import HEAD, STEP

pytestmark = pytest.mark.usefixtures("gradient_forks")

TERM = """\
for _ in range(3):
    fit = ((net(x) - y) ** 2).mean()
    {term}
    loss = fit + term
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
CUT = "term = 0.1 * sum(p.data.abs().sum() for p in net.parameters())"


def record_of(source: str, *, check: bool = True) -> Record:
    record = programs().captured(source, check=check)
    assert record.end is not None
    assert record.end.own_error is None
    return record


def rules_that_name(record: Record) -> set[tuple[str, int]]:
    """Rules, with their lines, that name the mistake of a row of the check."""
    found = checked_rows(judge(record).findings).values()
    return {(finding.rule.name, finding.location.region.start_line) for finding in found}


def test_a_finding_at_a_cut_says_how_much_of_the_derivative_the_step_uses() -> None:
    record = record_of(HEAD + TERM.format(term=CUT))
    (finding,) = judge(record).findings
    rows = [row for row in record.gradient_checks if row.n in checked_rows([finding])]
    assert {row.verdict for row in rows} == {"differs"}
    assert {row.tensor for row in rows} == {row.tensor for row in record.gradient_checks}
    told = finding.evidence
    assert told["derivative"] != told["used"]
    assert told["derivative_with_cuts_held"] == pytest.approx(told["used"], rel=1e-3)
    assert f"the loss changes by {told['derivative']:.4g}, and the step uses {told['used']:.4g}." in finding.message
    assert len(finding.message.split("\n")) == 3


def test_the_table_of_the_check_names_the_rule_that_judges_the_cut() -> None:
    record = record_of(HEAD + TERM.format(term=CUT))
    findings = judge(record).findings
    lines = gradient_check_lines(record, Ink(False), findings, whole=True)[2:]
    assert all(line.endswith(f": see {findings[0].rule.code} {findings[0].rule.name}") for line in lines)
    assert not any(": see" in line for line in gradient_check_lines(record, Ink(False), whole=True))


@pytest.mark.parametrize(
    ("term", "named_there"),
    [
        ("with torch.no_grad(): target = 0.9 * net(x + 1)\n    term = ((net(x) - target) ** 2).mean()", set()),
        ("term = 0.1 * sum(p.abs().sum() for p in net.parameters())", set()),
        (
            "with torch.no_grad():\n        features = net(x + 1)\n    term = (features ** 2).mean()",
            {("graph-break-no-grad", 8)},
        ),
        ("def far(): return net(x + 1)\n    with torch.no_grad():\n        term = far().square().mean()",
         {("graph-break-no-grad", 9)}),
    ],
)  # fmt: skip
def test_only_what_a_rule_calls_a_mistake_is_named_also_where_it_stands_around_the_cut(
    term: str, named_there: set[tuple[str, int]]
) -> None:
    assert rules_that_name(record_of(HEAD + TERM.format(term=term))) == named_there


def test_a_hook_that_a_rule_calls_a_mistake_is_named_and_one_that_scales_on_purpose_is_not() -> None:
    add = """\
sizes = []
def note(grad):
    sizes.append(grad.norm().item())
    return grad / (grad.norm() + 1e-12)
net[0].weight.register_hook({hook})
"""
    assert rules_that_name(record_of(HEAD + add.format(hook="note") + STEP.format(before=""))) == {
        ("hook-modifies-gradient", 9)
    }
    assert (
        rules_that_name(record_of(HEAD + add.format(hook="lambda grad: grad * 0.5") + STEP.format(before=""))) == set()
    )


def test_without_the_check_findings_stay_as_they_are() -> None:
    (finding,) = judge(record_of(HEAD + TERM.format(term=CUT), check=False)).findings
    assert "A check of gradients" not in finding.message
    assert checked_rows([finding]) == {}
