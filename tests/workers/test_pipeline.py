"""A snippet through sandbox and rules, with neither Celery nor a database."""

import subprocess
import sys

from backprobe.rules import JudgeOptions
from workers import pipeline
from workers.sandbox.job import Job

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
