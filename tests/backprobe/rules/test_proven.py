"""A finding is called proven only where its record shows all that could speak against it."""

from collections import Counter

import pytest
import torch
from torch import nn

import backprobe
from backprobe.capture import Caps
from backprobe.record import Record, loads
from backprobe.rules import Finding, judge
from backprobe.rules.analysis.rows.completeness import BINDINGS_IN_FULL
from tests.corpus.cases import SETS, load_set
from tests.corpus.gaps import GAPS, STEPS_APART
from tests.corpus.records import Records

DETACHED = """\
import torch
from torch import nn

body, head = nn.Linear(3, 3), nn.Linear(3, 1)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
for step in range({steps}):
    hidden = body(torch.ones(2, 3)).detach()
    loss = head(hidden).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def watched(bad_step: int, steps: int = 40) -> Finding:
    """The finding of a watched job whose targets hold NaN in one step."""
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with backprobe.watch(model, optimizer, url="", report=False) as watching:
        for step in range(steps):
            target = torch.full((2, 1), float("nan") if step == bad_step else 1.0)
            loss = (model(torch.ones(2, 4)) - target).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    (found,) = [finding for finding in watching.findings if finding.rule.name.startswith("nonfinite")]
    return found


def test_a_nan_of_a_step_that_was_not_captured_is_blamed_on_no_statement() -> None:
    found = watched(bad_step=12)
    assert found.confidence == "likely"
    assert "in step 12, of which no statement was captured; step 11 was finite" in found.message
    assert "is finite" not in found.message
    assert found.location.text.strip() == "loss.backward()"


def test_a_nan_between_steps_that_were_not_even_read_is_told_between_them() -> None:
    found = watched(bad_step=53, steps=110)
    assert found.confidence == "likely"
    assert "between step 50 and step 60, where no statement was captured" in found.message


def test_a_nan_of_a_captured_step_is_proven() -> None:
    found = watched(bad_step=3)
    assert found.confidence == "proven"
    assert "captured" not in found.message


def test_what_never_happens_is_not_proven_by_some_of_the_steps(captured) -> None:
    short, long = (judge(captured(DETACHED.format(steps=steps))) for steps in (4, 1200))
    assert [(finding.rule.code, finding.confidence) for finding in short.findings] == [("BP601", "proven")]
    assert [(finding.rule.code, finding.confidence) for finding in long.findings] == [("BP601", "likely")]
    # How many steps are sampled away depends on how long the run took.
    assert str(long.findings[0].evidence["unseen"]).endswith(("was not captured in full", "left out bindings"))


EVERY = 8
"""One of so many programs is judged with gaps: each costs two runs."""


@pytest.mark.parametrize("name", SETS)
def test_no_gap_makes_a_finding_proven_that_the_whole_record_does_not_have(name, sweep) -> None:
    false: Counter[str] = Counter()
    with Records() as records:
        for at, program in enumerate(programs_of(name)[::EVERY]):
            stream = records.stream(program)
            planted: dict[str, Record | None] = {"steps": loads(records.stream(program, every=STEPS_APART))}
            gap = [*GAPS][at % len(GAPS)]
            planted[gap] = GAPS[gap](stream)
            for kind, record in planted.items():
                proven = [] if record is None else proven_in(record)
                if proven:
                    known = places(judge(loads(stream)).findings)
                    false.update(
                        f"{kind}: {rule} in {program[:60]!r}" for rule, line in proven if (rule, line) not in known
                    )
    assert false == {}


@pytest.mark.parametrize("name", SETS)
def test_no_gap_accuses_a_correct_program(name, sweep) -> None:
    false: Counter[str] = Counter()
    corpus = load_set(name)
    correct = [*(case.good for case in corpus.cases), *(row.text for row in corpus.correct)]
    with Records() as records:
        for at, program in enumerate(correct[::EVERY]):
            stream = records.stream(program)
            known = warned_in(loads(stream))
            for kind in ("calls not walked", [*GAPS][at % len(GAPS)]):
                record = GAPS[kind](stream)
                warned = Counter[str]() if record is None else warned_in(record)
                false.update(f"{kind}: {rule} in {program[:60]!r}" for rule in warned - known)
    assert false == {}


def programs_of(name: str) -> list[str]:
    corpus = load_set(name)
    return [*(text for case in corpus.cases for text in (case.bad, case.good)), *(row.text for row in corpus.correct)]


def proven_in(record: Record) -> list[tuple[str, int]]:
    """Rule and line of the findings that are proven."""
    return [
        (finding.rule.name, finding.location.region.start_line)
        for finding in judge(record).findings
        if finding.confidence == "proven"
    ]


def warned_in(record: Record) -> Counter[str]:
    """How many findings above a note each rule has."""
    return Counter(finding.rule.name for finding in judge(record).findings if finding.level != "note")


def places(findings: tuple[Finding, ...]) -> set[tuple[str, int]]:
    """Rule and line of the findings, and of what follows from them."""
    found = {(finding.rule.name, finding.location.region.start_line) for finding in findings}
    return found | {
        (consequence.rule, consequence.location.region.start_line)
        for finding in findings
        for consequence in finding.consequences
    }


def test_bindings_are_thinned_out_where_the_definition_of_a_gap_says() -> None:
    assert Caps().site_times == BINDINGS_IN_FULL
