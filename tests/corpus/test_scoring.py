"""The measuring itself: what counts as found, and what torch itself says."""

import pytest
from msgspec.structs import replace

from backprobe.rules import Location, Region, judge
from backprobe.rules.framework.finding import Finding, RuleName
from tests.corpus.cases import Case, load_set
from tests.corpus.runner import Runner
from tests.corpus.score import scored, torch_found

BAD = """import torch


w = torch.ones(3, requires_grad=True).to(torch.float64)
(w * w).sum().backward()
print(w.grad + 1)
"""
KINDS = {"non-leaf-grad-read": "grad-read-on-nonleaf"}


@pytest.fixture
def case() -> Case:
    return Case(
        id="moved-leaf", category="leaf", kind="grad-read-on-nonleaf", severity="warning", names=("w",),
        bad=BAD, good="x = 1\n", lines=(4,), also=(6,),
    )  # fmt: skip


def test_the_own_corpus_is_wide_enough_to_measure_on() -> None:
    everything = load_set("own")
    assert len(everything.cases) >= 120
    assert len({case.kind for case in everything.cases}) >= 90
    assert len(everything.correct) >= 40
    assert all(case.bad.strip() != case.good.strip() for case in everything.cases)


def finding(line: int, *, level: str = "warning", name: str = "non-leaf-grad-read", message: str = "`w`") -> Finding:
    region = Region(start_line=line, start_col=1, end_line=line, end_col=2)
    return Finding(
        rule=RuleName(code="BP101", name=name, url=""), level=level, confidence="proven", message=message,
        location=Location(path="train.py", region=region),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("found", "kind", "lenient", "strict", "named"),
    [
        (finding(4), True, True, True, True),
        (finding(6), True, True, False, False),
        (finding(5), True, False, False, False),
        (finding(4, level="note"), False, False, False, False),
        (finding(4, level="error"), True, True, True, True),
        (finding(4, name="another"), False, False, False, False),
        (finding(4, message="`x`"), True, True, True, False),
    ],
)
def test_a_finding_counts_by_kind_level_line_and_name(case, found, kind, lenient, strict, named) -> None:
    score = scored(case, [found], KINDS)
    assert (score.kind, score.lenient, score.strict, score.named) == (kind, lenient, strict, named)
    assert score.others == ((("BP101", 4),) if found.rule.name == "another" else ())


def test_a_further_kind_that_the_claim_accepts_counts_as_the_expected_one(case) -> None:
    kinds = {**KINDS, "cut-by-move": "graph-break-move"}
    other = [finding(4, name="cut-by-move")]
    assert not scored(case, other, kinds).kind
    score = scored(replace(case, kinds=("graph-break-move",)), other, kinds)
    assert (score.strict, score.others) == (True, ())


@pytest.mark.usefixtures("fresh_python")
def test_programs_run_under_a_neutral_name_captured_plain_and_with_anomaly_mode(case) -> None:
    raising = "import torch\nx = torch.ones(2, requires_grad=True)\ny = x.exp()\ny.add_(1)\ny.sum().backward()\n"
    with Runner() as runner:
        record = runner.captured(case.bad)
        assert [source.path for source in record.sources] == ["train.py"]
        assert scored(case, judge(record).findings, KINDS).strict
        plain, anomaly = runner.plain(raising), runner.plain(raising, anomaly=True)
        assert {line for line, _text in plain} == {5}
        assert {line for line, _text in anomaly} == {3, 5}
        assert runner.plain("x = 1\n") == []
    assert torch_found(case, [(4, "")]) == (True, True)
    assert torch_found(case, [(6, "")]) == (False, True)
    assert torch_found(case, []) == (False, False)
