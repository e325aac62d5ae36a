"""A snippet through sandbox and rules, with neither Celery nor a database."""

import subprocess
import sys

import pytest

from backprobe.rules import JudgeOptions
from store.runs import lifecycle
from workers import pipeline
from workers.sandbox.supervisor.job import Job
from workers.tasks import job_of

NON_LEAF = """\
import torch
x = torch.ones(3, requires_grad=True)
y = x * 2
y.sum().backward()
print(y.grad)
"""


def test_a_snippet_comes_out_judged_with_the_reasons_for_missing_gradients(supervisor):
    result = pipeline.run(supervisor, Job(files={"main.py": NON_LEAF}, entry="main.py"))
    assert result.outcome.status == "succeeded"
    assert result.judgement is not None
    assert [finding.rule.code for finding in result.judgement.findings] == ["BP101"]
    assert result.outcome.record is not None
    names = {binding.tensor: binding.name for binding in result.outcome.record.bindings}
    assert "y" in {names.get(tensor) for tensor in result.whys}


def test_the_rules_that_were_chosen_judge(supervisor):
    job = Job(files={"main.py": NON_LEAF}, entry="main.py")
    result = pipeline.run(supervisor, job, options=JudgeOptions(select=("BP2",)))
    assert result.judgement is not None
    assert result.judgement.findings == ()


STEPS = """\
import torch
p = torch.nn.Parameter(torch.ones(2))
o = torch.optim.SGD([p], lr=0.1)
for _ in range(30):
    o.zero_grad()
    (p * 2).sum().backward()
    o.step()
"""


@pytest.mark.parametrize(
    ("capture", "taken", "counted"),
    [
        ({}, [*range(30)], False),
        ({"tier": "full", "every": 10, "histograms": True}, [0, 10, 20], True),
        ({"tier": "grad", "every": 15}, [0, 15], False),
    ],
)
def test_which_steps_are_taken_and_what_is_counted_is_as_was_asked(database, supervisor, capture, taken, counted):
    with database.begin() as transaction:
        lifecycle.submit(transaction, lifecycle.Submission(files={"a.py": STEPS}, entry="a.py", capture=capture))
    claim = lifecycle.claim(database, "w1")
    assert claim is not None
    record = pipeline.run(supervisor, job_of(claim)).outcome.record
    assert record is not None
    assert [row.k for row in record.moments if row.kind == "optimizer-step"] == taken
    assert bool(record.histograms) == counted
    assert record.header.tier == capture.get("tier", "full")


def test_what_left_no_record_is_not_judged(supervisor):
    result = pipeline.run(supervisor, Job(files={"main.py": "pass"}, entry="none.py"))
    assert result.outcome.status == "failed"
    assert result.judgement is None or result.judgement.findings == ()


def test_the_trusted_side_never_loads_torch(supervisor):
    pipeline.run(supervisor, Job(files={"main.py": NON_LEAF}, entry="main.py"))
    loaded = subprocess.run(
        [sys.executable, "-c", "import workers.process, sys; print('torch' in sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert loaded.stdout == "False\n"
