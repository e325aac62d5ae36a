"""What rules say of the source that a recorder sends: as much as of the whole, or that they could not judge."""

import pytest
import torch
from torch import nn

import backprobe
from backprobe.rules import judge
from tests.corpus.cases import load_set
from tests.corpus.gaps import as_sent
from tests.corpus.records import Records

EACH = 12
"""Of so many cases of each set one is looked at."""


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(3, 3), nn.Linear(3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.body(x)).detach()
        return self.head(hidden)


def train(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    for _ in range(4):
        loss = model(torch.ones(2, 3)).pow(2).mean()
        loss.backward()
        optimizer.step()


def found_in(record):
    return {(finding.rule.name, finding.location.region.start_line) for finding in judge(record).findings}


@pytest.fixture(scope="module")
def watched():
    model = Encoder()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with backprobe.watch(model, optimizer, url="", report=False) as watching:
        train(model, optimizer)
    return watching.record


def test_the_functions_of_a_watched_job_are_enough_for_what_the_whole_says(watched) -> None:
    assert len(found_in(watched)) >= 2
    assert found_in(as_sent(watched, "functions")) == found_in(watched)


@pytest.mark.parametrize("policy", ["lines", "none"])
def test_rules_that_lacked_the_text_are_not_said_to_have_judged(watched, policy) -> None:
    whole, sent = judge(watched), judge(as_sent(watched, policy))
    silent = {finding.rule.name for finding in whole.findings} - {finding.rule.name for finding in sent.findings}
    assert silent, "else this tests nothing"
    assert silent <= {row.name for row in sent.not_run}
    (why,) = {rule.why for rule in sent.not_run}
    assert why.startswith("needs the text of ")
    assert why.endswith("test_sent_source.py, which is not in the record")
    assert sent.rules_judged + len(sent.not_run) == whole.rules_judged


@pytest.mark.parametrize("name", ["own", "public", "second"])
def test_functions_are_enough_for_faulty_programs(name, sweep) -> None:
    with Records() as records:
        for case in load_set(name).cases[::EACH]:
            record = records.of(case.bad)
            assert found_in(as_sent(record, "functions")) == found_in(record), case.id
