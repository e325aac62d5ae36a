"""Two ranks of one job under DDP, each with a recorder: what ties them together, and that DDP made them one model."""

from __future__ import annotations

import sys

import pytest

from backprobe.record import check
from tests.support.processes import Processes, inherited

JOB = """
import os, sys
import torch, torch.distributed as dist, backprobe
rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(rank + 1)
with backprobe.watch(model, optimizer, ranks="all", report=False):
    for _ in range(25):
        optimizer.zero_grad()
        model(torch.randn(8, 3)).pow(2).mean().backward()
        optimizer.step()
os._exit(0)  # without the end of gloo's threads, for which nobody asks here
"""


@pytest.mark.usefixtures("fresh_python")
def test_ranks_under_ddp_are_runs_of_one_group_with_equal_gradients(service, tmp_path, wait_until):
    script = tmp_path / "job.py"
    script.write_text(JOB)
    environment = inherited() | {"BACKPROBE_URL": service.url, "BACKPROBE_JOB": "ddp", "BACKPROBE_HOME": str(tmp_path)}
    processes = Processes(tmp_path)
    try:
        for rank in ("0", "1"):
            command = [sys.executable, str(script), rank, str(tmp_path / "store")]
            processes.start(command, environment, name=f"rank {rank}")
        wait_until(lambda: len(service.ends) == 2, "the ends of both ranks", 600.0)
    finally:
        processes.kill()
    runs = {body["labels"]["rank"]: run for run, body in service.runs.items()}
    assert sorted(runs) == ["0", "1"]
    assert all(
        body["labels"] == {"group": "ddp", "rank": rank, "world_size": "2"}
        for rank, body in ((rank, service.runs[run]) for rank, run in runs.items())
    )
    first, second = (service.record(runs[rank]) for rank in ("0", "1"))
    check(first)
    check(second)
    assert len(first.steps) == len(second.steps) == 25
    assert [step.grad_norm for step in first.steps] == [step.grad_norm for step in second.steps]
    assert None not in [step.grad_norm for step in first.steps]
    assert [step.loss for step in first.steps] != [step.loss for step in second.steps]
    assert {first.end.own_errors, second.end.own_errors} == {0}
